"""Exchanges two names of one folder in a single step, which Python itself has no call for."""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import sys
from collections.abc import Callable

#: What asks for an exchange: RENAME_EXCHANGE of Linux, RENAME_SWAP of macOS.
_FLAG = 2


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
    if _call()(folder, os.fsencode(one), folder, os.fsencode(other), _FLAG):
        number = ctypes.get_errno()
        why = os.strerror(number)
        if number in (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP):
            why = "this file system cannot exchange two files in one step"
        raise OSError(number, why, other)


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
