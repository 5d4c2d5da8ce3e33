"""Sifts a ledger: one pass that counts what stays and what goes, and copies what stays if asked.

Survey and deletion are this same pass, so that a plan cannot be computed by other code than the
deletion that it announces.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime

from keepfor.errors import StoreChanged, WrongTimeField
from keepfor.items import Extent, Key, Survey
from keepfor.stores import files, leases, replace
from keepfor.stores.base import Progress
from keepfor.stores.rows import (
    ROUNDING,
    Batch,
    RowFormat,
    batch_reader,
    rows_of,
    time_hint,
    without_blanks,
)
from keepfor.times import to_utc

#: A longer line is neither read nor dropped, so that memory stays bounded.
LONGEST_LINE = 16 << 20

#: How much of a copy is handed to the system at a time, and how much before the disk is set to
#: work on it, in bytes.
_PIECE = 1 << 20
_FLUSH = 8 << 20

#: The most buffers that one `writev` takes (IOV_MAX on Linux and macOS).
_BUFFERS = 1024

#: So many objects without a time are a wrong setting if they are the larger part.
_STRAYS = 10


class Copy:
    """What stays of a ledger, written beside it; not begun before there is something to leave out.

    Parameters:
        path: the ledger.
        source: its descriptor.
    """

    def __init__(self, path: str, source: int) -> None:
        self._path = path
        self._source = source
        self._new: int | None = None
        #: Up to here the copy speaks for the ledger.
        self._copied = 0
        self._blanks = False
        self._pending: list[bytes] = []
        self._held = self._written = self._flushed = 0

    def keep(self, start: int, end: int, data: bytes | None = None) -> None:
        """Carry over what stands between two offsets.

        Parameters:
            data: the same without blank lines, where it is at hand.
        """
        self._copied = end
        if self._new is None:
            self._blanks = self._blanks or (data is not None and len(data) < end - start)
            return
        if data is not None:
            self._write(self._new, data)
            return
        for position in range(start, end, files.BLOCK):
            block = os.pread(self._source, min(files.BLOCK, end - position), position)
            self._write(self._new, block)

    def leave_out(self) -> None:
        """Not all of what comes next is carried over, so that a copy is needed from here on."""
        if self._new is None:
            self._new = replace.create(self._path, self._source)
            for start, data in blocks(self._source, 0, self._copied):
                if isinstance(data, int):
                    self.keep(start, start + data)
                else:
                    rows = without_blanks(data) if self._blanks else data
                    self.keep(start, start + len(data), rows)

    def _write(self, new: int, data: bytes) -> None:
        if data:
            self._pending.append(data)
        self._held += len(data)
        if self._held >= _PIECE or len(self._pending) == _BUFFERS:
            self._hand_over(new)

    def _hand_over(self, new: int) -> None:
        if not self._held:
            return
        written = os.writev(new, self._pending)
        if written < self._held:
            rest = memoryview(b"".join(self._pending))[written:]
            while rest:
                rest = rest[os.write(new, rest) :]
        self._written += self._held
        self._pending, self._held = [], 0
        fresh = self._written - self._flushed
        if fresh >= _FLUSH and sys.platform == "linux":
            # Starts the writing, which the fsync at the end would otherwise begin and wait for
            # while the rest of the machine idles. What cannot be advised is no worse off.
            with suppress(OSError):
                os.posix_fadvise(new, self._flushed, fresh, os.POSIX_FADV_DONTNEED)
            self._flushed = self._written

    def put_in_place(self, check: Callable[[], None]) -> list[str]:
        """Replace the ledger by the copy, and drain into it what came meanwhile.

        Parameters:
            check: raises where the ledger is no longer the one that was copied.

        Returns:
            What a person should know of it.
        """
        notes = []
        if os.fstat(self._source).st_nlink > 1:
            notes.append("another name of the same file (a hard link) still holds the old rows")
        start, size = self._copied, leases.size_at_rest(self._source) or 0
        # Of a file at rest nobody is going to finish the last line.
        if size > start == files.end_of_lines(self._source, size, start):
            self.keep(start, size)
        assert self._new is not None
        self._hand_over(self._new)
        os.fsync(self._new)
        # As late as can be: to empty a ledger is how it is rotated under writers that hold it open.
        check()
        if os.fstat(self._source).st_size < self._copied:
            raise StoreChanged(path=self._path, why="it has become shorter")
        new, self._new = self._new, None
        if old := replace.swap(self._path, self._source, new, self._copied):
            notes.append(
                f"a writer may hold the old file open; what it writes there is brought over by "
                f"the next prune ({old.path})"
            )
        return notes

    def discard(self) -> None:
        """Drop the copy, unless it was put in place."""
        if self._new is not None:
            replace.discard(self._path, self._new)
            self._new = None


def sift(
    descriptor: int,
    survey: Survey,
    *,
    path: str,
    form: RowFormat,
    drop_unreadable: bool,
    now: datetime,
    copy: Copy | None = None,
    progress: Progress | None = None,
) -> Survey:
    """Judge every row of a ledger by its key.

    Parameters:
        descriptor: the ledger's.
        survey: what may go: the rows below its key, within its extent; and its cutoff, which
            tells what age takes from what the ceiling takes.
        path: the ledger's, for a message.
        form: where its rows carry their time.
        drop_unreadable: whether rows that no reader can use go too.
        now: later instants are counted as future.
        copy: where what stays is written to; None to count only.
        progress: called with how many bytes were judged, and with the ledger's size.

    Returns:
        The survey with its counts.

    Raises:
        WrongTimeField: when the rows do not carry their time where the format says.
    """
    assert isinstance(survey.extent, Extent)
    size = os.fstat(descriptor).st_size
    end = files.end_of_lines(descriptor, size)
    sieve = _Sieve(survey, form, drop_unreadable, now, copy)
    # Somebody may have rewritten it in place, and then it ended elsewhere when it was surveyed.
    reach = files.end_of_lines(descriptor, min(end, survey.extent.end))
    for start, stop in (0, reach), (reach, end):
        sieve.in_reach = stop <= reach
        for position, data in blocks(descriptor, start, stop):
            if isinstance(data, int):
                sieve.pass_by(position, data)
                done = position + data
            else:
                for batch in sieve.read(position, data):
                    sieve.judge(batch)
                done = position + len(data)
            if progress:
                progress(done, size)
    sieve.check(path)
    return sieve.total(size, unfinished=size - end)


def blocks(descriptor: int, start: int, end: int) -> Iterator[tuple[int, bytes | int]]:
    """Whole lines between two offsets, many at a time: their position and their bytes.

    A line that is longer than LONGEST_LINE comes by itself, as its length.
    """
    while start < end:
        data = os.pread(descriptor, min(files.BLOCK, end - start), start)
        if cut := data.rfind(b"\n") + 1:
            yield start, data[:cut]
            start += cut
            continue
        stop = _next_line(descriptor, start + len(data), end)
        line = os.pread(descriptor, min(stop - start, LONGEST_LINE + 1), start)
        # It is longer than that, or somebody cut it short meanwhile.
        yield start, line if line.endswith(b"\n") else stop - start
        start = stop


def _next_line(descriptor: int, start: int, end: int) -> int:
    while start < end:
        data = os.pread(descriptor, min(files.BLOCK, end - start), start)
        if found := data.find(b"\n") + 1:
            return start + found
        start += len(data) or end
    return end


class _Sieve:
    """Counts row by row or, where a whole batch is on one side of every edge, at once."""

    def __init__(
        self,
        survey: Survey,
        form: RowFormat,
        drop_unreadable: bool,
        now: datetime,
        copy: Copy | None,
    ) -> None:
        self.survey = Survey(below=survey.below, cutoff=survey.cutoff, extent=survey.extent)
        self.form = form
        self.read = batch_reader(form)
        self.drop_unreadable = drop_unreadable
        self.now = now
        self.copy = copy
        edges = (survey.below and survey.below.instant, survey.cutoff, now)
        #: On which side of these a row lies decides what is counted.
        self.edges = [edge for edge in edges if edge]
        self.in_reach = True
        self.kept_bytes = 0
        self.timed = self.timeless = self.debris = 0
        self.stray = b""

    def judge(self, batch: Batch) -> None:
        """Count a batch, and copy what stays of it."""
        gone = self._gone()
        stays = self._judge_at_once(batch)
        if stays is None:
            kept = [
                line
                for position, line, instant in rows_of(batch, self.form, *self.edges)
                if self._stays(position, line, instant)
            ]
            data = b"\n".join([*kept, b""]) if len(kept) < len(batch.values) else batch.data
        else:
            data = batch.data if stays else b""
        self.kept_bytes += len(data)
        if self.copy:
            if self._gone() > gone:
                self.copy.leave_out()
            self.copy.keep(batch.position, batch.position + len(batch.data), data)

    def pass_by(self, position: int, length: int) -> None:
        """Keep a line that is too long to be read."""
        self.survey.scanned += 1
        self.survey.oversized += 1
        self.kept_bytes += length
        if self.copy:
            self.copy.keep(position, position + length)

    def check(self, path: str) -> None:
        """Refuse to take a wrong setting for debris."""
        objects = self.timed + self.timeless
        none = not self.timed and (self.timeless or self.debris)
        if none or (self.timeless > _STRAYS and 2 * self.timeless > objects):
            raise WrongTimeField(
                path=path,
                without=self.timeless + (self.debris if none else 0),
                objects=objects + (self.debris if none else 0),
                field=self.form.field,
                seen=time_hint(self.stray, self.form),
            )

    def total(self, size: int, unfinished: int) -> Survey:
        """The survey, with its sums. An unfinished last line is one kept row."""
        survey = self.survey
        survey.scanned += bool(unfinished)
        survey.applied = self._gone()
        survey.kept = survey.scanned - survey.applied
        survey.unknown += survey.oversized + bool(unfinished)
        for name in ("oldest", "newest", "due", "fresh"):
            if moment := getattr(survey, name):
                setattr(survey, name, to_utc(moment, UTC))
        if survey.due and survey.cutoff:
            survey.lag = survey.cutoff - survey.due
        if self.timeless and survey.unreadable:
            survey.notes.append(
                f"{self.timeless} of the unreadable rows are JSON without a usable time in "
                f"{self.form.field!r}{time_hint(self.stray, self.form)} "
                "(`unreadable: keep` lets them stay)"
            )
        survey.bytes_before = size
        # Blank lines go with a rewrite, and stay where there is none.
        survey.bytes_after = self.kept_bytes + unfinished if survey.applied else size
        return survey

    def _gone(self) -> int:
        return self.survey.expired + self.survey.unreadable + self.survey.over_ceiling

    def _judge_at_once(self, batch: Batch) -> bool | None:
        """Whether a whole batch stays or goes; None where its rows must be told apart."""
        if batch.span is None:
            return None
        low, high = batch.span
        if any(low - edge <= ROUNDING and edge - high <= ROUNDING for edge in self.edges):
            return None
        survey, rows = self.survey, len(batch.values)
        survey.scanned += rows
        self.timed += rows
        stays = not self._goes(Key(high, batch.position))
        if stays:
            self._keep(low, rows)
        else:
            self._drop(low, rows)
        survey.newest = max(survey.newest or high, high)
        return stays

    def _stays(self, position: int, line: bytes, instant: datetime | str) -> bool:
        if instant == "blank":
            return False
        survey = self.survey
        survey.scanned += 1
        if isinstance(instant, datetime):
            self.timed += 1
            survey.newest = max(survey.newest or instant, instant)
            if self._goes(Key(instant, position)):
                self._drop(instant, 1)
                return False
            self._keep(instant, 1)
            return True
        if instant == "too deep":
            survey.oversized += 1
            return True
        if instant == "timeless":
            self.timeless += 1
            self.stray = self.stray or line
        else:
            self.debris += 1
        if self.in_reach and self.drop_unreadable:
            survey.unreadable += 1
            return False
        survey.unknown += 1
        return True

    def _goes(self, key: Key) -> bool:
        return self.in_reach and self.survey.below is not None and key < self.survey.below

    def _keep(self, low: datetime, rows: int) -> None:
        survey = self.survey
        survey.oldest = min(survey.oldest or low, low)
        if not survey.cutoff or low >= survey.cutoff:
            survey.fresh = min(survey.fresh or low, low)
        if low > self.now:
            survey.future += rows

    def _drop(self, low: datetime, rows: int) -> None:
        survey = self.survey
        if survey.cutoff and low < survey.cutoff:
            survey.expired += rows
            survey.due = min(survey.due or low, low)
        else:
            survey.over_ceiling += rows
