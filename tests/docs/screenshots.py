"""Takes the pictures of the dashboard in docs/images, of the same stores on the same day each time.

`make screenshots` runs it; it needs chromium. Only the fonts in a picture are the machine's own.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import tempfile
from datetime import datetime, timedelta
from pathlib import Path

import time_machine
from playwright.sync_api import Page, sync_playwright

from keepfor import Sweeper, config
from keepfor.cli import sandbox
from keepfor.items import Report
from tests import caesar, evolve, neo
from tests.docs.pages import DOCS
from tests.docs.sandbox import HOME_SHOWN
from tests.evolve import NOW
from tests.web.site import Site
from tests.web.test_browser import served

IMAGES = DOCS / "images"
#: What is shown, by the name of its picture.
PAGES = {
    "stores": "/",
    "store": "/stores/notes",
    "trail": "/trail",
    "trace": f"/trace?note={sandbox.SLUG}",
}
SCHEMES = ("light", "dark")

_CONFIG = """\
state_dir: state
stores:
  recall: {kind: ledger, path: recall-history.jsonl, keep_for: 90d, max_bytes: 1MiB}
  rem: {kind: runs, path: rem-runs, max_count: 200}
  audit: {preset: caesar}
  notes: {preset: evolve-lite}
"""
#: Puts still what differs from one time to the next: the folder, how long a sweep took, its digest.
_STILL = """([folder, home]) => {
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    const digest = (count) => (0x19d3f0be7 * count).toString(16).slice(-8);
    let count = 0;
    while (walker.nextNode()) {
        const node = walker.currentNode;
        node.data = node.data.replaceAll(folder, home)
            .replace(/^\\d+ ?ms$/, '12ms').replace(/^[0-9a-f]{8}$/, () => digest(++count));
    }
}"""


class Shown(Site):
    """The demo's ledger and a sample of each other kind, two of them swept before.

    Parameters:
        folder: an empty one.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.told = []
        self.file = sandbox.build(folder, NOW)
        self.file.write_text(_CONFIG, encoding="utf-8")
        neo.rebuild(folder / "rem-runs")
        caesar.rebuild(folder)
        evolve.rebuild(folder)
        for days in (7, 6, 1):
            self._sweep(NOW - timedelta(days=days))

    def _sweep(self, now: datetime) -> None:
        settings = config.load(self.file, environ={})
        with time_machine.travel(now, tick=False):
            for store in "recall", "audit":
                done = asyncio.run(Sweeper(settings, stores=[store]).sweep_now())
                assert isinstance(done[store], Report), done


def take(page: Page, address: str, folder: Path, path: str, picture: Path) -> None:
    """Take a picture of one page, as it is in a window.

    Parameters:
        page: the browser's.
        address: the dashboard's.
        folder: where the stores lie, which the picture does not tell.
        path: of the page.
        picture: the file to write.
    """
    page.goto(f"{address}{path}")
    for place in page.locator(".lazy").all():
        place.locator("svg").wait_for()
    page.evaluate(_STILL, [str(folder), HOME_SHOWN])
    page.screenshot(path=picture, animations="disabled", caret="hide")


def main() -> int:
    """Take them all; returns 1 where there is no browser."""
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        print("There is no chromium here: apt-get install chromium", file=sys.stderr)
        return 1
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="keepfor-") as home:
        folder = Path(home).resolve() / "stores"
        folder.mkdir()
        with served(Shown(folder)) as address, sync_playwright() as play:
            # Its own sandbox is not to be had as root.
            alone = [] if os.geteuid() else ["--no-sandbox"]
            browser = play.chromium.launch(
                executable_path=program,
                args=[*alone, "--disable-gpu", "--disable-dev-shm-usage"],
                env={**os.environ, "HOME": home},
            )
            for scheme in SCHEMES:
                page = browser.new_page(viewport={"width": 1100, "height": 800})
                page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
                for name, path in PAGES.items():
                    picture = IMAGES / f"{name}-{scheme}.png"
                    take(page, address, folder, path, picture)
                    print(f"{picture.relative_to(DOCS.parent)}  {picture.stat().st_size:,} bytes")
            browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
