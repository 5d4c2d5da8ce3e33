"""Notes and sessions that a program holds to rules: plan, apply, explain, and what was recalled."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from keepfor.errors import BadPolicy, ConfigError
from keepfor.policy.lint import lint
from keepfor.policy.rules import Policy, keep_for
from keepfor.sizes import parse_size
from keepfor.stores.entities import EntityStore, entities_at
from keepfor.times import load_timezone, parse_duration, parse_now, utc_now
from keepfor.writers.entityrules import read

if TYPE_CHECKING:
    from keepfor.items import Report
    from keepfor.plan import Plan
    from keepfor.policy.explain import Explanation
    from keepfor.sweep import Recorder

LOG = logging.getLogger("keepfor.entities")


class Entities:
    """A tree of notes with frontmatter, and the sessions that they were made from.

    Nothing is held open between two calls. A rule that can never do what it says is logged as a
    warning.

    Parameters:
        path: the folder that holds both.
        rules: what is flagged, deleted or kept, each rule a mapping with the keys that it has in
            keepfor.yaml; the first that matches decides.
        keep_for: how long what no rule matches stays: `90d`, a timedelta, or `forever`.
        max_count: how many items may stay; None for no bound.
        max_bytes: how large all together may be (`25MiB`, or a number of bytes); None for no bound.
        keep_last: how many of the newest stay, whatever a rule says; or how many of each type.
        breaker: the largest fraction of ten items or more that one sweep may delete; None for any.
        notes: the folder of notes below the path; `.` for itself.
        pattern: which files in it are notes, by name.
        sessions: the folder of sessions below the path; None for none.
        session_pattern: which files in that are sessions, by name.
        ignore: globs of folders below that of the notes that are out of scope.
        default_type: the type of a note that names none and lies in no folder.
        session_type: the type of a session.
        dated_by: what tells a note's age: `modified` (its file's mtime), or the frontmatter key
            that holds the date.
        fallback: what stands in where that key is missing or cannot be read: `modified`, or None,
            so that the age is unknown and the note stays.
        timezone: the zone of times that name none.
        access_log: the log below the path that tells which items were recalled; None for none.
        record: whether that log is told of every flag and every deletion.
        folder: where keepfor keeps what it remembers of notes; None for its own state folder.
        trail: where sweeps are recorded; None for nowhere.
        clock: tells the present instant.

    Raises:
        ConfigError: when one of these cannot be understood, or nothing would ever be removed.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        rules: Sequence[Mapping[str, Any]] = (),
        *,
        keep_for: str | timedelta | None = None,
        max_count: int | None = None,
        max_bytes: int | str | None = None,
        keep_last: int | Mapping[str, int] = 0,
        breaker: float | None = 0.5,
        notes: str = "entities",
        pattern: str = "*.md",
        sessions: str | None = "trajectories",
        session_pattern: str = "*",
        ignore: Sequence[str] = ("subscribed",),
        default_type: str = "guideline",
        session_type: str = "trajectory",
        dated_by: str = "modified",
        fallback: Literal["modified"] | None = None,
        timezone: str = "UTC",
        access_log: str | None = "audit.log",
        record: bool = False,
        folder: Path | None = None,
        trail: Recorder | None = None,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        for name, place in (("notes", notes), ("sessions", sessions), ("access_log", access_log)):
            _refuse_outside(name, place)
        self._policy = _policy(rules, keep_for, max_count, max_bytes, keep_last, breaker)
        for trap in lint(self._policy):
            LOG.warning("%s: %s %s", trap.rule, trap.what, trap.fix)
        fields = {key for rule in self._policy.rules for key in rule.match_fields}
        self._path = path
        self._said: dict[str, Any] = {
            "notes": notes,
            "pattern": pattern,
            "sessions": sessions,
            "session_pattern": session_pattern,
            "ignore": (ignore,) if isinstance(ignore, str) else tuple(ignore),
            "default_type": default_type,
            "session_type": session_type,
            "clock": dated_by,
            "fallback": fallback,
            "zone": load_timezone(timezone),
            "access_log": access_log,
            "record": record,
            "fields": tuple(sorted(fields)),
        }
        self._folder = folder
        self._trail = trail
        self._clock = clock

    def plan(self, now: datetime | str | None = None) -> Plan:
        """What would be flagged and deleted, and why. Writes nothing to the store.

        Parameters:
            now: the instant to judge ages by; None for the present.

        Raises:
            StoreError: when the store cannot be read.
        """
        from keepfor import plan

        store = self._store()
        return plan.build(store, self._policy, self._moment(now), name=store.target)

    def apply(
        self, plan: Plan | None = None, *, now: datetime | str | None = None, force: bool = False
    ) -> Report:
        """Flag and delete what a plan says, as far as a plan made now would do so too.

        Parameters:
            plan: from `plan`; None for one that is made now.
            now: the instant to judge ages by; None for the present.
            force: whether to pass the breaker.

        Raises:
            PlanStale: when the plan is of another store or of other rules.
            PlanSpent: when it was carried out before, as far as the trail tells.
            BreakerTripped: when it deletes too much of the store, and `force` is not given.
            StoreBusy: when another sweep does not end.
            StoreError: when the store cannot be read or written.
        """
        from keepfor import sweep

        store, moment = self._store(), self._moment(now)
        if plan is None:
            return sweep.sweep_now(
                store, self._policy, moment, name=store.target, trail=self._trail, force=force
            )
        trail = self._trail or _Nowhere()
        return sweep.apply(plan, store, self._policy, moment, trail=trail, force=force)

    def explain(self, id: str, now: datetime | str | None = None) -> Explanation:  # noqa: A002
        """Why an item stays or goes, rule by rule, and what would take it next.

        Parameters:
            id: the item's, as plans show it.
            now: the instant to judge ages by; None for the present.

        Raises:
            UnknownItem: when there is no such item.
            StoreError: when the store cannot be read.
        """
        from keepfor import plan

        return plan.explain(self._store(), self._policy, self._moment(now), id)

    def record_access(self, ids: Collection[str], now: datetime | str | None = None) -> None:
        """Note in the log that items were recalled, so that rules on disuse leave them alone.

        Parameters:
            ids: the items', as plans show them; one that is not there does no harm.
            now: when; None for the present.

        Raises:
            StoreError: when the store has no log, or it cannot be written.
        """
        wanted = [ids] if isinstance(ids, str) else ids
        self._store().record_access(wanted, self._moment(now))

    def _moment(self, now: datetime | str | None) -> datetime:
        return self._clock() if now is None else parse_now(now)

    def _store(self) -> EntityStore:
        folder = self._folder
        if folder is None:
            import platformdirs

            folder = platformdirs.user_state_path("keepfor") / "entities"
        return entities_at(self._path, cache=str(folder), **self._said)


class _Nowhere:
    """Records nothing."""

    def spent(self, plan: Plan) -> bool:  # noqa: ARG002
        return False

    def begin(self, report: Report) -> None:
        pass

    def end(self, report: Report, error: str) -> None:
        pass


def _policy(
    rules: Sequence[Mapping[str, Any]],
    duration: str | timedelta | None,
    max_count: int | None,
    max_bytes: int | str | None,
    keep_last: int | Mapping[str, int],
    breaker: float | None,
) -> Policy:
    if not rules and duration is None and max_count is None and max_bytes is None:
        raise BadPolicy(
            what="nothing would ever be flagged or deleted.",
            fix='Give rules=[{"name": "stale", "max_age": "90d"}]; keep_for="forever" says never.',
        )
    last = keep_for(None if duration is None else parse_duration(duration))
    of_types = {} if isinstance(keep_last, int) else dict(keep_last)
    return Policy(
        rules=(*map(read, rules), *last),
        max_count=max_count,
        max_bytes=None if max_bytes is None else parse_size(max_bytes),
        keep_last=keep_last if isinstance(keep_last, int) else 0,
        keep_last_of=of_types,
        breaker=breaker,
    )


def _refuse_outside(name: str, place: str | None) -> None:
    """Raise where a part of the store would lie outside of it."""
    if place is None or (place == "." and name == "notes"):
        return
    if any(part in ("", ".", "..") for part in place.split("/")):
        what = f"{place!r} does not lie below the path."
        raise ConfigError(where=name, what=what, fix="Write its name, such as entities.")
