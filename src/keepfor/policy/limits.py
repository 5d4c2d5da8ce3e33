"""The bounds around the rules: ceilings, floors, the breaker, and the wait at the write site."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from heapq import nlargest
from typing import Literal

import msgspec

from keepfor.items import Decision, Evidence, Item, Survey
from keepfor.policy.rules import Policy
from keepfor.times import DAY, Known, before

#: Smaller stores are too small for a fraction of them to mean anything.
SMALLEST_GUARDED = 10


class Shortfall(msgspec.Struct, frozen=True, kw_only=True):
    """A ceiling that could not be met.

    Parameters:
        ceiling: `max_count` or `max_bytes`.
        remains: what stays all the same, in items or bytes.
        over: by how much that is too much.
        because: how many of the items that stay were out of reach, by what put them there:
            `floor`, `veto`, `spared`, `cited`, `pinned`, or `unknown` age.
    """

    ceiling: Literal["max_count", "max_bytes"]
    remains: int
    over: int
    because: dict[str, int]


def floors(policy: Policy, items: Sequence[Item]) -> dict[int, Evidence]:
    """Which items the floors hold, by their position, and the floor that does.

    A floor holds the newest of known age, of all items or of one type. Of items of one instant the
    greater id counts as the newer, as it does for the ceilings.
    """
    held: dict[int, Evidence] = {}
    for type_, count in policy.keep_last_of.items():
        for index in _newest(items, count, type_):
            held[index] = {"keep_last": count, "type": type_}
    if policy.keep_last:
        for index in _newest(items, policy.keep_last):
            held[index] = {"keep_last": policy.keep_last}
    return held


def _newest(items: Sequence[Item], count: int, type_: str | None = None) -> Iterator[int]:
    known = (
        (item.instant.instant, item.id, index)
        for index, item in enumerate(items)
        if isinstance(item.instant, Known) and type_ in (None, item.type)
    )
    return (index for _, _, index in nlargest(count, known))


def stands(decision: Decision) -> bool:
    """Whether a decision keeps an item out of reach of cascades and ceilings.

    Pinned, spared, cited, held by a floor or a veto: all but a flag, for delete wins over flag.
    """
    return decision.action == "keep" and decision.rule is not None and decision.reason != "flagged"


def over_ceilings(
    policy: Policy, items: Sequence[Item], decisions: Sequence[Decision]
) -> list[tuple[int, Literal["count", "bytes"], Evidence]]:
    """What has to go so that the rest fits: the oldest by instant, ties by id.

    What stands, and what is of unknown age, is passed over.

    Returns:
        For each item that goes its position, the ceiling that takes it, and the evidence.
    """
    if policy.max_count is None and policy.max_bytes is None:
        return []
    pairs = list(zip(items, decisions, strict=True))
    count, size = _remains(pairs)
    too_many = _excess(count, policy.max_count)
    too_big = _excess(size, policy.max_bytes)
    if not too_many and not too_big:
        return []
    reachable = sorted(
        (item.instant.instant, item.id, index)
        for index, (item, decision) in enumerate(pairs)
        if decision.action != "delete" and not stands(decision) and isinstance(item.instant, Known)
    )
    going: list[tuple[int, Literal["count", "bytes"], Evidence]] = []
    freed = 0
    for instant, _, index in reachable:
        evidence: Evidence = {"instant": instant.isoformat()}
        if len(going) < too_many:
            evidence |= {"ceiling": policy.max_count, "excess": too_many}
            going.append((index, "count", evidence))
        elif freed < too_big:
            evidence |= {"ceiling": policy.max_bytes, "excess": too_big}
            going.append((index, "bytes", evidence))
        else:
            break
        freed += items[index].bytes
    return going


def shortfalls(
    policy: Policy, items: Sequence[Item], decisions: Sequence[Decision]
) -> list[Shortfall]:
    """By how much the decisions leave a ceiling unmet, and why.

    Parameters:
        policy: what the decisions were made by.
        items: what they were made for.
        decisions: one for each item, in their order.

    Returns:
        One shortfall for each ceiling that is not met; none where all are.
    """
    if policy.max_count is None and policy.max_bytes is None:
        return []
    count, size = _remains(zip(items, decisions, strict=True))
    because = dict(Counter(_hold(said) for said in decisions if said.action != "delete"))
    short = []
    if over := _excess(count, policy.max_count):
        short.append(Shortfall(ceiling="max_count", over=over, remains=count, because=because))
    if over := _excess(size, policy.max_bytes):
        short.append(Shortfall(ceiling="max_bytes", over=over, remains=size, because=because))
    return short


def breaker_trips(total: int, delete: int, limit: float | None) -> bool:
    """Whether a plan takes so much of a store that somebody should look at it first.

    Parameters:
        total: how many items or rows the store holds.
        delete: how many of them the plan deletes.
        limit: the largest fraction that may go; None switches the breaker off.

    Returns:
        True when more than that goes, of a store of ten or more.
    """
    if limit is None or total < SMALLEST_GUARDED:
        return False
    # A quotient is rounded as the limit was when it was read, so that 29 of 100 is 0.29 exactly;
    # the product of the two is not.
    return delete / total > limit


def must_wait(policy: Policy, found: Survey, now: datetime) -> bool:
    """Whether a prune that an append triggers has to wait for more rows.

    At the write site there is nobody to ask, and a clock that jumped ahead would expire all at
    once. When the fresh rows themselves span a day, the clock is believed. Rows that are kept for
    less than two days hardly ever span one, so half their time is enough for them. What stays
    though it is past its time says nothing of the clock.

    Parameters:
        policy: what the store is held to.
        found: what would go, and what would stay.
        now: the instant to judge by, aware.

    Returns:
        True when rows would go by age, of ten or more, and no fresh one older than that would stay.
    """
    if found.scanned < SMALLEST_GUARDED or found.expired <= 0:
        return False
    deletes = [rule for rule in policy.rules if rule.action == "delete"]
    ages = [age for rule in deletes for age in (rule.max_age, rule.max_unused) if age]
    span = min([DAY, *(age / 2 for age in ages)])
    return found.fresh is None or found.fresh >= before(now, span)


def _remains(pairs: Iterable[tuple[Item, Decision]]) -> tuple[int, int]:
    """How many items stay, and how many bytes they hold."""
    sizes = [item.bytes for item, decision in pairs if decision.action != "delete"]
    return len(sizes), sum(sizes)


def _excess(remains: int, ceiling: int | None) -> int:
    return 0 if ceiling is None else max(0, remains - ceiling)


def _hold(decision: Decision) -> str:
    """What put an item out of reach of the ceilings."""
    if not stands(decision):
        return "unknown"
    return "pinned" if decision.reason in {"age", "unused"} else decision.reason
