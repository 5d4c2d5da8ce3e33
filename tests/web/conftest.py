"""What the tests of the dashboard share."""

from __future__ import annotations

from pathlib import Path

import pytest
from starlette.testclient import TestClient

from tests.web.site import Site


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """Stores as the samples have them."""
    return Site(tmp_path)


@pytest.fixture
def client(site: Site) -> TestClient:
    """A program that asks for pages of a dashboard that may apply."""
    return site.client()
