"""Makes text that comes from a store, a path or an error safe to look at."""

from __future__ import annotations

import unicodedata

#: Controls, invisible and direction-changing characters, halves of pairs, line separators.
_UNSAFE = {"Cc", "Cf", "Cs", "Zl", "Zp"}
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def visible(text: str) -> str:
    """The text with everything that could move, hide or colour what a person sees written out.

    What is not UTF-8 in a path appears as the bytes that it is: `\\xff`.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_visible, text))


def visible_lines(text: str) -> str:
    """The same for a message of several lines, which stay lines."""
    return "\n".join(map(visible, text.split("\n")))


def _visible(character: str) -> str:
    if unicodedata.category(character) not in _UNSAFE:
        return character
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:
        code -= 0xDC00
    if character in _SHORT:
        return _SHORT[character]
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
