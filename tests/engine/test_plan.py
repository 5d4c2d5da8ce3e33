"""A plan holds all that was decided, is read back as it was written, or is refused."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from keepfor.errors import BadPolicy, ConfigError, PlanStale
from keepfor.items import Decision, Item
from keepfor.plan import Plan, build, load, policy_digest, save
from keepfor.policy.rules import Policy, Rule, keep_for
from keepfor.stores.ledger import ledger_at
from keepfor.stores.rows import RowFormat
from keepfor.testing import MemoryStore
from keepfor.times import Unknown
from tests.engine.build import KEEP, NOW, aged, items, line, planned, write


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "plan.json"


def plans(tmp_path: Path) -> list[Plan]:
    """Plans of every kind: of rows, of items, of neither, under all that a policy can say."""
    ledger = tmp_path / "ledger.jsonl"
    write(ledger, [100, 50, 10, -5])
    odd = Item(id="odd \\xff", type="note", instant=Unknown("no time"), bytes=7)
    linked = aged("child", 1, derived_from="old")
    store = MemoryStore([aged("old", 100.25), aged("young", 1), odd, linked])
    rules = (
        Rule(name="pin", type="pinned", max_age=timedelta(days=1), action="keep"),
        Rule(name="old", max_age=timedelta(days=90), action="delete", cascade_derived=True),
        Rule(name="stale", max_unused=timedelta(hours=1)),
    )
    zone = timezone(timedelta(hours=5, minutes=30))
    return [
        planned(ledger_at(ledger), replace(KEEP, max_bytes=100, keep_last=1)),
        planned(ledger_at(ledger), KEEP, NOW.astimezone(zone)),
        planned(ledger_at(tmp_path / "none")),
        planned(store, Policy(rules=rules, max_count=2, max_bytes=15, breaker=1)),
        build(store, KEEP, NOW, name="store", vetoes={"old": "on hold"}),
        planned(MemoryStore()),
    ]


def test_a_plan_is_read_back_as_it_was_written(file: Path, tmp_path: Path) -> None:
    """Whatever it holds: instants of any zone, fractions, what is not known, odd names."""
    for made in plans(tmp_path):
        save(made, file)
        assert load(file) == made


def leaves(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The ways to all single values of a document."""
    if isinstance(value, dict | list) and value:
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        return [leaf for key, part in pairs for leaf in leaves(part, (*path, key))]
    return [path]


def test_no_value_of_a_plan_can_be_edited(file: Path, tmp_path: Path) -> None:
    """A change to any one of them is noticed, or is one that no plan could hold."""
    other = {
        str: "2020-01-01T00:00:00Z",
        bool: 7,
        int: 7_777,
        float: 0.123,
        type(None): 1,
        list: ["note"],
        dict: {"x": 1},
    }
    for made in plans(tmp_path):
        save(made, file)
        document = json.loads(file.read_bytes())
        for path in leaves(document):
            edited = json.loads(file.read_bytes())
            place = edited
            for key in path[:-1]:
                place = place[key]
            place[path[-1]] = other[type(place[path[-1]])]
            draft = tmp_path / "edited.json"
            draft.write_text(json.dumps(edited))
            with pytest.raises((PlanStale, ConfigError)):
                load(draft)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '"plan"', "{}", "[" * 100_000, "\xff", '{"format": 1}']
)
def test_what_is_no_plan_is_told(text: str, file: Path) -> None:
    """A file that holds something else is an error that says how to make a plan."""
    file.write_bytes(text.encode("latin-1"))
    with pytest.raises(ConfigError, match=r"this is not a plan .*Make one with `keepfor plan"):
        load(file)


@pytest.mark.parametrize("kind", ["missing", "folder"])
def test_where_no_plan_is_that_is_told(kind: str, file: Path) -> None:
    """A file that is not there, or is none, names itself."""
    if kind == "folder":
        file.mkdir()
    with pytest.raises(ConfigError, match=r"plan\.json: "):
        load(file)


@pytest.mark.parametrize("version", [0, 2, "1", None])
def test_a_plan_of_another_format_says_so(version: object, file: Path) -> None:
    """What another version of keepfor wrote is refused by that, not as edited."""
    save(planned(items(old=100)), file)
    file.write_text(json.dumps(json.loads(file.read_bytes()) | {"format": version}))
    with pytest.raises(PlanStale, match=f"format {version}, and this keepfor"):
        load(file)


def test_an_unknown_key_is_no_plan(file: Path) -> None:
    """A key that this version does not know could mean anything."""
    save(planned(items(old=100)), file)
    file.write_text(json.dumps(json.loads(file.read_bytes()) | {"force": True}))
    with pytest.raises(ConfigError, match="force"):
        load(file)


def test_a_plan_is_written_whole_or_not_at_all(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where writing fails, the plan that was there is there, and no draft."""
    made = planned(items(old=100))
    save(made, file)

    def fail(path: Path, data: bytes) -> int:
        with path.open("wb") as draft:
            draft.write(data[:9])
        raise OSError("disk full")

    monkeypatch.setattr(Path, "write_bytes", fail)
    with pytest.raises(OSError, match="disk full"):
        save(planned(items(young=1)), file)
    assert load(file) == made
    assert os.listdir(file.parent) == [file.name]


def test_deletes_are_counted_and_flags_are_not(tmp_path: Path) -> None:
    """For the breaker what counts is what would be gone."""
    rules = (
        Rule(name="old", max_age=timedelta(days=90), action="delete"),
        Rule(name="stale", max_age=timedelta(days=10)),
    )
    made = planned(items(old=100, stale=50, young=1), Policy(rules=rules))
    assert (made.deletes, made.survey.applied, made.exists) == (1, 2, True)
    assert made.share == pytest.approx(1 / 3)
    nothing = planned(MemoryStore())
    assert (nothing.deletes, nothing.share, nothing.exists) == (0, 0.0, False)
    assert not nothing.trips_breaker


@pytest.mark.parametrize(
    ("old", "young", "limit", "trips"),
    [
        (5, 5, 0.5, False),
        (6, 4, 0.5, True),
        (9, 0, 0.5, False),
        (10, 0, 1, False),
        (10, 0, None, False),
        (3, 7, 0.3, False),
        (29, 71, 0.29, False),
        (30, 70, 0.29, True),
    ],
)
def test_the_breaker_trips_above_its_limit(
    old: int, young: int, limit: float | None, trips: bool, tmp_path: Path
) -> None:
    """More than that fraction of ten or more, of rows and of items alike."""
    policy = replace(KEEP, breaker=limit)
    ages = [100] * old + [1] * young
    ledger = tmp_path / "ledger.jsonl"
    write(ledger, ages)
    store = MemoryStore(aged(f"i{number}", age) for number, age in enumerate(ages))
    assert planned(ledger_at(ledger), policy).trips_breaker is trips
    assert planned(store, policy).trips_breaker is trips


def test_vetoes_and_what_a_store_holds_stay() -> None:
    """An id that is vetoed, and an item that its store holds, are kept, with the reason."""
    store = MemoryStore([aged("a", 100), aged("b", 100, held="in use"), aged("c", 100)])
    made = build(store, KEEP, NOW, name="store", vetoes={"a": "cited"})
    said = {decision.id: (decision.action, decision.rule) for decision in made.decisions}
    assert said == {"a": ("keep", "cited"), "b": ("keep", "in use"), "c": ("delete", "keep_for")}


def test_what_rows_cannot_be_held_to_is_refused(tmp_path: Path) -> None:
    """A ledger under a policy that counts items is refused before a row is read."""
    with pytest.raises(BadPolicy, match="max_count"):
        planned(ledger_at(tmp_path / "ledger.jsonl"), Policy(max_count=3))


@pytest.mark.parametrize(
    ("policy", "settings"),
    [
        (Policy(rules=keep_for(timedelta(days=91))), {"time": "ts"}),
        (Policy(rules=keep_for(timedelta(days=90)), keep_last=1), {"time": "ts"}),
        (Policy(rules=keep_for(timedelta(days=90)), max_bytes=1), {"time": "ts"}),
        (Policy(rules=keep_for(timedelta(days=90)), breaker=0.4), {"time": "ts"}),
        (Policy(rules=keep_for(timedelta(days=90))), {"time": "at"}),
        (Policy(rules=keep_for(timedelta(days=90))), {"time": "ts", "unit": "s"}),
    ],
)
def test_whatever_bears_on_a_plan_changes_the_digest(
    policy: Policy, settings: dict[str, str]
) -> None:
    """Each part of a policy and each way of reading a store counts, and their order does not."""
    usual = Policy(rules=keep_for(timedelta(days=90)))
    assert policy_digest(policy, settings) != policy_digest(usual, {"time": "ts"})
    both = {"a": "1", "b": "2"}
    assert policy_digest(usual, both) == policy_digest(usual, dict(reversed(both.items())))


@pytest.mark.parametrize(
    "how",
    [
        {"unreadable": "keep"},
        {"field": "at"},
        {"unit": "s"},
        {"zone": timezone(timedelta(hours=2))},
    ],
)
def test_how_a_ledger_is_read_bears_on_its_plans(how: dict[str, Any], tmp_path: Path) -> None:
    """A plan does not hold for the same ledger read in another way."""
    path = tmp_path / "ledger.jsonl"
    unreadable = {"unreadable": how.pop("unreadable")} if "unreadable" in how else {}
    other = ledger_at(path, form=RowFormat(**how), **unreadable)
    usual = ledger_at(path)
    assert policy_digest(KEEP, other.settings) != policy_digest(KEEP, usual.settings)


def test_a_plan_says_when_and_by_what_it_was_made(tmp_path: Path) -> None:
    """The instant of making is the present one, whatever instant it judges by."""
    before = datetime.now(UTC)
    made = planned(items(old=100))
    assert before <= made.made <= datetime.now(UTC)
    assert (made.now, made.store, made.kind, made.target) == (
        NOW,
        "store",
        "memory",
        "memory:memory",
    )
    assert made.decisions[0] == Decision(
        id="old",
        action="delete",
        rule="keep_for",
        reason="age",
        evidence=made.decisions[0].evidence,
        fingerprint="f-old",
        bytes=10,
    )


def test_progress_is_told(tmp_path: Path) -> None:
    """A scan of rows, and one of items, says how far it is."""
    steps: list[tuple[int, int]] = []
    ledger = tmp_path / "ledger.jsonl"
    ledger.write_bytes(line(1))
    for store in (ledger_at(ledger), items(a=1)):
        steps.clear()
        build(store, KEEP, NOW, name="store", progress=lambda *step: steps.append(step))
        assert steps
        assert steps[-1][0] == steps[-1][1]
