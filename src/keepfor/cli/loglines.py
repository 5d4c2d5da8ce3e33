"""What a process that nobody watches says: one line for each event, in fields."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from keepfor.cli.output import Output

#: What can stand in a line of `key=value` without quotes.
_BARE = re.compile(r"[!#-<>-~]+")


class _Lines(logging.Handler):
    """Writes records to stderr, in fields."""

    def __init__(self, out: Output) -> None:
        super().__init__(logging.INFO)
        self._out = out

    def emit(self, record: logging.LogRecord) -> None:
        fields = _fields(record)
        line = json.dumps(fields) if self._out.as_json else logfmt(fields)
        self._out.say(line)


@contextmanager
def written(out: Output) -> Iterator[logging.Logger]:
    """Have all that keepfor logs written as lines, for a while.

    Parameters:
        out: where to; it says whether the lines are JSON.

    Returns:
        A logger for what the process itself has to say.
    """
    logger = logging.getLogger("keepfor")
    level, propagate = logger.level, logger.propagate
    handler = _Lines(out)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    logger.addHandler(handler)
    try:
        yield logging.getLogger("keepfor.run")
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
        logger.propagate = propagate


def logfmt(fields: dict[str, Any]) -> str:
    """Fields as `key=value`; a value that would not be read back as one word is a JSON string."""
    return " ".join(f"{key}={_value(value)}" for key, value in fields.items())


def _value(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if _BARE.fullmatch(text) else json.dumps(text)


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    moment = datetime.fromtimestamp(record.created, UTC)
    when = moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    said: dict[str, Any] = {"ts": when, "level": record.levelname.lower()}
    said |= getattr(record, "facts", None) or {"event": "log", "message": record.getMessage()}
    if record.exc_info:
        said["traceback"] = logging.Formatter().formatException(record.exc_info)
    return said
