"""A web app starts and stops a sweeper with itself, and stays up whatever the sweeper meets."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from keepfor import Sweeper
from tests.sweeper.build import Yard, report, rows


def app_with(sweeper: Sweeper) -> Starlette:
    """An app that sweeps for as long as it lives."""

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with sweeper:
            yield

    async def running(request: Request) -> JSONResponse:
        return JSONResponse(sweeper.is_running)

    async def sweep(request: Request) -> JSONResponse:
        return JSONResponse(list(await sweeper.sweep_now()))

    async def metrics(request: Request) -> PlainTextResponse:
        return PlainTextResponse(sweeper.metrics_text())

    routes = [
        Route("/running", running),
        Route("/sweep", sweep, methods=["POST"]),
        Route("/metrics", metrics),
    ]
    return Starlette(lifespan=lifespan, routes=routes)


def test_an_app_sweeps_for_as_long_as_it_lives(yard: Yard) -> None:
    """It runs while the app does, sweeps the sample to its known figures, and ends with it."""
    ledger = yard.sample()
    sweeper = yard.sweeper()
    with TestClient(app_with(sweeper)) as client:
        assert client.get("/running").json() is True
        assert client.post("/sweep").json() == ["recall"]
        assert rows(ledger) == 449
        assert 'keepfor_deleted_rows_total{store="recall"} 151.0' in client.get("/metrics").text
    assert not sweeper.is_running
    # The sweep at the start took them, and that on demand found nothing left.
    assert report(sweeper).applied == 0


def test_an_app_can_be_started_again(yard: Yard) -> None:
    """A second life of the app, in a loop of its own, sweeps again."""
    sweeper = yard.sweeper()
    for _ in range(2):
        ledger = yard.write([100, 80])
        with TestClient(app_with(sweeper)) as client:
            client.post("/sweep")
            assert client.get("/running").json() is True
        assert rows(ledger) == 1


def test_a_sweep_that_fails_leaves_the_app_up(yard: Yard) -> None:
    """A store that cannot be read is the sweeper's affair, and no request notices."""
    (yard.folder / "recall.jsonl").mkdir()
    sweeper = yard.sweeper()
    with TestClient(app_with(sweeper)) as client:
        assert client.post("/sweep").json() == ["recall"]
        assert client.get("/running").json() is True
        assert 'keepfor_failed_sweeps_total{store="recall"} 2.0' in client.get("/metrics").text
