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


@pytest.fixture(scope="session")
def still(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """The same stores, for all tests that change nothing."""
    return Site(tmp_path_factory.mktemp("still"))


@pytest.fixture(scope="session")
def reader(still: Site) -> TestClient:
    """A program that asks for pages, and changes nothing."""
    return still.client()
