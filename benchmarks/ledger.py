"""The ledger: prune, append, probe, trace, and what a process that appends one row pays."""

from __future__ import annotations

import filecmp
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from benchmarks import rows
from benchmarks.harness import Figure, Way, above, race, times_faster
from keepfor import Ledger, RecallLedger

#: Bytes; no ledger here comes near it, so that no append prunes.
CEILING = 1 << 30
KEEP = timedelta(days=rows.KEPT)


class Scale(msgspec.Struct, frozen=True, kw_only=True):
    """How much is done, so that a test can do less.

    Parameters:
        small: the smaller ledger, in bytes.
        large: the larger one.
        appends: how many rows one run appends.
        rounds: how often each way is run on the smaller ledger, and to append.
        large_rounds: how often on the larger one.
        starts: how often a process is started.
    """

    small: int = 25_000_000
    large: int = 250_000_000
    appends: int = 1000
    rounds: int = 15
    large_rounds: int = 3
    starts: int = 40


# --- the straightforward way --------------------------------------------------------------


def append(path: Path, row: dict[str, Any]) -> None:
    """Append a row, and prune if the oldest one has expired."""
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")
    now = datetime.now(UTC)
    if probe(path, now):
        prune(path, now)


def probe(path: Path, now: datetime) -> bool:
    """Whether the file is above its ceiling, or its first row has expired."""
    if os.stat(path).st_size > CEILING:
        return True
    with open(path, encoding="utf-8") as file:
        first = instant(file.readline())
    return first is None or first < now - KEEP


def prune(path: Path, now: datetime) -> None:
    """Read the whole text, keep the rows that have not expired, and replace the file."""
    cutoff = now - KEEP
    with open(path, encoding="utf-8") as file:
        text = file.read()
    kept = []
    for line in text.splitlines(keepends=True):
        at = instant(line)
        if at is not None and at >= cutoff:
            kept.append(line)
    draft = path.with_suffix(".tmp")
    with open(draft, "w", encoding="utf-8") as file:
        file.write("".join(kept))
        file.flush()
        os.fsync(file.fileno())
    os.replace(draft, path)


def instant(line: str) -> datetime | None:
    """The time of a row; None where it has none that can be used."""
    try:
        at = datetime.fromisoformat(json.loads(line)["ts"])
    except (ValueError, KeyError, TypeError):
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def trace(path: Path, slug: str, n: int = 3) -> list[dict[str, Any]]:
    """Read all rows, and return the newest hits of a note."""
    found: list[dict[str, Any]] = []
    with open(path, encoding="utf-8") as file:
        for line in file:
            row = json.loads(line)
            hits = (hit for hit in row.get("hits", ()) if hit["slug"] == slug)
            found += ({"at": row["ts"], **hit} for hit in hits)
    return found[: -n - 1 : -1]


# --- the comparison -----------------------------------------------------------------------


def figures(folder: Path, scale: Scale) -> Iterator[Figure]:
    """Measure everything about ledgers, in an empty folder."""
    small, large = folder / "small.jsonl", folder / "large.jsonl"
    rows.write(small, scale.small)
    rows.write(large, scale.large)
    yield _prune("prune", small, scale.rounds)
    yield _prune("prune", large, scale.large_rounds)
    yield _memory(large)
    yield from _append(folder, scale)
    yield _start(folder, scale.starts)
    yield _trace(large, scale.large_rounds)


def _prune(what: str, master: Path, rounds: int) -> Figure:
    plain, ours = (master.with_name(f"{name}-{master.name}") for name in ("plain", "ours"))
    taken = race(
        Way(run=lambda: prune(plain, rows.NOW), before=partial(_anew, master, plain)),
        Way(
            run=lambda: Ledger(ours, keep_for=KEEP, max_bytes=CEILING).prune(rows.NOW),
            before=partial(_anew, master, ours),
        ),
        rounds=rounds,
    )
    same = filecmp.cmp(plain, ours, shallow=False)
    assert same, "the two ways keep the same rows, byte for byte"
    assert ours.stat().st_size < master.stat().st_size
    plain.unlink()
    ours.unlink()
    return times_faster(f"{what} {_size(master)}", taken, target=8, unit="ms")


def _anew(master: Path, path: Path) -> None:
    """Put the master in a ledger's place, by a second name, since a prune replaces the file.

    A copy would have the disk still busy with it while the prune is timed.
    """
    path.unlink(missing_ok=True)
    os.link(master, path)
    os.sync()


_PEAK = """
import sys
{work}
try:
    with open("/proc/self/status") as status:
        print(next(line for line in status if line.startswith("VmHWM")).split()[1])
except FileNotFoundError:
    import resource
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""
_PRUNE = """
from keepfor import Ledger
Ledger(sys.argv[1], keep_for="90d", max_bytes="1GiB").prune(now="2026-07-26")
"""


def _memory(master: Path) -> Figure:
    path = master.with_name(f"peak-{master.name}")
    peaks = []
    for work in ("", _PRUNE):
        _anew(master, path)
        code = _PEAK.format(work=work)
        done = subprocess.run(
            [sys.executable, "-c", code, str(path)], check=True, capture_output=True, text=True
        )
        peaks.append([int(done.stdout) / 1024])
    path.unlink()
    return above(f"peak memory of a prune {_size(master)}", *peaks, target=64, unit="MiB")


def _append(folder: Path, scale: Scale) -> Iterator[Figure]:
    plain, ours = folder / "plain.jsonl", folder / "ours.jsonl"
    now = datetime.now(UTC)
    row = rows.recent(now)
    ledger = Ledger(ours, keep_for=KEEP, max_bytes=CEILING)
    for path in plain, ours:
        path.write_text((json.dumps(row) + "\n") * 1000, encoding="utf-8")
    ledger.append(row)
    append(plain, row)

    def each(work: Any, *given: Any) -> Way:
        def run() -> None:
            for _ in range(scale.appends):
                work(*given)

        return Way(run=run)

    taken = race(each(append, plain, row), each(ledger.append, row), rounds=scale.rounds)
    assert filecmp.cmp(plain, ours, shallow=False), "the two ways write the same bytes"
    yield times_faster(
        "append with its probe, warm", taken, target=2, unit="µs", each=scale.appends
    )

    def probe_alone() -> None:
        # An append has the file open already; to be fair, it is opened for the probe here.
        descriptor = os.open(ours, os.O_RDONLY)
        assert not ledger._due(descriptor, os.fstat(descriptor).st_size)
        os.close(descriptor)

    taken = race(each(probe, plain, now), each(probe_alone), rounds=scale.rounds)
    yield times_faster("the probe alone", taken, target=3, unit="µs", each=scale.appends)


_ONE_ROW = """
from keepfor import Ledger
Ledger("one.jsonl", keep_for="90d").append({row!r})
"""


def _start(folder: Path, starts: int) -> Figure:
    environment = {
        name: value
        for name, value in os.environ.items()
        if name != "PYTHONDONTWRITEBYTECODE" and not name.startswith("COV")
    }

    def process(code: str) -> Way:
        command = [sys.executable, "-c", code]
        return Way(run=lambda: subprocess.run(command, cwd=folder, env=environment, check=True))

    one_row = process(_ONE_ROW.format(row=rows.recent(datetime.now(UTC))))
    one_row.run()  # so that the bytecode is there, and the file
    idle, ours = race(process("pass"), one_row, rounds=starts)
    return above(
        "a process that imports keepfor, appends one",
        [seconds * 1000 for seconds in idle],
        [seconds * 1000 for seconds in ours],
        target=15,
        unit="ms",
    )


def _trace(path: Path, rounds: int) -> Figure:
    ledger = RecallLedger(path, keep_for=KEEP)
    found = ledger.trace(rows.RARE).matches
    told = [(match.at.isoformat() if match.at else None, match.path, match.sim) for match in found]
    read = [(hit["at"], hit["path"], hit["sim"]) for hit in trace(path, rows.RARE)]
    assert told == read, "the two ways find the same evidence"
    taken = race(
        Way(run=lambda: trace(path, rows.RARE)),
        Way(run=lambda: ledger.trace(rows.RARE)),
        rounds=rounds,
    )
    return times_faster(f"trace of a recent recall {_size(path)}", taken, target=50, unit="ms")


def _size(path: Path) -> str:
    return f"({path.stat().st_size / 10**6:.3g} MB)"
