"""What the pages tell, held to the known figures of the samples."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from keepfor.config.overview import Overview, overview
from keepfor.web.app import build
from keepfor.web.desk import Desk
from keepfor.web.overviews import state
from keepfor.web.rendering import ago, sentence, when
from tests import evolve
from tests.web.site import HOSTILE, Site, post, words

PAGES = (
    "/",
    "/stores/recall",
    "/stores/rem",
    "/stores/audit",
    "/stores/notes",
    "/stores/none_yet",
    "/stores/broken",
    "/stores/recall/ages",
    "/trail",
    "/trace",
    "/trace?note=naming",
)


@pytest.mark.parametrize("address", PAGES)
def test_looking_at_a_page_leaves_every_store_as_it_was(still: Site, address: str) -> None:
    """No page writes a byte, or touches an mtime, of any store."""
    before = still.snapshot()
    answer = still.client().get(address)
    assert answer.status_code == 200
    assert still.snapshot() == before
    assert still.trail == []


def test_the_first_page_tells_how_each_store_stands(reader: TestClient) -> None:
    """Days of history, size against ceiling, lag in words, last and next sweep: all stores."""
    said = words(reader.get("/"))
    assert "6 stores" in said
    for name in ("recall", "rem", "audit", "notes", "none_yet", "broken"):
        assert name in said
    # The oldest row of the sample is of 2026-03-28T02:53, its newest of 2026-07-25T23:59.
    assert "recall ledger Overdue by 29d 119.9 days of history" in said
    assert "600 rows, from 2026-03-28 02:53 to 2026-07-25 23:59" in said
    assert "of 1.0 MiB" in said
    assert "260 of 200 runs" in said
    assert "Last sweep none on record" in said
    assert "Next sweep none is known" in said


def test_a_store_that_cannot_be_read_says_why_and_the_others_show_on(reader: TestClient) -> None:
    """A ledger that is a folder is told as such, beside five stores that can be read."""
    said = words(reader.get("/"))
    assert "broken ledger Cannot be read" in said
    assert "it is a folder, not a file" in said
    assert said.count("days of history") == 4
    page = reader.get("/stores/broken")
    assert page.status_code == 200
    assert "It cannot be read" in words(page)


def test_a_trail_that_cannot_be_read_keeps_no_store_from_being_shown(site: Site) -> None:
    """Where the trail is a folder, the stores are told, and the page of the trail says why."""
    (site.folder / "state" / "trail.jsonl").mkdir(parents=True)
    client = site.client()
    assert words(client.get("/")).count("days of history") == 4
    assert client.get("/trail").status_code == 500
    assert "trail.jsonl" in words(client.get("/trail"))


def test_a_store_shows_what_would_go_as_the_plan_has_it(reader: TestClient) -> None:
    """Of the real sample 151 of 600 rows are older than 90 days, and the page says so."""
    said = words(reader.get("/stores/recall"))
    assert "151 of 600 rows would go." in said
    assert "Cutoff 2026-04-27 00:00 UTC" in said
    assert "keep_for everything, older than 90d: goes 151" in said
    assert "25.2 % would go, 50 % may at once" in said
    assert "vault-moves" in said  # The last row of the sample but one has that note.


def test_a_table_tells_what_goes_along(reader: TestClient) -> None:
    """150 of the 600 audit rows go, and 82 embeddings with them."""
    said = words(reader.get("/stores/audit"))
    assert "150 of 600 rows would go." in said
    assert "82 of semantic_chunks" in said


def test_a_plan_names_each_item_with_its_evidence(reader: TestClient) -> None:
    """Every note that the sample's rules take stands on the page, with its rule and its numbers."""
    answer = reader.get("/stores/notes")
    said = words(answer)
    for decision in evolve.expected():
        if decision["action"] != "skip":
            assert f"{decision['id']} {decision['action']} {decision['rule']}" in said
    assert "23 of 54 items would change: 9 go, 14 are flagged." in said
    assert "4 spared" in said
    assert "threshold 365d" in said


def test_a_long_plan_is_shown_to_its_end(site: Site) -> None:
    """Of 150 runs that go, the first hundred stand on the page, and the rest are a step away."""
    site.file.write_text(site.file.read_text().replace("max_count: 200", "max_count: 110"))
    client = site.client()
    page = client.get("/stores/rem")
    assert page.text.count('<span class="does delete">') == 100
    address = page.text.partition('hx-get="/stores/rem/plans/')[2].partition('"')[0]
    address = f"/stores/rem/plans/{address}"
    more = client.get(address, headers={"HX-Request": "true"})
    assert more.text.count('<span class="does delete">') == 50
    assert "<html" not in more.text
    assert "hx-get" not in more.text
    # Without a script the same link leads to a whole page.
    whole = client.get(address)
    assert whole.text.count('<span class="does delete">') == 50
    assert "<html" in whole.text


def test_the_newest_runs_are_told(reader: TestClient) -> None:
    """The page of a directory of runs has what the newest run says last."""
    said = words(reader.get("/stores/rem"))
    assert "Recent runs runId outcome wallClockMs" in said
    assert "60 of 260 runs would go." in said


def test_a_note_is_traced_through_all_stores(reader: TestClient) -> None:
    """A slug is looked for in each store; where it was recalled, the evidence is told."""
    said = words(reader.get("/trace?note=vault-moves"))
    assert "personal/_always-load/vault-moves.md 1 0.002867" in said
    assert "00b5c93a14e88f8f" in said
    assert "There is no 'vault-moves' among the 54 items" in said


def test_an_item_is_explained(reader: TestClient) -> None:
    """Why a note is flagged stands there: each rule's answer, and what settled it."""
    note = "guideline/check-the-boundary-by-hand-note-26"
    said = words(reader.get("/trace", params={"store": "notes", "note": note}))
    assert "To be flagged" in said
    assert "stale-guidelines flag yes age" in said
    assert "old-sessions delete no type" in said


def test_what_is_gone_is_told_from_the_trail(site: Site) -> None:
    """A note that a sweep deleted is known to be gone, since when, and by which rule."""
    client = site.client()
    digest = client.get("/stores/notes").text.partition('name="digest" value="')[2][:64]
    assert post(client, "/stores/notes/apply", {"digest": digest, "token": site.token}).is_redirect
    expected = [said for said in evolve.expected() if said["action"] == "delete"]
    gone = next(said for said in expected if said["reason"] == "age")
    said = words(client.get("/trace", params={"store": "notes", "note": gone["id"]}))
    assert "Gone It was deleted" in said
    assert f"by {gone['rule']} (age)" in said
    assert "Asked for by dashboard" in said


def test_no_store_configured_says_how_to_begin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where there is no keepfor.yaml, the first page says how one begins."""
    monkeypatch.chdir(tmp_path)
    desk = Desk(None, {"HOME": str(tmp_path)}, lambda: evolve.NOW)
    client = TestClient(build(desk, "127.0.0.1"), base_url="http://127.0.0.1")
    answer = client.get("/")
    assert answer.status_code == 200
    assert "keepfor config init" in words(answer)
    # As soon as there is one, it counts.
    (tmp_path / "keepfor.yaml").write_text(
        "stores:\n  mine: {kind: ledger, path: x.jsonl, keep_for: 90d}\nstate_dir: state\n"
    )
    assert "mine" in words(client.get("/"))


def test_a_configuration_with_a_mistake_says_where(site: Site) -> None:
    """What is wrong with keepfor.yaml stands on every page, with its line, until it is mended."""
    client = site.client()
    site.file.write_text("stores:\n  recall: {kind: ledger, path: x, keep_for: 90}\n")
    answer = client.get("/")
    assert answer.status_code == 503
    assert "keepfor.yaml:2" in words(answer)


def test_a_hostile_name_is_text_wherever_it_stands(site: Site) -> None:
    """A note's name with markup in it is shown as it is, and what turns it around is spelt out."""
    site.hostile()
    client = site.client()
    store = client.get("/stores/notes")
    traced = client.get("/trace", params={"store": "notes", "note": HOSTILE})
    for answer in (store, traced):
        assert answer.status_code == 200
        assert "<img" not in answer.text
        assert "\u202e" not in answer.text
        assert "<img src=x onerror=alert(1)>'\"&\\u202efdp" in words(answer)


@pytest.mark.parametrize(
    ("address", "status"),
    [
        ("/stores/nothing", 404),
        ("/stores/..%2f..%2fetc%2fpasswd", 404),
        ("/stores/nothing/ages", 404),
        ("/stores/recall/plans/" + "0" * 64, 404),
        ("/stores/recall/swept/" + "0" * 64, 404),
        ("/static/../keepfor.yaml", 404),
        ("/static/%2e%2e/app.py", 404),
        ("/nowhere", 404),
        ("/trace?store=notes&note=../../../etc/passwd", 404),
        ("/trace?store=nothing&note=x", 404),
        ("/trace?store=audit&note=x", 400),
        ("/trace?note=" + "x" * 5000, 400),
        ("/trail?page=-1", 400),
        ("/trail?page=999999999999", 400),
    ],
)
def test_what_is_not_there_gets_a_clear_answer(
    reader: TestClient, address: str, status: int
) -> None:
    """An unknown store, plan or note, a path in an id, an odd number: a 4xx that says so."""
    answer = reader.get(address)
    assert answer.status_code == status
    assert "Traceback" not in answer.text
    assert "root:" not in answer.text
    assert len(words(answer)) > 20


def test_a_file_outside_the_store_is_never_asked_for(site: Site) -> None:
    """A path in an id names no file: a note beside the store is not found by it."""
    (site.folder / "secret.md").write_text("the secret of this test")
    answer = site.client().get("/trace", params={"store": "notes", "note": "../../secret"})
    assert answer.status_code == 404
    assert "the secret of this test" not in answer.text


def test_a_fault_of_ours_is_told_without_its_insides(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What nobody foresaw is a 500 that names no line of code, and carries the same headers."""

    def broken(*_: object) -> None:
        raise RuntimeError("insides")

    monkeypatch.setattr("keepfor.web.overviews.cards", broken)
    answer = site.client().get("/")
    assert answer.status_code == 500
    assert "insides" not in answer.text
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]


def test_the_trail_is_told_store_by_store(site: Site) -> None:
    """The trail shows what was done, also of one store alone, a page at a time."""
    client = site.client()
    assert "Nothing is on record" in words(client.get("/trail"))
    digest = client.get("/stores/recall").text.partition('name="digest" value="')[2][:64]
    post(client, "/stores/recall/apply", {"digest": digest, "token": site.token})
    said = words(client.get("/trail"))
    assert "recall done 151 0 449 dashboard" in said
    assert "recall done" in words(client.get("/trail?store=recall"))
    assert "Nothing is on record of rem" in words(client.get("/trail?store=rem"))
    assert "further back" in words(client.get("/trail?page=2"))


def test_nothing_on_a_page_leads_to_another_machine(reader: TestClient) -> None:
    """No page, and no style or script, names an address outside this machine."""
    folder = Path("src/keepfor/web/static")
    root = Path(__file__).parents[2]
    for address in PAGES:
        text = reader.get(address).text
        assert "http://" not in text
        assert "https://" not in text
        assert "<style" not in text
        assert " style=" not in text
        assert " onclick" not in text
    style = (root / folder / "style.css").read_text()
    assert "url(" not in style
    assert "@import" not in style
    assert os.path.exists(root / folder / "htmx.LICENSE")


def _overview(site: Site, name: str, now: datetime = evolve.NOW) -> Overview:
    """How a store of the samples stands at some instant."""
    config = Desk(site.file, {}, lambda: now).config()
    return overview(config, name, now, {})


def test_how_a_store_stands_is_told_in_words(site: Site) -> None:
    """In order, due, held back, unbounded, empty: each has a word of its own beside its colour."""
    text = site.file.read_text()
    assert state(_overview(site, "none_yet")).word == "Empty"
    # The oldest row is of 2026-03-28T02:53, and 90 days later it is due since 21 hours.
    due = state(_overview(site, "recall", datetime(2026, 6, 27, tzinfo=UTC)))
    assert (due.tone, due.word) == ("warn", "Due for 21h6min")
    order = state(_overview(site, "recall", datetime(2026, 6, 26, tzinfo=UTC)))
    assert (order.tone, order.word) == ("good", "In order")
    site.file.write_text(text.replace("max_count: 200", "max_count: off"))
    loose = state(_overview(site, "rem"))
    assert (loose.tone, loose.word) == ("warn", "Unbounded")
    site.file.write_text(
        text.replace("keep_for: 90d, max_bytes: 1MiB", "keep_for: 1h, grace: 999d")
    )
    held = state(_overview(site, "recall"))
    assert (held.tone, held.word) == ("bad", "Held back")
    assert "600 rows would go, 50% may at once" in held.what
    late = state(_overview(site, "recall", datetime(2030, 1, 1, tzinfo=UTC)))
    assert late.word.startswith("Overdue by")
    assert late.what.endswith("The breaker holds a sweep back.")


def test_what_a_program_wrote_oddly_is_told_and_breaks_nothing(site: Site) -> None:
    """Rows and runs with values of any kind are shown as text, or passed over."""
    odd = [
        '{"hit_slugs": ["naming", 7, null, "<b>"], "query_hash": {"a": [1]}, "ts": "2026-07-25"}',
        '{"hit_slugs": "naming", "ts": "2026-07-25T00:00:00Z"}',
        '{"hit_slugs": ["\\ud800"], "ts": "2026-07-25T00:00:00Z"}',
        "no JSON at all",
        "[" * 5000 + "]" * 5000,
    ]
    with site.recalls.open("a") as file:
        file.write("\n".join(odd) + "\n")
    run = site.runs / "2026-07-25T23-30-00-000Z.jsonl"
    run.write_text('{"runId": ["<b>"], "outcome": null, "wallClockMs": "%s"}\n' % ("9" * 5000))
    client = site.client()
    said = words(client.get("/stores/recall"))
    assert '{"a": [1]} naming <b>' in said
    runs = client.get("/stores/rem")
    assert runs.status_code == 200
    assert '["<b>"] null 999' in words(runs)
    assert "9" * 201 not in runs.text


def test_a_trail_that_a_stray_hand_wrote_in_is_told(site: Site) -> None:
    """Records of no sense are shown as what they are, markup as text."""
    record = {
        "event": "outcome",
        "store": "<i>",
        "ts": "yesterday",
        "notes": ["<u>"],
        "error": "<s>",
        "plan": 5,
        "duration": "long",
        "applied": "many",
    }
    (site.folder / "state").mkdir()
    (site.folder / "state" / "trail.jsonl").write_text(json.dumps(record) + "\n")
    answer = site.client().get("/trail")
    assert answer.status_code == 200
    assert "yesterday <i> failed <s> <u>" in words(answer)
    assert not any(f"<{tag}>" in answer.text for tag in "ius")


def test_a_store_page_shows_on_without_its_trail(site: Site) -> None:
    """Where the trail cannot be read, the store's page says so in its place, and tells the rest."""
    (site.folder / "state" / "trail.jsonl").mkdir(parents=True)
    said = words(site.client().get("/stores/recall"))
    assert "151 of 600 rows would go." in said
    assert "trail.jsonl" in said


def test_times_are_told_from_now() -> None:
    """What was, what is and what will be: each as far away as it is, the whole for programs."""
    now = datetime(2026, 7, 26, 12, tzinfo=UTC)
    assert ago(now - timedelta(days=3), now) == (
        '<time datetime="2026-07-23T12:00:00Z" title="2026-07-23T12:00:00Z">3d ago</time>'
    )
    assert ">in 2h<" in ago(now + timedelta(hours=2), now)
    assert ">just now<" in ago(now, now)
    assert ago("no time", now) == "no time"
    assert ago(None, now) == when(None) == "-"
    assert sentence("run `a` or `b`") == "Run <code>a</code> or <code>b</code>"
    assert sentence("odd ` <mark>") == "Odd ` &lt;mark&gt;"
