"""`keepfor check` fails when something needs a person, and says what to do."""

from __future__ import annotations

from datetime import timedelta

import time_machine

from tests.cli.conftest import NOW, RECALL, Place

#: Ten rows of which nothing is due before NOW.
FRESH = [89.0, *range(1, 10)]


def test_a_store_within_its_policy_passes(place: Place) -> None:
    """Nothing overdue is 0, in a word."""
    place.write(FRESH)
    ran = place.run("check")
    assert ran.code == 0
    assert ran.out == "recall: in order (10 rows, none overdue).\n"
    assert place.run("check", "--json").store == {
        "store": "recall",
        "ok": True,
        "lag": 0.0,
        "grace": 86_400.0,
        "findings": [],
        "error": None,
    }


def test_a_ledger_that_is_not_there_passes(place: Place) -> None:
    """What was never written cannot be overdue."""
    ran = place.run("check")
    there = f"no ledger yet at {place.folder}/recall.jsonl"
    assert (ran.code, ran.out) == (0, f"recall: {there}. See that this is the right place.\n")


def test_a_policy_that_never_runs_is_noticed(place: Place, frozen: time_machine.Traveller) -> None:
    """A row may be due for the grace of 24 hours, and not for a second more: then it is 4."""
    place.write(FRESH)
    frozen.move_to(NOW + timedelta(days=2))
    assert place.run("check").code == 0
    frozen.move_to(NOW + timedelta(days=2, seconds=1))
    ran = place.run("check")
    assert ran.code == 4
    assert "due for 1d" in ran.out
    assert "the grace is 1d" in ran.out
    assert "keepfor apply recall" in ran.out
    assert ran.out.count("\n") == 1
    assert place.run("apply", "--yes").code == 0
    assert place.run("check").code == 0


def test_the_grace_is_the_stores_own(place: Place) -> None:
    """`grace: 30d` lets a row be due for 30 days."""
    place.write([100, *range(1, 10)])
    assert place.run("check").code == 4
    place.configure(f"{RECALL}    grace: 30d\n")
    assert place.run("check").code == 0


def test_what_the_breaker_holds_back_is_noticed(place: Place) -> None:
    """A sweep that the breaker would refuse fails with 5 while nothing lags."""
    place.write([90.5] * 6 + [1] * 4)
    ran = place.run("check")
    assert ran.code == 5
    assert "it would delete 6 of 10" in ran.out
    assert "keepfor apply recall --force" in ran.out


def test_of_two_findings_the_lower_code_counts(place: Place) -> None:
    """A store that lags because the breaker holds it back says both, and exits with 4."""
    place.write([100] * 6 + [1] * 4)
    ran = place.run("check", "--json")
    assert ran.code == 4
    assert [(found["problem"], found["exit_code"]) for found in ran.store["findings"]] == [
        ("lag", 4),
        ("breaker", 5),
    ]
    assert "breaker holds the sweep back" in ran.store["findings"][0]["fix"]


def test_a_trap_is_noticed(place: Place) -> None:
    """Two stores that hold one file to different policies are a trap: 2, with what to write."""
    place.write(FRESH)
    place.configure(f"{RECALL}  other: {{kind: ledger, path: recall.jsonl, keep_for: 91d}}\n")
    ran = place.run("check")
    assert ran.code == 2
    assert "different settings" in ran.out
    assert "Write the same for both" in ran.out
    assert "recall: in order" in ran.out


def test_rows_that_a_killed_prune_left_are_noticed(place: Place) -> None:
    """Rows that no reader of the ledger sees fail with 1 until the next sweep brings them over."""
    place.write(FRESH)
    left = place.folder / ".recall.jsonl.keepfor-old.12345.0"
    left.write_text('{"ts": "2026-07-26"}\n')
    ran = place.run("check")
    assert ran.code == 1
    assert str(left) in ran.out
    assert "Run `keepfor apply recall`" in ran.out
    assert place.run("apply").code == 0
    assert place.run("check").code == 0


def test_a_second_name_of_the_ledger_is_no_loss(place: Place) -> None:
    """A prune that was killed before it replaced the ledger left nothing that is missing."""
    place.write(FRESH)
    (place.folder / ".recall.jsonl.keepfor-old.12345.0").hardlink_to(place.ledger)
    assert place.run("check").code == 0


def test_a_writer_that_holds_its_file_is_told_of_and_no_failure(place: Place) -> None:
    """Rows on their way through a replaced file that a live writer holds are said, with 0."""
    place.write([100, *FRESH])
    with place.ledger.open("a", encoding="utf-8") as writer:
        place.run("apply", "--yes")
        writer.write('{"ts": "2026-07-26"}\n')
        writer.flush()
        ran = place.run("check")
    assert ran.code == 0
    assert "a writer holds" in ran.out
    assert "Restart that program" in ran.out


def test_a_store_that_cannot_be_read_is_noticed(place: Place) -> None:
    """An unreadable store fails with 1, on stdout as the rest, and the others are checked."""
    place.configure(f"{RECALL}  folder: {{kind: ledger, path: ., keep_for: 1d}}\n")
    place.write(FRESH)
    ran = place.run("check")
    assert ran.code == 1
    assert "it is a folder" in ran.out
    assert "recall: in order" in ran.out
    store = place.run("check", "folder", "--json").store
    assert (store["ok"], store["error"]["type"]) == (False, "StoreError")
