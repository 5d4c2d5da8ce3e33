"""One look at a table: how it is laid out, what a policy reaches in it, what was there."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from msgspec.structs import replace
from sqlalchemy import Connection, Row, func, not_, or_, select
from sqlalchemy.sql import ColumnElement

from keepfor.errors import StoreChanged, StoreError, WrongTimes
from keepfor.items import Part, Survey, TableExtent, Terms
from keepfor.stores.sql import counting, keys
from keepfor.stores.sql.batches import (
    ORPHANS,
    Batch,
    Orphans,
    batches_of_keys,
    batches_of_orphans,
    batches_of_rows,
    orphans_of,
)
from keepfor.stores.sql.catalogue import hides_rows
from keepfor.stores.sql.database import Database
from keepfor.stores.sql.layout import Layout, lay_out
from keepfor.stores.sql.pace import Pace
from keepfor.stores.sql.reach import Reach, fetched, pages, reaches
from keepfor.stores.sql.shapes import NoShape, Shape, detect
from keepfor.stores.sql.spec import Spec
from keepfor.times import Known

#: Tables up to this many rows are looked at whole for times of another shape.
_WHOLE = 100_000
#: Of larger ones, all that would go, and so many of the oldest and of the newest rows.
_OLDEST, _NEWEST = 100, 1000
#: How many of the rows are named that have such times.
_SHOWN = 5
#: A floor that nothing lies below.
_BOTTOM = datetime.min.replace(tzinfo=UTC)


class Look:
    """A table of which the layout is known, and the shape of its times.

    Parameters:
        connection: what to look through.
        database: where the table lies.
        spec: what is said of it.
        unit: what a time that is a number counts since 1970.
        zone: the zone of a time that names none.
    """

    def __init__(
        self, connection: Connection, database: Database, spec: Spec, unit: str | None, zone: tzinfo
    ) -> None:
        self.connection = connection
        self.database = database
        self.spec = spec
        self.layout: Layout = lay_out(connection, spec, database)
        self.shape: Shape = self._shape(unit, zone)

    def reaches(
        self, parts: Sequence[Part], within: ColumnElement[bool] | None = None
    ) -> list[Reach]:
        """What the parts reach."""
        return reaches(parts, self.layout, self.shape, within)

    def aim(self, terms: Terms) -> list[Part]:
        """What each rule takes, and the ceiling: the cutoffs, without counts."""
        floor = self._floor(terms.keep_last)
        cuts = [(cut.rule, cut.type, cut.cutoff) for cut in terms.by_type]
        parts = [
            Part(rule=rule, type=type_, cutoff=earlier(cutoff, floor))
            for rule, type_, cutoff in [*cuts, (terms.rule, None, terms.cutoff)]
        ]
        if terms.max_count is not None and (bound := self._bound(terms.max_count, parts)):
            parts.append(Part(rule="max_count", ceiling=True, cutoff=earlier(bound, floor)))
        return parts

    def count(
        self, parts: Sequence[Part], terms: Terms, within: ColumnElement[bool] | None
    ) -> Survey:
        """What the parts take, in numbers."""
        seen = counting.survey(
            self.connection, self.layout, self.shape, self.reaches(parts, within), terms
        )
        seen.bytes_before = seen.bytes_after = self.database.footprint(self.connection).size
        seen.notes += [*self.layout.notes, *self.database.notes]
        return seen

    def hanging(self, parts: Sequence[Part]) -> dict[str, int]:
        """How many rows of other tables go with what the parts take, by table."""
        return counting.dependents(self.connection, self.layout, self.reaches(parts))

    def orphans(self) -> dict[str, int]:
        """How many rows of other tables hang on rows that are not there, by table."""
        return counting.orphans(self.connection, self.layout)

    def sizes(self, tables: Collection[str]) -> dict[str, int]:
        """How many rows there are in each of these tables of dependents."""
        there = {orphans.link.name: orphans.link.rows for orphans in orphans_of(self.layout)}
        return {name: counting.count_rows(self.connection, there[name]) for name in tables}

    def count_again(self, parts: Sequence[Part], terms: Terms, extent: TableExtent) -> Survey:
        """What the parts take of the rows that a plan saw, in numbers."""
        seen = self.count(parts, terms, self.within(extent))
        if extent.keys is not None and extent.highest is None:
            # Of the keys on disk, those that are due still.
            reached = {part_name(each.part): each for each in self.reaches(seen.parts)}
            counts = dict.fromkeys(reached, 0)
            for name, some in keys.load(extent.keys, extent.keys_digest):
                if (reach := reached.get(name)) and reach.part.cutoff is not None:
                    counts[name] += reach.count_among(self.connection, some)
            seen.parts = [replace(part, count=counts[part_name(part)]) for part in seen.parts]
            seen.applied = sum(counts.values())
            seen.over_ceiling = sum(part.count for part in seen.parts if part.ceiling)
            seen.expired, seen.kept = seen.applied - seen.over_ceiling, seen.scanned - seen.applied
        return seen

    def left(self, others: int, extent: TableExtent) -> int:
        """How many rows that a plan would have taken are there still.

        Parameters:
            others: how many rows it left. Where no keys tell the two apart, they are taken to be
                there still.
            extent: the plan's.
        """
        if extent.keys is None or extent.highest is not None:
            there = counting.count(self.connection, self.layout, self.within(extent))
            return max(0, there - others)
        there = 0
        for name, some in keys.load(extent.keys, extent.keys_digest):
            if not name.startswith(ORPHANS):
                among = keys.put(self.connection, some, 0).among(self.layout.key)
                there += counting.count(self.connection, self.layout, among)
        return there

    def extent(self, parts: Sequence[Part] | None, folder: Path, *, orphans: bool) -> TableExtent:
        """Which rows are there; where keys do not grow, those that the parts take, on disk.

        Orphans have no key that grows, so those that may go are on disk too.

        Parameters:
            parts: None where nothing will be planned, and what is there now may go.
            folder: where the keys are kept, if they have to be.
            orphans: whether orphans may go.
        """
        if orphans:
            self._refuse_hidden_rows()
        found = TableExtent(identity=self.database.identity(self.connection, self.spec.table))
        grows = self.layout.grows
        if grows:
            highest = self.connection.execute(select(func.max(self.layout.key[0]))).scalar_one()
            found = replace(found, highest=highest or 0, witness=self._witness(highest))
        if parts is None or (grows and not orphans):
            return found
        lost = orphans_of(self.layout) if orphans else []
        entries = chain([] if grows else self._entries(parts), self._orphans(lost))
        path, digest = keys.save(folder, entries)
        return replace(found, keys=path, keys_digest=digest)

    def within(self, extent: TableExtent) -> ColumnElement[bool] | None:
        """The condition that a row is not beyond an extent, as far as its key can tell."""
        if extent.highest is None:
            return None
        # As a sum, it is no reason to go through all the keys where there is an index on time.
        return self.layout.key[0] + 0 <= extent.highest

    def check_same(self, extent: TableExtent) -> None:
        """Refuse another table than the one that an extent speaks of."""
        why = None
        if self.database.identity(self.connection, self.spec.table) != extent.identity:
            why = "another table stands there now"
        elif extent.highest is not None and self._witness(extent.highest) != extent.witness:
            why = "its newest row is gone, so that keys may have been given again"
        if why:
            raise StoreChanged(path=self._target, why=why)

    def check_times(self, reached: Sequence[Reach]) -> None:
        """Refuse times of more than one shape among what would go; of a small table, at all."""
        layout = self.layout
        concerned: ColumnElement[bool] = layout.time.is_not(None)
        beyond_whole = select(layout.key[0]).offset(_WHOLE).limit(1)
        if self.connection.execute(beyond_whole).one_or_none() is not None:
            concerned = or_(*(each.possible for each in reached))
        odd, samples = 0, list[Row[Any]]()
        for page in pages(self.connection, layout.rows, layout.order, concerned):
            query = select(self.shape.raw(layout.time), *layout.key)
            query = query.where(page, not_(self.shape.fits(layout.time)))
            rows = self.connection.execute(query).all()
            odd += len(rows)
            samples += rows[: _SHOWN - len(samples)]
        if odd:
            raise self._wrong_times(odd, self.shape.name, samples)

    def batches(
        self, parts: Sequence[Part], extent: TableExtent, pace: Pace, *, orphans: bool
    ) -> Iterator[Batch]:
        """What there is to delete, as it is found."""
        within = self.within(extent)
        if within is None:
            # A time that came since may be of another shape, which no comparison can tell.
            within = self.shape.fits(self.layout.time)
        reached = self.reaches(parts, within)
        if extent.keys is None or extent.highest is not None:
            yield from batches_of_rows(self.connection, reached, pace)
        else:
            by_name = {part_name(each.part): each for each in reached}
            yield from batches_of_keys(keys.load(extent.keys, extent.keys_digest), by_name, pace)
        if orphans:
            lost = orphans_of(self.layout)
            file = extent.keys
            seen = None if file is None else partial(keys.load, file, extent.keys_digest)
            yield from batches_of_orphans(self.connection, lost, seen, pace)

    def can_write(self, instant: datetime) -> bool:
        """Whether anything tells how an instant would be written here."""
        try:
            self.shape.write(instant)
        except NoShape:
            return False
        return True

    def _refuse_hidden_rows(self) -> None:
        """Where rows are hidden from this role, what hangs on them looks like orphans."""
        tables = [self.spec.table, *(each.link.name for each in orphans_of(self.layout))]
        hidden = [name for name in tables if hides_rows(self.connection, name)]
        if hidden:
            raise StoreError(
                path=self._target,
                what=f"row-level security hides rows of {' and '.join(hidden)} from this role, so "
                "nobody can tell which rows of other tables are orphans.",
                fix="Sweep as a role that sees all rows, or write `orphans: keep`.",
            )

    def _witness(self, key: int | None) -> str:
        """What tells the row of a key from another that is given the same one later."""
        layout = self.layout
        kind = [] if layout.type is None else [layout.type]
        query = select(self.shape.raw(layout.time), *kind).where(layout.key[0] == key)
        row = self.connection.execute(query).one_or_none()
        return hashlib.sha256(repr(row and tuple(row)).encode()).hexdigest() if row else ""

    def _entries(self, parts: Sequence[Part]) -> Iterator[tuple[str, list[keys.Key]]]:
        for reach in self.reaches(parts):
            if reach.part.cutoff is not None:
                for rows in fetched(self.connection, reach.query(reach.possible)):
                    if some := reach.taken(rows):
                        yield part_name(reach.part), some

    def _orphans(self, lost: Sequence[Orphans]) -> Iterator[tuple[str, list[keys.Key]]]:
        for each in lost:
            for rows in fetched(self.connection, each.query()):
                yield each.name, [tuple(row) for row in rows]

    @property
    def _target(self) -> str:
        return f"{self.database.address}#{self.spec.table}"

    def _shape(self, unit: str | None, zone: tzinfo) -> Shape:
        layout, dialect = self.layout, self.connection.dialect.name
        try:
            raw = detect(dialect, layout.time_type, [], unit, zone).raw(layout.time)
            known = select(raw, *layout.key).where(layout.time.is_not(None))
            if layout.indexed:
                first, last = layout.time.asc(), layout.time.desc()
                ends = known.order_by(first).limit(_OLDEST), known.order_by(last).limit(_NEWEST)
            else:
                ends = known.limit(_OLDEST), known.order_by(layout.key[0].desc()).limit(_NEWEST)
            found = (row for query in ends for row in self.connection.execute(query))
            # In a small table both ends have the same rows.
            rows = list({tuple(row)[1:]: row for row in found}.values())
            return detect(dialect, layout.time_type, [row[0] for row in rows], unit, zone)
        except NoShape as error:
            odd = [rows[at] for at in error.offending]
            if odd and error.shape:
                raise self._wrong_times(len(odd), error.shape, odd[:_SHOWN]) from None
            raise StoreError(path=self._target, what=error.why, fix=error.fix) from None

    def _wrong_times(self, count: int, shape: str, samples: Sequence[Row[Any]]) -> WrongTimes:
        return WrongTimes(
            path=self._target,
            count=count,
            column=self.layout.time.name,
            shape=shape,
            sample=repr(samples[0][0]),
            keys=", ".join("/".join(map(str, tuple(row)[1:])) for row in samples),
            fix="Mend those rows, or name another column.",
        )

    def _floor(self, keep_last: int) -> datetime | None:
        """The instant of the oldest of the newest rows; None where there is no floor."""
        if not keep_last:
            return None
        known = select(self.shape.raw(self.layout.time)).where(self.layout.time.is_not(None))
        newest = known.order_by(self.layout.time.desc())
        row = self.connection.execute(newest.offset(keep_last - 1).limit(1)).one_or_none()
        # Fewer than that are there: all of them stay.
        floor = self._instant(row[0]) if row else _BOTTOM
        if row is None or self._in_order(floor):
            return floor
        # Those that come first in the order of the column are not quite the newest.
        rows = fetched(self.connection, newest.limit(keep_last))
        return min(self._instant(row[0]) for some in rows for row in some)

    def _bound(self, most: int, parts: Sequence[Part]) -> datetime | None:
        """Before which rows go so that no more than so many stay, where more would."""
        reached = self.reaches(parts)
        stay = counting.count(self.connection, self.layout)
        stay -= sum(each.count(self.connection) for each in reached if each.part.cutoff)
        if stay <= most:
            return None
        rest = reached[-1]
        left = rest.mine & self.layout.time.is_not(None)
        going = 0
        if rest.part.cutoff is not None:
            # Of those whose age SQL cannot tell, some go already; they come first among the rest.
            left = left & ~rest.certain
            going = sum(map(len, rest.doubtful(self.connection)))
        query = rest.query(left).offset(stay - most + going)
        row = self.connection.execute(query.limit(1)).one_or_none()
        if row is not None:
            bound = self._instant(row[0])
            if self._in_order(bound):
                return bound
            # Of those that come later in the order of the column, some may be older.
            near = query.where(self.shape.older(self.layout.time, self.shape.edges(bound)[1]))
            rows = fetched(self.connection, near)
            return min((self._instant(row[0]) for some in rows for row in some), default=bound)
        newest = counting.newest(self.connection, self.layout, self.shape)
        return newest and newest + timedelta(microseconds=1)

    def _in_order(self, instant: datetime) -> bool:
        """Whether the order of the column is that of time, there."""
        sure, maybe = self.shape.edges(instant)
        return bool(sure == maybe)

    def _instant(self, value: object) -> datetime:
        instant = self.shape.instant(value)
        # What cannot be read bounds nothing: all stays.
        return instant.instant if isinstance(instant, Known) else _BOTTOM


def part_name(part: Part) -> str:
    """What tells a part from the others of a plan."""
    if part.ceiling:
        return "\0ceiling"
    return part.rule if part.type is None else f"{part.type}\0{part.rule}"


def earlier(cutoff: datetime | None, floor: datetime | None) -> datetime | None:
    """The cutoff, but not beyond a floor; None where nothing is expired at all."""
    if floor == _BOTTOM:
        return None
    return min(cutoff, floor) if cutoff and floor else cutoff
