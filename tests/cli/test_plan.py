"""`keepfor plan` tells what would go, truly and completely, and touches nothing."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.cli.conftest import RECALL, Place


def facts_of(text: str) -> dict[str, str]:
    """The names and values in a plain text."""
    lines = [line.strip() for line in text.splitlines() if line.startswith("  ")]
    return dict(line.split("  ", 1) for line in lines if "  " in line)


def test_the_sample_has_its_known_figures(place: Place) -> None:
    """The main job: of the real sample, 90 days before the anchor keep 449 rows and drop 151."""
    place.sample()
    ran = place.run("plan", "--now", "2026-07-26T00:00:00Z", "--json")
    assert ran.code == 0
    assert (ran.store["kept"], ran.store["expired"], ran.store["scanned"]) == (449, 151, 600)
    assert ran.store["cutoff"] == "2026-04-27T00:00:00Z"


def test_a_person_reads_all_that_there_is_to_know(place: Place) -> None:
    """The text says target, rule, counts, cutoff, bytes, oldest survivor and breaker state."""
    place.sample()
    ran = place.run("plan", "--now", "2026-07-26")
    facts = {name: value.strip() for name, value in facts_of(ran.out).items()}
    assert str(place.ledger) in ran.out
    assert "151 of 600 rows would go." in ran.out
    assert facts["policy"] == "Rows older than 90d go."
    assert facts["cutoff"] == "2026-04-27T00:00:00Z, judged at 2026-07-26T00:00:00Z"
    assert facts["expired"] == "151"
    assert facts["unreadable"] == "0"
    assert facts["over ceiling"] == "0"
    assert facts["kept"] == "449 (0 in the future, 0 of unknown age)"
    assert facts["oldest kept"] == "2026-04-27T03:26:55Z"
    assert facts["size"].startswith("120.4 KiB -> ")
    assert facts["breaker"] == "lets it pass: 25.2% would go, and 50% may"


@pytest.mark.parametrize("how", [[], ["--json"], ["-o", "elsewhere/plan.json"]])
def test_no_byte_of_a_store_changes(place: Place, how: list[str]) -> None:
    """Planning leaves every byte and mtime as it was, and no file beside the ledger."""
    place.sample()
    (place.folder / "elsewhere").mkdir()
    before = place.snapshot()
    assert place.run("plan", *how).code == 0
    after = place.snapshot()
    after.pop("elsewhere/plan.json", None)
    assert after == before


def test_rows_that_stand_apart_are_counted_apart(place: Place) -> None:
    """Debris, rows from the future and an unfinished last line each have their own count."""
    place.write([100, 1, 2, 3, -5])
    with place.ledger.open("a", encoding="utf-8") as file:
        file.write('not json\n{"ts": "2026-0')
    store = place.run("plan", "--json").store
    assert (store["expired"], store["unreadable"]) == (1, 1)
    assert (store["future"], store["unknown"]) == (1, 1)
    assert store["scanned"] == store["kept"] + store["applied"] == 7
    text = place.run("plan").out
    assert "(1 in the future, 1 of unknown age)" in text


def test_the_ceiling_is_told_from_age(place: Place) -> None:
    """Rows that go because the file is too large are counted as that, with a note on what stays."""
    place.configure(f"{RECALL}    max_bytes: 400B\n")
    place.write([10 - step / 10 for step in range(20)])
    ran = place.run("plan", "--json")
    assert ran.store["expired"] == 0
    assert ran.store["over_ceiling"] == ran.store["applied"] > 0
    assert ran.store["bytes_after"] <= 320
    assert "400 bytes leaves" in ran.store["notes"][0]
    assert ran.store["notes"][0] in place.run("plan").out


def test_a_ledger_that_is_not_there_is_no_error(place: Place) -> None:
    """Before the first append there is nothing to plan, and that is said."""
    ran = place.run("plan")
    assert ran.code == 0
    assert "There is nothing there yet." in ran.out
    store = place.run("plan", "--json").store
    assert (store["exists"], store["scanned"]) == (False, 0)


def test_nothing_to_do_is_said(place: Place) -> None:
    """A ledger within its policy loses nothing, and the plan says so."""
    place.write([1, 2, 3])
    assert "Nothing would go of 3 rows." in place.run("plan").out


def test_the_breaker_shows_what_it_would_do(place: Place) -> None:
    """A plan that takes over half of ten rows or more is shown as held back, and is no error."""
    place.write([100, 100, 100, 100, 100, 100, 1, 1, 1, 1])
    ran = place.run("plan")
    assert ran.code == 0
    assert "holds it back: 60.0% would go, and 50% may; --force passes it" in ran.out
    assert place.run("plan", "--json").store["breaker"] == {
        "limit": 0.5,
        "share": 0.6,
        "tripped": True,
    }


def test_a_breaker_that_is_off_is_shown_as_off(place: Place) -> None:
    """Without a breaker nothing is held back, and the plan says that there is none."""
    place.configure(f"{RECALL}    breaker: off\n")
    place.write([100] * 12)
    assert "breaker       off" in place.run("plan").out
    assert place.run("plan", "--json").store["breaker"]["limit"] is None


def test_one_store_that_fails_does_not_hide_the_others(place: Place) -> None:
    """Of several stores, one that cannot be read is said on stderr, and the others are shown."""
    place.configure(f"{RECALL}  folder: {{kind: ledger, path: ., keep_for: 1d}}\n")
    place.write([100, 1])
    ran = place.run("plan")
    assert ran.code == 1
    assert "it is a folder, not a file" in ran.err
    assert "1 of 2 rows would go." in ran.out
    ran = place.run("plan", "--json")
    assert ran.code == ran.json["exit_code"] == 1
    recall, folder = ran.json["stores"]
    assert (recall["expired"], recall["error"]) == (1, None)
    assert folder["error"]["type"] == "StoreError"
    assert folder["error"]["exit_code"] == 1


def test_only_the_stores_that_are_named_are_looked_at(place: Place) -> None:
    """A plan is of the stores that were asked for, each once, in the order asked."""
    place.configure(
        "stores:\n"
        "  a: {kind: ledger, path: a, keep_for: 1d}\n"
        "  b: {kind: ledger, path: b, keep_for: 1d}\n"
        "  c: {kind: ledger, path: c, keep_for: 1d}\n"
    )
    ran = place.run("plan", "c", "a", "c", "--json")
    assert [store["store"] for store in ran.json["stores"]] == ["c", "a"]


def test_stores_stand_apart(place: Place) -> None:
    """An empty line stands between two stores, and none at the end."""
    place.configure(f"{RECALL}  other: {{kind: ledger, path: other, keep_for: 1d}}\n")
    assert place.run("plan").out == (
        f"recall  ledger  {place.ledger}\n"
        "  There is nothing there yet.\n"
        "\n"
        f"other  ledger  {place.folder / 'other'}\n"
        "  There is nothing there yet.\n"
    )


def test_a_store_that_does_not_exist_is_refused(place: Place) -> None:
    """A name that is not configured is an error of usage that names the closest one."""
    ran = place.run("plan", "recal")
    assert ran.code == 2
    assert "no store named 'recal'" in ran.err
    assert "Did you mean recall?" in ran.err


@pytest.mark.parametrize(("now", "expired"), [("2026-07-26", 0), ("2026-07-26T00:00:01Z", 1)])
def test_now_is_the_instant_that_ages_are_judged_by(place: Place, now: str, expired: int) -> None:
    """A row exactly on the cutoff stays, and goes a second later; a date is its first moment."""
    place.write([90, 1])
    assert place.run("plan", "--now", now, "--json").store["expired"] == expired


def test_a_now_that_is_none_is_refused(place: Place) -> None:
    """A typo in --now is an error of usage with an example."""
    ran = place.run("plan", "--now", "yesterday")
    assert ran.code == 2
    assert "2026-07-26T12:00:00Z" in ran.err


@pytest.mark.parametrize("verb", ["apply", "status", "check", "log"])
def test_only_plan_takes_now(place: Place, verb: str) -> None:
    """No verb but plan judges by another instant than the present."""
    ran = place.run(verb, "--now", "2026-07-26")
    assert ran.code == 2
    assert "--now" in ran.err


def test_a_plan_can_be_saved(place: Place) -> None:
    """`-o` writes the plan, and the text says how it is carried out."""
    place.write([100, 1])
    ran = place.run("plan", "-o", "plan.json")
    assert ran.code == 0
    assert "keepfor apply plan.json" in ran.out
    assert json.loads((place.folder / "plan.json").read_text())["store"] == "recall"
    assert place.run("plan", "-o", "plan.json", "--json").json["saved"] == "plan.json"


def test_a_plan_file_holds_one_store(place: Place) -> None:
    """Where several stores are planned, saving asks for one of them, and saves none."""
    place.configure(f"{RECALL}  other: {{kind: ledger, path: other, keep_for: 1d}}\n")
    ran = place.run("plan", "-o", "plan.json")
    assert ran.code == 2
    assert "these are 2" in ran.err
    assert "keepfor plan recall -o plan.json" in ran.err
    assert not (place.folder / "plan.json").exists()


@pytest.mark.parametrize("name", ["recall.jsonl", "keepfor.yaml", "link", "folder"])
def test_a_plan_is_saved_over_nothing_but_a_plan(place: Place, name: str) -> None:
    """A slip in the name of the plan file overwrites neither the ledger nor anything else."""
    place.write([100, 1])
    (place.folder / "link").symlink_to(place.ledger)
    (place.folder / "folder").mkdir()
    before = place.snapshot()
    ran = place.run("plan", "-o", name)
    assert ran.code == 2
    assert "is not a plan" in ran.err
    assert place.snapshot() == before
    assert (place.folder / "link").is_symlink()


def test_a_plan_is_saved_over_an_older_plan(place: Place) -> None:
    """A plan file is renewed in place, even one that somebody edited."""
    place.write([100, 1])
    file = place.folder / "plan.json"
    place.run("plan", "-o", file)
    file.write_text(file.read_text().replace('"recall"', '"edited"'))
    assert place.run("plan", "-o", file).code == 0
    assert '"edited"' not in file.read_text()


def test_a_plan_is_saved_in_a_folder_that_is_there(place: Place) -> None:
    """A folder that is missing is named, before anything is planned."""
    ran = place.run("plan", "-o", "nowhere/plan.json")
    assert ran.code == 2
    assert "nowhere/plan.json: its folder is not there." in ran.err


def test_a_plan_that_fails_is_not_saved(place: Place) -> None:
    """Where the store cannot be read, no plan file appears, and the document says so."""
    place.configure("stores:\n  recall: {kind: ledger, path: ., keep_for: 1d}\n")
    ran = place.run("plan", "-o", "plan.json", "--json")
    assert ran.code == 1
    assert ran.json["saved"] is None
    assert not Path("plan.json").exists()
    assert os.listdir() == ["keepfor.yaml"]
