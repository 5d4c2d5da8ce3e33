"""Durations and instants: what is read, what is refused, and what counts as unknown."""

from __future__ import annotations

import json
import pickle
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from keepfor import times
from keepfor.errors import BadDuration, BadInstant, ConfigError
from keepfor.times import Known, Unknown, parse_duration, parse_instant

BERLIN = ZoneInfo("Europe/Berlin")
NEW_YORK = ZoneInfo("America/New_York")

HOUR, MINUTE, SECOND = 3600, 60, 1
#: In seconds, worked out by hand; a day is 86,400.
DURATIONS = {
    "90d": 7_776_000,
    "12h": 43_200,
    "30min": 1_800,
    "45s": 45,
    "1d12h": 129_600,
    "2w": 1_209_600,
    "1w1d1h1min1s": 694_861,
    "1d": 86_400,
    "P90D": 7_776_000,
    "P2W": 1_209_600,
    "PT12H": 43_200,
    "PT30M": 1_800,
    "P1DT12H": 129_600,
    "PT1H1M1S": 3_661,
    "36500d": 3_153_600_000,
}


@pytest.mark.parametrize(("text", "seconds"), DURATIONS.items())
def test_a_duration_is_read_as_written(text: str, seconds: int) -> None:
    """Each way to write a duration means what a person would say it means."""
    duration = parse_duration(text)
    assert duration is not None
    assert (duration.days * 86_400 + duration.seconds, duration.microseconds) == (seconds, 0)


def test_forever_is_how_one_says_never() -> None:
    """`forever` expires nothing, and only in that spelling."""
    assert parse_duration("forever") is None
    for near in ("Forever", "never", "none", " forever"):
        with pytest.raises(BadDuration, match='"forever"'):
            parse_duration(near)


def test_a_timedelta_is_taken_as_it_is() -> None:
    """A program may hand over a timedelta, held to the same bounds."""
    assert parse_duration(timedelta(hours=5)) == timedelta(hours=5)
    for refused in (timedelta(), timedelta(days=-1)):
        with pytest.raises(BadDuration, match="nothing would be kept"):
            parse_duration(refused)
    with pytest.raises(BadDuration, match="more than a hundred years"):
        parse_duration(timedelta(days=36_501))


#: What a person might write, what is wrong with it, and what to write instead.
REFUSED: list[tuple[object, str, str]] = [
    ("0d", "nothing would be kept", '"90d"'),
    ("0h0min", "nothing would be kept", '"90d"'),
    ("PT0S", "nothing would be kept", '"90d"'),
    ("-90d", "it is negative", '"90d"'),
    ("-90", "it is negative", '"90d"'),
    ("90", "it has no unit", '"90d"'),
    ("+7", "it has no unit", '"7d"'),
    (90, "it has no unit", '"90d"'),
    (7, "it has no unit", '"7d"'),
    (0, "it has no unit", '"90d"'),
    (1, "it has no unit", '"1d"'),
    (-3, "it has no unit", '"90d"'),
    (90.0, "it has no unit", '"90d"'),
    (True, "it has no unit", '"90d"'),
    (None, "it has no unit", '"90d"'),
    ([], "it has no unit", '"90d"'),
    ("30m", "m could be minutes or months", '"30min" for minutes, or days for months ("900d")'),
    ("3mo", "months differ in length", '"90d"'),
    ("3 months", "months differ in length", '"90d"'),
    ("P3M", "months differ in length", '"90d"'),
    ("P1M2D", "months differ in length", '"30d"'),
    ("2y", "years differ in length", '"730d"'),
    ("1 year", "years differ in length", '"365d"'),
    ("P1Y", "years differ in length", '"365d"'),
    ("1.5d", "fractions are not understood", '"1d12h"'),
    ("90days", "'days' is not a unit", '"90d"'),
    ("+90d", "it has a space or a sign in it", '"90d"'),
    ("90D", "'D' is not a unit", '"90d"'),
    ("2weeks", "'weeks' is not a unit", '"2w"'),
    ("12hours", "'hours' is not a unit", '"12h"'),
    ("30mins", "'mins' is not a unit", '"30min"'),
    ("45sec", "'sec' is not a unit", '"45s"'),
    ("90 d", "it has a space or a sign in it", '"90d"'),
    (" 90d", "it has a space or a sign in it", '"90d"'),
    ("90d\n", "it has a space or a sign in it", '"90d"'),
    ("500ms", "it is not a number with a unit", '"90d"'),
    ("12h1d", "it is not a number with a unit", '"1d12h"'),
    ("1d 12h", "it is not a number with a unit", '"1d12h"'),
    ("", "it is not a number with a unit", '"90d"'),
    ("P", "it is not a number with a unit", '"P90D"'),
    ("PT", "it is not a number with a unit", '"P90D"'),
    ("P1DT", "it is not a number with a unit", '"P90D"'),
    ("p90d", "it is not a number with a unit", '"P90D"'),
    ("ninety days", "it is not a number with a unit", '"90d"'),
    ("\u0669\u0660d", "it is not a number with a unit", '"90d"'),
    ("36501d", "more than a hundred years", '"forever"'),
    ("99999999999999d", "more than a hundred years", '"forever"'),
    ("9" * 5000 + "d", "more than a hundred years", '"forever"'),
]


@pytest.mark.parametrize(("value", "why", "fix"), REFUSED, ids=lambda value: repr(value)[:30])
def test_a_duration_that_could_be_a_slip_is_refused(value: object, why: str, fix: str) -> None:
    """What is not plainly a duration is refused, with the reason and what to write instead."""
    with pytest.raises(BadDuration) as refusal:
        parse_duration(value)
    assert why in str(refusal.value)
    assert fix in str(refusal.value).partition("Write ")[2]


def test_a_refusal_is_one_plain_sentence_with_a_way_out() -> None:
    """What was written, what is wrong with it, and what to write: word for word."""
    above = 'Write a duration above zero, such as "90d", or "forever".'
    for value, expected in (
        ("0d", f"'0d' is not a duration: nothing would be kept. {above}"),
        (
            "36501d",
            "'36501d' is not a duration: it is more than a hundred years. Write \"forever\".",
        ),
    ):
        with pytest.raises(BadDuration) as refusal:
            parse_duration(value)
        assert str(refusal.value) == expected
    for days, expected in (
        (0, f"0 is not a duration: nothing would be kept. {above}"),
        ("x", "'x' is not a duration: it is not a number of days. Write a number such as 90."),
    ):
        with pytest.raises(BadDuration) as refusal:
            times.days_duration(days)
        assert str(refusal.value) == expected


def test_days_may_be_a_bare_number_where_the_key_names_the_unit() -> None:
    """Under `max_age_days` a number is a number of days, fractions included."""
    assert times.days_duration(90) == timedelta(seconds=7_776_000)
    assert times.days_duration(0.5) == timedelta(seconds=43_200)


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (0, "nothing would be kept"),
        (-1, "nothing would be kept"),
        (-1e300, "nothing would be kept"),
        (float("-inf"), "nothing would be kept"),
        (36_501, "more than a hundred years"),
        (10**30, "more than a hundred years"),
        (float("inf"), "more than a hundred years"),
        (float("nan"), "not a number of days"),
        (True, "not a number of days"),
        ("90", "not a number of days"),
        (None, "not a number of days"),
    ],
)
def test_a_number_of_days_is_refused_like_a_duration(value: object, why: str) -> None:
    """Zero, negatives, and what is no number at all expire nothing by mistake."""
    with pytest.raises(BadDuration, match=why):
        times.days_duration(value)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (7_776_000, "90d"),
        (129_600, "1d12h"),
        (694_861, "8d1h1min1s"),
        (1_800, "30min"),
        (59, "59s"),
        (86_399, "23h59min59s"),
        (0, "0s"),
    ],
)
def test_a_duration_is_shown_as_a_policy_would_write_it(seconds: int, text: str) -> None:
    """Every message shows a duration in the words that a policy takes."""
    assert times.format_duration(timedelta(seconds=seconds)) == text


def test_no_duration_is_shown_as_forever() -> None:
    """What never expires is shown by the word that says so."""
    assert times.format_duration(None) == "forever"


@given(st.integers(min_value=1, max_value=36_500 * 86_400))
def test_a_shown_duration_reads_back_the_same(seconds: int) -> None:
    """What keepfor prints as a duration can be copied into a policy and means the same."""
    duration = timedelta(seconds=seconds)
    assert parse_duration(times.format_duration(duration)) == duration


@given(st.text())
def test_no_text_makes_a_duration_of_nothing(text: str) -> None:
    """A text is a duration above zero, `forever`, or refused; never anything else."""
    try:
        duration = parse_duration(text)
    except BadDuration:
        return
    assert text == "forever" if duration is None else duration > timedelta()


# --- instants -----------------------------------------------------------------------------

#: Worked out by hand, in UTC.
TEXTS = {
    "2026-07-26T12:00:00+00:00": (2026, 7, 26, 12, 0, 0, 0),
    "2026-07-26T12:00:00Z": (2026, 7, 26, 12, 0, 0, 0),
    "2026-07-26T12:00:00z": (2026, 7, 26, 12, 0, 0, 0),
    "2026-07-26t12:00:00Z": (2026, 7, 26, 12, 0, 0, 0),
    "2026-07-26t12:00:00z": (2026, 7, 26, 12, 0, 0, 0),
    "2026-07-26 12:00:00": (2026, 7, 26, 12, 0, 0, 0),
    "2026-07-26T12:00": (2026, 7, 26, 12, 0, 0, 0),
    "2026-07-26T12": (2026, 7, 26, 12, 0, 0, 0),
    "2026-07-26T12:00:00.5": (2026, 7, 26, 12, 0, 0, 500_000),
    "2026-07-26T12:00:00,25Z": (2026, 7, 26, 12, 0, 0, 250_000),
    "2026-07-26T12:00:00.123456789Z": (2026, 7, 26, 12, 0, 0, 123_456),
    "20260726T120000Z": (2026, 7, 26, 12, 0, 0, 0),
    "2026-W30-7T12:00:00": (2026, 7, 26, 12, 0, 0, 0),
    "2026-07-26T12:00:00+02:00": (2026, 7, 26, 10, 0, 0, 0),
    "2026-07-26T01:00:00+0200": (2026, 7, 25, 23, 0, 0, 0),
    "2026-07-25T20:00:00-05:30": (2026, 7, 26, 1, 30, 0, 0),
    "2026-07-26T12:00:00-00:00": (2026, 7, 26, 12, 0, 0, 0),
    # Midnight that is written out is midnight, not a date.
    "2026-07-26T00:00:00": (2026, 7, 26, 0, 0, 0, 0),
    "2026-07-26T00": (2026, 7, 26, 0, 0, 0, 0),
    # A date alone is the end of its day.
    "2026-07-26": (2026, 7, 26, 23, 59, 59, 999_999),
    "20260726": (2026, 7, 26, 23, 59, 59, 999_999),
    "2026-W30-7": (2026, 7, 26, 23, 59, 59, 999_999),
    "2026-W30": (2026, 7, 20, 23, 59, 59, 999_999),
    # The leap second is the first of the next minute, as in POSIX time.
    "2016-12-31T23:59:60Z": (2017, 1, 1, 0, 0, 0, 0),
    "2016-12-31t23:59:60z": (2017, 1, 1, 0, 0, 0, 0),
    "2016-12-31 23:59:60.25Z": (2017, 1, 1, 0, 0, 0, 250_000),
    "2017-01-01T00:59:60+01:00": (2017, 1, 1, 0, 0, 0, 0),
    "2016-12-31T23:59:60": (2017, 1, 1, 0, 0, 0, 0),
    # Offsets that lead out of the years 1 to 9999 stop at the edge.
    "0001-01-01T00:00:00+23:59": (1, 1, 1, 0, 0, 0, 0),
    "9999-12-31T23:00:00-05:00": (9999, 12, 31, 23, 59, 59, 999_999),
    "9999-12-31T23:59:60Z": (9999, 12, 31, 23, 59, 59, 999_999),
}


@pytest.mark.parametrize(("text", "expected"), TEXTS.items())
def test_a_timestamp_is_read_as_its_standards_say(text: str, expected: tuple[int, ...]) -> None:
    """ISO 8601 as Python takes it, and RFC 3339 beyond that, come to one instant in UTC."""
    year, month, day, hour, minute, second, micro = expected
    instant = datetime(year, month, day, hour, minute, second, micro, tzinfo=UTC)
    assert parse_instant(text, source="ts") == Known(instant, "ts")


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "yesterday", "2026", "2026-07", "26.07.2026", "07/26/2026", "1785024000"),
        *("2026-02-30", "2026-13-01", "0000-01-01", "10000-01-01", "-2026-07-26", " 2026-07-26"),
        *("2026-07-26 ", "2026-07-26T25:00:00", "2026-07-26T12:00:61Z", "2026-07-26T12:60:00Z"),
        *("2026-07-26T12:00:60+24:00", "2026-07-26T12:00:00+24:00"),
        *("z", "Z", "\ud800", "2026-02-30T23:59:60Z", "NaN", "null"),
    ],
    ids=ascii,
)
def test_a_text_that_is_no_timestamp_is_unknown(text: str) -> None:
    """A text that cannot be read is neither old nor young, and the field is named."""
    match parse_instant(text, source="meta.ts"):
        case Unknown(why):
            assert why.startswith("meta.ts is ")
            assert why.endswith(", not a timestamp")
        case known:
            pytest.fail(f"{known} was read out of {text!r}")


@pytest.mark.parametrize(
    "text", ["1712011200000", "171201120000000.5", "20260726012", "1712011200000.5"]
)
def test_a_number_in_quotes_is_not_a_date_of_long_ago(text: str) -> None:
    """Milliseconds in quotes, of 2024, are not read as a day of the year 1712."""
    assert isinstance(parse_instant(text, source="ts"), Unknown)


@pytest.mark.parametrize(
    ("text", "utc"),
    [
        ("2026-07-26T12:00:00", "2026-07-26T10:00:00"),  # summer: UTC+2
        ("2026-01-15T12:00:00", "2026-01-15T11:00:00"),  # winter: UTC+1
        ("2026-07-26T12:00:00Z", "2026-07-26T12:00:00"),  # says its own zone
        ("2026-07-26", "2026-07-26T21:59:59.999999"),  # the end of the day there
        # The hour that is there twice: 02:30 at UTC+2 is 00:30, at UTC+1 is 01:30, the later.
        ("2026-10-25T02:30:00", "2026-10-25T01:30:00"),
        ("2026-10-25T01:59:59", "2026-10-24T23:59:59"),
        ("2026-10-25T03:00:00", "2026-10-25T02:00:00"),
        # The hour that is skipped: at UTC+1 it is 01:30, at UTC+2 00:30; again the later.
        ("2026-03-29T02:30:00", "2026-03-29T01:30:00"),
        ("2026-03-29T01:59:59", "2026-03-29T00:59:59"),
        ("2026-03-29T03:00:00", "2026-03-29T01:00:00"),
    ],
)
def test_a_local_time_is_read_in_the_stores_zone(text: str, utc: str) -> None:
    """A naive time belongs to the store's zone; of two readings the later one keeps longer."""
    expected = datetime.fromisoformat(utc).replace(tzinfo=UTC)
    assert parse_instant(text, source="ts", zone=BERLIN) == Known(expected, "ts")


def test_the_edges_of_the_calendar_hold_in_any_zone() -> None:
    """A local time that no UTC time stands for is the first or last there is, not an error."""
    last = parse_instant("9999-12-31", source="ts", zone=NEW_YORK)
    assert last == Known(datetime.max.replace(tzinfo=UTC), "ts")
    first = parse_instant("0001-01-01T00:00:00", source="ts", zone=BERLIN)
    assert first == Known(datetime.min.replace(tzinfo=UTC), "ts")


@pytest.mark.parametrize(
    ("value", "unit", "expected"),
    [
        # 1,785,024,000 s = 20,660 days = 2026-07-26T00:00:00Z
        (1_785_024_000, "s", "2026-07-26T00:00:00"),
        (1_785_024_000.0, "s", "2026-07-26T00:00:00"),
        (1_785_024_000.1, "s", "2026-07-26T00:00:00.100000"),
        (1_785_024_000_000, "ms", "2026-07-26T00:00:00"),
        (1_785_024_000_001, "ms", "2026-07-26T00:00:00.001000"),
        (1_785_024_000_000.5, "ms", "2026-07-26T00:00:00.000500"),
        (1_785_024_000_000_001, "us", "2026-07-26T00:00:00.000001"),
        (1_785_024_000_000_001.0, "us", "2026-07-26T00:00:00.000001"),
        # Less than a microsecond is dropped from a whole number.
        (1_785_024_000_000_000_999, "ns", "2026-07-26T00:00:00"),
        (1_785_024_000_000_001_000, "ns", "2026-07-26T00:00:00.000001"),
        (31_536_000, "s", "1971-01-01T00:00:00"),
    ],
)
def test_a_number_is_read_in_the_unit_that_is_set(value: float, unit: str, expected: str) -> None:
    """Epoch numbers, whole or not, come to the instant that they count to."""
    instant = datetime.fromisoformat(expected).replace(tzinfo=UTC)
    assert parse_instant(value, source="ts", unit=unit) == Known(instant, "ts")


@pytest.mark.parametrize(
    ("value", "unit"),
    [
        (1_785_024_000, "ms"),  # seconds
        (1_785_024_000, "us"),
        (1_785_024_000, "ns"),
        (1_785_024_000_000, "s"),  # milliseconds
        (1_785_024_000_000, "us"),
        (1_785_024_000_000, "ns"),
        (1_785_024_000_000_000, "s"),  # microseconds
        (1_785_024_000_000_000, "ms"),
        (1_785_024_000_000_000, "ns"),
        (1_785_024_000_000_000_000, "s"),  # nanoseconds
        (1_785_024_000_000_000_000, "ms"),
        (1_785_024_000_000_000_000, "us"),
        (0, "s"),
        (-1, "s"),
        (31_535_999, "s"),
        (float("nan"), "s"),
        (float("inf"), "s"),
        (float("-inf"), "ms"),
        (1e300, "s"),
        (-1e300, "s"),
        (10**400, "s"),
        (-(10**5000), "ns"),
    ],
    ids=lambda value: str(value)[:24] if not isinstance(value, int) else f"{len(hex(value))}x",
)
def test_a_number_in_the_wrong_unit_is_unknown(value: float, unit: str) -> None:
    """A number that lands before 1971, or nowhere, is no instant: it is the wrong unit."""
    match parse_instant(value, source="at", unit=unit):
        case Unknown(why):
            assert why.startswith("at is ")
            assert why.endswith(f", implausible in {unit}")
        case known:
            pytest.fail(f"{known} was read out of a number in the wrong unit")


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (1_785_024_000, "ts is the number 1785024000, and no unit is set"),
        (1.5, "ts is the number 1.5, and no unit is set"),
        (10**5000, "ts is the number a huge number, and no unit is set"),
        (None, "ts is missing"),
        (True, "ts is a bool, not a timestamp"),
        (False, "ts is a bool, not a timestamp"),
        ({}, "ts is a dict, not a timestamp"),
        (["2026-07-26"], "ts is a list, not a timestamp"),
        ("soon", "ts is 'soon', not a timestamp"),
        ("x" * 100, f"ts is '{'x' * 36}..., not a timestamp"),
    ],
    ids=lambda value: str(value)[:24] if not isinstance(value, int) else "",
)
def test_what_is_no_time_at_all_says_what_stood_there(value: object, why: str) -> None:
    """An unknown instant says in one short line what was found instead."""
    assert parse_instant(value, source="ts") == Unknown(why)


@pytest.mark.parametrize("unit", [None, "s", "ms", "us", "ns"])
def test_truth_is_not_a_number(unit: str | None) -> None:
    """`true` is one to Python, and no instant to anybody, whatever the unit."""
    assert parse_instant(True, source="ts", unit=unit) == Unknown("ts is a bool, not a timestamp")


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=-(10**400), max_value=10**400)
    | st.floats()
    | st.text(st.characters(codec=None, exclude_categories=()))
    | st.datetimes(timezones=st.none() | st.just(UTC)).map(datetime.isoformat)
    | st.from_regex(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:(60|\d\d)(\.\d+)?([Zz]|[+-]\d\d:\d\d)?"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=4,
)
ZONES = st.sampled_from([UTC, BERLIN, NEW_YORK, timezone(timedelta(hours=14))])


@given(JSON_VALUES, ZONES, st.sampled_from([None, "s", "ms", "us", "ns"]))
@example("0001-01-01", BERLIN, None)
@example("9999-12-31T23:59:60", NEW_YORK, None)
@example("\ud800", UTC, None)
def test_nothing_that_a_row_can_hold_raises(value: Any, zone: Any, unit: str | None) -> None:
    """Whatever JSON holds, the answer is an instant in UTC or unknown, and never an error."""
    answer = parse_instant(value, source="ts", zone=zone, unit=unit)
    if isinstance(answer, Known):
        assert answer.source == "ts"
        assert answer.instant.tzinfo is UTC
        assert isinstance(value, str | int | float)
    else:
        json.dumps(answer.why)


@given(st.datetimes(timezones=st.just(UTC)), st.timedeltas(-timedelta(hours=23), timedelta(1)))
def test_an_instant_is_the_same_in_every_offset(moment: datetime, offset: timedelta) -> None:
    """The same instant, written with any offset, is read as the same instant."""
    shift = timedelta(minutes=offset // timedelta(minutes=1) % 1439)
    try:
        elsewhere = moment.astimezone(timezone(shift))
    except OverflowError:
        return
    assert parse_instant(elsewhere.isoformat(), source="ts") == Known(moment, "ts")


# --- the rest -----------------------------------------------------------------------------


def test_a_moment_given_by_a_person_is_read_or_refused() -> None:
    """`now` may be a datetime or a text, naive is UTC, and what cannot be read is refused."""
    noon = datetime(2026, 7, 26, 12, tzinfo=UTC)
    assert times.parse_now(noon) == noon
    assert times.parse_now(datetime(2026, 7, 26, 12)) == noon  # noqa: DTZ001
    assert times.parse_now(noon.astimezone(BERLIN)).tzinfo is UTC
    assert times.parse_now("2026-07-26T14:00:00+02:00") == noon
    with pytest.raises(BadInstant, match="'tomorrow' is not a point in time: it is neither"):
        times.parse_now("tomorrow")


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine whose own zone is far from UTC."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "Pacific/Kiritimati")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("elsewhere")
def test_the_machines_own_zone_never_counts() -> None:
    """What names no zone is read in UTC or the store's zone, wherever the machine stands."""
    noon = datetime(2026, 7, 26, 12, tzinfo=UTC)
    assert times.parse_now(datetime(2026, 7, 26, 12)) == noon  # noqa: DTZ001
    assert parse_instant("2026-07-26T12:00:00", source="ts") == Known(noon, "ts")
    assert parse_instant("2026-07-26T14:00:00", source="ts", zone=BERLIN) == Known(noon, "ts")
    assert times.utc_now().utcoffset() == timedelta()
    for answer in (times.parse_now(noon), times.to_utc(noon.replace(tzinfo=None), BERLIN)):
        assert answer.tzinfo is UTC


def test_a_day_to_judge_by_is_its_first_moment() -> None:
    """`--now 2026-07-26` means midnight, so that judging by a day takes less, not more."""
    midnight = datetime(2026, 7, 26, tzinfo=UTC)
    for text in ("2026-07-26", "20260726", "2026-W30-7"):
        assert times.parse_now(text) == midnight


def test_the_field_that_holds_the_time_may_lie_within_objects() -> None:
    """A dotted path reaches into objects; where it leads nowhere, the time is missing."""
    noon = datetime(2026, 7, 26, 12, tzinfo=UTC)
    text = "2026-07-26T12:00:00Z"
    assert times.instant_of({"ts": text}, "ts") == Known(noon, "ts")
    assert times.instant_of({"meta": {"at": text}}, "meta.at") == Known(noon, "meta.at")
    assert times.instant_of({"ts": 1_785_067_200}, "ts", unit="s") == Known(noon, "ts")
    local = times.instant_of({"ts": "2026-07-26T14:00:00"}, "ts", BERLIN)
    assert local == Known(noon, "ts")
    pathless: list[object] = [{}, {"meta": {}}, {"meta": text}, {"meta": [text]}, [], None, text, 5]
    for row in pathless:
        assert times.instant_of(row, "meta.at") == Unknown("meta.at is missing")


def test_the_clock_is_read_in_utc() -> None:
    """The system's clock comes as an aware datetime, so that no local time slips in."""
    assert times.utc_now().tzinfo is UTC


def test_a_zone_is_known_or_refused() -> None:
    """A zone that this machine does not know is a configuration error that says so."""
    assert times.load_timezone("utc") is UTC
    assert times.load_timezone("Europe/Berlin") == BERLIN
    for name in ("Mars/Olympus", "", "../../etc/passwd", "Europe"):
        with pytest.raises(ConfigError) as refusal:
            times.load_timezone(name)
        assert str(refusal.value) == (
            f"timezone: this machine knows no zone {name!r}. "
            "Write a name such as Europe/Berlin, or install the `tzdata` package."
        )


def test_the_cutoff_is_worked_out_by_hand() -> None:
    """90 days before 2026-07-26: 26 + 30 + 31 + 3 days back, to 2026-04-27."""
    now = datetime(2026, 7, 26, tzinfo=UTC)
    assert times.before(now, timedelta(days=90)) == datetime(2026, 4, 27, tzinfo=UTC)


def test_a_cutoff_before_the_calendar_begins_expires_nothing() -> None:
    """An age that reaches back beyond the year 1 is no error; nothing is that old."""
    now = datetime(50, 1, 1, tzinfo=UTC)
    assert times.before(now, timedelta(days=36_500)) == datetime.min.replace(tzinfo=UTC)


def test_instants_are_values() -> None:
    """Two readings of the same thing are equal, hash alike, pickle, and show what they hold."""
    moment = datetime(2026, 7, 26, tzinfo=UTC)
    known, unknown = Known(moment, "ts"), Unknown("ts is missing")
    assert known == Known(moment, "ts") != Known(moment, "mtime")
    assert known != unknown != Unknown("else")
    assert len({known, Known(moment, "ts"), unknown, Unknown("ts is missing")}) == 2
    assert pickle.loads(pickle.dumps([known, unknown])) == [known, unknown]
    assert repr(known) == "Known(2026-07-26T00:00:00+00:00, 'ts')"
    assert repr(unknown) == "Unknown('ts is missing')"
