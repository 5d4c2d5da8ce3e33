"""Notes and sessions on the command line: planned, explained, applied, recalled and watched."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import time_machine

from tests import evolve
from tests.cli.conftest import Place

NOTES = """\
state_dir: state
stores:
  notes:
    preset: evolve-lite
"""
#: The sample, by hand from its README.
FLAGGED, UNUSED, SPARED, OLD_SESSIONS, CASCADED = 14, 5, 4, 3, 1


@pytest.fixture
def root(place: Place) -> Path:
    """The sample of 40 notes and 14 sessions, under the preset for it, at the day it is for."""
    place.configure(NOTES)
    return evolve.rebuild(place.folder)


def said(store: dict[str, Any]) -> list[dict[str, Any]]:
    """What a plan says, in the words of the sample's known right answers."""
    items = [
        {name: item[name] for name in ("id", "action", "reason", "rule")} for item in store["items"]
    ]
    skipped = [
        {"id": item["id"], "action": "skip", "reason": "unused", "rule": item["rule"]}
        for item in store["spared"]
    ]
    return sorted(items + skipped, key=lambda item: str(item["id"]))


# --- plan and apply -----------------------------------------------------------------------


def test_the_sample_gets_its_known_right_answers(place: Place, root: Path) -> None:
    """A plan says of each item just what is known to be right, and touches nothing."""
    before = evolve.files(root)
    store = place.run("plan", "--json").store
    assert said(store) == evolve.expected()
    assert (store["kind"], store["scanned"], store["kept"]) == ("entities", 54, 31)
    assert store["traps"] == []
    assert evolve.files(root) == before


def test_a_status_tells_what_would_go_and_what_would_be_flagged(place: Place, root: Path) -> None:
    """Both are due; one cannot be told from the other by a single number."""
    gone = UNUSED + OLD_SESSIONS + CASCADED
    store = place.run("status", "--json").store
    assert (store["due"], store["flags"]) == (gone, FLAGGED)
    assert f"{gone} of 54 items, {FLAGGED} to be flagged" in place.run("status").out


def test_the_sample_is_applied_as_planned(place: Place, root: Path) -> None:
    """What was to go is gone, what was to be flagged is, and nothing else has changed a byte or an
    mtime."""
    before = evolve.files(root)
    store = place.run("apply", "--yes", "--json").store
    assert (store["outcome"], store["applied"], store["kept"]) == ("done", 23, 31)
    after = evolve.files(root)
    gone = {evolve.file_of(id_) for id_ in evolve.expected_ids("delete")}
    assert len(gone) == UNUSED + OLD_SESSIONS + CASCADED
    assert set(before) - set(after) == gone
    flagged = {evolve.file_of(id_) for id_ in evolve.expected_ids("flag")}
    changed = {name for name, now in after.items() if before[name] != now} - {"audit.log"}
    assert changed == flagged
    for name in flagged:
        text, mtime = after[name]
        assert mtime == before[name][1]
        assert b'\nretention_rule: "stale-guidelines"\n' in text
        kept = [line for line in text.splitlines(True) if not line.startswith(b"retention_")]
        assert b"".join(kept) == before[name][0]


def test_a_second_sweep_changes_nothing(place: Place, root: Path) -> None:
    """What was flagged stays so, and nothing more is written anywhere in the store."""
    place.run("apply", "--yes")
    after = evolve.files(root)
    ran = place.run("apply", "--yes", "--json")
    assert (ran.code, ran.store["outcome"]) == (0, "nothing to do")
    assert evolve.files(root) == after


def test_every_action_is_in_the_products_own_log(place: Place, root: Path) -> None:
    """The preset tells the audit log of each deletion and each flag, below what was there."""
    before = (root / "audit.log").read_text()
    place.run("apply", "--yes")
    after = (root / "audit.log").read_text()
    assert after.startswith(before)
    rows = [json.loads(line) for line in after.removeprefix(before).splitlines()]
    assert {row["event"] for row in rows} == {"retention"}
    told = {(row["entity"], row["action"], row["reason"], row["rule"]) for row in rows}
    assert len(rows) == len(told) == 23
    assert told == {
        (item["id"], item["action"], item["reason"], item["rule"])
        for item in evolve.expected()
        if item["action"] != "skip"
    }


def test_a_person_sees_every_item(place: Place, root: Path) -> None:
    """The text of a plan names each item that goes, is flagged or was spared, with rule and why."""
    text = place.run("plan").out
    assert "  9 of 54 items would be deleted, and 14 flagged.\n" in text
    assert "  delete       9 (3 by age, 1 by cascade, 5 by disuse)\n" in text
    assert "  spare        4 (4 with no access on record)\n" in text
    assert "  keep         27 (27 that no rule took)\n" in text
    assert "8 of 30 have no recorded access" in text
    lines = {line.split()[0]: line.split()[1:] for line in text.splitlines() if "/" in line}
    for item in evolve.expected():
        words = lines[item["id"]]
        wanted = [item["rule"]] if item["action"] == "skip" else [item["action"], item["rule"]]
        assert words[: len(wanted)] == wanted
        assert len(words) > len(wanted) + 3
    assert " ".join(lines["guideline/write-the-newline-last-note-27"]) == (
        "flag stale-guidelines 97d old by its mtime, limit 90d"
    )


def test_a_person_is_asked_about_flags_too(
    place: Place, root: Path, person: Callable[[str], None]
) -> None:
    """The question tells deletions from flags, and a no leaves every file as it was."""
    before = evolve.files(root)
    person("n\n")
    ran = place.run("apply")
    assert ran.code == 7
    assert "Delete 9 items and flag 14 in notes?" in ran.err
    assert evolve.files(root) == before


def test_flags_alone_are_asked_for(place: Place, root: Path, person: Callable[[str], None]) -> None:
    """Where nothing is to be deleted, there is still a question."""
    place.configure(f"{NOTES}    rules: [{{name: old, type: guideline, max_age: 90d}}]\n")
    person("n\n")
    ran = place.run("apply")
    assert ran.code == 7
    # With no other rule, the 14 that are flagged, the 5 unused and the 4 spared are all just old.
    assert "Flag 23 items in notes?" in ran.err


def test_a_saved_plan_leaves_alone_what_changed_since(place: Place, root: Path) -> None:
    """An edited note is skipped and named, the rest is done, and the exit code says so."""
    place.run("plan", "notes", "-o", "plan.json")
    note = root / "entities" / "guideline" / "keep-fixtures-small-note-13.md"
    mtime = note.stat().st_mtime_ns
    note.write_bytes(note.read_bytes() + b"more\n")
    os.utime(note, ns=(mtime, mtime))
    ran = place.run("apply", "plan.json", "--json")
    assert (ran.code, ran.store["applied"], ran.store["skipped"]) == (3, 22, 1)
    (skipped,) = (item for item in ran.store["items"] if item["result"] == "skipped")
    assert skipped["id"] == "guideline/keep-fixtures-small-note-13"
    assert note.read_bytes().endswith(b"more\n")


# --- rules from a file --------------------------------------------------------------------


def test_rules_come_from_the_file_that_is_named(place: Place, root: Path) -> None:
    """`--policy` holds the store to that file alone, in plan, explain and apply."""
    (place.folder / "gentle.json").write_text('{"rules": [{"name": "old", "max_age_days": 400}]}')
    store = place.run("plan", "--policy", "gentle.json", "--json").store
    # Those of the sample's mtimes that lie before 2025-06-21.
    old = {item["id"] for item in store["items"]}
    assert old == {
        "guideline/keep-fixtures-small-note-23",
        "guideline/keep-fixtures-small-note-3",
        "guideline/never-log-raw-prompts-note-2",
        "guideline/never-log-raw-prompts-note-22",
        "guideline/pin-the-locale-in-tests-note-34",
        "trajectories/trajectory_2025-05-08T00-00-00_sess-02.json",
    }
    assert {item["rule"] for item in store["items"]} == {"old"}
    assert store["policy"] == "Flag anything older than 400d."
    found = place.run("explain", "notes", min(old), "--policy", "gentle.json", "--json").json
    assert found["decision"]["rule"] == "old"
    done = place.run("apply", "--yes", "--policy", "gentle.json", "--json").store
    assert {item["id"] for item in done["items"]} == old
    assert (root / "trajectories").exists()


def test_a_plan_by_a_file_of_rules_is_applied_by_it(place: Place, root: Path) -> None:
    """A plan that was made by other rules than hold now is refused as stale."""
    (place.folder / "gentle.yaml").write_text("rules:\n  - {name: old, max_age: 400d}\n")
    place.run("plan", "notes", "--policy", "gentle.yaml", "-o", "plan.json")
    assert place.run("apply", "plan.json").code == 6
    assert place.run("apply", "plan.json", "--policy", "gentle.yaml").code == 0


def test_a_file_of_rules_is_for_notes_only(place: Place, root: Path) -> None:
    """`--policy` on a ledger is refused, and nothing is done to any store."""
    place.write([100.0])
    place.configure(f"{NOTES}  recall: {{kind: ledger, path: recall.jsonl, keep_for: 90d}}\n")
    (place.folder / "rules.yaml").write_text("rules: [{name: old, max_age: 1d}]\n")
    before = place.snapshot()
    ran = place.run("apply", "--yes", "--policy", "rules.yaml")
    assert ran.code == 2
    assert "it is of kind ledger, and this asks for one of kind entities." in ran.err
    assert place.snapshot() == before


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rules: []\n", "rules.yaml:1: rules: the list is empty."),
        ("rules: [{name: a, max_age_day: 9}]\n", "rules.0.max_age_day: this key is unknown."),
        ("other: 1\n", "--policy rules.yaml: it has no `rules:`."),
    ],
)
def test_a_wrong_file_of_rules_deletes_nothing(
    place: Place, root: Path, text: str, message: str
) -> None:
    """What cannot be understood is refused with its place, and the store is as it was."""
    (place.folder / "rules.yaml").write_text(text)
    before = evolve.files(root)
    ran = place.run("apply", "--yes", "--policy", "rules.yaml")
    assert ran.code == 2
    assert message in ran.err
    assert evolve.files(root) == before


# --- explain ------------------------------------------------------------------------------


def test_every_item_is_explained_as_it_is_planned(place: Place, root: Path) -> None:
    """Explain and plan say the same of an item, for one of each fate."""
    planned = place.run("plan", "--json").store
    by_id = {item["id"]: item for item in planned["items"] + planned["spared"]}
    fates = {(item["action"], item["reason"]): id_ for id_, item in by_id.items()}
    assert len(fates) == 5
    for id_ in fates.values():
        assert place.run("explain", "notes", id_, "--json").json["decision"] == {
            key: by_id[id_][key] for key in ("action", "rule", "reason", "bytes", "evidence")
        }


def test_a_kept_note_is_told_what_takes_it_next(place: Place, root: Path) -> None:
    """Of a note that stays, each rule says why it does not match and from when on it would."""
    found = place.run("explain", "notes", "guideline/write-the-newline-last-note-7", "--json").json
    assert found["decision"]["action"] == "keep"
    # Its mtime is 2026-07-18T17:02:24; 90 days later is 2026-10-16.
    assert found["next"] == {
        "due": "2026-10-16T17:02:24Z",
        "action": "flag",
        "rule": "stale-guidelines",
        "reason": "age",
    }
    unused, stale, sessions = found["rules"]
    assert (unused["answer"], unused["due"]) == ("no", "2027-01-14T17:02:24Z")
    assert unused["evidence"]["access"] == "missing"
    assert (stale["answer"], stale["evidence"]["threshold"]) == ("no", "90d")
    assert (sessions["answer"], sessions["reason"], sessions["due"]) == ("no", "type", None)


def test_an_explanation_reads_well(place: Place, root: Path) -> None:
    """The text says what is to happen, why, and what each rule says."""
    text = place.run("explain", "notes", "guideline/close-sqlite-connections-note-15").out
    assert text.splitlines()[:4] == [
        "guideline/close-sqlite-connections-note-15  notes",
        (
            "  It stays, spared from unused-guidelines: no access on record, 353d old by its "
            "mtime, limit 180d."
        ),
        "",
        "  next  nothing, as far as can be told",
    ]
    text = place.run("explain", "notes", "guideline/keep-fixtures-small-note-3").out
    assert "It is to be flagged, by stale-guidelines: 405d old by its mtime, limit 90d." in text
    assert "after 2026-12-18T03:24:56Z it would be deleted by unused-guidelines" in text
    assert "old-sessions       delete  no       it is of another type" in text


def test_an_unknown_item_is_met_with_the_nearest(place: Place, root: Path) -> None:
    """A slip in an id is answered with the id that was meant."""
    ran = place.run("explain", "notes", "guideline/keep-fixtures-small-note-333")
    assert ran.code == 2
    assert "Did you mean guideline/keep-fixtures-small-note-33?" in ran.err


def test_a_run_is_explained_and_a_row_is_not(place: Place) -> None:
    """What has an identity can be explained; a ledger's rows have none."""
    place.write([100.0])
    (place.folder / "runs").mkdir()
    run = place.folder / "runs" / "first.jsonl"
    run.write_text("{}\n")
    os.utime(run, (0, 0))
    place.configure(
        "state_dir: state\nstores:\n"
        "  recall: {kind: ledger, path: recall.jsonl, keep_for: 90d}\n"
        "  rem: {kind: runs, path: runs, keep_for: 90d}\n"
    )
    assert "It is to be deleted, by keep_for" in place.run("explain", "rem", "first").out
    ran = place.run("explain", "recall", "first")
    assert ran.code == 2
    assert "this asks for one of kind entities or runs. Name one that is: rem." in ran.err


@pytest.mark.parametrize(
    "text",
    [
        b"---\ntype: guideline\n" + b"x" * 99,
        b"---\ntype: guideline\ntype: other\n---\n",
        b"---\ntype: [a, b]\n---\n",
    ],
)
def test_what_cannot_be_judged_stays_and_is_named(place: Place, root: Path, text: bytes) -> None:
    """A note that cannot be told by its frontmatter is named by plan, and explained as planned."""
    name = "guideline/keep-fixtures-small-note-3"
    note = root / "entities" / f"{name}.md"
    times = note.stat()
    note.write_bytes(text)
    os.utime(note, ns=(times.st_atime_ns, times.st_mtime_ns))
    planned = place.run("plan", "--json").store
    assert name not in {item["id"] for item in planned["items"]}
    (said,) = (item for item in planned["spared"] if item["id"] == name)
    assert said["reason"] == "veto"
    assert name in place.run("plan").out
    found = place.run("explain", "notes", name, "--json").json["decision"]
    assert found == {key: said[key] for key in found}
    assert f"It stays: {said['rule']}." in place.run("explain", "notes", name).out


def test_a_log_that_is_torn_is_named(place: Place, root: Path) -> None:
    """Lines of the log that cannot be read are counted in a note of the plan."""
    log = root / "audit.log"
    log.write_bytes(b"{broken\n" + log.read_bytes())
    (note,) = (each for each in place.run("plan", "--json").store["notes"] if "audit.log" in each)
    assert "1 line" in note


# --- access -------------------------------------------------------------------------------


def test_a_recorded_access_saves_a_note(place: Place, root: Path) -> None:
    """A note that would have gone as unused stays once a recall is recorded; no note is touched."""
    id_ = "guideline/keep-fixtures-small-note-13"
    notes = {name: at for name, at in evolve.files(root).items() if name != "audit.log"}
    ran = place.run("access", "notes", id_, "--json")
    assert (ran.code, ran.json["recorded"], ran.json["unknown"]) == (0, [id_], [])
    row = json.loads((root / "audit.log").read_text().splitlines()[-1])
    assert (row["event"], row["entities"]) == ("recall", [id_])
    assert {name: at for name, at in evolve.files(root).items() if name != "audit.log"} == notes
    items = {item["id"]: item["action"] for item in place.run("plan", "--json").store["items"]}
    assert items[id_] == "flag"


def test_an_access_to_nothing_is_told(place: Place, root: Path) -> None:
    """A wrong id is not recorded and not passed over in silence."""
    id_ = "guideline/keep-fixtures-small-note-13"
    ran = place.run("access", "notes", f"{id_}.md", id_, "--json")
    assert (ran.code, ran.json["recorded"], ran.json["unknown"]) == (3, [id_], [f"{id_}.md"])
    assert f"Did you mean {id_}?" in ran.err
    assert json.loads((root / "audit.log").read_text().splitlines()[-1])["entities"] == [id_]
    before = (root / "audit.log").read_bytes()
    assert place.run("access", "notes", "nothing").code == 2
    assert (root / "audit.log").read_bytes() == before


# --- watched ------------------------------------------------------------------------------


def test_what_was_done_is_on_record(place: Place, root: Path) -> None:
    """Log and status tell deletions from flags."""
    place.run("apply", "--yes")
    head, row = (line.split() for line in place.run("log").out.splitlines())
    assert head[3:5] == ["deleted", "flagged"]
    assert row[4:8] == ["9", "of", "54", "14"]
    text = place.run("status").out
    assert "by apply: done, 9 deleted, 14 flagged" in text
    assert "45 items" in text
    assert place.run("check").out == "notes: in order (45 items, none overdue).\n"


def test_a_late_store_fails_the_check(place: Place, root: Path) -> None:
    """What was due for longer than the grace is told by `check`."""
    ran = place.run("check")
    assert ran.code == 4
    assert "notes: its oldest item has been due for " in ran.out


def test_a_store_in_the_background_is_swept(place: Place, root: Path) -> None:
    """`run --once` does what apply does."""
    ran = place.run("run", "--once", "--json")
    assert (ran.code, ran.store["outcome"], ran.store["applied"]) == (0, "done", 23)
    assert not (root / "entities/guideline/keep-fixtures-small-note-13.md").exists()


def test_traps_are_told_before_anything_is_done(
    place: Place, root: Path, frozen: time_machine.Traveller
) -> None:
    """A rule that can never fire, and a type that no item has, are told by check, plan, apply and
    run."""
    place.configure(
        f"""{NOTES}    rules:
      - {{name: stale, type: guideline, max_age: 90d}}
      - {{name: unused, type: guideline, max_unused: 180d, action: delete}}
      - {{name: typo, type: guidline, max_age: 90d}}
"""
    )
    checked = place.run("check")
    assert checked.code == 2
    assert "notes: unused: it fires at most on items that were changed after" in checked.out
    assert "notes: typo: no item is of type 'guidline'." in checked.out
    problems = {
        each["what"].partition(":")[0]: each
        for each in place.run("check", "--json").store["findings"]
    }
    assert (problems["unused"]["problem"], problems["unused"]["exit_code"]) == ("trap", 2)
    # That no item is of a type may come with time, or by a sweep, and fails no monitor.
    assert (problems["typo"]["problem"], problems["typo"]["exit_code"]) == ("idle", 0)
    planned = place.run("plan")
    assert "  trap         typo: no item is of type 'guidline'." in planned.out
    assert [trap["rule"] for trap in place.run("plan", "--json").store["traps"]] == [
        "unused",
        "typo",
    ]
    ran = place.run("run", "--once")
    assert "event=trap store=notes rule=unused" in ran.err
    applied = place.run("apply", "--yes")
    assert "keepfor: notes: typo: no item is of type 'guidline'." in applied.err


def test_a_store_without_rules_says_so(place: Place, root: Path) -> None:
    """Without the product's file nothing goes, and status and check say why."""
    (place.folder / "evolve.config.yaml").unlink()
    assert "Nothing would be deleted or flagged of 54 items." in place.run("plan").out
    assert "it has no rules" in place.run("status").out
    ran = place.run("check")
    assert ran.code == 0
    assert "it has no rules, so nothing in it is ever flagged or deleted. Write rules" in ran.out


def test_a_store_that_is_not_there_is_told(place: Place) -> None:
    """A path that leads nowhere is no empty success."""
    place.configure(f"{NOTES}    path: nowhere\n    rules: [{{name: a, max_age: 1d}}]\n")
    assert "There is nothing there yet." in place.run("plan").out
    assert "not even its folder" in place.run("check").out
    assert place.run("access", "notes", "a").code == 2
    assert not (place.folder / "nowhere").exists()
