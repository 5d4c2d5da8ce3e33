"""The counts of a plan for items add up, and tell how long it has been overdue."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from keepfor.counting import counted
from keepfor.history import window
from keepfor.items import Item, Survey
from keepfor.policy.decide import decide
from keepfor.policy.rules import Policy, Rule, keep_for
from keepfor.times import Known, Unknown

NOW = datetime(2026, 7, 26, tzinfo=UTC)
HOUR = timedelta(hours=1)
MTIME = "1 of 2 are dated by their file's mtime, which a copy or a restore may have changed"


def item(name: str, hours: float | None, source: str = "name", size: int = 10) -> Item:
    """An item of so many hours ago; None where its age is unknown."""
    known = Unknown("no date") if hours is None else Known(NOW - hours * HOUR, source)
    return Item(id=name, type="run", instant=known, bytes=size)


def survey(items: list[Item], **policy: Any) -> Survey:
    held_to = Policy(**policy)
    return counted(held_to, items, decide(held_to, items, NOW), NOW)


def test_the_counts_add_up() -> None:
    """Every item is kept or applied, and the other counts are of these."""
    items = [item("a", 100), item("b", 50), item("c", 20), item("d", 10), item("e", None)]
    items.append(item("f", -5))
    found = survey(items, rules=keep_for(timedelta(hours=48)), max_count=3)
    assert (found.scanned, found.kept, found.applied) == (6, 3, 3)
    assert (found.expired, found.over_ceiling) == (2, 1)
    assert (found.future, found.unknown) == (1, 1)
    assert (found.bytes_before, found.bytes_after) == (60, 30)
    assert (found.oldest, found.newest) == (NOW - 10 * HOUR, NOW + 5 * HOUR)
    assert found.due == NOW - 100 * HOUR


def test_flags_are_applied_and_give_nothing_back() -> None:
    """What would be flagged counts as applied, and its bytes stay."""
    stale = Rule(name="stale", max_age=timedelta(hours=48), action="flag")
    found = survey([item("a", 100), item("b", 1)], rules=(stale,))
    assert (found.kept, found.applied, found.expired) == (1, 1, 0)
    assert found.bytes_after == 20
    assert found.lag == 52 * HOUR


def test_nothing_due_is_not_late() -> None:
    """A store that holds what it may hold is not overdue, and has nothing to say."""
    found = survey([item("a", 1), item("b", 2)], rules=keep_for(timedelta(hours=2)), max_count=2)
    assert found.lag == timedelta()
    assert found.notes == []


def test_an_age_is_overdue_since_the_cutoff() -> None:
    """The oldest of what is too old has been due since it became so: 100 hours less 48."""
    found = survey([item("a", 100), item("b", 60), item("c", 1)], rules=keep_for(48 * HOUR))
    assert found.lag == 52 * HOUR
    assert window(found).lag == 52 * HOUR


def test_a_count_is_overdue_since_there_was_one_too_many() -> None:
    """With room for two, the first has been due since the third came, 7 hours ago."""
    items = [item("a", 9), item("b", 8), item("c", 7), item("d", 6)]
    assert survey(items, max_count=2).lag == 7 * HOUR


def test_what_a_rule_takes_makes_room() -> None:
    """What goes by its age is not in the way of the count: the count was first exceeded 6 h ago."""
    items = [item("a", 50), item("b", 8), item("c", 7), item("d", 6)]
    found = survey(items, rules=keep_for(49 * HOUR), max_count=2)
    assert found.lag == 6 * HOUR


def test_bytes_are_overdue_since_they_were_too_many() -> None:
    """With room for 25 bytes the third item was too much; an undated one was always there."""
    items = [item("a", 9), item("b", 8), item("c", 7), item("d", 6)]
    assert survey(items, max_bytes=25).lag == 7 * HOUR
    assert survey([*items, item("e", None)], max_bytes=25).lag == 8 * HOUR


def test_a_cutoff_is_told_where_one_rule_says_it_of_all() -> None:
    """With one rule by age there is one instant before which items go; else there is none."""
    old = Rule(name="old", max_age=48 * HOUR, action="delete")
    assert survey([], rules=(old,)).cutoff == NOW - 48 * HOUR
    for rules in [
        (),
        (old, Rule(name="older", max_age=50 * HOUR, action="delete")),
        (Rule(name="stale", max_age=48 * HOUR, action="flag"),),
        (Rule(name="runs", max_age=48 * HOUR, action="delete", type="run"),),
        (Rule(name="unused", max_age=48 * HOUR, max_unused=HOUR, action="delete"),),
        (Rule(name="unused", max_unused=48 * HOUR, action="delete"),),
        (Rule(name="some", max_age=48 * HOUR, action="delete", match_id="a*"),),
        (Rule(name="some", max_age=48 * HOUR, action="delete", match_fields={"a": "b"}),),
        (Rule(name="later", max_age=48 * HOUR, action="delete", after_flagged=HOUR),),
        (Rule(name="uncited", max_age=48 * HOUR, action="delete", keep_if_cited=True),),
    ]:
        assert survey([], rules=rules).cutoff is None


def test_each_reason_to_stay_is_named() -> None:
    """A ceiling that is not met says of everything that is out of its reach what put it there."""
    items = [item("a", 90), item("b", 80), item("c", 70), item("d", 60), item("e", None)]
    pin = Rule(name="pin", max_age=85 * HOUR, action="keep")
    spare = Rule(name="spare", max_unused=75 * HOUR, action="delete")
    held_to = Policy(rules=(pin, spare), max_count=1, keep_last=1)
    decisions = decide(held_to, items, NOW, {"c": "cited"})
    *_, note = counted(held_to, items, decisions, NOW).notes
    because = "1 held by keep_last, 1 pinned, 1 spared, 1 of unknown age, 1 not to be touched now"
    assert note == f"still 4 over max_count: {because}"


def test_a_delete_that_waits_for_a_flag_is_overdue_since_both_were_so() -> None:
    """Old for 52 hours too long, flagged for 2 hours too long: it could be taken 2 hours ago."""
    gone = Rule(name="gone", max_age=48 * HOUR, after_flagged=8 * HOUR, action="delete")
    flagged = Item(
        id="a",
        type="run",
        instant=Known(NOW - 100 * HOUR, "name"),
        flagged_by="stale",
        flagged_at=Known(NOW - 10 * HOUR, "flag"),
    )
    found = survey([flagged], rules=(gone,))
    assert (found.expired, found.lag) == (1, 2 * HOUR)
    assert found.cutoff is None


@pytest.mark.parametrize(("recalled", "late"), [(3, 3), (60, 52), (None, 0)])
def test_what_a_recall_handed_to_a_later_rule_is_overdue_since_then(
    recalled: int | None, late: int
) -> None:
    """Until it was recalled it was another rule's, which spared it for want of a recall."""
    unused = Rule(name="unused", max_unused=timedelta(hours=90), action="delete")
    stale = Rule(name="stale", max_age=timedelta(hours=48), action="flag")
    one = item("a", 100)
    if recalled is not None:
        one = msgspec.structs.replace(one, accessed=Known(NOW - recalled * HOUR, "log"))
    assert survey([one], rules=(unused, stale)).lag == late * HOUR


def test_missing_accesses_are_counted_where_a_rule_goes_by_disuse() -> None:
    """A warning says of how many items nobody knows whether they were ever recalled."""

    def notes(*rules: Rule) -> list[str]:
        items = [item("a", 1), item("b", 2), item("c", 3)]
        items.append(Item(id="d", type="note", instant=Known(NOW, "name")))
        recalled = Known(NOW - HOUR, "recall")
        items.append(Item(id="e", type="run", instant=Known(NOW, "name"), accessed=recalled))
        return survey(items, rules=rules).notes

    said = "have no recorded access: where a rule goes by disuse, their own age stood in"
    assert notes(Rule(name="r", max_unused=99 * HOUR)) == [f"4 of 5 {said}"]
    assert notes(Rule(name="r", max_unused=99 * HOUR, type="run")) == [f"3 of 4 {said}"]
    few = Rule(name="few", max_unused=99 * HOUR, match_id="a")
    assert notes(few) == [f"1 of 1 {said}"]
    assert notes(few, Rule(name="r", max_unused=99 * HOUR, type="note")) == [f"2 of 2 {said}"]
    assert notes(Rule(name="r", max_unused=99 * HOUR, match_id="e")) == []
    assert notes(Rule(name="r", max_age=99 * HOUR)) == []
    assert notes(Rule(name="r", max_unused=99 * HOUR, type="clip")) == []


def test_what_is_cited_is_named_as_a_reason_to_stay() -> None:
    """A ceiling that is not met says how many are out of its reach because others name them."""
    old = Rule(name="old", max_age=48 * HOUR, action="delete", keep_if_cited=True)
    citing = Item(id="b", type="run", instant=Known(NOW, "name"), cites=("a",))
    found = survey([item("a", 100), citing], rules=(old,), max_count=1, keep_last=1)
    assert found.notes == ["still 1 over max_count: 1 cited by others, 1 held by keep_last"]


def test_every_item_has_its_decision() -> None:
    """Items and decisions that do not match are a mistake, not a shorter plan."""
    with pytest.raises(ValueError, match="shorter"):
        counted(Policy(), [item("a", 1)], [], NOW)


@pytest.mark.parametrize(
    ("items", "policy", "note"),
    [
        (
            [item("a", 1), item("b", 2)],
            {"max_count": 1, "keep_last": 1},
            None,
        ),
        (
            [item("a", None), item("b", None), item("c", 2)],
            {"max_count": 1},
            "still 1 over max_count: 2 of unknown age",
        ),
        (
            [item("a", 1), item("b", 2)],
            {"max_bytes": 5, "keep_last": 1},
            "still 5 over max_bytes: 1 held by keep_last",
        ),
        (
            [item("a", 1, source="mtime"), item("b", 2)],
            {"max_count": 2},
            MTIME,
        ),
    ],
)
def test_what_a_person_should_know_is_said(
    items: list[Item], policy: dict[str, Any], note: str | None
) -> None:
    """A ceiling that is not met says by how much and why, and a fallback is named."""
    assert survey(items, **policy).notes == ([] if note is None else [note])
