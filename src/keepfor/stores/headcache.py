"""A cache of what a look at a tree found, so that the next need not read what is unchanged.

It lies in the state folder. A note is found in it by its place, identity, size, mtime and ctime;
what the log says, by a digest of all that was read of it. What is corrupt, of another version or
for another scope is not believed; deleting it costs only time.
"""

from __future__ import annotations

import contextlib
import os
import zlib
from datetime import datetime

import msgspec

from keepfor import __version__
from keepfor.stores.access import LogState
from keepfor.stores.notes import Head

#: A file that changed so recently, in ns, may change once more without its times telling.
RACY = 2_000_000_000

_MAGIC = b"keepfor heads 1\n"
_CHECK = 8


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


class _Body(msgspec.Struct, array_like=True):
    version: str = ""
    scope: str = ""
    log: LogState | None = None
    heads: list[Head] = []
    folders: dict[str, msgspec.Raw] = {}


_decode = msgspec.msgpack.Decoder(_Body).decode
_decode_rows = msgspec.msgpack.Decoder(Rows).decode


class HeadCache:
    """What was found the last time, and what is found now.

    Parameters:
        path: the cache's file; None for none.
        scope: what the answers depend on besides the files.

    Attributes:
        log: what the log said.
        heads: what notes say, each thing once; new ones are added at the end.
        size: how many notes there were, about.
    """

    def __init__(self, path: str | None, scope: str) -> None:
        self._path = path
        self._scope = scope
        body = _loaded(path, scope) if path is not None else _Body()
        self.log = body.log
        self.heads = body.heads
        self._known = len(self.heads)
        self._folders = body.folders
        self._new: dict[str, msgspec.Raw] = {}
        self._changed = 0
        self._total = 0
        self._numbers: dict[int, int] = {}

    @property
    def used(self) -> bool:
        """Whether there is anywhere to keep it."""
        return self._path is not None

    def rows(self, folder: str) -> Rows:
        """What was found in a folder, by the names of files."""
        raw = self._folders.get(folder)
        if raw is None:
            return {}
        try:
            return _decode_rows(raw)
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
            self._new[folder] = self._folders[folder]
            return
        self._changed += len(changed) + len(gone)
        rows = {name: row for name, row in known.items() if name not in gone}
        for name, row in changed.items():
            rows.pop(name, None)
            if row is not None:
                rows[name] = row
        self._new[folder] = msgspec.Raw(msgspec.msgpack.encode(rows))

    def save(self, log: LogState | None) -> None:
        """Write it anew, if so much has changed that it pays.

        Parameters:
            log: what the log says now, if it is not what it said.
        """
        if self._path is None or (self._changed * 100 <= self._total and log is None):
            return
        body = msgspec.msgpack.encode(
            _Body(
                version=__version__,
                scope=self._scope,
                log=log or self.log,
                heads=self.heads,
                folders=self._new,
            )
        )
        with contextlib.suppress(OSError):
            _replace(self._path, _MAGIC + _check(body), body)


def _loaded(path: str, scope: str) -> _Body:
    try:
        with open(path, "rb") as file:
            start, body = file.read(len(_MAGIC) + _CHECK), file.read()
        if start != _MAGIC + _check(body):
            return _Body()
        found = _decode(body)
    except (OSError, msgspec.DecodeError):
        return _Body()
    return found if (found.version, found.scope) == (__version__, scope) else _Body()


def _check(body: bytes) -> bytes:
    """What tells a cache that is whole: it guards against accidents, and must not take long."""
    return zlib.crc32(body).to_bytes(4) + (len(body) & 0xFFFFFFFF).to_bytes(4)


def _replace(path: str, *parts: bytes) -> None:
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    draft = f"{path}.{os.getpid()}"
    try:
        with open(draft, "wb") as file:
            file.writelines(parts)
        os.replace(draft, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(draft)
