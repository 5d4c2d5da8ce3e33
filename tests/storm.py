"""Plain writers at full speed against prunes back to back: is every row there, exactly once?

`python -m tests.storm [ROWS] [WRITERS]` runs it at length; the suite runs a short one.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from keepfor import Ledger
from keepfor.policy.rules import Policy, keep_for
from keepfor.stores.ledger import ledger_at
from keepfor.stores.replace import leftovers
from keepfor.sweep import prune

NOW = datetime(2026, 7, 26, tzinfo=UTC)
FRESH, EXPIRED = "2026-07-25T00:00:00+00:00", "2026-01-01T00:00:00+00:00"
#: Only every so many-th row stays, so that the ledger is small and prunes are many. The rest must
#: be dropped, each exactly once, so that their count tells as much as the rows that stay.
EVERY = 10
POLICY = Policy(rules=keep_for(timedelta(days=90)))

#: How a writer appends one row to the ledger at a path.
Write = Callable[[str, dict[str, Any]], None]


class Weather(msgspec.Struct, frozen=True, kw_only=True):
    """What a storm left.

    Parameters:
        written: how many rows that must stay were written.
        lost: how many of them are gone.
        doubled: how many of them are there more than once.
        torn: lines that are no rows.
        prunes: how many prunes replaced the file meanwhile.
        dropped: how many expired rows went; each was to go once.
        expired: how many expired rows were written.
    """

    written: int
    lost: int
    doubled: int
    torn: int
    prunes: int
    dropped: int
    expired: int


def write_plainly(path: str, row: dict[str, Any]) -> None:
    """As a program does that has never heard of keepfor."""
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


def write_with_keepfor(path: str, row: dict[str, Any]) -> None:
    """As a program does that appends through keepfor."""
    Ledger(path, keep_for="forever").append(row)


def storm(path: str, rows: int, writers: int = 4, write: Write = write_plainly) -> Weather:
    """Let writers append for all they are worth, and prune until they have ended."""
    open(path, "a").close()
    fork = multiprocessing.get_context("fork")
    processes = [
        fork.Process(target=_write_all, args=(path, writer, rows, write))
        for writer in range(writers)
    ]
    for process in processes:
        process.start()
    prunes = dropped = 0
    alive = True
    while alive:
        # Asked before the prune, so that the last prune comes after the last row.
        alive = any(process.is_alive() for process in processes)
        report = prune(ledger_at(path), POLICY, NOW, name="storm")
        prunes += report.applied > 0
        dropped += report.expired
    for process in processes:
        process.join()
        assert process.exitcode == 0
    report = prune(ledger_at(path), POLICY, NOW, name="storm")
    assert not leftovers(path)
    found, torn = _read(path)
    wanted = {(writer, row) for writer in range(writers) for row in range(rows) if row % EVERY == 0}
    return Weather(
        written=len(wanted),
        lost=len(wanted - found.keys()),
        doubled=sum(count > 1 for count in found.values()),
        torn=torn,
        prunes=prunes,
        dropped=dropped + report.expired,
        expired=writers * rows - len(wanted),
    )


def _write_all(path: str, writer: int, rows: int, write: Write) -> None:
    for row in range(rows):
        ts = EXPIRED if row % EVERY else FRESH
        write(path, {"ts": ts, "writer": writer, "row": row})


def _read(path: str) -> tuple[Counter[tuple[int, int]], int]:
    found: Counter[tuple[int, int]] = Counter()
    torn = 0
    with open(path, "rb") as file:
        for line in file:
            try:
                row = json.loads(line)
                found[row["writer"], row["row"]] += 1
            except (ValueError, KeyError):
                torn += 1
    return found, torn


def main(rows: str = "20000", writers: str = "4") -> int:
    """Have a storm with each kind of writer, and tell what it left."""
    harm = 0
    for write in (write_plainly, write_with_keepfor):
        with tempfile.TemporaryDirectory() as folder:
            weather = storm(os.path.join(folder, "ledger"), int(rows), int(writers), write)
        print(write.__name__, weather)
        harm += weather.lost + weather.doubled + weather.torn
        harm += abs(weather.expired - weather.dropped)
    return bool(harm)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
