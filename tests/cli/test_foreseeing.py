"""`forecast`, `diff` and `why`: what is to come, what a change would do, why it is gone."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
import time_machine

from tests import caesar, evolve, neo
from tests.cli.conftest import NOW, RECALL, Place

NOTES = "state_dir: state\nstores: {notes: {preset: evolve-lite}}\n"


# --- forecast -----------------------------------------------------------------------------


def test_the_sample_is_foreseen(place: Place) -> None:
    """600 rows over 120 days are five a day, and settle at 450 under 90 days."""
    place.sample()
    told = place.run("forecast", "--json").store
    assert told["count"] == 600
    assert told["rate"] == pytest.approx(5, abs=0.1)
    assert told["settles"] == pytest.approx(450, abs=9)
    assert (told["measured"], told["sure"], told["cuts"]) == (90, "fair", [])
    assert len(told["weeks"]) == 13
    # What is due already, and a week of five a day.
    assert told["weeks"][0]["count"] == pytest.approx(151 + 35, abs=5)


def test_a_person_reads_it_in_words(place: Place) -> None:
    """Rate, where it settles, and what cuts it short stand there with how sure that is."""
    place.configure(RECALL.replace("90d", "90d\n    max_bytes: 10KiB\n    breaker: off"))
    place.write([day + 0.5 for day in range(60) for _ in range(5)])
    out = place.run("forecast").out
    assert "5 rows a day" in out
    assert "how sure    measured over 59 days" in out
    assert "10.0 KiB is reached already; at this rate the effective window is 57 days" in out
    assert "not 90 days" in out
    assert out.count("2026-") == 13


def test_a_short_history_is_told_to_be_a_guess(place: Place) -> None:
    """Two days say little, and an empty ledger nothing."""
    place.write([0.5, 1.5])
    assert "a guess, for it was measured over 1 day only" in place.run("forecast").out
    place.write([])
    out = place.run("forecast").out
    assert "there is nothing to measure yet" in out
    assert "nobody can tell yet" in out


def test_every_kind_of_store_is_foreseen(place: Place) -> None:
    """Runs by the hour, rows of a table by type, notes by theirs: none is left out."""
    neo.rebuild(place.folder / "rem-runs")
    caesar.rebuild(place.folder)
    evolve.rebuild(place.folder)
    place.configure(
        "state_dir: state\n"
        "stores:\n"
        "  rem: {preset: neo, path: rem-runs}\n"
        "  audit: {preset: caesar, url: 'sqlite:///caesar.sqlite3', keep_for: 90d}\n"
        "  notes: {preset: evolve-lite}\n"
    )
    ran = place.run("forecast", "--json")
    assert ran.code == 0
    rem, audit, notes = ran.json["stores"]
    # 260 hourly runs: 24 a day, capped at 200, which is 8.3 days of them.
    assert rem["rate"] == pytest.approx(24, abs=0.2)
    assert rem["cuts"][0]["window"] == pytest.approx(200 / 24, abs=0.1)
    assert audit["count"] == 600
    assert notes["count"] == 54
    assert notes["unforeseen"] == ["unused-guidelines"]


def test_a_store_that_cannot_be_read_keeps_no_other_from_being_foreseen(place: Place) -> None:
    """It is told with what is the matter, and the exit code says so."""
    place.configure(f"{RECALL}  other: {{kind: ledger, path: folder, keep_for: 1d}}\n")
    (place.folder / "folder").mkdir()
    place.sample()
    ran = place.run("forecast", "--json")
    recall, other = ran.json["stores"]
    assert ran.code == 1
    assert recall["count"] == 600
    assert set(other) == {"store", "error"}


def test_looking_ahead_writes_nothing(place: Place) -> None:
    """No byte and no time of a file changes."""
    place.sample()
    before = place.snapshot()
    place.run("forecast")
    assert place.snapshot() == before


# --- diff ---------------------------------------------------------------------------------


def compared(place: Place, old: str, new: str, *more: str) -> Any:
    (place.folder / "old.yaml").write_text(old, encoding="utf-8")
    (place.folder / "new.yaml").write_text(new, encoding="utf-8")
    return place.run("diff", "old.yaml", "new.yaml", *more, "--json").store


def test_a_shorter_window_condemns(place: Place) -> None:
    """From 90 days to 30, the sample loses 447 of its 600 rows instead of 151: 296 more."""
    place.sample()
    told = compared(place, RECALL, RECALL.replace("90d", "30d"))
    assert (told["total"], told["before"], told["after"], told["left"]) == (600, 151, 447, 304)
    (change,) = told["changes"]
    assert (change["kind"], change["rule"], change["count"]) == ("condemned", "keep_for", 296)
    assert change["examples"][0].startswith("from 2026-04-27T")


def test_a_longer_window_spares(place: Place) -> None:
    """The other way round, the same 296 are spared."""
    place.sample()
    told = compared(place, RECALL.replace("90d", "30d"), RECALL)
    (change,) = told["changes"]
    assert (change["kind"], change["count"], told["left"]) == ("spared", 296, 304)


def test_the_same_policy_changes_nothing(place: Place) -> None:
    """All fare as before, and that is said."""
    place.sample()
    assert compared(place, RECALL, RECALL)["changes"] == []
    assert "All 600 rows fare as before." in place.run("diff", "old.yaml", "new.yaml").out


def test_notes_are_told_by_name(place: Place) -> None:
    """Flags that become deletions are condemned by the rule that takes them, with examples."""
    evolve.rebuild(place.folder)
    rules = "notes: {preset: evolve-lite, rules: [{name: old, max_age: 90d, action: %s}]}"
    flags, deletes = (
        f"state_dir: state\nstores: {{{rules % action}}}\n" for action in ("flag", "delete")
    )
    told = compared(place, flags, deletes)
    (change,) = told["changes"]
    assert (change["kind"], change["rule"]) == ("condemned", "old")
    assert change["count"] == told["after"] > told["before"] == 0
    assert len(change["examples"]) == 5
    (back,) = compared(place, deletes, flags)["changes"]
    assert (back["kind"], back["count"]) == ("spared", change["count"])


def test_a_table_is_compared_by_type(place: Place) -> None:
    """A type that gets a time of its own is told as such: 150 rows go by 90 days, 300 by 60."""
    caesar.rebuild(place.folder)
    old = (
        "stores: {audit: {kind: table, url: 'sqlite:///caesar.sqlite3', table: audit_log, "
        "key: id, time: ts, keep_for: 90d, "
        "dependents: [{table: semantic_chunks, column: audit_log_id}]}}\n"
    )
    told = compared(place, old, old.replace("90d", "forever"))
    (change,) = told["changes"]
    assert (change["kind"], change["rule"], change["count"]) == ("spared", "keep_for", 150)
    assert change["examples"] == ["150 of 2026-04-26T23:00:05.194828+00:00"]


def test_a_type_that_only_one_policy_names_is_compared_with_itself(place: Place) -> None:
    """Where denials get 30 days beside the 90 of all, only theirs between the two are condemned."""
    database = caesar.rebuild(place.folder)
    old = (
        "stores: {audit: {kind: table, url: 'sqlite:///caesar.sqlite3', table: audit_log, "
        "key: id, time: ts, type: event_type, keep_for: 90d, "
        "dependents: [{table: semantic_chunks, column: audit_log_id}]}}\n"
    )
    new = old.replace(
        "keep_for: 90d", "keep_for: 90d, rules: [{type: policy.denied, keep_for: 30d}]"
    )
    between = [
        row
        for row in caesar.rows(database)["audit_log"]
        if row[2] == "policy.denied" and "2026-04-27" <= row[1] < "2026-06-26"
    ]
    told = compared(place, old, new)
    (change,) = told["changes"]
    assert (change["kind"], change["count"]) == ("condemned", len(between))
    assert change["rule"].endswith("(policy.denied)")
    assert told["after"] == 150 + len(between)


def test_a_ceiling_instead_of_an_age_is_compared_by_what_goes(place: Place) -> None:
    """Rows that one policy takes by age and the other by size fare as before."""
    place.write([day + 0.5 for day in range(20)])
    size = (place.folder / "recall.jsonl").stat().st_size // 20
    age = RECALL.replace("90d", "10d\n    breaker: off")
    ceiling = RECALL.replace("keep_for: 90d", f"max_bytes: {size * 13}B\n    breaker: off")
    told = compared(place, age, ceiling)
    # By age the ten oldest go; above 13 rows' bytes, down to 80 % of them, it is ten too.
    assert (told["before"], told["after"], told["changes"]) == (10, 10, [])


def test_a_store_that_only_one_file_knows_is_refused_by_name(place: Place) -> None:
    """Without a store in common there is nothing to compare, and a wrong name is told."""
    place.sample()
    (place.folder / "old.yaml").write_text(RECALL, encoding="utf-8")
    (place.folder / "new.yaml").write_text(RECALL.replace("recall:", "other:"), encoding="utf-8")
    ran = place.run("diff", "old.yaml", "new.yaml")
    assert (ran.code, ran.out) == (2, "")
    assert "no store in common" in ran.err
    ran = place.run("diff", "old.yaml", "old.yaml", "audit")
    assert ran.code == 2
    assert "audit" in ran.err


# --- why ----------------------------------------------------------------------------------


@pytest.fixture
def swept(place: Place) -> Place:
    """The sample of notes, swept at its day."""
    evolve.rebuild(place.folder)
    place.configure(NOTES)
    assert place.run("apply", "--yes").code == 0
    return place


def why(place: Place, *arguments: str) -> Any:
    ran = place.run("why", *arguments, "--json")
    assert ran.code == 0
    return ran.json


def test_what_a_sweep_took_is_told_with_its_rule(swept: Place) -> None:
    """When, by which rule, why and who asked for it."""
    told = why(swept, "notes", "guideline/close-sqlite-connections-note-5")
    assert (told["state"], told["rule"], told["reason"], told["by"]) == (
        "deleted",
        "unused-guidelines",
        "unused",
        "apply",
    )
    assert told["at"] == "2026-07-26T00:00:00Z"
    out = swept.run("why", "notes", "guideline/close-sqlite-connections-note-5").out
    assert "It was deleted at 2026-07-26T00:00:00Z, by unused-guidelines (unused)" in out


def test_what_went_along_names_what_it_was_made_from(swept: Place) -> None:
    """A note that a session took along went by the session's rule."""
    told = why(swept, "notes", "guideline/use-temp-files-for-json-transfer-note-10")
    assert told["rule"] == "old-sessions"
    assert told["reason"] == "cascade:trajectory_2025-05-08T00-00-00_sess-02.json"


def test_what_is_there_is_told_to_be(swept: Place) -> None:
    """A note that was flagged is not gone."""
    told = why(swept, "notes", "guideline/keep-fixtures-small-note-3")
    assert (told["state"], told["rule"], told["at"]) == ("there", None, None)


def test_what_was_never_there_is_on_no_record(swept: Place) -> None:
    """While the trail is whole, it can be told that no sweep took it."""
    assert why(swept, "notes", "guideline/nothing")["state"] == "not on record"


def test_a_trail_that_forgets_says_so(swept: Place, frozen: time_machine.Traveller) -> None:
    """Beyond where the trail reaches back, nobody can tell."""
    trail = swept.folder / "state" / "trail.jsonl"
    records = [json.loads(line) for line in trail.read_text().splitlines()]
    trail.write_text(json.dumps(records[-1] | {"items": []}) + "\n")
    told = why(swept, "notes", "guideline/close-sqlite-connections-note-5")
    assert (told["state"], told["since"]) == ("forgotten", "2026-07-26T00:00:00Z")
    out = swept.run("why", "notes", "guideline/close-sqlite-connections-note-5").out
    assert "forgotten what was done before 2026-07-26T00:00:00Z" in out


def test_rows_of_a_time_are_told_by_the_first_sweep_that_passed_it(
    place: Place, frozen: time_machine.Traveller
) -> None:
    """What was 100 days old went with the first sweep, and a later one has no part in it."""
    place.write([100, 80, 1])
    place.run("apply", "--yes", "--force")
    frozen.shift(timedelta(days=20))
    place.run("apply", "--yes", "--force")
    old, younger = ((NOW - timedelta(days=days)).isoformat() for days in (100, 80))
    assert why(place, "recall", old)["at"] == "2026-07-26T00:00:00Z"
    assert why(place, "recall", younger)["at"] == "2026-08-15T00:00:00Z"
    assert why(place, "recall", NOW.isoformat())["state"] == "not on record"


def test_rows_that_a_ceiling_took_are_told_too(place: Place) -> None:
    """What went though it was young went by the size of the ledger."""
    place.configure(
        RECALL.replace("keep_for: 90d", "max_bytes: 400B\n    breaker: off") + "state_dir: state\n"
    )
    place.write([day + 0.5 for day in range(20)])
    assert place.run("apply", "--yes").code == 0
    old = (NOW - timedelta(days=15)).isoformat()
    assert why(place, "recall", old)["rule"] == "max_bytes"


def test_a_row_of_a_table_is_found_by_its_key(place: Place) -> None:
    """Of caesar's rows, 1 to 150 went by the 90 days; 151 did not."""
    caesar.rebuild(place.folder)
    place.configure(
        "state_dir: state\n"
        "stores: {audit: {preset: caesar, url: 'sqlite:///caesar.sqlite3', keep_for: 90d}}\n"
    )
    assert place.run("apply", "--yes").code == 0
    told = why(place, "audit", "150")
    assert (told["state"], told["rule"], told["reason"]) == ("deleted", "keep_for", None)
    assert why(place, "audit", "151")["state"] == "not on record"


def test_a_row_without_a_name_is_asked_for_by_its_time(place: Place) -> None:
    """What is neither an instant nor a key is refused with what to write."""
    place.sample()
    ran = place.run("why", "recall", "cache-paths")
    assert (ran.code, ran.out) == (2, "")
    assert "rows have no name" in ran.err
    assert "2026-07-26T12:00:00Z" in ran.err
