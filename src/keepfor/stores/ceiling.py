"""Finds which of a ledger's oldest rows must go for the rest to fit, in flat memory.

Rows are weighed by bucket of time; the bucket in which the balance tips is divided again until
few enough rows are in it to be put in order by themselves.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from keepfor.items import Key
from keepfor.stores.rows import ROUNDING, RowFormat, batch_reader, rows_of
from keepfor.stores.sift import blocks

_BUCKETS = 1 << 16
_FEW_ROWS = 10_000
_TICK = timedelta(microseconds=1)
_START, _END = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


def find_below(
    descriptor: int,
    end: int,
    form: RowFormat,
    excess: int,
    first: Key,
    span: tuple[datetime, datetime],
) -> Key:
    """The key below which the oldest rows weigh as much as is to go.

    Parameters:
        descriptor: the ledger's.
        end: rows at or past this offset are not weighed.
        excess: how many bytes must go.
        first: rows below this key are not weighed; they go already.
        span: no row that is weighed is older or newer.

    Returns:
        A key for `Survey.below`. If all rows together weigh less, it is above them all.
    """
    low, high = max(span[0], _START + ROUNDING) - ROUNDING, min(span[1], _END - ROUNDING) + ROUNDING
    while True:
        width = max(-((low - high) // _BUCKETS), _TICK)
        weights: dict[int, tuple[int, int]] = {}
        for key, size in _weighed(descriptor, end, form, first, low, high):
            bucket = (key.instant - low) // width
            rows, weight = weights.get(bucket, (0, 0))
            weights[bucket] = rows + 1, weight + size
        for bucket in sorted(weights):
            rows, weight = weights[bucket]
            if weight >= excess:
                break
            excess -= weight
        else:
            return Key(high, end)
        low += bucket * width
        high = low + min(high - low, width - _TICK)
        if rows <= _FEW_ROWS or width == _TICK:
            break
    weighed = _weighed(descriptor, end, form, first, low, high)
    # Rows of one instant come in the order of their keys; there may be too many to hold.
    below = first
    for key, size in weighed if width == _TICK else sorted(weighed):
        if excess <= 0:
            break
        excess -= size
        below = Key(key.instant, key.position + 1)
    return below


def newest_key(descriptor: int, end: int, form: RowFormat, count: int) -> Key | None:
    """The key of the last of so many newest rows; None if there are not more than that."""
    keys = (key for key, _ in _weighed(descriptor, end, form, Key(_START), _START, _END))
    newest = heapq.nlargest(count, keys)
    return newest[-1] if len(newest) == count else None


def _weighed(
    descriptor: int, end: int, form: RowFormat, first: Key, low: datetime, high: datetime
) -> Iterator[tuple[Key, int]]:
    """The keys and sizes of the rows from one instant to another, both included."""
    read = batch_reader(form)
    for start, data in blocks(descriptor, 0, end):
        if isinstance(data, int):
            continue
        for batch in read(start, data):
            if batch.span and (low - batch.span[1] > ROUNDING or batch.span[0] - high > ROUNDING):
                continue
            for position, line, instant in rows_of(batch, form, low, high, first.instant):
                if isinstance(instant, datetime) and low <= instant <= high:
                    key = Key(instant, position)
                    if key >= first:
                        yield key, len(line) + 1
