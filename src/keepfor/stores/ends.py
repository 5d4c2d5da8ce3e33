"""How a large ledger stands, by its ends and a few rows between, without reading it whole.

A ledger is in order of time, for it is only appended to. Whether it is so is looked at in many
places; where it is not, its ends do not tell how it stands.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import datetime, timedelta

import msgspec

from keepfor.items import Survey, Terms
from keepfor.stores import files
from keepfor.stores.ledger import LedgerStore
from keepfor.stores.rows import RowFormat, read_row

#: How much is read at each end, and how much at each place between, in bytes.
_END, _PLACE = 1 << 16, 1 << 14
_PLACES = 32
#: By how much rows may be out of order that several programs write at once.
_JITTER = timedelta(hours=1)


class _Row(msgspec.Struct, frozen=True):
    """A row: where it begins, and its instant."""

    position: int
    instant: datetime


def by_its_ends(store: LedgerStore, terms: Terms) -> Survey | None:
    """What would go of a ledger, from its ends and its size.

    Exact are the size and, where the rows are in order, the instants and the lag. How many rows
    there are is told from the length of those that were read.

    Parameters:
        store: the ledger.
        terms: what it is held to.

    Returns:
        None where the ends do not tell: rows are out of order, or have no time, or are too long.

    Raises:
        FileNotFoundError: when it is not there.
        StoreError: when it cannot be read.
    """
    descriptor = files.open_for_reading(store.path)
    try:
        size = os.fstat(descriptor).st_size
        return _Ends(descriptor, size, store.form).survey(terms)
    except OSError as error:
        raise files.explained(error, store.path) from error
    finally:
        os.close(descriptor)


class _Ends:
    """What is seen of a ledger.

    Parameters:
        descriptor: the ledger's.
        size: its size, in bytes.
        form: where its rows carry their time.
    """

    def __init__(self, descriptor: int, size: int, form: RowFormat) -> None:
        self._descriptor = descriptor
        self._size = size
        self._form = form
        self._end = files.end_of_lines(descriptor, size)
        self._lines = self._bytes = 0

    def survey(self, terms: Terms) -> Survey | None:
        """How the ledger stands, as far as its ends tell."""
        first = list(self._rows(0, _END))
        last = list(self._rows(max(0, self._end - _END), _END))
        step = self._end // (_PLACES + 1)
        between = [self._row_at(step * place) for place in range(1, _PLACES + 1)]
        if not first or not last or not _in_order([first[0], *between, last[0]]):
            return None
        oldest = min(row.instant for row in first)
        newest = max(row.instant for row in last)
        due = self._due(terms.cutoff, first, last)
        if due is None:
            return None
        length = self._bytes / self._lines
        expired, due_bytes = due
        excess = self._excess(due_bytes, terms)
        total = round(self._size / length)
        over = min(round(excess / length), max(0, total - terms.keep_last - expired))
        expired = min(expired, max(0, total - terms.keep_last))
        lag = timedelta()
        if expired and terms.cutoff:
            lag = max(lag, terms.cutoff - oldest)
        if over and (above := self._row_at(max(0, (terms.ceiling or 1) - 1))):
            lag = max(lag, terms.now - above.instant)
        return Survey(
            scanned=total,
            kept=total - expired - over,
            applied=expired + over,
            expired=expired,
            over_ceiling=over,
            bytes_before=self._size,
            bytes_after=self._size,
            cutoff=terms.cutoff,
            oldest=oldest,
            newest=newest,
            due=oldest if expired else None,
            lag=lag,
        )

    def _due(
        self, cutoff: datetime | None, first: list[_Row], last: list[_Row]
    ) -> tuple[int, int] | None:
        """How many rows are past the cutoff, and how many bytes; None where that cannot be told."""
        if cutoff is None or min(row.instant for row in first) >= cutoff:
            return 0, 0
        low, high = 0, self._end
        if last[0].instant < cutoff:
            low = last[0].position
        while high - low > _END:
            row = self._row_at((low + high) // 2)
            if row is None:
                return None
            low, high = (row.position, high) if row.instant < cutoff else (low, row.position)
        rows = [row for row in self._rows(low, _END, whole=True) if row.instant < cutoff]
        before = round(low * self._lines / self._bytes)
        return before + len(rows), rows[-1].position if rows else low

    def _excess(self, due_bytes: int, terms: Terms) -> int:
        """How many bytes more than what is due have to go for the rest to fit."""
        left = self._size - due_bytes
        if terms.ceiling is None or left <= terms.ceiling:
            return 0
        return left - (terms.target or terms.ceiling)

    def _row_at(self, offset: int) -> _Row | None:
        """The first row of known age after an offset."""
        return next(self._rows(offset, _PLACE), None)

    def _rows(self, start: int, most: int, *, whole: bool = False) -> Iterator[_Row]:
        """The rows of known age in so many bytes, but not one that begins before them.

        Parameters:
            whole: whether a row begins right at the start.
        """
        data = os.pread(self._descriptor, min(most, self._end - start), start)
        if start and not whole:
            cut = data.find(b"\n") + 1
            start, data = start + cut, data[cut:] if cut else b""
        *lines, _ = data.split(b"\n")
        self._lines += len(lines)
        self._bytes += sum(map(len, lines)) + len(lines)
        for line in lines:
            instant = read_row(line, self._form)
            if isinstance(instant, datetime):
                yield _Row(start, instant)
            start += len(line) + 1


def _in_order(rows: list[_Row | None]) -> bool:
    """Whether each row is there, and none much older than one before it."""
    newest = None
    for row in rows:
        if row is None or (newest and row.instant < newest - _JITTER):
            return False
        newest = max(newest or row.instant, row.instant)
    return True
