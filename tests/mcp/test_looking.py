"""What an agent sees of the samples: how stores stand, what would go, what was recalled."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests import evolve
from tests.mcp.house import SECRET, Server


@pytest.fixture(autouse=True)
def unchanged(reader: Server) -> Iterator[None]:
    """What only looks leaves every byte and mtime of the stores as it was, and records nothing."""
    before = reader.house.snapshot()
    yield
    assert reader.house.snapshot() == before
    assert reader.house.trail == []


def by_store(answer: Any) -> dict[str, Any]:
    """What is told of each store."""
    return {said["store"]: said for said in answer["stores"]}


def test_every_store_is_told_and_one_that_cannot_be_read_hides_no_other(reader: Server) -> None:
    """Status has the known figures of each sample, and why each of two others cannot be read."""
    answer = reader.ask("retention_status")
    assert answer["now"] == "2026-07-26T00:00:00Z"
    told = by_store(answer)
    assert list(told) == ["recall", "rem", "audit", "notes", "broken", "remote"]
    stands = {name: said["standing"] for name, said in told.items() if said["standing"]}
    assert {
        name: (said["history"]["items"], said["due"], said["breaker"]["tripped"])
        for name, said in stands.items()
    } == {
        "recall": (600, 151, False),
        "rem": (260, 60, False),
        "audit": (600, 150, False),
        "notes": (54, 9, False),
    }
    assert stands["recall"]["history"]["oldest"] == "2026-03-28T02:53:09.380291Z"
    assert stands["recall"]["history"]["newest"] == "2026-07-25T23:59:59Z"
    assert stands["recall"]["last_sweep"] is None
    assert told["recall"]["policy"] == "Rows older than 90d go."
    assert all(said["error"] is None for name, said in told.items() if name in stands)
    broken, remote = told["broken"]["error"], told["remote"]["error"]
    assert broken["type"] == remote["type"] == "StoreError"
    assert "it is a folder, not a file" in broken["message"]
    assert "no server listens there" in remote["message"]


def test_no_answer_holds_a_password(reader: Server) -> None:
    """A database's password is in no answer, be it of one that can be reached or not."""
    for tool in ("retention_status", "retention_plan"):
        assert SECRET not in json.dumps(reader.ask(tool))
    assert "ada@127.0.0.1" in reader.refusal("history_window", store="remote")


def test_a_look_writes_nothing(reader: Server) -> None:
    """Whatever only looks leaves every byte and mtime of the stores as it was, and no record."""
    before = reader.house.snapshot()
    for tool, arguments in {
        "retention_status": {},
        "retention_plan": {},
        "retention_explain": {"store": "rem", "id": "rem-2026-07-15T04_00_00.000Z"},
        "recall_trace": {"store": "recall", "slug": "naming"},
        "recent_runs": {"store": "rem"},
        "history_window": {"store": "audit"},
    }.items():
        reader.ask(tool, **arguments)
    assert reader.house.snapshot() == before
    assert reader.house.trail == []


def test_stores_are_told_that_were_asked_for(reader: Server) -> None:
    """Names pick stores, each told once, in that order."""
    answer = reader.ask("retention_status", stores=["rem", "recall", "rem"])
    assert list(by_store(answer)) == ["rem", "recall"]


def test_a_plan_of_notes_is_the_known_one(reader: Server) -> None:
    """Of the sample of notes each known decision is told, and no other, with its numbers."""
    plan = by_store(reader.ask("retention_plan", stores=["notes"]))["notes"]["plan"]
    told = {
        action: {said["id"] for said in plan["items"] if said["action"] == action}
        for action in ("delete", "flag")
    }
    assert told == {action: evolve.expected_ids(action) for action in ("delete", "flag")}
    assert {said["id"] for said in plan["spared"]} == evolve.expected_ids("skip")
    assert (plan["scanned"], plan["kept"], plan["delete"], plan["flag"]) == (54, 31, 9, 14)
    assert (plan["items_left_off"], plan["spared_left_off"]) == (0, 0)
    assert all("threshold" in said["evidence"] for said in plan["items"] if said["reason"] == "age")


def test_a_plan_of_rows_is_told_by_its_rules(reader: Server) -> None:
    """Of a table and a ledger, the plan counts what goes, and a table's part has its cutoff."""
    told = by_store(reader.ask("retention_plan", stores=["audit", "recall"]))
    audit, recall = told["audit"]["plan"], told["recall"]["plan"]
    assert (audit["delete"], audit["kept"], audit["dependents"]) == (
        150,
        450,
        {"semantic_chunks": 82},
    )
    (part,) = audit["parts"]
    assert (part["rule"], part["count"], part["cutoff"]) == (
        "keep_for",
        150,
        "2026-04-27T00:00:00Z",
    )
    assert (recall["delete"], recall["kept"], recall["cutoff"]) == (
        151,
        449,
        "2026-04-27T00:00:00Z",
    )
    assert audit["items"] == recall["items"] == []


def test_a_long_plan_is_cut_and_says_by_how_much(reader: Server) -> None:
    """Of 60 runs that would go as many are told as was asked for, and the rest is counted."""
    plan = by_store(reader.ask("retention_plan", stores=["rem"], limit=7))["rem"]["plan"]
    assert (len(plan["items"]), plan["items_left_off"], plan["delete"]) == (7, 53, 60)
    whole = by_store(reader.ask("retention_plan", stores=["rem"]))["rem"]["plan"]
    assert (len(whole["items"]), whole["items_left_off"]) == (50, 10)
    assert plan["digest"] == whole["digest"]


def test_what_is_deleted_is_told_before_what_is_flagged(reader: Server) -> None:
    """However few items are told, no flag stands in the place of a deletion."""
    plan = by_store(reader.ask("retention_plan", stores=["notes"], limit=9))["notes"]["plan"]
    assert {said["id"] for said in plan["items"]} == evolve.expected_ids("delete")
    assert plan["items_left_off"] == 14


def test_a_plan_of_what_cannot_be_read_hides_no_other(reader: Server) -> None:
    """Each store that can be read has a plan, and each that cannot has an error in its place."""
    told = by_store(reader.ask("retention_plan"))
    assert {name for name, said in told.items() if said["plan"]} == {
        "recall",
        "rem",
        "audit",
        "notes",
    }
    assert {name for name, said in told.items() if said["error"]} == {"broken", "remote"}


def test_an_item_is_explained(reader: Server) -> None:
    """A young note stays: each rule says why, and the next one to take it says when."""
    id_ = "guideline/write-the-newline-last-note-7"
    answer = reader.ask("retention_explain", store="notes", id=id_)
    assert (answer["id"], answer["decision"]["action"]) == (id_, "keep")
    assert [(said["rule"], said["answer"]) for said in answer["rules"]] == [
        ("unused-guidelines", "no"),
        ("stale-guidelines", "no"),
        ("old-sessions", "no"),
    ]
    # Its file was changed on 2026-07-18 at 17:02:24, and 90 days after that is 2026-10-16.
    assert answer["next"] == {
        "due": "2026-10-16T17:02:24Z",
        "action": "flag",
        "rule": "stale-guidelines",
        "reason": "age",
    }


def test_an_item_that_goes_is_explained_as_the_plan_has_it(reader: Server) -> None:
    """Of each known decision to delete, the explanation says the same."""
    for said in evolve.expected():
        if said["action"] == "delete":
            found = reader.ask("retention_explain", store="notes", id=said["id"])["decision"]
            assert {name: found[name] for name in ("id", "action", "reason", "rule")} == said


def test_a_recall_is_traced(reader: Server) -> None:
    """Of the sample's note the latest recalls come, the newest first, with their evidence."""
    rows = [json.loads(line) for line in reader.house.recalls.read_text().splitlines()]
    known = [
        (row["ts"].replace("+00:00", "Z"), hit["path"], hit["sim"], hit["rank"])
        for row in reversed(rows)
        for hit in row.get("hits", ())
        if hit["slug"] == "naming"
    ]
    matches = reader.ask("recall_trace", store="recall", slug="naming", limit=5)["matches"]
    assert [(said["at"], said["path"], said["sim"], said["rank"]) for said in matches] == known[:5]
    assert len(reader.ask("recall_trace", store="recall", slug="naming")["matches"]) == 3


@pytest.mark.parametrize("slug", ["never-there", "../../etc/passwd", "nul\0"])
def test_what_was_never_recalled_is_told_in_words(reader: Server, slug: str) -> None:
    """A slug of nothing is no error: the answer says how far the ledger reaches back."""
    answer = reader.ask("recall_trace", store="recall", slug=slug)
    assert (answer["matches"], answer["empty"]) == ([], "never recalled")
    assert "was never recalled in the 120 days that the ledger holds" in answer["explanation"]


def test_the_newest_runs_are_told(reader: Server) -> None:
    """The five fields of the newest runs are those of the sample's last lines, the newest first."""
    fields = ("runId", "wallClockMs", "cycleOverflowSignal", "cycleOverflowRatio", "outcome")
    lines = [json.loads(path.read_text()) for path in sorted(reader.house.runs.iterdir())]
    known = [{name: run[name] for name in fields} for run in reversed(lines)]
    assert len(known) == 260
    assert reader.ask("recent_runs", store="rem", limit=3)["runs"] == known[:3]
    assert reader.ask("recent_runs", store="rem")["runs"] == known[:10]


def test_the_window_of_history_is_told(reader: Server) -> None:
    """The sample's 600 rows reach over 119.88 days, and the oldest has been due since 90 days
    after it."""
    answer = reader.ask("history_window", store="recall")
    assert (answer["items"], answer["bytes"]) == (600, reader.house.recalls.stat().st_size)
    assert answer["oldest"] == "2026-03-28T02:53:09.380291Z"
    assert answer["newest"] == "2026-07-25T23:59:59Z"
    assert answer["days"] == pytest.approx(119.88, abs=0.01)
    # From 2026-06-26T02:53:09 to 2026-07-26T00:00:00 it is 29 days, 21 hours, 6 minutes and 51 s.
    assert answer["lag_seconds"] == pytest.approx(((29 * 24 + 21) * 60 + 6) * 60 + 50.62, abs=0.01)


REFUSED: dict[str, tuple[tuple[str, dict[str, Any]], tuple[str, ...]]] = {
    "a store that is not there": (
        ("history_window", {"store": "recal"}),
        ("There is no store named 'recal'", "Did you mean recall?"),
    ),
    "one of several": (
        ("retention_plan", {"stores": ["recall", "nowhere"]}),
        ("There is no store named 'nowhere'",),
    ),
    "a path for a store": (
        ("retention_status", {"stores": ["../keepfor.yaml"]}),
        ("There is no store named '../keepfor.yaml'",),
    ),
    "a store that cannot be read": (
        ("history_window", {"store": "broken"}),
        ("it is a folder, not a file", "Give the path of the ledger itself."),
    ),
    "rows explained": (
        ("retention_explain", {"store": "audit", "id": "1"}),
        ("it is of kind table", "Name one that is: rem, notes."),
    ),
    "runs traced": (
        ("recall_trace", {"store": "rem", "slug": "naming"}),
        ("it is of kind runs", "Name one that is: recall, broken."),
    ),
    "notes asked for runs": (
        ("recent_runs", {"store": "notes"}),
        ("it is of kind entities", "Name one that is: rem."),
    ),
    "a ledger told of access": (
        ("record_access", {"store": "recall", "ids": ["a"]}),
        ("it is of kind ledger", "Name one that is: notes."),
    ),
    "an id that is nearly right": (
        ("retention_explain", {"store": "notes", "id": "guideline/write-the-newline-last-note-77"}),
        ("among the 54 items", "Did you mean guideline/write-the-newline-last-note-7?"),
    ),
    "a path for an id": (
        ("retention_explain", {"store": "rem", "id": "../../etc/passwd"}),
        ("There is no '../../etc/passwd' among the 260 items",),
    ),
    "a path to record": (
        ("record_access", {"store": "notes", "ids": ["/etc/passwd", "../audit"]}),
        ("There is no '/etc/passwd' among the 54 items",),
    ),
    "too many runs": (
        ("recent_runs", {"store": "rem", "limit": 201}),
        ("limit: Input should be less than or equal to 200", "It takes: store, limit."),
    ),
    "no recall at all": (
        ("recall_trace", {"store": "recall", "slug": "naming", "limit": 0}),
        ("limit: Input should be greater than or equal to 1",),
    ),
    "an argument that is missing": (
        ("history_window", {}),
        ("store: Field required", "It takes: store."),
    ),
    "an argument that is not there": (
        ("retention_plan", {"store": "recall"}),
        ("store: there is no such argument", "It takes: stores, limit."),
    ),
    "ten million characters": (
        ("retention_explain", {"store": "notes", "id": "x" * 10_000_000}),
        ("id: String should have at most 4096 characters",),
    ),
    "a tool that is not there": (
        ("retention_forget", {}),
        ("There is no tool 'retention_forget'.", "There are: retention_status, retention_plan,"),
    ),
    "an apply that is not allowed": (
        ("retention_apply", {"digest": "0" * 64}),
        ("this server only looks", "keepfor mcp --allow-apply"),
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_answered_is_explained(reader: Server, what: str) -> None:
    """Each mistake gets one message that says what it was and what to do, and nothing else."""
    (tool, arguments), expected = REFUSED[what]
    said = reader.refusal(tool, **arguments)
    assert [words for words in expected if words not in said] == [], said
