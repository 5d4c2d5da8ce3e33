"""The configuration for people and editors: what is in force, its JSON Schema, a first file."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

from keepfor.config.document import scalar
from keepfor.config.loading import Config
from keepfor.config.models import Settings

#: Words that mean themselves in any place of a line of YAML.
_BARE = re.compile(r"\w[\w./-]*", re.ASCII)

INIT = """\
# keepfor holds each store below to how long it may keep what it holds.
#   keepfor plan     shows what would go; nothing is touched
#   keepfor apply    does it
#   keepfor config show    says what is in force, and where each value came from
# Any setting can be overridden: KEEPFOR_STORES__RECALL__KEEP_FOR=30d keepfor plan

stores:
  recall:                       # a name of your own: small letters, digits, underscores
    kind: ledger                # an append-only JSONL file
    path: recall-history.jsonl  # relative to this file; ~ and $VAR expand
    time: ts                    # the field that holds a row's time; meta.ts reaches into objects
    keep_for: 90d               # 12h, 30min, 1d12h, 2w, P90D; forever says never on purpose

    # What else can be said, with what holds if it is not:
    # max_age_days: 90          # in place of keep_for, a number of days; none
    # max_bytes: 25MiB          # a ceiling, at which the oldest rows go whatever their age; none
    # keep_last: 0              # how many of the newest rows never go
    # unit: ms                  # what a time that is a number counts: s, ms, us or ns; none
    # timezone: UTC             # the zone of a time that names none
    # unreadable: drop          # or keep: rows that no reader can use
    # breaker: 0.5              # the share of ten rows or more that one sweep may delete; or off
    # grace: 24h                # how long a row may outstay keep_for before `keepfor check` fails
    # interval: 1h              # how often it is swept in the background
    # interval_seconds: 3600    # in place of interval, a number of seconds; none

  # A directory with one file per run, <runId>.jsonl:
  # runs:
  #   kind: runs
  #   path: rem-runs
  #   max_count: 200            # the oldest above it go, whatever their age; or off
  #   time: name                # or mtime, or the field of an entry that holds a run's time
  #   grace: 1h                 # how long after its last change a run counts as being written

  # The rows of a database's table, SQLite or PostgreSQL, with what hangs on them:
  # audit:
  #   kind: table
  #   url: sqlite:///app.sqlite3    # or postgresql://app:${DB_PASSWORD}@host/app
  #   table: audit_log
  #   key: id                   # a list, if it takes several columns; its primary key if left out
  #   time: ts
  #   type: event_type          # so that rules can name a type
  #   keep_for: 90d
  #   rules:
  #     - {type: policy.denied, name: denials, keep_for: 365d}
  #     - {type: debug, max_age: 7d}
  #     - {type: consent.given, action: keep}
  #   dependents:
  #     - {table: semantic_chunks, column: audit_log_id}
  #   orphans: keep             # or delete: what hangs on rows that are gone already
  #   record_sweeps: {type: memory.retention_sweep, payload: payload, when: always}

  # Notes with frontmatter, and the sessions that they were made from:
  # notes:
  #   kind: entities
  #   path: .evolve             # the folder that holds both
  #   notes: entities           # the folder of notes below it; . for itself
  #   pattern: "*.md"           # which files in it are notes
  #   sessions: trajectories    # the folder of sessions; or off
  #   session_pattern: "*"      # which files in that are sessions
  #   ignore: [subscribed]      # folders of notes that are out of scope
  #   default_type: guideline   # of a note that names no type and lies in no folder
  #   session_type: trajectory  # of a session
  #   clock: modified           # or the frontmatter key that holds a note's date
  #   fallback: off             # of such a key: or modified, which stands in where it is missing
  #   access_log: audit.log     # tells which items were recalled; or off
  #   record: false             # whether that log is told of every flag and every deletion
  #   rules:                    # the first that matches decides; or the file that has them instead:
  #     - name: unused          # rules_from: evolve.config.yaml
  #       type: guideline       # or entity_type: guideline
  #       max_unused: 180d      # or max_unused_days: 180
  #       action: delete        # or flag, or keep
  #       on_missing_access_signal: skip    # or flag, or delete: what no access is known of
  #       after_flagged: 14d    # only what has carried a flag for so long
  #       keep_if_cited: true   # what another note names in supersedes, source or links stays
  #     - {name: pinned, match: {id: guideline/core-*}, action: keep}
  #     - {name: old, type: trajectory, max_age: 365d, action: delete, cascade_derived: true}

  # A known product needs no more than its name; any key beside it overrides the preset.
  # agentm:
  #   preset: agentm
  # caesar:
  #   preset: caesar
  # evolve:
  #   preset: evolve-lite

# trail:
#   keep_for: 90d               # how long the record of what was done is kept

# state_dir: ~/keepfor-state    # the trail, plans and caches; a folder of its own if left out
"""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One setting that is in force.

    Parameters:
        key: its dotted path.
        value: as keepfor.yaml would say it, lists and what holds settings of its own in one line;
            None where there is nothing to say.
        source: where it came from.
    """

    key: str
    value: str | int | float | None
    source: str


def show(config: Config) -> list[Row]:
    """Every setting in force, with where its value came from."""
    sections: dict[str, Any] = {
        f"stores.{name}.": store.model_dump(mode="json") for name, store in config.stores.items()
    }
    sections["trail."] = config.trail.model_dump(mode="json")
    sections[""] = {"state_dir": str(config.state_dir)}
    return [
        Row(key=f"{prefix}{key}", value=_shown(value), source=config.sources[f"{prefix}{key}"])
        for prefix, section in sections.items()
        for key, value in section.items()
    ]


def flow(value: object) -> str:
    """A value in one line, as keepfor.yaml or a variable could say it."""
    match value:
        case dict():
            return f"{{{', '.join(f'{key}: {flow(item)}' for key, item in value.items())}}}"
        case list() | tuple():
            return f"[{', '.join(map(flow, value))}]"
        case str() if _BARE.fullmatch(value) and scalar(value) == value:
            return value
        case _:
            return json.dumps(value, ensure_ascii=False)


def _shown(value: Any) -> str | int | float | None:
    return flow(value) if isinstance(value, bool | dict | list | tuple) else value


def schema() -> dict[str, Any]:
    """The JSON Schema of keepfor.yaml, by which an editor can check one."""
    found = Settings.model_json_schema()
    for section in (found, *found["$defs"].values()):
        for setting in section.get("properties", {}).values():
            # No default is an absence, and `null` would be an unknown value.
            if setting.get("default", ...) is None:
                del setting["default"]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **found}
