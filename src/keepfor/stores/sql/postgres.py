"""PostgreSQL, as a table store asks for it; spoken with psycopg, whatever driver an address names.

A connection pooler that gives each transaction another server connection (pgbouncer's
`pool_mode = transaction`) breaks the lock between sweeps, which belongs to a connection: such a
store is to be given the address of the server itself.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

import msgspec
from sqlalchemy import URL, Connection, create_engine, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from keepfor.errors import ConfigError, DatabaseBusy, StoreBusy, StoreError
from keepfor.stores.sql.database import Footprint

if TYPE_CHECKING:
    import psycopg

#: How long to wait for a server to answer, in seconds.
_CONNECT_TIMEOUT = 10
#: How long a reader waits for a table that is being altered, in seconds.
_READERS_PATIENCE = 10.0
_LOCK_POLL = 0.05

#: What only other drivers understand, and what bears on how fast they are, not on what they read.
_FOREIGN = frozenset(
    (
        "async_fallback",
        "command_timeout",
        "max_cacheable_statement_size",
        "max_cached_statement_lifetime",
        "prepared_statement_cache_size",
        "prepared_statement_name_func",
        "statement_cache_size",
        "tcp_keepalive",
        "timeout",
    )
)
#: asyncpg's `ssl`, where it is not one of the words of `sslmode`.
_SSL_MODES = {"true": "require", "1": "require", "false": "disable", "0": "disable"}
#: An address that hides in a file would not be the same for the same database.
_ELSEWHERE = frozenset(("service", "servicefile"))

_ROLLED_BACK = (
    "Nothing of the transaction at hand was done, and what was done before it stays done."
)

#: Refusals by their SQLSTATE: what happened and what to do.
_REFUSALS = {
    "42501": (
        "{said}.",
        "Let it, as the owner: GRANT SELECT, DELETE ON <the table and its dependents> TO {user}.",
    ),
    "25006": (
        "it takes no changes ({said}).",
        "If it is a standby, give the primary's address; else see default_transaction_read_only.",
    ),
    "57014": (
        "the server cancelled a statement ({said}).",
        f"{_ROLLED_BACK} If statement_timeout is too short, raise it for {{user}}.",
    ),
}
#: Conflicts with others, which end when they have done: the change can simply be made again.
_CONFLICTS = {
    "40001": "another transaction changed the same rows at the same time",
    "40P01": "another transaction and this one waited for each other",
    "55P03": "another transaction held a lock on it for more than {patience:g} s",
}

#: Why no connection came about: by its words, for the client library gives no code for it.
_UNREACHABLE = (
    (
        "password authentication failed",
        "it refuses the password of {user}.",
        "Put the right one into the URL, with %XX for special characters, or into PGPASSWORD.",
    ),
    (
        "no password supplied",
        "it asks {user} for a password, and none was given.",
        "Put it into the URL, or into PGPASSWORD or the file ~/.pgpass.",
    ),
    (
        "too many connections|too many clients|remaining connection slots",
        "it has no connection left: {said}.",
        "Try again later, or raise the limit (max_connections, or that of the role or database).",
    ),
    (
        'role ".*" does not exist',
        "it knows no user {user}.",
        "Correct the user in the URL, or create it with CREATE ROLE ... LOGIN.",
    ),
    (
        "not permitted to log in|no pg_hba.conf entry|permission denied for database",
        "it does not let {user} in: {said}.",
        "Have its administrator let this user log in to this database from here.",
    ),
    (
        'database ".*" does not exist',
        "the server has no database {database}.",
        "Correct its name in the URL.",
    ),
    (
        "could not translate host name|resolve host|not known|'idna' codec",
        "no machine has that name.",
        "Correct the host in the URL.",
    ),
    (
        "Connection refused|socket .* failed: No such file or directory",
        "no server listens there.",
        "Start it, or correct host and port in the URL.",
    ),
)


class PostgresDatabase(msgspec.Struct, frozen=True, kw_only=True):
    """A database of a PostgreSQL server; `postgres_at` makes it from a URL.

    Parameters:
        address: see `Database.address`.
        user: the role it is entered as, for messages.
        name: the database's own, for messages.
        parameters: what it is connected to with, secrets included.
    """

    address: str
    user: str
    name: str
    parameters: dict[str, str]

    @property
    def exists(self) -> bool:
        return True

    @property
    def notes(self) -> list[str]:
        return []

    def __repr__(self) -> str:
        # Made by itself, it would show the password.
        return f"PostgresDatabase({self.address!r})"

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """See `Database.reading`: one READ ONLY transaction that sees one snapshot."""
        with (
            self._explained(_READERS_PATIENCE),
            self._connection("REPEATABLE READ", read_only=True) as connection,
        ):
            _wait_at_most(connection, _READERS_PATIENCE)
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """See `Database.writing`."""
        with self._explained(), self._connection("READ COMMITTED", read_only=None) as connection:
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
        with self._explained(patience):
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
        with self._explained(), self._connect(autocommit=True) as session:
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
                import psycopg

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
        with self._explained(_READERS_PATIENCE), self._connect(autocommit=True) as session:
            own = [name for (name,) in session.execute(_OWN_TABLES).fetchall()]
            if not own:
                raise StoreError(
                    path=self.address,
                    what=f"no table here belongs to {self.user}, so it may vacuum none.",
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

        def connect() -> Any:
            session = self._connect()
            session.isolation_level = psycopg.IsolationLevel[level.replace(" ", "_")]
            session.read_only = read_only
            return session

        engine = create_engine(
            "postgresql+psycopg://", creator=connect, poolclass=NullPool, hide_parameters=True
        )
        try:
            with engine.connect() as connection:
                yield connection
        finally:
            engine.dispose()

    def _connect(self, autocommit: bool = False) -> psycopg.Connection[Any]:
        import psycopg

        try:
            return psycopg.connect(**self.parameters, autocommit=autocommit)  # type: ignore[arg-type]
        except (psycopg.Error, UnicodeError) as error:
            raise self._unreachable(error) from None

    @contextmanager
    def _explained(self, patience: float = 0.0) -> Iterator[None]:
        """Say what went wrong in words that show neither a secret nor a row.

        What the driver says can hold both, so it is not even kept as the cause.
        """
        import psycopg

        try:
            yield
        except DBAPIError as error:
            raise self._explanation(error.orig, patience) from None
        except psycopg.Error as error:
            raise self._explanation(error, patience) from None

    def _explanation(self, error: object, patience: float) -> StoreError:
        import psycopg

        assert isinstance(error, psycopg.Error)
        code = error.sqlstate or ""
        said = self._safe(error.diag.message_primary or str(error))
        if code in _CONFLICTS:
            what = _CONFLICTS[code].format(patience=patience)
            return DatabaseBusy(path=self.address, what=f"{what}.")
        if code in _REFUSALS:
            what, fix = (part.format(said=said, user=self.user) for part in _REFUSALS[code])
        elif _is_lost(error):
            what = f"the connection was lost ({said})."
            fix = f"{_ROLLED_BACK} Try again when the server is there."
        else:
            what = f"the server says: {said} ({code or type(error).__name__})."
            fix = f"{_ROLLED_BACK} The server's log may say more."
        return StoreError(path=self.address, what=what, fix=fix)

    def _unreachable(self, error: Exception) -> StoreError:
        words = self._safe(str(error))
        said = words.rpartition("FATAL:")[2].strip()
        what, fix = next(
            (told for sign, *told in _UNREACHABLE if re.search(sign, said)),
            ("it cannot be reached: {said}.", "See that the server is there and the URL right."),
        )
        what = what.format(said=said, user=self.user, database=self.name)
        return StoreError(path=self.address, what=what, fix=fix)

    def _safe(self, said: str) -> str:
        """What the driver said, in one line and without a secret."""
        for name, value in self.parameters.items():
            if value and "password" in name:
                said = said.replace(value, "***")
        return " ".join(said.split()).rstrip(".")

    def _there(self, table: str, oid: int | None) -> int:
        if oid is None:
            raise StoreError(
                path=self.address,
                what=f"it has no table {table}.",
                fix="Correct the name; put the schema before it (schema.table) if need be.",
            )
        return oid


def postgres_at(url: URL) -> PostgresDatabase:
    """The database that a URL leads to, whatever driver it was written for.

    Raises:
        ConfigError: when psycopg is not installed, or the URL asks for what it cannot do.
    """
    try:
        from psycopg import pq
    except ImportError as error:
        raise ConfigError(
            where="url",
            what=f"keepfor speaks to PostgreSQL by psycopg, which cannot be loaded ({error}).",
            fix="Install it: pip install 'keepfor[postgres]'.",
        ) from None
    defaults = {
        option.keyword.decode(): (option.val or b"").decode()
        for option in pq.Conninfo.get_defaults()
    }
    given = _given(url, defaults.keys() - _ELSEWHERE)
    known = defaults | given
    user = known["user"]
    name = known["dbname"] or user
    given = {"connect_timeout": str(_CONNECT_TIMEOUT), **given, "application_name": "keepfor"}
    return PostgresDatabase(
        address=_address(user, known["host"] or known["hostaddr"], known["port"], name),
        user=user,
        name=name,
        parameters=given,
    )


def _given(url: URL, known: set[str]) -> dict[str, str]:
    """What a URL gives, by the names that PostgreSQL's client library has for it."""
    query = {name: value for name, value in url.query.items() if name not in _FOREIGN}
    mode = query.pop("ssl", None)
    if isinstance(mode, str):
        query.setdefault("sslmode", _SSL_MODES.get(mode.lower(), mode))
    socket = query.pop("unix_sock", None)
    if isinstance(socket, str):
        folder, _, port = socket.rpartition("/.s.PGSQL.")
        query |= {"host": folder, "port": port}
    for name in query:
        if name not in known:
            close = get_close_matches(name, known, 1)
            hint = f"Did you mean {close[0]}?" if close else "Take it out."
            raise ConfigError(
                where="url",
                what=f"{name!r} is nothing that a PostgreSQL client can be given.",
                fix=hint,
            )
    plain = url.set(drivername="postgresql+psycopg", query=query)
    if plain.host:
        plain = plain.set(host=unquote(plain.host))
    _, given = plain.get_dialect()().create_connect_args(plain)
    return {name: str(value) for name, value in given.items() if value}


def _address(user: str, host: str, port: str, name: str) -> str:
    place = f"{quote(user, safe='')}@"
    if host.startswith(("/", "@")):
        folder = os.path.normpath(host) if host.startswith("/") else host
        return f"postgresql://{place}:{port}/{quote(name, safe='')}?host={quote(folder)}"
    hosts = [f"[{each}]" if ":" in each else each for each in host.lower().split(",")]
    ports = port.split(",")
    if len(ports) == 1:
        ports *= len(hosts)
    place += ",".join(f"{host}:{port or 5432}" for host, port in zip(hosts, ports, strict=False))
    return f"postgresql://{place}/{quote(name, safe='')}"


def _wait_at_most(connection: Connection, patience: float) -> None:
    connection.exec_driver_sql(_lock_timeout(patience, local=True))


def _lock_timeout(patience: float, *, local: bool) -> Any:
    # Zero would be for ever.
    return f"SET {'LOCAL ' * local}lock_timeout = {max(1, round(patience * 1000))}"


def _is_lost(error: psycopg.Error) -> bool:
    """Whether the connection ended with this error: by the server's word, or without any."""
    import psycopg

    if error.sqlstate:
        return (
            error.sqlstate.startswith(("08", "57P")) or error.diag.severity_nonlocalized == "FATAL"
        )
    return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)


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
