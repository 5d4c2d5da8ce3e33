"""How a configured store stands: what it is held to in words, and what a person should do now."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Literal

import msgspec

from keepfor.config.entities import Entities
from keepfor.config.models import Runs, Store
from keepfor.errors import StoreError
from keepfor.items import noun
from keepfor.plan import Plan
from keepfor.policy.lint import Trap
from keepfor.stores import files, leases, replace
from keepfor.stores.entities import EntityStore
from keepfor.stores.ledger import LedgerStore
from keepfor.stores.runs import RunStore
from keepfor.times import format_duration

if TYPE_CHECKING:
    from keepfor.stores.table import TableStore


class Leftover(msgspec.Struct, frozen=True, kw_only=True):
    """A file that an earlier sweep put aside, and that is not cleared away yet.

    Parameters:
        path: its name beside the ledger, or in the directory.
        bytes: how much was written to it that is not in the ledger; of a run, its size.
        held: whether a writer has it open still; otherwise a sweep was killed over it.
    """

    path: str
    bytes: int
    held: bool


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """Something about a store that a person should see to.

    Parameters:
        problem: what kind it is; `keepfor check` fails for none of `held`, `idle`, `missing`,
            `note`, `orphans` and `unbounded`.
        exit_code: what `keepfor check` exits with because of it.
        what: what is the matter.
        fix: what to do now; empty where `what` says it.
    """

    problem: Literal[
        "trap",
        "lag",
        "breaker",
        "leftover",
        "held",
        "idle",
        "missing",
        "note",
        "orphans",
        "unbounded",
    ]
    exit_code: int
    what: str
    fix: str


def in_words(store: Store) -> str:
    """What a store is held to, in one sentence."""
    parts = list(store.in_parts())
    if not parts:
        parts.append(f"{noun(store.kind)}s stay for ever")
    elif store.keep_last:
        parts.append(f"the newest {_floor(store.keep_last)} always stay")
    sentence = "; ".join(parts)
    return f"{sentence[0].upper()}{sentence[1:]}."


def _floor(keep_last: int | dict[str, int]) -> str:
    if isinstance(keep_last, int):
        return str(keep_last)
    return ", ".join(f"{count} of type {type_}" for type_, count in keep_last.items())


def degraded(store: Store) -> str | None:
    """What makes a store slower and slower, if anything does; it is no error."""
    return store.degraded


def leftovers(store: LedgerStore | RunStore | TableStore | EntityStore) -> list[Leftover]:
    """What earlier sweeps left beside a ledger or in a directory; reads only."""
    found = []
    # Where the folder cannot be read, the store's own errors say so.
    with suppress(OSError, StoreError):
        if isinstance(store, RunStore | EntityStore):
            return [
                Leftover(path=path, bytes=os.lstat(path).st_size, held=False)
                for path in store.leftovers()
            ]
        if isinstance(store, LedgerStore):
            for old in replace.leftovers(store.path):
                with suppress(OSError):
                    found.append(_leftover(old, store.path))
    return found


def findings(
    name: str,
    store: Store,
    plan: Plan,
    left: Sequence[Leftover],
    traps: Sequence[Trap],
    idle: Sequence[Trap] = (),
) -> list[Finding]:
    """What is the matter with a store, the gravest first.

    Parameters:
        name: the store's.
        store: its settings.
        plan: what its policy would do to it now.
        left: what earlier prunes left beside it.
        traps: what in its settings will surprise its owner.
        idle: what of them can do nothing to what is there now, which may come with time.
    """
    found = [
        _of_aside(name, old, noun(store.kind))
        if isinstance(store, Runs | Entities)
        else _of_leftover(name, old)
        for old in left
        if old.bytes
    ]
    found += [
        Finding(problem="trap", exit_code=2, what=f"{trap.rule}: {trap.what}", fix=trap.fix)
        for trap in traps
    ]
    found += [
        Finding(problem="idle", exit_code=0, what=f"{trap.rule}: {trap.what}", fix=trap.fix)
        for trap in idle
    ]
    late = plan.survey.lag
    if late > store.tolerance:
        found.append(_of_lag(name, store, late, plan.trips_breaker))
    if plan.tripping:
        delete, total = plan.tripping
        found.append(
            Finding(
                problem="breaker",
                exit_code=5,
                what=f"the breaker holds a sweep back: it would delete {delete} of "
                f"{total}, more than the {plan.breaker:.0%} that may go at once.",
                fix=f"Look at `keepfor plan {name}`; if that is right, run "
                f"`keepfor apply {name} --force`.",
            )
        )
    if store.folder is not None and not os.path.isdir(store.folder):
        what = f"nothing is there yet, not even its folder {store.folder}."
        fix = f"See that the {store.LIES_AT} is right; {store.MAKES_FOLDER}."
        found.append(Finding(problem="missing", exit_code=0, what=what, fix=fix))
    if plan.survey.orphans and store.keeps_orphans:
        found.append(_of_orphans(plan.survey.orphans))
    if plan.kind == "table":
        # An index that is missing, the remains of a crash.
        found += [
            Finding(problem="note", exit_code=0, what=note, fix="") for note in plan.survey.notes
        ]
    if slow := store.degraded:
        found.append(Finding(problem="unbounded", exit_code=0, what=slow, fix=store.BOUND_IT))
    return sorted(found, key=lambda finding: finding.exit_code or 9)


def _leftover(old: replace.OldFile, ledger: str) -> Leftover:
    status = os.lstat(old.path)
    # Killed between giving the ledger its second name and replacing it: it is the ledger still.
    if os.path.exists(ledger) and os.path.samestat(status, os.stat(ledger)):
        return Leftover(path=old.path, bytes=0, held=False)
    descriptor = files.open_for_reading(old.path)
    try:
        held = not leases.at_rest(descriptor)
    finally:
        os.close(descriptor)
    return Leftover(path=old.path, bytes=max(0, status.st_size - old.copied), held=held)


def _of_leftover(name: str, old: Leftover) -> Finding:
    if old.held:
        return Finding(
            problem="held",
            exit_code=0,
            what=f"a writer holds {old.path} open, and {old.bytes} bytes that it wrote there are "
            "not in the ledger yet.",
            fix=f"Restart that program; until then each `keepfor apply {name}` brings them over.",
        )
    return Finding(
        problem="leftover",
        exit_code=1,
        what=f"a prune was killed, and {old.bytes} bytes in {old.path} are not in the ledger yet.",
        fix=f"Run `keepfor apply {name}`, which brings them over.",
    )


def _of_aside(name: str, old: Leftover, thing: str) -> Finding:
    article = "an" if thing == "item" else "a"
    return Finding(
        problem="leftover",
        exit_code=1,
        what=f"a sweep was killed while it removed {article} {thing}, which is aside as "
        f"{old.path}.",
        fix=f"Run `keepfor apply {name}`, which puts it back where its name is free.",
    )


def _of_orphans(orphans: Mapping[str, int]) -> Finding:
    counts = ", ".join(f"{count} of {table}" for table, count in orphans.items())
    return Finding(
        problem="orphans",
        exit_code=0,
        what=f"rows of other tables hang on rows that are gone: {counts}.",
        fix="Write `orphans: delete`, and the next sweep removes them too.",
    )


def _of_lag(name: str, store: Store, late: timedelta, held_back: bool) -> Finding:
    fix = f"Run `keepfor apply {name}`, and see why nothing did."
    if held_back:
        fix = "The breaker holds the sweep back."
    hours = timedelta(hours=late // timedelta(hours=1))
    return Finding(
        problem="lag",
        exit_code=4,
        what=f"its oldest {noun(store.kind)} has been due for {format_duration(hours)}, and the "
        f"grace is {format_duration(store.tolerance)}.",
        fix=fix,
    )
