"""What one rule says of one item, with the numbers, and from when on it would say yes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Literal

import msgspec
from msgspec.structs import replace

from keepfor.items import Evidence, Item
from keepfor.policy.globs import matches
from keepfor.policy.rules import Rule
from keepfor.times import DAY, Instant, Known, Unknown, before, format_duration

Answer = Literal["yes", "no", "unknown"]

_SOME_MOMENT = datetime(2000, 1, 1, tzinfo=UTC)


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What one rule says of one item, with the numbers that it was reached on.

    Parameters:
        answer: `yes`, `no`, or `unknown` where an instant that it hangs on cannot be read.
        reason: the threshold that settled it, `age` or `unused`; `type` or `match` where the rule
            does not speak of such items, `flagged` where the item has not carried a flag for long
            enough, `pinned` where it keeps all that it speaks of. Of two thresholds that both say
            no, the one that is due first.
        threshold: how old, or how long unused, the item may get.
        clock: the instant that counts.
        now: the instant that it was held against.
        degraded: no access was ever recorded, so that the item's own instant stood in.
        unmet: what the item would have to say of itself, or `id`.
        after_flagged: how long the item has to have carried a flag; None where it has not to.
        flagged: since when it carries one.
    """

    answer: Answer
    reason: Literal["age", "unused", "type", "match", "flagged", "pinned"]
    threshold: timedelta = timedelta()
    clock: Instant = Unknown("not looked at")
    now: datetime = datetime.max
    degraded: bool = False
    unmet: str = ""
    after_flagged: timedelta | None = None
    flagged: Instant = Unknown("not looked at")

    def evidence(self) -> Evidence:
        """The numbers, by name: worked out when asked for, since most verdicts are a plain no."""
        if self.reason == "match":
            return {"unmet": self.unmet}
        facts = self._of_the_threshold() if self.reason in ("age", "unused") else {}
        if self.after_flagged is not None:
            facts["after_flagged"] = _text(self.after_flagged)
            if isinstance(self.flagged, Unknown):
                facts["why"] = self.flagged.why
            else:
                since = self.flagged.instant
                facts["flagged_days"] = round((self.now - since) / DAY, 3)
                facts["flagged_at"] = since.isoformat()
        return facts

    def _of_the_threshold(self) -> Evidence:
        facts: Evidence = {"threshold": _text(self.threshold)}
        if isinstance(self.clock, Unknown):
            facts["why"] = self.clock.why
        else:
            instant = self.clock.instant
            days = "age_days" if self.reason == "age" else "unused_days"
            facts[days] = round((self.now - instant) / DAY, 3)
            facts["instant"] = instant.isoformat()
            facts["source"] = self.clock.source
            facts["cutoff"] = _cutoff(self.now, self.threshold)
        if self.degraded:
            facts["access"] = "missing"
        return facts


_OF_ANOTHER_TYPE = Verdict(answer="no", reason="type")
_PINNED = Verdict(answer="yes", reason="pinned")


def verdict(rule: Rule, item: Item, now: datetime) -> Verdict:
    """Whether the rule matches the item.

    An item exactly on the cutoff does not match; one whose instant lies ahead is simply young.

    Parameters:
        rule: what to hold the item against.
        item: what a scan found.
        now: the instant to judge by, aware.

    Returns:
        `yes` if either threshold is passed (age is asked first) and whatever else the rule asks
        for is met; `no` if neither is, or one of the rest is not; and `unknown` if an instant that
        could settle it cannot be read.
    """
    if rule.type is not None and rule.type != item.type:
        return _OF_ANOTHER_TYPE
    if rule.narrow and (unmet := _unmet(rule, item)) is not None:
        return Verdict(answer="no", reason="match", unmet=unmet)
    if rule.pins:
        return _PINNED
    said = _by_thresholds(rule, item, now)
    if rule.after_flagged is None or said.answer == "no":
        return said
    return _by_flag(rule.after_flagged, item, now, said)


def speaks_of(rule: Rule, item: Item) -> bool:
    """Whether the rule is about such an item at all, by its type, its id and what it says."""
    return rule.type in (None, item.type) and _unmet(rule, item) is None


def due(rule: Rule, item: Item) -> datetime | None:
    """The instant after which the rule says yes of the item as it is now.

    Returns:
        None where it never will, where that cannot be told, and where it pins, which it always did.
    """
    if rule.pins or not speaks_of(rule, item):
        return None
    moments = []
    if rule.max_age is not None:
        moments.append(_after(item.instant, rule.max_age))
    if rule.max_unused is not None:
        clock = item.accessed if isinstance(item.accessed, Known) else item.instant
        moments.append(_after(clock, rule.max_unused))
    passed = min((moment for moment in moments if moment is not None), default=None)
    if passed is None or rule.after_flagged is None:
        return passed
    stood = _after(_flag(item), rule.after_flagged)
    return None if stood is None else max(passed, stood)


def in_utc(moment: datetime) -> datetime:
    """The same moment in UTC, where a difference is the time that passed, whatever clocks say."""
    return _SOME_MOMENT + (moment - _SOME_MOMENT)


def _unmet(rule: Rule, item: Item) -> str | None:
    """What the item has not of what the rule matches; a name that it lacks is no match."""
    if rule.match_id is not None and not matches(rule.match_id, item.id):
        return "id"
    for name, text in rule.match_fields.items():
        if item.fields.get(name) != text:
            return name
    return None


def _by_thresholds(rule: Rule, item: Item, now: datetime) -> Verdict:
    by_age = None
    if rule.max_age is not None:
        by_age = _compare("age", item.instant, rule.max_age, now)
        if by_age.answer == "yes" or rule.max_unused is None:
            return by_age
    assert rule.max_unused is not None  # Any other rule has one threshold at least.
    if isinstance(item.accessed, Known):
        by_use = _compare("unused", item.accessed, rule.max_unused, now)
    else:
        by_use = _compare("unused", item.instant, rule.max_unused, now, degraded=True)
    if by_age is None or by_use.answer == "yes":
        return by_use
    return min(by_age, by_use, key=_until_due)


def _by_flag(threshold: timedelta, item: Item, now: datetime, said: Verdict) -> Verdict:
    """The verdict of a rule that waits for a flag, where the thresholds alone did not say no."""
    since = _flag(item)
    if isinstance(since, Unknown):
        if said.answer == "unknown" and _carries_a_flag(item):
            return said
        answer: Answer = "unknown" if _carries_a_flag(item) else "no"
        return Verdict(answer=answer, reason="flagged", after_flagged=threshold, flagged=since)
    if now - since.instant > threshold:
        return replace(said, after_flagged=threshold, flagged=since, now=now)
    return Verdict(answer="no", reason="flagged", after_flagged=threshold, flagged=since, now=now)


def _flag(item: Item) -> Instant:
    """Since when the item carries a flag.

    Half a flag may be one that somebody is taking away, so it is none that has stood for long.
    """
    if item.flagged_by is None and isinstance(item.flagged_at, Known):
        return Unknown("it says when it was flagged, and not by which rule")
    return item.flagged_at


def _carries_a_flag(item: Item) -> bool:
    return item.flagged_by is not None or isinstance(item.flagged_at, Known)


def _compare(
    reason: Literal["age", "unused"],
    clock: Instant,
    threshold: timedelta,
    now: datetime,
    *,
    degraded: bool = False,
) -> Verdict:
    if isinstance(clock, Unknown):
        return Verdict(
            answer="unknown", reason=reason, threshold=threshold, clock=clock, degraded=degraded
        )
    return Verdict(
        answer="yes" if now - clock.instant > threshold else "no",
        reason=reason,
        threshold=threshold,
        clock=clock,
        now=now,
        degraded=degraded,
    )


def _until_due(said: Verdict) -> timedelta:
    """Orders verdicts that are not a yes: unknown first, then what is due soonest."""
    if isinstance(said.clock, Unknown):
        return timedelta.min
    return said.threshold - (said.now - said.clock.instant)


def _after(clock: Instant, threshold: timedelta) -> datetime | None:
    if isinstance(clock, Unknown):
        return None
    try:
        return clock.instant + threshold
    except OverflowError:
        return None


# A store's many items share a few thresholds, and one `now`.
@lru_cache(maxsize=64)
def _cutoff(now: datetime, threshold: timedelta) -> str:
    return before(in_utc(now), threshold).isoformat()


@lru_cache(maxsize=64)
def _text(duration: timedelta) -> str:
    return format_duration(duration)
