"""A server that only looks and one that may apply, each started once for all tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.mcp.house import House, Server, serving


@pytest.fixture(scope="session")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that only looks."""
    with serving(tmp_path_factory.mktemp("reader") / "house") as server:
        yield server


@pytest.fixture(scope="session")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that may apply."""
    with serving(tmp_path_factory.mktemp("doer") / "house", "--allow-apply") as server:
        yield server


@pytest.fixture
def doer(running: Server) -> Server:
    """A server that may apply, over stores as the samples have them."""
    running.house.build()
    return running


@pytest.fixture
def house(doer: Server) -> House:
    """The house of the server that may apply."""
    return doer.house
