"""`keepfor trace` and `keepfor count` answer what was recalled, and tell empty answers apart."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import Place

BARE = '{"hit_count": 1, "hit_slugs": ["bare"], "query_hash": "00", "ts": "2026-07-01T00:00:00Z"}\n'


def test_the_latest_recalls_are_traced(place: Place) -> None:
    """Of the sample's note the three latest recalls come, the newest first, with their evidence."""
    rows = [json.loads(line) for line in place.sample().read_text().splitlines()]
    known = [
        (row["ts"], hit["path"], hit["sim"], hit["rank"])
        for row in reversed(rows)
        for hit in row.get("hits", ())
        if hit["slug"] == "naming"
    ]
    ran = place.run("trace", "recall", "naming", "--json")
    assert ran.code == 0
    found = [
        (match["at"].replace("Z", "+00:00"), match["path"], match["sim"], match["rank"])
        for match in ran.json["matches"]
    ]
    assert found == known[:3]
    assert ran.json["empty"] is None
    assert len(place.run("trace", "recall", "naming", "-n", "7", "--json").json["matches"]) == 7


def test_a_person_reads_when_where_and_why(place: Place) -> None:
    """The text holds each match's instant, path, scores, tier and decay."""
    place.sample()
    text = place.run("trace", "recall", "vault-moves", "-n", "1").out
    assert text == (
        "vault-moves  latest recall\n"
        "\n"
        "  2026-07-25T23:59:59Z  personal/_always-load/vault-moves.md\n"
        "                        rank 1, combined 0.002867, sim 0.8422, keyword 0.943\n"
        "                        tier stable, decay 0.8714, query 00b5c93a14e88f8f\n"
    )


def test_the_empty_answers_are_told_apart(place: Place) -> None:
    """No ledger, never recalled and recalled without evidence are three answers, and all are 0."""
    ran = place.run("trace", "recall", "x")
    assert ran.code == 0
    assert "There is no ledger yet at" in ran.out
    place.ledger.write_text(BARE)
    assert "x was never recalled in the 0 days" in place.run("trace", "recall", "x").out
    assert "before evidence was captured" in place.run("trace", "recall", "bare").out
    document = place.run("trace", "recall", "bare", "--json").json
    assert (document["empty"], document["matches"]) == ("no evidence", [])
    assert document["explanation"].startswith("bare was recalled before")


@pytest.mark.parametrize("count", ["0", "-1", "three"])
def test_a_count_of_matches_is_a_whole_number(place: Place, count: str) -> None:
    """-n is one or more."""
    ran = place.run("trace", "recall", "naming", "-n", count)
    assert ran.code == 2
    assert "'-n'" in ran.err


def test_a_slug_that_looks_like_an_option_can_be_traced(place: Place) -> None:
    """After `--` a word is a word."""
    place.ledger.write_text(BARE.replace("bare", "--json"))
    ran = place.run("trace", "recall", "--", "--json")
    assert ran.code == 0
    assert "--json was recalled before evidence was captured" in ran.out


@pytest.mark.parametrize(
    ("since", "instant", "recalls", "hits"),
    [
        ("2026-07-24", "2026-07-24T00:00:00Z", 3, 6),
        ("2026-07-24T00:00:01Z", "2026-07-24T00:00:01Z", 2, 5),
        ("2026-07-24T02:00:01+02:00", "2026-07-24T00:00:01Z", 2, 5),
        ("36h", "2026-07-24T12:00:00Z", 2, 5),
        ("1d", "2026-07-25T00:00:00Z", 1, 3),
        ("P2D", "2026-07-24T00:00:00Z", 3, 6),
    ],
)
def test_recalls_are_counted_since(
    place: Place, since: str, instant: str, recalls: int, hits: int
) -> None:
    """A date counts from its first moment, an instant from itself, a duration back from now."""
    days = {"2026-07-23": 9, "2026-07-24": 1, "2026-07-24T12:30": 2, "2026-07-25T01:00": 3}
    stamped = {day if "T" in day else f"{day}T00:00": hits for day, hits in days.items()}
    rows = (
        {"hit_count": hits, "hit_slugs": ["a"] * hits, "ts": f"{stamp}:00Z"}
        for stamp, hits in stamped.items()
    )
    place.ledger.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    document = place.run("count", "recall", "--since", since, "--json").json
    assert (document["since"], document["recalls"], document["hits"]) == (instant, recalls, hits)
    said = f"since {instant}, in which notes surfaced {hits} times.\n"
    assert place.run("count", "recall", "--since", since).out.endswith(said)


def test_the_samples_recalls_are_counted(place: Place) -> None:
    """Of the sample, 37 rows are of the last seven days."""
    place.sample()
    assert place.run("count", "recall", "--since", "7d").out.startswith(
        "37 recalls since 2026-07-19"
    )


def test_one_is_no_plural(place: Place) -> None:
    """One recall and one note are written as one."""
    place.ledger.write_text(BARE)
    assert place.run("count", "recall", "--since", "2026-07-01").out == (
        "1 recall since 2026-07-01T00:00:00Z, in which notes surfaced 1 time.\n"
    )


@pytest.mark.parametrize(
    ("since", "said"),
    [("7m", "minutes or months"), ("yesterday", "2026-07-26"), ("7", "not a"), ("0d", "kept")],
)
def test_a_time_that_is_none_is_refused(place: Place, since: str, said: str) -> None:
    """A typo in --since is an error of usage that says what to write."""
    ran = place.run("count", "recall", "--since", since)
    assert ran.code == 2
    assert said in ran.err


def test_since_when_has_to_be_said(place: Place) -> None:
    """A count without a beginning is an error of usage."""
    ran = place.run("count", "recall")
    assert ran.code == 2
    assert "--since" in ran.err


def test_a_store_that_does_not_exist_is_refused(place: Place) -> None:
    """Both verbs name the store that they do not know."""
    assert place.run("trace", "nope", "naming").code == 2
    assert "'nope'" in place.run("count", "nope", "--since", "1d").err
