"""Keys that do not grow: a plan keeps on disk which rows it saw, and a sweep takes no others."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from keepfor import plan as plans
from keepfor.errors import StoreChanged, StoreError
from keepfor.items import Survey
from keepfor.policy.rules import Policy, Rule, terms
from keepfor.stores.sql import pace, reach
from keepfor.stores.sql.keys import load, save
from keepfor.stores.table import Dependent, TableStore
from keepfor.testing.suite import NOW, bounded, keep
from tests.stores.nobody import as_nobody, common_ground
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
        (tmp_path / "db").mkdir()
        return f"sqlite:///{tmp_path}/db/notes.sqlite3"
    return str(request.getfixturevalue("postgres_url"))


def notes(url: str, key: str = "VARCHAR(40) NOT NULL PRIMARY KEY") -> str:
    """A table of which the keys are text: `a` to `e` are old, `x` and `y` young."""
    lay(url, f"CREATE TABLE notes (id {key}, ts <ts>)")
    add(url, *"abcde")
    add(url, "x", instant=YOUNG)
    add(url, "y", instant=YOUNG + timedelta(days=1))
    return url


def add(url: str, *names: str | float, instant: Any = OLD) -> None:
    for name in names:
        run(
            url,
            "INSERT INTO notes (id, ts) VALUES (:id, :ts)",
            id=name,
            ts=stored(url, instant),
        )


def ids(url: str) -> str:
    return "".join(sorted(column(url, "SELECT id FROM notes")))


def store_of(url: str, folder: Path, **settings: Any) -> TableStore:
    return table(url, "notes", folder, **settings)


def files_of(store: TableStore) -> list[Path]:
    return sorted((store.folder / "keys").iterdir())


def test_what_came_since_the_plan_stays_whatever_its_key(url: str, tmp_path: Path) -> None:
    """No order tells what is new among text, so the rows that the plan saw go, and no others."""
    store = store_of(notes(url), tmp_path)
    made = planned(store)
    assert [(part.count, part.first, part.last) for part in made.survey.parts] == [
        (5, ["a"], ["e"])
    ]
    add(url, "bb", "A", "z")
    report = carried_out(made, store)
    assert (report.applied, report.kept) == (5, 5)
    assert ids(url) == "Abbxyz"


def test_what_changed_since_the_plan_is_skipped(url: str, tmp_path: Path) -> None:
    """Of the rows that the plan saw, one that is young now is left; one that is gone is no row."""
    store = store_of(notes(url), tmp_path)
    made = planned(store)
    run(url, "UPDATE notes SET ts = :ts WHERE id = 'b'", ts=stored(url, YOUNG))
    run(url, "DELETE FROM notes WHERE id IN ('c', 'x')")
    report = carried_out(made, store)
    assert (report.scanned, report.kept, report.applied, report.skipped) == (5, 1, 3, 1)
    assert ids(url) == "by"


def test_age_and_ceiling_have_keys_of_their_own(url: str, tmp_path: Path) -> None:
    """What each part takes is kept apart, and comes together in the report."""
    store = store_of(notes(url), tmp_path)
    policy = keep(max_count=1)
    made = planned(store, policy)
    add(url, "z", instant=YOUNG + timedelta(days=2))
    report = carried_out(made, store, policy)
    assert (report.expired, report.over_ceiling) == (5, 1)
    assert ids(url) == "yz"


def test_a_rule_that_is_called_like_the_ceiling_is_none(url: str, tmp_path: Path) -> None:
    """What it expires counts as expired, and what the ceiling takes beside it as above that."""
    store = store_of(notes(url), tmp_path)
    rule = Rule(name="max_count", max_age=timedelta(days=90), action="delete")
    policy = Policy(rules=(rule,), max_count=1, breaker=None)
    made = planned(store, policy)
    assert (made.survey.expired, made.survey.over_ceiling) == (5, 1)
    report = carried_out(made, store, policy)
    assert (report.expired, report.over_ceiling, report.skipped) == (5, 1, 0)
    assert ids(url) == "y"


def test_portions_and_slices_of_keys_lose_none(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a portion ends is not where a slice does."""
    monkeypatch.setattr(pace, "_FIRST", 2)
    monkeypatch.setattr(pace, "_MOST", 2)
    monkeypatch.setattr(reach, "_FETCHED", 3)
    store = store_of(notes(url), tmp_path)
    assert swept(store, bounded(max_count=2)).applied == 5
    assert ids(url) == "xy"


@pytest.mark.parametrize("harm", ["gone", "edited", "cut", "another"])
def test_keys_that_are_not_those_of_the_plan_refuse_it(harm: str, url: str, tmp_path: Path) -> None:
    """A file that is missing, edited, cut short or another plan's: nothing is deleted."""
    store = store_of(notes(url), tmp_path)
    made = planned(store)
    (path,) = files_of(store)
    data = path.read_bytes()
    if harm == "gone":
        path.unlink()
    elif harm == "edited":
        path.write_bytes(data.replace(b"a", b"x"))
    elif harm == "cut":
        path.write_bytes(data[:-2])
    else:
        add(url, "f")
        planned(store)
        (other,) = (each for each in files_of(store) if each != path)
        other.replace(path)
    before = ids(url)
    with pytest.raises(StoreChanged, match="keys that the plan saw"):
        carried_out(made, store)
    assert ids(url) == before


def test_keys_lie_in_the_state_folder_only(tmp_path: Path) -> None:
    """Beside a database a plan leaves nothing; the same plan again makes no second file."""
    folder = tmp_path / "db"
    folder.mkdir()
    store = store_of(notes(f"sqlite:///{folder}/notes.sqlite3"), tmp_path)
    planned(store)
    (first,) = files_of(store)
    planned(store)
    assert files_of(store) == [first]
    assert [path.name for path in folder.iterdir()] == ["notes.sqlite3"]
    assert first.stat().st_mode & 0o077 == 0


def test_a_table_of_growing_keys_leaves_no_file(url: str, tmp_path: Path) -> None:
    """Where the highest key tells, nothing is kept on disk."""
    lay(url, "CREATE TABLE notes (id <id>, ts <ts>)")
    run(url, "INSERT INTO notes (ts) VALUES (:ts)", ts=stored(url, OLD))
    store = store_of(url, tmp_path, orphans="delete")
    planned(store)
    assert not (store.folder / "keys").exists()


def test_keys_of_old_plans_are_cleared(tmp_path: Path) -> None:
    """After a week nobody carries a plan out; a draft that was never finished goes as well."""
    store = store_of(notes(f"sqlite:///{tmp_path}/notes.sqlite3"), tmp_path)
    planned(store)
    folder = store.folder / "keys"
    (old,) = files_of(store)
    draft, stranger = folder / "x.draft", folder / "mine.txt"
    young = folder / "young.keys"
    for path in (draft, stranger, young):
        path.write_bytes(b"")
    for path, days in ((old, 8), (draft, 8), (stranger, 8), (young, 6)):
        os.utime(path, (time.time() - days * 86_400,) * 2)
    add(f"sqlite:///{tmp_path}/notes.sqlite3", "f")
    planned(store)
    names = {path.name for path in folder.iterdir()}
    assert {old.name, draft.name} & names == set()
    assert {stranger.name, young.name} <= names


def test_a_state_folder_that_cannot_be_written_is_told() -> None:
    """The error names the folder, and is one that says what to do."""
    with common_ground() as folder:
        os.chmod(folder, 0o777)
        url = notes(f"sqlite:///{folder}/notes.sqlite3")
        (folder / "state").mkdir(mode=0o755)
        os.chmod(folder / "state", 0o555)

        def plan() -> None:
            with pytest.raises(StoreError, match="state"):
                planned(store_of(url, folder))

        as_nobody(plan)


ELSEWHERE = """
import sys
from datetime import UTC, datetime
from pathlib import Path
from keepfor import plan as plans
from keepfor.testing.suite import NOW, keep
from keepfor.stores.table import table_at
from keepfor.sweep import apply
from keepfor.trail import Trail
url, state, file = sys.argv[1:]
store = table_at(url, "notes", folder=Path(state), time="ts")
trail = Trail(Path(state) / "trail.jsonl", keep_for="forever")
print(apply(plans.load(Path(file)), store, keep(), NOW, trail=trail).applied)
"""


def test_a_saved_plan_is_carried_out_by_another_process(url: str, tmp_path: Path) -> None:
    """The plan knows where its keys are; what came meanwhile stays."""
    store = store_of(notes(url), tmp_path)
    file = tmp_path / "plan.json"
    plans.save(planned(store), file)
    add(url, "bb")
    command = [sys.executable, "-c", ELSEWHERE, url, str(store.folder), str(file)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("5\n", "")
    assert ids(url) == "bbxy"


#: Kinds of keys, with two values of each: of an old row and of a young one.
KINDS = {
    "uuid": ("UUID", "'11111111-1111-1111-1111-111111111111'", "gen_random_uuid()"),
    "char": ("CHAR(8)", "'a'", "'x'"),
    "numeric": ("NUMERIC(40, 5)", "12345678901234567890.12345", "2.5"),
    "timestamp": ("TIMESTAMP", "'2026-01-01 00:00:00.000001'", "'2026-01-01'"),
    "timestamptz": ("TIMESTAMPTZ", "'2026-01-01 00:00:00.000001+02'", "'2026-01-01'"),
    "date": ("DATE", "'2026-01-01'", "'2026-01-02'"),
    "bytea": ("BYTEA", r"'\x00ff'", r"'\x00'"),
    "enum": ("mood", "'sad'", "'glad'"),
    "double": ("DOUBLE PRECISION", "0.1", "0.2"),
    "inet": ("INET", "'10.0.0.1'", "'10.0.0.2'"),
    "boolean": ("BOOLEAN", "true", "false"),
    "smallint": ("SMALLINT", "1", "2"),
}


@pytest.mark.parametrize("with_another", [False, True], ids=["alone", "with another column"])
@pytest.mark.parametrize("name", KINDS)
def test_keys_of_any_type_are_found_again(
    name: str, with_another: bool, postgres_url: str, tmp_path: Path
) -> None:
    """What comes back from the disk is, to PostgreSQL, the value that was there."""
    type_, old, young = KINDS[name]
    lay(
        postgres_url,
        "CREATE TYPE mood AS ENUM ('sad', 'glad')",
        f"CREATE TABLE notes (id {type_}, part VARCHAR DEFAULT 'p', ts <ts>, "
        f"PRIMARY KEY (id{', part' * with_another}))",
        f"CREATE TABLE vectors (note {type_}, part VARCHAR DEFAULT 'p')",
        f"INSERT INTO notes (id, ts) VALUES ({old}, '2026-01-01'), ({young}, '2026-07-01')",
        "INSERT INTO vectors (note) SELECT id FROM notes",
    )
    columns = ("note", "part") if with_another else ("note",)
    store = store_of(
        postgres_url, tmp_path, dependents=(Dependent(table="vectors", columns=columns),)
    )
    report = swept(store)
    assert (report.applied, report.dependents) == (1, {"vectors": 1})
    assert run(postgres_url, "SELECT id FROM notes") == run(
        postgres_url, "SELECT note FROM vectors"
    )
    assert len(ids_of(postgres_url)) == 1


def ids_of(url: str) -> list[Any]:
    return column(url, "SELECT id FROM notes")


def test_keys_of_a_partitioned_table_are_found_again(postgres_url: str, tmp_path: Path) -> None:
    """Its key holds the time itself, and its rows lie in other tables."""
    lay(
        postgres_url,
        "CREATE TABLE notes (id BIGINT, ts <ts>, PRIMARY KEY (id, ts)) PARTITION BY RANGE (ts)",
        "CREATE TABLE notes_old PARTITION OF notes FOR VALUES FROM ('2026-01-01') "
        "TO ('2026-05-01')",
        "CREATE TABLE notes_new PARTITION OF notes FOR VALUES FROM ('2026-05-01') "
        "TO ('2027-01-01')",
        "INSERT INTO notes VALUES (1, '2026-01-01 12:00:00.123456'), (1, '2026-07-01')",
    )
    made = planned(store_of(postgres_url, tmp_path))
    run(postgres_url, "INSERT INTO notes VALUES (2, '2026-01-01 12:00:00.123456')")
    assert carried_out(made, store_of(postgres_url, tmp_path)).applied == 1
    assert sorted(ids_of(postgres_url)) == [1, 2]


#: Keys that SQLite takes, by how the table says so; the last of each is young.
LOOSE: dict[str, tuple[str, list[Any]]] = {
    "text": ("id TEXT PRIMARY KEY", ["a", "A", "1", "ä", "x"]),
    "any": ("id PRIMARY KEY", ["1", 1.5, 2, b"\x00\xff", 3]),
    "without rowid": ("id INTEGER PRIMARY KEY", [3, 1, 2]),
    "descending": ("id INTEGER PRIMARY KEY DESC", [3, 1, 2]),
    "real": ("id REAL PRIMARY KEY", [0.1, 1e300, -2.5, 7.0]),
}


@pytest.mark.parametrize("name", LOOSE)
def test_keys_of_any_value_are_found_again(name: str, tmp_path: Path) -> None:
    """SQLite tells 1 from '1', and a blob from text; so does a plan that was on disk."""
    said, values = LOOSE[name]
    url = f"sqlite:///{tmp_path}/notes.sqlite3"
    end = " WITHOUT ROWID" if name == "without rowid" else ""
    run(url, f"CREATE TABLE notes ({said}, ts DATETIME){end}")
    for value in values:
        run(
            url,
            "INSERT INTO notes VALUES (:id, :ts)",
            id=value,
            ts=stored(url, YOUNG if value == values[-1] else OLD),
        )
    store = store_of(url, tmp_path)
    made = planned(store)
    assert carried_out(made, store).applied == len(values) - 1
    assert ids_of(url) == [values[-1]]


def test_a_key_of_null_keeps_its_row(tmp_path: Path) -> None:
    """SQLite lets text keys be NULL, which tells no row from another; those stay, others go."""
    url = f"sqlite:///{tmp_path}/notes.sqlite3"
    run(url, "CREATE TABLE notes (id TEXT PRIMARY KEY, ts DATETIME)")
    for key in (None, None, "a", "b"):
        run(url, "INSERT INTO notes VALUES (:id, :ts)", id=key, ts=stored(url, OLD))
    report = swept(store_of(url, tmp_path))
    assert ids_of(url) == [None, None]
    assert (report.applied, report.skipped + report.kept) == (2, 2)


def test_a_file_of_keys_is_read_as_it_was_written(tmp_path: Path) -> None:
    """Portions keep their names, their order and their values."""
    entries: list[tuple[str, list[Any]]] = [
        ("keep_for", [(1,), (2,)]),
        ("", [("a", b"b", 1.5)]),
        ("keep_for", [(2**63 - 1,)]),
    ]
    path, digest = save(tmp_path / "new" / "folder", entries)
    assert list(load(path, digest)) == entries
    assert Path(path).parent == tmp_path / "new" / "folder"


def test_a_write_that_fails_leaves_no_draft(tmp_path: Path) -> None:
    """What was begun is cleared away again."""

    def broken() -> Any:
        yield "keep_for", [(1,)]
        raise RuntimeError("the database went away")

    with pytest.raises(RuntimeError):
        save(tmp_path, broken())
    assert list(tmp_path.iterdir()) == []


def test_counts_add_up_though_others_empty_the_table(url: str, tmp_path: Path) -> None:
    """Rows that somebody else deleted since the plan are neither kept nor skipped nor failed."""
    store = store_of(notes(url), tmp_path)
    made = planned(store)
    run(url, "DELETE FROM notes")
    report = carried_out(made, store)
    assert (report.scanned, report.kept, report.applied, report.skipped) == (0, 0, 0, 0)


def test_a_time_of_another_shape_that_comes_in_mid_sweep_stays(tmp_path: Path) -> None:
    """After the times were looked at, a row may come of which no comparison can tell the age."""
    url = notes(f"sqlite:///{tmp_path}/notes.sqlite3")
    store = store_of(url, tmp_path)
    agreed = terms(keep(), NOW, store.bounds)

    def accept(_: Survey) -> bool:
        # The twelfth of July, which as text comes before every year of ours.
        run(url, "INSERT INTO notes (id, ts) VALUES ('odd', '12.07.2026 10:00')")
        return True

    store.delete(store.aim(agreed), agreed, accept=accept)
    assert sorted(column(url, "SELECT id FROM notes")) == ["odd", "x", "y"]


def test_a_key_that_is_only_called_a_number_is_found_again(tmp_path: Path) -> None:
    """SQLite puts text, and numbers that are not whole, into a column of INT."""
    url = f"sqlite:///{tmp_path}/notes.sqlite3"
    lay(url, "CREATE TABLE notes (id INT NOT NULL PRIMARY KEY, ts <ts>)")
    run(url, "CREATE INDEX ix_notes_ts ON notes (ts)")
    for key in ("a", 1.5, 2):
        add(url, key, instant=OLD)
    add(url, "b", instant=YOUNG)
    assert swept(store_of(url, tmp_path)).applied == 3
    assert ids(url) == "b"
