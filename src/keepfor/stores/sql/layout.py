"""How a table is laid out: its columns, its key, what hangs on it; refuses what is not so."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from typing import Any

import msgspec
from sqlalchemy import Connection, TableClause, column, inspect, table
from sqlalchemy.engine.reflection import Inspector
from sqlalchemy.schema import Column, CreateIndex, Index, MetaData, Table
from sqlalchemy.sql import ColumnElement

from keepfor.errors import StoreError
from keepfor.stores.sql.catalogue import (
    Declared,
    Reference,
    collation,
    declared,
    default_schema,
    folded,
    indexes_of,
    may_interfere,
    references_to,
    split,
)
from keepfor.stores.sql.database import Database
from keepfor.stores.sql.spec import Dependent, Spec


class Link(msgspec.Struct, frozen=True, kw_only=True):
    """A dependent as it is.

    Parameters:
        name: the table's.
        rows: the table.
        columns: the columns that refer to the row above.
        key: its own key; empty where nothing hangs on it.
        links: what hangs on its rows.
    """

    name: str
    rows: TableClause
    columns: tuple[ColumnElement[Any], ...]
    key: tuple[ColumnElement[Any], ...]
    links: tuple[Link, ...]


class Layout(msgspec.Struct, frozen=True, kw_only=True):
    """A table as it is.

    Parameters:
        rows: the table.
        key: the columns that tell a row from all others.
        grows: whether the key is one number, and the database hands out ever higher ones.
        time: the column that holds a row's time.
        time_type: what the database says that this column holds.
        type: the column that holds a row's type, if rules name types.
        indexed: whether the time column has an index.
        links: what hangs on its rows.
        enforced: whether references have to be enforced, so that those let go that shall.
        checked: whether it has to be seen that what was deleted is gone.
        notes: what would make it faster.
    """

    rows: TableClause
    key: tuple[ColumnElement[Any], ...]
    grows: bool
    time: ColumnElement[Any]
    time_type: str
    type: ColumnElement[Any] | None
    indexed: bool
    links: tuple[Link, ...]
    enforced: bool
    checked: bool
    notes: tuple[str, ...]

    @property
    def order(self) -> tuple[ColumnElement[Any], ...]:
        """The columns by which rows can be gone through without sorting them."""
        return (self.time, *self.key) if self.indexed else self.key


def lay_out(connection: Connection, spec: Spec, database: Database) -> Layout:
    """See how a table is laid out.

    Parameters:
        connection: where to look.
        spec: what is said of it.
        database: where it lies.

    Raises:
        StoreError: when what is said of it is not so.
    """
    look = _Look(connection, database)
    columns = look.columns(spec.table)
    key = look.key(spec.table, spec.key)
    wanted = [spec.time, *([spec.type] if spec.type else [])]
    if spec.record:
        wanted.append(spec.record.payload)
    look.check_columns(spec.table, wanted)
    links = tuple(look.link(spec.table, key, said) for said in spec.dependents)
    look.check_references(spec.table, key, spec.dependents)
    if spec.record:
        look.check_record(spec, key)
    clause = _clause(spec.table, columns)
    indexed = look.indexed(spec.table, (spec.time,))
    return Layout(
        rows=clause,
        key=tuple(clause.c[name] for name in key),
        grows=len(key) == 1 and database.keys_grow(connection, spec.table, key[0]),
        time=clause.c[spec.time],
        time_type=columns[spec.time],
        type=clause.c[spec.type] if spec.type else None,
        indexed=indexed,
        links=links,
        enforced=look.enforced,
        checked=may_interfere(connection),
        notes=(
            *([] if indexed else [look.advice(spec.table, (spec.time,))]),
            *look.slow_links(spec.dependents),
            *look.slow,
        ),
    )


class _Look:
    """What a database says of itself, and the refusals of what is not so."""

    def __init__(self, connection: Connection, database: Database) -> None:
        self._inspector: Inspector = inspect(connection)
        self._connection = connection
        self._database = database
        self._dialect = connection.dialect
        self._schema = default_schema(connection)
        self.enforced = False
        #: For each reference that the database has to look for in all of a table, what would help.
        self.slow: list[str] = []

    def columns(self, name: str) -> dict[str, str]:
        """The columns of a table, with what each is said to hold."""
        plain, schema = split(name)
        tables = self._inspector.get_table_names(schema)
        if plain not in tables:
            views = self._inspector.get_view_names(schema)
            if plain in views:
                raise self._refusal(f"{name} is a view.", "Name the table whose rows it shows.")
            raise self._refusal(f"it has no table {name}.", _nearest(plain, tables))
        return declared(self._connection, *self._place(name))

    def check_columns(self, name: str, wanted: Iterable[str]) -> None:
        """Refuse columns that the table does not have."""
        columns = self.columns(name)
        for column_name in wanted:
            if column_name not in columns:
                fix = _nearest(column_name, list(columns))
                raise self._refusal(f"{name} has no column {column_name}.", fix)

    def key(self, name: str, said: tuple[str, ...]) -> tuple[str, ...]:
        """The columns of a table that tell its rows apart."""
        plain, schema = split(name)
        primary = tuple(self._inspector.get_pk_constraint(plain, schema)["constrained_columns"])
        if not said:
            if not primary:
                raise self._refusal(
                    f"{name} has no primary key.",
                    "Name in `key:` the columns that tell its rows apart.",
                )
            return primary
        self.check_columns(name, said)
        if set(said) == set(primary):
            return said
        unique = [
            set(index.columns)
            for index in indexes_of(self._connection, *self._place(name))
            if index.unique and not index.partial
        ]
        nullable = [
            found["name"]
            for found in self._inspector.get_columns(plain, schema)
            if found["name"] in said and found["nullable"]
        ]
        if set(said) not in unique or nullable:
            raise self._refusal(
                f"nothing sees to it that no two rows of {name} share one {' and '.join(said)}.",
                f"Name its primary key ({', '.join(primary) or 'it has none'}), or make it unique "
                "and NOT NULL.",
            )
        return said

    def link(self, parent: str, above: tuple[str, ...], said: Dependent) -> Link:
        """A dependent as it is."""
        columns = self.columns(said.table)
        self.check_columns(said.table, said.columns)
        if len(said.columns) != len(above):
            raise self._refusal(
                f"{said.table} refers to {parent} by {len(said.columns)} columns, and its key has "
                f"{len(above)}.",
                "Name a column for each of the key's, in its order.",
            )
        for mine, theirs in zip(said.columns, above, strict=True):
            self._check_collation((said.table, mine), (parent, theirs))
        key = self.key(said.table, said.key) if said.dependents or said.key else ()
        clause = _clause(said.table, columns)
        return Link(
            name=said.table,
            rows=clause,
            columns=tuple(clause.c[name] for name in said.columns),
            key=tuple(clause.c[name] for name in key),
            links=tuple(self.link(said.table, key, below) for below in said.dependents),
        )

    def _check_collation(self, mine: tuple[str, str], theirs: tuple[str, str]) -> None:
        """Refuse a dependent that would take a stranger's key for the one that it refers to."""
        if "INT" in self.columns(theirs[0])[theirs[1]].upper():
            return
        if collation(self._connection, *mine) != collation(self._connection, *theirs):
            names = f"{'.'.join(mine)} and {'.'.join(theirs)}"
            raise self._refusal(
                f"{names} compare text in different ways (COLLATE), so a row could go with one "
                "that it does not hang on.",
                "Give both columns the same collation.",
            )

    def check_references(
        self,
        name: str,
        key: tuple[str, ...],
        dependents: Sequence[Dependent],
        above: tuple[tuple[str, str], ...] = (),
    ) -> None:
        """Refuse a table to which others refer in a way that nobody named.

        Their rows would be left pointing at nothing, or a database that enforces the reference
        would delete them unseen.
        """
        here = (*above, self._place(name))
        said = {(self._place(each.table), self._set(each.columns)): each for each in dependents}
        for found in self._references(name):
            other, columns = self._called(found), ", ".join(found.columns)
            place = self._place(other)
            listed = said.get((place, self._set(found.columns)))
            refers = f"{other}.{columns} refers to {name}"
            if listed is not None:
                if self._pairs(listed.columns, key) != self._pairs(found.columns, found.to):
                    raise self._refusal(
                        f"{refers} by {', '.join(found.to)}, and its key is {', '.join(key)}.",
                        "Name the columns that it refers to as the `key`, in the same order.",
                    )
            elif found.lets_go:
                self.enforced = self._dialect.name == "sqlite"
                if not self.indexed(other, found.columns):
                    self.slow.append(self.advice(other, found.columns))
            elif place in here:
                what = f"{refers}, so rows that stay could be left pointing at nothing."
                raise self._refusal(what, "Declare that reference ON DELETE SET NULL.")
            else:
                raise self._refusal(
                    f"{refers}, and nobody said what becomes of its rows.",
                    f"Add it to `dependents`: {{table: {other}, column: {columns}}}.",
                )
        for each in dependents:
            key = self.key(each.table, each.key) if each.dependents or each.key else ()
            self.check_references(each.table, key, each.dependents, here)

    def _place(self, name: str) -> tuple[str, str]:
        """Schema and name of a table, as references tell them."""
        plain, schema = split(name)
        if self._dialect.name == "sqlite":
            return "", self._fold([plain])[0]
        return schema or self._schema, plain

    def _called(self, found: Reference) -> str:
        """What `dependents` would call the table that refers."""
        if found.schema in ("", self._schema):
            return found.table
        return f"{found.schema}.{found.table}"

    def _fold(self, names: Iterable[str]) -> list[str]:
        return folded(self._dialect.name, names)

    def _set(self, names: Iterable[str]) -> frozenset[str]:
        return frozenset(self._fold(names))

    def _pairs(self, columns: Sequence[str], to: Sequence[str]) -> set[tuple[str, str]]:
        return set(zip(self._fold(columns), self._fold(to), strict=True))

    def _references(self, name: str) -> Iterator[Reference]:
        """The foreign keys that refer to a table, wherever they are."""
        for found in references_to(self._connection, *self._place(name)):
            # Without columns it refers to the primary key.
            yield found if all(found.to) else found._replace(to=self.key(name, ()))

    def check_record(self, spec: Spec, key: tuple[str, ...]) -> None:
        """Refuse to leave a row where columns would be empty that must not be."""
        record, (plain, schema) = spec.record, split(spec.table)
        assert record is not None
        if spec.type is None:
            what = f"nobody said which column of {spec.table} holds the type of a record."
            raise self._refusal(what, "Name it in `type:`, or leave `record_sweeps` out.")
        filled = {spec.time, spec.type, record.payload}
        if len(filled) < 3 or filled & set(key):
            raise self._refusal(
                "a record of a sweep has its time, its type and its payload in columns of their "
                "own, none of which is the key.",
                "Name another column as `payload:`, or leave `record_sweeps` out.",
            )
        for found in self._inspector.get_columns(plain, schema):
            by_itself = found["default"], found.get("identity"), found.get("computed")
            if found["name"] in filled or found["nullable"] or any(by_itself):
                continue
            numbered = key == (found["name"],) and self._database.keys_grow(
                self._connection, spec.table, found["name"]
            )
            if not numbered:
                raise self._refusal(
                    f"a row of {spec.table} needs a {found['name']}, which `record_sweeps` cannot "
                    "tell.",
                    "Give that column a default, or leave `record_sweeps` out.",
                )

    def indexed(self, name: str, wanted: tuple[str, ...]) -> bool:
        """Whether an index begins with these columns."""
        plain, schema = split(name)
        indexes = indexes_of(self._connection, *self._place(name))
        # Of one with a condition nobody can tell what it leaves out.
        kept = [index.columns for index in indexes if not index.partial]
        # SQLite has none for what is another name of the rowid.
        primary = self._inspector.get_pk_constraint(plain, schema)["constrained_columns"]
        return any(set(names[: len(wanted)]) == set(wanted) for names in (*kept, tuple(primary)))

    def slow_links(self, dependents: Iterable[Dependent]) -> Iterator[str]:
        """For each dependent that has to be read whole for each row, what would help."""
        for said in dependents:
            if not self.indexed(said.table, said.columns):
                yield self.advice(said.table, said.columns)
            yield from self.slow_links(said.dependents)

    def advice(self, name: str, columns: tuple[str, ...]) -> str:
        """A statement for an index that is missing."""
        plain, schema = split(name)
        made = Table(plain, MetaData(schema=schema), *(Column(each) for each in columns))
        index = Index(f"ix_{plain}_{'_'.join(columns)}", *made.columns)
        statement = str(CreateIndex(index).compile(dialect=self._dialect)).strip()
        return f"{name} has no index on {', '.join(columns)}, so it is read whole: {statement};"

    def _refusal(self, what: str, fix: str) -> StoreError:
        return StoreError(path=self._database.address, what=what, fix=fix)


def _clause(name: str, columns: dict[str, str]) -> TableClause:
    plain, schema = split(name)
    return table(
        plain, *(column(name, Declared(type_)) for name, type_ in columns.items()), schema=schema
    )


def _nearest(name: str, there: Sequence[str]) -> str:
    close = get_close_matches(name, there, 1)
    if close:
        return f"Did you mean {close[0]}?"
    return f"There are: {', '.join(sorted(there)[:10])}." if there else "It is empty."
