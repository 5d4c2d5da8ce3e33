"""A store that the real program wrote gets the known right answers, and a sweep does just that."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from keepfor import plan as plans
from keepfor.stores.entities import EntityStore, entities_at
from keepfor.sweep import apply
from keepfor.trail import Trail
from tests import evolve
from tests.entities import POLICY
from tests.evolve import expected, expected_ids, file_of, files


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return evolve.rebuild(tmp_path / "home")


def store(root: Path) -> EntityStore:
    return entities_at(root, record=True, cache=str(root.parent / "state"))


def known() -> dict[str, tuple[str, str, str]]:
    """What is known to be right of each item that a rule matches: action, reason and rule."""
    return {said["id"]: (said["action"], said["reason"], said["rule"]) for said in expected()}


@pytest.mark.parametrize("looks", [1, 2])
def test_the_sample_is_decided_as_is_known_to_be_right(root: Path, looks: int) -> None:
    """Each item that a rule matches gets its known action, rule and reason, and no other does."""
    for _ in range(looks):
        plan = plans.build(store(root), POLICY, evolve.NOW, name="evolve")
    said = {
        decision.id: (decision.action, decision.reason, decision.rule)
        for decision in plan.decisions
        if decision.rule is not None
    }
    assert said == {
        id_: ("keep", "spared", rule) if action == "skip" else (action, reason, rule)
        for id_, (action, reason, rule) in known().items()
    }
    assert len(plan.decisions) == 40 + 14


def test_a_sweep_of_the_sample_does_just_that(root: Path, tmp_path: Path) -> None:
    """What is to go is gone, what is to be flagged says so, every other byte is as it was."""
    before = files(root)
    trail = Trail(tmp_path / "trail.jsonl", keep_for="forever")
    plan = plans.build(store(root), POLICY, evolve.NOW, name="evolve")
    report = apply(plan, store(root), POLICY, evolve.NOW, trail=trail)
    assert (report.applied, report.skipped, report.failed) == (14 + 5 + 3 + 1, 0, 0)

    after = files(root)
    deleted = {file_of(id_) for id_ in expected_ids("delete")}
    flagged = {file_of(id_) for id_ in expected_ids("flag")}
    assert before.keys() - after.keys() == deleted
    assert after.keys() <= before.keys()
    for path in after.keys() - {"audit.log"}:
        (was, was_changed), (is_, is_changed) = before[path], after[path]
        lines = is_.splitlines(keepends=True)
        added = [line for line in lines if line.startswith(b"retention_")]
        assert len(added) == (3 if path in flagged else 0)
        assert b"".join(line for line in lines if line not in added) == was
        assert is_changed == was_changed


def test_the_log_of_the_sample_tells_of_each_action(root: Path, tmp_path: Path) -> None:
    """The rows of recalls stay as they are, and one row is added for everything that was done."""
    before = (root / "audit.log").read_bytes()
    trail = Trail(tmp_path / "trail.jsonl", keep_for="forever")
    plan = plans.build(store(root), POLICY, evolve.NOW, name="evolve")
    apply(plan, store(root), POLICY, evolve.NOW, trail=trail)
    after = (root / "audit.log").read_bytes()
    assert after.startswith(before)
    rows = [json.loads(line) for line in after[len(before) :].splitlines()]
    assert {row["event"] for row in rows} == {"retention"}
    assert {row["entity"]: (row["action"], row["reason"], row["rule"]) for row in rows} == {
        id_: said for id_, said in known().items() if said[0] != "skip"
    }


def test_a_second_sweep_of_the_sample_changes_nothing(root: Path, tmp_path: Path) -> None:
    """What is flagged stays flagged by the same rule, and nothing more is found to do."""
    trail = Trail(tmp_path / "trail.jsonl", keep_for="forever")
    for _ in range(2):
        before = files(root)
        plan = plans.build(store(root), POLICY, evolve.NOW, name="evolve")
        report = apply(plan, store(root), POLICY, evolve.NOW, trail=trail)
    assert report.applied == 0
    assert files(root) == before
    assert sum(decision.reason == "flagged" for decision in plan.decisions) == 14
