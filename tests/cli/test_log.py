"""`keepfor log` tells what was done, the newest first, from the trail alone."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
import time_machine

from keepfor import Ledger
from keepfor.trail import Trail
from tests.cli.conftest import NOW, RECALL, Place


def record(place: Place, **facts: Any) -> None:
    """Add a record to the trail as a program, or a stray hand, may have left it."""
    trail = place.folder / "state" / "trail.jsonl"
    trail.parent.mkdir(exist_ok=True)
    with trail.open("a", encoding="utf-8") as file:
        file.write(f"{json.dumps(facts)}\n")


def test_an_empty_trail_is_no_error(place: Place) -> None:
    """Before the first sweep there is nothing on record, and that is said."""
    ran = place.run("log")
    assert (ran.code, ran.out) == (0, "Nothing is on record yet.\n")
    assert place.run("log", "--json").json["sweeps"] == []


def test_a_sweep_is_one_line(place: Place) -> None:
    """Time, store, outcome, counts, who, how long and which plan stand on one line."""
    place.sample()
    place.run("plan", "-o", "plan.json")
    digest = json.loads((place.folder / "plan.json").read_text())["digest"]
    place.run("apply", "plan.json")
    ran = place.run("log")
    assert ran.code == 0
    headings, line = ran.out.splitlines()
    assert headings.split() == ["time", "store", "outcome", "deleted", "by", "took", "plan"]
    words = line.split()
    assert words[:8] == ["2026-07-26", "00:00", "recall", "done", "151", "of", "600", "apply"]
    assert words[-1] == digest[:8]


def test_a_program_reads_it_in_full(place: Place) -> None:
    """The document holds every fact of a sweep's last record, but no content of any row."""
    place.sample()
    place.run("apply", "--yes")
    ran = place.run("log", "--json")
    (sweep,) = ran.json["sweeps"]
    assert sweep["outcome"] == "done"
    assert (sweep["seq"], sweep["at"]) == (2, "2026-07-26T00:00:00Z")
    assert (sweep["applied"], sweep["kept"]) == (151, 449)
    assert sweep["cutoff"] == "2026-04-27T00:00:00Z"
    assert (sweep["started_by"], sweep["error"]) == ("apply", None)
    assert ran.json["trail"] == str(place.folder / "state" / "trail.jsonl")
    assert "naming" not in ran.out


def test_the_newest_comes_first(place: Place, frozen: time_machine.Traveller) -> None:
    """Sweeps are told from the newest on, and -n cuts the older ones off."""
    place.write([1])
    for day in range(3):
        frozen.move_to(NOW + timedelta(days=day))
        place.run("apply")
    days = [sweep["at"][:10] for sweep in place.run("log", "--json").json["sweeps"]]
    assert days == ["2026-07-28", "2026-07-27", "2026-07-26"]
    assert place.run("log", "-n", "1").out.count("nothing to do") == 1


def test_a_sweep_that_never_ended_is_shown_as_unfinished(place: Place) -> None:
    """An intent without an outcome is told from one that has its outcome."""
    place.write([100, 1])
    place.run("apply", "--yes")
    record(
        place,
        ts="2026-07-26T01:02:03Z",
        seq=3,
        event="intent",
        store="recall",
        target=str(place.ledger),
        started_by="background",
        plan="abcdef0123456789",
        now="2026-07-26T01:02:00Z",
    )
    unfinished, done = place.run("log").out.splitlines()[1:]
    assert unfinished.split() == [
        *("2026-07-26", "01:02", "recall", "unfinished", "-", "background", "-", "abcdef01")
    ]
    assert " done " in done
    assert "by background: unfinished" in place.run("status").out


def test_what_went_wrong_is_told(place: Place) -> None:
    """A sweep that failed shows its error below the table, and one that was partly done is so."""
    sweep = {"event": "outcome", "store": "recall", "target": "/x", "started_by": "apply"}
    record(place, **sweep, ts="2026-07-25T00:00:00Z", applied=1, kept=2, skipped=3, duration=0.5)
    record(place, **sweep, ts="2026-07-26T00:00:00Z", error="disk on fire", duration=75.2)
    text = place.run("log").out
    assert "2026-07-26 00:00  recall  failed             -  apply   1min  -" in text
    assert "2026-07-25 00:00  recall  partly done   1 of 6  apply  500ms  -" in text
    assert text.endswith("\n\n2026-07-26 00:00  recall: disk on fire\n")


def test_stores_can_be_picked(place: Place) -> None:
    """A name picks what is on record under it, and what was done to its ledger by a program."""
    place.configure(
        f"{RECALL}  other: {{kind: ledger, path: other.jsonl, keep_for: 1d}}\nstate_dir: state\n"
    )
    place.write([1])
    place.run("apply", "recall")
    place.run("apply", "other")
    trail = Trail(path=str(place.folder / "state" / "trail.jsonl"))
    Ledger(place.ledger, keep_for="90d", trail=trail).prune()
    sweeps = place.run("log", "recall", "--json").json["sweeps"]
    assert [sweep["started_by"] for sweep in sweeps] == ["write site", "apply"]
    assert sweeps[0]["store"] == str(place.ledger)
    assert len(place.run("log", "--json").json["sweeps"]) == 3


def test_a_store_that_is_no_longer_configured_is_still_on_record(place: Place) -> None:
    """The past of a store outlives its configuration; a name that never was is refused."""
    for name in ("gone", "recall"):
        record(place, ts="2026-07-25T00:00:00Z", event="outcome", store=name, target=f"/{name}")
    assert "gone" in place.run("log", "gone").out
    ran = place.run("log", "never")
    assert ran.code == 2
    assert "no store named 'never'" in ran.err


def test_a_record_that_a_stray_hand_made_does_not_hide_the_others(place: Place) -> None:
    """What is no JSON, no object, or of other types than ours, is told as far as it can be."""
    place.write([100, 1])
    place.run("apply", "--yes")
    record(place, event="outcome", ts=5, applied="many", notes="x", duration="long", error={"a": 1})
    with (place.folder / "state" / "trail.jsonl").open("a") as file:
        file.write("[1]\nnot json\n")
    ran = place.run("log", "--json")
    assert ran.code == 0
    strange, done = ran.json["sweeps"]
    assert (strange["at"], strange["applied"], strange["notes"]) == ("5", 0, [])
    assert (strange["duration"], strange["error"]) == (None, "{'a': 1}")
    assert done["outcome"] == "done"
    assert place.run("log").code == 0


@pytest.mark.parametrize("duration", ["1e300", "-1e300", "9" * 400, "NaN", "true"])
def test_a_duration_that_no_sweep_took_stops_no_verb(place: Place, duration: str) -> None:
    """A number that is too large for a duration, or none, is as good as no duration."""
    place.write([1])
    record(place, event="outcome", store="recall", target=str(place.ledger), ts="2026-07-25")
    trail = place.folder / "state" / "trail.jsonl"
    trail.write_text(trail.read_text().replace("}", f', "duration": {duration}}}'))
    for verb in ("log", "status"):
        assert place.run(verb).code == 0
        assert place.run(verb, "--json").code == 0


def test_more_sweeps_than_can_be_counted_are_all_of_them(place: Place) -> None:
    """However large the number is, what is there is shown."""
    record(place, ts="2026-07-25T00:00:00Z", event="outcome", store="recall", target="/x")
    assert len(place.run("log", "-n", "9" * 30, "--json").json["sweeps"]) == 1
