"""`keepfor status` tells a person how each store stands, and touches nothing."""

from __future__ import annotations

from datetime import datetime, timedelta

import time_machine

from keepfor import Ledger
from tests.cli.conftest import NOW, RECALL, Place


def test_a_person_reads_how_a_store_stands(place: Place) -> None:
    """Days of history, oldest, newest, rows, bytes, policy, what is due and the lag."""
    place.sample()
    ran = place.run("status")
    assert ran.code == 0
    assert "You have 119.9 days of history in 600 rows, 120.4 KiB." in ran.out
    assert "policy      Rows older than 90d go." in ran.out
    assert "oldest      2026-03-28T02:53:09Z, 119.9 days ago" in ran.out
    assert "newest      2026-07-25T23:59:59Z" in ran.out
    assert "due now     151 of 600 rows" in ran.out
    assert "lag         29d" in ran.out
    assert "last sweep  none on record" in ran.out


def test_a_program_reads_the_same(place: Place) -> None:
    """The document holds the numbers in full."""
    place.write([100, 50, 1])
    store = place.run("status", "--json").store
    assert store["rows"] == 3
    assert store["bytes"] == place.ledger.stat().st_size
    assert (store["oldest"], store["newest"]) == ("2026-04-17T00:00:00Z", "2026-07-25T00:00:00Z")
    assert (store["days"], store["lag"], store["due"]) == (99.0, 10 * 86_400.0, 1)
    assert store["breaker"] == {"limit": 0.5, "share": 1 / 3, "tripped": False}
    assert (store["last_sweep"], store["leftovers"], store["error"]) == (None, [], None)


def test_the_last_sweep_is_named_and_by_whom(place: Place) -> None:
    """After a sweep, status says when it was, who started it and what it did."""
    place.sample()
    place.run("apply", "--yes")
    text = place.run("status").out
    assert "You have 89.9 days of history in 449 rows" in text
    assert "last sweep  2026-07-26T00:00:00Z by apply: done, 151 deleted" in text
    assert "lag         none" in text
    assert "due now     nothing" in text
    assert place.run("status", "--json").store["last_sweep"]["applied"] == 151


def test_a_sweep_that_found_nothing_is_a_sweep(
    place: Place, frozen: time_machine.Traveller
) -> None:
    """Whether the policy runs is seen also while nothing is due."""
    place.write([1])
    place.run("apply", "--yes")
    frozen.move_to(NOW + timedelta(hours=1))
    assert "2026-07-26T00:00:00Z by apply: nothing to do" in place.run("status").out
    place.run("apply", "--yes")
    assert "2026-07-26T01:00:00Z by apply: nothing to do" in place.run("status").out


def test_a_prune_at_the_write_site_is_a_sweep(place: Place) -> None:
    """What a program's own appends did is seen too, where it records it in this trail."""
    from keepfor.trail import Trail

    place.write([100, 50, 1])
    trail = Trail(path=str(place.folder / "state" / "trail.jsonl"))
    Ledger(place.ledger, keep_for="90d", trail=trail).append({"ts": datetime.isoformat(NOW)})
    assert "by write site: done, 1 deleted" in place.run("status").out


def test_the_breaker_is_shown(place: Place) -> None:
    """A store whose sweep is held back says so."""
    place.write([100] * 6 + [1] * 4)
    assert "due now     6 of 10 rows, held back by the breaker" in place.run("status").out
    assert place.run("status", "--json").store["breaker"]["tripped"] is True


def test_what_a_killed_prune_left_is_named(place: Place) -> None:
    """A replaced file that still holds rows is named, with how much is not in the ledger."""
    place.write([1])
    left = place.folder / ".recall.jsonl.keepfor-old.12345.3"
    left.write_bytes(b"ab\n0123456\n")
    text = place.run("status").out
    assert f"{left}, left by a prune that was killed, 8 B not in the ledger yet" in text
    assert place.run("status", "--json").store["leftovers"] == [
        {"path": str(left), "bytes": 8, "held": False}
    ]


def test_a_killed_prune_is_noticed_whatever_the_ledger_is_called(place: Place) -> None:
    """What lies beside a ledger is found by the ledger's name, and not by the escaped one."""
    place.configure(RECALL.replace("recall.jsonl", r"re\call.jsonl") + "state_dir: state\n")
    place.write([1], r"re\call.jsonl")
    (place.folder / r".re\call.jsonl.keepfor-old.12345.3").write_bytes(b"ab\n0123456\n")
    assert [left["bytes"] for left in place.run("status", "--json").store["leftovers"]] == [8]
    assert place.run("check").code == 1


def test_a_file_that_a_writer_holds_open_is_named(place: Place) -> None:
    """A writer that never closes its file is why some rows come late, and status says which."""
    place.write([100, 1])
    with place.ledger.open("a", encoding="utf-8") as writer:
        place.run("apply", "--yes")
        writer.write('{"ts": "2026-07-26"}\n')
        writer.flush()
        text = place.run("status").out
    assert ".recall.jsonl.keepfor-old." in text
    assert "held open by a writer, 21 B not in the ledger yet" in text


def test_a_ledger_that_is_not_there_is_no_error(place: Place) -> None:
    """Before the first append there is no history, and the policy is shown all the same."""
    ran = place.run("status")
    assert ran.code == 0
    assert "There is nothing there yet." in ran.out
    assert "Rows older than 90d go." in ran.out


def test_a_ledger_whose_folder_is_not_there_is_no_error(place: Place) -> None:
    """Nor has the folder to be there."""
    place.configure("stores:\n  recall: {kind: ledger, path: a/b.jsonl, keep_for: 1d}\n")
    assert place.run("status").code == 0


def test_the_policy_is_one_sentence(place: Place) -> None:
    """Age, ceiling and floor read as what they do; forever is said plainly."""
    place.configure(
        "stores:\n"
        "  a: {kind: ledger, path: a, keep_for: 90d, max_bytes: 25MiB, keep_last: 100}\n"
        "  b: {kind: ledger, path: b, keep_for: forever, keep_last: 3}\n"
        "  c: {kind: ledger, path: c, max_bytes: 1GB}\n"
    )
    policies = [store["policy"] for store in place.run("status", "--json").json["stores"]]
    first = "Rows older than 90d go; above 25MiB the oldest go, down to 80 % of it"
    assert policies == [
        f"{first}; the newest 100 always stay.",
        "Rows stay for ever.",
        "Above 1GB the oldest go, down to 80 % of it.",
    ]


def test_one_store_that_fails_does_not_hide_the_others(place: Place) -> None:
    """What cannot be read is said, the rest is shown, and the code is 1."""
    place.configure(f"{RECALL}  folder: {{kind: ledger, path: ., keep_for: 1d}}\n")
    place.write([1])
    ran = place.run("status")
    assert ran.code == 1
    assert "1 row," in ran.out
    assert "it is a folder" in ran.err
    recall, folder = place.run("status", "--json").json["stores"]
    assert recall["error"] is None
    assert folder["error"]["exit_code"] == 1


def test_no_byte_of_a_store_changes(place: Place) -> None:
    """Status, check, log, trace and count leave every byte and mtime here as it was."""
    place.sample()
    place.run("apply", "--yes")
    before = place.snapshot()
    for verb in ("status", "check", "log"):
        place.run(verb)
    place.run("trace", "recall", "naming")
    place.run("count", "recall", "--since", "7d")
    assert place.snapshot() == before


def test_without_a_configuration_one_learns_how_to_begin(place: Place) -> None:
    """No configuration is an error of usage that says what to type."""
    (place.folder / "keepfor.yaml").unlink()
    ran = place.run("status")
    assert ran.code == 2
    assert "keepfor config init" in ran.err
