"""What a store will hold: its rate, where it settles, what expires when, and what cuts it short.

Pure. A store is seen as its counts by day of age; a day here is a whole one, counted back from now.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Literal

import msgspec

from keepfor.policy.limits import breaker_trips
from keepfor.policy.rules import Policy, Rule
from keepfor.stores.daily import Amount, Daily
from keepfor.times import DAY

#: How far back a rate is measured at the most, and from how many days on it is worth anything.
_BACK, _ROUGH, _FAIR = 90, 7, 28
#: The share of days, the busiest ones, that count for no more than the busiest of the others.
_BURSTS = 0.1
#: How far ahead a ceiling is looked for.
_FAR = 3650
#: So many days from now only what comes counts.
_FOR_GOOD = 10**6
_WEEK = 7


class Stream(msgspec.Struct, frozen=True, kw_only=True):
    """What is there of one type, and what is expected of it.

    Parameters:
        held: what is there, by days of age.
        limit: the age in days at which it goes; None where age alone never takes it.
        rate: how many come a day.
        bytes_each: how large one is, on average.
    """

    held: dict[int, Amount]
    limit: float | None
    rate: float
    bytes_each: float


class Week(msgspec.Struct, frozen=True, kw_only=True):
    """What goes in one week.

    Parameters:
        start: the instant that it begins at.
        count: how many go by age or above a ceiling; what is due already counts for the first.
        bytes: what they hold.
    """

    start: datetime
    count: float
    bytes: float


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """What a store holds so many days from now, if it is swept every day."""

    day: int
    count: float
    bytes: float


class Cut(msgspec.Struct, frozen=True, kw_only=True):
    """A ceiling that takes what age alone would leave.

    Parameters:
        ceiling: `max_count` or `max_bytes`.
        limit: how much it allows.
        reached_in: in how many days it is reached; 0 where it is by now.
        window: how many days of history the store then holds.
        instead_of: how many it would hold by age; None where age takes nothing.
    """

    ceiling: Literal["max_count", "max_bytes"]
    limit: int
    reached_in: int
    window: float
    instead_of: float | None


class Forecast(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be expected of a store.

    Parameters:
        now: the instant that it looks ahead from.
        days: how far it looks.
        measured: over how many days the rate was measured.
        sure: how much that is worth: a `guess`, `rough` or `fair`; `nothing` of an empty store.
        rate: how many rows or items come a day, bursts apart.
        rate_bytes: how many bytes.
        count: how many are there.
        bytes: what they hold.
        held_back: whether so much is due now that the breaker lets none of it go.
        settles: how many there will be for good; None where they grow without end.
        settles_bytes: what those will hold.
        weeks: what goes, week by week.
        curve: how it grows and shrinks.
        cuts: the ceilings that will cut its history short.
        unforeseen: the rules that go by more than age, which nobody can foresee.
    """

    now: datetime
    days: int
    measured: int
    sure: Literal["nothing", "guess", "rough", "fair"]
    rate: float
    rate_bytes: float
    count: int
    bytes: int
    held_back: bool
    settles: float | None
    settles_bytes: float | None
    weeks: list[Week]
    curve: list[Point]
    cuts: list[Cut]
    unforeseen: list[str]


def forecast(held: Sequence[Daily], policy: Policy, now: datetime, days: int = 90) -> Forecast:
    """Foresee what a store will hold, if it goes on as it did and is swept every day.

    Parameters:
        held: what it holds, by type and day of age.
        policy: what it is held to.
        now: the instant to look ahead from.
        days: how far to look.
    """
    measured = _measured(held)
    streams = [_stream(each, policy, measured) for each in held]
    apart = [each.apart for each in held]
    count = sum(amount[0] for each in held for amount in each.days.values())
    size = sum(amount[1] for each in held for amount in each.days.values())
    points = [_bounded(_point(streams, day), policy) for day in range(days + 1)]
    settled = _settled(streams, policy)
    stays = points[0].count
    return Forecast(
        now=now,
        days=days,
        measured=measured,
        sure=_sure(measured, count),
        rate=sum(each.rate for each in streams),
        rate_bytes=sum(each.rate * each.bytes_each for each in streams),
        count=count + sum(amount[0] for amount in apart),
        bytes=size + sum(amount[1] for amount in apart),
        held_back=breaker_trips(count, round(count - stays), policy.breaker),
        settles=None if settled is None else settled.count,
        settles_bytes=None if settled is None else settled.bytes,
        weeks=list(_weeks(streams, policy, now, days, Point(day=0, count=count, bytes=size))),
        curve=points,
        cuts=list(_cuts(policy, streams)),
        unforeseen=[rule.name for rule in policy.rules if _beyond_age(rule)],
    )


def _measured(held: Sequence[Daily]) -> int:
    """Over how many whole days there is something to measure."""
    oldest = max((max(each.days) for each in held if each.days), default=-1)
    # The oldest day is seldom a whole one.
    return min(_BACK, max(1, oldest)) if oldest >= 0 else 0


def _sure(measured: int, count: int) -> Literal["nothing", "guess", "rough", "fair"]:
    if not count:
        return "nothing"
    if measured < _ROUGH:
        return "guess"
    return "rough" if measured < _FAIR else "fair"


def _stream(held: Daily, policy: Policy, measured: int) -> Stream:
    limit = _limit(policy, held.type)
    back = measured if limit is None else min(measured, max(1, int(limit)))
    counts = [held.days.get(day, (0, 0))[0] for day in range(back)]
    # What comes is as large as what came lately; where nothing did, as what is there.
    lately = [amount for day, amount in held.days.items() if day < back]
    amounts = lately if any(count for count, _ in lately) else list(held.days.values())
    total = sum(count for count, _ in amounts)
    return Stream(
        held=held.days,
        limit=limit,
        rate=_rate(counts),
        bytes_each=sum(size for _, size in amounts) / total if total else 0.0,
    )


def _rate(counts: Sequence[int]) -> float:
    """How many come a day: the mean, where bursts count for no more than a busy day."""
    if not counts:
        return 0.0
    ordered = sorted(counts)
    busy = ordered[len(ordered) - 1 - int(len(ordered) * _BURSTS)]
    # Where most days have nothing, the few that have something are no bursts.
    if not busy:
        return sum(counts) / len(counts)
    return sum(min(count, busy) for count in counts) / len(counts)


def _limit(policy: Policy, type_: str | None) -> float | None:
    """The age at which a type goes by the policy, in days."""
    ages = []
    for rule in policy.rules:
        if rule.type not in (None, type_) or _beyond_age(rule):
            continue
        if rule.pins:
            break
        if rule.action == "delete" and rule.max_age is not None:
            ages.append(rule.max_age / DAY)
    return min(ages, default=None)


def _beyond_age(rule: Rule) -> bool:
    """Whether a rule goes by something that no calendar tells."""
    narrowed = rule.match_id is not None or rule.match_fields or rule.after_flagged is not None
    return bool(narrowed or rule.max_unused is not None or rule.keep_if_cited)


def _settled(streams: Sequence[Stream], policy: Policy) -> Point | None:
    """What there will be for good; None where that grows without end."""
    if any(each.limit is None and each.rate for each in streams):
        if policy.max_count is None and policy.max_bytes is None:
            return None
        return _bounded(_point(streams, _FOR_GOOD), policy)
    longest = max((each.limit or 0.0 for each in streams), default=0.0)
    return _bounded(_point(streams, int(longest) + 1), policy)


def _bounded(point: Point, policy: Policy) -> Point:
    """What the ceilings leave of it."""
    count, size = point.count, point.bytes
    if policy.max_count is not None and count > policy.max_count:
        count, size = policy.max_count, size * policy.max_count / count
    if policy.max_bytes is not None and size > policy.max_bytes:
        count, size = count * policy.max_bytes / size, policy.max_bytes
    return Point(day=point.day, count=count, bytes=size)


def _left(stream: Stream, day: float) -> float:
    """How many are there so many days from now."""
    if stream.limit is None:
        return sum(amount[0] for amount in stream.held.values()) + stream.rate * day
    old = sum(amount[0] for age, amount in stream.held.items() if stream.limit - (age + 0.5) > day)
    return old + stream.rate * min(day, stream.limit)


def _point(streams: Sequence[Stream], day: int) -> Point:
    counts = [_left(each, day) for each in streams]
    sizes = (count * each.bytes_each for count, each in zip(counts, streams, strict=True))
    return Point(day=day, count=sum(counts), bytes=sum(sizes))


def _weeks(
    streams: Sequence[Stream], policy: Policy, now: datetime, days: int, there: Point
) -> Iterator[Week]:
    """What goes in each week: what was there and what came, but for what is left."""
    comes = sum(each.rate for each in streams) * _WEEK
    size = sum(each.rate * each.bytes_each for each in streams) * _WEEK
    for start in range(0, days, _WEEK):
        left = _bounded(_point(streams, start + _WEEK), policy)
        yield Week(
            start=now + timedelta(days=start),
            count=max(0.0, there.count + comes - left.count),
            bytes=max(0.0, there.bytes + size - left.bytes),
        )
        there = left


def _cuts(policy: Policy, streams: Sequence[Stream]) -> Iterator[Cut]:
    ceilings: tuple[tuple[Literal["max_count", "max_bytes"], int | None], ...]
    ceilings = (("max_count", policy.max_count), ("max_bytes", policy.max_bytes))
    for ceiling, limit in ceilings:
        if limit is None:
            continue
        weights = [each.bytes_each if ceiling == "max_bytes" else 1.0 for each in streams]
        reached = _reached(streams, ceiling, weights, limit)
        if reached is None:
            continue
        limits = [each.limit for each in streams if each.rate]
        yield Cut(
            ceiling=ceiling,
            limit=limit,
            reached_in=reached,
            window=_window(streams, weights, limit),
            instead_of=None if None in limits else max(filter(None, limits), default=None),
        )


def _reached(
    streams: Sequence[Stream], ceiling: str, weights: Sequence[float], limit: int
) -> int | None:
    """In how many days that much is there; None where it never is."""

    def amount(day: int) -> float:
        point = _point(streams, day)
        return point.count if ceiling == "max_count" else point.bytes

    # Beyond the longest limit nothing changes any more, or it only grows.
    longest = int(max((each.limit or 0.0 for each in streams), default=0.0)) + 1
    days = range(min(longest, _FAR) + 1)
    found = next((day for day in days if amount(day) > limit), None)
    if found is not None or longest > _FAR:
        return found
    grows = sum(
        each.rate * weight
        for each, weight in zip(streams, weights, strict=True)
        if each.limit is None
    )
    if not grows:
        return None
    more = longest + int((limit - amount(longest)) / grows) + 1
    return more if more <= _FAR else None


def _window(streams: Sequence[Stream], weights: Sequence[float], limit: int) -> float:
    """How many days of history come to that much, at these rates."""
    flows = [
        (each.rate * weight, each.limit) for each, weight in zip(streams, weights, strict=True)
    ]
    left, day = float(limit), 0.0
    for end in sorted({until for flow, until in flows if flow and until is not None}):
        rate = sum(flow for flow, until in flows if until is None or until > day)
        if rate * (end - day) >= left:
            return day + left / rate
        left, day = left - rate * (end - day), end
    rate = sum(flow for flow, until in flows if until is None)
    return day + left / rate if rate else day
