"""The trail: what was done to each store, when, by which rules and by whom; never any content."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any, Literal

import msgspec

from keepfor import __version__
from keepfor.errors import KeepforError, PlanStale
from keepfor.items import Report
from keepfor.plan import Plan
from keepfor.policy.rules import Policy, keep_for
from keepfor.stores import files
from keepfor.stores.backwards import lines_backwards
from keepfor.stores.ledger import ledger_at
from keepfor.sweep import PATIENCE, prune
from keepfor.times import before, parse_duration, utc_now

FORMAT = 1

#: What came of a sweep, as its records tell it.
Ending = Literal["done", "nothing to do", "partly done", "failed", "unfinished"]


class Trail:
    """A ledger of sweeps, which expires like everything else.

    Parameters:
        path: the ledger's.
        keep_for: how long a record stays: `90d`, a timedelta, or `forever` (or None).
        clock: tells the present instant.

    Raises:
        ConfigError: when `keep_for` cannot be understood.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        keep_for: str | timedelta | None = "90d",
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        self.path = os.fspath(path)
        self.keep_for = None if keep_for is None else parse_duration(keep_for)
        self._clock = clock

    def spent(self, plan: Plan) -> bool:
        """Whether a plan was begun before.

        Raises:
            PlanStale: when the plan is older than the records, which cannot tell then.
        """
        if self.keep_for is not None and plan.made < before(self._clock(), self.keep_for):
            raise PlanStale(store=plan.store, why="it is older than the trail reaches back")
        return any(record.get("plan") == plan.digest for record in self.records("intent"))

    def begin(self, report: Report) -> None:
        """Record durably that a sweep is about to act."""
        self._write("intent", report, {})

    def end(self, report: Report, error: str = "") -> None:
        """Record what a sweep did, and let old records expire."""
        self._write("outcome", report, _outcome(report) | ({"error": error} if error else {}))
        if self.keep_for is not None:
            # Not this sweep's affair: the next one tries again.
            with suppress(OSError, KeepforError):
                prune(
                    ledger_at(self.path),
                    Policy(rules=keep_for(self.keep_for)),
                    self._clock(),
                    name="trail",
                    unattended=True,
                    wait=0.0,
                )

    def records(self, event: str | None = None) -> Iterator[dict[str, Any]]:
        """The records, the newest first.

        Parameters:
            event: `intent` or `outcome`; None for both.
        """
        try:
            descriptor = files.open_for_reading(self.path)
        except FileNotFoundError:
            return
        try:
            for line in lines_backwards(descriptor):
                with suppress(msgspec.DecodeError, RecursionError):
                    record = msgspec.json.decode(line)
                    if isinstance(record, dict) and event in (None, record.get("event")):
                        yield record
        finally:
            os.close(descriptor)

    def _write(self, event: str, report: Report, more: dict[str, Any]) -> None:
        try:
            self._append(event, report, more)
        except OSError as error:
            raise files.explained(error, self.path) from error

    def _append(self, event: str, report: Report, more: dict[str, Any]) -> None:
        # There must be a file to lock, and what is opened before the lock may be replaced.
        files.close(files.open_for_append(self.path))
        with files.locked(self.path, PATIENCE):
            descriptor = files.open_for_append(self.path)
            try:
                numbers = (record.get("seq") for record in self.records())
                record = {
                    "ts": self._clock(),
                    "seq": next((seq for seq in numbers if isinstance(seq, int)), 0) + 1,
                    "format": FORMAT,
                    "keepfor": __version__,
                    "event": event,
                    "store": report.store,
                    "kind": report.kind,
                    "target": report.target,
                    "rules": report.rules,
                    "started_by": report.started_by,
                    "policy": report.policy,
                    "plan": report.plan or None,
                    "now": report.now,
                } | more
                files.append(descriptor, msgspec.json.encode(record) + b"\n", self.path)
                os.fsync(descriptor)
            finally:
                files.close(descriptor)


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
        flagged: how many of those applied were flagged, and are there still.
        cutoff: rows strictly older were expired.
        started_by: `apply`, `background`, `dashboard`, `mcp` or `write site`.
        duration: in seconds; None where it is unfinished.
        plan: the digest of its plan; None at the write site.
        error: what went wrong, if anything did.
        notes: what else is worth knowing.
    """

    seq: int
    at: str
    store: str
    target: str
    outcome: Ending
    applied: int
    kept: int
    skipped: int
    failed: int
    flagged: int = 0
    cutoff: str | None
    started_by: str
    duration: float | None
    plan: str | None
    error: str | None
    notes: list[str]


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
    notes = record.get("notes")
    return Sweep(
        seq=_count(record, "seq"),
        at=str(record.get("ts")),
        store=str(record.get("store")),
        target=str(record.get("target")),
        outcome=_came_of(record),
        applied=_count(record, "applied"),
        kept=_count(record, "kept"),
        skipped=_count(record, "skipped"),
        failed=_count(record, "failed"),
        flagged=_flagged(record.get("items")),
        cutoff=_text(record, "cutoff"),
        started_by=str(record.get("started_by")),
        duration=_seconds(record.get("duration")),
        plan=_text(record, "plan"),
        error=_text(record, "error"),
        notes=list(map(str, notes)) if isinstance(notes, list) else [],
    )


def _came_of(record: dict[str, Any]) -> Ending:
    if record.get("event") != "outcome":
        return "unfinished"
    if record.get("error"):
        return "failed"
    if _count(record, "skipped") or _count(record, "failed"):
        return "partly done"
    return "done" if _count(record, "applied") or record.get("orphans") else "nothing to do"


def _flagged(items: object) -> int:
    if not isinstance(items, list):
        return 0
    done = (item for item in items if isinstance(item, dict) and item.get("result") == "applied")
    return sum(item.get("action") == "flag" for item in done)


def _seconds(value: object) -> float | None:
    try:
        return timedelta(seconds=value).total_seconds() if isinstance(value, int | float) else None
    except (OverflowError, ValueError):
        return None


def _count(record: dict[str, Any], name: str) -> int:
    value = record.get(name)
    return value if isinstance(value, int) else 0


def _text(record: dict[str, Any], name: str) -> str | None:
    value = record.get(name)
    return None if value is None else str(value)


def _outcome(report: Report) -> dict[str, Any]:
    outcome = {
        name: getattr(report, name)
        for name in (
            "cutoff",
            "scanned",
            "kept",
            "applied",
            "skipped",
            "failed",
            "expired",
            "unreadable",
            "over_ceiling",
            "future",
            "bytes_before",
            "bytes_after",
            "oldest",
            "notes",
        )
    }
    outcome["duration"] = round(report.duration, 6)
    if report.parts:
        outcome |= {name: getattr(report, name) for name in ("dependents", "orphans", "parts")}
    if report.outcomes:
        outcome["items"] = [
            {name: getattr(done, name) for name in ("id", "action", "rule", "reason", "result")}
            for done in report.outcomes
        ]
    return outcome
