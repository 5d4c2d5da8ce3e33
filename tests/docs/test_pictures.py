"""The pictures of the dashboard are there, small and shown, and are taken of the same stores."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, PAGES
from tests.web.site import words

#: A picture takes a moment to load where a line is slow.
LARGEST = 150_000


def shown(page: Path) -> set[Path]:
    """The pictures that a page shows by HTML, which tells the light from the dark."""
    found = re.findall(r'(?:src|srcset)="([^"]+)"', page.read_text(encoding="utf-8"))
    return {(page.parent / each).resolve() for each in found}


def test_every_picture_is_there_small_and_shown() -> None:
    """A page shows pictures that are there; none is large, and none lies about unused."""
    pictures = set((DOCS / "images").iterdir())
    assert set().union(*map(shown, PAGES)) == pictures
    assert {path.name for path in pictures if path.stat().st_size >= LARGEST} == set()


def test_a_picture_has_one_for_the_light_and_one_for_the_dark() -> None:
    """Whoever reads in the dark is shown the dark one."""
    for page in PAGES:
        names = [path.stem for path in shown(page)]
        light = {name.removesuffix("-light") for name in names if name.endswith("-light")}
        assert light == {name.removesuffix("-dark") for name in names if name.endswith("-dark")}


def test_pictures_are_taken_of_the_same_stores_each_time(tmp_path: Path) -> None:
    """What is shown stands still: four stores, two of them swept on days before, two never."""
    pytest.importorskip("playwright.sync_api", reason="playwright is not installed here")
    from tests.docs.screenshots import Shown

    reader = Shown(tmp_path).client(allowed=False)
    assert "2 of 4 stores need you" in words(reader.get("/"))
    trail = words(reader.get("/trail"))
    assert trail.count(" done 115 0 485 background ") == 2
    assert "2026-07-19 00:00 recall done" in trail
