"""Others at the same table: writers, other sweeps, locks held for good, a server or a disk gone."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from keepfor import sweep
from keepfor.errors import DatabaseBusy, StoreBusy, SweepStopped
from keepfor.items import Report
from keepfor.stores.sql import deleting, pace, postgres, sqlite
from keepfor.stores.sql.sqlite import SqliteDatabase
from keepfor.stores.table import Dependent, TableStore
from keepfor.testing.suite import NOW, adds_up, keep
from keepfor.trail import Trail
from tests.stores.sql.build import (
    OLD,
    YOUNG,
    carried_out,
    column,
    kind,
    lay,
    planned,
    run,
    stored,
    swept,
    table,
)
from tests.stores.test_faults import small_disk

LINK = Dependent(table="vectors", columns=("note",))


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database of either kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/notes.sqlite3"
    return str(request.getfixturevalue("postgres_url"))


def small_slices(monkeypatch: pytest.MonkeyPatch, rows: int = 2) -> None:
    monkeypatch.setattr(pace, "_FIRST", rows)
    monkeypatch.setattr(pace, "_MOST", rows)


def notes(url: str, old: int, mode: str = "") -> str:
    """So many old notes and a young one, each with a vector."""
    if mode:
        run(url, f"PRAGMA journal_mode = {mode}")
    lay(
        url,
        "CREATE TABLE notes (id <id>, ts <ts>, name VARCHAR)",
        "CREATE INDEX ix_notes_ts ON notes (ts)",
        "CREATE TABLE vectors (id <id>, note BIGINT)",
        "CREATE INDEX ix_vectors_note ON vectors (note)",
    )
    numbers = f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {old})"
    run(url, f"INSERT INTO notes (ts) {numbers} SELECT {literal(url, OLD)} FROM n")
    run(url, f"INSERT INTO notes (ts) VALUES ({literal(url, YOUNG)})")
    run(url, "INSERT INTO vectors (note) SELECT id FROM notes")
    return url


def literal(url: str, instant: Any) -> str:
    cast = "::timestamptz" if kind(url) == "postgresql" else ""
    return f"'{stored(url, instant)}'{cast}"


def store_of(url: str, folder: Path, **settings: Any) -> TableStore:
    return table(url, "notes", folder, dependents=(LINK,), **settings)


def left(url: str) -> int:
    """How many notes there are; each has its vector, and no vector is without."""
    rows = column(url, "SELECT id FROM notes ORDER BY id")
    assert column(url, "SELECT note FROM vectors ORDER BY note") == rows
    return len(rows)


def where(url: str) -> dict[str, Any]:
    """How psycopg reaches the database."""
    name, _, host = url.partition("/test_")[2].partition("?host=")
    return {"host": host, "user": "postgres", "dbname": f"test_{name}"}


# --- writers ------------------------------------------------------------------------------

#: Inserts young notes, each with a vector, until it is told to stop; says how many there are.
WRITER = """
import select, sys
kind, where, ts = sys.argv[1:]
if kind == "sqlite":
    import sqlite3
    # As a program has it that knows of nothing: five seconds of patience.
    c = sqlite3.connect(where)
    mark = "?"
else:
    import psycopg
    c = psycopg.connect(where)
    mark = "%s"
done = 0
while not select.select([sys.stdin], [], [], 0)[0]:
    key = c.execute(f"INSERT INTO notes (ts, name) VALUES ({mark}, {mark}) RETURNING id",
                    (ts, f"new {done}")).fetchone()[0]
    c.execute(f"INSERT INTO vectors (note) VALUES ({mark})", (key,))
    c.commit()
    done += 1
    if done == 10:
        print("ready", flush=True)
print(done, flush=True)
"""


@contextmanager
def writer(url: str) -> Iterator[Callable[[], int]]:
    """Another program that inserts in a loop; the call stops it, and says how many it inserted."""
    place = url.removeprefix("sqlite:///")
    if kind(url) == "postgresql":
        place = " ".join(f"{name}={value}" for name, value in where(url).items())
    ts = "2026-07-01 00:00:00.000000" if kind(url) == "sqlite" else "2026-07-01 00:00:00+00"
    command = [sys.executable, "-c", WRITER, kind(url), place, ts]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as program:
        assert program.stdout
        assert program.stdout.readline() == "ready\n"

        def stop() -> int:
            said, complaint = program.communicate("stop\n")
            assert complaint == ""
            return int(said)

        yield stop


@pytest.mark.parametrize("mode", ["wal", "delete", "truncate"])
def test_a_writer_of_sqlite_loses_nothing_and_is_never_refused(mode: str, quick_path: Path) -> None:
    """Every row that it inserted during a sweep is there, and with it its dependent."""
    url = notes(f"sqlite:///{quick_path}/notes.sqlite3", 1000, mode)
    writer_loses_nothing(url, quick_path)


def test_a_writer_of_postgresql_loses_nothing_and_is_never_refused(
    postgres_url: str, tmp_path: Path
) -> None:
    """Every row that it inserted during a sweep is there, and with it its dependent."""
    writer_loses_nothing(notes(postgres_url, 1000), tmp_path)


def writer_loses_nothing(url: str, folder: Path) -> None:
    store = store_of(url, folder, orphans="delete")
    with writer(url) as stop:
        report = swept(store)
        new = stop()
    assert (report.applied, report.dependents, report.orphans) == (1000, {"vectors": 1000}, {})
    assert left(url) == 1 + new
    names = column(url, "SELECT name FROM notes WHERE name IS NOT NULL ORDER BY id")
    assert names == [f"new {number}" for number in range(new)]


# --- other sweeps -------------------------------------------------------------------------


def in_child(act: Callable[[], int]) -> Callable[[], int]:
    """Do something in another process; the call waits for it, and gives what came of it."""
    reader, out = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(out, str(act()).encode())
        except BaseException:  # noqa: BLE001 - told to the parent
            os.write(out, traceback.format_exc().encode())
        finally:
            os._exit(0)
    os.close(out)

    def wait() -> int:
        with open(reader, encoding="utf-8") as pipe:
            said = pipe.read()
        os.waitpid(child, 0)
        assert said.isdigit(), said
        return int(said)

    return wait


def test_two_sweeps_at_once_delete_each_row_once(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One waits for the other, and finds nothing more to do; no row is counted by both."""
    small_slices(monkeypatch, 20)
    store = store_of(notes(url, 200), tmp_path)

    def act() -> int:
        return sweep.prune(store, keep(), NOW, name="notes").applied

    waits = [in_child(act) for _ in range(2)]
    assert sorted(wait() for wait in waits) == [0, 200]
    assert left(url) == 1


def test_a_plan_that_another_sweep_overtook_takes_nothing_twice(url: str, tmp_path: Path) -> None:
    """What is gone by now is not there to be kept or skipped."""
    store = store_of(notes(url, 5), tmp_path)
    made = planned(store)
    assert swept(store).applied == 5
    report = carried_out(made, store)
    assert (report.scanned, report.kept, report.applied, report.skipped) == (1, 1, 0, 0)


def test_a_sweep_that_finds_another_at_work_says_so(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Past its patience it gives up, and has done nothing."""
    monkeypatch.setattr(sweep, "PATIENCE", 0.05)
    store = store_of(notes(url, 5), tmp_path)
    made = planned(store)
    with store_of(url, tmp_path).locked(), pytest.raises(StoreBusy, match="is being pruned"):
        carried_out(made, store)
    assert left(url) == 6


# --- locked for good ----------------------------------------------------------------------


@contextmanager
def locked(url: str) -> Iterator[None]:
    """Another program that has the table and does not let go."""
    if kind(url) == "sqlite":
        connection = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.close()
        return
    with psycopg.connect(**where(url)) as session:
        session.execute("LOCK TABLE notes IN SHARE MODE")
        yield


def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in (
        (deleting, "_PATIENCE"),
        (sqlite, "_PATIENCE"),
        (postgres, "_READERS_PATIENCE"),
    ):
        monkeypatch.setattr(module, name, 0.05)


def test_what_is_locked_for_good_is_told_before_anything(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing was done; when others have finished, the next sweep does it all."""
    impatient(monkeypatch)
    store = store_of(notes(url, 5), tmp_path)
    made = planned(store)
    trail = Trail(tmp_path / "trail.jsonl", keep_for="forever")
    with locked(url), pytest.raises(DatabaseBusy):
        carried_out(made, store, trail=trail)
    assert left(url) == 6
    outcome = next(trail.records("outcome"))
    assert outcome["applied"] == 0
    assert outcome["error"]
    assert swept(store).applied == 5


def stopped(url: str, folder: Path, match: str, hook: Callable[[], object]) -> SweepStopped:
    """Have something happen after the first of three slices; what comes of it adds up."""
    store, trail = store_of(url, folder), Trail(folder / "trail.jsonl", keep_for="forever")
    made = planned(store)

    def happen(done: int, of: int) -> None:
        if done == 2:
            hook()

    with pytest.raises(SweepStopped, match=match) as caught:
        carried_out(made, store, trail=trail, progress=happen)
    error = caught.value
    assert error.exit_code == 3
    assert "2 of 5 rows were deleted" in str(error)
    assert adds_up(error.done)
    outcome = next(trail.records("outcome"))
    counts = {name: outcome[name] for name in ("scanned", "kept", "applied", "skipped", "failed")}
    assert counts == {"scanned": 6, "kept": 1, "applied": 2, "skipped": 0, "failed": 3}
    assert outcome["dependents"] == {"vectors": 2}
    assert "2 of 5 rows" in outcome["error"]
    return error


def goes_on(url: str, folder: Path) -> None:
    """The next sweep takes what the stopped one left."""
    assert left(url) == 4
    report = swept(store_of(url, folder))
    assert (report.applied, report.dependents) == (3, {"vectors": 3})
    assert left(url) == 1


def test_what_gets_locked_for_good_stops_a_sweep_halfway(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says how far it came, with exit code 3; the trail has it; the next sweep goes on."""
    small_slices(monkeypatch)
    impatient(monkeypatch)
    notes(url, 5)
    lock = locked(url)
    stopped(url, tmp_path, "for more than", lock.__enter__)
    lock.__exit__(None, None, None)
    goes_on(url, tmp_path)


def test_a_server_that_ends_a_sweep_halfway_leaves_whole_slices(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection is gone in the middle: what was committed stands, the next sweep goes on."""
    small_slices(monkeypatch)
    notes(postgres_url, 5)

    def end_all() -> None:
        run(
            postgres_url,
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
            "WHERE datname = current_database() AND application_name = 'keepfor'",
        )

    stopped(postgres_url, tmp_path, "connection was lost", end_all)
    goes_on(postgres_url, tmp_path)


def test_a_statement_timeout_stops_a_sweep_halfway(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the server allows is respected: the slice that takes too long is undone."""
    small_slices(monkeypatch)
    notes(postgres_url, 5)
    store = store_of(postgres_url, tmp_path)
    (name,) = column(postgres_url, "SELECT current_database()")
    run(
        postgres_url,
        "CREATE FUNCTION slow() RETURNS trigger AS "
        "$$ BEGIN PERFORM pg_sleep(5); RETURN OLD; END $$ LANGUAGE plpgsql",
        "CREATE TRIGGER slow BEFORE DELETE ON notes FOR EACH ROW WHEN (OLD.id = 3) "
        "EXECUTE FUNCTION slow()",
        f"ALTER DATABASE {name} SET statement_timeout = '300ms'",
    )
    with pytest.raises(SweepStopped, match="statement_timeout"):
        swept(store)
    run(postgres_url, "DROP TRIGGER slow ON notes")
    goes_on(postgres_url, tmp_path)


def test_a_disk_that_fills_up_stops_a_sweep_halfway(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Deleting needs room for a journal: the slice is undone; with room again it goes on."""
    small_slices(monkeypatch)
    with small_disk(tmp_path, "512k") as disk:
        url = notes(f"sqlite:///{disk}/notes.sqlite3", 5)
        filler = disk / "filler"

        def fill() -> None:
            with open(filler, "wb", buffering=0) as file:
                try:
                    while True:
                        file.write(b"x" * 4096)
                except OSError:
                    pass

        stopped(url, tmp_path, "disk is full", fill)
        filler.unlink()
        goes_on(url, tmp_path)
        # Where a database was looked at, its descriptor stays open, and its disk in use.
        forget()


def forget() -> None:
    from keepfor.stores.sql import sqlitefiles

    for descriptor in sqlitefiles._kept.values():
        os.close(descriptor)
    sqlitefiles._kept.clear()


# --- rows that others hold ----------------------------------------------------------------


@pytest.mark.parametrize("held", ["FOR UPDATE", "FOR KEY SHARE"])
def test_rows_that_others_hold_are_passed_over(
    held: str, postgres_url: str, tmp_path: Path
) -> None:
    """A row that another transaction has locked is skipped, with what hangs on it, and counted."""
    notes(postgres_url, 5)
    store = store_of(postgres_url, tmp_path)
    with psycopg.connect(**where(postgres_url)) as other:
        other.execute(f"SELECT 1 FROM notes WHERE id IN (2, 3) {held}")
        report = swept(store)
    assert (report.scanned, report.kept, report.applied, report.skipped) == (6, 1, 3, 2)
    assert report.dependents == {"vectors": 3}
    assert column(postgres_url, "SELECT id FROM notes ORDER BY id") == [2, 3, 6]
    assert left(postgres_url) == 3
    assert swept(store).applied == 2


def test_a_dependent_that_is_being_added_keeps_its_row(postgres_url: str, tmp_path: Path) -> None:
    """Where the link is declared, whoever adds a dependent holds the row, so it is passed over."""
    notes(postgres_url, 2)
    run(postgres_url, "ALTER TABLE vectors ADD FOREIGN KEY (note) REFERENCES notes")
    store = store_of(postgres_url, tmp_path)
    with psycopg.connect(**where(postgres_url)) as other:
        other.execute("INSERT INTO vectors (note) VALUES (1)")
        report: Report = swept(store)
    assert (report.applied, report.skipped) == (1, 1)
    assert column(postgres_url, "SELECT note FROM vectors ORDER BY note") == [1, 1, 3]


def test_a_row_that_is_made_young_meanwhile_stays(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each slice looks again: what another program changed after the count is left alone."""
    small_slices(monkeypatch)
    store = store_of(notes(url, 5), tmp_path)
    young = stored(url, YOUNG + timedelta(days=1))

    def touch(done: int, of: int) -> None:
        if done == 2:
            run(url, "UPDATE notes SET ts = :ts WHERE id = 4", ts=young)

    report = carried_out(planned(store), store, progress=touch)
    assert (report.applied, report.skipped) == (4, 1)
    assert column(url, "SELECT id FROM notes ORDER BY id") == [4, 6]
    assert left(url) == 2


@pytest.mark.parametrize("mode", ["wal", "delete"])
def test_a_row_that_is_made_young_before_its_slice_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    """Rows are looked for before the lock is held, and once more under it if anybody wrote."""
    url = notes(f"sqlite:///{tmp_path}/notes.sqlite3", 3, mode)
    before = SqliteDatabase.transaction

    def transaction(*arguments: Any) -> Any:
        run(url, f"UPDATE notes SET ts = {literal(url, YOUNG)} WHERE id = 2")
        return before(*arguments)

    monkeypatch.setattr(SqliteDatabase, "transaction", transaction)
    report = swept(store_of(url, tmp_path))
    assert (report.applied, report.skipped) == (2, 1)
    assert column(url, "SELECT id FROM notes ORDER BY id") == [2, 4]
    assert left(url) == 2


def test_a_table_that_goes_away_halfway_is_told(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A dependent that was dropped meanwhile stops the sweep; no row went without it."""
    small_slices(monkeypatch)
    notes(url, 5)
    said = "changed its tables" if kind(url) == "sqlite" else "vectors"
    stopped(url, tmp_path, said, lambda: run(url, "ALTER TABLE vectors RENAME TO moved"))
    run(url, "ALTER TABLE moved RENAME TO vectors")
    goes_on(url, tmp_path)


@pytest.mark.parametrize("mode", ["wal", "delete"])
def test_a_table_that_is_changed_between_two_slices_stops_the_sweep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    """A column may mean something else by then: what was pinned by its type would go."""
    small_slices(monkeypatch)
    url = notes(f"sqlite:///{tmp_path}/notes.sqlite3", 6, mode)
    store = store_of(url, tmp_path)
    made = planned(store)

    def change(done: int, of: int) -> None:
        if done == 2:
            run(url, "ALTER TABLE notes RENAME COLUMN name TO kind")

    with pytest.raises(SweepStopped, match="somebody changed its tables") as caught:
        carried_out(made, store, progress=change)
    assert (caught.value.done.applied, caught.value.done.failed) == (2, 4)
    assert left(url) == 5
