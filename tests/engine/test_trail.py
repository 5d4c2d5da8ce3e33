"""The trail says what was done, before and after; nothing of what the stores hold; and expires."""

from __future__ import annotations

import errno
import json
import os
import threading
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from keepfor.errors import ConfigError, PlanStale, StoreError
from keepfor.items import Report
from keepfor.stores.ledger import ledger_at
from keepfor.sweep import apply
from keepfor.testing import FixedClock
from keepfor.trail import Trail
from tests.engine.build import KEEP, NOW, items, line, planned
from tests.stores.nobody import as_nobody, common_ground


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(NOW)


@pytest.fixture
def trail(tmp_path: Path, clock: FixedClock) -> Trail:
    return Trail(tmp_path / "state" / "trail.jsonl", keep_for="90d", clock=clock)


def report(**more: Any) -> Report:
    facts: dict[str, Any] = {"store": "recall", "kind": "ledger", "target": "/l", "now": NOW}
    return Report(**(facts | more))


def numbers(trail: Trail) -> list[int]:
    return [record["seq"] for record in trail.records()]


def test_a_record_says_who_did_what_to_what_and_by_which_rules(trail: Trail) -> None:
    """Both name store, rules, policy, plan and version; the outcome has the counts."""
    facts = report(
        rules=["keep_for"],
        policy="p" * 64,
        plan="d" * 64,
        started_by="background",
        cutoff=NOW - timedelta(days=90),
        scanned=10,
        kept=6,
        applied=3,
        skipped=1,
        expired=2,
        unreadable=1,
        bytes_before=1000,
        bytes_after=700,
        oldest=NOW,
        duration=0.123456789,
        notes=["a note"],
    )
    trail.begin(facts)
    trail.end(facts)
    outcome, intent = trail.records()
    common = {
        "ts": "2026-07-26T00:00:00Z",
        "format": 1,
        "keepfor": intent["keepfor"],
        "store": "recall",
        "kind": "ledger",
        "target": "/l",
        "rules": ["keep_for"],
        "started_by": "background",
        "policy": "p" * 64,
        "plan": "d" * 64,
        "now": "2026-07-26T00:00:00Z",
    }
    assert intent == common | {"seq": 1, "event": "intent"}
    assert outcome == common | {
        "seq": 2,
        "event": "outcome",
        # 90 days before: 26 of July, 30 of June, 31 of May, 3 of April.
        "cutoff": "2026-04-27T00:00:00Z",
        "scanned": 10,
        "kept": 6,
        "applied": 3,
        "skipped": 1,
        "failed": 0,
        "expired": 2,
        "unreadable": 1,
        "over_ceiling": 0,
        "future": 0,
        "bytes_before": 1000,
        "bytes_after": 700,
        "oldest": "2026-07-26T00:00:00Z",
        "notes": ["a note"],
        "duration": 0.123457,
    }


def test_items_are_named_with_reason_and_result(trail: Trail) -> None:
    """Of each item that something was done to, id and reason are on record."""
    store = items(a=100, b=100, c=1)
    store.failing["b"] = "disk full"
    apply(planned(store), store, KEEP, NOW, trail=trail)
    outcome = next(trail.records("outcome"))
    assert outcome["items"] == [
        {"id": "a", "action": "delete", "rule": "keep_for", "reason": "age", "result": "applied"},
        {"id": "b", "action": "delete", "rule": "keep_for", "reason": "age", "result": "failed"},
    ]


def test_no_content_is_on_record(trail: Trail, tmp_path: Path) -> None:
    """What stood in a row that went, or in one that stayed, is nowhere in the trail."""
    path = tmp_path / "ledger.jsonl"
    path.write_bytes(
        line(100, note="SECRET-OLD") + line(1, note="SECRET-YOUNG") + b"SECRET-DEBRIS\n"
    )
    store = ledger_at(path)
    assert apply(planned(store), store, KEEP, NOW, trail=trail).applied == 2
    assert b"SECRET" not in Path(trail.path).read_bytes()


def test_an_intent_is_on_disk_before_the_first_act(
    trail: Trail, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A power cut right after the first act cannot take the record of it along."""
    steps: list[str] = []
    fsync, write = os.fsync, os.write

    def noted_write(descriptor: int, data: bytes) -> int:
        steps.append("write")
        return write(descriptor, data)

    def noted_fsync(descriptor: int) -> None:
        steps.append("fsync")
        fsync(descriptor)

    monkeypatch.setattr(os, "write", noted_write)
    monkeypatch.setattr(os, "fsync", noted_fsync)
    trail.begin(report())
    assert steps == ["write", "fsync"]


def test_numbers_go_on_from_the_last_record(trail: Trail) -> None:
    """Records are numbered one by one, whoever writes them."""
    for _ in range(3):
        Trail(trail.path, keep_for="forever").begin(report())
    assert numbers(trail) == [3, 2, 1]
    assert [record["seq"] for record in trail.records("intent")] == [3, 2, 1]
    assert list(trail.records("outcome")) == []


def test_no_two_records_have_the_same_number(trail: Trail) -> None:
    """Sweeps of several stores that end at once are all on record, each with its own number."""

    def record() -> None:
        for _ in range(5):
            trail.end(report())

    threads = [threading.Thread(target=record) for _ in range(4)]
    for thread in threads:
        thread.start()
    children = []
    for _ in range(2):
        child = os.fork()
        if child == 0:
            record()
            os._exit(0)
        children.append(child)
    for thread in threads:
        thread.join()
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0]
    assert numbers(trail) == list(range(30, 0, -1))


def test_a_plan_is_spent_when_it_was_begun(trail: Trail) -> None:
    """What counts is the intent: a sweep that was killed had begun."""
    plan, other = planned(items(a=100)), planned(items(b=100))
    assert not trail.spent(plan)
    trail.begin(report(plan=other.digest))
    trail.end(report(plan=plan.digest))
    assert not trail.spent(plan)
    trail.begin(report(plan=plan.digest))
    assert trail.spent(plan)
    assert trail.spent(other)


def test_a_plan_that_is_older_than_the_trail_is_refused(trail: Trail, clock: FixedClock) -> None:
    """Records of that time may have expired, and cannot tell whether it was carried out."""
    plan = planned(items(a=100))
    clock.now = plan.made + timedelta(days=90)
    assert not trail.spent(plan)
    clock.advance(microseconds=1)
    with pytest.raises(PlanStale, match="older than the trail reaches back"):
        trail.spent(plan)
    assert not Trail(trail.path, keep_for="forever", clock=clock).spent(plan)
    assert not Trail(trail.path, keep_for=None, clock=clock).spent(plan)


def test_records_expire_and_the_numbers_go_on(trail: Trail, clock: FixedClock) -> None:
    """After its time a record goes with the end of a later sweep; the last number stays known."""
    for _ in range(5):
        trail.begin(report())
        trail.end(report())
    clock.advance(days=90)
    trail.end(report())
    assert numbers(trail) == list(range(11, 0, -1))
    clock.advance(hours=25)
    trail.end(report())
    # Ten records are past their time; the eleventh is over a day old: the clock is believed.
    assert numbers(trail) == [12, 11]


def test_a_trail_is_kept_for_ever_where_it_is_told_to(trail: Trail, clock: FixedClock) -> None:
    """Without a time to keep records for, none expires."""
    kept = Trail(trail.path, keep_for="forever", clock=clock)
    kept.end(report())
    clock.advance(days=5000)
    kept.end(report())
    assert numbers(kept) == [2, 1]


def test_a_trail_that_cannot_expire_goes_on(
    trail: Trail, clock: FixedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Housekeeping of the trail is no affair of the sweep that ends."""
    trail.end(report())
    clock.advance(days=200)

    def fail(*_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "rename", fail)
    trail.end(report())
    assert numbers(trail) == [2, 1]


JUNK = [
    b"not json",
    b"[]",
    b"\xff",
    b"{}",
    b'{"seq": "many", "event": "intent"}',
    b'{"seq": null}',
    b"[" * 100_000,
    b"",
]


@pytest.mark.parametrize("junk", JUNK, ids=lambda junk: repr(junk[:20]))
def test_what_a_stray_hand_wrote_stops_nothing(junk: bytes, trail: Trail) -> None:
    """A line that is no record is passed over, and the numbers go on from the last that is one."""
    trail.begin(report())
    with open(trail.path, "ab") as file:
        file.write(junk + b"\n")
    trail.end(report())
    records = [record for record in trail.records() if record.get("store")]
    assert [record["seq"] for record in records] == [2, 1]


def test_a_torn_record_does_not_spoil_the_next(trail: Trail) -> None:
    """Where a writer was killed in mid-line, the next record is on a line of its own."""
    trail.begin(report())
    with open(trail.path, "ab") as file:
        file.write(b'{"seq": 2, "ev')
    trail.begin(report())
    assert numbers(trail) == [2, 1]
    assert len(Path(trail.path).read_bytes().splitlines()) == 3


def test_no_trail_yet_has_no_records(trail: Trail) -> None:
    """Before the first sweep there is nothing to tell."""
    assert list(trail.records()) == []
    assert not Path(trail.path).exists()


def test_a_trail_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """The error is about the trail, not about the ledger, and nothing was done to that."""
    with common_ground() as ground:
        state = ground / "state"
        state.mkdir(mode=0o555)
        path = ground / "ledger.jsonl"
        path.write_bytes(line(100) + line(1))
        path.chmod(0o666)
        before = path.read_bytes()
        trail = Trail(state / "trail.jsonl", keep_for="forever")

        def act() -> None:
            store = ledger_at(path, unreadable="keep")
            with pytest.raises(StoreError, match=r"state/trail\.jsonl: Permission denied"):
                apply(planned(store), store, KEEP, NOW, trail=trail)

        # The ledger belongs to whoever sweeps it.
        if os.geteuid() == 0:
            os.chown(path, 65534, 65534)
        as_nobody(act)
        assert path.read_bytes() == before
        assert sorted(os.listdir(ground)) == ["ledger.jsonl", "state"]


def test_a_folder_in_place_of_the_trail_is_told(trail: Trail) -> None:
    """Something else at its path is an error that names it."""
    Path(trail.path).mkdir(parents=True)
    with pytest.raises(StoreError, match=r"trail\.jsonl: Is a directory"):
        trail.begin(report())


def test_a_typo_is_refused_when_the_trail_is_made(tmp_path: Path) -> None:
    """How long records stay is read as a duration is everywhere."""
    with pytest.raises(ConfigError, match="90"):
        Trail(tmp_path / "trail.jsonl", keep_for="90")


def test_a_record_is_a_line_that_any_program_reads(trail: Trail) -> None:
    """Each is one JSON object on a line of its own, with its time in UTC."""
    trail.begin(report(store="süß\n", target="/a b"))
    (text,) = Path(trail.path).read_bytes().splitlines()
    record = json.loads(text)
    assert (record["store"], record["target"]) == ("süß\n", "/a b")
    assert datetime.fromisoformat(record["ts"]) == NOW
