"""The runs store: a directory with one artifact per run, each removed whole or not at all."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, timedelta, tzinfo
from functools import partial
from operator import attrgetter
from typing import Any, Literal

import msgspec

from keepfor.errors import WrongRunTime
from keepfor.items import Decision, Item, Outcome
from keepfor.stores import folders, removal, runfiles, stamps
from keepfor.stores.base import Progress
from keepfor.stores.ids import escape, unescape
from keepfor.stores.runfiles import Dating
from keepfor.times import Instant, Known, Unknown, format_duration, parse_instant

#: More runs than this without a usable time are a sign of a wrong setting, not debris.
_FEW = 10


class RunStore(msgspec.Struct, frozen=True, kw_only=True):
    """A directory of runs on disk.

    Parameters:
        path: the folder; `runs_at` resolves a symlink.
        time: what tells a run's age, see `Dating`.
        unit: what a number in that field counts since 1970.
        zone: the zone of a timestamp that names none.
        grace: how long after its last change a run counts as still being written; None where only
            an open file does.
    """

    path: str
    time: str | None = None
    unit: str | None = None
    zone: tzinfo = UTC
    grace: timedelta | None = None

    @property
    def kind(self) -> str:
        return "runs"

    @property
    def target(self) -> str:
        return escape(self.path)

    @property
    def settings(self) -> dict[str, str]:
        return {
            "time": self.time or "",
            "unit": self.unit or "",
            "timezone": str(self.zone),
            "grace": "" if self.grace is None else format_duration(self.grace),
        }

    @property
    def dating(self) -> Dating:
        """How a run's age is told."""
        return Dating(self.time, self.unit, self.zone)

    @contextmanager
    def locked(self, wait: float = 0.0) -> Iterator[None]:
        """See `Store.locked`. What a killed sweep left is put back first.

        A folder that is not there yet needs no lock.
        """
        with ExitStack() as stack:
            try:
                removal.recover(stack.enter_context(folders.locked(self.path, wait)))
            except FileNotFoundError:
                pass
            except OSError as error:
                raise folders.explained(error, self.path) from error
            yield

    def scan(self, progress: Progress | None = None) -> Iterator[Item]:
        """Every run that is there. Writes nothing.

        Raises:
            WrongTimeField: when the runs do not carry their time where it is looked for.
            StoreError: when the folder cannot be read.
        """
        found = sorted(runfiles.entries(self.path), key=attrgetter("name"))
        runs = runfiles.ids(found)
        instants = stamps.uniform(runs, self.zone) if self.dating.by_name else None
        now = time.time()
        items = []
        for done, (run, entry) in enumerate(zip(runs, found, strict=True)):
            if progress:
                progress(done, len(found))
            # What another process removes meanwhile is not there.
            with suppress(FileNotFoundError):
                known = Known(instants[done], "name") if instants else None
                items.append(self._item(run, entry.stat(follow_symlinks=False), known, now))
        self._check_time(items)
        yield from items

    def apply(self, decisions: Iterable[Decision]) -> Iterator[Outcome]:
        """Remove runs one by one, each only if it is as its fingerprint says and at rest.

        Raises:
            StoreError: when the folder cannot be read.
        """
        try:
            folder = folders.open_folder(self.path)
        except FileNotFoundError:
            yield from (_outcome(said, "skipped", removal.GONE) for said in decisions)
            return
        moved = partial(folders.is_moved, folder, [(self.path, os.fstat(folder))])
        try:
            for said in decisions:
                if moved():
                    yield _outcome(said, "skipped", removal.MOVED)
                elif said.action == "delete":
                    name = unescape(said.id) + runfiles.SUFFIX
                    done = removal.remove(folder, name, said.fingerprint, moved=moved)
                    yield _outcome(said, done.result, done.why)
                else:
                    yield _outcome(said, "failed", f"a run cannot be {said.action}ged")
        finally:
            os.close(folder)

    def recent(self, limit: int) -> list[dict[str, Any]]:
        """The last entries of the newest runs, the newest first; see `runfiles.recent`."""
        return runfiles.recent(self.path, limit, self.dating)

    def leftovers(self) -> list[str]:
        """The paths of files that a killed sweep left aside; reads only."""
        try:
            folder = folders.open_folder(self.path)
        except FileNotFoundError:
            return []
        try:
            return [os.path.join(self.path, aside) for aside in removal.leftovers(folder)]
        finally:
            os.close(folder)

    def _item(self, run: str, status: os.stat_result, instant: Instant | None, now: float) -> Item:
        return Item(
            id=run,
            type="run",
            instant=instant or runfiles.instant_of_run(self.path, run, self.dating, status),
            bytes=status.st_size,
            fingerprint=removal.fingerprint(status),
            held=self._held(now - status.st_mtime),
        )

    def _held(self, idle: float) -> str | None:
        """Why a run that was changed so many seconds ago counts as still being written."""
        # What was changed in the future was copied from elsewhere, or a clock was set back.
        if self.grace is None or not 0 <= idle < self.grace.total_seconds():
            return None
        return f"changed {format_duration(timedelta(seconds=int(idle)))} ago, within the grace"

    def _check_time(self, items: list[Item]) -> None:
        """Refuse to take a wrong setting for runs of unknown age."""
        strays = [item.id for item in items if isinstance(item.instant, Unknown)]
        timed = len(items) - len(strays)
        if not _telling(len(strays), timed):
            return
        entries = [self._entry(run) for run in strays]
        if self.dating.field:
            # One that says nothing yet, or nothing that can be read, says nothing of the setting.
            entries = [entry for entry in entries if entry]
        if not _telling(len(entries), timed):
            return
        hints = _time_fields(entries[0] or {}, self.zone)
        raise WrongRunTime(
            path=self.path,
            without=len(entries),
            runs=len(entries) + timed,
            field=repr(self.dating.field) if self.dating.field else "their names",
            seen=f"; a run here has a time in {' and '.join(hints)}" if hints else "",
        )

    def _entry(self, run: str) -> dict[str, Any] | None:
        try:
            return runfiles.last_entry(runfiles.path_of(self.path, run))
        except OSError:
            return None


def runs_at(path: str | os.PathLike[str], **settings: Any) -> RunStore:
    """The directory of runs at a path; where that is a symlink, the folder it leads to."""
    return RunStore(path=os.path.realpath(path), **settings)


def _telling(strays: int, timed: int) -> bool:
    """Whether so many runs without a time beside so many with one are a wrong setting."""
    return strays > 0 and (not timed or (strays > _FEW and strays > timed))


def _time_fields(entry: dict[str, Any], zone: tzinfo) -> list[str]:
    """The top-level fields of an entry that would do as its time, to put in a message."""
    return [
        repr(key)
        for key, value in entry.items()
        if any(
            isinstance(parse_instant(value, source=key, zone=zone, unit=unit), Known)
            for unit in ("s", "ms")
        )
    ]


def _outcome(said: Decision, result: Literal["applied", "skipped", "failed"], why: str) -> Outcome:
    return Outcome(id=said.id, action=said.action, reason=said.reason, result=result, why=why)
