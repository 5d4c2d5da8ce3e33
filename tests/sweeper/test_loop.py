"""Each store is swept at the start and then every interval, whatever others and the clock do."""

from __future__ import annotations

import asyncio
import os
import re
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Event
from typing import Any

import pytest

from keepfor import Sweeper
from keepfor.errors import BadConfig, ConfigError, PlanStale, UnknownStore
from keepfor.items import Report
from keepfor.plan import Plan, build
from keepfor.stores import files, folders
from keepfor.sweeper import Stopped, loop
from keepfor.sweeper.keeping import Keeper
from tests import caesar, neo, runs
from tests.sweeper.build import (
    LONG,
    NOW,
    Gate,
    Yard,
    all_at_once,
    gated,
    report,
    rows,
    settled,
)

LEDGER = "kind: ledger, path: recall.jsonl, keep_for: 90d"


# --- what it does -------------------------------------------------------------------------


def test_the_real_ledger_to_its_known_figures(yard: Yard) -> None:
    """The sample is swept at the start: 449 of its 600 rows stay, and 151 are gone."""
    ledger = yard.sample()
    kept = ledger.read_bytes().splitlines(keepends=True)[151:]

    async def main() -> Sweeper:
        async with yard.sweeper() as sweeper:
            await yard.timer.asleep()
            return sweeper

    done = report(asyncio.run(main()))
    assert (done.kept, done.expired, done.started_by) == (449, 151, "background")
    assert ledger.read_bytes() == b"".join(kept)


def test_the_real_runs_to_their_known_figures(yard: Yard) -> None:
    """Of neo's 260 runs the newest 200 stay."""
    folder = neo.rebuild(yard.folder / "rem-runs")
    names = runs.left(folder)
    yard.configure(rem="kind: runs, path: rem-runs, max_count: 200")

    async def main() -> Sweeper:
        async with yard.sweeper() as sweeper:
            await yard.timer.asleep()
            return sweeper

    done = report(asyncio.run(main()), "rem")
    assert (done.kept, done.applied) == (200, 60)
    assert runs.left(folder) == names[60:]


TABLE = (
    "kind: table, url: 'sqlite:///caesar.sqlite3', table: audit_log, key: id, time: ts, "
    "type: event_type, keep_for: 90d, "
    "dependents: [{table: semantic_chunks, column: audit_log_id}], "
    "record_sweeps: {type: memory.retention_sweep, payload: payload}"
)


def test_the_real_table_to_its_known_figures(yard: Yard) -> None:
    """Of caesar's 600 rows 150 go with their 82 embeddings, and one tells of it."""
    database = caesar.rebuild(yard.folder)
    yard.configure(audit=TABLE)

    async def main() -> Sweeper:
        async with yard.sweeper() as sweeper:
            await yard.timer.asleep()
            return sweeper

    done = report(asyncio.run(main()), "audit")
    assert (done.applied, done.kept, done.dependents) == (150, 450, {"semantic_chunks": 82})
    left = caesar.rows(database)
    assert (len(left["audit_log"]), len(left["semantic_chunks"])) == (451, 255)


def test_it_comes_again_every_interval(yard: Yard) -> None:
    """The next sweep is an interval after the first, not a second sooner, and it tells when."""
    ledger = yard.write([100, 80])

    async def main() -> None:
        async with yard.sweeper(interval="10min") as sweeper:
            await yard.timer.asleep()
            assert sweeper.next_run == {"recall": NOW + timedelta(minutes=10)}
            yard.write([100, 80])
            await yard.timer.advance(599)
            assert rows(ledger) == 2
            await yard.timer.advance(1)
            assert rows(ledger) == 1

    asyncio.run(main())


def test_the_interval_is_the_stores_own(yard: Yard) -> None:
    """Without one of the sweeper's own, a store comes when its settings say; by default hourly."""
    yard.configure(one=LEDGER, other=f"{LEDGER.replace('recall', 'other')}, interval: 5min")

    async def main() -> None:
        async with yard.sweeper() as sweeper:
            await yard.timer.asleep(2)
            hour, five_minutes = timedelta(hours=1), timedelta(minutes=5)
            assert sweeper.next_run == {"one": NOW + hour, "other": NOW + five_minutes}

    asyncio.run(main())


def test_a_mistake_of_ours_ends_no_loop(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever fails around a sweep is logged, and the next one comes in its time."""
    ledger = yard.write([100, 80])
    real, failures = Keeper.sweep, iter([RuntimeError("a slip")])

    def sweep(self: Keeper, asked: Event) -> None:
        if failure := next(failures, None):
            raise failure
        real(self, asked)

    monkeypatch.setattr(Keeper, "sweep", sweep)

    async def main() -> None:
        async with yard.sweeper(interval="10min") as sweeper:
            await yard.timer.asleep()
            assert sweeper.is_running
            assert rows(ledger) == 2
            await yard.timer.advance(600)
            assert rows(ledger) == 1

    asyncio.run(main())


def test_sweepers_do_not_all_come_at_once(yard: Yard) -> None:
    """The interval is stretched or cut by what the jitter gives, a tenth at the most by itself."""

    async def main() -> None:
        async with yard.sweeper(jitter=lambda: 1.05) as sweeper:
            await yard.timer.asleep()
            assert sweeper.next_run == {"recall": NOW + timedelta(minutes=63)}

    asyncio.run(main())
    factors = {loop.within_a_tenth() for _ in range(100)}
    assert len(factors) > 1
    assert 0.9 <= min(factors) <= max(factors) <= 1.1


def test_what_is_not_there_yet_is_fine(yard: Yard) -> None:
    """A ledger and a folder that nobody has made yet are swept without an error."""
    yard.configure(recall=LEDGER, rem="kind: runs, path: rem-runs, max_count: 2")
    swept = asyncio.run(yard.sweeper().sweep_now())
    assert set(swept) == {"recall", "rem"}
    assert all(getattr(done, "scanned", done) == 0 for done in swept.values())


# --- starting and stopping ----------------------------------------------------------------


def test_starting_and_stopping_twice_is_as_good_as_once(yard: Yard) -> None:
    """A second start begins nothing more, a second stop does nothing, and it can begin anew."""
    yard.write([100, 80])

    async def main() -> None:
        sweeper = yard.sweeper()
        await sweeper.stop()
        for _ in range(2):
            await sweeper.start()
            await sweeper.start()
            assert sweeper.is_running
            assert sweeper.next_run == {"recall": NOW}
            await yard.timer.asleep()
            assert len(asyncio.all_tasks()) == 2
            await asyncio.gather(sweeper.stop(), sweeper.stop())
            await sweeper.stop()
            assert not sweeper.is_running
            assert sweeper.next_run == {}
            assert len(asyncio.all_tasks()) == 1

    asyncio.run(main())


def test_it_can_begin_anew_in_another_loop(yard: Yard) -> None:
    """A program that ends without stopping it leaves a sweeper that can be started again."""
    ledger = yard.write([100, 80])
    sweeper = yard.sweeper()

    async def main() -> None:
        await sweeper.start()
        await yard.timer.asleep()

    asyncio.run(main())
    assert not sweeper.is_running
    assert sweeper.next_run == {}
    yard.write([100, 80])
    asyncio.run(main())
    assert rows(ledger) == 1


def test_a_sweep_at_work_stops_at_its_next_slice(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopping in mid-sweep leaves the ledger as it was, nothing beside it, nothing on record."""
    ledger = yard.sample()
    before = ledger.read_bytes()

    async def main() -> Sweeper:
        sweeper = yard.sweeper()
        with gated(monkeypatch) as gate:
            await sweeper.start()
            await gate.reached()
            stops = [asyncio.create_task(sweeper.stop()) for _ in range(2)]
            await settled()
            # A second one waits for the sweep as the first does.
            assert not any(stop.done() for stop in stops)
            gate.open()
            await asyncio.gather(*stops)
        return sweeper

    sweeper = asyncio.run(main())
    assert isinstance(sweeper.last_report["recall"], Stopped)
    assert ledger.read_bytes() == before
    assert sorted(os.listdir(yard.folder)) == ["keepfor.yaml", "recall.jsonl"]
    assert yard.trail == []
    # Nobody is at work any more, so the lock is to be had at once.
    with files.locked(str(ledger)):
        pass
    asyncio.run(sweeper.sweep_now())
    assert rows(ledger) == 449


def test_what_is_started_while_it_is_being_stopped_runs_afterwards(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when a program reloads: the start is not lost, and begins once the stop is through."""
    ledger = yard.sample()

    async def main() -> None:
        sweeper = yard.sweeper()
        with gated(monkeypatch) as gate:
            await sweeper.start()
            await gate.reached()
            stops = [asyncio.create_task(sweeper.stop()) for _ in range(2)]
            await settled()
            starts = [asyncio.create_task(sweeper.start()) for _ in range(2)]
            await settled()
            assert not any(start.done() for start in starts)
            gate.open()
            await asyncio.gather(*stops, *starts)
        assert sweeper.is_running
        await yard.timer.asleep()
        assert len(asyncio.all_tasks()) == 2
        assert rows(ledger) == 449
        await sweeper.stop()

    asyncio.run(main())


def test_a_sweep_of_runs_stops_at_its_next_slice(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopping in mid-sweep leaves each run where it is, and the folder unlocked."""
    folder = yard.folder / "rem-runs"
    names = runs.hourly(folder, 12)
    yard.configure(rem="kind: runs, path: rem-runs, max_count: 8")

    async def main() -> Sweeper:
        sweeper = yard.sweeper()
        with gated(monkeypatch) as gate:
            await sweeper.start()
            await gate.reached()
            stopping = asyncio.create_task(sweeper.stop())
            await settled()
            gate.open()
            await stopping
        return sweeper

    sweeper = asyncio.run(main())
    assert isinstance(sweeper.last_report["rem"], Stopped)
    assert runs.left(folder) == names
    with folders.locked(str(folder)):
        pass
    asyncio.run(sweeper.sweep_now())
    assert runs.left(folder) == names[4:]


def test_a_sweep_of_a_table_stops_between_two_transactions(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a stopped sweep has deleted is counted, and the next one deletes the rest."""
    database = caesar.rebuild(yard.folder)
    yard.configure(audit=TABLE)

    async def main() -> Sweeper:
        sweeper = yard.sweeper()
        with gated(monkeypatch) as gate:
            await sweeper.start()
            await gate.reached()
            stopping = asyncio.create_task(sweeper.stop())
            await settled()
            gate.open()
            await stopping
        return sweeper

    def deleted(sweeper: Sweeper) -> float:
        (told,) = re.findall(r"keepfor_deleted_rows_total\S+ (\S+)", sweeper.metrics_text())
        return float(told)

    sweeper = asyncio.run(main())
    assert isinstance(sweeper.last_report["audit"], Stopped)
    left = [row for row in caesar.rows(database)["audit_log"] if row[0] <= 600]
    assert len(left) == 600 - deleted(sweeper)
    asyncio.run(sweeper.sweep_now())
    assert deleted(sweeper) == 150
    assert len(caesar.rows(database)["semantic_chunks"]) == 255


def test_a_program_that_ends_stops_the_sweep(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop that ends in mid-sweep, without a stop, asks the sweep to end and waits for that."""
    ledger = yard.sample()
    sweeper = yard.sweeper()
    opening = []

    async def open_late(gate: Gate) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await settled()
            gate.open()

    with gated(monkeypatch) as gate:

        async def main() -> None:
            await sweeper.start()
            await gate.reached()
            opening.append(asyncio.create_task(open_late(gate)))

        asyncio.run(main())
    assert not sweeper.is_running
    assert isinstance(sweeper.last_report["recall"], Stopped)
    with files.locked(str(ledger)):
        pass


# --- what does not hold it up -------------------------------------------------------------


def test_a_store_that_hangs_holds_up_nobody_else(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While one store's sweep hangs, another's comes and comes again, and the loop goes on."""
    yard.configure(hangs=LEDGER, works=LEDGER.replace("recall", "other"))
    yard.write([100, 80])
    other = yard.write([100, 80], "other.jsonl")

    async def main() -> None:
        with gated(monkeypatch, "hangs") as gate:
            async with yard.sweeper() as sweeper:
                await gate.reached()
                for _ in range(3):
                    await yard.timer.asleep()
                    assert rows(other) == 1
                    yard.write([100, 80], "other.jsonl")
                    await yard.timer.advance(3600)
                assert rows(other) == 1
                assert list(sweeper.last_report) == ["works"]
                # It has been at work since it began.
                assert sweeper.next_run["hangs"] == NOW - timedelta(hours=3)
                gate.open()
                await yard.timer.asleep(2)
                assert report(sweeper, "hangs").kept == 1

    asyncio.run(main())


def test_the_event_loop_is_never_blocked(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop goes on ticking while a sweep hangs in its thread."""
    yard.write([100, 80])

    async def main() -> None:
        with gated(monkeypatch) as gate:
            async with yard.sweeper() as sweeper:
                await gate.reached()
                for _ in range(100):
                    await asyncio.sleep(0)
                assert sweeper.last_report == {}
                gate.open()
                await yard.timer.asleep()
                assert report(sweeper).applied == 1

    asyncio.run(main())


def test_it_does_not_live_on_the_hosts_threads(yard: Yard) -> None:
    """A host whose own threads are all busy is swept for all the same."""
    ledger = yard.write([100, 80])
    done = Event()

    async def main() -> None:
        host = ThreadPoolExecutor(1)
        asyncio.get_running_loop().set_default_executor(host)
        busy = asyncio.get_running_loop().run_in_executor(None, done.wait, LONG)
        async with yard.sweeper():
            await yard.timer.asleep()
            assert rows(ledger) == 1
        done.set()
        assert await busy

    asyncio.run(main())


# --- clocks -------------------------------------------------------------------------------


@pytest.mark.parametrize("jump", [timedelta(days=400), timedelta(days=-400)])
def test_a_jump_of_the_clock_brings_no_sweep_and_keeps_none_off(
    yard: Yard, jump: timedelta
) -> None:
    """When a sweep is due goes by seconds that nobody sets; `next_run` is told by the new clock."""
    yard.write([100, 80])

    async def main() -> None:
        async with yard.sweeper() as sweeper:
            await yard.timer.asleep()
            first = report(sweeper)
            yard.clock.now += jump
            await yard.timer.advance(3599)
            assert report(sweeper) is first
            assert sweeper.next_run == {"recall": NOW + jump + timedelta(seconds=1)}
            await yard.timer.advance(1)
            assert sweeper.last_report["recall"] is not first

    asyncio.run(main())


def test_each_sweep_judges_by_the_clock_of_its_time(yard: Yard) -> None:
    """A row goes with the first sweep after its time by the clock, not when that is set back."""
    ledger = yard.write([95, 85, 75])

    async def main() -> None:
        async with yard.sweeper() as sweeper:
            await yard.timer.asleep()
            assert rows(ledger) == 2
            yard.clock.advance(days=-30)
            await yard.timer.advance(3600)
            assert (rows(ledger), report(sweeper).future) == (2, 0)
            yard.clock.advance(days=40)
            await yard.timer.advance(3600)
            assert rows(ledger) == 1
            assert report(sweeper).now == NOW + timedelta(days=10)

    asyncio.run(main())


def test_a_clock_that_is_set_right_in_mid_sweep_saves_what_it_condemned(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plan that was made for a day that is still to come is not carried out."""
    ledger = yard.write([85, 75])

    def set_right(*given: Any, **more: Any) -> Plan:
        plan = build(*given, **more)
        assert plan.deletes == 1
        yard.clock.now = NOW
        return plan

    monkeypatch.setattr("keepfor.sweep.build", set_right)
    yard.clock.advance(days=10)
    swept = asyncio.run(yard.sweeper().sweep_now())
    assert isinstance(swept["recall"], PlanStale)
    assert rows(ledger) == 2


def test_a_machine_that_slept_sweeps_once_when_it_wakes(yard: Yard) -> None:
    """However many sweeps were missed, one is done after a wake, and a minute later at the most."""
    yard.write([100, 80])

    async def main() -> None:
        async with yard.sweeper() as sweeper:
            await yard.timer.asleep()
            first = report(sweeper)
            # No timer is set for longer than this, for it would stand still meanwhile.
            assert max(yard.timer.asked) == 60
            await yard.timer.advance(8 * 3600)
            assert report(sweeper) is not first
            assert sweeper.next_run == {"recall": NOW + timedelta(hours=1)}

    asyncio.run(main())


def test_the_steady_clock_is_steady() -> None:
    """It never goes back."""
    assert loop.steady() <= loop.steady()


# --- on demand ----------------------------------------------------------------------------


def test_a_sweep_on_demand(yard: Yard) -> None:
    """A host can have a store swept at once, and is told what came of it."""
    yard.configure(recall=LEDGER, other=LEDGER.replace("recall", "other"))
    ledger = yard.write([100, 80])
    other = yard.write([100, 80], "other.jsonl")
    sweeper = yard.sweeper()
    swept = asyncio.run(sweeper.sweep_now("recall"))
    assert list(swept) == ["recall"]
    assert (rows(ledger), rows(other)) == (1, 2)
    assert not sweeper.is_running
    with pytest.raises(UnknownStore, match="Did you mean other"):
        asyncio.run(sweeper.sweep_now("othr"))


def test_two_sweeps_of_a_store_take_turns(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sweep on demand waits for one that is at work, and finds nothing left to do."""
    ledger = yard.write([100, 80])

    async def main() -> None:
        with gated(monkeypatch) as gate:
            async with yard.sweeper() as sweeper:
                await gate.reached()
                second = asyncio.create_task(sweeper.sweep_now())
                await asyncio.sleep(0)
                gate.open()
                (done,) = (await second).values()
                assert (getattr(done, "kept", done), getattr(done, "applied", done)) == (1, 0)

    asyncio.run(main())
    assert rows(ledger) == 1


@pytest.mark.parametrize("kind", ["ledger", "table"])
def test_four_sweepers_at_once_all_succeed(
    kind: str, yard: Yard, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Of the four workers of a server one has the work and three find nothing left to do."""
    if kind == "ledger":
        ledger = yard.sample()
    else:
        database = caesar.rebuild(yard.folder)
        yard.configure(recall=TABLE.replace("payload}", "payload, when: deleted}"))

    async def main() -> list[Report]:
        sweepers = [yard.sweeper() for _ in range(4)]
        with all_at_once(monkeypatch, 4):
            await asyncio.gather(*(sweeper.sweep_now() for sweeper in sweepers))
        return [report(sweeper) for sweeper in sweepers]

    done = asyncio.run(main())
    counts = sorted((each.scanned, each.kept, each.applied, each.skipped) for each in done)
    if kind == "ledger":
        # 151 of the sample's 600 rows are older than 90 days.
        assert counts == [*[(449, 449, 0, 0)] * 3, (600, 449, 151, 0)]
        assert rows(ledger) == 449
    else:
        # With the row that the one with the work left of it.
        assert counts == [*[(451, 451, 0, 0)] * 3, (600, 450, 150, 0)]
        assert len(caesar.rows(database)["audit_log"]) == 451
    assert caplog.records == []
    assert not any("error" in record for record in yard.trail)


# --- what it refuses ----------------------------------------------------------------------


def test_what_cannot_be_swept_is_refused_at_once(yard: Yard) -> None:
    """A store that is not there, an endless interval and a wrong file are refused at once."""
    with pytest.raises(UnknownStore, match="Did you mean recall"):
        yard.sweeper(stores=["recal"])
    with pytest.raises(ConfigError, match="such as 1h"):
        yard.sweeper(interval="forever")
    with pytest.raises(ConfigError, match="no unit"):
        yard.sweeper(interval="60")
    (yard.folder / "keepfor.yaml").write_text("stores: {recall: {kind: ledgre}}")
    with pytest.raises(BadConfig):
        yard.sweeper()


def test_only_the_stores_that_are_named_are_swept(yard: Yard) -> None:
    """The others are neither swept nor told of."""
    yard.configure(recall=LEDGER, other=LEDGER.replace("recall", "other"))
    other = yard.write([100, 80], "other.jsonl")
    swept = asyncio.run(yard.sweeper(stores=["recall"]).sweep_now())
    assert list(swept) == ["recall"]
    assert rows(other) == 2
