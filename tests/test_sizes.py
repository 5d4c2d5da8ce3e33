"""Sizes are read strictly, and written back exactly."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepfor.errors import BadSize
from keepfor.sizes import format_size, parse_size, parse_size_text

LARGEST = 9_223_372_036_854_775_807


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1B", 1),
        ("10KiB", 10_240),
        ("10KB", 10_000),
        ("25MiB", 26_214_400),
        ("25MB", 25_000_000),
        ("1GiB", 1_073_741_824),
        ("1GB", 1_000_000_000),
        ("2TiB", 2_199_023_255_552),
        ("2TB", 2_000_000_000_000),
        (f"{LARGEST}B", LARGEST),
    ],
)
def test_a_size_counts_in_its_unit(text: str, size: int) -> None:
    """MiB and its like count in powers of 1,024, MB and its like in powers of 1,000."""
    assert parse_size_text(text) == size
    assert parse_size(text) == size


def test_a_program_may_give_a_number_of_bytes() -> None:
    """`Ledger(max_bytes=26214400)` means bytes; in a policy a bare number is refused."""
    assert parse_size(26_214_400) == 26_214_400
    with pytest.raises(
        BadSize, match=r'^26214400 is not a size: it has no unit\. Write "25MiB"\.$'
    ):
        parse_size_text(26_214_400)


@pytest.mark.parametrize(
    ("value", "why", "fix"),
    [
        ("25", "no unit", '"25MiB"'),
        ("26214400", "no unit", '"25MiB"'),
        ("1000", "no unit", '"1KB"'),
        ("999", "no unit", '"999MiB"'),
        (25, "no unit", '"25MiB"'),
        ("0", "no unit", '"25MiB"'),
        ("0MiB", "nothing would be kept", "above zero"),
        (0, "nothing would be kept", "above zero"),
        ("-25MiB", "negative", '"25MiB"'),
        (-1, "negative", '"25MiB"'),
        pytest.param(-(10**5000), "negative", '"25MiB"', id="-huge"),
        ("25M", "M is not a unit", '"25MiB" for powers of 1,024, or "25MB"'),
        ("25mb", "mb is not a unit", '"25MiB" for powers of 1,024, or "25MB"'),
        ("25k", "k is not a unit", '"25KiB" for powers of 1,024, or "25KB"'),
        ("25G", "G is not a unit", '"25GiB" for powers of 1,024, or "25GB"'),
        ("25tb", "tb is not a unit", '"25TiB" for powers of 1,024, or "25TB"'),
        ("25mib", "mib is not a unit", 'Write "25MiB".'),
        ("25b", "b is not a unit", '"25MiB"'),
        ("25PB", "PB is not a unit", '"25MiB"'),
        ("25xb", "xb is not a unit", 'Write "25MiB" (or "25MB"'),
        ("25 MiB", "more than digits and a unit", 'Write "25MiB".'),
        ("+25MiB", "more than digits and a unit", 'Write "25MiB".'),
        ("1.5GiB", "fractions", '"1536MiB"'),
        (".5GiB", "fractions", '"1536MiB"'),
        ("MiB", "not a number with a unit", '"25MiB"'),
        ("", "not a number with a unit", '"25MiB"'),
        ("large", "not a number with a unit", '"25MiB"'),
        ("\u0662\u0665MiB", "not a number with a unit", '"25MiB"'),
        ("1_000MB", "not a number with a unit", '"25MiB"'),
        ("25MiB\n", "more than digits and a unit", '"25MiB"'),
        (True, "not a number with a unit", '"25MiB"'),
        (None, "not a number with a unit", '"25MiB"'),
        (2.5, "not a number with a unit", '"25MiB"'),
        ("9007199254740992TiB", "no file can be that large", "no ceiling"),
        ("9" * 5000 + "B", "no file can be that large", "no ceiling"),
        (LARGEST + 1, "no file can be that large", "no ceiling"),
        pytest.param(10**5000, "no file can be that large", "no ceiling", id="huge"),
    ],
)
def test_anything_else_is_refused_with_what_to_write(value: object, why: str, fix: str) -> None:
    """What leaves its unit to be guessed, or would keep nothing, is no size."""
    with pytest.raises(BadSize) as caught:
        parse_size_text(value)
    assert why in str(caught.value)
    assert fix in str(caught.value)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("value", [0, -1, True, LARGEST + 1, None, 2.5, "25"])
def test_a_program_may_not_give_any_number(value: object) -> None:
    """Zero, negatives, booleans and numbers beyond any file are refused from a program too."""
    with pytest.raises(BadSize):
        parse_size(value)


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (26_214_400, "25MiB"),
        (25_000_000, "25MB"),
        (10_240, "10KiB"),
        (1_234_567, "1234567B"),
        (1_073_741_824, "1GiB"),
        (1_536 * 1_048_576, "1536MiB"),
        (1, "1B"),
        (0, "0B"),
    ],
)
def test_a_size_is_written_in_its_largest_whole_unit(size: int, text: str) -> None:
    """A size is shown as a person would have written it, and never rounded."""
    assert format_size(size) == text


@given(st.integers(min_value=1, max_value=LARGEST))
def test_what_is_written_reads_back(size: int) -> None:
    """Showing a policy and writing it again changes no size."""
    assert parse_size_text(format_size(size)) == size
