"""Every link leads somewhere, and every page can be reached."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.pages import DOCS, PAGES, ROOT, anchors, links, named


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_link_leads_to_something(page: Path) -> None:
    """A link leads to a file of the project, and to a heading that is there; or to the web."""
    for link in links(page):
        if link.startswith("https://"):
            continue
        path, _, fragment = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.is_relative_to(ROOT), link
        assert target.is_file(), link
        if fragment:
            assert fragment in anchors(target), link


def test_every_page_can_be_reached_from_the_index() -> None:
    """A page that nobody links to is a page that nobody reads."""
    start = DOCS / "index.md"
    linked = {(start.parent / link.partition("#")[0]).resolve() for link in links(start)}
    assert [named(page) for page in DOCS.rglob("*.md") if page not in linked | {start}] == []


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_a_page_has_one_title(page: Path) -> None:
    """A page begins with its title."""
    assert page.read_text(encoding="utf-8").startswith("# ")
