"""Rules and policies, what they may not say, and a policy's terms for rows."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Literal, get_args

import msgspec

from keepfor.errors import BadPolicy
from keepfor.items import Action, Cut, Terms
from keepfor.policy.globs import unclear
from keepfor.times import before

OnMissing = Literal["skip", "flag", "delete"]


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """What matches, and what then happens.

    Parameters:
        name: unique within its policy.
        type: the type of item that it speaks of; None for every type.
        match_id: a glob that the item's id has to match: `*` stands for any run of characters,
            slashes too, `?` for any one; None for every id.
        match_fields: what the item has to say of itself, by name. An item that lacks one of them
            does not match.
        max_age: matches what is strictly older.
        max_unused: matches what was last recalled strictly longer ago. Either threshold is enough.
        after_flagged: of a delete, that it takes only what has carried a flag, of whatever rule,
            for strictly longer.
        action: what happens to what matches; `keep` pins it.
        on_missing_access_signal: for a delete that matched on disuse where no access was ever
            recorded: `skip` spares the item, `flag` flags it, `delete` deletes it.
        cascade_derived: whether a delete takes along what was derived from the item.
        keep_if_cited: whether a delete spares what an item that stays names.

    Raises:
        BadPolicy: when the rule could not mean anything.
    """

    name: str
    type: str | None = None
    match_id: str | None = None
    match_fields: dict[str, str] = {}
    max_age: timedelta | None = None
    max_unused: timedelta | None = None
    after_flagged: timedelta | None = None
    action: Action = "flag"
    on_missing_access_signal: OnMissing = "skip"
    cascade_derived: bool = False
    keep_if_cited: bool = False

    def __post_init__(self) -> None:
        if not self.name:
            raise BadPolicy(what="a rule has no name.", fix="Give each rule a `name` of its own.")
        if self.action not in get_args(Action):
            raise self._refusal(
                f"`action: {self.action}` is unknown", "Write keep, flag or delete."
            )
        if self.max_age is None and self.max_unused is None and not self.pins:
            raise self._refusal("it has no threshold", "Give it `max_age` or `max_unused`.")
        for key, threshold in (
            ("max_age", self.max_age),
            ("max_unused", self.max_unused),
            ("after_flagged", self.after_flagged),
        ):
            if threshold is not None and not _is_span(threshold):
                fix = "Give a duration above zero, such as 90d."
                raise self._refusal(f"its `{key}` is {threshold!r}", fix)
        if self.on_missing_access_signal not in get_args(OnMissing):
            what = f"`on_missing_access_signal: {self.on_missing_access_signal}` is unknown"
            raise self._refusal(what, "Write skip, flag or delete.")
        if self.on_missing_access_signal != "skip" and not self._deletes_on_disuse():
            what = "`on_missing_access_signal` says nothing here"
            raise self._refusal(what, "It belongs to `action: delete` with `max_unused`.")
        if self.on_missing_access_signal == "flag" and self.after_flagged is not None:
            what = "`on_missing_access_signal: flag` says nothing beside `after_flagged`"
            raise self._refusal(what, "All that it matches is flagged: write skip or delete.")
        for key, said in (
            ("after_flagged", self.after_flagged is not None),
            ("cascade_derived", self.cascade_derived),
            ("keep_if_cited", self.keep_if_cited),
        ):
            if said and self.action != "delete":
                what = f"`{key}` says nothing here"
                raise self._refusal(what, "It belongs to `action: delete`.")
        self._refuse_matches()

    @property
    def pins(self) -> bool:
        """Whether it keeps all that it speaks of, whatever its age."""
        return self.action == "keep" and self.max_age is None and self.max_unused is None

    @property
    def narrow(self) -> bool:
        """Whether an item of its type, and past its threshold, may still not match."""
        return bool(self.match_id is not None or self.match_fields or self.after_flagged)

    def _refuse_matches(self) -> None:
        if self.match_id is not None and (why := unclear(self.match_id)):
            fix = "Write the id as reports show it, with `*` for any run of characters."
            raise self._refusal(f"its `match` on the id is {self.match_id!r}: {why}", fix)
        fix = "Write names and the texts that they have to be equal to."
        if not isinstance(self.match_fields, dict):
            raise self._refusal(f"its `match` is {self.match_fields!r}", fix)
        for key, value in self.match_fields.items():
            if not _is_text(key) or not _is_text(value):
                raise self._refusal(f"its `match` says {key!r}: {value!r}", fix)

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
        keep_last_of: the same for the newest of a type, by type.
        breaker: the largest fraction of a store of ten or more that one sweep may delete; None
            switches it off.

    Raises:
        BadPolicy: when the parts contradict each other, or could not mean anything.
    """

    rules: tuple[Rule, ...] = ()
    max_count: int | None = None
    max_bytes: int | None = None
    keep_last: int = 0
    keep_last_of: dict[str, int] = {}
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
        self._refuse_floors_of_types()
        floor = max(self.keep_last, sum(self.keep_last_of.values()))
        if self.max_count is not None and floor > self.max_count:
            raise BadPolicy(
                what=f"`keep_last` ({floor}) is above `max_count` ({self.max_count}).",
                fix="Lower the one or raise the other.",
            )
        if self.breaker is not None and not _is_fraction(self.breaker):
            raise BadPolicy(
                what=f"`breaker` is {self.breaker!r}.",
                fix="Write a fraction of the store, such as 0.5, or off.",
            )

    def _refuse_floors_of_types(self) -> None:
        fix = "Write types, and how many of the newest of each to keep."
        if not isinstance(self.keep_last_of, dict):
            raise BadPolicy(what=f"`keep_last_of` is {self.keep_last_of!r}.", fix=fix)
        for type_, count in self.keep_last_of.items():
            if not _is_text(type_) or not _is_number(count):
                raise BadPolicy(what=f"`keep_last` of {type_!r} is {count!r}.", fix=fix)


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
    if policy.keep_last_of:
        raise BadPolicy(
            what="a store of this kind cannot be held to a `keep_last` of a type.",
            fix="Write `keep_last` with one number for all rows.",
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
    called = type_ or ""  # pragma: no mutate
    return Cut(rule=name, type=called, cutoff=before(now, shortest) if shortest else None)


def _beyond_rows(rule: Rule, bounds: Collection[str]) -> str | None:
    if rule.type is not None and "type" not in bounds:
        return "names a type"
    if rule.match_id is not None or rule.match_fields:
        return "says `match`"
    if rule.after_flagged is not None:
        return "says `after_flagged`"
    if rule.keep_if_cited:
        return "says `keep_if_cited`"
    if rule.max_unused is not None:
        return "goes by disuse"
    if rule.action != "delete" and not rule.pins:
        return f"says {rule.action}"
    return "cascades" if rule.cascade_derived else None


def _is_span(value: object) -> bool:
    return isinstance(value, timedelta) and value > timedelta()


def _is_text(value: object) -> bool:
    return isinstance(value, str) and value != ""


def _is_number(value: object, least: int = 1) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _is_fraction(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= 1
