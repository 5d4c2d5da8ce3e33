"""Refuses every write outside one folder, by whatever Python code runs in the process.

Imported both by the tests and, through `sitecustomize`, by each Python process that a page starts.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
#: Which of an event's arguments name what is written.
WRITTEN = {
    "os.chmod": (0,),
    "os.chown": (0,),
    "os.link": (1,),
    "os.mkdir": (0,),
    "os.remove": (0,),
    "os.rename": (0, 1),
    "os.rmdir": (0,),
    "os.setxattr": (0,),
    "os.symlink": (1,),
    "os.truncate": (0,),
    "os.utime": (0,),
}
DEVICES = ("/dev/null", "/dev/tty")

_root: str | None = None


def _watch(event: str, arguments: tuple[object, ...]) -> None:
    if _root is None:
        return
    if event == "open":
        path, _, flags = arguments
        written = [path] if isinstance(flags, int) and flags & WRITING else []
    else:
        written = [arguments[index] for index in WRITTEN.get(event, ())]
    for path in written:
        if isinstance(path, str | bytes | os.PathLike):
            folder = os.path.dirname(os.path.abspath(os.fsdecode(path)))
            inside = f"{os.path.realpath(folder)}/".startswith(f"{_root}/")
            if not inside and path not in DEVICES:
                raise PermissionError(f"outside the sandbox: {os.fsdecode(path)} ({event})")


_watching = False


def fence(root: str) -> None:
    """Keep this process's writes within a folder from here on."""
    global _root, _watching
    _root = os.path.realpath(root)
    if not _watching:
        # A hook stays for good, so there is one, and it is told when to look.
        sys.addaudithook(_watch)
        _watching = True


@contextmanager
def fenced(root: str) -> Iterator[None]:
    """Keep this process's writes within a folder for a while."""
    global _root
    # Byte code beside a module that is imported meanwhile would be such a write.
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    fence(root)
    try:
        yield
    finally:
        _root = None
        sys.dont_write_bytecode = before
