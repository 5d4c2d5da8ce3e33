"""Holds what is told to a size: a name or a row may be as long as whoever wrote it liked."""

from __future__ import annotations

from typing import Any

#: How many characters of one text are told, and how many of an error's.
_TEXT, _MESSAGE = 1000, 4000
#: How many entries are told of a list, or of a table of counts, that has no limit of its own.
_ENTRIES = 200


def bounded(value: Any) -> Any:
    """An answer with its texts and lists cut to a size, and fit to be sent.

    Parameters:
        value: the answer, in the types that JSON has.
    """
    if isinstance(value, str):
        return _text(value, _TEXT)
    if isinstance(value, list):
        told = [bounded(entry) for entry in value[:_ENTRIES]]
        left = len(value) - _ENTRIES
        # A sentence more has its place among sentences alone.
        return [*told, f"… and {left} more"] if left > 0 and isinstance(value[0], str) else told
    if isinstance(value, dict):
        return {_text(key, _TEXT): bounded(value[key]) for key in list(value)[:_ENTRIES]}
    return value


def message(error: BaseException) -> str:
    """What an error says, cut to a size, and fit to be sent."""
    if isinstance(error, OSError) and error.filename is not None:
        return _text(f"{error.filename}: {error.strerror}.", _MESSAGE)
    return _text(str(error), _MESSAGE)


def _text(text: str, most: int) -> str:
    if len(text) > most:
        text = f"{text[:most]}… ({len(text) - most} more characters)"
    # Half a character, which a name or a row may hold, has no place in UTF-8.
    return text.encode("utf-8", "backslashreplace").decode()
