"""Why an item is decided as it is, and what becomes of it next."""

from __future__ import annotations

from typing import Any

import pytest

from keepfor.errors import UnknownItem
from keepfor.items import Item
from keepfor.policy.decide import decide
from keepfor.policy.explain import Opinion, explain
from keepfor.policy.rules import Policy
from keepfor.times import Known
from tests.policy.build import NOW, at, days, delete, flag, item, keep

UNUSED = delete("unused", type="note", max_unused=days(180))
STALE = flag("stale", type="note", max_age=days(90))
SESSIONS = delete("sessions", type="session", max_age=days(365), cascade_derived=True)
EVOLVE = Policy(rules=(UNUSED, STALE, SESSIONS))


def next_of(policy: Policy, *items: Item, **more: Any) -> tuple[str, str, str | None, str] | None:
    """When the first of the items changes, and into what."""
    change = explain(policy, items, NOW, items[0].id, **more).next
    if change is None:
        return None
    said = change.decision
    return change.due.date().isoformat(), said.action, said.rule, said.reason


def test_every_rule_is_heard_with_its_numbers() -> None:
    """Each rule says what it thinks of the item, in their order, and when it is due."""
    thing = item("a", "2026-03-01", "2026-07-01")
    told = explain(EVOLVE, [item("b"), thing], NOW, "a")
    assert told.decision == decide(EVOLVE, [thing], NOW)[0]
    assert told.opinions == (
        Opinion(
            rule="unused",
            action="delete",
            answer="no",
            reason="unused",
            evidence={
                "threshold": "180d",
                "unused_days": 25.0,
                "instant": "2026-07-01T00:00:00+00:00",
                "source": "recall",
                "cutoff": "2026-01-27T00:00:00+00:00",
            },
            due=at("2026-12-28"),  # 30 days of July, 31, 30, 31, 30, and 28 of December
        ),
        Opinion(
            rule="stale",
            action="flag",
            answer="yes",
            reason="age",
            evidence={
                "threshold": "90d",
                "age_days": 147.0,
                "instant": "2026-03-01T00:00:00+00:00",
                "source": "mtime",
                "cutoff": "2026-04-27T00:00:00+00:00",
            },
            due=at("2026-05-30"),  # 30 days of March, 30, and 30 of May
        ),
        Opinion(rule="sessions", action="delete", answer="no", reason="type", evidence={}),
    )


def test_a_kept_item_is_told_what_would_take_it_next_and_when() -> None:
    """A young note is flagged at 90 days, though the delete stands first: that is due later."""
    thing = item("a", "2026-07-01", "2026-07-01")
    assert explain(EVOLVE, [thing], NOW, "a").decision.reason == "none"
    assert next_of(EVOLVE, thing) == ("2026-09-29", "flag", "stale", "age")


def test_exactly_on_its_instant_nothing_has_changed_yet() -> None:
    """A plan made at the due instant still says the old, and one made later the new."""
    thing = item("a", "2026-07-01", "2026-07-01")
    change = explain(EVOLVE, [thing], NOW, "a").next
    assert change is not None
    assert decide(EVOLVE, [thing], change.due)[0].reason == "none"
    assert decide(EVOLVE, [thing], change.due + days(1 / 86_400))[0].rule == "stale"
    on_the_cutoff = item("a", "2026-04-27", "2026-07-01")
    assert next_of(EVOLVE, on_the_cutoff) == ("2026-07-26", "flag", "stale", "age")


def test_a_flag_that_stands_is_followed_by_what_stands_above_it() -> None:
    """Of a flagged note only an earlier rule can make something else."""
    thing = item("a", "2026-01-01", "2026-07-01", flagged_by="stale")
    assert next_of(EVOLVE, thing) == ("2026-12-28", "delete", "unused", "unused")
    below = Policy(rules=(STALE, UNUSED))
    assert next_of(below, thing) is None


def test_what_is_flagged_now_is_deleted_a_fortnight_later() -> None:
    """The explanation of a flag looks ahead as if this plan were carried out."""
    gone = delete("gone", type="note", max_age=days(90), after_flagged=days(14))
    policy = Policy(rules=(gone, STALE))
    thing = item("a", "2026-01-01")
    assert explain(policy, [thing], NOW, "a").decision.action == "flag"
    assert next_of(policy, thing) == ("2026-08-09", "delete", "gone", "age")
    flagged: dict[str, Any] = {"flagged_by": "stale", "flagged_at": Known(at("2026-07-20"), "flag")}
    assert next_of(policy, item("a", "2026-01-01", **flagged)) == (
        "2026-08-03",
        "delete",
        "gone",
        "age",
    )


def test_a_rule_that_becomes_due_and_changes_nothing_is_passed_over() -> None:
    """Below the rule that flagged a note another one comes due, and takes nothing of it.

    The note's session is held, so that nothing takes the note along.
    """
    rules = (*EVOLVE.rules, flag("later", max_age=days(160)))
    thing = item("a", "2026-03-01", "2026-07-01", derived_from="s")
    source = item("s", "2025-01-01", type="session")
    found = next_of(Policy(rules=rules), thing, source, vetoes={"s": "on hold"})
    assert found == ("2026-12-28", "delete", "unused", "unused")


def test_what_goes_now_has_nothing_to_come() -> None:
    """A deleted item has no next."""
    assert next_of(EVOLVE, item("a", "2025-01-01", "2025-01-01")) is None
    late = Policy(rules=(delete("late", max_age=days(365)), delete("old", max_age=days(90))))
    assert next_of(late, item("a", "2026-03-01")) is None


def test_a_sparing_is_told_as_what_comes_next() -> None:
    """Where a rule would take an item and spare it, that is what it says."""
    assert next_of(Policy(rules=(UNUSED,)), item("a", "2026-07-01")) == (
        "2026-12-28",
        "keep",
        "unused",
        "spared",
    )


def test_a_note_is_told_when_its_session_takes_it_along() -> None:
    """The session's age counts for the note that was made from it."""
    thing = item("a", "2026-07-01", derived_from="s/old")
    policy = Policy(rules=(SESSIONS,))
    source = item("s/old", "2026-01-01", type="session")
    assert next_of(policy, thing, source) == ("2027-01-01", "delete", "sessions", "cascade:old")
    assert next_of(policy, thing) is None


def test_what_is_cited_is_told_when_that_ends() -> None:
    """An item that is spared for a citation goes when the one that cites it does."""
    policy = Policy(rules=(delete("old", max_age=days(90), keep_if_cited=True),))
    thing, citing = item("a", "2026-01-01"), item("b", "2026-07-01", cites=("a",))
    assert explain(policy, [thing, citing], NOW, "a").decision.reason == "cited"
    assert next_of(policy, thing, citing) == ("2026-09-29", "delete", "old", "age")


def test_what_is_out_of_reach_has_nothing_to_come() -> None:
    """A pin, a floor, a veto, and an age that cannot be read are not waited out."""
    policy = Policy(rules=(delete("old", max_age=days(90)),), keep_last=1)
    thing = item("a", "2026-07-01")
    assert next_of(policy, thing) is None
    assert next_of(Policy(rules=(keep("pin"), *policy.rules)), thing) is None
    plain = Policy(rules=policy.rules)
    assert next_of(plain, thing, vetoes={"a": "on hold"}) is None
    assert explain(plain, [thing], NOW, "a", {"a": "on hold"}).decision.reason == "veto"
    assert next_of(plain, item("a")) is None
    assert next_of(plain, item("a", "9999-12-31")) is None
    # 90 days before the last instant that there is: 29 days of October, 30, and 31.
    assert next_of(plain, item("a", "9999-10-02T23:59:59.999999")) is None
    assert next_of(plain, thing) == ("2026-09-29", "delete", "old", "age")


def test_an_item_that_is_not_there_is_refused() -> None:
    """An id with a slip in it explains nothing."""
    with pytest.raises(UnknownItem) as refusal:
        explain(EVOLVE, [item("a")], NOW, "b")
    assert str(refusal.value) == (
        "There is no 'b' among the 1 items of the store. Write an id as `keepfor plan` shows it."
    )
    assert refusal.value.exit_code == 2
