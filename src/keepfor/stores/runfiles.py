"""The files of a directory of runs: which they are, how old, and what each one says last.

Imported by every program that appends a run, so it imports next to nothing.
"""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta, tzinfo

from keepfor.stores import stamps
from keepfor.stores.backwards import lines_backwards
from keepfor.stores.ids import escape_all, unescape
from keepfor.times import Instant, Known, Unknown, instant_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SUFFIX = ".jsonl"

_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Dating:
    """How a run's age is told.

    Parameters:
        time: `name` (a timestamp in the file's name), `mtime`, or the field of the last entry that
            holds it; None for the name where that carries one, and mtime where nothing better is
            there.
        unit: what a number in that field counts since 1970 (`s`, `ms`, `us`, `ns`).
        zone: the zone of a timestamp that names none.
    """

    __slots__ = ("time", "unit", "zone")

    def __init__(
        self, time: str | None = None, unit: str | None = None, zone: tzinfo = UTC
    ) -> None:
        self.time = time
        self.unit = unit
        self.zone = zone

    @property
    def field(self) -> str | None:
        """The field of the entry that holds it, if one does."""
        return None if self.time in (None, "name", "mtime") else self.time

    @property
    def by_name(self) -> bool:
        """Whether a timestamp in the name, where there is one, settles it."""
        return self.time in (None, "name")


def entries(folder: str) -> list[os.DirEntry[str]]:
    """The files of the runs in a folder, in no order; none where there is no folder.

    What is no regular file (a folder, a symlink to the newest run) is no run.

    Raises:
        StoreError: when the folder cannot be read.
    """
    try:
        with os.scandir(folder) as found:
            return [
                entry
                for entry in found
                if entry.name.endswith(SUFFIX) and entry.is_file(follow_symlinks=False)
            ]
    except FileNotFoundError:
        return []
    except OSError as error:
        from keepfor.stores import folders

        raise folders.explained(error, folder) from error


def ids(files: list[os.DirEntry[str]]) -> list[str]:
    """The ids of runs: the names of their files without `.jsonl`."""
    return escape_all([entry.name[: -len(SUFFIX)] for entry in files])


def path_of(folder: str, run: str) -> str:
    """The path of a run's file."""
    return f"{folder}/{unescape(run)}{SUFFIX}"


def newest_first(folder: str, dating: Dating) -> list[str]:
    """The ids of the runs, in the one order that prune goes by from the other end.

    The newest by instant come first, ties by id. A run of unknown age is never removed for its
    age; it stands before all others, so that what a prune removes is always the end of this.
    """
    runs = ids(entries(folder))
    if dating.by_name and stamps.uniform(runs, dating.zone):
        return sorted(runs, reverse=True)
    keyed = []
    for run in runs:
        try:
            keyed.append((_rank(instant_of_run(folder, run, dating)), run))
        except FileNotFoundError:
            continue
    return [run for _, run in sorted(keyed, reverse=True)]


def oldest(folder: str, runs: list[str], dating: Dating) -> datetime | None:
    """The oldest known instant of runs; None where there is none."""
    if dating.by_name and (instants := stamps.uniform(runs, dating.zone)):
        return min(instants)
    known = []
    for run in runs:
        try:
            instant = instant_of_run(folder, run, dating)
        except FileNotFoundError:
            continue
        if isinstance(instant, Known):
            known.append(instant.instant)
    return min(known, default=None)


def instant_of_run(
    folder: str, run: str, dating: Dating, status: os.stat_result | None = None
) -> Instant:
    """When a run began to age.

    Parameters:
        status: its file's, if it is known already.

    Raises:
        FileNotFoundError: when it is gone.
    """
    if dating.field:
        try:
            entry = last_entry(path_of(folder, run))
        except FileNotFoundError:
            raise
        except OSError as error:
            return Unknown(f"the run cannot be read ({error.strerror})")
        return instant_of(entry, dating.field, dating.zone, dating.unit)
    if dating.by_name:
        found = stamps.stamp(run, dating.zone)
        if isinstance(found, Known) or dating.time == "name":
            return found
    if status is None:
        status = os.stat(path_of(folder, run), follow_symlinks=False)
    return Known(_EPOCH + timedelta(microseconds=status.st_mtime_ns // 1000), "mtime")


def recent(folder: str, limit: int, dating: Dating) -> list[dict[str, Any]]:
    """The last entries of the newest runs, the newest first.

    Parameters:
        limit: how many at the most.

    Returns:
        One entry for each run. What cannot be read is passed over.
    """
    found: list[dict[str, Any]] = []
    if limit <= 0:
        return found
    for run in newest_first(folder, dating):
        try:
            entry = last_entry(path_of(folder, run))
        except OSError:
            # Removed by another process, or not for us to read.
            continue
        if entry is not None:
            found.append(entry)
            if len(found) == limit:
                break
    return found


def last_entry(path: str) -> dict[str, Any] | None:
    """The last whole line of a run's file; None where that is no JSON object.

    Raises:
        OSError: when the file cannot be read.
    """
    descriptor = os.open(path, _FILE)
    try:
        for line in lines_backwards(descriptor):
            if line.strip():
                return _decoded(line)
        return None
    finally:
        os.close(descriptor)


def _decoded(line: bytes) -> dict[str, Any] | None:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return entry if isinstance(entry, dict) else None


def _rank(instant: Instant) -> tuple[bool, datetime]:
    match instant:
        case Known(moment):
            return False, moment
        case Unknown():
            return True, _EPOCH
