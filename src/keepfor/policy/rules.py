"""Rules and policies, one rule's verdict on an item, and a policy's terms for rows."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Literal, get_args

import msgspec

from keepfor.errors import BadPolicy
from keepfor.items import Action, Cut, Evidence, Item, Terms
from keepfor.times import DAY, Instant, Known, Unknown, before, format_duration

OnMissing = Literal["skip", "flag", "delete"]
Answer = Literal["yes", "no", "unknown"]


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """What matches, and what then happens.

    Parameters:
        name: unique within its policy.
        type: the type of item that it speaks of; None for every type.
        max_age: matches what is strictly older.
        max_unused: matches what was last recalled strictly longer ago. Either threshold is enough.
        action: what happens to what matches; `keep` pins it.
        on_missing_access_signal: for a delete that matched on disuse where no access was ever
            recorded: `skip` spares the item, `flag` flags it, `delete` deletes it.
        cascade_derived: whether a delete takes along what was derived from the item.

    Raises:
        BadPolicy: when the rule could not mean anything.
    """

    name: str
    type: str | None = None
    max_age: timedelta | None = None
    max_unused: timedelta | None = None
    action: Action = "flag"
    on_missing_access_signal: OnMissing = "skip"
    cascade_derived: bool = False

    def __post_init__(self) -> None:
        if not self.name:
            raise BadPolicy(what="a rule has no name.", fix="Give each rule a `name` of its own.")
        if self.action not in get_args(Action):
            raise self._refusal(
                f"`action: {self.action}` is unknown", "Write keep, flag or delete."
            )
        if self.max_age is None and self.max_unused is None and not self.pins:
            raise self._refusal("it has no threshold", "Give it `max_age` or `max_unused`.")
        for key, threshold in (("max_age", self.max_age), ("max_unused", self.max_unused)):
            if threshold is not None and not _is_span(threshold):
                fix = "Give a duration above zero, such as 90d."
                raise self._refusal(f"its `{key}` is {threshold!r}", fix)
        if self.on_missing_access_signal not in get_args(OnMissing):
            what = f"`on_missing_access_signal: {self.on_missing_access_signal}` is unknown"
            raise self._refusal(what, "Write skip, flag or delete.")
        if self.on_missing_access_signal != "skip" and not self._deletes_on_disuse():
            what = "`on_missing_access_signal` says nothing here"
            raise self._refusal(what, "It belongs to `action: delete` with `max_unused`.")
        if self.cascade_derived and self.action != "delete":
            what = "`cascade_derived` says nothing here"
            raise self._refusal(what, "It belongs to `action: delete`.")

    @property
    def pins(self) -> bool:
        """Whether it keeps all that it speaks of, whatever its age."""
        return self.action == "keep" and self.max_age is None and self.max_unused is None

    def _deletes_on_disuse(self) -> bool:
        return self.action == "delete" and self.max_unused is not None

    def _refusal(self, what: str, fix: str) -> BadPolicy:
        return BadPolicy(what=f"rule {self.name!r}: {what}.", fix=fix)


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """What a store is held to.

    Parameters:
        rules: in order; the first that matches decides.
        max_count: how many items may stay; None for no ceiling.
        max_bytes: how many bytes may stay; None for no ceiling.
        keep_last: how many of the newest are out of reach of everything else.
        breaker: the largest fraction of a store of ten or more that one sweep may delete; None
            switches it off.

    Raises:
        BadPolicy: when the parts contradict each other, or could not mean anything.
    """

    rules: tuple[Rule, ...] = ()
    max_count: int | None = None
    max_bytes: int | None = None
    keep_last: int = 0
    breaker: float | None = 0.5

    def __post_init__(self) -> None:
        names = [rule.name for rule in self.rules]
        for name in names:
            if names.count(name) > 1:
                raise BadPolicy(
                    what=f"{names.count(name)} rules are named {name!r}.",
                    fix="Give each rule a name of its own.",
                )
        for key, ceiling in (("max_count", self.max_count), ("max_bytes", self.max_bytes)):
            if ceiling is not None and not _is_number(ceiling):
                raise BadPolicy(
                    what=f"`{key}` is {ceiling!r}.",
                    fix="Write a whole number above zero, or leave it out for no ceiling.",
                )
        if not _is_number(self.keep_last, least=0):
            raise BadPolicy(
                what=f"`keep_last` is {self.keep_last!r}.",
                fix="Write how many of the newest to keep, or 0 for no floor.",
            )
        if self.max_count is not None and self.keep_last > self.max_count:
            raise BadPolicy(
                what=f"`keep_last` ({self.keep_last}) is above `max_count` ({self.max_count}).",
                fix="Lower the one or raise the other.",
            )
        if self.breaker is not None and not _is_fraction(self.breaker):
            raise BadPolicy(
                what=f"`breaker` is {self.breaker!r}.",
                fix="Write a fraction of the store, such as 0.5, or off.",
            )


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What one rule says of one item, with the numbers that it was reached on.

    Parameters:
        answer: `yes`, `no`, or `unknown` where the age cannot be read.
        reason: the threshold that settled it, `age` or `unused`; `type` where the rule does not
            speak of such items, `pinned` where it keeps all such items. Of two thresholds that both
            say no, the one that is due first.
        threshold: how old, or how long unused, the item may get.
        clock: the instant that counts.
        age: how long ago that was.
        degraded: no access was ever recorded, so that the item's own instant stood in.
    """

    answer: Answer
    reason: Literal["age", "unused", "type", "pinned"]
    threshold: timedelta = timedelta()
    clock: Instant = Unknown("not looked at")
    age: timedelta = timedelta()
    degraded: bool = False

    def evidence(self) -> Evidence:
        """The numbers, by name: worked out when asked for, since most verdicts are a plain no."""
        if self.reason in ("type", "pinned"):
            return {}
        facts: Evidence = {"threshold": format_duration(self.threshold)}
        if isinstance(self.clock, Unknown):
            facts["why"] = self.clock.why
        else:
            instant = self.clock.instant
            facts["age_days" if self.reason == "age" else "unused_days"] = round(self.age / DAY, 3)
            facts["instant"] = instant.isoformat()
            facts["source"] = self.clock.source
            facts["cutoff"] = before(instant + self.age, self.threshold).isoformat()
        if self.degraded:
            facts["access"] = "missing"
        return facts


_OF_ANOTHER_TYPE = Verdict(answer="no", reason="type")
_PINNED = Verdict(answer="yes", reason="pinned")


def keep_for(duration: timedelta | None) -> tuple[Rule, ...]:
    """The rule that `keep_for: 90d` is short for; none where that is `forever`."""
    if duration is None:
        return ()
    return (Rule(name="keep_for", max_age=duration, action="delete"),)


def keep_type(name: str, type_: str, duration: timedelta | None) -> tuple[Rule, ...]:
    """The rules by which one type has a time of its own, which no later rule shortens.

    Parameters:
        name: the name of the rule that deletes.
        type_: the type.
        duration: how long it stays; None for ever.
    """
    if duration is None:
        return (Rule(name=name, type=type_, action="keep"),)
    return (
        Rule(name=name, type=type_, max_age=duration, action="delete"),
        Rule(name=f"{name} (younger)", type=type_, action="keep"),
    )


def verdict(rule: Rule, item: Item, now: datetime) -> Verdict:
    """Whether the rule matches the item.

    An item exactly on the cutoff does not match; one whose instant lies ahead is simply young.

    Parameters:
        rule: what to hold the item against.
        item: what a scan found.
        now: the instant to judge by, aware.

    Returns:
        `yes` if either threshold is passed (age is asked first), `no` if neither is, and
        `unknown` if an instant that could settle it cannot be read.
    """
    if rule.type is not None and rule.type != item.type:
        return _OF_ANOTHER_TYPE
    if rule.pins:
        return _PINNED
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


def terms(policy: Policy, now: datetime, bounds: Collection[str] = ("max_bytes",)) -> Terms:
    """What the policy comes to at `now` for a store of rows, which expire by cutoff.

    Parameters:
        policy: what the store is held to.
        now: the instant to judge by, aware.
        bounds: what the store can be held to beside age: `type`, `max_count`, `max_bytes`.

    Returns:
        For the rows of each type that a rule names, and for all others, the cutoff of the delete
        rule with the shortest `max_age` among those that stand before a rule that pins them; and
        the byte ceiling with its target, 80 % of it, so that a ledger full of fresh rows shrinks
        once and is then quiet.

    Raises:
        BadPolicy: when the policy says something that such rows cannot be held to.
    """
    for rule in policy.rules:
        if what := _beyond_rows(rule, bounds):
            raise BadPolicy(
                what=f"rule {rule.name!r} {what}, and rows expire by age alone.",
                fix="Write `max_age` with `action: delete`, or `keep_for`.",
            )
    for key, ceiling in (("max_count", policy.max_count), ("max_bytes", policy.max_bytes)):
        if ceiling is not None and key not in bounds:
            instead = [f"`{bound}`" for bound in ("max_count", "max_bytes") if bound in bounds]
            raise BadPolicy(
                what=f"a store of this kind cannot be held to `{key}`.",
                fix=f"Write {' or '.join([*instead, '`keep_for`'])}.",
            )
    types = dict.fromkeys(rule.type for rule in policy.rules if rule.type is not None)
    others = _deciding(policy.rules, None, now)
    return Terms(
        now=now,
        rule=others.rule or "keep_for",
        cutoff=others.cutoff,
        by_type=tuple(_deciding(policy.rules, type_, now) for type_ in types),
        ceiling=policy.max_bytes,
        target=None if policy.max_bytes is None else policy.max_bytes * 4 // 5,
        max_count=policy.max_count,
        keep_last=policy.keep_last,
    )


def _deciding(rules: Sequence[Rule], type_: str | None, now: datetime) -> Cut:
    """What the rules come to for the rows of one type; None is every type that no rule names."""
    name, shortest = "", None
    for rule in rules:
        if rule.type not in (None, type_):
            continue
        name = name or rule.name
        if rule.pins:
            break
        assert rule.max_age is not None  # All else was refused.
        if shortest is None or rule.max_age < shortest:
            name, shortest = rule.name, rule.max_age
    return Cut(rule=name, type=type_ or "", cutoff=before(now, shortest) if shortest else None)


def _beyond_rows(rule: Rule, bounds: Collection[str]) -> str | None:
    if rule.type is not None and "type" not in bounds:
        return "names a type"
    if rule.max_unused is not None:
        return "goes by disuse"
    if rule.action != "delete" and not rule.pins:
        return f"says {rule.action}"
    return "cascades" if rule.cascade_derived else None


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
    age = now - clock.instant
    return Verdict(
        answer="yes" if age > threshold else "no",
        reason=reason,
        threshold=threshold,
        clock=clock,
        age=age,
        degraded=degraded,
    )


def _until_due(said: Verdict) -> timedelta:
    """Orders verdicts that are not a yes: unknown first, then what is due soonest."""
    return timedelta.min if said.answer == "unknown" else said.threshold - said.age


def _is_span(value: object) -> bool:
    return isinstance(value, timedelta) and value > timedelta()


def _is_number(value: object, least: int = 1) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _is_fraction(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= 1
