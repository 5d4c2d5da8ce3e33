"""One row to JSON and back, as the standard `json` does it, without importing that package.

`json` imports `re`, and the two take a process that appends a single row longer than all else that
it does. What `json` calls to do its work is a C module that costs nothing. Where it is missing, or
asks for other arguments than these, and wherever it raises, `json` itself has the word.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class _Plain:
    """How `json.loads` reads unless told otherwise."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    array_hook = None
    parse_float = float
    parse_int = int
    #: For NaN, Infinity and -Infinity.
    parse_constant = float


try:
    from _json import encode_basestring_ascii, make_encoder, make_scanner

    _scan: Any = make_scanner(_Plain)  # type: ignore[arg-type]
except (ImportError, AttributeError, TypeError):
    make_encoder = _scan = None  # type: ignore[assignment, misc]


def encode(row: object) -> str:
    """What `json.dumps` makes of a row.

    Raises:
        TypeError, ValueError, RecursionError: as `json.dumps` does.
    """
    if make_encoder is not None:
        try:
            encoder = make_encoder(
                {}, _refuse, encode_basestring_ascii, None, ": ", ", ", False, False, True
            )
            return "".join(encoder(row, 0))
        except (TypeError, ValueError, RecursionError):
            pass
    import json

    return json.dumps(row)


def decode(line: bytes) -> Any:
    """What `json.loads` makes of a line.

    Raises:
        ValueError, RecursionError: as `json.loads` does.
    """
    if _scan is not None:
        try:
            text = line.decode()
            value, end = _scan(text, 0)
            if not text[end:].strip(" \t\r\n"):
                return value
        except (ValueError, RecursionError, StopIteration):
            pass
    import json

    return json.loads(line)


def _refuse(value: object) -> Any:
    raise TypeError(value)
