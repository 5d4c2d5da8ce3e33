"""The row that each sweep leaves: in the same transaction as the last slice, or not at all."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import pytest

from keepfor.errors import StoreError, SweepStopped
from keepfor.policy.rules import Policy, keep_for, keep_type
from keepfor.stores.sql import pace
from keepfor.stores.table import Dependent, Record, TableStore
from keepfor.testing.suite import NOW, bounded
from tests.stores.sql.build import (
    OLD,
    YOUNG,
    carried_out,
    column,
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


def notes(url: str, *instants: datetime, columns: str = "payload <json>") -> str:
    lay(
        url,
        f"CREATE TABLE notes (id <id>, ts <ts>, kind VARCHAR, {columns})",
        "CREATE TABLE vectors (id <id>, note BIGINT)",
    )
    for instant in instants:
        run(url, "INSERT INTO notes (ts) VALUES (:ts)", ts=stored(url, instant))
    run(url, "INSERT INTO vectors (note) SELECT id FROM notes")
    return url


def store_of(
    url: str, folder: Path, when: Literal["always", "deleted"] = "always", **settings: Any
) -> TableStore:
    record = Record(type="sweep", payload="payload", when=when)
    link = Dependent(table="vectors", columns=("note",))
    said = {"type": "kind", "dependents": (link,), "record": record, **settings}
    return table(url, "notes", folder, **said)


def records(url: str) -> list[Any]:
    """What the records say."""
    found = column(url, "SELECT payload FROM notes WHERE kind = 'sweep' ORDER BY id")
    return [json.loads(each) if isinstance(each, str) else each for each in found]


TOLD = {"deleted": 2, "cutoff": "2026-04-27T00:00:00+00:00", "dependents": {"vectors": 2}}


def test_a_sweep_leaves_a_row_that_tells_of_it(url: str, tmp_path: Path) -> None:
    """What went, up to when, and with what; at the instant that it was judged by."""
    store = store_of(notes(url, OLD, OLD, YOUNG), tmp_path)
    report = swept(store)
    assert records(url) == [TOLD]
    assert column(url, "SELECT ts FROM notes WHERE kind = 'sweep'") == [stored(url, NOW)]
    # Of what was there before, it says nothing.
    assert (report.scanned, report.kept, report.applied) == (3, 1, 2)


def test_a_record_is_there_with_the_last_slice_and_not_before(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While there is more to do it is not there; with the last rows it is, and tells all."""
    monkeypatch.setattr(pace, "_FIRST", 1)
    monkeypatch.setattr(pace, "_MOST", 1)
    store = store_of(notes(url, OLD, OLD, YOUNG), tmp_path)
    seen = []
    carried_out(planned(store), store, progress=lambda done, of: seen.append((done, records(url))))
    assert seen == [(1, []), (2, [TOLD])]


def test_a_record_that_cannot_be_left_takes_its_slice_back(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both or neither: where the row is refused, the last slice is undone, and told."""
    monkeypatch.setattr(pace, "_FIRST", 1)
    monkeypatch.setattr(pace, "_MOST", 1)
    notes(url, OLD, OLD, YOUNG, columns="payload <json> CHECK (kind <> 'sweep')")
    with pytest.raises(SweepStopped, match="1 of 2 rows"):
        swept(store_of(url, tmp_path))
    assert column(url, "SELECT id FROM notes ORDER BY id") == [2, 3]
    assert column(url, "SELECT note FROM vectors ORDER BY id") == [2, 3]


def test_orphans_are_told_in_the_record(url: str, tmp_path: Path) -> None:
    """They are deleted by the sweep as well, but are no rows of the table."""
    notes(url, OLD, YOUNG, YOUNG)
    run(url, "DELETE FROM notes WHERE id = 2")
    swept(store_of(url, tmp_path, orphans="delete"))
    assert records(url) == [
        TOLD | {"deleted": 1, "dependents": {"vectors": 1}, "orphans": {"vectors": 1}}
    ]


@pytest.mark.parametrize(("when", "left"), [("always", 1), ("deleted", 0)])
def test_a_sweep_with_nothing_to_delete_leaves_a_row_if_asked_to(
    when: Literal["always", "deleted"], left: int, url: str, tmp_path: Path
) -> None:
    """`always` shows that somebody looked; `deleted` keeps quiet."""
    store = store_of(notes(url, YOUNG), tmp_path, when)
    swept(store)
    told = {"deleted": 0, "cutoff": "2026-04-27T00:00:00+00:00", "dependents": {}}
    assert records(url) == [told] * left


def test_a_row_is_left_whenever_something_was_deleted(url: str, tmp_path: Path) -> None:
    """`deleted` and `always` tell the same of a sweep that deleted something."""
    swept(store_of(notes(url, OLD, OLD), tmp_path, "deleted"))
    assert records(url) == [TOLD]


def test_a_sweep_without_a_cutoff_says_so(url: str, tmp_path: Path) -> None:
    """Where a ceiling alone holds, no row goes by its age."""
    store = store_of(notes(url, OLD, YOUNG), tmp_path)
    swept(store, bounded(max_count=1))
    assert records(url) == [{"deleted": 1, "cutoff": None, "dependents": {"vectors": 1}}]


def test_a_record_ages_like_any_other_row(url: str, tmp_path: Path) -> None:
    """The next but one sweep finds it old, unless a rule keeps its type."""
    store = store_of(notes(url, YOUNG), tmp_path)
    swept(store)
    later = datetime(2027, 1, 1, tzinfo=UTC)
    pinned = Policy(
        rules=(*keep_type("sweeps", "sweep", None), *keep_for(NOW - YOUNG)), breaker=None
    )
    assert planned(store, pinned, later).survey.applied == 1
    assert planned(store, now=later).survey.applied == 2


@pytest.mark.parametrize("declared", ["DATETIME", "TIMESTAMP"])
def test_the_first_row_of_an_empty_table_is_written_as_sqlalchemy_would(
    declared: str, tmp_path: Path
) -> None:
    """Where the declaration tells how times are written, no row needs to."""
    url = f"sqlite:///{tmp_path}/notes.sqlite3"
    run(
        url,
        f"CREATE TABLE notes (id INTEGER PRIMARY KEY, ts {declared}, kind TEXT, payload TEXT)",
    )
    swept(store_of(url, tmp_path, dependents=()))
    assert column(url, "SELECT ts FROM notes") == ["2026-07-26 00:00:00.000000"]


def test_an_empty_table_of_unknown_times_gets_no_row(tmp_path: Path) -> None:
    """No row tells how a time would be written, so none is, which is told; it is no failure."""
    url = f"sqlite:///{tmp_path}/notes.sqlite3"
    run(url, "CREATE TABLE notes (id INTEGER PRIMARY KEY, ts, kind TEXT, payload TEXT)")
    report = swept(store_of(url, tmp_path, dependents=()))
    assert column(url, "SELECT id FROM notes") == []
    assert any("it left no record" in note for note in report.notes)


#: Time columns: how they are declared, an old value, and what the record's row has there.
SQLITE_TIMES: dict[str, tuple[str, object, object]] = {
    "naive": ("DATETIME", "2026-01-01 00:00:00.000000", "2026-07-26 00:00:00.000000"),
    "seconds": ("DATETIME", "2026-01-01 00:00:00", "2026-07-26 00:00:00"),
    "Z": ("TEXT", "2026-01-01T00:00:00.123Z", "2026-07-26T00:00:00.000Z"),
    "offset": ("TEXT", "2026-01-01T00:00:00+02:00", "2026-07-26T00:00:00+00:00"),
    "date": ("DATE", "2026-01-01", "2026-07-26"),
    "s": ("INTEGER", 1767225600, 1785024000),
    "ms": ("INTEGER", 1767225600000, 1785024000000),
    "real": ("REAL", 1767225600.5, 1785024000.0),
}
POSTGRES_TIMES = {
    "timestamptz": ("TIMESTAMPTZ", "2026-01-01", "2026-07-26 00:00:00+00"),
    "timestamp": ("TIMESTAMP", "2026-01-01", "2026-07-26 00:00:00"),
    "date": ("DATE", "2026-01-01", "2026-07-26"),
    "bigint": ("BIGINT", "1767225600000", "1785024000000"),
    "double": ("DOUBLE PRECISION", "1767225600.5", "1785024000"),
    "numeric": ("NUMERIC", "1767225600.5", "1785024000"),
    "text": ("TEXT", "2026-01-01T00:00:00Z", "2026-07-26T00:00:00Z"),
}


@pytest.mark.parametrize("shape", SQLITE_TIMES)
def test_a_record_has_its_time_in_the_shape_of_the_others(shape: str, tmp_path: Path) -> None:
    """The next sweep can compare it, and its program can read it."""
    declared, old, written = SQLITE_TIMES[shape]
    url = f"sqlite:///{tmp_path}/notes.sqlite3"
    run(
        url,
        f"CREATE TABLE notes (id INTEGER PRIMARY KEY, ts {declared}, kind TEXT, payload TEXT)",
    )
    for key, value in ((1, old), (2, old)):
        run(url, "INSERT INTO notes (id, ts) VALUES (:id, :ts)", id=key, ts=value)
    store = store_of(url, tmp_path, dependents=())
    assert swept(store).applied == 2
    assert column(url, "SELECT ts FROM notes") == [written]
    assert swept(store).unknown == 0


@pytest.mark.parametrize(
    ("shape", "payload"),
    [
        *((shape, "JSONB") for shape in POSTGRES_TIMES),
        *(("timestamptz", payload) for payload in ("JSON", "TEXT", "VARCHAR(200)")),
    ],
)
def test_a_record_fits_the_columns_of_postgresql(
    shape: str, payload: str, postgres_url: str, tmp_path: Path
) -> None:
    """Whatever holds times, and whatever holds JSON."""
    declared, old, written = POSTGRES_TIMES[shape]
    run(
        postgres_url,
        f"CREATE TABLE notes (id INT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, ts {declared}, "
        f"kind VARCHAR, payload {payload})",
        f"INSERT INTO notes (ts) VALUES ('{old}'), ('{old}')",
        "SET TIME ZONE 'UTC'",
    )
    assert swept(store_of(postgres_url, tmp_path, dependents=())).applied == 2
    assert run(postgres_url, "SET TIME ZONE 'UTC'", "SELECT CAST(ts AS text) FROM notes") == [
        (written,)
    ]
    assert records(postgres_url) == [TOLD | {"dependents": {}}]


@pytest.mark.parametrize(
    "columns",
    [
        "payload <json>, room VARCHAR NOT NULL",
        "payload <json>, room VARCHAR NOT NULL DEFAULT 'hall'",
        "payload <json>, room VARCHAR",
    ],
    ids=["must", "default", "may"],
)
def test_a_row_that_must_have_more_than_is_told_is_refused(
    columns: str, url: str, tmp_path: Path
) -> None:
    """A column that must not be empty and has no default: the plan says so already."""
    store = store_of(notes(url, columns=columns), tmp_path)
    if "NOT NULL" in columns and "DEFAULT" not in columns:
        with pytest.raises(StoreError, match=r"needs a room, which `record_sweeps` cannot tell"):
            planned(store)
    else:
        swept(store)
        assert len(records(url)) == 1


@pytest.mark.parametrize(
    ("key", "numbered"),
    [
        ("id INTEGER PRIMARY KEY", True),
        ("id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT", True),
        ("id INT NOT NULL PRIMARY KEY", False),
        ("id VARCHAR NOT NULL PRIMARY KEY", False),
        ("id INTEGER NOT NULL, room INTEGER NOT NULL, PRIMARY KEY (id, room)", False),
    ],
)
def test_a_key_that_nobody_hands_out_is_refused_in_sqlite(
    key: str, numbered: bool, tmp_path: Path
) -> None:
    """Only another name of the rowid is numbered by SQLite itself."""
    url = f"sqlite:///{tmp_path}/notes.sqlite3"
    columns, _, end = key.partition(", PRIMARY")
    run(
        url,
        f"CREATE TABLE notes ({columns}, ts DATETIME, kind TEXT, payload TEXT"
        f"{', PRIMARY' + end if end else ''})",
    )
    store = store_of(url, tmp_path, dependents=())
    if numbered:
        swept(store)
        assert len(records(url)) == 1
    else:
        with pytest.raises(StoreError, match="needs a id"):
            planned(store)


@pytest.mark.parametrize(
    ("key", "numbered"),
    [
        ("BIGINT", False),
        ("BIGSERIAL", True),
        ("BIGINT GENERATED ALWAYS AS IDENTITY", True),
        ("UUID DEFAULT gen_random_uuid()", True),
        ("BIGINT GENERATED ALWAYS AS (1) STORED", True),
    ],
)
def test_a_key_that_nobody_hands_out_is_refused_in_postgresql(
    key: str, numbered: bool, postgres_url: str, tmp_path: Path
) -> None:
    """A sequence, an identity, a default or an expression will do; a bare number will not."""
    run(
        postgres_url,
        f"CREATE TABLE notes (id {key} PRIMARY KEY, ts TIMESTAMPTZ, kind TEXT, payload JSON)",
    )
    store = store_of(postgres_url, tmp_path, dependents=())
    if numbered:
        swept(store)
        assert len(records(postgres_url)) == 1
    else:
        with pytest.raises(StoreError, match="needs a id"):
            planned(store)


def test_a_record_without_a_type_column_is_refused(url: str, tmp_path: Path) -> None:
    """It would be a row of no kind."""
    with pytest.raises(StoreError, match="nobody said which column of notes holds the type"):
        planned(store_of(notes(url), tmp_path, type=None))


def test_rows_that_others_hold_make_no_sweep_that_deleted(
    postgres_url: str, tmp_path: Path
) -> None:
    """Where all that was due is locked, `deleted` leaves no row."""
    import psycopg

    notes(postgres_url, OLD, YOUNG)
    store = store_of(postgres_url, tmp_path, "deleted")
    (name,), (place,) = (
        column(postgres_url, f"SELECT {what}")
        for what in ("current_database()", "current_setting('unix_socket_directories')")
    )
    with psycopg.connect(host=place, user="postgres", dbname=name) as other:
        other.execute("SELECT * FROM notes WHERE id = 1 FOR UPDATE")
        report = swept(store)
    assert (report.applied, report.skipped, report.kept) == (0, 1, 1)
    assert records(postgres_url) == []


@pytest.mark.parametrize("payload", ["ts", "kind", "id"])
def test_a_record_has_columns_of_its_own(tmp_path: Path, payload: str) -> None:
    """A payload in the place of a time would keep every later sweep from reading the table."""
    url = notes(f"sqlite:///{tmp_path}/notes.sqlite3", OLD, YOUNG)
    record = Record(type="sweep", payload=payload)
    with pytest.raises(StoreError, match="columns of their own"):
        planned(store_of(url, tmp_path, record=record))
