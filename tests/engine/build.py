"""Stores and policies in a few words, for the tests of this folder."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from keepfor.items import Item
from keepfor.plan import Plan, build
from keepfor.policy.rules import Policy, keep_for
from keepfor.stores.base import ItemStore, RowStore
from keepfor.testing import MemoryStore
from keepfor.times import Known

#: 90 days before it is 2026-04-27 (26 + 30 + 31 + 3 days back).
NOW = datetime(2026, 7, 26, tzinfo=UTC)
KEEP = Policy(rules=keep_for(timedelta(days=90)), breaker=None)


def aged(name: str, days: float, **more: Any) -> Item:
    """An item of ten bytes that is so many days old."""
    instant = Known(NOW - timedelta(days=days), "ts")
    return Item(id=name, type="note", instant=instant, bytes=10, fingerprint=f"f-{name}", **more)


def items(**days: float) -> MemoryStore:
    return MemoryStore(aged(name, age) for name, age in days.items())


def line(days: float, **more: Any) -> bytes:
    """A row that is so many days old."""
    return json.dumps({"ts": (NOW - timedelta(days=days)).isoformat()} | more).encode() + b"\n"


def write(path: Path, ages: Iterable[float]) -> bytes:
    """Make a ledger of rows of those ages in days; returns its bytes."""
    data = b"".join(map(line, ages))
    path.write_bytes(data)
    return data


def planned(store: RowStore | ItemStore, policy: Policy = KEEP, now: datetime = NOW) -> Plan:
    return build(store, policy, now, name="store")
