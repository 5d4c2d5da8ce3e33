"""A clock that is set by hand, and ledgers in a few words, for the tests of this folder."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

#: 90 days before it is 2026-04-27 (26 + 30 + 31 + 3 days back).
NOW = datetime(2026, 7, 26, tzinfo=UTC)


class Clock:
    """Tells the instant that it is set to."""

    def __init__(self, now: datetime = NOW) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def forward(self, **span: float) -> None:
        self.now += timedelta(**span)


def ago(days: float = 0.0, **more: Any) -> dict[str, Any]:
    """A row of so many days before NOW."""
    return {"ts": (NOW - timedelta(days=days)).isoformat(), **more}


def line(row: object) -> bytes:
    return json.dumps(row).encode() + b"\n"


def write(path: Path, rows: Iterable[object]) -> bytes:
    """Make a ledger of rows, as any program would; returns its bytes."""
    data = b"".join(map(line, rows))
    path.write_bytes(data)
    return data


def rows(path: Path) -> list[Any]:
    """What stands in a ledger, read as any program would."""
    return [json.loads(text) for text in path.read_bytes().splitlines()]


def spread(count: int, oldest: float, newest: float = 0.0) -> list[dict[str, Any]]:
    """So many numbered rows, evenly spread between two ages in days, the oldest first."""
    step = (oldest - newest) / max(1, count - 1)
    return [ago(oldest - step * number, n=number) for number in range(count)]
