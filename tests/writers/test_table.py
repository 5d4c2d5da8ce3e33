"""A program's own table, held to its policy by the program: plan, and prune."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from keepfor.errors import BadDuration, BadPolicy, ConfigError, StoreError
from keepfor.stores.table import Dependent, Record
from keepfor.testing.doubles import FixedClock
from keepfor.testing.suite import adds_up
from keepfor.trail import Trail
from keepfor.writers.table import Table
from tests import caesar
from tests.stores.sql.build import OLD, YOUNG, column, lay, run, stored

CHUNKS = Dependent(table="semantic_chunks", columns=("audit_log_id",))


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A table `notes` of either kind of database: 1 and 2 are old, 3 and 4 young; 2 and 4 held."""
    url = f"sqlite:///{tmp_path}/notes.sqlite3"
    if request.param == "postgresql":
        url = str(request.getfixturevalue("postgres_url"))
    lay(url, "CREATE TABLE notes (id <id>, ts <ts>, kind VARCHAR)")
    day = timedelta(days=1)
    for key, instant in enumerate((OLD, OLD + day, YOUNG, YOUNG + day), start=1):
        run(
            url,
            "INSERT INTO notes (id, ts, kind) VALUES (:id, :ts, :kind)",
            id=key,
            ts=stored(url, instant),
            kind="note" if key % 2 else "held",
        )
    return url


def handle(url: str, folder: Path, **settings: Any) -> Table:
    said = {"time": "ts", "folder": folder / "state", "clock": FixedClock(caesar.NOW), **settings}
    return Table(url, "notes", **said)


def ids(url: str) -> list[int]:
    return column(url, "SELECT id FROM notes ORDER BY id")


@pytest.mark.parametrize("driver", ["sqlite", "sqlite+aiosqlite"])
def test_the_sample_is_pruned_to_its_known_figures(driver: str, tmp_path: Path) -> None:
    """150 rows and their 82 embeddings go, one row tells of it, and nothing else has changed."""
    path = caesar.rebuild(tmp_path / "caesar")
    before = caesar.rows(path)
    trail = Trail(tmp_path / "trail.jsonl", keep_for="forever")
    table = Table(
        f"{driver}:///{path}",
        "audit_log",
        time="ts",
        type="event_type",
        keep_for="90d",
        dependents=[CHUNKS],
        record=Record(type="memory.retention_sweep", payload="payload"),
        trail=trail,
        folder=tmp_path / "state",
        clock=FixedClock(caesar.NOW),
    )
    made = table.plan()
    assert (made.deletes, made.survey.dependents) == (150, {"semantic_chunks": 82})
    assert caesar.rows(path) == before
    report = table.prune()
    assert adds_up(report)
    assert (report.scanned, report.kept, report.applied) == (600, 450, 150)
    assert report.dependents == {"semantic_chunks": 82}
    after = caesar.rows(path)
    *old, (key, ts, type_, payload) = after["audit_log"]
    assert after | {"audit_log": old} == caesar.swept(before)
    assert (key, ts, type_) == (601, "2026-07-26 00:00:00.000000", "memory.retention_sweep")
    assert json.loads(payload) == {
        "deleted": 150,
        "cutoff": "2026-04-27T00:00:00+00:00",
        "dependents": {"semantic_chunks": 82},
    }
    outcome, intent = trail.records()
    assert (intent["event"], outcome["event"]) == ("intent", "outcome")
    assert (outcome["applied"], outcome["dependents"]) == (150, {"semantic_chunks": 82})
    assert outcome["started_by"] == "write site"


def test_a_prune_takes_what_is_due_at_the_instant_that_it_is_given(
    url: str, tmp_path: Path
) -> None:
    """The clock's, or another one; a date means its first moment."""
    table = handle(url, tmp_path, keep_for=timedelta(days=90))
    assert table.prune("2026-04-01").applied == 0
    assert table.plan("2026-09-29").deletes == 2
    assert table.plan(datetime(2026, 9, 29, 0, 0, 1, tzinfo=UTC)).deletes == 3
    assert table.prune().applied == 2
    assert ids(url) == [3, 4]
    assert table.prune().applied == 0


def test_types_can_be_kept_longer_or_for_ever(url: str, tmp_path: Path) -> None:
    """A type of its own keeps its own time; without a time for the others those all stay."""
    table = handle(url, tmp_path, type="kind", keep_for="90d", keep_types={"held": "forever"})
    assert table.prune().applied == 1
    assert ids(url) == [2, 3, 4]
    table = handle(url, tmp_path, type="kind", keep_types={"held": "10d"})
    assert table.prune().applied == 2
    assert ids(url) == [3]


def test_a_table_can_be_bounded(url: str, tmp_path: Path) -> None:
    """The oldest go, whatever their age; the newest stay, whatever theirs."""
    assert handle(url, tmp_path, max_count=3).prune().applied == 1
    assert ids(url) == [2, 3, 4]
    assert handle(url, tmp_path, keep_for="1d", keep_last=2).prune().applied == 1
    assert ids(url) == [3, 4]


def test_forever_takes_nothing(url: str, tmp_path: Path) -> None:
    """It says that nothing goes by its age, on purpose."""
    table = handle(url, tmp_path, keep_for="forever")
    assert table.plan().deletes == 0
    assert table.prune().applied == 0


def test_a_key_and_its_unit_can_be_named(tmp_path: Path) -> None:
    """One column may be given by its bare name; numbers are read in the unit that is said."""
    url = f"sqlite:///{tmp_path}/notes.sqlite3"
    run(
        url,
        "CREATE TABLE notes (id INTEGER PRIMARY KEY, slug TEXT NOT NULL UNIQUE, ts INTEGER)",
        # 2026-01-01 and 2026-07-01.
        "INSERT INTO notes (slug, ts) VALUES ('old', 1767225600000), ('young', 1782864000000)",
    )
    assert handle(url, tmp_path, key="slug", keep_for="90d", unit="ms").prune().applied == 1
    assert column(url, "SELECT slug FROM notes") == ["young"]


def test_a_zone_can_be_named_for_times_without_one(tmp_path: Path) -> None:
    """Midnight of 2026-04-27 in Berlin is two hours before that of UTC, which is the cutoff."""
    url = f"sqlite:///{tmp_path}/notes.sqlite3"
    run(
        url,
        "CREATE TABLE notes (id INTEGER PRIMARY KEY, ts DATETIME)",
        "INSERT INTO notes (ts) VALUES ('2026-04-27 01:59:59'), ('2026-04-27 02:00:00')",
    )
    assert handle(url, tmp_path, keep_for="90d").plan().deletes == 0
    table = handle(url, tmp_path, keep_for="90d", timezone="Europe/Berlin")
    assert table.prune().applied == 1
    assert ids(url) == [2]


def test_orphans_go_on_request(tmp_path: Path) -> None:
    """They are counted in any case."""
    path = caesar.rebuild(tmp_path / "caesar")
    run(f"sqlite:///{path}", "DELETE FROM audit_log WHERE ts < '2026-04-27'")
    said: dict[str, Any] = {
        "time": "ts",
        "keep_for": "90d",
        "dependents": [CHUNKS],
        "folder": tmp_path / "state",
        "clock": FixedClock(caesar.NOW),
    }
    kept = Table(f"sqlite:///{path}", "audit_log", **said)
    assert kept.plan().survey.orphans == {"semantic_chunks": 82}
    assert kept.prune().orphans == {}
    deleted = Table(f"sqlite:///{path}", "audit_log", orphans="delete", **said)
    report = deleted.prune()
    assert (report.applied, report.orphans) == (0, {"semantic_chunks": 82})
    assert len(caesar.rows(path)["semantic_chunks"]) == 255


def test_a_table_that_is_not_there_yet_is_no_fault(tmp_path: Path) -> None:
    """A program may hold a database to a policy that it has yet to make; none is made."""
    path = tmp_path / "notes.sqlite3"
    table = handle(f"sqlite:///{path}", tmp_path, keep_for="90d")
    assert not table.plan().exists
    assert table.prune().scanned == 0
    assert not path.exists()


REFUSED: list[tuple[dict[str, Any], type[ConfigError], str]] = [
    ({}, BadPolicy, "nothing would ever be removed"),
    ({"keep_last": 3}, BadPolicy, "nothing would ever be removed"),
    ({"keep_for": "90"}, BadDuration, "90"),
    ({"keep_for": "0d"}, BadDuration, "0d"),
    ({"keep_for": 90}, BadDuration, "90d"),
    ({"max_count": 0}, BadPolicy, "max_count"),
    ({"max_count": 2, "keep_last": 3}, BadPolicy, "keep_last"),
    ({"keep_types": {"held": "1d"}}, ConfigError, "Give `type`"),
    ({"type": "kind", "keep_types": {"held": "1 day"}}, BadDuration, "1 day"),
    ({"keep_for": "90d", "unit": "minutes"}, ConfigError, "s, ms, us, ns"),
    ({"keep_for": "90d", "timezone": "Berlin"}, ConfigError, "Europe/Berlin"),
]


@pytest.mark.parametrize(("said", "error", "match"), REFUSED, ids=str)
def test_what_cannot_be_understood_is_refused_at_once(
    said: dict[str, Any], error: type[ConfigError], match: str, tmp_path: Path
) -> None:
    """Before anything is opened, with what to write instead."""
    with pytest.raises(error, match=match):
        handle("sqlite:///notes.sqlite3", tmp_path, **said)


@pytest.mark.parametrize("address", ["mysql://host/db", "notes.sqlite3", "sqlite://"])
def test_an_address_of_nothing_is_refused(address: str, tmp_path: Path) -> None:
    """Another kind of database, a bare path, a database in memory."""
    with pytest.raises(ConfigError, match="sqlite:///FILE"):
        handle(address, tmp_path, keep_for="90d").plan()


def test_a_record_needs_a_type(url: str, tmp_path: Path) -> None:
    """The row of a sweep has one, and nobody said where it belongs."""
    table = handle(url, tmp_path, keep_for="90d", record=Record(type="sweep", payload="kind"))
    with pytest.raises(StoreError, match="holds the type of a record"):
        table.prune()
    assert ids(url) == [1, 2, 3, 4]


def test_nothing_is_held_open_between_calls(url: str, tmp_path: Path) -> None:
    """The table can be dropped, or its file be moved, right after."""
    table = handle(url, tmp_path, keep_for="90d")
    table.plan()
    table.prune()
    run(url, "DROP TABLE notes")
    with pytest.raises(StoreError, match="it has no table notes"):
        table.prune()
