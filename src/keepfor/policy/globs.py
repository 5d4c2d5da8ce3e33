"""Patterns on ids: `*` is any run of characters, `?` any one, and nothing else is special."""

from __future__ import annotations


def unclear(pattern: object) -> str | None:
    """Why a pattern may not mean what its owner thinks; None where it is clear."""
    if not isinstance(pattern, str) or not pattern:
        return "it is no text"
    if any(mark in pattern for mark in "[]{}"):
        return "brackets have no meaning here"
    return None


def matches(pattern: str, text: str) -> bool:
    """Whether the whole text is what the pattern says, upper and lower case told apart.

    It takes the product of the two lengths at the most, whatever the pattern.
    """
    at = place = 0
    # Changed, some of these lines would loop for ever, and others do as well.
    star, after_star = -1, 0  # pragma: no mutate
    while place < len(text):
        if at < len(pattern) and pattern[at] == "*":
            star, after_star = at, place
            at += 1  # pragma: no mutate
        elif at < len(pattern) and pattern[at] in ("?", text[place]):
            at, place = at + 1, place + 1
        elif star >= 0:
            # What the last star stands for grows by one character, and the rest is tried anew.
            after_star += 1  # pragma: no mutate
            at, place = star + 1, after_star
        else:
            return False
    return pattern[at:].strip("*") == ""


def covers(pattern: str, other: str | None) -> bool:
    """Whether one pattern surely matches all that another matches; None is every text.

    A star is matched by stars alone, so a pattern is held against the other's own letters. A
    question mark is not, for the other's star may stand for none or for many.
    """
    if other is None:
        return set(pattern) == {"*"}
    return matches(pattern, other) and ("?" not in pattern or "*" not in other)
