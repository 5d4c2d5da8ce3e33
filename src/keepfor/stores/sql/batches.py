"""What each transaction of a sweep is to delete: rows, or rows that hang on none."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec
from sqlalchemy import Connection, Row, Select, select
from sqlalchemy.sql import ColumnElement

from keepfor.stores.sql.counting import adrift
from keepfor.stores.sql.keys import Key
from keepfor.stores.sql.layout import Layout, Link
from keepfor.stores.sql.pace import Pace
from keepfor.stores.sql.picking import Picking
from keepfor.stores.sql.reach import Reach, beyond

#: What orphans' keys are called begins so, as nothing does that a person may name.
ORPHANS = "\0orphans "


class Orphans(msgspec.Struct, frozen=True, kw_only=True):
    """Rows of one dependent whose own row is not there.

    Parameters:
        number: tells the dependent from all others.
        link: the dependent.
        condition: that a row is one of them.
    """

    number: int
    link: Link
    condition: ColumnElement[bool]

    @property
    def name(self) -> str:
        """What their keys are called where they are kept on disk."""
        return f"{ORPHANS}{self.number}"

    def query(self) -> Select[Any]:
        """The keys that they refer to, in order."""
        columns = self.link.columns
        return select(*columns).where(self.condition).distinct().order_by(*columns)


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """What one transaction is to delete.

    Parameters:
        keys: of rows; or, of orphans, the keys that they refer to.
        picking: finds the rows, where no keys are given.
        reach: what the rows must meet still.
        orphans: what the orphans must be still.
    """

    keys: Sequence[Key] = ()
    picking: Picking | None = None
    reach: Reach | None = None
    orphans: Orphans | None = None


def batches_of_rows(
    connection: Connection, reached: Sequence[Reach], pace: Pace
) -> Iterator[Batch]:
    """What the parts take, as it is found: first what they take for certain."""
    for reach in reached:
        if reach.part.cutoff is None or not reach.part.count:
            continue
        picking = Picking(reach)
        while not picking.done:
            yield Batch(picking=picking, reach=reach)
        last, more = None, not reach.exact
        while more:
            size = pace.size
            rows = connection.execute(_after(reach.unsure, reach, last).limit(size)).all()
            if keys := reach.taken(rows):
                yield Batch(keys=keys, reach=reach)
            more = len(rows) == size
            last = rows[-1] if more else None


def _after(query: Select[Any], reach: Reach, last: Row[Any] | None) -> Select[Any]:
    """What comes after a row in the order of time and key."""
    return (
        query if last is None else query.where(beyond((reach.layout.time, *reach.layout.key), last))
    )


def batches_of_keys(
    entries: Iterable[tuple[str, list[Key]]], reached: dict[str, Reach], pace: Pace
) -> Iterator[Batch]:
    """What the parts take of keys that were seen before."""
    for name, keys in entries:
        reach, start = reached.get(name), 0
        while reach and reach.part.cutoff is not None and start < len(keys):
            size = pace.size
            yield Batch(keys=keys[start : start + size], reach=reach)
            start += size


def orphans_of(layout: Layout) -> list[Orphans]:
    """The orphans that hang on rows of a table, by the tables they are in."""
    return [
        Orphans(number=number, link=link, condition=lost)
        for number, (link, lost) in enumerate(adrift(layout))
    ]


def batches_of_orphans(
    connection: Connection,
    all_orphans: Sequence[Orphans],
    seen: Callable[[], Iterable[tuple[str, list[Key]]]] | None,
    pace: Pace,
) -> Iterator[Batch]:
    """Rows of other tables whose own row is not there, by the keys that they refer to.

    Parameters:
        all_orphans: where they are.
        seen: the keys of those that a plan saw; None where all that are there may go.
    """
    for orphans in all_orphans:
        if seen is None:
            yield from _orphans_there(connection, orphans, pace)
            continue
        for name, keys in seen():
            start = 0
            while name == orphans.name and start < len(keys):
                size = pace.size
                yield Batch(keys=keys[start : start + size], orphans=orphans)
                start += size


def _orphans_there(connection: Connection, orphans: Orphans, pace: Pace) -> Iterator[Batch]:
    last: Key | None = None
    while True:
        size = pace.size
        query = orphans.query()
        further = query.where(beyond(orphans.link.columns, last)) if last else query
        keys = [tuple(row) for row in connection.execute(further.limit(size))]
        if keys:
            yield Batch(keys=keys, orphans=orphans)
        if len(keys) < size:
            break
        last = keys[-1]
