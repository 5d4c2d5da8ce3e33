"""What belongs to a store of entities, what its ids stand for, and how its notes are read."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Iterator
from datetime import tzinfo
from fnmatch import fnmatchcase

import msgspec

from keepfor.stores import tree
from keepfor.stores.ids import unescape
from keepfor.stores.tree import Folder

#: What a pattern may end with that stands for itself, beginning with a full stop.
_SUFFIX = re.compile(r"\.[^*?\[\]]*\Z")


class Scope(msgspec.Struct, frozen=True, kw_only=True):
    """See `EntityStore`, which has the same parameters but for these.

    Parameters:
        notes: empty for the root itself.
        date: the frontmatter key that tells a note's age; None where its mtime does.
        by_mtime: whether the mtime tells it where nothing else does.
    """

    notes: str
    pattern: str
    sessions: str | None
    session_pattern: str
    ignore: tuple[str, ...]
    default_type: str
    session_type: str
    date: str | None
    by_mtime: bool
    zone: tzinfo
    fields: tuple[str, ...]

    @property
    def suffix(self) -> str:
        """What the names of notes end with and their ids do not, so that no two are confused."""
        return _suffix(self.pattern)

    def notes_among(self, files: list[os.DirEntry[str]]) -> list[os.DirEntry[str]]:
        """Which of the files in a folder are notes."""
        suffix, pattern = self.suffix, self.pattern
        short = len(suffix)
        by_suffix = pattern == f"*{suffix}"
        return [
            entry
            for entry in files
            if (entry.name.endswith(suffix) if by_suffix else fnmatchcase(entry.name, pattern))
            # What is nothing but a suffix would have no name as an id.
            and len(entry.name) > short
        ]

    def sessions_among(self, files: list[os.DirEntry[str]]) -> list[os.DirEntry[str]]:
        """Which of the files in a folder are sessions."""
        return [entry for entry in files if fnmatchcase(entry.name, self.session_pattern)]

    def enters(self, path: str) -> bool:
        """Whether notes are looked for in a folder, by its path below that of notes."""
        # The ids of what is in a folder called as that of sessions would be those of sessions.
        return path != self.sessions and not any(fnmatchcase(path, glob) for glob in self.ignore)

    def is_session_id(self, id_: str) -> bool:
        """Whether an id is that of a session."""
        return self.sessions is not None and id_.startswith(f"{self.sessions}/")

    def place(self, id_: str) -> tuple[str, str]:
        """The folder that an item is in, from the root on, and its name there."""
        if self.is_session_id(id_):
            path = unescape(id_)
        else:
            path = os.path.join(self.notes, unescape(id_) + self.suffix)
        folder, _, name = path.rpartition("/")
        return folder, name

    def folders(
        self, root: int, fails: Callable[[str, OSError | None], None]
    ) -> Iterator[tuple[str, Folder]]:
        """Each folder that holds items, by its path from the root on.

        That of sessions comes first.

        Parameters:
            root: the root's descriptor.
            fails: told the path of what cannot be read, and why; see `tree.walk`.
        """
        if self.sessions is not None:
            yield from self._below(root, self.sessions, lambda _: False, fails)
        yield from self._below(root, self.notes, self.enters, fails)

    def _below(
        self,
        root: int,
        start: str,
        enters: Callable[[str], bool],
        fails: Callable[[str, OSError | None], None],
    ) -> Iterator[tuple[str, Folder]]:
        def whole(path: str) -> str:
            return f"{start}/{path}" if start and path else start or path

        try:
            descriptor = tree.open_folder(root, start)
        except FileNotFoundError:
            return
        except OSError as error:
            fails(start, error)
            return
        try:
            found = tree.walk(descriptor, enters, lambda path, error: fails(whole(path), error))
            for folder in found:
                yield whole(folder.path), folder
        finally:
            os.close(descriptor)


@functools.cache
def _suffix(pattern: str) -> str:
    found = _SUFFIX.search(pattern)
    return found[0] if found else ""
