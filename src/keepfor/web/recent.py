"""What happened lately in a store: its newest runs, or its latest recalls."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import islice
from typing import Any

import msgspec

from keepfor.items import Item
from keepfor.stores import files
from keepfor.stores.backwards import lines_backwards
from keepfor.stores.base import Store
from keepfor.stores.ledger import LedgerStore
from keepfor.stores.runs import RunStore
from keepfor.times import Known, instant_of

#: What is told of a run, where it is there.
FIELDS = ("runId", "outcome", "wallClockMs", "cycleOverflowRatio", "cycleOverflowSignal")
_MANY = 10
#: How many rows from the end are looked at: a ledger need not be one of recalls.
_ROWS = 200
#: How much of a value is told.
_LONG = 200


class Recent(msgspec.Struct, frozen=True, kw_only=True):
    """What happened lately.

    Parameters:
        title: what these are.
        headings: what is told of each.
        lines: the newest first; in each, a cell for each heading.
        slugs: whether the last cell of each is a list of notes that can be traced.
    """

    title: str
    headings: list[str]
    lines: list[list[Any]]
    slugs: bool = False


def recent(store: Store, items: list[Item]) -> Recent | None:
    """What happened lately in a store; None where a store of its kind does not tell.

    Parameters:
        store: the store.
        items: what it holds, if it is one of items.

    Raises:
        StoreError: when it cannot be read.
    """
    if isinstance(store, RunStore):
        return _runs(store)
    if isinstance(store, LedgerStore):
        return _recalls(store)
    if store.kind == "entities":
        return _used(items)
    return None


def _runs(store: RunStore) -> Recent:
    entries = store.recent(_MANY)
    fields = [field for field in FIELDS if any(field in entry for entry in entries)]
    lines = [[_told(entry, field) for field in fields] for entry in entries]
    return Recent(title="Recent runs", headings=fields, lines=lines if fields else [])


def _recalls(store: LedgerStore) -> Recent | None:
    form, lines = store.form, []
    for row in islice(_rows_backwards(store), _ROWS):
        slugs = row.get("hit_slugs")
        if isinstance(slugs, list):
            at = instant_of(row, form.field, form.zone, form.unit)
            moment: datetime | None = at.instant if isinstance(at, Known) else None
            told = [slug for slug in slugs if isinstance(slug, str)]
            lines.append([moment, _told(row, "query_hash"), told])
        if len(lines) == _MANY:
            break
    if not lines:
        return None
    headings = ["when", "query", "what surfaced"]
    return Recent(title="Recent recalls", headings=headings, lines=lines, slugs=True)


def _used(items: list[Item]) -> Recent:
    used = [(item.accessed.instant, item) for item in items if isinstance(item.accessed, Known)]
    used.sort(key=lambda pair: (pair[0], pair[1].id), reverse=True)
    lines: list[list[Any]] = [[at, item.type, [item.id]] for at, item in used[:_MANY]]
    headings = ["when", "type", "what was recalled"]
    return Recent(title="Recent recalls", headings=headings, lines=lines, slugs=True)


def _rows_backwards(store: LedgerStore) -> Iterator[dict[str, Any]]:
    """The rows of a ledger, the last first; those that no reader can use are passed over."""
    try:
        descriptor = files.open_for_reading(store.path)
    except FileNotFoundError:
        return
    try:
        for line in lines_backwards(descriptor):
            try:
                row = msgspec.json.decode(line)
            except (msgspec.DecodeError, RecursionError):
                row = None
            yield row if isinstance(row, dict) else {}
    finally:
        os.close(descriptor)


def _told(entry: Mapping[str, Any], field: str) -> str:
    if field not in entry:
        return "-"
    value = entry[field]
    try:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    except (RecursionError, ValueError):
        return "not to be told"
    return text if len(text) <= _LONG else f"{text[:_LONG]}…"
