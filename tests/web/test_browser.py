"""The dashboard in a real browser: Debian's chromium, at two sizes, in the light and in the dark.

Skipped where there is no browser, and failed in CI, which installs one.
"""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import uvicorn

from keepfor.web.app import build
from tests.web.site import Site

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed here")

AXE = Path(__file__).with_name("axe.min.js").read_text(encoding="utf-8")
#: Every page that there is, with one store of each kind, one that is empty and one that is broken.
PAGES = (
    "/",
    "/stores/recall",
    "/stores/rem",
    "/stores/audit",
    "/stores/notes",
    "/stores/broken",
    "/trail",
    "/trace?note=vault-moves",
    "/trace?store=notes&note=guideline/check-the-boundary-by-hand-note-26",
)
SIZES = {"desk": (1280, 900), "phone": (360, 740)}


class Window:
    """A window of the browser that notes down what should not happen in it.

    Parameters:
        page: the browser's page.
        address: the dashboard's.
    """

    def __init__(self, page: Any, address: str) -> None:
        self.page = page
        self.wrong: list[str] = []
        self._address = address
        page.on("console", self._heard)
        page.on("pageerror", lambda error: self.wrong.append(f"error: {error}"))
        page.on("dialog", self._asked)
        page.on("request", self._requested)

    def open(self, path: str) -> None:
        """Go to a page, and wait until all of it is there."""
        self.page.goto(f"{self._address}{path}")
        for place in self.page.locator(".lazy").all():
            place.locator("svg").wait_for()

    def violations(self) -> list[str]:
        """What axe-core finds on the page, an element for each."""
        self.page.evaluate(AXE)
        found = self.page.evaluate("axe.run({exclude: [['svg g']]}, {resultTypes: ['violations']})")
        return [
            f"{each['id']}: {node['html'][:200]}"
            for each in found["violations"]
            for node in each["nodes"]
        ]

    def _heard(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.wrong.append(f"console: {message.text}")

    def _asked(self, dialog: Any) -> None:
        self.wrong.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _requested(self, request: Any) -> None:
        if not request.url.startswith(f"{self._address}/"):
            self.wrong.append(f"request: {request.url}")


@contextmanager
def served(site: Site) -> Iterator[str]:
    """The dashboard over these stores, at a port of this machine."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        config = uvicorn.Config(
            build(site.desk(), "127.0.0.1"), log_config=None, lifespan="off", access_log=False
        )
        server = uvicorn.Server(config)
        thread = Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One browser for all tests here."""
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        if os.environ.get("CI"):
            pytest.fail("There is no chromium here, and CI must not skip these tests.")
        pytest.skip("There is no chromium here: apt-get install chromium")
    home = str(tmp_path_factory.mktemp("browser"))
    folders = {name: home for name in os.environ if name == "HOME" or name.startswith("XDG_")}
    # Its own sandbox is not to be had as root.
    sandbox = [] if os.geteuid() else ["--no-sandbox"]
    with playwright.sync_playwright() as play:
        running = play.chromium.launch(
            executable_path=program,
            args=[*sandbox, "--disable-gpu", "--disable-dev-shm-usage"],
            env=os.environ | folders,
        )
        yield running
        running.close()


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A dashboard over stores that no test here changes, with a note of a hostile name.

    Only the newest runs are there, of which the breaker holds a sweep back: axe-core takes long
    over long tables, and there are two of them.
    """
    site = Site(tmp_path_factory.mktemp("shown"))
    site.hostile()
    for run in sorted(site.runs.iterdir())[:-20]:
        run.unlink()
    site.file.write_text(site.file.read_text().replace("max_count: 200", "max_count: 8"))
    with served(site) as address:
        yield address


@contextmanager
def window(browser: Any, address: str, **options: Any) -> Iterator[Window]:
    """A window of its own, which has seen nothing yet; in the end nothing went wrong in it."""
    context = browser.new_context(**options)
    context.set_default_timeout(20_000)
    try:
        seen = Window(context.new_page(), address)
        yield seen
        assert seen.wrong == []
    finally:
        context.close()


@pytest.mark.parametrize(
    ("size", "scheme", "looks"),
    [
        # Each size and each scheme once is enough for axe-core: it takes a second for a page.
        ("desk", "light", True),
        ("desk", "dark", False),
        ("phone", "light", False),
        ("phone", "dark", True),
    ],
)
def test_every_page_is_sound_at_each_size_in_each_scheme(
    browser: Any, shown: str, size: str, scheme: str, looks: bool
) -> None:
    """No error, no request to elsewhere, nothing wider than the window, nothing that axe minds."""
    width, height = SIZES[size]
    view = {"width": width, "height": height}
    with window(browser, shown, viewport=view, color_scheme=scheme) as seen:
        for path in PAGES:
            seen.open(path)
            if looks:
                assert seen.violations() == [], path
            overflow = "document.documentElement.scrollWidth - window.innerWidth"
            assert seen.page.evaluate(overflow) <= 0, path
            assert seen.page.locator("h1").count() == 1, path
        ground = seen.page.evaluate("getComputedStyle(document.body).backgroundColor")
        lightness = sum(map(int, ground.removeprefix("rgb(").rstrip(")").split(","))) / 3
        assert (lightness > 128) == (scheme == "light")


def test_a_plan_is_applied_from_start_to_end(browser: Any, tmp_path: Path) -> None:
    """From the first page to the trail: a wrong token, the right one, and what was done."""
    site = Site(tmp_path)
    with served(site) as address, window(browser, address) as seen:
        page = seen.page
        seen.open("/")
        page.get_by_role("link", name="recall").click()
        assert page.locator(".sum").inner_text() == "151 of 600 rows would go."
        page.get_by_label("Token").fill("a guess")
        page.get_by_role("button", name="Apply this plan").click()
        assert "That is not the token" in page.get_by_role("alert").inner_text()
        # The browser notes an answer that refuses as an error of its own.
        (refused,) = seen.wrong
        assert "403" in refused
        seen.wrong.clear()
        page.get_by_role("link", name="Look at recall again").click()
        page.get_by_label("Token").fill(site.token)
        page.get_by_role("button", name="Apply this plan").click()
        said = page.get_by_role("status").inner_text()
        assert said == "151 of 600 rows applied, 449 kept, 0 skipped, 0 failed."
        assert page.locator("h1").inner_text() == "Done"
        assert seen.violations() == []
        # Whoever loads that page again asks for nothing again.
        page.reload()
        assert page.get_by_role("status").inner_text() == said
        page.get_by_role("link", name="Trail").click()
        assert "dashboard" in page.locator("tbody tr").inner_text()
        page.get_by_role("link", name="Stores", exact=True).click()
        assert "In order" in page.locator(".card", has_text="recall").inner_text()
    assert len(site.recalls.read_bytes().splitlines()) == 449
    assert len(site.trail) == 2


def test_a_stale_plan_is_refused_with_what_changed(browser: Any, tmp_path: Path) -> None:
    """A note that was edited while its plan stood on the screen is named, and nothing is done."""
    site = Site(tmp_path)
    note = site.notes / "entities" / "guideline" / "check-the-boundary-by-hand-note-26.md"
    with served(site) as address, window(browser, address) as seen:
        seen.open("/stores/notes")
        note.write_text("---\ntype: guideline\n---\n\nedited\n")
        before = site.snapshot()
        seen.page.get_by_label("Token").fill(site.token)
        seen.page.get_by_role("button", name="Apply this plan").click()
        said = seen.page.get_by_role("alert").inner_text()
        assert "guideline/check-the-boundary-by-hand-note-26 stays now" in said
        assert seen.violations() == []
        assert "409" in seen.wrong.pop()
    assert site.snapshot() == before


def test_a_hostile_name_does_nothing(browser: Any, shown: str) -> None:
    """A note whose name is markup is text wherever it stands, and its link finds it again."""
    with window(browser, shown) as seen:
        seen.open("/stores/notes")
        page = seen.page
        page.get_by_text("spared: something kept them").click()
        link = page.get_by_role("link", name="<img src=x onerror=alert(1)>")
        assert link.inner_text() == "guideline/<img src=x onerror=alert(1)>'\"&\\u202efdp"
        link.click()
        assert "no access on record" in page.locator(".sum").inner_text()
        assert "onerror" in page.get_by_label("Slug or id").input_value()
        assert page.locator("img").count() == 0


def test_a_keyboard_is_enough(browser: Any, shown: str) -> None:
    """The first stop leads to the content; links, evidence and forms are reached in their order."""
    with window(browser, shown) as seen:
        page = seen.page
        seen.open("/stores/notes")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip"
        page.keyboard.press("Enter")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "All stores"
        outline = "getComputedStyle(document.activeElement).outlineStyle"
        assert page.evaluate(outline) == "solid"
        page.locator("tbody summary").first.focus()
        page.keyboard.press("Enter")
        assert page.locator(".evidence").first.is_visible()
        seen.open("/trace")
        page.get_by_label("Slug or id").focus()
        page.keyboard.type("vault-moves")
        page.keyboard.press("Enter")
        page.locator("#traced table").first.wait_for()
        assert "note=vault-moves" in page.url


def test_what_comes_later_comes_without_a_new_page(browser: Any, tmp_path: Path) -> None:
    """More of a plan, another store's trail: what is asked for takes its place on the page."""
    site = Site(tmp_path)
    site.file.write_text(site.file.read_text().replace("max_count: 200", "max_count: 110"))
    with served(site) as address, window(browser, address) as seen:
        page = seen.page
        seen.open("/stores/rem")
        assert page.locator("#plan .does").count() == 100
        page.evaluate("window.still = true")
        page.get_by_role("link", name="Show the next 50 of 50 more").click()
        page.locator("#plan .does").nth(149).wait_for()
        assert page.locator(".more").count() == 0
        assert page.evaluate("window.still") is True
        seen.open("/trail")
        page.evaluate("window.still = true")
        page.get_by_label("Store").select_option("rem")
        page.get_by_text("Nothing is on record of rem").wait_for()
        assert page.evaluate("window.still") is True
        assert page.url.endswith("/trail?store=rem")


def test_without_scripts_all_is_told_too(browser: Any, shown: str) -> None:
    """A browser that runs no script sees each store, and traces a note."""
    with window(browser, shown, java_script_enabled=False) as seen:
        page = seen.page
        page.goto(shown)
        assert page.get_by_text("days of history").count() == 4
        assert page.get_by_role("link", name="See how old it is").count() == 4
        page.goto(f"{shown}/trace")
        page.get_by_label("Slug or id").fill("vault-moves")
        page.get_by_role("button", name="Trace").click()
        assert page.locator("tbody tr").count() == 10
