"""What every surface asks of stores by name, and what it says where there is no such thing."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar

import msgspec

from keepfor import plan as plans
from keepfor.config.faults import closest, nearest
from keepfor.config.loading import Config
from keepfor.config.models import Store
from keepfor.config.opening import open_store
from keepfor.errors import ConfigError, UnknownItem, UnknownStore
from keepfor.policy.explain import Explanation
from keepfor.policy.rules import Policy
from keepfor.stores.base import ItemStore, Progress
from keepfor.stores.entities import EntityStore
from keepfor.stores.ledger import LedgerStore
from keepfor.stores.runs import RunStore

if TYPE_CHECKING:
    from keepfor.stores.table import TableStore


Asked = TypeVar("Asked", LedgerStore, RunStore, EntityStore)


class Accessed(msgspec.Struct, frozen=True, kw_only=True):
    """What came of noting that items were recalled.

    Parameters:
        recorded: the ids that were noted.
        unknown: for each id of nothing that is there, what to say of it.
    """

    recorded: list[str]
    unknown: dict[str, UnknownItem]


def settings(config: Config, name: str) -> Store:
    """A store's settings.

    Raises:
        UnknownStore: when there is no such store.
    """
    if name not in config.stores:
        raise UnknownStore(name=name, where=config.path, fix=nearest(name, config.stores))
    return config.stores[name]


def store(config: Config, name: str) -> LedgerStore | RunStore | TableStore | EntityStore:
    """A store, to look at or to act on.

    Raises:
        UnknownStore: when there is no such store.
    """
    settings(config, name)
    return open_store(config, name)


def ledger(config: Config, name: str) -> LedgerStore:
    """A store that has to be a ledger; raises as `of_kind` does."""
    return of_kind(config, name, LedgerStore, "ledger")


def runs(config: Config, name: str) -> RunStore:
    """A store that has to be a directory of runs; raises as `of_kind` does."""
    return of_kind(config, name, RunStore, "runs")


def entities(config: Config, name: str) -> EntityStore:
    """A store that has to be one of notes and sessions; raises as `of_kind` does."""
    return of_kind(config, name, EntityStore, "entities")


def of_kind(config: Config, name: str, type_: type[Asked], kind: str) -> Asked:
    """A store that has to be of one kind.

    Raises:
        UnknownStore: when there is no such store.
        ConfigError: when it is of another kind.
    """
    found = store(config, name)
    if isinstance(found, type_):
        return found
    raise of_another_kind(config, name, kind)


def items(config: Config, name: str) -> RunStore | EntityStore:
    """A store that has to hold items with an identity.

    Raises:
        ConfigError: when it holds rows.
    """
    found = store(config, name)
    if isinstance(found, RunStore | EntityStore):
        return found
    raise of_another_kind(config, name, "entities", "runs")


def of_another_kind(config: Config, name: str, *wanted: str) -> ConfigError:
    """That a store is of none of the kinds that something can be asked of."""
    stores = config.stores
    of_it = [other for other, store in stores.items() if store.kind in wanted]
    fix = f"Name one that is: {', '.join(of_it)}." if of_it else "No store here is of that kind."
    kinds = " or ".join(wanted)
    what = f"it is of kind {stores[name].kind}, and this asks for one of kind {kinds}."
    return ConfigError(where=name, what=what, fix=fix)


def explain(
    store: ItemStore, policy: Policy, now: datetime, id_: str, progress: Progress | None = None
) -> Explanation:
    """Why an item stays or goes. Writes nothing.

    Parameters:
        store: what to look at.
        policy: what it is held to.
        now: the instant to judge ages by.
        id_: the item's, as plans show it.
        progress: called with how far the scan is.

    Raises:
        UnknownItem: when the store holds no such item; it says which one was meant.
        StoreError: when the store cannot be read.
    """
    try:
        return plans.explain(store, policy, now, id_, progress)
    except UnknownItem:
        raise _unknown(id_, [item.id for item in store.scan()]) from None


def record_access(store: EntityStore, ids: Iterable[str], now: datetime) -> Accessed:
    """Append to a store's log that these items were recalled. No note is touched.

    An id of nothing that is there is told and not recorded: a note whose recalls go to a wrong id
    would count as unused.

    Parameters:
        store: of notes and sessions.
        ids: the items', as plans show them.
        now: when.

    Raises:
        UnknownItem: when none of them is there.
        StoreError: when the store has no log, or it cannot be written.
    """
    there = {item.id for item in store.scan()}
    wanted = list(dict.fromkeys(ids))
    recorded = [id_ for id_ in wanted if id_ in there]
    unknown = {id_: _unknown(id_, sorted(there)) for id_ in wanted if id_ not in there}
    if unknown and not recorded:
        raise next(iter(unknown.values()))
    store.record_access(recorded, now)
    return Accessed(recorded=recorded, unknown=unknown)


def _unknown(id_: str, ids: Collection[str]) -> UnknownItem:
    """That there is no such item, with the id that was most likely meant."""
    meant = closest(id_, ids)
    fix = f"Did you mean {meant}?" if meant else "Write an id as `keepfor plan` shows it."
    return UnknownItem(id=id_, count=len(ids), fix=fix)
