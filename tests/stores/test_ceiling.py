"""Which rows go for the rest to fit, and which are the newest."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepfor.items import Key
from keepfor.plan import build
from keepfor.policy.rules import terms
from keepfor.stores import ceiling, files, sift
from keepfor.stores.ceiling import find_below, newest_key
from keepfor.stores.ledger import ledger_at
from keepfor.stores.rows import RowFormat
from tests.stores.build import CUTOFF, NOW, policy, pruned, row, write

FIRST = Key(datetime.min.replace(tzinfo=UTC))
FOREVER = "9999-12-31"


@contextmanager
def opened(path: Path, lines: list[bytes]) -> Iterator[tuple[int, int]]:
    """A ledger of those lines: its descriptor and its size."""
    size = len(write(path, lines))
    descriptor = os.open(path, os.O_RDONLY)
    try:
        yield descriptor, size
    finally:
        os.close(descriptor)


def goes(lines: list[bytes], instants: list[datetime], below: Key) -> list[int]:
    """The numbers of the lines whose keys are below one."""
    positions = [sum(map(len, lines[:number])) for number in range(len(lines))]
    keys = [Key(*key) for key in zip(instants, positions, strict=True)]
    return [number for number, key in enumerate(keys) if key < below]


@given(
    st.lists(st.tuples(st.integers(-40, 40) | st.integers(-(10**13), 10**13), st.integers(0, 60))),
    st.integers(1, 1500),
    st.integers(2, 5),
    st.integers(1, 5),
)
def test_what_is_found_is_what_a_sort_finds(
    tmp_path_factory: pytest.TempPathFactory,
    drawn: list[tuple[int, int]],
    excess: int,
    buckets: int,
    few: int,
) -> None:
    """However small the buckets, the oldest rows go until enough is gone, ties by position."""
    instants = [CUTOFF + timedelta(microseconds=tick) for tick, _ in drawn]
    lines = [row(at, x="x" * more) for at, (_, more) in zip(instants, drawn, strict=True)]
    expected, freed = set(), 0
    for number in sorted(range(len(lines)), key=lambda number: (instants[number], number)):
        if freed >= excess:
            break
        freed += len(lines[number])
        expected.add(number)
    with (
        pytest.MonkeyPatch.context() as patch,
        opened(tmp_path_factory.getbasetemp() / "ledger", lines) as (descriptor, size),
    ):
        patch.setattr(ceiling, "_BUCKETS", buckets)
        patch.setattr(ceiling, "_FEW_ROWS", few)
        span = min(instants, default=CUTOFF), max(instants, default=CUTOFF)
        below = find_below(descriptor, size, RowFormat(), excess, FIRST, span)
        assert set(goes(lines, instants, below)) == expected


def test_many_rows_of_one_instant_go_by_position(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where one instant has more rows than are put in order, the first of them go."""
    monkeypatch.setattr(ceiling, "_FEW_ROWS", 3)
    lines = [row(CUTOFF, n=number) for number in range(10, 60)]
    with opened(tmp_path / "ledger", lines) as (descriptor, size):
        excess = 7 * len(lines[0])
        below = find_below(descriptor, size, RowFormat(), excess, FIRST, (CUTOFF, CUTOFF))
        assert below == Key(CUTOFF, 6 * len(lines[0]) + 1)


def test_rows_that_go_already_are_not_weighed(tmp_path: Path) -> None:
    """What is below the first key is gone by age, and frees nothing more."""
    instants = [CUTOFF + timedelta(days=day) for day in range(6)]
    lines = [row(at) for at in instants]
    with opened(tmp_path / "ledger", lines) as (descriptor, size):
        first, span = Key(instants[2], 2 * len(lines[0])), (instants[2], instants[5])
        below = find_below(descriptor, size, RowFormat(), len(lines[0]), first, span)
        assert goes(lines, instants, below) == [0, 1, 2]


def test_a_row_that_goes_by_a_microsecond_is_not_weighed(tmp_path: Path) -> None:
    """Beside the first row that stays, what is gone by age frees nothing more."""
    path = tmp_path / "ledger"
    lines = [row(CUTOFF - timedelta(microseconds=1), x="-" * 99), row(CUTOFF), row(CUTOFF, n=1)]
    write(path, lines)
    report = pruned(path, policy(max_bytes=len(lines[1]) + len(lines[2]) - 1))
    assert (report.expired, report.over_ceiling) == (1, 1)
    assert path.read_bytes() == lines[2]


def test_rows_past_the_end_are_not_weighed(tmp_path: Path) -> None:
    """Rows that came later are out of reach, however old."""
    instants = [CUTOFF, CUTOFF - timedelta(days=1)]
    lines = [row(at) for at in instants]
    with opened(tmp_path / "ledger", lines) as (descriptor, _):
        below = find_below(descriptor, len(lines[0]), RowFormat(), 1, FIRST, (CUTOFF, CUTOFF))
        assert below == Key(CUTOFF, 1)
        assert newest_key(descriptor, len(lines[0]), RowFormat(), 1) == Key(CUTOFF, 0)


def test_what_is_too_long_or_has_no_time_is_not_weighed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only rows of known age can go for a ceiling."""
    monkeypatch.setattr(files, "BLOCK", 64)
    monkeypatch.setattr(sift, "LONGEST_LINE", 64)
    lines = [row(CUTOFF, x="x" * 99), b"debris\n", row(None), b"\n", row(CUTOFF)]
    with opened(tmp_path / "ledger", lines) as (descriptor, size):
        below = find_below(descriptor, size, RowFormat(), 1, FIRST, (CUTOFF, CUTOFF))
        assert below == Key(CUTOFF, size - len(lines[-1]) + 1)
        assert newest_key(descriptor, size, RowFormat(), 1) == Key(CUTOFF, size - len(lines[-1]))
        assert newest_key(descriptor, size, RowFormat(), 2) is None


@pytest.mark.parametrize("stamp", [FOREVER, "0001-01-01T00:00:00+10:00", "9999-12-31T23:59:59.9Z"])
def test_rows_at_the_ends_of_time_go_like_others(stamp: str, tmp_path: Path) -> None:
    """A ledger full of rows that are dated for ever, or before all time, is held to its ceiling."""
    path, line = tmp_path / "ledger", row(stamp, x="x" * 50)
    write(path, [line] * 10)
    report = pruned(path, policy(None, max_bytes=5 * len(line)))
    # Four fifths of five rows.
    assert path.read_bytes() == line * 4
    assert report.over_ceiling == 6
    assert not any("over the ceiling" in note for note in report.notes)


@pytest.mark.parametrize("stamp", [FOREVER, "2026-04-27"])
def test_all_rows_go_where_that_is_not_enough(stamp: str, tmp_path: Path) -> None:
    """Where what has no age weighs more than the ceiling, every row of known age goes."""
    path = tmp_path / "ledger"
    write(path, [row(stamp), row(stamp, n=1), b"x" * 500])
    report = pruned(path, policy(None, max_bytes=100))
    assert path.read_bytes() == b"x" * 500
    assert (report.over_ceiling, report.unknown) == (2, 1)
    assert any("still 400 bytes over the ceiling" in note for note in report.notes)


def test_rows_for_ever_go_last(tmp_path: Path) -> None:
    """Between the first day and the last of all time, the order is that of time."""
    path = tmp_path / "ledger"
    lines = [row(FOREVER, x="-" * 14), row(CUTOFF), row("0001-01-01", x="-" * 14), row(CUTOFF)]
    size = len(write(path, lines))
    pruned(path, policy(None, max_bytes=size - 1))
    assert path.read_bytes() == lines[0] + lines[1] + lines[3]


def test_rows_for_ever_are_the_newest(tmp_path: Path) -> None:
    """The floor counts rows that are dated for ever."""
    path = tmp_path / "ledger"
    write(path, [row(FOREVER), row("2026-01-02"), row("2026-01-01")])
    pruned(path, policy(keep_last=1))
    assert path.read_bytes() == row(FOREVER)


def test_a_report_says_what_a_ceiling_leaves(tmp_path: Path) -> None:
    """How many days are left is told: 25 of July, less the hours since midnight."""
    path, line = tmp_path / "ledger", row("2026-07-01T00:00:00Z")
    write(path, [row("2026-06-01T00:00:00Z"), line])
    planned = ledger_at(path).survey(terms(policy(max_bytes=len(line) + 10), NOW))
    report = pruned(path, policy(max_bytes=len(line) + 10))
    assert report.notes == planned.notes
    assert path.read_bytes() == line
    (note,) = report.notes
    assert f"the ceiling of {len(line) + 10} bytes leaves 25.0 days of history" in note


def test_the_smallest_ceiling_leaves_nothing(tmp_path: Path) -> None:
    """A ceiling of one byte has no room for a row."""
    path = tmp_path / "ledger"
    write(path, [row()] * 3)
    assert pruned(path, policy(max_bytes=1)).over_ceiling == 3
    assert path.read_bytes() == b""


def test_a_ledger_lags_since_it_grew_above_its_ceiling(tmp_path: Path) -> None:
    """Rows of 25 July, one for each hour: the third stands above a ceiling of two and a half."""
    path = tmp_path / "ledger"
    line = row("2026-07-25T10:00:00Z")
    write(path, [row(f"2026-07-25T{hour}:00:00Z") for hour in range(10, 20)])
    seen = build(ledger_at(path), policy(None, max_bytes=len(line) * 5 // 2), NOW, name="l")
    # From noon (the first row that is wholly above is that of 13:00) to midnight.
    assert seen.survey.lag == timedelta(hours=11)
