"""The settings: what each one is called, takes and defaults to. The one place for all three."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.fields import FieldInfo

from keepfor.config.entities import Entities
from keepfor.config.fields import (
    AnyPath,
    Count,
    Duration,
    FieldName,
    Fraction,
    Grace,
    Interval,
    Limit,
    RunCount,
    RunGrace,
    RunTime,
    Size,
    Unit,
    Zone,
)
from keepfor.config.sections import (
    INTERVAL,
    LAG,
    Part,
    Section,
    StoreSection,
    keys_of,
    refuse_a_floor_above,
    says_nothing,
)
from keepfor.config.tables import Table
from keepfor.config.urls import DatabaseUrl
from keepfor.policy.rules import Policy, keep_for
from keepfor.sizes import format_size
from keepfor.times import format_duration

STORE_NAME = r"^[a-z0-9_]+$"


class Ledger(StoreSection):
    """An append-only JSONL file: one row a line, in the order of time."""

    kind: Literal["ledger"] = Field(description="What kind of store this is.")
    path: AnyPath = Field(
        description="The file. Relative to this one; ~ and $VAR expand.",
        examples=["~/recall-history.jsonl"],
    )
    time: FieldName = Field(
        default="ts",
        description="The field that holds a row's time; a dotted path reaches into objects.",
        examples=["ts", "meta.created_at"],
    )
    unit: Unit = Field(
        default=None,
        description="What a time that is a number counts since 1970. Without it, no number is one.",
    )
    timezone: Zone = Field(
        default="UTC",
        description="The zone of a time that names none.",
        examples=["UTC", "Europe/Berlin"],
    )
    keep_for: Duration = Field(
        default=None,
        description="Rows strictly older than this go; forever, and none goes by its age.",
    )
    max_bytes: Size = Field(
        default=None,
        description="A ceiling: at this size the oldest rows go, whatever their age, down to 80 %.",
    )
    keep_last: Count = Field(default=0, description="How many of the newest rows never go.")
    unreadable: Literal["drop", "keep"] = Field(
        default="drop", description="What happens to rows that no reader can use."
    )
    breaker: Fraction = Field(
        default=0.5,
        description="The largest share of ten rows or more that one sweep may delete; or off.",
    )
    grace: Grace = Field(
        default=LAG,
        description="How long a row may outstay keep_for before `keepfor check` fails.",
    )
    interval: Interval = Field(
        default=INTERVAL, description="How often it is swept in the background."
    )

    @property
    def place(self) -> str:
        return os.path.realpath(self.path)

    @property
    def folder(self) -> str:
        return os.path.dirname(self.path)

    @property
    def tolerance(self) -> timedelta:
        return self.grace

    def policy(self) -> Policy:
        return Policy(
            rules=keep_for(self.keep_for),
            max_bytes=self.max_bytes,
            keep_last=self.keep_last,
            breaker=self.breaker,
        )

    def in_parts(self) -> Sequence[str]:
        parts = []
        if self.keep_for is not None:
            parts.append(f"rows older than {format_duration(self.keep_for)} go")
        if self.max_bytes is not None:
            size = format_size(self.max_bytes)
            parts.append(f"above {size} the oldest go, down to 80 % of it")
        return parts

    @model_validator(mode="after")
    def _says_when(self) -> Ledger:
        if says_nothing(self):
            raise ValueError(
                "nothing would ever be removed. Write `keep_for: 90d`, `max_bytes: 25MiB` or both; "
                "`keep_for: forever` says never on purpose."
            )
        return self


class Runs(StoreSection):
    """A directory with one JSONL file per run."""

    kind: Literal["runs"] = Field(description="What kind of store this is.")
    path: AnyPath = Field(
        description="The folder. Relative to this file; ~ and $VAR expand.",
        examples=[".neo-ai-data/rem-runs"],
    )
    time: RunTime = Field(
        default=None,
        description="What tells a run's age: name (a timestamp in the file's name), mtime, or the "
        "field of the last entry that holds it. Without it, the name where that carries one, and "
        "mtime where nothing better is there.",
        examples=["name", "completedAt"],
    )
    unit: Unit = Field(
        default=None,
        description="What a time that is a number counts since 1970. Without it, no number is one.",
    )
    timezone: Zone = Field(
        default="UTC",
        description="The zone of a time that names none.",
        examples=["UTC", "Europe/Berlin"],
    )
    max_count: Limit = Field(
        default=None,
        description="How many runs may stay: above it the oldest go, whatever their age; or off.",
        examples=[200],
    )
    keep_for: Duration = Field(
        default=None,
        description="Runs strictly older than this go; forever, and none goes by its age.",
    )
    max_bytes: Size = Field(
        default=None,
        description="How large all runs together may be: above it the oldest go.",
    )
    keep_last: RunCount = Field(default=0, description="How many of the newest runs never go.")
    grace: RunGrace = Field(
        default=timedelta(hours=1),
        description="How long after its last change a run counts as being written, and stays.",
    )
    breaker: Fraction = Field(
        default=0.5,
        description="The largest share of ten runs or more that one sweep may delete; or off.",
    )
    interval: Interval = Field(
        default=INTERVAL, description="How often it is swept in the background."
    )

    @property
    def place(self) -> str:
        return os.path.realpath(self.path)

    @property
    def folder(self) -> str:
        return os.path.dirname(self.path)

    @property
    def degraded(self) -> str | None:
        if self.max_count or self.max_bytes or self.keep_for:
            return None
        return "nothing bounds it, so it grows with every run, and each look at it takes longer."

    def policy(self) -> Policy:
        return Policy(
            rules=keep_for(self.keep_for),
            max_count=self.max_count,
            max_bytes=self.max_bytes,
            keep_last=self.keep_last,
            breaker=self.breaker,
        )

    def in_parts(self) -> Sequence[str]:
        parts = []
        if self.keep_for is not None:
            parts.append(f"runs older than {format_duration(self.keep_for)} go")
        if self.max_count is not None:
            parts.append(f"above {self.max_count} the oldest go")
        if self.max_bytes is not None:
            parts.append(f"above {format_size(self.max_bytes)} the oldest go")
        return parts

    @model_validator(mode="after")
    def _says_when(self) -> Runs:
        if says_nothing(self):
            raise ValueError(
                "nothing would ever be removed. Write `max_count: 200`, `keep_for: 90d` or both; "
                "`max_count: off` says never on purpose."
            )
        refuse_a_floor_above(self.max_count, self.keep_last)
        return self


#: A new kind of store is a class like these, named in the next two statements.
KINDS: dict[str, type[Section]] = {
    "ledger": Ledger,
    "runs": Runs,
    "table": Table,
    "entities": Entities,
}
Store = Annotated[Ledger | Runs | Table | Entities, Field(discriminator="kind")]


class Trail(Section):
    """The record of what was done."""

    keep_for: Duration = Field(
        default=timedelta(days=90), description="Records strictly older than this go."
    )


def _optional_state_folder(schema: dict[str, Any]) -> None:
    # Its default depends on where the file lies, so the model alone cannot know it.
    schema["required"].remove("state_dir")


class Settings(Section):
    """The configuration of keepfor: which stores there are, and what each is held to."""

    model_config = ConfigDict(json_schema_extra=_optional_state_folder)

    stores: dict[Annotated[str, Field(pattern=STORE_NAME)], Store] = Field(
        description="The stores, each under a name of small letters, digits and underscores.",
        json_schema_extra={"minProperties": 1, "additionalProperties": False},
    )
    trail: Trail = Field(default_factory=Trail, description="The record of what was done.")
    state_dir: AnyPath = Field(
        description="The folder for the trail, plans and caches; one of its own if left out.",
    )


def store_keys(kind: object) -> list[str]:
    """The keys of that kind of store; of every kind, where there is no such kind."""
    known = KINDS.get(kind) if isinstance(kind, str) else None
    sections = [known] if known else list(KINDS.values())
    return list(dict.fromkeys(key for section in sections for key in keys_of(section)))


def is_placed(key: str) -> bool:
    """Whether a setting of that name, in any section, is a path or an address."""
    return any(field.annotation in (Path, Path | None, DatabaseUrl) for field in _fields(key))


def is_structured(key: str) -> bool:
    """Whether a setting of that name, in any section, can be a list or hold settings of its own."""
    return any(part_of(field) or _holds_several(field.annotation) for field in _fields(key))


def part_at(kind: object, path: Sequence[str]) -> type[Part] | None:
    """What is found within the setting of a store: `rules`, `0` leads to a rule of a table."""
    section: type[BaseModel] | None = KINDS.get(kind) if isinstance(kind, str) else None
    part = None
    for key in path:
        if key.isdecimal():
            continue
        if section is None or key not in section.model_fields:
            return None
        section = part = part_of(section.model_fields[key])
    return part


def part_of(field: FieldInfo) -> type[Part] | None:
    """The settings that a setting holds, if it holds any."""
    candidates = [field.annotation, *get_args(field.annotation)]
    found = (each for each in candidates if isinstance(each, type) and issubclass(each, Part))
    return next(found, None)


def _holds_several(annotation: Any) -> bool:
    return any(get_origin(each) in (tuple, dict) for each in (annotation, *get_args(annotation)))


def _fields(key: str) -> Iterator[FieldInfo]:
    sections: list[type[Section]] = [Settings, *KINDS.values()]
    return (each.model_fields[key] for each in sections if key in each.model_fields)
