"""Who is answered at all, and what every answer carries: the guard in front of all pages."""

from __future__ import annotations

import ipaddress
import secrets
import socket
from collections.abc import Collection
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

#: Nothing but what this very server hands out, and no script or style within a page.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    # Without any, a browser would not say either that a form is from here.
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
_COOKIE = "keepfor"
#: The longest body that any page takes, in bytes: a digest and a token.
LONGEST = 4096


def is_loopback(host: str) -> bool:
    """Whether only programs on this machine can reach that address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def names_of(host: str) -> frozenset[str]:
    """The names under which a server may be asked that listens at this address.

    A page elsewhere that has its own name lead here, to read along, asks under that name. Numbers
    cannot be made to lead elsewhere, so beyond loopback each of them will do.
    """
    names = {"localhost", "127.0.0.1", "::1", host.lower()}
    if not is_loopback(host):
        here = socket.gethostname().lower()
        names |= {here, f"{here}.local", socket.getfqdn().lower()}
    return frozenset(names)


class Guard:
    """Answers only who asks under a name of this server, from its own pages, and may read.

    Parameters:
        app: what it guards.
        host: the address that the server listens at.
        token: what who reads has to show; None where everybody may who can reach it.
    """

    def __init__(self, app: ASGIApp, host: str, token: str | None) -> None:
        self._app = app
        self._names = names_of(host)
        self._numbers = not is_loopback(host)
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(_HEADERS)
                # What was true of a store is not to be shown again later as if it still were.
                if not scope["path"].startswith("/static/"):
                    headers["Cache-Control"] = "no-store"
            await send(message)

        answer = self._refusal(scope)
        await (answer or self._app)(scope, receive, guarded)

    def _refusal(self, scope: Scope) -> Response | None:
        """What is answered in place of a page; None where the page may be."""
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if not self._is_ours(host):
            return _refused(421, f"This server does not answer under the name {host[:100]!r}.")
        origin = headers.get("origin")
        reads = scope["method"] in ("GET", "HEAD")
        if (origin is None and not reads) or (origin is not None and not _same(origin, host)):
            return _refused(403, "This was not asked from a page of this server.")
        if not reads and headers.get("sec-fetch-site", "same-origin") != "same-origin":
            return _refused(403, "This was not asked from a page of this server.")
        if not _is_short(headers.get("content-length")):
            return _refused(413, f"That is too long: a form here has at most {LONGEST} bytes.")
        return self._without_token(scope, headers) if self._token else None

    def _is_ours(self, host: str) -> bool:
        try:
            parts = urlsplit(f"//{host}")
            # To ask for the port is to have it looked at.
            name, _ = parts.hostname or "", parts.port
        except ValueError:
            return False
        if parts.netloc != host or "@" in host:
            return False
        return name in self._names or (self._numbers and _is_number(name))

    def _without_token(self, scope: Scope, headers: Headers) -> Response | None:
        asked = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        if self._matches(asked) and scope["method"] == "GET":
            entered = RedirectResponse(_plain(scope["path"]), status_code=303)
            entered.set_cookie(_COOKIE, asked, httponly=True, samesite="lax")
            return entered
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and self._matches(bearer):
            return None
        if any(map(self._matches, _cookies(headers.getlist("cookie")))):
            return None
        what = "Open the address that `keepfor serve` printed, which has a token in it."
        answer = _refused(401, what)
        answer.headers["WWW-Authenticate"] = "Bearer"
        return answer

    def _matches(self, told: str) -> bool:
        assert self._token is not None
        return secrets.compare_digest(told.encode("utf-8", "replace"), self._token.encode())


def _same(origin: str, host: str) -> bool:
    """Whether a page of that origin came from here; behind a proxy the scheme may be another."""
    return origin in (f"http://{host}", f"https://{host}")


def _is_number(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _is_short(length: str | None) -> bool:
    if length is None:
        return True
    return length.isascii() and length.isdigit() and len(length) < 10 and int(length) <= LONGEST


def _cookies(headers: Collection[str]) -> list[str]:
    found = []
    for header in headers:
        try:
            morsel = SimpleCookie(header).get(_COOKIE)
        except CookieError:
            continue
        if morsel:
            found.append(morsel.value)
    return found


def _plain(path: str) -> str:
    """A path that cannot be taken for another server's address."""
    return f"/{path.lstrip('/')}"


def _refused(status: int, what: str) -> PlainTextResponse:
    return PlainTextResponse(f"{what} Nothing was done.\n", status)
