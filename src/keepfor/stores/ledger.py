"""The ledger store: an append-only JSONL file, judged row by row and rewritten byte for byte."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import msgspec

from keepfor.errors import StoreChanged
from keepfor.items import Extent, Key, Survey, Terms
from keepfor.stores import files, replace
from keepfor.stores.base import Progress
from keepfor.stores.ceiling import find_below, newest_key
from keepfor.stores.ids import escape
from keepfor.stores.rows import RowFormat, read_row
from keepfor.stores.sift import Copy, sift
from keepfor.times import DAY

#: How many bytes of a ledger's beginning tell whether it is the same one still.
_BEGINNING = 4096


#: How many bytes at a ceiling hold a row that tells when the ledger grew above it.
_ENOUGH = 1 << 16


class LedgerStore(msgspec.Struct, frozen=True, kw_only=True):
    """A ledger on disk.

    Parameters:
        path: the file; `ledger_at` resolves a symlink.
        form: where its rows carry their time.
        unreadable: whether rows that no reader can use are dropped or kept.
    """

    path: str
    form: RowFormat = RowFormat()
    unreadable: Literal["drop", "keep"] = "drop"

    @property
    def kind(self) -> str:
        return "ledger"

    @property
    def bounds(self) -> tuple[str, ...]:
        return ("max_bytes",)

    @property
    def target(self) -> str:
        return escape(self.path)

    @property
    def settings(self) -> dict[str, str]:
        form = self.form
        return {
            "time": form.field,
            "unit": form.unit or "",
            "timezone": str(form.zone),
            "unreadable": self.unreadable,
        }

    @contextmanager
    def locked(self, wait: float = 0.0) -> Iterator[None]:
        """See `Store.locked`. What a killed prune left is finished first.

        A ledger that is not there yet needs no lock.
        """
        with ExitStack() as stack:
            try:
                stack.enter_context(files.locked(self.path, wait))
                replace.recover(self.path)
            except FileNotFoundError:
                pass
            except OSError as error:
                raise files.explained(error, self.path) from error
            yield

    def survey(self, terms: Terms, progress: Progress | None = None) -> Survey:
        """See `RowStore.survey`.

        Raises:
            WrongTimeField: when the rows do not carry their time where the store says.
            StoreError: when the file cannot be read.
        """
        with self._opened() as descriptor:
            if descriptor is None:
                return Survey(cutoff=terms.cutoff)
            survey = self._by_age(descriptor, terms)
            seen = self._sift(descriptor, survey, terms, progress)
            below = self._below(descriptor, seen, terms)
            if below != survey.below:
                survey.below = below
                seen = self._sift(descriptor, survey, terms, progress)
            if seen.over_ceiling and terms.ceiling is not None:
                seen.lag = max(seen.lag, self._above_since(descriptor, terms.ceiling, terms.now))
            return _noted(seen, terms)

    def aim(self, terms: Terms) -> Survey:
        """See `RowStore.aim`: rows are read only if age alone does not tell."""
        with self._opened() as descriptor:
            if descriptor is None:
                return Survey(cutoff=terms.cutoff)
            roomy = terms.ceiling is None or os.fstat(descriptor).st_size <= terms.ceiling
            if roomy and not terms.keep_last:
                return self._by_age(descriptor, terms)
        return self.survey(terms)

    def delete(
        self,
        survey: Survey,
        terms: Terms,
        progress: Progress | None = None,
        accept: Callable[[Survey], bool] | None = None,
    ) -> Survey:
        """See `RowStore.delete`: the ledger is rewritten without the rows that may go.

        Raises:
            StoreChanged: when the ledger is no longer the one that was surveyed.
            StoreError: when it cannot be rewritten. It is as it was then.
        """
        with self._opened() as descriptor:
            extent = survey.extent
            if not isinstance(extent, Extent):
                return Survey(cutoff=survey.cutoff)
            if descriptor is None:
                raise StoreChanged(path=self.path, why="it is gone")
            self._check_same(descriptor, extent)
            copy = Copy(self.path, descriptor)
            try:
                done = self._sift(descriptor, survey, terms, progress, copy)
                if done.applied and (accept is None or accept(done)):
                    done = _noted(done, terms)
                    done.notes += copy.put_in_place(lambda: self._check_same(descriptor, extent))
                    return done
            finally:
                copy.discard()
            done.kept, done.applied, done.bytes_after = done.scanned, 0, done.bytes_before
            done.expired = done.unreadable = done.over_ceiling = 0
            return _noted(done, terms)

    @contextmanager
    def _opened(self) -> Iterator[int | None]:
        try:
            descriptor = files.open_for_reading(self.path)
        except FileNotFoundError:
            yield None
            return
        try:
            yield descriptor
        except OSError as error:
            raise files.explained(error, self.path) from error
        finally:
            os.close(descriptor)

    def _by_age(self, descriptor: int, terms: Terms) -> Survey:
        below = Key(terms.cutoff) if terms.cutoff else None
        status = os.fstat(descriptor)
        end = files.end_of_lines(descriptor, status.st_size)
        covered = min(end, _BEGINNING)
        extent = Extent(
            identity=_identity(status),
            end=end,
            beginning=_digest(descriptor, covered),
            beginning_bytes=covered,
        )
        return Survey(below=below, cutoff=terms.cutoff, extent=extent)

    def _below(self, descriptor: int, seen: Survey, terms: Terms) -> Key | None:
        """The key that ceiling and floor together leave, given what age alone would take."""
        below, extent = seen.below, seen.extent
        assert isinstance(extent, Extent)
        if terms.ceiling is not None and seen.bytes_after > terms.ceiling and seen.oldest:
            excess = seen.bytes_after - (terms.target or terms.ceiling)
            first = below or Key(datetime.min.replace(tzinfo=UTC))
            span = seen.oldest, seen.newest or seen.oldest
            below = find_below(descriptor, extent.end, self.form, excess, first, span)
        if terms.keep_last and below:
            floor = newest_key(descriptor, extent.end, self.form, terms.keep_last)
            below = min(below, floor) if floor else None
        return below

    def _above_since(self, descriptor: int, ceiling: int, now: datetime) -> timedelta:
        """How long ago the first row was written that stands wholly above the ceiling."""
        rows = os.pread(descriptor, _ENOUGH, max(0, ceiling - 1)).split(b"\n")[1:-1]
        written = (read_row(row, self.form) for row in rows)
        first = next((at for at in written if isinstance(at, datetime)), now)
        return max(now - first, timedelta())

    def _sift(
        self,
        descriptor: int,
        survey: Survey,
        terms: Terms,
        progress: Progress | None,
        copy: Copy | None = None,
    ) -> Survey:
        return sift(
            descriptor,
            survey,
            path=self.path,
            form=self.form,
            drop_unreadable=self.unreadable == "drop",
            now=terms.now,
            copy=copy,
            progress=progress,
        )

    def _check_same(self, descriptor: int, extent: Extent) -> None:
        status = os.fstat(descriptor)
        if _identity(status) != extent.identity:
            raise StoreChanged(path=self.path, why="another file stands there now")
        if status.st_size < extent.end:
            raise StoreChanged(path=self.path, why="it has become shorter")
        if _digest(descriptor, extent.beginning_bytes) != extent.beginning:
            raise StoreChanged(path=self.path, why="it begins with other rows now")


def ledger_at(path: str | os.PathLike[str], **settings: Any) -> LedgerStore:
    """The ledger at a path; where that is a symlink, the file it leads to."""
    return LedgerStore(path=os.path.realpath(path), **settings)


def _identity(status: os.stat_result) -> str:
    return f"{status.st_dev}:{status.st_ino}"


def _digest(descriptor: int, size: int) -> str:
    return hashlib.sha256(os.pread(descriptor, size, 0)).hexdigest()


def _noted(seen: Survey, terms: Terms) -> Survey:
    """The survey, with what a person should know of its ceiling."""
    if terms.ceiling is None:
        return seen
    if seen.over_ceiling and seen.oldest:
        days = (terms.now - seen.oldest) / DAY
        seen.notes.append(
            f"the ceiling of {terms.ceiling} bytes leaves {days:.1f} days of history, "
            "less than the policy would keep"
        )
    if seen.bytes_after > terms.ceiling:
        seen.notes.append(
            f"still {seen.bytes_after - terms.ceiling} bytes over the ceiling: the rest is the "
            f"newest {terms.keep_last} rows, rows of unknown age, or came later"
        )
    return seen
