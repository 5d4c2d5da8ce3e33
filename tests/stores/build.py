"""Ledgers in a few words, for the tests of this folder."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from keepfor.items import Report
from keepfor.policy.rules import Policy, keep_for
from keepfor.stores.ledger import ledger_at
from keepfor.stores.rows import RowFormat
from keepfor.sweep import prune

#: 90 days before it is 2026-04-27 (26 + 30 + 31 + 3 days back).
NOW = datetime(2026, 7, 26, tzinfo=UTC)
CUTOFF = datetime(2026, 4, 27, tzinfo=UTC)

YOUNG, OLD = "2026-07-01T00:00:00+00:00", "2026-01-01T00:00:00+00:00"


def row(ts: str | datetime | None = YOUNG, **more: Any) -> bytes:
    """A line with that time, or with none."""
    if isinstance(ts, datetime):
        ts = ts.isoformat()
    return json.dumps(({} if ts is None else {"ts": ts}) | more).encode() + b"\n"


def write(path: Path, lines: Iterable[bytes]) -> bytes:
    """Make a file of those lines; returns its bytes."""
    data = b"".join(lines)
    path.write_bytes(data)
    return data


def append(path: Path, *lines: bytes) -> None:
    """As a program does that has never heard of keepfor."""
    with path.open("ab") as file:
        file.writelines(lines)


def policy(days: float | None = 90, **bounds: Any) -> Policy:
    rules = () if days is None else keep_for(timedelta(days=days))
    return Policy(rules=rules, **bounds)


def pruned(
    path: Path, held_to: Policy | None = None, now: datetime = NOW, wait: float = 0.0, **how: Any
) -> Report:
    """What a prune of the ledger at a path came to; `how` tells how it is read."""
    store = ledger_at(path, **how)
    return prune(store, held_to or policy(), now, name="ledger", wait=wait)


def by(field: str = "ts", **how: Any) -> RowFormat:
    return RowFormat(field=field, **how)


def beside(path: Path) -> list[str]:
    """What lies in a ledger's folder."""
    return sorted(os.listdir(path.parent))
