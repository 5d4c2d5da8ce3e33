"""Every shape that the time column of a table may have, and how SQL compares each with a cutoff.

Instants are compared, never text with text of another shape. Where the order of a column is not
quite that of time, SQL tells what is older for certain and what is not, and the few rows between
are read and judged one by one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta, tzinfo
from decimal import Decimal
from typing import Any

import msgspec
from sqlalchemy import and_, bindparam, collate, false, func, literal_column, or_
from sqlalchemy import types as sql
from sqlalchemy.sql import ColumnElement

from keepfor.times import UNITS, Instant, Known, Unknown, parse_instant

Column = ColumnElement[Any]
_Form = tuple[str, str]

#: No program that remembers wrote anything older, and a number would be in another unit.
_FIRST, _LAST = datetime(1971, 1, 1, tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
#: A number that would mean a later year is in another unit.
_LAST_LIKELY_YEAR = 2200
_EPOCH, _MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)

#: Only the days that there are; for `re` and for PostgreSQL alike.
_DAY = (
    "(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])"
    "|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))"
    "|(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29)"
)
_CLOCK = "(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:[.][0-9]{1,9})?"
#: What may follow a time: nothing, the sign of UTC, or an offset that differs from row to row.
_ENDINGS = {"": "", "Z": "Z", "offset": "(?:Z|[+-](?:0[0-9]|1[0-4]):[0-5][0-9])"}
#: What all text of a form matches, by its separator and its ending.
_FORMS = {("", ""): _DAY} | {
    (sep, end): f"{_DAY}{sep}{_CLOCK}{last}" for sep in " T" for end, last in _ENDINGS.items()
}

#: PostgreSQL's types for times, by the names that it gives them itself.
_TIMES = {
    "timestamp with time zone": "timestamptz",
    "timestamp without time zone": "timestamp",
    "date": "date",
}
_WHOLE = ("bigint", "integer", "smallint")
#: `real` is not among them: it tells the seconds of today in steps of two minutes.
_NUMBERS = (*_WHOLE, "numeric", "double precision")
_TEXTS = ("text", "character varying", "varchar")
#: What SQLAlchemy and SQLite itself write into a column of that type.
_WRITTEN = dict.fromkeys(("datetime", "timestamp"), "2026-07-26 12:00:00.000000")
_WRITTEN["date"] = "2026-07-26"


class NoShape(ValueError):
    """The values of a column are no times, or times of more than one shape.

    Parameters:
        why: what is wrong, as a sentence.
        fix: what to do, as a sentence.
        shape: the name of the shape that most of the samples have; empty if none has one.
        offending: where among the samples those stand that are not of that shape.
    """

    def __init__(self, why: str, fix: str, shape: str = "", offending: Sequence[int] = ()) -> None:
        super().__init__(f"{why} {fix}")
        self.why, self.fix, self.shape, self.offending = why, fix, shape, tuple(offending)


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """How a column holds instants; by itself, of one where nothing tells: there nothing is old."""

    @property
    def name(self) -> str:
        """What a person would call it: `timestamptz`, `whole numbers, ms since 1970`."""
        return "not known yet, since no row has one"

    def raw(self, column: Column) -> Column:
        """The expression to select a value by, so that the driver can read all there may be."""
        return column

    def instant(self, value: object) -> Instant:
        """The instant that a value stands for, read as the rows of a ledger are."""
        return Unknown(f"time is {value!r:.40}, and nothing tells what that means")

    def edges(self, cutoff: datetime) -> tuple[object, object]:
        """Two values: below the first all is older than the cutoff, from the second on nothing is.

        They are equal where SQL compares exactly; else the few rows between are for `instant`.
        """
        return cutoff, cutoff

    def older(self, column: Column, edge: object) -> ColumnElement[bool]:  # noqa: ARG002
        """The condition that a column is below an edge."""
        return false()

    def fits(self, column: Column) -> ColumnElement[bool]:  # noqa: ARG002
        """The condition that a value that is not NULL is a plausible one of this very shape."""
        return false()

    def write(self, instant: datetime) -> object:  # noqa: ARG002
        """The instant as the column would hold it.

        Raises:
            NoShape: when nothing in the table tells how that would be.
        """
        fix = "Set `unit:` if the column holds numbers, or wait for the first row."
        raise NoShape("No row has a time yet that another one could be written like.", fix)


class TextShape(Shape, frozen=True, kw_only=True):
    """Text that begins with year, month and day; fractions of a second may be there or not.

    Parameters:
        dialect: `sqlite` or `postgresql`.
        separator: what stands between date and time; empty where there is no time.
        ending: what follows the time: nothing, `Z`, or the `offset` of each row (`Z` among them).
        digits: how long a fraction of a second to write.
        zone: the zone of what names none.
    """

    dialect: str
    separator: str
    ending: str
    digits: int
    zone: tzinfo

    @property
    def name(self) -> str:
        naive = f" in {self.zone}" if self.separator else f", the end of that day in {self.zone}"
        more = {"": naive, "Z": "", "offset": ", each with its own offset"}[self.ending]
        return f"text such as {self.write(datetime(2026, 7, 26, 12, tzinfo=UTC))}{more}"

    def instant(self, value: object) -> Instant:
        return _instant(value, self.zone)

    def edges(self, cutoff: datetime) -> tuple[object, object]:
        sure, maybe = _local(cutoff, self.zone)
        if self.ending:
            # No offset reaches a whole day. Within one second the endings stand in the way of the
            # fractions: `00.5Z` comes before `00Z`.
            reach, whole = timedelta(days=self.ending == "offset"), cutoff.replace(microsecond=0)
            sure = _later(whole, -reach)
            maybe = _later(whole, reach + timedelta(seconds=whole < cutoff))
        return self._edge(sure), self._edge(maybe)

    def older(self, column: Column, edge: object) -> ColumnElement[bool]:
        return self._bytewise(column) < _bound(edge)

    def fits(self, column: Column) -> ColumnElement[bool]:
        # With its dash, or SQLite would take it for a number in a column that prefers numbers.
        recent = self._bytewise(column) >= _bound(f"{_FIRST.year}-")
        if self.dialect == "postgresql":
            pattern = _bound(f"^{_FORMS[self.separator, self.ending]}$")
            return and_(recent, self._bytewise(column).op("~")(pattern))
        # SQLite has no regular expressions. What its `julianday` can read, and has its dashes and
        # colons in the right places, is a time; but it takes a 31st of June, and an hour 24.
        day, hour = func.substr(column, 1, 10), func.substr(column, 12, 2)
        globs = self._globs() if self.separator else ["????-??-??"]
        return and_(
            func.typeof(column) == "text",
            recent,
            func.julianday(column).is_not(None),
            or_(*(column.op("GLOB")(glob) for glob in globs)),
            or_(func.substr(column, 9, 2) < "29", func.date(day, "+0 days") == day),
            hour < "24",
            # All of these take a NUL for the end of the text.
            func.instr(column, "\0") == 0,
        )

    def write(self, instant: datetime) -> str:
        moment = instant.astimezone(UTC if self.ending else self.zone).replace(tzinfo=None)
        if not self.separator:
            return moment.date().isoformat()
        fraction = f".{moment.microsecond:06d}"[: self.digits + 1] if self.digits else ""
        ending = "+00:00" if self.ending == "offset" else self.ending
        return f"{moment.isoformat(self.separator, 'seconds')}{fraction}{ending}"

    def _edge(self, moment: datetime) -> str:
        if not self.separator:
            return moment.date().isoformat()
        # With zeros at its end it would be above the same instant written without them.
        text = moment.isoformat(self.separator)
        return text.rstrip("0") if moment.microsecond else text

    def _globs(self) -> Iterator[str]:
        # The likely one first: it spares the others.
        for digits in sorted(range(10), key=lambda digits: digits != self.digits):
            fraction = "." + "[0-9]" * digits if digits else ""
            for ending in ("[+-]??:??", "Z") if self.ending == "offset" else (self.ending,):
                yield f"????-??-??{self.separator}??:??:??{fraction}{ending}"

    def _bytewise(self, column: Column) -> Column:
        # In PostgreSQL the order of text is that of some language, unless told otherwise.
        return collate(column, "C") if self.dialect == "postgresql" else column


class NumberShape(Shape, frozen=True, kw_only=True):
    """Numbers that count from 1970.

    Parameters:
        dialect: `sqlite` or `postgresql`.
        unit: what they count: `s`, `ms`, `us` or `ns`.
        whole: whether there are no fractions among them.
    """

    dialect: str
    unit: str
    whole: bool

    @property
    def name(self) -> str:
        return f"{'whole numbers' if self.whole else 'numbers'}, {self.unit} since 1970"

    def instant(self, value: object) -> Instant:
        return _instant(value, UTC, self.unit)

    def edges(self, cutoff: datetime) -> tuple[object, object]:
        if self.whole:
            return self._count(cutoff, up=True), self._count(cutoff, up=True)
        # A fraction means the microsecond that is nearest to it.
        return self._count(cutoff, -1), self._count(cutoff, 1, up=True)

    def older(self, column: Column, edge: object) -> ColumnElement[bool]:
        return column < _bound(edge)

    def fits(self, column: Column) -> ColumnElement[bool]:
        first, last = (_bound(self._count(end)) for end in (_FIRST, _LAST))
        plausible = and_(column >= first, column <= last)
        if self.dialect == "postgresql":
            return plausible
        kinds = ["integer"] if self.whole else ["integer", "real"]
        return and_(func.typeof(column).in_(kinds), plausible)

    def write(self, instant: datetime) -> int | float:
        if self.whole:
            return self._count(instant)
        return (instant - _EPOCH) // _MICROSECOND * UNITS[self.unit] / 10**6

    def _count(self, instant: datetime, micros: int = 0, *, up: bool = False) -> int:
        """The instant, and so many microseconds on, in whole units, rounded down or up."""
        ticks = ((instant - _EPOCH) // _MICROSECOND + micros) * UNITS[self.unit]
        units = -(-ticks // 10**6) if up else ticks // 10**6
        return max(-(2**63), min(units, 2**63 - 1))


class TypedShape(Shape, frozen=True, kw_only=True):
    """One of the types that PostgreSQL has for times.

    Parameters:
        type: `timestamptz`, `timestamp` or `date`.
        zone: the zone of a time, or of the end of a day, that names none.
    """

    type: str
    zone: tzinfo

    @property
    def name(self) -> str:
        if self.type == "date":
            return f"date, the end of that day in {self.zone}"
        return self.type if self.type == "timestamptz" else f"{self.type} in {self.zone}"

    def raw(self, column: Column) -> Column:
        # As text, since the driver fails at `infinity`; as JSON has it, which no setting of the
        # server changes.
        return func.to_json(column).op("#>>", return_type=sql.Text())(literal_column("'{}'"))

    def instant(self, value: object) -> Instant:
        return _instant(value, self.zone)

    def edges(self, cutoff: datetime) -> tuple[object, object]:
        if self.type == "timestamptz":
            return cutoff, cutoff
        sure, maybe = _local(cutoff, self.zone)
        return (sure.date(), maybe.date()) if self.type == "date" else (sure, maybe)

    def older(self, column: Column, edge: object) -> ColumnElement[bool]:
        return column < _bound(edge)

    def fits(self, column: Column) -> ColumnElement[bool]:
        naive = None if self.type != "timestamptz" else UTC
        first, last = (_bound(end.replace(tzinfo=naive)) for end in (_FIRST, _LAST))
        return and_(column >= first, column <= last)

    def write(self, instant: datetime) -> date:
        if self.type == "timestamptz":
            return instant
        moment = instant.astimezone(self.zone).replace(tzinfo=None)
        return moment.date() if self.type == "date" else moment


def detect(
    dialect: str, declared: str, samples: Sequence[object], unit: str | None, zone: tzinfo
) -> Shape:
    """The shape of a column.

    Parameters:
        dialect: `sqlite` or `postgresql`.
        declared: the column's type, as the database calls it (`timestamp with time zone`).
        samples: values of the column that are not NULL, as the driver gives them. Without any the
            result tells by its `raw` how to select some.
        unit: what numbers count since 1970 (`s`, `ms`, `us`, `ns`); None where that is to be told
            by the year that they come to.
        zone: the zone of times that name none.

    Raises:
        NoShape: when that type holds no times, or the samples are of more than one shape, or some
            are implausible: before 1971, or a number that fits no unit.
    """
    kind = " ".join(re.sub(r"\([^)]*\)", " ", declared).lower().split())
    if dialect == "postgresql":
        if kind in _TIMES:
            return TypedShape(type=_TIMES[kind], zone=zone)
        if kind not in _NUMBERS + _TEXTS:
            why = f"The time column's type is {declared}, whose times SQL cannot compare."
            raise NoShape(why, "Name a column that holds times, whole or double numbers, or text.")
    if not samples:
        if unit and kind not in _TEXTS:
            samples = [UNITS[unit] * 10**9]
        elif dialect == "postgresql" or kind not in _WRITTEN:
            return Shape()
        else:
            samples = [_WRITTEN[kind]]
    forms = [*_FORMS, *(("number", each) for each in ([unit] if unit else UNITS))]
    # Of forms that equally many samples have, the first is the strictest.
    have = {form: [_has(sample, form, unit is None) for sample in samples] for form in forms}
    form = max(forms, key=lambda form: sum(have[form]))
    mine = [sample for sample, has in zip(samples, have[form], strict=True) if has]
    shape = _shape(dialect, kind, form, mine, zone) if mine else None
    if shape is None or len(mine) < len(samples):
        odd = [at for at, has in enumerate(have[form]) if not has]
        such = ", ".join(f"{samples[at]!r:.40}" for at in odd[:3])
        most = shape.name if shape else ""
        what = f"which is not {most}, as others are" if most else "which is no plausible time"
        fix = "Mend those rows, or set `unit:` (s, ms, us or ns) if they count since 1970."
        raise NoShape(f"The time column holds {such}, {what}.", fix, most, odd)
    return shape


def _has(value: object, form: _Form, likely: bool) -> bool:
    """Whether a value is a plausible one of that form; if asked for, a number of a likely year."""
    if form in _FORMS:
        recent = isinstance(value, str) and value >= str(_FIRST.year)
        return recent and re.fullmatch(_FORMS[form], str(value)) is not None
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return False
    instant = _instant(value, UTC, form[1])
    return isinstance(instant, Known) and not (likely and instant.instant.year > _LAST_LIKELY_YEAR)


def _shape(dialect: str, kind: str, form: _Form, mine: Sequence[object], zone: tzinfo) -> Shape:
    """The shape of samples that all have one form."""
    if form not in _FORMS:
        whole = kind in _WHOLE if dialect == "postgresql" else {int}.issuperset(map(type, mine))
        return NumberShape(dialect=dialect, unit=form[1], whole=whole)
    digits = min(6, max(len("".join(re.findall("[.]([0-9]*)", str(each)))) for each in mine))
    sep, end = form
    return TextShape(dialect=dialect, separator=sep, ending=end, digits=digits, zone=zone)


def _instant(value: object, zone: tzinfo, unit: str | None = None) -> Instant:
    if isinstance(value, date):
        value = value.isoformat()
    elif isinstance(value, Decimal):
        value = int(value) if value.is_finite() and value == int(value) else float(value)
    return parse_instant(value, source="time", zone=zone, unit=unit)


def _local(cutoff: datetime, zone: tzinfo) -> tuple[datetime, datetime]:
    """The earliest and the latest that clocks, as they go around the cutoff, might show at it.

    They differ for a day around a change, when the order of local times is not that of time.
    """
    near = [_later(cutoff, timedelta(hours=hours)) for hours in range(-25, 26)]
    offsets = [each.replace(tzinfo=zone).utcoffset() or timedelta() for each in near]
    return _later(cutoff, min(offsets)), _later(cutoff, max(offsets))


def _later(instant: datetime, by: timedelta) -> datetime:
    """So much later, in UTC but naive, as far as the calendar goes."""
    moment = instant.astimezone(UTC).replace(tzinfo=None)
    try:
        return moment + by
    except OverflowError:
        return datetime.min if by < timedelta() else datetime.max


def _bound(value: object) -> Column:
    """A value with its type: left to itself, PostgreSQL might take it for one of another."""
    if isinstance(value, datetime):
        return bindparam(None, value, sql.DateTime(timezone=value.tzinfo is not None))
    return bindparam(None, value, {str: sql.Text, int: sql.BigInteger, date: sql.Date}[type(value)])
