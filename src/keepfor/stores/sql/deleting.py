"""Deletes rows of a table and all that hangs on them, in transactions so short that few notice."""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, delete, exists, func, insert, literal_column, select
from sqlalchemy.sql import ColumnElement

from keepfor.errors import StoreError
from keepfor.items import Survey
from keepfor.stores.base import Progress
from keepfor.stores.sql.batches import Batch
from keepfor.stores.sql.database import Database
from keepfor.stores.sql.keys import Gathered, as_it_is, gather, put
from keepfor.stores.sql.layout import Layout, Link
from keepfor.stores.sql.pace import Pace
from keepfor.stores.sql.reach import Reach
from keepfor.stores.sql.shapes import Shape
from keepfor.stores.sql.spec import Record

#: How long others may keep a transaction waiting, in seconds.
_PATIENCE = 10.0


def delete_rows(
    database: Database,
    connection: Connection,
    batches: Iterable[Batch],
    *,
    done: Survey,
    layout: Layout,
    pace: Pace,
    leave: Callable[[Connection, Survey], None] | None,
    progress: Progress | None,
    planned: int,
) -> None:
    """Delete batch by batch, each in a transaction of its own.

    Parameters:
        database: what to delete from.
        connection: from its `writing`.
        batches: what to delete; read ahead, so that the last is known for what it is.
        done: takes the counts of what was deleted, transaction by transaction.
        layout: the table's.
        pace: learns from each transaction.
        leave: leaves the record of the sweep, in the last transaction; None for none.
        progress: called with how many rows were deleted, and how many there are to be.
        planned: that number.

    Raises:
        StoreError: when a transaction fails; those before it stand.
    """
    ahead = iter(batches)
    batch, more = next(ahead, None), True
    while more:
        rows, size = 0, pace.size
        picked = _before(connection, batch, size) if batch else None
        # As soon as it is known what this one takes, it is known whether it is the last.
        following = next(ahead, None) if picked else None
        with database.transaction(connection, _PATIENCE):
            started = time.monotonic()
            counts = Survey(bytes_deleted=0)
            if batch:
                before = database.freed(connection)
                rows = _delete(connection, layout, batch, picked, size, counts)
                _count(counts, database.freed(connection) - before)
            if not picked:
                following = next(ahead, None)
            if leave and following is None:
                leave(connection, _sum(done, counts))
            worked = time.monotonic() - started
        held = time.monotonic() - started
        _add(done, counts)
        pace.learn(rows, worked, held - worked)
        if progress:
            progress(done.applied, planned)
        batch, more = following, following is not None
        if more and connection.dialect.name == "sqlite":
            # Room for those who wait, who may only look every few milliseconds.
            time.sleep(min(held, pace.hold) / 2)


def record(
    record: Record, layout: Layout, shape: Shape, now: datetime
) -> Callable[[Connection, Survey], None]:
    """Leaves the row that tells of a sweep."""

    def leave(connection: Connection, done: Survey) -> None:
        if record.when == "deleted" and not done.applied:
            # Others held the rows.
            return
        told: dict[str, object] = {
            "deleted": done.applied,
            "cutoff": done.cutoff.isoformat() if done.cutoff else None,
            "dependents": done.dependents,
        }
        if done.orphans:
            told["orphans"] = done.orphans
        assert layout.type is not None
        columns = {
            layout.time.name: shape.write(now),
            layout.type.name: record.type,
            record.payload: json.dumps(told),
        }
        values = {name: as_it_is(value) for name, value in columns.items()}
        connection.execute(insert(layout.rows).values(values))

    return leave


def _before(connection: Connection, batch: Batch, most: int) -> Gathered | None:
    """The keys of a batch, where they are set before the transaction."""
    if batch.picking:
        return batch.picking.before(connection, most)
    return put(connection, batch.keys, 0)


def _delete(
    connection: Connection,
    layout: Layout,
    batch: Batch,
    picked: Gathered | None,
    most: int,
    counts: Survey,
) -> int:
    """Delete a batch; returns how many keys it had."""
    if batch.orphans:
        assert picked is not None  # Given keys are set before.
        link = batch.orphans.link
        condition = picked.among(link.columns) & batch.orphans.condition
        _clear(connection, link, condition, 1, counts.orphans, counts, check=layout.checked)
        return picked.count
    assert batch.reach is not None
    if batch.picking:
        still = batch.picking.within(connection, picked, most)
    else:
        assert picked is not None
        still = batch.reach.still(connection, picked, 1, certain=False)
    if still.count:
        _delete_rows(connection, layout, batch.reach, still, counts)
    return picked.count if picked else still.count


def _delete_rows(
    connection: Connection, layout: Layout, reach: Reach, still: Gathered, counts: Survey
) -> None:
    for link in layout.links:
        hanging = still.among(link.columns)
        _clear(connection, link, hanging, 2, counts.dependents, counts, check=layout.checked)
    condition = still.among(layout.key)
    gone = _remove(connection, layout.rows, condition, counts)
    if gone != still.count:
        raise _odd(layout.rows.name, f"{gone} rows were deleted where {still.count} were meant")
    if layout.checked:
        _check_gone(connection, layout.rows.name, layout.key, condition)
    counts.applied += gone
    if reach.part.ceiling:
        counts.over_ceiling += gone
    else:
        counts.expired += gone


def _clear(
    connection: Connection,
    link: Link,
    condition: ColumnElement[bool],
    level: int,
    told: dict[str, int],
    counts: Survey,
    *,
    check: bool,
) -> None:
    """Delete rows of a dependent, and first what hangs on them in turn.

    Parameters:
        condition: which rows.
        level: the first place where keys can be set.
        told: takes how many there were, by table.
        counts: takes their bytes.
        check: whether it has to be seen that they are gone.
    """
    if link.links:
        keys = gather(connection, select(*link.key).where(condition), level)
        for below in link.links:
            hanging = keys.among(below.columns)
            _clear(connection, below, hanging, level + 1, told, counts, check=check)
    told[link.name] = told.get(link.name, 0) + _remove(connection, link.rows, condition, counts)
    if check:
        _check_gone(connection, link.name, link.columns, condition)


def _remove(
    connection: Connection, rows: Any, condition: ColumnElement[bool], counts: Survey
) -> int:
    statement = delete(rows).where(condition)
    if connection.dialect.name != "postgresql":
        return connection.execute(statement).rowcount
    name = rows.name.replace('"', '""')
    size = func.pg_column_size(literal_column(f'"{name}".*')).label("size")
    gone = statement.returning(size).cte()
    query = select(func.count(), func.coalesce(func.sum(gone.c.size), 0))
    number, freed = connection.execute(query).one()
    _count(counts, int(freed))
    return int(number)


def _check_gone(
    connection: Connection,
    name: str,
    columns: Sequence[ColumnElement[Any]],
    condition: ColumnElement[bool],
) -> None:
    if connection.execute(select(exists(select(*columns).where(condition)))).scalar_one():
        raise _odd(name, "rows that were to go are there still")


def _odd(name: str, what: str) -> StoreError:
    fix = "See whether a trigger or a rule of the database interferes."
    return StoreError(path=name, what=f"{what}, so this was not done.", fix=fix)


def _count(counts: Survey, freed: int) -> None:
    counts.bytes_deleted = (counts.bytes_deleted or 0) + freed


def _sum(done: Survey, counts: Survey) -> Survey:
    """What was done, and what one more transaction has done."""
    total = copy.deepcopy(done)
    _add(total, counts)
    return total


def _add(done: Survey, counts: Survey) -> None:
    for name in ("applied", "expired", "over_ceiling"):
        setattr(done, name, getattr(done, name) + getattr(counts, name))
    # Rows that came in the midst of the sweep, under a key that was given again, count as there.
    done.scanned = max(done.scanned, done.applied)
    done.kept = done.scanned - done.applied
    _count(done, counts.bytes_deleted or 0)
    for told, more in (done.dependents, counts.dependents), (done.orphans, counts.orphans):
        for name, number in more.items():
            told[name] = told.get(name, 0) + number
