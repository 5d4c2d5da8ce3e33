"""What a change of policy comes to: two plans for one store at one instant, held side by side."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

import msgspec

from keepfor.items import Action, Decision, Part
from keepfor.plan import Plan
from keepfor.policy.rules import Policy, Rule

Kind = Literal["condemned", "spared", "flagged", "unflagged"]

#: How many ids are given as examples.
EXAMPLES = 5

_KINDS: dict[tuple[Action, Action], Kind] = {
    ("keep", "delete"): "condemned",
    ("flag", "delete"): "condemned",
    ("delete", "keep"): "spared",
    ("delete", "flag"): "spared",
    ("keep", "flag"): "flagged",
    ("flag", "keep"): "unflagged",
}


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """Items or rows that fare otherwise, because of one rule.

    Parameters:
        kind: `condemned` (they would go now, and did not), `spared` (the reverse), `flagged` or
            `unflagged`.
        rule: the rule of the new policy that takes them, or the one of the old that did.
        count: how many they are.
        examples: some of them: ids, or of rows the instants and keys of the first and the last.
    """

    kind: Kind
    rule: str
    count: int
    examples: list[str]


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """What a change of policy comes to for one store.

    Parameters:
        store: the store's name.
        total: how many rows or items it holds.
        before: how many of them the old policy would delete.
        after: how many the new one would.
        left: how many fare as before.
        changes: the others.
    """

    store: str
    total: int
    before: int
    after: int
    left: int
    changes: list[Change]


def refined(policy: Policy, types: Iterable[str]) -> Policy:
    """The same policy, by which the rows of these types are counted apart.

    A type that only one of two policies names would else stand among the others of the other one.
    """
    named = {rule.type for rule in policy.rules}
    more = tuple(
        # After all other rules it takes nothing, and spares nothing that they take.
        Rule(name=f"as it is ({type_})", type=type_, action="keep")
        for type_ in sorted(set(types) - named)
    )
    # A ceiling passes over what a rule keeps, so under one this would change something.
    return (
        policy if policy.max_count else msgspec.structs.replace(policy, rules=policy.rules + more)
    )


def compare(old: Plan, new: Plan) -> Difference:
    """What changes between two plans for one store at one instant."""
    changes = list(_of_items(old, new) if old.decisions or new.decisions else _of_rows(old, new))
    return Difference(
        store=new.store,
        total=new.survey.scanned,
        before=old.deletes,
        after=new.deletes,
        left=new.survey.scanned - sum(change.count for change in changes),
        changes=changes,
    )


def _of_items(old: Plan, new: Plan) -> Iterator[Change]:
    before = {said.id: said for said in old.decisions}
    found: dict[tuple[Kind, str], list[str]] = {}
    for said in new.decisions:
        was = before.get(said.id)
        kind = _KINDS.get((was.action, said.action)) if was else None
        if was and kind:
            found.setdefault((kind, _because(was, said, kind)), []).append(said.id)
    for (kind, rule), ids in sorted(found.items()):
        yield Change(kind=kind, rule=rule, count=len(ids), examples=ids[:EXAMPLES])


def _because(was: Decision, said: Decision, kind: Kind) -> str:
    by = said if kind in ("condemned", "flagged") else was
    return by.rule or by.reason


def _of_rows(old: Plan, new: Plan) -> Iterator[Change]:
    if not old.survey.parts and not new.survey.parts:
        yield from _of_ledger(old, new)
        return
    before, after = _by_type(old), _by_type(new)
    for type_ in sorted({*before, *after}, key=str):
        was, now = before.get(type_, []), after.get(type_, [])
        more = sum(part.count for part in now) - sum(part.count for part in was)
        if more:
            taking = now if more > 0 else was
            rules = " and ".join(dict.fromkeys(part.rule for part in taking if part.count))
            named = rules if type_ is None else f"{rules} ({type_})"
            yield _rows(more, named, _newest(taking))


def _by_type(plan: Plan) -> Mapping[str | None, list[Part]]:
    parts: dict[str | None, list[Part]] = {}
    for part in plan.survey.parts:
        parts.setdefault(part.type, []).append(part)
    return parts


def _newest(parts: list[Part]) -> list[str]:
    """The newest row that goes by one policy, and not by the other."""
    ends = [(part.newest, part.last) for part in parts if part.newest]
    if not ends:
        return []
    newest, key = max(ends, key=lambda end: end[0])
    return [f"{'/'.join(map(str, key))} of {newest.isoformat()}"]


def _of_ledger(old: Plan, new: Plan) -> Iterator[Change]:
    """Rows are in the order of time, so that of two policies one takes all that the other does."""
    by_age = new.survey.expired - old.survey.expired
    by_size = new.survey.over_ceiling - old.survey.over_ceiling
    # What one takes by age the other may take by size, and then nothing changes for it.
    if more := by_age + by_size:
        taking, leaving = (new, old) if more > 0 else (old, new)
        first, end = leaving.survey.oldest, taking.survey.oldest
        reach = [f"from {first.isoformat()}"] if first else []
        reach += [f"to before {end.isoformat()}"] if end else []
        rules = [
            name for name, part in (("keep_for", by_age), ("max_bytes", by_size)) if part * more > 0
        ]
        yield _rows(more, " and ".join(rules), [" ".join(reach)] if reach else [])
    if more := new.survey.unreadable - old.survey.unreadable:
        yield _rows(more, "unreadable", [])


def _rows(more: int, rule: str, examples: list[str]) -> Change:
    kind: Kind = "condemned" if more > 0 else "spared"
    return Change(kind=kind, rule=rule, count=abs(more), examples=examples)
