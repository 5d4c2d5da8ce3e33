"""The trail: what was done to each store, when, by which rules and by whom; never any content."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

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
    if report.outcomes:
        outcome["items"] = [
            {"id": done.id, "action": done.action, "reason": done.reason, "result": done.result}
            for done in report.outcomes
        ]
    return outcome
