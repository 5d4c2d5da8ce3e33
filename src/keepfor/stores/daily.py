"""How much a store holds of each day of age: what a forecast measures and foresees by."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime

import msgspec

from keepfor.items import Item
from keepfor.stores import files
from keepfor.stores.base import Progress, RowStore
from keepfor.stores.ledger import LedgerStore
from keepfor.stores.rows import batch_reader, rows_of
from keepfor.stores.sift import blocks
from keepfor.times import DAY, Known

#: A count, and the bytes that so many hold.
Amount = tuple[int, int]


class Daily(msgspec.Struct, frozen=True, kw_only=True):
    """What a store holds of one type, by age.

    Days are counted back from an instant and not by a calendar, so that the latest is a whole one,
    and the days of a policy end where these do.

    Parameters:
        type: the type; None for all that no other of a store's speaks of.
        days: by whole days of age, how many there are and how many bytes they hold.
        apart: what has no age that counts: its time is still to come, or cannot be read.
    """

    type: str | None = None
    days: dict[int, Amount] = {}
    apart: Amount = (0, 0)


def of_items(items: Iterable[Item], now: datetime) -> list[Daily]:
    """What items come to, for each of their types.

    Parameters:
        items: all that a store holds.
        now: the instant that ages are counted from.
    """
    tallies: defaultdict[str, Tally] = defaultdict(Tally)
    for item in items:
        age = (now - item.instant.instant) // DAY if isinstance(item.instant, Known) else -1
        tallies[item.type].add(age, 1, item.bytes)
    return [tally.daily(type_) for type_, tally in sorted(tallies.items())]


def of_rows(
    store: RowStore, now: datetime, types: Iterable[str] = (), progress: Progress | None = None
) -> list[Daily]:
    """What a store of rows holds: for each of these types, and for all others together.

    Parameters:
        store: a ledger or a table.
        now: the instant that ages are counted from.
        types: those that are told apart.
        progress: called with how far it is.

    Raises:
        StoreError: when it cannot be read.
    """
    if isinstance(store, LedgerStore):
        return [_of_ledger(store, now, progress)]
    from keepfor.stores.sql.daily import of_table
    from keepfor.stores.table import TableStore

    assert isinstance(store, TableStore)
    return of_table(store, now, list(types))


class Tally:
    """Sums up what is there, day by day; a day below zero is none."""

    def __init__(self) -> None:
        self._days: defaultdict[int, list[int]] = defaultdict(lambda: [0, 0])

    def add(self, age: int, count: int, size: int) -> None:
        """So many more of that age in days, and their bytes."""
        held = self._days[max(age, -1)]
        held[0] += count
        held[1] += size

    def daily(self, type_: str | None = None) -> Daily:
        """The sums."""
        days = {age: (count, size) for age, (count, size) in sorted(self._days.items())}
        apart = days.pop(-1, (0, 0))
        return Daily(type=type_, days=days, apart=apart)


def _of_ledger(store: LedgerStore, now: datetime, progress: Progress | None) -> Daily:
    tally = Tally()
    try:
        descriptor = files.open_for_reading(store.path)
    except FileNotFoundError:
        return tally.daily()
    read, form = batch_reader(store.form), store.form
    try:
        size = os.fstat(descriptor).st_size
        for start, data in blocks(descriptor, 0, files.end_of_lines(descriptor, size)):
            if isinstance(data, int):
                tally.add(-1, 1, data)
                continue
            for batch in read(start, data):
                if batch.span:
                    oldest, newest = ((now - edge) // DAY for edge in batch.span)
                    # Rows come in the order of time, so that most batches are of a single day.
                    if oldest == newest:
                        tally.add(oldest, len(batch.values), len(batch.data))
                        continue
                for _, line, instant in rows_of(batch, form):
                    if instant != "blank":
                        age = (now - instant) // DAY if isinstance(instant, datetime) else -1
                        tally.add(age, 1, len(line) + 1)
            if progress:
                progress(start + len(data), size)
    except OSError as error:
        raise files.explained(error, store.path) from error
    finally:
        os.close(descriptor)
    return tally.daily()
