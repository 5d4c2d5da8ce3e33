"""A table on the command line: shown, swept with what hangs on it, watched, and given room back."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import make_url

from tests import caesar
from tests.cli.conftest import RECALL, Place, Ran

AUDIT = """\
state_dir: state
stores:
  audit:
    preset: caesar
"""

SECRET = "s3cret/with:signs"


@pytest.fixture
def database(place: Place) -> Path:
    """The sample of 600 rows, of which 150 are due at NOW, under the preset for it."""
    place.configure(AUDIT)
    return caesar.rebuild(place.folder)


def change(database: Path, *statements: str) -> None:
    """Change the database as some other program would."""
    with closing(sqlite3.connect(database)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def with_orphans(database: Path) -> None:
    """Three young rows are gone, as a careless deletion leaves it: without their embeddings."""
    change(
        database,
        "DELETE FROM audit_log WHERE id IN (SELECT audit_log_id FROM semantic_chunks "
        "WHERE audit_log_id BETWEEN 200 AND 400 LIMIT 3)",
    )


def audit_rows(database: Path) -> int:
    """How many rows the table has."""
    return len(caesar.rows(database)["audit_log"])


# --- the sample, as a program sees it ------------------------------------------------------


def test_a_program_sees_what_would_go(place: Place, database: Path) -> None:
    """The document of a plan has the counts, what hangs on the rows, and each rule's first and last
    row."""
    before = place.snapshot()
    store = place.run("plan", "--json").store
    assert (store["kind"], store["exists"]) == ("table", True)
    assert store["target"] == f"sqlite:///{database}#audit_log"
    assert (store["scanned"], store["kept"], store["applied"]) == (600, 450, 150)
    assert (store["dependents"], store["orphans"]) == ({"semantic_chunks": 82}, {})
    assert store["bytes_before"] == store["bytes_after"] == database.stat().st_size
    assert store["bytes_deleted"] is None
    assert store["times"] == "text such as 2026-07-26 12:00:00.000000 in UTC"
    assert store["parts"] == [
        {
            "rule": "keep_for",
            "type": None,
            "ceiling": False,
            "cutoff": "2026-04-27T00:00:00Z",
            "count": 150,
            "first": [1],
            "last": [150],
            "oldest": "2026-03-28T01:33:15.830176Z",
            "newest": "2026-04-26T23:00:05.194828Z",
        }
    ]
    assert place.snapshot() == before


def test_the_sample_is_swept_to_90_days(place: Place, database: Path) -> None:
    """150 rows and their 82 embeddings are gone after an apply, and nothing else changed; the
    sweep's own row is there."""
    before = caesar.rows(database)
    store = place.run("apply", "--yes", "--json").store
    assert (store["outcome"], store["applied"], store["kept"]) == ("done", 150, 450)
    assert store["dependents"] == {"semantic_chunks": 82}
    # What was deleted is free for new rows, and SQLite gave nothing of it back.
    assert store["bytes_deleted"] > 0
    assert store["bytes_before"] == store["bytes_after"] == database.stat().st_size
    after = caesar.rows(database)
    (*kept, left) = after.pop("audit_log")
    wanted = caesar.swept(before)
    assert kept == wanted.pop("audit_log")
    assert left[2] == "memory.retention_sweep"
    assert after == wanted
    assert place.run("check").out == "audit: in order (451 rows, none overdue).\n"


def test_a_saved_plan_is_carried_out_once(place: Place, database: Path) -> None:
    """A plan in a file takes what it saw, once."""
    assert place.run("plan", "audit", "-o", "plan.json").code == 0
    assert audit_rows(database) == 600
    assert place.run("apply", "plan.json").code == 0
    assert audit_rows(database) == 451
    assert place.run("apply", "plan.json").code == 6


def test_what_was_done_is_on_record(place: Place, database: Path) -> None:
    """The trail names the rules, the counts and the tables, and no content of any row."""
    place.run("apply", "--yes")
    assert "150 of 600" in place.run("log").out
    assert "by apply: done, 150 deleted" in place.run("status").out
    trail = (place.folder / "state" / "trail.jsonl").read_text()
    assert '"dependents":{"semantic_chunks":82}' in trail
    assert "conversation_id" not in trail


def test_each_rule_is_told_apart(place: Place, database: Path) -> None:
    """With a rule for a type, the plan says what each rule takes, and from when to when."""
    place.configure(
        f"{AUDIT}    rules: [{{name: services, type: service.called, keep_for: 60d}}]\n"
    )
    text = place.run("plan").out
    assert "181 of 600" not in text
    head, services, rest = (line.split() for line in text.splitlines()[-3:])
    assert head[0] == "rule"
    # Of the 600 rows, 99 of that type are older than 2026-05-27.
    assert services[:3] == ["services", "99", "2026-05-27T00:00:00Z"]
    assert services[-1] == "(299)"
    assert rest[0] == "keep_for"
    assert "Rows older than 90d go, with their semantic_chunks; service.called after 60d." in text


def test_a_person_is_asked_about_rows(
    place: Place, database: Path, person: Callable[[str], None]
) -> None:
    """The question counts rows, and a no leaves them."""
    person("n\n")
    ran = place.run("apply")
    assert ran.code == 7
    assert "Delete 150 rows from audit?" in ran.out + ran.err
    assert audit_rows(database) == 600


# --- orphans ------------------------------------------------------------------------------


def test_orphans_are_told_and_stay(place: Place, database: Path) -> None:
    """Rows whose own row is gone are counted in plan, status and check, and kept unless asked."""
    with_orphans(database)
    assert "orphans       3 of semantic_chunks, which stay" in place.run("plan").out
    assert "orphans      3 of semantic_chunks, which stay" in place.run("status").out
    assert place.run("status", "--json").store["orphans"] == {"semantic_chunks": 3}
    assert place.run("apply", "--yes").code == 0
    ran = place.run("check")
    assert ran.code == 0
    assert ran.out == (
        "audit: rows of other tables hang on rows that are gone: 3 of semantic_chunks. Write "
        "`orphans: delete`, and the next sweep removes them too.\n"
    )
    assert len(caesar.rows(database)["semantic_chunks"]) == 255


def test_orphans_go_where_that_is_asked_for(
    place: Place, database: Path, person: Callable[[str], None]
) -> None:
    """Under `orphans: delete` they go, also when no row does; a person is asked, and told."""
    place.configure(f"{AUDIT}    orphans: delete\n    keep_for: 200d\n")
    with_orphans(database)
    assert "Only orphans would go: 3 of semantic_chunks." in place.run("plan").out
    assert "3 of semantic_chunks, which the next sweep deletes" in place.run("status").out
    assert place.run("apply").code == 7
    person("n\n")
    ran = place.run("apply")
    assert "Delete 3 orphans from audit?" in ran.out + ran.err
    assert len(caesar.rows(database)["semantic_chunks"]) == 337
    person("y\n")
    ran = place.run("apply")
    assert ran.code == 0
    assert "Only orphans are gone: 3 of semantic_chunks." in ran.out
    assert len(caesar.rows(database)["semantic_chunks"]) == 334
    assert place.run("log", "--json").json["sweeps"][0]["outcome"] == "done"


def test_orphans_alone_are_something_to_do_in_the_background(place: Place, database: Path) -> None:
    """A sweep that only removed orphans is not told as one that had nothing to do."""
    place.configure(f"{AUDIT}    orphans: delete\n    keep_for: 200d\n")
    with_orphans(database)
    store = place.run("run", "--once", "--json").store
    assert (store["outcome"], store["orphans"]) == ("done", {"semantic_chunks": 3})


# --- how it stands ------------------------------------------------------------------------


def test_status_tells_how_a_table_stands(place: Place, database: Path) -> None:
    """Status counts rows, measures the database on disk, and how much of that is reclaimable."""
    before = place.snapshot()
    text = place.run("status").out
    assert "You have 119.8 days of history in 600 rows, 240.0 KiB on disk." in text
    assert "due now      150 of 600 rows" in text
    assert "lag          29d" in text
    assert "reclaimable  0 B" in text
    assert place.snapshot() == before
    place.run("apply", "--yes")
    store = place.run("status", "--json").store
    with closing(sqlite3.connect(database)) as connection:
        (free,) = connection.execute("PRAGMA freelist_count").fetchone()
    assert store["reclaimable"] == free * 4096 > 0
    assert (store["rows"], store["bytes"]) == (451, 245_760)


def test_a_write_ahead_log_is_reclaimable(place: Place, database: Path) -> None:
    """What lies in a `-wal` counts as taken up and as reclaimable."""
    change(database, "PRAGMA journal_mode = wal")
    with closing(sqlite3.connect(database)) as writer:
        with writer:
            writer.execute("UPDATE semantic_chunks SET model = 'other'")
        log = database.with_name("caesar.sqlite3-wal").stat().st_size
        store = place.run("status", "--json").store
    assert log > 0
    assert (store["reclaimable"], store["bytes"]) == (log, 245_760 + log)


def test_only_a_database_has_something_reclaimable(place: Place, database: Path) -> None:
    """A ledger's status says null, and so does that of a database that is not there yet."""
    place.configure(f"{AUDIT}{RECALL.removeprefix('stores:')}".replace("\n\n", "\n"))
    database.unlink()
    place.write([1])
    stores = place.run("status", "--json").json["stores"]
    assert [store["reclaimable"] for store in stores] == [None, None]
    assert [store["orphans"] for store in stores] == [{}, {}]


def test_check_fails_for_a_table_that_nobody_sweeps(place: Place, database: Path) -> None:
    """A row that has been due for longer than a day is a failure, and named as a row."""
    ran = place.run("check")
    assert ran.code == 4
    assert "audit: its oldest row has been due for 29d22h, and the grace is 1d." in ran.out


def test_the_breaker_holds_for_a_table(place: Place, database: Path) -> None:
    """More than half of a table goes only where somebody insists; check says so."""
    place.configure(f"{AUDIT}    keep_for: 30d\n")
    assert place.run("apply", "--yes").code == 5
    assert audit_rows(database) == 600
    assert place.run("check", "--json").store["findings"][1]["problem"] == "breaker"
    assert place.run("apply", "--yes", "--force").code == 0
    assert audit_rows(database) < 300


def test_a_missing_index_is_told_with_what_makes_it(place: Place, database: Path) -> None:
    """Plan and check give the statement for an index that is missing, and check does not fail."""
    place.run("apply", "--yes")
    change(database, "DROP INDEX ix_audit_log_ts")
    statement = "CREATE INDEX ix_audit_log_ts ON audit_log (ts);"
    assert statement in place.run("plan").out
    ran = place.run("check")
    assert ran.code == 0
    assert ran.out == f"audit: audit_log has no index on ts, so it is read whole: {statement}\n"
    (finding,) = place.run("check", "--json").store["findings"]
    assert (finding["problem"], finding["exit_code"], finding["fix"]) == ("note", 0, "")


def test_a_database_that_is_not_there_is_no_error(place: Place) -> None:
    """Before its program first ran there is nothing, and none is made."""
    place.configure(AUDIT)
    assert "There is nothing there yet." in place.run("plan").out
    assert "There is nothing there yet." in place.run("status").out
    checked = place.run("check")
    assert checked.code == 0
    assert checked.out.startswith("audit: no table yet at sqlite:////")
    assert place.run("apply", "--yes").code == 0
    ran = place.run("reclaim", "audit")
    assert (ran.code, "There is nothing there yet." in ran.out) == (0, True)
    assert not (place.folder / "caesar.sqlite3").exists()


# --- what goes wrong ----------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["plan", "status", "check", "apply --yes"])
def test_a_database_that_cannot_be_read_is_one_stores_error(
    place: Place, database: Path, verb: str
) -> None:
    """A file that is no database fails its own store, and the others are worked on."""
    place.configure(f"{AUDIT}  recall: {{kind: ledger, path: recall.jsonl, keep_for: 90d}}\n")
    place.write([100, 50, 1])
    database.write_bytes(b"not a database at all" * 100)
    ran = place.run(*verb.split(), "--json")
    audit, recall = ran.json["stores"]
    assert audit["error"]["type"] == "StoreError"
    assert "it is no SQLite database, or an encrypted one." in audit["error"]["message"]
    assert recall["error"] is None
    assert ran.code == 1


def test_a_missing_table_is_told_with_the_nearest(place: Place, database: Path) -> None:
    """A name that is not there is refused, with the one that was probably meant."""
    place.configure(f"{AUDIT}    table: audit_logs\n")
    for verb in (["plan"], ["status"], ["check"], ["apply", "--yes"]):
        ran = place.run(*verb)
        assert ran.code == 1
        assert "audit_logs" in ran.out + ran.err
        assert "audit_log " in ran.out + ran.err or "audit_log?" in ran.out + ran.err
    assert audit_rows(database) == 600


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for others for longer than a moment."""
    monkeypatch.setattr("keepfor.sweep.PATIENCE", 0.0)
    monkeypatch.setattr("keepfor.stores.sql.sqlite._PATIENCE", 0.01)
    monkeypatch.setattr("keepfor.stores.sql.deleting._PATIENCE", 0.01)


@pytest.mark.parametrize("verb", ["apply --yes", "reclaim audit"])
def test_a_table_that_another_sweep_has_is_left_to_it(
    place: Place, database: Path, impatient: None, verb: str
) -> None:
    """One sweep at a time: the other fails, and says why."""
    from keepfor.stores.sql.sqlite import sqlite_at

    with sqlite_at(database).locked("audit_log", 0):
        ran = place.run(*verb.split())
    assert ran.code == 1
    assert "is being pruned by another process" in ran.err
    assert audit_rows(database) == 600


@pytest.mark.parametrize("verb", ["apply --yes", "reclaim audit"])
def test_a_locked_database_is_told(
    place: Place, database: Path, impatient: None, verb: str
) -> None:
    """Where another program keeps the write lock, nothing is done, and the message says so."""
    size = database.stat().st_size
    with closing(sqlite3.connect(database, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        ran = place.run(*verb.split(), "--json")
        other.execute("ROLLBACK")
    assert ran.code == 1
    assert ran.store["error"]["type"] == "DatabaseBusy"
    assert "another program kept it locked" in ran.err
    assert (audit_rows(database), database.stat().st_size) == (600, size)


def test_a_sweep_that_stops_halfway_says_how_far_it_came(
    place: Place, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was done stays done, in whole transactions; exit code, message and trail tell it."""
    monkeypatch.setattr("keepfor.stores.sql.pace._FIRST", 50)
    change(
        database,
        "CREATE TRIGGER refuse BEFORE DELETE ON audit_log WHEN old.id = 150 "
        "BEGIN SELECT RAISE(ABORT, 'not this one'); END",
    )
    ran = place.run("apply", "--yes", "--json")
    assert ran.code == ran.store["error"]["exit_code"] == 3
    left = caesar.rows(database)
    done = 600 - len(left["audit_log"])
    assert 0 < done < 150
    assert f"{done} of 150 rows were deleted, with all that hangs on them" in ran.err
    there = {row[0] for row in left["audit_log"]}
    assert all(row[1] in there for row in left["semantic_chunks"])
    (sweep,) = place.run("log", "--json").json["sweeps"]
    assert (sweep["outcome"], sweep["applied"]) == ("failed", done)
    change(database, "DROP TRIGGER refuse")
    assert place.run("apply", "--yes", "--json").store["applied"] == 150 - done


# --- reclaim ------------------------------------------------------------------------------


def test_reclaim_gives_free_space_back(place: Place, database: Path) -> None:
    """After a sweep, reclaim makes the file smaller by what it says, and loses no row."""
    place.run("apply", "--yes")
    before = caesar.rows(database)
    size = database.stat().st_size
    store = place.run("reclaim", "audit", "--json").store
    assert (store["store"], store["kind"], store["exists"]) == ("audit", "table", True)
    assert store["target"] == f"sqlite:///{database}#audit_log"
    assert store["before"]["size"] == size
    assert store["before"]["reclaimable"] > 0
    assert store["after"] == {"size": database.stat().st_size, "reclaimable": 0}
    assert store["after"]["size"] < size
    assert caesar.rows(database) == before
    text = place.run("reclaim", "audit").out
    assert "There was nothing to give back." in text
    assert place.run("status", "--json").store["reclaimable"] == 0


def test_nothing_reclaims_by_itself(place: Place, database: Path) -> None:
    """A sweep leaves the file's size alone, also in the background."""
    place.run("run", "--once")
    assert audit_rows(database) == 451
    assert database.stat().st_size == 245_760


@pytest.mark.parametrize("wanted", [["recall"], ["audit", "recall"]])
def test_reclaim_is_for_tables(place: Place, database: Path, wanted: list[str]) -> None:
    """Another kind of store is refused with those that fit, before anything is done."""
    place.configure(f"{AUDIT}  recall: {{kind: ledger, path: recall.jsonl, keep_for: 90d}}\n")
    place.run("apply", "--yes")
    ran = place.run("reclaim", *wanted)
    assert ran.code == 2
    assert "recall: it is of kind ledger, and this asks for one of kind table." in ran.err
    assert "Name one that is: audit." in ran.err
    assert database.stat().st_size == 245_760


def test_reclaim_wants_a_name(place: Place, database: Path) -> None:
    """It is done on request only, for the stores that somebody names."""
    assert place.run("reclaim").code == 2
    assert place.run("reclaim", "nowhere").code == 2


def test_a_database_that_cannot_be_reclaimed_is_one_stores_error(
    place: Place, database: Path
) -> None:
    """What fails for one table is told, and the others are worked on."""
    (place.folder / "broken.sqlite3").write_bytes(b"no database" * 1000)
    place.configure(f"{AUDIT}  broken: {{preset: caesar, url: 'sqlite:///broken.sqlite3'}}\n")
    ran = place.run("reclaim", "broken", "audit", "--json")
    broken, audit = ran.json["stores"]
    assert broken["error"]["type"] == "StoreError"
    assert set(broken) == {"store", "error"}
    assert audit["error"] is None
    assert ran.code == 1


# --- PostgreSQL ---------------------------------------------------------------------------


@pytest.fixture
def server(place: Place, postgres_url: str) -> Iterator[psycopg.Connection[Any]]:
    """The sample's rows in a PostgreSQL, which a role has to give its password for."""
    with closing(psycopg.connect(postgres_url.replace("+psycopg", ""), autocommit=True)) as admin:
        admin.execute(f"CREATE ROLE guarded_audit LOGIN PASSWORD '{SECRET}'")
        admin.execute("GRANT CREATE ON SCHEMA public TO guarded_audit")
        admin.execute("SET ROLE guarded_audit")
        admin.execute(
            "CREATE TABLE audit_log (id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, "
            "ts timestamptz NOT NULL, event_type text NOT NULL, payload jsonb NOT NULL)"
        )
        admin.execute(
            "CREATE TABLE semantic_chunks (id bigint PRIMARY KEY, audit_log_id bigint NOT NULL)"
        )
        admin.execute("CREATE INDEX ON audit_log (ts)")
        admin.execute("CREATE INDEX ON semantic_chunks (audit_log_id)")
        sample = caesar.rows(caesar.rebuild(place.folder / "sample"))
        into = "COPY audit_log FROM STDIN"
        with admin.cursor() as cursor, admin.transaction():
            with cursor.copy(into) as copy:
                for key, ts, kind, payload in sample["audit_log"]:
                    copy.write_row((key, f"{ts}+00:00", kind, payload))
            with cursor.copy("COPY semantic_chunks FROM STDIN") as copy:
                for row in sample["semantic_chunks"]:
                    copy.write_row(row[:2])
        admin.execute("SELECT setval(pg_get_serial_sequence('audit_log', 'id'), 600)")
        yield admin


def configured(place: Place, url: str, password: str) -> None:
    """The preset, for the test's database, as the role with a password."""
    made = make_url(url).set(username="guarded_audit", password=password)
    address = made.set(drivername="postgresql+asyncpg").render_as_string(hide_password=False)
    place.configure(f"{AUDIT}    url: {address}\n")


def everywhere(place: Place, *ran: Ran) -> str:
    """All that was printed, and all that was written to the folder beside the settings."""
    files = [
        data.decode(errors="replace")
        for name, (data, _) in place.snapshot().items()
        if name != "keepfor.yaml"
    ]
    return "\n".join([*files, *(text for each in ran for text in (each.out, each.err))])


def hidden(text: str) -> bool:
    """Whether the password shows in no form."""
    return not any(part in text for part in (SECRET, "s3cret", "wr0ng"))


def test_a_postgresql_from_plan_to_reclaim(
    place: Place, postgres_url: str, server: psycopg.Connection[Any]
) -> None:
    """The same sample in PostgreSQL comes to the same figures, and its password shows nowhere."""
    configured(place, postgres_url, SECRET)
    planned = place.run("plan", "audit", "-o", "plan.json")
    assert planned.code == 0, planned.err
    assert "150 of 600 rows would go." in planned.out
    assert "82 of semantic_chunks" in planned.out
    ran = [planned]
    ran += [place.run("apply", "plan.json"), place.run("status"), place.run("check")]
    ran += [place.run("log"), place.run("reclaim", "audit"), place.run("config", "show")]
    ran += [place.run("plan", "--json"), place.run("config", "show", "--json")]
    assert [each.code for each in ran] == [0] * len(ran)
    assert "150 of 600 rows are gone." in ran[1].out
    assert "You have 89.9 days of history in 451 rows" in ran[2].out
    assert ran[3].out == "audit: in order (451 rows, none overdue).\n"
    assert "on disk" in ran[5].out
    assert server.execute("SELECT count(*) FROM audit_log").fetchone() == (451,)
    assert server.execute("SELECT count(*) FROM semantic_chunks").fetchone() == (255,)
    assert hidden(everywhere(place, *ran))


def test_what_is_granted_as_told_is_enough(
    place: Place, postgres_url: str, server: psycopg.Connection[Any]
) -> None:
    """A role that may do what the message says can plan and apply."""
    place.configure(f"{AUDIT}    url: {postgres_url.replace('postgres@', 'clerk@')}\n")
    server.execute("RESET ROLE")
    server.execute("CREATE ROLE clerk LOGIN")
    rights = place.run("plan").err.partition("GRANT ")[2].partition(" ON ")[0]
    server.execute(f"GRANT {rights} ON audit_log, semantic_chunks TO clerk")
    place.configure(
        f"{AUDIT}    url: {postgres_url.replace('postgres@', 'clerk@')}\n    record_sweeps: off\n"
    )
    assert place.run("apply", "--yes", "--json").store["applied"] == 150


def test_a_wrong_password_is_told_and_never_shown(
    place: Place, postgres_url: str, server: psycopg.Connection[Any]
) -> None:
    """Every verb says that it may not enter, fails with 1, and shows no password."""
    configured(place, postgres_url, "wr0ng")
    verbs = ("plan", "status", "check", "apply --yes", "reclaim audit", "run --once", "log")
    ran = [place.run(*verb.split()) for verb in verbs]
    assert [each.code for each in ran] == [1] * 6 + [0]
    for each in ran[:5]:
        assert "password" in each.out + each.err
    assert hidden(everywhere(place, *ran))
    assert server.execute("SELECT count(*) FROM audit_log").fetchone() == (600,)
