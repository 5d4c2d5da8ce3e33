"""A YAML file is read without guessing, and each key remembers its line."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepfor.config.document import Document, read, scalar
from keepfor.errors import BadConfig


def document(tmp_path: Path, text: str) -> Document:
    """The text, read as a file."""
    path = tmp_path / "keepfor.yaml"
    path.write_text(text, encoding="utf-8")
    return read(path, "keepfor.yaml")


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("", None),
        ("~", None),
        ("null", None),
        ("true", True),
        ("False", False),
        ("0", 0),
        ("90", 90),
        ("-90", -90),
        ("010", 10),
        ("0.5", 0.5),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("1e9999", float("inf")),
        ("123456789012345678", 123_456_789_012_345_678),
        ("1234567890123456789", 1.2345678901234568e18),
        ("90d", "90d"),
        ("off", "off"),
        ("on", "on"),
        ("no", "no"),
        ("yes", "yes"),
        ("n", "n"),
        ("1:30", "1:30"),
        ("1_000", "1_000"),
        ("0x1F", "0x1F"),
        ("2026-07-26", "2026-07-26"),
        (".inf", ".inf"),
        (".nan", ".nan"),
        ("=", "="),
        ("٣", "٣"),
    ],
)
def test_a_word_means_what_it_says(word: str, value: object) -> None:
    """Null, booleans and decimal numbers are those; everything else is text."""
    assert scalar(word) == value
    assert type(scalar(word)) is type(value)


@given(st.text())
def test_a_word_is_never_more_than_it_looks(word: str) -> None:
    """Any text at all is read, and what is not plainly a value stays as it is."""
    value = scalar(word)
    assert value == word or word[:1] in "+-.~0123456789ntfNTF"


def test_quotes_make_text(tmp_path: Path) -> None:
    """A quoted word is text, whatever it looks like."""
    found = document(tmp_path, "a: \"90\"\nb: 'true'\nc: |\n  5\nd: ''\n")
    assert found.values == {"a": "90", "b": "true", "c": "5\n", "d": ""}


def test_a_key_is_text(tmp_path: Path) -> None:
    """Keys that look like numbers or booleans are names all the same."""
    assert document(tmp_path, "null: 1\n5: 2\non: 3\n<<: 4\n").values == {
        "null": 1,
        "5": 2,
        "on": 3,
        "<<": 4,
    }


def test_every_key_remembers_its_line(tmp_path: Path) -> None:
    """Keys below keys, in either style and through an alias, are found again by their path."""
    found = document(tmp_path, "# x\na:\n  b: &it\n    c: 1\n  d: {e: 2,\n    f: 3}\ng: *it\n")
    assert found.values == {"a": {"b": {"c": 1}, "d": {"e": 2, "f": 3}}, "g": {"c": 1}}
    assert found.lines == {
        ("a",): 2,
        ("a", "b"): 3,
        ("a", "b", "c"): 4,
        ("a", "d"): 5,
        ("a", "d", "e"): 5,
        ("a", "d", "f"): 6,
        ("g",): 7,
        ("g", "c"): 4,
    }
    assert found.place(("a", "b", "c")) == "keepfor.yaml:4: a.b.c"


def test_a_key_that_stands_twice_is_told_with_both_lines(tmp_path: Path) -> None:
    """The second one is a fault that names the first; the same name elsewhere is none."""
    found = document(tmp_path, "a:\n  x: 1\nb:\n  x: 1\n  y: 2\n  x: 3\na: {}\n")
    assert [(fault.where, fault.what, fault.line) for fault in found.faults] == [
        ("keepfor.yaml:6: b.x", "it stands on line 4 already. Leave one out.", 6),
        ("keepfor.yaml:7: a", "it stands on line 1 already. Leave one out.", 7),
    ]


@pytest.mark.parametrize(
    ("text", "where", "what"),
    [
        ("a:\n  [b]: c\n", "keepfor.yaml:2: a", "a key must be a word."),
        ("? {a: b}\n: c\n", "keepfor.yaml:1", "a key must be a word."),
        ("a: !!python/name:os.system x\n", "keepfor.yaml:1: a", "python/name:os.system is not"),
        ("a: !!timestamp 2026-07-26\n", "keepfor.yaml:1: a", "timestamp is not understood"),
        ("a: [1, !x 2]\n", "keepfor.yaml:1: a.1", "the tag !x is not understood. Leave it out."),
    ],
)
def test_what_goes_beyond_plain_values_is_a_fault(
    tmp_path: Path, text: str, where: str, what: str
) -> None:
    """Keys that are no words, and tags, which could mean anything, are refused and not followed."""
    [fault] = document(tmp_path, text).faults
    assert fault.where == where
    assert what in fault.what


@pytest.mark.parametrize("text", ["\ufeffa: é\n", "a: é\r\n", "---\na: é\n...\n"])
def test_harmless_differences_are_taken(tmp_path: Path, text: str) -> None:
    """A byte order mark, Windows' line ends and document marks change nothing."""
    found = document(tmp_path, text)
    assert found.values == {"a": "é"}
    assert found.faults == []


def test_aliases_that_multiply_are_refused(tmp_path: Path) -> None:
    """Ten of ten of ten, eight times over, is said to be endless and not written out."""
    text = "a0: &a0 [x]\n"
    for level in range(1, 9):
        text += f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]\n"
    with pytest.raises(BadConfig, match="aliases make it endless"):
        document(tmp_path, text)


def test_an_alias_is_what_it_stands_for(tmp_path: Path) -> None:
    """What is written once and meant twice is read twice."""
    read = document(tmp_path, "a: &a {b: 1}\nc: *a\n")
    assert read.values == {"a": {"b": 1}, "c": {"b": 1}}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('a: 1\nb: "\\UFFFFFFFF"\n', 2),
        ('a: 1\nb: "\\U00110000"\n', 2),
        (f"%YAML 1.{'1' * 5000}\n---\na: 1\n", 1),
    ],
)
def test_an_escape_that_is_no_character_is_told(tmp_path: Path, text: str, line: int) -> None:
    """What PyYAML cannot make a character or a number of is no YAML, on that line."""
    with pytest.raises(BadConfig, match=rf"keepfor\.yaml:{line}: this is not YAML"):
        document(tmp_path, text)


@pytest.mark.parametrize("text", ['a: "\\ud800"', '"\\ud800": a', 'a: ["\\udfff"]'])
def test_half_a_character_is_told(tmp_path: Path, text: str) -> None:
    """No path, field or name can be called so, and the file says where it stands."""
    (fault,) = document(tmp_path, f"x: 1\n{text}\n").faults
    assert fault.line == 2


def test_a_path_of_bytes_that_are_no_text_can_be_written(tmp_path: Path) -> None:
    """The half characters that Python writes such bytes as are the way to name that file."""
    read = document(tmp_path, 'a: "\\udcff.jsonl"')
    assert (read.values, read.faults) == ({"a": "\udcff.jsonl"}, [])
