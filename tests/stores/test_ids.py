"""An id stands for one name and one only, whatever bytes are in it."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepfor.stores.ids import escape, escape_all, unescape


@pytest.mark.parametrize(
    ("name", "id_"),
    [
        (b"rem-2026-07-25T23_00_00.000Z", "rem-2026-07-25T23_00_00.000Z"),
        ("für später".encode(), "für später"),
        (b"caf\xe9", r"caf\xe9"),
        (rb"a\xe9", r"a\x5cxe9"),
        (b"red\x1b[31m\n", r"red\x1b[31m\x0a"),
        (b"\xff\xfe\x7f", r"\xff\xfe\x7f"),
    ],
)
def test_a_name_is_escaped_where_it_has_to_be(name: bytes, id_: str) -> None:
    """What is UTF-8 and printable stands as it is; the rest shows its bytes."""
    assert escape(os.fsdecode(name)) == id_
    assert os.fsencode(unescape(id_)) == name


@given(st.binary(min_size=1))
def test_every_name_comes_back(name: bytes) -> None:
    """No name is lost on the way to an id and back, and no id fails to be text."""
    id_ = escape(os.fsdecode(name))
    assert os.fsencode(unescape(id_)) == name
    assert "\x1b" not in id_
    assert id_.encode("utf-8")


@given(st.lists(st.binary(min_size=1).map(os.fsdecode)))
def test_many_are_escaped_as_one_is(names: list[str]) -> None:
    """The quick way for many names gives what the slow way gives."""
    assert escape_all(names) == [escape(name) for name in names]
