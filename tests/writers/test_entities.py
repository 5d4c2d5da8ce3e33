"""Notes and sessions that a program of one's own holds to rules."""

from __future__ import annotations

import json
import logging
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from keepfor import Entities, Trail
from keepfor import plan as plans
from keepfor.errors import (
    BadDuration,
    BadPolicy,
    BreakerTripped,
    ConfigError,
    PlanSpent,
    PlanStale,
    StoreBusy,
    StoreError,
    UnknownItem,
)
from keepfor.plan import Plan
from keepfor.policy.rules import Rule
from keepfor.stores.entities import EntityStore
from keepfor.testing import FixedClock
from keepfor.writers.entityrules import read
from tests import evolve


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The sample of 40 notes and 14 sessions."""
    return evolve.rebuild(tmp_path)


def held(root: Path, **settings: Any) -> Entities:
    """The sample, held to its own rules on the day that its right answers are for."""
    said: dict[str, Any] = {
        "rules": evolve.RULES,
        "folder": root.parent / "state",
        "clock": FixedClock(),
    }
    return Entities(root, **said | settings)


# --- the sample ---------------------------------------------------------------------------


def test_the_sample_gets_its_known_right_answers(root: Path) -> None:
    """The rules of the product's own file, handed over as they are read, decide as they should."""
    said = yaml.safe_load((root.parent / "evolve.config.yaml").read_text())
    before = evolve.files(root)
    plan = held(root, rules=said["retention"]["rules"]).plan()
    found = [
        {
            "id": each.id,
            "action": "skip" if each.reason == "spared" else each.action,
            "reason": "unused" if each.reason == "spared" else each.reason,
            "rule": each.rule,
        }
        for each in plan.decisions
        if each.rule is not None
    ]
    assert found == evolve.expected()
    assert evolve.files(root) == before


def test_what_was_planned_is_what_is_done(root: Path) -> None:
    """A plan that was looked at is carried out: just its deletions, just its flags."""
    entities = held(root)
    before = evolve.files(root)
    report = entities.apply(entities.plan())
    assert (report.applied, report.kept, report.skipped, report.failed) == (23, 31, 0, 0)
    after = evolve.files(root)
    assert set(before) - set(after) == {
        evolve.file_of(id_) for id_ in evolve.expected_ids("delete")
    }
    assert {name for name, now in after.items() if before[name] != now} == {
        evolve.file_of(id_) for id_ in evolve.expected_ids("flag")
    }
    assert entities.apply().applied == 0


def test_a_sweep_is_told_where_it_is_wanted(root: Path, tmp_path: Path) -> None:
    """With `record` the store's own log is told of each action, and a trail of the whole."""
    trail = Trail(tmp_path / "trail.jsonl")
    before = (root / "audit.log").read_text().count("\n")
    entities = held(root, record=True, trail=trail)
    plan = entities.plan()
    entities.apply(plan)
    rows = [json.loads(line) for line in (root / "audit.log").read_text().splitlines()[before:]]
    assert [row["event"] for row in rows] == ["retention"] * 23
    outcome, intent = trail.records()
    assert (intent["event"], outcome["applied"], outcome["plan"]) == ("intent", 23, plan.digest)
    with pytest.raises(PlanSpent):
        entities.apply(plan)


def test_an_item_is_explained(root: Path) -> None:
    """Each rule's verdict is given, and what would take a kept note next."""
    entities = held(root)
    found = entities.explain("guideline/write-the-newline-last-note-7")
    assert found.decision.action == "keep"
    assert [each.answer for each in found.opinions] == ["no", "no", "no"]
    assert found.next is not None
    assert found.next.due.isoformat() == "2026-10-16T17:02:24+00:00"
    assert found.next.decision.rule == "stale-guidelines"
    with pytest.raises(UnknownItem):
        entities.explain("guideline/nothing")


@pytest.mark.parametrize("several", [True, False])
def test_a_recalled_note_is_in_use(root: Path, several: bool) -> None:
    """A recorded access keeps a note from going as unused."""
    id_ = "guideline/keep-fixtures-small-note-13"
    entities = held(root)
    entities.record_access([id_] if several else id_)
    row = json.loads((root / "audit.log").read_text().splitlines()[-1])
    assert (row["event"], row["entities"]) == ("recall", [id_])
    (said,) = (each for each in entities.plan().decisions if each.id == id_)
    assert (said.action, said.rule) == ("flag", "stale-guidelines")


# --- bounds -------------------------------------------------------------------------------


def test_the_breaker_holds_back(root: Path) -> None:
    """A sweep that would delete more than half does nothing, unless a person forces it."""
    rules = [{"name": "all", "max_age_days": 1, "action": "delete"}]
    entities = held(root, rules=rules)
    before = evolve.files(root)
    with pytest.raises(BreakerTripped):
        entities.apply()
    assert evolve.files(root) == before
    assert entities.apply(force=True).applied == 54 - len(entities.plan().decisions)
    assert held(root, rules=rules, breaker=None).plan().breaker is None


def test_an_apply_that_plans_for_itself_keeps_others_out_first(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No other sweep can act between its look and what it does, so nothing of it is skipped."""
    looks = []

    def build(store: EntityStore, *given: Any, **more: Any) -> Plan:
        with pytest.raises(StoreBusy), store.locked(0):
            pass
        looks.append(store.target)
        return plans.build(store, *given, **more)

    monkeypatch.setattr("keepfor.sweep.build", build)
    assert held(root, breaker=None).apply().applied
    assert looks == [str(root)]


def test_a_plan_of_other_rules_is_stale(root: Path) -> None:
    """A plan is carried out by the rules that it was made by, or not at all."""
    plan = held(root).plan()
    with pytest.raises(PlanStale):
        held(root, rules=evolve.RULES[:1]).apply(plan)


def test_floors_and_ceilings_hold(root: Path) -> None:
    """Ages, floors (of a type too) and ceilings are held as a policy holds them."""
    plan = held(root, rules=[], keep_for="90d", keep_last={"trajectory": 14}).plan()
    assert not any(
        each.action == "delete" and each.id.startswith("trajectories/") for each in plan.decisions
    )
    assert plan.deletes > 0
    assert held(root, rules=[], max_count=50).plan().deletes == 4
    assert held(root, rules=[], max_bytes="1GiB").plan().deletes == 0
    assert held(root, rules=[], max_count=50, keep_last=50).plan().deletes == 4


def test_a_tree_of_another_shape_is_read_as_it_is_told(tmp_path: Path) -> None:
    """Folders, patterns, types and the key that dates a note are what the program says."""
    memory = tmp_path / "memory"
    (memory / "drafts").mkdir(parents=True)
    (memory / "talks").mkdir()
    (memory / "a.txt").write_text("---\ncreated: 2026-01-01\nstatus: old\n---\n")
    (memory / "b.md").write_text("no note here\n")
    (memory / "drafts" / "c.txt").write_text("")
    (memory / "talks" / "d.json").write_text("")
    entities = Entities(
        memory,
        [{"name": "old", "type": "note", "match": {"status": "old"}, "max_age": "90d"}],
        notes=".",
        pattern="*.txt",
        sessions="talks",
        session_pattern="*.json",
        ignore="drafts",
        default_type="note",
        session_type="talk",
        dated_by="created",
        fallback="modified",
        timezone="Europe/Berlin",
        access_log=None,
        folder=tmp_path / "state",
        clock=FixedClock(),
    )
    decisions = {each.id: each for each in entities.plan().decisions}
    assert set(decisions) == {"a", "talks/d.json"}
    assert (decisions["a"].action, decisions["a"].evidence["source"]) == ("flag", "created")
    with pytest.raises(StoreError, match="no log of recalls"):
        entities.record_access(["a"])


# --- what is refused ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "rule"),
    [
        (
            {"name": "a", "entity_type": "x", "max_age_days": 90},
            Rule(name="a", type="x", max_age=timedelta(days=90)),
        ),
        (
            {"name": "a", "max_unused": "2w", "max_age": timedelta(days=1), "action": "delete"},
            Rule(
                name="a",
                max_unused=timedelta(days=14),
                max_age=timedelta(days=1),
                action="delete",
            ),
        ),
        (
            {"name": "a", "action": "keep", "match": {"id": "x/*", "status": "core"}},
            Rule(name="a", action="keep", match_id="x/*", match_fields={"status": "core"}),
        ),
        (
            {
                "name": "a",
                "type": "x",
                "max_unused_days": 1,
                "action": "delete",
                "after_flagged": "1d",
                "keep_if_cited": True,
                "cascade_derived": True,
                "on_missing_access_signal": "delete",
            },
            Rule(
                name="a",
                type="x",
                max_unused=timedelta(days=1),
                action="delete",
                after_flagged=timedelta(days=1),
                keep_if_cited=True,
                cascade_derived=True,
                on_missing_access_signal="delete",
            ),
        ),
    ],
)
def test_a_mapping_is_the_rule_that_it_says(said: dict[str, Any], rule: Rule) -> None:
    """A rule is written with the keys of keepfor.yaml."""
    assert read(said) == rule


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"name": "a", "max_aeg": "90d"}, "`max_aeg` is unknown. Did you mean `max_age`?"),
        ({"name": "a", "zebra": 1}, "`zebra` is unknown. Known here: name, type"),
        ({"max_age": "90d"}, "a rule has no name"),
        ({"name": "a"}, "it has no threshold"),
        ({"name": "a", "max_age": "1d", "max_age_days": 1}, "says what another key says already"),
        ({"name": "a", "max_age": "1d", "keep_if_cited": "yes"}, "'yes' is neither true nor false"),
        ({"name": "a", "max_age": "1d", "match": {}}, r"`match` is \{\}"),
        ({"name": "a", "max_age": "1d", "match": {"x": 1}}, "its `match` says 'x': 1"),
        ("a", "a rule is 'a'. Write a mapping"),
    ],
)
def test_a_wrong_rule_is_refused(said: Any, message: str) -> None:
    """What cannot be a rule is refused with what to write."""
    with pytest.raises(BadPolicy, match=message):
        Entities("memory", [said])


def test_a_store_that_is_held_to_nothing_is_refused(tmp_path: Path) -> None:
    """Without a rule or a bound nothing would ever go, which has to be said on purpose."""
    with pytest.raises(BadPolicy, match="nothing would ever be flagged or deleted"):
        Entities(tmp_path)
    entities = Entities(tmp_path, keep_for="forever", folder=tmp_path / "state")
    assert entities.plan().deletes == 0
    with pytest.raises(BadDuration):
        Entities(tmp_path, [{"name": "a", "max_age": 90}])


@pytest.mark.parametrize(
    "said", [{"notes": "../x"}, {"sessions": "/etc"}, {"sessions": "."}, {"access_log": "../log"}]
)
def test_no_part_of_a_store_lies_outside_of_it(tmp_path: Path, said: dict[str, Any]) -> None:
    """Folders and log lie below the path, or are refused."""
    with pytest.raises(ConfigError, match="does not lie below the path"):
        Entities(tmp_path, keep_for="90d", **said)


def test_a_rule_that_can_never_fire_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A trap in the rules is told when they are handed over."""
    with caplog.at_level(logging.WARNING, "keepfor.entities"):
        Entities(
            tmp_path,
            [
                {"name": "stale", "max_age_days": 90},
                {"name": "old", "max_age_days": 180, "action": "delete"},
            ],
        )
    assert "old: it can never fire: all that it matches has matched 'stale' before." in caplog.text
