"""A row's instant is what a plain reader of the line says, however fast it was read."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keepfor.stores.rows import (
    ROUNDING,
    RowFormat,
    batch_reader,
    read_row,
    rows_of,
    time_hint,
    without_blanks,
)
from tests.stores.build import CUTOFF, by
from tests.stores.lines import TICK, lines, read

BERLIN = ZoneInfo("Europe/Berlin")
#: Where a time stands, and how it is to be read.
FORMS = [
    RowFormat(),
    by("a.ts"),
    by("zeit"),
    by('say "when"'),
    by("at", unit="s"),
    by("at", unit="ms"),
    by("at", unit="ns"),
    by(zone=BERLIN),
]


def with_line(form: RowFormat) -> st.SearchStrategy[tuple[RowFormat, bytes]]:
    return st.tuples(st.just(form), lines(form.field, form.unit))


def with_block(form: RowFormat) -> st.SearchStrategy[tuple[RowFormat, list[bytes]]]:
    """A few good and bad lines, repeated to more than one batch."""
    kinds = st.lists(lines(form.field, form.unit), min_size=1, max_size=5)
    block = st.builds(lambda kinds, times: kinds * times, kinds, st.integers(1, 12))
    return st.tuples(st.just(form), block)


@settings(max_examples=400)
@given(st.one_of(*map(with_line, FORMS)))
def test_a_row_says_what_a_plain_reader_reads(drawn: tuple[RowFormat, bytes]) -> None:
    """One `json.loads` per line and `fromisoformat` define what a row's time is."""
    form, line = drawn
    assert read_row(line, form) == read(line, form.field, form.zone, form.unit)


@settings(max_examples=150)
@given(st.one_of(*map(with_block, FORMS)), st.sampled_from([0, 1, -1, 5, 10**15]))
def test_the_fast_way_agrees_row_by_row(drawn: tuple[RowFormat, list[bytes]], ticks: int) -> None:
    """Position, bytes and fault are the same; the instant is on the same side of an edge."""
    form, block = drawn
    edge = CUTOFF + ticks * TICK
    data = b"".join(line + b"\n" for line in block)
    position = 100
    seen = []
    for batch in batch_reader(form)(position, data):
        for at, line, instant in rows_of(batch, form, edge):
            assert at == position
            seen.append(line)
            expected = read_row(line, form)
            if isinstance(instant, datetime) and isinstance(expected, datetime):
                assert (instant < edge, instant > edge) == (expected < edge, expected > edge)
                assert abs(instant - expected) <= ROUNDING
                if batch.span:
                    assert batch.span[0] - ROUNDING <= expected <= batch.span[1] + ROUNDING
            else:
                assert instant == expected
            position += len(line) + 1
    assert seen == block


#: 2026-04-27T00:00:00Z.
ON = CUTOFF
YOUNG_TS = b'"ts": "2026-04-27T00:00:00Z"'


@pytest.mark.parametrize(
    "line",
    [
        b"{%s}" % YOUNG_TS,
        b"  \t{%s}\r" % YOUNG_TS,
        b"\xef\xbb\xbf{%s}" % YOUNG_TS,
        b'{"x": NaN, "y": [Infinity, -Infinity], %s}' % YOUNG_TS,
        b'{"x": 1e400, %s}' % YOUNG_TS,
        b'{"x": "\\ud800", %s}' % YOUNG_TS,
        b'{"x": "\xed\xa0\x80", %s}' % YOUNG_TS,
        b'{"x": "caf\xc3\xa9 \xe2\x80\xa8", %s}' % YOUNG_TS,
        b'{"x": %s, %s}' % (b"1" * 5000, YOUNG_TS),
        b'{"x": %s, %s}' % (b"[" * 200 + b"]" * 200, YOUNG_TS),
        b'{"\\u0074s": "2026-04-27T00:00:00Z"}',
        b'{"ts": "\\u0032026-04-27T00:00:00Z"}',
        b'{"ts": "2020-01-01", %s}' % YOUNG_TS,
        b'{"ts": 5, "t\\u0073": null, %s}' % YOUNG_TS,
        '{"ts": "2026-04-27T00:00:00Z"}'.encode("utf-16-le"),
    ],
)
def test_what_any_json_reader_can_use_is_a_row(line: bytes) -> None:
    """Whatever one reader or another stumbles over, its time counts; of two the last."""
    assert read_row(line, RowFormat()) == ON
    assert read(line) == ON
    assert fast(line) == ON


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        (b"", "blank"),
        (b" \t\r", "blank"),
        (b"\x0b", "debris"),
        (b"\0" * 40, "debris"),
        (b"\xef\xbb\xbf", "debris"),
        (b"{%s} {%s}" % (YOUNG_TS, YOUNG_TS), "debris"),
        (b'{"ts": "2026-04-27T00:00:00Z", "x{%s}' % YOUNG_TS, "debris"),
        (b'{"x": "\xff", %s}' % YOUNG_TS, "debris"),
        (b'{"x": "\x01", %s}' % YOUNG_TS, "debris"),
        (b'{"x": 01, %s}' % YOUNG_TS, "debris"),
        (b"[{%s}]" % YOUNG_TS, "debris"),
        (b'"2026-04-27T00:00:00Z"', "debris"),
        (b"null", "debris"),
        (b"1" * 5000, "debris"),
        (b'{"x": %s' % (b"1" * 5000), "debris"),
        (b"{}", "timeless"),
        (b'{%s, "ts": null}' % YOUNG_TS, "timeless"),
        (b'{"ts": 1785024000}', "timeless"),
        (b'{"ts": true}', "timeless"),
        (b'{"ts": {"ts": "2026-04-27"}}', "timeless"),
        (b'{"TS": "2026-04-27"}', "timeless"),
        (b'{"x": %s, %s}' % (b"[" * 100_000 + b"]" * 100_000, YOUNG_TS), "too deep"),
        (b'{"x": ' * 100_000, "too deep"),
    ],
)
def test_what_none_can_use_says_what_is_wrong(line: bytes, fault: str) -> None:
    """Debris, an object without a usable time and one that is nested too deeply are told apart."""
    assert read_row(line, RowFormat()) == fault
    assert read(line) == fault
    assert fast(line) == fault


def fast(line: bytes) -> object:
    """What the fast way makes of a line between good ones, none of which is near an edge."""
    form = RowFormat()
    good = b'{"ts": "2026-07-01T00:00:00Z"}'
    data = b"".join(line + b"\n" for line in [*[good] * 9, line, *[good] * 9])
    read = [row for batch in batch_reader(form)(0, data) for row in rows_of(batch, form)]
    (_, same, instant) = read[9]
    assert (len(read), same) == (19, line)
    return instant


def test_an_object_over_several_lines_is_no_row() -> None:
    """A row is what stands between two line feeds, judged by itself."""
    data = b'{\n  "ts": "2026-04-27T00:00:00Z"\n}\n'
    form = RowFormat()
    read = [row for batch in batch_reader(form)(0, data) for row in rows_of(batch, form)]
    assert [fault for _, _, fault in read] == ["debris"] * 3


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2026-04-27T00:00:00.1234567Z", "2026-04-27T00:00:00.123456+00:00"),
        ("2026-04-26T23:59:59.9999999Z", "2026-04-26T23:59:59.999999+00:00"),
        ("2026-04-27T02:00:00+02:00", "2026-04-27T00:00:00+00:00"),
        ("2026-04-27", "2026-04-27T23:59:59.999999+00:00"),
        ("2026-04-26T23:59:60z", "2026-04-27T00:00:00+00:00"),
        ("0001-01-01T00:00:00+10:00", "0001-01-01T00:00:00+00:00"),
        ("9999-12-31T23:59:59-10:00", "9999-12-31T23:59:59.999999+00:00"),
        ("9999-12-31", "9999-12-31T23:59:59.999999+00:00"),
    ],
)
def test_a_time_is_read_to_the_microsecond_on_an_edge(text: str, instant: str) -> None:
    """Where it matters on which side a row lies, it is truncated as `fromisoformat` does it."""
    edge = datetime.fromisoformat(instant)
    line = json.dumps({"ts": text}).encode()
    form = RowFormat()
    (batch,) = batch_reader(form)(0, line + b"\n")
    ((_, _, exact),) = rows_of(batch, form, edge)
    assert exact == edge
    assert read_row(line, form) == edge


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        # Clocks go forward at 02:00 on 29 March: 02:30 is read an hour on, as 03:30 summer time.
        ("2026-03-29T01:59:59.999999", "2026-03-29T00:59:59.999999+00:00"),
        ("2026-03-29T02:30:00", "2026-03-29T01:30:00+00:00"),
        ("2026-03-29T03:00:00", "2026-03-29T01:00:00+00:00"),
        # They go back at 03:00 on 25 October: 02:30 was twice, and the later is taken.
        ("2026-10-25T01:59:59.999999", "2026-10-24T23:59:59.999999+00:00"),
        ("2026-10-25T01:59:59.9999999", "2026-10-24T23:59:59.999999+00:00"),
        ("2026-10-25T02:00:00", "2026-10-25T01:00:00+00:00"),
        ("2026-10-25T02:30:00", "2026-10-25T01:30:00+00:00"),
        ("2026-10-25T03:00:00", "2026-10-25T02:00:00+00:00"),
        ("2026-10-25T02:30:00+02:00", "2026-10-25T00:30:00+00:00"),
        ("0001-01-01T00:00:00", "0001-01-01T00:00:00+00:00"),
    ],
)
def test_a_local_time_is_read_in_its_zone(text: str, instant: str) -> None:
    """Where the clocks change, the later reading is taken; an offset that is given wins."""
    form, line = by(zone=BERLIN), json.dumps({"ts": text}).encode()
    assert read_row(line, form) == datetime.fromisoformat(instant)
    for batch in batch_reader(form)(0, line + b"\n"):
        for _, _, seen in rows_of(batch, form):
            assert isinstance(seen, datetime)
            assert abs(seen - datetime.fromisoformat(instant)) <= TICK


@pytest.mark.parametrize(
    ("unit", "number"),
    [
        ("s", b"1777248000"),
        ("s", b"1777248000.0"),
        ("s", b"1.777248e9"),
        ("ms", b"1777248000000"),
        ("us", b"1777248000000000"),
        ("us", b"1777248000000000.25"),
        ("ns", b"1777248000000000999"),
    ],
)
def test_a_number_counts_from_1970_in_its_unit(unit: str, number: bytes) -> None:
    """20,570 days after 1970-01-01 it is 2026-04-27: 56 years, 14 leap days and 116 days on."""
    assert (56 * 365 + 14 + 116) * 86_400 == 1_777_248_000
    form = by("at", unit=unit)
    line = b'{"at": %s}' % number
    assert read_row(line, form) == ON
    assert fast_of(line, form) == ON


def fast_of(line: bytes, form: RowFormat) -> object:
    (batch,) = batch_reader(form)(0, line + b"\n")
    ((_, _, instant),) = rows_of(batch, form, ON)
    return instant


@pytest.mark.parametrize("number", [b"0", b"-5", b"1e400", b"NaN", b'"1777248000"', b"9" * 5000])
def test_an_implausible_number_is_no_time(number: bytes) -> None:
    """Near 1970, beyond 9999, or in quotes: the unit is wrong, or it is not a number."""
    form = by("at", unit="s")
    line = b'{"at": %s}' % number
    assert read_row(line, form) == "timeless"
    assert fast_of(line, form) == "timeless"


@pytest.mark.parametrize(
    ("field", "line"),
    [
        ("a.b.c", b'{"a": {"x": 1, "b": {"c": "2026-04-27T00:00:00Z"}}}'),
        ("", b'{"": "2026-04-27T00:00:00Z"}'),
        ("a..b", b'{"a": {"": {"b": "2026-04-27T00:00:00Z"}}}'),
        ('say "when"', b'{"say \\"when\\"": "2026-04-27T00:00:00Z"}'),
        ("a\\b", b'{"a\\\\b": "2026-04-27T00:00:00Z"}'),
        ("a\nb", b'{"a\\nb": "2026-04-27T00:00:00Z"}'),
        ("\ud800", b'{"\\ud800": "2026-04-27T00:00:00Z"}'),
        ("заметка", '{"заметка": "2026-04-27T00:00:00Z"}'.encode()),
        ("__class__", b'{"__class__": "2026-04-27T00:00:00Z"}'),
        ("@timestamp", b'{"@timestamp": "2026-04-27T00:00:00Z"}'),
    ],
)
def test_a_field_may_have_any_name(field: str, line: bytes) -> None:
    """A dotted path reaches into objects, and a key may hold whatever JSON allows."""
    assert read_row(line, by(field)) == ON
    assert fast_of(line, by(field)) == ON
    assert fast_of(b"{}", by(field)) == "timeless"


def test_a_field_may_lie_deeper_than_any_row() -> None:
    """A path of more keys than a decoder takes finds nothing, and stops nothing."""
    form = by(".".join(["a"] * 3000))
    (batch,) = batch_reader(form)(0, b'{"a": 1}\n')
    assert batch.values == ["timeless"]


def test_rows_are_read_at_once_where_nothing_is_in_the_way() -> None:
    """Of a block with one bad row most are still read in batches, which know their span."""
    days = [(ON + timedelta(days=day)).isoformat() for day in range(99)]
    good = [json.dumps({"ts": day}).encode() for day in days]
    lines = [*good[:50], b"debris", *good[50:]]
    batches = list(batch_reader(RowFormat())(7, b"".join(line + b"\n" for line in lines)))
    assert [line for batch in batches for line in batch.lines] == lines
    assert sum(len(batch.lines) for batch in batches if batch.span) > 80
    first = batches[0]
    assert (first.position, first.span and first.span[0]) == (7, ON)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b'{"a": "2026-04-27", "b": 1777248000, "c": "x", "d": {"ts": 1}, "e": 5}', "'a' and 'b'"),
        (b'{"ts": 1777248000}', "holds 1777248000 there: write `unit: s`"),
        (b'{"ts": 1777248000123}', "write `unit: ms`"),
        (b'{"ts": 1777248000123456}', "write `unit: us`"),
        (b'{"ts": 1777248000123456789}', "write `unit: ns`"),
        (b'{"ts": "27.04.2026"}', "'27.04.2026' there, which is not ISO 8601"),
    ],
)
def test_a_message_says_what_stands_where_the_time_should(line: bytes, said: str) -> None:
    """Who set the wrong field or unit is told what to write instead."""
    assert said in time_hint(line, RowFormat())


@pytest.mark.parametrize("line", [b"", b'{"c": "x", "e": 5}', b'{"ts": true}'])
def test_a_message_says_nothing_that_it_does_not_know(line: bytes) -> None:
    """Where nothing looks like a time, there is no hint."""
    assert time_hint(line, RowFormat()) == ""


def test_blank_lines_are_taken_out() -> None:
    """White space alone is blank; anything else stays, byte for byte."""
    assert without_blanks(b"\n \t\r\na \n\n\x0b\nb\r\n") == b"a \n\x0b\nb\r\n"
