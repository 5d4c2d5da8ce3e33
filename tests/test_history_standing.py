"""How a store stands is told by its ends where they tell, and is right."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from keepfor.history import standing as module
from keepfor.history.coming import NextRun, lock_of, next_run, process_of
from keepfor.history.standing import Standing, standing
from keepfor.items import Item
from keepfor.policy.rules import Policy, keep_for
from keepfor.stores.ledger import ledger_at
from keepfor.stores.table import TableStore, table_at
from keepfor.testing.doubles import MemoryStore
from keepfor.times import Known
from keepfor.trail import Sweep
from tests import caesar

NOW = datetime(2026, 7, 26, tzinfo=UTC)
MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)
NINETY = Policy(rules=keep_for(90 * DAY))


def row(instant: datetime) -> str:
    """A row of 57 bytes, its LF included."""
    return f'{{"ts": "{instant.isoformat()}", "pad": "0123456789"}}\n'


def written(path: Path, rows: Iterator[str]) -> Path:
    path.write_text("".join(rows), encoding="ascii")
    return path


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """120 days of rows up to now, one each four minutes: 43,200 of them, 2.3 MiB."""
    oldest = NOW - 120 * DAY
    return written(tmp_path / "large", (row(oldest + 4 * each * MINUTE) for each in range(43_200)))


def seen(path: Path, policy: Policy = NINETY) -> Standing:
    return standing(ledger_at(path), policy, NOW)


def test_a_large_ledger_is_told_by_its_ends(large: Path) -> None:
    """Oldest, newest, days, bytes and lag are exact; rows and what is due are near, and say so."""
    stands = seen(large)
    assert len(row(NOW)) == 57
    held = stands.held
    assert (held.oldest, held.newest) == (NOW - 120 * DAY, NOW - 4 * MINUTE)
    assert (held.bytes, held.lag) == (43_200 * 57, 30 * DAY)
    assert held.rows == 43_200
    assert stands.due == pytest.approx(10_800, abs=2)
    assert stands.estimated == ("rows", "due", "share")
    assert stands.share == pytest.approx(0.25, abs=0.001)
    assert not stands.tripped


def test_a_large_ledger_is_not_read_whole(large: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However large it is, about a megabyte of it is read."""
    with large.open("a", encoding="ascii") as file:
        for copy in range(3):
            file.writelines(row(NOW + copy * 30 * DAY + each * MINUTE) for each in range(43_200))
    real, read = os.pread, [0]

    def counting(descriptor: int, size: int, offset: int) -> bytes:
        data = real(descriptor, size, offset)
        read[0] += len(data)
        return data

    monkeypatch.setattr(os, "pread", counting)
    seen(large)
    assert read[0] < 1_500_000 < large.stat().st_size // 6


def test_a_large_ledger_out_of_order_is_read_whole(large: Path) -> None:
    """Where an older part was put behind a younger one, the ends do not tell, and all is read."""
    young, old = large.read_text()[21_600 * 57 :], large.read_text()[: 21_600 * 57]
    large.write_text(young + old, encoding="ascii")
    stands = seen(large)
    assert stands.estimated == ()
    assert (stands.held.rows, stands.due) == (43_200, 10_800)
    assert (stands.held.oldest, stands.held.lag) == (NOW - 120 * DAY, 30 * DAY)


def test_rows_of_unknown_age_at_the_ends_do_not_mislead(large: Path) -> None:
    """Debris is passed over; where a whole end is debris, all is read."""
    text = large.read_text()
    large.write_text("debris\n" + text + "torn", encoding="ascii")
    stands = seen(large)
    assert (stands.held.lag, stands.estimated) == (30 * DAY, ("rows", "due", "share"))
    large.write_text("debris\n" * 20_000 + text, encoding="ascii")
    stands = seen(large)
    assert (stands.held.lag, stands.estimated) == (30 * DAY, ())


def test_nothing_due_is_nothing_due(large: Path) -> None:
    """A policy longer than the history leaves no lag and nothing to do."""
    stands = seen(large, Policy(rules=keep_for(200 * DAY)))
    assert (stands.due, stands.held.lag, stands.share) == (0, timedelta(), 0.0)


def test_all_due_trips_the_breaker(large: Path) -> None:
    """A ledger that lay idle is due to its last row, and the breaker is shown to hold it back."""
    stands = standing(ledger_at(large), NINETY, NOW + 365 * DAY)
    assert stands.due == pytest.approx(43_200, abs=2)
    assert (stands.tripped, stands.held.lag) == (True, 395 * DAY)


def test_a_floor_holds_what_is_due(large: Path) -> None:
    """Of rows that are past their time the newest stay, and where all do, nothing is late."""
    floor = Policy(rules=keep_for(DAY), keep_last=43_000)
    assert seen(large, floor).due == pytest.approx(200, abs=2)
    stands = seen(large, Policy(rules=keep_for(DAY), keep_last=50_000))
    assert (stands.due, stands.held.lag) == (0, timedelta())


def test_a_ceiling_is_due_since_it_was_passed(large: Path) -> None:
    """Above a ceiling the oldest are due down to 80 %, since the row that went above it."""
    ceiling = 57 * 40_000
    stands = seen(large, Policy(max_bytes=ceiling))
    assert stands.due == pytest.approx(43_200 - 32_000, abs=2)
    # The 40,001st row was the first above it: 3,200 rows and four minutes each ago.
    assert stands.held.lag == 3200 * 4 * MINUTE


def test_a_small_ledger_is_read_to_the_last_row(tmp_path: Path) -> None:
    """Where it costs nothing, all is exact."""
    path = written(tmp_path / "small", (row(NOW - days * DAY) for days in (50, 100, 1)))
    stands = seen(path)
    assert (stands.held.rows, stands.due, stands.held.lag) == (3, 1, 10 * DAY)
    assert (stands.estimated, stands.notes) == ((), [])
    assert stands.space.logical == 3 * 57


def test_what_is_not_there_is_no_error(tmp_path: Path) -> None:
    """Before the first row there is nothing, of any kind."""
    assert not seen(tmp_path / "nothing").exists
    assert not standing(MemoryStore(), NINETY, NOW).exists


def test_items_take_up_whole_blocks(tmp_path: Path) -> None:
    """What items hold is exact; what the disk gives them is told from their sizes."""
    items = [
        Item(id=str(size), type="run", instant=Known(NOW - DAY, "name"), bytes=size)
        for size in (1, 4096, 4097)
    ]
    stands = standing(MemoryStore(items), NINETY, NOW)
    assert (stands.space.logical, stands.space.on_disk) == (8194, 4 * 4096)
    assert (stands.space.reclaimable, stands.estimated) == (None, ("on_disk",))


# --- tables -------------------------------------------------------------------------------


def audit(folder: Path) -> TableStore:
    """The audit log of the sample: 600 rows, 150 of them older than 90 days at NOW."""
    return table_at(
        f"sqlite:///{caesar.rebuild(folder)}",
        "audit_log",
        time="ts",
        type="event_type",
        folder=folder,
    )


def test_a_large_table_is_told_by_its_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its rows, its ends, what is due and since when are those that a plan counts."""
    store = audit(tmp_path)
    whole = standing(store, NINETY, NOW)
    assert (whole.held.rows, whole.due, whole.orphans) == (600, 150, {})
    monkeypatch.setattr(module, "SMALL_DATABASE", 0)
    stands = standing(store, NINETY, NOW)
    assert stands.held == whole.held
    assert (stands.due, stands.space) == (150, whole.space)
    assert (stands.orphans, stands.estimated) == (None, ())


def test_a_table_tells_what_it_holds_apart_from_what_it_takes_up(tmp_path: Path) -> None:
    """Used and free pages come to the size of the database."""
    space = standing(audit(tmp_path), NINETY, NOW).space
    assert space.reclaimable is not None
    assert space.logical + space.reclaimable == space.on_disk


# --- when it is swept next ----------------------------------------------------------------

HOUR = timedelta(hours=1)


def swept(by: str, at: datetime) -> Sweep:
    return Sweep(
        seq=1,
        at=at.isoformat(),
        store="it",
        target="/it",
        outcome="done",
        applied=0,
        kept=0,
        skipped=0,
        failed=0,
        cutoff=None,
        started_by=by,
        duration=0.0,
        plan=None,
        error=None,
        notes=[],
    )


LATEST = NOW + timedelta(minutes=66)


@pytest.mark.parametrize(
    ("last", "process", "expected"),
    [
        (None, None, None),
        (None, 4711, NextRun(by="background", process=4711, latest=LATEST)),
        (swept("apply", NOW - HOUR), None, None),
        (swept("apply", NOW - HOUR), 4711, NextRun(by="background", process=4711, latest=LATEST)),
        (swept("write site", NOW - 9 * DAY), None, NextRun(by="write site")),
        (swept("background", NOW - DAY), None, NextRun(by="background", latest=LATEST)),
        (swept("background", NOW - 2 * DAY), None, None),
    ],
)
def test_the_next_run_is_told_as_far_as_it_is_known(
    last: Sweep | None, process: int | None, expected: NextRun | None
) -> None:
    """By the process that has its lock, or by who swept it last; else none is known."""
    assert next_run(last, HOUR, NOW, process) == expected


def test_only_a_process_that_lives_counts(tmp_path: Path) -> None:
    """A lock file names its process; what is none, or is dead, does not sweep."""
    lock = lock_of(tmp_path, "/it")
    assert process_of(tmp_path, "/it") is None
    lock.write_text(f"{os.getpid()}\n")
    assert process_of(tmp_path, "/it") == os.getpid()
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)
    for stale in (f"{child}\n", "", "no number\n", "9" * 30):
        lock.write_text(stale)
        assert process_of(tmp_path, "/it") is None
