"""Recall events are written in the shape that the real program writes, and found again."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from keepfor import RecallLedger
from tests.writers.build import NOW, Clock, ago, rows, write

SAMPLE = Path(__file__).parents[1] / "data" / "agentm" / "recall-history.jsonl"
LINES = SAMPLE.read_bytes().splitlines(keepends=True)


@pytest.fixture
def ledger(path: Path, clock: Clock) -> RecallLedger:
    return RecallLedger(path, keep_for="90d", clock=clock)


@pytest.mark.parametrize("number", [*range(0, 600, 37), 150, 151, 519, 566, 598, 599])
def test_a_real_row_recorded_again_is_the_same_bytes(
    path: Path, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the real program recorded, recorded here, gives its very line."""
    row = json.loads(LINES[number])

    class Digest:
        """Stands for the hash of a query of which only the hash is known."""

        def __init__(self, data: bytes) -> None:
            assert data == b"the query"

        def hexdigest(self) -> str:
            return str(row["query_hash"]) + "0" * 48

    monkeypatch.setattr("keepfor.writers.recall.sha256", Digest)
    shuffled = [dict(reversed(hit.items())) for hit in row["hits"]] if "hits" in row else None
    RecallLedger(path, keep_for="forever").record(
        "the query", row["hit_slugs"], hits=shuffled, now=row["ts"]
    )
    assert path.read_bytes() == LINES[number]


@pytest.mark.parametrize(
    ("query", "digits"),
    [
        # printf 'how do we name branches?' | sha256sum, and so on.
        ("how do we name branches?", "330b784d99bbe950"),
        ("Wie heißt das? 😀", "4d9bb721986753b0"),
        ("", "e3b0c44298fc1c14"),
    ],
)
def test_the_query_is_written_as_a_hash_only(
    path: Path, ledger: RecallLedger, query: str, digits: str
) -> None:
    """Of the query, the first 16 hex digits of its SHA-256 reach the disk, and nothing else."""
    ledger.record(query, [])
    (row,) = rows(path)
    assert row["query_hash"] == digits
    assert set(row) == {"hit_count", "hit_slugs", "query_hash", "ts"}
    assert query == "" or query[:4].encode() not in path.read_bytes()


def test_a_query_with_a_lone_surrogate_is_hashed_too(path: Path, ledger: RecallLedger) -> None:
    """Text that is no proper Unicode, as a terminal may hand it over, is no reason to fail."""
    ledger.record("caf\udce9", [])
    expected = hashlib.sha256(b"caf\xed\xb3\xa9").hexdigest()[:16]
    assert rows(path)[0]["query_hash"] == expected


def test_evidence_is_left_out_where_it_was_not_captured(path: Path, ledger: RecallLedger) -> None:
    """No `hits` is no key; an empty one is an empty list."""
    ledger.record("q", ["naming"])
    ledger.record("q", [], hits=[])
    first, second = rows(path)
    assert "hits" not in first
    assert second["hits"] == []


def test_any_iterable_of_slugs_and_hits_will_do(path: Path, ledger: RecallLedger) -> None:
    """Generators and tuples are read once, and counted."""
    hits: Any = ({"slug": slug, "rank": rank} for rank, slug in enumerate("ab", 1))
    ledger.record("q", (slug for slug in ("a", "b")), hits=hits)
    (row,) = rows(path)
    assert (row["hit_count"], row["hit_slugs"]) == (2, ["a", "b"])
    assert row["hits"] == [{"rank": 1, "slug": "a"}, {"rank": 2, "slug": "b"}]


def test_the_time_is_the_clock_s_unless_it_is_given(path: Path, ledger: RecallLedger) -> None:
    """A row's time is the present, or the instant that was handed over, in UTC."""
    ledger.record("q", [])
    ledger.record("q", [], now="2026-07-20T02:00:00+02:00")
    ledger.record("q", [], now=datetime(2026, 7, 21, 8, 30, 0, 5, UTC))
    assert [row["ts"] for row in rows(path)] == [
        "2026-07-26T00:00:00+00:00",
        "2026-07-20T00:00:00+00:00",
        "2026-07-21T08:30:00.000005+00:00",
    ]


def test_the_time_goes_where_it_will_be_looked_for(path: Path, clock: Clock) -> None:
    """A dotted `time` is written as objects within objects, so that the row can expire."""
    ledger = RecallLedger(path, keep_for="90d", time="meta.at", clock=clock)
    ledger.record("q", [], now="2026-01-01")
    ledger.record("q", [], now="2026-07-01")
    ledger.record("q", [])
    assert [row["meta"]["at"] for row in rows(path)] == [
        "2026-07-01T00:00:00+00:00",
        "2026-07-26T00:00:00+00:00",
    ]
    assert ledger.count("2026-07-01").recalls == 2


def test_recording_prunes_as_appending_does(path: Path, ledger: RecallLedger) -> None:
    """A recall event is an append like any other: what has expired goes with it."""
    write(path, [ago(100), ago(10)])
    ledger.record("q", ["naming"])
    assert [row["ts"][:10] for row in rows(path)] == ["2026-07-16", "2026-07-26"]


def test_a_row_stays_when_its_note_is_gone(
    path: Path, ledger: RecallLedger, tmp_path: Path
) -> None:
    """Age alone decides; that a note was renamed or deleted since is no reason to forget it."""
    note = tmp_path / "naming.md"
    note.touch()
    ledger.record("q", ["naming"], hits=[{"slug": "naming", "path": str(note)}])
    note.unlink()
    ledger.prune()
    assert ledger.trace("naming").matches[0].path == str(note)


@pytest.mark.parametrize("best_effort", [False, True])
def test_a_failed_record_is_swallowed_only_if_asked(tmp_path: Path, best_effort: bool) -> None:
    """`record` raises where `append` would, and is best effort where that is."""
    ledger = RecallLedger(tmp_path, keep_for="90d", best_effort=best_effort)
    if best_effort:
        ledger.record("q", [])
        assert ledger.failed_appends == 1
    else:
        with pytest.raises(IsADirectoryError):
            ledger.record("q", [])


def test_what_a_reader_asks_writes_nothing(path: Path, clock: Clock) -> None:
    """`count` and `trace` leave every byte and time of the ledger as it was."""
    shutil.copyfile(SAMPLE, path)
    before = (path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_ino)
    ledger = RecallLedger(path, keep_for="7d", clock=clock)
    ledger.count("2026-07-01")
    ledger.trace("index-layout")
    ledger.trace("never")
    assert (path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_ino) == before
    assert os.listdir(path.parent) == [path.name]


def test_the_real_ledger_is_counted_and_traced(path: Path, clock: Clock) -> None:
    """Counts and evidence are those of the real ledger, read off it by hand."""
    shutil.copyfile(SAMPLE, path)
    ledger = RecallLedger(path, keep_for="90d", clock=clock)
    week = ledger.count("2026-07-19")
    assert (week.recalls, week.hits) == (37, 25)
    found = ledger.trace("index-layout", n=2)
    assert (found.slug, found.empty, found.explanation) == ("index-layout", None, "")
    last, before = found.matches
    assert last.at == datetime(2026, 7, 25, 23, 59, 59, tzinfo=UTC)
    assert (last.query_hash, last.slug) == ("d5e413a68d802e46", "index-layout")
    assert last.path == "personal/_always-load/index-layout.md"
    assert (last.sim, last.keyword, last.combined, last.rank) == (0.3688, 6.352, 0.001744, 1)
    assert (last.lifecycle_tier, last.decay_score) == ("stable", 0.9651)
    assert before.at == datetime(2026, 6, 22, 0, 13, 30, 594768, UTC)
    assert (before.path, before.rank, before.sim) == ("personal/index-layout.md", 2, 0.4329)


def test_what_is_recorded_is_found(ledger: RecallLedger) -> None:
    """A recorded event comes back from `trace` and `count` as it went in."""
    ledger.record("q", ["a", "b"], hits=[{"slug": "a", "path": "a.md", "sim": 0.5, "rank": 1}])
    assert (ledger.count(NOW).recalls, ledger.count(NOW).hits) == (1, 2)
    (match,) = ledger.trace("a").matches
    assert (match.at, match.path, match.sim, match.rank, match.keyword) == (
        NOW,
        "a.md",
        0.5,
        1,
        None,
    )
    assert ledger.trace("b").empty == "no evidence"
