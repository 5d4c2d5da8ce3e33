"""`keepfor apply` does what was shown and agreed to, once, and says what came of it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest
import time_machine

from tests.cli.conftest import NOW, RECALL, Place

TWO = f"{RECALL}  other: {{kind: ledger, path: other.jsonl, keep_for: 90d}}\nstate_dir: state\n"
Traveller = time_machine.Traveller


def lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


def test_exactly_the_planned_rows_go(place: Place) -> None:
    """The main job: the sample loses its 151 expired rows, and the other 449 keep their bytes."""
    before = lines(place.sample())
    ran = place.run("apply", "--yes", "--json")
    assert ran.code == 0
    assert (ran.store["expired"], ran.store["kept"], ran.store["outcome"]) == (151, 449, "done")
    assert lines(place.ledger) == before[151:]


def test_what_came_of_it_is_said(place: Place) -> None:
    """A person reads how many rows are gone, why, and what stayed."""
    place.sample()
    ran = place.run("apply", "--yes")
    assert "151 of 600 rows are gone." in ran.out
    assert "expired       151" in ran.out
    assert "oldest kept   2026-04-27T03:26:55Z" in ran.out
    assert "would go" not in ran.out


def test_a_saved_plan_of_the_past_is_bounded_by_it(place: Place, frozen: Traveller) -> None:
    """Carried out months later, when all rows are expired, a plan takes only what it named."""
    before = lines(place.sample())
    frozen.move_to(NOW + timedelta(days=127))
    assert place.run("plan", "-o", "plan.json", "--now", "2026-07-26T00:00:00Z").code == 0
    ran = place.run("apply", "plan.json", "--json")
    assert ran.code == 0
    assert (ran.store["expired"], ran.store["skipped"]) == (151, 0)
    assert lines(place.ledger) == before[151:]


def test_a_saved_plan_takes_the_options_of_a_crontab(place: Place) -> None:
    """`--yes` and `--force` are no error beside a plan file."""
    place.sample()
    place.run("plan", "-o", "plan.json")
    assert place.run("apply", "plan.json", "--yes", "--force").code == 0
    assert len(lines(place.ledger)) == 449


def test_rows_that_expire_after_it_are_not_the_plans_affair(
    place: Place, frozen: Traveller
) -> None:
    """A row that came of age between plan and apply stays for the next plan."""
    place.write([100, 89, 1])
    place.run("plan", "-o", "plan.json")
    frozen.move_to(NOW + timedelta(days=3))
    assert place.run("apply", "plan.json", "--json").store["applied"] == 1
    assert place.run("plan", "--json").store["expired"] == 1


def test_a_plan_for_the_future_is_refused(place: Place) -> None:
    """Ages are never judged by an instant to come."""
    place.write([89, 1])
    place.run("plan", "-o", "plan.json", "--now", "2026-07-30")
    ran = place.run("apply", "plan.json")
    assert ran.code == 6
    assert "still to come" in ran.err
    assert len(lines(place.ledger)) == 2


def test_a_plan_is_carried_out_once(place: Place) -> None:
    """A plan that was applied is spent, also where rows that it would take came back."""
    place.write([100, 1])
    place.run("plan", "-o", "plan.json")
    assert place.run("apply", "plan.json").code == 0
    ran = place.run("apply", "plan.json")
    assert ran.code == 6
    assert "carried out already" in ran.err
    ran = place.run("apply", "plan.json", "--json")
    assert ran.code == ran.json["exit_code"] == 6
    assert (ran.store["outcome"], ran.store["error"]["type"]) == ("failed", "PlanSpent")


def test_a_plan_is_refused_when_the_policy_changed(place: Place) -> None:
    """What was looked at under another policy is not carried out."""
    place.write([100, 1])
    place.run("plan", "-o", "plan.json")
    place.configure(RECALL.replace("90d", "91d"))
    ran = place.run("apply", "plan.json")
    assert ran.code == 6
    assert "the policy changed" in ran.err


def test_a_plan_is_refused_when_the_ledger_is_another(place: Place) -> None:
    """A plan names the very file that it was made for; what stands there now is left alone."""
    place.write([100, 1])
    place.run("plan", "-o", "plan.json")
    place.ledger.unlink()
    place.write([200, 100, 1])
    ran = place.run("apply", "plan.json")
    assert ran.code == 6
    assert len(lines(place.ledger)) == 3


def test_rows_that_changed_meanwhile_make_it_partly_done(place: Place) -> None:
    """A planned row that is young by now stays, is counted as skipped, and the code is 3."""
    before = place.sample().read_bytes()
    place.run("plan", "-o", "plan.json")
    where = before.index(b'"ts": "2026-04-26')
    place.ledger.write_bytes(before[:where] + b'"ts": "2026-07-26' + before[where + 17 :])
    ran = place.run("apply", "plan.json", "--json")
    assert (ran.code, ran.store["applied"], ran.store["skipped"]) == (3, 150, 1)
    assert (ran.store["outcome"], ran.store["kept"]) == ("partly done", 449)
    assert len(lines(place.ledger)) == 450


def test_a_person_reads_what_was_skipped(place: Place) -> None:
    """The text names the rows that a sweep left alone because they changed."""
    before = place.sample().read_bytes()
    place.run("plan", "-o", "plan.json")
    place.ledger.write_bytes(before.replace(b'"ts": "2026-04-26', b'"ts": "2026-07-26'))
    ran = place.run("apply", "plan.json")
    assert ran.code == 3
    assert "skipped       5, changed since the plan" in ran.out


def test_a_plan_of_a_store_that_is_gone_is_refused(place: Place) -> None:
    """A plan whose store is no longer configured has nothing to be carried out on."""
    place.write([100, 1])
    place.run("plan", "-o", "plan.json")
    place.configure(RECALL.replace("recall:", "renamed:"))
    ran = place.run("apply", "plan.json")
    assert ran.code == 2
    assert "no store named 'recall'" in ran.err


@pytest.mark.parametrize("word", ["recall.jsonl", "./recall.jsonl", "missing.json", "a/b", "other"])
def test_a_file_that_is_no_plan_is_refused(place: Place, word: str) -> None:
    """What cannot be a store's name, or is a file and no store, is taken for a plan file."""
    place.write([100, 1])
    place.write([100, 1], "other")
    ran = place.run("apply", word, "--yes")
    assert ran.code == 2
    assert "this is not a plan" in ran.err
    assert len(lines(place.ledger)) == 2


def test_a_store_wins_over_a_file_of_its_name(place: Place) -> None:
    """A stray file called as a store does not keep the store from being swept."""
    place.write([100, 1])
    (place.folder / "recall").write_text("stray")
    assert place.run("apply", "recall", "--yes").code == 0
    assert len(lines(place.ledger)) == 1


def test_a_plan_file_is_carried_out_by_itself(place: Place) -> None:
    """A plan file beside a store is an error of usage, and nothing is done."""
    place.write([100, 1])
    place.run("plan", "-o", "plan.json")
    ran = place.run("apply", "recall", "plan.json", "--yes")
    assert ran.code == 2
    assert "by itself" in ran.err
    assert len(lines(place.ledger)) == 2


def test_without_a_terminal_nothing_is_done(place: Place) -> None:
    """In a crontab without --yes the plan is shown, nothing is touched, and the code is 7."""
    place.write([100, 1])
    before = place.snapshot()
    ran = place.run("apply")
    assert ran.code == 7
    assert "1 of 2 rows would go." in ran.out
    assert "Nothing was done" in ran.err
    assert "--yes" in ran.err
    assert place.snapshot() == before


def test_a_program_gets_nothing_done_without_yes(
    place: Place, person: Callable[[str], None]
) -> None:
    """With --json nobody is shown the plan, so nobody is asked, even at a terminal."""
    place.write([100, 1])
    person("y\n")
    ran = place.run("apply", "--json")
    assert ran.code == 7
    assert ran.json["error"]["type"] == "NotConfirmed"
    assert ran.json["error"]["exit_code"] == 7
    assert len(lines(place.ledger)) == 2


@pytest.mark.parametrize("answer", ["y\n", "Y\n", "yes\n", " yes \n"])
def test_a_yes_does_it(place: Place, person: Callable[[str], None], answer: str) -> None:
    """At a terminal the plan is shown, and a yes carries it out."""
    place.write([100, 1])
    person(answer)
    ran = place.run("apply")
    assert ran.code == 0
    assert "would go" in ran.out
    assert "Delete 1 row from recall? [y/N]" in ran.err
    assert len(lines(place.ledger)) == 1


@pytest.mark.parametrize("answer", ["n\n", "\n", "", "yep\n", "no\n"])
def test_anything_else_is_a_no(place: Place, person: Callable[[str], None], answer: str) -> None:
    """No, nothing, the end of input and anything unclear leave all as it was; the code is 7."""
    place.write([100, 1])
    person(answer)
    ran = place.run("apply")
    assert ran.code == 7
    assert "you did not agree" in ran.err
    assert len(lines(place.ledger)) == 2
    assert not (place.folder / "state").exists()


def test_nothing_to_do_needs_no_yes(place: Place) -> None:
    """Where nothing would go nobody is asked, and the code is 0."""
    place.write([1, 2])
    before = place.ledger.read_bytes(), place.ledger.stat().st_ino
    ran = place.run("apply")
    assert ran.code == 0
    assert "There was nothing to do; 2 rows stay." in ran.out
    place.write([1], "one.jsonl")
    place.configure(f"{RECALL.replace('recall.jsonl', 'one.jsonl')}state_dir: state\n")
    assert "There was nothing to do; 1 row stays." in place.run("apply").out
    assert (place.ledger.read_bytes(), place.ledger.stat().st_ino) == before
    assert place.run("apply", "--json").store["outcome"] == "nothing to do"


def test_a_ledger_that_is_not_there_is_left_so(place: Place) -> None:
    """Applying a policy before the first append makes no file."""
    assert place.run("apply", "--yes").code == 0
    assert not place.ledger.exists()


def test_the_breaker_holds(place: Place) -> None:
    """A sweep that takes over half of the ledger is refused with 5, and nothing is done."""
    place.write([100] * 6 + [1] * 4)
    ran = place.run("apply", "--yes")
    assert ran.code == 5
    assert "this would delete 6 of 10" in ran.err
    assert "--force" in ran.err
    assert len(lines(place.ledger)) == 10
    ran = place.run("apply", "--yes", "--json")
    assert ran.code == 5
    assert ran.store["error"]["type"] == "BreakerTripped"


def test_the_breaker_holds_a_saved_plan_too(place: Place) -> None:
    """A plan file is no way around the breaker."""
    place.write([100] * 6 + [1] * 4)
    place.run("plan", "-o", "plan.json")
    assert place.run("apply", "plan.json", "--yes").code == 5
    assert len(lines(place.ledger)) == 10
    assert place.run("apply", "plan.json", "--force").code == 0
    assert len(lines(place.ledger)) == 4


def test_force_passes_the_breaker_and_nothing_else(place: Place) -> None:
    """--force alone does not stand for a yes; with it the breaker lets pass."""
    place.write([100] * 6 + [1] * 4)
    assert place.run("apply", "--force").code == 7
    assert len(lines(place.ledger)) == 10
    assert place.run("apply", "--force", "--yes").code == 0
    assert len(lines(place.ledger)) == 4


def test_what_the_breaker_holds_is_not_asked_for(
    place: Place, person: Callable[[str], None]
) -> None:
    """A person is asked for what would be done, not for what the breaker refuses anyway."""
    place.configure(TWO)
    place.write([100] * 6 + [1] * 4)
    place.write([100, 1], "other.jsonl")
    person("y\n")
    ran = place.run("apply")
    assert "Delete 1 row from other?" in ran.err
    assert ran.code == 5
    assert len(lines(place.ledger)) == 10
    assert len(lines(place.folder / "other.jsonl")) == 1


def test_one_store_that_fails_does_not_stop_the_others(place: Place) -> None:
    """Stores are independent: what cannot be read is said, and the rest is swept."""
    place.configure(TWO)
    place.ledger.mkdir()
    other = place.write([100, 1], "other.jsonl")
    ran = place.run("apply", "--yes", "--json")
    assert ran.code == 1
    failed, done = ran.json["stores"]
    assert (failed["outcome"], failed["error"]["type"]) == ("failed", "StoreError")
    assert (done["outcome"], done["applied"]) == ("done", 1)
    assert len(lines(other)) == 1


def test_the_question_counts_all_stores(place: Place, person: Callable[[str], None]) -> None:
    """With several stores one question covers what would be deleted from each."""
    place.configure(TWO)
    place.write([100, 100, 1])
    place.write([100, 1], "other.jsonl")
    person("y\n")
    assert "Delete 3 rows from recall and other?" in place.run("apply").err


def test_a_note_reaches_the_person(place: Place) -> None:
    """A second name of the ledger still holds the old rows, and the report says so."""
    place.write([100, 1])
    (place.folder / "second").hardlink_to(place.ledger)
    ran = place.run("apply", "--yes")
    assert "hard link" in ran.out
    assert len(lines(place.folder / "second")) == 2


def test_what_a_killed_prune_left_is_brought_over(place: Place) -> None:
    """Where nothing is due, apply still finishes what an earlier sweep could not."""
    place.write([2, 1])
    fresh = f'{{"ts": "{datetime.isoformat(NOW)}"}}\n'
    (place.folder / ".recall.jsonl.keepfor-old.12345.0").write_text(fresh)
    assert place.run("apply").code == 0
    assert lines(place.ledger)[-1] == fresh.encode()
    assert not list(place.folder.glob(".recall*"))


def test_a_state_folder_that_cannot_be_written_stops_it(place: Place) -> None:
    """Without a record of its beginning no sweep begins."""
    place.write([100, 1])
    (place.folder / "state").write_text("a file")
    ran = place.run("apply", "--yes")
    assert ran.code == 1
    assert "state" in ran.err
    assert len(lines(place.ledger)) == 2
