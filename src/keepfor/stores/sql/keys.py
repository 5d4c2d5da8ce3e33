"""Keys of rows: set where the deletes of a transaction can refer to them, and kept on disk."""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import (
    ARRAY,
    BindParameter,
    Connection,
    Select,
    Text,
    any_,
    bindparam,
    cast,
    column,
    delete,
    func,
    insert,
    select,
    table,
    text,
    tuple_,
)
from sqlalchemy.sql import ColumnElement
from sqlalchemy.types import NullType

from keepfor.errors import StoreChanged
from keepfor.stores import files
from keepfor.stores.sql.catalogue import Declared

Key = tuple[Any, ...]

#: A plan whose keys nobody asked for in this time is not carried out any more, in seconds.
_KEPT = 7 * 86_400


class Gathered(msgspec.Struct, frozen=True, kw_only=True):
    """Keys that were set where statements can refer to them.

    Parameters:
        count: how many there are.
        among: makes of some columns the condition that their values are one of the keys.
    """

    count: int
    among: Any


def put(
    connection: Connection, keys: Sequence[Key], level: int, types: Sequence[str] = ()
) -> Gathered:
    """Set keys where the next statements can refer to them.

    Parameters:
        connection: the statements'.
        keys: each with as many values.
        level: tells them from others that are in use at the same time.
        types: what the columns are declared to hold that the keys come from; empty where the
            columns are of the same type that they will be compared with.
    """
    if connection.dialect.name == "postgresql":
        arrays = [list(values) for values in zip(*keys, strict=True)]
        return Gathered(count=len(keys), among=_among_arrays(arrays, types))
    place = _shelf(connection, len(keys[0]) if keys else 1, level)
    if keys:
        marks = ", ".join("?" * len(keys[0]))
        # Past SQLAlchemy, which would take longer than all the rest.
        statement = f"INSERT INTO temp.{place.name} VALUES ({marks})"  # noqa: S608 - our own names
        # All in one go, wherever it is; each by itself would be a transaction of its own.
        connection.exec_driver_sql("SAVEPOINT keepfor")
        connection.exec_driver_sql(statement, list(keys))
        connection.exec_driver_sql("RELEASE keepfor")
    return Gathered(count=len(keys), among=_among_rows(place))


def gather(
    connection: Connection, query: Select[Any], level: int, *, numbers: bool = False
) -> Gathered:
    """Set the keys that a query finds where the next statements can refer to them.

    Parameters:
        connection: the statements'.
        query: for the keys, each once.
        level: tells them from others that are in use at the same time.
        numbers: whether each is one whole number.
    """
    if connection.dialect.name == "postgresql":
        keys = query.subquery().c
        # As arrays that nobody reads on their way here and back.
        arrays = [cast(func.array_agg(each, type_=ARRAY(Text)), Text) for each in keys]
        count, *texts = connection.execute(select(func.count(), *arrays)).one()
        types = [each.type.compile() for each in keys]
        return Gathered(count=count, among=_among_arrays(texts if count else [], types))
    place = _shelf(connection, len(query.selected_columns), level, numbers=numbers)
    found = connection.execute(insert(place).from_select([each.name for each in place.c], query))
    return Gathered(count=found.rowcount, among=_among_rows(place))


def as_it_is(value: object) -> BindParameter[Any]:
    """A value of which the driver, and not SQLAlchemy, tells the database what it is."""
    return bindparam(None, value, NullType())


def _shelf(connection: Connection, width: int, level: int, *, numbers: bool = False) -> Any:
    """An empty table of SQLite's own, which lies in no file of the database."""
    name, names = f"keepfor_{level}_{width}", [f"k{number}" for number in range(width)]
    columns = ", ".join(names)  # Without a type, so that a value stays what it is.
    if numbers:
        # Among these SQLite finds one without an index that it would make each time.
        name, columns = f"{name}_numbers", "k0 INTEGER PRIMARY KEY"
    connection.execute(text(f"CREATE TEMP TABLE IF NOT EXISTS {name} ({columns})"))
    place = table(name, *map(column, names), schema="temp")
    connection.execute(delete(place))
    return place


def _among_rows(place: Any) -> Any:
    def among(columns: Sequence[ColumnElement[Any]]) -> ColumnElement[bool]:
        one = columns[0] if len(columns) == 1 else tuple_(*columns)
        return one.in_(select(*place.c))

    return among


def _among_arrays(arrays: Sequence[object], types: Sequence[str]) -> Any:
    """Arrays are lists, or as the server writes them.

    They stay of the type that their values come from: cast to a narrower one, a key would turn
    into another, and match what hangs on a stranger.
    """

    def among(columns: Sequence[ColumnElement[Any]]) -> ColumnElement[bool]:
        # The server would not know what an array of text holds, and all that the driver or a file
        # has no type of its own for is text.
        binds: list[Any] = [
            cast(as_it_is(values), Declared(f"{type_}[]"))
            for values, type_ in zip(
                arrays or [[]] * len(columns),
                types or [each.type.compile() for each in columns],
                strict=True,
            )
        ]
        if len(columns) == 1:
            return columns[0] == any_(binds[0])
        names = [f"k{number}" for number in range(len(binds))]
        rows = func.unnest(*binds).table_valued(*names).render_derived()
        return tuple_(*columns).in_(select(*rows.c))

    return among


def save(folder: Path, entries: Iterable[tuple[str, Sequence[Key]]]) -> tuple[str, str]:
    """Keep the keys of a plan on disk.

    Parameters:
        folder: where; it is made if need be.
        entries: keys, each portion under the name of what it is for.

    Returns:
        The file's path, and a digest of what is in it; both empty where there are no keys.

    Raises:
        StoreError: when it cannot be written.
    """
    entries = iter(entries)
    first = next(entries, None)
    if first is None:
        return "", ""
    try:
        return _save(folder, chain([first], entries))
    except OSError as error:
        raise files.explained(error, str(folder)) from error


def _save(folder: Path, entries: Iterable[tuple[str, Sequence[Key]]]) -> tuple[str, str]:
    folder.mkdir(parents=True, exist_ok=True)
    _forget(folder)
    # What has no form of its own there is text, which the database takes for what it is.
    digest, encode = hashlib.sha256(), msgspec.msgpack.Encoder(enc_hook=str).encode
    descriptor, draft = tempfile.mkstemp(dir=folder, suffix=".draft")
    try:
        with os.fdopen(descriptor, "wb") as file:
            for name, keys in entries:
                data = encode((name, keys))
                data = len(data).to_bytes(4, "big") + data
                digest.update(data)
                file.write(data)
        # Named after what is in it: to plan the same again makes no second one.
        path = folder / f"{digest.hexdigest()[:32]}.keys"
        os.replace(draft, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(draft)
        raise
    return str(path), digest.hexdigest()


def load(path: str, digest: str) -> Iterator[tuple[str, list[Key]]]:
    """The keys of a plan, a portion at a time; none of a path that is empty.

    Raises:
        StoreChanged: when they are not what the plan saw.
    """
    if not path:
        return
    try:
        with open(path, "rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != digest:
                raise StoreChanged(path=path, why="these are not the keys that the plan saw")
            file.seek(0)
            decode = msgspec.msgpack.Decoder(tuple[str, list[Any]]).decode
            while head := file.read(4):
                name, keys = decode(file.read(int.from_bytes(head, "big")))
                yield name, [tuple(key) for key in keys]
    except FileNotFoundError:
        raise StoreChanged(path=path, why="the keys that the plan saw are gone") from None
    except OSError as error:
        raise files.explained(error, path) from error


def _forget(folder: Path) -> None:
    """Remove the keys of old plans, and what was left of one that was never finished."""
    for entry in os.scandir(folder):
        if entry.name.endswith((".keys", ".draft")):
            with suppress(OSError):
                if time.time() - entry.stat(follow_symlinks=False).st_mtime > _KEPT:
                    os.unlink(entry.path)
