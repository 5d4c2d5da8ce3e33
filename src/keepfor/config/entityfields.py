"""What a setting of notes and sessions may hold, beside what any setting may."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Annotated, Literal

from pydantic import BeforeValidator, PlainSerializer, PlainValidator, WithJsonSchema

from keepfor.config.fields import DURATION, as_text, days, in_days, limited, whole_number, word
from keepfor.times import format_duration

_ENDS = DURATION.replace("forever|", "")
_items = whole_number("items")


def _days(thing: str, instead: str) -> BeforeValidator:
    return BeforeValidator(lambda value: days(thing, instead, value))


def _matches(value: object) -> dict[str, str]:
    if not isinstance(value, dict) or not value:
        what = "settings belong here: `id:` with a pattern, or keys of a note with what they say."
        raise ValueError(f"{what} Write {{id: guideline/*}}, for example.")
    for key, said in value.items():
        if not isinstance(said, str) or not said:
            raise ValueError(f"{key} is {said!r}, and a note says text. Put it in quotes.")
    return value


def _floors(value: object) -> int | dict[str, int]:
    if not isinstance(value, dict):
        return _items(value)
    for type_, count in value.items():
        try:
            if _items(count) == 0:
                raise ValueError(f"0 of {type_} is no floor. Leave it out.")
        except ValueError as error:
            raise ValueError(f"{type_}: {error}") from None
    return value


def _below(thing: str, such_as: str) -> Callable[[object], str]:
    """A way down from the root of the store, which never leads out of it."""

    def below(value: object) -> str:
        if isinstance(value, str) and value == ".":
            return value
        parts = value.split("/") if isinstance(value, str) else []
        if not parts or any(part in ("", ".", "..") or "\0" in part for part in parts):
            what = f"{value!r} is no {thing} below the root of the store."
            raise ValueError(f"{what} Write its name, such as {such_as}.")
        return "/".join(parts)

    return below


def _or_off(read: Callable[[object], str]) -> Callable[[object], str | None]:
    def chosen(value: object) -> str | None:
        if value == "off":
            return None
        if value == ".":
            raise ValueError("'.' is the root itself. Write a name below it, or off.")
        return read(value)

    return chosen


def _pattern(value: object) -> str:
    if not isinstance(value, str) or not value or "/" in value:
        what = f"{value!r} is no pattern of file names."
        raise ValueError(f"{what} Write one such as *.md, without a slash.")
    return value


def _globs(value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple):
        raise ValueError("a list belongs here, such as [subscribed, drafts/*].")
    for glob in value:
        if not isinstance(glob, str) or not glob or glob != glob.strip("/"):
            what = f"{glob!r} is no folder below that of the notes."
            raise ValueError(f"{what} Write its path, such as subscribed or drafts/*.")
    return tuple(value)


def _fallback(value: object) -> str | None:
    if value == "off":
        return None
    if value == "modified":
        return "modified"
    raise ValueError(f"{value!r} means nothing here. Known here: modified, off.")


def _key(value: object) -> str:
    if isinstance(value, str) and re.fullmatch(r"[^\s:#]+", value):
        return value
    raise ValueError(
        f"{value!r} tells no age. Write modified, or the frontmatter key that holds the date, "
        "such as created_at."
    )


def _span(key: str) -> BeforeValidator:
    return BeforeValidator(limited(key, "nothing would ever match", "90d"))


def _list_or_off(value: str | None) -> str:
    return "off" if value is None else value


_SPAN_SCHEMA = as_text(pattern=_ENDS, examples=["90d"])
_DAYS_SCHEMA = WithJsonSchema({"type": "number", "exclusiveMinimum": 0})
_OFF = PlainSerializer(_list_or_off)

RuleAge = Annotated[
    timedelta | None, _span("max_age"), PlainSerializer(format_duration), _SPAN_SCHEMA
]
RuleDisuse = Annotated[
    timedelta | None, _span("max_unused"), PlainSerializer(format_duration), _SPAN_SCHEMA
]
AfterFlagged = Annotated[
    timedelta | None, _span("after_flagged"), PlainSerializer(format_duration), _SPAN_SCHEMA
]
DaysOld = Annotated[
    timedelta | None, _days("age", "max_age"), PlainSerializer(in_days), _DAYS_SCHEMA
]
DaysUnused = Annotated[
    timedelta | None, _days("disuse", "max_unused"), PlainSerializer(in_days), _DAYS_SCHEMA
]
ItemType = Annotated[str, BeforeValidator(word("type", "guideline")), as_text(minLength=1)]
Matches = Annotated[
    dict[str, str],
    PlainValidator(_matches),
    WithJsonSchema(
        {
            "type": "object",
            "minProperties": 1,
            "additionalProperties": {"type": "string", "minLength": 1},
        }
    ),
]
_NUMBER = {"type": "integer", "minimum": 0}
Floors = Annotated[
    int | dict[str, int],
    PlainValidator(_floors),
    WithJsonSchema(
        {
            "anyOf": [
                _NUMBER,
                {"type": "object", "additionalProperties": _NUMBER | {"minimum": 1}},
            ]
        }
    ),
]
Folder = Annotated[str, BeforeValidator(_below("folder", "entities")), as_text(minLength=1)]
FolderOrOff = Annotated[
    str | None,
    BeforeValidator(_or_off(_below("folder", "trajectories"))),
    _OFF,
    as_text(minLength=1),
]
FileOrOff = Annotated[
    str | None, BeforeValidator(_or_off(_below("file", "audit.log"))), _OFF, as_text(minLength=1)
]
Pattern = Annotated[str, BeforeValidator(_pattern), as_text(pattern="^[^/]+$")]
Globs = Annotated[
    tuple[str, ...],
    PlainValidator(_globs),
    PlainSerializer(list),
    WithJsonSchema({"type": "array", "items": {"type": "string", "minLength": 1}}),
]
Clock = Annotated[str, BeforeValidator(_key), as_text(pattern=r"^[^\s:#]+$")]
Fallback = Annotated[
    Literal["modified"] | None,
    BeforeValidator(_fallback),
    _OFF,
    WithJsonSchema({"enum": ["modified", "off"]}),
]
