"""What the sections of a configuration have in common, and what each kind of store has to tell."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, SerializerFunctionWrapHandler, model_serializer

from keepfor import presets
from keepfor.config.fields import Days, Seconds
from keepfor.policy.rules import Policy

#: One of these has to be given, so that what nobody thought of is not kept for ever.
BOUNDS = ("keep_for", "max_age_days", "max_count", "max_bytes", "rules", "rules_from")

#: Keys that stand for others: which, as what, and in what words.
STAND_INS: dict[str, tuple[str, Callable[..., object], str]] = {
    "max_age_days": ("keep_for", Days, "The same as keep_for, as a number of days."),
    "interval_seconds": ("interval", Seconds, "The same as interval, as a number of seconds."),
}

#: How long what is due may wait before `keepfor check` fails.
LAG = timedelta(hours=24)
#: How often a store is swept in the background.
INTERVAL = timedelta(hours=1)


def _ways_to_write(schema: dict[str, Any]) -> None:
    """Adds to a section's JSON Schema the keys that stand for others."""
    properties = schema["properties"]
    twice = []
    for key, (meant, _, description) in STAND_INS.items():
        if meant in properties:
            number = {"type": "number", "exclusiveMinimum": 0}
            properties[key] = {"description": description, **number}
            twice.append({"required": [meant, key]})
    schema["not"] = {"anyOf": twice}
    if "kind" in properties:
        properties["preset"] = {
            "description": "A known product, whose settings hold unless others stand beside it.",
            "enum": presets.names(),
        }
        by_hand = {
            "required": schema.pop("required"),
            "anyOf": [{"required": [key]} for key in BOUNDS if key in properties],
        }
        schema["anyOf"] = [{"required": ["preset"]}, by_hand]


class Section(BaseModel):
    """A part of the configuration; an unknown key in it is refused."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        json_schema_extra=_ways_to_write,
        # An address may hold a password.
        hide_input_in_errors=True,
    )


class Part(BaseModel):
    """Settings within a setting; they are shown as they were written."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    @model_serializer(mode="wrap")
    def _as_written(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {
            key: value for key, value in serialize(self).items() if key in self.model_fields_set
        }


class StoreSection(Section):
    """One store's settings; what differs from kind to kind, each kind tells of itself."""

    #: The setting that says where it lies, and what makes the folder that it lies in.
    LIES_AT: ClassVar[str] = "path"
    MAKES_FOLDER: ClassVar[str] = "the first append makes the folder"
    #: What to do where nothing bounds it.
    BOUND_IT: ClassVar[str] = "Give it `max_count` or `keep_for`, or clear it by hand."

    @property
    @abstractmethod
    def place(self) -> str:
        """Where it lies: the same wherever two stores are one, whatever they are called."""

    @property
    @abstractmethod
    def folder(self) -> str | None:
        """The folder that it lies in, if that is one of this machine."""

    @property
    def tolerance(self) -> timedelta:
        """How long what is due may wait before `keepfor check` fails."""
        return LAG

    @abstractmethod
    def policy(self) -> Policy:
        """What it is held to."""

    @abstractmethod
    def in_parts(self) -> Sequence[str]:
        """What it is held to in words, the parts of a sentence; none where nothing ever goes."""

    @property
    def degraded(self) -> str | None:
        """What makes it slower and slower, if anything does; it is no error."""
        return None

    @property
    def keeps_orphans(self) -> bool:
        """Whether what hangs on rows that are gone is left there."""
        return False


def says_nothing(section: StoreSection) -> bool:
    """Whether no bound is given at all, not even that there is none."""
    return section.model_fields_set.isdisjoint(BOUNDS)


def refuse_a_floor_above(max_count: int | None, keep_last: int) -> None:
    """Raise where the newest that never go would be more than may stay."""
    if max_count is not None and keep_last > max_count:
        raise ValueError(
            f"keep_last ({keep_last}) is above max_count ({max_count}). "
            "Lower the one or raise the other."
        )


def keys_of(section: type[Section]) -> list[str]:
    """The keys that may be written in a section, those that stand for others included."""
    keys = list(section.model_fields)
    for key, (meant, _, _) in STAND_INS.items():
        if meant in keys:
            keys.insert(keys.index(meant) + 1, key)
    return [*keys, "preset"] if "kind" in keys else keys
