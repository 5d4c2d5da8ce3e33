"""Walks a tree of folders by descriptor: follows no symlink, and never leaves its root."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import suppress

import msgspec

#: Deeper than this nobody keeps notes, and each level holds a file open.
DEEPEST = 100

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Folder(msgspec.Struct, frozen=True, kw_only=True):
    """One folder, open for as long as the walk stands at it.

    Parameters:
        path: from the start of the walk on, such as `a/b`; empty for the start itself.
        descriptor: the folder's.
        files: the regular files in it that are not hidden.
        hidden: the names of the hidden things in it.
        folders: the names of the folders in it that the walk will enter.
    """

    path: str
    descriptor: int
    files: list[os.DirEntry[str]]
    hidden: list[str]
    folders: list[str]


def open_folder(root: int, path: str, *, make: bool = False) -> int:
    """The descriptor of a folder below a root.

    Parameters:
        root: the root's descriptor.
        path: the way there, such as `a/b`, or nothing for the root itself.
        make: whether folders that are not there are made.

    Raises:
        OSError: when it is not there, or a symlink or `..` stands in the way.
    """
    here = os.dup(root)
    try:
        for name in path.split("/") if path else ():
            if name in ("", ".", ".."):
                raise FileNotFoundError(errno.ENOENT, f"{path!r} is no way to a folder")
            if make:
                with suppress(FileExistsError):
                    os.mkdir(name, dir_fd=here)
            there = os.open(name, _FOLDER, dir_fd=here)
            os.close(here)
            here = there
    except BaseException:
        os.close(here)
        raise
    return here


def walk(
    start: int, enters: Callable[[str], bool], fails: Callable[[str, OSError | None], None]
) -> Iterator[Folder]:
    """Each folder of a tree, with what is in it.

    Parameters:
        start: the descriptor of the folder to begin at.
        enters: asked of each folder below, by its path, whether the walk goes there. Hidden ones
            are never entered.
        fails: told the path of a folder that cannot be read, and why; without a reason where it
            lies too deep.
    """
    stack: list[tuple[Folder, Iterator[str]]] = []
    here = _look("", os.dup(start), enters, fails)
    try:
        while here is not None or stack:
            if here is not None:
                stack.append((here, iter(here.folders)))
                yield here
            folder, names = stack[-1]
            name = next(names, None)
            here = None
            if name is None:
                os.close(folder.descriptor)
                stack.pop()
                continue
            below = f"{folder.path}/{name}" if folder.path else name
            if len(stack) >= DEEPEST:
                fails(below, None)
                continue
            try:
                there = os.open(name, _FOLDER, dir_fd=folder.descriptor)
            except FileNotFoundError:
                continue
            except OSError as error:
                fails(below, error)
                continue
            here = _look(below, there, enters, fails)
    finally:
        for folder, _ in stack:
            os.close(folder.descriptor)


def _look(
    path: str,
    descriptor: int,
    enters: Callable[[str], bool],
    fails: Callable[[str, OSError | None], None],
) -> Folder | None:
    """What is in a folder; its descriptor is closed where that cannot be told."""
    prefix = f"{path}/" if path else ""
    try:
        with os.scandir(descriptor) as found:
            entries = list(found)
    except OSError as error:
        os.close(descriptor)
        fails(path, error)
        return None
    files = [entry for entry in entries if entry.is_file(follow_symlinks=False)]
    hidden = [entry.name for entry in entries if entry.name[0] == "."]
    folders: list[str] = []
    if len(files) < len(entries):
        others = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
        folders = sorted(name for name in others if name[0] != "." and enters(prefix + name))
    if hidden:
        files = [entry for entry in files if entry.name[0] != "."]
    return Folder(
        path=path,
        descriptor=descriptor,
        files=files,
        hidden=hidden,
        folders=folders,
    )
