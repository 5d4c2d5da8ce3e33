"""How a store stands to its policy now, told by its ends and its metadata where they tell."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime

import msgspec

from keepfor.history.window import Window, window
from keepfor.items import Survey, Terms
from keepfor.plan import decided
from keepfor.policy.limits import breaker_trips
from keepfor.policy.rules import Policy, terms
from keepfor.stores.base import ItemStore, Progress, RowStore
from keepfor.stores.daily import Daily, of_items, of_rows
from keepfor.stores.ends import by_its_ends
from keepfor.stores.ids import unescape
from keepfor.stores.ledger import LedgerStore

#: Stores up to this size are looked at as a plan does, to the last row; in bytes.
SMALL_LEDGER, SMALL_DATABASE = 1 << 20, 16 << 20

#: What is told from samples of a ledger that was not read whole, by its name in `Standing`.
_BY_ITS_ENDS = ("rows", "due", "share")
_NOT_LOOKED_AT = "orphans and times of another shape were not looked for, which `check` does"
_ENDS_ONLY = "its ends and places between were read, and are in order; `check` reads all of it"
_BLOCK = 4096


class Space(msgspec.Struct, frozen=True, kw_only=True):
    """What a store takes up.

    Parameters:
        logical: what its content comes to, in bytes.
        on_disk: what the disk gives it, in bytes; of a table, its whole database.
        reclaimable: how much of that holds nothing any more, in bytes; None where that cannot be.
    """

    logical: int
    on_disk: int
    reclaimable: int | None = None


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """How a store stands.

    Parameters:
        kind: what kind of store it is.
        target: its resolved address.
        exists: whether anything is there yet.
        now: the instant that it was judged by.
        held: what history it holds.
        space: what it takes up.
        due: how many rows or items a sweep would delete now.
        flags: how many items it would flag.
        share: which fraction of the store that is.
        limit: the fraction that may go at once; None where the breaker is off.
        tripped: whether the breaker would hold that back.
        orphans: of a table, rows of other tables whose own row is gone, by table; None where they
            were not looked for.
        estimated: which of all these are estimates: `rows`, `due`, `share`, `on_disk`.
        notes: what a person should know of it.
    """

    kind: str
    target: str
    exists: bool
    now: datetime
    held: Window
    space: Space
    due: int
    share: float
    limit: float | None
    tripped: bool
    flags: int = 0
    orphans: dict[str, int] | None = {}
    estimated: tuple[str, ...] = ()
    notes: list[str] = []


class _Look(msgspec.Struct, frozen=True, kw_only=True):
    """What a look at a store of rows came to."""

    survey: Survey
    space: Space
    exists: bool
    orphans: dict[str, int] | None = {}
    estimated: tuple[str, ...] = ()
    notes: list[str] = []


def standing(
    store: RowStore | ItemStore,
    policy: Policy,
    now: datetime,
    progress: Progress | None = None,
) -> Standing:
    """How a store stands to its policy. Writes nothing.

    A store of items is walked once. A large ledger is seen by its ends, a large table by its
    index; a small one is read whole, and a ledger that is not in order too.

    Parameters:
        store: what to look at.
        policy: what it is held to.
        now: the instant to judge ages by.
        progress: called with how far it is, where it takes long.

    Raises:
        BadPolicy: when the policy asks something of a store of rows that only items can give.
        StoreError: when the store cannot be read.
    """
    if isinstance(store, RowStore):
        seen = _look(store, terms(policy, now, store.bounds), progress)
        deletes, flags = seen.survey.applied, 0
    else:
        decisions, survey = decided(store, policy, now, progress=progress)
        sizes = (said.bytes for said in decisions)
        seen = _Look(
            survey=survey,
            space=_of_files(store.target, sizes, survey.bytes_before),
            exists=survey.scanned > 0,
            estimated=("on_disk",),
            notes=survey.notes,
        )
        deletes = sum(said.action == "delete" for said in decisions)
        flags = survey.applied - deletes
    total, limit = seen.survey.scanned, policy.breaker
    return Standing(
        kind=store.kind,
        target=store.target,
        exists=seen.exists,
        now=now,
        held=window(seen.survey),
        space=seen.space,
        due=deletes,
        flags=flags,
        share=deletes / total if total else 0.0,
        limit=limit,
        tripped=breaker_trips(total, deletes, limit),
        orphans=seen.orphans,
        estimated=seen.estimated,
        notes=seen.notes,
    )


def by_day(
    store: RowStore | ItemStore, policy: Policy, now: datetime, progress: Progress | None = None
) -> list[Daily]:
    """What a store holds, by day of age, for each type that its policy tells apart.

    Parameters:
        store: what to look at.
        policy: what it is held to.
        now: the instant that ages are counted from.
        progress: called with how far it is.

    Raises:
        BadPolicy: when the policy asks something of a store of rows that only items can give.
        StoreError: when the store cannot be read.
    """
    if isinstance(store, RowStore):
        types = [cut.type for cut in terms(policy, now, store.bounds).by_type]
        return of_rows(store, now, types, progress)
    return of_items(store.scan(progress), now)


def _look(store: RowStore, agreed: Terms, progress: Progress | None) -> _Look:
    if isinstance(store, LedgerStore):
        return _of_ledger(store, agreed, progress)
    if store.kind == "table":
        return _of_table(store, agreed, progress)
    return _whole(store, agreed, progress)


def _of_ledger(store: LedgerStore, agreed: Terms, progress: Progress | None) -> _Look:
    try:
        status = os.stat(store.path)
    except OSError:
        # Not there yet, or what keeps it from being looked at is said better by the store.
        return _whole(store, agreed, progress)
    space = Space(logical=status.st_size, on_disk=status.st_blocks * 512)
    seen = by_its_ends(store, agreed) if status.st_size > SMALL_LEDGER else None
    if seen is None:
        return msgspec.structs.replace(_whole(store, agreed, progress), space=space)
    notes = [_ENDS_ONLY]
    return _Look(survey=seen, space=space, exists=True, estimated=_BY_ITS_ENDS, notes=notes)


def _of_table(store: RowStore, agreed: Terms, progress: Progress | None) -> _Look:
    from keepfor.stores.sql.daily import glimpse
    from keepfor.stores.table import TableStore

    assert isinstance(store, TableStore)
    if not store.database.exists:
        return _whole(store, agreed, progress)
    held = store.footprint()
    used = max(0, held.size - held.reclaimable)
    space = Space(logical=used, on_disk=held.size, reclaimable=held.reclaimable)
    if held.size <= SMALL_DATABASE:
        return msgspec.structs.replace(_whole(store, agreed, progress), space=space)
    survey = glimpse(store, agreed)
    notes = [*survey.notes, _NOT_LOOKED_AT]
    return _Look(survey=survey, space=space, exists=True, orphans=None, notes=notes)


def _whole(store: RowStore, agreed: Terms, progress: Progress | None) -> _Look:
    """What a plan would see."""
    survey = store.survey(agreed, progress)
    size = survey.bytes_before
    return _Look(
        survey=survey,
        space=Space(logical=size, on_disk=size),
        exists=survey.extent is not None,
        orphans=survey.orphans,
        notes=survey.notes,
    )


def _of_files(target: str, sizes: Iterable[int], total: int) -> Space:
    """What files of these sizes take up, each in whole blocks."""
    block = _BLOCK
    # A store may lie in no folder, or in one that is not there yet.
    with suppress(OSError):
        block = os.statvfs(unescape(target)).f_frsize or _BLOCK
    return Space(logical=total, on_disk=sum(-(-size // block) for size in sizes) * block)
