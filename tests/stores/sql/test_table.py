"""What a policy takes of a table, to the row: the sample, boundaries, types, bounds, odd times."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from keepfor.errors import (
    BreakerTripped,
    PlanStale,
    StoreChanged,
    StoreError,
    SweepStopped,
    WrongTimes,
)
from keepfor.items import Part, Survey, Terms
from keepfor.policy.rules import Policy, keep_for, keep_type, terms
from keepfor.stores.sql import look, pace, reach
from keepfor.stores.sql.database import database_at
from keepfor.stores.table import Dependent, Record, TableStore, table_at
from keepfor.testing.suite import CUTOFF, NOW, adds_up, bounded, keep
from keepfor.trail import Trail
from tests import caesar
from tests.stores.sql import build
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

TICK = timedelta(microseconds=1)


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database of either kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/notes.sqlite3"
    return str(request.getfixturevalue("postgres_url"))


def notes(url: str, *rows: tuple[int, datetime | None, str | None]) -> str:
    """A table `notes` with rows of these keys, times and types."""
    lay(url, "CREATE TABLE notes (id <id>, ts <ts>, type VARCHAR)")
    run(url, "CREATE INDEX ix_notes_ts ON notes (ts)")
    add(url, *rows)
    return url


def add(url: str, *rows: tuple[int, datetime | None, str | None]) -> None:
    if rows:
        values = {
            f"ts{number}": stored(url, instant) for number, (_, instant, _) in enumerate(rows)
        }
        text = ", ".join(
            f"({key}, :ts{number}, {'NULL' if type_ is None else repr(type_)})"
            for number, (key, _, type_) in enumerate(rows)
        )
        # A value alone does not tell PostgreSQL what it is.
        if kind(url) == "postgresql":
            for name in values:
                text = text.replace(f":{name},", f"CAST(:{name} AS TIMESTAMPTZ),")
        run(url, f"INSERT INTO notes (id, ts, type) VALUES {text}", **values)


def ids(url: str) -> list[int]:
    return column(url, "SELECT id FROM notes ORDER BY id")


def store_of(url: str, folder: Path, **settings: Any) -> TableStore:
    return table(url, "notes", folder, **settings)


def day(month: int, number: int = 1) -> datetime:
    return datetime(2026, month, number, tzinfo=UTC)


# --- the sample ---------------------------------------------------------------------------


def sample(path: Path, folder: Path) -> TableStore:
    """The store of caesar's audit rows."""
    return table_at(
        f"sqlite:///{path}",
        "audit_log",
        folder=folder / "state",
        key=("id",),
        time="ts",
        type="event_type",
        dependents=(Dependent(table="semantic_chunks", columns=("audit_log_id",)),),
        record=Record(type="memory.retention_sweep", payload="payload"),
    )


def test_the_sample_is_swept_to_its_known_figures(tmp_path: Path) -> None:
    """150 rows and their 82 embeddings go, one row tells of it, and nothing else has changed."""
    path = caesar.rebuild(tmp_path / "caesar")
    before = caesar.rows(path)
    store = sample(path, tmp_path)
    made = planned(store, now=caesar.NOW)
    assert caesar.rows(path) == before
    assert made.survey.parts == [
        Part(
            rule="keep_for",
            cutoff=datetime(2026, 4, 27, tzinfo=UTC),
            count=150,
            first=[1],
            last=[150],
            oldest=datetime(2026, 3, 28, 1, 33, 15, 830176, tzinfo=UTC),
            newest=datetime(2026, 4, 26, 23, 0, 5, 194828, tzinfo=UTC),
        )
    ]
    assert (made.survey.dependents, made.survey.orphans) == ({"semantic_chunks": 82}, {})
    report = carried_out(made, store, now=caesar.NOW)
    assert (report.scanned, report.kept, report.applied) == (600, 450, 150)
    assert report.dependents == {"semantic_chunks": 82}
    after = caesar.rows(path)
    *old, (key, ts, type_, payload) = after["audit_log"]
    assert after | {"audit_log": old} == caesar.swept(before)
    assert (len(old), len(after["semantic_chunks"])) == (450, 255)
    assert (key, ts, type_) == (601, "2026-07-26 00:00:00.000000", "memory.retention_sweep")
    assert json.loads(payload) == {
        "deleted": 150,
        "cutoff": "2026-04-27T00:00:00+00:00",
        "dependents": {"semantic_chunks": 82},
    }


def test_the_sample_is_quiet_afterwards(tmp_path: Path) -> None:
    """The next sweep finds nothing to delete, and says so in a row of its own."""
    path = caesar.rebuild(tmp_path / "caesar")
    store = sample(path, tmp_path)
    swept(store, now=caesar.NOW)
    report = swept(store, now=caesar.NOW + timedelta(hours=1))
    assert (report.scanned, report.applied) == (451, 0)
    payload = caesar.rows(path)["audit_log"][-1][3]
    assert json.loads(payload)["deleted"] == 0


# --- boundaries, types --------------------------------------------------------------------


def test_a_row_on_the_cutoff_stays(url: str, tmp_path: Path) -> None:
    """90 days before 2026-07-26 is 2026-04-27, to the microsecond; strictly older goes."""
    notes(url, (1, CUTOFF - TICK, None), (2, CUTOFF, None), (3, CUTOFF + TICK, None))
    assert swept(store_of(url, tmp_path)).applied == 1
    assert ids(url) == [2, 3]


#: `denied` stays a year, `held` for ever, `brief` for ten days.
TYPED = Policy(
    rules=(
        *keep_type("denied", "denied", timedelta(days=365)),
        *keep_type("held", "held", None),
        *keep_type("brief", "brief", timedelta(days=10)),
        *keep_for(timedelta(days=90)),
    ),
    breaker=None,
)
#: A year before 2026-07-26 is 2025-07-26, and ten days before it 2026-07-16.
ROWS = (
    (1, datetime(2025, 7, 25, tzinfo=UTC), "denied"),
    (2, datetime(2025, 7, 26, tzinfo=UTC), "denied"),
    (3, day(1), "denied"),
    (4, datetime(2020, 1, 1, tzinfo=UTC), "held"),
    (5, day(7, 15), "brief"),
    (6, day(7, 16), "brief"),
    (7, day(4, 26), "other"),
    (8, day(4, 27), "other"),
    (9, day(4, 26), None),
    (10, day(5), None),
    (11, day(4, 26), "Denied"),
)


def test_types_have_a_time_of_their_own(url: str, tmp_path: Path) -> None:
    """Longer, shorter or for ever; a row of no type, and of one no rule names, keeps the rest's."""
    notes(url, *ROWS)
    store = store_of(url, tmp_path, type="type")
    made = planned(store, TYPED)
    assert [(part.rule, part.type, part.count) for part in made.survey.parts] == [
        ("denied", "denied", 1),
        ("held", "held", 0),
        ("brief", "brief", 1),
        ("keep_for", None, 3),
    ]
    last = made.survey.parts[-1]
    assert (last.first, last.last) == ([7], [11])
    assert last.oldest == last.newest == day(4, 26)
    assert made.survey.oldest == datetime(2020, 1, 1, tzinfo=UTC)
    assert carried_out(made, store, TYPED).applied == 5
    assert ids(url) == [2, 3, 4, 6, 8, 10]


def test_the_first_rule_that_matches_decides(url: str, tmp_path: Path) -> None:
    """A pin that comes first holds its type, and one that comes too late holds nothing."""
    pin = keep_type("pin", "held", None)
    early = Policy(rules=(*pin, *keep_for(timedelta(days=90))), breaker=None)
    late = Policy(rules=(*keep_for(timedelta(days=90)), *pin), breaker=None)
    notes(url, (1, OLD, "held"), (2, OLD, "other"), (3, YOUNG, "held"))
    store = store_of(url, tmp_path, type="type")
    assert planned(store, early).survey.applied == 1
    swept(store, late)
    assert ids(url) == [3]


def test_a_rule_for_a_type_may_be_called_like_the_ceiling(url: str, tmp_path: Path) -> None:
    """A type that is named `max_count` expires by its age; the ceiling takes what is above it."""
    notes(url, (1, OLD, "max_count"), (2, OLD, None), (3, YOUNG, None), (4, YOUNG, None))
    store = store_of(url, tmp_path, type="type")
    rules = keep_type("max_count", "max_count", timedelta(days=90))
    made = planned(store, Policy(rules=rules, breaker=None))
    assert (made.survey.expired, made.survey.over_ceiling) == (1, 0)
    bound = Policy(rules=rules, max_count=2, breaker=None)
    report = carried_out(planned(store, bound), store, bound)
    assert (report.expired, report.over_ceiling, ids(url)) == (1, 1, [3, 4])


def test_a_policy_that_changed_since_the_plan_refuses_it(url: str, tmp_path: Path) -> None:
    """Neither another duration, nor another type, nor other dependents, nor orphans pass."""
    notes(url, (1, OLD, "held"))
    store = store_of(url, tmp_path, type="type")
    made = planned(store)
    pinned = Policy(rules=(*keep_type("pin", "held", None), *keep_for(timedelta(days=90))))
    others = (
        (store, keep(91)),
        (store, pinned),
        (store_of(url, tmp_path, type="type", orphans="delete"), keep()),
        (store_of(url, tmp_path), keep()),
    )
    for other, policy in others:
        with pytest.raises(PlanStale):
            carried_out(made, other, policy)
    assert ids(url) == [1]


def test_a_sweep_that_is_called_off_tells_of_nothing_done(tmp_path: Path) -> None:
    """Where the one who asked says no, no row, no dependent and no orphan counts as gone."""
    url = build.make(f"sqlite:///{tmp_path}/notes.sqlite3")
    build.add(url, "old", OLD)
    run(url, "INSERT INTO vectors (note_id, data) VALUES (99, 'orphan')")
    store = build.notes(url, tmp_path, orphans="delete")
    agreed = terms(keep(), NOW, store.bounds)
    asked: list[tuple[int, dict[str, int]]] = []

    def no(found: Survey) -> bool:
        asked.append((found.applied, found.orphans))
        return False

    with store.locked():
        done = store.delete(store.aim(agreed), agreed, accept=no)
    assert asked == [(1, {"vectors": 1})]
    assert (done.scanned, done.kept, done.applied, done.expired) == (1, 1, 0, 0)
    assert (done.dependents, done.orphans, done.bytes_deleted) == ({}, {}, 0)
    assert column(url, "SELECT count(*) FROM vectors") == [2]


# --- clocks -------------------------------------------------------------------------------


def test_a_plan_for_the_future_is_refused(url: str, tmp_path: Path) -> None:
    """A clock that jumped ahead, and back again, has nothing deleted."""
    notes(url, (1, YOUNG, None))
    store = store_of(url, tmp_path)
    made = planned(store, now=NOW + timedelta(days=365))
    assert made.survey.applied == 1
    with pytest.raises(PlanStale, match="still to come"):
        carried_out(made, store)
    assert ids(url) == [1]


#: Of 26 July 2026, 00:00 UTC, which is 1,785,024,000 s: what is before it, at it and after it.
AROUND_NOW: list[tuple[str, str | None, list[object]]] = [
    (
        "DATETIME",
        None,
        ["2026-07-25 23:59:59.999999", "2026-07-26 00:00:00.000000", "2026-07-26 00:00:00.000001"],
    ),
    ("TEXT", None, ["2026-07-25T23:59:59Z", "2026-07-26T00:00:00Z", "2026-07-26T00:00:01Z"]),
    (
        "TEXT",
        None,
        ["2026-07-26T01:59:59+02:00", "2026-07-26T02:00:00+02:00", "2026-07-26T02:00:01+02:00"],
    ),
    ("TEXT", None, ["2026-07-24", "2026-07-25", "2026-07-26"]),
    ("INTEGER", "s", [1_785_023_999, 1_785_024_000, 1_785_024_001]),
    ("INTEGER", "us", [1_785_023_999_999_999, 1_785_024_000_000_000, 1_785_024_000_000_001]),
    ("INTEGER", "ns", [1_785_023_999 * 10**9, 1_785_024_000 * 10**9, 1_785_024_000 * 10**9 + 1000]),
    ("REAL", "s", [1_785_023_999.5, 1_785_024_000.0, 1_785_024_000.5]),
]


@pytest.mark.parametrize(("declared", "unit", "times"), AROUND_NOW)
def test_what_is_written_now_is_not_to_come(
    declared: str, unit: str | None, times: list[object], tmp_path: Path
) -> None:
    """Only a row that is past the very instant counts as one of the future, in any shape."""
    url = f"sqlite:///{tmp_path}/notes.sqlite3"
    run(url, f"CREATE TABLE notes (id INTEGER PRIMARY KEY, ts {declared})")
    for moment in times:
        run(url, "INSERT INTO notes (ts) VALUES (:ts)", ts=moment)
    assert planned(store_of(url, tmp_path, unit=unit)).survey.future == 1


def test_a_clock_that_went_back_takes_less(url: str, tmp_path: Path) -> None:
    """What is not due any more at the time of the sweep stays, and is counted as skipped."""
    notes(url, (1, day(1), None), (2, day(4), None), (3, day(7), None))
    store = store_of(url, tmp_path)
    # The plan is for a past instant, whose cutoff is 2026-03-31; the terms of now go further.
    made = planned(store, now=day(6, 29))
    assert carried_out(made, store).applied == 1
    assert ids(url) == [2, 3]
    seen = planned(store)
    assert seen.survey.applied == 1
    back = Terms(now=day(6), cutoff=day(3))
    with store.locked():
        survey = replace(seen.survey, parts=store.aim(back).parts)
        assert store.delete(survey, back).applied == 0
    assert ids(url) == [2, 3]


# --- the extent ---------------------------------------------------------------------------


def test_rows_that_came_since_the_plan_stay(url: str, tmp_path: Path) -> None:
    """However old they are, they are above the highest key that the plan saw."""
    notes(url, (1, OLD, None), (2, YOUNG, None))
    store = store_of(url, tmp_path)
    made = planned(store)
    add(url, (3, OLD, None), (4, OLD, None))
    assert carried_out(made, store).applied == 1
    assert ids(url) == [2, 3, 4]


def test_a_row_put_among_those_that_the_plan_saw_refuses_it(url: str, tmp_path: Path) -> None:
    """Where more would go than were planned, nothing does."""
    notes(url, (1, OLD, None), (5, YOUNG, None))
    store = store_of(url, tmp_path)
    made = planned(store)
    add(url, (3, OLD, None))
    with pytest.raises(StoreChanged, match="more rows would go than were planned"):
        carried_out(made, store)
    assert ids(url) == [1, 3, 5]


@pytest.mark.parametrize("again", [True, False])
def test_a_key_that_was_given_again_refuses_the_plan(again: bool, url: str, tmp_path: Path) -> None:
    """SQLite hands the newest row's key out once more when it is gone: another row has it then."""
    notes(url, (1, OLD, None), (2, YOUNG, None))
    store = store_of(url, tmp_path)
    made = planned(store)
    run(url, "DELETE FROM notes WHERE id = 2")
    if again:
        add(url, (2, OLD, None))
    with pytest.raises(StoreChanged, match="its newest row is gone"):
        carried_out(made, store)
    assert ids(url) == ([1, 2] if again else [1])


def test_a_row_that_others_deleted_since_the_plan_is_no_row(url: str, tmp_path: Path) -> None:
    """It is neither kept nor skipped; what is there still, and young by now, is skipped."""
    old = [(id_, OLD, None) for id_ in (1, 2, 3)]
    store = store_of(notes(url, *old, (4, YOUNG, None), (5, YOUNG, None)), tmp_path)
    made = planned(store)
    run(url, "UPDATE notes SET ts = :ts WHERE id = 3", ts=stored(url, YOUNG))
    run(url, "DELETE FROM notes WHERE id IN (1, 2)")
    add(url, (6, YOUNG, None))
    report = carried_out(made, store)
    assert (report.scanned, report.kept, report.applied, report.skipped) == (4, 3, 0, 1)
    assert [part.count for part in report.parts] == [0]
    run(url, "DELETE FROM notes WHERE id = 3")
    # Nothing was begun, so that the plan is not spent.
    report = carried_out(made, store)
    assert (report.scanned, report.kept, report.applied, report.skipped) == (3, 3, 0, 0)


def test_a_row_that_became_young_since_the_plan_is_skipped(url: str, tmp_path: Path) -> None:
    """It is looked at again in the very transaction, and counted."""
    notes(url, (1, OLD, None), (2, OLD, None), (3, YOUNG, None))
    store = store_of(url, tmp_path)
    made = planned(store)
    run(url, "UPDATE notes SET ts = :ts WHERE id = 1", ts=stored(url, YOUNG))
    report = carried_out(made, store)
    assert (report.scanned, report.kept, report.applied, report.skipped) == (3, 1, 1, 1)
    assert ids(url) == [1, 3]


def test_a_table_that_was_emptied_since_refuses_the_plan(url: str, tmp_path: Path) -> None:
    """Its newest row tells that it is not what it was."""
    notes(url, (1, OLD, None), (2, OLD, None))
    store = store_of(url, tmp_path)
    made = planned(store)
    run(url, "DELETE FROM notes")
    with pytest.raises(StoreChanged):
        carried_out(made, store)


# --- bounds -------------------------------------------------------------------------------


def test_all_of_a_table_needs_somebody_to_insist(url: str, tmp_path: Path) -> None:
    """The breaker holds back what would empty a table of ten rows."""
    notes(url, *((key, OLD, None) for key in range(1, 11)))
    store, policy = store_of(url, tmp_path), keep(breaker=0.5)
    made = planned(store, policy)
    with pytest.raises(BreakerTripped):
        carried_out(made, store, policy)
    assert len(ids(url)) == 10
    carried_out(made, store, policy, force=True)
    assert ids(url) == []


def test_an_empty_table_is_no_fault(url: str, tmp_path: Path) -> None:
    """It has nothing to lose, and no times yet that could be of the wrong shape."""
    notes(url)
    report = swept(store_of(url, tmp_path))
    assert (report.scanned, report.applied, report.oldest) == (0, 0, None)


def test_times_that_are_missing_keep_their_rows(url: str, tmp_path: Path) -> None:
    """A row without a time is neither old nor young: it stays, and is counted."""
    notes(url, (1, OLD, None), (2, None, None), (3, None, None))
    report = swept(store_of(url, tmp_path))
    assert (report.applied, report.unknown, ids(url)) == (1, 2, [2, 3])
    report = swept(store_of(url, tmp_path), bounded(max_count=1))
    assert (report.applied, ids(url)) == (0, [2, 3])
    assert any("still 1 over max_count" in note for note in report.notes)


@pytest.mark.parametrize(
    ("last", "left"),
    [(1, [4, 5]), (2, [4, 5]), (3, [3, 4, 5]), (5, [1, 2, 3, 4, 5]), (9, [1, 2, 3, 4, 5])],
)
def test_the_newest_stay_with_all_of_their_instant(
    last: int, left: list[int], url: str, tmp_path: Path
) -> None:
    """Of rows of one instant none is newer: more may stay than were asked for, and never fewer."""
    notes(url, *((key, day(month), None) for key, month in enumerate((1, 1, 2, 3, 3), start=1)))
    swept(store_of(url, tmp_path), keep(keep_last=last))
    assert ids(url) == left


@pytest.mark.parametrize(
    ("most", "left"),
    [(1, [5]), (2, [4, 5]), (3, [2, 3, 4, 5]), (4, [2, 3, 4, 5]), (5, [1, 2, 3, 4, 5])],
)
def test_a_ceiling_never_takes_too_many(
    most: int, left: list[int], url: str, tmp_path: Path
) -> None:
    """The oldest go until the count fits; of rows of one instant all stay, which is told."""
    notes(url, *((key, day(month), None) for key, month in enumerate((1, 2, 2, 6, 7), start=1)))
    report = swept(store_of(url, tmp_path), bounded(max_count=most))
    assert ids(url) == left
    assert report.over_ceiling == 5 - len(left)
    assert report.oldest == day((1, 2, 2, 6, 7)[left[0] - 1])
    told = any(f"still {len(left) - most} over max_count" in note for note in report.notes)
    assert told == (len(left) > most)


def test_a_ceiling_can_take_all_that_it_reaches(url: str, tmp_path: Path) -> None:
    """Where what is out of reach is as much as may stay, all the rest goes."""
    notes(url, (1, None, None), (2, day(6), None), (3, day(7), None))
    swept(store_of(url, tmp_path), bounded(max_count=1))
    assert ids(url) == [1]


def test_age_and_ceiling_each_tell_what_they_take(url: str, tmp_path: Path) -> None:
    """Each row is counted once, by what takes it first, with its own first and last."""
    notes(
        url,
        (1, day(1), None),
        (2, day(2), "held"),
        (3, day(3), None),
        (4, day(5), None),
        (5, day(6), None),
        (6, day(7), None),
    )
    policy = Policy(
        rules=(*keep_type("held", "held", None), *keep_for(timedelta(days=90))),
        max_count=3,
        breaker=None,
    )
    store = store_of(url, tmp_path, type="type")
    made = planned(store, policy)
    told = [
        (part.rule, part.count, part.first, part.last, part.oldest, part.newest)
        for part in made.survey.parts
    ]
    assert told == [
        ("held", 0, [], [], None, None),
        ("keep_for", 2, [1], [3], day(1), day(3)),
        ("max_count", 1, [4], [4], day(5), day(5)),
    ]
    assert (made.survey.expired, made.survey.over_ceiling) == (2, 1)
    assert made.survey.oldest == day(2)
    report = carried_out(made, store, policy)
    assert (report.expired, report.over_ceiling, report.oldest) == (2, 1, day(2))
    assert ids(url) == [2, 5, 6]


OFFSETS = {
    1: "2026-01-01T23:00:00+14:00",  # 09:00 UTC
    2: "2026-01-01T22:00:00-10:00",  # 08:00 UTC on the next day
    3: "2026-01-01T12:00:00+00:00",
    4: "2026-01-01T20:30:00+12:00",  # 08:30 UTC
}


def offsets(url: str) -> str:
    lay(url, "CREATE TABLE notes (id <id>, ts VARCHAR)")
    for key, text in OFFSETS.items():
        run(url, "INSERT INTO notes (id, ts) VALUES (:id, :ts)", id=key, ts=text)
    return url


@pytest.mark.parametrize(
    ("last", "left"), [(1, [2]), (2, [2, 3]), (3, [1, 2, 3]), (4, [1, 2, 3, 4])]
)
def test_a_floor_goes_by_instants_where_text_does_not(
    last: int, left: list[int], url: str, tmp_path: Path
) -> None:
    """Times with an offset each are in another order than their text; the newest stay."""
    swept(store_of(offsets(url), tmp_path), keep(keep_last=last))
    assert set(left) <= set(ids(url))


@pytest.mark.parametrize("most", [1, 2, 3])
def test_a_ceiling_goes_by_instants_where_text_does_not(
    most: int, url: str, tmp_path: Path
) -> None:
    """The newest by their instants stay; no more go than are too many."""
    swept(store_of(offsets(url), tmp_path), bounded(max_count=most))
    newest = [2, 3, 1, 4][:most]
    assert set(newest) <= set(ids(url))


# --- odd times ----------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["'2026-01-05T00:00:00Z'", "1767571200", "'soon'"])
@pytest.mark.parametrize("indexed", [True, False])
def test_times_of_two_shapes_stop_a_sweep(value: str, indexed: bool, tmp_path: Path) -> None:
    """Text cannot be compared with text of another shape: nothing goes, and the key is named."""
    url = notes(f"sqlite:///{tmp_path}/notes.sqlite3", *((key, OLD, None) for key in range(1, 6)))
    store = store_of(url, tmp_path)
    made = planned(store)
    run(url, f"INSERT INTO notes (id, ts) VALUES (77, {value})")
    if not indexed:
        run(url, "DROP INDEX ix_notes_ts")
    with pytest.raises(WrongTimes, match="77") as caught:
        planned(store)
    assert caught.value.facts["count"] == 1
    # The plan is older than the odd row.
    run(url, "UPDATE notes SET ts = (SELECT ts FROM notes WHERE id = 77) WHERE id = 3")
    with pytest.raises(WrongTimes, match="nothing was deleted") as caught:
        carried_out(made, store)
    assert caught.value.facts["count"] == 2
    assert ids(url) == [1, 2, 3, 4, 5, 77]


def test_odd_times_among_many_rows_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a table too large to look at whole, all that would go is: for a plan, and by a sweep."""
    monkeypatch.setattr(look, "_WHOLE", 10)
    monkeypatch.setattr(look, "_OLDEST", 2)
    monkeypatch.setattr(look, "_NEWEST", 2)
    monkeypatch.setattr(reach, "_PAGE", 3)
    rows = ((key, OLD + timedelta(hours=key), None) for key in range(1, 31))
    url = notes(f"sqlite:///{tmp_path}/notes.sqlite3", *rows)
    store = store_of(url, tmp_path)
    made = planned(store)
    run(url, "UPDATE notes SET ts = '2026-01-01T15:00:00Z' WHERE id = 15")
    for attempt in (lambda: planned(store), lambda: carried_out(made, store)):
        with pytest.raises(WrongTimes) as caught:
            attempt()
        assert (caught.value.facts["count"], caught.value.facts["keys"]) == (1, "15")
    assert len(ids(url)) == 30


@pytest.mark.parametrize("value", ["1960-01-01", "0001-01-01", "-infinity"])
def test_implausible_times_stop_a_sweep(value: str, postgres_url: str, tmp_path: Path) -> None:
    """A time before anybody wrote one is more likely a slip than old."""
    notes(postgres_url, (1, OLD, None))
    run(postgres_url, f"INSERT INTO notes (id, ts) VALUES (2, '{value}')")
    with pytest.raises(StoreError, match="2"):
        swept(store_of(postgres_url, tmp_path))
    assert ids(postgres_url) == [1, 2]


# --- slices -------------------------------------------------------------------------------


def small_slices(monkeypatch: pytest.MonkeyPatch, rows: int = 2) -> None:
    monkeypatch.setattr(pace, "_FIRST", rows)
    monkeypatch.setattr(pace, "_MOST", rows)


def test_many_slices_do_what_one_would(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pages, slices and portions that end in the middle of an instant lose and double nothing."""
    small_slices(monkeypatch)
    monkeypatch.setattr(reach, "_FETCHED", 2)
    monkeypatch.setattr(reach, "_PAGE", 3)
    rows = [(key, OLD, None) for key in range(1, 8)] + [(key, YOUNG, None) for key in range(8, 12)]
    notes(url, *rows)
    lay(url, "CREATE TABLE vectors (id <id>, note BIGINT)")
    run(url, "INSERT INTO vectors (note) SELECT id FROM notes")
    run(url, "INSERT INTO vectors (note) SELECT -id FROM notes")
    link = Dependent(table="vectors", columns=("note",))
    store = store_of(url, tmp_path, dependents=(link,), orphans="delete")
    seen: list[tuple[int, int]] = []
    made = planned(store)
    assert (made.survey.dependents, made.survey.orphans) == ({"vectors": 7}, {"vectors": 11})
    report = carried_out(made, store, progress=lambda done, of: seen.append((done, of)))
    assert (report.applied, report.dependents) == (7, {"vectors": 7})
    assert report.orphans == {"vectors": 11}
    assert seen[:4] == [(2, 7), (4, 7), (6, 7), (7, 7)]
    assert ids(url) == [8, 9, 10, 11]
    assert column(url, "SELECT note FROM vectors ORDER BY note") == [8, 9, 10, 11]


def test_a_sweep_that_is_stopped_tells_how_far_it_came(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whole transactions stand, the others are as they were; report, trail and error agree."""
    small_slices(monkeypatch)
    notes(url, *((key, OLD, None) for key in range(1, 6)), (6, YOUNG, None))
    store, trail = store_of(url, tmp_path), Trail(tmp_path / "trail.jsonl", keep_for="forever")

    def stop(done: int, of: int) -> None:
        if done == 4:
            raise RuntimeError("asked to")

    with pytest.raises(SweepStopped, match="asked to 4 of 5 rows were deleted") as caught:
        carried_out(planned(store), store, trail=trail, progress=stop)
    assert caught.value.exit_code == 3
    assert adds_up(caught.value.done)
    assert ids(url) == [5, 6]
    outcome = next(trail.records("outcome"))
    assert {name: outcome[name] for name in ("scanned", "kept", "applied", "failed")} == {
        "scanned": 6,
        "kept": 1,
        "applied": 4,
        "failed": 1,
    }
    assert "4 of 5 rows" in outcome["error"]
    assert swept(store).applied == 1
    assert ids(url) == [6]


def test_the_pace_follows_how_long_a_slice_took() -> None:
    """A slice aims at its time; it grows at most twofold at once, and shrinks at most by half."""
    speed = pace.Pace(0.020)
    assert speed.size == 200
    speed.learn(200, 0.005, 0.001)
    assert speed.size == 400
    speed.learn(400, 0.001, 0.001)
    assert speed.size == 800
    speed.learn(800, 0.020, 0.004)
    assert speed.size == 640
    speed.learn(640, 10.0, 0.0)
    assert speed.size == 320
    speed.learn(0, 10.0, 0.0)
    assert speed.size == 320
    for _ in range(10):
        speed.learn(speed.size, 10.0, 0.0)
    assert speed.size == 1
    for _ in range(20):
        speed.learn(speed.size, 0.0, 0.0)
    assert speed.size == 20_000


def test_a_slow_disk_makes_no_ever_smaller_slices() -> None:
    """However long a commit takes, half the time is for the rows: fewer commits hold for less."""
    speed = pace.Pace(0.020)
    speed.learn(200, 0.010, 1.0)
    assert speed.size == 200


def test_bytes_are_told_as_they_are(url: str, tmp_path: Path) -> None:
    """What was deleted held bytes, and the file gave none back by itself."""
    notes(url, *((key, OLD, "x" * 500) for key in range(1, 101)))
    report = swept(store_of(url, tmp_path))
    assert report.bytes_deleted
    assert 40_000 < report.bytes_deleted < 100_000
    assert report.bytes_before <= report.bytes_after


@pytest.mark.parametrize(("mode", "hold"), [("wal", 0.020), ("delete", 0.040)])
def test_a_slice_keeps_writers_waiting_for_milliseconds(
    tmp_path: Path, mode: str, hold: float
) -> None:
    """A commit with a rollback journal costs more of them, so fewer are made."""
    url = f"sqlite:///{tmp_path}/notes.sqlite3"
    run(url, f"PRAGMA journal_mode = {mode}", "CREATE TABLE notes (id INTEGER PRIMARY KEY)")
    with database_at(url).writing() as connection:
        assert pace.hold_of(connection) == hold


def test_a_slice_of_postgresql_may_take_longer(postgres_url: str) -> None:
    """It keeps nobody waiting but who wants the same rows."""
    with database_at(postgres_url).writing() as connection:
        assert pace.hold_of(connection) == 0.2


def test_a_ceiling_takes_no_more_than_is_too_much_where_text_does_not_compare(
    tmp_path: Path,
) -> None:
    """Of 100 rows with offsets, 20 of them within a day of their 90 days, 10 go above 90 rows."""
    url = f"sqlite:///{tmp_path}/notes.sqlite3"
    run(url, "CREATE TABLE notes (id INTEGER PRIMARY KEY, ts TEXT, type VARCHAR)")
    run(url, "CREATE INDEX ix_notes_ts ON notes (ts)")
    young = [CUTOFF + timedelta(hours=hours + 1) for hours in range(20)]
    young += [CUTOFF + timedelta(days=80, hours=hours) for hours in range(80)]
    for instant in young:
        run(url, "INSERT INTO notes (ts) VALUES (:ts)", ts=instant.isoformat())
    report = swept(store_of(url, tmp_path), keep(max_count=90))
    assert (report.expired, report.over_ceiling, report.kept) == (0, 10, 90)
    assert ids(url) == list(range(11, 101))


def test_a_lag_is_counted_from_the_age_and_not_from_the_floor(url: str, tmp_path: Path) -> None:
    """Of twelve rows of 200 days, minutes apart, two are due, and have been for 110 days."""
    start = NOW - timedelta(days=200)
    notes(url, *((number + 1, start + number * timedelta(minutes=1), None) for number in range(12)))
    lag = planned(store_of(url, tmp_path), keep(keep_last=10)).survey.lag
    assert lag == timedelta(days=110)
