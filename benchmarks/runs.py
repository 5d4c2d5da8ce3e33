"""Directories of runs: what `recent` and `append` cost as runs go by, with retention and without.

`python -m benchmarks.runs` measures the curve and draws it into the documentation; the table of
`python -m benchmarks` has the ratios that must hold.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import perf_counter
from typing import Any

import msgspec

from benchmarks.harness import Figure, Way, at_most, race, times_faster
from benchmarks.plot import Line, draw
from keepfor import RunDirectory

PICTURE = Path(__file__).parents[1] / "docs" / "explanation" / "runs.svg"

CAP = 200
#: A sweep comes round each so many runs; just before it, a directory is at its fullest.
EVERY = 1000
LIFETIMES = [100, 1000, 10_000, 100_000]
FIRST = datetime(2016, 1, 1, tzinfo=UTC)


class Scale(msgspec.Struct, frozen=True, kw_only=True):
    """How much is done, so that a test can do less.

    Parameters:
        few: a short life, in runs.
        many: a long one.
        files: how many runs lie in the directory on which `recent` is compared.
        calls: how many calls one run of a way makes.
        rounds: how often each way is run.
    """

    few: int = 1000
    many: int = 100_000
    files: int = 10_000
    calls: int = 20
    rounds: int = 9


def run_id(number: int) -> str:
    """The id of one of hourly runs, as neo names them."""
    return f"rem-{FIRST + timedelta(hours=number):%Y-%m-%dT%H:%M:%S}.000Z"


def entry(number: int) -> dict[str, Any]:
    """What a run says of itself, about as long as the real ones."""
    phases = [{"phase": name, "status": "completed", "wallClockMs": 658_159} for name in "abcdefgh"]
    return {"runId": run_id(number), "outcome": "completed", "perPhaseStates": phases}


def live(folder: Path, runs: int, keep: int | None = None) -> Path:
    """A directory after so many runs, of which the newest `keep` are there; all where it is None.

    The files are made and removed one by one, as retention does it: a directory remembers how large
    it has been.
    """
    folder.mkdir()
    names = [folder / f"{run_id(number).replace(':', '_')}.jsonl" for number in range(runs)]
    for number, name in enumerate(names):
        name.write_text(json.dumps(entry(number)) + "\n")
        if keep is not None and number >= keep:
            names[number - keep].unlink()
    return folder


# --- the straightforward way --------------------------------------------------------------


def recent(folder: Path, limit: int) -> list[Any]:
    """List and stat every file, sort by mtime, read the newest."""
    names = [name for name in os.listdir(folder) if name.endswith(".jsonl")]
    by_age = sorted(names, key=lambda name: os.stat(folder / name).st_mtime, reverse=True)
    return [json.loads((folder / name).read_text().splitlines()[-1]) for name in by_age[:limit]]


# --- the comparison -----------------------------------------------------------------------


def figures(folder: Path, scale: Scale) -> Iterator[Figure]:
    """Measure what must hold of directories of runs, in an empty folder."""
    full = live(folder / "full", scale.files)
    unbounded = RunDirectory(full, max_count=None)
    assert unbounded.recent(10) == recent(full, 10)
    yield times_faster(
        f"recent(10) of {scale.files:,} runs",
        race(
            Way(run=lambda: recent(full, 10)),
            Way(run=lambda: unbounded.recent(10)),
            rounds=scale.rounds,
        ),
        target=3,
        unit="ms",
    )
    few, many = (live(folder / str(runs), runs, CAP) for runs in (scale.few, scale.many))
    said = f"{scale.many:,} : {scale.few:,} runs"
    yield at_most(
        f"recent(10), capped, {said}",
        race(_recents(few, scale), _recents(many, scale), rounds=scale.rounds),
        target=1.2,
        unit="ms",
        each=scale.calls,
    )
    yield at_most(
        f"append, capped, {said}",
        race(
            _appends(few, scale.few, scale), _appends(many, scale.many, scale), rounds=scale.rounds
        ),
        target=1.2,
        unit="ms",
        each=scale.calls,
    )


def _recents(folder: Path, scale: Scale) -> Way:
    runs = RunDirectory(folder, max_count=CAP)
    return Way(run=lambda: [runs.recent(10) for _ in range(scale.calls)])


def _appends(folder: Path, lived: int, scale: Scale) -> Way:
    """Appends new runs, each of which takes the oldest along."""
    runs = RunDirectory(folder, max_count=CAP)
    number = lived

    def run() -> None:
        nonlocal number
        for _ in range(scale.calls):
            runs.append(run_id(number), entry(number))
            number += 1

    return Way(run=run)


# --- the curve ----------------------------------------------------------------------------


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """What the calls cost after so many runs, under one kind of retention.

    Parameters:
        retention: `none`, `write-side cap` or `periodic sweep`.
        runs: how many there have been.
        files: how many of them are there.
        recent: what `recent(10)` takes, in ms.
        append: what appending a new run takes, in ms.
    """

    retention: str
    runs: int
    files: int
    recent: float
    append: float


def curve(folder: Path, lifetimes: list[int]) -> Iterator[Point]:
    """Measure both calls after each of these lifetimes, under each kind of retention."""
    for runs in lifetimes:
        kinds: dict[str, tuple[int | None, int | None]] = {
            "none": (None, None),
            "write-side cap": (CAP, CAP),
            "periodic sweep": (CAP + EVERY, None),
        }
        for retention, (keep, cap) in kinds.items():
            path = live(folder / f"{retention} {runs}", runs, keep)
            yield _point(retention, path, runs, cap)


def _point(retention: str, path: Path, runs: int, cap: int | None) -> Point:
    directory = RunDirectory(path, max_count=cap)
    files = len(os.listdir(path))
    # What the making of so many files left to the disk is not to be paid by what is measured.
    os.sync()
    read = _best_ms([lambda: directory.recent(10)] * 31)
    fresh = iter(range(runs, runs + 30))
    write = _best_ms([lambda: directory.append(run_id(n := next(fresh)), entry(n))] * 30)
    return Point(retention=retention, runs=runs, files=files, recent=read, append=write)


def _best_ms(calls: list[Callable[[], object]]) -> float:
    """What the fastest call took, which a busy machine distorts least."""
    taken = []
    for call in calls:
        start = perf_counter()
        call()
        taken.append(perf_counter() - start)
    return min(taken) * 1000


def main() -> None:
    """Measure the curve, print it as a table for the documentation, and draw it."""
    points = []
    print("| runs so far | retention | files | `recent(10)` | `append` |")
    print("| ---: | --- | ---: | ---: | ---: |")
    with tempfile.TemporaryDirectory(prefix="keepfor-bench-") as folder:
        for point in curve(Path(folder), LIFETIMES):
            points.append(point)
            print(
                f"| {point.runs:,} | {point.retention} | {point.files:,} | {point.recent:,.2f} ms "
                f"| {point.append:,.2f} ms |",
                flush=True,
            )
    kinds = dict.fromkeys(point.retention for point in points)
    lines = [
        Line(
            name=f"{call}, {kind}",
            dashed=call == "append",
            colour=colour,
            points=[(p.runs, getattr(p, call)) for p in points if p.retention == kind],
        )
        for kind, colour in zip(kinds, ("#c0392b", "#2471a3", "#1e8449"), strict=True)
        for call in ("recent", "append")
    ]
    title = "What recent(10) and append cost, by the number of runs there have been"
    PICTURE.write_text(draw(title, "runs so far", "ms", lines), encoding="utf-8")


if __name__ == "__main__":
    main()
