"""The counts of a plan for a store of items, and how long it has been overdue."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from keepfor.items import Decision, Item, Survey
from keepfor.policy.limits import Shortfall, shortfalls
from keepfor.policy.rules import Policy, Rule
from keepfor.times import Known, Unknown, before

#: The reasons that a decision may have by a rule's threshold, and by a ceiling.
BY_RULE = ("age", "unused")
BY_CEILING = ("count", "bytes")


def counted(
    policy: Policy, items: Sequence[Item], decisions: Sequence[Decision], now: datetime
) -> Survey:
    """What the decisions come to, in numbers.

    Parameters:
        policy: what the decisions were made by.
        items: what they were made for.
        decisions: one for each item, in their order.
        now: the instant they were made for.
    """
    pairs = list(zip(items, decisions, strict=True))
    applied = [(item, said) for item, said in pairs if said.action != "keep"]
    gone = [(item, said) for item, said in pairs if said.action == "delete"]
    stay = [item for item, said in pairs if said.action != "delete"]
    size = sum(item.bytes for item in items)
    return Survey(
        scanned=len(pairs),
        kept=len(pairs) - len(applied),
        applied=len(applied),
        expired=sum(said.reason in BY_RULE for _, said in gone),
        over_ceiling=sum(said.reason in BY_CEILING for _, said in gone),
        future=sum(instant > now for instant in _known(stay)),
        unknown=sum(isinstance(item.instant, Unknown) for item in stay),
        bytes_before=size,
        bytes_after=size - sum(item.bytes for item, _ in gone),
        oldest=min(_known(stay), default=None),
        newest=max(_known(items), default=None),
        due=min(_known([item for item, _ in gone]), default=None),
        cutoff=_cutoff(policy, now),
        fresh=min(_known([item for item, said in pairs if said.rule is None]), default=None),
        lag=max(_overdue(policy, pairs, now), default=timedelta()),
        notes=list(_notes(policy, items, decisions)),
    )


def _known(items: Sequence[Item]) -> Iterator[datetime]:
    return (item.instant.instant for item in items if isinstance(item.instant, Known))


def _cutoff(policy: Policy, now: datetime) -> datetime | None:
    """Before which items expire, where a single rule says so of all of them."""
    match policy.rules:
        case (Rule(type=None, max_unused=None, action="delete", max_age=timedelta() as age),):
            return before(now, age)
    return None


def _overdue(
    policy: Policy, pairs: Sequence[tuple[Item, Decision]], now: datetime
) -> Iterator[timedelta]:
    """For each rule and ceiling that takes something, how long ago it could have begun to."""
    for _, said in pairs:
        if said.action != "keep" and said.reason in BY_RULE:
            evidence = said.evidence
            cutoff, instant = str(evidence["cutoff"]), str(evidence["instant"])
            yield datetime.fromisoformat(cutoff) - datetime.fromisoformat(instant)
    reasons = {said.reason for _, said in pairs if said.action == "delete"}
    # What the rules left, the oldest first; what has no known age was there all the time.
    left = sorted(
        (item for item, said in pairs if said.action != "delete" or said.reason in BY_CEILING),
        key=lambda item: (isinstance(item.instant, Known), *_known([item])),
    )
    count = size = 0
    for item in left:
        count, size = count + 1, size + item.bytes
        too_many = policy.max_count is not None and count > policy.max_count
        too_big = policy.max_bytes is not None and size > policy.max_bytes
        if (too_many or too_big) and not reasons.isdisjoint(BY_CEILING):
            yield from (now - instant for instant in _known([item]))
            return


def _notes(policy: Policy, items: Sequence[Item], decisions: Sequence[Decision]) -> Iterator[str]:
    by_mtime = sum(isinstance(it.instant, Known) and it.instant.source == "mtime" for it in items)
    if by_mtime:
        yield (
            f"{by_mtime} of {len(items)} are dated by their file's mtime, which a copy or a "
            "restore may have changed"
        )
    for short in shortfalls(policy, items, decisions):
        yield f"still {short.over} over {short.ceiling}: {_because(short)}"


def _because(short: Shortfall) -> str:
    said = {
        "floor": "held by keep_last",
        "veto": "not to be touched now",
        "spared": "spared",
        "pinned": "pinned",
        "unknown": "of unknown age",
    }
    return ", ".join(f"{count} {said[why]}" for why, count in sorted(short.because.items()))
