"""`log`: what was done, read back from the trail."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from itertools import islice
from typing import Any, Literal

import msgspec

from keepfor.cli.blocks import Block, Line, Table
from keepfor.cli.documents import Answer
from keepfor.cli.invocation import Invocation
from keepfor.cli.wording import number, span

Outcome = Literal["done", "nothing to do", "partly done", "failed", "unfinished"]

#: How much of a digest tells plans apart for a person.
_SHORT = 8


class Sweep(msgspec.Struct, frozen=True, kw_only=True):
    """One sweep, from what the trail says of its beginning and its end.

    Parameters:
        seq: the number of its last record.
        at: when that was written.
        store: the store's name, or its path where a program's own ledger has none.
        target: the store's address.
        outcome: what came of it; `unfinished` has an intent and no outcome, because it was killed
            or is at work still.
        applied, kept, skipped, failed: the counts, 0 where it is unfinished.
        cutoff: rows strictly older were expired.
        started_by: `apply`, `background` or `write site`.
        duration: in seconds; None where it is unfinished.
        plan: the digest of its plan; None at the write site.
        error: what went wrong, if anything did.
        notes: what else is worth knowing.
    """

    seq: int
    at: str
    store: str
    target: str
    outcome: Outcome
    applied: int
    kept: int
    skipped: int
    failed: int
    cutoff: str | None
    started_by: str
    duration: float | None
    plan: str | None
    error: str | None
    notes: list[str]


def log(run: Invocation, wanted: Sequence[str], count: int = 20) -> Answer:
    """Show what was done, the newest first. Writes nothing.

    Parameters:
        wanted: the stores; whatever is on record if none is named.
        count: how many sweeps at the most.

    Returns:
        The document has `trail` (the file) and `sweeps`, each as `Sweep` says.

    Raises:
        UnknownStore: when one is neither configured nor on record.
    """
    for name in wanted:
        if all(record.get("store") != name for record in run.trail.records()):
            run.settings(name)
    targets = {run.store(name).target for name in wanted if name in run.config.stores}
    found = (
        sweep
        for sweep in sweeps(run.trail.records())
        if not wanted or sweep.store in wanted or sweep.target in targets
    )
    shown = list(islice(found, count))
    run.out.show(*_described(shown))
    return Answer(verb="log", facts={"trail": run.trail.path, "sweeps": shown})


def sweeps(records: Iterable[dict[str, Any]]) -> Iterator[Sweep]:
    """The sweeps that a trail tells of, the newest first; of each, its last record.

    Parameters:
        records: the trail's, the newest first.
    """
    ended = set()
    for record in records:
        key = tuple(str(record.get(name)) for name in ("store", "target", "plan", "now"))
        if record.get("event") == "outcome":
            ended.add(key)
            yield _sweep(record)
        elif key not in ended:
            yield _sweep(record)


def latest(records: Iterable[dict[str, Any]], targets: set[str]) -> dict[str, Sweep]:
    """The last sweep of each of these stores that has one on record, by their addresses."""
    found: dict[str, Sweep] = {}
    for sweep in sweeps(records):
        if sweep.target in targets:
            found.setdefault(sweep.target, sweep)
        if len(found) == len(targets):
            break
    return found


def _sweep(record: dict[str, Any]) -> Sweep:
    """A record, whatever a stray hand may have made of it."""
    duration = record.get("duration")
    notes = record.get("notes")
    return Sweep(
        seq=_count(record, "seq"),
        at=str(record.get("ts")),
        store=str(record.get("store")),
        target=str(record.get("target")),
        outcome=_outcome(record),
        applied=_count(record, "applied"),
        kept=_count(record, "kept"),
        skipped=_count(record, "skipped"),
        failed=_count(record, "failed"),
        cutoff=_text(record, "cutoff"),
        started_by=str(record.get("started_by")),
        duration=float(duration) if isinstance(duration, int | float) else None,
        plan=_text(record, "plan"),
        error=_text(record, "error"),
        notes=list(map(str, notes)) if isinstance(notes, list) else [],
    )


def _outcome(record: dict[str, Any]) -> Outcome:
    if record.get("event") != "outcome":
        return "unfinished"
    if record.get("error"):
        return "failed"
    if _count(record, "skipped") or _count(record, "failed"):
        return "partly done"
    return "done" if _count(record, "applied") else "nothing to do"


def _count(record: dict[str, Any], name: str) -> int:
    value = record.get(name)
    return value if isinstance(value, int) else 0


def _text(record: dict[str, Any], name: str) -> str | None:
    value = record.get(name)
    return None if value is None else str(value)


def _described(shown: Sequence[Sweep]) -> list[Block]:
    if not shown:
        return [Line("Nothing is on record yet.", "faint")]
    table = Table(
        headings=["time", "store", "outcome", "#deleted", "by", "#took", "plan"],
        rows=[
            [
                _minute(sweep.at),
                sweep.store,
                sweep.outcome,
                _deleted(sweep),
                sweep.started_by,
                "-" if sweep.duration is None else span(timedelta(seconds=sweep.duration)),
                (sweep.plan or "-")[:_SHORT],
            ]
            for sweep in shown
        ],
    )
    errors = [
        Line(f"{_minute(sweep.at)}  {sweep.store}: {sweep.error}", "bad")
        for sweep in shown
        if sweep.error
    ]
    return [table, *([Line()] if errors else []), *errors]


def _minute(at: str) -> str:
    return at[:16].replace("T", " ")


def _deleted(sweep: Sweep) -> str:
    total = sweep.applied + sweep.kept + sweep.skipped + sweep.failed
    return f"{number(sweep.applied)} of {number(total)}" if total else "-"
