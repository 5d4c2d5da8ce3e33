"""The promises that every store keeps, as tests that pytest collects.

A store is held to them by a bench that it is tried out on, and a subclass of the suite of its kind:

    class TestShelf(ItemStoreSuite):
        def bench(self, folder: Path) -> ItemBench:
            return ShelfBench(folder)
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import pytest

from keepfor import plan as plans
from keepfor.errors import (
    BreakerTripped,
    KeepforError,
    PlanSpent,
    PlanStale,
    StoreBusy,
    StoreChanged,
)
from keepfor.items import Report, Tally
from keepfor.plan import Plan
from keepfor.policy.rules import Policy, keep_for
from keepfor.sweep import apply
from keepfor.testing.bench import Bench, ItemBench
from keepfor.trail import Trail

#: The instant that the suite judges by, and what lies 90 days before it: 26 days of July, 30 of
#: June, 31 of May and 3 of April.
NOW = datetime(2026, 7, 26, tzinfo=UTC)
CUTOFF = datetime(2026, 4, 27, tzinfo=UTC)

OLDEST, OLDER, OLD = (datetime(2026, month, 1, tzinfo=UTC) for month in (1, 2, 4))
YOUNG, YOUNGER = (datetime(2026, 7, day, tzinfo=UTC) for day in (1, 2))

SomeBench = TypeVar("SomeBench", bound=Bench)


def filled(bench: SomeBench, **ages: datetime | None) -> SomeBench:
    """The bench with things of those ages in its store."""
    for name, instant in ages.items():
        bench.put(name, instant)
    return bench


def keep(days: int = 90, breaker: float | None = None, **bounds: Any) -> Policy:
    """The policy that keeps for so many days."""
    return Policy(rules=keep_for(timedelta(days=days)), breaker=breaker, **bounds)


def bounded(**bounds: Any) -> Policy:
    """The policy that has ceilings and no rule."""
    return Policy(breaker=None, **bounds)


def plan(bench: Bench, policy: Policy, now: datetime = NOW) -> Plan:
    """What the policy would do to the store."""
    made = plans.build(bench.open(), policy, now, name="store")
    assert adds_up(made.survey)
    return made


def carry_out(made: Plan, bench: Bench, policy: Policy, force: bool = False) -> Report:
    """Apply a plan to the store."""
    report = apply(made, bench.open(), policy, NOW, trail=bench.trail, force=force)
    assert adds_up(report)
    return report


def sweep(bench: Bench, policy: Policy) -> Report:
    """Hold the store to the policy."""
    return carry_out(plan(bench, policy), bench, policy)


def refuse(error: type[KeepforError], made: Plan, bench: Bench, policy: Policy) -> None:
    """See that a plan is refused, and that nothing has changed."""
    before = bench.snapshot()
    with pytest.raises(error):
        carry_out(made, bench, policy)
    assert bench.snapshot() == before


def adds_up(tally: Tally) -> bool:
    """Whether each thing that was scanned is accounted for, once."""
    return tally.scanned == tally.kept + tally.applied + tally.skipped + tally.failed


def _measure(bench: Bench, report: Report) -> int:
    """How much of what its ceiling counts a store holds after a sweep."""
    return len(bench.names()) if bench.ceiling == "max_count" else report.bytes_after


class StoreSuite(ABC):
    """The promises that concern every store; the subclasses have those of either kind."""

    @abstractmethod
    def bench(self, folder: Path) -> Bench:
        """A store that nobody has written to yet."""

    def test_unknown_keeps(self, tmp_path: Path) -> None:
        """An age that cannot be read is never old."""
        bench = filled(self.bench(tmp_path), old=OLD, young=YOUNG, unknown=None)
        report = sweep(bench, keep())
        assert bench.names() == {"young", "unknown"}
        assert report.unknown == 1

    def test_what_is_exactly_on_the_cutoff_stays(self, tmp_path: Path) -> None:
        """Expired means strictly older, to the microsecond."""
        tick = timedelta(microseconds=1)
        ages = {"before": CUTOFF - tick, "on": CUTOFF, "after": CUTOFF + tick}
        bench = filled(self.bench(tmp_path), **ages)
        sweep(bench, keep())
        assert bench.names() == {"on", "after"}

    def test_what_is_still_to_come_stays(self, tmp_path: Path) -> None:
        """An instant in the future is kept, and counted."""
        bench = filled(self.bench(tmp_path), old=OLD, future=datetime(2099, 1, 1, tzinfo=UTC))
        report = sweep(bench, keep())
        assert bench.names() == {"future"}
        assert report.future == 1

    def test_nothing_there_yet_is_no_fault(self, tmp_path: Path) -> None:
        """A store that nobody has written to yet has nothing to lose, and none is made."""
        bench = self.bench(tmp_path)
        before = bench.snapshot()
        report = sweep(bench, keep())
        assert (report.scanned, report.applied) == (0, 0)
        assert bench.snapshot() == before

    def test_readers_never_write(self, tmp_path: Path) -> None:
        """A plan leaves every byte and every time as it was."""
        bench = filled(self.bench(tmp_path), old=OLD, young=YOUNG, unknown=None)
        before = bench.snapshot()
        assert plan(bench, keep(**{bench.ceiling: 1}, keep_last=1)).survey.applied
        assert bench.snapshot() == before

    def test_planning_twice_decides_the_same(self, tmp_path: Path) -> None:
        """The same store at the same instant gets the same decisions."""
        bench = filled(self.bench(tmp_path), old=OLD, young=YOUNG, unknown=None)
        one, two = plan(bench, keep()), plan(bench, keep())
        assert (one.survey, one.decisions) == (two.survey, two.decisions)

    def test_sweeping_twice_leaves_nothing_to_do(self, tmp_path: Path) -> None:
        """After a sweep the policy finds nothing more to take, and the store is left alone."""
        bench = filled(self.bench(tmp_path), old=OLD, young=YOUNG, unknown=None)
        sweep(bench, keep())
        before = bench.snapshot()
        assert sweep(bench, keep()).applied == 0
        assert bench.snapshot() == before

    def test_what_came_after_the_plan_is_out_of_reach(self, tmp_path: Path) -> None:
        """What a plan has not seen stays, though it is as old as what goes."""
        bench = filled(self.bench(tmp_path), old=OLD, young=YOUNG)
        made = plan(bench, keep())
        bench.put("late", OLD)
        carry_out(made, bench, keep())
        assert bench.names() == {"young", "late"}

    def test_a_plan_for_the_past_takes_no_more_than_it_says(self, tmp_path: Path) -> None:
        """What has come due since the instant of a plan is not the plan's affair."""
        bench = filled(self.bench(tmp_path), old=OLD, older=OLDER, young=YOUNG)
        # 90 days before it is 2026-02-14: 15 days of May, 30 of April, 31 of March, 14 of February.
        made = plan(bench, keep(), datetime(2026, 5, 15, tzinfo=UTC))
        assert carry_out(made, bench, keep()).applied == 1
        assert bench.names() == {"old", "young"}

    def test_a_plan_for_the_future_is_refused(self, tmp_path: Path) -> None:
        """Nobody can say today what is to go tomorrow."""
        bench = filled(self.bench(tmp_path), old=OLD)
        refuse(PlanStale, plan(bench, keep(), NOW + timedelta(seconds=1)), bench, keep())

    def test_a_plan_is_carried_out_once(self, tmp_path: Path) -> None:
        """A plan that was begun is spent, whatever has come since."""
        bench = filled(self.bench(tmp_path), old=OLD, young=YOUNG)
        made = plan(bench, keep())
        carry_out(made, bench, keep())
        bench.put("old", OLD)
        refuse(PlanSpent, made, bench, keep())

    def test_a_plan_of_another_policy_is_refused(self, tmp_path: Path) -> None:
        """A plan holds for the policy that it was made by."""
        bench = filled(self.bench(tmp_path), old=OLD)
        refuse(PlanStale, plan(bench, keep(30)), bench, keep())

    def test_a_plan_of_another_store_is_refused(self, tmp_path: Path) -> None:
        """A plan holds for the store that it was made for."""
        bench = filled(self.bench(tmp_path), old=OLD)
        made = plans.build(bench.elsewhere(), keep(), NOW, name="store")
        refuse(PlanStale, made, bench, keep())

    def test_a_saved_plan_is_the_same_plan(self, tmp_path: Path) -> None:
        """A plan that is read back is carried out like the one that was written."""
        bench = filled(self.bench(tmp_path), old=OLD, young=YOUNG, unknown=None)
        made, file = plan(bench, keep(breaker=1)), tmp_path / "plan.json"
        plans.save(made, file)
        assert plans.load(file) == made
        carry_out(plans.load(file), bench, keep(breaker=1))
        assert bench.names() == {"young", "unknown"}

    @pytest.mark.parametrize(
        "edit", [{"store": "other"}, {"now": "2026-07-27T00:00:00Z"}, {"format": 0}], ids=str
    )
    def test_an_edited_plan_is_refused(self, tmp_path: Path, edit: dict[str, Any]) -> None:
        """A plan is what was worked out, not what somebody made of it, nor of another format."""
        bench, file = filled(self.bench(tmp_path), old=OLD), tmp_path / "plan.json"
        plans.save(plan(bench, keep()), file)
        file.write_text(json.dumps(json.loads(file.read_bytes()) | edit))
        with pytest.raises(PlanStale):
            plans.load(file)

    def test_the_newest_are_out_of_reach(self, tmp_path: Path) -> None:
        """A floor wins over age and ceiling."""
        bench = filled(self.bench(tmp_path), older=OLDER, old=OLD, oldest=OLDEST)
        sweep(bench, keep(**{bench.ceiling: 2}, keep_last=2))
        assert bench.names() == {"old", "older"}

    def test_a_ceiling_that_cannot_be_met_is_told(self, tmp_path: Path) -> None:
        """What is out of reach stays, and the report says by how much that is too much."""
        bench = filled(self.bench(tmp_path), old=OLD, one=None, two=None)
        report = sweep(bench, bounded(**{bench.ceiling: 1}))
        assert bench.names() == {"one", "two"}
        assert f"still {_measure(bench, report) - 1}" in " ".join(report.notes)

    def test_a_ceiling_takes_the_oldest_first(self, tmp_path: Path) -> None:
        """Above the ceiling the oldest go, whatever their age and place, until the rest fits."""
        bench = filled(self.bench(tmp_path), c=YOUNG, a=OLDEST, unknown=None, d=YOUNGER, b=OLD)
        survey = plan(bench, keep()).survey
        size = survey.scanned if bench.ceiling == "max_count" else survey.bytes_before
        report = sweep(bench, bounded(**{bench.ceiling: size - 1}))
        assert report.over_ceiling
        assert sorted(bench.names()) == [*"abcd"[report.over_ceiling :], "unknown"]
        assert _measure(bench, report) < size

    def test_the_breaker_holds_a_large_sweep_back(self, tmp_path: Path) -> None:
        """More than half of ten is deleted only where somebody insists."""
        young = {f"young{number}": YOUNG for number in range(4)}
        old = {f"old{number}": OLD for number in range(6)}
        bench = filled(self.bench(tmp_path), **young, **old)
        made = plan(bench, keep(breaker=0.5))
        refuse(BreakerTripped, made, bench, keep(breaker=0.5))
        carry_out(made, bench, keep(breaker=0.5), force=True)
        assert bench.names() == set(young)

    def test_the_trail_has_intent_before_and_outcome_after(self, tmp_path: Path) -> None:
        """That a sweep is about to act is on record before it does, and what it did afterwards."""
        bench = filled(self.bench(tmp_path), old=OLD, young=YOUNG)
        seen: dict[str, set[str]] = {}

        class Witness(Trail):
            def begin(self, report: Report) -> None:
                super().begin(report)
                seen["intent"] = bench.names()

            def end(self, report: Report, error: str = "") -> None:
                seen["outcome"] = bench.names()
                super().end(report, error)

        bench.trail = Witness(bench.trail.path, keep_for="forever")
        made = plan(bench, keep())
        carry_out(made, bench, keep())
        assert seen == {"intent": {"old", "young"}, "outcome": {"young"}}
        outcome, intent = bench.trail.records()
        assert (intent["event"], outcome["event"]) == ("intent", "outcome")
        assert intent["plan"] == outcome["plan"] == made.digest
        assert (outcome["scanned"], outcome["applied"]) == (2, 1)

    def test_two_sweeps_exclude_each_other(self, tmp_path: Path) -> None:
        """While one has the store, another is told that it is busy; a plan is not held up."""
        bench = filled(self.bench(tmp_path), old=OLD)
        with bench.open().locked(0.0):
            with pytest.raises(StoreBusy), bench.open().locked(0.0):
                pass
            assert plan(bench, keep()).survey.applied == 1
        with bench.open().locked(0.0):
            pass


class RowStoreSuite(StoreSuite):
    """The promises of a store of rows, which expire by cutoff."""

    def test_another_store_in_its_place_is_left_alone(self, tmp_path: Path) -> None:
        """Rows that a plan did not see are not taken for those that it saw."""
        bench = filled(self.bench(tmp_path), old=OLD, young=YOUNG)
        made = plan(bench, keep())
        bench.drift("old")
        refuse(StoreChanged, made, bench, keep())

    def test_a_sweep_that_fails_leaves_all_rows(self, tmp_path: Path) -> None:
        """An error is told and put on record, every row is there, and the next sweep succeeds."""
        bench = filled(self.bench(tmp_path), old=OLD, young=YOUNG)
        made = plan(bench, keep())
        with bench.jammed(), pytest.raises(KeepforError):
            carry_out(made, bench, keep())
        assert bench.names() == {"old", "young"}
        assert next(bench.trail.records("outcome"))["error"]
        sweep(bench, keep())
        assert bench.names() == {"young"}


class ItemStoreSuite(StoreSuite):
    """The promises of a store of items, which expire by decision."""

    @abstractmethod
    def bench(self, folder: Path) -> ItemBench:
        """A store that nobody has written to yet."""

    def test_what_drifted_is_skipped(self, tmp_path: Path) -> None:
        """An item that is not what the plan saw is left alone, and counted; the rest goes."""
        bench = filled(self.bench(tmp_path), old=OLD, older=OLDER, young=YOUNG)
        made = plan(bench, keep())
        bench.drift("old")
        report = carry_out(made, bench, keep())
        assert bench.names() == {"old", "young"}
        assert (report.applied, report.skipped) == (1, 1)
        assert sorted(said.result for said in report.outcomes) == ["applied", "skipped"]

    def test_what_a_plan_made_now_would_keep_is_skipped(self, tmp_path: Path) -> None:
        """An item that has become the newest since is held by the floor."""
        bench = filled(self.bench(tmp_path), old=OLD, young=YOUNG)
        made = plan(bench, keep(keep_last=1))
        bench.lose("young")
        report = carry_out(made, bench, keep(keep_last=1))
        assert bench.names() == {"old"}
        assert (report.applied, report.skipped) == (0, 1)

    def test_what_is_gone_already_is_skipped(self, tmp_path: Path) -> None:
        """An item that somebody else removed is no failure."""
        bench = filled(self.bench(tmp_path), old=OLD, older=OLDER, young=YOUNG)
        made = plan(bench, keep())
        bench.lose("older")
        report = carry_out(made, bench, keep())
        assert bench.names() == {"young"}
        assert (report.applied, report.skipped) == (1, 1)

    def test_what_fails_is_counted_and_told(self, tmp_path: Path) -> None:
        """An item that cannot be deleted is there still, and the trail says that it failed."""
        bench = filled(self.bench(tmp_path), old=OLD, young=YOUNG)
        made = plan(bench, keep())
        with bench.jammed():
            report = carry_out(made, bench, keep())
        assert bench.names() == {"old", "young"}
        assert (report.applied, report.failed) == (0, 1)
        assert report.outcomes[0].why
        outcome = next(bench.trail.records("outcome"))
        assert (outcome["failed"], outcome["items"][0]["result"]) == (1, "failed")
        sweep(bench, keep())
        assert bench.names() == {"young"}

    def test_no_more_go_than_are_too_many(self, tmp_path: Path) -> None:
        """Above `max_count` the oldest go until the count fits, and no more."""
        bench = filled(self.bench(tmp_path), young=YOUNG, oldest=OLDEST, younger=YOUNGER, old=OLD)
        sweep(bench, bounded(max_count=3))
        assert bench.names() == {"young", "younger", "old"}
