"""What a table store asks of a database; SQLite and PostgreSQL each have a file that answers."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Protocol

import msgspec
from sqlalchemy import Connection, make_url
from sqlalchemy.exc import ArgumentError

from keepfor.errors import ConfigError

#: A connection keeps so whether nobody can commit while a question of its is being answered.
KEEPS_WRITERS = "keepfor.keeps_writers"


class Footprint(msgspec.Struct, frozen=True, kw_only=True):
    """What a database takes up on disk.

    Parameters:
        size: all of it, in bytes, a write-ahead log included.
        reclaimable: how much of that holds nothing any more, in bytes.
    """

    size: int
    reclaimable: int


class Database(Protocol):
    """One database. Whatever it raises is a StoreError that never shows a password."""

    @property
    def address(self) -> str:
        """Where it lies, without password and driver: the same for the same database."""

    @property
    def exists(self) -> bool:
        """Whether it is there; a server is taken to be."""

    @property
    def notes(self) -> Sequence[str]:
        """What a person should know of how it lies there."""

    def reading(self) -> AbstractContextManager[Connection]:
        """A connection that changes nothing of the database, and keeps nobody from writing.

        It sees one state of it wherever that does not keep anybody waiting.
        """

    def writing(self) -> AbstractContextManager[Connection]:
        """A connection to delete by; each change to be made in a `transaction`."""

    def transaction(self, connection: Connection, patience: float) -> AbstractContextManager[None]:
        """One transaction that may write: committed at its end, rolled back by an error.

        Parameters:
            connection: from `writing`.
            patience: how long others may keep it waiting, in seconds.

        Raises:
            StoreBusy: when they keep it waiting for longer.
        """

    def locked(self, table: str, wait: float) -> AbstractContextManager[None]:
        """Keep every other sweep of that table out.

        Raises:
            StoreBusy: when another one has not finished within so many seconds.
        """

    def identity(self, connection: Connection, table: str) -> str:
        """Changes when another table stands there under that name."""

    def keys_grow(self, connection: Connection, table: str, key: str) -> bool:
        """Whether the database itself hands out this key, and ever higher ones."""

    def freed(self, connection: Connection) -> int:
        """A count of bytes that a deletion in this transaction raises by what it set free."""

    def footprint(self, connection: Connection) -> Footprint:
        """What the database takes up on disk."""

    def reclaim(self) -> tuple[Footprint, Footprint]:
        """Give back to the system what holds nothing any more; the footprints before and after."""


def database_at(url: str) -> Database:
    """The database at an address.

    Parameters:
        url: `sqlite:///…` or `postgresql://…`, with whatever driver.

    Raises:
        ConfigError: when it is of another kind, or no address at all.
    """
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        # What it complains of may be a password, so it is not repeated.
        parsed = None
    kind = parsed.get_backend_name() if parsed else None
    if parsed and kind == "sqlite":
        from keepfor.stores.sql.sqlite import sqlite_at

        return sqlite_at(":memory:" if parsed.query.get("mode") == "memory" else parsed.database)
    if parsed and kind in ("postgresql", "postgres"):
        from keepfor.stores.sql.postgres import postgres_at

        return postgres_at(parsed)
    raise ConfigError(
        where="url",
        what="this is no address of a database that is understood.",
        fix="Write sqlite:///FILE or postgresql://USER:PASSWORD@HOST/NAME.",
    )
