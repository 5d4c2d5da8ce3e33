"""One store in a sweeper's care: swept when it is due, with what came of it kept for who asks."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from threading import Event
from typing import Any

import msgspec

from keepfor import sweep
from keepfor.config import Config, policy_of
from keepfor.config.opening import open_store, open_trail
from keepfor.errors import KeepforError, PlanStale, SweepStopped
from keepfor.items import Report
from keepfor.plan import Plan
from keepfor.stores.base import Progress
from keepfor.times import DAY, Known, parse_instant, utc_now
from keepfor.trail import Trail, latest

LOG = logging.getLogger("keepfor.sweeper")


class Stopped(KeepforError):
    """The sweep of {store} was asked to stop before its end. The store is whole, and the next sweep
    does the rest."""

    exit_code = 3


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """How a store stands, as far as its sweeper knows.

    Parameters:
        last: the report of the last sweep, or what it failed with; None before the first.
        succeeded: when the last sweep ended that did not fail; None before the first.
        due_since: since when the oldest of what is due has been so, by the steady clock; None
            where nothing is.
        deleted: how many rows or items all sweeps together deleted.
        failures: how many sweeps failed.
        duration: how long the last sweep took, in seconds.
        tripped: whether the breaker held the last sweep back.
    """

    last: Report | Exception | None = None
    succeeded: datetime | None = None
    due_since: float | None = None
    deleted: int = 0
    failures: int = 0
    duration: float = 0.0
    tripped: bool = False


class Keeper:
    """Sweeps one store. One thread at a time may do so; any may look at its `standing`.

    Parameters:
        config: the configuration.
        name: the store's.
        clock: tells the present instant.
        steady: seconds that go on whatever is done to the clock.
    """

    def __init__(
        self,
        config: Config,
        name: str,
        clock: Callable[[], datetime],
        steady: Callable[[], float],
    ) -> None:
        self.name = name
        self.interval = config.stores[name].interval
        self.standing = Standing()
        self._config = config
        self._clock = clock
        self._steady = steady

    def sweep(self, asked: Event) -> None:
        """Hold the store to its policy once. Nothing that goes wrong is raised: it is logged,
        recorded, and to be seen in `standing`.

        Parameters:
            asked: set by another thread that wants an end of it, which comes at the next slice.
        """
        started = time.monotonic()
        trail = _Recorder(self.name, open_trail(self._config), asked)
        seen: list[Plan] = []
        result: Report | Exception
        try:
            result = self._swept(trail, seen, self._progress(asked))
        except Exception as error:  # noqa: BLE001 - housekeeping never hurts the host
            result = error
            if isinstance(error, SweepStopped) and asked.is_set():
                # Its store says how far it came.
                result = Stopped(store=self.name)
                result.__cause__ = error
        duration = time.monotonic() - started
        if isinstance(result, Exception) and not trail.ended:
            self._record_unopened(trail, result, duration)
        self.standing = self._after(result, seen, duration)
        self._tell(result, duration)

    def _swept(self, trail: _Recorder, seen: list[Plan], progress: Progress) -> Report:
        progress(0, 0)

        def look(plan: Plan) -> None:
            seen.append(plan)
            if plan.now > self._clock():
                # The clock was set right meanwhile.
                why = f"it was made for {plan.now.isoformat()}, which is still to come"
                raise PlanStale(store=self.name, why=why)
            progress(0, 0)

        return sweep.sweep_now(
            open_store(self._config, self.name),
            policy_of(self._config.stores[self.name]),
            self._clock(),
            name=self.name,
            trail=trail,
            started_by="background",
            progress=progress,
            on_plan=look,
        )

    def _progress(self, asked: Event) -> Progress:
        def stop_if_asked(_done: int, _total: int) -> None:
            if asked.is_set():
                raise Stopped(store=self.name)

        return stop_if_asked

    def _record_unopened(self, trail: _Recorder, error: Exception, duration: float) -> None:
        """Put into the trail that the store could not even be opened."""
        report = Report(
            store=self.name,
            kind=self._config.stores[self.name].kind,
            target="",
            now=self._clock(),
            started_by="background",
            duration=duration,
        )
        with suppress(OSError, KeepforError):
            trail.end(report, str(error) or type(error).__name__)

    def _after(self, result: Report | Exception, seen: list[Plan], duration: float) -> Standing:
        before = self.standing
        due_since, tripped = before.due_since, before.tripped
        for plan in seen:
            lag = plan.survey.lag.total_seconds()
            due_since = self._steady() - lag if lag > 0 else None
            tripped = plan.trips_breaker
        standing = msgspec.structs.replace(
            before,
            last=result,
            due_since=due_since,
            deleted=before.deleted + _deleted(result),
            duration=duration,
            tripped=tripped,
        )
        if isinstance(result, Stopped):
            return standing
        if isinstance(result, Exception) or result.failed:
            return msgspec.structs.replace(standing, failures=before.failures + 1)
        return msgspec.structs.replace(
            standing,
            succeeded=self._clock(),
            due_since=due_since if result.skipped else None,
        )

    def _tell(self, result: Report | Exception, duration: float) -> None:
        took = round(duration, 6)
        match result:
            case Stopped():
                facts = _facts("sweep", self.name, outcome="stopped", duration=took)
                LOG.info("The sweep of %s stopped, as it was asked to.", self.name, extra=facts)
            case Exception():
                facts = _facts(
                    "failure",
                    self.name,
                    error=type(result).__name__,
                    message=str(result),
                    duration=took,
                )
                # Of a mistake of ours, where it was made is worth more than what it says.
                foreseen = isinstance(result, KeepforError | OSError)
                LOG.warning(
                    "The sweep of %s failed, and is tried again next time: %s",
                    self.name,
                    result,
                    exc_info=None if foreseen else result,
                    extra=facts,
                )
            case Report():
                counts = {
                    name: getattr(result, name)
                    for name in ("scanned", "kept", "applied", "skipped", "failed")
                }
                facts = _facts("sweep", self.name, outcome=outcome(result), **counts, duration=took)
                LOG.log(
                    logging.WARNING if result.failed else logging.INFO,
                    "Swept %s: %s, %d stayed, %d skipped, %d failed, in %.3f s.",
                    self.name,
                    _went(result),
                    result.kept,
                    result.skipped,
                    result.failed,
                    duration,
                    extra=facts,
                )


def outcome(result: Report | Exception) -> str:
    """What came of a sweep, in a word or three; as the trail has it, and `stopped`."""
    if isinstance(result, Exception):
        return "stopped" if isinstance(result, Stopped) else "failed"
    if result.skipped or result.failed:
        return "partly done"
    return "done" if result.applied or result.orphans else "nothing to do"


class _Recorder:
    """The trail, as a sweep that comes again and again should write it.

    A sweep that had nothing to do is recorded once a day, so that the trail shows that somebody
    looked and yet does not fill with it; one that was stopped before it began is not at all.
    """

    def __init__(self, name: str, trail: Trail, asked: Event) -> None:
        self.ended = False
        self._name = name
        self._trail = trail
        self._asked = asked
        self._begun = False

    def spent(self, plan: Plan) -> bool:
        return self._trail.spent(plan)

    def begin(self, report: Report) -> None:
        self._begun = True
        self._trail.begin(report)

    def end(self, report: Report, error: str) -> None:
        self.ended = True
        try:
            if self._begun or self._worth_it(report, error):
                self._trail.end(report, error)
        except (OSError, KeepforError) as problem:
            facts = _facts(
                "failure", self._name, error=type(problem).__name__, message=str(problem)
            )
            LOG.warning("The trail has no record of this: %s", problem, extra=facts)
            raise

    def _worth_it(self, report: Report, error: str) -> bool:
        """Whether a sweep that changed nothing is worth a record."""
        if error:
            return not self._asked.is_set()
        return outcome(report) != "nothing to do" or not self._told_today(report.target)

    def _told_today(self, target: str) -> bool:
        last = latest(self._trail.records(), {target}).get(target)
        if last is None or last.outcome not in ("done", "nothing to do"):
            return False
        at = parse_instant(last.at, source="ts")
        # What was written by a clock that was ahead says nothing of today.
        return isinstance(at, Known) and timedelta() <= utc_now() - at.instant < DAY


def _deleted(result: Report | Exception) -> int:
    if isinstance(result, Exception):
        cause = result.__cause__ if isinstance(result, Stopped) else result
        return cause.done.applied if isinstance(cause, SweepStopped) else 0
    if result.outcomes:
        done = (said for said in result.outcomes if said.result == "applied")
        return sum(said.action == "delete" for said in done)
    return result.applied


def _went(result: Report) -> str:
    deleted = _deleted(result)
    flagged = result.applied - deleted
    more = f", {flagged} were flagged" if flagged else ""
    return f"{deleted} of {result.scanned} went{more}"


def _facts(event: str, store: str, **facts: Any) -> dict[str, Any]:
    """What a log record carries beside its text, for those who write it out in fields."""
    return {"facts": {"event": event, "store": store, **facts}}
