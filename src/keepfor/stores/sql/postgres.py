"""PostgreSQL, as a table store asks for it; spoken with psycopg, whatever driver an address names.

A connection pooler that gives each transaction another server connection (pgbouncer's
`pool_mode = transaction`) breaks the lock between sweeps, which belongs to a connection: such a
store is to be given the address of the server itself.
"""

from __future__ import annotations

import functools
import hashlib
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import msgspec
from sqlalchemy import URL, Connection, Engine, create_engine, text
from sqlalchemy.pool import NullPool

from keepfor.errors import StoreBusy, StoreError
from keepfor.stores.sql.database import Footprint
from keepfor.stores.sql.postgressaid import explained, unreachable
from keepfor.stores.sql.postgresurl import Login, login_of

if TYPE_CHECKING:
    import psycopg

#: How long a reader waits for a table that is being altered, in seconds.
_READERS_PATIENCE = 10.0
_LOCK_POLL = 0.05


class PostgresDatabase(msgspec.Struct, frozen=True, kw_only=True):
    """A database of a PostgreSQL server; `postgres_at` makes it from a URL.

    Parameters:
        login: what it is entered by.
    """

    login: Login

    @property
    def address(self) -> str:
        return self.login.address

    @property
    def exists(self) -> bool:
        return True

    @property
    def notes(self) -> list[str]:
        return []

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """See `Database.reading`: one READ ONLY transaction that sees one snapshot."""
        with (
            explained(self.login, _READERS_PATIENCE),
            self._connection("REPEATABLE_READ", read_only=True) as connection,
        ):
            _wait_at_most(connection, _READERS_PATIENCE)
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """See `Database.writing`."""
        with (
            explained(self.login),
            self._connection("READ_COMMITTED", read_only=None) as connection,
        ):
            yield connection

    @contextmanager
    def transaction(self, connection: Connection, patience: float) -> Iterator[None]:
        """See `Database.transaction`. What the server or the role sets as its
        `statement_timeout` holds.

        Raises:
            DatabaseBusy: when a lock is kept from it for longer than that, or when others stand in
                the way so that only one can go on (a deadlock, say). The same change can be made
                again, by the same connection.
            StoreError: when the server refuses, cancels or goes away. In each case nothing of this
                transaction was done.
        """
        with explained(self.login, patience):
            if connection.in_transaction():
                # What was read before began a transaction by itself.
                connection.rollback()
            with connection.begin():
                _wait_at_most(connection, patience)
                yield

    @contextmanager
    def locked(self, table: str, wait: float) -> Iterator[None]:
        """See `Database.locked`: an advisory lock, which the server releases when this process
        dies.
        """
        import psycopg

        with explained(self.login), self._connect() as session:
            found = session.execute("SELECT to_regclass(%s)::oid", (_quoted(table),)).fetchone()
            lock = (_lock_of(self._there(table, found and found[0])),)
            # The connection idles for as long as the sweep lasts, and the lock would end with it.
            session.execute(
                "SELECT set_config(name, '0', false) FROM pg_settings "
                "WHERE name = 'idle_session_timeout'"
            )
            began = time.monotonic()
            while session.execute("SELECT pg_try_advisory_lock(%s)", lock).fetchone() != (True,):
                if time.monotonic() - began >= wait:
                    raise StoreBusy(path=f"{self.address}, table {table},", waited=wait)
                time.sleep(_LOCK_POLL)
            try:
                yield
            finally:
                # Closing alone releases it a moment later than this returns.
                with suppress(psycopg.Error):
                    session.execute("SELECT pg_advisory_unlock(%s)", lock)

    def identity(self, connection: Connection, table: str) -> str:
        """See `Database.identity`. It stays when the table is altered, vacuumed or emptied."""
        found = connection.execute(text(_IDENTITY), {"table": _quoted(table)}).one()
        server = "?"
        if found.may_ask_server:
            told = text("SELECT system_identifier FROM pg_control_system()")
            server = str(connection.scalar(told))
        return f"{server}/{found.database}/{self._there(table, found.relation)}"

    def keys_grow(self, connection: Connection, table: str, key: str) -> bool:
        """See `Database.keys_grow`.

        Transactions may commit in another order than they drew their keys in, so a row that was
        on its way when the highest key was read may appear below it.
        """
        asked = {"table": _quoted(table), "key": key}
        return bool(connection.scalar(text(_KEYS_GROW), asked))

    def freed(self, connection: Connection) -> int:  # noqa: ARG002 - part of the protocol
        """See `Database.freed`: always 0, for a deletion here sets nothing free.

        Deleted rows keep their place until a vacuum, and the server keeps no count of it within a
        transaction.
        """
        return 0

    def footprint(self, connection: Connection) -> Footprint:
        """See `Database.footprint`.

        The write-ahead log belongs to the server, not to a database, and is left out. Reclaimable
        is an estimate: of each table's size without its indexes, the share that its deleted rows
        have in all its rows, by the server's statistics. Room that a vacuum set free already is
        not in it, since the server does not say how much that is.
        """
        size, dead = connection.execute(text(_FOOTPRINT)).one()
        return Footprint(size=size, reclaimable=dead)

    def reclaim(self) -> tuple[Footprint, Footprint]:
        """See `Database.reclaim`: a plain VACUUM of each table that belongs to this role.

        It makes the room of deleted rows free for new ones, and gives back what lies at the end of
        a file; it keeps nobody from reading or writing.
        """
        before = self._present_footprint()
        with explained(self.login, _READERS_PATIENCE), self._connect() as session:
            own = [name for (name,) in session.execute(_OWN_TABLES).fetchall()]
            if not own:
                raise StoreError(
                    path=self.address,
                    what=f"no table here belongs to {self.login.user}, so it may vacuum none.",
                    fix="Run this as the owner of the tables.",
                )
            session.execute(_lock_timeout(_READERS_PATIENCE, local=False))
            for name in own:
                session.execute(f"VACUUM {name}".encode())
        return before, self._present_footprint()

    def _present_footprint(self) -> Footprint:
        with self.reading() as connection:
            return self.footprint(connection)

    @contextmanager
    def _connection(self, level: str, read_only: bool | None) -> Iterator[Connection]:
        import psycopg

        with _engine(self.login).connect() as connection:
            session = connection.connection.driver_connection
            assert isinstance(session, psycopg.Connection)
            session.isolation_level = psycopg.IsolationLevel[level]
            session.read_only = read_only
            yield connection

    def _connect(self) -> psycopg.Connection[Any]:
        """A connection past SQLAlchemy, where each statement is a transaction."""
        return _connected(self.login, autocommit=True)

    def _there(self, table: str, oid: int | None) -> int:
        if oid is None:
            raise StoreError(
                path=self.address,
                what=f"it has no table {table}.",
                fix="Correct the name; put the schema before it (schema.table) if need be.",
            )
        return oid


def postgres_at(url: URL) -> PostgresDatabase:
    """The database that a URL leads to, whatever driver it was written for; see `login_of`."""
    return PostgresDatabase(login=login_of(url))


@functools.lru_cache(maxsize=32)
def _engine(login: Login) -> Engine:
    """One for each login, since what it made of a statement once serves for the next."""
    return create_engine(
        "postgresql+psycopg://",
        creator=functools.partial(_connected, login),
        poolclass=NullPool,
        hide_parameters=True,
    )


def _connected(login: Login, *, autocommit: bool = False) -> psycopg.Connection[Any]:
    import psycopg

    try:
        return psycopg.connect(**login.parameters, autocommit=autocommit)  # type: ignore[arg-type]
    except (psycopg.Error, UnicodeError) as error:
        raise unreachable(error, login) from None


def _wait_at_most(connection: Connection, patience: float) -> None:
    connection.exec_driver_sql(_lock_timeout(patience, local=True))


def _lock_timeout(patience: float, *, local: bool) -> Any:
    # Zero would be for ever.
    return f"SET {'LOCAL ' * local}lock_timeout = {max(1, round(patience * 1000))}"


def _quoted(table: str) -> str:
    """A name, with or without its schema, as PostgreSQL reads it: letter for letter."""
    return ".".join('"' + part.replace('"', '""') + '"' for part in table.rsplit(".", 1))


def _lock_of(oid: int) -> int:
    """The number of the advisory lock on a table: a signed one of 64 bits."""
    digest = hashlib.sha256(f"keepfor {oid}".encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


_IDENTITY = """
SELECT to_regclass(:table)::oid AS relation,
    (SELECT oid FROM pg_database WHERE datname = current_database()) AS database,
    has_function_privilege(to_regprocedure('pg_control_system()'), 'EXECUTE') AS may_ask_server
"""

# A sequence that hands out keys in advance, to several sessions at a time, does so in no order.
_KEYS_GROW = r"""
SELECT seqincrement > 0 AND NOT seqcycle AND seqcache = 1
FROM pg_attribute
LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
JOIN pg_sequence ON seqrelid = CASE
    WHEN attidentity <> '' THEN pg_get_serial_sequence(:table, attname)::regclass
    WHEN pg_get_expr(adbin, adrelid) ~ '^nextval\(''([^'']|'''')*''\:\:regclass\)$' THEN (
        SELECT refobjid FROM pg_depend
        WHERE classid = 'pg_attrdef'::regclass AND objid = pg_attrdef.oid
            AND refclassid = 'pg_class'::regclass AND deptype = 'n'
    )
END
WHERE attrelid = to_regclass(:table) AND attname = :key AND NOT attisdropped
    AND atttypid IN ('int2'::regtype, 'int4'::regtype, 'int8'::regtype)
"""

_FOOTPRINT = """
SELECT pg_database_size(current_database()), (
    SELECT coalesce(
        sum(pg_relation_size(relid) * n_dead_tup::numeric / (n_live_tup + n_dead_tup)), 0
    )::bigint
    FROM pg_stat_all_tables
    WHERE n_dead_tup > 0 AND schemaname NOT IN ('pg_catalog', 'information_schema')
)
"""

_OWN_TABLES = """
SELECT format('%I.%I', nspname, relname)
FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
WHERE relkind = 'r' AND relpersistence <> 't' AND pg_has_role(relowner, 'USAGE')
    AND nspname NOT IN ('pg_catalog', 'information_schema')
ORDER BY pg_relation_size(pg_class.oid) DESC, 1
"""
