"""A plan: every decision for a store at one instant, with a digest over all of it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from keepfor import __version__, garbage
from keepfor.counting import counted
from keepfor.errors import ConfigError, PlanStale
from keepfor.items import Decision, Item, Survey
from keepfor.policy import explain as explaining
from keepfor.policy.decide import NO_VETOES, decide
from keepfor.policy.explain import Explanation
from keepfor.policy.limits import breaker_trips
from keepfor.policy.rules import Policy, terms
from keepfor.stores.base import ItemStore, Progress, Remarking, RowStore
from keepfor.times import utc_now

FORMAT = 1

#: Evidence that something else would have come of an item, or might have.
_WITHHELD = ("withheld", "unknown")


class Plan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a policy would do to a store.

    Parameters:
        store: the store's name.
        kind: what kind of store it is.
        target: its resolved address.
        policy: a digest of the policy, and of how the store is read.
        made: when the plan was made.
        now: the instant that ages were judged by.
        survey: the counts; for a store of rows also which rows go.
        decisions: for a store of items, one for each item.
        breaker: the fraction that one sweep may delete.
        digest: over all of the above.
        format: the version of this form.
        keepfor: the version that made it.
    """

    store: str
    kind: str
    target: str
    policy: str
    made: datetime
    now: datetime
    survey: Survey
    decisions: tuple[Decision, ...] = ()
    breaker: float | None = 0.5
    digest: str = ""
    format: int = FORMAT
    keepfor: str = __version__

    @property
    def exists(self) -> bool:
        """Whether anything is there yet."""
        return self.survey.extent is not None or self.survey.scanned > 0

    @property
    def deletes(self) -> int:
        """How many rows or items would be deleted."""
        if self.decisions:
            return sum(decision.action == "delete" for decision in self.decisions)
        return self.survey.applied

    @property
    def inroads(self) -> list[tuple[int, int]]:
        """How many would be deleted, and of how many: the store's own, and each table's orphans.

        The largest fraction comes first.
        """
        survey = self.survey
        orphans = [(survey.orphans[name], total) for name, total in survey.adrift.items()]
        pairs = [(self.deletes, survey.scanned), *orphans]
        return sorted(pairs, key=lambda pair: pair[0] / max(1, pair[1]), reverse=True)

    @property
    def share(self) -> float:
        """The fraction of the store that would be deleted, or of a table that has orphans."""
        deletes, total = self.inroads[0]
        return deletes / total if total else 0.0

    @property
    def tripping(self) -> tuple[int, int] | None:
        """What takes so much that a person must say so: how many go, and of how many."""
        trips = ((go, of) for go, of in self.inroads if breaker_trips(of, go, self.breaker))
        return next(trips, None)

    @property
    def trips_breaker(self) -> bool:
        """Whether it takes so much of the store that a person must say so."""
        return self.tripping is not None


def build(
    store: RowStore | ItemStore,
    policy: Policy,
    now: datetime,
    *,
    name: str,
    vetoes: Mapping[str, str] | None = None,
    progress: Progress | None = None,
    seen: list[Item] | None = None,
) -> Plan:
    """Work out what a policy would do to a store. Writes nothing.

    Parameters:
        store: what to look at.
        policy: what it is held to.
        now: the instant to judge ages by.
        name: what the store is called.
        vetoes: ids of items that must stay, with the reason.
        progress: called with how far the scan is.
        seen: takes the items that a scan found, for who wants to say more of them.

    Raises:
        BadPolicy: when the policy asks something of a store of rows that only items can give.
        StoreError: when the store cannot be read.
    """
    decisions: tuple[Decision, ...] = ()
    if isinstance(store, RowStore):
        survey = store.survey(terms(policy, now, store.bounds), progress)
    else:
        decisions, survey = decided(store, policy, now, vetoes or {}, progress, seen)
    plan = Plan(
        store=name,
        kind=store.kind,
        target=store.target,
        policy=policy_digest(policy, store.settings),
        made=utc_now(),
        now=now,
        survey=survey,
        decisions=decisions,
        breaker=None if policy.breaker is None else float(policy.breaker),
    )
    return msgspec.structs.replace(plan, digest=_digest(plan))


def decided(
    store: ItemStore,
    policy: Policy,
    now: datetime,
    vetoes: Mapping[str, str] = NO_VETOES,
    progress: Progress | None = None,
    seen: list[Item] | None = None,
) -> tuple[tuple[Decision, ...], Survey]:
    """What a policy says of each item of a store, and the counts of that; see `build`."""
    with garbage.put_off():
        items, held = _scanned(store, progress)
        decisions = tuple(decide(policy, items, now, held | dict(vetoes)))
        survey = counted(policy, items, decisions, now)
    survey.notes += store.remarks() if isinstance(store, Remarking) else []
    if seen is not None:
        seen += items
    return decisions, survey


def spared(plan: Plan) -> list[Decision]:
    """What something kept from a rule or a ceiling, and what could not be judged."""
    return [
        said
        for said in plan.decisions
        if said.action == "keep"
        and (said.reason in ("spared", "veto") or not said.evidence.keys().isdisjoint(_WITHHELD))
    ]


def explain(
    store: ItemStore,
    policy: Policy,
    now: datetime,
    id: str,  # noqa: A002 - what it is called everywhere
    progress: Progress | None = None,
) -> Explanation:
    """Why a plan made at this instant decides one item as it does. Writes nothing.

    Parameters:
        store: what to look at.
        policy: what it is held to.
        now: the instant to judge ages by.
        id: the item's.
        progress: called with how far the scan is.

    Raises:
        UnknownItem: when there is no such item.
        StoreError: when the store cannot be read.
    """
    items, held = _scanned(store, progress)
    return explaining.explain(policy, items, now, id, held)


def _scanned(store: ItemStore, progress: Progress | None) -> tuple[list[Item], dict[str, str]]:
    """All that a store holds, and why some of it must stay as it is."""
    items = list(store.scan(progress))
    return items, {item.id: item.held for item in items if item.held}


def policy_digest(policy: Policy, settings: Mapping[str, str]) -> str:
    """Changes whenever the policy, or the way in which the store is read, does."""
    return hashlib.sha256(msgspec.json.encode([policy, sorted(settings.items())])).hexdigest()


def save(plan: Plan, path: Path) -> None:
    """Write a plan to a file, whole or not at all."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.write_bytes(msgspec.json.format(msgspec.json.encode(plan)) + b"\n")
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def load(path: Path) -> Plan:
    """Read a plan from a file.

    Raises:
        ConfigError: when it is not a plan.
        PlanStale: when it was edited, or is of another format.
    """
    try:
        raw: Any = msgspec.json.decode(path.read_bytes())
    except (OSError, msgspec.DecodeError, RecursionError) as error:
        raise _not_a_plan(path, error) from error
    if isinstance(raw, dict) and raw.get("format", FORMAT) != FORMAT:
        raise PlanStale(
            store=raw.get("store", path),
            why=f"it is of format {raw['format']}, and this keepfor ({__version__}) reads {FORMAT}",
        )
    try:
        plan = msgspec.convert(raw, Plan)
    except msgspec.ValidationError as error:
        raise _not_a_plan(path, error) from error
    if plan.digest != _digest(plan):
        raise PlanStale(store=plan.store, why="it was edited after it was made")
    return plan


def _not_a_plan(path: Path, error: Exception) -> ConfigError:
    why = "there is no such file" if isinstance(error, FileNotFoundError) else error
    return ConfigError(
        where=path, what=f"this is not a plan ({why}).", fix="Make one with `keepfor plan -o`."
    )


def _digest(plan: Plan) -> str:
    bare = msgspec.structs.replace(plan, digest="")
    return hashlib.sha256(msgspec.json.encode(bare)).hexdigest()
