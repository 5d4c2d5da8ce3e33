"""Recall events are read back from the end, no further than need be, whatever the rows hold."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepfor.errors import ConfigError, StoreError
from keepfor.recalls import count, trace
from keepfor.stores.ledger import LedgerStore, ledger_at

NOW = datetime(2026, 7, 26, tzinfo=UTC)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "recalls.jsonl"


@pytest.fixture
def store(path: Path) -> LedgerStore:
    return ledger_at(path)


def event(day: int, *slugs: str, evidence: bool = True, **more: Any) -> dict[str, Any]:
    """A recall on that day of July 2026; each note has its day and place for a path."""
    row: dict[str, Any] = {"hit_count": len(slugs), "hit_slugs": list(slugs)}
    if evidence:
        row["hits"] = [
            {"slug": slug, "path": f"{day}/{rank}.md", "rank": rank}
            for rank, slug in enumerate(slugs, 1)
        ]
    return row | {"query_hash": f"{day:016x}", "ts": f"2026-07-{day:02}T00:00:00+00:00"} | more


def write(path: Path, *events: object, ascii_only: bool = True) -> None:
    text = "".join(json.dumps(row, ensure_ascii=ascii_only) + "\n" for row in events)
    path.write_bytes(text.encode("utf-8", "surrogatepass"))


def paths(store: LedgerStore, slug: str, n: int = 3) -> list[str | None]:
    return [match.path for match in trace(store, slug, n, NOW).matches]


def test_the_newest_comes_first(path: Path, store: LedgerStore) -> None:
    """Matches come from the end of the ledger backward, and no more than were asked for."""
    write(path, event(1, "a"), event(2, "b"), event(3, "a"), event(4, "a", "b"), event(5, "b"))
    assert paths(store, "a") == ["4/1.md", "3/1.md", "1/1.md"]
    assert paths(store, "a", 2) == ["4/1.md", "3/1.md"]
    assert paths(store, "a", 1) == ["4/1.md"]
    assert paths(store, "a", 99) == ["4/1.md", "3/1.md", "1/1.md"]


def test_two_notes_of_one_slug_are_two_matches(path: Path, store: LedgerStore) -> None:
    """An event in which two notes share a slug gives a match for each, and each counts."""
    write(path, event(1, "a"), event(2, "a", "b", "a"))
    assert paths(store, "a") == ["2/1.md", "2/3.md", "1/1.md"]
    assert paths(store, "a", 1) == ["2/1.md"]


@pytest.mark.parametrize("n", [0, -1])
def test_no_matches_at_all_cannot_be_asked_for(path: Path, store: LedgerStore, n: int) -> None:
    """Fewer than one match is a slip, and is said so rather than answered with nothing."""
    write(path, event(1, "a"))
    with pytest.raises(ConfigError, match="Write 1 or more"):
        trace(store, "a", n, NOW)


def test_it_stops_when_it_has_enough(
    path: Path, store: LedgerStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A note recalled lately is found in the last part of the file, however long that is."""
    filler = [event(1, "other")] * 20_000
    write(path, *filler, *[event(2, "a")] * 3)
    reads: list[int] = []
    real = os.pread

    def spied(descriptor: int, size: int, offset: int) -> bytes:
        reads.append(size)
        return real(descriptor, size, offset)

    monkeypatch.setattr(os, "pread", spied)
    assert len(paths(store, "a")) == 3
    assert path.stat().st_size > 3_000_000
    assert sum(reads) < 300_000


def test_there_is_no_ledger_yet(path: Path, store: LedgerStore) -> None:
    """Where nothing was ever recorded, the answer says that, and where it looked."""
    found = trace(store, "a", now=NOW)
    assert (found.empty, found.matches) == ("no ledger", [])
    assert found.explanation == f"There is no ledger yet at {path}"
    assert count(store, NOW).recalls == 0


def test_never_recalled_says_how_far_back_that_is(path: Path, store: LedgerStore) -> None:
    """The answer is as good as the history is long, and says how long that is."""
    write(path, event(1, "b"), event(3, "b"), event(25, "b"))
    found = trace(store, "a", now=NOW)
    assert (found.empty, found.matches) == ("never recalled", [])
    assert found.explanation == (
        "a was never recalled in the 24 days that the ledger holds "
        "(since 2026-07-01; older rows have expired)"
    )


@pytest.mark.parametrize("data", [b"", b"\n\n", b'{"ts": "2026-07-2'])
def test_an_empty_ledger_holds_no_days(path: Path, store: LedgerStore, data: bytes) -> None:
    """A ledger without a whole row is there, and holds nothing."""
    path.write_bytes(data)
    found = trace(store, "a", now=NOW)
    assert found.empty == "never recalled"
    assert found.explanation == "a was never recalled in the 0 days that the ledger holds"


def test_a_ledger_without_times_is_no_failure(path: Path, store: LedgerStore) -> None:
    """Where no row has a usable time, the answer says that instead of failing as a prune would."""
    write(path, *[{"hit_slugs": ["b"]}] * 20)
    found = trace(store, "a", now=NOW)
    assert found.empty == "never recalled"
    assert "its rows have no usable time" in found.explanation


def test_recalled_before_evidence_was_captured(path: Path, store: LedgerStore) -> None:
    """A note of which only its slug was written down was recalled, and the answer says when."""
    write(path, event(1, "a", evidence=False), event(7, "a", evidence=False), event(9, "b"))
    found = trace(store, "a", now=NOW)
    assert (found.empty, found.matches) == ("no evidence", [])
    assert found.explanation == ("a was recalled before evidence was captured, last on 2026-07-07")


def test_recalled_at_an_unknown_time_without_evidence(path: Path, store: LedgerStore) -> None:
    """A bare recall without a usable time still counts as one."""
    write(path, {"hit_slugs": ["a"]}, event(9, "b"))
    found = trace(store, "a", now=NOW)
    assert found.empty == "no evidence"
    assert found.explanation == "a was recalled before evidence was captured"


def test_evidence_wins_over_bare_recalls(path: Path, store: LedgerStore) -> None:
    """Newer recalls without evidence do not hide older ones that have it."""
    write(path, event(1, "a"), event(2, "a", evidence=False))
    found = trace(store, "a", now=NOW)
    assert [match.path for match in found.matches] == ["1/1.md"]
    assert (found.empty, found.explanation) == (None, "")


SLUGS = [
    "plain-slug_1.2",
    "with space",
    "a/b",
    "naïve",
    "日本",
    "😀",
    'quo"te',
    "back\\slash",
    "tab\tbed",
    "line\nbreak",
    "\u2028",
    "\x00",
    "\ud800",
    "",
    "'",
    "[a]",
    "A" * 300,
]


@pytest.mark.parametrize("ascii_only", [True, False], ids=["escaped", "as it is"])
@pytest.mark.parametrize("slug", SLUGS, ids=ascii)
def test_any_slug_is_found(path: Path, store: LedgerStore, slug: str, ascii_only: bool) -> None:
    """A slug is found however its characters are written in the row."""
    write(path, event(1, slug), event(2, "x" + slug, slug + "x"), ascii_only=ascii_only)
    assert paths(store, slug) == ["1/1.md"]


@given(st.text(), st.booleans())
def test_any_text_is_a_slug(slug: str, ascii_only: bool) -> None:
    """Whatever a note is called, its recall is found."""
    path = Path("slugs.jsonl")
    write(path, event(1, slug), ascii_only=ascii_only)
    assert paths(ledger_at(path), slug) == ["1/1.md"]


HOSTILE = [
    b"{torn",
    b"\x00\x00\x00",
    b"\xff\xfe\xfd a",
    b"[" * 100_000 + b"a",
    b'"a"',
    b'["a"]',
    b"null",
    b'{"hits": "a"}',
    b'{"hits": {"slug": "a"}}',
    b'{"hits": [null, 5, "a", ["a"], {}, {"slug": ["a"]}, {"slug": null}]}',
    b'{"hit_slugs": "a"}',
    b'{"hit_slugs": {"a": 1}}',
    b'{"hit_slugs": [["a"], {"a": 1}, null]}',
    b'{"hit_count": "a", "hit_slugs": 5}',
    b'{"a": 1, "a": 2}',
    b'{"a": ' + b"9" * 5000 + b"}",
    b'{"slug": "a"}',
]


@pytest.mark.parametrize("hostile", HOSTILE, ids=range(len(HOSTILE)))
def test_no_row_stands_in_the_way(path: Path, store: LedgerStore, hostile: bytes) -> None:
    """A row of another shape is passed over, and what stands before it is found."""
    write(path, event(1, "a"), event(2, "b"))
    path.write_bytes(path.read_bytes() + hostile + b"\n")
    assert paths(store, "a") == ["1/1.md"]
    counted = count(store, NOW - timedelta(days=365))
    assert (counted.recalls, counted.hits) == (2, 2)


def test_a_match_without_its_evidence_is_still_one(path: Path, store: LedgerStore) -> None:
    """What a hit leaves out is None, and a row without a time gives a match without one."""
    write(path, {"hits": [{"slug": "a"}]})
    (match,) = trace(store, "a", now=NOW).matches
    assert (match.at, match.query_hash, match.path, match.sim, match.rank) == (None,) * 5
    assert match.slug == "a"


def test_a_row_that_is_being_written_is_passed_over(path: Path, store: LedgerStore) -> None:
    """An unfinished last line belongs to its writer, and is no recall yet."""
    write(path, event(1, "a"))
    path.write_bytes(path.read_bytes() + json.dumps(event(2, "a")).encode())
    assert paths(store, "a") == ["1/1.md"]
    assert count(store, NOW - timedelta(days=365)).recalls == 1


def test_a_count_has_its_first_moment_in(path: Path, store: LedgerStore) -> None:
    """An event at the very instant counts, and one a microsecond before does not."""
    write(path, event(4, "a"), event(5, "a", "b"), event(6), event(7, "c", evidence=False))
    since = datetime(2026, 7, 5, tzinfo=UTC)
    assert (count(store, since).recalls, count(store, since).hits) == (3, 3)
    after = since + timedelta(microseconds=1)
    assert (count(store, after).recalls, count(store, after).hits) == (2, 1)


@pytest.mark.parametrize(
    ("hit_count", "hits"), [(5, 5), (0, 0), (None, 2), ("5", 2), (True, 2), (2.5, 2), (-1, 2)]
)
def test_what_surfaced_is_counted_as_it_was_written(
    path: Path, store: LedgerStore, hit_count: Any, hits: int
) -> None:
    """The row's own count holds; where that is no number of notes, its slugs are counted."""
    write(path, event(5, "a", "b", hit_count=hit_count))
    assert count(store, datetime(2026, 7, 1, tzinfo=UTC)).hits == hits


def test_rows_out_of_order_are_counted_all(path: Path, store: LedgerStore) -> None:
    """A count looks at every row: an old one at the end does not end it."""
    write(path, event(20, "a"), event(1, "a"), event(21, "a"), event(2, "a"))
    assert count(store, datetime(2026, 7, 10, tzinfo=UTC)).recalls == 2


@pytest.mark.parametrize("ask", [lambda store: trace(store, "a"), lambda store: count(store, NOW)])
def test_a_folder_in_its_place_is_said_so(tmp_path: Path, ask: Any) -> None:
    """What cannot be read is an error, not an empty answer."""
    with pytest.raises(StoreError, match="a folder, not a file"):
        ask(ledger_at(tmp_path))


@pytest.mark.parametrize("depth", [1, 600, 900])
def test_evidence_is_plain(path: Path, store: LedgerStore, depth: int) -> None:
    """A list or an object where a number or a name should stand is told as text, however deep."""
    nested = "[" * depth + "]" * depth
    path.write_text(
        f'{{"ts": "2026-07-01", "query_hash": {nested}, '
        f'"hits": [{{"slug": "a", "path": {nested}, "rank": {{}}, "sim": "high"}}]}}\n'
    )
    (match,) = trace(store, "a", 3, NOW).matches
    said: list[object] = [match.query_hash, match.path, match.rank, match.sim]
    assert said == [nested, nested, "{}", "high"]
