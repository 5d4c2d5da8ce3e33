"""A sweep does what was planned, if that still holds, and says what it did."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from keepfor import sweep
from keepfor.errors import PlanStale, StoreBusy, StoreChanged, StoreError, WrongTimeField
from keepfor.items import Decision, Outcome, Report
from keepfor.plan import Plan
from keepfor.policy.rules import Policy, Rule
from keepfor.stores.ledger import LedgerStore, ledger_at
from keepfor.sweep import apply, prune, prune_items
from keepfor.testing import MemoryStore
from keepfor.testing.suite import adds_up
from tests.engine.build import KEEP, NOW, aged, items, line, planned, write


class Notebook:
    """A recorder that remembers what it was told, and may fail."""

    def __init__(self, begin: Exception | None = None, end: Exception | None = None) -> None:
        self.told: list[tuple[str, Any]] = []
        self.begin_fails = begin
        self.end_fails = end

    def spent(self, plan: Plan) -> bool:
        return False

    def begin(self, report: Report) -> None:
        if self.begin_fails:
            raise self.begin_fails
        self.told.append(("intent", report.applied))

    def end(self, report: Report, error: str = "") -> None:
        if self.end_fails:
            raise self.end_fails
        self.told.append(("outcome", error or report.applied))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A ledger with two rows past their time and two within it."""
    path = tmp_path / "ledger.jsonl"
    write(path, [100, 95, 50, 1])
    return path


YOUNG = line(50) + line(1)


def pruned(path: Path, policy: Policy = KEEP, **how: Any) -> Report:
    return prune(ledger_at(path), policy, NOW, name="ledger", **how)


def test_a_report_says_what_was_done_to_what_and_by_whom(path: Path) -> None:
    """The store and its address, the rules, the policy, the plan, the instant, who asked."""
    store = ledger_at(path)
    policy = replace(KEEP, max_bytes=10_000)
    plan = planned(store, policy)
    later = NOW + timedelta(hours=1)
    report = apply(plan, store, policy, later, trail=Notebook(), started_by="background")
    assert (report.store, report.kind, report.target) == ("store", "ledger", str(path))
    assert (report.rules, report.policy, report.plan) == (["keep_for"], plan.policy, plan.digest)
    assert (report.now, report.started_by) == (later, "background")
    # 90 days before NOW, for which it was planned.
    assert report.cutoff == datetime.fromisoformat("2026-04-27T00:00:00+00:00")
    assert report.duration >= 0
    by_writer = pruned(path)
    assert (by_writer.started_by, by_writer.plan) == ("write site", "")


def test_a_plan_of_another_kind_is_refused(path: Path) -> None:
    """The same address in a store of another kind is another store."""
    store = MemoryStore()
    store.target = str(path)
    with pytest.raises(PlanStale, match="it was made for"):
        apply(planned(ledger_at(path)), store, KEEP, NOW, trail=Notebook())


def test_a_row_that_is_young_by_now_is_skipped(path: Path) -> None:
    """A planned row that somebody has made younger stays, and is counted as skipped."""
    store = ledger_at(path)
    plan = planned(store)
    data = path.read_bytes()
    with path.open("r+b") as file:
        file.write(data.replace(line(95)[:24], line(50)[:24]))
    # The beginning is compared as far as it was there, so the change lies behind it.
    with pytest.raises(Exception, match="begins with other rows"):
        apply(plan, store, KEEP, NOW, trail=Notebook())
    head = [line(10, n=n) for n in range(100)]
    path.write_bytes(b"".join([*head, line(100), line(95)]))
    plan = planned(store)
    with path.open("r+b") as file:
        file.write(b"".join([*head, line(100), line(50)]))
    report = apply(plan, store, KEEP, NOW, trail=Notebook())
    assert (report.applied, report.skipped, report.kept) == (1, 1, 100)
    assert adds_up(report)
    assert path.read_bytes() == b"".join([*head, line(50)])


def test_no_more_rows_go_than_were_planned(path: Path) -> None:
    """Rows that somebody made older after the plan, in place, do not go along with it."""
    store = ledger_at(path)
    head = [line(10, n=n) for n in range(100)]
    path.write_bytes(b"".join([*head, line(100), line(50)]))
    plan = planned(store)
    edited = b"".join([*head, line(100), line(95)])
    with path.open("r+b") as file:
        file.write(edited)
    notebook = Notebook()
    with pytest.raises(StoreChanged, match="more rows would go than were planned"):
        apply(plan, store, KEEP, NOW, trail=notebook)
    assert path.read_bytes() == edited
    assert [event for event, _ in notebook.told] == ["outcome"]


def test_nothing_is_done_where_the_trail_cannot_tell(path: Path) -> None:
    """A sweep that cannot be put on record beforehand does not begin."""
    before = path.read_bytes()
    notebook = Notebook(begin=StoreError(path="trail", what="it is full.", fix="Free some space."))
    with pytest.raises(StoreError, match="trail: it is full"):
        apply(planned(ledger_at(path)), ledger_at(path), KEEP, NOW, trail=notebook)
    assert notebook.told == [("outcome", "trail: it is full. Free some space.")]
    with pytest.raises(StoreError, match="trail: it is full"):
        pruned(path, trail=notebook)
    store = items(old=100)
    with pytest.raises(StoreError, match="trail: it is full"):
        apply(planned(store), store, KEEP, NOW, trail=notebook)
    assert path.read_bytes() == before
    assert set(store.items) == {"old"}


def test_what_was_done_is_done_where_the_trail_fails_afterwards(path: Path) -> None:
    """A sweep whose end cannot be recorded is no failure, and its report says so."""
    store = ledger_at(path)
    report = apply(planned(store), store, KEEP, NOW, trail=Notebook(end=OSError("disk full")))
    assert report.applied == 2
    assert report.notes == ["the trail has no record of how this ended: disk full"]
    assert path.read_bytes() == YOUNG


@pytest.mark.parametrize("by_plan", [True, False])
def test_where_nothing_goes_no_intent_is_on_record(by_plan: bool, path: Path) -> None:
    """A sweep that finds nothing to do has an outcome only, and leaves the ledger."""
    path.write_bytes(YOUNG)
    inode, notebook, store = path.stat().st_ino, Notebook(), ledger_at(path)
    if by_plan:
        apply(planned(store), store, KEEP, NOW, trail=notebook)
    else:
        pruned(path, trail=notebook)
    assert notebook.told == [("outcome", 0)]
    assert path.stat().st_ino == inode


def test_an_error_is_on_record(path: Path) -> None:
    """What a sweep ran into is what the trail says of it."""
    path.write_bytes(b'{"time": "2026-01-01"}\n')
    notebook = Notebook()
    with pytest.raises(WrongTimeField):
        pruned(path, trail=notebook)
    ((event, error),) = notebook.told
    assert event == "outcome"
    assert "have no usable time in 'ts'" in error


class Torn(MemoryStore):
    """A store in which the sweep is interrupted after the first item."""

    def apply(self, decisions: Iterable[Decision]) -> Iterator[Outcome]:
        for done in super().apply(decisions):
            yield done
            raise KeyboardInterrupt


def test_an_interrupted_sweep_of_items_says_how_far_it_came(tmp_path: Path) -> None:
    """Which item is gone is on record, and the rest counts as failed."""
    store = Torn([aged("a", 100), aged("b", 100), aged("c", 1)])
    reports: list[Report] = []

    class Recorder(Notebook):
        def end(self, report: Report, error: str = "") -> None:
            reports.append(report)
            super().end(report, error)

    notebook = Recorder()
    with pytest.raises(KeyboardInterrupt):
        apply(planned(store), store, KEEP, NOW, trail=notebook)
    assert set(store.items) == {"b", "c"}
    (report,) = reports
    assert notebook.told == [("intent", 0), ("outcome", "KeyboardInterrupt")]
    assert (report.scanned, report.kept, report.applied, report.failed) == (3, 1, 1, 1)
    assert [(done.id, done.result) for done in report.outcomes] == [
        ("a", "applied"),
        ("b", "failed"),
    ]
    assert (report.bytes_before, report.bytes_after) == (30, 20)


def test_items_that_changed_their_case_are_left_alone() -> None:
    """What a plan made now would treat otherwise is skipped: kept, pinned, or flagged by now."""
    rules = (
        Rule(name="old", max_age=timedelta(days=90), action="delete"),
        Rule(name="stale", max_age=timedelta(days=10)),
    )
    policy = Policy(rules=rules, breaker=None)
    store = items(old=100, stale=50, other=50, young=1)
    plan = planned(store, policy)
    store.items["stale"] = replace(store.items["stale"], flagged_by="stale")
    store.items["old"] = replace(store.items["old"], held="in use")
    report = apply(plan, store, policy, NOW, trail=Notebook())
    said = {done.id: (done.result, done.why) for done in report.outcomes}
    would = "a plan made now would"
    assert said == {
        "old": ("skipped", f"{would} keep it (in use, veto)"),
        "stale": ("skipped", f"{would} keep it (stale, flagged)"),
        "other": ("applied", ""),
    }
    assert store.items["other"].flagged_by == "stale"
    assert (report.scanned, report.kept, report.applied, report.skipped) == (4, 1, 1, 2)
    assert adds_up(report)


def test_what_an_item_store_says_of_what_it_did_is_told() -> None:
    """A word about an item that went, such as a second name that it has, is in the report."""

    class Wordy(MemoryStore):
        def apply(self, decisions: Iterable[Decision]) -> Iterator[Outcome]:
            return (replace(done, why="a copy is left") for done in super().apply(decisions))

    store = Wordy([aged("a", 100)])
    report = apply(planned(store), store, KEEP, NOW, trail=Notebook())
    assert report.notes == ["a: a copy is left"]


def test_a_sweep_waits_for_another_only_so_long(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where another sweep does not end, this one gives up, and nothing is on record."""
    monkeypatch.setattr(sweep, "PATIENCE", 0.0)
    store, notebook, before = ledger_at(path), Notebook(), path.read_bytes()
    plan = planned(store)
    with store.locked(0.0):
        with pytest.raises(StoreBusy):
            apply(plan, store, KEEP, NOW, trail=notebook)
        with pytest.raises(StoreBusy):
            pruned(path, trail=notebook, wait=0.0)
    assert (notebook.told, path.read_bytes()) == ([], before)


def test_rows_beyond_the_reach_of_a_prune_stay(path: Path) -> None:
    """What an append has just written stays, whatever its age, and so does all after it."""
    path.write_bytes(line(100) + YOUNG)
    reach = path.stat().st_size
    path.write_bytes(path.read_bytes() + line(100, n="mine") + b"debris\n")
    report = pruned(path, reach=reach)
    assert (report.expired, report.unreadable, report.kept) == (1, 0, 4)
    assert path.read_bytes() == YOUNG + line(100, n="mine") + b"debris\n"
    assert pruned(path).applied == 2


def test_a_reach_into_what_is_not_there_is_no_fault(tmp_path: Path) -> None:
    """A ledger that was removed since the append has nothing to lose."""
    assert pruned(tmp_path / "none", reach=100).scanned == 0


def test_unattended_a_prune_waits_for_a_day_of_fresh_rows(path: Path) -> None:
    """Ten rows or more that would all go stay, but for the unreadable and those over a ceiling."""
    write(path, [100] * 12)
    notebook = Notebook()
    report = pruned(path, unattended=True, trail=notebook)
    assert (report.applied, report.kept, report.cutoff) == (0, 12, None)
    assert "do not span a day" in report.notes[0]
    assert notebook.told == [("outcome", 0)]
    size = path.stat().st_size
    path.write_bytes(b"debris\n" + path.read_bytes())
    report = pruned(path, replace(KEEP, max_bytes=size - 1), unattended=True, trail=notebook)
    assert (report.expired, report.unreadable) == (0, 1)
    # Four fifths of twelve rows less a byte: nine rows.
    assert report.over_ceiling == 3
    assert notebook.told[1:] == [("intent", 0), ("outcome", 4)]
    assert pruned(path).expired == 9


def test_unattended_items_wait_as_well() -> None:
    """Where no item of a day or more would stay, none expires, and a ceiling holds all the same."""
    store = items(**{f"i{number}": 100 + number for number in range(12)})
    report = prune_items(store, KEEP, NOW, name="store", unattended=True)
    assert (report.applied, report.kept) == (0, 12)
    assert "does not span a day" in report.notes[0]
    bounded = replace(KEEP, max_count=10)
    report = prune_items(store, bounded, NOW, name="store", unattended=True)
    assert (report.expired, report.over_ceiling) == (0, 2)
    assert prune_items(store, KEEP, NOW, name="store").applied == 10


def test_a_prune_may_go_unrecorded(path: Path) -> None:
    """A program's own ledger needs no trail."""
    assert pruned(path).applied == 2
    assert path.read_bytes() == YOUNG


def test_what_was_not_there_when_it_was_planned_is_out_of_reach(tmp_path: Path) -> None:
    """A plan of a ledger that nobody had written to yet takes nothing from it later."""
    path = tmp_path / "ledger.jsonl"
    store = LedgerStore(path=str(path))
    plan = planned(store)
    write(path, [100])
    report = apply(plan, store, KEEP, NOW, trail=Notebook())
    assert (report.scanned, report.applied) == (0, 0)
    assert path.read_bytes() == line(100)


def test_a_sweep_of_items_can_be_stopped_between_two_of_them() -> None:
    """Whoever watches may end it; what was done is told, and the rest is told to be undone."""
    store, notebook = items(one=100, two=101, three=102, young=1), Notebook()
    seen: list[tuple[int, int]] = []

    def watch(done: int, total: int) -> None:
        # The looks at the store, before anything is done, count its four items.
        if total == 3:
            seen.append((done, total))
            if done == 2:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        apply(planned(store), store, KEEP, NOW, trail=notebook, progress=watch)
    assert seen == [(1, 3), (2, 3)]
    assert len(store.items) == 2
    assert notebook.told == [("intent", 0), ("outcome", "KeyboardInterrupt")]
