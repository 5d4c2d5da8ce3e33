"""What lies on disk where a SQLite database is, looked at without asking SQLite.

Closing any descriptor of a file takes from this process all locks that it holds there (so POSIX has
it), those of its SQLite connections too: the next writer would not see that somebody reads. So a
descriptor that a database was looked at through stays open for the next look. A child process that
looks in its place would have to be this program again, whatever it is, and `/proc/locks` hides what
processes in other containers hold.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import struct
import sys
import tempfile
from _thread import RLock
from contextlib import suppress
from typing import NamedTuple

from keepfor.errors import StoreError
from keepfor.stores import files
from keepfor.stores.ids import escape

#: The bytes of a database on which SQLite sets its locks; nothing is stored there.
_LOCKS = (0x40000000, 512)
#: More descriptors than this are not kept, where it is safe to close them.
_MANY = 32

# Asked for a whole file description and not for this process, it tells of this process's too.
if sys.platform == "linux":
    _ASK, _KIND = fcntl.F_OFD_GETLK, 0
    _QUESTION = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, *_LOCKS, 0)
else:
    # Python has no name for it there.
    _ASK, _KIND = 92, 20
    _QUESTION = struct.pack("qqihh", *_LOCKS, 0, fcntl.F_WRLCK, os.SEEK_SET)

_kept: dict[str, int] = {}
#: Reentrant, for a signal handler that looks or forks.
_looking = RLock()
os.register_at_fork(
    before=_looking.acquire, after_in_parent=_looking.release, after_in_child=_looking.release
)


class Seen(NamedTuple):
    """How a database lies there.

    Parameters:
        size: the file's, in bytes.
        logged: whether its changes go to a `-wal`.
        used: whether somebody is at it: has read or written, and is not done.
    """

    size: int
    logged: bool
    used: bool


def look(path: str) -> Seen:
    """How a database lies there.

    Raises:
        FileNotFoundError: when nothing is there.
        StoreError: when it may not be read.
    """
    with _looking:
        descriptor = _descriptor(path)
        try:
            versions = os.pread(descriptor, 2, 18)
        except OSError as error:
            raise files.explained(error, escape(path)) from error
        return Seen(os.fstat(descriptor).st_size, b"\2" in versions, _locked(descriptor))


def status(path: str) -> os.stat_result:
    """The status of a regular file.

    Raises:
        FileNotFoundError: when nothing is there.
        StoreError: when something else stands there, or it may not be looked at.
    """
    try:
        found = os.stat(path)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise files.explained(error, escape(path)) from error
    if not stat.S_ISREG(found.st_mode):
        kind = "a folder" if stat.S_ISDIR(found.st_mode) else "no file"
        fix = "Give the path of the database file."
        raise StoreError(path=escape(path), what=f"it is {kind}.", fix=fix)
    return found


def state(path: str) -> tuple[int, ...]:
    """Changes when somebody writes to a file; empty when it is gone."""
    try:
        found = status(path)
    except FileNotFoundError:
        return ()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def size(path: str) -> int | None:
    """The size of a file in bytes; None where there is none."""
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return None


def open_lock(path: str, like: os.stat_result) -> int:
    """A descriptor of an empty file to be locked, which is made if need be.

    Parameters:
        path: the file's.
        like: whose owner, group and mode it gets, so that whoever may read that may lock it.

    Raises:
        OSError: when it cannot be made.
        StoreError: when something else stands there.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
    try:
        with suppress(FileExistsError):
            descriptor = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o600)
            with suppress(PermissionError):
                os.fchown(descriptor, like.st_uid, like.st_gid)
            os.fchmod(descriptor, like.st_mode & 0o666 | stat.S_IRUSR)
            return descriptor
        descriptor = os.open(path, flags)
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            return descriptor
        os.close(descriptor)
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENXIO):
            raise
    raise StoreError(
        path=escape(path),
        what="something stands where the lock between sweeps belongs, and it is no file.",
        fix="Nothing was done; look what it is, and remove it.",
    )


def temporary_folder() -> str:
    """Where SQLite makes its temporary files."""
    said = os.environ.get("SQLITE_TMPDIR"), os.environ.get("TMPDIR")
    for folder in (*said, "/var/tmp", "/usr/tmp", "/tmp"):  # noqa: S108 - where SQLite looks
        if folder and os.path.isdir(folder) and os.access(folder, os.W_OK | os.X_OK):
            return folder
    return tempfile.gettempdir()


def _descriptor(path: str) -> int:
    known = _kept.get(path)
    if known is not None and files.same_file(known, path):
        return known
    descriptor = files.open_for_reading(path)
    if known is not None:
        _give_up(known)
    _kept[path] = descriptor
    while len(_kept) > _MANY:
        _give_up(_kept.pop(next(iter(_kept))))
    return descriptor


def _give_up(descriptor: int) -> None:
    """Close a descriptor, unless this process may hold locks on its file by another one."""
    found = os.fstat(descriptor)
    for name in os.listdir("/dev/fd"):
        with suppress(OSError):
            if int(name) != descriptor and os.path.samestat(os.fstat(int(name)), found):
                return
    os.close(descriptor)


def _locked(descriptor: int) -> bool:
    try:
        answer = fcntl.fcntl(descriptor, _ASK, _QUESTION)
    except OSError:
        # No word is taken for somebody there, which is the safe side.
        return True
    return struct.unpack_from("h", answer, _KIND) != (fcntl.F_UNLCK,)
