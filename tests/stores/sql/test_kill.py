"""kill -9 before every change that a sweep of a table makes, and before every commit."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event
from sqlalchemy.engine import Engine

from keepfor.items import Report
from keepfor.stores.sql import pace
from keepfor.stores.table import Dependent, Record, TableStore
from keepfor.sweep import prune
from keepfor.testing.suite import NOW, adds_up, keep
from keepfor.trail import Trail
from tests.stores.sql.build import OLD, YOUNG, column, kind, lay, run, stored, table

#: Where it dies; the last two are what is said first when the last commit is done.
STEPS = ("BEGIN", "INSERT", "DELETE", "WITH", "COMMIT", "PRAGMA page_count", "SELECT pg_data")
PIECES = Dependent(table="pieces", columns=("vector",))
VECTORS = Dependent(table="vectors", columns=("note",), dependents=(PIECES,))


@pytest.fixture(autouse=True)
def small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "_FIRST", 2)
    monkeypatch.setattr(pace, "_MOST", 2)


def make(url: str, mode: str = "") -> str:
    """Four old notes and a young one, each with a vector and a piece; and a vector of none."""
    if mode:
        Path(url.removeprefix("sqlite:///")).parent.mkdir()
        run(url, f"PRAGMA journal_mode = {mode}")
    lay(
        url,
        "CREATE TABLE notes (id <id>, ts <ts>, kind VARCHAR, payload <json>)",
        "CREATE TABLE vectors (id <id>, note BIGINT)",
        "CREATE TABLE pieces (id <id>, vector BIGINT)",
    )
    fill(url)
    return url


def fill(url: str) -> None:
    young, *old = (stored(url, instant) for instant in (YOUNG, *[OLD] * 4))
    run(url, "INSERT INTO notes (id, ts) VALUES (99, :ts)", ts=young)
    for key, instant in enumerate(old, start=1):
        run(url, "INSERT INTO notes (id, ts) VALUES (:id, :ts)", id=key, ts=instant)
    run(
        url,
        "INSERT INTO vectors (id, note) SELECT id, id FROM notes",
        "INSERT INTO pieces (id, vector) SELECT id, id FROM notes",
        "INSERT INTO vectors (id, note) VALUES (50, 50)",
    )


def store_of(url: str, folder: Path) -> TableStore:
    record = Record(type="sweep", payload="payload")
    said = {"type": "kind", "dependents": (VECTORS,), "record": record, "orphans": "delete"}
    return table(url, "notes", folder, **said)


def swept(url: str, folder: Path) -> Report:
    (folder / "state").mkdir(exist_ok=True)
    trail = Trail(folder / "state" / "trail.jsonl", keep_for="forever")
    return prune(store_of(url, folder), keep(), NOW, name="notes", trail=trail)


class Killer:
    """Dies at a step, counted from one where the first transaction begins."""

    def __init__(self, step: int) -> None:
        self.left = step
        self.begun = False

    def step(self, statement: str) -> None:
        # What SQLite has of ours in its memory lies in no file.
        if (
            statement.lstrip().startswith(STEPS)
            and "keepfor_" not in statement.partition("WHERE")[0]
        ):
            self.left -= 1
            if self.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    def lie_in_wait(self) -> None:
        connect = sqlite3.connect

        def watched(*args: Any, **how: Any) -> sqlite3.Connection:
            connection: sqlite3.Connection = connect(*args, **how)
            connection.set_trace_callback(self.begin_with_the_first)
            return connection

        sqlite3.connect = watched  # type: ignore[assignment]
        event.listen(Engine, "before_cursor_execute", self.of_a_server)
        event.listen(Engine, "commit", self.of_a_commit)

    def begin_with_the_first(self, statement: str) -> None:
        self.begun = self.begun or statement == "BEGIN IMMEDIATE"
        if self.begun:
            self.step(statement)

    def of_a_server(self, connection: Any, _cursor: object, statement: str, *_: object) -> None:
        if connection.dialect.name == "postgresql":
            self.step(statement)

    def of_a_commit(self, connection: Any) -> None:
        if connection.dialect.name == "postgresql":
            self.step("COMMIT")


def killed(step: int, act: Callable[[], object]) -> bool:
    """Do something in a child that dies at a step; False if it came to its end before."""
    child = os.fork()
    if child == 0:
        code, killer = 1, Killer(step)
        try:
            killer.lie_in_wait()
            act()
            # What coverage writes on its way out are no steps of a sweep.
            killer.left = -1
            code = 0
        except BaseException:
            traceback.print_exc()
            raise
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert status in (0, signal.SIGKILL)
    return status == signal.SIGKILL


def is_whole(url: str) -> tuple[set[int], list[int]]:
    """No row is without what hung on it, nor that without its row.

    Returns:
        The notes that are there, and how many were deleted by each record.
    """
    if kind(url) == "sqlite":
        path = Path(url.removeprefix("sqlite:///"))
        copied = path.parent.parent / "copied"
        shutil.rmtree(copied, ignore_errors=True)
        # Who looks at the database itself would put in order what was left.
        shutil.copytree(path.parent, copied)
        url = f"sqlite:///{copied}/{path.name}"
        assert run(url, "PRAGMA integrity_check") == [("ok",)]
    rows = run(url, "SELECT id, kind, payload FROM notes")
    notes = {key for key, type_, _ in rows if type_ is None}
    vectors = set(column(url, "SELECT note FROM vectors"))
    pieces = set(column(url, "SELECT vector FROM pieces"))
    assert notes == vectors - {50} == pieces
    told = [payload for _, type_, payload in rows if type_]
    told = [json.loads(each) if isinstance(each, str) else each for each in told]
    # A record is there with the last slice, or not at all.
    assert bool(told) == (50 not in vectors)
    return notes, [each["deleted"] for each in told]


def kill_everywhere(url: str, folder: Path, least: int, first: int) -> None:
    """Kill a sweep at every third step in turn, and let the next one finish."""
    step, halfway = first, 0
    while killed(step, lambda: swept(url, folder)):
        left, records = is_whole(url)
        # The oldest went first; how many at a time depends on how busy the machine is.
        assert left == set([1, 2, 3, 4, 99][-len(left) :])
        assert records in ([], [4])
        halfway += left not in ({1, 2, 3, 4, 99}, {99})
        report = swept(url, folder)
        assert adds_up(report)
        assert report.applied == len(left) - 1
        assert column(url, "SELECT id FROM notes WHERE kind IS NULL") == [99]
        assert column(url, "SELECT id FROM vectors") == column(url, "SELECT id FROM pieces") == [99]
        run(url, "DELETE FROM notes", "DELETE FROM vectors", "DELETE FROM pieces")
        fill(url)
        step += 3
    assert step > least
    assert halfway > 0
    assert is_whole(url) == ({99}, [4])


@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_a_sqlite_table_is_whole_wherever_a_sweep_is_killed(mode: str, quick_path: Path) -> None:
    """Before each change and each commit; the next sweep finishes, and the record is there once."""
    url = make(f"sqlite:///{quick_path}/db/notes.sqlite3", mode)
    # Two slices of rows, one of orphans: each begins, deletes twice or more, and commits.
    kill_everywhere(url, quick_path, 15, {"delete": 1, "wal": 2}[mode])


def test_a_postgresql_table_is_whole_wherever_a_sweep_is_killed(
    postgres_url: str, quick_path: Path
) -> None:
    """The server undoes what was not committed, and gives the lock to the next sweep."""
    kill_everywhere(make(postgres_url), quick_path, 12, 3)


def test_a_sweep_that_is_killed_again_and_again_gets_there(quick_path: Path) -> None:
    """Sweeps that each get one step further lose nothing that they were not told to lose."""
    url = make(f"sqlite:///{quick_path}/db/notes.sqlite3", "delete")
    step = 1
    while killed(step, lambda: swept(url, quick_path)):
        notes, _ = is_whole(url)
        assert 99 in notes
        step += 3
    assert column(url, "SELECT id FROM notes WHERE kind IS NULL") == [99]
    trail = Trail(quick_path / "state" / "trail.jsonl", keep_for="forever")
    assert len(list(trail.records("outcome"))) == 1
    assert len(list(trail.records("intent"))) == (step + 2) // 3
