"""Which address leads to which page, and what is answered where something is wrong."""

from __future__ import annotations

from itertools import islice
from typing import Any
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from keepfor.config.opening import open_trail
from keepfor.errors import (
    BadConfig,
    BreakerTripped,
    ConfigError,
    KeepforError,
    PlanSpent,
    PlanStale,
    StoreBusy,
    StoreChanged,
    UnknownItem,
    UnknownPlan,
    UnknownStore,
)
from keepfor.trail import sweeps
from keepfor.web import applying, overviews, storepages, tracing
from keepfor.web.applying import Refused
from keepfor.web.desk import Desk
from keepfor.web.drawing import ages
from keepfor.web.guarding import LONGEST, Guard
from keepfor.web.rendering import STATIC, page

#: How many sweeps stand on one page of the trail.
_SWEEPS = 50
#: The longest name of a note that is looked for, which is that of any path.
_LONGEST_ID = 4096
_MOST_PAGES = 10**6

_STATUSES: dict[type[KeepforError], int] = {
    UnknownStore: 404,
    UnknownItem: 404,
    UnknownPlan: 404,
    PlanSpent: 409,
    PlanStale: 409,
    StoreBusy: 409,
    StoreChanged: 409,
    BreakerTripped: 409,
    BadConfig: 503,
    ConfigError: 400,
}
_TITLES = {
    400: "That cannot be asked",
    403: "Not allowed",
    404: "There is no such thing here",
    405: "That is not done here",
    409: "This plan no longer holds",
    413: "That is too long",
    415: "That is no form",
    503: "The configuration cannot be read",
}


def build(desk: Desk, host: str, token: str | None = None) -> ASGIApp:
    """The dashboard.

    Parameters:
        desk: what its pages share.
        host: the address that it is served at, which says under which names it may be asked.
        token: what who reads has to show; None where everybody may who can reach it.
    """
    app = Starlette(
        routes=[
            Route("/", _stores),
            Route("/stores/{name}", _store, name="store"),
            Route("/stores/{name}/ages", _ages),
            Route("/stores/{name}/plans/{digest}", _plan),
            Route("/stores/{name}/apply", _apply, methods=["POST"]),
            Route("/stores/{name}/swept/{digest}", _swept),
            Route("/trail", _trail),
            Route("/trace", _trace),
            Mount("/static", StaticFiles(directory=STATIC)),
        ],
        exception_handlers={
            HTTPException: _not_found,
            Refused: _refused,
            KeepforError: _failed,
            OSError: _failed,
            Exception: _broken,
        },
    )
    app.state.desk = desk
    return Guard(app, host, token)


def _desk(request: Request) -> Desk:
    found: Desk = request.app.state.desk
    return found


def _stores(request: Request) -> Response:
    desk = _desk(request)
    if not desk.configured():
        return page(request, "begin.html")
    cards = overviews.cards(desk, desk.config())
    return page(request, "stores.html", cards=cards, now=desk.now())


def _store(request: Request) -> Response:
    desk = _desk(request)
    told = storepages.page(desk, desk.config(), request.path_params["name"])
    return page(
        request,
        "store.html",
        store=told,
        shown=storepages.SHOWN,
        now=desk.now(),
        allowed=desk.tokens is not None,
    )


def _ages(request: Request) -> Response:
    """The small histogram on the page of all stores, which comes after the page."""
    desk = _desk(request)
    chart = ages(desk, desk.config(), request.path_params["name"])
    return page(request, "ages.html", chart=chart)


def _plan(request: Request) -> Response:
    """More of the items of a plan that was shown."""
    desk, name = _desk(request), request.path_params["name"]
    shown = desk.shown(name, request.path_params["digest"])
    skip, going = _number(request, "skip"), storepages.going(shown.plan)
    alone = request.headers.get("hx-request") == "true"
    return page(
        request,
        "planned.html" if alone else "plan.html",
        name=name,
        plan=shown.plan,
        going=going,
        skip=skip,
        shown=storepages.SHOWN,
    )


async def _apply(request: Request) -> Response:
    from anyio import to_thread

    desk, name = _desk(request), request.path_params["name"]
    form = await _form(request)
    digest, token = form.get("digest", ""), form.get("token", "")
    report = await to_thread.run_sync(applying.apply, desk, name, digest, token)
    # Whoever loads the next page again does not ask for a sweep again.
    return RedirectResponse(f"/stores/{report.store}/swept/{report.plan}", status_code=303)


def _swept(request: Request) -> Response:
    desk, name = _desk(request), request.path_params["name"]
    return page(request, "swept.html", report=desk.report(name, request.path_params["digest"]))


def _trail(request: Request) -> Response:
    desk = _desk(request)
    config, name = desk.config(), request.query_params.get("store", "")
    number = max(1, _number(request, "page"))
    trail = open_trail(config)
    found = (sweep for sweep in sweeps(trail.records()) if name in ("", sweep.store))
    start = (number - 1) * _SWEEPS
    shown = list(islice(found, start, start + _SWEEPS + 1))
    return page(
        request,
        "trail.html",
        sweeps=shown[:_SWEEPS],
        more=len(shown) > _SWEEPS,
        page=number,
        store=name,
        stores=list(config.stores),
        path=trail.path,
    )


def _trace(request: Request) -> Response:
    desk = _desk(request)
    config = desk.config()
    name, note = (request.query_params.get(key, "") for key in ("store", "note"))
    if len(note) > _LONGEST_ID:
        raise HTTPException(400, f"The name of a note has at most {_LONGEST_ID} characters.")
    found = tracing.trace(desk, config, name, note) if note else []
    known = not found or any(told.tells or told.error for told in found)
    return page(
        request,
        "trace.html",
        # What nothing at all is known of is told on the page, and to programs by its status.
        status=200 if known else 404,
        found=found,
        note=note,
        store=name,
        stores=tracing.stores(config),
        now=desk.now(),
    )


async def _form(request: Request) -> dict[str, str]:
    """What was filled in; a body that is no short form is refused before it is read to its end."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise HTTPException(415, "Send it as application/x-www-form-urlencoded.")
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > LONGEST:
            raise HTTPException(413, f"A form here has at most {LONGEST} bytes.")
    try:
        return dict(parse_qsl(body.decode(), max_num_fields=8, keep_blank_values=True))
    except ValueError:
        raise HTTPException(400, "The form cannot be understood.") from None


def _number(request: Request, name: str) -> int:
    text = request.query_params.get(name, "0")
    if not (text.isascii() and text.isdigit() and len(text) < 8):
        raise HTTPException(400, f"{name} is a number.")
    return min(int(text), _MOST_PAGES)


async def _not_found(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    what = error.detail
    if error.status_code == 404:
        what = "Nothing lies at this address."
    elif error.status_code == 405:
        what = "This address cannot be asked in that way."
    return _told(request, error.status_code, what, headers=error.headers)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    return _told(request, error.status, str(error), changes=error.changes)


async def _failed(request: Request, error: Exception) -> Response:
    kinds = (status for kind, status in _STATUSES.items() if isinstance(error, kind))
    return _told(request, next(kinds, 500), str(error))


async def _broken(request: Request, _: Exception) -> Response:
    what = "This is a fault of keepfor. What it was stands where `keepfor serve` was started."
    return _told(request, 500, what)


def _told(request: Request, status: int, what: str, **more: Any) -> Response:
    title = _TITLES.get(status, "Something went wrong")
    name = request.path_params.get("name", "")
    facts = {"changes": [], "headers": None} | more
    return page(request, "error.html", status=status, title=title, what=what, back_to=name, **facts)
