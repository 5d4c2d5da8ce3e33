"""A sweep does what was decided, looks no further than it must, and counts what it did."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from keepfor import plan as plans
from keepfor import sweep
from keepfor.errors import BreakerTripped, StoreBusy
from keepfor.items import Item, Report, Survey, Terms
from keepfor.policy.rules import Policy, Rule, keep_for
from keepfor.stores.base import Progress
from keepfor.stores.ledger import LedgerStore
from keepfor.stores.runs import runs_at
from keepfor.sweep import apply, prune_items, sweep_now
from keepfor.testing import MemoryStore
from keepfor.times import Known
from keepfor.trail import Trail

NOW = datetime(2026, 7, 26, tzinfo=UTC)


def item(name: str, days: float, type: str = "note") -> Item:  # noqa: A002 - an item's own word
    """An item of ten bytes that is so many days old."""
    return Item(id=name, type=type, instant=Known(NOW - timedelta(days=days), "ts"), bytes=10)


@pytest.fixture
def trail(tmp_path: Path) -> Trail:
    """Somewhere to record sweeps."""
    return Trail(tmp_path / "trail.jsonl", keep_for="forever")


def swept(store: MemoryStore, policy: Policy, trail: Trail) -> Report:
    """Plan, and carry the plan out."""
    plan = plans.build(store, policy, NOW, name="store")
    return apply(plan, store, policy, NOW, trail=trail)


def test_what_is_flagged_is_not_expired(trail: Trail) -> None:
    """A flag is applied, takes no byte and expires nothing: the report counts as the plan did."""
    store = MemoryStore([item("old", 100), item("young", 1)])
    policy = Policy(rules=(Rule(name="stale", max_age=timedelta(days=90)),))
    planned = plans.build(store, policy, NOW, name="store").survey
    report = swept(store, policy, trail)
    assert store.items["old"].flagged_by == "stale"
    assert (report.applied, report.expired, report.bytes_after) == (1, 0, 20)
    assert (planned.applied, planned.expired, planned.bytes_after) == (1, 0, 20)


def test_a_scan_of_items_tells_how_far_it_is(trail: Trail) -> None:
    """An apply says how far it is with looking, and then with removing."""
    store = MemoryStore([item("old", 100), item("young", 1)])
    policy = Policy(rules=keep_for(timedelta(days=90)))
    plan = plans.build(store, policy, NOW, name="store")
    steps: list[tuple[int, int]] = []
    apply(plan, store, policy, NOW, trail=trail, progress=lambda *step: steps.append(step))
    assert steps == [(1, 2), (2, 2), (1, 1)]


def test_a_pass_over_a_ledger_tells_how_far_it_is(tmp_path: Path, trail: Trail) -> None:
    """The last that is heard of a pass is that all of the file was judged."""
    path = tmp_path / "ledger.jsonl"
    path.write_text('{"ts": "2026-01-01"}\n{"ts": "2026-07-25"}\n')
    store, policy = LedgerStore(path=str(path)), Policy(rules=keep_for(timedelta(days=90)))
    steps: list[tuple[int, int]] = []
    plan = plans.build(store, policy, NOW, name="ledger", progress=lambda *step: steps.append(step))
    apply(plan, store, policy, NOW, trail=trail, progress=lambda *step: steps.append(step))
    # Two rows of 21 bytes each, read once by the plan and once by the apply.
    assert steps == [(42, 42), (42, 42)]


def test_a_prune_that_waits_leaves_what_is_pinned(trail: Trail) -> None:
    """Where nothing may expire yet, a ceiling still passes over what a rule pins."""
    old = [item(f"old{number}", 100) for number in range(9)]
    store = MemoryStore([*old, item("pinned", 0.5, "preference"), item("young", 0.1)])
    pin = Rule(name="pin", type="preference", max_age=timedelta(hours=1), action="keep")
    policy = Policy(rules=(pin, *keep_for(timedelta(days=90))), max_count=1)
    report = prune_items(store, policy, NOW, name="store", unattended=True, trail=trail)
    assert set(store.items) == {"pinned"}
    assert (report.expired, report.over_ceiling) == (0, 10)


def test_an_apply_reads_a_ledger_once(tmp_path: Path, trail: Trail) -> None:
    """To see how far a plan made now would reach, no row is read where age alone tells it."""
    looks: list[str] = []

    class Watched(LedgerStore, frozen=True):
        def survey(self, terms: Terms, progress: Progress | None = None) -> Survey:
            looks.append("survey")
            return super().survey(terms, progress)

        def delete(
            self,
            survey: Survey,
            terms: Terms,
            progress: Progress | None = None,
            accept: Callable[[Survey], bool] | None = None,
        ) -> Survey:
            looks.append("delete")
            return super().delete(survey, terms, progress, accept)

    path = tmp_path / "ledger.jsonl"
    path.write_text('{"ts": "2026-01-01"}\n{"ts": "2026-07-25"}\n')
    store, policy = Watched(path=str(path)), Policy(rules=keep_for(timedelta(days=90)))
    plan = plans.build(store, policy, NOW, name="ledger")
    assert apply(plan, store, policy, NOW, trail=trail).expired == 1
    assert looks == ["survey", "delete"]


def test_the_wait_for_another_sweep_can_be_called_off(
    tmp_path: Path, trail: Trail, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever follows the progress is asked in between, and an error of theirs ends the wait."""
    monkeypatch.setattr(sweep, "_STEP", 0.0)
    policy = Policy(rules=keep_for(timedelta(days=90)))
    plan = plans.build(runs_at(tmp_path), policy, NOW, name="store")

    def call_off(_done: int, _total: int) -> None:
        raise InterruptedError("enough")

    with runs_at(tmp_path).locked(), pytest.raises(InterruptedError, match="enough"):
        apply(plan, runs_at(tmp_path), policy, NOW, trail=trail, progress=call_off)


def test_the_wait_for_another_sweep_ends(
    tmp_path: Path, trail: Trail, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another one that does not finish is told of, with how long it was waited for."""
    monkeypatch.setattr(sweep, "PATIENCE", 0.001)
    policy = Policy(rules=keep_for(timedelta(days=90)))
    plan = plans.build(runs_at(tmp_path), policy, NOW, name="store")
    with runs_at(tmp_path).locked(), pytest.raises(StoreBusy, match=r"within 0\.001 s"):
        apply(plan, runs_at(tmp_path), policy, NOW, trail=trail)


def test_a_sweep_that_plans_for_itself_keeps_others_out_first(
    tmp_path: Path, trail: Trail, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It looks at nothing while another is at work, and that it gave up is on record."""
    monkeypatch.setattr(sweep, "PATIENCE", 0.001)
    policy = Policy(rules=keep_for(timedelta(days=90)))
    plans_made: list[plans.Plan] = []
    with runs_at(tmp_path).locked(), pytest.raises(StoreBusy):
        sweep_now(
            runs_at(tmp_path), policy, NOW, name="runs", trail=trail, on_plan=plans_made.append
        )
    assert plans_made == []
    (record,) = trail.records()
    assert (record["event"], record["target"]) == ("outcome", str(tmp_path))
    assert "did not finish within 0.001 s" in record["error"]


def test_a_sweep_that_plans_for_itself_stops_at_the_breaker(trail: Trail) -> None:
    """More than half of ten items stays, who asked is told of the plan, and force passes."""
    store = MemoryStore([item(f"old{number}", 100) for number in range(10)])
    policy = Policy(rules=keep_for(timedelta(days=90)))
    seen: list[int] = []
    with pytest.raises(BreakerTripped):
        sweep_now(
            store,
            policy,
            NOW,
            name="store",
            trail=trail,
            on_plan=lambda plan: seen.append(plan.deletes),
        )
    assert (seen, len(store.items)) == ([10], 10)
    assert "more than the 50%" in next(trail.records())["error"]
    assert sweep_now(store, policy, NOW, name="store", trail=None, force=True).applied == 10
    assert store.items == {}
