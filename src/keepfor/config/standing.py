"""How a configured store stands: what it is held to in words, and what a person should do now."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Literal

import msgspec

from keepfor.config.models import Store
from keepfor.history import lag
from keepfor.plan import Plan
from keepfor.policy.lint import Trap
from keepfor.sizes import format_size
from keepfor.stores import files, replace
from keepfor.times import format_duration


class Leftover(msgspec.Struct, frozen=True, kw_only=True):
    """A replaced file of a ledger that is not cleared away yet.

    Parameters:
        path: its name beside the ledger.
        bytes: how much was written to it that is not in the ledger.
        held: whether a writer has it open still; otherwise a prune was killed over it.
    """

    path: str
    bytes: int
    held: bool


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """Something about a store that a person should see to.

    Parameters:
        problem: what kind it is; `held` is none that `keepfor check` fails for.
        exit_code: what `keepfor check` exits with because of it.
        what: what is the matter.
        fix: what to do now.
    """

    problem: Literal["trap", "lag", "breaker", "leftover", "held"]
    exit_code: int
    what: str
    fix: str


def in_words(store: Store) -> str:
    """What a store is held to, in one sentence."""
    parts = []
    if store.keep_for is not None:
        parts.append(f"rows older than {format_duration(store.keep_for)} go")
    if store.max_bytes is not None:
        parts.append(f"above {format_size(store.max_bytes)} the oldest go, down to 80 % of it")
    if not parts:
        parts.append("rows stay for ever")
    if store.keep_last and parts != ["rows stay for ever"]:
        parts.append(f"the newest {store.keep_last} always stay")
    sentence = "; ".join(parts)
    return f"{sentence[0].upper()}{sentence[1:]}."


def leftovers(target: str) -> list[Leftover]:
    """What earlier prunes left beside a ledger; reads only."""
    found = []
    # Where the folder cannot be read, the ledger's own errors say so.
    with suppress(OSError):
        for old in replace.leftovers(target):
            with suppress(OSError):
                found.append(_leftover(old, target))
    return found


def findings(
    name: str, store: Store, plan: Plan, left: Sequence[Leftover], traps: Sequence[Trap]
) -> list[Finding]:
    """What is the matter with a store, the gravest first.

    Parameters:
        name: the store's.
        store: its settings.
        plan: what its policy would do to it now.
        left: what earlier prunes left beside it.
        traps: what in its settings will surprise its owner.
    """
    found = [_of_leftover(name, old) for old in left if old.bytes]
    found += [
        Finding(problem="trap", exit_code=2, what=f"{trap.rule}: {trap.what}", fix=trap.fix)
        for trap in traps
    ]
    late = lag(plan.survey)
    if late > store.grace:
        found.append(_of_lag(name, late, store.grace, plan.trips_breaker))
    if plan.trips_breaker:
        found.append(
            Finding(
                problem="breaker",
                exit_code=5,
                what=f"the breaker holds a sweep back: it would delete {plan.deletes} of "
                f"{plan.survey.scanned}, more than the {plan.breaker:.0%} that may go at once.",
                fix=f"Look at `keepfor plan {name}`; if that is right, run "
                f"`keepfor apply {name} --force`.",
            )
        )
    return sorted(found, key=lambda finding: finding.exit_code or 9)


def _leftover(old: replace.OldFile, target: str) -> Leftover:
    status = os.lstat(old.path)
    # Killed between giving the ledger its second name and replacing it: it is the ledger still.
    if os.path.exists(target) and os.path.samestat(status, os.stat(target)):
        return Leftover(path=old.path, bytes=0, held=False)
    descriptor = files.open_for_reading(old.path)
    try:
        held = not replace.at_rest(descriptor)
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


def _of_lag(name: str, late: timedelta, grace: timedelta, held_back: bool) -> Finding:
    fix = f"Run `keepfor apply {name}`, and see why nothing did."
    if held_back:
        fix = "The breaker holds the sweep back."
    hours = timedelta(hours=late // timedelta(hours=1))
    return Finding(
        problem="lag",
        exit_code=4,
        what=f"its oldest row has been due for {format_duration(hours)}, and the grace is "
        f"{format_duration(grace)}.",
        fix=fix,
    )
