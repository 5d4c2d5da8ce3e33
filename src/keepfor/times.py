"""Durations and instants, strictly parsed: a time that cannot be read is unknown, never old.

Imported by every append, so it needs neither `typing` nor `dataclasses`, which cost more than
the append itself.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta, tzinfo

from keepfor.errors import BadDuration, BadInstant, ConfigError

DAY = timedelta(days=1)
#: Longer than this is more likely a slip than a policy; `forever` says it plainly.
LONGEST = timedelta(days=36_500)
#: Ticks in a second, for numbers that count time from the epoch.
UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: A number read in too fine a unit lands in the first weeks of 1970.
_FIRST_PLAUSIBLE = datetime(1971, 1, 1, tzinfo=UTC)

#: The units of a duration, the largest first, in seconds.
_SPANS = (("w", 604_800), ("d", 86_400), ("h", 3600), ("min", 60), ("s", 1))
_ISO_DATES = (("W", 604_800), ("D", 86_400))
_ISO_TIMES = (("H", 3600), ("M", 60), ("S", 1))


class Known:
    """An instant that could be read.

    Parameters:
        instant: an aware datetime in UTC.
        source: where it was read: a field, a file's mtime, a column.
    """

    __slots__ = ("instant", "source")
    __match_args__ = ("instant", "source")

    def __init__(self, instant: datetime, source: str) -> None:
        self.instant = instant
        self.source = source

    def __repr__(self) -> str:
        return f"Known({self.instant.isoformat()}, {self.source!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Known) and (self.instant, self.source) == (
            other.instant,
            other.source,
        )

    def __hash__(self) -> int:
        return hash((self.instant, self.source))


class Unknown:
    """An instant that could not be read: neither old nor young.

    Parameters:
        why: what stood there instead, for a person.
    """

    __slots__ = ("why",)
    __match_args__ = ("why",)

    def __init__(self, why: str) -> None:
        self.why = why

    def __repr__(self) -> str:
        return f"Unknown({self.why!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Unknown) and self.why == other.why

    def __hash__(self) -> int:
        return hash(self.why)


Instant = Known | Unknown


def utc_now() -> datetime:
    """The system's clock, as an aware datetime in UTC."""
    return datetime.now(UTC)


def parse_duration(text: object) -> timedelta | None:
    """How long to keep, as written in a policy.

    Parameters:
        text: `90d`, `12h`, `30min`, `1d12h`, `2w`, an ISO 8601 duration in weeks, days and below
            (`P90D`), a timedelta, or `forever`.

    Returns:
        The duration, or None for `forever`.

    Raises:
        BadDuration: for anything else, zero and negatives included; it says what to write.
    """
    if isinstance(text, timedelta):
        return _checked(text, text)
    if not isinstance(text, str):
        raise BadDuration(
            value=text, why="it has no unit", fix=f'"{_days(text)}d" for days, or "forever"'
        )
    if text == "forever":
        return None
    seconds = _iso_seconds(text) if text.startswith("P") else _seconds(text, _SPANS)
    if seconds is None:
        raise BadDuration(value=text, **_advice(text))
    try:
        duration = timedelta(seconds=seconds)
    except OverflowError:
        duration = timedelta.max
    return _checked(duration, text)


def days_duration(days: object) -> timedelta:
    """A duration given as a number of days, as under the key `max_age_days`."""
    if isinstance(days, bool) or not isinstance(days, int | float) or days != days:
        raise BadDuration(value=days, why="it is not a number of days", fix="a number such as 90")
    try:
        duration = timedelta(days=days)
    except OverflowError:
        duration = timedelta.max if days > 0 else -LONGEST
    return _checked(duration, days)


def format_duration(duration: timedelta | None) -> str:
    """The duration as a policy would write it: `90d`, `1d12h`, `forever`."""
    if duration is None:
        return "forever"
    minutes, seconds = divmod(int(duration.total_seconds()), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    parts = ((days, "d"), (hours, "h"), (minutes, "min"), (seconds, "s"))
    return "".join(f"{count}{unit}" for count, unit in parts if count) or "0s"


def before(now: datetime, age: timedelta) -> datetime:
    """The cutoff: what is strictly older than this has lived longer than `age` at `now`."""
    try:
        return now - age
    except OverflowError:
        return datetime.min.replace(tzinfo=UTC)


def parse_now(value: datetime | str) -> datetime:
    """A moment to judge by, given by a person or a program; naive means UTC.

    A date alone is its first moment here, so that judging by it takes less, not more.

    Raises:
        BadInstant: when it cannot be read.
    """
    if isinstance(value, datetime):
        return to_utc(value, UTC)
    if _is_date(value):
        return datetime.combine(date.fromisoformat(value), time(), UTC)
    match parse_instant(value, source="now"):
        case Known(instant):
            return instant
        case Unknown():
            raise BadInstant(value=value, why="it is neither a date nor an instant")


def load_timezone(name: str) -> tzinfo:
    """The zone of that name (`Europe/Berlin`) for timestamps that name none.

    Raises:
        ConfigError: when this machine knows no such zone.
    """
    if name.upper() == "UTC":
        return UTC
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise ConfigError(
            where="timezone",
            what=f"this machine knows no zone {name!r}.",
            fix="Write a name such as Europe/Berlin, or install the `tzdata` package.",
        ) from None


def parse_instant(
    value: object, *, source: str, zone: tzinfo = UTC, unit: str | None = None
) -> Instant:
    """The instant that a stored value stands for.

    Strings are read as `datetime.fromisoformat` reads them, and as RFC 3339 allows beyond that
    (lower-case `t` and `z`, a leap second). A date alone is the end of its day. A leap second is
    the first of the next minute, as in POSIX time.

    Parameters:
        value: what the row, the name or the column holds.
        source: the field it came from, kept in the result.
        zone: the zone of a timestamp that names none. An ambiguous local time is the later one.
        unit: what a number counts since 1970 (`s`, `ms`, `us`, `ns`); None takes no number.

    Returns:
        Known, in UTC and to the microsecond; or Unknown, with what is wrong.
    """
    if isinstance(value, str):
        instant = _from_text(value, zone)
        if instant is None:
            return Unknown(f"{source} is {_brief(value)}, not a timestamp")
        return Known(instant, source)
    if isinstance(value, int | float) and not isinstance(value, bool):
        if unit is None:
            return Unknown(f"{source} is the number {_brief(value)}, and no unit is set")
        instant = _from_number(value, UNITS[unit])
        if instant is None:
            return Unknown(f"{source} is {_brief(value)}, implausible in {unit}")
        return Known(instant, source)
    if value is None:
        return Unknown(f"{source} is missing")
    return Unknown(f"{source} is a {type(value).__name__}, not a timestamp")


def instant_of(row: object, field: str, zone: tzinfo = UTC, unit: str | None = None) -> Instant:
    """The instant that a decoded JSON row carries.

    Parameters:
        row: the row.
        field: the key that holds the timestamp; a dotted path reaches into objects.
        zone: the zone of a timestamp that names none.
        unit: what a number counts since 1970; None takes no number.
    """
    value = row
    for key in field.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return parse_instant(value, source=field, zone=zone, unit=unit)


def _from_text(text: str, zone: tzinfo) -> datetime | None:
    if len(text) > 8 and text[:9].isdigit():
        # `fromisoformat` takes any character between date and time, a digit too, and so would read
        # milliseconds in quotes (1712011200000, a day of 2024) as a day of the year 1712.
        return None
    extra = timedelta()
    try:
        if text[16:19] == ":60":
            text, extra = _without_leap_second(text), timedelta(seconds=1)
        if text.endswith("z"):
            text = f"{text[:-1]}Z"
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.time() == time() and _is_date(text):
        moment = datetime.combine(moment, time.max)
    try:
        return to_utc(moment, zone) + extra
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC)


def _without_leap_second(text: str) -> str:
    import re

    shape = r"(\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:)60((?:\.\d+)?(?:[Zz]|[+-]\d\d:\d\d)?)"
    leap = re.fullmatch(shape, text, re.ASCII)
    return f"{leap[1]}59{leap[2]}" if leap else text


def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def to_utc(moment: datetime, zone: tzinfo) -> datetime:
    """The moment in UTC; a naive one is read in `zone`.

    Of the two readings of a local time that a clock change allows, the later is taken.
    """
    try:
        if moment.tzinfo is not None:
            return moment.astimezone(UTC)
        if zone is UTC:
            return moment.replace(tzinfo=UTC)
        return max(moment.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    except OverflowError:
        # An offset that leads out of the years 1 to 9999 leads beyond every cutoff all the same.
        edge = datetime.min if moment.year == 1 else datetime.max
        return edge.replace(tzinfo=UTC)


def _from_number(value: float, per_second: int) -> datetime | None:
    try:
        if isinstance(value, float):
            top, bottom = value.as_integer_ratio()
            # Rounded, since a float such as 1785024000.1 lies a little beside what it means.
            micros = (2 * top * 10**6 + bottom * per_second) // (2 * bottom * per_second)
        else:
            micros = value * 10**6 // per_second
        instant = _EPOCH + timedelta(microseconds=micros)
    except (OverflowError, ValueError):
        return None
    return instant if instant >= _FIRST_PLAUSIBLE else None


def _checked(duration: timedelta, value: object) -> timedelta:
    if duration <= timedelta():
        raise BadDuration(
            value=value,
            why="nothing would be kept",
            fix='a duration above zero, such as "90d", or "forever"',
        )
    if duration > LONGEST:
        raise BadDuration(value=value, why="it is more than a hundred years", fix='"forever"')
    return duration


def _seconds(text: str, spans: tuple[tuple[str, int], ...]) -> int | None:
    """The sum of the spans that a text names, the largest first and each once."""
    total, rest = 0, text
    for unit, seconds in spans:
        number, found, after = rest.partition(unit)
        if found and number.isascii() and number.isdigit():
            # Python refuses to read an integer of more than 4,300 digits; so many are enough.
            total += int(number[:18]) * seconds
            rest = after
    return total if text and not rest else None


def _iso_seconds(text: str) -> int | None:
    dates, _, times = text[1:].partition("T")
    of_dates, of_times = _seconds(dates, _ISO_DATES), _seconds(times, _ISO_TIMES)
    if (dates and of_dates is None) or (times and of_times is None) or text[-1] in "PT":
        return None
    return (of_dates or 0) + (of_times or 0)


def _advice(text: str) -> dict[str, str]:
    import re

    number = (re.search(r"\d+", text, re.ASCII) or ["90"])[0]
    bare = re.fullmatch(r"\s*([+-]?[\d.]+)\s*([A-Za-zµ]*)\s*", text, re.ASCII)
    if bare and bare[1].startswith("-"):
        return {"why": "it is negative", "fix": '"90d", or "forever"'}
    if bare and not bare[2]:
        return {"why": "it has no unit", "fix": f'"{number}d" for days, or "forever"'}
    if bare and "." in bare[1]:
        return {"why": "fractions are not understood", "fix": '"1d12h" for one and a half days'}
    if bare and bare[2] == "m":
        return {
            "why": "m could be minutes or months",
            "fix": f'"{number}min" for minutes, or days for months ("{int(number[:6]) * 30}d")',
        }
    spelled = bare[2] if bare else ""
    unit = spelled.lower()
    if unit.startswith("mo") or re.fullmatch(r"P\d+M.*", text):
        return {"why": "months differ in length", "fix": f'days, such as "{int(number[:6]) * 30}d"'}
    if unit.startswith("y") or re.fullmatch(r"P\d+Y.*", text):
        return {"why": "years differ in length", "fix": f'days, such as "{int(number[:6]) * 365}d"'}
    if spelled in {"w", "d", "h", "min", "s"}:
        return {"why": "it has a space or a sign in it", "fix": f'"{number}{spelled}"'}
    for word, short in (("w", "w"), ("d", "d"), ("h", "h"), ("min", "min"), ("s", "s")):
        if unit.startswith(word):
            return {"why": f"{spelled!r} is not a unit", "fix": f'"{number}{short}"'}
    return {
        "why": "it is not a number with a unit",
        "fix": '"90d", "12h", "30min", "1d12h", "2w", "P90D", or "forever"',
    }


def _days(value: object) -> object:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 90


def _brief(value: object) -> str:
    # Python refuses to print an integer of more than 4,300 digits.
    text = "a huge number" if isinstance(value, int) and abs(value) > 10**40 else repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
