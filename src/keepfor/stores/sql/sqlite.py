"""SQLite, as a table store asks for it: read without a trace, written in short transactions."""

from __future__ import annotations

import functools
import hashlib
import os
import re
import shutil
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from typing import Any
from urllib.parse import quote, unquote_to_bytes

import msgspec
from sqlalchemy import Connection, Engine, create_engine
from sqlalchemy.pool import NullPool

from keepfor.errors import ConfigError, StoreBusy, StoreChanged, StoreError, Unfinished
from keepfor.stores import files
from keepfor.stores.ids import escape
from keepfor.stores.sql import sqlitefiles
from keepfor.stores.sql.database import KEEPS_WRITERS, Footprint
from keepfor.stores.sql.sqlitesaid import NOTHING_DONE, explained
from keepfor.stores.sql.sqlitewaiting import PatientConnection

#: How long to wait for others where nobody said how long, in seconds.
_PATIENCE = 10.0
#: From this size on a `-wal` is brought into the database, as SQLite would by itself, in bytes.
_WAL_ENOUGH = 4 << 20
#: How many pages are given back in one transaction.
_PAGES = 1000
#: The highest key there can be; after it, SQLite hands out any that is free.
_LAST_KEY = 2**63 - 1

#: How to read what nobody else is at: without locks, and without files beside it.
_ALONE = ("immutable=1",)
#: Where a connection keeps from which size on its `-wal` is brought into the database.
_NEXT = "keepfor.next_checkpoint"
#: And which tables there were when it was opened.
_SCHEMA = "keepfor.schema"
#: What the engine connects to next.
_TO_OPEN: ContextVar[str] = ContextVar("keepfor_sqlite")


class SqliteDatabase(msgspec.Struct, frozen=True, kw_only=True):
    """A SQLite database on disk.

    Parameters:
        path: the file; `sqlite_at` resolves a symlink.
    """

    path: str

    @property
    def address(self) -> str:
        return f"sqlite:///{self._name}"

    @property
    def exists(self) -> bool:
        """Whether a file is there.

        Raises:
            StoreError: when something else stands there, or it may not be looked at.
        """
        try:
            sqlitefiles.status(self.path)
        except FileNotFoundError:
            return False
        return True

    @property
    def notes(self) -> list[str]:
        """What a person should know of how it lies there: the remains of a crash."""
        left = sqlitefiles.size(f"{self.path}-wal")
        if not left or not self.exists or sqlitefiles.look(self.path).used:
            return []
        note = (
            f"{left} bytes in {self._name}-wal were left by a program that did not end in order; "
            "they count, and the next one that opens the database to write takes them in"
        )
        return [note]

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """See `Database.reading`.

        Raises:
            FileNotFoundError: when nothing is there.
            StoreChanged: when nobody was at it, but somebody wrote to it meanwhile.
            StoreError: when it cannot be read.
        """
        sqlitefiles.status(self.path)
        before = sqlitefiles.state(self.path)
        how = self._how_to_read()
        with self._connected("&".join(("mode=ro", *how))) as connection:
            driver = _driver(connection)
            if how or _pragma(driver, "journal_mode") == "wal":
                driver.execute("BEGIN")
            else:
                # Nobody could commit until it ended, so here each question sees its own moment.
                connection.info[KEEPS_WRITERS] = True
            driver.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()
            try:
                yield connection
            finally:
                # With no lock of ours to stop it, another may have changed pages under the reader,
                # which then may have met anything.
                if how == _ALONE and sqlitefiles.state(self.path) != before:
                    raise StoreChanged(path=self._name, why="somebody wrote to it meanwhile")

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """See `Database.writing`. Foreign keys are as a new connection has them.

        Raises:
            FileNotFoundError: when nothing is there.
            StoreError: when it cannot be opened.
        """
        sqlitefiles.status(self.path)
        with self._connected("mode=rw") as connection:
            driver = _driver(connection)
            driver.execute("PRAGMA temp_store = MEMORY")
            if _pragma(driver, "journal_mode") == "wal":
                # Each commit is as whole without a sync of its own, and holds the lock for less.
                driver.execute("PRAGMA synchronous = NORMAL")
                driver.execute("PRAGMA wal_autocheckpoint = 0")
            else:
                connection.info[KEEPS_WRITERS] = True
            connection.info[_SCHEMA] = _pragma(driver, "schema_version")
            yield connection
            self._take_in(connection)

    @contextmanager
    def transaction(self, connection: Connection, patience: float) -> Iterator[None]:
        """See `Database.transaction`. It has the write lock from its beginning.

        Raises:
            DatabaseBusy: when others keep it waiting for longer.
            StoreError: when it fails, and was rolled back; or somebody changed tables since the
                connection was opened.
        """
        driver = _driver(connection)
        self._take_in(connection)
        with explained(self._name, patience):
            began, driver.patience = time.monotonic(), patience
            try:
                driver.execute("BEGIN IMMEDIATE")
                driver.patience -= time.monotonic() - began
                self._check_schema(connection)
                yield
                driver.execute("COMMIT")
            finally:
                driver.patience = _PATIENCE
                if driver.in_transaction:
                    with suppress(sqlite3.Error):
                        driver.execute("ROLLBACK")

    @contextmanager
    def locked(self, table: str, wait: float) -> Iterator[None]:
        """See `Database.locked`. What a killed program left half done is put in order first.

        The lock is a `flock` on a file beside the database, which stays there: one on the database
        itself would be lost with the first descriptor of it that is closed.
        """
        status = sqlitefiles.status(self.path)
        folder, name = os.path.split(self.path)
        beside = f".{name}.{quote(_plain(table).lower(), safe='')}.keepfor-lock"
        if len(os.fsencode(beside)) > 255:
            beside = f".{hashlib.sha256(os.fsencode(beside)).hexdigest()}.keepfor-lock"
        lock = os.path.join(folder, beside)
        if not os.path.lexists(lock):
            self._check_there(table)
        with ExitStack() as stack:
            try:
                opener = files.locked(lock, wait, lambda path: sqlitefiles.open_lock(path, status))
                stack.enter_context(opener)
            except StoreBusy:
                raise StoreBusy(path=f"{self._name}, table {table},", waited=wait) from None
            except OSError as error:
                raise files.explained(error, escape(lock)) from error
            self._recover()
            yield

    def identity(self, connection: Connection, table: str) -> str:
        """See `Database.identity`. It stays when rows or indexes come and go.

        A table that was made anew by the same words may get the same place, and only its rows tell.
        """
        query = (
            "SELECT rowid, rootpage, sql FROM sqlite_master "
            "WHERE type = 'table' AND name = ? COLLATE NOCASE"
        )
        found = _driver(connection).execute(query, (_plain(table),)).fetchone()
        if found is None:
            fix = "Correct the name of the table."
            raise StoreError(path=self._name, what=f"it has no table {table}.", fix=fix)
        status = sqlitefiles.status(self.path)
        made = hashlib.sha256(repr(found).encode()).hexdigest()
        return f"{status.st_dev}:{status.st_ino}:{made:.16}"

    def keys_grow(self, connection: Connection, table: str, key: str) -> bool:
        """See `Database.keys_grow`: where the key is another name of the rowid.

        Without AUTOINCREMENT the highest key is given again when its row is gone.
        """
        driver, table = _driver(connection), _plain(table)
        keys = driver.execute(
            "SELECT lower(name), upper(type) FROM pragma_table_info(?) WHERE pk", (table,)
        ).fetchall()
        # A key that is no such name (INT, DESC, WITHOUT ROWID) has an index of its own.
        indexed = driver.execute(
            "SELECT 1 FROM pragma_index_list(?) WHERE origin = 'pk'", (table,)
        ).fetchall()
        if keys != [(key.lower(), "INTEGER")] or indexed:
            return False
        highest = f"SELECT max({_quoted(key)}) FROM {_quoted(table)}"  # noqa: S608 - both quoted
        return bool(driver.execute(highest).fetchone() != (_LAST_KEY,))

    def freed(self, connection: Connection) -> int:
        """See `Database.freed`: the pages that hold nothing any more."""
        driver = _driver(connection)
        return int(_pragma(driver, "freelist_count") * _pragma(driver, "page_size"))

    def footprint(self, connection: Connection) -> Footprint:
        """See `Database.footprint`. All of the `-wal` counts as reclaimable."""
        driver = _driver(connection)
        log = sqlitefiles.size(f"{self.path}-wal") or 0
        size = _pragma(driver, "page_count") * _pragma(driver, "page_size")
        return Footprint(size=size + log, reclaimable=self.freed(connection) + log)

    def reclaim(self) -> tuple[Footprint, Footprint]:
        """See `Database.reclaim`: bit by bit where the file allows, else by a full VACUUM.

        Raises:
            DatabaseBusy: when others are at it.
            StoreError: when there is no room for a VACUUM, or it fails. It is as it was then.
        """
        with self.writing() as connection:
            driver = _driver(connection)
            before = self.footprint(connection)
            if _pragma(driver, "auto_vacuum") == 2:
                left = None
                while (free := _pragma(driver, "freelist_count")) and free != left:
                    # By `execute`, Python's driver would take the first step of it only.
                    driver.executescript(f"PRAGMA incremental_vacuum({_PAGES})")
                    left = free
            else:
                self._check_room(2 * before.size)
                driver.execute("VACUUM")
            # Kept from it by a reader, it leaves the rest of the `-wal`, which the figures show.
            driver.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            return before, self.footprint(connection)

    def _how_to_read(self) -> tuple[str, ...]:
        """What to tell SQLite, so that reading changes nothing that anybody else does not."""
        log = sqlitefiles.size(f"{self.path}-wal")
        seen = sqlitefiles.look(self.path)
        if not seen.size:
            # SQLite would take a `-wal` beside an empty file for a stranger's, and remove it.
            return _ALONE
        if seen.used or not (seen.logged or log):
            return ()
        if not log:
            # Nobody is at it. Asked otherwise, SQLite would make a `-wal` and leave it there.
            return _ALONE
        if sqlitefiles.size(f"{self.path}-shm") is None:
            raise Unfinished(
                path=self._name,
                what=f"{log} bytes of changes lie in its -wal, and nobody is at it to take them in "
                "(a copy of a database in use, perhaps).",
                fix="Open it once with its program, or: sqlite3 FILE 'PRAGMA wal_checkpoint'",
            )
        # With this, SQLite reads the remains into memory of its own. But whoever opens the
        # database in this process meanwhile could not write to it for as long as that lasts, so
        # where others might, it may set up the `-shm` anew instead.
        return ("readonly_shm=1",) if threading.active_count() == 1 else ()

    def _check_there(self, table: str) -> None:
        """Refuse a name that is no table's, before a file that stays is made for it."""
        with suppress(Unfinished, StoreChanged), self.reading() as connection:
            self.identity(connection, table)

    def _recover(self) -> None:
        """Undo, or take in, what a killed program left; SQLite does so by itself when it reads."""
        left = any(sqlitefiles.size(self.path + end) for end in ("-wal", "-journal"))
        if not left or sqlitefiles.look(self.path).used:
            return
        with self.writing() as connection:
            _driver(connection).execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()

    def _take_in(self, connection: Connection) -> None:
        """Bring a `-wal` that has grown into the database, while no lock of ours is held."""
        size = sqlitefiles.size(f"{self.path}-wal") or 0
        if size < connection.info.get(_NEXT, _WAL_ENOUGH):
            return
        with suppress(sqlite3.Error):
            rows = _driver(connection).execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
            whole = rows[0][1] == rows[0][2]
            # While a reader stands in the way, it is not worth the while each time.
            connection.info[_NEXT] = _WAL_ENOUGH if whole else size + _WAL_ENOUGH

    def _check_schema(self, connection: Connection) -> None:
        """Stop where a column may mean something else by now, or a reference came that was not."""
        if _pragma(_driver(connection), "schema_version") != connection.info[_SCHEMA]:
            raise StoreError(
                path=self._name,
                what="somebody changed its tables, or their indexes, in the midst of this.",
                fix=f"{NOTHING_DONE} Look again with `keepfor plan`.",
            )

    def _check_room(self, needed: int) -> None:
        for folder in (os.path.dirname(self.path), sqlitefiles.temporary_folder()):
            free = shutil.disk_usage(folder).free
            if free < needed:
                raise StoreError(
                    path=self._name,
                    what=f"a VACUUM may need {needed} bytes for a while, and in {escape(folder)} "
                    f"there are {free}. Nothing was done.",
                    fix="Free some space, or set SQLITE_TMPDIR if that is the temporary folder.",
                )

    @property
    def _name(self) -> str:
        return escape(self.path)

    @contextmanager
    def _connected(self, how: str) -> Iterator[Connection]:
        with explained(self._name, _PATIENCE):
            before = _TO_OPEN.set(f"file://{quote(os.fsencode(self.path))}?{how}")
            try:
                connection = _engine().connect()
            finally:
                _TO_OPEN.reset(before)
            with connection:
                yield connection


def sqlite_at(where: str | os.PathLike[str] | None) -> SqliteDatabase:
    """The database at a path; where that is a symlink, the file it leads to.

    Parameters:
        where: a path, or a `file:` URI as SQLite takes it.

    Raises:
        ConfigError: when it names no file.
    """
    path = os.fspath(where or "")
    if path.startswith("file:"):
        said = re.sub(r"^//(localhost)?(?=/)", "", re.split("[?#]", path[5:])[0])
        path = os.fsdecode(unquote_to_bytes(said))
    if path in ("", ":memory:"):
        raise ConfigError(
            where="url",
            what="it names no file, and a database in memory ends with its program.",
            fix="Write sqlite:///FILE, or sqlite:////FOLDER/FILE for an absolute path.",
        )
    return SqliteDatabase(path=os.path.realpath(path))


@functools.cache
def _engine() -> Engine:
    """The one for all databases, since what it made of a statement once serves for each."""
    return create_engine("sqlite://", creator=_connect, poolclass=NullPool, hide_parameters=True)


def _connect() -> sqlite3.Connection:
    # No isolation level and no timeout: to begin transactions and to wait is our affair.
    made = sqlite3.connect(
        _TO_OPEN.get(), uri=True, timeout=0, isolation_level=None, factory=PatientConnection
    )
    made.patience = _PATIENCE
    return made


def _driver(connection: Connection) -> PatientConnection:
    driver = connection.connection.driver_connection
    assert isinstance(driver, PatientConnection)
    return driver


def _pragma(driver: sqlite3.Connection, name: str) -> Any:
    return driver.execute(f"PRAGMA {name}").fetchone()[0]


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _plain(table: str) -> str:
    return table.removeprefix("main.")
