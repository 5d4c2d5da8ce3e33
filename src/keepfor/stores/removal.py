"""Removes one file, only if it is still the one that the plan saw, and nobody is writing to it.

A lease keeps writers away meanwhile; where none is to be had, the bytes are compared. The file is
renamed aside first, so that nobody can come by its name any more, then compared once more, and only
then unlinked, or put back. All of it goes by the descriptor of the file's own
folder, so that a symlink swapped in leads nowhere. What a file is called while it is aside:

    .NAME.keepfor-aside.TOKEN       TOKEN tells whether it is as the plan saw it
    .keepfor-aside.TOKEN/NAME       where that would be too long

A removal killed on the way is undone by `recover`, or finished where the name was taken meanwhile.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Literal

import msgspec

from keepfor.stores.exchange import rename_new
from keepfor.stores.leases import hold, is_wanted, release

GONE = "it is gone already"
CHANGED = "it changed since the plan"
MOVED = "its folder was moved since the sweep began"
IN_USE = "somebody has it open for writing"
_MARK = re.compile(r"(?:\.(.+))?\.keepfor-aside\.([0-9a-f]{12})", re.DOTALL)
_LONGEST_NAME = 255
#: How much of a file is compared byte by byte. Most notes are shorter; a run may be far longer.
_HEAD = 64 * 1024

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class Removal(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What became of one file.

    Parameters:
        result: `applied`, `skipped` (it is not what the plan saw, or in use) or `failed`.
        why: what changed, or what the system said; for a removed file, what is left of it.
    """

    result: Literal["applied", "skipped", "failed"]
    why: str = ""


def fingerprint(status: os.stat_result) -> str:
    """Changes whenever the file does: its content, its name, its rights."""
    return f"{content_of(status)}:{status.st_ctime_ns}"


def never_moved() -> bool:
    return False


def remove(
    folder: int, name: str, seen: str, *, moved: Callable[[], bool] = never_moved
) -> Removal:
    """Remove a file from a folder.

    Parameters:
        folder: the folder's descriptor; it is locked, so that no other sweep is at work in it.
        name: the file's.
        seen: the fingerprint that the plan saw.
        moved: whether the folder stands elsewhere by now; asked once the file is aside.
    """
    try:
        descriptor = os.open(name, _FILE, dir_fd=folder)
    except FileNotFoundError:
        return Removal(result="skipped", why=GONE)
    except OSError as error:
        return not_opened(folder, name, seen, error)
    held = None
    try:
        held = hold(descriptor)
        status = os.fstat(descriptor)
        if fingerprint(status) != seen:
            return Removal(result="skipped", why=CHANGED)
        if held is False:
            return Removal(result="skipped", why=IN_USE)
        return _take(folder, name, descriptor, status, bool(held), moved)
    except FileNotFoundError:
        return Removal(result="skipped", why=GONE)
    except OSError as error:
        return Removal(result="failed", why=error.strerror or str(error))
    finally:
        if held:
            # To close it is not enough: a child that was forked meanwhile has it open as well.
            release(descriptor)
        os.close(descriptor)


def recover(folder: int, names: Iterable[str] | None = None) -> None:
    """Put back, or clear, what a killed sweep left aside.

    Parameters:
        folder: the folder's descriptor, locked.
        names: what is in it, if that is known already.
    """
    for mark in _marks(os.listdir(folder) if names is None else names):
        with _left(folder, mark) as (place, left):
            for aside, name in left:
                _settle(folder, name, place, aside, mark[2])
        # That of a long name is an empty folder now.
        with suppress(OSError):
            os.rmdir(mark[0], dir_fd=folder)


def leftovers(folder: int, names: Iterable[str] | None = None) -> list[str]:
    """Where files are that a killed sweep left aside, from the folder on; reads only."""
    found = []
    for mark in _marks(os.listdir(folder) if names is None else names):
        with _left(folder, mark) as (place, left):
            found += [aside if place == folder else f"{mark[0]}/{aside}" for aside, _ in left]
    return sorted(found)


def _take(
    folder: int,
    name: str,
    descriptor: int,
    status: os.stat_result,
    held: bool,
    moved: Callable[[], bool],
) -> Removal:
    head = b"" if held else os.pread(descriptor, _HEAD, 0)
    with _aside(folder, name, token_of(status)) as (place, aside):
        if fingerprint(os.fstat(descriptor)) != fingerprint(status):
            return Removal(result="skipped", why=CHANGED)
        os.rename(name, aside, src_dir_fd=folder, dst_dir_fd=place)
        try:
            # Now nobody can come by its name: what holds from here on, holds to the end.
            there = os.stat(aside, dir_fd=place, follow_symlinks=False)
            if content_of(there) != content_of(status):
                why = CHANGED
            elif moved():
                why = MOVED
            elif held:
                why = IN_USE if is_wanted(descriptor) else ""
            else:
                why = _rewritten(status, descriptor, head)
            if not why:
                os.unlink(aside, dir_fd=place)
                return Removal(result="applied", why=_other_names(there))
        except OSError as error:
            if not (kept := _put_back(folder, name, place, aside)):
                raise
            why = f"{error.strerror or error}, and {kept}: it is aside as {aside}"
            return Removal(result="failed", why=why)
        if kept := _put_back(folder, name, place, aside):
            why += f", and {kept}: it is aside as {aside}"
        return Removal(result="skipped", why=why)


@contextmanager
def _aside(folder: int, name: str, token: str) -> Iterator[tuple[int, str]]:
    """Where a file goes: the descriptor of a folder, and a name in it."""
    mark = f".keepfor-aside.{token}"
    aside = f".{name}{mark}"
    if len(os.fsencode(aside)) <= _LONGEST_NAME:
        yield folder, aside
        return
    with suppress(FileExistsError):
        os.mkdir(mark, 0o700, dir_fd=folder)
    place = os.open(mark, _FOLDER, dir_fd=folder)
    try:
        yield place, name
    finally:
        os.close(place)
        with suppress(OSError):
            os.rmdir(mark, dir_fd=folder)


def _marks(names: Iterable[str]) -> list[re.Match[str]]:
    return [mark for name in names if (mark := _MARK.fullmatch(name))]


@contextmanager
def _left(folder: int, mark: re.Match[str]) -> Iterator[tuple[int, list[tuple[str, str]]]]:
    """What stands aside under a mark: the folder it is in, its names there, and its own names."""
    if mark[1]:
        yield folder, [(mark[0], mark[1])]
        return
    try:
        place = os.open(mark[0], _FOLDER, dir_fd=folder)
    except OSError:
        # Something else that is called so; it is none of ours.
        yield folder, []
        return
    try:
        yield place, [(name, name) for name in os.listdir(place)]
    finally:
        os.close(place)


def _rewritten(status: os.stat_result, descriptor: int, head: bytes) -> str:
    """Why a file that is aside may not go after all, where no lease kept writers away."""
    # Who closed it a moment ago may have written to it, or put the size and the mtime back.
    if content_of(os.fstat(descriptor)) != content_of(status):
        return CHANGED
    return "" if os.pread(descriptor, _HEAD, 0) == head else CHANGED


def _settle(folder: int, name: str, place: int, aside: str, token: str) -> None:
    with suppress(FileNotFoundError):
        if not _put_back(folder, name, place, aside):
            return
        left = os.stat(aside, dir_fd=place, follow_symlinks=False)
        there = os.stat(name, dir_fd=folder, follow_symlinks=False)
        # Killed over putting it back; or it was to go, and has not changed since.
        if os.path.samestat(left, there) or token_of(left) == token:
            os.unlink(aside, dir_fd=place)


def _put_back(folder: int, name: str, place: int, aside: str) -> str:
    """Give a file its name again, unless something else has it now; tells what is in the way."""
    try:
        try:
            os.link(aside, name, src_dir_fd=place, dst_dir_fd=folder, follow_symlinks=False)
        except FileExistsError:
            raise
        except OSError:
            # A folder, somebody else's file, or a file system without hard links.
            rename_new(place, aside, folder, name)
            return ""
    except FileExistsError:
        return "its name was taken meanwhile"
    except FileNotFoundError:
        raise
    except OSError as error:
        return f"it cannot be put back ({error.strerror or error})"
    os.unlink(aside, dir_fd=place)
    return ""


def not_opened(folder: int, name: str, seen: str, error: OSError) -> Removal:
    """Tell a file that may not be read from something that stands where a file was."""
    with suppress(OSError):
        if fingerprint(os.stat(name, dir_fd=folder, follow_symlinks=False)) != seen:
            return Removal(result="skipped", why=CHANGED)
    return Removal(result="failed", why=error.strerror or str(error))


def content_of(status: os.stat_result) -> str:
    return f"{status.st_ino}:{status.st_size}:{status.st_mtime_ns}"


def token_of(status: os.stat_result) -> str:
    return hashlib.sha256(content_of(status).encode()).hexdigest()[:12]


def _other_names(status: os.stat_result) -> str:
    others = status.st_nlink - 1
    if not others:
        return ""
    return f"{others} other name{'s' if others > 1 else ''} of the file still hold its content"
