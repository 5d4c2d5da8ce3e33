"""Counts what would go of a table, with all that hangs on it. Writes nothing to the database."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from msgspec.structs import replace
from sqlalchemy import Connection, TableClause, and_, exists, func, or_, select
from sqlalchemy.sql import ColumnElement

from keepfor.items import Part, Survey, Terms
from keepfor.stores.sql.keys import Key, put
from keepfor.stores.sql.layout import Layout, Link
from keepfor.stores.sql.reach import Reach, fetched, pages
from keepfor.stores.sql.shapes import Shape
from keepfor.times import Known


def survey(
    connection: Connection, layout: Layout, shape: Shape, reached: Sequence[Reach], terms: Terms
) -> Survey:
    """Count what each part takes, and what stays; what hangs on the rows is counted apart.

    Parameters:
        connection: where to look.
        layout: the table's.
        shape: its times'.
        reached: what each part reaches.
        terms: what the counts are reported by.
    """
    total = count(connection, layout)
    parts = parts_of(connection, reached)
    over = sum(part.count for part in parts if part.ceiling)
    gone = sum(part.count for part in parts)
    kept = [oldest for each in _last(reached) if (oldest := each.first_kept(connection))]
    return Survey(
        parts=parts,
        times=shape.name,
        cutoff=terms.cutoff,
        scanned=total,
        kept=total - gone,
        applied=gone,
        expired=gone - over,
        over_ceiling=over,
        future=_future(connection, layout, shape, terms.now),
        unknown=count(connection, layout, layout.time.is_(None)),
        oldest=min(kept, default=None),
        newest=newest(connection, layout, shape),
        due=min((part.oldest for part in parts if part.oldest), default=None),
        lag=_lag(connection, layout, shape, parts, terms),
        notes=list(_notes(total - gone, terms)),
    )


def count(
    connection: Connection, layout: Layout, condition: ColumnElement[bool] | None = None
) -> int:
    """How many rows there are, or how many meet a condition."""
    return count_rows(connection, layout.rows, condition)


def count_rows(
    connection: Connection, rows: TableClause, condition: ColumnElement[bool] | None = None
) -> int:
    """The same of any table."""
    query = select(func.count()).select_from(rows)
    if condition is not None:
        query = query.where(condition)
    return int(connection.execute(query).scalar_one())


def parts_of(connection: Connection, reached: Sequence[Reach]) -> list[Part]:
    """The parts with what they take."""
    parts = []
    for each in reached:
        # A part of a plan brings the counts of then.
        part = replace(each.part, count=0, first=[], last=[], oldest=None, newest=None)
        if part.cutoff is None:
            parts.append(part)
            continue
        oldest, newest = each.end(connection, newest=False), each.end(connection, newest=True)
        taken = each.count(connection) if oldest else 0
        if oldest and newest and taken:
            part = replace(
                part,
                count=taken,
                first=shown(oldest[0]),
                last=shown(newest[0]),
                oldest=oldest[1],
                newest=newest[1],
            )
        parts.append(part)
    return parts


def _last(reached: Sequence[Reach]) -> Iterator[Reach]:
    """Of those that speak of the same rows, the one that takes the newest."""
    found: dict[str | None, Reach] = {}
    for each in reached:
        if each.part.cutoff is not None or each.part.type not in found:
            found[each.part.type] = each
    yield from found.values()


def shown(key: Key) -> list[str | int]:
    """A key, as a plan can hold it."""
    return [value if isinstance(value, int) else str(value) for value in key]


def dependents(connection: Connection, layout: Layout, reached: Sequence[Reach]) -> dict[str, int]:
    """How many rows of other tables go along, by table."""
    found: dict[str, int] = {}
    going = or_(*(each.certain for each in reached))
    for link in layout.links:
        for page in pages(connection, layout.rows, layout.order, going):
            _hanging(connection, link, select(*layout.key).where(page), found)
        for each in reached:
            for keys in each.doubtful(connection):
                few = put(connection, keys, 0)
                above = select(*layout.key).where(few.among(layout.key))
                _hanging(connection, link, above, found)
    return found


def _hanging(connection: Connection, link: Link, above: Any, found: dict[str, int]) -> None:
    source = above.subquery()
    joined = [mine == theirs for mine, theirs in zip(link.columns, source.c, strict=True)]
    query = select(func.count()).select_from(source.join(link.rows, and_(*joined)))
    count = int(connection.execute(query).scalar_one())
    found[link.name] = found.get(link.name, 0) + count
    if count and link.links:
        below = select(*link.key).select_from(source.join(link.rows, and_(*joined)))
        for each in link.links:
            _hanging(connection, each, below, found)


def orphans(connection: Connection, layout: Layout) -> dict[str, int]:
    """How many rows of other tables hang on rows that are not there, by table."""
    found: dict[str, int] = {}
    for link, lost in adrift(layout):
        found.setdefault(link.name, 0)
        refers = and_(*(each.is_not(None) for each in link.columns))
        for page in pages(connection, link.rows, link.columns, refers):
            query = select(func.count()).select_from(link.rows).where(page, lost)
            found[link.name] += int(connection.execute(query).scalar_one())
    return {name: number for name, number in found.items() if number}


def adrift(layout: Layout) -> Iterator[tuple[Link, ColumnElement[bool]]]:
    """Each dependent with the condition that its row hangs on one that is not there."""
    above = [(link, layout.rows, layout.key) for link in layout.links]
    while above:
        link, rows, key = above.pop(0)
        there = exists().where(
            *(mine == theirs for mine, theirs in zip(link.columns, key, strict=True))
        )
        refers = [mine.is_not(None) for mine in link.columns]
        yield link, and_(*refers, ~there.select_from(rows).correlate(link.rows))
        above += [(below, link.rows, link.key) for below in link.links]


def _future(connection: Connection, layout: Layout, shape: Shape, now: datetime) -> int:
    # What is not older than the next microsecond is past now, and nothing else is.
    sure, maybe = shape.edges(now + timedelta(microseconds=1))
    ahead = count(connection, layout, ~shape.older(layout.time, maybe))
    if sure == maybe:
        return ahead
    near = and_(~shape.older(layout.time, sure), shape.older(layout.time, maybe))
    for rows in fetched(connection, select(layout.time).where(near)):
        instants = [shape.instant(value) for (value,) in rows]
        ahead += sum(isinstance(each, Known) and each.instant > now for each in instants)
    return ahead


def newest(connection: Connection, layout: Layout, shape: Shape) -> datetime | None:
    """The newest instant that is there."""
    raw = shape.raw(layout.time)
    query = select(raw).where(layout.time.is_not(None)).order_by(layout.time.desc())
    instants = [shape.instant(row[0]) for row in connection.execute(query.limit(1))]
    return next((each.instant for each in instants if isinstance(each, Known)), None)


def _lag(
    connection: Connection, layout: Layout, shape: Shape, parts: Sequence[Part], terms: Terms
) -> timedelta:
    """How long the oldest of what goes has been due."""
    lags = [timedelta()]
    aged = {None: terms.cutoff} | {cut.type: cut.cutoff for cut in terms.by_type}
    for part in parts:
        if part.ceiling and part.count:
            # The row that took the table above its ceiling.
            query = select(layout.time).where(layout.time.is_not(None))
            query = query.order_by(layout.time.desc()).offset(part.count - 1).limit(1)
            since = [shape.instant(row[0]) for row in connection.execute(query)]
            lags += [terms.now - each.instant for each in since if isinstance(each, Known)]
        elif part.oldest and (cutoff := aged.get(part.type)):
            lags.append(cutoff - part.oldest)
            # The floor let go of it when the newest row came.
            if terms.keep_last and (since_newest := newest(connection, layout, shape)):
                lags[-1] = min(lags[-1], terms.now - since_newest)
    return max(lags)


def _notes(kept: int, terms: Terms) -> Iterator[str]:
    if terms.max_count is not None and kept > terms.max_count:
        yield (
            f"still {kept - terms.max_count} over max_count: held by keep_last, pinned, of one "
            "instant, or of unknown age"
        )
