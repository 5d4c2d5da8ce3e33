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


@st.composite
def stamps(draw: st.DrawFn) -> str:
    """A timestamp in one of the forms in which programs write them, most near the cutoff."""
    ticks = draw(
        st.integers(-3, 3)
        | st.integers(-(10**7), 10**7)
        | st.integers(-(10**13), 10**13)
        | st.sampled_from([-(10**6), 10**6, 3_600_000_000, -3_600_000_000])
    )
    moment = CUTOFF + ticks * TICK
    offset = draw(
        st.sampled_from([None, "Z", "z", "+00:00", "-00:00", "+02:00", "-0930", "+14:00"])
    )
    if offset and offset[0] in "+-":
        sign = -1 if offset[0] == "-" else 1
        moment += sign * timedelta(hours=int(offset[1:3]), minutes=int(offset[-2:]))
    more = draw(st.sampled_from(["", "1", "4", "5", "6", "9", "499", "500", "999", "5000000001"]))
    fraction = draw(
        st.sampled_from(["", f".{moment:%f}", f".{moment:%f}{more}", f",{moment:%f}", ".5", ".Z"])
    )
    separator = draw(st.sampled_from("TTTTt _"))
    shape = draw(
        st.sampled_from(["%Y-%m-%d{}%H:%M:%S"] * 8 + ["%Y%m%d{}%H%M%S", "%Y-%m-%d{}%H:%M"])
    )
    text = moment.strftime(shape.format(separator)) + fraction + (offset or "")
    return draw(st.just(text) | st.just(text) | st.just(text) | odd_stamps(moment))


def odd_stamps(moment: datetime) -> st.SearchStrategy[str]:
    """Dates without a time, leap seconds, the ends of time, and what is none at all."""
    return st.sampled_from(
        [
            f"{moment:%Y-%m-%d}",
            f"{moment:%Y%m%d}",
            f"{moment:%G-W%V-%u}",
            f"{moment:%Y-%m-%dT%H:%M}:60Z",
            f"{moment:%Y-%m-%dT%H:%M}:60.5+02:00",
            f"{moment:%Y-%m-%dT%H:%M}:61Z",
            f"{moment:%Y-%m-%d}T24:00:00Z",
            f"{moment:%Y-%m-%d}T00:00:00+24:00",
            f"{moment:%Y-%m-%d}T00:00:00 Z",
            f"{moment:%Y-%m-%d} 00:00:00+02:00:30",
            f" {moment:%Y-%m-%d}",
            f"{moment:%s}",
            f"{moment:%s}000",
            "0001-01-01T00:00:00+10:00",
            "0001-01-01",
            "9999-12-31",
            "9999-12-31T23:59:59-10:00",
            "9999-12-31T23:59:59.9999999Z",
            "0000-01-01T00:00:00Z",
            "2026-02-29T00:00:00Z",
            "1712011200000",
            "yesterday",
            "",
            "\uff12\uff10\uff12\uff16-04-27",
        ]
    )


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
KEYS = [b'"a"', b'"ts"', b'"\\u0074s"', b'"t\\u0073"', b'"TS"', b'"a.ts"', b'"a"', b'"\xc3\xa9"']
#: What stands around a row: white space, a mark of its encoding, NULs, another row.
ROUND = [
    b"",
    b"",
    b"",
    b"",
    b"",
    b" ",
    b"\t",
    b"\r",
    b"\xef\xbb\xbf",
    b"\0",
    b"\0\0\0",
    b"\x0b",
    b"{}",
]


@st.composite
def values(draw: st.DrawFn, unit: str | None = None) -> bytes:
    """What stands where the time should."""
    if unit:
        ticks = draw(st.integers(-3, 3) | st.integers(-(10**13), 10**13))
        micros = (CUTOFF - EPOCH) // TICK + ticks
        number = micros * PER_SECOND[unit] // 10**6
        texts = [str(number), str(float(number)), str(micros / 10**6), f"{number}.5", f"{number}e0"]
        if draw(st.booleans()):
            return draw(st.sampled_from(texts)).encode()
    if draw(st.integers(0, 9)) == 0:
        return draw(st.sampled_from(TEXTS))
    text = json.dumps(draw(stamps())).encode()
    # Any character may be written as an escape.
    return draw(st.sampled_from([text] * 9 + [text.replace(b"2", b"\\u0032", 1)]))


@st.composite
def lines(draw: st.DrawFn, field: str = "ts", unit: str | None = None) -> bytes:
    """One line without its LF; most are rows."""
    kind = draw(st.integers(0, 19))
    if kind == 0:
        return draw(st.binary(max_size=12)).replace(b"\n", b"")
    if kind == 1:
        return draw(st.sampled_from([b"", b"  ", b"\t\r", b"{", b"}", b"[]", b'"x"', *TEXTS]))
    value = draw(values(unit))
    *outer, key = (json.dumps(part).encode() for part in field.split("."))
    members = [key + b": " + value]
    for _ in range(draw(st.integers(0, 2))):
        other = draw(st.sampled_from(KEYS)), draw(st.sampled_from(TEXTS) | values(unit))
        members.insert(draw(st.integers(0, len(members))), b":".join(other))
    row = b"{" + b", ".join(members) + b"}"
    for name in reversed(outer):
        row = b"{" + name + b": " + row + b"}"
    before, after = draw(st.sampled_from(ROUND)), draw(st.sampled_from(ROUND))
    cut = draw(st.sampled_from([None] * 9 + [len(row) // 2]))
    return before + row[:cut] + after
