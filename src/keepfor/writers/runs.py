"""A directory of runs that is held to its bounds as it is written: append, and drop the oldest.

The module is imported by every program that appends, so what only a prune needs is imported by
the prune.
"""

from __future__ import annotations

import errno
import json
import os
import re
from datetime import datetime, timedelta

from keepfor.errors import BadPolicy, BadRunId, ConfigError, StoreBusy
from keepfor.stores import files, runfiles
from keepfor.times import UNITS, before, load_timezone, parse_duration, parse_now, utc_now

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Literal

    from keepfor.items import Report
    from keepfor.plan import Plan
    from keepfor.policy.rules import Policy
    from keepfor.stores.runs import RunStore
    from keepfor.sweep import Recorder

#: How long, and for how much growth, appends leave a directory alone where a prune could remove
#: nothing. Without this, each new run would try again.
_PAUSE = timedelta(hours=1)
_GROWTH = 1.1

#: How long an append waits for another process that is pruning, in seconds.
_PATIENCE = 0.05

_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]")

#: Holds a run's id where neither its file's name nor its entries do.
_ID = "user.keepfor.run"
_FIRST_READ = 1 << 16

# Not O_NONBLOCK: it would fail in the moment for which a sweep holds a lease.
_OPEN = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NOCTTY

# As `json.dumps` does it, without looking its defaults up each time.
_encode = json.JSONEncoder().encode


class RunDirectory:
    """A folder with one JSONL file per run, which keeps no more than it is told to.

    Safe across threads and forks; nothing is held open between two appends.

    Parameters:
        path: the folder; it is made by the first append.
        max_count: how many runs may stay; None for no bound.
        keep_for: how long a run stays: `90d`, a timedelta; None for no bound.
        keep_last: how many of the newest runs stay, whatever their age.
        time: what tells a run's age: `name` (a timestamp in the file's name), `mtime`, or the
            field of the last entry that holds it; None for the name where that carries one, and
            mtime where nothing better is there.
        unit: what a number in that field counts since 1970 (`s`, `ms`, `us`, `ns`).
        timezone: the zone of timestamps that name none.
        grace: how long after its last change a run counts as still being written, and stays;
            None where only a file that somebody has open does.
        trail: where prunes are recorded; None for nowhere.
        clock: tells the present instant.

    Raises:
        ConfigError: when one of these cannot be understood, or they contradict each other.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        max_count: int | None = 200,
        keep_for: str | timedelta | None = None,
        *,
        keep_last: int = 0,
        time: str | None = None,
        unit: Literal["s", "ms", "us", "ns"] | None = None,
        timezone: str = "UTC",
        grace: str | timedelta | None = None,
        trail: Recorder | None = None,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        _check_number("max_count", max_count, least=1, off="None for no bound")
        _check_number("keep_last", keep_last, least=0, off="0 for no floor")
        if max_count is not None and keep_last > max_count:
            raise BadPolicy(
                what=f"`keep_last` ({keep_last}) is above `max_count` ({max_count}).",
                fix="Lower the one or raise the other.",
            )
        if unit not in (None, *UNITS):
            raise ConfigError(
                where="unit", what=f"{unit!r} is no unit.", fix=f"Write one of {', '.join(UNITS)}."
            )
        self.path = os.fspath(path)
        self._max_count = max_count
        self._keep_for = None if keep_for is None else parse_duration(keep_for)
        self._keep_last = keep_last
        self._dating = runfiles.Dating(time, unit, load_timezone(timezone))
        self._grace = None if grace is None else parse_duration(grace)
        self._trail = trail
        self._clock = clock
        #: Ids that nothing on disk tells, by the name of their file.
        self._ids: dict[str, str] = {}
        #: When a prune could remove nothing, and how many runs there were then.
        self._attempt: tuple[datetime, int] | None = None

    def append(self, run_id: str, entry: Mapping[str, Any]) -> None:
        """Write a snapshot of a run at the end of its file, in one write; then apply the bounds.

        Parameters:
            run_id: the run's id, from which its file is named.
            entry: all that is to be known of the run now; what `json.dumps` takes.

        Raises:
            BadRunId: when no file can be called by that id, or another run's is already.
            OSError, TypeError, ValueError: when the entry could not be written. What a prune does
                never reaches the caller.
        """
        name = file_name(run_id)
        data = f"{_encode(entry)}\n".encode()
        descriptor = self._open(name, run_id)
        try:
            new = os.fstat(descriptor).st_size == 0
            if new:
                self._claim(descriptor, name, run_id, entry, len(data))
            elif (owner := self._owner(descriptor, name)) not in (None, run_id):
                raise BadRunId(run=run_id, why=f"the file {name} belongs to the run {owner!r}")
            files.append(descriptor, data, self.path)
        finally:
            files.close(descriptor)
        # Only a new file can take a directory over its bounds.
        if new:
            self._tend()

    def recent(self, limit: int = 10) -> list[dict[str, Any]]:
        """The last entries of the newest runs, the newest first.

        Parameters:
            limit: how many at the most.

        Returns:
            One entry for each run; what cannot be read is passed over.
        """
        return runfiles.recent(self.path, limit, self._dating)

    def plan(self, now: datetime | str | None = None) -> Plan:
        """What a prune would do. Writes nothing.

        Parameters:
            now: the instant to judge ages by; None for the present.
        """
        from keepfor import plan

        store = self._store()
        return plan.build(store, self._policy(), self._moment(now), name=store.target)

    def prune(self, now: datetime | str | None = None) -> Report:
        """Remove the runs that are past their time, and the oldest above the bound.

        Parameters:
            now: the instant to judge ages by; None for the present.

        Raises:
            WrongRunTime: when the runs do not carry their time where it is looked for.
            StoreBusy: when another sweep does not end.
            StoreError: when the folder cannot be read or changed.
        """
        return self._prune(self._moment(now))

    def _moment(self, now: datetime | str | None) -> datetime:
        return self._clock() if now is None else parse_now(now)

    def _store(self) -> RunStore:
        from keepfor.stores import runs

        dating = self._dating
        return runs.runs_at(
            self.path, time=dating.time, unit=dating.unit, zone=dating.zone, grace=self._grace
        )

    def _policy(self) -> Policy:
        from keepfor.policy import rules

        return rules.Policy(
            rules=rules.keep_for(self._keep_for),
            max_count=self._max_count,
            keep_last=self._keep_last,
        )

    def _prune(self, now: datetime, **how: Any) -> Report:
        from keepfor import sweep

        store = self._store()
        return sweep.prune_items(
            store, self._policy(), now, name=store.target, trail=self._trail, **how
        )

    def _open(self, name: str, run_id: str) -> int:
        path = os.path.join(self.path, name)
        try:
            try:
                return files.open_for_writing(path, _OPEN)
            except FileNotFoundError:
                os.makedirs(self.path, exist_ok=True)
                return files.open_for_writing(path, _OPEN)
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:
                why = f"a file name of {len(name)} characters is too long for the file system"
                raise BadRunId(run=run_id, why=why) from error
            raise

    def _claim(
        self, descriptor: int, name: str, run_id: str, entry: Mapping[str, Any], size: int
    ) -> None:
        """See that a new file's run can be told, where its entries do not tell it."""
        self._ids.pop(name, None)
        if entry.get("runId") == run_id and size <= _FIRST_READ:
            return
        try:
            os.setxattr(descriptor, _ID, run_id.encode("utf-8", "surrogatepass"))
        except (OSError, AttributeError):
            self._ids[name] = run_id

    def _owner(self, descriptor: int, name: str) -> str | None:
        """The id of the run that a file belongs to; None where nothing tells it."""
        if name in self._ids:
            return self._ids[name]
        try:
            return os.getxattr(descriptor, _ID).decode("utf-8", "surrogatepass")
        except (OSError, AttributeError):
            pass
        first, ended, _ = os.pread(descriptor, _FIRST_READ, 0).partition(b"\n")
        try:
            owner = json.loads(first).get("runId") if ended else None
        except (ValueError, AttributeError, RecursionError):
            return None
        # An entry may call something else so; what names another file is not this run's id.
        return owner if isinstance(owner, str) and _named(owner) == name else None

    def _tend(self) -> None:
        """Apply the bounds after a run was added."""
        try:
            found = self._runs() if self._is_bounded() else []
            now = self._clock()
            if not self._due(found, now) or self._left_alone(found, now):
                return
            self._attempt = (now, len(found))
            done = self._prune(now, unattended=True, wait=_PATIENCE)
            # Where another process was faster, there is nothing left to do.
            if done.applied or not self._due(self._runs(), now):
                self._attempt = None
            self._forget(found)
        except StoreBusy:
            # Somebody is at it; the next new run looks again.
            self._attempt = None
        except Exception as error:  # noqa: BLE001 - housekeeping never hurts the host
            import logging

            logging.getLogger("keepfor").warning("could not prune %s: %s", self.path, error)

    def _runs(self) -> list[str]:
        return runfiles.ids(runfiles.entries(self.path))

    def _is_bounded(self) -> bool:
        return self._max_count is not None or self._keep_for is not None

    def _due(self, found: list[str], now: datetime) -> bool:
        """The probe: whether there are too many runs, or the oldest has expired."""
        if self._max_count is not None and len(found) > self._max_count:
            return True
        if self._keep_for is None:
            return False
        first = runfiles.oldest(self.path, found, self._dating)
        return first is not None and first < before(now, self._keep_for)

    def _left_alone(self, found: list[str], now: datetime) -> bool:
        if self._attempt is None:
            return False
        at, count = self._attempt
        return timedelta() <= now - at < _PAUSE and len(found) < count * _GROWTH

    def _forget(self, found: list[str]) -> None:
        """Drop the ids of runs that are gone, so that they do not pile up."""
        if len(self._ids) > 2 * len(found):
            names = {run + runfiles.SUFFIX for run in found}
            self._ids = {name: run for name, run in self._ids.items() if name in names}


def file_name(run_id: str) -> str:
    """The name of a run's file: its id with `_` for what is not safe everywhere, and `.jsonl`.

    Raises:
        BadRunId: when no file can be called by that id.
    """
    if run_id in ("", ".", ".."):
        raise BadRunId(run=run_id, why="that is no name for a file")
    return _named(run_id)


def _named(run_id: str) -> str:
    return f"{_UNSAFE.sub('_', run_id)}{runfiles.SUFFIX}"


def _check_number(name: str, value: object, least: int, off: str) -> None:
    if value is None and name == "max_count":
        return
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise BadPolicy(
            what=f"`{name}` is {value!r}.",
            fix=f"Write a whole number of {least} or more, or {off}.",
        )
