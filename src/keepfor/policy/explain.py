"""Why one item is decided as it is: what every rule says of it, and which would take it next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta

import msgspec
from msgspec.structs import replace

from keepfor.errors import UnknownItem
from keepfor.items import Action, Decision, Evidence, Item
from keepfor.policy.decide import NO_VETOES, decide
from keepfor.policy.rules import Policy
from keepfor.policy.verdicts import Answer, due, verdict
from keepfor.times import Known

_TICK = timedelta(microseconds=1)


class Opinion(msgspec.Struct, frozen=True, kw_only=True):
    """What one rule says of an item.

    Parameters:
        rule: its name.
        action: what it does with what matches.
        answer: whether the item does: `yes`, `no`, or `unknown`.
        reason: what settled it: `age`, `unused`, `type`, `match`, `flagged` or `pinned`.
        evidence: the numbers, by name.
        due: the instant after which it says yes of the item as it is now; None where that never
            comes, or cannot be told.
    """

    rule: str
    action: Action
    answer: Answer
    reason: str
    evidence: Evidence
    due: datetime | None = None


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of an item next, if nothing but time passes.

    Parameters:
        due: a plan made at any later instant says so.
        decision: what it says then.
    """

    due: datetime
    decision: Decision


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """Why an item is decided as it is.

    Parameters:
        decision: what a plan says of it now.
        opinions: what each rule says of it, in the order of the rules. The first yes decides,
            unless a floor, a veto, a cascade, a citation or a ceiling does.
        next: what becomes of it after this; None where it goes now, or where no instant is known
            at which a rule would take it.
    """

    decision: Decision
    opinions: tuple[Opinion, ...]
    next: Change | None = None


def explain(
    policy: Policy,
    items: Sequence[Item],
    now: datetime,
    id: str,  # noqa: A002
    vetoes: Mapping[str, str] = NO_VETOES,
) -> Explanation:
    """Why the policy says what it says of one item.

    Decisions, those of later instants too, are made by `decide` over all the items, so that an
    explanation cannot say anything else than a plan.

    Parameters:
        policy: what the store is held to.
        items: all that the store holds.
        now: the instant to judge by, aware.
        id: the item's.
        vetoes: why an item must stay as it is, by its id.

    Raises:
        UnknownItem: when there is no such item.
    """
    index = next((at for at, item in enumerate(items) if item.id == id), None)
    if index is None:
        fix = "Write an id as `keepfor plan` shows it."
        raise UnknownItem(id=id, count=len(items), fix=fix)
    decision = decide(policy, items, now, vetoes)[index]
    opinions = []
    for rule in policy.rules:
        said = verdict(rule, items[index], now)
        opinions.append(
            Opinion(
                rule=rule.name,
                action=rule.action,
                answer=said.answer,
                reason=said.reason,
                evidence=said.evidence(),
                due=due(rule, items[index]),
            )
        )
    return Explanation(
        decision=decision,
        opinions=tuple(opinions),
        next=None if decision.action == "delete" else _next(policy, items, now, index, vetoes),
    )


def _next(
    policy: Policy, items: Sequence[Item], now: datetime, index: int, vetoes: Mapping[str, str]
) -> Change | None:
    """The first change that comes of time alone, once what is decided now was done."""
    items = list(items)
    said = decide(policy, items, now, vetoes)[index]
    if said.action == "flag":
        flagged_at = Known(now, "this plan")  # pragma: no mutate
        items[index] = replace(items[index], flagged_by=said.rule, flagged_at=flagged_at)
        said = decide(policy, items, now, vetoes)[index]
    for moment in sorted(set(_moments(policy, items, index, said))):
        if now <= moment < datetime.max.replace(tzinfo=moment.tzinfo):
            then = decide(policy, items, moment + _TICK, vetoes)[index]
            if (then.action, then.rule, then.reason) != (said.action, said.rule, said.reason):
                return Change(due=moment, decision=then)
    return None


def _moments(
    policy: Policy, items: Sequence[Item], index: int, said: Decision
) -> Iterator[datetime]:
    """When a rule begins to say yes of the item, of what takes it along, or of what cites it."""
    concerns = {items[index].id, items[index].derived_from or items[index].id}
    if said.reason == "cited":
        concerns.add(str(said.evidence["by"]))
    concerned = [item for item in items if item.id in concerns]
    for rule in policy.rules:
        for item in concerned:
            if (moment := due(rule, item)) is not None:
                yield moment
