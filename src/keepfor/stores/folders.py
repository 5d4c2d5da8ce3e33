"""A folder as the root of a store: opened without surprises, and locked against other sweeps."""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from keepfor.errors import StoreBusy, StoreError
from keepfor.stores import files

_LOCK_POLL = 0.01


def open_folder(path: str) -> int:
    """A descriptor for reading a folder.

    Raises:
        FileNotFoundError: when nothing is there.
        StoreError: when something else stands there, or it may not be read.
    """
    try:
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise explained(error, path) from error


@contextmanager
def locked(path: str, wait: float = 0.0) -> Iterator[int]:
    """A folder, open for reading and locked against other sweeps.

    The lock is a `flock` on the folder itself, so that it holds whichever configuration another
    sweep comes by.

    Parameters:
        path: the folder's.
        wait: how long to wait for another sweep, in seconds.

    Raises:
        StoreBusy: when another sweep holds it still.
        FileNotFoundError: when nothing is there.
        StoreError: as for `open_folder`.
    """
    until = time.monotonic() + wait
    while True:
        descriptor = open_folder(path)
        try:
            if _flock(descriptor) and os.path.samestat(os.fstat(descriptor), os.stat(path)):
                yield descriptor
                return
        finally:
            files.unlock(descriptor)
        if time.monotonic() >= until:
            raise StoreBusy(path=path, waited=wait)
        time.sleep(_LOCK_POLL)


def explained(error: OSError, path: str) -> StoreError:
    """A system error about a folder as one that says what to do."""
    if error.errno == errno.ENOTDIR:
        what = "it is not a folder."
        return StoreError(path=path, what=what, fix="Give the path of the folder that holds them.")
    return files.explained(error, path)


def _flock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
