"""The probe after an append: one short read tells whether there is anything to prune."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from keepfor import Ledger
from tests.writers.build import NOW, Clock, ago, line, rows, spread, write

#: A row of 100 bytes, LF included.
WIDE = b'{"ts": "2026-07-26T00:00:00+00:00", "x": "%s"}\n' % (b"x" * 55)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many bytes each read gave."""
    seen: list[int] = []
    real = os.pread

    def spied(descriptor: int, size: int, offset: int) -> bytes:
        data = real(descriptor, size, offset)
        seen.append(len(data))
        return data

    monkeypatch.setattr(os, "pread", spied)
    return seen


def appended(path: Path, **settings: Any) -> None:
    """Append a fresh row to the ledger as a fresh process would."""
    settings.setdefault("clock", Clock())
    Ledger(path, **({"keep_for": "90d"} | settings)).append(ago(0))


def test_a_fresh_ledger_is_not_pruned(path: Path, clock: Clock, prunes: list[Any]) -> None:
    """While the first row is within the window and the file below its ceiling, nothing happens."""
    write(path, spread(20, oldest=89.9))
    ledger = Ledger(path, keep_for="90d", max_bytes="1MiB", clock=clock)
    for _ in range(5):
        ledger.append(ago(0))
    assert prunes == []
    assert len(rows(path)) == 25


def test_a_fresh_ledger_is_not_read(path: Path, clock: Clock, reads: list[int]) -> None:
    """A probe reads the first line and no more, however large the ledger is."""
    write(path, spread(20_000, oldest=89))
    first = len(path.read_bytes().split(b"\n")[0]) + 1
    ledger = Ledger(path, keep_for="90d", clock=clock)
    ledger.append(ago(0))
    assert sum(reads) <= 1 + 4096
    reads.clear()
    ledger.append(ago(0))
    assert reads == [1, first], "the last byte, to see a torn line, and the first line"


def test_without_an_end_nothing_is_probed(path: Path, reads: list[int], prunes: list[Any]) -> None:
    """`forever` with a ceiling looks at the size only."""
    write(path, [ago(5000)])
    Ledger(path, keep_for="forever", max_bytes="1MiB").append(ago(0))
    assert reads == [1]
    assert prunes == []


@pytest.mark.parametrize(
    ("first", "trips"),
    [
        (b'{"ts": "2026-04-27T00:00:00+00:00"}\n', False),  # on the cutoff
        (b'{"ts": "2026-04-26T23:59:59.999999+00:00"}\n', True),
        (b'{"ts": "2026-04-27T02:00:00+02:00"}\n', False),  # on the cutoff, told in another zone
        (b'{"ts": "2026-04-27T01:59:59+02:00"}\n', True),
        (b'{"ts": "2026-07-27T00:00:00Z"}\n', False),  # a day ahead, and not more
        (b'{"ts": "2026-07-27T00:00:01Z"}\n', True),
        (b'{"ts": "9999-12-31T23:59:59Z"}\n', True),
        (b'{"ts": "0001-01-01T00:00:00Z"}\n', True),
        (b'{"ts": "2026-07-2\n', True),
        (b"not JSON\n", True),
        (b"\xff\xfe\n", True),
        (b"\n", True),
        (b"[]\n", True),
        (b"null\n", True),
        (b"{}\n", True),
        (b'{"ts": null}\n', True),
        (b'{"ts": 1785024000}\n', True),  # a number, and no unit is set
        (b'{"ts": "yesterday"}\n', True),
        (b"[" * 100_000 + b"\n", True),
        (b'{"ts": ' + b"9" * 5000 + b"}\n", True),
        (b'{"x": "%s", "ts": "2026-07-26T00:00:00Z"}\n' % (b"x" * 10_000), False),
        (b'{"ts": "2026-07-26T00:00:00Z", "x": "%s"}\n' % (b"x" * 70_000), True),  # not read whole
    ],
)
def test_what_the_first_line_says(path: Path, prunes: list[Any], first: bytes, trips: bool) -> None:
    """An expired first line trips the probe; so does one that tells nothing, or hides the rest."""
    path.write_bytes(first + b"".join(map(line, spread(4, oldest=80, newest=1))))
    appended(path)
    assert len(prunes) == trips
    assert ago(0) in rows_of_the_last_line(path)


def rows_of_the_last_line(path: Path) -> list[Any]:
    tail = path.with_suffix(".tail")
    tail.write_bytes(path.read_bytes().splitlines()[-1])
    return rows(tail)


def test_the_first_line_is_read_as_the_ledger_is_set(path: Path, prunes: list[Any]) -> None:
    """Field, unit and zone of the ledger hold for the probe as they do for the prune."""
    write(path, [{"meta": {"at": 1777248000}}])  # 2026-04-27T00:00:00Z
    appended(path, time="meta.at", unit="s")
    assert prunes == []
    write(path, [{"meta": {"at": 1777247999}}])
    appended(path, time="meta.at", unit="s")
    assert len(prunes) == 1
    write(path, [{"ts": "2026-04-26T20:00:00"}])  # 00:00 UTC in New York (EDT, four hours behind)
    appended(path, timezone="America/New_York")
    assert len(prunes) == 1
    write(path, [{"ts": "2026-04-26T19:59:59"}])
    appended(path, timezone="America/New_York")
    assert len(prunes) == 2


def test_an_expired_row_behind_a_fresh_one_waits(path: Path, prunes: list[Any]) -> None:
    """The probe asks the first line alone; what expires behind it goes when that does."""
    write(path, [ago(1), ago(500)])
    appended(path)
    assert prunes == []
    assert len(rows(path)) == 3


def test_what_expires_is_pruned_by_the_next_append(path: Path, clock: Clock) -> None:
    """A row lives as long as its window, to the microsecond, on the clock of the ledger."""
    ledger = Ledger(path, keep_for="90d", clock=clock)
    ledger.append(ago(0, n=1))
    clock.forward(days=2)
    ledger.append(ago(-2, n=2))
    clock.now = NOW + timedelta(days=90)
    ledger.append(ago(-90, n=3))
    assert [row["n"] for row in rows(path)] == [1, 2, 3]
    clock.forward(microseconds=1)
    ledger.append(ago(-90, n=4))
    assert [row["n"] for row in rows(path)] == [2, 3, 4]


def test_the_ceiling_itself_is_not_above_it(path: Path, prunes: list[Any]) -> None:
    """A file of exactly `max_bytes` is left alone; one byte more is too much."""
    assert len(WIDE) == 100
    path.write_bytes(WIDE * 9)
    last = {"ts": "2026-07-26T00:00:00+00:00", "x": "x" * 55}
    Ledger(path, max_bytes=1000).append(last)
    assert path.stat().st_size == 1000
    assert prunes == []
    path.write_bytes(WIDE * 9)
    Ledger(path, max_bytes=999).append(last)
    assert len(prunes) == 1
    assert path.read_bytes() == WIDE * 7, "80 % of 999 bytes hold seven rows"


def test_a_first_line_that_was_replaced_is_read_again(
    path: Path, clock: Clock, prunes: list[Any]
) -> None:
    """What the first line said is forgotten when another process has put another one there."""
    write(path, [ago(80)])
    ledger = Ledger(path, keep_for="90d", clock=clock)
    ledger.append(ago(0))
    write(path, [ago(91), ago(5)])
    ledger.append(ago(0))
    assert [report.expired for report in prunes] == [1]


def test_a_first_line_grown_old_is_noticed_from_memory(
    path: Path, clock: Clock, prunes: list[Any]
) -> None:
    """The remembered first line is held against the present, not against when it was read."""
    write(path, [ago(89), ago(1)])
    ledger = Ledger(path, keep_for="90d", clock=clock)
    ledger.append(ago(0))
    clock.forward(days=1, seconds=1)
    ledger.append(ago(0))
    assert [report.expired for report in prunes] == [1]
