"""The sample of a store of notes and sessions, as evolve-lite writes it: 40 notes, 14 sessions."""

from __future__ import annotations

import json
import os
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

_SAMPLE = Path(__file__).parent / "data" / "evolve"

#: The instant that the sample's known decisions are for.
NOW = datetime(2026, 7, 26, tzinfo=UTC)
#: Its rules, as `evolve.config.yaml` has them.
RULES = [
    {
        "name": "unused-guidelines",
        "entity_type": "guideline",
        "max_unused_days": 180,
        "action": "delete",
        "on_missing_access_signal": "skip",
    },
    {
        "name": "stale-guidelines",
        "entity_type": "guideline",
        "max_age_days": 90,
        "action": "flag",
    },
    {
        "name": "old-sessions",
        "entity_type": "trajectory",
        "max_age_days": 365,
        "action": "delete",
        "cascade_derived": True,
    },
]


def rebuild(folder: Path) -> Path:
    """Lays the sample out in a folder, each file with its own mtime; the root of the store."""
    shutil.copytree(_SAMPLE / ".evolve", folder / ".evolve")
    shutil.copyfile(_SAMPLE / "evolve.config.yaml", folder / "evolve.config.yaml")
    root = folder / ".evolve"
    for name, instant in json.loads((_SAMPLE / "mtimes.json").read_text()).items():
        os.utime(root / name, (datetime.fromisoformat(instant).timestamp(),) * 2)
    return root


def expected() -> list[dict[str, Any]]:
    """What is known to be right, of each item that any rule matched; `skip` spares it."""
    decisions: list[dict[str, Any]] = json.loads((_SAMPLE / "expected.json").read_text())[
        "decisions"
    ]
    return decisions


def expected_ids(action: str) -> set[str]:
    """The items of which that is to come."""
    return {said["id"] for said in expected() if said["action"] == action}


def files(root: Path) -> dict[str, tuple[bytes, int]]:
    """Every file of the store, with its bytes and its mtime in ns."""
    return {
        str(path.relative_to(root)): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def file_of(id_: str) -> str:
    """The file of an item, below the root of the store."""
    return id_ if id_.startswith("trajectories/") else f"entities/{id_}.md"
