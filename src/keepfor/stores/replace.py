"""Replaces a file that others append to, without losing or doubling a row of theirs.

Read, filter, write beside, rename loses what a writer appends in between, because it lands in the
file that the rename replaces. Here the old file keeps a second name until nobody can write to it
any more, and what was written to it meanwhile is drained into the new one. The second name says
how far it was copied, so that a sweep killed at any point is finished by the next:

    .NAME.keepfor-new                           a copy being made; worth nothing
    .NAME.keepfor-old.INODE.COPIED              the rest is still to be drained
    .NAME.keepfor-old.INODE.COPIED.END.LANDING  [COPIED, END) is just being appended to the
                                                ledger, at or after LANDING
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import re
import sys
import time

import msgspec

from keepfor.errors import CannotReplace, StoreChanged
from keepfor.stores import files, leases
from keepfor.stores.rows import load_row

#: How long a drain waits for writers to close the old file, in seconds.
PATIENCE = 0.05

_PIECE = 8 << 20
_PAUSE = 0.001
_LONGEST_STEM = 160


class OldFile(msgspec.Struct, kw_only=True):
    """A replaced file that is not drained yet.

    Parameters:
        path: its second name.
        copied: bytes before this offset are in the ledger.
        end: where the piece ends that is being appended; None when none is.
        landing: the ledger's size before that piece was appended.
    """

    path: str
    copied: int
    end: int | None = None
    landing: int | None = None


def beside(path: str, suffix: str) -> str:
    """The name of one of our own files beside a ledger."""
    folder, name = os.path.split(path)
    if len(os.fsencode(name)) > _LONGEST_STEM:
        name = hashlib.sha256(os.fsencode(name)).hexdigest()[:32]
    return os.path.join(folder, f".{name}.keepfor-{suffix}")


def leftovers(path: str) -> list[OldFile]:
    """The replaced files of a ledger that still hold rows of its writers; reads only."""
    prefix = beside(path, "old.")
    folder, start = os.path.split(prefix)
    # No offset has more digits; what has is none of ours.
    number = "([0-9]{1,18})"
    pattern = re.compile(rf"{re.escape(start)}[0-9]+\.{number}(?:\.{number}\.{number})?")
    found = []
    with os.scandir(folder or ".") as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            match = pattern.fullmatch(entry.name)
            if match and entry.is_file(follow_symlinks=False):
                copied = int(match[1])
                end, landing = (int(part) if part else None for part in match.groups()[1:])
                name = os.path.join(folder, entry.name)
                if end is None or copied <= end:
                    found.append(OldFile(path=name, copied=copied, end=end, landing=landing))
    return found


def recover(path: str) -> None:
    """Finish or clear what a killed prune left beside a locked ledger, and drain it again."""
    _unlink(beside(path, "new"))
    for old in leftovers(path):
        if os.path.samestat(os.lstat(old.path), os.stat(path)):
            os.unlink(old.path)
            continue
        descriptor = files.open_for_reading(old.path, os.O_NOFOLLOW)
        try:
            drain(path, descriptor, old)
        finally:
            os.close(descriptor)


def create(path: str, source: int) -> int:
    """An empty file beside a ledger, with the mode, owner and attributes of the ledger.

    Raises:
        CannotReplace: when one of them cannot be given to it.
        OSError: when the ledger may not be written to, or the copy not be made.
    """
    # A rename would get round the mode of a file that is not to be changed.
    files.close(files.open_for_writing(path, os.O_RDWR | os.O_NOCTTY))
    target = beside(path, "new")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = files.open_for_writing(target, flags, 0o600)
    try:
        copy_attributes(source, descriptor, path)
    except BaseException:
        discard(path, descriptor)
        raise
    return descriptor


def discard(path: str, new: int) -> None:
    """Close and remove a copy that is not wanted after all."""
    files.close(new)
    _unlink(beside(path, "new"))


def swap(path: str, old: int, new: int, copied: int) -> OldFile | None:
    """Put a finished copy in a ledger's place, and drain into it what came meanwhile.

    Parameters:
        path: the ledger, locked.
        old: its descriptor.
        new: the copy's, from `create`, on disk already; it is closed.
        copied: the offset in the old file up to which the copy speaks for it.

    Returns:
        The old file, if a writer may hold it open still.

    Raises:
        StoreChanged: when another file was put in the ledger's place meanwhile.
    """
    name = beside(path, f"old.{os.fstat(old).st_ino}.{copied}")
    try:
        # Whoever prunes next locks this inode, and must find us at work from the first moment.
        fcntl.flock(new, fcntl.LOCK_EX)
        os.link(path, name)
        if not files.same_file(old, name):
            # Rotated away: the rows of the file that stands there now are in no copy.
            raise StoreChanged(path=path, why="another file stands there now")
        os.rename(beside(path, "new"), path)
    except BaseException as error:
        if files.same_file(new, path):
            # An interrupt, right after the rename: the next prune drains the old file.
            files.close(new)
        else:
            # What had that name already is none of ours.
            if not isinstance(error, FileExistsError):
                _unlink(name)
            discard(path, new)
        raise
    undrained = OldFile(path=name, copied=copied)
    try:
        files.sync_folder(path)
        return drain(path, old, undrained, PATIENCE)
    except OSError:
        # Nothing is lost: the old file keeps its name until the next prune drains it.
        return undrained
    finally:
        fcntl.flock(new, fcntl.LOCK_UN)
        files.close(new)


def drain(path: str, descriptor: int, old: OldFile, patience: float = 0.0) -> OldFile | None:
    """Append to a ledger what was written to the file it replaced, and drop that file.

    Parameters:
        path: the ledger.
        descriptor: the old file's, open for reading only.
        old: how far it was drained before; brought up to date.
        patience: how long to wait for its writers, in seconds.

    Returns:
        The old file, if a writer may hold it open still.
    """
    until = time.monotonic() + patience
    ledger = files.open_for_append(path)
    try:
        _finish_piece(ledger, descriptor, old)
        # Twice, since an opener that looked the path up before the rename may come in between.
        for again in (True, False):
            end = leases.size_at_rest(descriptor, until)
            size = os.fstat(descriptor).st_size if end is None else end
            if size < old.copied:
                # Somebody emptied it after it was copied: what stands there now came later.
                _rename(old, 0)
            if end is None:
                # An unfinished last line stays with its writer.
                _move(ledger, descriptor, old, files.end_of_lines(descriptor, size, old.copied))
                os.fsync(ledger)
                _punch(descriptor, old)
                return old
            came = end > old.copied
            _move(ledger, descriptor, old, end)
            if came or again:
                os.fsync(ledger)
            if again:
                # Where rows came, more openers are about, and one may be held up on its way.
                time.sleep(max(_PAUSE, until - time.monotonic() if came else 0.0))
        os.unlink(old.path)
        return None
    finally:
        files.close(ledger)


def _move(ledger: int, descriptor: int, old: OldFile, upto: int) -> None:
    if upto > old.copied and (start := _start_of_row(descriptor, old.copied, upto)) < old.copied:
        _rename(old, start)
    while piece := files.read_lines(descriptor, old.copied, upto, _PIECE):
        _rename(old, old.copied, old.copied + len(piece), os.fstat(ledger).st_size)
        files.append(ledger, piece)
        _rename(old, old.copied + len(piece))


def _start_of_row(descriptor: int, copied: int, upto: int) -> int:
    """Where to go on so that no row is cut in two.

    An unfinished last line was copied as it was. Where somebody finished it after that, it is
    brought over once more, whole; unless what came after it is a row by itself.
    """
    start = files.end_of_lines(descriptor, copied)
    if start == copied:
        return copied
    rest = files.read_lines(descriptor, copied, upto, files.BLOCK).partition(b"\n")[0]
    try:
        if rest.strip():
            load_row(rest)
        return copied
    except (ValueError, RecursionError):
        return start


def _finish_piece(ledger: int, descriptor: int, old: OldFile) -> None:
    """Find out how much of a piece had landed when the prune that appended it was killed."""
    if old.end is None or old.landing is None:
        return
    end = min(old.end, os.fstat(descriptor).st_size)
    piece = os.pread(descriptor, max(0, end - old.copied), old.copied)
    _rename(old, old.copied + _landed(ledger, piece, old.landing))


def _landed(ledger: int, piece: bytes, landing: int) -> int:
    """How many bytes of a piece's whole rows stand in the ledger, at or after an offset."""
    size = os.fstat(ledger).st_size
    first = piece[: piece.find(b"\n") + 1] or piece
    best = 0
    for position in range(landing if landing <= size else 0, size, _PIECE):
        window = os.pread(ledger, _PIECE + len(piece), position)
        at = window.find(first)
        while at >= 0:
            same = _common_prefix(window[at : at + len(piece)], piece)
            best = max(best, same if same == len(piece) else piece.rfind(b"\n", 0, same) + 1)
            at = window.find(first, at + 1)
    return best


def _common_prefix(one: bytes, other: bytes) -> int:
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _rename(old: OldFile, copied: int, end: int | None = None, landing: int | None = None) -> None:
    """Note in the old file's name how far it is drained, in one step."""
    stem = re.sub(r"(\.keepfor-old\.\d+)\.[\d.]+$", r"\1", old.path)
    path = f"{stem}.{copied}" if end is None else f"{stem}.{copied}.{end}.{landing}"
    os.rename(old.path, path)
    old.path, old.copied, old.end, old.landing = path, copied, end, landing


def _punch(source: int, old: OldFile) -> None:
    """Free what was copied, so that no expired row stays on disk for as long as a writer does."""
    # The last line feed stays, to tell where the next row begins.
    length = files.end_of_lines(source, old.copied) - 1
    if length <= 0 or sys.platform != "linux" or os.lstat(old.path).st_nlink > 1:
        return
    import ctypes

    keep_size, punch_hole = 1, 2
    descriptor = os.open(old.path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        fallocate = ctypes.CDLL(None).fallocate
        fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
        fallocate(descriptor, punch_hole | keep_size, 0, length)
    finally:
        os.close(descriptor)


def copy_attributes(source: int, target: int, path: str) -> None:
    old, new = os.fstat(source), os.fstat(target)
    try:
        if (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid):
            os.fchown(target, old.st_uid, old.st_gid)
    except OSError as error:
        raise CannotReplace(path=path, attribute="owner", why=error.strerror) from error
    os.fchmod(target, old.st_mode & 0o7777)
    if not hasattr(os, "listxattr"):
        return
    wanted = {
        name: os.getxattr(source, name) for name in _attributes(source) if name != files.ATTEMPT
    }
    for name in _attributes(target):
        if name not in wanted:
            os.removexattr(target, name)
    for name, value in wanted.items():
        try:
            os.setxattr(target, name, value)
        except OSError as error:
            if _attribute(target, name) != value:
                raise CannotReplace(path=path, attribute=name, why=error.strerror) from error


def _attributes(descriptor: int) -> list[str]:
    try:
        return os.listxattr(descriptor)
    except OSError as error:
        if error.errno == errno.ENOTSUP:
            return []
        raise


def _attribute(descriptor: int, name: str) -> bytes | None:
    try:
        return os.getxattr(descriptor, name)
    except OSError:
        return None


def _unlink(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
