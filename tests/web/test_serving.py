"""`keepfor serve` as a process: where it listens, what it prints, how it ends."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx2
import pytest

from keepfor.errors import CannotListen
from keepfor.web.serving import serve
from tests.evolve import NOW
from tests.web.site import Site

KEEPFOR = Path(sys.executable).with_name("keepfor")


class Running:
    """A dashboard that runs.

    Parameters:
        process: its process.
        address: where it said that it is.
    """

    def __init__(self, process: subprocess.Popen[str], address: str) -> None:
        self.process = process
        self.address = address

    def said(self) -> str:
        """The next line that it says."""
        assert self.process.stderr is not None
        return self.process.stderr.readline()


@contextmanager
def running(folder: Path, *options: str) -> Iterator[Running]:
    """A dashboard over the stores of that folder, at any port that is free."""
    command = [str(KEEPFOR), "serve", "--port", "0", *options]
    with subprocess.Popen(
        command, cwd=folder, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stderr is not None
            first = process.stderr.readline()
            found = re.fullmatch(r"The dashboard is at (http://\S+)\n", first)
            assert found is not None, first + process.stderr.read()
            yield Running(process, found[1])
        finally:
            process.kill()


def test_it_listens_at_loopback_and_ends_when_it_is_told_to(site: Site) -> None:
    """By default nobody but this machine reaches it; Ctrl-C ends it, with the code for that."""
    with running(site.folder) as dashboard:
        assert dashboard.address.startswith("http://127.0.0.1:")
        answer = httpx2.get(dashboard.address)
        assert answer.status_code == 200
        assert "days of history" in answer.text
        assert "server" not in answer.headers
        dashboard.process.send_signal(signal.SIGINT)
        assert dashboard.process.wait(30) == 130


def test_the_token_is_printed_and_lets_one_plan_be_applied(site: Site) -> None:
    """With --allow-apply a token stands on stderr; once it was used, the next one does."""
    with running(site.folder, "--allow-apply") as dashboard:
        pattern = r"To apply one plan, the token is (\S+)\n"
        first = re.fullmatch(pattern, dashboard.said())
        assert first is not None
        page = httpx2.get(f"{dashboard.address}stores/audit")
        # On the day of this test all rows of the sample are old, so that the breaker holds them.
        assert "holds this plan back" in page.text
        config = site.file.read_text().replace("{preset: caesar}", "{preset: caesar, breaker: off}")
        site.file.write_text(config)
        page = httpx2.get(f"{dashboard.address}stores/audit")
        digest = re.search(r'name="digest" value="(\w+)"', page.text)
        assert digest is not None
        done = httpx2.post(
            f"{dashboard.address}stores/audit/apply",
            data={"digest": digest[1], "token": first[1]},
            headers={"Origin": dashboard.address.rstrip("/")},
        )
        assert done.status_code == 303
        second = re.fullmatch(pattern, dashboard.said())
        assert second is not None
        assert second[1] != first[1]


def test_beyond_loopback_the_address_has_a_token_in_it(site: Site) -> None:
    """At an address that others reach, what is printed lets a person read, and else nothing."""
    with running(site.folder, "--host", "0.0.0.0") as dashboard:
        found = re.fullmatch(r"http://[^:/]+:(\d+)/\?token=(\S{20,})", dashboard.address)
        assert found is not None
        here = f"http://127.0.0.1:{found[1]}/"
        assert httpx2.get(here).status_code == 401
        told = {"Authorization": f"Bearer {found[2]}"}
        assert httpx2.get(here, headers=told).status_code == 200


def test_ten_megabytes_are_refused_over_a_real_connection(site: Site) -> None:
    """Who sends 10 MB gets a 413 before they are read, and the next one is answered."""
    with running(site.folder) as dashboard:
        port = int(dashboard.address.rstrip("/").rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port)) as connection:
            head = (
                f"POST /stores/recall/apply HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
                f"Origin: http://127.0.0.1:{port}\r\nContent-Length: 10000000\r\n"
                "Content-Type: application/x-www-form-urlencoded\r\n\r\n"
            )
            connection.sendall(head.encode())
            # The server need not take them.
            with suppress(ConnectionError):
                connection.sendall(b"x" * 100_000)
            assert connection.recv(12) == b"HTTP/1.1 413"
        assert httpx2.get(dashboard.address).status_code == 200


def test_without_a_configuration_it_starts_and_says_how_to_begin(tmp_path: Path) -> None:
    """A folder without keepfor.yaml is no reason not to start."""
    with running(tmp_path) as dashboard:
        assert "keepfor config init" in httpx2.get(dashboard.address).text


@pytest.mark.parametrize("host", ["127.0.0.1", "203.0.113.7"])
def test_an_address_that_is_not_to_be_had_says_so(host: str) -> None:
    """A port that is taken, and an address of another machine: what to do is said."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(CannotListen, match=f"{host}:{port}: .+ Name another place"):
            serve(None, {}, lambda: NOW, host=host, port=port, allow_apply=False, say=print)


def test_where_it_is_not_installed_the_extra_is_named(tmp_path: Path) -> None:
    """Without jinja2 the verb says what to install, and ends with the code for that."""
    (tmp_path / "jinja2.py").write_text("raise ImportError('not here', name='jinja2')\n")
    done = subprocess.run(
        [str(KEEPFOR), "serve"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert done.stderr == (
        "keepfor: serve: the dashboard is not installed here. "
        "Install keepfor with its extra: pip install '.[serve]' in a clone.\n"
    )
