"""What a PostgreSQL URL says: where a database lies, and what it is entered by."""

from __future__ import annotations

import os
from difflib import get_close_matches
from urllib.parse import quote, unquote

import msgspec
from sqlalchemy import URL

from keepfor.errors import ConfigError

#: How long to wait for a server to answer, in seconds.
_CONNECT_TIMEOUT = 10

#: What only other drivers understand, and what bears on how fast they are, not on what they read.
_FOREIGN = frozenset(
    (
        "async_fallback",
        "command_timeout",
        "max_cacheable_statement_size",
        "max_cached_statement_lifetime",
        "prepared_statement_cache_size",
        "prepared_statement_name_func",
        "statement_cache_size",
        "tcp_keepalive",
        "timeout",
    )
)
#: asyncpg's `ssl`, where it is not one of the words of `sslmode`.
_SSL_MODES = {"true": "require", "1": "require", "false": "disable", "0": "disable"}
#: An address that hides in a file would not be the same for the same database.
_ELSEWHERE = frozenset(("service", "servicefile"))


class Login(msgspec.Struct, frozen=True, kw_only=True):
    """What a database is entered by.

    Parameters:
        address: see `Database.address`.
        user: the role, for messages.
        name: the database's own, for messages.
        parameters: what the client library is given, secrets included.
    """

    address: str
    user: str
    name: str
    parameters: dict[str, str]

    def __hash__(self) -> int:
        return hash(self.address)

    def __repr__(self) -> str:
        # The one that is made by itself would show the password.
        return f"Login({self.address!r})"

    def hide(self, said: str) -> str:
        """What somebody said of it, in one line and without a secret."""
        for name, value in self.parameters.items():
            if value and "password" in name:
                said = said.replace(value, "***")
        return " ".join(said.split()).rstrip(".")


def login_of(url: URL) -> Login:
    """What a URL says, whatever driver it was written for.

    Raises:
        ConfigError: when psycopg is not installed, or the URL asks for what it cannot do.
    """
    try:
        from psycopg import pq
    except ImportError as error:
        raise ConfigError(
            where="url",
            what=f"keepfor speaks to PostgreSQL by psycopg, which cannot be loaded ({error}).",
            fix="Install keepfor with its extra: pip install '.[postgres]' in a clone.",
        ) from None
    defaults = {
        option.keyword.decode(): (option.val or b"").decode()
        for option in pq.Conninfo.get_defaults()
    }
    given = _given(url, defaults.keys() - _ELSEWHERE)
    known = defaults | given
    user = known["user"]
    name = known["dbname"] or user
    given = {"connect_timeout": str(_CONNECT_TIMEOUT), **given, "application_name": "keepfor"}
    return Login(
        address=_address(user, known["host"] or known["hostaddr"], known["port"], name),
        user=user,
        name=name,
        parameters=given,
    )


def _given(url: URL, known: set[str]) -> dict[str, str]:
    """What a URL gives, by the names that PostgreSQL's client library has for it."""
    query = {name: value for name, value in url.query.items() if name not in _FOREIGN}
    mode = query.pop("ssl", None)
    if isinstance(mode, str):
        query.setdefault("sslmode", _SSL_MODES.get(mode.lower(), mode))
    socket = query.pop("unix_sock", None)
    if isinstance(socket, str):
        folder, _, port = socket.rpartition("/.s.PGSQL.")
        query |= {"host": folder, "port": port}
    for name in query:
        if name not in known:
            close = get_close_matches(name, known, 1)
            hint = f"Did you mean {close[0]}?" if close else "Take it out."
            raise ConfigError(
                where="url",
                what=f"{name!r} is nothing that a PostgreSQL client can be given.",
                fix=hint,
            )
    plain = url.set(drivername="postgresql+psycopg", query=query)
    if plain.host:
        plain = plain.set(host=unquote(plain.host))
    _, given = plain.get_dialect()().create_connect_args(plain)
    return {name: str(value) for name, value in given.items() if value}


def _address(user: str, host: str, port: str, name: str) -> str:
    place = f"{quote(user, safe='')}@"
    if host.startswith(("/", "@")):
        folder = os.path.normpath(host) if host.startswith("/") else host
        return f"postgresql://{place}:{port}/{quote(name, safe='')}?host={quote(folder)}"
    hosts = [f"[{each}]" if ":" in each else each for each in host.lower().split(",")]
    ports = port.split(",")
    if len(ports) == 1:
        ports *= len(hosts)
    place += ",".join(f"{host}:{port or 5432}" for host, port in zip(hosts, ports, strict=False))
    return f"postgresql://{place}/{quote(name, safe='')}"
