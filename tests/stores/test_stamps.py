"""A timestamp in a name is read for what it says; what is none is not taken for one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import zip_longest
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepfor.stores.stamps import stamp, uniform
from keepfor.times import Known, Unknown


def at(text: str) -> Known:
    return Known(datetime.fromisoformat(text).replace(tzinfo=UTC), "name")


@pytest.mark.parametrize(
    ("name", "instant"),
    [
        ("rem-2026-07-25T23_00_00.000Z", "2026-07-25T23:00:00"),
        ("rem-2026-07-25T23:00:00.123Z", "2026-07-25T23:00:00.123"),
        ("2026-07-25T23_00_00.123456_00_00", "2026-07-25T23:00:00.123456"),
        ("2026-07-25T23_00_00_02_00", "2026-07-25T21:00:00"),
        ("2026-07-25T23_00_00-02:30", "2026-07-26T01:30:00"),
        ("2026-07-25T23_00_00-02_30", "2026-07-26T01:30:00"),
        ("2026-07-25T23_00_00+02_00", "2026-07-25T21:00:00"),
        ("2026-07-25T23_00_00-1234-abc", "2026-07-25T23:00:00"),
        ("2026-07-25t23_00_00z", "2026-07-25T23:00:00"),
        ("2026-07-25 23:00:00,5", "2026-07-25T23:00:00.5"),
        ("2026-07-25 23_00_00_123", "2026-07-25T23:00:00.123"),
        ("run-2026-07-25-23-00-00-a1", "2026-07-25T23:00:00"),
        ("2026-07-25_23.00.00", "2026-07-25T23:00:00"),
        ("20260725T230000Z", "2026-07-25T23:00:00"),
        ("run_20260725-230000", "2026-07-25T23:00:00"),
        ("20260725T230000.25+0200", "2026-07-25T21:00:00.25"),
        ("2026-07-25", "2026-07-25T23:59:59.999999"),
        ("report-2026-07-25-0042", "2026-07-25T23:59:59.999999"),
        ("2026-07-25T23_00_60Z", "2026-07-25T23:01:00"),
        ("2026-07-01-to-2026-07-25", "2026-07-01T23:59:59.999999"),
    ],
)
def test_a_timestamp_in_a_name_is_read(name: str, instant: str) -> None:
    """Every way in which programs put a time into a name is understood."""
    assert stamp(name) == at(instant)


@pytest.mark.parametrize(
    "name",
    [
        "rem-42",
        "1784088000000",
        "20260725",
        "3f8a20260725T230000Z",
        "20260725-0400-4000-8000-0123456789ab",
        "12026-07-25T23_00_00Z",
        "0726-07-25T23_00_00Z",
        "2026-13-25T23_00_00Z",
        "2026-02-30",
        "٢٠٢٦-07-25",
    ],
)
def test_what_is_no_timestamp_is_not_taken_for_one(name: str) -> None:
    """Numbers, hashes and days that never were are no instants: nothing is guessed from a name."""
    assert isinstance(stamp(name), Unknown)


def test_a_name_without_one_says_so() -> None:
    """Why a run is of unknown age is for a person to read."""
    assert stamp("rem-42") == Unknown("the name carries no timestamp")


def test_a_local_time_is_read_in_its_zone() -> None:
    """A name without an offset is read in the zone that the store says: two hours ahead in July."""
    assert stamp("2026-07-25T23_00_00", ZoneInfo("Europe/Berlin")) == at("2026-07-25T21:00:00")


HOURLY = [f"rem-2026-07-25T{hour:02}_00_00.000Z" for hour in range(24)]


def test_names_of_one_shape_are_read_at_once() -> None:
    """Names that begin alike, with a timestamp of one shape, give all their instants in order."""
    assert uniform(HOURLY) == [datetime(2026, 7, 25, hour, tzinfo=UTC) for hour in range(24)]
    assert uniform(["2026-07-25T23_00_00-b", "2026-07-25T22_59_59-aaa"]) == [
        datetime(2026, 7, 25, 23, tzinfo=UTC),
        datetime(2026, 7, 25, 22, 59, 59, tzinfo=UTC),
    ]


@pytest.mark.parametrize(
    "odd",
    [
        "index",
        "sem-2026-07-25T23_00_00.000Z",
        "rem-2026-07-25T23_00_00.0000Z",
        "rem-2026-07-25T23_00_00.000Z7",
        "rem-2026-07-25T23_00_00.000",
        "rem-2026-07-25T23_00_00.000z",
        "rem-2026-07-25T23_00_00.000-01_00",
        "rem-2026-13-25T23_00_00.000Z",
        "rem-2026-07-25T23_00_60.000Z",
        "rem-2026-07-25T23_00",
        "",
    ],
)
def test_one_name_of_another_shape_is_noticed(odd: str) -> None:
    """A single name that text order would put in the wrong place sends all the slow way."""
    assert uniform([*HOURLY, odd]) is None
    assert uniform([odd, *HOURLY]) is None


@pytest.mark.parametrize(
    "names",
    [
        [],
        ["2026-07-25"],
        ["2026-07-25T23_00_00_02_00"],
        ["20260725T230000Z"],
        ["2026-07-25T23.00.00Z"],
    ],
)
def test_what_text_does_not_order_is_left_to_the_slow_way(names: list[str]) -> None:
    """Offsets, days and shapes that the quick way does not know are read one by one."""
    assert uniform(names) is None


def test_local_times_are_left_to_the_slow_way() -> None:
    """Where clocks are set back, the order of local times is not that of instants."""
    names = ["2026-10-25T02_30_00", "2026-10-25T03_00_00"]
    assert uniform(names, ZoneInfo("Europe/Berlin")) is None
    assert uniform(names) is not None


@given(
    st.lists(
        st.datetimes(datetime.fromisoformat("1970-01-01"), datetime.fromisoformat("2199-12-31")),
        min_size=1,
        max_size=20,
    ),
    st.sampled_from(["", "Z"]),
    st.sampled_from(["", "-x", ".5"]),
)
def test_the_quick_way_reads_what_the_slow_way_reads(
    moments: list[datetime], zone: str, rests: list[str]
) -> None:
    """Whatever the quick way accepts, it reads as the slow way does, and text is in that order."""
    pairs = zip_longest(moments, rests[: len(moments)], fillvalue="")
    names = [f"r {moment:%Y-%m-%dT%H_%M_%S}{zone}{rest}" for moment, rest in pairs]
    quick = uniform(names)
    slow = [stamp(name) for name in names]
    if quick is not None:
        assert [Known(instant, "name") for instant in quick] == slow
        assert [name for _, name in sorted(zip(quick, names, strict=True))] == sorted(names)


@given(st.text(alphabet="0123456789-_:.TZ+ arx", max_size=40))
def test_no_name_is_too_strange_to_be_read(name: str) -> None:
    """Reading a name gives an instant or none, and never an error."""
    found = stamp(name)
    assert isinstance(found, Unknown) or found.instant.utcoffset() == timedelta()
