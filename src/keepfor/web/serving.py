"""Listens at an address and answers there, until it is told to stop."""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from secrets import token_urlsafe

import uvicorn

from keepfor.errors import CannotListen
from keepfor.web.app import build
from keepfor.web.desk import Desk, Tokens
from keepfor.web.guarding import is_loopback

#: How many connections wait to be answered.
_BACKLOG = 128


def serve(
    named: Path | None,
    environ: Mapping[str, str],
    clock: Callable[[], datetime],
    *,
    host: str,
    port: int,
    allow_apply: bool,
    say: Callable[[str], None],
) -> None:
    """Serve the dashboard, until a signal ends it.

    Parameters:
        named: the configuration file; None for the one that is found.
        environ: the environment, which overrides what the file says.
        clock: tells the present instant.
        host: the address to listen at.
        port: the port; 0 for any that is free.
        allow_apply: whether a person may apply what is shown.
        say: how the person who started it is told where it is, and the tokens.

    Raises:
        CannotListen: when the address is taken, or not to be had.
    """
    listening = _listening(host, port)
    token = None if is_loopback(host) else token_urlsafe(18)
    with listening:
        say(f"The dashboard is at {_address(host, listening.getsockname()[1], token)}")
        tokens = None
        if allow_apply:
            tokens = Tokens(lambda next_one: say(f"To apply one plan, the token is {next_one}"))
        desk = Desk(named, environ, clock, tokens)
        server = uvicorn.Server(
            uvicorn.Config(
                build(desk, host, token),
                log_config=None,
                access_log=False,
                server_header=False,
                lifespan="off",
                # Forms are a line long, and so is what is asked for.
                h11_max_incomplete_event_size=16_384,
                http="h11",
                ws="none",
                proxy_headers=False,
                timeout_graceful_shutdown=5,
            )
        )
        server.run(sockets=[listening])


def _listening(host: str, port: int) -> socket.socket:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        family, address = found[0], found[4]
        return socket.create_server(address[:2], family=family, backlog=_BACKLOG)
    except (OSError, OverflowError, UnicodeError) as error:
        taken = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
        why = "the port is taken" if taken else getattr(error, "strerror", None) or str(error)
        raise CannotListen(host=host, port=port, why=why) from error


def _address(host: str, port: int, token: str | None) -> str:
    shown = f"[{host}]" if ":" in host else host
    if host in ("0.0.0.0", "::"):  # noqa: S104 - only to say where it is
        shown = socket.gethostname()
    return f"http://{shown}:{port}/{f'?token={token}' if token else ''}"
