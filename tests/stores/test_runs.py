"""The runs store: one order for reading and for removing, and no run goes that should stay."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Self
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from keepfor.errors import StoreBusy, StoreError, WrongRunTime
from keepfor.items import Decision, Item, Report
from keepfor.plan import Plan, build
from keepfor.policy.rules import Policy, keep_for
from keepfor.stores import removal
from keepfor.stores.runs import RunStore, runs_at
from keepfor.sweep import apply, prune_items
from keepfor.times import Known, Unknown
from tests.killing import killed_after
from tests.neo import rebuild
from tests.runs import LONG_AGO, NOW, hourly, left, run


class Nowhere:
    """A trail that records nothing."""

    def spent(self, plan: Plan) -> bool:
        return False

    def begin(self, report: Report) -> None: ...

    def end(self, report: Report, error: str = "") -> None: ...


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "runs"


def scanned(store: RunStore) -> dict[str, Item]:
    return {item.id: item for item in store.scan()}


def planned(store: RunStore, now: datetime = NOW, **policy: Any) -> Plan:
    return build(store, Policy(**policy), now, name="runs")


def swept(store: RunStore, now: datetime = NOW, **policy: Any) -> Report:
    plan = planned(store, now, **policy)
    return apply(plan, store, Policy(**policy), now, trail=Nowhere())


def goes(plan: Plan) -> list[str]:
    return sorted(said.id for said in plan.decisions if said.action == "delete")


# --- the main job -------------------------------------------------------------------------


def test_the_sample_is_capped_to_its_200_newest(folder: Path) -> None:
    """Of the 260 runs of the sample the 60 oldest go, and no other byte changes."""
    before = {path.name: path.read_bytes() for path in rebuild(folder).iterdir()}
    report = swept(runs_at(folder, grace=timedelta(hours=1)), max_count=200)
    assert (report.scanned, report.kept, report.applied) == (260, 200, 60)
    after = {path.name: path.read_bytes() for path in folder.iterdir()}
    # 60 hours after the first run, which began on 2026-07-15 at 04:00.
    assert min(after) == "rem-2026-07-17T16_00_00.000Z.jsonl"
    assert max(after) == "rem-2026-07-25T23_00_00.000Z.jsonl"
    assert after == {name: before[name] for name in sorted(before)[60:]}


def test_the_newest_runs_of_the_sample_are_the_same_before_and_after(folder: Path) -> None:
    """What is recent is the same before and after the cap, for every number within it."""
    store = runs_at(rebuild(folder))
    before = store.recent(200)
    swept(store, max_count=200)
    assert before[0]["runId"] == "rem-2026-07-25T23:00:00.000Z"
    for count in range(201):
        assert store.recent(count) == before[:count]


# --- what a run is ------------------------------------------------------------------------


def test_a_scan_tells_what_is_there(folder: Path) -> None:
    """Each item says when it began and from what, its size, and what it looked like."""
    path = run(folder, "rem-2026-07-25T23_00_00.000Z", {"a": 1})
    (item,) = runs_at(folder).scan()
    assert item.id == "rem-2026-07-25T23_00_00.000Z"
    assert item.type == "run"
    assert item.instant == Known(datetime(2026, 7, 25, 23, tzinfo=UTC), "name")
    assert item.bytes == 9
    assert item.fingerprint == removal.fingerprint(path.stat())
    assert item.held is None


def test_what_is_no_run_is_neither_counted_nor_touched(folder: Path, tmp_path: Path) -> None:
    """Other files, folders, links and pipes in the directory are none of the store's business."""
    hourly(folder, 3)
    (folder / "active-run.json").write_text("{}")
    (folder / "rem.jsonl.tmp").write_text("{}")
    (folder / "folder.jsonl").mkdir()
    (tmp_path / "elsewhere.jsonl").write_text("{}\n")
    (folder / "latest.jsonl").symlink_to(tmp_path / "elsewhere.jsonl")
    os.mkfifo(folder / "pipe.jsonl")
    others = {"active-run.json", "rem.jsonl.tmp", "folder.jsonl", "latest.jsonl", "pipe.jsonl"}
    report = swept(runs_at(folder), max_count=1)
    assert (report.scanned, report.applied) == (3, 2)
    assert others < set(os.listdir(folder))
    assert (tmp_path / "elsewhere.jsonl").exists()
    assert len(runs_at(folder).recent(10)) == 1


def test_a_name_of_any_bytes_is_a_run(folder: Path) -> None:
    """A run whose name is not UTF-8, or would disturb a screen, goes under its escaped id."""
    folder.mkdir()
    for name in (b"caf\xe9-2026-07-24.jsonl", b"red\x1b[31m-2026-07-25.jsonl"):
        (folder / os.fsdecode(name)).write_text("{}\n")
    store = runs_at(folder)
    assert sorted(scanned(store)) == [r"caf\xe9-2026-07-24", r"red\x1b[31m-2026-07-25"]
    assert [done.id for done in swept(store, max_count=1).outcomes] == [r"caf\xe9-2026-07-24"]
    assert os.listdir(os.fsencode(folder)) == [b"red\x1b[31m-2026-07-25.jsonl"]


def test_a_folder_that_is_not_there_is_empty(folder: Path) -> None:
    """A directory that nobody made yet has no runs, and is not made by looking."""
    store = runs_at(folder)
    assert list(store.scan()) == []
    assert store.recent(5) == []
    assert store.leftovers() == []
    assert swept(store, max_count=1).scanned == 0
    assert not folder.exists()


def test_looking_changes_nothing(folder: Path) -> None:
    """A plan leaves every file and the folder as they were, times included."""
    hourly(folder, 5)
    os.utime(folder, (0, 0))
    before = [(path, path.stat().st_mtime_ns) for path in [folder, *folder.iterdir()]]
    planned(runs_at(folder), max_count=1)
    runs_at(folder).recent(3)
    assert [(path, path.stat().st_mtime_ns) for path in [folder, *folder.iterdir()]] == before


def test_a_store_that_is_a_symlink_is_resolved_once(folder: Path, tmp_path: Path) -> None:
    """The folder that a symlink leads to is the store, and the link stays."""
    hourly(folder, 3)
    (tmp_path / "link").symlink_to(folder)
    store = runs_at(tmp_path / "link")
    assert store.target == str(folder)
    assert swept(store, max_count=1).applied == 2
    assert (tmp_path / "link").is_symlink()


def test_a_file_in_the_place_of_the_folder_is_refused(folder: Path) -> None:
    """A file where a directory should be is told as what it is."""
    folder.write_text("")
    with pytest.raises(StoreError, match="it is not a folder"):
        list(runs_at(folder).scan())
    with pytest.raises(StoreError, match="it is not a folder"):
        runs_at(folder).recent(1)
    with pytest.raises(StoreError, match="it is not a folder"), runs_at(folder).locked(0):
        pass


# --- the order ----------------------------------------------------------------------------


def test_the_name_tells_the_age_where_it_can(folder: Path) -> None:
    """A copied directory, all of one mtime or in the wrong order, keeps its newest runs."""
    names = hourly(folder, 6)
    for back, name in enumerate(names):
        stamp = (LONG_AGO - timedelta(days=back)).timestamp()
        os.utime(folder / f"{name}.jsonl", (stamp, stamp))
    plan = planned(runs_at(folder), max_count=2)
    assert goes(plan) == names[:4]
    assert plan.survey.notes == []


def test_mtime_is_what_is_left_and_is_said(folder: Path) -> None:
    """Where names carry no time, mtime orders the runs, and the plan says so."""
    for day, name in enumerate(["zeta", "eta", "theta"]):
        run(folder, name, mtime=LONG_AGO + timedelta(days=day))
    plan = planned(runs_at(folder), max_count=1)
    assert goes(plan) == ["eta", "zeta"]
    (note,) = plan.survey.notes
    assert note.startswith("3 of 3 are dated by their file's mtime")


def test_ties_are_settled_by_name(folder: Path) -> None:
    """Runs of one instant go in the order of their names, the last of which is the newest."""
    for name in ["b", "a-1", "a", "c"]:
        run(folder, name)
    store = runs_at(folder)
    assert [entry["runId"] for entry in store.recent(9)] == ["c", "b", "a-1", "a"]
    assert goes(planned(store, max_count=2)) == ["a", "a-1"]


def test_the_field_of_an_entry_tells_the_age(folder: Path) -> None:
    """With a field of the entry, the last snapshot's counts; a dotted path reaches into it."""
    run(folder, "a", {"at": {"end": "2026-07-01"}}, {"at": {"end": "2026-07-25T00:00:00"}})
    run(folder, "b", {"at": {"end": "2026-07-24"}})
    run(folder, "2026-07-26-c", {"at": {"end": "2026-07-02"}})
    store = runs_at(folder, time="at.end")
    assert goes(planned(store, max_count=2)) == ["2026-07-26-c"]
    # A date alone is the end of its day, 2026-07-24T23:59:59.999999.
    assert goes(planned(store, max_count=1)) == ["2026-07-26-c", "b"]


def test_a_number_needs_its_unit(folder: Path) -> None:
    """Milliseconds are read where they are said to be milliseconds, and refused where not."""
    for name, started in [("a", 1_784_088_000_000), ("b", 1_784_091_600_000)]:
        run(folder, name, {"startedAt": started})
    items = scanned(runs_at(folder, time="startedAt", unit="ms"))
    # 1,784,088,000 s are 20,649 days and 4 hours; 2026-07-15 is day 20,649.
    assert items["a"].instant == Known(datetime(2026, 7, 15, 4, tzinfo=UTC), "startedAt")
    with pytest.raises(WrongRunTime, match="2 of 2 runs have no usable time in 'startedAt'"):
        planned(runs_at(folder, time="startedAt"), max_count=1)


def test_a_wrong_field_is_refused_with_the_right_one(folder: Path) -> None:
    """A field that the entries do not carry removes nothing, and the message names one that would
    do."""
    run(folder, "a", {"runId": "a", "completedAt": 1_784_090_632_639})
    with pytest.raises(WrongRunTime, match="a run here has a time in 'completedAt'"):
        planned(runs_at(folder, time="finished"), max_count=1)


def test_a_field_that_most_runs_lack_is_refused(folder: Path) -> None:
    """More than ten runs without the field, and more than have it, are a wrong setting."""
    for number in range(10):
        run(folder, f"with-{number}", {"ts": "2026-07-01"})
    for number in range(11):
        run(folder, f"without-{number}", {"at": "2026-07-01"})
    with pytest.raises(WrongRunTime, match="11 of 21 runs"):
        planned(runs_at(folder, time="ts"), max_count=1)
    run(folder, "with-10", {"ts": "2026-07-01"})
    assert planned(runs_at(folder, time="ts"), max_count=20).deletes == 2


def test_a_run_that_says_nothing_yet_is_no_sign_of_a_wrong_setting(folder: Path) -> None:
    """Corrupt and unfinished runs of unknown age, however many: they are kept."""
    for number in range(20):
        run(folder, f"r{number}").write_text("{torn")
    plan = planned(runs_at(folder, time="ts"), max_count=1)
    assert (plan.deletes, plan.survey.unknown) == (0, 20)
    assert plan.survey.notes == ["still 19 over max_count: 20 of unknown age"]


def test_names_without_a_time_are_refused_where_names_were_asked_for(folder: Path) -> None:
    """`time: name` on names that carry none is a wrong setting."""
    run(folder, "a")
    with pytest.raises(WrongRunTime, match="1 of 1 runs have no usable time in their names"):
        planned(runs_at(folder, time="name"), max_count=1)


def test_unknown_keeps(folder: Path) -> None:
    """A run whose name carries no time stays under `time: name`, whatever its mtime."""
    names = hourly(folder, 4)
    run(folder, "index")
    store = runs_at(folder, time="name")
    assert isinstance(scanned(store)["index"].instant, Unknown)
    plan = planned(store, max_count=2)
    assert goes(plan) == names[:3]
    assert plan.survey.unknown == 1


@pytest.mark.parametrize("time", [None, "name", "mtime"])
def test_local_names_are_read_in_their_zone(folder: Path, time: str | None) -> None:
    """Names of the hour that comes twice are the later one, in the plan as in what is recent."""
    # 02:30 of that day stands for 00:30 and 01:30 UTC; 02:59:59 as well; 03:00 is 02:00 UTC.
    for name in ["r-2026-10-25T02_30_00", "r-2026-10-25T03_00_00", "r-2026-10-25T01_59_59"]:
        run(folder, name)
    store = runs_at(folder, time=time, zone=ZoneInfo("Europe/Berlin"))
    order = ["r-2026-10-25T03_00_00", "r-2026-10-25T02_30_00", "r-2026-10-25T01_59_59"]
    assert [entry["runId"] for entry in store.recent(3)] == order
    if time != "mtime":
        instant = scanned(store)["r-2026-10-25T02_30_00"].instant
        assert instant == Known(datetime(2026, 10, 25, 1, 30, tzinfo=UTC), "name")


def test_local_names_of_one_shape_are_not_taken_for_instants(folder: Path) -> None:
    """Where an hour is left out, a name in it is later than one after it."""
    # 02:30 of that day does not exist, and stands for 01:30 UTC; 03:00 is 01:00 UTC.
    for name in ["r-2026-03-29T02_30_00", "r-2026-03-29T03_00_00"]:
        run(folder, name)
    store = runs_at(folder, zone=ZoneInfo("Europe/Berlin"))
    assert store.recent(1) == [{"runId": "r-2026-03-29T02_30_00"}]
    assert goes(planned(store, max_count=1)) == ["r-2026-03-29T03_00_00"]


def test_local_times_of_entries_are_read_in_their_zone(folder: Path) -> None:
    """The zone that is set holds for the field of an entry too: two hours ahead in July."""
    run(folder, "a", {"at": "2026-07-25T23:00:00"})
    store = runs_at(folder, time="at", zone=ZoneInfo("Europe/Berlin"))
    assert scanned(store)["a"].instant == Known(datetime(2026, 7, 25, 21, tzinfo=UTC), "at")


def test_an_mtime_is_read_to_the_microsecond(folder: Path) -> None:
    """What mtime says is what the file system says, no more and no less."""
    path = run(folder, "a")
    os.utime(path, ns=(0, 1_784_088_000_123_456_789))
    instant = datetime(2026, 7, 15, 4, 0, 0, 123456, tzinfo=UTC)
    assert scanned(runs_at(folder))["a"].instant == Known(instant, "mtime")


def test_what_has_no_age_counts_as_the_newest(folder: Path) -> None:
    """What a prune would never take stands before all that it could take, also where it is read."""
    run(folder, "a", {"runId": "a", "at": "2026-07-25"})
    run(folder, "b", {"runId": "b"})
    run(folder, "c", {"runId": "c", "at": "1969-07-25"})
    store = runs_at(folder, time="at")
    assert [entry["runId"] for entry in store.recent(3)] == ["b", "a", "c"]
    assert goes(planned(store, max_count=2)) == ["c"]


STAMPED = st.integers(0, 9).map(lambda hour: f"r-2026-07-25T{hour:02}_00_00Z")
NAMES = st.one_of(STAMPED, STAMPED.map(lambda name: f"{name}-x"), st.sampled_from("abcdef"))


@given(
    st.dictionaries(NAMES, st.integers(0, 5), max_size=12),
    st.integers(1, 12),
    st.sampled_from([None, "mtime", "at"]),
)
def test_what_goes_is_always_the_end_of_what_is_recent(
    tmp_path_factory: pytest.TempPathFactory, runs: dict[str, int], cap: int, time: str | None
) -> None:
    """For any names, times and bound: recent(n) is the same before and after, for every n in it."""
    folder = tmp_path_factory.mktemp("runs")
    for name, day in runs.items():
        at = LONG_AGO + timedelta(days=day)
        run(folder, name, {"runId": name, "at": at.isoformat()}, mtime=at)
    store = runs_at(folder, time=time)
    before = store.recent(99)
    assert len(before) == len(runs)
    prune_items(store, Policy(max_count=cap), NOW, name="runs")
    assert store.recent(99) == before[:cap]
    assert sorted(left(folder)) == sorted(entry["runId"] for entry in before[:cap])


# --- what is recent -----------------------------------------------------------------------


def test_the_last_whole_line_counts(folder: Path) -> None:
    """Of a run with several snapshots the last whole one is given; a torn one is not."""
    run(folder, "a", {"n": 1}, {"n": 2})
    with (folder / "a.jsonl").open("a") as file:
        file.write('\n \n{"n": 3')
    assert runs_at(folder).recent(1) == [{"n": 2}]


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"{torn\n", b"[1]\n", b"null\n", b"\xff\xfe\n", b"[" * 9999 + b"\n"]
)
def test_what_cannot_be_read_is_passed_over(folder: Path, content: bytes) -> None:
    """A corrupt artifact takes no place: the next run comes in for it."""
    names = hourly(folder, 4)
    (folder / f"{names[2]}.jsonl").write_bytes(content)
    assert [entry["runId"] for entry in runs_at(folder).recent(2)] == [names[3], names[1]]


@pytest.mark.parametrize("limit", [0, -1])
def test_none_are_recent_where_none_are_asked_for(folder: Path, limit: int) -> None:
    """No limit below one gives anything."""
    hourly(folder, 2)
    assert runs_at(folder).recent(limit) == []


def test_what_another_process_removes_meanwhile_is_no_error(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files that vanish between the listing and the look are passed over, by all who look."""
    names = hourly(folder, 3)
    run(folder, "undated")
    real = os.scandir

    def listed(path: str) -> Any:
        entries = list(real(path))
        (folder / f"{names[2]}.jsonl").unlink(missing_ok=True)
        (folder / "undated.jsonl").unlink(missing_ok=True)

        class Listing(list[Any]):
            def __enter__(self) -> Self:
                return self

            def __exit__(self, *_: object) -> None: ...

        return Listing(entries)

    monkeypatch.setattr(os, "scandir", listed)
    assert [entry["runId"] for entry in runs_at(folder).recent(9)] == [names[1], names[0]]
    run(folder, "undated")
    assert sorted(scanned(runs_at(folder))) == names[:2]
    run(folder, "undated", {"at": "2026-07-01"})
    assert sorted(scanned(runs_at(folder, time="mtime"))) == names[:2]


# --- what stays ---------------------------------------------------------------------------


def test_both_bounds_hold_at_once(folder: Path) -> None:
    """What is too old goes, and of the rest what is too many."""
    names = hourly(folder, 48)
    report = swept(runs_at(folder), rules=keep_for(timedelta(hours=36)), max_count=30)
    # 12 are older than 36 hours (the one of exactly 36 hours stays); of 36 the 6 oldest are over.
    assert (report.expired, report.over_ceiling) == (12, 6)
    assert left(folder) == names[18:]


def test_a_run_on_the_cutoff_stays(folder: Path) -> None:
    """Expired means strictly older: 90 days before 2026-07-26 is 2026-04-27."""
    for name in ["r-2026-04-26T23_59_59Z", "r-2026-04-27T00_00_00Z"]:
        run(folder, name)
    report = swept(runs_at(folder), rules=keep_for(timedelta(days=90)))
    assert [done.id for done in report.outcomes] == ["r-2026-04-26T23_59_59Z"]


def test_the_newest_are_out_of_reach(folder: Path) -> None:
    """The newest `keep_last` stay, however old they are."""
    names = hourly(folder, 10)
    swept(
        runs_at(folder),
        NOW + timedelta(days=99),
        rules=keep_for(timedelta(days=1)),
        keep_last=3,
        breaker=None,
    )
    assert left(folder) == names[7:]


def test_a_run_that_changed_lately_stays(folder: Path) -> None:
    """A run that was changed within the grace is not removed, and the plan says why."""
    names = hourly(folder, 3)
    os.utime(folder / f"{names[0]}.jsonl")
    plan = planned(runs_at(folder, grace=timedelta(hours=1)), max_count=1)
    assert goes(plan) == names[1:]
    said = next(said for said in plan.decisions if said.id == names[0])
    assert said.reason == "veto"
    assert said.rule is not None
    assert said.rule.startswith("changed ")
    assert said.rule.endswith(" ago, within the grace")


@pytest.mark.parametrize(("seconds", "held"), [(3599.5, True), (3601, False), (-5, False)])
def test_the_grace_ends_where_it_is_said_to(
    folder: Path, monkeypatch: pytest.MonkeyPatch, seconds: float, held: bool
) -> None:
    """An hour of grace is an hour; what was changed in the future is not being written."""
    run(folder, "a", mtime=NOW)
    monkeypatch.setattr("keepfor.stores.runs.time.time", lambda: NOW.timestamp() + seconds)
    (item,) = runs_at(folder, grace=timedelta(hours=1)).scan()
    assert bool(item.held) is held


def test_a_run_that_is_open_for_writing_stays(folder: Path) -> None:
    """A run that somebody has open is skipped and told, and the next sweep takes it."""
    names = hourly(folder, 3)
    store = runs_at(folder)
    with (folder / f"{names[0]}.jsonl").open("a"):
        report = swept(store, max_count=1)
    assert (report.applied, report.skipped) == (1, 1)
    assert {done.id: done.why for done in report.outcomes} == {
        names[0]: "somebody has it open for writing",
        names[1]: "",
    }
    assert report.scanned == report.kept + report.applied + report.skipped + report.failed
    assert swept(store, max_count=1).applied == 1


def test_what_changed_since_the_plan_stays(folder: Path) -> None:
    """An item that drifted is skipped and reported; the others go."""
    names = hourly(folder, 4)
    store = runs_at(folder)
    policy = Policy(max_count=1)
    plan = build(store, policy, NOW, name="runs")
    with (folder / f"{names[1]}.jsonl").open("a") as file:
        file.write("{}\n")
    (folder / f"{names[2]}.jsonl").unlink()
    report = apply(plan, store, policy, NOW, trail=Nowhere(), force=True)
    assert {done.id: (done.result, done.why) for done in report.outcomes} == {
        names[0]: ("applied", ""),
        names[1]: ("skipped", "it changed since the plan"),
        names[2]: ("skipped", "it is gone already"),
    }
    assert left(folder) == [names[1], names[3]]


def test_runs_that_came_later_are_out_of_reach(folder: Path) -> None:
    """A plan takes nothing that it did not see, even if it would go by now."""
    names = hourly(folder, 4)
    store = runs_at(folder)
    plan = build(store, Policy(max_count=2), NOW, name="runs")
    run(folder, "rem-2026-07-01T00_00_00.000Z")
    apply(plan, store, Policy(max_count=2), NOW, trail=Nowhere())
    assert left(folder) == ["rem-2026-07-01T00_00_00.000Z", *names[2:]]


def test_only_deletes_are_known(folder: Path) -> None:
    """A run cannot be flagged; a decision that says so fails, and nothing is done."""
    (name,) = hourly(folder, 1)
    (done,) = runs_at(folder).apply([Decision(id=name, action="flag")])
    assert (done.result, done.why) == ("failed", "a run cannot be flagged")
    assert left(folder) == [name]


def test_a_folder_that_vanished_is_no_error(folder: Path) -> None:
    """Where the whole directory is gone, everything in it is gone already."""
    (done,) = runs_at(folder).apply([Decision(id="a", action="delete")])
    assert (done.result, done.why) == ("skipped", "it is gone already")


@pytest.mark.parametrize("instead", ["nothing", "another folder", "a symlink to it"])
def test_a_folder_that_is_moved_away_during_a_sweep_is_left_alone(
    folder: Path, tmp_path: Path, instead: str
) -> None:
    """What went on to a backup is no store any more, however it is reached."""
    names = hourly(folder, 3)
    store = runs_at(folder)
    doomed = [
        Decision(id=item.id, action="delete", fingerprint=item.fingerprint) for item in store.scan()
    ]
    outcomes = store.apply(doomed)
    assert next(outcomes).result == "applied"
    folder.rename(tmp_path / "backup")
    if instead == "another folder":
        folder.mkdir()
    elif instead == "a symlink to it":
        folder.symlink_to(tmp_path / "backup")
    assert [(said.result, said.why) for said in outcomes] == [
        ("skipped", "its folder was moved since the sweep began")
    ] * 2
    assert left(tmp_path / "backup") == names[1:]


def test_another_name_of_a_run_is_reported(folder: Path, tmp_path: Path) -> None:
    """Where a hard link elsewhere still holds a removed run, the report says so."""
    names = hourly(folder, 2)
    os.link(folder / f"{names[0]}.jsonl", tmp_path / "backup")
    report = swept(runs_at(folder), max_count=1)
    assert report.notes == [f"{names[0]}: 1 other name of the file still hold its content"]


# --- one sweep at a time ------------------------------------------------------------------


def test_one_sweep_keeps_another_out(folder: Path) -> None:
    """Two sweeps exclude each other, by whichever path or configuration they come."""
    hourly(folder, 1)
    (folder.parent / "link").symlink_to(folder)
    other = runs_at(folder.parent / "link", time="mtime")
    with runs_at(folder).locked(0.0), pytest.raises(StoreBusy), other.locked(0.0):
        pass
    with runs_at(folder).locked(0.0):
        pass


def test_what_a_killed_sweep_left_is_put_back_by_the_next(folder: Path) -> None:
    """A run that was aside when a sweep was killed is counted again by the next."""
    names = hourly(folder, 3)
    aside = f".{names[0]}.jsonl.keepfor-aside.0123456789ab"
    (folder / f"{names[0]}.jsonl").rename(folder / aside)
    store = runs_at(folder)
    assert store.leftovers() == [str(folder / aside)]
    assert sorted(scanned(store)) == names[1:]
    with store.locked(0.0):
        assert sorted(scanned(store)) == names
    assert store.leftovers() == []


@pytest.mark.parametrize("start", range(1, 60, 7))
def test_a_sweep_killed_anywhere_is_finished_by_the_next(folder: Path, start: int) -> None:
    """Killed anywhere and swept again, the directory holds the newest runs whole, and no more."""
    names = hourly(folder, 12)
    before = {name: (folder / f"{name}.jsonl").read_bytes() for name in names}
    store, policy = runs_at(folder), Policy(max_count=4)
    for steps in range(start, 400, 31):
        if not killed_after(steps, lambda: prune_items(store, policy, NOW, name="runs")):
            break
        # Nothing that stays is ever touched, and what is aside is one run at the most.
        assert names[8:] == left(folder)[-4:]
        assert len(store.leftovers()) <= 1
    prune_items(store, policy, NOW, name="runs")
    assert sorted(os.listdir(folder)) == [f"{name}.jsonl" for name in names[8:]]
    assert all((folder / f"{name}.jsonl").read_bytes() == before[name] for name in names[8:])


@pytest.mark.parametrize("settings", [{"time": "mtime"}, {"unit": "ms"}, {"grace": timedelta(1)}])
def test_a_plan_does_not_outlive_the_way_it_was_read(
    folder: Path, settings: dict[str, Any]
) -> None:
    """What bears on which runs go is part of what a plan is checked against."""
    store = runs_at(folder)
    assert replace(store, **settings).settings != store.settings


def test_progress_is_told(folder: Path) -> None:
    """A scan says how far it is."""
    hourly(folder, 3)
    seen: list[tuple[int, int]] = []
    list(runs_at(folder).scan(lambda done, total: seen.append((done, total))))
    assert seen == [(0, 3), (1, 3), (2, 3)]


@pytest.fixture
def as_nobody(tmp_path: Path) -> Callable[[Callable[[], object]], int]:
    """Runs something as a user who may not do much, and gives its exit code."""

    def running(act: Callable[[], object]) -> int:
        # Only what pytest made for this very test is opened up, as far as it has to be.
        for path in [tmp_path, *tmp_path.parents]:
            mode = path.stat().st_mode
            if not mode & 0o001:
                path.chmod(mode | 0o011)
        child = os.fork()
        if child == 0:
            code = 9
            try:
                if os.getuid() == 0:
                    os.setuid(65534)
                code = 0 if act() else 1
            finally:
                os._exit(code)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    return running


def test_a_folder_that_may_not_be_changed_is_told(
    folder: Path, as_nobody: Callable[[Callable[[], object]], int]
) -> None:
    """Whoever may not remove there is told so for each run, and nothing is half-done."""
    names = hourly(folder, 2)
    folder.chmod(0o555)

    def act() -> bool:
        report = swept(runs_at(folder), max_count=1)
        return (report.failed, report.outcomes[0].why) == (1, "Permission denied")

    assert as_nobody(act) == 0
    folder.chmod(0o755)
    assert left(folder) == names


def test_a_run_that_may_not_be_read_is_of_unknown_age(
    folder: Path, as_nobody: Callable[[Callable[[], object]], int]
) -> None:
    """Where the time is in the entry and the entry is closed to us, the run is kept."""
    run(folder, "a", {"ts": "2026-07-01"})
    run(folder, "b", {"ts": "2026-07-02"}).chmod(0)

    def act() -> bool:
        store = runs_at(folder, time="ts")
        return isinstance(scanned(store)["b"].instant, Unknown) and len(store.recent(5)) == 1

    assert as_nobody(act) == 0


def test_a_folder_that_may_not_be_read_is_refused(
    folder: Path, as_nobody: Callable[[Callable[[], object]], int]
) -> None:
    """Whoever may not look is told whose rights it takes."""
    hourly(folder, 1)
    folder.chmod(0)

    def act() -> bool:
        with pytest.raises(StoreError, match=r"Permission denied\. Run as a user who may read it"):
            list(runs_at(folder).scan())
        return True

    assert as_nobody(act) == 0
    folder.chmod(0o755)
