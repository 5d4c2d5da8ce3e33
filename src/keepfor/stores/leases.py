"""Tells whether somebody has a file open for writing, who may never have heard of keepfor.

On Linux a read lease is granted only while nobody has. It is given back at once, because an opener
is blocked for as long as it is held.
"""

from __future__ import annotations

import errno
import fcntl
import os
import sys
import time

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


def _lease(descriptor: int) -> int | None:
    """The size of a file while nobody can have it open for writing; None where somebody has."""
    if sys.platform != "linux":
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))
    # Were an opener to come, the default signal (SIGIO) would end this process.
    fcntl.fcntl(descriptor, fcntl.F_SETSIG, _SIGURG)
    try:
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except BlockingIOError:
        return None
    try:
        return os.fstat(descriptor).st_size
    finally:
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
