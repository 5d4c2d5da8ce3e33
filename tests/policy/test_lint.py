"""Traps: policies that are well-formed, and do not do what their owner will think."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from keepfor.policy.lint import Trap, lint
from keepfor.policy.rules import Policy, Rule, keep_for
from tests.policy.build import days, delete, flag, item, keep

D30, D90, D180, D365 = days(30), days(90), days(180), days(365)


def said(*rules: Rule, **more: Any) -> dict[str, str]:
    """What lint says of each rule."""
    return {trap.rule: trap.what for trap in lint(Policy(rules=rules, **more))}


# --- rules that can never fire ------------------------------------------------------------


def test_a_flag_before_a_longer_delete_is_a_trap() -> None:
    """A 90-day flag before a 180-day delete takes all of it, and lint says what to change."""
    rules = (flag("stale", type="a", max_age=D90), delete("old", type="a", max_age=D180))
    assert lint(Policy(rules=rules)) == [
        Trap(
            rule="old",
            what="it can never fire: all that it matches has matched 'stale' before.",
            fix="Put it above 'stale', or leave it out.",
        )
    ]
    assert lint(Policy(rules=rules[::-1])) == []


@pytest.mark.parametrize(
    ("first", "second", "trapped"),
    [
        # Types: a rule for all covers one for some, not the other way round.
        ({"max_age": D90}, {"type": "a", "max_age": D180}, True),
        ({"max_age": D90}, {"max_age": D180}, True),
        ({"type": "a", "max_age": D90}, {"max_age": D180}, False),
        ({"type": "a", "max_age": D90}, {"type": "b", "max_age": D180}, False),
        # Thresholds: the same or a shorter one covers.
        ({"max_age": D90}, {"max_age": D90}, True),
        ({"max_age": D180}, {"max_age": D90}, False),
        ({"max_unused": D90}, {"max_unused": D90}, True),
        ({"max_unused": D90}, {"max_unused": D180}, True),
        ({"max_unused": D180}, {"max_unused": D90}, False),
        # What is old may have been recalled yesterday.
        ({"max_unused": D90}, {"max_age": D180}, False),
        # Two thresholds: each has to be covered.
        ({"max_age": D90, "max_unused": D30}, {"max_age": D180}, True),
        ({"max_age": D90, "max_unused": D30}, {"max_unused": D180}, True),
        ({"max_age": D90, "max_unused": D30}, {"max_age": D90, "max_unused": D30}, True),
        ({"max_age": D90, "max_unused": D90}, {"max_age": D90, "max_unused": D30}, False),
        ({"max_age": D90, "max_unused": D90}, {"max_age": D30, "max_unused": D90}, False),
        ({"max_unused": D90}, {"max_age": D180, "max_unused": D180}, False),
        # Matches: a wider one covers a narrower one.
        ({"max_age": D90}, {"max_age": D180, "match_id": "a*"}, True),
        ({"max_age": D90, "match_id": "a*"}, {"max_age": D180, "match_id": "ab*"}, True),
        ({"max_age": D90, "match_id": "ab*"}, {"max_age": D180, "match_id": "a*"}, False),
        ({"max_age": D90, "match_id": "a*"}, {"max_age": D180}, False),
        ({"max_age": D90, "match_id": "*"}, {"max_age": D180}, True),
        ({"max_age": D90}, {"max_age": D180, "match_fields": {"k": "v"}}, True),
        ({"max_age": D90, "match_fields": {"k": "v"}}, {"max_age": D180}, False),
        (
            {"max_age": D90, "match_fields": {"k": "v"}},
            {"max_age": D180, "match_fields": {"k": "v", "l": "w"}},
            True,
        ),
        (
            {"max_age": D90, "match_fields": {"k": "v"}},
            {"max_age": D180, "match_fields": {"k": "w"}},
            False,
        ),
    ],
)
def test_a_rule_is_covered_when_each_threshold_is(
    first: dict[str, Any], second: dict[str, Any], trapped: bool
) -> None:
    """A trap is named exactly where nothing is left to the later rule."""
    what = said(flag("first", **first), delete("second", **second)).get("second", "")
    assert what.startswith("it can never fire") is trapped
    assert bool(what) is trapped


def test_a_pin_and_a_delete_cover_like_a_flag() -> None:
    """Whatever the earlier rule does with what it matches, nothing is left."""
    for earlier in (keep("first", type="a", max_age=D90), delete("first", max_age=D90)):
        assert "second" in said(earlier, delete("second", type="a", max_age=D180))


def test_a_flag_above_the_delete_that_waits_for_it_is_a_trap() -> None:
    """Flag first, delete later, is written the other way round: the first match wins."""
    stale = flag("stale", max_age=D90)
    gone = delete("gone", max_age=D90, after_flagged=days(14))
    assert lint(Policy(rules=(stale, gone))) == [
        Trap(
            rule="gone",
            what="it can never fire: all that it matches has matched 'stale' before.",
            fix="Put it above 'stale', or leave it out.",
        )
    ]
    assert lint(Policy(rules=(gone, stale))) == []
    later = delete("later", max_age=D90, after_flagged=D30)
    assert set(said(gone, later, stale)) == {"later"}
    assert said(later, gone, stale) == {}


def test_a_delete_that_waits_for_a_flag_that_no_rule_sets_is_a_trap() -> None:
    """Where nothing flags what a rule speaks of, it waits for ever."""
    gone = delete("gone", type="a", max_age=D90, after_flagged=days(14))
    trap = Trap(
        rule="gone",
        what="no rule flags what it speaks of, so it takes at most what others flagged.",
        fix="Add a rule with `action: flag` below it.",
    )
    for rest in ((), (flag("f", type="b", max_age=D30),), (keep("k", type="a", max_age=D180),)):
        assert lint(Policy(rules=(gone, *rest))) == [trap]
    missing = delete("m", type="a", max_unused=D30, on_missing_access_signal="flag")
    for flags in (flag("f", type="a", max_age=D30), flag("f", max_age=D30), missing):
        assert said(gone, flags) == {}
    everywhere = delete("gone", max_age=D90, after_flagged=days(14))
    assert said(everywhere, flag("f", type="b", max_age=D30)) == {}


@pytest.mark.parametrize("kept", [D30, D90])
def test_a_log_that_forgets_before_a_rule_looks_is_a_trap(kept: timedelta) -> None:
    """Where accesses are forgotten as soon as they count, every item passes for never recalled."""
    rule = delete("unused", max_unused=D90)
    assert lint(Policy(rules=(flag("f", type="x", max_age=D90), rule)), log_keep_for=kept) == [
        Trap(
            rule="unused",
            what=f"the log of accesses is kept for {kept.days}d, so that by 90d without a recall "
            "the last one is forgotten, and the item passes for one that was never recalled.",
            fix="Keep the log for longer than 90d, or lower `max_unused`.",
        )
    ]


def test_a_log_that_is_kept_for_longer_is_no_trap() -> None:
    """A log that outlasts every threshold, or is kept for ever, says what it has to."""
    rules = (delete("unused", max_unused=D90),)
    assert lint(Policy(rules=rules), log_keep_for=D180) == []
    assert lint(Policy(rules=rules), log_keep_for=None) == []
    assert lint(Policy(rules=keep_for(D90)), log_keep_for=D30) == []


def test_a_pin_below_a_pin_is_a_trap() -> None:
    """What is pinned already cannot be pinned again, and only a wider pin leaves nothing."""
    wide, narrow = keep("wide", type="a"), keep("narrow", type="a", match_id="x*")
    later = delete("later", type="a", max_age=D90)
    assert lint(Policy(rules=(wide, narrow, later))) == [
        Trap(
            rule="narrow",
            what="it can never fire: all that it matches has matched 'wide' before.",
            fix="Leave it out.",
        ),
        Trap(
            rule="later",
            what="it can never fire: all that it matches has matched 'wide' before.",
            fix="Put it above 'wide', or leave it out.",
        ),
    ]
    assert lint(Policy(rules=(narrow, wide))) == []


def test_old_before_unused_leaves_next_to_nothing() -> None:
    """What was unused for 180 days is older than 90, unless it was changed since."""
    rules = (flag("stale", max_age=D90), delete("unused", max_unused=D180))
    assert lint(Policy(rules=rules)) == [
        Trap(
            rule="unused",
            what="it fires at most on items that were changed after their last recall: "
            "all others have matched 'stale' before.",
            fix="Put it above 'stale', or leave it out.",
        )
    ]
    assert said(flag("stale", max_age=D180), delete("unused", max_unused=D90)) == {}
    assert said(rules[1], rules[0]) == {}
    # One threshold is covered for certain, the other nearly: not never, but next to nothing.
    both = delete("both", max_age=D180, max_unused=D180)
    assert said(rules[0], both)["both"].startswith("it fires at most")


def test_two_rules_together_can_leave_nothing() -> None:
    """A rule is covered by two that cover one threshold each; both are named."""
    rules = (
        flag("stale", max_age=D90),
        flag("idle", max_unused=D30),
        delete("either", max_age=D180, max_unused=D180),
    )
    assert lint(Policy(rules=rules)) == [
        Trap(
            rule="either",
            what="it can never fire: all that it matches has matched 'stale' and 'idle' before.",
            fix="Put it above 'stale' and 'idle', or leave it out.",
        )
    ]


def test_the_first_of_several_is_named() -> None:
    """The rule that takes the items in truth is the one that is named."""
    what = said(flag("a", max_age=D90), flag("b", max_age=D30), delete("c", max_age=D365))
    assert "'a'" in what["c"]
    assert "'b'" not in what["c"]
    assert list(what) == ["c"]


def test_an_ordinary_policy_has_no_trap() -> None:
    """The policies of the documentation pass without a word."""
    assert lint(Policy()) == []
    assert lint(Policy(rules=keep_for(D90), max_bytes=1000, keep_last=5)) == []
    rules = (
        delete("unused-guidelines", type="guideline", max_unused=D180),
        flag("stale-guidelines", type="guideline", max_age=D90),
        delete("old-sessions", type="trajectory", max_age=D365, cascade_derived=True),
    )
    assert lint(Policy(rules=rules, max_count=1000)) == []


# --- ceilings -----------------------------------------------------------------------------


def test_a_ceiling_over_a_pin_for_all_is_a_trap() -> None:
    """Where the old is pinned whatever its type, a ceiling can only take the young."""
    pin = keep("pin", max_age=D90, max_unused=days(0.5))
    assert lint(Policy(rules=(pin,), max_count=10)) == [
        Trap(
            rule="max_count",
            what="'pin' pins what is older than 90d or unused for 12h, "
            "so it takes the others instead.",
            fix="Give 'pin' a type, or leave `max_count` out.",
        )
    ]
    both = said(keep("pin", max_unused=D90), max_count=10, max_bytes=10)
    assert both == dict.fromkeys(
        ("max_count", "max_bytes"),
        "'pin' pins what is unused for 90d, so it takes the others instead.",
    )
    assert said(keep("pin", type="a", max_age=D90), max_count=10) == {}
    assert said(keep("pin", match_id="a"), max_count=10) == {}
    all_of_it = said(keep("pin"), max_count=10)
    assert all_of_it == {"max_count": "'pin' pins everything, so it takes the others instead."}
    assert said(flag("f", max_age=D90), max_count=10) == {}
    assert said(pin) == {}


def test_a_ceiling_that_can_take_nothing_is_a_trap() -> None:
    """A ceiling needs ages to go by, and a ceiling on bytes needs sizes."""
    ceilings = Policy(max_count=10, max_bytes=10)
    assert lint(ceilings, [item(), item("b")]) == [
        Trap(
            rule=key,
            what="it can take nothing, since no item's age is known.",
            fix="Have the age read from where it can be found.",
        )
        for key in ("max_count", "max_bytes")
    ]
    assert lint(ceilings, [item(when="2026-01-01"), item("b")]) == [
        Trap(
            rule="max_bytes",
            what="it can never be reached, since no item has a size.",
            fix="Write `max_count`, or leave it out.",
        )
    ]
    assert lint(ceilings, [item(when="2026-01-01"), item("b", bytes=1)]) == []
    assert lint(Policy(), [item()]) == []


# --- against the items that are there -----------------------------------------------------


def test_a_type_that_no_item_has_is_a_trap() -> None:
    """A rule for a type that is not there does nothing, and the types that are there are named."""
    policy = Policy(rules=(delete(type="notes", max_unused=D90, cascade_derived=True),))
    items = [item(name, type=name) for name in "gfedcba"]
    assert lint(policy, items) == [
        Trap(
            rule="old",
            what="no item is of type 'notes'.",
            fix="The types that are there: a, b, c, d, e.",
        )
    ]


@pytest.mark.parametrize(
    ("match", "wanted"),
    [
        ({"match_id": "entities/*"}, "an id like 'entities/*'"),
        ({"match_fields": {"topic": "b"}}, "`topic: b`"),
        ({"match_fields": {"colour": "a"}}, "`colour: a`"),
        (
            {"match_id": "g/*", "match_fields": {"topic": "a", "x": "y"}},
            "an id like 'g/*' and `topic: a` and `x: y`",
        ),
    ],
)
def test_a_match_that_no_item_meets_is_a_trap(match: dict[str, Any], wanted: str) -> None:
    """A slip in an id or a value does nothing at all, and so lint says what was looked for."""
    rule = delete("r", type="note", max_unused=D90, **match)
    items = [item("n/1", fields={"topic": "a"}), item("g/1", fields={"topic": "a"})]
    assert lint(Policy(rules=(rule,)), items) == [
        Trap(
            rule="r",
            what=f"no item that it could speak of has {wanted}.",
            fix="Write ids as reports show them, and values as the items have them.",
        )
    ]
    fits = flag("f", match_id="n/*", match_fields={"topic": "a"}, max_age=D90)
    assert lint(Policy(rules=(fits,)), items) == []


def test_a_floor_of_a_type_that_no_item_has_is_a_trap() -> None:
    """A slip in the name of a type leaves its items without a floor."""
    policy = Policy(keep_last_of={"notes": 3, "session": 1})
    items = [item("a"), item("s", type="session")]
    assert lint(policy, items) == [
        Trap(
            rule="keep_last",
            what="no item is of type 'notes'.",
            fix="The types that are there: note, session.",
        )
    ]
    assert lint(policy) == []


def test_an_empty_store_has_no_trap() -> None:
    """A store that is not there yet says nothing about its policy."""
    assert lint(Policy(rules=(delete(type="note", max_unused=D90),), max_bytes=1), []) == []


@pytest.mark.parametrize(
    ("missing", "instead"),
    [
        ("skip", "spares what it matches"),
        ("flag", "flags what it matches"),
        ("delete", "deletes by age alone"),
    ],
)
def test_disuse_without_any_access_is_a_trap(missing: Any, instead: str) -> None:
    """A delete on disuse where no access was ever recorded does something else; lint says what."""
    rule = delete("r", type="note", max_unused=D90, on_missing_access_signal=missing)
    items = [item("a", "2026-01-01"), item("s", "2026-01-01", "2026-01-01", type="session")]
    assert lint(Policy(rules=(rule,)), items) == [
        Trap(
            rule="r",
            what=f"no access was ever recorded, so its `max_unused` {instead}.",
            fix="Have accesses recorded, or write `max_age`.",
        )
    ]
    recalled = item("b", "2026-01-01", "2026-02-01")
    assert lint(Policy(rules=(rule,)), [*items, recalled]) == []


def test_only_a_delete_on_disuse_needs_accesses() -> None:
    """A delete by age, and a flag or pin by disuse, make do without."""
    items = [item("a", "2026-01-01")]
    for rule in (delete(max_age=D90), flag(max_unused=D90), keep(max_unused=D90)):
        assert lint(Policy(rules=(rule,)), items) == []


def test_a_cascade_that_nothing_hangs_on_is_a_trap() -> None:
    """Where no item was derived from one that the rule speaks of, the cascade is idle."""
    rule = delete("r", type="session", max_age=D90, cascade_derived=True)
    session = item("s", "2026-01-01", type="session")
    idle = Trap(
        rule="r",
        what="its cascade takes nothing along: no item was derived from one of these.",
        fix="Leave `cascade_derived` out, or have items name what they were made from.",
    )
    policy = Policy(rules=(rule,))
    assert lint(policy, [session]) == [idle]
    assert lint(policy, [session, item("n", derived_from="t")]) == [idle]
    assert lint(policy, [session, item("n"), item("m", derived_from="n")]) == [idle]
    assert lint(policy, [session, item("n", derived_from="s")]) == []
    assert lint(Policy(rules=(delete(type="session", max_age=D90),)), [session]) == []


def test_traps_of_the_policy_come_first() -> None:
    """The order is stable: shadowed rules, ceilings, then what the items show, rule by rule."""
    policy = Policy(
        rules=(
            delete("a", type="x", max_unused=D90),
            keep("b", max_age=D90),
            flag("c", max_age=D90),
        ),
        max_count=1,
    )
    found = [trap.rule for trap in lint(policy, [item()])]
    assert found == ["c", "max_count", "a", "max_count"]
