"""What of a table a part of a policy reaches: as conditions where SQL can tell, row by row else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

import msgspec
from sqlalchemy import (
    BindParameter,
    Connection,
    Row,
    Select,
    TableClause,
    and_,
    bindparam,
    false,
    func,
    or_,
    select,
    true,
    tuple_,
)
from sqlalchemy.sql import ColumnElement
from sqlalchemy.types import NullType

from keepfor.items import Part
from keepfor.stores.sql.keys import Gathered, Key, gather, put
from keepfor.stores.sql.layout import Layout
from keepfor.stores.sql.shapes import Shape
from keepfor.times import Known

#: How many rows are fetched at once, and how many one question is about.
_FETCHED, _PAGE = 1000, 10_000


class Reach(msgspec.Struct, frozen=True, kw_only=True):
    """The rows that one part takes.

    Times that SQL cannot compare exactly are few, near the cutoff, and are judged one by one.

    Parameters:
        part: the part.
        layout: the table's.
        shape: its times'.
        others: the types that other parts speak of.
        within: the rows that it may not go beyond.
        since: rows of the same types that are older are another part's; None where none are.
    """

    part: Part
    layout: Layout
    shape: Shape
    others: Sequence[str]
    within: ColumnElement[bool]
    since: datetime | None = None

    @property
    def mine(self) -> ColumnElement[bool]:
        """The rows that the part speaks of."""
        type_ = self.layout.type
        if type_ is None:
            return true()
        if self.part.type is not None:
            return type_ == self.part.type
        return or_(type_.is_(None), type_.not_in(self.others)) if self.others else true()

    @property
    def exact(self) -> bool:
        """Whether SQL alone can tell."""
        bounds = [self._cutoff, *([self.since] if self.since else [])]
        return all(sure == maybe for sure, maybe in map(self.shape.edges, bounds))

    @property
    def certain(self) -> ColumnElement[bool]:
        """What is older than the cutoff for certain."""
        return self._older(0)

    @property
    def possible(self) -> ColumnElement[bool]:
        """What may be older than the cutoff."""
        return self._older(1)

    def takes(self, value: object) -> bool:
        """Whether a row with this time goes, which is possible already."""
        if self.exact:
            return True
        instant = self.shape.instant(value)
        if not isinstance(instant, Known) or instant.instant >= self._cutoff:
            return False
        return self.since is None or instant.instant >= self.since

    def taken(self, rows: Sequence[Row[Any]]) -> list[Key]:
        """The keys of those rows that go, which is possible of each; their time is before them."""
        exact = self.exact
        return [tuple(row)[1:] for row in rows if exact or self.takes(row[0])]

    def doubtful(self, connection: Connection) -> Iterator[list[Key]]:
        """The keys of what goes and is not certain, some at a time."""
        if self.part.cutoff is None or self.exact:
            return
        unsure = self.query(and_(self.possible, ~self.certain))
        for rows in fetched(connection, unsure):
            if keys := self.taken(rows):
                yield keys

    def count(self, connection: Connection) -> int:
        """How many rows it takes."""
        if self.others and self.layout.type is not None:
            # Two counts that an index answers, where one would have to look at every row.
            older = and_(self.within, self._before(0))
            of_others = self._count(connection, older, self.layout.type.in_(self.others))
            certain = self._count(connection, older) - of_others
        else:
            certain = self._count(connection, self.certain)
        return certain + sum(map(len, self.doubtful(connection)))

    def count_among(self, connection: Connection, keys: Sequence[Key]) -> int:
        """How many of the rows with these keys it takes."""
        return self.still(connection, put(connection, keys, 0), 1).count

    def end(self, connection: Connection, *, newest: bool) -> tuple[Key, datetime] | None:
        """The key and the instant of the oldest row that it takes, or of the newest."""
        query, columns = self.query(self.possible), (self.layout.time, *self.layout.key)
        order = [each.desc() if newest else each.asc() for each in columns]
        for rows in fetched(connection, query.order_by(None).order_by(*order)):
            for row in rows:
                instant = self.shape.instant(row[0])
                if self.takes(row[0]) and isinstance(instant, Known):
                    return tuple(row)[1:], instant.instant
        return None

    def first_kept(self, connection: Connection) -> datetime | None:
        """The instant of the oldest row of those it speaks of that it leaves."""
        left = and_(self.mine, self.layout.time.is_not(None))
        if self.part.cutoff is not None:
            left = and_(left, ~self.shape.older(self.layout.time, self._edge(0)))
        for rows in fetched(connection, self.query(left)):
            for value, *_ in rows:
                instant = self.shape.instant(value)
                if isinstance(instant, Known) and not (
                    self.part.cutoff and instant.instant < self.part.cutoff
                ):
                    return instant.instant
        return None

    def query(self, condition: ColumnElement[bool]) -> Select[Any]:
        """Time and key of the rows that meet a condition, the oldest first."""
        time, key = self.layout.time, self.layout.key
        return select(time, *key).where(condition).order_by(time, *key)

    def pick(self, connection: Connection, last: Row[Any] | None, most: int) -> list[Row[Any]]:
        """The next rows that it may take, with their time before their key.

        Parameters:
            connection: where to look.
            last: the last that was picked before, if any.
            most: how many to pick at the most.
        """
        query = self.query(self.possible).order_by(None).order_by(*self.layout.order)
        if last is not None:
            # Without an index on time, rows are read in the order of the key.
            values = tuple(last) if self.layout.indexed else tuple(last)[1:]
            query = query.where(beyond(self.layout.order, values))
        return list(connection.execute(query.limit(most)))

    def still(self, connection: Connection, picked: Gathered, level: int) -> Gathered:
        """Of picked rows those that it takes still; others that are locked are passed over."""
        key = self.layout.key
        if self.exact:
            found = select(*key).where(picked.among(key), self.certain)
            return gather(connection, found.with_for_update(skip_locked=True), level)
        found = select(self.layout.time, *key).where(picked.among(key), self.possible)
        rows = connection.execute(found.with_for_update(skip_locked=True)).all()
        return put(connection, self.taken(rows), level)

    @property
    def _cutoff(self) -> datetime:
        assert self.part.cutoff is not None  # A part without one reaches nothing.
        return self.part.cutoff

    def _edge(self, number: int) -> object:
        return self.shape.edges(self._cutoff)[number]

    def _older(self, number: int) -> ColumnElement[bool]:
        if self.part.cutoff is None:
            return false()
        return and_(self.mine, self.within, self._before(number))

    def _before(self, number: int) -> ColumnElement[bool]:
        time, shape = self.layout.time, self.shape
        before = shape.older(time, self._edge(number))
        if self.since is None:
            return before
        # What is certain, or possible, of the one end is the opposite of the other.
        return and_(before, ~shape.older(time, shape.edges(self.since)[1 - number]))

    def _count(self, connection: Connection, *conditions: ColumnElement[bool]) -> int:
        query = select(func.count()).select_from(self.layout.rows).where(*conditions)
        return int(connection.execute(query).scalar_one())


def reaches(
    parts: Sequence[Part], layout: Layout, shape: Shape, within: ColumnElement[bool] | None = None
) -> list[Reach]:
    """What each part reaches; a row belongs to the part of its type, or else to those of none.

    Of two that speak of the same rows, the first takes them.
    """
    types = [part.type for part in parts if part.type is not None]
    found, since = list[Reach](), dict[str | None, datetime]()
    for part in parts:
        reach = Reach(
            part=part,
            layout=layout,
            shape=shape,
            others=types if part.type is None else (),
            within=true() if within is None else within,
            since=since.get(part.type),
        )
        found.append(reach)
        if part.cutoff is not None:
            since[part.type] = part.cutoff
    return found


def beyond(columns: Sequence[ColumnElement[Any]], values: Sequence[object]) -> ColumnElement[bool]:
    """What comes after these values in the order of these columns."""
    bounds = [as_it_is(value) for value in values]
    if len(columns) == 1:
        return columns[0] > bounds[0]
    # An index is entered by its first column alone.
    return and_(columns[0] >= bounds[0], tuple_(*columns) > tuple_(*bounds))


def _up_to(columns: Sequence[ColumnElement[Any]], values: Sequence[object]) -> ColumnElement[bool]:
    """What comes no later than these values in the order of these columns."""
    bounds = [as_it_is(value) for value in values]
    if len(columns) == 1:
        return columns[0] <= bounds[0]
    return and_(columns[0] <= bounds[0], tuple_(*columns) <= tuple_(*bounds))


def pages(
    connection: Connection,
    rows: TableClause,
    columns: Sequence[ColumnElement[Any]],
    condition: ColumnElement[bool],
) -> Iterator[ColumnElement[bool]]:
    """What meets a condition, a page at a time, so that no question keeps writers waiting.

    In a database with a rollback journal nobody can commit while a question is being answered.

    Parameters:
        columns: the order that the pages follow; an index should have it too.

    Returns:
        For each page the condition that a row is on it.
    """
    page = condition
    while True:
        edge = select(*columns).select_from(rows).where(page).order_by(*columns)
        last = connection.execute(edge.offset(_PAGE - 1).limit(1)).one_or_none()
        if last is None:
            yield page
            return
        # The nearer end comes first: of two, SQLite enters an index by that.
        yield and_(_up_to(columns, tuple(last)), page)
        page = and_(condition, beyond(columns, tuple(last)))


def as_it_is(value: object) -> BindParameter[Any]:
    """A value of which the driver, and not SQLAlchemy, tells the database what it is."""
    return bindparam(None, value, NullType())


def fetched(connection: Connection, query: Select[Any]) -> Iterator[Sequence[Row[Any]]]:
    """The rows of a query, some at a time, so that they are never all in memory."""
    with connection.execute(query.execution_options(yield_per=_FETCHED)) as result:
        yield from result.partitions(_FETCHED)
