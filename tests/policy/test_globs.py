"""Patterns on ids match what they say, and nothing that a slip would make of them."""

from __future__ import annotations

import pytest

from keepfor.policy.globs import covers, matches, unclear


@pytest.mark.parametrize(
    ("pattern", "text", "matched"),
    [
        ("note/a", "note/a", True),
        ("note/a", "note/ab", False),
        ("note/a", "xnote/a", False),
        ("note/a", "Note/a", False),
        ("note/*", "note/a", True),
        ("note/*", "note/", True),
        ("note/*", "note/a/b", True),
        ("note/*", "notes/a", False),
        ("*", "", True),
        ("*a", "aaa", True),
        ("*a", "aab", False),
        ("a*b*c", "aXbYbZc", True),
        ("a*b*c", "acb", False),
        ("?", "", False),
        ("?", "a", True),
        ("??", "a", False),
        ("n?te", "note", True),
        ("a**", "a", True),
        ("a.c", "abc", False),
        ("a+", "aa", False),
        ("", "", True),
        ("", "a", False),
        ("a?", "a", False),
        ("*ab", "ab", True),
        ("aX", "a", False),
    ],
)
def test_a_pattern_matches_whole_ids(pattern: str, text: str, matched: bool) -> None:
    """A star is any run, a question mark one character, all else stands for itself."""
    assert matches(pattern, text) is matched


@pytest.mark.parametrize(
    ("pattern", "other", "covered"),
    [
        ("a/*", "a/b", True),
        ("a/*", "a/*", True),
        ("a/*", "a/b*", True),
        ("a/b*", "a/*", False),
        ("*", None, True),
        ("a*", None, False),
        ("*", "x", True),
        ("?", "a", True),
        ("?", "?", True),
        ("?", "*", False),
        ("a?", "a*", False),
        ("a?", "ab", True),
    ],
)
def test_a_pattern_covers_another(pattern: str, other: str | None, covered: bool) -> None:
    """What is surely wider is told, so that lint can name rules that never fire."""
    assert covers(pattern, other) is covered


def test_a_hostile_pattern_takes_no_long_time() -> None:
    """Many stars against a long id are no way to make a plan hang."""
    assert matches("*a" * 50 + "b", "a" * 2_000) is False


def test_a_pattern_that_is_unclear_is_told() -> None:
    """An empty one, what is no text, and brackets, which mean nothing here."""
    assert unclear("") == unclear(None) == unclear(3) == "it is no text"
    assert unclear("a[b]") == "brackets have no meaning here"
    assert unclear("note/*") is unclear("X?") is None
