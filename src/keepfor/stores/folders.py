"""A folder as the root of a store: opened without surprises, and locked against other sweeps."""

from __future__ import annotations

import errno
import os
from contextlib import AbstractContextManager

from keepfor.errors import StoreError
from keepfor.stores import files


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


def is_moved(path: str, folder: int) -> bool:
    """Whether a folder that is open no longer stands at its path.

    A descriptor leads to a folder wherever it goes, into a backup as well.
    """
    try:
        there = os.stat(path, follow_symlinks=False)
    except OSError:
        return True
    return not os.path.samestat(there, os.fstat(folder))


def explained(error: OSError, path: str) -> StoreError:
    """A system error about a folder as one that says what to do."""
    if error.errno == errno.ENOTDIR:
        what = "it is not a folder."
        return StoreError(path=path, what=what, fix="Give the path of the folder that holds them.")
    return files.explained(error, path)
