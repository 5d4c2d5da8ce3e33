"""What `--json` prints: one document for each verb, of a form that does not change.

Every document is an object with

- `format`: 1, until something in it changes its meaning or goes; more may be added without notice;
- `verb`: `plan`, `apply`, `run`, `status`, `check`, `explain`, `access`, `trace`, `count`,
  `recent`, `reclaim`, `log`, `config show`, `config schema`, `config init` or `demo`;
- `exit_code`: what the program exits with;

and with what its verb adds; each verb's own function says what. A verb that could not answer at
all prints, in place of that, `format`, `exit_code` and

- `error`: `type` (the error's name, such as `BadConfig`), `message` (for a person), `exit_code`.

Instants are ISO 8601 in UTC (`2026-07-26T00:00:00Z`), durations are numbers of seconds, sizes
numbers of bytes. What is not known, or does not apply, is null. Everything is ASCII: a name that
holds other characters is written in JSON's own escapes.
"""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from keepfor.cli import codes
from keepfor.items import Decision, Report, Tally
from keepfor.plan import Plan, spared

FORMAT = 1

#: The counts that a plan and a report share.
_COUNTS = [name for name in Tally.__struct_fields__ if name != "due"]

#: What a plan says of an item that would go.
_ITEM = ("id", "action", "rule", "reason", "bytes", "evidence")


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What a verb came to.

    Parameters:
        verb: which one it was.
        facts: what its document says beside `format`, `verb` and `exit_code`.
        exit_code: what to exit with.
    """

    verb: str
    facts: dict[str, Any]
    exit_code: int = 0

    def document(self) -> dict[str, Any]:
        """The document for a program."""
        return {"format": FORMAT, "verb": self.verb, "exit_code": self.exit_code, **self.facts}


def encode(document: object) -> str:
    """The document as JSON text that any reader takes."""
    return f"{json.dumps(_plain(document), indent=2, allow_nan=False)}\n"


def failure(kind: str, message: str, exit_code: int) -> dict[str, Any]:
    """The document of a verb that could not answer."""
    error = {"type": kind, "message": message, "exit_code": exit_code}
    return {"format": FORMAT, "exit_code": exit_code, "error": error}


def error(problem: Exception) -> dict[str, Any]:
    """What stands under a store's `error`, where that store alone failed."""
    code = codes.of(problem)
    return {"type": type(problem).__name__, "message": str(problem), "exit_code": code}


def of_plan(plan: Plan) -> dict[str, Any]:
    """What a plan says of its store.

    - `store`, `kind`, `target`: which one, what it is, and its resolved address;
    - `exists`: whether anything is there yet;
    - `now`, `made`: the instant that ages were judged by, and when the plan was made;
    - `cutoff`: rows strictly older are expired;
    - `scanned`, `kept`, `applied`, `skipped`, `failed`: all rows, those that stay, those that would
      go, and two zeros; they add up;
    - `expired`, `unreadable`, `over_ceiling`: why rows would go; they add up to `applied`;
    - `future`, `unknown`, `oversized`: rows among the kept whose time is to come, whose age cannot
      be read, and which are too long to be judged (these are among the unknown);
    - `dependents`, `orphans`: of a table, by the names of other tables, how many of their rows go
      along, and how many hang on rows that are gone already;
    - `bytes_before`, `bytes_after`, `oldest`, `newest`: the size, and the oldest instant that
      stays and the newest that is there; of a table, the size is its database's on disk;
    - `bytes_deleted`: of a table, what the rows that were deleted held, and null in a plan;
    - `lag`: how long the oldest row that the policy would take by age has been due;
    - `breaker`: `limit` (the fraction that may go at once, null when it is off), `share` (the
      fraction that would go), `tripped`;
    - `notes`: sentences that a person should read;
    - `digest`: of the whole plan;
    - `items`, of a store of items only: for each that would go its `id`, `action`, `rule`,
      `reason`, `bytes` and `evidence` (the numbers that it was decided on);
    - `spared`, of notes and sessions only: the same for each that something kept from a rule or a
      ceiling, and for each that could not be judged;
    - `times`, of a table only: how its times are written;
    - `parts`, of a table only: for each rule its `rule`, `type` (null: all that no other speaks
      of), `cutoff`, `count`, and of the oldest and the newest row that goes the keys (`first`,
      `last`, a list of a value for each column) and the instants (`oldest`, `newest`).
    """
    survey = plan.survey
    items = [_item(said) for said in plan.decisions if said.action != "keep"]
    return {
        "store": plan.store,
        "kind": plan.kind,
        "target": plan.target,
        "exists": plan.exists,
        "now": plan.now,
        "made": plan.made,
        "cutoff": survey.cutoff,
        **{name: getattr(survey, name) for name in _COUNTS},
        "lag": survey.lag,
        "breaker": {
            "limit": plan.breaker,
            "share": plan.share,
            "tripped": plan.trips_breaker,
        },
        "notes": survey.notes,
        "digest": plan.digest,
        **({"times": survey.times} if plan.kind == "table" else {}),
        **_of_kind(plan.kind, items, survey.parts),
        **({"spared": list(map(_item, spared(plan)))} if plan.kind == "entities" else {}),
    }


def _item(said: Decision) -> dict[str, Any]:
    return {name: getattr(said, name) for name in _ITEM}


def _of_kind(kind: str, items: object, parts: object) -> dict[str, Any]:
    """What only some kinds of store have."""
    return {"table": {"parts": parts}, "ledger": {}}.get(kind, {"items": items})


def of_report(report: Report) -> dict[str, Any]:
    """What a sweep did: the counts as in a plan, and `rules`, `plan`, `started_by`, `duration`.

    Of a store of items also `items`: for each its `id`, `action`, `rule`, `reason`, `result` and
    `why`; of a table `parts`, as in a plan, with what was to go.
    """
    return {
        "store": report.store,
        "kind": report.kind,
        "target": report.target,
        "now": report.now,
        "cutoff": report.cutoff,
        **{name: getattr(report, name) for name in _COUNTS},
        "rules": report.rules,
        "plan": report.plan,
        "started_by": report.started_by,
        "duration": report.duration,
        "notes": report.notes,
        **_of_kind(report.kind, report.outcomes, report.parts),
    }


def _plain(value: Any) -> Any:
    """The value in the few types that JSON has."""
    match value:
        case datetime():
            return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
        case timedelta():
            return value.total_seconds()
        case float() if not math.isfinite(value):
            return None
        case dict():
            return {str(key): _plain(item) for key, item in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
        case msgspec.Struct():
            return {name: _plain(getattr(value, name)) for name in value.__struct_fields__}
        case Path():
            return str(value)
        case _:
            return value
