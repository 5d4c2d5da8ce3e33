"""The settings of notes and sessions: where they lie, and the rules that they are held to."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import timedelta
from fnmatch import fnmatchcase
from typing import Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field, ValidationInfo, field_validator, model_validator

from keepfor.config.entityfields import (
    AfterFlagged,
    Clock,
    DaysOld,
    DaysUnused,
    Fallback,
    FileOrOff,
    Floors,
    Folder,
    FolderOrOff,
    Globs,
    ItemType,
    Matches,
    Pattern,
    RuleAge,
    RuleDisuse,
)
from keepfor.config.fields import (
    AnyPath,
    Duration,
    FilePath,
    Fraction,
    Grace,
    Interval,
    Limit,
    RuleName,
    Several,
    Size,
    Truth,
    Zone,
)
from keepfor.config.sections import (
    INTERVAL,
    LAG,
    Part,
    StoreSection,
    refuse_a_floor_above,
    says_nothing,
)
from keepfor.errors import BadPolicy
from keepfor.policy.rules import Policy, Rule, keep_for
from keepfor.sizes import format_size
from keepfor.times import format_duration

#: Keys of a rule that say the same.
_SAME = (("max_age", "max_age_days"), ("max_unused", "max_unused_days"), ("type", "entity_type"))


def _some_threshold(schema: dict[str, Any]) -> None:
    thresholds = [key for pair in _SAME[:2] for key in pair]
    pin = {"required": ["action"], "properties": {"action": {"const": "keep"}}}
    schema["anyOf"] = [*({"required": [key]} for key in thresholds), pin]
    schema["not"] = {"anyOf": [{"required": list(pair)} for pair in _SAME]}


class EntityRule(Part):
    """What matches, by its age or its disuse, and what then happens."""

    model_config = ConfigDict(json_schema_extra=_some_threshold)

    name: RuleName = Field(description="What plans and reports call it.")
    type: ItemType | None = Field(
        default=None, description="The type of item that it speaks of; left out, every type."
    )
    entity_type: ItemType | None = Field(default=None, description="The same as type.")
    match: Matches = Field(
        default={},
        description="What it speaks of besides: under id a pattern, where * is any run of "
        "characters; under any other key, what the frontmatter has to say there.",
    )
    max_age: RuleAge = Field(default=None, description="It matches what is strictly older.")
    max_age_days: DaysOld = Field(
        default=None, description="The same as max_age, as a number of days."
    )
    max_unused: RuleDisuse = Field(
        default=None, description="It matches what was last recalled strictly longer ago."
    )
    max_unused_days: DaysUnused = Field(
        default=None, description="The same as max_unused, as a number of days."
    )
    after_flagged: AfterFlagged = Field(
        default=None,
        description="A delete takes only what has carried a flag, of whatever rule, for strictly "
        "longer.",
    )
    action: Literal["flag", "delete", "keep"] = Field(
        default="flag",
        description="What happens to what matches; keep pins it, and needs no threshold.",
    )
    on_missing_access_signal: Literal["skip", "flag", "delete"] = Field(
        default="skip",
        description="What a delete on disuse does where no access was ever recorded; skip spares "
        "the item.",
    )
    cascade_derived: Truth = Field(
        default=False, description="Whether a deleted session takes along what was made from it."
    )
    keep_if_cited: Truth = Field(
        default=False, description="Whether a delete spares what an item that stays names."
    )

    def rule(self) -> Rule:
        """What it comes to."""
        return Rule(
            name=self.name,
            type=self.type or self.entity_type,
            match_id=self.match.get("id"),
            match_fields={key: said for key, said in self.match.items() if key != "id"},
            max_age=self.max_age or self.max_age_days,
            max_unused=self.max_unused or self.max_unused_days,
            after_flagged=self.after_flagged,
            action=self.action,
            on_missing_access_signal=self.on_missing_access_signal,
            cascade_derived=self.cascade_derived,
            keep_if_cited=self.keep_if_cited,
        )

    @model_validator(mode="after")
    def _means_something(self) -> EntityRule:
        for pair in _SAME:
            if self.model_fields_set.issuperset(pair):
                raise ValueError(f"{' and '.join(pair)} say the same. Leave one out.")
        try:
            self.rule()
        except BadPolicy as error:
            raise ValueError("{what} {fix}".format_map(error.facts)) from None
        return self


class Entities(StoreSection):
    """A tree of notes, and the sessions that they were made from."""

    MAKES_FOLDER: ClassVar[str] = "keepfor makes none, the agent that writes notes does"
    BOUND_IT: ClassVar[str] = "Write rules, or name the file that has them with `rules_from`."

    kind: Literal["entities"] = Field(description="What kind of store this is.")
    path: AnyPath = Field(
        description="The folder that holds both. Relative to this file; ~ and $VAR expand.",
        examples=[".evolve"],
    )
    notes: Folder = Field(
        default="entities", description="The folder of notes below it; . for itself."
    )
    pattern: Pattern = Field(default="*.md", description="Which files in it are notes, by name.")
    sessions: FolderOrOff = Field(
        default="trajectories", description="The folder of sessions below path; or off."
    )
    session_pattern: Pattern = Field(
        default="*", description="Which files in that are sessions, by name."
    )
    ignore: Globs = Field(
        default=("subscribed",),
        description="Folders below that of the notes that are out of scope; * stands for any run "
        "of characters.",
    )
    default_type: ItemType = Field(
        default="guideline",
        description="The type of a note that names none and lies in no folder.",
    )
    session_type: ItemType = Field(default="trajectory", description="The type of a session.")
    clock: Clock = Field(
        default="modified",
        description="What tells a note's age: modified (its file's mtime), or the frontmatter key "
        "that holds the date.",
        examples=["created_at"],
    )
    fallback: Fallback = Field(
        default=None,
        description="Of a key under clock, what stands in where it is missing or cannot be read: "
        "modified, or off, so that the age is unknown and the note stays.",
        json_schema_extra={"default": "off"},
    )
    timezone: Zone = Field(
        default="UTC",
        description="The zone of a time that names none.",
        examples=["UTC", "Europe/Berlin"],
    )
    access_log: FileOrOff = Field(
        default="audit.log",
        description="The log below path that tells which items were recalled; or off.",
    )
    record: Truth = Field(
        default=False, description="Whether that log is told of every flag and every deletion."
    )
    rules: Annotated[tuple[EntityRule, ...], Several] = Field(
        default=(), description="What is flagged, deleted or kept: the first that matches decides."
    )
    rules_from: FilePath = Field(
        default=None,
        description="The file that has them instead, YAML or JSON: under rules, or under "
        "retention and then rules.",
        examples=["evolve.config.yaml"],
    )
    keep_for: Duration = Field(
        default=None,
        description="What no rule matches goes once it is strictly older; forever, and none does.",
    )
    max_count: Limit = Field(
        default=None,
        description="How many items may stay: above it the oldest go, whatever their age; or off.",
    )
    max_bytes: Size = Field(
        default=None, description="How large all together may be: above it the oldest go."
    )
    keep_last: Floors = Field(
        default=0,
        description="How many of the newest items never go; or how many of each type, by type.",
    )
    breaker: Fraction = Field(
        default=0.5,
        description="The largest share of ten items or more that one sweep may delete; or off.",
    )
    grace: Grace = Field(
        default=LAG,
        description="How long an item may outstay its policy before `keepfor check` fails.",
    )
    interval: Interval = Field(
        default=INTERVAL, description="How often it is swept in the background."
    )

    @property
    def place(self) -> str:
        return os.path.normpath(os.path.join(os.path.realpath(self.path), self.notes))

    @property
    def folder(self) -> str:
        return str(self.path)

    @property
    def log(self) -> str | None:
        """The file that tells of recalls, if it has one."""
        return self.access_log and os.path.join(os.path.realpath(self.path), self.access_log)

    @property
    def fields(self) -> tuple[str, ...]:
        """The frontmatter keys that rules ask for."""
        return tuple(sorted({key for rule in self.rules for key in rule.match if key != "id"}))

    @property
    def tolerance(self) -> timedelta:
        return self.grace

    @property
    def degraded(self) -> str | None:
        if self.rules or self.keep_for or self.max_count or self.max_bytes:
            return None
        return "it has no rules, so nothing in it is ever flagged or deleted."

    def policy(self) -> Policy:
        by_type = self.keep_last if isinstance(self.keep_last, dict) else {}
        return Policy(
            rules=(*(rule.rule() for rule in self.rules), *keep_for(self.keep_for)),
            max_count=self.max_count,
            max_bytes=self.max_bytes,
            keep_last=self.keep_last if isinstance(self.keep_last, int) else 0,
            keep_last_of=by_type,
            breaker=self.breaker,
        )

    def in_parts(self) -> Sequence[str]:
        parts = [_in_words(rule.rule()) for rule in self.rules]
        if self.keep_for is not None:
            parts.append(f"delete anything else older than {format_duration(self.keep_for)}")
        if self.max_count is not None:
            parts.append(f"above {self.max_count} the oldest go")
        if self.max_bytes is not None:
            parts.append(f"above {format_size(self.max_bytes)} the oldest go")
        return parts

    @field_validator("rules")
    @classmethod
    def _each_with_a_name(cls, rules: tuple[EntityRule, ...]) -> tuple[EntityRule, ...]:
        if not rules:
            raise ValueError("the list is empty. Write a rule below it, or leave the key out.")
        names = [rule.name for rule in rules]
        for name in names:
            if names.count(name) > 1 or name == "keep_for":
                raise ValueError(
                    f"the name {name!r} is taken already. Give each rule a name of its own."
                )
        return rules

    @field_validator("record")
    @classmethod
    def _with_a_log(cls, record: bool, info: ValidationInfo) -> bool:
        if record and info.data.get("access_log", "") is None:
            raise ValueError("there is no log to record in. Name one under access_log.")
        return record

    @model_validator(mode="after")
    def _says_what(self) -> Entities:
        if self.clock != "modified" and "fallback" not in self.model_fields_set:
            raise ValueError(
                f"what counts where a note has no {self.clock} is not said. Write `fallback: "
                "modified`, or `fallback: off`, by which its age is unknown and it stays."
            )
        self._keep_apart()
        if says_nothing(self):
            raise ValueError(
                "nothing would ever be flagged or deleted. Write `rules:` below it, `rules_from:` "
                "with the file that has them, or `keep_for: forever` to say never on purpose."
            )
        if isinstance(self.keep_last, int):
            refuse_a_floor_above(self.max_count, self.keep_last)
        else:
            refuse_a_floor_above(self.max_count, sum(self.keep_last.values()))
        return self

    def _keep_apart(self) -> None:
        """Refuse a file that would be two things at once."""
        notes, sessions = f"{self.notes}/", f"{self.sessions}/"
        if self.sessions and (sessions.startswith(notes) or notes.startswith(sessions)):
            raise ValueError(
                f"the notes lie in {self.notes} and the sessions in {self.sessions}, and one is "
                "in the other. Name two folders beside each other."
            )
        below = "" if self.notes == "." else notes
        if self.access_log and self.access_log.startswith(below):
            parts = self.access_log.removeprefix(below).split("/")
            above = ["/".join(parts[:end]) for end in range(1, len(parts))]
            out = any(part[0] == "." for part in parts) or self.sessions in above
            out = out or any(fnmatchcase(path, glob) for path in above for glob in self.ignore)
            if fnmatchcase(parts[-1], self.pattern) and not out:
                raise ValueError(
                    f"the log {self.access_log} would be a note, by place and pattern. Put it "
                    "elsewhere with access_log, or narrow the pattern."
                )


def _in_words(rule: Rule) -> str:
    """What a rule does, such as `delete guideline unused for 180d`."""
    spans = (("older than", rule.max_age), ("unused for", rule.max_unused))
    said = " or ".join(f"{words} {format_duration(age)}" for words, age in spans if age)
    parts = [" ".join(filter(None, (rule.action, rule.type or "anything", said)))]
    matches = {"id": rule.match_id, **rule.match_fields}
    if of := [f"{key} is {value}" for key, value in matches.items() if value]:
        parts.append(f"where {' and '.join(of)}")
    if rule.after_flagged:
        parts.append(f"once flagged for {format_duration(rule.after_flagged)}")
    if rule.cascade_derived:
        parts.append("with what was made from it")
    if rule.keep_if_cited:
        parts.append("unless it is cited")
    return ", ".join(parts)
