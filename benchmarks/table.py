"""Tables: what a sweep asks of a database and of those who write to it, beside one bare DELETE."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest import mock

import msgspec
import psycopg

from benchmarks.harness import Figure, Way, at_most, race
from keepfor import plan, sweep
from keepfor.items import Report
from keepfor.plan import Plan
from keepfor.policy.rules import Policy, keep_for, terms
from keepfor.stores.sql import counting
from keepfor.stores.sql.look import Look
from keepfor.stores.sql.sqlite import SqliteDatabase, sqlite_at
from keepfor.stores.table import Dependent, TableStore, table_at
from keepfor.trail import Trail
from tests.postgres import serving

NOW = datetime(2026, 7, 26, tzinfo=UTC)
DAYS = 120
KEPT = 90
CUTOFF = (NOW - timedelta(days=KEPT)).strftime("%Y-%m-%d %H:%M:%S.%f")


#: As SQLAlchemy makes them: the dependent's link is declared nowhere.
SCHEMA = """
CREATE TABLE audit_log (
    id INTEGER NOT NULL,
    ts DATETIME NOT NULL,
    event_type VARCHAR(64) NOT NULL,
    payload JSON NOT NULL,
    PRIMARY KEY (id)
);
CREATE INDEX ix_audit_log_ts ON audit_log (ts);
CREATE INDEX ix_audit_log_event_type ON audit_log (event_type);
CREATE TABLE semantic_chunks (
    id INTEGER NOT NULL,
    audit_log_id INTEGER NOT NULL,
    text VARCHAR NOT NULL,
    embedding JSON NOT NULL,
    model VARCHAR(64) NOT NULL,
    created_at DATETIME NOT NULL,
    PRIMARY KEY (id),
    CONSTRAINT uq_semantic_chunks_audit_log_id UNIQUE (audit_log_id)
);
CREATE INDEX ix_semantic_chunks_audit_log_id ON semantic_chunks (audit_log_id);
"""

#: Rows from :first up to :past of :rows that are spread over the days, oldest first.
_ROWS = """
WITH RECURSIVE number (n) AS (SELECT :first UNION ALL SELECT n + 1 FROM number WHERE n + 1 < :past)
INSERT INTO audit_log (ts, event_type, payload)
SELECT
    strftime('%Y-%m-%d %H:%M:%f', :start, (n * 86400.0 * :days / :rows) || ' seconds') || '000',
    CASE n * 7 % 20 WHEN 0 THEN 'policy.denied' WHEN 1 THEN 'memory.retention_sweep'
        WHEN 2 THEN 'service.called' WHEN 3 THEN 'service.called' WHEN 4 THEN 'service.called'
        WHEN 5 THEN 'service.called' WHEN 6 THEN 'service.called' ELSE 'chat.completed' END,
    json_object('conversation_id', 'conv-' || n, 'satellite_id', 'kitchen',
        'reply', 'The hallway light is dimmed.')
FROM number
"""
#: A third of them has one that hangs on it.
_CHUNKS = """
INSERT INTO semantic_chunks (audit_log_id, text, embedding, model, created_at)
SELECT id, 'The hallway light is dimmed.',
    '[-0.81174, 0.16558, 0.81941, -0.5706, -0.82811, -0.16366, -0.51867, 0.10209]', 'demo-8d', ts
FROM audit_log WHERE id > :first AND id <= :past AND id % 3 = 0
"""


def make(path: Path, rows: int) -> Path:
    """Make a database with so many rows, of which a quarter has expired."""
    connection = sqlite3.connect(path)
    connection.executescript(SCHEMA)
    known = {"rows": rows, "days": DAYS, "start": f"{NOW - timedelta(days=DAYS):%Y-%m-%d}"}
    for first in range(0, rows, 1000):
        for statement in _ROWS, _CHUNKS:
            connection.execute(statement, known | {"first": first, "past": min(first + 1000, rows)})
    connection.commit()
    connection.close()
    return path


class Scale(msgspec.Struct, frozen=True, kw_only=True):
    """How much is done, so that a test can do less.

    Parameters:
        rows: how many the table has.
        few: how many the smaller one has, beside which memory is compared.
        rounds: how often each way is run.
        counts: how often each way of counting is run.
    """

    rows: int = 1_000_000
    few: int = 100_000
    rounds: int = 3
    counts: int = 7


# --- the straightforward way --------------------------------------------------------------

#: Children first, since nothing in the database sees to that.
DELETES = (
    "DELETE FROM semantic_chunks WHERE audit_log_id IN (SELECT id FROM audit_log WHERE ts < ?)",
    "DELETE FROM audit_log WHERE ts < ?",
)
COUNT = "SELECT count(*) FROM audit_log WHERE ts < ?"
#: What a plan says, asked by hand.
QUESTIONS = (
    "SELECT count(*) FROM audit_log",
    COUNT,
    "SELECT min(ts) FROM audit_log WHERE ts >= ?",
    (
        "SELECT count(*) FROM audit_log WHERE ts < ? AND ts NOT GLOB "
        "'[12][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9] [0-2][0-9]:[0-5][0-9]:[0-5][0-9].*'"
    ),
    (
        "SELECT count(*) FROM semantic_chunks "
        "WHERE audit_log_id IN (SELECT id FROM audit_log WHERE ts < ?)"
    ),
    (
        "SELECT count(*) FROM semantic_chunks "
        "WHERE NOT EXISTS (SELECT 1 FROM audit_log WHERE id = audit_log_id)"
    ),
)


def bare_delete(path: Path) -> float:
    """Delete what has expired in one transaction; returns how long it held the lock, in seconds."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    start = time.perf_counter()
    for statement in DELETES:
        connection.execute(statement, (CUTOFF,))
    connection.execute("COMMIT")
    held = time.perf_counter() - start
    connection.close()
    return held


def ask(path: Path, questions: Sequence[str]) -> list[Any]:
    """The answers to some questions, each a number or a time."""
    connection = sqlite3.connect(path)
    answers = [
        connection.execute(each, (CUTOFF,) * each.count("?")).fetchone()[0] for each in questions
    ]
    connection.close()
    return answers


# --- the comparison -----------------------------------------------------------------------

POLICY = Policy(rules=keep_for(timedelta(days=KEPT)))
CHUNKS = Dependent(table="semantic_chunks", columns=("audit_log_id",))

#: Inserts rows one by one, as a program does that has never heard of keepfor, until it is told to
#: stop; says how long the slowest took, in seconds, and how many there were.
_WRITER = """
import sqlite3, sys, threading, time
stop = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), stop.set()), daemon=True).start()
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
statement = "INSERT INTO audit_log (ts, event_type, payload) VALUES ('2026-07-26 00:00:00.000000', "
statement += "'chat.completed', '{}')"
slowest = count = 0
while not stop.is_set():
    start = time.perf_counter()
    connection.execute(statement)
    took = time.perf_counter() - start
    slowest = max(slowest, took)
    if count == 0:
        print("ready", flush=True)
    count += 1
    # A program does more than insert: without a breath, nobody else would ever have a turn.
    time.sleep(0.001)
print(slowest, count)
"""

#: Run with the way to import keepfor, a database and a folder: the peak of a plan and a sweep.
_PEAK = """
import resource, sys
from pathlib import Path
from benchmarks.table import carry_out, planned, store_at
store = store_at(Path(sys.argv[1]))
carry_out(planned(store), store)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def figures(folder: Path, scale: Scale) -> Iterator[Figure]:
    """Measure everything about tables, in an empty folder."""
    master = make(folder / "master.sqlite3", scale.rows)
    for mode in "wal", "delete":
        yield from _sweep(master, mode, scale.rounds)
    yield _postgres(scale)
    yield _counts(master, scale.counts)
    yield _plan(master, scale.counts)
    yield _memory(make(folder / "few.sqlite3", scale.few), master)


def store_at(path: Path) -> TableStore:
    """The table, as keepfor sees it."""
    return table_at(
        f"sqlite:///{path}",
        "audit_log",
        folder=path.parent / "state",
        time="ts",
        dependents=(CHUNKS,),
    )


def planned(store: TableStore) -> Plan:
    """What there is to do."""
    return plan.build(store, POLICY, NOW, name="audit")


def carry_out(made: Plan, store: TableStore) -> Report:
    """Do it."""
    trail = Trail(Path(store.folder) / "trail.jsonl", keep_for="forever")
    return sweep.apply(made, store, POLICY, NOW, trail=trail)


def _sweep(master: Path, mode: str, rounds: int) -> Iterator[Figure]:
    """How long a sweep holds the lock, how long others wait for it, how long it takes."""
    alone: tuple[list[float], list[float]] = ([], [])
    stalls: tuple[list[float], list[float]] = ([], [])
    walls: tuple[list[float], list[float]] = ([], [])
    path = master.with_name("work.sqlite3")
    for _ in range(rounds):
        for which, way in enumerate((_bare, _ours)):
            _anew(master, path, mode)
            alone[which].append(way(path)())
            _anew(master, path, mode)
            ready = way(path)
            with _writer(path) as stall:
                start = time.perf_counter()
                ready()
                walls[which].append(time.perf_counter() - start)
            stalls[which].append(stall[0])
    name = {"wal": "WAL", "delete": "rollback journal"}[mode]
    yield at_most(f"write lock held, {name}", alone, target=1.3, unit="ms")
    yield at_most(f"longest stall of a writer, {name}", stalls, target=0.1, unit="ms")
    yield at_most(f"whole sweep beside a writer, {name}", walls, target=4, unit="ms")


def _bare(path: Path) -> Callable[[], float]:
    return lambda: bare_delete(path)


def _ours(path: Path) -> Callable[[], float]:
    """A sweep that is planned, and tells when it is done for how long it held the lock."""
    store = store_at(path)
    made = planned(store)

    def sweep_it() -> float:
        held = 0.0
        real = SqliteDatabase.transaction

        @contextmanager
        def timed(self: SqliteDatabase, connection: Any, patience: float) -> Iterator[None]:
            nonlocal held
            with real(self, connection, patience):
                start = time.perf_counter()
                yield
            held += time.perf_counter() - start

        with mock.patch.object(SqliteDatabase, "transaction", timed):
            report = carry_out(made, store)
        assert report.applied > report.dependents["semantic_chunks"] > 0
        return held

    return sweep_it


@contextmanager
def _writer(path: Path) -> Iterator[list[float]]:
    """A program that inserts meanwhile; at the end, how long its slowest insert took."""
    stall: list[float] = []
    with subprocess.Popen(
        [sys.executable, "-c", _WRITER, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout
        assert child.stdin
        child.stdout.readline()
        try:
            yield stall
        finally:
            child.stdin.close()
        stall.append(float(child.stdout.readline().split()[0]))


def _anew(master: Path, path: Path, mode: str) -> None:
    for end in "", "-wal", "-shm", "-journal":
        Path(f"{path}{end}").unlink(missing_ok=True)
    shutil.copyfile(master, path)
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA journal_mode = {mode}")
    connection.close()
    os.sync()


def _counts(master: Path, rounds: int) -> Figure:
    """How many rows a policy takes by each rule, beside the one question that it stands for."""
    database = sqlite_at(master)
    with database.reading() as connection:
        look = Look(connection, database, store_at(master).spec, None, UTC)
        reached = look.reaches(look.aim(terms(POLICY, NOW)))

        def ours() -> list[int]:
            counting.count(connection, look.layout)
            return [part.count for part in counting.parts_of(connection, reached)]

        assert ours() == ask(master, [COUNT])
        taken = race(Way(run=lambda: ask(master, [COUNT])), Way(run=ours), rounds=rounds)
    return at_most("rows counted by rule", taken, target=2, unit="ms")


def _plan(master: Path, rounds: int) -> Figure:
    store = store_at(master)

    def ours() -> list[int]:
        seen = plan.build(store, POLICY, NOW, name="audit").survey
        return [seen.scanned, seen.applied, seen.dependents["semantic_chunks"]]

    asked = ask(master, QUESTIONS)
    assert ours() == [asked[0], asked[1], asked[4]]
    taken = race(Way(run=lambda: ask(master, QUESTIONS)), Way(run=ours), rounds=rounds)
    return at_most("whole plan, beside the same questions by hand", taken, target=2, unit="ms")


def _memory(few: Path, many: Path) -> Figure:
    peaks = []
    for master in few, many:
        path = master.with_name("peak.sqlite3")
        _anew(master, path, "wal")
        done = subprocess.run(
            [sys.executable, "-c", _PEAK, str(path)],
            check=True,
            capture_output=True,
            text=True,
            cwd=Path(__file__).parents[1],
        )
        peaks.append([int(done.stdout) / 1024])
    figure = at_most("peak memory, ten times the rows", (peaks[0], peaks[1]), target=1.2)
    return msgspec.structs.replace(figure, unit="MiB")


#: The same table in PostgreSQL.
_IN_POSTGRES = """
CREATE TABLE audit_log (
    id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, ts timestamptz NOT NULL,
    event_type varchar(64) NOT NULL, payload jsonb NOT NULL
);
CREATE TABLE semantic_chunks (
    id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, audit_log_id bigint NOT NULL UNIQUE,
    text varchar NOT NULL, embedding jsonb NOT NULL
);
INSERT INTO audit_log (ts, event_type, payload)
SELECT timestamptz '{start}' + n * interval '{days} days' / {rows}, 'chat.completed',
    jsonb_build_object('conversation_id', 'conv-' || n, 'reply', 'The hallway light is dimmed.')
FROM generate_series(0, {rows} - 1) AS n;
INSERT INTO semantic_chunks (audit_log_id, text, embedding)
SELECT id, 'The hallway light is dimmed.', '[-0.81174, 0.16558, 0.81941, -0.5706]'
FROM audit_log WHERE id % 3 = 0;
CREATE INDEX ON audit_log (ts);
"""


def _postgres(scale: Scale) -> Figure:
    """How long a sweep takes in PostgreSQL, alone."""
    start = NOW - timedelta(days=DAYS)
    fill = _IN_POSTGRES.format(start=start, days=DAYS, rows=scale.rows)
    with serving() as folder:
        url = f"postgresql+psycopg://postgres@/work?host={folder}"
        admin = psycopg.connect(f"host={folder} user=postgres dbname=postgres", autocommit=True)
        with admin:
            admin.execute("CREATE DATABASE master")
            with psycopg.connect(f"host={folder} user=postgres dbname=master") as filled:
                filled.execute(fill.encode())
            with psycopg.connect(
                f"host={folder} user=postgres dbname=master", autocommit=True
            ) as filled:
                filled.execute("VACUUM ANALYZE")

            def anew() -> None:
                admin.execute("DROP DATABASE IF EXISTS work")
                admin.execute("CREATE DATABASE work TEMPLATE master")
                admin.execute("CHECKPOINT")

            def bare() -> None:
                with psycopg.connect(f"host={folder} user=postgres dbname=work") as connection:
                    for statement in DELETES:
                        connection.execute(statement.replace("?", "%s").encode(), (CUTOFF + "Z",))

            state = Path(folder) / "state"
            store = table_at(url, "audit_log", folder=state, time="ts", dependents=(CHUNKS,))
            made: Plan

            def plan_anew() -> None:
                nonlocal made
                anew()
                made = planned(store)

            def ours() -> None:
                assert carry_out(made, store).applied

            taken = race(
                Way(run=bare, before=anew), Way(run=ours, before=plan_anew), rounds=scale.rounds
            )
    return at_most("whole sweep, PostgreSQL", taken, target=1.5, unit="ms")
