"""Makes recall ledgers of any size, always the same ones, with rows like a real agent's."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

NOW = datetime(2026, 7, 26, tzinfo=UTC)
DAYS = 120
KEPT = 90

#: A note that was recalled three times in the last day, hours apart, and never before.
RARE = "rate-limits"
_RARE_HOURS = (20, 13, 6)

_SLUGS = (
    *("cache-paths", "decay-clock", "dedup-marks", "index-layout", "json-lines", "lint-gate"),
    *("naming", "prompt-budget", "release-notes", "retry-policy", "sqlite-wal", "vault-moves"),
)
_FOLDERS = ("desk", "personal", "personal/_always-load", "projects/harness")
#: How many notes surface in a recall; with these a row is of about 230 bytes.
_HITS = (0, 0, 0, 1, 1, 1, 1, 2)
_AVERAGE = 230
_VARIETY = 4096


def write(path: Path, size: int) -> None:
    """Write a ledger of about so many bytes: 120 days, of which a quarter has expired."""
    with path.open("w", encoding="ascii") as file:
        file.writelines(lines(size))


def lines(size: int) -> Iterator[str]:
    """Its lines, in order. Rows of the first 30 days have no evidence, as in the real ledger."""
    dice = random.Random(size)
    bare = [_head(dice, evidence=False) for _ in range(_VARIETY)]
    full = [_head(dice, evidence=True) for _ in range(_VARIETY)]
    rare = _text({"hit_count": 1, "hit_slugs": [RARE], "hits": [_hit(dice, RARE, 1)]})
    count = max(DAYS, size // _AVERAGE)
    step = timedelta(days=DAYS) / count
    rares = {count - int(timedelta(hours=hours) / step) - 1 for hours in _RARE_HOURS}
    start = NOW - timedelta(days=DAYS)
    for number in range(count):
        heads = bare if number < count // 4 else full
        head = rare if number in rares else heads[dice.randrange(_VARIETY)]
        at = start + step * number + timedelta(microseconds=dice.randrange(1000))
        yield f'{head}, "query_hash": "{dice.getrandbits(64):016x}", "ts": "{at.isoformat()}"}}\n'


def recent(now: datetime) -> dict[str, Any]:
    """A row such as a program appends, of that instant."""
    dice = random.Random(0)
    row: dict[str, Any] = json.loads(_text({"hits": [_hit(dice, "naming", 1)]}) + "}")
    return {"hit_count": 1, "hit_slugs": ["naming"], **row, "query_hash": "67b0698950310e31"} | {
        "ts": now.isoformat()
    }


def _head(dice: random.Random, *, evidence: bool) -> str:
    slugs = dice.sample(_SLUGS, dice.choice(_HITS))
    row: dict[str, Any] = {"hit_count": len(slugs), "hit_slugs": slugs}
    if evidence:
        row["hits"] = [_hit(dice, slug, rank) for rank, slug in enumerate(slugs, 1)]
    return _text(row)


def _text(row: dict[str, Any]) -> str:
    return json.dumps(row)[:-1]


def _hit(dice: random.Random, slug: str, rank: int) -> dict[str, Any]:
    return {
        "combined": round(dice.random() / 40, 6),
        "decay_score": round(dice.random(), 4),
        "keyword": round(dice.random() * 20, 3),
        "lifecycle_tier": dice.choice(("stable", "volatile")),
        "path": f"{dice.choice(_FOLDERS)}/{slug}.md",
        "rank": rank,
        "sim": round(dice.random(), 4),
        "slug": slug,
    }
