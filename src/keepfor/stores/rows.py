"""Reads a JSONL row's instant, at the speed of a C decoder and by the verdict of `json.loads`.

A row is what stands between two LFs, judged by itself. The fast decoder is stricter than `json`
in several ways (NaN, lone surrogates, a BOM, most shapes of a date) and laxer in one (it lets
bytes that are not UTF-8 pass in what it skips), so what it rejects gets a second look, row by
row, and what is not UTF-8 never reaches it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from io import BytesIO
from typing import Any, Literal

import msgspec

from keepfor.times import UNITS, Known, Unknown, instant_of, parse_instant, to_utc

#: The fast decoder rounds to a microsecond where `fromisoformat` truncates.
ROUNDING = timedelta(microseconds=1)

#: Below this many rows a batch that the fast decoder rejects is read row by row.
_FEW = 16

#: Python's limit on the digits of an integer (`sys.int_info.default_max_str_digits`).
_LONGEST_INT = 4300

#: What a row is that has no instant: white space, of no use to any reader, an object whose time
#: cannot be read (of no use either, but a hint that the field is wrong), or nested too deeply.
Fault = Literal["blank", "debris", "timeless", "too deep"]


class RowFormat(msgspec.Struct, frozen=True, kw_only=True):
    """Where a row's time stands, and how it is to be read.

    Parameters:
        field: the key; a dotted path reaches into objects.
        unit: what a number counts since 1970 (`s`, `ms`, `us`, `ns`); None takes no number.
        zone: the zone of a timestamp that names none.
    """

    field: str = "ts"
    unit: str | None = None
    zone: tzinfo = UTC


class Batch(msgspec.Struct, frozen=True, gc=False):
    """Some consecutive rows.

    Parameters:
        position: the offset of the first row's first byte.
        data: the rows' bytes, each ended by LF.
        values: each row's time as the fast decoder gave it; or, where it refused, its instant in
            UTC or what is wrong with it.
        span: no instant is more than ROUNDING below or above these two; None for rows that the
            fast decoder refused.
    """

    position: int
    data: bytes
    values: list[Any]
    span: tuple[datetime, datetime] | None

    @property
    def lines(self) -> list[bytes]:
        """The rows' bytes, without their LFs; seldom asked for, since most batches go or stay."""
        return _lines(self.data)


def read_row(line: bytes, form: RowFormat) -> datetime | Fault:
    """What one row says of its time, by the definition: one `json.loads` for each line."""
    if _is_blank(line):
        return "blank"
    try:
        row = load_row(line)
    except RecursionError:
        return "too deep"
    except ValueError:
        return "debris"
    if not isinstance(row, dict):
        return "debris"
    match instant_of(row, form.field, form.zone, form.unit):
        case Known(instant):
            return instant
        case Unknown():
            return "timeless"


def batch_reader(form: RowFormat) -> Callable[[int, bytes], Iterator[Batch]]:
    """A function that reads rows, many at a time.

    Returns:
        A function of a position and of whole lines, which yields them as batches, in order.
    """
    decode = _decoder(form)
    depth = form.field.count(".") + 1

    def fast(position: int, data: bytes) -> Batch | None:
        try:
            if not data.isascii():
                data.decode("utf-8", "surrogatepass")
            # A stream finds its lines faster than `split` does, and holds one at a time.
            values: Any = map(decode, BytesIO(data))
            for _ in range(depth):
                values = [value.f for value in values]
            if form.zone is not UTC and form.unit is None:
                # Local times do not order as the instants that they stand for.
                values = [_local(value, form.zone) for value in values]
            # Rows are in order, as a rule, and to see that takes one comparison for each.
            ordered = sorted(values)
            low, high = _in_utc(ordered[0], form), _in_utc(ordered[-1], form)
        except (ValueError, TypeError, OverflowError, RecursionError):
            return None
        if not low or not high or low.year == datetime.min.year or high.year == datetime.max.year:
            return None
        return Batch(position, data, values, (low, high))

    def read(position: int, data: bytes) -> Iterator[Batch]:
        if batch := fast(position, data):
            yield batch
            return
        lines = _lines(data)
        if len(lines) <= _FEW:
            yield Batch(position, data, [read_row(line, form) for line in lines], None)
            return
        half = sum(len(line) + 1 for line in lines[: len(lines) // 2])
        yield from read(position, data[:half])
        yield from read(position + half, data[half:])

    return read


def rows_of(
    batch: Batch, form: RowFormat, *edges: datetime
) -> Iterator[tuple[int, bytes, datetime | Fault]]:
    """Each row of a batch: its position, its bytes and its instant.

    Parameters:
        edges: where it matters on which side an instant lies; near them it is read exactly, and
            elsewhere to within ROUNDING.
    """
    position = batch.position
    for line, value in zip(batch.lines, batch.values, strict=True):
        instant = value
        if batch.span:
            instant = _in_utc(value, form)
            if any(-ROUNDING <= instant - edge <= ROUNDING for edge in edges):
                instant = read_row(line, form)
        yield position, line, instant
        position += len(line) + 1


def without_blanks(data: bytes) -> bytes:
    """Whole lines without those that are blank."""
    return b"".join([line + b"\n" for line in _lines(data) if not _is_blank(line)])


def time_hint(line: bytes, form: RowFormat) -> str:
    """What a row that has no usable time holds in its place, and what to write then."""
    if not line:
        return ""
    row = value = load_row(line)
    for key in form.field.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    if isinstance(value, int | float) and (unit := _likely_unit(value)):
        return f"; a row here holds {value} there: write `unit: {unit}`"
    if isinstance(value, str):
        return f"; a row here holds {value[:40]!r} there, which is not ISO 8601"
    fields = [key for key, held in row.items() if _likely_unit(held) or _is_time(held, form)]
    return f"; a row here has a time in {' and '.join(map(repr, fields))}" if fields else ""


def _likely_unit(value: object) -> str | None:
    """The unit in which a number is a time of these decades."""
    if not isinstance(value, int | float):
        return None
    for unit in UNITS:
        instant = parse_instant(value, source="", unit=unit)
        if isinstance(instant, Known) and 2000 <= instant.instant.year < 2100:
            return unit
    return None


def _is_time(value: object, form: RowFormat) -> bool:
    return isinstance(parse_instant(value, source="", zone=form.zone), Known)


def _is_blank(line: bytes) -> bool:
    return not line.strip(b" \t\r")


def _lines(data: bytes) -> list[bytes]:
    return data.split(b"\n")[:-1]


def _decoder(form: RowFormat) -> Callable[[bytes], Any]:
    """The fast decoder of the time field alone, into structs whose fields are all called `f`."""
    kind: Any = datetime if form.unit is None else int | float
    try:
        for key in reversed(form.field.split(".")):
            kind = msgspec.defstruct("Row", [("f", kind)], rename={"f": key}, gc=False)
        return msgspec.json.Decoder[Any](kind).decode
    except (ValueError, RecursionError):
        # A name that it cannot be told, such as one with a quote in it, or a path without end.
        return _refuse


def _refuse(line: bytes) -> Any:
    raise ValueError(line)


def _local(value: datetime, zone: tzinfo) -> datetime:
    """What the fast decoder gave, read in a zone; ValueError where a clock change is so near that
    what it was rounded from may lie on the other side."""
    instant = to_utc(value, zone)
    on_the_minute = value.second == value.microsecond == 0
    if on_the_minute and to_utc(value - ROUNDING, zone) != instant - ROUNDING:
        raise ValueError(value)
    return instant


def _in_utc(value: Any, form: RowFormat) -> Any:
    """What the fast decoder gave, as an instant; None where it is not a usable one."""
    if isinstance(value, datetime):
        return value if value.tzinfo is not None else value.replace(tzinfo=UTC)
    match parse_instant(value, source=form.field, unit=form.unit):
        case Known(instant):
            return instant
        case Unknown():
            return None


def load_row(line: bytes) -> Any:
    """The value that a line holds, for any ordinary JSON reader; ValueError if it holds none."""
    try:
        return json.loads(line)
    except ValueError:
        if len(line) < _LONGEST_INT:
            raise
    # Python alone refuses to read an integer this long; other readers of the ledger do not.
    return json.loads(line, parse_int=float)
