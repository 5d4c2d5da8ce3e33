"""What a store holds by age, and the ages that its policy names: what a histogram is drawn from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta

import msgspec

from keepfor.items import Item
from keepfor.plan import Plan
from keepfor.policy.rules import Policy, Rule, terms
from keepfor.stores.base import RowStore
from keepfor.stores.daily import Daily, of_items
from keepfor.times import DAY, format_duration
from keepfor.web.charts import Bar, Mark, bars, split


class History(msgspec.Struct, frozen=True, kw_only=True):
    """What a histogram shows.

    Parameters:
        bars: what there is, by age.
        marks: the ages that the policy names.
        apart: how many have no age that counts: to come, or not to be read.
    """

    bars: list[Bar]
    marks: list[Mark]
    apart: int


def of_plan(plan: Plan, items: Iterable[Item], policy: Policy, most: int = 120) -> History:
    """What a store of items holds by age.

    Parameters:
        plan: what its policy would do to it now.
        items: all that the plan was made of.
        policy: what it is held to.
        most: how many bars at the most.
    """
    items = list(items)
    taken = {said.id for said in plan.decisions if said.action != "keep"}
    stays = of_items((item for item in items if item.id not in taken), plan.now)
    goes = of_items((item for item in items if item.id in taken), plan.now)
    return _put_together(stays, goes, policy, most)


def of_rows(
    held: Sequence[Daily], store: RowStore, policy: Policy, now: datetime, most: int = 120
) -> History:
    """What a store of rows holds by age.

    Parameters:
        held: the same as counts, by type and day of age.
        store: the store.
        policy: what it is held to.
        now: the instant that ages are counted from.
        most: how many bars at the most.
    """
    agreed = terms(policy, now, store.bounds)
    cutoffs = {None: agreed.cutoff} | {cut.type: cut.cutoff for cut in agreed.by_type}
    ages = {
        type_: None if cutoff is None else (now - cutoff) / DAY for type_, cutoff in cutoffs.items()
    }
    stays, goes = split(held, ages)
    return _put_together(stays, goes, policy, most)


def marks(policy: Policy) -> Iterator[Mark]:
    """The ages that a policy names, each once."""
    told = set()
    for rule in policy.rules:
        if rule.max_age is not None and rule.action != "keep" and rule.max_age not in told:
            told.add(rule.max_age)
            yield _mark(rule, rule.max_age)


def _mark(rule: Rule, age: timedelta) -> Mark:
    deletes, told = rule.action == "delete", format_duration(age)
    of = f" {rule.type}" if rule.type else ""
    return Mark(
        age=age / DAY,
        label=f"{'cutoff' if deletes else 'flag'}{of} {told}",
        short=f"{'' if deletes else 'flag '}{told}",
        deletes=deletes,
    )


def _put_together(stays: list[Daily], goes: list[Daily], policy: Policy, most: int) -> History:
    apart = sum(daily.apart[0] for daily in (*stays, *goes))
    return History(bars=bars(stays, goes, most), marks=list(marks(policy)), apart=apart)
