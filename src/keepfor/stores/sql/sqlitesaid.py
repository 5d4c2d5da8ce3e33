"""What SQLite says when something is wrong, in words that say what to do."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError

from keepfor.errors import DatabaseBusy, StoreError, Unfinished

NOTHING_DONE = (
    "Nothing of the transaction at hand was done, and what was done before it stays done."
)

#: By SQLite's code, the particular one or that of its kind: what happened and what to do.
_SAID = {
    sqlite3.SQLITE_READONLY_ROLLBACK: (
        "a program was killed in the middle of a change, which its -journal has yet to undo.",
        "Any program that opens it to write undoes it, such as: sqlite3 FILE .schema",
    ),
    sqlite3.SQLITE_READONLY_DBMOVED: (
        "it was moved or replaced meanwhile.",
        f"{NOTHING_DONE} Look again with `keepfor plan`.",
    ),
    sqlite3.SQLITE_READONLY: (
        "it may not be written to.",
        "Run as a user who may write it and its folder, and see that its disk takes changes.",
    ),
    sqlite3.SQLITE_IOERR: (
        "the disk failed to read or write ({said}).",
        f"{NOTHING_DONE} See to the disk first.",
    ),
    sqlite3.SQLITE_CORRUPT: (
        "it is damaged ({said}).",
        "Restore it from a backup, or save what can be read: sqlite3 FILE .recover",
    ),
    sqlite3.SQLITE_FULL: (
        "its disk is full.",
        f"{NOTHING_DONE} Free some space: deleting rows needs room for a journal.",
    ),
    sqlite3.SQLITE_CANTOPEN: (
        "it, or a file that belongs beside it, cannot be opened.",
        "Run as a user who may read it and write its folder.",
    ),
    sqlite3.SQLITE_NOTADB: (
        "it is no SQLite database, or an encrypted one.",
        "Give the path of the database file.",
    ),
}


@contextmanager
def explained(path: str, patience: float) -> Iterator[None]:
    """Raise what SQLite says as a StoreError; no row shows in it.

    Parameters:
        path: what to call the database.
        patience: how long is waited for others here, in seconds.
    """
    try:
        yield
    except (sqlite3.Error, DBAPIError) as error:
        cause = error.orig if isinstance(error, DBAPIError) else error
        raise _explanation(cause, path, patience) from None


def is_busy(error: BaseException | None) -> bool:
    """Whether it is others who stand in the way."""
    code = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _explanation(error: BaseException | None, path: str, patience: float) -> StoreError:
    if is_busy(error):
        what = f"another program kept it locked for more than {patience:g} s."
        return DatabaseBusy(path=path, what=what)
    code = getattr(error, "sqlite_errorcode", 0)
    said = " ".join(str(error).split()).rstrip(".")
    unknown = f"SQLite says: {said}.", NOTHING_DONE
    what, fix = _SAID.get(code) or _SAID.get(code & 0xFF) or unknown
    kind = Unfinished if code == sqlite3.SQLITE_READONLY_ROLLBACK else StoreError
    return kind(path=path, what=what.replace("{said}", said), fix=fix)
