"""Addresses of databases lead where they say, and no password in one is ever shown."""

from __future__ import annotations

import json
import pickle
import re
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import make_url

from keepfor.config import Config, Table, load, show, traps
from keepfor.config.fields import PlaceText
from keepfor.config.urls import DatabaseUrl, read_url
from keepfor.errors import BadConfig

Load = Callable[..., Config]

ENVIRON = {"HOME": "/home/ada", "DATA": "/srv/data", "PW": "p@s/s:#?%", "EMPTY": ""}


def read(text: str, **environ: str) -> DatabaseUrl:
    """An address in a file that lies in /etc/keepfor."""
    return read_url(text, Path("/etc/keepfor"), ENVIRON | environ)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("sqlite:///caesar.sqlite3", "/etc/keepfor/caesar.sqlite3"),
        ("sqlite:///./a/caesar.sqlite3", "/etc/keepfor/a/caesar.sqlite3"),
        ("sqlite:////srv/caesar.sqlite3", "/srv/caesar.sqlite3"),
        ("sqlite:///~/caesar.sqlite3", "/home/ada/caesar.sqlite3"),
        ("sqlite:///$DATA/caesar.sqlite3", "/srv/data/caesar.sqlite3"),
        ("sqlite:///${DATA}/caesar.sqlite3", "/srv/data/caesar.sqlite3"),
        ("sqlite+aiosqlite:///caesar.sqlite3?timeout=5", "/etc/keepfor/caesar.sqlite3"),
        ("sqlite+pysqlite:///caesar.sqlite3", "/etc/keepfor/caesar.sqlite3"),
        ("SQLite:///caesar.sqlite3", "/etc/keepfor/caesar.sqlite3"),
        ("sqlite:////srv/my%20data/100%25%3F.sqlite3", "/srv/my data/100%?.sqlite3"),
        ("sqlite:////srv/my data/é.sqlite3", "/srv/my data/é.sqlite3"),
    ],
)
def test_an_address_of_a_file_leads_to_it(text: str, path: str) -> None:
    """Relative to the configuration, `~` and $VAR filled in, whatever driver it was written for."""
    url = read(text)
    assert url.file == path
    parsed = make_url(url.reveal())
    assert (parsed.drivername, parsed.database) == ("sqlite", path)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgresql://u:pw@h/d", "postgresql+psycopg://u:***@h/d"),
        ("postgres://u:pw@h:5433/d", "postgresql+psycopg://u:***@h:5433/d"),
        ("postgresql+asyncpg://u@h/d?ssl=require", "postgresql+psycopg://u@h/d?ssl=require"),
        ("postgresql+psycopg2://h/d", "postgresql+psycopg://h/d"),
        ("postgresql:///d", "postgresql+psycopg:///d"),
        ("postgresql://u:pw@[::1]:5432/d", "postgresql+psycopg://u:***@[::1]:5432/d"),
        (
            "postgresql://h/d?user=u&password=pw&sslpassword=pw",
            "postgresql+psycopg://h/d?user=u&password=***&sslpassword=***",
        ),
    ],
)
def test_an_address_of_a_server_is_understood(text: str, shown: str) -> None:
    """Bare, or for whatever driver; what is shown is the same address with its password masked."""
    url = read(text)
    assert str(url) == shown
    assert url.reveal() == shown.replace("***", "pw")
    assert url.file is None


@pytest.mark.parametrize(
    ("text", "password"),
    [
        ("postgresql://u:p%40s%2Fs%3A@h/d", "p@s/s:"),
        ("postgresql://u:p@s@h/d", "p@s"),
        ("postgresql://u:a:b@h/d", "a:b"),
        ("postgresql://u:${PW}@h/d", "p@s/s:#?%"),
        ("postgresql://u:x${PW}@h/d", "xp@s/s:#?%"),
        ("postgresql://u:$PW@h/d", "$PW"),
        ("postgresql://u:@h/d", ""),
    ],
)
def test_a_password_is_taken_for_what_it_is(text: str, password: str) -> None:
    """Encoded where it stands in the address, as it is where a variable holds it."""
    url = make_url(read(text).reveal())
    assert (url.username, url.password, url.host, url.database) == ("u", password, "h", "d")


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1))
def test_any_password_of_a_variable_reaches_the_server_and_no_screen(password: str) -> None:
    """Whatever it holds, a password ends neither itself nor the address, and is masked."""
    url = read("postgresql://u:${SECRET}@h/d", SECRET=password)
    assert make_url(url.reveal()).password == password
    assert str(url) == "postgresql+psycopg://u:***@h/d"


@pytest.mark.parametrize("text", ["${ALL}", "${ALL}?sslmode=require"])
def test_a_whole_address_can_stand_in_a_variable(text: str) -> None:
    """What the variable holds is read as if it stood in the file, and filled in no further."""
    url = read(text, ALL="postgresql+asyncpg://u:p%40%24%7BPW%7D@h/d")
    assert make_url(url.reveal()).password == "p@${PW}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sqlite://", "a database in memory is gone when its program ends. Name a file: "),
        ("sqlite:///", "a database in memory is gone"),
        ("sqlite:///:memory:", "a database in memory is gone"),
        ("sqlite:///file::memory:?uri=true", "a database in memory is gone"),
        ("sqlite:///file:a.db?uri=true", "name the file by its path alone"),
        ("sqlite://a.db", "the path begins after three slashes. Write sqlite:///file.sqlite3."),
        ("sqlite:///$NOPE/a.db", "'$NOPE/a.db' needs $NOPE, which is not set."),
        ("sqlite+cipher:///a.db", "'cipher' is no driver known here. Leave it out."),
        ("postgresql+asyncpgg://u:pw@h/d", "'asyncpgg' is no driver known here. Leave it out. Did"),
        ("mysql://u:pw@h/d", "'mysql' is not spoken here; SQLite and PostgreSQL are. Write sql"),
        ("caesar.sqlite3", "this is no address of a database. Write sqlite:///file.sqlite3 or"),
        ("u:pw://h/d", "this is no address of a database."),
        ("", "this is no address of a database."),
        ("postgresql://u:pw@h", "it names no database. Write postgresql://user@host/database."),
        ("postgresql://u:p/w@h/d", "it cannot be told apart into user, host and database. In use"),
        ("postgresql://u:12/pw@h/d", "it cannot be told apart"),
        ("postgresql://u:p?w@h/d", "it cannot be told apart"),
        ("postgresql://u:12?pw@h/d", "it cannot be told apart"),
        ("postgresql://u:12?x=pw@h/d", "it cannot be told apart"),
        ("postgresql://u:p#w@h/d", "a bare # cannot stand in an address. In user and password, "),
        ("postgresql://u:pw@h:port/d", "it cannot be told apart"),
        ("postgresql://u:${NOPE}@h/d", "it needs $NOPE, which is not set. Set it, or write it out"),
        ("postgresql://u:${EMPTY}@h/d", "it needs $EMPTY, which is not set."),
        ("${NOPE}", "it needs $NOPE, which is not set."),
        ("postgresql://u:${PW@h/d", "it has an unfinished ${…}. Write ${NAME}."),
    ],
)
def test_an_address_that_leads_nowhere_is_refused(text: str, message: str) -> None:
    """What is no file and no server is told what to write, and nothing of a password is shown."""
    with pytest.raises(ValueError, match=f"^{re.escape(message)}") as caught:
        read(text)
    assert "pw" not in str(caught.value)


SECRET = "hunter2"
URL = f"postgresql://caesar:{SECRET}@db/caesar"
WITH_PASSWORD = f"""\
stores:
  audit:
    kind: table
    url: {URL}
    table: audit_log
    time: ts
    keep_for: 90d
"""


def test_a_password_is_shown_nowhere(load_text: Load) -> None:
    """Neither the settings, nor what is shown of them, nor a trap tells the password."""
    config = load_text(
        WITH_PASSWORD
        + WITH_PASSWORD.replace("  audit:", "  again:").replace("90d", "30d").partition("\n")[2]
    )
    store = config.stores["audit"]
    assert isinstance(store, Table)
    said = [repr(config), str(store), repr(store.url), f"{store.url}", store.model_dump_json()]
    said += [json.dumps([row.value for row in show(config)]), repr(traps(config)), store.place]
    said += [repr(PlaceText(text=SECRET, base=Path("/"), environ={"PW": SECRET}))]
    assert [text for text in said if SECRET in text] == []
    assert traps(config)["again"][0].rule == "url"
    assert SECRET in store.url.reveal()
    assert pickle.loads(pickle.dumps(store.url)) == store.url


@pytest.mark.parametrize(
    "slip",
    [
        ("caesar\n    table", "caesar:5x/@\n    table"),
        ("url:", "urll:"),
        ("url: postgresql", "url: mysql"),
        ("@db/caesar", "@db"),
        ("table: audit_log", "table: 5"),
        ("kind: table", "kind: ledger"),
        ("kind: table", "kind: tabel"),
        ("url: postgresql://caesar:hunter2@db/caesar", "url: [postgresql://caesar:hunter2@db/c]"),
        (
            "url: postgresql://caesar:hunter2@db/caesar",
            "url: {postgresql://caesar:hunter2@db/c: 1}",
        ),
    ],
)
def test_a_fault_shows_no_password(load_text: Load, slip: tuple[str, str]) -> None:
    """Whatever is wrong beside it or in it, the message and its traceback leave it out."""
    with pytest.raises(BadConfig) as caught:
        load_text(WITH_PASSWORD.replace(*slip))
    assert SECRET not in "".join(traceback.format_exception(caught.value))


def test_settings_made_by_hand_show_no_password() -> None:
    """pydantic's own error, which shows what it was given, does not show this."""
    with pytest.raises(ValueError, match="address") as caught:
        Table(kind="table", url=f"postgresql://u:{SECRET}@h/d", table="a", time="t")  # type: ignore[arg-type]
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("variable", ["KEEPFOR_STORES__IT__URL", "CAESAR_DB__URL"])
def test_an_address_in_a_variable_starts_from_the_working_folder(
    tmp_path: Path, variable: str
) -> None:
    """As for a path: no file names it, so the working folder counts."""
    below = tmp_path / "below"
    below.mkdir()
    (tmp_path / "keepfor.yaml").write_text("stores: {it: {preset: caesar}}")
    config = load(environ={variable: "sqlite+aiosqlite:///a.db"}, cwd=below)
    store = config.stores["it"]
    assert isinstance(store, Table)
    assert store.url.reveal() == f"sqlite:///{below}/a.db"
    assert config.sources["stores.it.url"] == f"environment {variable}"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("postgresql://a:1@H/d", "postgres://b:2@h:5432/d?sslmode=require", True),
        ("postgresql:///d?host=h", "postgresql://h/d", True),
        ("postgresql://h/d", "postgresql://h/e", False),
        ("postgresql://h/d", "postgresql://h:5433/d", False),
        ("sqlite:///a.db", "sqlite:////etc/keepfor/b/../a.db", True),
        ("sqlite:///a.db", "sqlite:///b.db", False),
    ],
)
def test_one_database_is_known_by_whatever_address(one: str, other: str, same: bool) -> None:
    """User, driver, options and the way to a file make no other database."""
    assert (read(one).place == read(other).place) is same
