"""Rows are written and read as the standard `json` does it, whatever they hold."""

from __future__ import annotations

import importlib
import json
import math
import sys
from collections import OrderedDict
from collections.abc import Iterator
from enum import IntEnum
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepfor.writers import rowjson

#: Whatever `json` takes, lone surrogates and numbers beyond 64 bits included.
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner)
        | st.tuples(inner)
        | st.dictionaries(st.text() | st.integers() | st.floats() | st.none(), inner)
    ),
    max_leaves=20,
)


class Rank(IntEnum):
    FIRST = 1


class Loud(str):
    def __str__(self) -> str:
        return self.upper()


@pytest.fixture(params=["with its C module", "without"])
def module(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The module as it is, and as it is on a Python that lacks the C module."""
    if request.param == "with its C module":
        yield rowjson
        return
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "_json", None)
        yield importlib.reload(rowjson)
    importlib.reload(rowjson)


def outcome(work: Any, value: Any) -> tuple[object, str]:
    """What came of it: its result, or the error with its message."""
    try:
        return None, repr(work(value))
    except (TypeError, ValueError, RecursionError) as error:
        return type(error), str(error)


@given(VALUES)
def test_what_is_written_is_what_json_writes(value: Any) -> None:
    """Any value gives the very text of `json.dumps`."""
    assert rowjson.encode(value) == json.dumps(value)


@given(VALUES)
def test_what_was_written_is_read_back(value: Any) -> None:
    """Any text that `json.dumps` wrote is read as `json.loads` reads it."""
    line = json.dumps(value).encode() + b"\n"
    assert repr(rowjson.decode(line)) == repr(json.loads(line))


@given(st.binary() | st.text().map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_any_bytes_are_read_as_json_reads_them(line: bytes) -> None:
    """What is no JSON is refused with the same error, and what is one gives the same value."""
    assert outcome(rowjson.decode, line) == outcome(json.loads, line)


LOOP: list[Any] = []
LOOP.append(LOOP)


@pytest.mark.parametrize(
    "value",
    [
        OrderedDict(b=1, a=2),
        {"n": Rank.FIRST},
        {"s": Loud("quiet")},
        {True: 1, 1.5: 2, None: 3},
        {"x": float("nan"), "y": -math.inf},
        10**5000,
        {"x": object()},
        {("a",): 1},
        {"x": b"bytes"},
        {1, 2},
        LOOP,
        [[[]]] * 3,
        json.loads("[" * 900 + "]" * 900),
    ],
    ids=range(13),
)
def test_odd_values_are_written_or_refused_as_by_json(module: ModuleType, value: Any) -> None:
    """Subclasses, odd keys and values that are no JSON end as they do in `json.dumps`."""
    assert outcome(module.encode, value) == outcome(json.dumps, value)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"\n",
        b"{}\n",
        b"{}\r\n",
        b" {}",
        b"{} \t\n",
        b"{}{}",
        b"{} x",
        b"{}\x0b",
        "{}\u00a0".encode(),
        b"\xef\xbb\xbf{}",
        '{"a": 1}'.encode("utf-16"),
        '{"a": 1}'.encode("utf-32-le"),
        b'{"a": "\xed\xa0\x80"}',
        b'{"a": "\xff"}',
        b"[NaN, Infinity, -Infinity, 1e400, -0.0, 1E5]",
        b'{"a": 1, "a": 2}',
        b'{"a": "\t"}',
        b"01",
        b"1\x00",
        b"\x001",
        b"9" * 5000,
        b"[" * 100_000,
        b"nul",
        b'"\\ud800"',
    ],
)
def test_odd_lines_are_read_or_refused_as_by_json(module: ModuleType, line: bytes) -> None:
    """White space, other encodings, constants and debris end as they do in `json.loads`."""
    assert outcome(module.decode, line) == outcome(json.loads, line)
