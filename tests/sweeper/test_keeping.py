"""What goes wrong is logged, recorded and tried again; what is idle does not fill the trail."""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta
from typing import Any

import pytest
import time_machine

from keepfor.errors import BreakerTripped, ConfigError, StoreError, SweepStopped
from keepfor.items import Survey
from keepfor.stores.ledger import LedgerStore
from keepfor.sweeper import Stopped, Sweeper
from tests import caesar
from tests.sweeper.build import NOW, Gate, Yard, report, rows, settled


def sweep(sweeper: Sweeper, times: int = 1) -> Any:
    """What came of the last of so many sweeps of the one store."""
    for _ in range(times):
        (last,) = asyncio.run(sweeper.sweep_now()).values()
    return last


def endings(yard: Yard) -> list[tuple[str, str | None]]:
    """What the trail has: each record's event, and its error."""
    return [(record["event"], record.get("error")) for record in yard.trail]


# --- failures -----------------------------------------------------------------------------


def test_what_fails_first_succeeds_next_time(yard: Yard, caplog: pytest.LogCaptureFixture) -> None:
    """A store that cannot be read is warned of and recorded, and swept when it can be."""
    ledger = yard.folder / "recall.jsonl"
    ledger.mkdir()

    async def main() -> None:
        async with yard.sweeper() as sweeper:
            await yard.timer.asleep()
            assert isinstance(sweeper.last_report["recall"], StoreError)
            assert sweeper.is_running
            ledger.rmdir()
            yard.write([100, 80])
            await yard.timer.advance(3600)
            assert (report(sweeper).applied, rows(ledger)) == (1, 1)

    asyncio.run(main())
    (warning,) = caplog.records
    assert (warning.name, warning.levelname) == ("keepfor.sweeper", "WARNING")
    assert "it is a folder, not a file" in warning.getMessage()
    assert not warning.exc_info
    failed, intent, done = yard.trail
    assert (failed["event"], failed["started_by"]) == ("outcome", "background")
    assert (failed["store"], failed["target"]) == ("recall", str(ledger))
    assert failed["error"].startswith(f"{ledger}: it is a folder, not a file.")
    assert (intent["event"], done["event"], done["applied"]) == ("intent", "outcome", 1)
    assert "error" not in done


def test_what_fails_on_the_way_is_recorded_once(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sweep that fails in its act, after its plan, has one intent and one outcome on record."""
    ledger = yard.write([100, 80])

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("keepfor.stores.replace.swap", full)
    assert isinstance(sweep(yard.sweeper()), StoreError)
    (begun, _), (event, error) = endings(yard)
    assert (begun, event) == ("intent", "outcome")
    assert error
    assert "No space left on device" in error
    assert rows(ledger) == 2


def test_a_mistake_of_ours_does_not_end_it(
    yard: Yard, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What nobody foresaw is logged with where it happened, recorded, and survived."""

    def wrong(*_: object, **__: object) -> None:
        raise ZeroDivisionError("of ours")

    async def main() -> None:
        async with yard.sweeper() as sweeper:
            await yard.timer.asleep()
            assert isinstance(sweeper.last_report["recall"], ZeroDivisionError)
            assert sweeper.is_running

    monkeypatch.setattr("keepfor.sweep.build", wrong)
    asyncio.run(main())
    (warning,) = caplog.records
    assert warning.exc_info
    assert endings(yard) == [("outcome", "of ours")]


def test_a_store_that_cannot_even_be_opened_is_recorded(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What fails before there is a store to lock is in the trail as well, by the store's name."""

    def missing(*_: object) -> None:
        raise ConfigError(where="url", what="psycopg is not installed here.", fix="Install it.")

    monkeypatch.setattr("keepfor.sweeper.keeping.open_store", missing)
    assert isinstance(sweep(yard.sweeper()), ConfigError)
    (record,) = yard.trail
    assert (record["event"], record["store"], record["kind"]) == ("outcome", "recall", "ledger")
    assert record["error"] == "url: psycopg is not installed here. Install it."


def test_a_trail_that_cannot_be_written_stops_no_loop(
    yard: Yard, caplog: pytest.LogCaptureFixture
) -> None:
    """Without a record nothing is deleted; that is a failure like any other."""
    ledger = yard.write([100, 80])
    (yard.folder / "state").write_text("in the way")
    assert isinstance(sweep(yard.sweeper()), StoreError)
    assert rows(ledger) == 2
    assert any("no record of this" in record.getMessage() for record in caplog.records)


def test_the_breaker_holds_in_the_background(yard: Yard, caplog: pytest.LogCaptureFixture) -> None:
    """A plan that takes more than half of ten rows is not done, but told and recorded."""
    ledger = yard.write([100] * 9 + [1])
    assert isinstance(sweep(yard.sweeper()), BreakerTripped)
    assert rows(ledger) == 10
    assert "this would delete 9 of 10" in caplog.text
    ((event, error),) = endings(yard)
    assert event == "outcome"
    assert error
    assert "this would delete 9 of 10" in error


def test_a_sweep_of_which_something_fails_is_a_warning(
    yard: Yard, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is only partly done because something failed is a report, a warning and a failure."""
    from keepfor.stores import removal
    from tests import runs

    names = runs.hourly(yard.folder / "rem-runs", 4)
    yard.configure(rem="kind: runs, path: rem-runs, max_count: 2")
    remove = removal.remove

    def stubborn(folder: int, name: str, seen: str, **more: Any) -> removal.Removal:
        if name.startswith(names[0]):
            return removal.Removal(result="failed", why="Operation not permitted")
        return remove(folder, name, seen, **more)

    monkeypatch.setattr(removal, "remove", stubborn)
    sweeper = yard.sweeper()
    done = sweep(sweeper)
    assert (done.applied, done.failed) == (1, 1)
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert 'keepfor_failed_sweeps_total{store="rem"} 1.0' in sweeper.metrics_text()
    assert 'keepfor_deleted_rows_total{store="rem"} 1.0' in sweeper.metrics_text()
    assert 'keepfor_last_success_timestamp_seconds{store="rem"} 0.0' in sweeper.metrics_text()


def test_what_a_stopped_sweep_did_is_counted(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that stops between its transactions, because it was asked to, has not failed."""
    yard.write([100, 80])
    gate = Gate()

    def halfway(*_: object, **__: object) -> None:
        gate.stand("recall")
        done = Survey(scanned=10, kept=6, applied=4)
        facts = {"path": "x", "why": "It was stopped.", "deleted": 4, "planned": 7, "fix": ""}
        raise SweepStopped(done=done, **facts)

    async def stopped() -> Sweeper:
        sweeper = yard.sweeper()
        await sweeper.start()
        await gate.reached()
        stopping = asyncio.create_task(sweeper.stop())
        await settled()
        gate.open()
        await stopping
        return sweeper

    monkeypatch.setattr(LedgerStore, "delete", halfway)
    sweeper = asyncio.run(stopped())
    assert isinstance(sweeper.last_report["recall"], Stopped)
    assert 'keepfor_deleted_rows_total{store="recall"} 4.0' in sweeper.metrics_text()
    assert 'keepfor_failed_sweeps_total{store="recall"} 0.0' in sweeper.metrics_text()
    # The same by itself is a failure.
    assert isinstance(sweep(sweeper), SweepStopped)
    assert 'keepfor_deleted_rows_total{store="recall"} 8.0' in sweeper.metrics_text()
    assert 'keepfor_failed_sweeps_total{store="recall"} 1.0' in sweeper.metrics_text()


# --- the trail of what is idle ------------------------------------------------------------


def test_what_is_idle_is_recorded_once_a_day(yard: Yard) -> None:
    """Of sweeps that find nothing to do the trail has one a day, however often they come."""
    yard.write([10])
    sweeper = yard.sweeper()
    with time_machine.travel(NOW, tick=False) as traveller:
        sweep(sweeper, times=24)
        assert len(yard.trail) == 1
        assert (yard.trail[0]["kept"], yard.trail[0]["applied"]) == (1, 0)
        # Another process goes by what is on record, too.
        sweep(yard.sweeper())
        traveller.shift(timedelta(hours=23, minutes=59))
        sweep(sweeper)
        assert len(yard.trail) == 1
        traveller.shift(timedelta(minutes=1))
        sweep(sweeper, times=2)
        assert len(yard.trail) == 2


def test_what_is_not_idle_is_always_recorded(yard: Yard) -> None:
    """A sweep that did something is recorded each time, and so is the first good after a bad."""
    sweeper = yard.sweeper()
    for _ in range(2):
        yard.write([100, 80])
        sweep(sweeper)
    assert [event for event, _ in endings(yard)] == ["intent", "outcome"] * 2
    (yard.folder / "recall.jsonl").unlink()
    (yard.folder / "recall.jsonl").mkdir()
    sweep(sweeper, times=2)
    (yard.folder / "recall.jsonl").rmdir()
    sweep(sweeper, times=2)
    assert [bool(error) for _, error in endings(yard)[4:]] == [True, True, False]


def test_what_is_begun_is_ended(yard: Yard) -> None:
    """A sweep that has nothing to delete, and tells of that in its table, is no unfinished one."""
    caesar.rebuild(yard.folder)
    yard.configure(
        audit="kind: table, url: 'sqlite:///caesar.sqlite3', table: audit_log, key: id, time: ts, "
        "type: event_type, keep_for: 36500d, "
        "record_sweeps: {type: memory.retention_sweep, payload: payload}"
    )
    sweep(yard.sweeper(), times=2)
    assert [event for event, _ in endings(yard)] == ["intent", "outcome"] * 2


def test_a_record_of_another_time_says_nothing_of_today(yard: Yard) -> None:
    """A record that a clock which was ahead has written keeps no later one off."""
    yard.write([10])
    sweeper = yard.sweeper()
    with time_machine.travel(NOW + timedelta(days=3), tick=False):
        sweep(sweeper)
    with time_machine.travel(NOW, tick=False):
        sweep(sweeper)
    assert len(yard.trail) == 2


# --- what it says -------------------------------------------------------------------------


def test_a_sweep_is_logged_in_a_sentence_and_in_fields(
    yard: Yard, caplog: pytest.LogCaptureFixture
) -> None:
    """A host reads what was done in its own log, and a program in the record's `facts`."""
    yard.sample()
    with caplog.at_level(logging.INFO, "keepfor"):
        sweep(yard.sweeper())
    (record,) = caplog.records
    assert record.getMessage().startswith(
        "Swept recall: 151 of 600 went, 449 stayed, 0 skipped, 0 failed, in "
    )
    facts = record.__dict__["facts"]
    assert facts.pop("duration") >= 0
    assert facts == {
        "event": "sweep",
        "store": "recall",
        "outcome": "done",
        "scanned": 600,
        "kept": 449,
        "applied": 151,
        "skipped": 0,
        "failed": 0,
    }
