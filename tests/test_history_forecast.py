"""A forecast says what is to be expected, how sure that is, and what cuts a history short."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from keepfor.history.forecast import Cut, forecast
from keepfor.policy.rules import Policy, Rule, keep_for, keep_type
from keepfor.stores.daily import Amount, Daily

NOW = datetime(2026, 7, 26, tzinfo=UTC)


def steady(days: int, count: int = 10, size: int = 1000, type_: str | None = None) -> Daily:
    """So many days, today included, with so many a day that hold so many bytes."""
    return Daily(type=type_, days=dict.fromkeys(range(days), (count, size)))


def kept(days: int | None, **bounds: Any) -> Policy:
    """Ninety days, say, or for ever."""
    return Policy(rules=keep_for(None if days is None else timedelta(days=days)), **bounds)


def test_a_store_settles_at_its_rate_times_its_window() -> None:
    """Ten a day of a hundred bytes each, kept for 90 days, come to 900 and 90,000 bytes."""
    told = forecast([steady(120)], kept(90), NOW)
    assert (told.rate, told.rate_bytes) == (10, 1000)
    assert (told.settles, told.settles_bytes) == (900, 90_000)
    assert (told.measured, told.sure) == (90, "fair")


def test_what_nothing_bounds_never_settles() -> None:
    """Kept for ever it grows by what comes: 410 now, 1,310 in 90 days."""
    told = forecast([steady(41)], kept(None), NOW)
    assert (told.settles, told.settles_bytes, told.cuts) == (None, None, [])
    assert [told.curve[0].count, told.curve[90].count] == [410, 1310]


def test_each_week_says_what_goes() -> None:
    """Of 41 days kept for 20, the 28 that are 13 or older go by the end of the first week."""
    told = forecast([steady(41)], kept(20), NOW, 28)
    assert [week.count for week in told.weeks] == [280, 70, 70, 70]
    assert [week.start for week in told.weeks] == [NOW + timedelta(days=7 * n) for n in range(4)]
    assert told.weeks[1].bytes == 7000


def test_what_is_to_come_goes_in_its_time() -> None:
    """A store that begins today, kept for ten days, has its first rows go in the second week."""
    told = forecast([steady(1)], kept(10), NOW, 21)
    assert [week.count for week in told.weeks] == [0, 50, 70]


def test_a_ceiling_that_cuts_a_history_short_is_told_with_its_day() -> None:
    """41,000 bytes and 1,000 more a day are 71,000 in 30 days; that is 71 days of history."""
    (cut,) = forecast([steady(41)], kept(90, max_bytes=71_000), NOW).cuts
    assert cut == Cut(
        ceiling="max_bytes", limit=71_000, reached_in=31, window=71.0, instead_of=90.0
    )


def test_a_ceiling_that_is_never_reached_is_no_news() -> None:
    """900 at the most are far from a thousand."""
    assert forecast([steady(41)], kept(90, max_count=1000), NOW).cuts == []


def test_a_ceiling_bounds_what_age_does_not() -> None:
    """Without an age a cap of 500 is reached, and holds 50 days of ten a day."""
    told = forecast([steady(41)], kept(None, max_count=500), NOW)
    assert told.settles == 500
    (cut,) = told.cuts
    assert (cut.reached_in, cut.window, cut.instead_of) == (10, 50.0, None)


def test_a_burst_does_not_count_for_a_rate() -> None:
    """One day with 10,000 among 90 with ten each leaves the rate at ten a day."""
    days: dict[int, Amount] = dict.fromkeys(range(91), (10, 1000)) | {45: (10_000, 1_000_000)}
    assert forecast([Daily(days=days)], kept(90), NOW).rate == 10


def test_a_sparse_store_has_a_rate_too() -> None:
    """One on every twentieth day is a twentieth a day, and no burst."""
    days: dict[int, Amount] = dict.fromkeys(range(0, 100, 20), (1, 100))
    assert forecast([Daily(days=days)], kept(None), NOW).rate == pytest.approx(4 / 80)


@pytest.mark.parametrize(
    ("days", "sure"), [(0, "nothing"), (1, "guess"), (7, "guess"), (8, "rough"), (29, "fair")]
)
def test_a_short_history_is_called_a_guess(days: int, sure: str) -> None:
    """The oldest day is seldom a whole one, so eight days are a week of measuring."""
    assert forecast([steady(days)], kept(90), NOW).sure == sure


def test_types_are_foreseen_by_the_rules_of_their_own() -> None:
    """Denials stay for ever, chats for ten days, and all else for 30."""
    policy = Policy(
        rules=(
            *keep_type("denied", "denied", None),
            *keep_type("chat", "chat", timedelta(days=10)),
            *keep_for(timedelta(days=30)),
        )
    )
    chats = forecast([steady(60, type_="chat")], policy, NOW)
    others = forecast([steady(60)], policy, NOW)
    denied = forecast([steady(60, type_="denied")], policy, NOW)
    assert [chats.settles, others.settles, denied.settles] == [100, 300, None]


def test_what_no_calendar_tells_is_named() -> None:
    """Disuse, flags, citations and matches depend on more than time; who asks is told which."""
    day = timedelta(days=1)
    policy = Policy(
        rules=(
            Rule(name="unused", max_unused=day, action="delete"),
            Rule(name="matched", max_age=day, match_id="tmp*", action="delete"),
            Rule(name="flagged", max_age=day, after_flagged=day, action="delete"),
            Rule(name="cited", max_age=day, keep_if_cited=True, action="delete"),
            Rule(name="stale", max_age=day),
        )
    )
    told = forecast([steady(10)], policy, NOW)
    assert told.unforeseen == ["unused", "matched", "flagged", "cited"]
    assert told.settles is None


def test_an_empty_store_is_foreseen_as_nothing() -> None:
    """No rate, nothing to settle, and no division by it."""
    told = forecast([Daily()], kept(90, max_count=5, max_bytes=5), NOW)
    assert (told.rate, told.settles, told.count, told.cuts) == (0, 0, 0, [])
    assert forecast([], kept(90), NOW).sure == "nothing"


def test_what_has_no_age_counts_as_held_and_for_no_rate() -> None:
    """Rows that are to come, or cannot be read, are there, and nobody knows since when."""
    told = forecast([Daily(days={1: (10, 1000)}, apart=(5, 500))], kept(90), NOW)
    assert (told.count, told.bytes) == (15, 1500)
    assert told.rate == 0


def test_a_ceiling_holds_in_every_week_and_for_good() -> None:
    """Of 500 with a cap of 200 and ten a day, 370 go in the first week, and then what comes."""
    told = forecast([steady(50)], kept(None, max_count=200), NOW, 21)
    assert [week.count for week in told.weeks] == [370, 70, 70]
    assert (told.settles, told.settles_bytes) == (200, 20_000)
    assert max(point.count for point in told.curve) == 200


def test_a_ceiling_on_bytes_bounds_the_count_too() -> None:
    """50,000 bytes of a hundred each are 500, however long they may stay."""
    told = forecast([steady(200)], kept(90, max_bytes=50_000), NOW)
    assert (told.settles, told.settles_bytes) == (500, 50_000)


def test_what_comes_is_as_large_as_what_came_lately() -> None:
    """Rows that doubled in size half a year ago are no measure of those to come."""
    days: dict[int, Amount] = {day: (10, 2000 if day < 120 else 1000) for day in range(240)}
    assert forecast([Daily(days=days)], kept(None), NOW).rate_bytes == 2000


def test_what_the_breaker_holds_back_is_told() -> None:
    """Of 100 rows 90 are past their ten days: none of them goes by itself."""
    assert forecast([steady(10)], kept(10), NOW).held_back is False
    assert forecast([steady(100)], kept(10), NOW).held_back is True
