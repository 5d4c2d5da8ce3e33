"""What hangs on a row goes with it: declared or not, enforced or not, however deep."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from keepfor.errors import BreakerTripped, StoreError, SweepStopped
from keepfor.items import Survey
from keepfor.stores.table import Dependent
from keepfor.testing.suite import keep
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


def notes(url: str, *old: int, young: tuple[int, ...] = ()) -> str:
    """A table `notes` with rows of these keys."""
    lay(url, "CREATE TABLE notes (id <id>, ts <ts>, name VARCHAR UNIQUE, parent BIGINT)")
    for keys, instant in ((old, OLD), (young, YOUNG)):
        for key in keys:
            run(
                url,
                "INSERT INTO notes (id, ts, name) VALUES (:id, :ts, :name)",
                id=key,
                ts=stored(url, instant),
                name=f"note {key}",
            )
    return url


def there(url: str, *tables: str) -> dict[str, list[Any]]:
    """The first columns of tables, in order."""
    return {name: sorted(row[0] for row in run(url, f'SELECT * FROM "{name}"')) for name in tables}


def refused(url: str, folder: Path, *dependents: Dependent, match: str, **more: Any) -> None:
    """A plan is refused with words about what stands in the way."""
    with pytest.raises(StoreError, match=match):
        planned(table(url, "notes", folder, dependents=dependents, **more))


VECTORS = Dependent(table="vectors", columns=("note",))
DECLARED = {
    "undeclared": "BIGINT",
    "no action": "BIGINT REFERENCES notes (id)",
    "restrict": "BIGINT REFERENCES notes (id) ON DELETE RESTRICT",
    "cascade": "BIGINT REFERENCES notes (id) ON DELETE CASCADE",
    "set null": "BIGINT REFERENCES notes (id) ON DELETE SET NULL",
    "deferred": "BIGINT REFERENCES notes (id) DEFERRABLE INITIALLY DEFERRED",
    "unnamed key": "BIGINT REFERENCES notes",
}


@pytest.mark.parametrize("declared", DECLARED.values(), ids=DECLARED.keys())
def test_what_hangs_on_a_row_goes_with_it(declared: str, url: str, tmp_path: Path) -> None:
    """Whatever the database knows of a link, listed dependents go, counted, and no others."""
    notes(url, 1, 2, young=(3,))
    lay(
        url,
        f"CREATE TABLE vectors (id <id>, note {declared})",
        "INSERT INTO vectors (id, note) VALUES (10, 1), (11, 1), (12, 2), (13, 3), (14, NULL)",
    )
    store = table(url, "notes", tmp_path, dependents=(VECTORS,))
    made = planned(store)
    assert (made.survey.applied, made.survey.dependents) == (2, {"vectors": 3})
    report = carried_out(made, store)
    assert (report.applied, report.dependents) == (2, {"vectors": 3})
    assert there(url, "notes", "vectors") == {"notes": [3], "vectors": [13, 14]}


@pytest.mark.parametrize("clause", ["", " ON DELETE RESTRICT", " ON DELETE CASCADE"])
def test_an_unlisted_table_that_refers_to_ours_is_refused(
    clause: str, url: str, tmp_path: Path
) -> None:
    """Its rows would be left pointing at nothing, or deleted unseen; it is named, to be listed."""
    notes(url, 1)
    lay(url, f"CREATE TABLE tags (id <id>, note BIGINT REFERENCES notes (id){clause})")
    refused(url, tmp_path, match=r"tags\.note refers to notes.*\{table: tags, column: note\}")
    swept(table(url, "notes", tmp_path, dependents=(Dependent(table="tags", columns=("note",)),)))
    assert there(url, "notes") == {"notes": []}


def test_a_second_link_of_a_listed_table_is_refused(url: str, tmp_path: Path) -> None:
    """That a table is listed by one column says nothing of another that refers to ours."""
    notes(url, 1)
    lay(
        url,
        (
            "CREATE TABLE vectors (id <id>, note BIGINT REFERENCES notes (id), "
            "source BIGINT REFERENCES notes (id))"
        ),
    )
    refused(url, tmp_path, VECTORS, match=r"vectors\.source refers to notes")
    both = VECTORS, Dependent(table="vectors", columns=("source",))
    run(url, "INSERT INTO vectors (id, note, source) VALUES (1, 1, NULL), (2, NULL, 1)")
    report = swept(table(url, "notes", tmp_path, dependents=both))
    assert report.dependents == {"vectors": 2}


def test_what_hangs_on_a_leaf_is_refused_too(url: str, tmp_path: Path) -> None:
    """A table that refers to a dependent, and that nobody named, stops the sweep as well."""
    notes(url, 1)
    lay(
        url,
        "CREATE TABLE vectors (id <id>, note BIGINT)",
        "CREATE TABLE tags (id <id>, vector BIGINT REFERENCES vectors (id) ON DELETE CASCADE)",
    )
    refused(url, tmp_path, VECTORS, match=r"tags\.vector refers to vectors")


def test_a_link_to_another_column_than_the_key_is_refused(url: str, tmp_path: Path) -> None:
    """What refers to a name would be looked for among the ids."""
    notes(url, 1)
    lay(url, "CREATE TABLE vectors (id <id>, note VARCHAR REFERENCES notes (name))")
    refused(url, tmp_path, VECTORS, match="refers to notes by name, and its key is id")


def test_a_reference_from_another_schema_is_seen(postgres_url: str, tmp_path: Path) -> None:
    """A table is refused, or swept, wherever it lies."""
    notes(postgres_url, 1, young=(2,))
    lay(
        postgres_url,
        "CREATE SCHEMA other",
        "CREATE TABLE other.tags (id <id>, note BIGINT REFERENCES notes (id) ON DELETE CASCADE)",
        "INSERT INTO other.tags (id, note) VALUES (1, 1), (2, 2)",
    )
    refused(postgres_url, tmp_path, match=r"\{table: other.tags, column: note\}")
    listed = Dependent(table="other.tags", columns=("note",))
    report = swept(table(postgres_url, "notes", tmp_path, dependents=(listed,)))
    assert report.dependents == {"other.tags": 1}
    assert column(postgres_url, "SELECT id FROM other.tags") == [2]


@pytest.mark.parametrize("clause", ["NO ACTION", "CASCADE", "RESTRICT"])
def test_a_table_that_refers_to_itself_is_refused(clause: str, url: str, tmp_path: Path) -> None:
    """A young row may refer to an old one, and would be left behind, or taken along."""
    lay(
        url,
        "CREATE TABLE notes (id <id>, ts <ts>, "
        f"parent BIGINT REFERENCES notes (id) ON DELETE {clause})",
    )
    refused(url, tmp_path, match=r"notes\.parent refers to notes, so rows that stay")


def test_references_that_let_go_are_let_go(url: str, tmp_path: Path) -> None:
    """ON DELETE SET NULL is done, by other tables and by our own, though nobody enforces it."""
    lay(
        url,
        (
            "CREATE TABLE notes (id <id>, ts <ts>, "
            "parent BIGINT REFERENCES notes (id) ON DELETE SET NULL)"
        ),
        (
            "CREATE TABLE tags (id <id>, note BIGINT DEFAULT NULL "
            "REFERENCES notes (id) ON DELETE SET DEFAULT)"
        ),
    )
    for key, instant, parent in ((1, OLD, None), (2, YOUNG, 1), (3, YOUNG, 2)):
        run(
            url,
            "INSERT INTO notes (id, ts, parent) VALUES (:id, :ts, :parent)",
            id=key,
            ts=stored(url, instant),
            parent=parent,
        )
    run(url, "INSERT INTO tags (id, note) VALUES (1, 1), (2, 2)")
    store = table(url, "notes", tmp_path)
    made = planned(store)
    advice = [note for note in made.survey.notes if "CREATE INDEX" in note]
    assert any("ON notes (parent)" in note for note in advice)
    assert any("ON tags (note)" in note for note in advice)
    carried_out(made, store)
    assert run(url, "SELECT id, parent FROM notes ORDER BY id") == [(2, None), (3, 2)]
    assert run(url, "SELECT id, note FROM tags ORDER BY id") == [(1, None), (2, 2)]


def deep(url: str) -> Dependent:
    """Three levels below `notes`: declared and undeclared, with two tables on one row."""
    lay(
        url,
        "CREATE TABLE vectors (id <id>, note BIGINT REFERENCES notes (id))",
        "CREATE TABLE pieces (id <id>, vector BIGINT)",
        "CREATE TABLE marks (id <id>, vector BIGINT REFERENCES vectors (id) ON DELETE CASCADE)",
        "CREATE TABLE bits (piece BIGINT, bit VARCHAR)",
        "INSERT INTO vectors (id, note) VALUES (10, 1), (11, 1), (12, 2), (13, 3)",
        "INSERT INTO pieces (id, vector) VALUES (20, 10), (21, 10), (22, 12), (23, 13)",
        "INSERT INTO marks (id, vector) VALUES (30, 11), (31, 13)",
        "INSERT INTO bits (piece, bit) VALUES (20, 'a'), (20, 'b'), (21, 'c'), (23, 'd')",
    )
    bits = Dependent(table="bits", columns=("piece",))
    pieces = Dependent(table="pieces", columns=("vector",), dependents=(bits,))
    marks = Dependent(table="marks", columns=("vector",))
    return Dependent(table="vectors", columns=("note",), dependents=(pieces, marks))


def test_what_hangs_on_what_hangs_goes_too(url: str, tmp_path: Path) -> None:
    """Several levels deep, children first, a table without any key among them; counted by table."""
    notes(url, 1, 2, young=(3,))
    store = table(url, "notes", tmp_path, dependents=(deep(url),))
    made = planned(store)
    counts = {"vectors": 3, "pieces": 3, "bits": 3, "marks": 1}
    assert made.survey.dependents == counts
    assert carried_out(made, store).dependents == counts
    left = there(url, "notes", "vectors", "pieces", "marks", "bits")
    assert left == {"notes": [3], "vectors": [13], "pieces": [23], "marks": [31], "bits": [23]}


def test_composite_keys_are_matched_whole(url: str, tmp_path: Path) -> None:
    """Of a key of two columns both count, in the order in which they were named."""
    lay(
        url,
        (
            "CREATE TABLE notes (room VARCHAR NOT NULL, number BIGINT NOT NULL, ts <ts>, "
            "PRIMARY KEY (room, number))"
        ),
        "CREATE TABLE vectors (id <id>, number BIGINT, room VARCHAR, "
        "FOREIGN KEY (number, room) REFERENCES notes (number, room))"
        if kind(url) == "sqlite"
        else "CREATE TABLE vectors (id <id>, number BIGINT, room VARCHAR, "
        "FOREIGN KEY (room, number) REFERENCES notes (room, number))",
    )
    for room, number, instant in (("a", 1, OLD), ("a", 2, YOUNG), ("b", 1, YOUNG), ("b", 2, OLD)):
        run(
            url,
            "INSERT INTO notes (room, number, ts) VALUES (:room, :number, :ts)",
            room=room,
            number=number,
            ts=stored(url, instant),
        )
    run(
        url,
        (
            "INSERT INTO vectors (id, room, number) VALUES (1, 'a', 1), (2, 'a', 2), (3, 'b', 1), "
            "(4, 'b', 2), (5, 'a', NULL), (6, NULL, 1)"
        ),
    )
    refused(
        url,
        tmp_path,
        Dependent(table="vectors", columns=("number", "room")),
        match="its key is room, number",
    )
    store = table(
        url, "notes", tmp_path, dependents=(Dependent(table="vectors", columns=("room", "number")),)
    )
    report = swept(store)
    assert (report.applied, report.dependents, report.orphans) == (2, {"vectors": 2}, {})
    assert there(url, "vectors") == {"vectors": [2, 3, 5, 6]}


def test_a_link_with_too_few_columns_is_refused(url: str, tmp_path: Path) -> None:
    """One column cannot tell rows of a key of two."""
    lay(
        url,
        "CREATE TABLE notes (room VARCHAR, number BIGINT, ts <ts>, PRIMARY KEY (room, number))",
        "CREATE TABLE vectors (id <id>, note VARCHAR)",
    )
    refused(url, tmp_path, VECTORS, match="by 1 columns, and its key has 2")


@contextmanager
def enforced(url: str) -> Iterator[sqlite3.Connection]:
    """The program's own connection, which has foreign keys enforced."""
    connection = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
    connection.execute("PRAGMA foreign_keys = ON")
    yield connection
    connection.close()


def test_a_program_that_enforces_its_keys_finds_them_kept(tmp_path: Path) -> None:
    """After a sweep SQLite's own check has nothing to say, and its program works on."""
    url = notes(f"sqlite:///{tmp_path}/notes.sqlite3", 1, 2, young=(3,))
    store = table(url, "notes", tmp_path, dependents=(deep(url),))
    with enforced(url) as program:
        swept(store)
        assert program.execute("PRAGMA foreign_key_check").fetchall() == []
        with pytest.raises(sqlite3.IntegrityError):
            program.execute("INSERT INTO vectors (note) VALUES (1)")


_AGAIN = {
    "sqlite": (
        "CREATE TRIGGER again AFTER DELETE ON {0} BEGIN INSERT INTO {0} ({1}) VALUES ({2}); END",
    ),
    "postgresql": (
        (
            "CREATE FUNCTION again() RETURNS trigger AS $$ BEGIN "
            "INSERT INTO {0} ({1}) VALUES ({2}); RETURN OLD; END $$ LANGUAGE plpgsql"
        ),
        "CREATE TRIGGER again AFTER DELETE ON {0} FOR EACH ROW EXECUTE FUNCTION again()",
    ),
}


@pytest.mark.parametrize(
    "what",
    [("vectors", "id, note", "OLD.id, OLD.note"), ("notes", "id, ts", "OLD.id, OLD.ts")],
    ids=["a dependent", "the row"],
)
def test_a_trigger_that_brings_rows_back_is_told(
    what: tuple[str, str, str], url: str, tmp_path: Path
) -> None:
    """The result is verified: what is there still was not deleted, so nothing is."""
    notes(url, 1)
    lay(
        url,
        "CREATE TABLE vectors (id <id>, note BIGINT)",
        "INSERT INTO vectors (id, note) VALUES (1, 1)",
        *(statement.format(*what) for statement in _AGAIN[kind(url)]),
    )
    with pytest.raises(StoreError, match="trigger"):
        swept(table(url, "notes", tmp_path, dependents=(VECTORS,)))
    assert there(url, "notes", "vectors") == {"notes": [1], "vectors": [1]}


def test_a_trigger_that_keeps_a_row_is_told(url: str, tmp_path: Path) -> None:
    """Where the database passes over a deletion, what hangs on the row stays with it."""
    notes(url, 1)
    lay(
        url,
        "CREATE TABLE vectors (id <id>, note BIGINT)",
        "INSERT INTO vectors (id, note) VALUES (1, 1)",
        *{
            "sqlite": (
                "CREATE TRIGGER held BEFORE DELETE ON notes BEGIN SELECT RAISE(IGNORE); END",
            ),
            "postgresql": (
                (
                    "CREATE FUNCTION held() RETURNS trigger AS $$ BEGIN RETURN NULL; END $$ "
                    "LANGUAGE plpgsql"
                ),
                "CREATE TRIGGER held BEFORE DELETE ON notes FOR EACH ROW EXECUTE FUNCTION held()",
            ),
        }[kind(url)],
    )
    with pytest.raises(StoreError, match="0 rows were deleted where 1 were meant"):
        swept(table(url, "notes", tmp_path, dependents=(VECTORS,)))
    assert there(url, "notes", "vectors") == {"notes": [1], "vectors": [1]}


def test_a_dependent_that_cannot_be_deleted_keeps_its_row(url: str, tmp_path: Path) -> None:
    """An error at the last level undoes all of the transaction, and what went before stands."""
    notes(url, 1, 2)
    lay(
        url,
        "CREATE TABLE vectors (id <id>, note BIGINT)",
        "INSERT INTO vectors (id, note) VALUES (1, 1), (2, 2)",
        *{
            "sqlite": (
                (
                    "CREATE TRIGGER jam BEFORE DELETE ON vectors WHEN OLD.id = 2 "
                    "BEGIN SELECT RAISE(ABORT, 'jammed'); END"
                ),
            ),
            "postgresql": (
                (
                    "CREATE FUNCTION jam() RETURNS trigger AS $$ BEGIN RAISE EXCEPTION 'jammed'; "
                    "END $$ LANGUAGE plpgsql"
                ),
                (
                    "CREATE TRIGGER jam BEFORE DELETE ON vectors FOR EACH ROW WHEN (OLD.id = 2) "
                    "EXECUTE FUNCTION jam()"
                ),
            ),
        }[kind(url)],
    )
    store = table(url, "notes", tmp_path, dependents=(VECTORS,))
    with pytest.raises(StoreError) as caught:
        swept(store)
    assert not isinstance(caught.value, SweepStopped)
    assert there(url, "notes", "vectors") == {"notes": [1, 2], "vectors": [1, 2]}


# --- orphans ------------------------------------------------------------------------------


def orphaned(url: str) -> str:
    """Notes 1 (old) and 9 (young); vectors of 1, 9, of a note that is gone, and of none; and below
    them pieces, one of which hangs on a vector that is gone."""
    notes(url, 1, young=(9,))
    return lay(
        url,
        "CREATE TABLE vectors (id <id>, note BIGINT)",
        "CREATE TABLE pieces (id <id>, vector BIGINT)",
        "INSERT INTO vectors (id, note) VALUES (10, 1), (11, 9), (12, 5), (13, 5), (14, NULL)",
        "INSERT INTO pieces (id, vector) VALUES (20, 10), (21, 11), (22, 12), (23, 99), (24, NULL)",
    )


PIECES = Dependent(table="pieces", columns=("vector",))
NESTED = Dependent(table="vectors", columns=("note",), dependents=(PIECES,))


def test_orphans_are_counted_and_kept(url: str, tmp_path: Path) -> None:
    """What hangs on nothing is told in the plan; nobody asked to remove it, so it stays."""
    orphaned(url)
    store = table(url, "notes", tmp_path, dependents=(NESTED,))
    made = planned(store)
    assert made.survey.orphans == {"vectors": 2, "pieces": 1}
    report = carried_out(made, store)
    assert (report.applied, report.orphans) == (1, {})
    assert there(url, "vectors", "pieces") == {
        "vectors": [11, 12, 13, 14],
        "pieces": [21, 22, 23, 24],
    }


def test_orphans_are_removed_on_request(url: str, tmp_path: Path) -> None:
    """With all that hangs on them, and those of nested tables; a link of NULL is no orphan."""
    orphaned(url)
    report = swept(table(url, "notes", tmp_path, dependents=(NESTED,), orphans="delete"))
    assert (report.applied, report.dependents) == (1, {"vectors": 1, "pieces": 1})
    assert report.orphans == {"vectors": 2, "pieces": 2}
    assert there(url, "vectors", "pieces") == {"vectors": [11, 14], "pieces": [21, 24]}


def test_orphans_go_where_no_row_does(url: str, tmp_path: Path) -> None:
    """A sweep that expires nothing removes them all the same."""
    orphaned(url)
    run(url, "DELETE FROM vectors WHERE note = 1", "DELETE FROM notes WHERE id = 1")
    report = swept(table(url, "notes", tmp_path, dependents=(VECTORS,), orphans="delete"))
    assert (report.applied, report.orphans) == (0, {"vectors": 2})
    assert there(url, "vectors") == {"vectors": [11, 14]}


def test_what_hangs_on_a_key_that_may_be_given_again_goes(url: str, tmp_path: Path) -> None:
    """An orphan of the newest row is the worst: SQLite would attach it to the next one."""
    orphaned(url)
    run(url, "INSERT INTO vectors (id, note) VALUES (30, 10)")
    report = swept(table(url, "notes", tmp_path, dependents=(VECTORS,), orphans="delete"))
    assert report.orphans == {"vectors": 3}
    assert there(url, "vectors") == {"vectors": [11, 14]}


def test_an_orphan_whose_row_came_since_the_plan_stays(url: str, tmp_path: Path) -> None:
    """It is asked again in the very transaction."""
    orphaned(url)
    store = table(url, "notes", tmp_path, dependents=(VECTORS,), orphans="delete")
    made = planned(store)
    run(
        url,
        "INSERT INTO notes (id, ts, name) VALUES (5, :ts, 'note 5')",
        ts=stored(url, YOUNG),
    )
    assert carried_out(made, store).orphans == {}
    assert there(url, "notes", "vectors") == {"notes": [5, 9], "vectors": [11, 12, 13, 14]}


@pytest.mark.parametrize("key", ["VARCHAR", "BIGINT"])
def test_an_orphan_that_came_since_the_plan_is_out_of_reach(
    key: str, url: str, tmp_path: Path
) -> None:
    """Neither one of a table whose keys do not grow, nor a nested one, nor one above the plan."""
    id_ = "VARCHAR(9) NOT NULL PRIMARY KEY" if key == "VARCHAR" else "<id>"
    lay(
        url,
        f"CREATE TABLE notes (id {id_}, ts <ts>)",
        f"CREATE TABLE vectors (id <id>, note {key})",
        "CREATE TABLE pieces (id <id>, vector BIGINT)",
        "INSERT INTO vectors (id, note) VALUES (1, '5')",
        "INSERT INTO pieces (id, vector) VALUES (1, 99)",
    )
    run(url, "INSERT INTO notes (id, ts) VALUES ('9', :ts)", ts=stored(url, YOUNG))
    store = table(url, "notes", tmp_path, dependents=(NESTED,), orphans="delete")
    made = planned(store)
    run(
        url,
        "INSERT INTO vectors (id, note) VALUES (2, '10')",
        "INSERT INTO pieces (id, vector) VALUES (2, 98)",
    )
    assert carried_out(made, store).orphans == {"vectors": 1, "pieces": 1}
    assert there(url, "vectors", "pieces") == {"vectors": [2], "pieces": [2]}


def test_orphans_of_composite_links_need_all_of_it(url: str, tmp_path: Path) -> None:
    """A link of which one column is NULL refers to nothing, and is none that got lost."""
    lay(
        url,
        (
            "CREATE TABLE notes (room VARCHAR NOT NULL, number BIGINT NOT NULL, ts <ts>, "
            "PRIMARY KEY (room, number))"
        ),
        "CREATE TABLE vectors (id <id>, room VARCHAR, number BIGINT)",
        "INSERT INTO vectors (id, room, number) VALUES (1, 'a', 1), (2, NULL, 1), (3, 'a', NULL)",
    )
    link = Dependent(table="vectors", columns=("room", "number"))
    report = swept(table(url, "notes", tmp_path, dependents=(link,), orphans="delete"))
    assert report.orphans == {"vectors": 1}
    assert there(url, "vectors") == {"vectors": [2, 3]}


def test_a_sweep_that_stops_among_the_orphans_tells_how_far_it_came(
    url: str, tmp_path: Path
) -> None:
    """Rows that were deleted before them are counted, and stay deleted."""
    orphaned(url)
    store = table(url, "notes", tmp_path, dependents=(VECTORS,), orphans="delete")

    def stop(done: int, planned: int) -> None:
        if done:
            raise RuntimeError("enough")

    with pytest.raises(SweepStopped, match="1 of 1 rows") as caught:
        carried_out(planned(store), store, progress=stop)
    done: Survey = caught.value.done
    assert (done.applied, done.dependents, done.orphans) == (1, {"vectors": 1}, {})
    assert there(url, "notes", "vectors") == {"notes": [9], "vectors": [11, 12, 13, 14]}


def test_a_key_is_not_cut_to_what_a_dependent_can_hold(postgres_url: str, tmp_path: Path) -> None:
    """What hangs on `run-10` stays, though `run-101` goes and six letters are all that it holds."""
    run(
        postgres_url,
        "CREATE TABLE notes (id text PRIMARY KEY, ts timestamptz)",
        "CREATE TABLE chunks (id bigint PRIMARY KEY, note varchar(6))",
        "INSERT INTO notes VALUES ('run-10', '2026-07-01'), ('run-101', '2026-01-01')",
        "INSERT INTO chunks VALUES (1, 'run-10')",
    )
    link = Dependent(table="chunks", columns=("note",))
    report = swept(table(postgres_url, "notes", tmp_path, dependents=(link,)))
    assert (report.applied, report.dependents) == (1, {"chunks": 0})
    assert column(postgres_url, "SELECT note FROM chunks") == ["run-10"]


def test_orphans_of_half_a_table_are_held_back_by_the_breaker(url: str, tmp_path: Path) -> None:
    """Where most of what hangs on a table hangs on nothing, the wrong table may have been named."""
    lay(notes(url, young=(1001, 1002)), "CREATE TABLE vectors (id <id>, note BIGINT)")
    for number in range(10):
        run(url, f"INSERT INTO vectors (id, note) VALUES ({number}, {number})")
    store = table(url, "notes", tmp_path, dependents=(VECTORS,), orphans="delete")
    policy = keep(breaker=0.5)
    made = planned(store, policy)
    assert (made.trips_breaker, made.tripping) == (True, (10, 10))
    with pytest.raises(BreakerTripped, match="10 of 10"):
        carried_out(made, store, policy)
    assert len(there(url, "vectors")["vectors"]) == 10
    kept = table(url, "notes", tmp_path, dependents=(VECTORS,))
    assert not planned(kept, policy).trips_breaker


def test_what_is_hidden_from_a_role_is_no_reason_for_an_orphan(
    postgres_url: str, tmp_path: Path
) -> None:
    """Under row-level security a row that is there looks gone, so no orphan is deleted at all."""
    lay(notes(postgres_url, young=(1, 2)), "CREATE TABLE vectors (id <id>, note BIGINT)")
    run(
        postgres_url,
        "INSERT INTO vectors (note) VALUES (1), (2)",
        "CREATE ROLE tenant LOGIN",
        "GRANT SELECT, UPDATE, DELETE ON notes, vectors TO tenant",
        "ALTER TABLE notes ENABLE ROW LEVEL SECURITY",
        "CREATE POLICY own ON notes USING (id = 1)",
    )
    mine = postgres_url.replace("postgres@", "tenant@", 1)
    store = table(mine, "notes", tmp_path, dependents=(VECTORS,), orphans="delete")
    with pytest.raises(StoreError, match="row-level security hides rows of notes"):
        planned(store)
    assert planned(table(mine, "notes", tmp_path, dependents=(VECTORS,))).survey.scanned == 1
    run(postgres_url, "DROP OWNED BY tenant", "DROP ROLE tenant")


@pytest.mark.parametrize(("mine", "theirs"), [("NOCASE", "BINARY"), ("BINARY", "NOCASE")])
def test_a_dependent_that_compares_otherwise_than_its_key_is_refused(
    tmp_path: Path, mine: str, theirs: str
) -> None:
    """Where one tells `Ab` from `aB` and the other does not, a stranger's row would go along."""
    url = f"sqlite:///{tmp_path}/notes.sqlite3"
    run(
        url,
        f"CREATE TABLE notes (id TEXT COLLATE {theirs} PRIMARY KEY NOT NULL, ts TEXT)",
        f"CREATE TABLE vectors (id INTEGER PRIMARY KEY, note TEXT COLLATE {mine})",
    )
    refused(url, tmp_path, VECTORS, match="vectors.note and notes.id compare text in different")
    run(url, "DROP TABLE vectors")
    run(url, f"CREATE TABLE vectors (id INTEGER PRIMARY KEY, note TEXT COLLATE {theirs})")
    assert planned(table(url, "notes", tmp_path, dependents=(VECTORS,))).survey.scanned == 0
