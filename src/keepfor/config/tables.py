"""The settings of a table: its rows, the types among them, and what hangs on them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    ConfigDict,
    Field,
    PlainSerializer,
    ValidationInfo,
    field_validator,
    model_validator,
)

from keepfor.config.fields import (
    AgeInDays,
    Column,
    Columns,
    Count,
    Duration,
    Fraction,
    Grace,
    Interval,
    Limit,
    RowType,
    RuleName,
    Several,
    TableName,
    Unit,
    UnlessOff,
    Url,
    Zone,
)
from keepfor.config.sections import (
    BOUNDS,
    INTERVAL,
    LAG,
    Part,
    StoreSection,
    refuse_a_floor_above,
)
from keepfor.policy.rules import Policy, Rule, keep_for, keep_type
from keepfor.times import format_duration

#: The ways to say how long a type is kept.
_AGES = ("keep_for", "max_age", "max_age_days")


def _some_age(schema: dict[str, Any]) -> None:
    schema["anyOf"] = [{"required": [key]} for key in (*_AGES, "action")]


class TypeRule(Part):
    """How long the rows of one type are kept."""

    model_config = ConfigDict(json_schema_extra=_some_age)

    name: RuleName | None = Field(
        default=None, description="What plans and reports call it; the type, if it is left out."
    )
    type: RowType = Field(description="The type of row that it speaks of.")
    keep_for: Duration = Field(
        default=None, description="Rows of this type that are strictly older go; forever, and none."
    )
    max_age: Duration = Field(default=None, description="The same as keep_for.")
    max_age_days: AgeInDays = Field(
        default=None, description="The same as keep_for, as a number of days."
    )
    action: Literal["delete", "keep"] = Field(
        default="delete", description="keep stands in place of an age: none of them ever goes."
    )

    @property
    def called(self) -> str:
        """What plans and reports call it."""
        return self.name or self.type

    @property
    def age(self) -> timedelta | None:
        """How old such a row may get; None for any age."""
        return self.keep_for or self.max_age or self.max_age_days

    def rules(self) -> tuple[Rule, ...]:
        """What it comes to: no later rule takes what it keeps."""
        return keep_type(self.called, self.type, self.age)

    @model_validator(mode="after")
    def _says_when(self) -> TypeRule:
        said = [key for key in _AGES if key in self.model_fields_set]
        if len(said) > 1:
            raise ValueError(f"{' and '.join(said)} say the same. Leave all but one out.")
        if self.action == "keep" and said:
            raise ValueError(f"`action: keep` and {said[0]} both say for how long. Leave one out.")
        if self.action == "delete" and not said:
            raise ValueError(
                "it does not say for how long. Write `keep_for: 365d`, or `action: keep` for ever."
            )
        if self.age is None and "action" in self.model_fields_set and said:
            raise ValueError("`action: delete` with forever deletes nothing. Leave the action out.")
        return self


class Dependent(Part):
    """A table of which the rows go with the row that they hang on."""

    table: TableName = Field(description="The table; or schema and table.")
    column: Columns = Field(
        description="The column that holds the key of the row above; of a key of several columns, "
        "a list in the same order."
    )
    key: Columns = Field(
        default=(), description="Its own key, for what hangs on it; left out, its primary key."
    )
    dependents: Annotated[tuple[Dependent, ...], Several] = Field(
        default=(), description="What hangs on its rows in turn."
    )

    @field_validator("dependents")
    @classmethod
    def _fit(cls, below: tuple[Dependent, ...], info: ValidationInfo) -> tuple[Dependent, ...]:
        _refuse_odd_keys(below, info)
        return below


class RecordSweeps(Part):
    """The row that each sweep leaves in the table itself."""

    type: RowType = Field(description="What stands in its type column.")
    payload: Column = Field(description="The column that takes what the sweep did, as JSON.")
    when: Literal["always", "deleted"] = Field(
        default="always", description="After every sweep, or only after one that deleted rows."
    )


def _off_for_null(schema: dict[str, Any]) -> None:
    # `null` is an absence, and would be refused.
    schema["anyOf"] = [{"const": "off"}, schema["anyOf"][0]]


class Table(StoreSection):
    """The rows of a database's table, and what hangs on them."""

    LIES_AT: ClassVar[str] = "url"
    MAKES_FOLDER: ClassVar[str] = "keepfor makes no database"

    kind: Literal["table"] = Field(description="What kind of store this is.")
    url: Url = Field(
        description="The database: an SQLite file, relative to this one, where ~ and $VAR expand; "
        "or a PostgreSQL server. ${VAR} is filled in from the environment, a password as it is.",
        examples=["sqlite:///caesar.sqlite3", "postgresql://caesar:${DB_PASSWORD}@db/caesar"],
    )
    table: TableName = Field(
        description="The table; or schema and table.", examples=["audit_log", "public.audit_log"]
    )
    key: Columns = Field(
        default=(),
        description="The column that tells a row from all others, or a list of several; left out, "
        "the table's primary key.",
        examples=["id"],
    )
    time: Column = Field(description="The column that holds a row's time.", examples=["ts"])
    type: Column | None = Field(
        default=None,
        description="The column that holds a row's type, so that rules can name one.",
        examples=["event_type"],
    )
    unit: Unit = Field(
        default=None,
        description="What a time that is a number counts since 1970; left out, the numbers tell.",
    )
    timezone: Zone = Field(
        default="UTC",
        description="The zone of a time that names none.",
        examples=["UTC", "Europe/Berlin"],
    )
    keep_for: Duration = Field(
        default=None,
        description="Rows strictly older than this go, unless a rule speaks of their type; "
        "forever, and none goes by its age.",
    )
    max_count: Limit = Field(
        default=None,
        description="How many rows may stay: above it the oldest go, whatever their age; or off.",
    )
    keep_last: Count = Field(default=0, description="How many of the newest rows never go.")
    rules: Annotated[tuple[TypeRule, ...], Several] = Field(
        default=(), description="How long the rows of some types are kept, a rule for each type."
    )
    dependents: Annotated[tuple[Dependent, ...], Several] = Field(
        default=(), description="The tables of which rows go with the row that they hang on."
    )
    orphans: Literal["keep", "delete"] = Field(
        default="keep",
        description="What happens to rows of dependents whose own row is gone already.",
    )
    record_sweeps: Annotated[
        RecordSweeps | None, UnlessOff, PlainSerializer(lambda record: record or "off")
    ] = Field(
        default=None,
        description="The row that each sweep leaves in the table itself; or off.",
        json_schema_extra=_off_for_null,
    )
    breaker: Fraction = Field(
        default=0.5,
        description="The largest share of ten rows or more that one sweep may delete; or off.",
    )
    grace: Grace = Field(
        default=LAG,
        description="How long a row may outstay its policy before `keepfor check` fails.",
    )
    interval: Interval = Field(
        default=INTERVAL, description="How often it is swept in the background."
    )

    @property
    def place(self) -> str:
        return f"{self.url.place}#{self.table}"

    @property
    def folder(self) -> str | None:
        return os.path.dirname(self.url.file) if self.url.file else None

    @property
    def tolerance(self) -> timedelta:
        return self.grace

    @property
    def keeps_orphans(self) -> bool:
        return self.orphans == "keep"

    def policy(self) -> Policy:
        by_type = [rule for typed in self.rules for rule in typed.rules()]
        return Policy(
            rules=(*by_type, *keep_for(self.keep_for)),
            max_count=self.max_count,
            keep_last=self.keep_last,
            breaker=self.breaker,
        )

    def in_parts(self) -> Sequence[str]:
        ages = [rule.age for rule in self.rules]
        parts = []
        if self.keep_for is not None:
            parts.append(f"rows older than {format_duration(self.keep_for)} go")
        elif any(ages):
            parts.append("rows go by their type alone")
        if self.max_count is not None:
            parts.append(f"above {self.max_count} the oldest go")
        if not parts:
            return []
        by_type = [
            f"{rule.type} after {format_duration(age)}" if age else f"{rule.type} for ever"
            for rule, age in zip(self.rules, ages, strict=True)
        ]
        return [f"{parts[0]}{self._with()}", *by_type, *parts[1:]]

    def _with(self) -> str:
        *others, last = list(dict.fromkeys(each.table for each in _all(self.dependents))) or [""]
        if not last:
            return ""
        return f", with their {' and '.join([', '.join(others), last] if others else [last])}"

    @field_validator("rules")
    @classmethod
    def _one_for_each_type(
        cls, rules: tuple[TypeRule, ...], info: ValidationInfo
    ) -> tuple[TypeRule, ...]:
        if rules and info.data.get("type", "") is None:
            raise ValueError(
                "rules name types, and the store does not say which column holds them. "
                "Write `type: event_type` above them."
            )
        types = [rule.type for rule in rules]
        names = [own.name for rule in rules for own in rule.rules()]
        for type_ in types:
            if types.count(type_) > 1:
                what = f"{types.count(type_)} of them speak of the type {type_!r}."
                raise ValueError(f"{what} Leave all but one out.")
        for name in names:
            if names.count(name) > 1 or name == "keep_for":
                what = f"the name {name!r} is taken already."
                raise ValueError(f"{what} Give each rule a name of its own.")
        return rules

    @field_validator("dependents")
    @classmethod
    def _hang_on_others(
        cls, dependents: tuple[Dependent, ...], info: ValidationInfo
    ) -> tuple[Dependent, ...]:
        _refuse_odd_keys(dependents, info)
        links = [(each.table, each.column) for each in _all(dependents)]
        for table, columns in links:
            if table == info.data.get("table"):
                raise ValueError(
                    f"{table} is the store's own table, whose rows go by their age. Leave it out."
                )
            if links.count((table, columns)) > 1:
                what = f"{table} stands in them twice with the column {', '.join(columns)}."
                raise ValueError(f"{what} Leave one out.")
        _refuse_circles(dependents, ())
        return dependents

    @field_validator("record_sweeps")
    @classmethod
    def _has_a_type(cls, record: RecordSweeps | None, info: ValidationInfo) -> RecordSweeps | None:
        if record and info.data.get("type", "") is None:
            raise ValueError(
                "the row of a sweep has a type, and the store does not say which column holds it. "
                "Write `type: event_type` above it."
            )
        return record

    @model_validator(mode="after")
    def _says_when(self) -> Table:
        said = self.model_fields_set.intersection(BOUNDS)
        if not said or (said == {"rules"} and not any(rule.age for rule in self.rules)):
            raise ValueError(
                "nothing would ever be removed. Write `keep_for: 90d`, `max_count: 100000` or "
                "`rules` with ages; `keep_for: forever` says never on purpose."
            )
        refuse_a_floor_above(self.max_count, self.keep_last)
        return self


def _all(dependents: Sequence[Dependent]) -> Iterator[Dependent]:
    for each in dependents:
        yield each
        yield from _all(each.dependents)


def _refuse_odd_keys(dependents: Sequence[Dependent], info: ValidationInfo) -> None:
    """Raise where one has more or fewer columns than the key that they hold."""
    key, table = info.data.get("key", ()), info.data.get("table")
    for each in dependents:
        if key and len(each.column) != len(key):
            raise ValueError(
                f"{each.table} has {len(each.column)} in `column`, and the key of {table} has "
                f"{len(key)}. Write as many, in the same order."
            )


def _refuse_circles(dependents: Sequence[Dependent], above: tuple[str, ...]) -> None:
    for each in dependents:
        if each.table in above:
            what = f"{each.table} hangs on itself."
            raise ValueError(f"{what} Name each table once on the way down.")
        _refuse_circles(each.dependents, (*above, each.table))
