"""Reads recall events back: how many there were, and why a note surfaced."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Literal

import msgspec

from keepfor.errors import ConfigError, WrongTimeField
from keepfor.history import window
from keepfor.items import Terms
from keepfor.stores import files
from keepfor.stores.backwards import lines_backwards
from keepfor.stores.ledger import LedgerStore
from keepfor.stores.rows import load_row
from keepfor.times import Known, instant_of, utc_now

#: What a hit says of its note, besides the slug.
_EVIDENCE = ("path", "sim", "keyword", "combined", "rank", "lifecycle_tier", "decay_score")

#: A slug of such characters alone stands in a row as it is, however the row was encoded.
_PLAIN = re.compile(r"[A-Za-z0-9_.\-]+")


class Count(msgspec.Struct, frozen=True, kw_only=True):
    """How much was recalled.

    Parameters:
        recalls: how many events there were.
        hits: how often notes surfaced in them, a note as often as it did.
    """

    recalls: int
    hits: int


class Match(msgspec.Struct, frozen=True, kw_only=True):
    """One note that surfaced in one recall, and the evidence for it.

    Parameters:
        at: when.
        query_hash: the first 16 hex digits of the query's SHA-256.
        slug: the note's.
        path: where the note was then.
        sim: how similar it was.
        keyword: how well its keywords fit.
        combined: the score that it was ranked by.
        rank: its place.
        lifecycle_tier: what the program thought of it.
        decay_score: how much of it had decayed.
    """

    at: datetime | None
    query_hash: str | None
    slug: str
    path: str | None = None
    sim: float | None = None
    keyword: float | None = None
    combined: float | None = None
    rank: int | None = None
    lifecycle_tier: str | None = None
    decay_score: float | None = None


class Trace(msgspec.Struct, frozen=True, kw_only=True):
    """Why a note surfaced, or why nothing is known of it.

    Parameters:
        slug: the note's.
        matches: the newest first.
        empty: why there are none: `no ledger`, `never recalled` or `no evidence`.
        explanation: the same, for a person.
    """

    slug: str
    matches: list[Match] = []
    empty: Literal["no ledger", "never recalled", "no evidence"] | None = None
    explanation: str = ""


def count(store: LedgerStore, since: datetime) -> Count:
    """Count the events at or after an instant, and how often notes surfaced in them."""
    recalls = hits = 0
    with _rows(store) as rows:
        for row in rows:
            at = _instant(row, store)
            if at and at >= since:
                recalls += 1
                hits += _hit_count(row)
    return Count(recalls=recalls, hits=hits)


def trace(store: LedgerStore, slug: str, n: int = 3, now: datetime | None = None) -> Trace:
    """Find the most recent recalls of a note, from the ledger's end, and stop when it has them.

    Parameters:
        store: the ledger.
        slug: the note's.
        n: how many matches at the most.
        now: the present instant, to tell how far the ledger reaches back.

    Raises:
        ConfigError: when fewer than one match is asked for.
        StoreError: when the ledger cannot be read.
    """
    if n < 1:
        raise ConfigError(where="n", what=f"{n} matches say nothing.", fix="Write 1 or more.")
    matches: list[Match] = []
    bare: datetime | None = None
    recalled = False
    needle = slug.encode() if _PLAIN.fullmatch(slug) else b""
    if not os.path.exists(store.path):
        return Trace(
            slug=slug, empty="no ledger", explanation=f"There is no ledger yet at {store.path}"
        )
    with _rows(store, needle) as rows:
        for row in rows:
            found = [
                hit
                for hit in _list(row, "hits")
                if isinstance(hit, dict) and hit.get("slug") == slug
            ]
            matches += [_match(row, hit, slug, store) for hit in found]
            if len(matches) >= n:
                return Trace(slug=slug, matches=matches[:n])
            if not found and slug in _list(row, "hit_slugs"):
                recalled, bare = True, bare or _instant(row, store)
    if matches:
        return Trace(slug=slug, matches=matches)
    if recalled:
        when = f", last on {bare:%Y-%m-%d}" if bare else ""
        return Trace(
            slug=slug,
            empty="no evidence",
            explanation=f"{slug} was recalled before evidence was captured{when}",
        )
    return Trace(slug=slug, empty="never recalled", explanation=_never(store, slug, now))


def _never(store: LedgerStore, slug: str, now: datetime | None) -> str:
    try:
        held = window(store.survey(Terms(now=now or utc_now())))
    except WrongTimeField:
        # Nothing is about to be dropped; how far the ledger reaches back cannot be told, is all.
        return f"{slug} was never recalled in what the ledger holds; its rows have no usable time"
    since = f" (since {held.oldest:%Y-%m-%d}; older rows have expired)" if held.oldest else ""
    return f"{slug} was never recalled in the {held.days:.0f} days that the ledger holds{since}"


@contextmanager
def _rows(store: LedgerStore, needle: bytes = b"") -> Iterator[Iterator[dict[str, Any]]]:
    """The rows whose bytes contain a needle, the last first."""
    try:
        descriptor = files.open_for_reading(store.path)
    except FileNotFoundError:
        yield iter(())
        return
    try:
        yield _decoded(line for line in lines_backwards(descriptor) if needle in line)
    finally:
        os.close(descriptor)


def _decoded(lines: Iterator[bytes]) -> Iterator[dict[str, Any]]:
    for line in lines:
        try:
            row = _fast(line) or load_row(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(row, dict):
            yield row


def _fast(line: bytes) -> Any:
    """What the fast decoder makes of a row; None where only the tolerant one can tell."""
    try:
        return msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError):
        return None


def _match(row: dict[str, Any], hit: dict[str, Any], slug: str, store: LedgerStore) -> Match:
    evidence = {name: _plain(hit.get(name)) for name in _EVIDENCE}
    query_hash = _plain(row.get("query_hash"))
    return Match(at=_instant(row, store), query_hash=query_hash, slug=slug, **evidence)


def _plain(value: Any) -> Any:
    """A value as it is, lists and objects as text: they are no evidence, and may be deep."""
    try:
        return str(value) if isinstance(value, dict | list) else value
    except RecursionError:
        return None


def _instant(row: dict[str, Any], store: LedgerStore) -> datetime | None:
    form = store.form
    instant = instant_of(row, form.field, form.zone, form.unit)
    return instant.instant if isinstance(instant, Known) else None


def _list(row: dict[str, Any], field: str) -> list[Any]:
    value = row.get(field)
    return value if isinstance(value, list) else []


def _hit_count(row: dict[str, Any]) -> int:
    count = row.get("hit_count")
    if isinstance(count, int) and not isinstance(count, bool) and count >= 0:
        return count
    return len(_list(row, "hit_slugs"))
