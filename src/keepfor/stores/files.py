"""What every file store needs: opening, appending, locking, and telling what stands in the way.

Imported by every append, so it imports next to nothing.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
import time
from _thread import RLock
from collections.abc import Iterator
from contextlib import contextmanager

from keepfor.errors import StoreBusy, StoreError, UnsupportedPlatform

if sys.platform not in ("linux", "darwin"):
    raise UnsupportedPlatform(platform=sys.platform)

import fcntl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

#: How much of a file is read at a time, in bytes. From 128 KiB on, malloc would map the memory for
#: each block anew, and the kernel clear it.
BLOCK = 1 << 16

#: The extended attribute that tells when an append last pruned a file. It belongs to one inode,
#: and does not pass to the file that replaces it.
ATTEMPT = "user.keepfor.attempt"

_LOCK_POLL = 0.01

#: How often a last line must be found unfinished before it counts as torn.
_LOOKS = 3

_inherited: set[int] = set()
#: Held while a file is opened or closed, so that a fork does not fall between that and the note of
#: it; reentrant, for a signal handler that forks.
_forking = RLock()


def _forget_inherited() -> None:
    """Close what another thread had open for writing when this process was forked off it.

    The child would hold those files open for as long as it lives, and a file that is held open
    cannot be drained for good.
    """
    for descriptor in _inherited:
        os.close(descriptor)
    _inherited.clear()
    _forking.release()


os.register_at_fork(
    before=_forking.acquire, after_in_parent=_forking.release, after_in_child=_forget_inherited
)


def close(descriptor: int) -> None:
    """Close what was opened for writing."""
    with _forking:
        _inherited.discard(descriptor)
        os.close(descriptor)


def open_for_writing(path: str, flags: int, mode: int = 0o666, *, folder: int | None = None) -> int:
    """A descriptor that a forked child does not keep; to be closed by `close`.

    Parameters:
        path: the file's.
        flags: what to tell `os.open`.
        mode: the rights of a file that is made.
        folder: the descriptor of the folder that a relative path starts from.
    """
    with _forking:
        descriptor = os.open(path, flags | os.O_CLOEXEC, mode, dir_fd=folder)
        _inherited.add(descriptor)
    return descriptor


def open_for_append(path: str) -> int:
    """A descriptor for appending to a file, which is made if it is not there yet.

    That it is a regular file is for `append` to see, which asks for its size anyway.

    Raises:
        OSError: as `open(path, "a")` would.
    """
    # Not O_NONBLOCK: it would fail in the moment for which a prune holds a lease.
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOCTTY
    try:
        return open_for_writing(path, flags)
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        return open_for_writing(path, flags)


def append(descriptor: int, data: bytes, path: str = "the path") -> tuple[int, int]:
    """Write whole lines to the end of a file, in one write.

    A torn last line (its writer was killed) is ended first, so that the data stands on lines of
    its own.

    Parameters:
        descriptor: from `open_for_append`.
        data: one or more lines, each ended by LF.
        path: the file's, for a message.

    Returns:
        The offset of the data's first byte, and of the first byte after it.

    Raises:
        OSError: when it could not be written whole.
        StoreError: when the descriptor is not a regular file's.
    """
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        raise not_a_file(status.st_mode, path)
    if _is_torn(descriptor, status.st_size):
        written = os.write(descriptor, b"\n" + data) - 1
    else:
        written = os.write(descriptor, data)
    if written != len(data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    end = os.lseek(descriptor, 0, os.SEEK_CUR)
    return end - len(data), end


def _is_torn(descriptor: int, size: int) -> bool:
    for _ in range(_LOOKS):
        if not size or os.pread(descriptor, 1, size - 1) == b"\n":
            return False
        # Another write may be half in place. One of no bytes waits for it, and changes nothing.
        os.write(descriptor, b"")
        size = os.fstat(descriptor).st_size
    return True


def open_for_reading(path: str, flags: int = 0) -> int:
    """A descriptor for reading a regular file.

    Parameters:
        path: the file's.
        flags: what else to tell `os.open`.

    Raises:
        FileNotFoundError: when nothing is there.
        StoreError: when something else stands there, or it may not be read.
    """
    try:
        flags |= os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK
        descriptor = os.open(path, flags)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise explained(error, path) from error
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        raise not_a_file(mode, path)
    return descriptor


def end_of_lines(descriptor: int, end: int, start: int = 0) -> int:
    """The offset after the last LF between two offsets; `start` where there is none."""
    while end > start:
        block = os.pread(descriptor, min(BLOCK, end - start), max(start, end - BLOCK))
        if not block:
            break
        if (found := block.rfind(b"\n")) >= 0:
            return max(start, end - BLOCK) + found + 1
        end = max(start, end - BLOCK)
    return start


def read_lines(descriptor: int, start: int, end: int, about: int) -> bytes:
    """Whole lines from an offset on: about so many bytes, or one line that is longer.

    Parameters:
        end: where to stop; the last line ends there, with an LF or without.
        about: how many bytes to read, unless not even one line ends within them.
    """
    while True:
        data = os.pread(descriptor, min(about, end - start), start)
        if start + len(data) >= end or len(data) < about:
            return data
        if cut := data.rfind(b"\n") + 1:
            return data[:cut]
        about *= 2


@contextmanager
def locked(
    path: str, wait: float = 0.0, opener: Callable[[str], int] = open_for_reading
) -> Iterator[int]:
    """What stands at a path, open for reading and locked against other sweeps.

    The lock is a `flock` on the inode itself, so that it holds whichever configuration, or
    whichever of its names, another sweep comes by.

    Parameters:
        path: a regular file, or what the opener opens.
        wait: how long to wait for another sweep, in seconds.
        opener: gives a descriptor for reading.

    Raises:
        StoreBusy: when another sweep holds it still.
        FileNotFoundError: when nothing is there.
        StoreError: as the opener says.
    """
    until = time.monotonic() + wait
    while True:
        descriptor = opener(path)
        try:
            if _flock(descriptor) and same_file(descriptor, path):
                yield descriptor
                return
        finally:
            unlock(descriptor)
        if time.monotonic() >= until:
            raise StoreBusy(path=path, waited=wait)
        time.sleep(_LOCK_POLL)


def unlock(descriptor: int) -> None:
    """Give a lock back and close its descriptor; a copy that a fork made holds nothing then."""
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    os.close(descriptor)


def _flock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def same_file(descriptor: int, path: str) -> bool:
    """Whether a path leads to the file that was opened."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False


def sync_folder(path: str) -> None:
    """Make what was renamed in a file's folder outlast a power cut."""
    descriptor = os.open(os.path.dirname(path) or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def not_a_file(mode: int, path: str) -> StoreError:
    """The error for something that stands where a file should be."""
    kinds: list[tuple[Callable[[int], bool], str]] = [
        (stat.S_ISDIR, "a folder"),
        (stat.S_ISSOCK, "a socket"),
        (stat.S_ISFIFO, "a pipe"),
    ]
    kind = next((name for test, name in kinds if test(mode)), "a device")
    return StoreError(
        path=path, what=f"it is {kind}, not a file.", fix="Give the path of the ledger itself."
    )


def explained(error: OSError, path: str) -> StoreError:
    """A system error as one that says what to do."""
    fixes = {
        errno.EACCES: "Run as a user who may read it and write its folder.",
        errno.EPERM: "Run as the user that owns it.",
        errno.EROFS: "The file system is read-only; nothing can be removed there.",
        errno.ENOSPC: "Free some space: a rewrite needs room for what stays. It is as it was.",
        errno.EDQUOT: "Free some quota: a rewrite needs room for what stays. It is as it was.",
        errno.EBUSY: "It is mounted by itself; mount its folder instead.",
        errno.EXDEV: "It is mounted by itself; mount its folder instead.",
        errno.ENOTDIR: "A file stands where its path needs a folder; mend the path.",
        errno.ELOOP: "Its symlinks lead in a circle.",
        errno.ENXIO: "It is a socket, not a file. Give the path of the ledger itself.",
        errno.EISDIR: "It is a folder, not a file. Give the path of the ledger itself.",
    }
    what = f"{error.strerror or error}."
    return StoreError(path=path, what=what, fix=fixes.get(error.errno or 0, "Nothing was done."))
