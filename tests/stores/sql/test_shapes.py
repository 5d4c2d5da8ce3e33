"""Time columns of every shape are compared with a cutoff as instants, in SQLite and PostgreSQL."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, and_, column, create_engine, not_, select, table, text
from sqlalchemy.dialects import postgresql
from sqlalchemy.pool import NullPool

from keepfor.stores.sql.shapes import NoShape, Shape, detect
from keepfor.times import Known, Unknown, parse_instant

TABLE = table("t", column("id"), column("ts"))
TS = TABLE.c.ts
BERLIN = ZoneInfo("Europe/Berlin")
NOON = datetime(2026, 7, 26, 12, tzinfo=UTC)

SQLITE = "sqlite://"
BOTH = ["sqlite", "postgresql"]


def at(moment: str) -> datetime:
    return datetime.fromisoformat(moment).replace(tzinfo=UTC)


@contextmanager
def holding(url: str, declared: str, values: Sequence[object]) -> Iterator[Connection]:
    """A table of which the column `ts` holds these values, under the ids 0, 1, ..."""
    with create_engine(url, poolclass=NullPool).begin() as connection:
        connection.exec_driver_sql(f"CREATE TABLE t (id INTEGER PRIMARY KEY, ts {declared})")
        fill(connection, values)
        yield connection
        connection.exec_driver_sql("DROP TABLE t")


def fill(connection: Connection, values: Sequence[object]) -> None:
    connection.exec_driver_sql("DELETE FROM t")
    if values:
        rows = [{"id": number, "ts": value} for number, value in enumerate(values)]
        connection.execute(TABLE.insert(), rows)


def shape_of(
    connection: Connection, declared: str, unit: str | None = None, zone: tzinfo = UTC
) -> Shape:
    """The shape that is detected from the whole column."""
    dialect = connection.dialect.name
    raw = detect(dialect, declared, [], unit, zone).raw(TS)
    samples = [row[0] for row in connection.execute(select(raw).where(TS.is_not(None)))]
    return detect(dialect, declared, samples, unit, zone)


def gone(connection: Connection, shape: Shape, cutoff: datetime) -> list[int]:
    """The ids of what is older: by SQL where that is certain, by reading what lies between."""
    sure, maybe = shape.edges(cutoff)
    older = select(TABLE.c.id).where(shape.older(TS, sure))
    unsure = and_(not_(shape.older(TS, sure)), shape.older(TS, maybe))
    ids = list(connection.execute(older).scalars())
    for id_, value in connection.execute(select(TABLE.c.id, shape.raw(TS)).where(unsure)):
        instant = shape.instant(value)
        if isinstance(instant, Known) and instant.instant < cutoff:
            ids.append(id_)
    return sorted(ids)


def odd(connection: Connection, shape: Shape) -> list[int]:
    """The ids of what is not of that shape."""
    wrong = select(TABLE.c.id).where(TS.is_not(None), not_(shape.fits(TS)))
    return sorted(connection.execute(wrong).scalars())


def check(
    url: str,
    declared: str,
    goes: Sequence[object],
    stays: Sequence[object],
    cutoff: datetime = NOON,
    unit: str | None = None,
    zone: tzinfo = UTC,
) -> Shape:
    """Of a column that holds all of these, which are of one shape, only some go."""
    with holding(url, declared, [*goes, *stays]) as connection:
        shape = shape_of(connection, declared, unit, zone)
        assert odd(connection, shape) == []
        assert gone(connection, shape, cutoff) == list(range(len(goes)))
    return shape


@pytest.fixture
def url(request: pytest.FixtureRequest) -> str:
    """A fresh database: `sqlite` or `postgresql`, as the test asks."""
    return SQLITE if request.param == "sqlite" else request.getfixturevalue("postgres_url")


#: By the name of the shape: what of it is older than noon of 26 July 2026 in UTC, and what is not.
TEXTS = {
    "text such as 2026-07-26 12:00:00.000000 in UTC": (
        ["2026-07-25 23:59:59.999999", "2026-07-26 11:59:59.999999", "2026-07-26 11:59:59"],
        ["2026-07-26 12:00:00.000000", "2026-07-26 12:00:00", "2026-07-26 12:00:00.000001"],
    ),
    "text such as 2026-07-26 12:00:00 in UTC": (
        ["2026-07-26 11:59:59"],
        ["2026-07-26 12:00:00", "2026-07-26 12:00:01", "9999-12-31 23:59:59"],
    ),
    "text such as 2026-07-26T12:00:00.000000 in UTC": (
        ["2026-07-26T11:59:59.999999", "2026-07-26T11:59:59"],
        ["2026-07-26T12:00:00", "2026-07-26T12:00:00.000000", "2026-07-26T12:00:00.000001"],
    ),
    "text such as 2026-07-26T12:00:00.000Z": (
        ["2026-07-26T11:59:59.999Z", "2026-07-26T11:59:59Z"],
        ["2026-07-26T12:00:00Z", "2026-07-26T12:00:00.000Z", "2026-07-26T12:00:00.001Z"],
    ),
    "text such as 2026-07-26 12:00:00Z": (["2026-07-26 11:59:59Z"], ["2026-07-26 12:00:00Z"]),
    "text such as 2026-07-26T12:00:00.000000+00:00, each with its own offset": (
        [
            "2026-07-26T13:59:59.999999+02:00",
            "2026-07-26T04:29:59-07:30",
            "2026-07-27T01:59:59.9+14:00",
            "2026-07-25T23:59:59-12:00",
            "2026-07-26T11:59:59.999999Z",
        ],
        [
            "2026-07-26T14:00:00+02:00",
            "2026-07-26T14:00:00.000001+02:00",
            "2026-07-26T04:30:00-07:30",
            "2026-07-27T02:00:00+14:00",
            "2026-07-26T00:00:00-12:00",
            "2026-07-26T12:00:00Z",
        ],
    ),
    "text such as 2026-07-26, the end of that day in UTC": (
        ["2026-07-24", "2026-07-25"],
        ["2026-07-26", "2026-07-27"],
    ),
}


@pytest.mark.parametrize("url", BOTH, indirect=True)
@pytest.mark.parametrize("name", TEXTS)
def test_text_that_is_one_tick_older_goes_and_on_the_cutoff_stays(url: str, name: str) -> None:
    """Text of each shape is compared as the instant that it means, however it is written."""
    goes, stays = TEXTS[name]
    assert check(url, "TEXT", goes, stays).name == name


@pytest.mark.parametrize("url", BOTH, indirect=True)
def test_a_fraction_in_the_cutoff_tells_within_a_second(url: str) -> None:
    """A cutoff within a second divides what is written with a fraction from what is not."""
    cutoff = at("2026-07-26T12:00:00.500000")
    for ending in ("", "Z", "+00:00"):
        goes = ["12:00:00", "12:00:00.4", "12:00:00.49", "12:00:00.499999", "11:59:59.9"]
        stays = ["12:00:00.5", "12:00:00.50", "12:00:00.500000", "12:00:00.500001", "12:00:01"]
        day = "2026-07-26T"
        check(
            url,
            "TEXT",
            [f"{day}{clock}{ending}" for clock in goes],
            [f"{day}{clock}{ending}" for clock in stays],
            cutoff,
        )


def test_the_order_of_a_language_changes_nothing() -> None:
    """Text is compared byte by byte, also in a database that sorts 5 before 49.

    The statement is looked at, since the server of the tests knows no language.
    """
    shape = detect("postgresql", "TEXT", ["2026-07-26 12:00:00.5"], None, UTC)
    dialect = postgresql.dialect()  # type: ignore[no-untyped-call]
    for condition in (shape.older(TS, "2026-07-26 12:00:00.49"), shape.fits(TS)):
        assert 't.ts COLLATE "C"' in str(condition.compile(dialect=dialect))


#: 2026-07-26T12:00:00Z in seconds since 1970: 20,660 days and a half.
SECONDS = 1_785_067_200


@pytest.mark.parametrize("url", BOTH, indirect=True)
@pytest.mark.parametrize(("unit", "ticks"), [("s", 1), ("ms", 10**3), ("us", 10**6), ("ns", 10**9)])
def test_numbers_are_compared_in_their_unit(url: str, unit: str, ticks: int) -> None:
    """The unit of whole numbers is told by their size; the one on the cutoff stays."""
    noon = SECONDS * ticks
    shape = check(url, "BIGINT", [noon - ticks, noon - 1], [noon, noon + 1, noon + ticks])
    assert shape.name == f"whole numbers, {unit} since 1970"
    assert shape.edges(NOON) == (noon, noon)


@pytest.mark.parametrize("url", BOTH, indirect=True)
def test_the_cutoff_may_lie_between_two_whole_numbers(url: str) -> None:
    """A second that began before the cutoff is older, as its instant is."""
    cutoff = NOON + timedelta(microseconds=1)
    check(url, "BIGINT", [SECONDS - 1, SECONDS], [SECONDS + 1], cutoff)
    check(url, "BIGINT", [SECONDS * 10**9 + 999], [SECONDS * 10**9 + 1000], cutoff)


@pytest.mark.parametrize(
    ("url", "declared"),
    [
        ("sqlite", "REAL"),
        ("sqlite", "DATETIME"),
        ("sqlite", ""),
        ("postgresql", "DOUBLE PRECISION"),
        ("postgresql", "NUMERIC(20, 6)"),
    ],
    indirect=["url"],
)
def test_numbers_with_a_fraction_are_compared_to_the_microsecond(url: str, declared: str) -> None:
    """A fraction means the microsecond that is nearest to it."""
    exact = Decimal if declared.startswith("NUMERIC") else float
    goes = [exact(f"{SECONDS - 1}.{fraction}") for fraction in ("0", "5", "999999")]
    stays = [exact(f"{SECONDS}.{fraction}") for fraction in ("0", "000001", "5")]
    assert check(url, declared, goes, stays).name == "numbers, s since 1970"
    goes, stays = [exact(f"{SECONDS * 1000 - 1}.999")], [exact(f"{SECONDS}000.{n}") for n in "01"]
    assert check(url, declared, goes, stays).name == "numbers, ms since 1970"


def test_a_fraction_below_the_microsecond_is_rounded_as_in_a_ledger() -> None:
    """What rounds to the cutoff is on it, though the number itself is a little less."""
    values = [SECONDS - 0.0000002, SECONDS - 0.000001]
    with holding(SQLITE, "REAL", values) as connection:
        assert gone(connection, shape_of(connection, "REAL"), NOON) == [1]


@pytest.mark.parametrize(
    ("declared", "goes", "stays", "name"),
    [
        (
            "TIMESTAMP WITH TIME ZONE",
            ["2026-07-26 11:59:59.999999+00", "2026-07-26 13:59:59+02"],
            ["2026-07-26 12:00:00+00", "2026-07-26 14:00:00+02", "2026-07-26 12:00:00.000001+00"],
            "timestamptz",
        ),
        (
            "TIMESTAMP WITHOUT TIME ZONE",
            ["2026-07-26 11:59:59.999999"],
            ["2026-07-26 12:00:00", "2026-07-26 12:00:00.000001", "9999-12-31 23:59:59.999999"],
            "timestamp in UTC",
        ),
        (
            "DATE",
            ["2026-07-25"],
            ["2026-07-26", "2026-07-27", "9999-12-31"],
            "date, the end of that day in UTC",
        ),
    ],
)
def test_types_for_times_are_compared_as_instants(
    postgres_url: str, declared: str, goes: list[str], stays: list[str], name: str
) -> None:
    """PostgreSQL's own types need no samples, and the setting of the session changes nothing."""
    with holding(postgres_url, declared, []) as connection:
        connection.exec_driver_sql("SET TimeZone = 'America/New_York'")
        connection.exec_driver_sql("SET DateStyle = 'German'")
        connection.execute(
            text(f"INSERT INTO t VALUES (:id, CAST(:ts AS {declared}))"),
            [{"id": number, "ts": value} for number, value in enumerate([*goes, *stays])],
        )
        shape = shape_of(connection, declared)
        assert shape.name == name
        assert odd(connection, shape) == []
        assert gone(connection, shape, NOON) == list(range(len(goes)))


@pytest.mark.parametrize("cutoff", ["2026-07-25T21:59:59.999999", "2026-07-25T22:00:00"])
@pytest.mark.parametrize(
    ("url", "declared"), [("sqlite", "TEXT"), ("postgresql", "DATE")], indirect=["url"]
)
def test_a_date_is_the_end_of_its_day_in_the_zone(url: str, declared: str, cutoff: str) -> None:
    """In Berlin 25 July ends at 22:00 UTC; a microsecond before, it is not over."""
    over = cutoff.endswith("22:00:00")
    days = ["2026-07-24", "2026-07-25", "2026-07-26"]
    with holding(url, declared, days) as connection:
        shape = shape_of(connection, declared, zone=BERLIN)
        assert gone(connection, shape, at(cutoff)) == ([0, 1] if over else [0])


#: Local times in Berlin around its changes of 2026, and the instants that they are read as.
CHANGES = {
    "2026-10-25": {
        "2026-10-25 01:59:59": "2026-10-24T23:59:59",
        # Twice on the clock: it is the later one.
        "2026-10-25 02:00:00": "2026-10-25T01:00:00",
        "2026-10-25 02:30:00": "2026-10-25T01:30:00",
        "2026-10-25 02:59:59": "2026-10-25T01:59:59",
        "2026-10-25 03:00:00": "2026-10-25T02:00:00",
    },
    "2026-03-29": {
        "2026-03-29 01:59:59": "2026-03-29T00:59:59",
        # Never on the clock: the later reading counts on in winter time.
        "2026-03-29 02:00:00": "2026-03-29T01:00:00",
        "2026-03-29 02:30:00": "2026-03-29T01:30:00",
        "2026-03-29 03:00:00": "2026-03-29T01:00:00",
        "2026-03-29 03:29:59": "2026-03-29T01:29:59",
        "2026-03-29 03:30:00": "2026-03-29T01:30:00",
    },
}


@pytest.mark.parametrize(
    ("url", "declared"),
    [("sqlite", "DATETIME"), ("postgresql", "TEXT"), ("postgresql", "TIMESTAMP WITHOUT TIME ZONE")],
    indirect=["url"],
)
@pytest.mark.parametrize("change", CHANGES)
def test_local_times_around_a_change_of_the_clocks(url: str, declared: str, change: str) -> None:
    """On the cutoff stays and one tick older goes, also in an hour shown twice or never."""
    instants = [at(instant) for instant in CHANGES[change].values()]
    with holding(url, declared, list(CHANGES[change])) as connection:
        shape = shape_of(connection, declared, zone=BERLIN)
        for instant in instants:
            for tick in (-1, 0, 1):
                cutoff = instant + timedelta(microseconds=tick)
                expected = [number for number, each in enumerate(instants) if each < cutoff]
                assert gone(connection, shape, cutoff) == expected


def test_local_times_away_from_a_change_need_no_reading() -> None:
    """SQL compares alone where no clock changes; where one does, an hour of rows is read."""
    shape = detect("sqlite", "DATETIME", ["2026-07-26 12:00:00"], None, BERLIN)
    assert shape.edges(NOON) == ("2026-07-26 14:00:00", "2026-07-26 14:00:00")
    change = at("2026-10-25T01:00:00")
    assert shape.edges(change) == ("2026-10-25 02:00:00", "2026-10-25 03:00:00")


@pytest.mark.parametrize(
    ("samples", "shape", "offending"),
    [
        (["2026-07-26 12:00:00", "2026-07-26 12:00:00Z", "2026-07-26 12:00:00"], " in UTC", [1]),
        (["2026-07-26T12:00:00", "2026-07-26T12:00:01", "2026-07-26 12:00:00"], " in UTC", [2]),
        (["2026-07-26", "2026-07-25", "2026-07-26 12:00:00"], "the end of that day", [2]),
        (["2026-07-26 12:00:00", SECONDS, "2026-07-26 12:00:00"], " in UTC", [1]),
        ([SECONDS, SECONDS, "2026-07-26 12:00:00"], "s since", [2]),
        ([SECONDS, SECONDS * 1000, SECONDS], "s since", [1]),
        (["2026-07-26 12:00:00", "0001-01-01 00:00:00"], " in UTC", [1]),
        (["2026-07-26 12:00:00", "yesterday", b"2026-07-26 12:00:00"], " in UTC", [1, 2]),
    ],
)
def test_samples_of_two_shapes_are_refused(
    samples: list[object], shape: str, offending: list[int]
) -> None:
    """A mixed column has no shape, and it is said which values differ from the others."""
    with pytest.raises(NoShape) as refused:
        detect("sqlite", "DATETIME", samples, None, UTC)
    assert shape in refused.value.shape
    assert refused.value.offending == tuple(offending)
    assert all(repr(samples[number]) in str(refused.value) for number in offending)


@pytest.mark.parametrize(
    "sample",
    [
        "07/26/2026",
        "2026-13-45",
        "2026-02-29 12:00:00",
        "2026-07-26 24:00:00",
        "2026-07-26 12:00:60",
        "2026-07-26 12:00",
        "2026-07-26 12:00:00 UTC",
        "2026-07-26 12:00:00+24:00",
        "1785067200",
        "1970-01-01 00:00:00",
        "",
        True,
        b"2026-07-26",
        math.inf,
        math.nan,
        Decimal("NaN"),
    ],
)
def test_what_is_no_plausible_time_is_refused(sample: object) -> None:
    """A value that a person would have to guess at is not guessed at."""
    with pytest.raises(NoShape, match="no plausible time"):
        detect("sqlite", "", [sample], None, UTC)


@pytest.mark.parametrize("number", [0, 20260726, 8 * 10**9, 10**13, -SECONDS])
def test_a_number_that_fits_no_unit_asks_for_one(number: int) -> None:
    """Numbers that come to no year from 1971 to 2200 are refused, saying to write `unit:`."""
    with pytest.raises(NoShape, match="set `unit:`"):
        detect("sqlite", "INTEGER", [number], None, UTC)


def test_a_unit_that_is_declared_is_the_only_one() -> None:
    """A declared unit may come to any year, and is not given up for a likelier one."""
    shape = detect("sqlite", "INTEGER", [8 * 10**9], "s", UTC)
    assert shape.name == "whole numbers, s since 1970"
    with pytest.raises(NoShape, match="set `unit:`"):
        detect("sqlite", "INTEGER", [SECONDS], "ms", UTC)


@pytest.mark.parametrize("declared", ["JSONB", "json", "TIME", "INTERVAL", "REAL", "BYTEA", "UUID"])
def test_a_type_that_cannot_hold_times_is_refused(declared: str) -> None:
    """PostgreSQL tells the type of a column, and one that holds no times is named."""
    with pytest.raises(NoShape, match=f"type is {declared},"):
        detect("postgresql", declared, [], None, UTC)


#: What does not belong into a column of text such as 2026-07-26 12:00:00.
ODD_TEXTS = [
    "2026-13-45",
    "2026-13-45 12:00:00",
    "2026-02-30 12:00:00",
    "2026-06-31 12:00:00",
    "2025-02-29 12:00:00",
    "1900-02-29 12:00:00",
    "2026-00-10 12:00:00",
    "2026-07-26 24:00:00",
    "2026-07-26 12:60:00",
    "2026-07-26 12:00:60",
    "2026-07-26 12:00",
    "2026-07-26",
    "2026-07-26T12:00:00",
    "2026-07-26  12:00:00",
    "2026-07-26 12:00:00.",
    "2026-07-26 12:00:00,5",
    "2026-07-26 12:00:00Z",
    "2026-07-26 12:00:00.5Z",
    "2026-07-26 12:00:00.12345Z",
    "2026-07-26 12:00:00+02:00",
    "2026-07-26 12:00:00.1-02:00",
    "2026-07-26 12:00:00.12+02:00",
    "2026-07-26 12:00:00.123+02:00",
    "2026-07-26 12:00:00 ",
    "2026-07-26 12:00:00\n",
    " 2026-07-26 12:00:00",
    "2026-07-26 12:00:0५",
    "07/26/2026",
    "yesterday",
    "now",
    "2461248.0",
    "1785067200",
    "0001-01-01 00:00:00",
    "1970-12-31 23:59:59",
    "-2026-07-26 12:00:00",
    "",
]
GOOD_TEXTS = ["2026-07-26 12:00:00", "2024-02-29 23:59:59.5", "2000-02-29 00:00:00.123456789"]


@pytest.mark.parametrize(
    ("url", "declared"),
    [("sqlite", "TEXT"), ("sqlite", "DATETIME"), ("sqlite", ""), ("postgresql", "TEXT")],
    indirect=["url"],
)
def test_odd_text_does_not_fit(url: str, declared: str) -> None:
    """Each value of another shape, or that is no time, is found by SQL, and no other."""
    odd_ones = [*ODD_TEXTS, *(["2026-07-26 12:00:00\0"] if url == SQLITE else [])]
    with holding(url, declared, [*odd_ones, *GOOD_TEXTS]) as connection:
        shape = detect(connection.dialect.name, declared, GOOD_TEXTS, None, UTC)
        assert odd(connection, shape) == list(range(len(odd_ones)))


@pytest.mark.parametrize("url", BOTH, indirect=True)
@pytest.mark.parametrize(
    ("good", "wrong"),
    [
        ("2026-07-26", ["2026-07-26 12:00", "2026-02-30", "20260726", "2026-7-26", "1970-01-01"]),
        ("2026-07-26T12:00:00Z", ["2026-07-26T12:00:00", "2026-07-26T12:00:00z",
                                  "2026-07-26 12:00:00Z", "2026-07-26T12:00:00 Z",
                                  "2026-07-26T12:00:00+00:00", "2026-07-26T12:00:00ZZ"]),
        ("2026-07-26T12:00:00+02:00", ["2026-07-26T12:00:00", "2026-07-26T12:00:00+15:00",
                                       "2026-07-26T12:00:00+02:60", "2026-07-26T12:00:00 +02:00",
                                       "2026-07-26T12:00:00+0200", "2026-07-26T12:00:00+02:00Z"]),
    ],
)  # fmt: skip
def test_text_of_each_shape_is_told_from_its_neighbours(
    url: str, good: str, wrong: list[str]
) -> None:
    """What looks almost like the others of a column does not fit."""
    with holding(url, "TEXT", [*wrong, good]) as connection:
        shape = detect(connection.dialect.name, "TEXT", [good], None, UTC)
        assert odd(connection, shape) == list(range(len(wrong)))


def test_odd_values_of_any_storage_class_do_not_fit() -> None:
    """SQLite keeps anything in any column: numbers, blobs and infinity are found among text."""
    odd_ones = [SECONDS, 1.5, math.inf, b"2026-07-26 12:00:00", 0]
    with holding(SQLITE, "", [*odd_ones, "2026-07-26 12:00:00", None]) as connection:
        shape = detect("sqlite", "", ["2026-07-26 12:00:00"], None, UTC)
        assert odd(connection, shape) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("whole", "odd_ones"),
    [
        (True, [SECONDS * 1000, SECONDS + 0.5, 0, -1, math.inf, "2026-07-26", str(SECONDS), b"1"]),
        (False, [SECONDS * 1000, 0.0, -math.inf, math.inf, "2026-07-26", str(SECONDS), b"1"]),
    ],
)
def test_odd_numbers_do_not_fit(whole: bool, odd_ones: list[object]) -> None:
    """Numbers of another unit, implausible ones, and what is no number, are found among seconds."""
    samples: list[object] = [SECONDS] if whole else [SECONDS, SECONDS + 0.5]
    with holding(SQLITE, "", [*odd_ones, *samples]) as connection:
        shape = detect("sqlite", "", samples, None, UTC)
        assert odd(connection, shape) == list(range(len(odd_ones)))


@pytest.mark.parametrize("declared", ["DOUBLE PRECISION", "NUMERIC"])
def test_numbers_that_are_none_do_not_fit(postgres_url: str, declared: str) -> None:
    """NaN and infinity stand above and below all numbers, and are no times."""
    values: list[Any] = ["NaN", "Infinity", "-Infinity", SECONDS, SECONDS * 1000]
    with holding(postgres_url, declared, []) as connection:
        connection.execute(
            text(f"INSERT INTO t VALUES (:id, CAST(CAST(:ts AS TEXT) AS {declared}))"),
            [{"id": number, "ts": str(value)} for number, value in enumerate(values)],
        )
        shape = detect("postgresql", declared, [Decimal(SECONDS)], None, UTC)
        assert odd(connection, shape) == [0, 1, 2, 4]
        read = [shape.instant(row[0]) for row in connection.execute(select(shape.raw(TS)))]
        assert [isinstance(each, Known) for each in read] == [False, False, False, True, False]


@pytest.mark.parametrize(
    "declared", ["TIMESTAMP WITH TIME ZONE", "TIMESTAMP WITHOUT TIME ZONE", "DATE"]
)
def test_infinity_and_the_year_one_do_not_fit(postgres_url: str, declared: str) -> None:
    """What PostgreSQL can hold and Python cannot is read as unknown, and never fits."""
    values = ["infinity", "-infinity", "0001-01-01", "0044-03-15 BC", "12026-01-01", "2026-07-26"]
    with holding(postgres_url, declared, []) as connection:
        connection.execute(
            text(f"INSERT INTO t VALUES (:id, CAST(CAST(:ts AS TEXT) AS {declared}))"),
            [{"id": number, "ts": value} for number, value in enumerate(values)],
        )
        shape = shape_of(connection, declared)
        assert odd(connection, shape) == [0, 1, 2, 3, 4]
        read = [shape.instant(row[0]) for row in connection.execute(select(shape.raw(TS)))]
        unknown = [number for number, each in enumerate(read) if isinstance(each, Unknown)]
        assert unknown == [0, 1, 3, 4]


@pytest.mark.parametrize(
    ("declared", "value"),
    [
        ("DATETIME", "2026-07-26 12:00:00.000000"),
        ("TEXT", "2026-07-26T12:00:00Z"),
        ("TEXT", "2026-07-26T12:00:00+02:00"),
        ("", "2026-07-26"),
        ("INTEGER", SECONDS),
        ("REAL", SECONDS + 0.5),
        ("", SECONDS * 1000),
    ],
)
def test_sqlite_finds_what_is_older_by_an_index(declared: str, value: object) -> None:
    """The comparison is one that an index on the column answers."""
    with holding(SQLITE, declared, [value]) as connection:
        connection.exec_driver_sql("CREATE INDEX i ON t (ts)")
        shape = shape_of(connection, declared)
        query = select(TABLE.c.id).where(shape.older(TS, shape.edges(NOON)[0]))
        plan = connection.execute(_explained(connection, "EXPLAIN QUERY PLAN ", query)).all()
        assert "USING COVERING INDEX i (ts<?)" in str(plan)


@pytest.mark.parametrize(
    ("declared", "value"),
    [
        ("TIMESTAMP WITH TIME ZONE", NOON),
        ("TIMESTAMP WITHOUT TIME ZONE", datetime(2026, 7, 26)),  # noqa: DTZ001 - as it is stored
        ("DATE", date(2026, 7, 26)),
        ("BIGINT", SECONDS * 1000),
        ("INTEGER", SECONDS),
        ("DOUBLE PRECISION", SECONDS + 0.5),
        ("NUMERIC", SECONDS),
        ('TEXT COLLATE "C"', "2026-07-26T12:00:00Z"),
    ],
)
def test_postgresql_finds_what_is_older_by_an_index(
    postgres_url: str, declared: str, value: object
) -> None:
    """The comparison is one that an index on the column answers, for each type."""
    with holding(postgres_url, declared, [value]) as connection:
        connection.exec_driver_sql("CREATE INDEX i ON t (ts)")
        connection.exec_driver_sql("SET enable_seqscan = off")
        connection.exec_driver_sql("SET enable_bitmapscan = off")
        shape = shape_of(connection, declared.partition(" COLLATE")[0])
        query = select(TABLE.c.id).where(shape.older(TS, shape.edges(NOON)[0]))
        plan = connection.execute(_explained(connection, "EXPLAIN ", query)).scalars().all()
        assert "Index Cond: (ts <" in "\n".join(plan)


def _explained(connection: Connection, how: str, query: Any) -> Any:
    return text(how + str(query.compile(connection, compile_kwargs={"literal_binds": True})))


@pytest.mark.parametrize(
    ("samples", "zone", "written"),
    [
        (["2026-01-01 00:00:00.000000"], UTC, "2026-07-26 12:00:00.123456"),
        (["2026-01-01 00:00:00"], UTC, "2026-07-26 12:00:00"),
        (["2026-01-01 00:00:00"], BERLIN, "2026-07-26 14:00:00"),
        (["2026-01-01T00:00:00.000Z", "2026-01-01T00:00:00Z"], BERLIN, "2026-07-26T12:00:00.123Z"),
        (["2026-01-01T00:00:00+02:00"], UTC, "2026-07-26T12:00:00+00:00"),
        (["2026-01-01"], UTC, "2026-07-26"),
        ([SECONDS], UTC, SECONDS),
        ([SECONDS * 1000], UTC, SECONDS * 1000 + 123),
        ([SECONDS + 0.5], UTC, SECONDS + 0.123456),
    ],
)
def test_an_instant_is_written_as_the_column_holds_others(
    samples: list[object], zone: tzinfo, written: object
) -> None:
    """A row that is put into the table looks like the rows that are there."""
    shape = detect("sqlite", "", samples, None, zone)
    value = shape.write(at("2026-07-26T12:00:00.123456"))
    assert (value, type(value)) == (written, type(written))


@pytest.mark.parametrize(
    ("declared", "held"),
    [
        ("TIMESTAMP WITH TIME ZONE", "2026-07-26T22:30:00+00:00"),
        ("TIMESTAMP WITHOUT TIME ZONE", "2026-07-27T00:30:00"),
        ("DATE", "2026-07-27"),
    ],
)
def test_an_instant_is_written_in_the_zone_of_the_store(
    postgres_url: str, declared: str, held: str
) -> None:
    """PostgreSQL's types hold what the store's zone makes of an instant, late in the evening."""
    with holding(postgres_url, declared, []) as connection:
        connection.exec_driver_sql("SET TimeZone = 'UTC'")
        shape = shape_of(connection, declared, zone=BERLIN)
        value = shape.write(at("2026-07-26T22:30:00"))
        assert isinstance(value, datetime) == (declared != "DATE")
        fill(connection, [value])
        assert connection.execute(select(shape.raw(TS))).scalar_one() == held


@pytest.mark.parametrize(
    ("dialect", "declared", "unit", "name"),
    [
        ("sqlite", "DATETIME", None, "text such as 2026-07-26 12:00:00.000000 in UTC"),
        ("sqlite", "DATE", None, "text such as 2026-07-26, the end of that day in UTC"),
        ("sqlite", "INTEGER", "ms", "whole numbers, ms since 1970"),
        ("postgresql", "BIGINT", "s", "whole numbers, s since 1970"),
        ("postgresql", "timestamp(3) with time zone", None, "timestamptz"),
    ],
)
def test_an_empty_column_is_expected_to_hold_what_its_type_says(
    dialect: str, declared: str, unit: str | None, name: str
) -> None:
    """Where no row has a time yet, the type and the unit tell how one would be written."""
    assert detect(dialect, declared, [], unit, UTC).name == name


@pytest.mark.parametrize("declared", ["TEXT", "INTEGER", ""])
def test_of_an_empty_column_nothing_is_guessed(declared: str) -> None:
    """Where nothing tells the shape, nothing is old, nothing fits, and nothing is written."""
    shape = detect("sqlite", declared, [], None, UTC)
    with holding(SQLITE, declared, ["2026-01-01", SECONDS]) as connection:
        assert gone(connection, shape, NOON) == []
        assert odd(connection, shape) == [0, 1]
    assert isinstance(shape.instant("2026-01-01"), Unknown)
    with pytest.raises(NoShape, match="wait for the first row"):
        shape.write(NOON)


def test_a_cutoff_at_either_end_of_time_is_compared() -> None:
    """`forever` and the end of the calendar are cutoffs like any other."""
    zone = ZoneInfo("Pacific/Kiritimati")
    for sample in (
        "2026-07-26 12:00:00",
        "2026-07-26",
        "2026-07-26T12:00:00+02:00",
        SECONDS * 10**9,
    ):
        with holding(SQLITE, "", [sample]) as connection:
            shape = shape_of(connection, "", zone=zone)
            assert gone(connection, shape, datetime.min.replace(tzinfo=UTC)) == []
            assert gone(connection, shape, datetime.max.replace(tzinfo=UTC)) == [0]


# --- whatever the instant -----------------------------------------------------------------

ZONES = ["UTC", "Europe/Berlin", "Australia/Lord_Howe", "America/St_Johns"]
#: Around a change of the clocks in each of the zones, and anywhere else.
INSTANTS = st.one_of(
    st.sampled_from(
        ["2026-03-29T01:00", "2026-10-25T01:00", "2026-04-04T15:00", "2026-03-08T05:30"]
    ).flatmap(
        lambda change: st.integers(-7200, 7200).map(
            lambda seconds: at(change) + timedelta(seconds=seconds)
        )
    ),
    st.datetimes(datetime(1971, 2, 1), datetime(2199, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
)
DELTAS = st.one_of(
    st.integers(-3, 3).map(lambda micros: timedelta(microseconds=micros)),
    st.integers(-3, 3).map(lambda millis: timedelta(milliseconds=millis)),
    st.timedeltas(timedelta(hours=-30), timedelta(hours=30)),
)
OFFSETS = st.integers(-12 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))


def _naive(separator: str) -> Any:
    return lambda instant, zone: instant.astimezone(zone).replace(tzinfo=None).isoformat(separator)


def _in(unit: int) -> Any:
    return lambda instant, zone: (instant - at("1970-01-01")) // timedelta(microseconds=1) // unit


#: How a value is made of an instant; the unit that it is read in.
WRITERS: dict[str, tuple[Any, str | None]] = {
    "naive": (_naive(" "), None),
    "with a T": (_naive("T"), None),
    "with a Z": (lambda instant, zone: _naive("T")(instant, UTC) + "Z", None),
    "date": (lambda instant, zone: instant.astimezone(zone).date().isoformat(), None),
    "s": (_in(10**6), "s"),
    "ms": (_in(1000), "ms"),
    "us": (_in(1), "us"),
    "ns": (lambda instant, zone: _in(1)(instant, zone) * 1000 + 7, "ns"),
    "real s": (lambda instant, zone: instant.timestamp(), "s"),
    "real ms": (lambda instant, zone: instant.timestamp() * 1000, "ms"),
}


def agrees(
    connection: Connection, declared: str, values: Sequence[object], moment: datetime,
    unit: str | None, zone: tzinfo,
) -> None:  # fmt: skip
    """What goes is what a ledger's rows with such times would lose."""
    fill(connection, values)
    shape = shape_of(connection, declared, unit, zone)
    assert odd(connection, shape) == []
    read = [parse_instant(value, source="ts", zone=zone, unit=unit) for value in values]
    instants = [each.instant for each in read if isinstance(each, Known)]
    for cutoff in [moment, *instants]:
        expected = [number for number, each in enumerate(instants) if each < cutoff]
        assert gone(connection, shape, cutoff) == expected


@pytest.mark.parametrize("form", WRITERS)
def test_in_sqlite_sql_and_reading_come_to_the_instants(form: str) -> None:
    """Whatever the instants, the cutoff and the zone: just what is older goes."""
    write, unit = WRITERS[form]
    with holding(SQLITE, "", []) as connection:

        @settings(max_examples=40)
        @given(INSTANTS, st.lists(DELTAS, min_size=1, max_size=5), st.sampled_from(ZONES))
        def holds(cutoff: datetime, deltas: list[timedelta], name: str) -> None:
            zone = ZoneInfo(name)
            values = [write(cutoff + delta, zone) for delta in deltas]
            agrees(connection, "", values, cutoff, unit, zone)

        holds()


@pytest.mark.parametrize("url", BOTH, indirect=True)
def test_offsets_may_differ_from_row_to_row(url: str) -> None:
    """Whatever the offset of each row: just what is older goes."""
    with holding(url, "TEXT", []) as connection:

        @settings(max_examples=40)
        @given(INSTANTS, st.lists(st.tuples(DELTAS, OFFSETS), min_size=1, max_size=5))
        def holds(cutoff: datetime, rows: list[tuple[timedelta, timezone]]) -> None:
            values = [(cutoff + delta).astimezone(offset).isoformat() for delta, offset in rows]
            agrees(connection, "TEXT", values, cutoff, None, UTC)

        holds()


@pytest.mark.parametrize(
    ("declared", "form"),
    [
        ("TEXT", "naive"),
        ("TEXT", "with a Z"),
        ("TEXT", "date"),
        ("BIGINT", "ms"),
        ("BIGINT", "ns"),
        ("DOUBLE PRECISION", "real s"),
        ("DOUBLE PRECISION", "real ms"),
        ("TIMESTAMP WITHOUT TIME ZONE", "naive"),
        ("TIMESTAMP WITH TIME ZONE", "with a Z"),
        ("DATE", "date"),
    ],
)
def test_in_postgresql_sql_and_reading_come_to_the_instants(
    postgres_url: str, declared: str, form: str
) -> None:
    """Whatever the instants, the cutoff and the zone: just what is older goes."""
    write, unit = WRITERS[form]
    with holding(postgres_url, declared, []) as connection:

        @settings(max_examples=25)
        @given(INSTANTS, st.lists(DELTAS, min_size=1, max_size=5), st.sampled_from(ZONES))
        def holds(cutoff: datetime, deltas: list[timedelta], name: str) -> None:
            zone = ZoneInfo(name)
            values = [write(cutoff + delta, zone) for delta in deltas]
            agrees(connection, declared, values, cutoff, unit, zone)

        holds()


PARTS = st.tuples(
    st.sampled_from([1, 1900, 1970, 1971, 2000, 2024, 2026, 9999]),
    st.integers(0, 13),
    st.integers(0, 32),
    st.sampled_from([" ", "T", "  ", ""]),
    st.integers(0, 24),
    st.integers(0, 60),
    st.integers(0, 60),
    st.sampled_from(["", ".", ".5", ".123456", ".1234567", ".5.5", " "]),
    st.sampled_from(["", "Z", "z", "+02:00", "-14:59", "+15:00", "+0200", " ", "\n", "\0"]),
)


@pytest.mark.parametrize(
    "good", ["2026-07-26 12:00:00", "2026-07-26T12:00:00Z", "2026-07-26T12:00:00+02:00"]
)
def test_what_fits_in_sqlite_is_what_is_detected(good: str) -> None:
    """What SQL takes for a time of a shape is what the detection does, and it can be read."""
    shape = detect("sqlite", "", [good], None, UTC)
    with holding(SQLITE, "", []) as connection:

        @given(PARTS)
        def holds(parts: Any) -> None:
            year, month, day, between, hour, minute, second, *rest = parts
            value = f"{year:04}-{month:02}-{day:02}{between}{hour:02}:{minute:02}:{second:02}"
            value += "".join(rest)
            fill(connection, [value])
            try:
                same = detect("sqlite", "", [good, value], None, UTC).ending == shape.ending  # type: ignore[attr-defined]
            except NoShape:
                same = False
            assert (odd(connection, shape) == []) == same
            assert not same or isinstance(shape.instant(value), Known)

        holds()
