"""How many rows a table holds of each day of age, and how it stands by its index alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import TypeVar

from sqlalchemy import and_, func, select
from sqlalchemy.sql import ColumnElement

from keepfor.errors import StoreChanged
from keepfor.items import Part, Survey, Terms
from keepfor.stores.daily import Daily, Tally
from keepfor.stores.sql.look import Look
from keepfor.stores.sql.reach import Reach, fetched
from keepfor.stores.table import TableStore
from keepfor.times import DAY, Known, before

#: A table with more days than this is gone through row by row, and not a day at a time.
_MANY_DAYS = 5000

_Told = TypeVar("_Told")


def of_table(store: TableStore, now: datetime, types: Sequence[str]) -> list[Daily]:
    """What a table holds, for each of these types and for all others together.

    The bytes are what its whole database holds, shared out evenly: no database tells what a row
    and all that hangs on it take up.
    """
    if not store.database.exists:
        return [Daily()]

    def count(look: Look) -> list[Daily]:
        held = look.database.footprint(look.connection)
        # Of two parts that speak of other types, each has its own rows.
        reached = look.reaches([*(Part(rule=type_, type=type_) for type_ in types), Part(rule="")])
        counts = [list(_ages(look, each, now)) for each in reached]
        total = sum(count for pairs in counts for _, count in pairs)
        each_row = (held.size - held.reclaimable) / total if total else 0.0
        found = []
        for reach, pairs in zip(reached, counts, strict=True):
            tally = Tally()
            for age, rows in pairs:
                tally.add(age, rows, round(rows * each_row))
            found.append(tally.daily(reach.part.type))
        return found

    return looked(store, count)


def glimpse(store: TableStore, terms: Terms) -> Survey:
    """What would go of a table, by its ends and by what an index counts.

    What hangs on its rows is not looked at, nor is whether all times are of one shape.

    Raises:
        StoreError: when the database cannot be read, or is not as the settings say.
    """

    return looked(store, lambda look: look.count(look.aim(terms), terms, None))


def looked(store: TableStore, ask: Callable[[Look], _Told]) -> _Told:
    """Ask a reader; where nobody was at the database and somebody came meanwhile, once more."""

    def once() -> _Told:
        with store.database.reading() as connection:
            return ask(Look(connection, store.database, store.spec, store.unit, store.zone))

    try:
        return once()
    except StoreChanged:
        return once()


def _ages(look: Look, reach: Reach, now: datetime) -> Iterator[tuple[int, int]]:
    """Days of age, and how many rows are of it; -1 is none that counts."""
    layout, connection = look.layout, look.connection
    if layout.indexed and (oldest := reach.first_kept(connection)):
        days = max(0, (now - oldest) // DAY + 1)
        if days < _MANY_DAYS:
            yield from _counted(look, reach, now, days)
            return
    query = select(look.shape.raw(layout.time)).select_from(layout.rows).where(reach.mine)
    for rows in fetched(connection, query):
        for (value,) in rows:
            instant = look.shape.instant(value)
            yield (now - instant.instant) // DAY if isinstance(instant, Known) else -1, 1


def _counted(look: Look, reach: Reach, now: datetime, days: int) -> Iterator[tuple[int, int]]:
    """The same, a question to the index for each day.

    Where SQL does not compare exactly, a row near the edge of a day may count for the next one.
    """
    shape, time = look.shape, look.layout.time

    def count(condition: ColumnElement[bool]) -> int:
        query = select(func.count()).select_from(look.layout.rows).where(reach.mine, condition)
        return int(look.connection.execute(query).scalar_one())

    def older(age: int) -> ColumnElement[bool]:
        return shape.older(time, shape.edges(before(now, age * DAY))[0])

    yield -1, count(time.is_(None))
    yield -1, count(~older(0))
    for age in range(days):
        if found := count(and_(older(age), ~older(age + 1))):
            yield age, found
    if found := count(older(days)):
        yield days, found
