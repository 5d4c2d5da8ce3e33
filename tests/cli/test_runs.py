"""A directory of runs on the command line: shown before it is swept, and its newest runs read."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import time_machine

from tests.cli.conftest import NOW, RECALL, Place
from tests.neo import rebuild
from tests.runs import hourly, left, run

REM = "stores: {{rem: {{kind: runs, path: rem-runs, {0}}}}}\nstate_dir: state\n"


@pytest.fixture
def rem(place: Place) -> Path:
    """The sample of 260 runs, of which a cap of 200 leaves the 200 newest, at NOW."""
    place.configure(REM.format("max_count: 200"))
    return rebuild(place.folder / "rem-runs")


def held(place: Place, policy: str, runs: int = 0) -> list[str]:
    """A directory of so many hourly runs, held to a policy."""
    place.configure(REM.format(policy))
    folder = place.folder / "rem-runs"
    folder.mkdir()
    return hourly(folder, runs)


# --- the main job -------------------------------------------------------------------------


def test_a_person_sees_what_would_go(place: Place, rem: Path) -> None:
    """The plan counts runs, says why the first of them would go, and touches nothing."""
    before = place.snapshot()
    ran = place.run("plan")
    assert ran.code == 0
    assert "60 of 260 runs would go." in ran.out
    assert "policy        Above 200 the oldest go." in ran.out
    assert "rem-2026-07-15T04_00_00.000Z  above the ceiling of 200" in ran.out
    assert "And 50 more; --json shows all." in ran.out
    assert "unreadable" not in ran.out
    assert place.snapshot() == before


def test_a_program_sees_all_of_it(place: Place, rem: Path) -> None:
    """The document names each run that would go, with what it was decided on."""
    store = place.run("plan", "--json").store
    assert (store["kind"], store["exists"], store["cutoff"]) == ("runs", True, None)
    assert (store["scanned"], store["kept"], store["applied"]) == (260, 200, 60)
    assert store["over_ceiling"] == len(store["items"]) == 60
    assert store["items"][0] == {
        "id": "rem-2026-07-15T04_00_00.000Z",
        "action": "delete",
        "rule": "max_count",
        "reason": "count",
        "bytes": 1007,
        "evidence": {"instant": "2026-07-15T04:00:00+00:00", "ceiling": 200, "excess": 60},
    }


def test_the_sample_is_swept_to_200(place: Place, rem: Path) -> None:
    """The 60 oldest of 260 are gone after an apply, the trail names them, and status says so."""
    newest = place.run("recent", "rem", "-n", "200", "--json").json["runs"]
    ran = place.run("apply", "--yes")
    assert ran.code == 0
    assert "60 of 260 runs are gone." in ran.out
    assert left(rem)[0] == "rem-2026-07-17T16_00_00.000Z"
    assert len(left(rem)) == 200
    assert place.run("recent", "rem", "-n", "999", "--json").json["runs"] == newest
    text = place.run("status").out
    assert "You have 8.3 days of history in 200 runs, 196.4 KiB." in text
    assert "last sweep  2026-07-26T00:00:00Z by apply: done, 60 deleted" in text
    assert "60 of 260" in place.run("log").out
    records = (place.folder / "state" / "trail.jsonl").read_text().splitlines()
    items = json.loads(records[-1])["items"]
    assert len(items) == 60
    assert items[0]["id"] == "rem-2026-07-15T04_00_00.000Z"
    assert place.run("check").code == 0


def test_a_saved_plan_is_carried_out(place: Place, rem: Path) -> None:
    """A plan in a file takes what it named, once."""
    assert place.run("plan", "rem", "-o", "plan.json").code == 0
    assert place.run("apply", "plan.json").code == 0
    assert len(left(rem)) == 200
    assert place.run("apply", "plan.json").code == 6


def test_a_person_is_asked_about_runs(
    place: Place, rem: Path, person: Callable[[str], None]
) -> None:
    """The question counts what is to go by what it is."""
    person("n\n")
    ran = place.run("apply")
    assert ran.code == 7
    assert "Delete 60 runs from rem?" in ran.out + ran.err
    assert len(left(rem)) == 260


def test_a_question_about_several_kinds_counts_each(
    place: Place, rem: Path, person: Callable[[str], None]
) -> None:
    """Rows and runs are told apart in the question."""
    place.configure(f"{RECALL}  rem: {{kind: runs, path: rem-runs, max_count: 259}}\n")
    place.write([100, 99, 1])
    person("n\n")
    ran = place.run("apply")
    assert "Delete 2 rows and 1 run from recall and rem?" in ran.out + ran.err


# --- how it stands ------------------------------------------------------------------------


def test_status_tells_how_a_directory_stands(place: Place, rem: Path) -> None:
    """Status counts runs, and the oldest is the oldest that is there, due or not."""
    text = place.run("status").out
    assert "You have 10.8 days of history in 260 runs, 255.4 KiB." in text
    assert "oldest      2026-07-15T04:00:00Z, 10.8 days ago" in text
    assert "newest      2026-07-25T23:00:00Z" in text
    assert "due now     60 of 260 runs" in text
    # The 201st run began on 2026-07-23 at 12:00, and was one too many from then on.
    assert "lag         2d12h" in text
    assert "degraded" not in text
    store = place.run("status", "--json").store
    assert (store["rows"], store["due"], store["degraded"]) == (260, 60, None)
    assert store["lag"] == 60 * 3600


def test_check_fails_for_a_cap_that_nobody_applies(
    place: Place, frozen: time_machine.Traveller
) -> None:
    """A directory that has been over its cap for longer than a day is behind its policy."""
    names = held(place, "max_count: 3", 4)
    assert place.run("check").out == "rem: in order (4 runs, none overdue).\n"
    # The last run, which was one too many, began an hour before NOW.
    frozen.move_to(NOW + timedelta(hours=23, seconds=1))
    ran = place.run("check")
    assert ran.code == 4
    assert "rem: its oldest run has been due for 1d, and the grace is 1d." in ran.out
    assert len(names) == 4


def test_an_unbounded_directory_says_so(place: Place) -> None:
    """Without a bound, status and check say what that costs, and do not fail for it."""
    held(place, "max_count: off", 3)
    ran = place.run("check")
    assert ran.code == 0
    assert "rem: nothing bounds it, so it grows with every run" in ran.out
    (finding,) = place.run("check", "--json").store["findings"]
    assert (finding["problem"], finding["exit_code"]) == ("unbounded", 0)
    assert place.run("check", "--json").store["ok"] is True
    assert "degraded    nothing bounds it" in place.run("status").out
    assert place.run("status", "--json").store["degraded"].startswith("nothing bounds it")
    assert "policy      Runs stay for ever." in place.run("status").out


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ("max_count: 5", "Above 5 the oldest go."),
        ("keep_for: 36h", "Runs older than 1d12h go."),
        ("max_bytes: 1KiB", "Above 1KiB the oldest go."),
        (
            "keep_for: 90d, max_count: 9, keep_last: 2",
            "Runs older than 90d go; above 9 the oldest go; the newest 2 always stay.",
        ),
        ("keep_for: forever, keep_last: 2", "Runs stay for ever."),
    ],
)
def test_the_policy_is_said_in_words(place: Place, policy: str, words: str) -> None:
    """What a directory is held to is one sentence."""
    held(place, policy, 1)
    assert place.run("plan", "--json").store["policy"] == words


def test_nothing_is_there_yet(place: Place) -> None:
    """A directory that nobody made yet is no failure, and none is made."""
    place.configure(REM.format("max_count: 3"))
    assert "There is nothing there yet." in place.run("plan").out
    assert "There is nothing there yet." in place.run("status").out
    checked = place.run("check")
    assert checked.code == 0
    assert checked.out.startswith(f"rem: no runs yet at {place.folder}/rem-runs. ")
    assert place.run("apply", "--yes").code == 0
    assert place.run("recent", "rem").out == "There are no runs that can be read.\n"
    assert not (place.folder / "rem-runs").exists()


def test_what_a_killed_sweep_left_is_named(place: Place) -> None:
    """A run that is aside fails the check, and an apply puts it back."""
    names = held(place, "max_count: 3", 2)
    folder = place.folder / "rem-runs"
    aside = folder / f".{names[0]}.jsonl.keepfor-aside.0123456789ab"
    (folder / f"{names[0]}.jsonl").rename(aside)
    ran = place.run("check")
    assert ran.code == 1
    assert f"a sweep was killed while it removed a run, which is aside as {aside}." in ran.out
    assert str(aside) in place.run("status").out
    place.run("apply", "--yes")
    assert left(folder) == names
    assert place.run("check").code == 0


# --- what goes and what stays -------------------------------------------------------------


def test_an_age_is_told_with_where_it_is_from(place: Place) -> None:
    """A run that is too old says how old it is, and what that was read from."""
    held(place, "keep_for: 2d, time: at, breaker: off")
    for name, at in [("a", "2026-07-23T12:00:00Z"), ("b", "2026-07-25T00:00:00Z")]:
        run(place.folder / "rem-runs", name, {"at": at})
    text = place.run("plan").out
    assert "a    2.5 days old by its at" in text
    assert "cutoff        2026-07-24T00:00:00Z, judged at 2026-07-26T00:00:00Z" in text
    assert place.run("apply", "--yes").code == 0
    assert left(place.folder / "rem-runs") == ["b"]


def test_bytes_have_a_ceiling_too(place: Place) -> None:
    """Above `max_bytes` the oldest go until the rest fits."""
    names = held(place, "max_bytes: 100B, breaker: off", 3)
    size = (place.folder / "rem-runs" / f"{names[0]}.jsonl").stat().st_size
    assert size == 42
    assert f"{names[0]}  above the ceiling of 100 bytes" in place.run("plan").out
    place.run("apply", "--yes")
    assert left(place.folder / "rem-runs") == names[1:]


def test_a_run_that_is_being_written_stays(place: Place) -> None:
    """A run that changed within the grace is kept; one that is open is skipped, and told."""
    names = held(place, "max_count: 2, breaker: off", 4)
    folder = place.folder / "rem-runs"
    os.utime(folder / f"{names[0]}.jsonl", (NOW.timestamp() - 1800,) * 2)
    with (folder / f"{names[1]}.jsonl").open("a"):
        ran = place.run("apply", "--yes")
        assert ran.code == 3
        assert "1 of 4 runs is gone." in ran.out
        assert f"skipped       {names[1]}: somebody has it open for writing" in ran.out
    assert left(folder) == [names[0], names[1], names[3]]


def test_many_that_stay_are_not_all_shown(
    place: Place, monkeypatch: pytest.MonkeyPatch, frozen: time_machine.Traveller
) -> None:
    """A person reads the first ten of what was not done, a program all of it."""
    held(place, "max_count: 1, breaker: off", 14)
    real = os.rename

    def refused(source: str, target: str, **where: Any) -> None:
        if ".keepfor-aside." in str(target):
            raise PermissionError(13, "Permission denied")
        real(source, target, **where)

    monkeypatch.setattr(os, "rename", refused)
    ran = place.run("apply", "--yes")
    assert ran.code == 3
    assert ran.out.count(": Permission denied") == 10
    assert "and 3 more; --json shows all" in ran.out
    frozen.move_to(NOW + timedelta(seconds=1))
    items = place.run("apply", "--yes", "--json").store["items"]
    assert [item["result"] for item in items] == ["failed"] * 13
    assert items[0]["why"] == "Permission denied"


def test_the_breaker_holds_for_runs(place: Place) -> None:
    """More than half of ten runs go only where somebody insists."""
    names = held(place, "max_count: 4", 10)
    assert place.run("apply", "--yes").code == 5
    assert left(place.folder / "rem-runs") == names
    assert place.run("apply", "--yes", "--force").code == 0
    assert left(place.folder / "rem-runs") == names[6:]


def test_a_wrong_field_is_refused(place: Place) -> None:
    """A field that the entries do not carry fails the plan, with one that would do."""
    held(place, "max_count: 1, time: finished")
    run(place.folder / "rem-runs", "a", {"completedAt": 1_784_090_632_639})
    ran = place.run("plan")
    assert ran.code == 1
    assert "a run here has a time in 'completedAt'" in ran.err


def test_a_file_is_no_directory_of_runs(place: Place) -> None:
    """A file where the folder should be is told as what it is."""
    place.configure(REM.format("max_count: 1"))
    (place.folder / "rem-runs").write_text("")
    ran = place.run("plan")
    assert ran.code == 1
    assert "it is not a folder. Give the path of the folder that holds them." in ran.err


# --- what is recent -----------------------------------------------------------------------


def test_the_newest_runs_are_projected(place: Place, rem: Path) -> None:
    """By default a person reads the usual fields of the ten newest runs, the newest first."""
    lines = place.run("recent", "rem").out.splitlines()
    assert lines[0].split() == [
        "runId", "outcome", "wallClockMs", "cycleOverflowRatio", "cycleOverflowSignal"
    ]  # fmt: skip
    assert lines[1].split() == [
        "rem-2026-07-25T23:00:00.000Z", "failed", "371386", "0.10316277777777778", "false"
    ]  # fmt: skip
    assert len(lines) == 11


def test_a_program_gets_the_newest_runs(place: Place, rem: Path) -> None:
    """The document has the fields that were shown, and their values as they are."""
    document = place.run("recent", "rem", "-n", "2", "--json").json
    assert document["store"] == "rem"
    assert [run["runId"] for run in document["runs"]] == [
        "rem-2026-07-25T23:00:00.000Z",
        "rem-2026-07-25T22:00:00.000Z",
    ]
    assert document["runs"][0]["cycleOverflowSignal"] is False
    assert set(document["runs"][0]) == set(document["fields"])


def test_other_fields_can_be_asked_for(place: Place) -> None:
    """Fields are named by commas, a dotted path reaches into objects, and what is absent is so."""
    held(place, "max_count: 5")
    run(place.folder / "rem-runs", "a-2026-07-01", {"runId": "a", "at": {"end": 5}, "x.y": "dot"})
    run(place.folder / "rem-runs", "b-2026-07-02", {"runId": "b", "at": 7, "list": [1, "ü"]})
    ran = place.run("recent", "rem", "--fields", "runId, at.end,x.y,list,runId")
    assert [line.split() for line in ran.out.splitlines()] == [
        ["runId", "at.end", "x.y", "list"],
        ["b", "-", "-", "[1,", '"ü"]'],
        ["a", "5", "dot", "-"],
    ]
    document = place.run("recent", "rem", "--fields", "at.end", "--json").json
    assert document["runs"] == [{}, {"at.end": 5}]
    assert document["fields"] == ["at.end"]


def test_usual_fields_that_no_run_has_are_left_out(place: Place) -> None:
    """Only those of the usual fields are shown that one of the runs has."""
    held(place, "max_count: 5")
    run(place.folder / "rem-runs", "a", {"outcome": "ok"})
    assert place.run("recent", "rem").out == "outcome\nok\n"
    run(place.folder / "rem-runs", "a", {"other": "ok"})
    ran = place.run("recent", "rem")
    assert ran.out == "None of the usual fields is there; name some with --fields.\n"


@pytest.mark.parametrize("fields", ["", "a,,b", ",", "a..b", "."])
def test_fields_that_name_nothing_are_refused(place: Place, rem: Path, fields: str) -> None:
    """An empty name among the fields is a slip."""
    ran = place.run("recent", "rem", "--fields", fields)
    assert ran.code == 2
    assert "--fields" in ran.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["recent", "recall"], "recall: it is of kind ledger, and this asks for one of kind runs."),
        (["trace", "rem", "a"], "rem: it is of kind runs, and this asks for one of kind ledger."),
        (["count", "rem", "--since", "1d"], "Name one that is: recall."),
    ],
)
def test_a_verb_for_another_kind_of_store_says_which(
    place: Place, arguments: list[str], message: str
) -> None:
    """What only makes sense for one kind of store is refused for another, with those that fit."""
    place.configure(f"{RECALL}  rem: {{kind: runs, path: rem-runs, max_count: 1}}\n")
    ran = place.run(*arguments)
    assert ran.code == 2
    assert message in ran.err
