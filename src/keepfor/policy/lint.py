"""Traps in a policy: what is well-formed, and yet does not do what its owner will think."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta

import msgspec

from keepfor.items import Item
from keepfor.policy.globs import covers
from keepfor.policy.rules import Policy, Rule
from keepfor.policy.verdicts import speaks_of
from keepfor.times import Known, format_duration


class Trap(msgspec.Struct, frozen=True, kw_only=True):
    """Something in a policy that will surprise its owner.

    Parameters:
        rule: the rule's name, or the ceiling's key.
        what: what will happen, or will not.
        fix: what to write instead.
    """

    rule: str
    what: str
    fix: str


def lint(
    policy: Policy, items: Sequence[Item] = (), log_keep_for: timedelta | None = None
) -> list[Trap]:
    """The traps in a policy.

    Parameters:
        policy: what a store is held to.
        items: what the store holds now; without any, only the policy itself is looked at.
        log_keep_for: how long the log of accesses is itself kept; None for ever.

    Returns:
        The traps, those of the policy itself first, each kind in the order of the rules.
    """
    traps = [
        *_shadowed(policy.rules),
        *_flagless(policy.rules),
        *_forgetful(policy.rules, log_keep_for),
        *_bent_ceilings(policy),
    ]
    if items:
        types = {item.type for item in items}
        for rule in policy.rules:
            traps += _idle(rule, items, types)
        traps += _groundless_floors(policy, types)
        traps += _powerless_ceilings(policy, items)
    return traps


def _shadowed(rules: Sequence[Rule]) -> Iterator[Trap]:
    """Rules to which earlier ones leave nothing, or next to nothing."""
    for index, rule in enumerate(rules):
        earlier = [other for other in rules[:index] if _as_wide(other, rule)]
        if rule.pins:
            if pin := next((other for other in earlier if other.pins), None):
                what = f"it can never fire: all that it matches has matched {pin.name!r} before."
                yield Trap(rule=rule.name, what=what, fix="Leave it out.")
            continue
        old = [other for other in earlier if _within(other.max_age, rule.max_age) or other.pins]
        unused = [
            other for other in earlier if _within(other.max_unused, rule.max_unused) or other.pins
        ]
        # What was not recalled for so long is as old, unless it was changed since.
        nearly = [other for other in earlier if _within(other.max_age, rule.max_unused)]
        first = [found[0] for found in (old, unused or nearly) if found]
        if len(first) < (rule.max_age is not None) + (rule.max_unused is not None):
            continue
        names = " and ".join(dict.fromkeys(f"{other.name!r}" for other in first))
        what = f"it can never fire: all that it matches has matched {names} before."
        if nearly and not unused:
            what = (
                "it fires at most on items that were changed after their last recall: "
                f"all others have matched {names} before."
            )
        yield Trap(rule=rule.name, what=what, fix=f"Put it above {names}, or leave it out.")


def _flagless(rules: Sequence[Rule]) -> Iterator[Trap]:
    """Rules that wait for a flag where no rule sets one."""
    for rule in rules:
        flags = [
            other
            for other in rules
            if "flag" in (other.action, other.on_missing_access_signal)
            and (other.type is None or rule.type in (None, other.type))
        ]
        if rule.after_flagged is not None and not flags:
            yield Trap(
                rule=rule.name,
                what="no rule flags what it speaks of, so it takes at most what others flagged.",
                fix="Add a rule with `action: flag` below it.",
            )


def _forgetful(rules: Sequence[Rule], log_keep_for: timedelta | None) -> Iterator[Trap]:
    """Rules on disuse that look further back than the log of accesses goes."""
    for rule in rules:
        if rule.max_unused is None or log_keep_for is None or log_keep_for > rule.max_unused:
            continue
        kept, wanted = format_duration(log_keep_for), format_duration(rule.max_unused)
        yield Trap(
            rule=rule.name,
            what=f"the log of accesses is kept for {kept}, so that by {wanted} without a recall "
            "the last one is forgotten, and the item passes for one that was never recalled.",
            fix=f"Keep the log for longer than {wanted}, or lower `max_unused`.",
        )


def _groundless_floors(policy: Policy, types: set[str]) -> Iterator[Trap]:
    """Floors of types that no item has."""
    for type_ in policy.keep_last_of:
        if type_ not in types:
            yield _no_such_type("keep_last", type_, types)


def _no_such_type(rule: str, type_: str, types: set[str]) -> Trap:
    there = ", ".join(sorted(types)[:5])
    what = f"no item is of type {type_!r}."
    return Trap(rule=rule, what=what, fix=f"The types that are there: {there}.")


def _bent_ceilings(policy: Policy) -> Iterator[Trap]:
    """Ceilings that can only take what was not meant, since the old is pinned."""
    pins = [
        rule
        for rule in policy.rules
        if rule.action == "keep" and rule.type is None and not rule.narrow
    ]
    for key, _ in _ceilings(policy):
        for pin in pins:
            yield Trap(
                rule=key,
                what=f"{pin.name!r} pins {_matches(pin)}, so it takes the others instead.",
                fix=f"Give {pin.name!r} a type, or leave `{key}` out.",
            )


def _powerless_ceilings(policy: Policy, items: Sequence[Item]) -> Iterator[Trap]:
    """Ceilings that can take none of the items that are there."""
    ageless = not any(isinstance(item.instant, Known) for item in items)
    weightless = not any(item.bytes for item in items)
    for key, _ in _ceilings(policy):
        if ageless:
            yield Trap(
                rule=key,
                what="it can take nothing, since no item's age is known.",
                fix="Have the age read from where it can be found.",
            )
        elif weightless and key == "max_bytes":
            yield Trap(
                rule=key,
                what="it can never be reached, since no item has a size.",
                fix="Write `max_count`, or leave it out.",
            )


def _idle(rule: Rule, items: Sequence[Item], types: set[str]) -> Iterator[Trap]:
    """What a rule cannot do to the items that are there."""
    if rule.type is not None and rule.type not in types:
        yield _no_such_type(rule.name, rule.type, types)
        return
    spoken_of = [item for item in items if speaks_of(rule, item)]
    if not spoken_of:
        wanted = [f"an id like {rule.match_id!r}"] if rule.match_id is not None else []
        wanted += [f"`{name}: {text}`" for name, text in rule.match_fields.items()]
        yield Trap(
            rule=rule.name,
            what=f"no item that it could speak of has {' and '.join(wanted)}.",
            fix="Write ids as reports show them, and values as the items have them.",
        )
        return
    recorded = any(isinstance(item.accessed, Known) for item in spoken_of)
    if rule.action == "delete" and rule.max_unused is not None and not recorded:
        instead = {
            "skip": "spares what it matches",
            "flag": "flags what it matches",
            "delete": "deletes by age alone",
        }[rule.on_missing_access_signal]
        yield Trap(
            rule=rule.name,
            what=f"no access was ever recorded, so its `max_unused` {instead}.",
            fix="Have accesses recorded, or write `max_age`.",
        )
    if rule.cascade_derived:
        sources = {item.id for item in spoken_of}
        if not any(item.derived_from in sources for item in items):
            yield Trap(
                rule=rule.name,
                what="its cascade takes nothing along: no item was derived from one of these.",
                fix="Leave `cascade_derived` out, or have items name what they were made from.",
            )


def _ceilings(policy: Policy) -> list[tuple[str, int]]:
    ceilings = (("max_count", policy.max_count), ("max_bytes", policy.max_bytes))
    return [(key, ceiling) for key, ceiling in ceilings if ceiling is not None]


def _as_wide(rule: Rule, other: Rule) -> bool:
    """Whether a rule speaks of all that another speaks of, thresholds aside."""
    return (
        rule.type in (None, other.type)
        and (rule.match_id is None or covers(rule.match_id, other.match_id))
        and rule.match_fields.items() <= other.match_fields.items()
        and (rule.after_flagged is None or _within(rule.after_flagged, other.after_flagged))
    )


def _within(threshold: timedelta | None, other: timedelta | None) -> bool:
    return threshold is not None and other is not None and threshold <= other


def _matches(rule: Rule) -> str:
    parts = (("older than", rule.max_age), ("unused for", rule.max_unused))
    said = [f"{words} {format_duration(age)}" for words, age in parts if age is not None]
    return "what is " + " or ".join(said) if said else "everything"
