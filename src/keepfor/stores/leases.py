"""Tells whether somebody has a file open for writing, who may never have heard of keepfor.

On Linux a read lease is granted only while nobody has. An opener is blocked for as long as it is
held, so it is given back at once, or after the few calls that a removal takes.
"""

from __future__ import annotations

import errno
import fcntl
import os
import sys
import time
from contextlib import suppress

#: Where a lease tells nothing, a file that was not written to for so long is at rest.
ABANDONED = 24 * 3600.0

_SIGURG = 23
_PAUSE = 0.001


def at_rest(descriptor: int) -> bool:
    """Whether nobody has a file open for writing; see `size_at_rest`."""
    return size_at_rest(descriptor) is not None


def size_at_rest(descriptor: int, until: float = 0.0) -> int | None:
    """The size of a file that nobody has open for writing; None where somebody may have.

    Where leases tell nothing, a file counts as at rest that was not written to for a day.

    Parameters:
        descriptor: the file's, open for reading only.
        until: how long to wait for it, on the monotonic clock.
    """
    while True:
        try:
            size = _lease(descriptor)
        except OSError:
            status = os.fstat(descriptor)
            return status.st_size if time.time() - status.st_mtime > ABANDONED else None
        if size is not None or time.monotonic() >= until:
            return size
        time.sleep(_PAUSE)


def held_open(descriptor: int) -> bool:
    """Whether somebody has a file open for writing, as far as can be told.

    Parameters:
        descriptor: the file's, open for reading only.
    """
    try:
        return _lease(descriptor) is None
    except OSError:
        return False


def hold(descriptor: int) -> bool | None:
    """Keep everybody from opening a file for writing, or truncating it, until `release`.

    Parameters:
        descriptor: the file's, open for reading only.

    Returns:
        Whether it is held; not where somebody has it open for writing, and None where leases tell
        nothing: on another system, another file system, or of another's file.
    """
    try:
        return _take(descriptor)
    except OSError:
        return None


def is_wanted(descriptor: int) -> bool:
    """Whether somebody waits to open a file that is held, or has not waited any longer."""
    return fcntl.fcntl(descriptor, fcntl.F_GETLEASE) != fcntl.F_RDLCK


def release(descriptor: int) -> None:
    """Give a file back that is held; whoever waits to open it gets it."""
    # The system takes it away from who holds it for long, as one that was suspended does.
    with suppress(BlockingIOError):
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)


def _lease(descriptor: int) -> int | None:
    """The size of a file while nobody can have it open for writing; None where somebody has."""
    if not _take(descriptor):
        return None
    try:
        return os.fstat(descriptor).st_size
    finally:
        release(descriptor)


def _take(descriptor: int) -> bool:
    if sys.platform != "linux":
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))
    # Were an opener to come, the default signal (SIGIO) would end this process.
    fcntl.fcntl(descriptor, fcntl.F_SETSIG, _SIGURG)
    try:
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except BlockingIOError:
        return False
    return True
