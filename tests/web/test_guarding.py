"""Who is answered: only who asks under a name of this server, from its own pages, and may read."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from keepfor.web.guarding import is_loopback
from tests.web.site import Site, digest_in, words

HERE = "http://127.0.0.1:8765"


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8765",
        "127.0.0.1.evil.example",
        "localhost.evil.example:8765",
        "10.0.0.1:8765",
        "",
        "127.0.0.1@evil.example",
        "[::1",
        "http://127.0.0.1",
        "127.0.0.1:8765.evil.example",
        "evil.example@127.0.0.1",
        "127.0.0.1/evil.example",
        "127.0.0.1:99999",
    ],
)
def test_a_forged_host_is_refused(reader: TestClient, still: Site, host: str) -> None:
    """A name that is not this server's gets no page: else another page could read along."""
    answer = reader.get("/stores/recall", headers={"Host": host})
    assert answer.status_code == 421
    assert "recall.jsonl" not in answer.text


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:9000", "[::1]:8765", "LOCALHOST"])
def test_every_name_of_this_machine_will_do(reader: TestClient, host: str) -> None:
    """The loopback's own names are answered at any port, as through a tunnel."""
    assert reader.get("/", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:9999"},
        {"Origin": "http://127.0.0.1:8765.evil.example"},
        {"Origin": HERE, "Sec-Fetch-Site": "cross-site"},
        {"Origin": HERE, "Sec-Fetch-Site": "same-site"},
    ],
)
def test_a_form_of_another_page_is_refused(
    reader: TestClient, still: Site, headers: dict[str, str]
) -> None:
    """Even with the right digest and token, a form that comes from elsewhere does nothing."""
    form = {"digest": digest_in(reader.get("/stores/recall")), "token": still.token}
    before = still.snapshot()
    answer = reader.post("/stores/recall/apply", data=form, headers=headers)
    assert answer.status_code == 403
    assert still.snapshot() == before
    assert still.trail == []


def test_a_page_elsewhere_may_not_even_read(reader: TestClient) -> None:
    """A request that says that it comes from another page is refused, whatever it asks for."""
    answer = reader.get("/", headers={"Origin": "https://evil.example"})
    assert answer.status_code == 403
    assert "recall" not in answer.text


@pytest.mark.parametrize("address", ["/", "/nowhere", "/static/style.css", "/stores/recall"])
def test_every_answer_carries_what_keeps_a_page_to_itself(reader: TestClient, address: str) -> None:
    """The policy allows nothing from elsewhere and nothing within the page, in no frame."""
    headers = reader.get(address).headers
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "form-action 'self'" in policy
    assert "unsafe" not in policy
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "same-origin"
    assert headers["X-Frame-Options"] == "DENY"
    assert "Access-Control-Allow-Origin" not in headers
    assert ("no-store" in headers.get("Cache-Control", "")) != address.startswith("/static/")


def test_a_refusal_carries_them_too(reader: TestClient) -> None:
    """Who is refused gets the same headers."""
    answer = reader.get("/", headers={"Host": "evil.example"})
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]


def _beyond(still: Site) -> TestClient:
    """A dashboard that other machines can reach."""
    return still.client(host="0.0.0.0", token="sesame")


@pytest.mark.parametrize("address", ["/", "/stores/recall", "/static/style.css", "/?token=wrong"])
def test_beyond_loopback_nobody_reads_without_the_token(still: Site, address: str) -> None:
    """Where others can reach it, no page and no file is handed out to who has no token."""
    answer = _beyond(still).get(address)
    assert answer.status_code == 401
    assert "keepfor serve" in answer.text
    assert "recall" not in answer.text


def test_the_address_that_was_printed_lets_a_person_in(still: Site) -> None:
    """The token in the address is taken once, and is out of the address bar from then on."""
    client = _beyond(still)
    entered = client.get("/trail?token=sesame")
    assert (entered.status_code, entered.headers["Location"]) == (303, "/trail")
    cookie = entered.headers["Set-Cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=lax" in cookie
    assert client.get("/trail").status_code == 200
    assert "120" in words(client.get("/")) or "119.9" in words(client.get("/"))


def test_a_token_in_the_address_leads_nowhere_else(still: Site) -> None:
    """An address that begins with two slashes is not taken for another server's."""
    entered = _beyond(still).get("http://127.0.0.1:8765//evil.example/?token=sesame")
    assert entered.headers["Location"] == "/evil.example/"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Authorization": "Bearer sesame"}, 200),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": "Basic sesame"}, 401),
        ({"Cookie": "keepfor=sesame"}, 200),
        ({"Cookie": "keepfor=wrong"}, 401),
        ({"Cookie": "other=sesame"}, 401),
        ({"Cookie": "keepfor=\u00fc"}, 401),
    ],
)
def test_a_program_shows_the_token_in_a_header(
    still: Site, headers: dict[str, str], status: int
) -> None:
    """A bearer's token is as good as the cookie; any other is none."""
    encoded = {name.encode(): value.encode("latin-1") for name, value in headers.items()}
    assert _beyond(still).get("/", headers=encoded).status_code == status


def test_to_read_is_not_to_apply(still: Site) -> None:
    """The token for reading lets nobody apply."""
    client = _beyond(still)
    told = {"Authorization": "Bearer sesame", "Origin": HERE}
    form = {"digest": digest_in(client.get("/stores/recall", headers=told)), "token": "sesame"}
    assert client.post("/stores/recall/apply", data=form, headers=told).status_code == 403
    assert still.trail == []


@pytest.mark.parametrize(
    ("host", "status"), [("192.168.1.7:8765", 200), ("[fe80::1]", 200), ("evil.example", 421)]
)
def test_beyond_loopback_numbers_will_do_and_names_will_not(
    still: Site, host: str, status: int
) -> None:
    """No page elsewhere can have a number lead here; a name it can."""
    told = {"Host": host, "Authorization": "Bearer sesame"}
    assert _beyond(still).get("/", headers=told).status_code == status


def test_what_only_this_machine_reaches_is_told_apart() -> None:
    """The loopback's addresses are known as such, and nothing else is."""
    assert all(map(is_loopback, ("127.0.0.1", "127.1.2.3", "::1", "localhost", "LocalHost")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "10.0.0.1", "example.org", "")))
