"""What a prune at the write site may take: nobody is there to ask."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from keepfor import Ledger
from tests.writers.build import NOW, Clock, ago, line, rows, spread, write

#: 100 bytes with its LF.
FRESH = {"ts": "2026-07-26T00:00:00+00:00", "x": "x" * 55}


def test_a_jump_of_the_clock_takes_nothing(path: Path, clock: Clock) -> None:
    """A clock that is a year ahead for an hour expires no row, whatever is appended meanwhile."""
    write(path, spread(50, oldest=80))
    ledger = Ledger(path, keep_for="90d", clock=clock)
    clock.forward(days=365)
    for minutes in range(0, 60, 10):
        clock.now = NOW + timedelta(days=365, minutes=minutes)
        ledger.append(ago(-365, n=100 + minutes))
    clock.now = NOW + timedelta(hours=1)
    for number in range(200, 250):
        ledger.append(ago(0, n=number))
    expected = [*range(50), *range(100, 160, 10), *range(200, 250)]
    assert [row["n"] for row in rows(path)] == expected


def test_a_ledger_that_lay_idle_is_pruned_on_its_second_day(path: Path, clock: Clock) -> None:
    """After a year without an append, the old rows go once the fresh ones span a day."""
    write(path, spread(50, oldest=455, newest=365))
    ledger = Ledger(path, keep_for="90d", clock=clock)
    lengths = []
    for hours in range(0, 30, 6):
        clock.now = NOW + timedelta(hours=hours)
        ledger.append(ago(-hours / 24))
        lengths.append(len(rows(path)))
    # On the stroke of a day the first fresh row is not older than one yet.
    assert lengths == [51, 52, 53, 54, 55]
    clock.now = NOW + timedelta(hours=30)
    ledger.append(ago(-30 / 24))
    assert rows(path) == [ago(-hours / 24) for hours in range(0, 36, 6)]


@pytest.mark.parametrize(("old", "stay"), [(8, 1), (9, 10), (10, 11)])
def test_ten_rows_are_guarded_and_fewer_are_not(
    path: Path, clock: Clock, old: int, stay: int
) -> None:
    """With the row just written, nine rows are pruned at once and ten wait."""
    write(path, [ago(400)] * old)
    Ledger(path, keep_for="90d", clock=clock).append(ago(0))
    assert len(rows(path)) == stay


@pytest.mark.parametrize(("age", "stay"), [(0.99, 22), (1.0, 22), (1.01, 2)])
def test_a_survivor_older_than_a_day_vouches_for_the_clock(
    path: Path, clock: Clock, age: float, stay: int
) -> None:
    """One row that stays and is strictly older than a day is enough, and nothing less is."""
    write(path, [*[ago(400)] * 20, ago(age)])
    Ledger(path, keep_for="90d", clock=clock).append(ago(0))
    assert len(rows(path)) == stay


@pytest.mark.parametrize("keep_last", [0, 2, 10])
def test_what_a_floor_holds_does_not_vouch_for_the_clock(
    path: Path, clock: Clock, keep_last: int
) -> None:
    """A clock that jumps ahead takes nothing, however old the rows are that the floor holds."""
    write(path, spread(50, oldest=80))
    clock.forward(days=365)
    ledger = Ledger(path, keep_for="90d", keep_last=keep_last, clock=clock)
    ledger.append(ago(-365))
    assert len(rows(path)) == 51


def test_a_row_that_was_stamped_by_the_right_clock_does_not_vouch_for_the_wrong_one(
    path: Path, clock: Clock
) -> None:
    """The row that triggers a prune stays by its place; that it is old by then says nothing."""
    write(path, spread(50, oldest=80))
    clock.forward(days=365)
    Ledger(path, keep_for="90d", clock=clock).append(ago(0))
    assert len(rows(path)) == 51


@pytest.mark.parametrize(("keep_for", "stay"), [("3h", 19), ("12h", 73), ("24h", 145)])
def test_a_window_of_a_day_or_less_expires_its_rows_too(
    path: Path, clock: Clock, keep_for: str, stay: int
) -> None:
    """Rows that are kept for hours go when these are over, though none ever spans a day."""
    ledger = Ledger(path, keep_for=keep_for, clock=clock)
    for _ in range(3 * 24 * 6):
        clock.forward(minutes=10)
        ledger.append({"ts": clock.now.isoformat()})
    clock.forward(minutes=61)
    ledger.append({"ts": clock.now.isoformat()})
    # One each ten minutes, both ends included; the last gap is of 61.
    assert len(rows(path)) == stay - 6


def test_a_short_window_does_not_trust_a_clock_that_jumped(path: Path, clock: Clock) -> None:
    """Half the window has to be spanned by fresh rows, so that an hour of a wrong clock is not."""
    write(path, spread(50, oldest=0.5))
    clock.forward(days=365)
    ledger = Ledger(path, keep_for="12h", clock=clock)
    for _ in range(6):
        clock.forward(minutes=10)
        ledger.append({"ts": clock.now.isoformat()})
    assert len(rows(path)) == 56


def test_what_waits_is_said(path: Path, clock: Clock, prunes: list[Any]) -> None:
    """The report of a prune that waited says so, and its counts add up."""
    write(path, [ago(400)] * 20)
    Ledger(path, keep_for="90d", clock=clock).append(ago(0))
    (report,) = prunes
    assert (report.scanned, report.kept, report.applied, report.expired) == (21, 21, 0, 0)
    assert report.notes == ["nothing was expired: the rows that would stay do not span a day"]


def test_debris_goes_while_age_waits(path: Path, clock: Clock, prunes: list[Any]) -> None:
    """Rows that no reader can use need no clock to be told, and go."""
    path.write_bytes(b"{torn\n" + line(ago(400)) * 20)
    Ledger(path, keep_for="90d", clock=clock).append(ago(0))
    assert rows(path) == [*[ago(400)] * 20, ago(0)]
    assert [(report.unreadable, report.expired) for report in prunes] == [(1, 0)]


def test_the_ceiling_holds_while_age_waits(path: Path, clock: Clock) -> None:
    """A ledger that waits is still held to its ceiling: the oldest rows go, down to 80 %."""
    path.write_bytes(b"".join(line(ago(400 - n, x="x" * 55)) for n in range(30)))
    assert path.stat().st_size == 3000
    Ledger(path, keep_for="90d", max_bytes=2000, clock=clock).append(FRESH)
    assert path.stat().st_size == 1600
    assert rows(path) == [*(ago(400 - n, x="x" * 55) for n in range(15, 30)), FRESH]


def test_an_explicit_prune_does_what_it_is_told(path: Path, clock: Clock) -> None:
    """`prune()` asks for no span: somebody is there who said so."""
    write(path, [ago(400)] * 20 + [ago(0)])
    report = Ledger(path, keep_for="90d", clock=clock).prune()
    assert (report.expired, report.kept) == (20, 1)
    assert rows(path) == [ago(0)]


def test_the_row_that_triggers_a_prune_survives_it(path: Path, clock: Clock) -> None:
    """A row that is expired as it is written stays, and only what stood before it goes."""
    write(path, [ago(300), ago(200), ago(50)])
    Ledger(path, keep_for="90d", clock=clock).append(ago(100))
    assert rows(path) == [ago(50), ago(100)]


def test_an_expired_row_alone_survives_its_own_append(path: Path, clock: Clock) -> None:
    """The first row of a ledger stays, though the probe that follows trips on it."""
    Ledger(path, keep_for="90d", clock=clock).append(ago(100))
    assert rows(path) == [ago(100)]


def test_a_row_above_the_ceiling_by_itself_survives(path: Path, clock: Clock) -> None:
    """A row larger than the ceiling drives out all that stood before it, and stays."""
    write(path, [FRESH] * 5)
    large = ago(0, x="x" * 2000)
    ledger = Ledger(path, max_bytes=1000, clock=clock)
    ledger.append(large)
    assert rows(path) == [large]
    ledger.append(FRESH)
    assert rows(path)[-1] == FRESH


def test_what_no_reader_can_use_survives_its_own_append(path: Path, clock: Clock) -> None:
    """A row without a time stays through the prune that it triggers."""
    write(path, [ago(300), ago(50)])
    Ledger(path, keep_for="90d", clock=clock).append({"no": "time"})
    assert rows(path) == [ago(50), {"no": "time"}]


def test_a_ledger_of_fresh_rows_shrinks_once_and_is_quiet(
    path: Path, clock: Clock, prunes: list[Any]
) -> None:
    """At the ceiling the oldest rows go, down to 80 %, and then none for a fifth of it."""
    ledger = Ledger(path, keep_for="90d", max_bytes=10_000, clock=clock)
    for _ in range(100):
        ledger.append(FRESH)
    assert (path.stat().st_size, prunes) == (10_000, [])
    ledger.append(FRESH)
    assert path.stat().st_size == 8_000
    for _ in range(20):
        ledger.append(FRESH)
    assert path.stat().st_size == 10_000
    assert [(report.over_ceiling, report.bytes_after) for report in prunes] == [(21, 8_000)]
    ledger.append(FRESH)
    assert [report.over_ceiling for report in prunes] == [21, 21]


def test_the_ceiling_takes_the_oldest_rows(path: Path, clock: Clock, prunes: list[Any]) -> None:
    """What goes is the oldest by time, wherever it stands, and the report tells what is left."""
    order = [5, 1, 9, 3, 7, 8, 2, 6, 4, 10]
    write(path, [ago(days, x="x" * 55) for days in order])
    Ledger(path, keep_for="90d", max_bytes=1000, clock=clock).append(FRESH)
    assert rows(path) == [*(ago(days, x="x" * 55) for days in (5, 1, 3, 7, 2, 6, 4)), FRESH]
    (report,) = prunes
    assert report.notes == [
        "the ceiling of 1000 bytes leaves 7.0 days of history, less than the policy would keep"
    ]
