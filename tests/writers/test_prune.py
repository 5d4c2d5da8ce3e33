"""An explicit prune, a plan and a window: what they report, and that readers write nothing."""

from __future__ import annotations

import fcntl
import os
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from keepfor import Ledger, Trail
from keepfor.errors import BadInstant, StoreBusy, StoreError, WrongTimeField
from keepfor.items import Report
from tests.writers.build import NOW, Clock, ago, line, rows, spread, write

SAMPLE = Path(__file__).parents[1] / "data" / "agentm" / "recall-history.jsonl"
CUTOFF = datetime(2026, 4, 27, tzinfo=UTC)


@pytest.fixture
def sample(path: Path) -> Path:
    """A copy of the real ledger, which may be written to."""
    shutil.copyfile(SAMPLE, path)
    return path


def looks(path: Path) -> tuple[bytes, int, int, list[str]]:
    """What a reader may not change."""
    status = path.stat()
    return path.read_bytes(), status.st_ino, status.st_mtime_ns, sorted(os.listdir(path.parent))


@pytest.mark.parametrize(
    ("keep_for", "kept", "gone"), [("90d", 449, 151), ("30d", 153, 447), ("7d", 37, 563)]
)
def test_the_real_ledger_to_its_known_figures(
    sample: Path, keep_for: str, kept: int, gone: int
) -> None:
    """The ledger that the real program wrote keeps its last rows, byte for byte."""
    lines = sample.read_bytes().splitlines(keepends=True)
    report = Ledger(sample, keep_for=keep_for).prune(now="2026-07-26")
    assert (report.scanned, report.kept, report.applied, report.expired) == (600, kept, gone, gone)
    assert sample.read_bytes() == b"".join(lines[-kept:])


def test_the_report_says_all(sample: Path) -> None:
    """Counts, sizes, cutoff and oldest survivor are those of the real ledger, counted by hand."""
    report = Ledger(sample, keep_for="90d").prune(now=NOW)
    assert (report.unreadable, report.over_ceiling, report.future) == (0, 0, 0)
    assert (report.skipped, report.failed, report.unknown, report.oversized) == (0, 0, 0, 0)
    assert (report.bytes_before, report.bytes_after) == (123_293, 105_376)
    assert report.cutoff == CUTOFF
    assert report.oldest == datetime(2026, 4, 27, 3, 26, 55, 410956, UTC)
    assert report.newest == datetime(2026, 7, 25, 23, 59, 59, 0, UTC)
    assert report.due == datetime(2026, 3, 28, 2, 53, 9, 380291, UTC)
    assert report.now == NOW
    assert (report.store, report.target) == (str(sample), str(sample))
    assert (report.kind, report.started_by) == ("ledger", "write site")
    assert report.rules == ["keep_for"]
    assert report.duration > 0
    assert report.notes == []


def test_every_kind_of_row_is_counted(path: Path) -> None:
    """One ledger with a row of each kind gives each count, and they add up."""
    path.write_bytes(
        line(ago(100))
        + b"{torn\n"
        + line({"no": "time"})
        + b"\n"
        + line(ago(50))
        + line(ago(-3))
        + b"[" * 200_000
        + b"\n"
        + b'{"ts": "2026-07-2'
    )
    report = Ledger(path, keep_for="90d").prune(now=NOW)
    assert (report.scanned, report.kept, report.applied) == (7, 4, 3)
    assert (report.expired, report.unreadable, report.over_ceiling) == (1, 2, 0)
    assert (report.future, report.unknown, report.oversized) == (1, 2, 1)
    assert report.scanned == report.kept + report.applied + report.skipped + report.failed
    expected = line(ago(50)) + line(ago(-3)) + b"[" * 200_000 + b"\n" + b'{"ts": "2026-07-2'
    assert path.read_bytes() == expected
    assert report.bytes_after == len(expected)


def test_nothing_to_drop_is_nothing_rewritten(path: Path) -> None:
    """A ledger with nothing to drop keeps its inode, its mtime and its blank lines."""
    path.write_bytes(line(ago(90)) + b"\n" + line(ago(0)))
    before = looks(path)
    report = Ledger(path, keep_for="90d").prune(now=NOW)
    assert looks(path) == before
    assert (report.scanned, report.kept, report.applied) == (2, 2, 0)
    assert report.bytes_after == report.bytes_before == len(before[0])


def test_pruning_twice_is_pruning_once(sample: Path) -> None:
    """A second prune at the same instant finds nothing, and changes nothing."""
    ledger = Ledger(sample, keep_for="90d")
    ledger.prune(now=NOW)
    before = looks(sample)
    report = ledger.prune(now=NOW)
    assert (report.kept, report.applied) == (449, 0)
    assert looks(sample) == before


@pytest.mark.parametrize(
    "now",
    [
        "2026-07-26",
        "2026-07-26T00:00:00Z",
        "2026-07-26T02:00:00+02:00",
        datetime(2026, 7, 26),  # noqa: DTZ001 - a naive moment is UTC
        datetime(2026, 7, 26, tzinfo=UTC),
        datetime.fromisoformat("2026-07-25T20:00:00-04:00"),
        None,
    ],
)
def test_an_instant_in_any_words(path: Path, clock: Clock, now: Any) -> None:
    """The same instant is the same cutoff however it is given, or told by the ledger's clock."""
    write(path, [{"ts": "2026-04-26T23:59:59Z"}, {"ts": "2026-04-27T00:00:00Z"}])
    report = Ledger(path, keep_for="90d", clock=clock).prune(now)
    assert report.cutoff == CUTOFF
    assert rows(path) == [{"ts": "2026-04-27T00:00:00Z"}]


def test_an_instant_that_cannot_be_read_prunes_nothing(sample: Path) -> None:
    """A slip in `now` is refused, and the ledger is as it was."""
    before = looks(sample)
    with pytest.raises(BadInstant, match="2026-26-07"):
        Ledger(sample, keep_for="90d").prune(now="2026-26-07")
    assert looks(sample) == before


@pytest.mark.parametrize("method", ["prune", "plan", "window"])
def test_a_ledger_that_is_not_there_yet(path: Path, method: str) -> None:
    """Before the first append there is nothing to count, and nothing is made."""
    told = getattr(Ledger(path, keep_for="90d"), method)(NOW)
    if method == "window":
        assert (told.rows, told.bytes, told.oldest, told.newest) == (0, 0, None, None)
        assert (told.days, told.lag) == (0, timedelta())
    else:
        counts = told if method == "prune" else told.survey
        assert (counts.scanned, counts.kept, counts.applied) == (0, 0, 0)
    assert not path.exists()


def test_a_wrong_field_is_refused_by_name(sample: Path) -> None:
    """A `time` that no row carries drops nothing, and the error says which field would do."""
    before = looks(sample)
    with pytest.raises(WrongTimeField, match=r"600 of 600 rows .* 'when'.* time in 'ts'"):
        Ledger(sample, keep_for="90d", time="when").prune(now=NOW)
    assert looks(sample) == before


def test_a_busy_ledger_is_waited_for_and_then_said(
    sample: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An explicit prune says who is in its way, when that does not end, and changes nothing."""
    before = looks(sample)
    monkeypatch.setattr("time.sleep", lambda span: None)
    moments = iter(range(100))
    monkeypatch.setattr("time.monotonic", lambda: float(next(moments)))
    with sample.open("rb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(StoreBusy, match="another process"):
            Ledger(sample, keep_for="90d").prune(now=NOW)
    monkeypatch.undo()
    assert looks(sample) == before


def test_a_folder_is_no_ledger(tmp_path: Path) -> None:
    """A folder in the ledger's place is said so, with what to do."""
    with pytest.raises(StoreError, match=r"a folder, not a file.*Give the path"):
        Ledger(tmp_path, keep_for="90d").prune()


def test_unreadable_rows_stay_if_asked(path: Path) -> None:
    """With `unreadable: keep` debris outlives what expires around it."""
    path.write_bytes(line(ago(100)) + b"{torn\n" + line({}) + line(ago(1)))
    report = Ledger(path, keep_for="90d", unreadable="keep").prune(now=NOW)
    assert path.read_bytes() == b"{torn\n{}\n" + line(ago(1))
    assert (report.expired, report.unreadable, report.unknown, report.kept) == (1, 0, 2, 3)


@pytest.mark.parametrize(("keep_last", "stay"), [(0, 0), (1, 1), (3, 3), (5, 5), (9, 5)])
def test_the_newest_rows_stay_by_the_floor(path: Path, keep_last: int, stay: int) -> None:
    """`keep_last` holds the newest rows, expired or not."""
    made = spread(5, oldest=500, newest=400)
    write(path, made)
    Ledger(path, keep_for="90d", keep_last=keep_last).prune(now=NOW)
    assert rows(path) == made[5 - stay :]


def test_forever_and_a_ceiling(path: Path) -> None:
    """A ledger that keeps for ever loses rows to its ceiling alone."""
    write(path, [ago(5000, x="x" * 55), *[ago(n, x="x" * 55) for n in range(19)]])
    report = Ledger(path, keep_for="forever", max_bytes=1500).prune(now=NOW)
    assert (report.expired, report.over_ceiling, report.bytes_after) == (0, 8, 1200)
    assert report.cutoff is None


def test_a_duration_and_a_size_in_other_words(path: Path) -> None:
    """A timedelta and a number of bytes say the same as text does."""
    write(path, [ago(8), ago(6)])
    Ledger(path, keep_for=timedelta(days=7), max_bytes=25 << 20).prune(now=NOW)
    assert rows(path) == [ago(6)]


@pytest.mark.parametrize("room", [None, 1, 700], ids=["at once", "byte by byte", "in parts"])
def test_what_stays_is_copied_whole_however_it_is_cut(
    path: Path, monkeypatch: pytest.MonkeyPatch, room: int | None
) -> None:
    """Thousands of small pieces, most of them of rows that go, make one whole copy.

    So they do where the system takes only a part of what it is handed.
    """
    monkeypatch.setattr("keepfor.stores.files.BLOCK", 64)
    write_some, write_many = os.write, os.writev

    def cramped(descriptor: int, data: bytes) -> int:
        return write_some(descriptor, data[:room])

    def all_cramped(descriptor: int, buffers: list[bytes]) -> int:
        return cramped(descriptor, b"".join(buffers)) if room else write_many(descriptor, buffers)

    monkeypatch.setattr(os, "write", cramped)
    monkeypatch.setattr(os, "writev", all_cramped)
    stay = [ago(1, n=number) for number in range(30)]
    expected = b"".join(map(line, stay))
    path.write_bytes(line(ago(500)) * 3000 + expected)
    report = Ledger(path, keep_for="90d").prune(now=NOW)
    assert (report.expired, report.kept) == (3000, 30)
    assert path.read_bytes() == expected


def test_a_plan_writes_nothing(sample: Path) -> None:
    """`plan` tells what a prune would do, and leaves every byte and time as it was."""
    before = looks(sample)
    plan = Ledger(sample, keep_for="90d").plan(now=NOW)
    assert looks(sample) == before
    assert (plan.survey.scanned, plan.survey.kept, plan.deletes) == (600, 449, 151)
    assert (plan.survey.bytes_before, plan.survey.bytes_after) == (123_293, 105_376)
    assert (plan.kind, plan.target, plan.now) == ("ledger", str(sample), NOW)
    assert not plan.trips_breaker
    assert Ledger(sample, keep_for="30d").plan(now=NOW).trips_breaker


def test_a_plan_and_a_prune_agree(sample: Path) -> None:
    """What the plan announces is what the prune then does."""
    ledger = Ledger(sample, keep_for="45d", max_bytes="20KiB")
    planned = ledger.plan(now=NOW).survey
    done = ledger.prune(now=NOW)
    assert planned.over_ceiling > 0
    for count in ("kept", "expired", "over_ceiling", "bytes_before", "bytes_after", "oldest"):
        assert getattr(done, count) == getattr(planned, count)


def test_a_window_writes_nothing_and_tells_what_is_held(sample: Path) -> None:
    """`window` counts what is there, what is due included, and by how much it is late."""
    before = looks(sample)
    window = Ledger(sample, keep_for="90d").window(now=NOW)
    assert looks(sample) == before
    assert (window.rows, window.bytes) == (600, 123_293)
    assert window.oldest == datetime(2026, 3, 28, 2, 53, 9, 380291, UTC)
    assert window.newest == datetime(2026, 7, 25, 23, 59, 59, 0, UTC)
    # From March 28, 02:53, to July 25, 24:00: 120 days less 2 h 53 min.
    assert window.days == pytest.approx(120 - 173.16 / 1440, abs=1e-4)
    # From March 28, 02:53, to April 27, 00:00: 30 days less 2 h 53 min.
    assert window.lag == timedelta(days=30) - timedelta(
        hours=2, minutes=53, seconds=9, microseconds=380291
    )


def test_a_window_counts_what_is_above_the_ceiling(path: Path) -> None:
    """Rows that a ceiling would take are held as long as they are there."""
    write(path, [ago(days, x="x" * 55) for days in range(20, 0, -1)])
    window = Ledger(path, keep_for="90d", max_bytes=1000).window(now=NOW)
    assert (window.rows, window.bytes, window.days) == (20, 2000, 19.0)
    assert window.lag == timedelta()


def test_a_window_after_a_prune_is_not_late(sample: Path) -> None:
    """What is within its policy has no lag."""
    ledger = Ledger(sample, keep_for="90d")
    ledger.prune(now=NOW)
    assert ledger.window(now=NOW).lag == timedelta()


class Recorder:
    """Takes down what a prune tells the trail."""

    def __init__(self) -> None:
        self.told: list[tuple[str, int, str]] = []

    def spent(self, plan: object) -> bool:
        return False

    def begin(self, report: Report) -> None:
        self.told.append(("begin", report.applied, ""))

    def end(self, report: Report, error: str) -> None:
        self.told.append(("end", report.applied, error))


def test_a_trail_is_told_if_there_is_one(path: Path, clock: Clock) -> None:
    """A prune tells its trail before its first act and after its last, as appends do."""
    trail = Recorder()
    write(path, [ago(100), ago(1)])
    ledger = Ledger(path, keep_for="90d", trail=trail, clock=clock)
    ledger.append(ago(0))
    assert trail.told == [("begin", 0, ""), ("end", 1, "")]
    ledger.prune()
    assert trail.told[2:] == [("end", 0, "")], "nothing to do needs no intent"


def test_a_trail_that_cannot_be_written_stops_the_prune(path: Path, clock: Clock) -> None:
    """What cannot be recorded beforehand is not done, and the append has succeeded."""

    class Broken(Recorder):
        def begin(self, report: Report) -> None:
            raise OSError("no room for the trail")

    write(path, [ago(100), ago(1)])
    Ledger(path, keep_for="90d", trail=Broken(), clock=clock).append(ago(0))
    assert rows(path) == [ago(100), ago(1), ago(0)]


def test_a_ledger_without_a_trail_writes_none(sample: Path, clock: Clock) -> None:
    """A program's own ledger leaves nothing beside it, nor in the state folder."""
    ledger = Ledger(sample, keep_for="90d", clock=clock)
    ledger.append(ago(0))
    ledger.prune(now="2026-08-26")
    assert os.listdir(sample.parent) == [sample.name]
    assert os.listdir(os.environ["KEEPFOR_STATE_DIR"]) == []


def test_a_real_trail_has_intent_and_outcome(path: Path, tmp_path: Path, clock: Clock) -> None:
    """The trail that ships takes down what the write site did, and who did it."""
    trail = Trail(path=str(tmp_path / "trail.jsonl"), clock=clock)
    write(path, [ago(100), ago(1)])
    Ledger(path, keep_for="90d", trail=trail, clock=clock).append(ago(0))
    outcome, intent = trail.records()
    assert (intent["event"], outcome["event"]) == ("intent", "outcome")
    assert (outcome["started_by"], outcome["expired"], outcome["kept"]) == ("write site", 1, 2)


def test_a_path_that_is_not_utf8_is_pruned_and_recorded(tmp_path: Path) -> None:
    """A ledger may be called anything that the file system takes; its name is escaped."""
    path = tmp_path / os.fsdecode(b"caf\xe9\n.jsonl")
    write(path, [ago(100), ago(1)])
    trail = Trail(path=str(tmp_path / "trail.jsonl"))
    report = Ledger(path, keep_for="90d", trail=trail).prune(NOW)
    assert report.applied == 1
    assert report.target == str(tmp_path / "caf\\xe9\\x0a.jsonl")
    assert [record["store"] for record in trail.records()] == [report.target, report.target]
