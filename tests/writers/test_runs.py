"""A directory of runs at the write site: snapshots whole, bounds held, the host never hurt."""

from __future__ import annotations

import errno
import fcntl
import json
import logging
import multiprocessing
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, Self

import pytest

from keepfor import RunDirectory
from keepfor.errors import BadPolicy, BadRunId, ConfigError, KeepforError, WrongRunTime
from keepfor.items import Report
from keepfor.plan import Plan
from keepfor.stores import files, runfiles
from tests.neo import rebuild
from tests.writers.build import NOW, Clock


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data" / "runs"


@pytest.fixture
def clock() -> Clock:
    return Clock()


def hour(number: int) -> str:
    """The id of the run of that hour, counted from the first of January 2026."""
    start = NOW.replace(month=1, day=1)
    return f"rem-{start + timedelta(hours=number):%Y-%m-%dT%H:%M:%S}.000Z"


def fill(runs: RunDirectory, numbers: range) -> None:
    for number in numbers:
        runs.append(hour(number), {"runId": hour(number), "n": number})


def numbers(runs: RunDirectory) -> list[int]:
    """Which runs are there, the newest first."""
    return [entry["n"] for entry in runs.recent(10**6)]


def left(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


# --- the file of a run --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("run_id", "name"),
    [
        ("rem-2026-07-25T23:00:00.000Z", "rem-2026-07-25T23_00_00.000Z.jsonl"),
        ("a/b\\c d", "a_b_c_d.jsonl"),
        ("../../etc/passwd", ".._.._etc_passwd.jsonl"),
        ("für", "f_r.jsonl"),
        ("a\0b\n", "a_b_.jsonl"),
        ("...", "....jsonl"),
        ("-rf", "-rf.jsonl"),
        ("x" * 249, f"{'x' * 249}.jsonl"),
    ],
)
def test_a_run_is_named_for_its_id(folder: Path, run_id: str, name: str) -> None:
    """What is not safe in a file name becomes an underscore, and no id leaves the directory."""
    RunDirectory(folder).append(run_id, {"runId": run_id})
    assert left(folder) == [name]
    assert left(folder.parent) == ["runs"]


@pytest.mark.parametrize("run_id", ["", ".", "..", "x" * 250])
def test_what_cannot_name_a_file_is_refused(folder: Path, run_id: str) -> None:
    """An id from which no file can be named is refused, and nothing is written."""
    with pytest.raises(BadRunId, match="Nothing was written; give it another id"):
        RunDirectory(folder).append(run_id, {})
    assert not folder.exists() or left(folder) == []


@pytest.mark.parametrize("entry", [{}, {"runId": "theirs"}, {"runId": None}])
@pytest.mark.parametrize(("first", "second"), [("a:b", "a_b"), ("a_b", "a:b"), ("ä", "ö")])
@pytest.mark.parametrize("again", [False, True])
def test_a_second_id_that_would_land_on_the_same_file_is_refused(
    folder: Path, entry: dict[str, Any], first: str, second: str, again: bool
) -> None:
    """Two runs never share a file, whatever their entries say, and after a restart as well."""
    runs = RunDirectory(folder)
    runs.append(first, entry)
    before = [(path, path.read_bytes()) for path in folder.iterdir()]
    if again:
        runs = RunDirectory(folder)
    with pytest.raises(BadRunId, match="belongs to the run"):
        runs.append(second, entry)
    assert [(path, path.read_bytes()) for path in folder.iterdir()] == before
    runs.append(first, entry)
    assert len(runs.recent(9)) == 1


def no_attributes(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(*_: object) -> None:
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))

    monkeypatch.setattr(os, "setxattr", refuses, raising=False)
    monkeypatch.setattr(os, "getxattr", refuses, raising=False)


def test_ids_are_remembered_where_the_file_system_cannot(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without extended attributes a running program still tells its runs apart."""
    no_attributes(monkeypatch)
    runs = RunDirectory(folder)
    runs.append("a:b", {})
    runs.append("a:b", {})
    with pytest.raises(BadRunId):
        runs.append("a_b", {})


def test_remembered_ids_do_not_pile_up(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a program remembers of its runs is bounded as the directory is."""
    no_attributes(monkeypatch)
    runs = RunDirectory(folder, max_count=5)
    for number in range(100):
        runs.append(hour(number), {"n": number})
    assert len(runs._ids) <= 13
    with pytest.raises(BadRunId):
        runs.append(hour(99).replace(":", "_"), {})


def test_the_file_of_another_program_tells_its_run(folder: Path) -> None:
    """A run that its own program wrote goes on, and no other id is taken for it."""
    rebuild(folder)
    runs = RunDirectory(folder, max_count=None)
    runs.append("rem-2026-07-25T23:00:00.000Z", {"runId": "x", "outcome": "again"})
    assert runs.recent(1) == [{"runId": "x", "outcome": "again"}]
    with pytest.raises(BadRunId, match=r"belongs to the run 'rem-2026-07-25T22:00:00\.000Z'"):
        runs.append("rem-2026-07-25T22_00_00.000Z", {})


@pytest.mark.parametrize(
    "first", ["{torn", "[1]\n", '"text"\n', "[" * 9999 + "\n", '{"runId":5}\n']
)
def test_a_file_that_tells_nothing_is_taken_as_it_is(folder: Path, first: str) -> None:
    """Where nothing says whose a file is, the run that asks for it gets it."""
    folder.mkdir(parents=True)
    (folder / "a.jsonl").write_text(first)
    runs = RunDirectory(folder)
    runs.append("a", {"n": 1})
    assert runs.recent(1) == [{"n": 1}]


def test_a_long_snapshot_tells_whose_file_it_is_too(folder: Path) -> None:
    """An entry that is longer than what is read of it is no reason to mix two runs."""
    runs = RunDirectory(folder)
    runs.append("a:b", {"text": "x" * 100_000, "runId": "a:b"})
    with pytest.raises(BadRunId):
        runs.append("a_b", {"runId": "a_b"})
    runs.append("a:b", {"runId": "a:b"})


def test_an_entry_may_call_something_else_its_run(folder: Path) -> None:
    """A `runId` that would name another file is not taken for the id of this one."""
    folder.mkdir(parents=True)
    (folder / "a.jsonl").write_text('{"runId": "parent-of-a"}\n')
    RunDirectory(folder).append("a", {"n": 1})
    assert RunDirectory(folder).recent(1) == [{"n": 1}]


def test_a_name_is_free_again_when_its_run_is_gone(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was remembered of a run that is gone does not keep another from having its name."""
    no_attributes(monkeypatch)
    runs = RunDirectory(folder)
    runs.append("a:b", {})
    (folder / "a_b.jsonl").unlink()
    runs.append("a_b", {"runId": "a_b"})
    runs.append("a_b", {"runId": "a_b", "n": 2})
    assert runs.recent(1) == [{"runId": "a_b", "n": 2}]


# --- a snapshot ---------------------------------------------------------------------------


def test_a_snapshot_is_one_line_as_json_writes_it(folder: Path) -> None:
    """Each snapshot is a line of its own, in the bytes that `json.dumps` gives, in one write."""
    runs = RunDirectory(folder)
    entries: list[dict[str, Any]] = [
        {"runId": "a", "text": "für\n"},
        {"runId": "a", "nested": {"x": [1.5, None]}},
    ]
    for entry in entries:
        runs.append("a", entry)
    expected = "".join(f"{json.dumps(entry)}\n" for entry in entries)
    assert (folder / "a.jsonl").read_text() == expected
    assert runs.recent(1) == [entries[1]]


def test_a_torn_line_is_ended_first(folder: Path) -> None:
    """Where a writer was killed in mid-line, the next snapshot stands on a line of its own."""
    runs = RunDirectory(folder)
    runs.append("a", {"n": 1})
    with (folder / "a.jsonl").open("a") as file:
        file.write('{"n": 2')
    assert runs.recent(1) == [{"n": 1}]
    runs.append("a", {"n": 3})
    assert (folder / "a.jsonl").read_text() == '{"n": 1}\n{"n": 2\n{"n": 3}\n'


def test_what_json_cannot_write_is_not_written(folder: Path) -> None:
    """An entry that is no JSON is refused before a file is made."""
    with pytest.raises(TypeError):
        RunDirectory(folder).append("a", {"x": object()})
    assert not folder.exists()


def test_a_failed_append_is_raised_and_prunes_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk reaches the caller, and no run goes for a snapshot that was not written."""
    runs = RunDirectory(folder, max_count=2)
    fill(runs, range(2))
    monkeypatch.setattr(
        files, "append", lambda *_: (_ for _ in ()).throw(OSError(errno.ENOSPC, ""))
    )
    with pytest.raises(OSError, match=str(errno.ENOSPC)):
        fill(runs, range(2, 3))
    monkeypatch.undo()
    assert numbers(runs) == [1, 0]


def test_a_symlink_is_not_written_through(folder: Path, tmp_path: Path) -> None:
    """A symlink in the place of a run's file leads no snapshot out of the directory."""
    folder.mkdir(parents=True)
    (folder / "a.jsonl").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic links"):
        RunDirectory(folder).append("a", {})
    assert not (tmp_path / "elsewhere").exists()


# --- the bounds ---------------------------------------------------------------------------


def test_the_cap_holds_after_every_run(folder: Path) -> None:
    """With a cap of three, each run after the third takes the oldest along."""
    runs = RunDirectory(folder, max_count=3)
    seen = []
    for number in range(6):
        fill(runs, range(number, number + 1))
        seen.append(numbers(runs))
    assert seen == [[0], [1, 0], [2, 1, 0], [3, 2, 1], [4, 3, 2], [5, 4, 3]]
    assert all(name.endswith(".jsonl") for name in left(folder))


def test_two_hundred_runs_stay_unless_something_else_is_said(folder: Path) -> None:
    """The default cap is 200, as neo has it."""
    runs = RunDirectory(folder)
    fill(runs, range(203))
    assert numbers(runs) == list(range(202, 2, -1))


def test_the_order_is_that_of_the_names_not_of_writing(folder: Path) -> None:
    """Runs that are written late, or out of order, go by when they were."""
    runs = RunDirectory(folder, max_count=3)
    for number in (5, 1, 9, 7, 2, 8):
        fill(runs, range(number, number + 1))
    assert numbers(runs) == [9, 8, 7]


def test_runs_without_a_time_in_their_names_go_by_mtime(folder: Path) -> None:
    """Where names carry no time, the last that were changed stay."""
    runs = RunDirectory(folder, max_count=None)
    for day, name in enumerate(["zeta", "eta", "theta"]):
        runs.append(name, {"n": day})
        os.utime(folder / f"{name}.jsonl", (day, day))
    assert RunDirectory(folder, max_count=2).prune().applied == 1
    assert numbers(runs) == [2, 1]


def test_a_field_of_the_entry_can_tell_the_order(folder: Path) -> None:
    """With `time` and `unit`, the last snapshot's own time counts."""
    runs = RunDirectory(folder, max_count=2, time="at", unit="ms")
    for number, at in enumerate([3, 1, 2]):
        runs.append(f"r{number}", {"n": number, "at": 1_784_000_000_000 + at})
    assert numbers(runs) == [0, 2]


def test_a_second_snapshot_looks_at_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a new run can be one too many: no other append lists the directory."""
    runs = RunDirectory(folder, max_count=1)
    fill(runs, range(2))
    with monkeypatch.context() as patch:
        watched = Watched(patch)
        assert watched.of(lambda: fill(runs, range(1, 2)))["entries"] == 0
        assert watched.of(lambda: fill(runs, range(2, 3)))["entries"] > 0


def test_without_bounds_nothing_is_looked_at(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """None switches a bound off, and a directory without any is never listed by an append."""
    runs = RunDirectory(folder, max_count=None, keep_for="forever")
    with monkeypatch.context() as patch:
        assert Watched(patch).of(lambda: fill(runs, range(250)))["entries"] == 0
    assert len(left(folder)) == 250


def test_both_bounds_hold(folder: Path, clock: Clock) -> None:
    """What is older than its time goes even where there is room for it."""
    # NOW is hour 4944 of the year; three days before it is hour 4872, which is not older.
    runs = RunDirectory(folder, max_count=100, keep_for="3d", clock=clock)
    fill(runs, range(4870, 4874))
    assert numbers(runs) == [4873, 4872]
    fill(runs, range(4900, 5010))
    assert numbers(runs) == list(range(5009, 4909, -1))


def test_the_newest_stay_whatever_their_age(folder: Path, clock: Clock) -> None:
    """`keep_last` wins over both bounds."""
    runs = RunDirectory(folder, keep_for="1d", keep_last=2, clock=clock)
    fill(runs, range(5))
    assert numbers(runs) == [4, 3]
    assert runs.prune(NOW + timedelta(days=999)).applied == 0


def test_a_run_within_the_grace_stays(folder: Path) -> None:
    """With a grace, a run that was changed lately counts as being written, and is not removed."""
    runs = RunDirectory(folder, max_count=1, grace="1h")
    fill(runs, range(3))
    assert numbers(runs) == [2, 1, 0]
    os.utime(folder / "rem-2026-01-01T00_00_00.000Z.jsonl", (0, 0))
    assert [done.id for done in runs.prune().outcomes] == ["rem-2026-01-01T00_00_00.000Z"]


def test_a_plan_shows_and_a_prune_does(folder: Path) -> None:
    """The main job by library: of the sample's 260 runs, 60 would go, and then they do."""
    runs = RunDirectory(rebuild(folder), max_count=200)
    newest = runs.recent(200)
    assert newest[0]["runId"] == "rem-2026-07-25T23:00:00.000Z"
    plan = runs.plan(now="2026-07-26")
    assert (plan.survey.scanned, plan.deletes) == (260, 60)
    assert len(left(folder)) == 260
    report = runs.prune(now="2026-07-26")
    assert (report.kept, report.applied, report.over_ceiling, report.expired) == (200, 60, 60, 0)
    assert report.bytes_after == sum(path.stat().st_size for path in folder.iterdir())
    assert runs.recent(10**6) == newest
    assert runs.prune().applied == 0


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"max_count": 0}, "`max_count` is 0"),
        ({"max_count": -1}, "`max_count` is -1"),
        ({"max_count": True}, "`max_count` is True"),
        ({"max_count": "200"}, "`max_count` is '200'"),
        ({"keep_last": -1}, "`keep_last` is -1"),
        ({"keep_last": None}, "`keep_last` is None"),
        ({"max_count": 3, "keep_last": 4}, r"`keep_last` \(4\) is above `max_count` \(3\)"),
        ({"keep_for": "0d"}, "'0d' is not a duration"),
        ({"keep_for": "90"}, "'90' is not a duration"),
        ({"grace": "-1h"}, "'-1h' is not a duration"),
        ({"unit": "m"}, "'m' is no unit"),
        ({"timezone": "Mars"}, "no zone 'Mars'"),
    ],
)
def test_what_could_be_a_slip_is_refused(
    folder: Path, settings: dict[str, Any], error: str
) -> None:
    """A setting that cannot be meant is refused when the directory is named, not at its end."""
    with pytest.raises((BadPolicy, ConfigError), match=error):
        RunDirectory(folder, **settings)


def test_a_wrong_field_is_told_by_a_prune(folder: Path) -> None:
    """A field that the entries do not carry removes nothing, and `prune` says so."""
    runs = RunDirectory(folder, max_count=1, time="finished")
    fill(runs, range(3))
    with pytest.raises(WrongRunTime):
        runs.prune()
    assert len(left(folder)) == 3


class Notebook:
    """A trail in memory."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, int]] = []

    def spent(self, plan: Plan) -> bool:
        return False

    def begin(self, report: Report) -> None:
        self.lines.append(("begin", report.applied))

    def end(self, report: Report, error: str = "") -> None:
        self.lines.append(("end", report.applied))


def test_a_trail_is_kept_where_one_is_given(folder: Path) -> None:
    """Each prune that removes something is recorded before and after."""
    trail = Notebook()
    fill(RunDirectory(folder, max_count=2, trail=trail), range(3))
    assert trail.lines == [("begin", 0), ("end", 1)]


# --- what it costs ------------------------------------------------------------------------


class Watched:
    """Counts what is asked of the file system: directory entries, stats and opens."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seen: Counter[str] = Counter()
        self._scandir, self._listdir = os.scandir, os.listdir
        for name in ("stat", "lstat", "fstat", "open"):
            monkeypatch.setattr(os, name, self._counting(name, getattr(os, name)))
        monkeypatch.setattr(os, "scandir", lambda path: Listing(self._scandir(path), self.seen))
        monkeypatch.setattr(os, "listdir", self._list)

    def _counting(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        kind = "opens" if name == "open" else "stats"

        def counting(*args: Any, **how: Any) -> Any:
            self.seen[kind] += 1
            return call(*args, **how)

        return counting

    def _list(self, path: Any) -> list[str]:
        found = self._listdir(path)
        self.seen["entries"] += len(found)
        return found

    def of(self, act: Callable[[], object]) -> Counter[str]:
        self.seen.clear()
        act()
        return Counter(self.seen)


class Listing:
    """What `os.scandir` gives, counted."""

    def __init__(self, entries: Any, seen: Counter[str]) -> None:
        self._entries, self._seen = entries, seen

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._entries.close()

    def __iter__(self) -> Iterator[Entry]:
        for entry in self._entries:
            self._seen["entries"] += 1
            yield Entry(entry, self._seen)


class Entry:
    """An entry of it, whose stats are counted."""

    def __init__(self, entry: Any, seen: Counter[str]) -> None:
        self._entry, self._seen, self.name = entry, seen, entry.name

    def is_file(self, *, follow_symlinks: bool) -> bool:
        assert not follow_symlinks
        return bool(self._entry.is_file(follow_symlinks=False))

    def stat(self, *, follow_symlinks: bool) -> Any:
        self._seen["stats"] += 1
        return self._entry.stat(follow_symlinks=follow_symlinks)


@pytest.mark.parametrize(
    "bounds",
    [{"max_count": 50}, {"max_count": None, "keep_for": "50h"}, {"max_count": 50, "time": "mtime"}],
)
def test_neither_call_asks_for_more_after_many_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bounds: dict[str, Any]
) -> None:
    """After 1,000 and after 100,000 runs, `append` and `recent` ask for the same number of
    directory entries, stats and opens.

    All that a directory has of its past is what it holds, so that the 100,000 are not all made:
    those that would be there are, by appends.
    """
    costs = [
        cost_after(lifetime, tmp_path / str(lifetime), monkeypatch, bounds)
        for lifetime in (1_000, 100_000)
    ]
    assert costs[0] == costs[1]
    _, again, recent = costs[0]
    assert again == Counter(opens=1, stats=2)
    by_name = Counter(entries=50, opens=10, stats=10)
    assert recent == (by_name + Counter(stats=50) if bounds.get("time") else by_name)


def cost_after(
    lifetime: int, folder: Path, monkeypatch: pytest.MonkeyPatch, bounds: dict[str, Any]
) -> list[Counter[str]]:
    """What a new run, a second snapshot of it and a look at the newest ask for after so many."""
    clock = Clock(NOW.replace(month=1, day=1) + timedelta(hours=lifetime))
    runs = RunDirectory(folder, clock=clock, **bounds)
    fill(runs, range(lifetime - 120, lifetime))
    # With bounds of either kind 50 runs stay; by age, those from 50 hours ago on.
    assert len(left(folder)) == 50
    with monkeypatch.context() as patch:
        watched = Watched(patch)
        clock.forward(hours=1)
        append = watched.of(lambda: fill(runs, range(lifetime, lifetime + 1)))
        again = watched.of(lambda: fill(runs, range(lifetime, lifetime + 1)))
        recent = watched.of(lambda: runs.recent(10))
    assert numbers(runs)[:2] == [lifetime, lifetime - 1]
    assert len(left(folder)) == 50
    return [append, again, recent]


def test_without_a_bound_recent_still_opens_no_more_than_it_gives(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where names tell the order, no file is opened or looked at that is not given back."""
    runs = RunDirectory(folder, max_count=None)
    fill(runs, range(300))
    with monkeypatch.context() as patch:
        assert Watched(patch).of(lambda: runs.recent(10)) == Counter(
            entries=300, opens=10, stats=10
        )


# --- the host -----------------------------------------------------------------------------


def test_what_a_prune_runs_into_stays_with_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A prune that fails is logged, and the append it came with returns."""
    runs = RunDirectory(folder, max_count=1)
    fill(runs, range(1))
    monkeypatch.setattr(os, "scandir", lambda _: (_ for _ in ()).throw(OSError(errno.EIO, "gone")))
    with caplog.at_level(logging.WARNING):
        fill(runs, range(1, 2))
    assert f"could not prune {folder}" in caplog.text
    monkeypatch.undo()
    fill(runs, range(2, 3))
    assert numbers(runs) == [2]


@pytest.mark.parametrize("code", [errno.EIO, errno.EACCES, errno.ENOENT])
@pytest.mark.parametrize(
    "name",
    ["scandir", "stat", "fstat", "open", "listdir", "rename", "unlink", "link", "rmdir", "close"],
)
def test_no_failing_call_reaches_the_program(
    folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, code: int
) -> None:
    """Whichever call of a prune fails, the append returns, and no run is lost that should stay."""
    runs = RunDirectory(folder, max_count=2)
    fill(runs, range(2))
    real, tend = getattr(os, name), RunDirectory._tend

    def failing(*_: Any, **__: Any) -> Any:
        raise OSError(code, os.strerror(code))

    def tending(self: RunDirectory) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(os, name, failing)
            tend(self)

    with monkeypatch.context() as patch:
        patch.setattr(RunDirectory, "_tend", tending)
        fill(runs, range(2, 3))
    assert getattr(os, name) is real
    assert numbers(runs)[:2] == [2, 1]
    again = RunDirectory(folder, max_count=2)
    again.prune()
    assert numbers(again) == [2, 1]
    assert all(found.endswith(".jsonl") for found in left(folder))


def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Counts the prunes, from now on."""
    prunes: list[int] = []
    prune = RunDirectory._prune

    def counting(self: RunDirectory, *args: Any, **how: Any) -> Any:
        prunes.append(1)
        return prune(self, *args, **how)

    monkeypatch.setattr(RunDirectory, "_prune", counting)
    return prunes


def test_a_prune_that_can_remove_nothing_is_not_tried_by_every_run(
    folder: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is over the bound and cannot go is tried again after an hour, or a tenth more runs."""
    runs = RunDirectory(folder, max_count=20, keep_last=20, grace="1h", clock=clock)
    fill(runs, range(20))
    prunes = counted(monkeypatch)
    fill(runs, range(20, 21))
    assert len(prunes) == 1
    # A tenth more than 21 runs is more than 23.
    fill(runs, range(21, 23))
    assert len(prunes) == 1
    clock.forward(minutes=61)
    fill(runs, range(23, 24))
    assert len(prunes) == 2
    # A tenth more than 24 is more than 26.
    fill(runs, range(24, 26))
    assert len(prunes) == 2
    fill(runs, range(26, 27))
    assert len(prunes) == 3


def test_a_clock_that_was_set_back_is_no_reason_to_wait(
    folder: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An attempt that lies in the future says nothing of how long ago it was."""
    runs = RunDirectory(folder, max_count=20, keep_last=20, grace="1h", clock=clock)
    fill(runs, range(21))
    prunes = counted(monkeypatch)
    fill(runs, range(21, 22))
    assert len(prunes) == 0
    clock.forward(hours=-2)
    fill(runs, range(22, 23))
    assert len(prunes) == 1


def test_a_run_on_the_cutoff_is_no_reason_to_prune(
    folder: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The probe trips for what has expired, which is what is strictly older."""
    prunes = counted(monkeypatch)
    runs = RunDirectory(folder, max_count=None, keep_for="3d", clock=clock)
    # NOW is hour 4944 of the year, and three days before it is hour 4872.
    fill(runs, range(4872, 4900))
    assert len(prunes) == 0
    fill(runs, range(4871, 4872))
    assert len(prunes) == 1
    assert numbers(runs)[-1] == 4872


def test_where_another_process_was_faster_the_next_run_looks_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A prune that finds its work done is no reason to leave the directory alone."""
    runs = RunDirectory(folder, max_count=3)
    fill(runs, range(3))
    with monkeypatch.context() as patch:
        prune = RunDirectory._prune

        def late(self: RunDirectory, *args: Any, **how: Any) -> Any:
            prune(RunDirectory(folder, max_count=3), NOW)
            return prune(self, *args, **how)

        patch.setattr(RunDirectory, "_prune", late)
        fill(runs, range(3, 4))
    fill(runs, range(4, 5))
    assert numbers(runs) == [4, 3, 2]


def test_while_another_process_prunes_an_append_does_not_wait_for_it(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A prune that another process holds up is left to the next run, and is nothing to log."""
    runs = RunDirectory(folder, max_count=3)
    fill(runs, range(3))
    descriptor = os.open(folder, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    fill(runs, range(3, 4))
    assert len(left(folder)) == 4
    os.close(descriptor)
    fill(runs, range(4, 5))
    assert numbers(runs) == [4, 3, 2]
    assert caplog.text == ""


def test_a_clock_that_jumps_ahead_takes_nothing(folder: Path, clock: Clock) -> None:
    """When every run would expire at once, a prune that nobody asked for waits for a day of new
    ones; the cap holds all the same."""
    clock.now = NOW.replace(month=1, day=1)
    runs = RunDirectory(folder, max_count=12, keep_for="7d", clock=clock)
    fill(runs, range(12))
    clock.forward(days=3650)
    fill(runs, range(12, 13))
    assert numbers(runs) == list(range(12, 0, -1))
    # Asked for, it does what it is told.
    assert runs.prune().expired == 12


def test_a_directory_that_lay_idle_is_pruned_on_its_second_day(folder: Path, clock: Clock) -> None:
    """When the new runs span a day, the clock is believed, and the old ones go."""
    clock.now = NOW.replace(month=1, day=1)
    runs = RunDirectory(folder, keep_for="7d", clock=clock)
    fill(runs, range(12))
    for later in (8760, 8761, 8784, 8786):
        clock.now = NOW.replace(month=1, day=1) + timedelta(hours=later)
        fill(runs, range(later, later + 1))
    # The first of the new runs is 26 hours old by then.
    assert numbers(runs) == [8786, 8784, 8761, 8760]


def many(folder: str, writer: int) -> None:
    runs = RunDirectory(folder, max_count=20)
    for number in range(60):
        runs.append(f"w{writer}-{hour(number)}", {"n": number, "writer": writer})
        runs.append(f"w{writer}-{hour(number)}", {"n": number, "writer": writer, "done": True})


def test_many_processes_share_a_directory(folder: Path) -> None:
    """Four processes that write at once end within the cap, with the newest runs whole."""
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=many, args=(str(folder), number)) for number in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
        assert writer.exitcode == 0
    RunDirectory(folder, max_count=20).prune()
    entries = RunDirectory(folder, max_count=20).recent(99)
    assert len(entries) == 20
    assert all(entry["done"] for entry in entries)
    assert sorted(entry["n"] for entry in entries) == sorted([*range(55, 60)] * 4)
    assert all(name.endswith(".jsonl") for name in left(folder))


def test_an_append_loads_nothing_that_only_a_prune_needs(folder: Path) -> None:
    """A program that appends a run below the bound pays for no decoder, no policy and no store."""
    code = f"""
import sys
before = set(sys.modules)
from keepfor import RunDirectory
RunDirectory({str(folder)!r}).append("a", {{"runId": "a"}})
heavy = {{"typing", "dataclasses", "enum", "msgspec", "logging", "keepfor.policy", "keepfor.plan"}}
print(sorted(heavy & set(sys.modules) - before))
"""
    # `re`, which `json` needs, brings `enum` along.
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() in ("[]", "['enum']")


def test_a_corrupt_artifact_does_not_stop_the_cap(folder: Path) -> None:
    """A file that no reader can use is a run by its name, and goes when its time has come."""
    folder.mkdir(parents=True)
    (folder / f"{hour(0)}.jsonl".replace(":", "_")).write_text("{torn")
    runs = RunDirectory(folder, max_count=2)
    fill(runs, range(1, 3))
    assert numbers(runs) == [2, 1]
    assert len(left(folder)) == 2


def test_errors_of_ours_are_one_family() -> None:
    """A caller can catch what is wrong with an id as a ValueError, or as keepfor's own."""
    assert issubclass(BadRunId, ValueError)
    assert issubclass(BadRunId, KeepforError)
    assert runfiles.SUFFIX == ".jsonl"


def test_a_directory_whose_name_is_not_utf8_is_bounded(tmp_path: Path) -> None:
    """A directory may be called anything that the file system takes; its name is escaped."""
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    runs = RunDirectory(folder, max_count=1)
    for day in "01", "02":
        runs.append(f"run-2026-07-{day}T00:00:00Z", {"outcome": "done"})
    report = runs.prune(now=NOW)
    assert report.target == str(tmp_path / "caf\\xe9")
    assert (runs.plan(now=NOW).deletes, len(os.listdir(folder))) == (0, 1)
