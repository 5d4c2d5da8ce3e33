"""Directories of runs in a few words, for the tests that need one."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

#: 90 days before it is 2026-04-27 (26 + 30 + 31 + 3 days back).
NOW = datetime(2026, 7, 26, tzinfo=UTC)
#: Long enough ago for no run to count as being written still.
LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)


def run(folder: Path, name: str, *entries: Any, mtime: datetime = LONG_AGO) -> Path:
    """A run with these entries, changed last at that time."""
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}.jsonl"
    path.write_text("".join(f"{json.dumps(entry)}\n" for entry in entries or [{"runId": name}]))
    os.utime(path, (mtime.timestamp(),) * 2)
    return path


def hourly(folder: Path, count: int, until: datetime = NOW) -> list[str]:
    """So many runs, one an hour, named for when they began; the last is an hour before `until`."""
    names = [
        f"rem-{until - timedelta(hours=hours):%Y-%m-%dT%H_%M_%S}.000Z"
        for hours in range(count, 0, -1)
    ]
    for name in names:
        run(folder, name)
    return names


def left(folder: Path) -> list[str]:
    """The names of the runs that are there, without `.jsonl`, in order."""
    return sorted(path.stem for path in folder.glob("*.jsonl"))
