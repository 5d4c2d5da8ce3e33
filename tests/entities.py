"""Stores of entities in a few words, for the tests that need one."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from keepfor.items import Decision, Item, Outcome
from keepfor.policy.rules import Policy, Rule
from keepfor.stores.entities import EntityStore, entities_at

#: 90 days before it is 2026-04-27 (26 + 30 + 31 + 3 days back).
NOW = datetime(2026, 7, 26, tzinfo=UTC)
#: More than a year before it, more than 90 days, and less.
ANCIENT, OLD, YOUNG = (
    datetime(2025, 1, 1, tzinfo=UTC),
    datetime(2026, 1, 1, tzinfo=UTC),
    datetime(2026, 7, 1, tzinfo=UTC),
)

#: The rules of the sample, which are those that stand in the documentation.
RULES = (
    Rule(
        name="unused-guidelines",
        type="guideline",
        max_unused=timedelta(days=180),
        action="delete",
    ),
    Rule(name="stale-guidelines", type="guideline", max_age=timedelta(days=90), action="flag"),
    Rule(
        name="old-sessions",
        type="trajectory",
        max_age=timedelta(days=365),
        action="delete",
        cascade_derived=True,
    ),
)
POLICY = Policy(rules=RULES, breaker=None)


def note(
    root: Path,
    id_: str,
    text: str | bytes = "---\ntype: guideline\n---\n\nbody\n",
    at: datetime = OLD,
) -> Path:
    """A note of that id, changed last at that time."""
    return _file(root / "entities" / f"{id_}.md", text, at)


def session(root: Path, name: str, at: datetime = OLD) -> Path:
    """A session file of that name."""
    return _file(root / "trajectories" / name, '{"messages": []}\n', at)


def recall(root: Path, id_: str, at: datetime = YOUNG, **more: Any) -> None:
    """A row of the log that says that an item was recalled."""
    row = {"event": "recall", "entities": [id_], "ts": at.isoformat()} | more
    with (root / "audit.log").open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


def scanned(store: EntityStore | Path, **settings: Any) -> dict[str, Item]:
    """What a scan finds, by id."""
    store = store if isinstance(store, EntityStore) else entities_at(store, **settings)
    items = list(store.scan())
    assert [item.id for item in items] == sorted({item.id for item in items})
    return {item.id: item for item in items}


def to(
    action: Any, item: Item, rule: str = "stale", reason: str = "age", **evidence: Any
) -> Decision:
    """The decision to do something to an item, as it was scanned."""
    return Decision(
        id=item.id,
        action=action,
        rule=rule,
        reason=reason,
        evidence=evidence,
        fingerprint=item.fingerprint,
        bytes=item.bytes,
    )


def done(store: EntityStore, *decisions: Decision) -> dict[str, Outcome]:
    """What became of decisions, by id."""
    outcomes = list(store.apply(decisions))
    assert len(outcomes) == len(decisions)
    return {outcome.id: outcome for outcome in outcomes}


def _file(path: Path, text: str | bytes, at: datetime) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    os.utime(path, (at.timestamp(),) * 2)
    return path
