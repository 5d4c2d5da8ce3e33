"""What a table store asks of PostgreSQL, asked of a real one."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager

import psycopg
import pytest
from sqlalchemy import Connection, make_url, text

from keepfor.errors import ConfigError, DatabaseBusy, StoreBusy, StoreError
from keepfor.stores.sql.postgres import PostgresDatabase, postgres_at

SECRET = "s3cret/with:signs"

#: A process that holds the lock on a table until its input ends.
HOLDER = """
import sys
from sqlalchemy import make_url
from keepfor.stores.sql.postgres import postgres_at
with postgres_at(make_url(sys.argv[1])).locked("notes", 0):
    print("held", flush=True)
    sys.stdin.read()
"""


def at(url: str, user: str | None = None, **changes: str) -> PostgresDatabase:
    """The test's database; by another user, or with another part of its URL."""
    made = make_url(url).update_query_dict(changes)
    return postgres_at(made.set(username=user) if user else made)


@contextmanager
def beside(url: str) -> Iterator[psycopg.Connection]:
    """Somebody else at the same database, who may do everything."""
    plain = url.replace("+psycopg", "")
    with closing(psycopg.connect(plain, autocommit=True)) as connection:
        yield connection


@pytest.fixture
def url(postgres_url: str) -> str:
    """A database with a table of ten notes."""
    with beside(postgres_url) as other:
        other.execute("CREATE TABLE notes (id integer GENERATED ALWAYS AS IDENTITY, said text)")
        other.execute("INSERT INTO notes (said) SELECT 'note ' || n FROM generate_series(1, 10) n")
    return postgres_url


def count(url: str) -> int:
    """How many notes everybody sees."""
    with beside(url) as other:
        row = other.execute("SELECT count(*) FROM notes").fetchone()
    assert row
    return int(row[0])


def change(
    database: PostgresDatabase, connection: Connection, *statements: str, patience: float = 1.0
) -> None:
    """Make a change in one transaction."""
    with database.transaction(connection, patience):
        for statement in statements:
            connection.execute(text(statement))


# --- its address ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("postgresql://amy:pw@db.example/audit", "postgresql://amy@db.example:5432/audit"),
        ("postgres://amy:pw@DB.example:5432/audit", "postgresql://amy@db.example:5432/audit"),
        (
            "postgresql+asyncpg://amy:pw@db.example:6000/audit?ssl=require",
            "postgresql://amy@db.example:6000/audit",
        ),
        (
            "postgresql+psycopg2://amy@db.example/audit?password=pw&sslmode=require",
            "postgresql://amy@db.example:5432/audit",
        ),
        (
            "postgresql+psycopg://amy:pw@/audit?host=/run/pg/",
            "postgresql://amy@:5432/audit?host=/run/pg",
        ),
        ("postgresql://amy@%2Frun%2Fpg/audit", "postgresql://amy@:5432/audit?host=/run/pg"),
        (
            "postgresql+pg8000://amy:pw@/audit?unix_sock=/run/pg/.s.PGSQL.6000",
            "postgresql://amy@:6000/audit?host=/run/pg",
        ),
        ("postgresql://amy@[::1]/audit", "postgresql://amy@[::1]:5432/audit"),
        (
            "postgresql://amy@/audit?host=a:6000&host=b:6001",
            "postgresql://amy@a:6000,b:6001/audit",
        ),
        ("postgresql://amy%20p@db.example/", "postgresql://amy%20p@db.example:5432/amy%20p"),
    ],
)
def test_an_address_is_the_same_for_the_same_database(url: str, address: str) -> None:
    """Driver, password and the way to write it make no difference to where a database lies."""
    assert postgres_at(make_url(url)).address == address


def test_an_address_for_another_driver_works(url: str) -> None:
    """A URL that a program uses with its own driver can be given as it is."""
    for scheme, extra in (
        ("postgres", ""),
        ("postgresql+psycopg2", "&sslmode=prefer"),
        ("postgresql+asyncpg", "&ssl=prefer&prepared_statement_cache_size=0&timeout=5"),
    ):
        written = url.replace("postgresql+psycopg", scheme)
        with postgres_at(make_url(f"{written}{extra}")).reading() as connection:
            assert connection.scalar(text("SELECT count(*) FROM notes")) == 10


@pytest.mark.parametrize(
    ("said", "mode"),
    [("true", "require"), ("verify-full", "verify-full"), ("0", "disable"), ("allow", "allow")],
)
def test_the_encryption_that_another_driver_asks_for_is_kept(said: str, mode: str) -> None:
    """Nobody who asked for an encrypted connection gets a plain one."""
    database = postgres_at(make_url(f"postgresql+asyncpg://amy@db.example/audit?ssl={said}"))
    assert database.login.parameters["sslmode"] == mode


def test_a_parameter_that_does_not_exist_is_refused() -> None:
    """A slip in a URL is named, with what was meant, and without its value."""
    with pytest.raises(ConfigError) as refused:
        postgres_at(make_url(f"postgresql://amy@db.example/audit?pasword={SECRET}"))
    assert "'pasword'" in str(refused.value)
    assert "Did you mean password?" in str(refused.value)
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize("name", ["service", "schema"])
def test_a_parameter_that_would_lead_elsewhere_is_refused(name: str) -> None:
    """What an address could not show, or no client understands, is not silently left out."""
    with pytest.raises(ConfigError, match=f"'{name}'"):
        postgres_at(make_url(f"postgresql://amy@db.example/audit?{name}=other"))


def test_without_psycopg_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever has not installed the driver learns the command that does."""
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(ConfigError, match=r"pip install '.\[postgres\]'"):
        postgres_at(make_url("postgresql://amy@db.example/audit"))


# --- reading and writing --------------------------------------------------------------------


def test_a_reader_sees_one_state(url: str) -> None:
    """What others commit while a reader is at work changes nothing of what it counts."""
    with at(url).reading() as connection, beside(url) as other:
        assert connection.scalar(text("SELECT count(*) FROM notes")) == 10
        other.execute("DELETE FROM notes WHERE id <= 4")
        assert connection.scalar(text("SELECT count(*) FROM notes")) == 10
    assert count(url) == 6


def test_a_reader_cannot_write(url: str) -> None:
    """The server itself sees to it that a plan changes nothing."""
    with pytest.raises(StoreError, match="takes no changes"), at(url).reading() as connection:
        connection.execute(text("DELETE FROM notes"))
    assert count(url) == 10


def test_a_server_knows_who_is_there(url: str) -> None:
    """An operator finds keepfor by its name among the connections, whatever the URL calls it."""
    named = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'keepfor'"
    database = at(url, application_name="other")
    with database.reading(), database.writing(), database.locked("notes", 0), beside(url) as other:
        assert other.execute(named).fetchone() == (3,)


def test_a_transaction_is_committed_at_its_end(url: str) -> None:
    """What a slice deleted is gone for everybody before the next one begins."""
    database = at(url)
    with database.writing() as connection:
        change(database, connection, "DELETE FROM notes WHERE id <= 3")
        assert count(url) == 7
        change(database, connection, "DELETE FROM notes WHERE id <= 4")
        assert count(url) == 6


def test_a_transaction_that_fails_did_nothing(url: str) -> None:
    """An error in the middle of a slice leaves the rows as they were, and the next slice works."""
    database = at(url)

    def fail(connection: Connection) -> None:
        with database.transaction(connection, 1.0):
            connection.execute(text("DELETE FROM notes"))
            raise ZeroDivisionError

    with database.writing() as connection:
        with pytest.raises(ZeroDivisionError):
            fail(connection)
        assert count(url) == 10
        assert connection.scalar(text("SELECT count(*) FROM notes")) == 10
        change(database, connection, "DELETE FROM notes WHERE id = 1")
    assert count(url) == 9


def test_a_slice_sees_what_others_committed(url: str) -> None:
    """A sweep is not failed by what others change, whatever the database's own setting is."""
    with beside(url) as other:
        name = other.info.dbname
        other.execute(f"ALTER DATABASE {name} SET default_transaction_isolation = serializable")
        database = at(url)
        with database.writing() as connection, database.transaction(connection, 1.0):
            assert connection.scalar(text("SELECT count(*) FROM notes")) == 10
            other.execute("DELETE FROM notes WHERE id <= 4")
            assert connection.scalar(text("SELECT count(*) FROM notes")) == 6


def test_a_lock_is_waited_for_within_patience_only(url: str) -> None:
    """A sweep that others keep waiting gives up, says so, and can make the same change again."""
    database, wanted = at(url), [f"DELETE FROM notes WHERE id = {number}" for number in (2, 1)]
    with database.writing() as connection, beside(url) as other:
        with other.transaction():
            other.execute("UPDATE notes SET said = 'mine' WHERE id = 1")
            with pytest.raises(DatabaseBusy) as busy:
                change(database, connection, *wanted, patience=0.05)
        assert "held a lock on it for more than 0.05 s" in str(busy.value)
        assert "what was done before it stays done" in str(busy.value)
        assert count(url) == 10
        change(database, connection, *wanted, patience=0.05)
    assert count(url) == 8


def test_no_patience_is_not_endless_patience(url: str) -> None:
    """To PostgreSQL a timeout of zero is none at all; here it means not to wait."""
    database = at(url)
    with beside(url) as other, database.writing() as connection, other.transaction():
        other.execute("LOCK TABLE notes")
        with pytest.raises(DatabaseBusy):
            change(database, connection, "DELETE FROM notes", patience=0.0)


def test_of_two_that_wait_for_each_other_one_gives_way(url: str) -> None:
    """A deadlock ends as being kept waiting does: nothing done, to be tried again."""
    database = at(url)
    first, second = (f"DELETE FROM notes WHERE id = {number}" for number in (1, 2))

    def wait_for_each_other(connection: Connection) -> None:
        with database.transaction(connection, 30.0):
            connection.execute(text("SET LOCAL deadlock_timeout = '50ms'"))
            connection.execute(text(second))
            other.execute(first)
            rest.start()
            waits = text("SELECT cardinality(pg_blocking_pids(:pid)) > 0")
            while not connection.scalar(waits, {"pid": other.info.backend_pid}):
                pass
            connection.execute(text(first))

    with beside(url) as other, database.writing() as connection:
        # Only the sweep looks for deadlocks while this lasts, so it is the sweep that gives way.
        other.execute("SET deadlock_timeout = '1min'")
        rest = threading.Thread(target=other.execute, args=(second,))
        with other.transaction():
            with pytest.raises(DatabaseBusy, match="waited for each other"):
                wait_for_each_other(connection)
            rest.join()
    assert count(url) == 8


def test_a_statement_timeout_holds(url: str) -> None:
    """A server's limit is kept, named when it strikes, and takes nothing back that was done."""
    with beside(url) as other:
        other.execute(f"ALTER DATABASE {other.info.dbname} SET statement_timeout = '100ms'")
    database = at(url)
    with database.writing() as connection:
        change(database, connection, "DELETE FROM notes WHERE id = 1")
        with pytest.raises(StoreError) as stopped:
            change(database, connection, "DELETE FROM notes", "SELECT pg_sleep(30)")
    assert "statement_timeout" in str(stopped.value)
    assert "what was done before it stays done" in str(stopped.value)
    assert not isinstance(stopped.value, StoreBusy)
    assert count(url) == 9


def test_a_server_that_goes_away_leaves_whole_transactions(url: str) -> None:
    """A connection that is cut in the middle of a slice is an error, and the slice undone."""
    database = at(url)

    def cut_off(connection: Connection) -> None:
        with database.transaction(connection, 1.0):
            connection.execute(text("DELETE FROM notes WHERE id = 2"))
            pid = connection.scalar(text("SELECT pg_backend_pid()"))
            with beside(url) as other:
                other.execute("SELECT pg_terminate_backend(%s, 10000)", (pid,))
            connection.execute(text("DELETE FROM notes WHERE id = 3"))

    with database.writing() as connection:
        change(database, connection, "DELETE FROM notes WHERE id = 1")
        with pytest.raises(StoreError) as lost:
            cut_off(connection)
    assert "the connection was lost" in str(lost.value)
    assert "was done whole or not at all" in str(lost.value)
    assert count(url) == 9


def test_a_commit_that_does_not_arrive_is_an_error(url: str) -> None:
    """No slice counts as done whose end the server did not confirm."""
    database = at(url)

    def cut_off_at_the_end(connection: Connection) -> None:
        with database.transaction(connection, 1.0):
            connection.execute(text("DELETE FROM notes"))
            pid = connection.scalar(text("SELECT pg_backend_pid()"))
            with beside(url) as other:
                other.execute("SELECT pg_terminate_backend(%s, 10000)", (pid,))

    with database.writing() as connection, pytest.raises(StoreError, match="connection was lost"):
        cut_off_at_the_end(connection)
    assert count(url) == 10


# --- the lock -------------------------------------------------------------------------------


@contextmanager
def holder(url: str) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the lock on the notes."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, url],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout
            assert process.stdout.readline() == "held\n"
            yield process
        finally:
            process.kill()


def test_two_processes_do_not_sweep_at_once(url: str) -> None:
    """While one process sweeps a table, another is told so; when it has done, it may."""
    with holder(url) as process:
        busy = pytest.raises(StoreBusy, match="table notes, is being pruned by another process")
        with busy, at(url).locked("notes", 0):
            pytest.fail("both hold it")
        assert process.stdin
        process.stdin.close()
        with at(url).locked("notes", 30):
            pass


def test_a_lock_goes_with_its_process(url: str) -> None:
    """A sweep that was killed keeps no other one out."""
    with holder(url) as process:
        process.kill()
        with at(url).locked("notes", 30):
            pass


def test_a_lock_holds_within_one_process_too(url: str) -> None:
    """Two threads do not sweep a table at once, by whichever of its names, and others are free."""
    with beside(url) as other:
        other.execute('CREATE TABLE "Other Notes" ()')
    database = at(url)
    with database.locked("notes", 0):
        for name in ("notes", "public.notes"):
            with pytest.raises(StoreBusy), database.locked(name, 0.1):
                pytest.fail("both hold it")
        with database.locked("Other Notes", 0):
            pass
    with database.locked("public.notes", 0):
        pass


def test_a_lock_is_freed_by_an_error(url: str) -> None:
    """A sweep that fails keeps the next one out no longer, not even for a moment."""
    for _ in range(20):
        with pytest.raises(ZeroDivisionError), at(url).locked("notes", 0):
            raise ZeroDivisionError


def test_a_lock_outlasts_the_servers_patience(url: str) -> None:
    """A sweep may take longer than the server lets a connection idle, and is alone all the time."""
    with beside(url) as other:
        other.execute(f"ALTER DATABASE {other.info.dbname} SET idle_session_timeout = '50ms'")
        other.execute("SET idle_session_timeout = 0; SET statement_timeout = '300ms'")
        with at(url).locked("notes", 0):
            held = "SELECT classid::int8 << 32 | objid::int8 FROM pg_locks WHERE locktype = %s"
            lock = other.execute(held, ("advisory",)).fetchone()
            with pytest.raises(psycopg.errors.QueryCanceled):
                other.execute("SELECT pg_advisory_lock(%s)", lock)


def test_the_lock_of_a_table_is_the_same_in_every_version(url: str) -> None:
    """Two versions of keepfor at one table exclude each other, for its number never changes."""
    number = """
        SELECT ('x' || left(encode(sha256(convert_to(
            'keepfor ' || 'notes'::regclass::oid, 'UTF8')), 'hex'), 16))::bit(64)::bigint
    """
    with beside(url) as other:
        other.execute(f"SELECT pg_advisory_lock(({number}))")
        with pytest.raises(StoreBusy), at(url).locked("notes", 0):
            pytest.fail("both hold it")


# --- what it tells of a table ---------------------------------------------------------------


def identity(url: str, table: str = "notes", user: str | None = None) -> str:
    database = at(url, user)
    with database.reading() as connection:
        return database.identity(connection, table)


def test_a_table_is_the_same_whatever_is_done_to_it(url: str) -> None:
    """Rewriting, emptying and altering a table makes no other one of it."""
    first = identity(url)
    with beside(url) as other:
        for change in ("VACUUM FULL notes", "TRUNCATE notes", "ALTER TABLE notes ADD COLUMN x int"):
            other.execute(change)
            assert identity(url) == first, change
        (name,) = other.execute("SELECT system_identifier FROM pg_control_system()").fetchone() or (
            0,
        )
    assert first.startswith(f"{name}/")


def test_another_table_under_the_same_name_is_another(url: str) -> None:
    """A plan is not carried out on a table that was made anew since."""
    first = identity(url)
    with beside(url) as other:
        other.execute("DROP TABLE notes")
        other.execute("CREATE TABLE notes (id integer)")
    assert identity(url) != first


def test_a_table_is_told_without_privileges(url: str) -> None:
    """A role that may not ask which server it is at still learns whether the table is the same."""
    with beside(url) as other:
        other.execute("REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC")
        other.execute("CREATE ROLE clerk LOGIN")
    server, _, rest = identity(url).partition("/")
    assert server.isdigit()
    assert identity(url, user="clerk") == f"?/{rest}"


def test_a_name_means_the_table_of_just_that_name(url: str) -> None:
    """Capitals and spaces in a name are those of the table; nothing is folded or split."""
    with beside(url) as other:
        other.execute('CREATE SCHEMA "Old"; CREATE TABLE "Old"."My ""Notes" (id serial)')
    database = at(url)
    with database.reading() as connection:
        assert database.identity(connection, 'Old.My "Notes')
        assert database.keys_grow(connection, 'Old.My "Notes', "id")


@pytest.mark.parametrize("name", ["Notes", "other.notes", "nots"])
def test_a_table_that_is_not_there_is_named(url: str, name: str) -> None:
    """A wrong name is an error that shows it, and no lock on nothing."""
    with pytest.raises(StoreError, match=f"it has no table {name}"):
        identity(url, name)
    with pytest.raises(StoreError, match=f"it has no table {name}"), at(url).locked(name, 0):
        pytest.fail("there is nothing to lock")


KEYS = {
    "id serial": True,
    "id bigserial": True,
    "id smallserial": True,
    "id integer GENERATED ALWAYS AS IDENTITY": True,
    "id bigint GENERATED BY DEFAULT AS IDENTITY": True,
    "id bigint DEFAULT nextval('s')": True,
    "id bigint GENERATED ALWAYS AS IDENTITY (INCREMENT -1)": False,
    "id bigint GENERATED ALWAYS AS IDENTITY (CYCLE)": False,
    "id bigint GENERATED ALWAYS AS IDENTITY (CACHE 20)": False,
    "id bigint DEFAULT nextval('down')": False,
    "id bigint DEFAULT -nextval('s')": False,
    "id bigint DEFAULT nextval('s') - nextval('t')": False,
    "id bigint DEFAULT 7": False,
    "id bigint": False,
    "id text DEFAULT nextval('s')": False,
    "id numeric DEFAULT nextval('s')": False,
    "id uuid DEFAULT gen_random_uuid()": False,
    "other serial": False,
}


def test_keys_that_only_grow_are_known(postgres_url: str) -> None:
    """Only where the database hands out ever higher keys does the highest one mark what is new."""
    with beside(postgres_url) as other:
        other.execute("CREATE SEQUENCE s; CREATE SEQUENCE t; CREATE SEQUENCE down INCREMENT -1")
        for number, column in enumerate(KEYS):
            other.execute(f"CREATE TABLE made_{number} ({column})")
    database = at(postgres_url)
    with database.reading() as connection:
        told = {
            column: database.keys_grow(connection, f"made_{number}", "id")
            for number, column in enumerate(KEYS)
        }
    assert told == KEYS


# --- what it takes up -----------------------------------------------------------------------


def fill(url: str, rows: int) -> None:
    """So many rows of half a kilobyte, about fifteen to a page of eight."""
    with beside(url) as other:
        other.execute(
            "INSERT INTO notes (said) SELECT repeat('x', 500) FROM generate_series(1, %s)", (rows,)
        )


def forget(url: str, condition: str) -> None:
    """Delete rows, and have the server take note of it at once."""
    with beside(url) as other:
        other.execute("DELETE FROM notes WHERE " + condition)
        other.execute("SELECT pg_stat_force_next_flush()")


def test_a_footprint_tells_size_and_deleted_rows(postgres_url: str, url: str) -> None:
    """What deleted rows take up is told as their share in the table, and deletion shrinks none."""
    with beside(url) as other:
        other.execute("TRUNCATE notes RESTART IDENTITY")
    fill(url, 1000)
    database = at(url)
    with database.reading() as connection:
        before = database.footprint(connection)
    forget(url, "id % 4 = 0")
    with database.reading() as connection:
        after = database.footprint(connection)
    with beside(url) as other:
        row = other.execute(
            "SELECT pg_database_size(current_database()), pg_relation_size('notes')"
        ).fetchone()
    assert row
    assert before.reclaimable == 0
    assert after.size == row[0] >= before.size
    # A quarter of the rows went.
    assert after.reclaimable == row[1] // 4


def test_a_deletion_sets_nothing_free(url: str) -> None:
    """No byte is reported as freed that only a vacuum will free."""
    database = at(url)
    with database.writing() as connection, database.transaction(connection, 1.0):
        before = database.freed(connection)
        connection.execute(text("DELETE FROM notes"))
        assert database.freed(connection) == before


def test_reclaiming_gives_back_what_it_can(url: str) -> None:
    """A vacuum gives back the deleted end of a table, keeps its rows, and rewrites no file."""
    fill(url, 3000)
    forget(url, "id > 10")
    with beside(url) as other:
        place = other.execute("SELECT pg_relation_filenode('notes')").fetchone()
    before, after = at(url).reclaim()
    assert before.reclaimable > 1_000_000
    assert after.size < before.size - 1_000_000
    assert after.reclaimable == 0
    assert count(url) == 10
    with beside(url) as other:
        assert other.execute("SELECT pg_relation_filenode('notes')").fetchone() == place


def test_reclaiming_keeps_to_its_own_tables(url: str) -> None:
    """A role vacuums what belongs to it and nothing else, and says so where nothing does."""
    vacuumed = "SELECT relname FROM pg_stat_user_tables WHERE vacuum_count > 0"
    with beside(url) as other:
        other.execute("CREATE ROLE clerk LOGIN")
        with pytest.raises(StoreError, match="no table here belongs to clerk"):
            at(url, "clerk").reclaim()
        other.execute('CREATE TABLE "Clerk\'s" (id integer)')
        other.execute('ALTER TABLE "Clerk\'s" OWNER TO clerk')
        at(url, "clerk").reclaim()
        assert other.execute(vacuumed).fetchall() == [("Clerk's",)]


# --- what it refuses ------------------------------------------------------------------------


def refusal(database: PostgresDatabase, statement: str = "SELECT 1") -> str:
    """What is said when a slice fails; the password is in no part of it."""
    with pytest.raises(StoreError) as refused, database.writing() as connection:
        change(database, connection, statement)
    with pytest.raises(StoreError) as shut, database.reading() as connection:
        connection.execute(text(statement))
    for error in (refused.value, shut.value):
        assert error.__suppress_context__
        assert error.__cause__ is None
        for shown in (str(error), repr(error), str(error.facts), repr(database)):
            assert SECRET not in shown
            assert "s3cret" not in shown
    return str(refused.value)


def test_a_wrong_password_is_never_shown(url: str) -> None:
    """Who gives a wrong password is told so, by no part of it."""
    with beside(url) as other:
        other.execute("CREATE ROLE guarded LOGIN PASSWORD 'right'")
    entered = make_url(url).set(username="guarded", password=SECRET)
    said = refusal(postgres_at(entered))
    assert "it refuses the password of guarded." in said
    assert "Put the right one into the URL" in said
    with postgres_at(entered.set(password="right")).reading() as connection:
        assert connection.scalar(text("SELECT current_user")) == "guarded"
    assert "it asks guarded for a password, and none was given." in refusal(at(url, "guarded"))


def test_a_password_outside_its_place_is_hidden_too(url: str) -> None:
    """A password among the parameters, or in the server's own words, is not shown either."""
    with beside(url) as other:
        other.execute("CREATE ROLE guarded LOGIN PASSWORD 'right'; CREATE ROLE clerk NOLOGIN")
    assert "it refuses the password" in refusal(at(url, "guarded", password=SECRET))
    assert 'role "***" is not permitted' in refusal(at(url, "clerk", password="clerk"))


def test_an_unknown_user_is_named(url: str) -> None:
    """A wrong user is told from a wrong password."""
    assert "it knows no user bob." in refusal(at(url, "bob"))


def test_a_user_who_may_not_enter_is_told_so(url: str) -> None:
    """Being locked out is told with the server's own reason."""
    with beside(url) as other:
        other.execute("CREATE ROLE clerk NOLOGIN")
        said = refusal(at(url, "clerk"))
        assert 'it does not let clerk in: role "clerk" is not permitted to log in.' in said
        other.execute("ALTER ROLE clerk LOGIN")
        other.execute(f"REVOKE CONNECT ON DATABASE {other.info.dbname} FROM PUBLIC")
        assert "it does not let clerk in: permission denied for database" in refusal(
            at(url, "clerk")
        )


def test_an_unknown_database_is_named(url: str) -> None:
    """A wrong name of a database is told with that name."""
    database = postgres_at(make_url(url).set(database="nowhere"))
    assert "the server has no database nowhere." in refusal(database)


@pytest.mark.parametrize("host", [f"{'a' * 64}.invalid", ".".join(["a" * 60] * 5)])
def test_an_unknown_host_is_named(host: str) -> None:
    """A host that does not exist is told as that."""
    # A name that is too long, in a part or as a whole, is not asked for in the network.
    made = make_url("postgresql://amy@h/audit").set(host=host, password=SECRET)
    said = refusal(postgres_at(made))
    assert f"postgresql://amy@{host}:5432/audit: no machine has that name." in said


def test_a_place_where_no_server_listens_is_named(url: str) -> None:
    """A closed port, or an empty socket folder, is told as that."""
    with socket.socket() as taken:
        # Bound, but nobody listens, and nobody else can begin to.
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        made = make_url("postgresql://amy@127.0.0.1/audit").set(port=port, password=SECRET)
        said = refusal(postgres_at(made))
    assert f"postgresql://amy@127.0.0.1:{port}/audit: no server listens there." in said
    assert "no server listens there." in refusal(at(url, host="/nowhere"))


def test_missing_privileges_are_named(url: str) -> None:
    """Who may not read or delete is told what of, and what to have granted."""
    with beside(url) as other:
        other.execute("CREATE ROLE clerk LOGIN")
    for statement in ("SELECT * FROM notes", "DELETE FROM notes"):
        said = refusal(at(url, "clerk"), statement)
        assert "permission denied for table notes." in said
        assert "GRANT SELECT, DELETE, UPDATE ON" in said
    with beside(url) as other:
        other.execute("GRANT SELECT ON notes TO clerk")
    database = at(url, "clerk")
    with database.writing() as connection:
        with pytest.raises(StoreError, match="permission denied for table notes"):
            change(database, connection, "DELETE FROM notes")
        assert connection.scalar(text("SELECT count(*) FROM notes")) == 10


def test_a_server_that_takes_no_changes_is_told(url: str) -> None:
    """What a standby answers to a deletion, and a read-only database, is told with what to do."""
    with beside(url) as other:
        other.execute(f"ALTER DATABASE {other.info.dbname} SET default_transaction_read_only = on")
    said = refusal(at(url), "DELETE FROM notes")
    assert "it takes no changes (cannot execute DELETE in a read-only transaction)" in said
    assert "the primary's address" in said


def test_too_many_connections_are_told(url: str) -> None:
    """A server that has no connection left is told from one that is not there."""
    with beside(url) as other:
        other.execute("CREATE ROLE clerk LOGIN CONNECTION LIMIT 0")
    said = refusal(at(url, "clerk"))
    assert 'it has no connection left: too many connections for role "clerk".' in said
    assert "Try again later" in said


def test_what_a_row_holds_is_in_no_message(url: str) -> None:
    """An error names what went wrong, and neither a statement's values nor a row's."""
    with beside(url) as other:
        other.execute("CREATE UNIQUE INDEX one ON notes (said)")
    said = refusal(at(url), "INSERT INTO notes (said) VALUES ('note 1')")
    assert "duplicate key value violates unique constraint" in said
    assert "note 1" not in said
