"""What people use instead of keepfor, on the same data: what goes, is lost, is left behind.

`python -m benchmarks.comparison` prints the tables of docs/explanation/comparison.md.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import platform
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path

import msgspec

from benchmarks import ledger, rows, table
from keepfor import Dependent, Ledger, Sweeper, Table

YEAR = timedelta(days=365)
#: What a way that cannot be tried prints.
NOT_HERE = "not measured: it is not installed here"

#: Appends so many rows, by opening and closing the ledger for each, as a hook does. Every tenth has
#: expired already, so that each pass has something to do; the others are numbered.
_WRITER = """
import json, sys
path, count, fresh, expired = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
for number in range(count):
    for row in [{"ts": fresh, "n": number}] + [{"ts": expired}] * (number % 10 == 0):
        with open(path, "a") as file:
            file.write(json.dumps(row) + "\\n")
"""


class Scale(msgspec.Struct, frozen=True, kw_only=True):
    """How much is done, so that a test can do less.

    Parameters:
        size: the ledger, in bytes.
        appends: how many rows that must stay are appended while it is worked on.
        rows: how many the table has.
    """

    size: int = 25_000_000
    appends: int = 20_000
    rows: int = 200_000


class OfLedger(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one way to expire the rows of a ledger.

    Parameters:
        way: what it is called.
        seconds: how long one pass took, with nobody else there; None where it is not installed.
        expired_left: how many expired rows are on disk after that pass.
        young_gone: how many young ones are no longer in the ledger after it.
        appended: how many rows that must stay were appended while passes followed each other.
        lost: how many of them are nowhere.
        ahead: how many rows a pass leaves in the ledger if the clock is a year ahead; None where
            that was not tried.
    """

    way: str
    seconds: float | None = None
    expired_left: int = 0
    young_gone: int = 0
    appended: int = 0
    lost: int = 0
    ahead: int | None = None


class OfTable(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one way to expire the rows of a table.

    Parameters:
        way: what it is called.
        seconds: how long it took.
        stall: how long the slowest insert of another program took meanwhile, in seconds.
        expired_left: how many expired rows are left.
        orphans: how many rows of the dependent hang on rows that are gone.
        ahead: how many rows it leaves if the clock is a year ahead.
    """

    way: str
    seconds: float
    stall: float
    expired_left: int
    orphans: int
    ahead: int


# --- the ways to expire a ledger ----------------------------------------------------------

#: Works on a ledger once, as of an instant.
Way = Callable[[Path, datetime], None]


def find(path: Path, now: datetime) -> None:
    """`find … -delete`, of a file that was not modified for 90 days."""
    before = f"{now - ledger.KEEP:%Y-%m-%d %H:%M:%S} UTC"
    # This is -mtime +90 of a given instant, so that another clock can be tried.
    subprocess.run(["find", path, "!", "-newermt", before, "-delete"], check=True)


def logrotate(path: Path, now: datetime) -> None:
    """`logrotate`, made to rotate, and to keep every piece, so that what is lost is lost by it."""
    del now  # It goes by its own state.
    settings = path.with_suffix(".conf")
    settings.write_text(f"{path} {{\n  rotate 100000\n  copytruncate\n  missingok\n}}\n")
    settings.chmod(0o644)
    state = path.with_suffix(".state")
    program = shutil.which("logrotate") or "/usr/sbin/logrotate"
    subprocess.run([program, "--force", "--state", state, settings], check=True)


def script(path: Path, now: datetime) -> None:
    """Read, filter, write beside, rename; so do most harnesses prune their own ledger."""
    ledger.prune(path, now)


def keepfor_prune(path: Path, now: datetime) -> None:
    """keepfor's prune."""
    Ledger(path, keep_for=ledger.KEEP, max_bytes=ledger.CEILING).prune(now)


WAYS: dict[str, Way] = {
    "find -mtime +90 -delete": find,
    "logrotate, copytruncate": logrotate,
    "a script, or a harness's own prune": script,
    "keepfor": keepfor_prune,
}


def installed(way: Way) -> bool:
    """Whether the program that a way runs is there."""
    return way is not logrotate or bool(
        shutil.which("logrotate") or Path("/usr/sbin/logrotate").exists()
    )


# --- the comparison -----------------------------------------------------------------------


def ledgers(folder: Path, scale: Scale) -> Iterator[OfLedger]:
    """Try each way on the same ledger: alone, beside a writer, and with a wrong clock."""
    folder.mkdir(parents=True, exist_ok=True)
    master = folder / "master.jsonl"
    rows.write(master, scale.size)
    # Its rows end at an instant of their own, and so does what is done to it.
    os.utime(master, (rows.NOW.timestamp(),) * 2)
    for number, (name, way) in enumerate(WAYS.items()):
        if not installed(way):
            yield OfLedger(way=name)
            continue
        room = folder / str(number)
        path = _copy(master, room / "alone")
        start = time.perf_counter()
        way(path, rows.NOW)
        seconds = time.perf_counter() - start
        young = [at for at in _times(master) if at >= rows.NOW - ledger.KEEP]
        held = sum(at >= rows.NOW - ledger.KEEP for at in _times(path))
        expired = sum(at < rows.NOW - ledger.KEEP for at in _times(*path.parent.glob("*.jsonl*")))
        yield OfLedger(
            way=name,
            seconds=seconds,
            expired_left=expired,
            young_gone=len(young) - held,
            appended=scale.appends,
            lost=_lost(room / "busy", way, scale.appends),
            ahead=None if way is logrotate else _ahead(master, room / "ahead", way),
        )


def _copy(master: Path, folder: Path) -> Path:
    folder.mkdir(parents=True)
    os.sync()
    return Path(shutil.copy2(master, folder / "recall.jsonl"))


def _times(*paths: Path) -> list[datetime]:
    texts = [path.read_text(encoding="utf-8") for path in paths if path.exists()]
    return [at for text in texts for line in text.splitlines() if (at := ledger.instant(line))]


def _lost(folder: Path, way: Way, appends: int) -> int:
    """How many rows are nowhere that were appended while passes followed each other."""
    folder.mkdir(parents=True)
    path = folder / "recall.jsonl"
    fresh, expired = rows.NOW.isoformat(), (rows.NOW - YEAR).isoformat()
    path.write_text(json.dumps({"ts": fresh}) + "\n", encoding="utf-8")
    with subprocess.Popen(
        [sys.executable, "-c", _WRITER, str(path), str(appends), fresh, expired]
    ) as writer:
        while writer.poll() is None:
            way(path, rows.NOW)
    assert writer.returncode == 0
    way(path, rows.NOW)
    found = set()
    for piece in folder.glob("*.jsonl*"):
        for line in piece.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                found.add(json.loads(line).get("n"))
            except ValueError:
                continue  # a row that was cut in two
    return appends - len(found - {None})


def _ahead(master: Path, folder: Path, way: Way) -> int:
    """How many rows are left by a pass that believes it is a year later."""
    path = _copy(master, folder)
    if way is keepfor_prune:
        _sweep(folder, {"kind": "ledger", "path": str(path), "keep_for": "90d"})
    else:
        way(path, rows.NOW + YEAR)
    return len(_times(path))


def _sweep(folder: Path, store: dict[str, object]) -> None:
    """What keepfor does in the background, with a clock that is a year ahead."""
    file = folder / "keepfor.yaml"
    # JSON is YAML too.
    file.write_text(json.dumps({"state_dir": str(folder / "state"), "stores": {"it": store}}))
    asyncio.run(Sweeper(file, clock=lambda: rows.NOW + YEAR).sweep_now())


def tables(folder: Path, scale: Scale) -> Iterator[OfTable]:
    """Try a bare DELETE and keepfor on the same table: beside a writer, and with a wrong clock."""
    folder.mkdir(parents=True, exist_ok=True)
    master = table.make(folder / "master.sqlite3", scale.rows)
    path = folder / "work.sqlite3"
    for name, ours in (("DELETE … WHERE ts < …", False), ("keepfor", True)):
        table._anew(master, path, "wal")
        with table._writer(path) as stall:
            start = time.perf_counter()
            if ours:
                _table(path).prune(table.NOW)
            else:
                _delete(path, table.NOW)
            seconds = time.perf_counter() - start
        expired, orphans = table.ask(path, (table.COUNT, table.QUESTIONS[-1]))
        table._anew(master, path, "wal")
        if ours:
            _sweep(folder, _SETTINGS | {"url": f"sqlite:///{path}"})
        else:
            _delete(path, table.NOW + YEAR)
        (left,) = table.ask(path, table.QUESTIONS[:1])
        yield OfTable(
            way=name,
            seconds=seconds,
            stall=stall[0],
            expired_left=expired,
            orphans=orphans,
            ahead=left,
        )


_SETTINGS: dict[str, object] = {
    "kind": "table",
    "table": "audit_log",
    "time": "ts",
    "keep_for": "90d",
    "dependents": [{"table": "semantic_chunks", "column": "audit_log_id"}],
}


def _table(path: Path) -> Table:
    hanging = Dependent(table="semantic_chunks", columns=("audit_log_id",))
    return Table(f"sqlite:///{path}", "audit_log", time="ts", keep_for="90d", dependents=[hanging])


def _delete(path: Path, now: datetime) -> None:
    """As it stands in many a crontab."""
    cutoff = f"{now - ledger.KEEP:%Y-%m-%d %H:%M:%S.%f}"
    with closing(sqlite3.connect(path, timeout=60)) as database, database:
        database.execute("DELETE FROM audit_log WHERE ts < ?", (cutoff,))


# --- the command --------------------------------------------------------------------------


def of_ledgers(found: list[OfLedger]) -> Iterator[str]:
    """What came of it, as a table of Markdown."""
    yield "| | one pass | expired rows left | young rows gone | appended, lost | clock ahead |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for each in found:
        if each.seconds is None:
            yield f"| {each.way} | {NOT_HERE} | | | | |"
            continue
        ahead = "not tried" if each.ahead is None else f"{each.ahead:,} stay"
        yield (
            f"| {each.way} | {each.seconds * 1000:,.0f} ms | {each.expired_left:,} "
            f"| {each.young_gone:,} | {each.lost:,} of {each.appended:,} | {ahead} |"
        )


def of_tables(found: list[OfTable]) -> Iterator[str]:
    """The same of a table."""
    yield "| | took | longest wait of a writer | expired rows left | orphans | clock ahead |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for each in found:
        yield (
            f"| {each.way} | {each.seconds * 1000:,.0f} ms | {each.stall * 1000:,.0f} ms "
            f"| {each.expired_left:,} | {each.orphans:,} | {each.ahead:,} stay |"
        )


def main(scale: Scale | None = None) -> None:
    """Measure, and print both tables with what they were measured on."""
    scale = scale or Scale()
    # That the breaker holds a sweep back is what is wanted here.
    logging.getLogger("keepfor.sweeper").setLevel(logging.ERROR)
    print(f"{platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}\n")
    with tempfile.TemporaryDirectory(prefix="keepfor-bench-") as folder:
        print(*of_ledgers(list(ledgers(Path(folder) / "ledgers", scale))), sep="\n", end="\n\n")
        print(*of_tables(list(tables(Path(folder) / "tables", scale))), sep="\n")


if __name__ == "__main__":
    main()
