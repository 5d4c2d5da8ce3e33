"""SQLite as it lies on real disks: at rest, in use, left by the killed, and in many wrong ways."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from keepfor.errors import ConfigError, DatabaseBusy, StoreBusy, StoreChanged, StoreError
from keepfor.stores.sql import sqlite, sqlitefiles
from keepfor.stores.sql.database import database_at
from keepfor.stores.sql.sqlite import SqliteDatabase, sqlite_at
from tests.stores.nobody import NOBODY, as_nobody, common_ground
from tests.stores.test_faults import small_disk

#: Another program: does each line of Python that it is told, and says when it is done.
OTHER = """
import os, sqlite3, sys
c = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=0)
for line in sys.stdin:
    try:
        exec(line)
        print("done", flush=True)
    except sqlite3.Error as error:
        print(error, flush=True)
c.close()
"""


class Other:
    """Another program with a connection of its own to a database."""

    def __init__(self, path: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", OTHER, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def tell(self, *lines: str) -> None:
        """Have it do something, without waiting for it."""
        assert self.process.stdin
        self.process.stdin.write("".join(f"{line}\n" for line in lines))
        self.process.stdin.flush()

    def hear(self) -> str:
        """What it says to one line: `done`, or SQLite's error."""
        assert self.process.stdout
        return self.process.stdout.readline().rstrip("\n")

    def run(self, *statements: str) -> None:
        """Have it do some SQL."""
        for statement in statements:
            self.tell(f"c.execute({statement!r}).fetchall()")
            assert self.hear() == "done", statement

    def kill(self) -> None:
        """kill -9."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


@contextmanager
def other(path: Path, *statements: str) -> Iterator[Other]:
    """Another program that has done some SQL."""
    program = Other(path)
    with program.process:
        program.run(*statements)
        yield program


def make(path: Path, mode: str = "delete", rows: int = 3) -> SqliteDatabase:
    """A database at rest, with so many rows."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(f"PRAGMA journal_mode = {mode}")
        connection.execute("CREATE TABLE notes (id INTEGER PRIMARY KEY, body TEXT)")
        connection.execute("BEGIN")
        connection.executemany("INSERT INTO notes (body) VALUES (?)", [("x",)] * rows)
        connection.execute("COMMIT")
    return sqlite_at(path)


def count(connection: Any) -> int:
    return int(connection.execute(text("SELECT count(*) FROM notes")).scalar_one())


def counted(database: SqliteDatabase) -> int:
    with database.reading() as connection:
        return count(connection)


def change(database: SqliteDatabase, *statements: str, patience: float = 0) -> None:
    """Do some SQL in one transaction, as a sweep does."""
    with database.writing() as connection, database.transaction(connection, patience):
        for statement in statements:
            connection.execute(text(statement))


def lock(database: SqliteDatabase, table: str = "notes") -> None:
    """Get the lock between sweeps, and let it go."""
    with database.locked(table, 0):
        pass


def rows(path: Path) -> int:
    """How many rows there are, past the code under test; and all of it is sound."""
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return int(connection.execute("SELECT count(*) FROM notes").fetchone()[0])


def lies(folder: Path) -> dict[str, tuple[bytes, int, int]]:
    """Everything that reading must leave alone: names, bytes, times, inodes."""
    found = {}
    for path in folder.iterdir():
        status = path.stat()
        found[path.name] = path.read_bytes(), status.st_mtime_ns, status.st_ino
    return found


INSERT = "INSERT INTO notes (body) VALUES ('y')"
SLOW_CACHE = "PRAGMA cache_size = 1"
CHANGE = "UPDATE notes SET body = hex(randomblob(2000))"


def killed(path: Path, *statements: str) -> None:
    """Leave what a program leaves that is killed after some SQL."""
    with other(path, *statements) as program:
        program.kill()


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Where a database is to be, alone in its folder."""
    folder = tmp_path / "folder"
    folder.mkdir()
    return folder / "notes.sqlite3"


# --- reading ------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["delete", "truncate", "persist", "wal"])
def test_reading_a_database_at_rest_leaves_no_trace(mode: str, place: Path) -> None:
    """Bytes, times and names are as before, whatever kind of journal it has."""
    database = make(place, mode)
    before = lies(place.parent)
    with database.reading() as connection:
        assert count(connection) == 3
        assert database.footprint(connection).size == place.stat().st_size
        assert lies(place.parent) == before
    assert lies(place.parent) == before
    assert database.notes == []


def test_reading_beside_a_writer_changes_neither_database_nor_log(place: Path) -> None:
    """What a live writer has committed is seen, and only its `-shm` may change."""
    database = make(place, "wal")
    with other(place, INSERT, "BEGIN", INSERT):
        before = lies(place.parent)
        assert counted(database) == 4
        after = lies(place.parent)
        assert before.keys() == after.keys() == {
            "notes.sqlite3", "notes.sqlite3-wal", "notes.sqlite3-shm"
        }  # fmt: skip
        for name in ("notes.sqlite3", "notes.sqlite3-wal"):
            assert before[name] == after[name]
        assert database.notes == []


@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_a_reader_keeps_nobody_waiting(mode: str, place: Path) -> None:
    """What others commit meanwhile is not seen, where SQLite can do that without holding them up.

    With a rollback journal it cannot, and there each question sees its own moment.
    """
    database = make(place, mode)
    with other(place, INSERT) as program, database.reading() as connection:
        assert count(connection) == 4
        program.tell(f"c.execute({INSERT!r})")
        assert program.hear() == "done"
        assert count(connection) == {"delete": 5, "wal": 4}[mode]


ALONE = """
import sys
from pathlib import Path
from keepfor.stores.sql.sqlite import sqlite_at
from sqlalchemy import text
database = sqlite_at(sys.argv[1])
print(database.notes)
with database.reading() as connection:
    print(connection.execute(text("SELECT count(*) FROM notes")).scalar_one())
"""


def test_remains_of_a_crash_are_read_and_told_and_left(place: Path) -> None:
    """What a killed writer had committed counts, and not one byte or time beside it changes."""
    make(place, "wal")
    killed(place, INSERT, "BEGIN", INSERT)
    before = lies(place.parent)
    assert before.keys() == {"notes.sqlite3", "notes.sqlite3-wal", "notes.sqlite3-shm"}
    size = len(before["notes.sqlite3-wal"][0])
    command = [sys.executable, "-c", ALONE, str(place)]
    notes, seen = subprocess.run(command, capture_output=True, text=True).stdout.splitlines()
    assert seen == "4"
    assert f"{size} bytes in {place}-wal were left by a program that did not end" in notes
    assert lies(place.parent) == before


@contextmanager
def company() -> Iterator[None]:
    """Another thread in this process, as any program has that a sweeper runs in."""
    idle = threading.Event()
    thread = threading.Thread(target=idle.wait)
    thread.start()
    try:
        yield
    finally:
        idle.set()
        thread.join()


def test_reading_remains_never_keeps_the_program_itself_from_writing(place: Path) -> None:
    """Where other threads might open the database meanwhile, they can write to it."""
    database = make(place, "wal")
    killed(place, INSERT)
    before = lies(place.parent)
    with company(), database.reading() as connection:
        assert count(connection) == 4
        after = lies(place.parent)
        for name in ("notes.sqlite3", "notes.sqlite3-wal"):
            assert after[name] == before[name]
        with closing(sqlite3.connect(place, isolation_level=None)) as host:
            host.execute(INSERT)
        assert count(connection) == 4
    assert rows(place) == 5


def test_an_empty_log_left_behind_is_no_crash(place: Path) -> None:
    """A `-wal` of no bytes has nothing to tell; it is left as it lies."""
    database = make(place, "wal")
    killed(place, INSERT, "PRAGMA wal_checkpoint(TRUNCATE)")
    before = lies(place.parent)
    assert before["notes.sqlite3-wal"][0] == b""
    with company():
        assert (counted(database), database.notes) == (4, [])
    assert lies(place.parent) == before


def test_an_empty_log_of_a_program_at_work_is_heeded(place: Path) -> None:
    """A program that has yet to write is at it all the same, and does not disturb the reader."""
    database = make(place, "wal")
    with other(place, "SELECT * FROM notes") as program:
        assert Path(f"{place}-wal").stat().st_size == 0
        with database.reading() as connection:
            program.run(INSERT, "PRAGMA wal_checkpoint(PASSIVE)")
            assert count(connection) == 3
    assert counted(database) == 4


def test_a_log_without_its_index_is_told(place: Path) -> None:
    """A copied `-wal` cannot be read without writing, so it is told what to do, and left."""
    database = make(place, "wal")
    killed(place, INSERT)
    Path(f"{place}-shm").unlink()
    before = lies(place.parent)
    with pytest.raises(StoreError, match="bytes of changes lie in its -wal"):
        counted(database)
    assert lies(place.parent) == before


def test_a_log_beside_an_empty_file_is_left(place: Path) -> None:
    """SQLite would remove it."""
    place.write_bytes(b"")
    Path(f"{place}-wal").write_bytes(b"x" * 100)
    before = lies(place.parent)
    with sqlite_at(place).reading() as connection:
        assert connection.execute(text("SELECT count(*) FROM sqlite_master")).scalar_one() == 0
    assert lies(place.parent) == before


def test_a_change_half_made_is_told_and_undone_by_a_sweep_only(place: Path) -> None:
    """Reading a hot journal is refused and changes nothing; the lock of a sweep clears it."""
    database = make(place, rows=300)
    killed(place, SLOW_CACHE, "BEGIN", CHANGE)
    before = lies(place.parent)
    assert before.keys() == {"notes.sqlite3", "notes.sqlite3-journal"}
    with pytest.raises(StoreError, match="killed in the middle of a change"):
        counted(database)
    assert lies(place.parent) == before
    with database.locked("notes", 0):
        assert counted(database) == 300
        with database.reading() as connection:
            longest = text("SELECT max(length(body)) FROM notes")
            assert connection.execute(longest).scalar_one() == 1
    assert rows(place) == 300


def test_a_sweep_takes_in_what_a_killed_one_had_committed(place: Path) -> None:
    """After its lock is had, no remains lie there: what was committed stands, the rest is gone."""
    database = make(place, "wal")
    killed(place, INSERT, "BEGIN", INSERT)
    with database.locked("notes", 0):
        assert (database.notes, counted(database)) == ([], 4)
        assert not Path(f"{place}-wal").exists()
    assert rows(place) == 4


def test_a_reader_without_locks_sees_when_others_came(place: Path) -> None:
    """A state that somebody wrote over while it was read is not passed off as one."""
    database = make(place, "wal")

    def read() -> None:
        with database.reading() as connection:
            assert count(connection) == 3
            with other(place, INSERT):
                pass
            count(connection)

    with pytest.raises(StoreChanged, match="somebody wrote to it meanwhile"):
        read()
    assert counted(database) == 4


def test_what_is_locked_for_good_is_told(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader waits for a while, and then says who is in the way."""
    monkeypatch.setattr(sqlite, "_PATIENCE", 0.05)
    database = make(place)
    with other(place, "BEGIN EXCLUSIVE"):
        with pytest.raises(DatabaseBusy, match=r"kept it locked for more than 0\.05 s"):
            counted(database)
        with pytest.raises(DatabaseBusy), database.writing() as connection:
            count(connection)
    assert counted(database) == 3


# --- this process's own locks ---------------------------------------------------------------


def test_looking_never_drops_a_lock_of_this_process(place: Path) -> None:
    """A transaction that the program itself has open stays locked against other programs."""
    database = make(place)
    with closing(sqlite3.connect(place, isolation_level=None)) as host, other(place) as program:
        host.execute("BEGIN IMMEDIATE")
        assert (database.exists, database.notes, counted(database)) == (True, [], 3)
        lock(database)
        program.tell("c.execute('BEGIN IMMEDIATE')")
        assert program.hear() == "database is locked"


def test_looking_at_many_databases_keeps_few_open_and_no_lock_is_dropped(tmp_path: Path) -> None:
    """Descriptors are given up, but never one of a database that this process has open."""
    paths = [tmp_path / f"{number}.sqlite3" for number in range(60)]
    first = make(paths[0])
    for path in paths[1:]:
        path.write_bytes(paths[0].read_bytes())
    with closing(sqlite3.connect(paths[0], isolation_level=None)) as host:
        host.execute("BEGIN IMMEDIATE")
        assert first.notes == []
        before = len(os.listdir("/dev/fd"))
        for path in paths:
            sqlitefiles.look(str(path))
        assert len(os.listdir("/dev/fd")) <= before + 33
        with other(paths[0]) as program:
            program.tell("c.execute('BEGIN IMMEDIATE')")
            assert program.hear() == "database is locked"


def test_a_database_that_was_replaced_is_looked_at_anew(place: Path) -> None:
    """Another file under the same name is read as what it is."""
    database = make(place, "delete")
    assert counted(database) == 3
    place.unlink()
    make(place, "wal", rows=7)
    before = lies(place.parent)
    assert counted(database) == 7
    assert lies(place.parent) == before


# --- what stands there instead ----------------------------------------------------------------


def test_what_is_not_there_yet_is_not_made(place: Path) -> None:
    """Neither reading nor writing makes a database."""
    database = sqlite_at(place)
    assert not database.exists
    assert database.notes == []
    for enter in (database.reading, database.writing):
        with pytest.raises(FileNotFoundError), enter():
            pass
    assert list(place.parent.iterdir()) == []


def junk(path: Path) -> None:
    path.write_bytes(os.urandom(8192))


def folder(path: Path) -> None:
    path.mkdir()


def pipe(path: Path) -> None:
    os.mkfifo(path)


def damaged(path: Path) -> None:
    make(path, rows=2000)
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * 8192)


@pytest.mark.parametrize(
    ("what", "said"),
    [
        (junk, "it is no SQLite database, or an encrypted one. Give the path"),
        (folder, "it is a folder. Give the path"),
        (pipe, "it is no file. Give the path"),
        (damaged, r"it is damaged \(database disk image is malformed\). Restore it"),
    ],
)
def test_what_is_no_sound_database_is_told(
    what: Callable[[Path], None], said: str, place: Path
) -> None:
    """Whatever stands there, the message says so and what to do, and nothing is made beside it."""
    what(place)
    with pytest.raises(StoreError, match=said) as caught:
        counted(sqlite_at(place))
    assert str(caught.value).startswith(f"{place}: ")
    assert [path.name for path in place.parent.iterdir()] == [place.name]


def test_what_may_not_be_read_is_told() -> None:
    """A database that this user may not read is refused."""
    with common_ground() as ground:
        path = ground / "notes.sqlite3"
        make(path)
        path.chmod(0)

        def act() -> None:
            with pytest.raises(StoreError, match=r"Permission denied\. Run as a user who may"):
                counted(sqlite_at(path))

        as_nobody(act)


@pytest.mark.parametrize("what", ["file", "folder"])
@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_what_may_only_be_read_is_read_and_not_written(mode: str, what: str) -> None:
    """A file or a folder without write permission can be planned on; a sweep is refused."""
    with common_ground() as ground:
        home = ground / "home"
        home.mkdir()
        path = home / "notes.sqlite3"
        database = make(path, mode)
        path.chmod(0o444 if what == "file" else 0o666)
        home.chmod(0o555 if what == "folder" else 0o777)

        def act() -> None:
            assert counted(database) == 3
            with pytest.raises(StoreError, match="Run as a user who may write it"):
                change(database, INSERT)

        as_nobody(act)
        home.chmod(0o777)
        assert rows(path) == 3


# --- addresses ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", [b"a b?mode=rw#c%20d.sqlite3", b"\xff\xfe.sqlite3", "ä'\".db".encode()]
)
@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_a_name_may_be_anything(name: bytes, mode: str, tmp_path: Path) -> None:
    """Characters that mean something in a URI, and bytes that are no UTF-8, are part of a name."""
    plain = tmp_path / "plain"
    make(plain, mode)
    path = tmp_path / os.fsdecode(name)
    plain.rename(path)
    database = sqlite_at(path)
    assert counted(database) == 3
    with database.locked("notes", 0):
        change(database, INSERT)
    assert counted(database) == 4
    names = {os.fsencode(found.name) for found in tmp_path.iterdir()}
    assert names == {name, b"." + name + b".notes.keepfor-lock"}


def test_a_symlink_is_the_file_that_it_leads_to(place: Path) -> None:
    """Both names have one address and one lock."""
    database = make(place)
    link = place.parent.parent / "link.sqlite3"
    link.symlink_to(place)
    assert sqlite_at(link) == database
    assert database.address == f"sqlite:///{place}"


@pytest.mark.parametrize(
    ("where", "path"),
    [
        ("sqlite:///notes.db", "{here}/notes.db"),
        ("sqlite:////var/notes.db", "/var/notes.db"),
        ("sqlite+aiosqlite:///data/notes.db?timeout=5", "{here}/data/notes.db"),
        ("sqlite:///file:/var/my%20notes.db?mode=rwc&uri=true", "/var/my notes.db"),
        ("sqlite:///file:///var/notes.db?cache=shared&uri=true", "/var/notes.db"),
        ("sqlite:///file://localhost/var/notes.db?uri=true", "/var/notes.db"),
        ("sqlite:///file:notes.db?uri=true", "{here}/notes.db"),
    ],
)
def test_an_address_leads_to_the_file_that_sqlalchemy_opens(
    where: str, path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """URLs with whatever driver, and SQLite's own URIs in them, are understood."""
    monkeypatch.chdir(tmp_path)
    address = path.format(here=tmp_path.resolve())
    assert database_at(where).address == f"sqlite:///{address}"


@pytest.mark.parametrize(
    "where",
    [
        "sqlite://",
        "sqlite:///",
        "sqlite:///:memory:",
        "sqlite:///file::memory:?uri=true",
        "sqlite://notes.db",
        "sqlite:///file:x?mode=memory&uri=true",
    ],
)
def test_an_address_without_a_file_is_refused(where: str) -> None:
    """A database in memory cannot be swept; two slashes where three belong are no file."""
    with pytest.raises(ConfigError, match=r"it names no file.*Write sqlite:///FILE"):
        database_at(where)


# --- writing ------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_a_transaction_is_whole(mode: str, place: Path) -> None:
    """At its end it is committed; an error, the caller's or SQLite's, leaves nothing of it."""
    database = make(place, mode)
    with database.writing() as connection:

        def act(then: Callable[[], object]) -> None:
            with database.transaction(connection, 0):
                connection.execute(text(INSERT))
                then()

        twice = text("INSERT INTO notes VALUES (1, :body)"), {"body": "secret"}
        act(lambda: None)
        with pytest.raises(ZeroDivisionError):
            act(lambda: 1 // 0)
        with pytest.raises(StoreError, match="UNIQUE constraint failed") as caught:
            act(lambda: connection.execute(*twice))
        assert "secret" not in f"{caught.value!r} {caught.value.__cause__}"
        assert count(connection) == 4
    assert rows(place) == 4


@pytest.mark.parametrize("mode", ["delete", "wal", "persist"])
def test_a_sweep_leaves_the_settings_of_a_database(mode: str, place: Path) -> None:
    """The journal mode stays, and foreign keys are not enforced where they were not."""
    database = make(place, mode)
    with database.writing() as connection:
        assert connection.exec_driver_sql("PRAGMA foreign_keys").scalar_one() == 0
        with database.transaction(connection, 0):
            connection.execute(text(INSERT))
    with closing(sqlite3.connect(place)) as plain:
        expected = {"persist": "delete"}.get(mode, mode)
        assert plain.execute("PRAGMA journal_mode").fetchone() == (expected,)


@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_a_writer_is_waited_for_within_patience(mode: str, place: Path) -> None:
    """While another program writes, a transaction waits; past its patience it gives up."""
    database = make(place, mode)
    with other(place, "BEGIN IMMEDIATE", INSERT) as program, database.writing() as connection:
        late = database.transaction(connection, 0.02)
        with pytest.raises(DatabaseBusy, match=r"locked for more than 0\.02 s"), late:
            raise AssertionError("it has no lock")
        program.tell("c.execute('COMMIT')")
        with database.transaction(connection, 60):
            connection.execute(text(INSERT))
    assert rows(place) == 5


def test_a_commit_waits_for_readers_within_patience(place: Path) -> None:
    """Readers of a rollback journal hold a commit up; past its patience all of it is undone."""
    database = make(place)
    with other(place, "BEGIN", "SELECT * FROM notes") as program, database.writing() as connection:
        with pytest.raises(DatabaseBusy), database.transaction(connection, 0.02):
            connection.execute(text("DELETE FROM notes"))
        assert count(connection) == 3
        with database.transaction(connection, 60):
            connection.execute(text("DELETE FROM notes WHERE id = 1"))
            program.tell("c.execute('COMMIT')")
    assert rows(place) == 2


def test_reads_between_transactions_wait_too(place: Path) -> None:
    """A sweep that looks for its next rows while another program commits is not thrown off."""
    database = make(place)
    with database.writing() as connection:
        with database.transaction(connection, 0):
            connection.execute(text(INSERT))
        with other(place, "BEGIN EXCLUSIVE") as program:
            program.tell("c.execute('COMMIT')")
            assert count(connection) == 4


def test_a_full_disk_undoes_the_transaction() -> None:
    """What found no room is rolled back, and what was done before stands."""

    def act(path: Path, mode: str) -> None:
        database = make(path, mode)
        change(database, INSERT)
        big = "INSERT INTO notes (body) VALUES (zeroblob(1000000))"
        with pytest.raises(StoreError, match=r"its disk is full\..*Free some space"):
            change(database, "DELETE FROM notes", big)
        assert rows(path) == 4

    with common_ground() as ground, small_disk(ground, "512k") as disk:
        for mode in ("delete", "wal"):
            # In a child, which holds nothing open on that disk when it has ended.
            as_nobody(partial(act, disk / f"{mode}.sqlite3", mode))
            (disk / f"{mode}.sqlite3").unlink()


def test_a_log_does_not_grow_with_the_sweep(place: Path) -> None:
    """Beside a program that keeps the database open, the `-wal` is taken in from time to time."""
    database = make(place, "wal")
    big = "INSERT INTO notes (body) VALUES (zeroblob(1048576))"
    with other(place, INSERT), database.writing() as connection:
        for _ in range(12):
            with database.transaction(connection, 0):
                connection.execute(text(big))
        assert Path(f"{place}-wal").stat().st_size < 6 << 20
    assert rows(place) == 16


# --- the lock between sweeps ----------------------------------------------------------------------


LOCK = """
import sys
from keepfor.stores.sql.sqlite import sqlite_at
with sqlite_at(sys.argv[1]).locked("Notes", 0):
    pass
"""


def test_one_sweep_of_a_table_at_a_time(place: Path) -> None:
    """Whoever comes second, in this process or another, is told; another table is no matter."""
    database = make(place)
    change(database, "CREATE TABLE other (id INTEGER)")
    command = [sys.executable, "-c", LOCK, str(place)]
    with database.locked("notes", 0):
        with pytest.raises(StoreBusy, match=rf"^{place}, table main\.NOTES, is being pruned"):
            lock(sqlite_at(place), "main.NOTES")
        told = subprocess.run(command, capture_output=True, text=True)
        assert "StoreBusy" in told.stderr
        lock(database, "other")
    lock(sqlite_at(place))


@pytest.mark.parametrize("mode", [0o640, 0o644, 0o600])
def test_the_lock_file_is_for_whoever_may_read_the_database(mode: int, place: Path) -> None:
    """It stays, hidden and empty, with the database's mode and owner."""
    database = make(place)
    place.chmod(mode)
    if os.geteuid() == 0:
        os.chown(place, NOBODY, NOBODY)
    for _ in range(2):
        lock(database)
    status, like = (place.parent / ".notes.sqlite3.notes.keepfor-lock").stat(), place.stat()
    assert (status.st_size, status.st_mode) == (0, like.st_mode)
    assert (status.st_uid, status.st_gid) == (like.st_uid, like.st_gid)


@pytest.mark.parametrize("name", ["a/../b", "t" * 300, "naïve table"])
def test_a_table_of_any_name_can_be_locked(name: str, place: Path) -> None:
    """Its name leads to no other folder, and is never too long."""
    database = make(place)
    change(database, f'CREATE TABLE "{name}" (id INTEGER)')
    with database.locked(name, 0), pytest.raises(StoreBusy):
        lock(database, name)
    assert len(list(place.parent.iterdir())) == 2


def a_symlink(path: Path) -> None:
    target = path.parent.parent / "target"
    target.write_bytes(b"")
    path.symlink_to(target)


@pytest.mark.parametrize("what", [folder, pipe, a_symlink])
def test_what_was_planted_for_a_lock_is_refused(what: Callable[[Path], None], place: Path) -> None:
    """Nothing is followed, opened or waited for that stands where the lock file belongs."""
    database = make(place)
    what(place.parent / ".notes.sqlite3.notes.keepfor-lock")
    with pytest.raises(StoreError, match="something stands where the lock between sweeps belongs"):
        lock(database)


# --- what a table store asks ----------------------------------------------------------------------


def identity(database: SqliteDatabase, table: str = "notes") -> str:
    with database.reading() as connection:
        return database.identity(connection, table)


def do(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


def test_a_table_is_the_same_until_it_is_made_anew(place: Path) -> None:
    """Rows, indexes and the spelling of its name do not matter; another table or file does."""
    database = make(place)
    first = identity(database)
    do(place, INSERT, "DELETE FROM notes WHERE id = 2", "CREATE INDEX ix ON notes (body)")
    assert first == identity(database) == identity(database, "main.NOTES")
    do(place, "ALTER TABLE notes RENAME TO old", "CREATE TABLE notes (id INTEGER PRIMARY KEY)")
    second = identity(database)
    assert second != first
    copy = place.with_name("copy")
    copy.write_bytes(place.read_bytes())
    copy.replace(place)
    assert identity(database) != second
    with pytest.raises(StoreError, match="it has no table gone"):
        identity(database, "gone")


@pytest.mark.parametrize(
    ("columns", "grows"),
    [
        ("(id INTEGER PRIMARY KEY)", True),
        ("(id integer NOT NULL, x, PRIMARY KEY (id))", True),
        ("(ID INTEGER PRIMARY KEY AUTOINCREMENT, rowid)", True),
        ("(id INTEGER PRIMARY KEY DESC)", False),
        ("(id INT PRIMARY KEY)", False),
        ("(id BIGINT PRIMARY KEY)", False),
        ("(id INTEGER PRIMARY KEY) WITHOUT ROWID", False),
        ("(id INTEGER, x INTEGER, PRIMARY KEY (id, x))", False),
        ("(id INTEGER UNIQUE)", False),
        ("(id INTEGER, x INTEGER PRIMARY KEY)", False),
        ("(id TEXT PRIMARY KEY)", False),
    ],
)
def test_keys_grow_where_they_are_the_rowid(columns: str, grows: bool, place: Path) -> None:
    """Only then does SQLite itself hand out ever higher ones."""
    do(place, f'CREATE TABLE "my ""table" {columns}')
    database = sqlite_at(place)
    with database.reading() as connection:
        assert database.keys_grow(connection, 'my "table', "id") is grows


def test_keys_that_reached_their_end_do_not_grow(place: Path) -> None:
    """After the highest key of all, SQLite hands out any that is free."""
    database = make(place)
    do(place, "INSERT INTO notes (id) VALUES (9223372036854775807)")
    with database.reading() as connection:
        assert not database.keys_grow(connection, "notes", "id")


@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_what_a_deletion_frees_is_counted_within_it(mode: str, place: Path) -> None:
    """All pages but the first, of the schema, and the table's root are free without rows."""
    database = make(place, mode, rows=5000)
    pages = place.stat().st_size // 4096
    with database.writing() as connection, database.transaction(connection, 0):
        assert database.freed(connection) == 0
        connection.execute(text("DELETE FROM notes WHERE id > 0"))
        assert database.freed(connection) == (pages - 2) * 4096


@pytest.mark.parametrize("vacuum", ["NONE", "INCREMENTAL"])
@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_what_is_free_is_given_back(mode: str, vacuum: str, place: Path) -> None:
    """The file shrinks by what was reclaimable, and every row is there."""
    do(place, f"PRAGMA auto_vacuum = {vacuum}")
    database = make(place, mode, rows=30_000)
    size = place.stat().st_size
    do(place, "DELETE FROM notes WHERE id > 100")
    with database.reading() as connection:
        told = database.footprint(connection)
    before, after = database.reclaim()
    assert before.size == told.size == size
    assert before.reclaimable == told.reclaimable > size * 0.9
    assert after.size == place.stat().st_size < size / 10
    assert after.reclaimable == 0
    assert rows(place) == 100


def test_the_log_counts_and_is_emptied_but_never_unlinked(place: Path) -> None:
    """Beside a program that has the database open, its `-wal` stays the same file."""
    database = make(place, "wal")
    log = Path(f"{place}-wal")
    with other(place, INSERT) as program:
        inode, size = log.stat().st_ino, log.stat().st_size
        with database.reading() as connection:
            told = database.footprint(connection)
        assert (told.size, told.reclaimable) == (place.stat().st_size + size, size)
        _, after = database.reclaim()
        assert (log.stat().st_ino, log.stat().st_size, after.reclaimable) == (inode, 0, 0)
        program.run(INSERT)
    assert rows(place) == 5


def test_nothing_is_reclaimed_of_what_is_in_use(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer at work is waited for, and then told."""
    monkeypatch.setattr(sqlite, "_PATIENCE", 0.05)
    database = make(place)
    with other(place, "BEGIN IMMEDIATE"), pytest.raises(DatabaseBusy):
        database.reclaim()


def test_a_vacuum_without_room_is_refused_before_it_begins() -> None:
    """It needs the database twice over, and a disk that it filled would stop the program."""

    def act(disk: Path) -> None:
        database = make(disk / "notes.sqlite3", rows=50_000)
        before = lies(disk)
        with pytest.raises(StoreError, match=rf"a VACUUM may need \d+ bytes.* in {disk} there are"):
            database.reclaim()
        assert lies(disk) == before

    with common_ground() as ground, small_disk(ground, "1m") as disk:
        as_nobody(partial(act, disk))
