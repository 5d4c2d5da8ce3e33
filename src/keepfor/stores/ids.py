"""Names as ids: one reversible escape for what is not UTF-8 or would disturb a screen."""

from __future__ import annotations

import re

#: Control characters, the backslash that begins an escape, and bytes that are not UTF-8, which
#: Python gives as lone surrogates.
_SPECIAL = re.compile(r"[\x00-\x1f\\\x7f\udc80-\udcff]")
_ESCAPE = re.compile(r"\\x([0-9a-f]{2})")


def escape(name: str) -> str:
    """The id of what has that name: itself, unless there is a special character in it."""
    return _SPECIAL.sub(lambda found: f"\\x{ord(found[0]) & 0xFF:02x}", name)


def unescape(text: str) -> str:
    """The name of what has that id."""
    return _ESCAPE.sub(lambda found: _character(int(found[1], 16)), text)


def escape_all(names: list[str]) -> list[str]:
    """The ids of many, nearly all of which have nothing special in their names."""
    return list(map(escape, names)) if _SPECIAL.search("".join(names)) else names


def _character(byte: int) -> str:
    return chr(byte) if byte < 0x80 else chr(0xDC00 + byte)
