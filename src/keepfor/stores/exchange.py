"""Renames in a single step in ways that Python itself has no call for."""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import sys
from collections.abc import Callable

#: What asks for an exchange: RENAME_EXCHANGE of Linux, RENAME_SWAP of macOS.
_EXCHANGE = 2
#: What asks for a name that is free: RENAME_NOREPLACE of Linux, RENAME_EXCL of macOS.
_NEW = 4 if sys.platform == "darwin" else 1


def exchange(folder: int, one: str, other: str) -> None:
    """Give each of two files the name of the other.

    Parameters:
        folder: the descriptor of the folder that both are in.
        one: the name of the one.
        other: the name of the other.

    Raises:
        OSError: when one of them is not there, or the file system cannot do it; both are as they
            were.
    """
    _rename(folder, one, folder, other, _EXCHANGE, "exchange two files in one step")


def rename_new(source: int, name: str, target: int, new: str) -> None:
    """Rename a file, or a folder, only if nothing has the new name.

    Parameters:
        source: the descriptor of the folder that it is in.
        name: its name there.
        target: the descriptor of the folder that it goes to.
        new: its name there.

    Raises:
        FileExistsError: when something has that name already.
        OSError: when it is not there, or the file system cannot do it; it is where it was.
    """
    _rename(source, name, target, new, _NEW, "rename without replacing")


def _rename(source: int, name: str, target: int, new: str, flag: int, what: str) -> None:
    if _call()(source, os.fsencode(name), target, os.fsencode(new), flag):
        number = ctypes.get_errno()
        why = os.strerror(number)
        if number in (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP):
            why = f"this file system cannot {what}"
        raise OSError(number, why, new)


@functools.cache
def _call() -> Callable[[int, bytes, int, bytes, int], int]:
    name = "renameatx_np" if sys.platform == "darwin" else "renameat2"
    call = getattr(ctypes.CDLL(None, use_errno=True), name, None)
    if call is None:
        raise OSError(errno.ENOSYS, f"the C library of this system has no {name}")
    call.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
    call.restype = ctypes.c_int
    checked: Callable[[int, bytes, int, bytes, int], int] = call
    return checked
