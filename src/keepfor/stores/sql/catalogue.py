"""What a database knows of a table: what its columns hold, its indexes, and what refers to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import NamedTuple

from sqlalchemy import Connection, text
from sqlalchemy.types import UserDefinedType

#: The columns of a table, with what each is declared to hold.
_COLUMNS = {
    "sqlite": "SELECT name, type FROM pragma_table_xinfo(:name) WHERE hidden <> 1 ORDER BY cid",
    "postgresql": """
        SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute
        WHERE attnum > 0 AND NOT attisdropped
            AND attrelid = to_regclass(format('%I.%I', CAST(:schema AS text), CAST(:name AS text)))
        ORDER BY attnum
    """,
}
#: All indexes of a table, a row for each of their columns; an expression has no name.
_INDEXES = {
    "sqlite": """
        SELECT each.seq, "unique", partial, column.name
        FROM pragma_index_list(:name) AS each JOIN pragma_index_info(each.name) AS column
        ORDER BY each.seq, seqno
    """,
    "postgresql": """
        SELECT indexrelid, indisunique, indpred IS NOT NULL, attname
        FROM pg_index
        CROSS JOIN unnest(CAST(indkey AS int2[])) WITH ORDINALITY AS part (number, place)
        LEFT JOIN pg_attribute ON attrelid = indrelid AND attnum = number
        WHERE indisvalid AND place <= indnkeyatts
            AND indrelid = to_regclass(format('%I.%I', CAST(:schema AS text), CAST(:name AS text)))
        ORDER BY indexrelid, place
    """,
}

#: All foreign keys that refer to a table, a row for each of their columns. What refers to a
#: partitioned table refers to each of its partitions.
_REFERENCES = {
    "sqlite": """
        SELECT '', name, id, on_delete, "from", "to"
        FROM sqlite_master JOIN pragma_foreign_key_list(name) AS found
        WHERE type = 'table' AND found."table" = :name COLLATE NOCASE
        ORDER BY name, id, seq
    """,
    "postgresql": """
        SELECT nspname, relname, pg_constraint.oid, confdeltype::text, mine.attname, theirs.attname
        FROM pg_constraint
        JOIN pg_class ON pg_class.oid = conrelid
        JOIN pg_namespace ON pg_namespace.oid = relnamespace
        CROSS JOIN unnest(conkey, confkey) WITH ORDINALITY AS pair (mine, theirs, place)
        JOIN pg_attribute AS mine ON mine.attrelid = conrelid AND mine.attnum = pair.mine
        JOIN pg_attribute AS theirs ON theirs.attrelid = confrelid AND theirs.attnum = pair.theirs
        CROSS JOIN to_regclass(format('%I.%I', CAST(:schema AS text), CAST(:name AS text))) AS this
        WHERE contype = 'f' AND conparentid = 0
            AND (confrelid = this OR confrelid IN (SELECT relid FROM pg_partition_ancestors(this)))
        ORDER BY nspname, relname, pg_constraint.oid, place
    """,
}

#: Triggers; in PostgreSQL also rules, and policies by which rows are hidden.
_INTERFERENCE = {
    "sqlite": "SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE type = 'trigger')",
    "postgresql": """
        SELECT EXISTS (SELECT 1 FROM pg_trigger WHERE NOT tgisinternal)
            OR EXISTS (
                SELECT 1 FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
                WHERE relkind IN ('r', 'p') AND (relrowsecurity OR relhasrules)
                    AND nspname NOT IN ('pg_catalog', 'information_schema')
            )
    """,
}


class Declared(UserDefinedType[object]):
    """What a database says that a column holds. What a driver gives is left as it is.

    Parameters:
        name: the database's own word for it.
    """

    cache_ok = True

    def __init__(self, name: str) -> None:
        self.name = name

    def get_col_spec(self, **_: object) -> str:
        return self.name


class FoundIndex(NamedTuple):
    """An index, or what a database keeps one for: a primary key, a unique constraint.

    Parameters:
        columns: what it is of, in order; empty for an expression.
        unique: whether no two rows share those.
        partial: whether it leaves rows out.
    """

    columns: tuple[str, ...]
    unique: bool
    partial: bool


class Reference(NamedTuple):
    """A foreign key that a database knows of.

    Parameters:
        schema: where the table is that refers; empty in SQLite.
        table: its name.
        columns: the columns by which it refers.
        to: the columns that they refer to; each empty where that is not said.
        on_delete: what becomes of it when the row that it refers to goes, as the database has it.
    """

    schema: str
    table: str
    columns: tuple[str, ...]
    to: tuple[str, ...]
    on_delete: str

    @property
    def lets_go(self) -> bool:
        """Whether the database itself, and rightly, changes it when the row goes."""
        return self.on_delete in ("SET NULL", "SET DEFAULT", "n", "d")


def collation(connection: Connection, table: str, column: str) -> tuple[object, ...]:
    """How SQLite compares the text of a column, as far as case and blanks go.

    No catalogue of its own tells the collation of a column, so it is asked to compare. In
    PostgreSQL equal text is equal bytes, but for collations that one has to make oneself.
    """
    if connection.dialect.name == "postgresql":
        return ()
    quote = connection.dialect.identifier_preparer.quote_identifier
    source = f"SELECT {quote(column)} AS x FROM main.{quote(split(table)[0])} WHERE 0"  # noqa: S608 - both quoted
    query = f"SELECT x = 'A', x = 'a ' FROM ({source} UNION ALL SELECT 'a')"  # noqa: S608 - as above
    return tuple(connection.exec_driver_sql(query).one())


def default_schema(connection: Connection) -> str:
    """Where a table is that is named without its schema; empty in SQLite."""
    if connection.dialect.name == "sqlite":
        return ""
    # SQLAlchemy keeps what it was when an engine connected first.
    return connection.scalar(text("SELECT current_schema()")) or ""


def declared(connection: Connection, schema: str, name: str) -> dict[str, str]:
    """The columns of a table, with what the database says that each holds.

    Parameters:
        connection: where to look.
        schema: the table's; empty in SQLite.
        name: its name.
    """
    query = text(_COLUMNS[connection.dialect.name])
    found = connection.execute(query, {"schema": schema, "name": name}).all()
    return {row[0]: row[1] for row in found}


def indexes_of(connection: Connection, schema: str, name: str) -> Iterator[FoundIndex]:
    """The indexes of a table.

    Parameters: as for `declared`.
    """
    query = text(_INDEXES[connection.dialect.name])
    rows = connection.execute(query, {"schema": schema, "name": name}).all()
    for _, parts in groupby(rows, key=lambda row: row[0]):
        found = [tuple(row)[1:] for row in parts]
        unique, partial, _ = found[0]
        yield FoundIndex(tuple(name or "" for *_, name in found), bool(unique), bool(partial))


def may_interfere(connection: Connection) -> bool:
    """Whether the database may do something else than it is told to, with any of its tables."""
    return bool(connection.scalar(text(_INTERFERENCE[connection.dialect.name])))


def hides_rows(connection: Connection, name: str) -> bool:
    """Whether a table has rows that this role may not see, as far as the database can tell."""
    if connection.dialect.name == "sqlite":
        return False
    plain, schema = split(name)
    asked = text(
        "SELECT row_security_active(to_regclass(format('%I.%I', "
        "coalesce(CAST(:schema AS text), current_schema()), CAST(:name AS text))))"
    )
    return bool(connection.scalar(asked, {"schema": schema, "name": plain}))


def references_to(connection: Connection, schema: str, name: str) -> Iterator[Reference]:
    """The foreign keys that refer to a table, wherever they are.

    Parameters:
        connection: where to look.
        schema: the table's; empty in SQLite.
        name: its name.
    """
    query = text(_REFERENCES[connection.dialect.name])
    rows = connection.execute(query, {"schema": schema, "name": name}).all()
    for _, parts in groupby(rows, key=lambda row: tuple(row)[:3]):
        found = list(parts)
        where, table, _, on_delete = found[0][:4]
        pairs = [tuple(row)[4:] for row in found]
        yield Reference(
            schema=where,
            table=table,
            columns=tuple(mine for mine, _ in pairs),
            to=tuple(theirs or "" for _, theirs in pairs),
            on_delete=on_delete,
        )


def split(name: str) -> tuple[str, str | None]:
    """The name of a table, and its schema if it is given with one."""
    schema, _, plain = name.rpartition(".")
    return plain, schema or None


def folded(dialect: str, names: Iterable[str]) -> list[str]:
    """Names as they are told apart: SQLite takes no notice of the case of an ASCII letter."""
    if dialect == "sqlite":
        return [name.encode().lower().decode() for name in names]
    return list(names)
