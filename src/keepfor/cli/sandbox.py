"""A sandbox: 120 days of recalls by an agent that never was, the same ones each time."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

from keepfor.writers.recall import RecallLedger

DAYS = 120
EVENTS = 600
#: The note that is traced; it is recalled more often than the others.
SLUG = "retry-policy"

_CONFIG = """\
stores:
  recall:
    kind: ledger
    path: recall-history.jsonl
    time: ts
    keep_for: 90d
state_dir: state
"""
_FOLDERS = {
    "projects/harness": ("cache-paths", "index-layout", "lint-gate", SLUG, "sqlite-wal"),
    "personal": ("decay-clock", "json-lines", "naming", "vault-moves"),
    "desk": ("dedup-marks", "prompt-budget", "release-notes", "test-isolation"),
}
_NOTES = [(slug, f"{folder}/{slug}.md") for folder, slugs in _FOLDERS.items() for slug in slugs]
_WEIGHTS = [3 if slug == SLUG else 1 for slug, _ in _NOTES]


def build(folder: Path, now: datetime) -> Path:
    """Fill a folder with a ledger, and with a configuration that keeps its state there too.

    Parameters:
        folder: an empty one.
        now: the instant that the ledger reaches up to.

    Returns:
        The configuration file.
    """
    ledger = RecallLedger(folder / "recall-history.jsonl", keep_for="forever")
    dice = Random(EVENTS)  # noqa: S311 - nothing is secret here
    step = timedelta(days=DAYS) / EVENTS
    for event in range(EVENTS):
        at = now - timedelta(days=DAYS) + step * (event + dice.random())
        hits = _hits(dice)
        ledger.record(
            f"question {event}",
            [hit["slug"] for hit in hits],
            # As with real ledgers, the oldest rows are from before evidence was captured.
            hits if event >= EVENTS // 4 else None,
            at,
        )
    file = folder / "keepfor.yaml"
    file.write_text(_CONFIG, encoding="utf-8")
    return file


def _hits(dice: Random) -> list[dict[str, Any]]:
    """The notes that surfaced in one recall, the best first, each once."""
    found = dict.fromkeys(dice.choices(_NOTES, _WEIGHTS, k=dice.choice((0, 1, 1, 2, 3))))
    scores = sorted((dice.uniform(0.001, 0.02) for _ in found), reverse=True)
    return [
        {
            "slug": slug,
            "path": path,
            "sim": round(dice.uniform(0.2, 0.95), 4),
            "keyword": round(dice.uniform(0, 9), 3),
            "combined": round(score, 6),
            "rank": rank,
            "lifecycle_tier": dice.choice(("stable", "volatile")),
            "decay_score": round(dice.uniform(0.05, 1), 4),
        }
        for rank, ((slug, path), score) in enumerate(zip(found, scores, strict=True), start=1)
    ]
