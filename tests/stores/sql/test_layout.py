"""What is said of a table and is not so is refused with what to write instead; odd names work."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from keepfor.errors import StoreError
from keepfor.stores.sql import pace
from keepfor.stores.table import Dependent, Record, TableStore, table_at
from tests.stores.nobody import as_nobody, common_ground
from tests.stores.sql.build import (
    OLD,
    YOUNG,
    carried_out,
    column,
    kind,
    lay,
    planned,
    run,
    stored,
    swept,
    table,
)


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database of either kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/notes.sqlite3"
    return str(request.getfixturevalue("postgres_url"))


def notes(url: str) -> str:
    return lay(
        url,
        "CREATE TABLE notes (id <id>, ts <ts>, kind VARCHAR, name VARCHAR)",
        "CREATE TABLE vectors (id <id>, note_id BIGINT)",
        "CREATE VIEW recent AS SELECT * FROM notes",
        "CREATE TABLE loose (ts <ts>, name VARCHAR)",
    )


def refused(url: str, folder: Path, name: str = "notes", *, match: str, **said: Any) -> None:
    with pytest.raises(StoreError, match=match) as caught:
        planned(table(url, name, folder, **said))
    assert "notes.sqlite3" in str(caught.value) or "postgresql://" in str(caught.value)


WRONG: dict[str, tuple[str, dict[str, Any], str]] = {
    "table": ("note", {}, r"it has no table note\. Did you mean notes\?"),
    "unlike any": ("zzz", {}, r"it has no table zzz\. There are: loose, notes, vectors\."),
    "view": ("recent", {}, "recent is a view"),
    "time": ("notes", {"time": "tss"}, r"notes has no column tss\. Did you mean ts\?"),
    "key": ("notes", {"key": ("ids",)}, r"notes has no column ids\. Did you mean id\?"),
    "type": ("notes", {"type": "kin"}, r"notes has no column kin\. Did you mean kind\?"),
    "no key": ("loose", {}, "loose has no primary key"),
    "no unique key": ("notes", {"key": ("name",)}, "nothing sees to it that no two rows of notes"),
    "no unique key either": ("loose", {"key": ("name",)}, r"\(it has none\)"),
    "dependent": (
        "notes",
        {"dependents": (Dependent(table="vector", columns=("note_id",)),)},
        "it has no table vector. Did you mean vectors",
    ),
    "dependent's column": (
        "notes",
        {"dependents": (Dependent(table="vectors", columns=("note",)),)},
        "vectors has no column note. Did you mean note_id",
    ),
    "payload": (
        "notes",
        {"type": "kind", "record": Record(type="sweep", payload="pay")},
        "notes has no column pay. There are: id, kind, name, ts",
    ),
    "key of a dependent": (
        "notes",
        {
            "dependents": (
                Dependent(
                    table="loose",
                    columns=("name",),
                    dependents=(Dependent(table="vectors", columns=("note_id",)),),
                ),
            )
        },
        "loose has no primary key",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_not_there_is_told_with_the_nearest(what: str, url: str, tmp_path: Path) -> None:
    """A typo deletes nothing: the message says what there is instead."""
    name, said, match = WRONG[what]
    refused(notes(url), tmp_path, name, match=match, **said)


def test_an_empty_database_has_no_table(url: str, tmp_path: Path) -> None:
    """Where nothing is, the message says so."""
    run(url, "CREATE TABLE x (id INTEGER)", "DROP TABLE x")
    refused(url, tmp_path, match="it has no table notes. It is empty")


def unique(url: str, folder: Path, said: str, *more: str) -> TableStore:
    lay(url, f"CREATE TABLE notes (id <id>, ts <ts>, name VARCHAR(20){said})", *more)
    for key, (name, instant) in enumerate((("a", OLD), ("b", YOUNG)), start=1):
        run(
            url,
            "INSERT INTO notes (id, ts, name) VALUES (:id, :ts, :name)",
            id=key,
            ts=stored(url, instant),
            name=name,
        )
    return table(url, "notes", folder, key=("name",))


@pytest.mark.parametrize(
    ("said", "index"),
    [(" NOT NULL UNIQUE", ""), (" NOT NULL", "CREATE UNIQUE INDEX one ON notes (name)")],
    ids=["constraint", "index"],
)
def test_a_unique_column_is_a_key(said: str, index: str, url: str, tmp_path: Path) -> None:
    """Whatever sees to it that no two rows share a value."""
    store = unique(url, tmp_path, said, *([index] if index else []))
    assert swept(store).applied == 1
    assert column(url, "SELECT name FROM notes") == ["b"]


@pytest.mark.parametrize(
    ("said", "index"),
    [
        (" UNIQUE", ""),
        (" NOT NULL", "CREATE UNIQUE INDEX one ON notes (name) WHERE id > 1"),
        (" NOT NULL", "CREATE INDEX one ON notes (name)"),
        (" NOT NULL", "CREATE UNIQUE INDEX one ON notes (name, ts)"),
    ],
    ids=["nullable", "partial", "not unique", "of more"],
)
def test_what_two_rows_may_share_is_no_key(said: str, index: str, url: str, tmp_path: Path) -> None:
    """A deletion by such a value could take another row along."""
    store = unique(url, tmp_path, said, *([index] if index else []))
    with pytest.raises(StoreError, match="nothing sees to it"):
        planned(store)


#: Names that a careless program stumbles over, as written for SQL.
ODD = ["group", "a table", "Mixed", 'say "x"', "100%", "q?:p", "ä", "o'clock", "select*"]


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""').replace(":", "\\:") + '"'


@pytest.mark.parametrize("name", ODD)
def test_any_name_will_do(name: str, url: str, tmp_path: Path) -> None:
    """Keywords, spaces, quotes and capitals, in tables and columns, are taken letter for letter."""
    q = quoted(name)
    lay(
        url,
        f"CREATE TABLE {q} ({q} <id>, {quoted('when ' + name)} <ts>, "
        f"{quoted('kind ' + name)} VARCHAR, {quoted('pay ' + name)} <json>)",
        f"CREATE TABLE {quoted('of ' + name)} (id <id>, {q} BIGINT)",
    )
    for key, instant in ((1, OLD), (2, YOUNG)):
        run(
            url,
            f"INSERT INTO {q} ({q}, {quoted('when ' + name)}) VALUES (:id, :ts)",
            f"INSERT INTO {quoted('of ' + name)} ({q}) VALUES (:id)",
            id=key,
            ts=stored(url, instant),
        )
    store = table_at(
        url,
        name,
        folder=tmp_path / "state",
        time=f"when {name}",
        type=f"kind {name}",
        dependents=(Dependent(table=f"of {name}", columns=(name,)),),
        record=Record(type="sweep", payload=f"pay {name}"),
        orphans="delete",
    )
    made = planned(store)
    assert len([note for note in made.survey.notes if "CREATE INDEX" in note]) == 2
    report = carried_out(made, store)
    assert (report.applied, report.dependents) == (1, {f"of {name}": 1})
    left = f"SELECT {q} FROM {q} WHERE {quoted('kind ' + name)} IS NULL"
    assert column(url, left) == [2]
    assert column(url, f"SELECT {q} FROM {quoted('of ' + name)}") == [2]


def test_a_schema_may_be_named(url: str, tmp_path: Path) -> None:
    """`main.notes`, `other.notes`: of two tables of one name, the one that was meant."""
    schema = "main" if kind(url) == "sqlite" else "other"
    if kind(url) == "postgresql":
        run(
            url, "CREATE SCHEMA other", "CREATE TABLE notes (id BIGINT PRIMARY KEY, ts TIMESTAMPTZ)"
        )
        run(url, "INSERT INTO notes VALUES (1, '2026-01-01')")
    lay(
        url,
        f"CREATE TABLE {schema}.notes (id <id>, ts <ts>)",
        f"CREATE TABLE {schema}.vectors (id <id>, note BIGINT)",
        f"INSERT INTO {schema}.vectors (id, note) VALUES (1, 1), (2, 2)",
    )
    for key, instant in ((1, OLD), (2, YOUNG)):
        run(
            url,
            f"INSERT INTO {schema}.notes (id, ts) VALUES (:id, :ts)",
            id=key,
            ts=stored(url, instant),
        )
    link = Dependent(table=f"{schema}.vectors", columns=("note",))
    store = table(url, f"{schema}.notes", tmp_path, dependents=(link,), orphans="delete")
    report = swept(store)
    assert (report.applied, report.dependents) == (1, {f"{schema}.vectors": 1})
    assert column(url, f"SELECT id FROM {schema}.notes") == [2]
    if kind(url) == "postgresql":
        assert column(url, "SELECT id FROM notes") == [1]


@pytest.mark.parametrize("said", [{}, {"key": ("id",)}], ids=["no key", "key"])
def test_a_table_without_rowid_is_swept(said: dict[str, Any], tmp_path: Path) -> None:
    """Its key is the primary key, though nothing hands out higher ones."""
    url = f"sqlite:///{tmp_path}/notes.sqlite3"
    run(url, "CREATE TABLE notes (id INTEGER PRIMARY KEY, ts DATETIME) WITHOUT ROWID")
    run(url, f"INSERT INTO notes VALUES (1, '{stored(url, OLD)}'), (2, '{stored(url, YOUNG)}')")
    assert swept(table(url, "notes", tmp_path, **said)).applied == 1
    assert column(url, "SELECT id FROM notes") == [2]


def advice(store: TableStore) -> list[str]:
    return [note for note in planned(store).survey.notes if "CREATE INDEX" in note]


def test_a_missing_index_is_told_with_its_statement(url: str, tmp_path: Path) -> None:
    """On the time, on a dependent's column and on a nested one; done as told, nothing is left."""
    notes(url)
    lay(url, "CREATE TABLE pieces (id <id>, vector BIGINT)")
    pieces = Dependent(table="pieces", columns=("vector",))
    link = Dependent(table="vectors", columns=("note_id",), dependents=(pieces,))
    store = table(url, "notes", tmp_path, dependents=(link,))
    told = advice(store)
    assert [note.partition(": ")[0] for note in told] == [
        "notes has no index on ts, so it is read whole",
        "vectors has no index on note_id, so it is read whole",
        "pieces has no index on vector, so it is read whole",
    ]
    assert told[0].endswith("CREATE INDEX ix_notes_ts ON notes (ts);")
    run(url, *(note.partition(": ")[2] for note in told))
    assert advice(store) == []


@pytest.mark.parametrize(
    ("index", "helps"),
    [
        ("CREATE INDEX i ON notes (ts)", True),
        ("CREATE INDEX i ON notes (ts, kind)", True),
        ("CREATE INDEX i ON notes (kind, ts)", False),
        ("CREATE INDEX i ON notes (ts) WHERE kind IS NOT NULL", False),
        ("CREATE INDEX i ON notes (lower(name), ts)", False),
        ("CREATE UNIQUE INDEX i ON notes (ts, id)", True),
    ],
    ids=["just", "first", "second", "partial", "expression", "unique"],
)
def test_an_index_helps_if_it_begins_with_the_column(
    index: str, helps: bool, url: str, tmp_path: Path
) -> None:
    """One that has it further on, or leaves rows out, does not."""
    run(notes(url), index)
    assert (advice(table(url, "notes", tmp_path)) == []) == helps


def test_without_an_index_the_same_rows_go(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then they are gone through in the order of the key, slice by slice."""

    monkeypatch.setattr(pace, "_FIRST", 2)
    monkeypatch.setattr(pace, "_MOST", 2)
    notes(url)
    for key, instant in enumerate((OLD, YOUNG, OLD, None, OLD, YOUNG, OLD), start=1):
        run(
            url,
            "INSERT INTO notes (id, ts) VALUES (:id, :ts)",
            id=key,
            ts=stored(url, instant),
        )
    assert swept(table(url, "notes", tmp_path)).applied == 4
    assert column(url, "SELECT id FROM notes ORDER BY id") == [2, 4, 6]


def test_a_database_that_may_only_be_read_is_told_and_left() -> None:
    """A plan can be made of it; a sweep says that it may not be written to."""
    with common_ground() as folder:
        url = f"sqlite:///{folder}/db/notes.sqlite3"
        (folder / "db").mkdir()
        notes(url)
        run(url, "INSERT INTO notes (id, ts) VALUES (1, :ts)", ts=stored(url, OLD))
        path = folder / "db" / "notes.sqlite3"
        os.chmod(path, 0o444)
        os.chmod(folder / "db", 0o555)
        before = path.read_bytes()

        def act() -> None:
            store = table(url, "notes", folder)
            made = planned(store)
            assert made.survey.applied == 1
            with pytest.raises(StoreError):
                carried_out(made, store)

        as_nobody(act)
        os.chmod(folder / "db", 0o755)
        assert path.read_bytes() == before


def test_a_server_that_takes_no_changes_is_told(postgres_url: str, tmp_path: Path) -> None:
    """A standby, or a role that may only read, has every row left."""
    notes(postgres_url)
    run(postgres_url, "INSERT INTO notes (id, ts) VALUES (1, '2026-01-01')")
    store = table(postgres_url, "notes", tmp_path)
    made = planned(store)
    (name,) = column(postgres_url, "SELECT current_database()")
    run(postgres_url, f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    with pytest.raises(StoreError, match="takes no changes"):
        carried_out(made, store)
    assert column(postgres_url, "SELECT id FROM notes") == [1]


def test_a_role_needs_no_more_than_it_is_told(postgres_url: str, tmp_path: Path) -> None:
    """With the rights that a refusal names, a sweep goes through."""
    notes(postgres_url)
    run(
        postgres_url,
        "INSERT INTO notes (id, ts) VALUES (1, '2026-01-01'), (2, '2026-07-01')",
        "CREATE ROLE sweeper LOGIN",
    )
    own = postgres_url.replace("postgres@", "sweeper@", 1)
    link = Dependent(table="vectors", columns=("note_id",))
    store = table(own, "notes", tmp_path, dependents=(link,))
    with pytest.raises(StoreError, match="GRANT SELECT") as caught:
        planned(store)
    rights = str(caught.value).partition("GRANT ")[2].partition(" ON ")[0]
    run(postgres_url, f"GRANT {rights} ON notes, vectors TO sweeper")
    assert swept(store).applied == 1
    assert column(postgres_url, "SELECT id FROM notes") == [2]
    run(postgres_url, "REVOKE ALL ON notes, vectors FROM sweeper")


def test_one_column_may_be_named_by_itself() -> None:
    """A name is not taken for a list of letters."""
    assert Dependent(table="v", columns="note", key="id") == Dependent(  # type: ignore[arg-type]
        table="v", columns=("note",), key=("id",)
    )


def test_what_refers_to_a_partitioned_table_refers_to_its_partitions(
    postgres_url: str, tmp_path: Path
) -> None:
    """A sweep of one partition would delete, unseen, what hangs on its rows by the whole table."""
    run(
        postgres_url,
        "CREATE TABLE notes (id bigint, ts timestamptz, PRIMARY KEY (id)) PARTITION BY RANGE (id)",
        "CREATE TABLE first PARTITION OF notes FOR VALUES FROM (0) TO (1000)",
        "CREATE TABLE late (note bigint REFERENCES notes (id) ON DELETE CASCADE)",
    )
    with pytest.raises(StoreError, match=r"late\.note refers to first"):
        planned(table(postgres_url, "first", tmp_path))
