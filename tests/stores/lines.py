"""Lines of every kind that stands in a ledger, good and bad, and a plain reading of them.

The plain reading is the definition that the fast one is held to: one `json.loads` for each line and
`datetime.fromisoformat`, with what RFC 3339 allows beyond it.
"""

from __future__ import annotations

import json
import math
import re
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from fractions import Fraction
from functools import cache
from typing import Any

from hypothesis import strategies as st

from tests.stores.build import CUTOFF

TICK = timedelta(microseconds=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def read(
    line: bytes, field: str = "ts", zone: tzinfo = UTC, unit: str | None = None
) -> datetime | str:
    """The instant of a line, or what is wrong with it."""
    if line.strip(b" \t\r") == b"":
        return "blank"
    try:
        # Python alone refuses an integer of more than 4,300 digits.
        row = json.loads(line, parse_int=lambda text: int(text[:4000]))
    except RecursionError:
        return "too deep"
    except ValueError:
        return "debris"
    if not isinstance(row, dict):
        return "debris"
    value: Any = row
    for key in field.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    if isinstance(value, str):
        return read_text(value, zone) or "timeless"
    if unit and type(value) in (int, float):
        return read_number(value, PER_SECOND[unit]) or "timeless"
    return "timeless"


def read_text(text: str, zone: tzinfo) -> datetime | None:
    """The instant that text stands for."""
    if re.match(r"\d{9}", text):
        # A number in quotes, which `fromisoformat` would read as a day of long ago.
        return None
    leap = re.fullmatch(r"(.{10}[Tt ]\d\d:\d\d:)60(.*)", text)
    if leap and re.fullmatch(r"(\.\d+)?([Zz]|[+-]\d\d:\d\d)?", leap[2]):
        moment = read_text(f"{leap[1]}59{leap[2]}", zone)
        return moment and moment + timedelta(seconds=1)
    try:
        moment = datetime.fromisoformat(re.sub("z$", "Z", text))
    except ValueError:
        return None
    with suppress(ValueError):
        moment = datetime.combine(date.fromisoformat(text), time.max)
    if moment.tzinfo is None:
        moment = max(
            (moment.replace(tzinfo=zone, fold=fold) for fold in (0, 1)),
            key=lambda moment: moment.astimezone(UTC),
        )
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        edge = datetime.min if moment.year == 1 else datetime.max
        return edge.replace(tzinfo=UTC)


def read_number(number: float, per_second: int) -> datetime | None:
    """The instant that a number of ticks since 1970 stands for."""
    try:
        micros = Fraction(number) * 10**6 / per_second
        # A float such as 1785024000.1 lies a little beside what it means.
        half = Fraction(1, 2) if type(number) is float else 0
        moment = EPOCH + timedelta(microseconds=math.floor(micros + half))
    except (OverflowError, ValueError):
        return None
    return moment if moment >= datetime(1971, 1, 1, tzinfo=UTC) else None


# The strategies are made once, for that takes longer than drawing from them.
TICKS = (
    st.integers(-3, 3)
    | st.integers(-(10**7), 10**7)
    | st.integers(-(10**13), 10**13)
    | st.sampled_from([-(10**6), 10**6, 3_600_000_000, -3_600_000_000])
)
OFFSETS = st.sampled_from(["", "Z", "z", "+00:00", "-00:00", "+02:00", "-0930", "+14:00"])
FRACTIONS = st.sampled_from(
    ["", ".{0}", ".{0}4", ".{0}5", ".{0}9", ".{0}499", ".{0}5000000001", ",{0}", ".5", ".Z"]
)
SHAPES = st.sampled_from(
    ["%Y-%m-%dT%H:%M:%S"] * 6
    + ["%Y-%m-%dt%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d_%H:%M:%S", "%Y%m%dT%H%M%S"]
    + ["%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:60", "%Y-%m-%dT%H:%M:61", "%Y-%m-%dT24:00:00"]
)
#: Dates without a time, the ends of time, numbers in quotes, and what is no time at all.
ODD_STAMPS = st.sampled_from(
    [
        "2026-04-27",
        "2026-04-26",
        "20260427",
        "2026-W18-1",
        " 2026-04-27",
        "2026-04-27T00:00:00 Z",
        "2026-04-27T00:00:00+24:00",
        "2026-04-27 00:00:00+02:00:30",
        "0001-01-01T00:00:00+10:00",
        "0001-01-01",
        "9999-12-31",
        "9999-12-31T23:59:59-10:00",
        "9999-12-31T23:59:59.9999999Z",
        "0000-01-01T00:00:00Z",
        "2026-02-29T00:00:00Z",
        "1777248000",
        "1777248000000",
        "yesterday",
        "",
        "\uff12\uff10\uff12\uff16-04-27",
    ]
)


def stamp(ticks: int, shape: str, fraction: str, offset: str) -> str:
    """A timestamp as some program would write it, so many microseconds after the cutoff."""
    moment = CUTOFF + ticks * TICK
    if offset[:1] in ("+", "-"):
        sign = -1 if offset[0] == "-" else 1
        moment += sign * timedelta(hours=int(offset[1:3]), minutes=int(offset[-2:]))
    return moment.strftime(shape) + fraction.format(f"{moment:%f}") + offset


STAMPS = st.builds(stamp, TICKS, SHAPES, FRACTIONS, OFFSETS)

#: JSON texts as they stand, some of which only some readers take.
TEXTS = [
    b"null",
    b"true",
    b"0",
    b"-1",
    b"1e400",
    b"-0.0",
    b"01",
    b"1.",
    b"+1",
    b"NaN",
    b"-Infinity",
    b"1" * 5000,
    b'"\\ud800"',
    b'"\\ud83d\\ude00"',
    b'"\xed\xa0\x80"',
    b'"\xff"',
    b'"caf\xc3\xa9 \xe2\x80\xa8 \xc2\x85"',
    b'"\x01"',
    b'"\t"',
    b'"\\x"',
    b'"\\u12"',
    b"'a'",
    b"[1, [2, {}]]",
    b"[1,]",
    b"[" * 20 + b"]" * 20,
    b"[" * 2000 + b"]" * 2000,
    b'{"ts": "2026-04-27T00:00:00Z"}',
    b"{1: 2}",
    b"tru",
    b"",
]
KEYS = [b'"a"', b'"ts"', b'"\\u0074s"', b'"t\\u0073"', b'"TS"', b'"a.ts"', b'"\xc3\xa9"']
#: What stands around a row: white space, a mark of its encoding, NULs, another row.
ROUND = [b" ", b"\t", b"\r", b"\xef\xbb\xbf", b"\0", b"\0\0\0", b"\x0b", b"{}"]

QUOTED = st.one_of(STAMPS, STAMPS, STAMPS, STAMPS, ODD_STAMPS).map(
    lambda text: json.dumps(text).encode()
)
#: Any character may be written as an escape.
TIMES = st.one_of(
    *[QUOTED] * 8,
    QUOTED.map(lambda text: text.replace(b"2", b"\\u0032", 1)),
    st.sampled_from(TEXTS),
)


def numbers(unit: str) -> st.SearchStrategy[bytes]:
    """Numbers that count in a unit, in the ways in which JSON writes them."""

    def number(ticks: int, shape: str) -> bytes:
        micros = (CUTOFF - EPOCH) // TICK + ticks
        count = micros * PER_SECOND[unit] // 10**6
        return shape.format(count=count, real=float(count), seconds=micros / 10**6).encode()

    shapes = ["{count}", "{count}", "{real}", "{seconds}", "{count}.5", "{count}e0"]
    return st.builds(number, TICKS, st.sampled_from(shapes))


@cache
def lines(field: str = "ts", unit: str | None = None) -> st.SearchStrategy[bytes]:
    """Lines without their LFs; most are rows."""
    times = st.one_of(numbers(unit), numbers(unit), TIMES) if unit else TIMES
    *outer, key = (json.dumps(part).encode() for part in field.split("."))

    def line(time: bytes, more: list[tuple[bytes, bytes]], at: int, around: list[bytes]) -> bytes:
        members = [b": ".join(member) for member in more]
        members.insert(at, key + b": " + time)
        row = b"{" + b", ".join(members) + b"}"
        for name in reversed(outer):
            row = b"{" + name + b": " + row + b"}"
        before, after = around
        return before + row + after

    others = st.lists(st.tuples(st.sampled_from(KEYS), st.sampled_from(TEXTS) | times), max_size=2)
    around = st.tuples(*[st.just(b"") | st.just(b"") | st.sampled_from(ROUND)] * 2).map(list)
    rows = st.builds(line, times, others, st.integers(0, 2), around)
    torn = rows.map(lambda row: row[: len(row) // 2])
    junk = st.binary(max_size=12).map(lambda data: data.replace(b"\n", b""))
    odd = st.sampled_from([b"", b"  ", b"\t\r", b"{", b"}", b"[]", b'"x"', *TEXTS])
    return st.one_of(*[rows] * 8, torn, junk | odd)
