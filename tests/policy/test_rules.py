"""One rule, one item, one instant: the verdict and its numbers; and what a policy may not say."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import pytest

from keepfor.errors import BadPolicy
from keepfor.items import Cut, Item, Terms
from keepfor.policy.decide import decide
from keepfor.policy.rules import Policy, Rule, keep_for, keep_type, terms
from keepfor.policy.verdicts import due, speaks_of, verdict
from keepfor.times import Known, Unknown
from tests.policy.build import NOW, at, days, delete, flag, item, keep

ON_THE_CUTOFF = "2026-04-27T00:00:00"
JUST_OLDER = "2026-04-26T23:59:59.999999"
JUST_YOUNGER = "2026-04-27T00:00:00.000001"


# --- verdicts -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("when", "answer"),
    [
        (JUST_OLDER, "yes"),
        (ON_THE_CUTOFF, "no"),
        (JUST_YOUNGER, "no"),
        ("2026-07-26T00:00:00", "no"),
        ("2026-07-26T00:00:01", "no"),
        ("9999-12-31T23:59:59", "no"),
        ("0001-01-01T00:00:00", "yes"),
        (None, "unknown"),
    ],
)
def test_only_what_is_strictly_older_expires(when: str | None, answer: str) -> None:
    """On the cutoff stays, a future item is simply young, an unknown age is neither."""
    said = verdict(flag(max_age=days(90)), item(when=when), NOW)
    assert (said.answer, said.reason, said.degraded) == (answer, "age", False)


@pytest.mark.parametrize(
    ("used", "answer"),
    [(JUST_OLDER, "yes"), (ON_THE_CUTOFF, "no"), (JUST_YOUNGER, "no"), ("2027-01-01", "no")],
)
def test_disuse_counts_from_the_last_recall(used: str, answer: str) -> None:
    """A recorded access settles disuse whatever the item's own age, and needs no stand-in."""
    for when in (None, "2020-01-01", "2026-07-25"):
        said = verdict(flag(max_unused=days(90)), item(when=when, used=used), NOW)
        assert (said.answer, said.reason, said.degraded) == (answer, "unused", False)


@pytest.mark.parametrize(
    ("when", "answer"),
    [(JUST_OLDER, "yes"), (ON_THE_CUTOFF, "no"), (JUST_YOUNGER, "no"), (None, "unknown")],
)
def test_without_a_recall_the_items_own_age_stands_in(when: str | None, answer: str) -> None:
    """Where no access was ever recorded, disuse goes by the item's age and says so."""
    said = verdict(flag(max_unused=days(90)), item(when=when), NOW)
    assert (said.answer, said.reason, said.degraded) == (answer, "unused", True)


@pytest.mark.parametrize(
    ("when", "used", "answer", "reason"),
    [
        # max_age 90 d: cutoff 2026-04-27; max_unused 30 d: cutoff 2026-06-26.
        ("2026-04-26", "2026-07-25", "yes", "age"),
        ("2026-04-26", "2026-01-01", "yes", "age"),
        ("2026-05-01", "2026-06-25", "yes", "unused"),
        ("2026-05-01", None, "yes", "unused"),
        (None, "2026-06-25", "yes", "unused"),
        # An age that is unknown might be over: the young recall does not settle it.
        (None, "2026-07-25", "unknown", "age"),
        (None, None, "unknown", "age"),
        # Both say no: the one that is due first is named. 4 and 29 days are left, then 4 and 6.
        ("2026-05-01", "2026-07-25", "no", "age"),
        ("2026-07-25", "2026-07-25", "no", "unused"),
        ("2026-05-01", "2026-07-02", "no", "age"),
        ("2026-05-05", "2026-07-02", "no", "unused"),
    ],
)
def test_either_threshold_is_enough_and_age_is_asked_first(
    when: str | None, used: str | None, answer: str, reason: str
) -> None:
    """With both thresholds one yes is a yes, and a no takes two."""
    rule = flag(max_age=days(90), max_unused=days(30))
    said = verdict(rule, item(when=when, used=used), NOW)
    assert (said.answer, said.reason) == (answer, reason)


def test_a_rule_speaks_of_its_own_type_only() -> None:
    """A rule with a type says no to every other type, whatever the age, unknown ages too."""
    rule = delete(type="session", max_age=days(90))
    for when in ("2020-01-01", None):
        said = verdict(rule, item(when=when, type="note"), NOW)
        assert (said.answer, said.reason, said.evidence()) == ("no", "type", {})
    assert verdict(rule, item(when="2020-01-01", type="session"), NOW).answer == "yes"
    assert verdict(delete(max_age=days(90)), item(when="2020-01-01", type=""), NOW).answer == "yes"


def test_a_verdict_names_the_numbers_of_age() -> None:
    """The evidence holds the age, the threshold, the cutoff, and where the timestamp came from."""
    said = verdict(flag(max_age=days(90)), item(when="2026-03-25T12:00:00"), NOW)
    assert said.evidence() == {
        "threshold": "90d",
        "age_days": 122.5,  # 6.5 of March, 30, 31, 30, and 25 of July
        "instant": "2026-03-25T12:00:00+00:00",
        "source": "mtime",
        "cutoff": "2026-04-27T00:00:00+00:00",
    }


def test_a_verdict_names_the_numbers_of_disuse() -> None:
    """The evidence of disuse is that of the last recall, not of the item's age."""
    rule = flag(max_age=days(365), max_unused=days(180))
    said = verdict(rule, item(when="2026-01-01", used="2026-01-16"), NOW)
    assert said.evidence() == {
        "threshold": "180d",
        "unused_days": 191.0,
        "instant": "2026-01-16T00:00:00+00:00",
        "source": "recall",
        "cutoff": "2026-01-27T00:00:00+00:00",
    }


def test_a_stand_in_is_named_in_the_evidence() -> None:
    """A verdict on disuse without a recorded access says that the access is missing."""
    said = verdict(flag(max_unused=days(180)), item(when="2026-01-26T23:00:00"), NOW)
    assert said.evidence() == {
        "threshold": "180d",
        "unused_days": 180.042,  # and an hour, to the third digit
        "instant": "2026-01-26T23:00:00+00:00",
        "source": "mtime",
        "cutoff": "2026-01-27T00:00:00+00:00",
        "access": "missing",
    }


def test_an_unknown_verdict_says_what_is_missing() -> None:
    """Where nothing can be said, the evidence holds why."""
    said = verdict(flag(max_age=days(90)), item(), NOW)
    assert said.evidence() == {"threshold": "90d", "why": "mtime is missing"}
    said = verdict(flag(max_unused=days(90)), item(), NOW)
    assert said.evidence() == {"threshold": "90d", "why": "mtime is missing", "access": "missing"}


def test_a_young_item_has_evidence_too() -> None:
    """A no holds its numbers, so that one can say when it will turn into a yes."""
    said = verdict(flag(max_age=days(90)), item(when="2026-07-27"), NOW)
    assert said.answer == "no"
    assert said.evidence()["age_days"] == -1.0
    assert said.evidence()["cutoff"] == "2026-04-27T00:00:00+00:00"


def test_the_earliest_times_are_within_reach() -> None:
    """Thresholds that reach back before the calendar begins match nothing, and raise nothing."""
    now = at("0050-01-01")
    said = verdict(flag(max_age=days(36_500)), item(when="0001-01-01"), now)
    assert said.answer == "no"
    assert said.evidence()["cutoff"] == "0001-01-01T00:00:00+00:00"


# --- what narrows a rule ------------------------------------------------------------------


def test_a_rule_with_a_glob_speaks_of_such_ids_only() -> None:
    """Another id is no match, however old, and the evidence names what was not met."""
    rule = delete(match_id="note/*", max_age=days(90))
    assert verdict(rule, item("note/a", "2020-01-01"), NOW).answer == "yes"
    said = verdict(rule, item("memo/a", "2020-01-01"), NOW)
    assert (said.answer, said.reason, said.evidence()) == ("no", "match", {"unmet": "id"})
    assert verdict(rule, item("memo/a"), NOW).answer == "no"


def test_a_rule_on_fields_needs_each_of_them_to_be_equal() -> None:
    """A value that differs, if only in case, and a name that is missing, are no match."""
    rule = delete(match_fields={"topic": "a", "author": "me"}, max_age=days(90))
    for fields, unmet in (
        ({"topic": "a", "author": "me", "more": "x"}, None),
        ({"topic": "A", "author": "me"}, "topic"),
        ({"topic": "a", "author": "you"}, "author"),
        ({"topic": "a"}, "author"),
        ({"topic": "a", "author": ""}, "author"),
        ({}, "topic"),
    ):
        said = verdict(rule, item(when="2020-01-01", fields=fields), NOW)
        assert said.answer == ("yes" if unmet is None else "no")
        assert said.evidence().get("unmet") == unmet


def test_a_pin_may_be_of_one_id() -> None:
    """A pin without any threshold pins what it matches, and nothing else."""
    rule = keep(match_id="a")
    assert verdict(rule, item("a"), NOW).reason == "pinned"
    assert verdict(rule, item("b"), NOW).answer == "no"


@pytest.mark.parametrize(
    ("flag_of_item", "answer", "reason", "evidence"),
    [
        # 14 days before it is 2026-07-12.
        (
            {"flagged_by": "x", "flagged_at": Known(at("2026-07-11T11:00:00"), "flag")},
            "yes",
            "age",
            {
                "after_flagged": "14d",
                "flagged_days": 14.542,  # and 13 hours, to the third digit
                "flagged_at": "2026-07-11T11:00:00+00:00",
            },
        ),
        (
            {"flagged_by": "x", "flagged_at": Known(at("2026-07-12"), "flag")},
            "no",
            "flagged",
            {
                "after_flagged": "14d",
                "flagged_days": 14.0,
                "flagged_at": "2026-07-12T00:00:00+00:00",
            },
        ),
        (
            {"flagged_by": "x", "flagged_at": Known(at("2027-07-12"), "flag")},
            "no",
            "flagged",
            {"after_flagged": "14d", "flagged_days": -351.0},
        ),
        (
            {"flagged_by": "x", "flagged_at": Unknown("flag is 'soon'")},
            "unknown",
            "flagged",
            {"after_flagged": "14d", "why": "flag is 'soon'"},
        ),
        ({}, "no", "flagged", {"after_flagged": "14d", "why": "it is not flagged"}),
        (
            {"flagged_at": Known(at("2026-01-01"), "flag")},
            "unknown",
            "flagged",
            {
                "after_flagged": "14d",
                "why": "it says when it was flagged, and not by which rule",
            },
        ),
    ],
)
def test_only_a_flag_that_stood_for_strictly_longer_counts(
    flag_of_item: dict[str, Any], answer: str, reason: str, evidence: dict[str, Any]
) -> None:
    """A young flag, one ahead, one of unreadable date, half a flag and none take nothing."""
    rule = delete(max_age=days(90), after_flagged=days(14))
    said = verdict(rule, item(when="2026-01-01", **flag_of_item), NOW)
    assert (said.answer, said.reason) == (answer, reason)
    assert evidence.items() <= said.evidence().items()
    assert ("threshold" in said.evidence()) is (answer == "yes")


@pytest.mark.parametrize(
    ("when", "flagged_at", "answer", "reason"),
    [
        # Each of the two may settle it with a no; else one unknown is enough to be unknown.
        ("2026-07-01", Known(at("2026-01-01"), "flag"), "no", "age"),
        ("2026-07-01", Unknown("torn"), "no", "age"),
        (None, Known(at("2026-07-20"), "flag"), "no", "flagged"),
        (None, Known(at("2026-01-01"), "flag"), "unknown", "age"),
        (None, Unknown("torn"), "unknown", "age"),
    ],
)
def test_a_flag_is_a_further_condition(
    when: str | None, flagged_at: Any, answer: str, reason: str
) -> None:
    """A flag that stood for long makes nothing old, and nothing whose age is unknown."""
    rule = delete(max_age=days(90), after_flagged=days(14))
    thing = item(when=when, flagged_by="x", flagged_at=flagged_at)
    said = verdict(rule, thing, NOW)
    assert (said.answer, said.reason) == (answer, reason)
    if said.answer == "unknown":
        assert said.evidence()["why"] == "mtime is missing"
    assert verdict(rule, item(when=None), NOW).answer == "no"


@pytest.mark.parametrize(
    ("rule", "thing", "expected"),
    [
        (flag(max_age=days(90)), item(when="2026-07-01"), "2026-09-29"),
        (flag(max_age=days(90)), item(when="2026-01-01"), "2026-04-01"),
        (flag(max_age=days(90)), item(), None),
        (flag(max_unused=days(90)), item(when="2020-01-01", used="2026-07-01"), "2026-09-29"),
        (flag(max_unused=days(90)), item(when="2026-07-01"), "2026-09-29"),
        (flag(max_unused=days(90)), item(), None),
        # The first of two.
        (
            flag(max_age=days(90), max_unused=days(30)),
            item(when="2026-07-01", used="2026-07-01"),
            "2026-07-31",
        ),
        (
            flag(max_age=days(90), max_unused=days(30)),
            item(when="2026-04-10", used="2026-07-25"),
            "2026-07-09",
        ),
        (flag(max_age=days(90), max_unused=days(30)), item(used="2026-07-01"), "2026-07-31"),
        # The later of a threshold and a flag.
        (
            delete(max_age=days(90), after_flagged=days(14)),
            item(when="2026-01-01", flagged_by="x", flagged_at=Known(at("2026-07-20"), "flag")),
            "2026-08-03",
        ),
        (
            delete(max_age=days(90), after_flagged=days(14)),
            item(when="2026-07-01", flagged_by="x", flagged_at=Known(at("2026-07-01"), "flag")),
            "2026-09-29",
        ),
        (delete(max_age=days(90), after_flagged=days(14)), item(when="2026-01-01"), None),
        # Never: of another type, another id, pinned, and beyond the calendar.
        (flag(type="session", max_age=days(90)), item(when="2026-07-01"), None),
        (flag(match_id="b", max_age=days(90)), item(when="2026-07-01"), None),
        (keep(), item(when="2026-07-01"), None),
        (flag(max_age=days(90)), item(when="9999-12-01"), None),
    ],
)
def test_a_rule_says_when_it_is_due(rule: Rule, thing: Item, expected: str | None) -> None:
    """The instant after which it says yes of the item as it is; none where that never comes."""
    assert due(rule, thing) == (None if expected is None else at(expected))


def test_a_rule_speaks_of_what_its_type_and_match_say() -> None:
    """Thresholds aside, type, id and fields say whether a rule is about an item at all."""
    thing = item("a", fields={"k": "v"})
    for rule, about in (
        (flag(max_age=days(1)), True),
        (flag(max_age=days(1), type="note", match_id="?", match_fields={"k": "v"}), True),
        (flag(max_age=days(1), type="session"), False),
        (flag(max_age=days(1), match_id="b"), False),
        (flag(max_age=days(1), match_fields={"k": "w"}), False),
    ):
        assert speaks_of(rule, thing) is about


def test_local_times_are_compared_by_what_passed() -> None:
    """A `now` of a place that set its clocks forward makes nothing an hour older."""
    # Berlin went from UTC+1 to UTC+2 on 2026-03-29.
    now = datetime(2026, 3, 30, tzinfo=ZoneInfo("Europe/Berlin"))  # 22:00 UTC on the day before
    rule = delete(max_age=days(2))
    for when, answer in (
        ("2026-03-27T21:59:59", "yes"),
        ("2026-03-27T22:00:00", "no"),
        ("2026-03-27T22:30:00", "no"),
    ):
        said = verdict(rule, item(when=when), now)
        assert (said.answer, said.evidence()["cutoff"]) == (answer, "2026-03-27T22:00:00+00:00")
        (decision,) = decide(Policy(rules=(rule,)), [item(when=when)], now)
        assert decision.action == ("delete" if answer == "yes" else "keep")


# --- what a rule may not say --------------------------------------------------------------


ABOVE_ZERO = "Give a duration above zero, such as 90d."
THRESHOLD = "Give it `max_age` or `max_unused`."
OF_DELETE = "It belongs to `action: delete`."
TEXTS = "Write names and the texts that they have to be equal to."
AN_ID = "Write the id as reports show it, with `*` for any run of characters."
ON_DISUSE = "It belongs to `action: delete` with `max_unused`."


@pytest.mark.parametrize(
    ("settings", "what", "fix"),
    [
        ({}, "it has no threshold", THRESHOLD),
        ({"action": "delete"}, "it has no threshold", THRESHOLD),
        (
            {"max_age": days(1), "action": "erase"},
            "`action: erase` is unknown",
            "Write keep, flag or delete.",
        ),
        (
            {"max_age": days(1), "action": "Delete"},
            "`action: Delete` is unknown",
            "Write keep, flag or delete.",
        ),
        ({"max_age": days(0)}, "its `max_age` is datetime.timedelta(0)", ABOVE_ZERO),
        ({"max_age": days(-1)}, "its `max_age` is datetime.timedelta(days=-1)", ABOVE_ZERO),
        ({"max_age": 90}, "its `max_age` is 90", ABOVE_ZERO),
        (
            {"max_age": days(1), "max_unused": days(0)},
            "its `max_unused` is datetime.timedelta(0)",
            ABOVE_ZERO,
        ),
        ({"max_unused": "90d"}, "its `max_unused` is '90d'", ABOVE_ZERO),
        (
            {"max_age": days(1), "action": "delete", "on_missing_access_signal": "flag"},
            "`on_missing_access_signal` says nothing here",
            ON_DISUSE,
        ),
        (
            {"max_unused": days(1), "action": "flag", "on_missing_access_signal": "delete"},
            "`on_missing_access_signal` says nothing here",
            ON_DISUSE,
        ),
        (
            {"max_unused": days(1), "action": "delete", "on_missing_access_signal": "spare"},
            "`on_missing_access_signal: spare` is unknown",
            "Write skip, flag or delete.",
        ),
        (
            {"max_age": days(1), "action": "flag", "cascade_derived": True},
            "`cascade_derived` says nothing here",
            "It belongs to `action: delete`.",
        ),
        (
            {"max_age": days(1), "action": "keep", "cascade_derived": True},
            "`cascade_derived` says nothing here",
            "It belongs to `action: delete`.",
        ),
        (
            {"max_age": days(1), "action": "flag", "after_flagged": days(1)},
            "`after_flagged` says nothing here",
            OF_DELETE,
        ),
        (
            {"max_age": days(1), "action": "keep", "keep_if_cited": True},
            "`keep_if_cited` says nothing here",
            OF_DELETE,
        ),
        # A flag is no threshold.
        ({"after_flagged": days(1), "action": "delete"}, "it has no threshold", THRESHOLD),
        (
            {"max_age": days(1), "action": "delete", "after_flagged": days(0)},
            "its `after_flagged` is datetime.timedelta(0)",
            ABOVE_ZERO,
        ),
        (
            {
                "max_unused": days(1),
                "action": "delete",
                "after_flagged": days(1),
                "on_missing_access_signal": "flag",
            },
            "`on_missing_access_signal: flag` says nothing beside `after_flagged`",
            "All that it matches is flagged: write skip or delete.",
        ),
        (
            {"max_age": days(1), "match_id": ""},
            "its `match` on the id is '': it is no text",
            AN_ID,
        ),
        (
            {"max_age": days(1), "match_id": 7},
            "its `match` on the id is 7: it is no text",
            AN_ID,
        ),
        *(
            (
                {"max_age": days(1), "match_id": pattern},
                f"its `match` on the id is {pattern!r}: brackets have no meaning here",
                AN_ID,
            )
            for pattern in ("a[bc]", "a[", "a]", "a{b", "b}")
        ),
        ({"max_age": days(1), "match_fields": ["a"]}, "its `match` is ['a']", TEXTS),
        ({"max_age": days(1), "match_fields": {"": "a"}}, "its `match` says '': 'a'", TEXTS),
        ({"max_age": days(1), "match_fields": {"a": ""}}, "its `match` says 'a': ''", TEXTS),
        ({"max_age": days(1), "match_fields": {"a": 3}}, "its `match` says 'a': 3", TEXTS),
        ({"max_age": days(1), "match_fields": {3: "a"}}, "its `match` says 3: 'a'", TEXTS),
    ],
)
def test_a_rule_that_could_not_mean_anything_is_refused(
    settings: dict[str, Any], what: str, fix: str
) -> None:
    """A slip in a rule is refused when it is made, with what to write instead."""
    with pytest.raises(BadPolicy) as refusal:
        Rule(**({"name": "r"} | settings))
    assert str(refusal.value) == f"The policy cannot be kept: rule 'r': {what}. {fix}"


def test_a_rule_has_a_name() -> None:
    """Every decision names its rule, so a rule without a name is refused."""
    with pytest.raises(BadPolicy) as refusal:
        Rule(name="", max_age=days(1))
    assert str(refusal.value) == (
        "The policy cannot be kept: a rule has no name. Give each rule a `name` of its own."
    )


def test_a_rule_is_checked_however_it_is_made() -> None:
    """Copies with a change, and rules read from a file, are held to the same."""
    with pytest.raises(BadPolicy, match="no threshold"):
        msgspec.structs.replace(flag(max_age=days(1)), max_age=None)
    with pytest.raises(msgspec.ValidationError, match="no threshold"):
        msgspec.convert({"name": "r"}, Rule)


@pytest.mark.parametrize("missing", ["skip", "flag", "delete"])
def test_a_delete_on_disuse_may_say_what_to_do_without_a_signal(missing: Any) -> None:
    """All three answers are allowed where they mean something, and skip is the default."""
    rule = delete(max_unused=days(1), on_missing_access_signal=missing, cascade_derived=True)
    assert rule.on_missing_access_signal == missing
    assert delete(max_unused=days(1)).on_missing_access_signal == "skip"
    assert Rule(name="r", max_age=days(1)).action == "flag"


OWN_NAME = "Give each rule a name of its own."
WHOLE = "Write a whole number above zero, or leave it out for no ceiling."
NEWEST = "Write how many of the newest to keep, or 0 for no floor."
OF_EACH = "Write types, and how many of the newest of each to keep."
FRACTION = "Write a fraction of the store, such as 0.5, or off."


@pytest.mark.parametrize(
    ("settings", "what", "fix"),
    [
        ({"rules": (flag("a", max_age=days(1)),) * 2}, "2 rules are named 'a'.", OWN_NAME),
        (
            {"rules": (*keep_for(days(90)), flag("keep_for", max_age=days(1)))},
            "2 rules are named 'keep_for'.",
            OWN_NAME,
        ),
        ({"max_count": 0}, "`max_count` is 0.", WHOLE),
        ({"max_count": -1}, "`max_count` is -1.", WHOLE),
        ({"max_count": True}, "`max_count` is True.", WHOLE),
        ({"max_count": 2.5}, "`max_count` is 2.5.", WHOLE),
        ({"max_bytes": 0}, "`max_bytes` is 0.", WHOLE),
        ({"max_bytes": "25MiB"}, "`max_bytes` is '25MiB'.", WHOLE),
        ({"keep_last": -1}, "`keep_last` is -1.", NEWEST),
        ({"keep_last": None}, "`keep_last` is None.", NEWEST),
        ({"keep_last": True}, "`keep_last` is True.", NEWEST),
        (
            {"keep_last": 11, "max_count": 10},
            "`keep_last` (11) is above `max_count` (10).",
            "Lower the one or raise the other.",
        ),
        (
            {"keep_last_of": {"a": 6, "b": 5}, "max_count": 10},
            "`keep_last` (11) is above `max_count` (10).",
            "Lower the one or raise the other.",
        ),
        ({"keep_last_of": 3}, "`keep_last_of` is 3.", OF_EACH),
        ({"keep_last_of": {"a": 0}}, "`keep_last` of 'a' is 0.", OF_EACH),
        ({"keep_last_of": {"a": True}}, "`keep_last` of 'a' is True.", OF_EACH),
        ({"keep_last_of": {"": 1}}, "`keep_last` of '' is 1.", OF_EACH),
        ({"keep_last_of": {1: 1}}, "`keep_last` of 1 is 1.", OF_EACH),
        ({"breaker": 0}, "`breaker` is 0.", FRACTION),
        ({"breaker": -0.5}, "`breaker` is -0.5.", FRACTION),
        ({"breaker": 1.01}, "`breaker` is 1.01.", FRACTION),
        ({"breaker": 50}, "`breaker` is 50.", FRACTION),
        ({"breaker": True}, "`breaker` is True.", FRACTION),
        ({"breaker": float("nan")}, "`breaker` is nan.", FRACTION),
        ({"breaker": "off"}, "`breaker` is 'off'.", FRACTION),
    ],
)
def test_a_policy_that_contradicts_itself_is_refused(
    settings: dict[str, Any], what: str, fix: str
) -> None:
    """Bounds that could not hold, or that look like a slip, are refused with a way out."""
    with pytest.raises(BadPolicy) as refusal:
        Policy(**settings)
    assert str(refusal.value) == f"The policy cannot be kept: {what} {fix}"


def test_a_policy_may_use_its_bounds_to_the_full() -> None:
    """What lies on a bound is allowed: a floor as high as the ceiling, a breaker of all."""
    Policy(keep_last=10, max_count=10)
    Policy(keep_last=10, keep_last_of={"a": 6, "b": 4}, max_count=10)
    Policy(keep_last_of={"a": 1}, max_count=1)
    Policy(keep_last=1, breaker=1)
    Policy(max_count=1, max_bytes=1, breaker=0.001)
    Policy(breaker=None)
    assert Policy() == Policy(rules=(), max_count=None, max_bytes=None, keep_last=0, breaker=0.5)


# --- terms for rows -----------------------------------------------------------------------


def test_keep_for_is_short_for_one_rule() -> None:
    """`keep_for: 90d` deletes by age under that name, and `forever` says nothing."""
    assert keep_for(days(90)) == (Rule(name="keep_for", max_age=days(90), action="delete"),)
    assert keep_for(None) == ()


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (Policy(), Terms(now=NOW)),
        (Policy(rules=keep_for(days(90))), Terms(now=NOW, cutoff=at("2026-04-27"))),
        # Of several, the shortest decides: what it takes is gone, whatever the others say.
        (
            Policy(
                rules=(delete("a", max_age=days(365)), delete("b", max_age=days(30))), keep_last=7
            ),
            Terms(now=NOW, rule="b", cutoff=at("2026-06-26"), keep_last=7),
        ),
        # Of two that are as short, the first.
        (
            Policy(rules=(delete("a", max_age=days(30)), delete("b", max_age=days(30)))),
            Terms(now=NOW, rule="a", cutoff=at("2026-06-26")),
        ),
        (Policy(max_bytes=1000), Terms(now=NOW, ceiling=1000, target=800)),
        (Policy(max_count=10), Terms(now=NOW, max_count=10)),
        # A type that has a rule of its own goes by the rules that speak of it, down to its pin.
        (
            Policy(
                rules=(
                    delete("denials", type="denied", max_age=days(365)),
                    keep("denials last", type="denied"),
                    keep("consents", type="consent"),
                    delete("chats", type="chat", max_age=days(30)),
                    *keep_for(days(90)),
                )
            ),
            Terms(
                now=NOW,
                cutoff=at("2026-04-27"),
                by_type=(
                    Cut(rule="denials", type="denied", cutoff=at("2025-07-26")),
                    Cut(rule="consents", type="consent", cutoff=None),
                    Cut(rule="chats", type="chat", cutoff=at("2026-06-26")),
                ),
            ),
        ),
        # Without a pin, what is for all rows is for those of the type as well.
        (
            Policy(
                rules=(delete("denials", type="denied", max_age=days(365)), *keep_for(days(90)))
            ),
            Terms(
                now=NOW,
                cutoff=at("2026-04-27"),
                by_type=(Cut(rule="keep_for", type="denied", cutoff=at("2026-04-27")),),
            ),
        ),
        # 25 MiB, and 80 % of it; of 9 bytes 80 % are 7.2, of 1 byte 0.8.
        (Policy(max_bytes=26_214_400), Terms(now=NOW, ceiling=26_214_400, target=20_971_520)),
        (Policy(max_bytes=9), Terms(now=NOW, ceiling=9, target=7)),
        (Policy(max_bytes=1), Terms(now=NOW, ceiling=1, target=0)),
    ],
)
def test_a_policy_comes_to_terms_for_rows(policy: Policy, expected: Terms) -> None:
    """Rows get cutoffs, ceilings, of bytes with a target of 80 %, and a floor; nothing else."""
    assert terms(policy, NOW, ("type", "max_count", "max_bytes")) == expected


@pytest.mark.parametrize(
    ("rule", "what"),
    [
        (delete("r", type="a", max_age=days(1)), "names a type"),
        (delete("r", max_unused=days(1)), "goes by disuse"),
        (delete("r", max_age=days(1), max_unused=days(1)), "goes by disuse"),
        (flag("r", max_age=days(1)), "says flag"),
        (keep("r", max_age=days(1)), "says keep"),
        (delete("r", max_age=days(1), cascade_derived=True), "cascades"),
        (delete("r", max_age=days(1), match_id="a"), "says `match`"),
        (delete("r", max_age=days(1), match_fields={"a": "b"}), "says `match`"),
        (keep("r", match_id="a"), "says `match`"),
        (delete("r", max_age=days(1), after_flagged=days(1)), "says `after_flagged`"),
        (delete("r", max_age=days(1), keep_if_cited=True), "says `keep_if_cited`"),
    ],
)
def test_rows_cannot_be_held_to_what_they_do_not_have(rule: Rule, what: str) -> None:
    """A rule that a store of rows cannot carry is refused, and not left out in silence."""
    for rules in ((rule,), (*keep_for(days(90)), rule)):
        with pytest.raises(BadPolicy) as refusal:
            terms(Policy(rules=rules), NOW)
        assert str(refusal.value) == (
            f"The policy cannot be kept: rule 'r' {what}, and rows expire by age alone. "
            "Write `max_age` with `action: delete`, or `keep_for`."
        )


def test_rows_are_not_counted() -> None:
    """A ceiling that such a store cannot be held to is refused, for nothing would hold it."""
    with pytest.raises(BadPolicy) as refusal:
        terms(Policy(max_count=10), NOW)
    assert str(refusal.value) == (
        "The policy cannot be kept: a store of this kind cannot be held to `max_count`. "
        "Write `max_bytes` or `keep_for`."
    )


def test_rows_may_be_counted_and_not_weighed() -> None:
    """The refusal of a ceiling names the one that such a store can be held to."""
    with pytest.raises(BadPolicy) as refusal:
        terms(Policy(max_bytes=10), NOW, ("max_count",))
    assert str(refusal.value).endswith("Write `max_count` or `keep_for`.")


def test_a_type_may_have_a_time_of_its_own() -> None:
    """A type's own time is a delete and a pin below it, so that no later rule shortens it."""
    assert keep_type("denials", "denied", days(365)) == (
        Rule(name="denials", type="denied", max_age=days(365), action="delete"),
        Rule(name="denials (younger)", type="denied", action="keep"),
    )
    assert keep_type("consents", "consent", None) == (
        Rule(name="consents", type="consent", action="keep"),
    )


def test_rows_have_one_floor() -> None:
    """A floor of a type is refused for rows, and not left out in silence."""
    with pytest.raises(BadPolicy) as refusal:
        terms(Policy(keep_last_of={"a": 1}), NOW, ("type",))
    assert str(refusal.value) == (
        "The policy cannot be kept: a store of this kind cannot be held to a `keep_last` of a "
        "type. Write `keep_last` with one number for all rows."
    )


def test_terms_and_verdicts_agree_on_the_cutoff() -> None:
    """A row and an item of one instant, under one policy, share their fate."""
    policy = Policy(rules=keep_for(days(90)))
    cutoff = terms(policy, NOW).cutoff
    assert isinstance(cutoff, datetime)
    for instant in (cutoff - timedelta(microseconds=1), cutoff, cutoff + timedelta(days=1)):
        thing = item(when=instant.replace(tzinfo=None).isoformat())
        expired = verdict(policy.rules[0], thing, NOW).answer == "yes"
        assert expired == (instant < cutoff)
