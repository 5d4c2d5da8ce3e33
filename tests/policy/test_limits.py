"""Ceilings that cannot be met, the breaker, and the wait at the write site."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from keepfor.items import Survey
from keepfor.policy.decide import decide
from keepfor.policy.limits import Shortfall, breaker_trips, must_wait, over_ceilings, shortfalls
from keepfor.policy.rules import Policy, Rule, keep_for
from tests.policy.build import NOW, at, days, delete, item, keep

OLD, YOUNG = "2025-01-01", "2026-07-25"


# --- what a ceiling could not reach -------------------------------------------------------


def test_a_ceiling_that_is_met_falls_short_of_nothing() -> None:
    """Where the rest fits, or where there is no ceiling, there is no shortfall."""
    items = [item("a", OLD, bytes=5), item("b", YOUNG, bytes=5)]
    for policy in (Policy(), Policy(max_count=1), Policy(max_bytes=5), Policy(max_bytes=10)):
        assert shortfalls(policy, items, decide(policy, items, NOW)) == []


def test_a_shortfall_says_by_how_much_and_why() -> None:
    """A ceiling that cannot be met names what stays, and what put it out of reach."""
    rules = (
        keep("pin", type="pinned", max_age=days(30)),
        keep("pin-unused", type="lost", max_unused=days(30)),
        delete("unused", type="spared", max_unused=days(180)),
    )
    policy = Policy(rules=rules, keep_last=1, max_count=1, max_bytes=40)
    items = [
        item("vetoed", OLD, bytes=10),
        item("spared", OLD, type="spared", bytes=10),
        item("pinned", OLD, type="pinned", bytes=10),
        item("lost", OLD, type="lost", bytes=10),
        item("ageless", bytes=10),
        item("nameless", bytes=10),
        item("takable", "2026-07-01", bytes=1000),
        item("newest", YOUNG, bytes=10),
    ]
    decisions = decide(policy, items, NOW, {"vetoed": "on hold"})
    assert [said.id for said in decisions if said.action == "delete"] == ["takable"]
    because = {"veto": 1, "spared": 1, "pinned": 2, "unknown": 2, "floor": 1}
    assert shortfalls(policy, items, decisions) == [
        Shortfall(ceiling="max_count", over=6, remains=7, because=because),
        Shortfall(ceiling="max_bytes", over=30, remains=70, because=because),
    ]


def test_a_ceiling_on_bytes_answers_without_one_on_the_count() -> None:
    """Each of the two ceilings is held to where it stands alone."""
    items = [item("a", bytes=5), item("b", bytes=6)]
    policy = Policy(max_bytes=10)
    assert shortfalls(policy, items, decide(policy, items, NOW)) == [
        Shortfall(ceiling="max_bytes", over=1, remains=11, because={"unknown": 2})
    ]


def test_one_ceiling_may_be_met_and_the_other_not() -> None:
    """Each ceiling answers for itself."""
    policy = Policy(keep_last=1, max_count=1, max_bytes=5)
    items = [item("a", OLD, bytes=5), item("b", YOUNG, bytes=6)]
    decisions = decide(policy, items, NOW)
    assert shortfalls(policy, items, decisions) == [
        Shortfall(ceiling="max_bytes", over=1, remains=6, because={"floor": 1})
    ]
    policy = Policy(max_count=1, max_bytes=50)
    items = [item("a", bytes=5), item("b", bytes=6)]
    assert shortfalls(policy, items, decide(policy, items, NOW)) == [
        Shortfall(ceiling="max_count", over=1, remains=2, because={"unknown": 2})
    ]


def test_decisions_for_other_items_are_a_mistake_in_the_code() -> None:
    """A bound is never worked out over items and decisions that do not belong together."""
    items = [item("a", OLD), item("b", YOUNG)]
    decisions = decide(Policy(), items, NOW)
    for few in (decisions[:1], [*decisions, decisions[0]]):
        with pytest.raises(ValueError, match="argument 2"):
            shortfalls(Policy(max_count=1), items, few)
        with pytest.raises(ValueError, match="argument 2"):
            over_ceilings(Policy(max_count=1), items, few)


# --- the breaker --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("total", "going", "limit", "trips"),
    [
        (10, 5, 0.5, False),
        (10, 6, 0.5, True),
        (11, 5, 0.5, False),
        (11, 6, 0.5, True),
        (9, 9, 0.5, False),
        (10, 10, 0.5, True),
        (0, 0, 0.5, False),
        (100, 100, None, False),
        (100, 100, 1.0, False),
        (100, 0, 0.5, False),
        # 0.29 * 100 is 28.999999999999996 in floating point, and 29 of 100 is not more.
        (100, 29, 0.29, False),
        (100, 30, 0.29, True),
        (1_000_000_007, 500_000_003, 0.5, False),
        (1_000_000_007, 500_000_004, 0.5, True),
        (10, 1, 0.001, True),
    ],
)
def test_the_breaker_trips_above_its_fraction_only(
    total: int, going: int, limit: float | None, trips: bool
) -> None:
    """More than the fraction, of a store of ten or more; exactly the fraction passes."""
    assert breaker_trips(total, going, limit) is trips


# --- the wait at the write site -----------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "expired", "oldest", "waits"),
    [
        # A ledger that lay idle for a year: all is old but the row that was just written.
        (600, 599, "2026-07-26T00:00:00", True),
        (600, 600, None, True),
        # On its second day of use the fresh rows span a day.
        (600, 599, "2026-07-24T23:59:59.999999", False),
        (600, 599, "2026-07-25T00:00:00", True),
        (600, 599, "2026-07-25T00:00:00.000001", True),
        (600, 151, "2026-04-27T00:00:00", False),
        # Too small to be worth a wait.
        (10, 9, None, True),
        (9, 9, None, False),
        # Nothing goes by age.
        (600, 0, None, False),
        (600, 0, "2026-07-26T00:00:00", False),
        (600, 1, None, True),
        # A clock that jumped back: the survivors lie ahead, and nothing is old.
        (600, 1, "2027-01-01T00:00:00", True),
    ],
)
def test_the_write_site_waits_until_the_fresh_rows_span_a_day(
    rows: int, expired: int, oldest: str | None, waits: bool
) -> None:
    """A prune that would leave no row older than a day waits, on a ledger of ten or more."""
    found = Survey(scanned=rows, expired=expired, fresh=at(oldest) if oldest else None)
    policy = Policy(rules=keep_for(timedelta(days=90)))
    assert must_wait(policy, found, NOW) is waits


@pytest.mark.parametrize(
    ("kept_for", "oldest", "waits"),
    [
        # Half of twelve hours before 2026-07-26 are six, and half of two days is one.
        (timedelta(hours=12), "2026-07-25T18:00:00", True),
        (timedelta(hours=12), "2026-07-25T17:59:59", False),
        (timedelta(days=2), "2026-07-25T00:00:00", True),
        (timedelta(days=2), "2026-07-24T23:59:59", False),
        (timedelta(days=1), "2026-07-25T11:59:59", False),
    ],
)
def test_rows_that_are_kept_for_less_than_two_days_need_not_span_one(
    kept_for: timedelta, oldest: str, waits: bool
) -> None:
    """A window that is no longer than a day would otherwise wait for ever."""
    found = Survey(scanned=600, expired=151, fresh=at(oldest))
    by_age = Policy(rules=keep_for(kept_for))
    unused = Policy(rules=(Rule(name="unused", max_unused=kept_for, action="delete"),))
    assert must_wait(by_age, found, NOW) is waits
    assert must_wait(unused, found, NOW) is waits


def test_what_stays_though_it_is_old_does_not_vouch_for_the_clock() -> None:
    """The oldest that a floor holds is older than a day, and says nothing of what is fresh."""
    found = Survey(scanned=600, expired=590, oldest=at("2026-01-01"), fresh=None)
    assert must_wait(Policy(rules=keep_for(timedelta(days=90))), found, NOW)


def test_bounds_are_values() -> None:
    """A shortfall cannot be changed once it is known."""
    short: Any = Shortfall(ceiling="max_count", over=1, remains=2, because={})
    with pytest.raises(AttributeError):
        short.over = 0
