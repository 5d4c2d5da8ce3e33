"""`diff`: what a change of policy would come to, before it is made."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from keepfor import config
from keepfor import plan as plans
from keepfor.cli import codes
from keepfor.cli.blocks import Block, Heading, Line, Table
from keepfor.cli.documents import Answer, error
from keepfor.cli.invocation import Invocation
from keepfor.config import Config, asking
from keepfor.config.standing import in_words
from keepfor.errors import ConfigError, KeepforError, UnknownStore
from keepfor.history.diff import Difference, compare, refined
from keepfor.plan import Plan
from keepfor.stores.base import RowStore
from keepfor.times import parse_now
from keepfor.wording import number, rows


def diff(
    run: Invocation, old: Path, new: Path, wanted: Sequence[str] = (), now: str | None = None
) -> Answer:
    """Show what a new configuration newly condemns and spares. Writes nothing.

    Both are asked for a plan at the same instant, by the same code as `plan`; a store that only one
    of them knows is left out.

    Parameters:
        old: the configuration as it is.
        new: as it would be.
        wanted: the stores; all that both know if none is named.
        now: the instant to judge ages by; None for the present.

    Returns:
        The document has `now` and `stores`: for each `store`, what `Difference` says, and `error`
        (null). A store that could not be read has `store` and `error` only.

    Raises:
        BadConfig: when one of them is wrong.
        UnknownStore: when a store that is named is not in both.
        ConfigError: when they have no store in common.
    """
    moment = run.clock() if now is None else parse_now(now)
    before, after = (config.load(path, run.environ) for path in (old, new))
    documents: list[dict[str, Any]] = []
    exit_codes = []
    for name in _names(before, after, wanted):
        try:
            old_plan, new_plan = (
                _plan(run, each, other, name, moment)
                for each, other in ((before, after), (after, before))
            )
            told = compare(old_plan, new_plan)
        except (KeepforError, OSError) as problem:
            run.warn(problem)
            exit_codes.append(codes.of(problem))
            documents.append({"store": name, "error": error(problem)})
            continue
        kind = after.stores[name].kind
        words = in_words(before.stores[name]), in_words(after.stores[name])
        run.out.show(*_described(told, kind, *words))
        facts = {field: getattr(told, field) for field in Difference.__struct_fields__}
        documents.append({**facts, "error": None})
    facts = {"now": moment, "stores": documents}
    return Answer(verb="diff", facts=facts, exit_code=codes.gravest(exit_codes))


def _names(before: Config, after: Config, wanted: Sequence[str]) -> list[str]:
    common = [name for name in after.stores if name in before.stores]
    if not common:
        raise ConfigError(
            where=after.path,
            what=f"it has no store in common with {before.path}.",
            fix="Name two files that say of the same stores what they are held to.",
        )
    for name in wanted:
        for each in (before, after):
            if name not in each.stores:
                raise UnknownStore(name=name, where=each.path, fix=f"Name one of both: {common}.")
    return list(dict.fromkeys(wanted)) or common


def _plan(run: Invocation, said: Config, other: Config, name: str, moment: datetime) -> Plan:
    held_to, store = config.policy_of(said.stores[name]), asking.store(said, name)
    if isinstance(store, RowStore) and "type" in store.bounds:
        named = (rule.type for rule in config.policy_of(other.stores[name]).rules)
        held_to = refined(held_to, filter(None, named))
    with run.out.progress(f"Reading {name}") as progress:
        return plans.build(store, held_to, moment, name=name, progress=progress)


def _described(told: Difference, kind: str, before: str, after: str) -> list[Block]:
    heading = Heading(told.store, (kind,))
    if not told.changes:
        same = f"  All {rows(told.total, kind)} fare as before."
        return [heading, Line(same, "good")]
    more = told.after - told.before
    would = f"{number(told.after)} would go, and {number(told.before)} do by the old policy"
    blocks: list[Block] = [
        heading,
        Line(f"  Of {rows(told.total, kind)} {would}.", "warn" if more > 0 else "plain"),
        Line(),
        Line(f"  old  {before}", "faint"),
        Line(f"  new  {after}", "faint"),
        Line(),
        Table(
            ["", "#count", "rule", "such as"],
            [
                [change.kind, number(change.count), change.rule, ", ".join(change.examples)]
                for change in told.changes
            ],
        ),
        Line(),
        Line(f"  {rows(told.left, kind)} fare as before.", "faint"),
    ]
    return blocks
