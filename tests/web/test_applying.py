"""Applying from the dashboard: exactly the plan on the screen, once, by who has the token."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from keepfor.web.guarding import LONGEST
from tests import evolve
from tests.web.site import Site, digest_in, post, words


def test_a_plan_is_applied_from_the_page_that_shows_it(site: Site) -> None:
    """The token and the digest on the page apply that plan; the next page says what was done."""
    client = site.client()
    digest = digest_in(client.get("/stores/recall"))
    done = post(client, "/stores/recall/apply", {"digest": digest, "token": site.token})
    assert done.status_code == 303
    said = words(client.get(done.headers["Location"]))
    assert "151 of 600 rows applied, 449 kept, 0 skipped, 0 failed." in said
    assert len(site.recalls.read_bytes().splitlines()) == 449
    begun, ended = site.trail
    assert (begun["event"], ended["event"]) == ("intent", "outcome")
    assert (ended["started_by"], ended["plan"], ended["applied"]) == ("dashboard", digest, 151)


def test_notes_are_deleted_and_flagged_as_the_page_said(site: Site) -> None:
    """Of the sample's notes exactly those go that are known to be right, and no other."""
    client = site.client()
    digest = digest_in(client.get("/stores/notes"))
    post(client, "/stores/notes/apply", {"digest": digest, "token": site.token})
    gone = {
        said["id"]
        for said in evolve.expected()
        if not (site.notes / evolve.file_of(said["id"])).exists()
    }
    assert gone == evolve.expected_ids("delete")
    (ended,) = (record for record in site.trail if record["event"] == "outcome")
    assert (ended["applied"], ended["kept"]) == (23, 31)


def test_what_came_after_the_plan_stays(site: Site) -> None:
    """A row that was appended once the plan stood on the screen is out of its reach."""
    client = site.client()
    digest = digest_in(client.get("/stores/recall"))
    late = json.dumps({"hit_slugs": [], "ts": "2026-01-01T00:00:00+00:00"}) + "\n"
    with site.recalls.open("a") as file:
        file.write(late)
    done = post(client, "/stores/recall/apply", {"digest": digest, "token": site.token})
    assert done.status_code == 303
    left = site.recalls.read_text().splitlines(keepends=True)
    assert (len(left), left[-1]) == (450, late)


def test_a_wrong_token_does_nothing(site: Site) -> None:
    """Without the token nothing is done, and the one that was told stays good."""
    client = site.client()
    digest = digest_in(client.get("/stores/recall"))
    before = site.snapshot()
    for token in ("", "guess", "\u00fc", site.token[:-1]):
        refused = post(client, "/stores/recall/apply", {"digest": digest, "token": token})
        assert refused.status_code == 403
        assert "That is not the token" in words(refused)
    assert site.snapshot() == before
    assert site.trail == []
    done = post(client, "/stores/recall/apply", {"digest": digest, "token": site.token})
    assert done.status_code == 303


def test_a_token_is_good_for_one_plan(site: Site) -> None:
    """After a sweep the token is spent, and the person who started the server is told the next."""
    client = site.client()
    first = site.token
    digest = digest_in(client.get("/stores/recall"))
    post(client, "/stores/recall/apply", {"digest": digest, "token": first})
    assert site.token != first
    digest = digest_in(client.get("/stores/rem"))
    refused = post(client, "/stores/rem/apply", {"digest": digest, "token": first})
    assert refused.status_code == 403
    done = post(client, "/stores/rem/apply", {"digest": digest, "token": site.token})
    assert done.status_code == 303
    assert len(list(site.runs.iterdir())) == 200


def test_without_leave_nobody_applies(site: Site) -> None:
    """A dashboard that only shows has no form, and refuses one that is made up."""
    client = site.client(allowed=False)
    page = client.get("/stores/recall")
    assert "<form" not in page.text
    assert "This dashboard only shows." in words(page)
    before = site.snapshot()
    refused = post(client, "/stores/recall/apply", {"digest": "0" * 64, "token": ""})
    assert refused.status_code == 403
    assert site.snapshot() == before
    assert site.told == []


@pytest.mark.parametrize("digest", ["", "0" * 64, "../../etc/passwd", "x" * 3000])
def test_a_plan_that_was_not_shown_is_not_applied(site: Site, digest: str) -> None:
    """A digest that no page showed is refused, whatever it is."""
    before = site.snapshot()
    refused = post(site.client(), "/stores/recall/apply", {"digest": digest, "token": site.token})
    assert refused.status_code == 404
    assert "No plan with the digest" in words(refused)
    assert site.snapshot() == before


def test_a_plan_is_applied_to_its_own_store_alone(site: Site) -> None:
    """The digest of one store's plan does nothing at the address of another store."""
    client = site.client()
    digest = digest_in(client.get("/stores/recall"))
    before = site.snapshot()
    refused = post(client, "/stores/rem/apply", {"digest": digest, "token": site.token})
    assert refused.status_code == 404
    assert site.snapshot() == before


def test_a_plan_is_not_applied_twice(site: Site) -> None:
    """The second time the same plan is refused, as carried out already."""
    client = site.client()
    form = {"digest": digest_in(client.get("/stores/audit"))}
    assert post(client, "/stores/audit/apply", form | {"token": site.token}).status_code == 303
    again = post(client, "/stores/audit/apply", form | {"token": site.token})
    assert again.status_code == 409
    assert "It was carried out already." in words(again)


def _stale(site: Site, client: TestClient, name: str, digest: str) -> str:
    """What is said of a plan that no longer holds; nothing was done."""
    before = site.snapshot()
    refused = post(client, f"/stores/{name}/apply", {"digest": digest, "token": site.token})
    assert refused.status_code == 409
    assert site.snapshot() == before
    assert site.trail == []
    said = words(refused)
    assert "This plan no longer holds" in said
    assert "Nothing was done. What changed:" in said
    return said


def test_a_changed_policy_makes_a_plan_stale(site: Site) -> None:
    """Where keepfor.yaml says something else by now, the plan is refused, with both sentences."""
    client = site.client()
    digest = digest_in(client.get("/stores/recall"))
    site.file.write_text(site.file.read_text().replace("keep_for: 90d, max", "keep_for: 30d, max"))
    said = _stale(site, client, "recall", digest)
    assert "They said: Rows older than 90d go" in said
    assert "They say now: Rows older than 30d go" in said


def test_a_changed_note_makes_a_plan_stale(site: Site) -> None:
    """An item that was edited, one that is gone and one that is young now are each named."""
    client = site.client()
    digest = digest_in(client.get("/stores/notes"))
    one, two = sorted(evolve.expected_ids("flag"))[:2]
    (site.notes / evolve.file_of(one)).write_text("---\ntype: guideline\n---\n\nnew\n")
    (site.notes / evolve.file_of(two)).unlink()
    said = _stale(site, client, "notes", digest)
    assert f"{one} stays now: no rule took it." in said
    assert f"{two} is no longer there." in said


def test_rows_that_went_otherwise_make_a_plan_stale(site: Site) -> None:
    """Where somebody else pruned the ledger meanwhile, the plan is refused with the counts."""
    client = site.client()
    digest = digest_in(client.get("/stores/recall"))
    lines = site.recalls.read_bytes().splitlines(keepends=True)
    site.recalls.write_bytes(b"".join(lines[100:]))
    said = _stale(site, client, "recall", digest)
    assert "151 rows would have gone, and 51 rows would now." in said


def test_another_file_in_its_place_makes_a_plan_stale(site: Site) -> None:
    """A ledger that was replaced by another with as many old rows is not pruned by the old plan."""
    client = site.client()
    digest = digest_in(client.get("/stores/recall"))
    other = site.folder / "other.jsonl"
    other.write_bytes(site.recalls.read_bytes())
    other.replace(site.recalls)
    assert "replaced by another one" in _stale(site, client, "recall", digest)


def test_a_store_that_cannot_be_read_any_more_makes_a_plan_stale(site: Site) -> None:
    """What keeps the store from being read stands among the changes."""
    client = site.client()
    digest = digest_in(client.get("/stores/recall"))
    site.recalls.unlink()
    site.recalls.mkdir()
    assert "it is a folder" in _stale(site, client, "recall", digest)


def test_a_store_that_moved_makes_a_plan_stale(site: Site) -> None:
    """Where the settings name another file by now, both are told."""
    client = site.client()
    digest = digest_in(client.get("/stores/recall"))
    site.file.write_text(site.file.read_text().replace("recall.jsonl", "moved.jsonl"))
    assert "moved.jsonl now" in _stale(site, client, "recall", digest)


def test_no_page_passes_the_breaker(site: Site) -> None:
    """A plan that deletes most of a store has no form, and is refused if one is made up."""
    site.file.write_text(site.file.read_text().replace("max_count: 200", "max_count: 20"))
    client = site.client()
    page = client.get("/stores/rem")
    assert "<form" not in page.text
    assert "keepfor apply rem --force" in words(page)
    digest = page.text.partition('<dt>Digest</dt><dd><code title="')[2][:64]
    before = site.snapshot()
    refused = post(client, "/stores/rem/apply", {"digest": digest, "token": site.token})
    assert refused.status_code == 409
    assert "more than the 50% that the breaker allows" in words(refused)
    assert site.snapshot() == before


def test_only_so_many_plans_are_remembered(site: Site) -> None:
    """A plan that was shown long ago is forgotten, so that memory stays flat; it says so."""
    client = site.client()
    digest = digest_in(client.get("/stores/recall"))
    for _ in range(16):
        client.get("/stores/recall")
    refused = post(client, "/stores/recall/apply", {"digest": digest, "token": site.token})
    assert refused.status_code == 404
    assert "a later one of its store took its place" in words(refused)


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"x" * 10_000_000, {}, 413),
        (b"x" * (LONGEST + 1), {}, 413),
        (b"&".join(b"a=b" for _ in range(100)), {}, 400),
        (b"digest=\xff", {}, 400),
        (b"{}", {"Content-Type": "application/json"}, 415),
        (b"", {"Content-Type": "multipart/form-data; boundary=x"}, 415),
    ],
)
def test_a_body_that_is_no_short_form_is_refused(
    reader: TestClient, still: Site, body: bytes, headers: dict[str, str], status: int
) -> None:
    """10 MB, a hundred fields, bytes that are no text, JSON: a clear 4xx, and nothing is done."""
    before = still.snapshot()
    told = {
        "Origin": "http://127.0.0.1:8765",
        "Content-Type": "application/x-www-form-urlencoded",
    }
    answer = reader.post("/stores/recall/apply", content=body, headers=told | headers)
    assert answer.status_code == status
    assert still.snapshot() == before


def test_a_long_body_is_refused_though_it_does_not_say_how_long_it_is(reader: TestClient) -> None:
    """A form that comes in pieces is cut off at the same length."""
    told = {
        "Origin": "http://127.0.0.1:8765",
        "Content-Type": "application/x-www-form-urlencoded",
    }
    pieces = (b"x" * 1000 for _ in range(100))
    answer = reader.post("/stores/recall/apply", content=pieces, headers=told)
    assert answer.status_code == 413


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH"])
def test_only_a_form_applies(reader: TestClient, still: Site, method: str) -> None:
    """Any other way of asking is refused, and does nothing."""
    before = still.snapshot()
    told = {"Origin": "http://127.0.0.1:8765"}
    assert reader.request(method, "/stores/recall/apply", headers=told).status_code == 405
    assert still.snapshot() == before


def test_the_state_folder_alone_is_written(site: Site, tmp_path: Path) -> None:
    """A sweep writes to its store and to the state folder, and to nothing else."""
    client = site.client()
    before = site.snapshot()
    digest = digest_in(client.get("/stores/recall"))
    post(client, "/stores/recall/apply", {"digest": digest, "token": site.token})
    after = site.snapshot()
    assert {name for name in before | after if before.get(name) != after.get(name)} == {
        "recall.jsonl"
    }
