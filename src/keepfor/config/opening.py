"""From settings to what they stand for: a store that can be looked at, a trail to record in.

Apart from the rest of the configuration, which tells what is meant and touches no store.
"""

from __future__ import annotations

from keepfor.config.loading import Config
from keepfor.config.models import Runs
from keepfor.stores.ledger import LedgerStore, ledger_at
from keepfor.stores.rows import RowFormat
from keepfor.stores.runs import RunStore, runs_at
from keepfor.times import load_timezone
from keepfor.trail import Trail


def open_store(config: Config, name: str) -> LedgerStore | RunStore:
    """The store of that name. It is not touched, and need not be there yet."""
    store = config.stores[name]
    zone = load_timezone(store.timezone)
    if isinstance(store, Runs):
        return runs_at(store.path, time=store.time, unit=store.unit, zone=zone, grace=store.grace)
    form = RowFormat(field=store.time, unit=store.unit, zone=zone)
    return ledger_at(store.path, form=form, unreadable=store.unreadable)


def open_trail(config: Config) -> Trail:
    """Where sweeps under this configuration are recorded."""
    return Trail(path=str(config.state_dir / "trail.jsonl"), keep_for=config.trail.keep_for)
