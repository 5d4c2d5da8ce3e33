"""A cache of what a look at a tree found, so that the next need not read what is unchanged.

It lies in the state folder. A note is found in it by its place, identity, size, mtime and ctime;
what the log says, by a digest of all that was read of it. What is corrupt, of another version or
for another scope is not believed; deleting it costs only time.
"""

from __future__ import annotations

import contextlib
import os
import struct
import zlib
from datetime import datetime

import msgspec

from keepfor.stores.access import LogState
from keepfor.stores.frontmatter import is_text
from keepfor.stores.notes import Head

#: A file that changed so recently, in ns, may change once more without its times telling.
RACY = 2_000_000_000

#: To be raised whenever something else than before is read from the same note, or kept of it.
FORMAT = 1

_MAGIC = b"keepfor heads 1\n"
#: The length and the checksum of the contents, which follow.
_SIZES = struct.Struct("<QI")


class Row(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What was found of one note.

    Parameters:
        id: the note's.
        inode: of its file, as all that follows.
        size: in bytes.
        mtime: in ns.
        ctime: in ns.
        instant: the mtime.
        fingerprint: the note's.
        accessed: when it was last recalled, by the log as it was.
        head: where among the heads that of the note is.
    """

    id: str
    inode: int
    size: int
    mtime: int
    ctime: int
    instant: datetime
    fingerprint: str
    accessed: datetime | None
    head: int


Rows = dict[str, Row]


class _Contents(msgspec.Struct, array_like=True):
    """All but the rows; of those where they are, how many bytes, and their checksum."""

    format: int = 0
    scope: str = ""
    log: LogState | None = None
    heads: list[Head] = []
    folders: dict[str, tuple[int, int, int]] = {}


_decode = msgspec.msgpack.Decoder(_Contents).decode
_decode_rows = msgspec.msgpack.Decoder(Rows).decode


class HeadCache:
    """What was found the last time, and what is found now.

    Parameters:
        path: the cache's file; None for none.
        scope: what the answers depend on besides the files.

    Attributes:
        log: what the log said.
        heads: what notes say, each thing once; new ones are added at the end.
    """

    def __init__(self, path: str | None, scope: str) -> None:
        self._path = path
        self._scope = scope
        self._file: int | None = None
        contents = _Contents() if path is None else self._opened(path)
        self.log = contents.log
        self.heads = contents.heads
        self._folders = contents.folders
        # What is there now; None where it is as it was.
        self._new: dict[str, bytes | None] = {}
        self._changed = 0
        self._total = 0
        self._numbers: dict[int, int] = {}

    def close(self) -> None:
        """To be called in the end."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    @property
    def used(self) -> bool:
        """Whether there is anywhere to keep it."""
        return self._path is not None

    def rows(self, folder: str) -> Rows:
        """What was found in a folder, by the names of files."""
        raw = self._raw(folder)
        try:
            return {} if raw is None else _decode_rows(raw)
        except msgspec.DecodeError:
            return {}

    def number(self, head: Head) -> int:
        """Where a head is to be found, which is added if it is not there yet."""
        number = self._numbers.get(id(head))
        if number is None:
            number = self._numbers[id(head)] = len(self.heads)
            self.heads.append(head)
        return number

    def put(
        self, folder: str, known: Rows, changed: dict[str, Row | None], there: set[str]
    ) -> None:
        """What is in a folder now.

        Parameters:
            folder: its path.
            known: what `rows` said.
            changed: what is not as it was, by the names of files; None where it is not to be kept.
            there: the names of all its notes.
        """
        self._total += len(there)
        if not self.used:
            return
        gone = known.keys() - there
        if known and not changed and not gone:
            self._new[folder] = None
            return
        self._changed += len(changed) + len(gone)
        rows = {name: row for name, row in known.items() if name not in gone}
        for name, row in changed.items():
            rows.pop(name, None)
            # A name that is not UTF-8 is not kept here.
            if row is not None and is_text(name):
                rows[name] = row
        self._new[folder] = msgspec.msgpack.encode(rows)

    def save(self, log: LogState | None) -> None:
        """Write it anew, if so much has changed that it pays.

        Parameters:
            log: what the log says now, if it is not what it said.
        """
        if self._path is None or (self._changed * 100 <= self._total and log is None):
            return
        at, folders = 0, {}
        for folder, raw in self._new.items():
            old = self._folders[folder] if raw is None else (0, len(raw), zlib.crc32(raw))
            folders[folder] = (at, *old[1:])
            at += old[1]
        contents = msgspec.msgpack.encode(
            _Contents(FORMAT, self._scope, log or self.log, self.heads, folders)
        )
        with contextlib.suppress(OSError):
            self._write(self._path, contents)

    def _opened(self, path: str) -> _Contents:
        try:
            self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            start = os.pread(self._file, len(_MAGIC) + _SIZES.size, 0)
            length, checksum = _SIZES.unpack(start[len(_MAGIC) :])
            # No more is asked for than there can be.
            raw = os.pread(self._file, min(length, os.fstat(self._file).st_size), len(start))
            if not start.startswith(_MAGIC) or zlib.crc32(raw) != checksum:
                return _Contents()
            found = _decode(raw)
        except (OSError, struct.error, msgspec.DecodeError):
            return _Contents()
        self._start = len(start) + length
        if (found.format, found.scope) != (FORMAT, self._scope):
            return _Contents()
        return found

    def _raw(self, folder: str) -> bytes | None:
        """The rows of a folder, encoded; None where there are none that are whole."""
        if self._file is None or folder not in self._folders:
            return None
        at, length, checksum = self._folders[folder]
        try:
            raw = os.pread(self._file, length, self._start + at)
        except OSError:
            return None
        return raw if zlib.crc32(raw) == checksum else None

    def _write(self, path: str, contents: bytes) -> None:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        draft = f"{path}.{os.getpid()}"
        try:
            with open(draft, "wb") as file:
                file.write(_MAGIC + _SIZES.pack(len(contents), zlib.crc32(contents)) + contents)
                file.writelines(
                    raw if raw is not None else self._raw(folder) or b""
                    for folder, raw in self._new.items()
                )
            os.replace(draft, path)
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(draft)
