"""The table store: rows of a database that expire, with everything that hangs on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, tzinfo
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec.structs import replace
from sqlalchemy import Connection

from keepfor.errors import StoreChanged, StoreError, SweepInterrupted, SweepStopped
from keepfor.items import Survey, TableExtent, Terms
from keepfor.stores.base import Progress
from keepfor.stores.sql.database import Database, Footprint, database_at
from keepfor.stores.sql.deleting import delete_rows, record
from keepfor.stores.sql.look import Look, earlier
from keepfor.stores.sql.pace import Pace, hold_of
from keepfor.stores.sql.spec import Dependent, Record, Spec

__all__ = ["Dependent", "Record", "TableStore", "table_at"]


class TableStore(msgspec.Struct, frozen=True, kw_only=True):
    """A table of a database.

    Parameters:
        database: where it lies.
        spec: what is said of it.
        unit: what a time that is a number counts since 1970.
        zone: the zone of a time that names none.
        orphans: whether rows of other tables are deleted whose own row is gone already.
        folder: where the keys of a plan are kept, if they have to be.
    """

    database: Database
    spec: Spec
    unit: Literal["s", "ms", "us", "ns"] | None = None
    zone: tzinfo = UTC
    orphans: Literal["keep", "delete"] = "keep"
    folder: Path

    @property
    def kind(self) -> str:
        return "table"

    @property
    def target(self) -> str:
        return f"{self.database.address}#{self.spec.table}"

    @property
    def bounds(self) -> tuple[str, ...]:
        return ("type", "max_count") if self.spec.type else ("max_count",)

    @property
    def settings(self) -> dict[str, str]:
        return {
            "spec": msgspec.json.encode(self.spec).decode(),
            "unit": self.unit or "",
            "timezone": str(self.zone),
            "orphans": self.orphans,
        }

    @contextmanager
    def locked(self, wait: float = 0.0) -> Iterator[None]:
        """See `Store.locked`. A database that is not there yet needs no lock."""
        if not self.database.exists:
            yield
            return
        with self.database.locked(self.spec.table, wait):
            yield

    def survey(self, terms: Terms, progress: Progress | None = None) -> Survey:
        """See `RowStore.survey`.

        Raises:
            WrongTimes: when times are of more than one shape.
            StoreError: when the database cannot be read, or is not as the settings say.
        """
        if not self.database.exists:
            return Survey(cutoff=terms.cutoff)

        def count(look: Look) -> Survey:
            aimed = look.aim(terms)
            look.check_times(look.reaches(aimed))
            extent = look.extent(aimed, self.folder / "keys", orphans=self._takes_orphans)
            seen = look.count(aimed, terms, look.within(extent))
            seen.extent, seen.orphans = extent, look.orphans()
            seen.dependents = look.hanging(aimed)
            if self._takes_orphans:
                seen.adrift = look.sizes(seen.orphans)
            return seen

        seen = self._read(count)
        if progress:
            progress(seen.scanned, seen.scanned)
        return seen

    def aim(self, terms: Terms) -> Survey:
        """See `RowStore.aim`: rows are counted only if there is a ceiling."""
        if not self.database.exists:
            return Survey(cutoff=terms.cutoff)

        def aim(look: Look) -> Survey:
            extent = look.extent(None, self.folder / "keys", orphans=self._takes_orphans)
            return Survey(parts=look.aim(terms), cutoff=terms.cutoff, extent=extent)

        return self._read(aim)

    def delete(
        self,
        survey: Survey,
        terms: Terms,
        progress: Progress | None = None,
        accept: Callable[[Survey], bool] | None = None,
    ) -> Survey:
        """See `RowStore.delete`: many short transactions, each of rows with all that hangs on them.

        Raises:
            StoreChanged: when the table is no longer the one that was surveyed.
            WrongTimes: when times are of more than one shape. Nothing was deleted then.
            SweepStopped: when only some of the rows could be deleted.
            StoreError: when none could.
        """
        extent = survey.extent
        if not isinstance(extent, TableExtent):
            return Survey(cutoff=survey.cutoff)
        if not self.database.exists:
            raise StoreChanged(path=self.target, why="it is gone")
        begun: list[tuple[Survey, int]] = []
        # Not one look at a single state: it would keep writers waiting for as long as it takes.
        with self._telling_how_far(begun), self.database.writing() as connection:
            look = self._look(connection)
            if look.layout.enforced:
                connection.exec_driver_sql("PRAGMA foreign_keys = ON")
            look.check_same(extent)
            look.check_times(look.reaches(survey.parts, look.within(extent)))
            planned = look.count_again(survey.parts, terms, extent)
            planned.cutoff = earlier(survey.cutoff, terms.cutoff)
            planned.orphans = look.orphans() if self._takes_orphans else {}
            done = _untouched(planned)
            acts = planned.applied or planned.orphans or self._leaves(planned)
            if acts and (accept is None or accept(planned)):
                begun.append((done, planned.applied))
                self._delete(look, planned, done, extent, terms, progress)
            if survey.applied > done.applied:
                done.skipped = min(look.left(survey.scanned - survey.applied, extent), done.kept)
                done.kept -= done.skipped
            return done

    def footprint(self) -> Footprint:
        """What its whole database takes up on disk.

        Raises:
            StoreError: when the database cannot be read.
        """
        with self.database.reading() as connection:
            return self.database.footprint(connection)

    def reclaim(self, wait: float = 0.0) -> tuple[Footprint, Footprint]:
        """Give back to the system what its whole database no longer needs; no row goes.

        Parameters:
            wait: how long to wait for a sweep of the table that is at work, in seconds.

        Returns:
            What the database takes up before and after.

        Raises:
            StoreBusy: when a sweep does not end by then, or others are at the database.
            StoreError: when there is no room for it, or it fails. The database is as it was then.
        """
        with self.locked(wait):
            return self.database.reclaim()

    def _read(self, ask: Callable[[Look], Survey]) -> Survey:
        """Ask a reader; where nobody was at the database and somebody came meanwhile, once more."""
        try:
            with self.database.reading() as connection:
                return ask(self._look(connection))
        except StoreChanged:
            with self.database.reading() as connection:
                return ask(self._look(connection))

    def _look(self, connection: Connection) -> Look:
        return Look(connection, self.database, self.spec, self.unit, self.zone)

    @property
    def _takes_orphans(self) -> bool:
        return self.orphans == "delete"

    def _leaves(self, planned: Survey) -> Record | None:
        said = self.spec.record
        return said if said and (said.when == "always" or planned.applied) else None

    def _delete(
        self,
        look: Look,
        planned: Survey,
        done: Survey,
        extent: TableExtent,
        terms: Terms,
        progress: Progress | None,
    ) -> None:
        pace, wanted = Pace(hold_of(look.connection)), self._leaves(planned)
        if wanted and not look.can_write(terms.now):
            wanted = None
            done.notes.append("it left no record, since no row tells how a time is written here")
        delete_rows(
            self.database,
            look.connection,
            look.batches(planned.parts, extent, pace, orphans=bool(planned.orphans)),
            done=done,
            layout=look.layout,
            pace=pace,
            leave=record(wanted, look.layout, look.shape, terms.now) if wanted else None,
            progress=progress,
            planned=planned.applied,
        )
        done.bytes_after = self.database.footprint(look.connection).size

    @contextmanager
    def _telling_how_far(self, begun: list[tuple[Survey, int]]) -> Iterator[None]:
        """Where a deletion that has begun ends too early, say what was done until then.

        Parameters:
            begun: takes, once it has, what was done, which is kept up to date, and how many rows
                are to go.
        """
        try:
            yield
        except KeyboardInterrupt as error:
            if not begun:
                raise
            raise SweepInterrupted(begun[0][0]) from error
        except Exception as error:
            if not begun:
                raise
            done, planned = begun[0]
            if not done.applied and not done.orphans and isinstance(error, StoreError):
                raise
            done.failed = planned - done.applied
            done.kept -= done.failed
            raise SweepStopped(
                path=self.target,
                why=f"the sweep was stopped: {error}",
                deleted=done.applied,
                planned=planned,
                fix="The next sweep goes on from there.",
                done=done,
            ) from error


def _untouched(planned: Survey) -> Survey:
    """What was done of it where nothing was done, as far as it is not counted as it is done."""
    nothing = {"applied": 0, "expired": 0, "over_ceiling": 0, "bytes_deleted": 0}
    return replace(planned, kept=planned.scanned, dependents={}, orphans={}, **nothing)


def table_at(
    url: str,
    table: str,
    *,
    folder: Path,
    unit: Literal["s", "ms", "us", "ns"] | None = None,
    zone: tzinfo = UTC,
    orphans: Literal["keep", "delete"] = "keep",
    **said: Any,
) -> TableStore:
    """The table of that name in the database at an address.

    Parameters: as for `TableStore` and `Spec`.
    """
    return TableStore(
        database=database_at(url),
        spec=Spec(table=table, **said),
        unit=unit,
        zone=zone,
        orphans=orphans,
        folder=folder,
    )
