"""Looking: what `status` of four large stores costs beside what it cannot do without."""

from __future__ import annotations

import contextlib
import io
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from benchmarks import entities, rows, runs, table
from benchmarks.harness import Figure, Way, above, at_most, race
from keepfor.cli.running import run as keepfor

CONFIGURATION = """\
state_dir: state
stores:
  recall: {kind: ledger, path: recall.jsonl, keep_for: 90d}
  rem: {kind: runs, path: runs, max_count: 20000}
  audit: {kind: table, url: 'sqlite:///audit.sqlite3', table: audit_log, time: ts, keep_for: 90d,
    dependents: [{table: semantic_chunks, column: audit_log_id}]}
  notes: {kind: entities, path: notes, rules: [
    {name: unused, entity_type: guideline, max_unused: 180d, action: delete},
    {name: stale, entity_type: guideline, max_age: 90d},
    {name: old, entity_type: trajectory, max_age: 365d, action: delete, cascade_derived: true}]}
"""
#: How much of each end of a ledger has to be read, in bytes.
_END = 65_536


class Scale(msgspec.Struct, frozen=True, kw_only=True):
    """How much is done, so that a test can do less.

    Parameters:
        ledger: the ledger's size, in bytes.
        runs: how many runs there are.
        rows: how many rows the table has.
        notes: what the store of notes holds.
        rounds: how often each way is run.
    """

    ledger: int = 250_000_000
    runs: int = 10_000
    rows: int = 1_000_000
    notes: entities.Scale = entities.Scale()
    rounds: int = 5


def bare(folder: Path) -> None:
    """What nobody can do without: walks, the ends of a ledger, the ends of an index."""
    entities.walk(folder / "notes", read=False)
    entities.walk(folder / "runs", read=False)
    with (folder / "recall.jsonl").open("rb") as file:
        file.read(_END)
        file.seek(max(0, os.fstat(file.fileno()).st_size - _END))
        file.read(_END)
    connection = sqlite3.connect(folder / "audit.sqlite3")
    for end in "min", "max":
        connection.execute(f"SELECT {end}(ts) FROM audit_log").fetchone()
    connection.close()


def figures(folder: Path, scale: Scale) -> Iterator[Figure]:
    """Measure what looking costs, in an empty folder."""
    folder.mkdir()
    _build(folder, scale)
    # By the real clock: what changed after the present is no cache's to know.
    with contextlib.chdir(folder):
        ours = _answering(lambda: keepfor(["status", "--json"]))
        # The first look fills the cache of what notes say.
        ours()
        taken = race(Way(run=lambda: bare(folder)), Way(run=ours), rounds=scale.rounds)
        yield at_most("status of four stores : bare looks", taken, target=1.5, unit="ms")
        yield _within("status of four stores", taken[1], 1000)
        yield _dashboard(scale, taken[1])
    yield _help(scale)


def _build(folder: Path, scale: Scale) -> None:
    (folder / "keepfor.yaml").write_text(CONFIGURATION, encoding="utf-8")
    rows.write(folder / "recall.jsonl", scale.ledger)
    runs.live(folder / "runs", scale.runs)
    table.make(folder / "audit.sqlite3", scale.rows)
    entities.build(folder / "notes", scale.notes)


def _answering(ask: Callable[[], int]) -> Callable[[], None]:
    """A verb that is run in this process, of which nobody reads what it prints."""

    def run() -> None:
        with contextlib.redirect_stdout(io.StringIO()):
            assert ask() == 0

    return run


def _within(what: str, taken: list[float], most: float) -> Figure:
    """The figure for something that is to take so many milliseconds at the most."""
    return above(what, [0.0], [each * 1000 for each in taken], target=most, unit="ms")


def _dashboard(scale: Scale, status: list[float]) -> Figure:
    from starlette.testclient import TestClient

    from keepfor.times import utc_now
    from keepfor.web.app import build
    from keepfor.web.desk import Desk

    app = build(Desk(None, os.environ, utc_now, None), "127.0.0.1", None)
    with TestClient(app, base_url="http://127.0.0.1") as client:

        def page() -> None:
            assert client.get("/").status_code == 200

        page()
        taken = [_timed(page) for _ in range(scale.rounds)]
    plain = [each * 1000 for each in status]
    return above("first page : status", plain, taken, target=100, unit="ms")


def _help(scale: Scale) -> Figure:
    """What `--help` takes beyond what an interpreter does that does nothing."""
    idle, asked = [sys.executable, "-c", ""], [sys.executable, "-m", "keepfor", "--help"]
    taken: tuple[list[float], list[float]] = ([], [])
    for _ in range(scale.rounds * 2):
        for command, times in zip((idle, asked), taken, strict=True):
            times.append(_timed(lambda: subprocess.run(command, check=True, capture_output=True)))  # noqa: B023
    return above("keepfor --help : an idle interpreter", *taken, target=150, unit="ms")


def _timed(do: Callable[[], object]) -> float:
    """How long it takes, in milliseconds."""
    start = time.perf_counter()
    do()
    return (time.perf_counter() - start) * 1000
