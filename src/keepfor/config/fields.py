"""What a setting may hold: each type reads what was written, and writes it back as it would stand.

A validator that refuses says in full sentences what is wrong and what to write.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from pydantic import BeforeValidator, PlainSerializer, PlainValidator, WithJsonSchema

from keepfor.config.paths import expand
from keepfor.config.urls import DatabaseUrl, read_url
from keepfor.errors import BadDuration, ConfigError
from keepfor.sizes import UNITS, format_size, parse_size_text
from keepfor.times import (
    DAY,
    LONGEST,
    days_duration,
    format_duration,
    load_timezone,
    parse_duration,
)

DURATION = (
    r"^(forever|(?=\d)(\d+w)?(\d+d)?(\d+h)?(\d+min)?(\d+s)?"
    r"|P(?=\d|T)(\d+W)?(\d+D)?(T(?=\d)(\d+H)?(\d+M)?(\d+S)?)?)$"
)
SIZE = rf"^\d+({'|'.join(UNITS)})$"


class PlaceText(msgspec.Struct, frozen=True, kw_only=True):
    """A path or an address as it was written, with what it takes to tell where it leads."""

    text: str
    base: Path
    environ: Mapping[str, str]

    def __repr__(self) -> str:
        # Both the text and the environment may hold a password.
        return "PlaceText(…)"


class Days(msgspec.Struct, frozen=True, kw_only=True):
    """A duration that was written as a number of days."""

    number: object


class Seconds(msgspec.Struct, frozen=True, kw_only=True):
    """A duration that was written as a number of seconds."""

    number: object


class Unread(msgspec.Struct, frozen=True, kw_only=True):
    """What a variable says, where it cannot be read as YAML; `what` is the message."""

    what: str


def _path(value: object) -> Path:
    if isinstance(value, PlaceText):
        return expand(value.text, value.base, value.environ)
    if isinstance(value, Path):
        return value
    raise ValueError(f"{value!r} is no path. Put it in quotes if it is meant.")


def _duration(value: object) -> timedelta | None:
    if isinstance(value, Days):
        return days("age", "keep_for", value.number)
    return parse_duration(value)


def days(thing: str, instead: str, number: object) -> timedelta:
    """A duration that was written as a number of days; `instead` is the key that takes units."""
    try:
        return days_duration(number)
    except BadDuration as error:
        why = f"{number!r} is no {thing} in days: {error.facts['why']}."
        raise ValueError(f"{why} Write a number such as 90, or use {instead}.") from None


def in_days(age: timedelta | None) -> int | float | None:
    """The same number again."""
    if age is None:
        return None
    return age / DAY if age % DAY else age // DAY


def limited(thing: str, forever: str, such_as: str) -> Callable[[object], timedelta]:
    """A duration that ends; `forever` says what would come of one that does not."""

    def limited(value: object) -> timedelta:
        if isinstance(value, Seconds):
            return _seconds(thing, value.number)
        try:
            duration, why = parse_duration(value), forever
        except BadDuration as error:
            duration, why = None, str(error.facts["why"])
            if why == "nothing would be kept":
                why = "it is not above zero"
        if duration is None:
            raise ValueError(f"{value!r} is no {thing}: {why}. Write a duration such as {such_as}.")
        return duration

    return limited


def _seconds(thing: str, number: object) -> timedelta:
    if isinstance(number, bool) or not isinstance(number, int | float):
        why = "it is not a number of seconds"
    elif not number >= 1:
        why = "it is less than a second"
    elif number > LONGEST.total_seconds():
        why = "it is more than a hundred years"
    else:
        return timedelta(seconds=number)
    what = f"{number!r} is no {thing} in seconds: {why}."
    raise ValueError(f"{what} Write a number such as 3600, or use {thing}.")


def _url(value: object) -> DatabaseUrl:
    if isinstance(value, DatabaseUrl):
        return value
    if not isinstance(value, PlaceText):
        # It may be an address in brackets, so it is not shown.
        what = f"this is no address but of type {type(value).__name__}."
        raise ValueError(f"{what} Write it as text, such as sqlite:///file.sqlite3.")
    try:
        return read_url(value.text, value.base, value.environ)
    except UnicodeError:
        raise ValueError("it holds bytes that are no text. Write them as %XX.") from None


def _zone(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is no time zone. Write a name such as Europe/Berlin.")
    try:
        load_timezone(value)
    except ConfigError as error:
        raise ValueError("{what} {fix}".format_map(error.facts)) from None
    return value


def _field(value: object) -> str:
    if not isinstance(value, str) or not all(value.split(".")):
        raise ValueError(f"{value!r} names no field. Write its name, such as ts or meta.ts.")
    return value


def word(what: str, such_as: str) -> Callable[[object], str]:
    """What is called by some text."""

    def read(value: object) -> str:
        if not isinstance(value, str) or not value:
            raise ValueError(f"{value!r} is no {what}. Write its name, such as {such_as}.")
        return value

    return read


def _table(value: object) -> str:
    if not isinstance(value, str) or not all(value.split(".")) or value.count(".") > 1:
        raise ValueError(f"{value!r} names no table. Write audit_log, or schema.audit_log.")
    return value


def _columns(value: object) -> tuple[str, ...]:
    column = word("column", "id, or a list such as [tenant, id]")
    if not isinstance(value, list):
        return (column(value),)
    columns = tuple(map(column, value))
    if not columns:
        raise ValueError("the list is empty. Name a column, such as id.")
    for name in columns:
        if columns.count(name) > 1:
            raise ValueError(f"{name!r} stands in it twice. Name each column once.")
    return columns


def _as_written(columns: tuple[str, ...]) -> str | list[str] | None:
    if len(columns) > 1:
        return list(columns)
    return columns[0] if columns else None


def _truth(value: object) -> bool:
    if isinstance(value, bool):
        return value
    raise ValueError(f"{value!r} is neither true nor false. Write one of the two.")


def _several(value: object) -> object:
    """A list as the tuple that it is kept as; what is none is told of an item in it."""
    if isinstance(value, list):
        return tuple(value)
    raise ValueError("a list belongs here. Write its items below it, each after a dash.")


def _unless_off(value: object) -> object:
    return None if value == "off" else value


def _unit(value: object) -> object:
    if value is None:
        raise ValueError("leave the key out for no unit.")
    return value


def whole_number(things: str) -> Callable[[object], int]:
    """So many things, none included."""

    def count(value: object) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            what = f"{value!r} is no number of {things}."
            raise ValueError(f"{what} Write 0, or a whole number such as 100.")
        return value

    return count


def _limit(value: object) -> int | None:
    if value == "off":
        return None
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    raise ValueError(f"{value!r} is no bound. Write a whole number above 0, such as 200, or off.")


def _fraction(value: object) -> float | None:
    if value == "off":
        return None
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= 1:
        return float(value)
    raise ValueError(f"{value!r} is no fraction. Write a number above 0 and up to 1, or off.")


def as_text(**more: object) -> WithJsonSchema:
    """The schema of a setting that is written as text."""
    return WithJsonSchema({"type": "string", **more})


AnyPath = Annotated[Path, BeforeValidator(_path), as_text(minLength=1)]
FilePath = Annotated[Path | None, BeforeValidator(_path), as_text(minLength=1)]
Duration = Annotated[
    timedelta | None,
    BeforeValidator(_duration),
    PlainSerializer(format_duration),
    as_text(pattern=DURATION, examples=["90d", "12h", "30min", "1d12h", "2w", "P90D", "forever"]),
]
Grace = Annotated[
    timedelta,
    BeforeValidator(limited("grace", "nothing would ever be late", "24h")),
    PlainSerializer(format_duration),
    as_text(pattern=DURATION.replace("forever|", ""), examples=["24h"]),
]
RunGrace = Annotated[
    timedelta,
    BeforeValidator(limited("grace", "nothing would ever be removed", "1h")),
    PlainSerializer(format_duration),
    as_text(pattern=DURATION.replace("forever|", ""), examples=["1h"]),
]
Interval = Annotated[
    timedelta,
    BeforeValidator(limited("interval", "nothing would ever be swept", "1h")),
    PlainSerializer(format_duration),
    as_text(pattern=DURATION.replace("forever|", ""), examples=["1h"]),
]
Size = Annotated[
    int | None,
    BeforeValidator(parse_size_text),
    PlainSerializer(lambda size: None if size is None else format_size(size)),
    as_text(pattern=SIZE, examples=["25MiB", "25MB"]),
]
Fraction = Annotated[
    float | None,
    BeforeValidator(_fraction),
    PlainSerializer(lambda fraction: "off" if fraction is None else fraction),
    WithJsonSchema(
        {"anyOf": [{"const": "off"}, {"type": "number", "exclusiveMinimum": 0, "maximum": 1}]}
    ),
]
_NUMBER = WithJsonSchema({"type": "integer", "minimum": 0})
Count = Annotated[int, BeforeValidator(whole_number("rows")), _NUMBER]
RunCount = Annotated[int, BeforeValidator(whole_number("runs")), _NUMBER]
Limit = Annotated[
    int | None,
    BeforeValidator(_limit),
    PlainSerializer(lambda limit: "off" if limit is None else limit),
    WithJsonSchema({"anyOf": [{"const": "off"}, {"type": "integer", "minimum": 1}]}),
]
Url = Annotated[
    DatabaseUrl,
    PlainValidator(_url),
    PlainSerializer(str),
    as_text(minLength=1),
]
TableName = Annotated[str, BeforeValidator(_table), as_text(pattern=r"^[^.]+(\.[^.]+)?$")]
Column = Annotated[str, BeforeValidator(word("column", "ts")), as_text(minLength=1)]
Columns = Annotated[
    tuple[str, ...],
    BeforeValidator(_columns),
    PlainSerializer(_as_written),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "minLength": 1},
                {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1},
            ]
        }
    ),
]
RowType = Annotated[str, BeforeValidator(word("type", "policy.denied")), as_text(minLength=1)]
RuleName = Annotated[str, BeforeValidator(word("name", "denials")), as_text(minLength=1)]
AgeInDays = Annotated[
    timedelta | None,
    BeforeValidator(lambda value: _duration(Days(number=value))),
    PlainSerializer(in_days),
    WithJsonSchema({"type": "number", "exclusiveMinimum": 0}),
]
Truth = Annotated[bool, BeforeValidator(_truth), WithJsonSchema({"type": "boolean"})]
Several = BeforeValidator(_several)
UnlessOff = BeforeValidator(_unless_off)
FieldName = Annotated[str, BeforeValidator(_field), as_text(pattern=r"^[^.]+(\.[^.]+)*$")]
RunTime = Annotated[str | None, BeforeValidator(_field), as_text(pattern=r"^[^.]+(\.[^.]+)*$")]
Unit = Annotated[
    Literal["s", "ms", "us", "ns"] | None,
    BeforeValidator(_unit),
    WithJsonSchema({"enum": ["s", "ms", "us", "ns"]}),
]
Zone = Annotated[str, BeforeValidator(_zone), as_text()]
