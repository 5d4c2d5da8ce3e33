"""`recent`: what the newest runs of a directory say last."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from keepfor.cli.blocks import Block, Line, Table
from keepfor.cli.documents import Answer
from keepfor.cli.invocation import Invocation
from keepfor.errors import ConfigError

#: What is shown of a run where it is there, unless something else is asked for.
FIELDS = ("runId", "outcome", "wallClockMs", "cycleOverflowRatio", "cycleOverflowSignal")

_ABSENT = object()


def recent(run: Invocation, name: str, count: int = 10, fields: str | None = None) -> Answer:
    """Show what the newest runs say last, the newest first. Writes nothing.

    Parameters:
        name: the store's.
        count: how many runs at the most.
        fields: what to show of each, separated by commas; None for what is usual.

    Returns:
        The document has `store`, `fields` and `runs`: for each run an object with those of the
        fields that it has.
    """
    wanted = _fields(fields)
    entries = run.runs(name).recent(count)
    projected = [_projected(entry, wanted) for entry in entries]
    shown = [
        field for field in wanted if fields is not None or any(field in said for said in projected)
    ]
    run.out.show(*_described(shown, projected))
    return Answer(verb="recent", facts={"store": name, "fields": shown, "runs": projected})


def _fields(text: str | None) -> Sequence[str]:
    if text is None:
        return FIELDS
    fields = list(dict.fromkeys(field.strip() for field in text.split(",")))
    if not all(part for field in fields for part in field.split(".")):
        raise ConfigError(
            where="--fields",
            what=f"{text!r} names no fields.",
            fix="Write their names, such as runId,outcome; at.end reaches into an object.",
        )
    return fields


def _projected(entry: Mapping[str, Any], fields: Sequence[str]) -> dict[str, Any]:
    found = {field: _value(entry, field) for field in fields}
    return {field: value for field, value in found.items() if value is not _ABSENT}


def _value(entry: object, field: str) -> object:
    # A field may have a dot in its own name.
    if isinstance(entry, dict) and field in entry:
        return entry[field]
    for key in field.split("."):
        if not isinstance(entry, dict) or key not in entry:
            return _ABSENT
        entry = entry[key]
    return entry


def _described(fields: Sequence[str], runs: Sequence[Mapping[str, Any]]) -> list[Block]:
    if not runs:
        return [Line("There are no runs that can be read.", "faint")]
    if not fields:
        return [Line("None of the usual fields is there; name some with --fields.", "warn")]
    return [Table(list(fields), [[_cell(run, field) for field in fields] for run in runs])]


def _cell(run: Mapping[str, Any], field: str) -> str:
    if field not in run:
        return "-"
    value = run[field]
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
