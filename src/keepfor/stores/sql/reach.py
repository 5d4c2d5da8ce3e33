"""What of a table a part of a policy reaches: as conditions where SQL can tell, row by row else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

import msgspec
from sqlalchemy import (
    Connection,
    Row,
    Select,
    TableClause,
    and_,
    false,
    func,
    or_,
    select,
    true,
    tuple_,
)
from sqlalchemy.sql import ColumnElement

from keepfor.items import Part
from keepfor.stores.sql.database import KEEPS_WRITERS
from keepfor.stores.sql.keys import Gathered, Key, as_it_is, gather, put
from keepfor.stores.sql.layout import Layout
from keepfor.stores.sql.shapes import Shape
from keepfor.times import Known

#: How many rows are fetched at once, and how many one question is about.
_FETCHED, _PAGE = 1000, 25_000


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

    @property
    def unsure(self) -> Select[Any]:
        """Time and key of what may be older than the cutoff, and is not for certain."""
        return self.query(and_(self.possible, ~self.certain))

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
        for rows in fetched(connection, self.unsure):
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
        return self.still(connection, put(connection, keys, 0), 1, certain=False).count

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

    def still(
        self, connection: Connection, picked: Gathered, level: int, *, certain: bool
    ) -> Gathered:
        """Of picked rows those that it takes still; others that are locked are passed over.

        Parameters:
            certain: whether those were picked that are older than the cutoff for certain.
        """
        key = self.layout.key
        if certain or self.exact:
            found = select(*key).where(picked.among(key), self.certain)
            locked = found.with_for_update(skip_locked=True)
            return gather(connection, locked, level, numbers=self.layout.grows)
        found = select(self.layout.time, *key).where(picked.among(key), self.possible)
        rows = connection.execute(found.with_for_update(skip_locked=True)).all()
        types = [each.type.compile() for each in key]
        return put(connection, self.taken(rows), level, types)

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
    bounds = list(map(as_it_is, values))
    if len(columns) == 1:
        return columns[0] > bounds[0]
    # An index is entered by its first column alone.
    return and_(columns[0] >= bounds[0], tuple_(*columns) > tuple_(*bounds))


def up_to(columns: Sequence[ColumnElement[Any]], values: Sequence[object]) -> ColumnElement[bool]:
    """What comes no later than these values in the order of these columns."""
    bounds = list(map(as_it_is, values))
    if len(columns) == 1:
        return columns[0] <= bounds[0]
    return and_(columns[0] <= bounds[0], tuple_(*columns) <= tuple_(*bounds))


def pages(
    connection: Connection,
    rows: TableClause,
    columns: Sequence[ColumnElement[Any]],
    condition: ColumnElement[bool],
) -> Iterator[ColumnElement[bool]]:
    """What meets a condition, a page at a time where a question keeps writers waiting.

    Parameters:
        columns: the order that the pages follow; an index should have it too.

    Returns:
        For each page the condition that a row is on it.
    """
    page = condition
    while connection.info.get(KEEPS_WRITERS):
        edge = select(*columns).select_from(rows).where(page).order_by(*columns)
        last = connection.execute(edge.offset(_PAGE - 1).limit(1)).one_or_none()
        if last is None:
            break
        # The nearer end comes first: of two, SQLite enters an index by that.
        yield and_(up_to(columns, tuple(last)), page)
        page = and_(condition, beyond(columns, tuple(last)))
    yield page


def fetched(connection: Connection, query: Select[Any]) -> Iterator[Sequence[Row[Any]]]:
    """The rows of a query, some at a time, so that they are never all in memory."""
    with connection.execute(query.execution_options(yield_per=_FETCHED)) as result:
        yield from result.partitions(_FETCHED)
