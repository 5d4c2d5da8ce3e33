"""From settings to what they stand for: a store that can be looked at, a trail to record in.

Apart from the rest of the configuration, which tells what is meant and touches no store.
"""

from __future__ import annotations

from datetime import tzinfo
from pathlib import Path
from typing import TYPE_CHECKING

from keepfor.config.entities import Entities
from keepfor.config.loading import Config
from keepfor.config.models import Runs
from keepfor.config.tables import Dependent, Table
from keepfor.stores.entities import EntityStore, entities_at
from keepfor.stores.ledger import LedgerStore, ledger_at
from keepfor.stores.rows import RowFormat
from keepfor.stores.runs import RunStore, runs_at
from keepfor.times import load_timezone
from keepfor.trail import Trail

if TYPE_CHECKING:
    from keepfor.stores import table
    from keepfor.stores.table import TableStore


def open_store(config: Config, name: str) -> LedgerStore | RunStore | TableStore | EntityStore:
    """The store of that name. It is not touched, and need not be there yet."""
    store = config.stores[name]
    zone = load_timezone(store.timezone)
    if isinstance(store, Table):
        return _open_table(store, zone, config.state_dir)
    if isinstance(store, Entities):
        return open_entities(store, config.state_dir)
    if isinstance(store, Runs):
        return runs_at(store.path, time=store.time, unit=store.unit, zone=zone, grace=store.grace)
    form = RowFormat(field=store.time, unit=store.unit, zone=zone)
    return ledger_at(store.path, form=form, unreadable=store.unreadable)


def open_entities(store: Entities, state: Path) -> EntityStore:
    """A store of notes and sessions, with the folder for what keepfor remembers of it."""
    return entities_at(
        store.path,
        notes=store.notes,
        pattern=store.pattern,
        sessions=store.sessions,
        session_pattern=store.session_pattern,
        ignore=store.ignore,
        default_type=store.default_type,
        session_type=store.session_type,
        clock=store.clock,
        fallback=store.fallback,
        zone=load_timezone(store.timezone),
        access_log=store.access_log,
        record=store.record,
        fields=store.fields,
        cache=str(state / "entities"),
    )


def open_trail(config: Config) -> Trail:
    """Where sweeps under this configuration are recorded."""
    return Trail(path=str(config.state_dir / "trail.jsonl"), keep_for=config.trail.keep_for)


def _open_table(store: Table, zone: tzinfo, folder: Path) -> TableStore:
    # It brings SQLAlchemy along, which who has no table need not wait for.
    from keepfor.stores.table import Record, table_at

    record = None
    if said := store.record_sweeps:
        record = Record(type=said.type, payload=said.payload, when=said.when)
    return table_at(
        store.url.reveal(),
        table=store.table,
        key=store.key,
        time=store.time,
        type=store.type,
        unit=store.unit,
        zone=zone,
        dependents=tuple(map(_dependent, store.dependents)),
        orphans=store.orphans,
        record=record,
        folder=folder,
    )


def _dependent(said: Dependent) -> table.Dependent:
    from keepfor.stores.table import Dependent

    below = tuple(map(_dependent, said.dependents))
    return Dependent(table=said.table, columns=said.column, key=said.key, dependents=below)
