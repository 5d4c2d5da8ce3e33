"""A folder as the root of a store: opened without surprises, and locked against other sweeps."""

from __future__ import annotations

import errno
import os
from contextlib import AbstractContextManager, suppress

from keepfor.errors import StoreError
from keepfor.stores import files

#: Paths, with what stood there when the last of them was opened.
Way = list[tuple[str, os.stat_result]]


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


def locked(path: str, wait: float = 0.0) -> AbstractContextManager[int]:
    """A folder, open for reading and locked against other sweeps; see `files.locked`."""
    return files.locked(path, wait, open_folder)


def is_moved(folder: int, way: Way) -> bool:
    """Whether a folder that is open, or one on the way to it, no longer stands at its path.

    A descriptor leads to a folder wherever it goes, into a backup as well.

    Parameters:
        folder: the folder's descriptor.
        way: the folders that lead to it, and at last itself.
    """
    with suppress(OSError):
        # Where the system tells at once; it may see another path, as through a bind mount.
        if os.readlink(f"/proc/self/fd/{folder}") == way[-1][0]:
            return False
    try:
        return not all(
            os.path.samestat(os.stat(path, follow_symlinks=False), seen) for path, seen in way
        )
    except OSError:
        return True


def explained(error: OSError, path: str) -> StoreError:
    """A system error about a folder as one that says what to do."""
    if error.errno == errno.ENOTDIR:
        what = "it is not a folder."
        return StoreError(path=path, what=what, fix="Give the path of the folder that holds them.")
    return files.explained(error, path)
