"""The settings: what each one is called, takes and defaults to. The one place for all three."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from keepfor import presets
from keepfor.config.fields import (
    AnyPath,
    Count,
    Duration,
    FieldName,
    Fraction,
    Grace,
    Limit,
    RunCount,
    RunGrace,
    RunTime,
    Size,
    Unit,
    Zone,
)

#: One of these has to be given, so that what nobody thought of is not kept for ever.
_BOUNDS = ("keep_for", "max_age_days", "max_count", "max_bytes")

#: How long what is due may wait before `keepfor check` fails.
_LAG = timedelta(hours=24)

STORE_NAME = r"^[a-z0-9_]+$"


def _ways_to_write(schema: dict[str, Any]) -> None:
    """Adds to a section's JSON Schema the keys that stand for others."""
    properties = schema["properties"]
    properties["max_age_days"] = {
        "description": "The same as keep_for, as a number of days.",
        "type": "number",
        "exclusiveMinimum": 0,
    }
    schema["not"] = {"required": ["keep_for", "max_age_days"]}
    if "kind" in properties:
        properties["preset"] = {
            "description": "A known product, whose settings hold unless others stand beside it.",
            "enum": presets.names(),
        }
        by_hand = {
            "required": schema.pop("required"),
            "anyOf": [{"required": [key]} for key in _BOUNDS if key in properties],
        }
        schema["anyOf"] = [{"required": ["preset"]}, by_hand]


class Section(BaseModel):
    """A part of the configuration; an unknown key in it is refused."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, json_schema_extra=_ways_to_write
    )


class Ledger(Section):
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
        default=_LAG,
        description="How long a row may outstay keep_for before `keepfor check` fails.",
    )

    @property
    def tolerance(self) -> timedelta:
        """How long what is due may wait before `keepfor check` fails."""
        return self.grace

    @model_validator(mode="after")
    def _says_when(self) -> Ledger:
        if self.model_fields_set.isdisjoint(("keep_for", "max_bytes")):
            raise ValueError(
                "nothing would ever be removed. Write `keep_for: 90d`, `max_bytes: 25MiB` or both; "
                "`keep_for: forever` says never on purpose."
            )
        return self


class Runs(Section):
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

    @property
    def tolerance(self) -> timedelta:
        """How long what is due may wait before `keepfor check` fails."""
        return _LAG

    @model_validator(mode="after")
    def _says_when(self) -> Runs:
        if self.model_fields_set.isdisjoint(_BOUNDS):
            raise ValueError(
                "nothing would ever be removed. Write `max_count: 200`, `keep_for: 90d` or both; "
                "`max_count: off` says never on purpose."
            )
        if self.max_count is not None and self.keep_last > self.max_count:
            raise ValueError(
                f"keep_last ({self.keep_last}) is above max_count ({self.max_count}). "
                "Lower the one or raise the other."
            )
        return self


#: A new kind of store is a class like these, named in the next two lines.
KINDS: dict[str, type[Section]] = {"ledger": Ledger, "runs": Runs}
Store = Annotated[Ledger | Runs, Field(discriminator="kind")]


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


def keys_of(section: type[Section]) -> list[str]:
    """The keys that may be written in a section, those that stand for others included."""
    keys = list(section.model_fields)
    if "keep_for" in keys:
        keys.insert(keys.index("keep_for") + 1, "max_age_days")
    return [*keys, "preset"] if "kind" in keys else keys


def store_keys(kind: object) -> list[str]:
    """The keys of that kind of store; of every kind, where there is no such kind."""
    known = KINDS.get(kind) if isinstance(kind, str) else None
    sections = [known] if known else list(KINDS.values())
    return list(dict.fromkeys(key for section in sections for key in keys_of(section)))


def is_path(key: str) -> bool:
    """Whether a setting of that name, in any section, is a path."""
    sections: list[type[Section]] = [Settings, *KINDS.values()]
    return any(
        key in section.model_fields and section.model_fields[key].annotation is Path
        for section in sections
    )
