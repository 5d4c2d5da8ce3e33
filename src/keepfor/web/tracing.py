"""What became of a note, and why: its recalls, and what its policy says of it."""

from __future__ import annotations

import msgspec

from keepfor import recalls
from keepfor.config import Config, asking, policy_of
from keepfor.config.opening import open_trail
from keepfor.errors import KeepforError, UnknownItem
from keepfor.history.fate import Fate, fate, of_item
from keepfor.policy.explain import Explanation
from keepfor.recalls import Trace
from keepfor.stores.base import ItemStore
from keepfor.stores.ledger import LedgerStore
from keepfor.web.desk import Desk

#: How many recalls are told.
_MANY = 10


class Traced(msgspec.Struct, frozen=True, kw_only=True):
    """What one store tells of a note.

    Parameters:
        store: its name.
        kind: what kind of store it is.
        recalled: of a ledger, when the note was recalled, and on what evidence.
        explained: of a store of items, why the note stays or goes.
        missing: why the store tells nothing of it.
        fate: what became of a note that is not there, as far as the trail remembers.
        error: why the store cannot be read.
    """

    store: str
    kind: str
    recalled: Trace | None = None
    explained: Explanation | None = None
    missing: str = ""
    fate: Fate | None = None
    error: str = ""

    @property
    def tells(self) -> bool:
        """Whether it knows anything of the note."""
        recalled = bool(self.recalled and self.recalled.matches)
        return recalled or self.explained is not None or bool(self.fate and self.fate.found)


def stores(config: Config) -> list[str]:
    """The stores that can be asked; of a table no row has a name."""
    return [name for name, settings in config.stores.items() if settings.kind != "table"]


def trace(desk: Desk, config: Config, name: str, note: str) -> list[Traced]:
    """What a store, or each of them, tells of a note. Writes nothing.

    Parameters:
        desk: the clock.
        config: the configuration.
        name: the store's; empty for all that can be asked.
        note: its slug, or its id.

    Raises:
        UnknownStore: when there is no such store.
        ConfigError: when the store is a table.
    """
    if name and asking.settings(config, name).kind == "table":
        raise asking.of_another_kind(config, name, "ledger", "runs", "entities")
    return [_traced(desk, config, each, note) for each in ([name] if name else stores(config))]


def _traced(desk: Desk, config: Config, name: str, note: str) -> Traced:
    settings = asking.settings(config, name)
    told = Traced(store=name, kind=settings.kind)
    try:
        store = asking.store(config, name)
        if isinstance(store, LedgerStore):
            found = recalls.trace(store, note, _MANY, desk.now())
            return msgspec.structs.replace(told, recalled=found, missing=found.explanation)
        assert isinstance(store, ItemStore)
        try:
            said = asking.explain(store, policy_of(settings), desk.now(), note)
        except UnknownItem as error:
            known = fate(open_trail(config).records(), store.target, of_item(note))
            return msgspec.structs.replace(told, missing=str(error), fate=known)
        return msgspec.structs.replace(told, explained=said)
    except (KeepforError, OSError) as error:
        return msgspec.structs.replace(told, error=str(error))
