"""The sample of caesar's database: 600 audit rows, 337 of them with an embedding."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

_SAMPLE = Path(__file__).parent / "data" / "caesar" / "caesar.sqlite3"

#: 90 days before it is 2026-04-27: 26 days of July, 30 of June, 31 of May and 3 of April.
NOW = datetime(2026, 7, 26, tzinfo=UTC)
#: Of its 600 rows 150 are older than that, and of their 337 embeddings 82 hang on those.
GONE, GONE_CHUNKS, LEFT, LEFT_CHUNKS = 150, 82, 450, 255

Rows = dict[str, list[tuple[Any, ...]]]


def rebuild(folder: Path) -> Path:
    """Lays the database out in a folder, at rest."""
    folder.mkdir(parents=True, exist_ok=True)
    return Path(shutil.copyfile(_SAMPLE, folder / "caesar.sqlite3"))


def rows(path: Path) -> Rows:
    """Every row of every table, past the code under test; and all of it is sound."""
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        return {
            name: connection.execute(f'SELECT * FROM "{name}" ORDER BY 1').fetchall()
            for (name,) in names.fetchall()
        }


def swept(before: Rows) -> Rows:
    """What 90 days leave of the sample, without the row that a sweep leaves."""
    gone = {row[0] for row in before["audit_log"] if row[1] < "2026-04-27"}
    assert len(gone) == GONE
    return before | {
        "audit_log": [row for row in before["audit_log"] if row[0] not in gone],
        "semantic_chunks": [row for row in before["semantic_chunks"] if row[1] not in gone],
    }
