"""What an address of a database in a setting means; no message ever shows what stands in one."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import parse_qsl, quote, unquote, urlencode

from keepfor.config.faults import nearest
from keepfor.config.paths import expand

MASK = "***"

_SUCH_AS = "Write sqlite:///file.sqlite3 or postgresql://user@host/database."
_ENCODED = "In user and password, write @ as %40, / as %2F, : as %3A, # as %23 and ? as %3F."

_REFERENCE = re.compile(r"\$\{(\w+)\}", re.ASCII)
_SCHEME = re.compile(r"(?P<dialect>\w+)(?:\+(?P<driver>\w+))?", re.ASCII)
_HOST = re.compile(r"(?P<host>\[[0-9A-Fa-f:.%]+\]|[^:\[\]@]*)(?::(?P<port>\d*))?")

#: The databases that are spoken, with the drivers that an address for another program may name.
_DRIVERS = {
    "sqlite": ("pysqlite", "aiosqlite"),
    "postgresql": ("psycopg", "psycopg_async", "psycopg2", "psycopg2cffi", "asyncpg", "pg8000"),
}
_OTHER_NAMES = {"postgres": "postgresql"}
_SECRETS = ("password", "sslpassword")


class DatabaseUrl:
    """The address of a database; whoever prints it sees no password.

    Parameters:
        real: the whole of it.
        shown: the same with the password masked.
        place: the same for the same database, whatever user and driver it is entered by.
        file: the file, of a database that is one.
    """

    __slots__ = ("_file", "_place", "_real", "_shown")

    def __init__(self, real: str, shown: str, place: str, file: str | None = None) -> None:
        self._real = real
        self._shown = shown
        self._place = place
        self._file = file

    def reveal(self) -> str:
        """The address as it is, to connect with."""
        return self._real

    @property
    def place(self) -> str:
        return self._place

    @property
    def file(self) -> str | None:
        return self._file

    def __str__(self) -> str:
        return self._shown

    def __repr__(self) -> str:
        return f"DatabaseUrl({self._shown!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DatabaseUrl) and self._real == other._real

    def __hash__(self) -> int:
        return hash(self._real)


def read_url(text: str, base: Path, environ: Mapping[str, str]) -> DatabaseUrl:
    """The address that a text stands for.

    Parameters:
        text: it may hold `${VAR}`, and the path of an SQLite file `~` and `$VAR` too. What stands
            for a user or a password is taken as it is, with its `@` and `/`.
        base: the absolute folder that a relative path starts from.
        environ: the environment.

    Raises:
        ValueError: when it is none that is spoken; a sentence that says why, and what to write.
    """
    scheme, found, rest = text.partition("://")
    whole = "${" in scheme or not found
    if whole:
        text = _filled(text, environ, quoted=False)
        scheme, found, rest = text.partition("://")
    match = _SCHEME.fullmatch(scheme)
    if not found or not match:
        raise ValueError(f"this is no address of a database. {_SUCH_AS}")
    dialect = _OTHER_NAMES.get(match["dialect"].lower(), match["dialect"].lower())
    if dialect not in _DRIVERS:
        what = f"{match['dialect']!r} is not spoken here; SQLite and PostgreSQL are."
        raise ValueError(f"{what} {_SUCH_AS}")
    if match["driver"] and match["driver"] not in _DRIVERS[dialect]:
        what = f"{match['driver']!r} is no driver known here."
        raise ValueError(f"{what} Leave it out. {nearest(match['driver'], _DRIVERS[dialect])}")
    if dialect == "sqlite":
        return _sqlite(rest, base, environ)
    return _postgresql(rest if whole else _filled_in_parts(rest, environ))


def _sqlite(rest: str, base: Path, environ: Mapping[str, str]) -> DatabaseUrl:
    # How another program opens the file stands behind the `?`, and is its own affair.
    host, slash, path = rest.partition("?")[0].partition("/")
    if host:
        raise ValueError("the path begins after three slashes. Write sqlite:///file.sqlite3.")
    path = unquote(path)
    if not slash or not path or ":memory:" in path:
        raise ValueError(
            "a database in memory is gone when its program ends. Name a file: "
            "sqlite:///file.sqlite3, or sqlite:////srv/file.sqlite3 from the root."
        )
    if path.startswith("file:"):
        raise ValueError("name the file by its path alone, such as sqlite:///file.sqlite3.")
    file = str(expand(path, base, environ))
    url = f"sqlite:///{file.replace('%', '%25').replace('?', '%3F')}"
    return DatabaseUrl(url, url, f"sqlite:///{os.path.realpath(file)}", file)


def _postgresql(rest: str) -> DatabaseUrl:
    if "#" in rest:
        raise ValueError(f"a bare # cannot stand in an address. {_ENCODED}")
    before, mark, query = rest.partition("?")
    authority, _, database = before.partition("/")
    user_info, _, where = authority.rpartition("@")
    at = _HOST.fullmatch(where)
    # A bare `/` or `?` in a password ends up behind it, with the `@` that follows.
    if not at or "@" in database or "/" in database or (mark and not _is_query(query)):
        raise ValueError(f"it cannot be told apart into user, host and database. {_ENCODED}")
    asked = parse_qsl(query, keep_blank_values=True)
    if not database and "dbname" not in dict(asked):
        raise ValueError("it names no database. Write postgresql://user@host/database.")
    user, colon, password = user_info.partition(":")
    named = quote(unquote(user), safe="")

    def written(secret: str, query: list[tuple[str, str]]) -> str:
        entered = f"{named}{secret}@" if user_info else ""
        text = f"postgresql+psycopg://{entered}{where}/{database}"
        return f"{text}?{urlencode(query, safe='*/')}" if query else text

    return DatabaseUrl(
        written(f":{quote(unquote(password), safe='')}" if colon else "", asked),
        written(
            f":{MASK}" if colon else "",
            [(key, MASK if key.lower() in _SECRETS else value) for key, value in asked],
        ),
        _place(at, database, dict(asked)),
    )


def _is_query(text: str) -> bool:
    return all(re.fullmatch(r"\w+=[^@]*", pair, re.ASCII) for pair in text.split("&"))


def _place(at: re.Match[str], database: str, asked: Mapping[str, str]) -> str:
    host = (at["host"] or asked.get("host", "")).lower()
    port = at["port"] or asked.get("port", "") or "5432"
    name = unquote(database) or asked.get("dbname", "")
    return f"postgresql://{host}:{port}/{name}"


def _filled_in_parts(rest: str, environ: Mapping[str, str]) -> str:
    """Filled in so that no value, whatever it holds, ends the part that it stands in."""
    before, mark, query = rest.partition("?")
    authority, slash, database = before.partition("/")
    user_info, at, where = authority.rpartition("@")
    user_info, query = (_filled(part, environ, quoted=True) for part in (user_info, query))
    where, database = (_filled(part, environ, quoted=False) for part in (where, database))
    return f"{user_info}{at}{where}{slash}{database}{mark}{query}"


def _filled(text: str, environ: Mapping[str, str], *, quoted: bool) -> str:
    def value(match: re.Match[str]) -> str:
        # An empty one is as bad as none: a password that is missing should be noticed here.
        if not environ.get(match[1]):
            raise ValueError(f"it needs ${match[1]}, which is not set. Set it, or write it out.")
        return quote(environ[match[1]], safe="") if quoted else environ[match[1]]

    if "${" in _REFERENCE.sub("", text):
        raise ValueError("it has an unfinished ${…}. Write ${NAME}.")
    return _REFERENCE.sub(value, text)
