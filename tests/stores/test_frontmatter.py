"""Frontmatter: it is told as YAML tells it or not at all, and a flag changes nothing else."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from keepfor.stores import frontmatter
from keepfor.stores.flagtext import flagged
from keepfor.stores.frontmatter import CAP, FLAG, KEYS, Frontmatter, Refused, read

#: Some keys more than those that are always read, as a rule's `match` would name them.
MORE = KEYS | {"created_at", "owner"}
AT, REASON, RULE = "2026-07-26T00:00:00Z", "age", "stale-guidelines"
LINES = (
    b'retention_flagged_at: "2026-07-26T00:00:00Z"\n'
    b'retention_reason: "age"\n'
    b'retention_rule: "stale-guidelines"\n'
)


def note(text: str) -> bytes:
    """A note with that between its fences."""
    return f"---\n{text}---\n\nbody\n".encode()


def flag(data: bytes, **other: str) -> bytes:
    return flagged(data, **{"at": AT, "reason": REASON, "rule": RULE, **other})


def by_any_reader(data: bytes) -> dict[str, Any]:
    """The frontmatter as an ordinary program reads it: cut at the fences, given to PyYAML."""
    _, text, _ = data.removeprefix(b"\xef\xbb\xbf").decode().split("---", 2)
    values = yaml.safe_load(text)
    assert isinstance(values, dict)
    return values


# --- what is read -------------------------------------------------------------------------


def test_a_note_of_the_sample_is_read() -> None:
    """The keys that a store needs are told as they are written, and no others."""
    head = (
        b"---\n"
        b"type: guideline\n"
        b"trigger: when close sqlite connections\n"
        b"trajectory: .evolve/trajectories/trajectory_2025-10-28T02-38-24_sess-01.json\n"
        b"---\n\nclose sqlite connections (note 5)\n"
    )
    assert read(head) == Frontmatter(
        texts={
            "type": "guideline",
            "trajectory": ".evolve/trajectories/trajectory_2025-10-28T02-38-24_sess-01.json",
        }
    )


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("2026-01-02", "2026-01-02"),
        ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"),
        ("2026-01-02 03:04", "2026-01-02 03:04"),
        ("off", "off"),
        ("null", "null"),
        ("010", "010"),
        ("1_000.50", "1_000.50"),
        ("0x1F", "0x1F"),
        ("'off'", "off"),
        ('"a: b # c"', "a: b # c"),
        ("'it''s'", "it's"),
        ('"a\\tb\\u00e9"', "a\tbé"),
        ("a # a remark", "a"),
        ("a#b c:d", "a#b c:d"),
        ("", ""),
        ("# only a remark", ""),
        ("über alles 😀", "über alles 😀"),
        ("   spaces around   ", "spaces around"),
        ("|\n  two\n  lines", "two\nlines\n"),
        (">-\n  one\n  line", "one line"),
        ("&anchor x", "x"),
        ("!!str 5", "5"),
        ("on\n  two lines", "on two lines"),
    ],
)
def test_a_value_is_the_text_that_was_written(written: str, text: str) -> None:
    """No date or number is made of a word; quotes, remarks and blocks mean what they do."""
    assert read(note(f"created_at: {written}\ntype: t\n"), MORE).texts == {
        "created_at": text,
        "type": "t",
    }


@pytest.mark.parametrize(
    "written",
    [
        " [one, two words]",
        " ['one', \"two words\"]",
        " [one,\n  two words]",
        "\n  - one\n  - two words",
        "\n- 'one'\n- \"two words\" # a remark",
        "\n  - one\n\n  - two\n    words",
    ],
)
@pytest.mark.parametrize("key", ["links", "supersedes", "source"])
def test_a_list_of_texts_is_read_where_several_may_be_named(key: str, written: str) -> None:
    """However a list is written, the texts in it are told in order."""
    said = read(note(f"{key}:{written}\n"))
    assert said == Frontmatter(lists={key: ("one", "two words")})
    assert said.named(key) == ("one", "two words")


def test_what_a_key_names_is_told_for_one_as_for_many() -> None:
    """One text counts as a list of one; an empty one, or none, names nothing."""
    said = read(note("links: one\nsource:\nsupersedes: []\n"))
    assert said.named("links") == ("one",)
    assert said.named("source") == said.named("supersedes") == said.named("trajectory") == ()


def test_nested_values_of_other_keys_are_passed_over() -> None:
    """Keys within keys are not the note's own, and what nobody asks for spoils nothing."""
    text = "meta:\n  type: inner\n  list: [1, {a: b}]\n? [odd, key]\n: x\ntype: outer\n"
    assert read(note(text)) == Frontmatter(texts={"type": "outer"})


@pytest.mark.parametrize("eol", ["\n", "\r\n"])
@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"])
def test_line_endings_and_a_bom_are_no_part_of_a_value(bom: bytes, eol: str) -> None:
    """CRLF and a byte order mark, as editors on Windows write them, change nothing that is told."""
    text = "---\ntype: t\nlinks:\n  - a\nsource: >\n  b\n  c\n---\nbody\n"
    head = bom + text.replace("\n", eol).encode()
    assert read(head) == Frontmatter(
        texts={"type": "t", "source": "b c\n"}, lists={"links": ("a",)}
    )


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"\xef\xbb\xbf",
        b"# A heading\n\ntext\n",
        b"\xe9\xe8 latin\n",
        b"text\n---\ntype: t\n---\n",
        b"--- a/file\n+++ b/file\n",
        b"--\ntype: t\n--\n",
        b"---\n---\nbody\n",
        b"---\n\n# nothing set\n---\nbody\n",
    ],
)
def test_a_note_that_says_nothing_is_no_riddle(head: bytes) -> None:
    """Without frontmatter, or with an empty one, nothing is told and nothing is in doubt."""
    said = read(head)
    assert (said.texts, said.lists, said.unread, said.why) == ({}, {}, {}, "")


def test_what_looks_like_a_fence_in_the_body_is_the_bodys() -> None:
    """The first closing line ends the frontmatter; rules and keys below it are text."""
    assert read(b"---\ntype: t\n---\nbody\n---\ntype: u\n---\n").texts == {"type": "t"}


def test_a_fence_may_have_blanks_after_it_and_none_before() -> None:
    """`---` with blanks after it is a fence; longer, indented or with words it is not."""
    head = b"--- \t\ntype: t\nsource: |\n  ---\n ---\n---- \n"
    assert read(head).why == "its frontmatter has no closing line ---"
    assert read(b"--- \t\ntype: t\nsource: |\n  ---\n---\t \n").texts == {
        "type": "t",
        "source": "---\n",
    }


# --- what cannot be read ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("head", "why"),
    [
        (b"---\ntype: t\n\nbody\n", "its frontmatter has no closing line ---"),
        (b"---\ntype: caf\xe9\n---\n", "its frontmatter is not UTF-8"),
        (
            b"---\nlinks: a\ntype:\tt\n---\n",
            "its frontmatter is not YAML in line 3 (a tab where only spaces may stand)",
        ),
        (
            b"---\ntype: t\ntrigger: when: then\n---\n",
            "its frontmatter is not YAML in line 3 (mapping values are not allowed here)",
        ),
        (b"---\ntype: 'secret\n---\n", "its frontmatter is not YAML in line 3 (found unexpected "),
        (b"---\ntype: *secret\n---\n", "its frontmatter is not YAML in line 2"),
        (b"---\ntype: t\n secret\nlinks\n---\n", "its frontmatter is not YAML in line 5"),
        (b"---\n- type\n---\n", "its frontmatter is not made of keys and values"),
        (b"---\njust words\n---\n", "its frontmatter is not made of keys and values"),
        (
            b"---\ntype: t\n...\n---\n",
            "its frontmatter has a line ..., which ends it for some programs only",
        ),
        (
            b"---\nbase: &b {type: t}\n<<: *b\n---\n",
            "its frontmatter has a merge key <<, which programs read differently",
        ),
        (b"---\ntype: " + b"[" * 5000 + b"\n---\n", "its frontmatter is nested without end"),
        (
            b"---\ntype: a\x00b\n---\n",
            "its frontmatter holds a character that YAML does not allow",
        ),
        (
            b'---\ntype: "\\UFFFFFFFF"\n---\n',
            "its frontmatter holds a character that YAML does not allow",
        ),
        ("---\ntype: t\n---\n".encode("utf-16"), "it is written in UTF-16 and not in UTF-8"),
        ("---\ntype: t\n---\n".encode("utf-16-le"), "it is written in UTF-16 and not in UTF-8"),
        (b"\n---\ntype: t\n---\n", "it begins with a line that only some programs take for"),
        (b"  ---\ntype: t\n---\n", "it begins with a line that only some programs take for"),
        (b"----\ntype: t\n----\n", "it begins with a line that only some programs take for"),
        (b"+++\ntype = 't'\n+++\n", "it begins with a line that only some programs take for"),
        (b"---\rtype: t\r---\r", ""),
    ],
)
def test_a_frontmatter_that_cannot_be_read_says_why(head: bytes, why: str) -> None:
    """Nothing is told of it, the reason is one short sentence, and it holds nothing of the note."""
    said = read(head)
    assert (said.texts, said.lists, said.unread) == ({}, {}, {})
    assert said.why.startswith(why)
    assert "secret" not in said.why
    assert said.doubt("type") == said.why


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("type: [a]\n", "its type is a list and not text"),
        ("type:\n  - a\n", "its type is a list and not text"),
        ("type:\n  - a: b\n", "its type is a list and not text"),
        ("type: {a: b}\n", "its type is a mapping and not text"),
        ("type: {{date}}\n", "its type is a mapping and not text"),
        ("type:\n  a: b\n", "its type is a mapping and not text"),
        ("type: !!int 5\n", "its type has a YAML tag"),
        ("type: !mine 5\n", "its type has a YAML tag"),
        ('type: "\\ud800"\n', "its type holds half a character"),
        ("type: a\ntype: a\n", "its type stands twice"),
        ("type: a\n'type': [b]\n", "its type stands twice"),
        ("type: [b]\ntype: a\ntype: c\n", "its type stands twice"),
    ],
)
def test_a_value_that_cannot_be_told_spoils_no_other(text: str, why: str) -> None:
    """A key that holds no text, or stands twice, is in doubt by itself."""
    said = read(note(f"{text}trajectory: x\n"))
    assert said.texts == {"trajectory": "x"}
    assert list(said.unread) == ["type"]
    assert (said.doubt("type"), said.doubt("trajectory"), said.doubt("links")) == (why, "", "")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("links: [[a]]\n", "its links has an item that is a list and not text"),
        ("links:\n  - a\n  - b: c\n", "its links has an item that is a mapping and not text"),
        ("links: {a: b}\n", "its links is a mapping and not text"),
        ("links: [a]\nlinks: [b]\n", "its links stands twice"),
    ],
)
def test_a_list_that_holds_more_than_texts_is_in_doubt_as_a_whole(text: str, why: str) -> None:
    """A part of what a note links to is not told as if it were all."""
    said = read(note(text))
    assert (said.lists, said.texts, said.doubt("links")) == ({}, {}, why)


# --- how much of a note it takes ----------------------------------------------------------


def test_the_answer_says_when_more_of_the_note_is_needed() -> None:
    """Until the closing line is there to its end, the answer holds for a note that ends here."""
    whole = b"---\ntype: t\n---\nbody\n"
    assert [read(whole[:size]).complete for size in range(len(whole) + 1)] == [
        *[False] * 16,  # up to and with the closing line, but without its end
        *[True] * 6,
    ]
    assert read(b"---\ntype: t\n---").texts == {"type": "t"}
    assert read(b"# A heading").complete


@pytest.mark.parametrize("size", [CAP - 1, CAP, CAP + 1])
def test_beyond_64_kib_nothing_is_looked_for(size: int) -> None:
    """A closing line that ends within the bound is found, and one beyond it is not."""
    head = b"---\ntype: t\n#".ljust(size - 5, b"x") + b"\n---\n"
    assert len(head) == size
    said = read(head)
    assert said.complete
    assert said.texts == ({"type": "t"} if size <= CAP else {})
    too_long = "its frontmatter has no closing line --- within the first 64 KiB"
    assert said.why == ("" if size <= CAP else too_long)


def test_a_note_of_50_mb_is_no_burden() -> None:
    """Of a huge note only the head counts, whether it has a frontmatter, an open one or none."""
    tail = b"x" * 50_000_000
    assert read(b"---\ntype: t\n---\n" + tail).texts == {"type": "t"}
    assert read(b"---\n" + tail).why.endswith("within the first 64 KiB")
    assert read(tail) == Frontmatter()


heads = st.lists(
    st.sampled_from(
        [
            b"---",
            b"--",
            b"-",
            b"+++",
            b"\n",
            b"\r\n",
            b"\r",
            b" ",
            b"\t",
            b"a: b",
            b"type: t\n",
            b"\xef\xbb\xbf",
            b"\xef",
            b"\xbb",
            b"\xff\xfe",
            b"\x00",
            b"\xe9",
            b"\n---\n",
            b"...",
        ]
    ),
    max_size=8,
).map(b"".join)


@settings(max_examples=400)
@given(head=heads, tail=heads)
def test_a_complete_answer_stays_whatever_comes_after(head: bytes, tail: bytes) -> None:
    """What is told of a head as complete is what is told of the note."""
    said = read(head)
    if said.complete:
        assert read(head + tail) == said


# --- the fast way and the definition ------------------------------------------------------

names = st.sampled_from(["type", "links", "source", "owner", "k_1", "'type'", "a b", "<<"])
scraps = st.sampled_from(
    [
        "x",
        "two words",
        "a:b",
        "a#b",
        "2026-01-01",
        "'q'",
        "'it''s'",
        '"q"',
        '"a\\n"',
        "[a, b c]",
        "[]",
        "['a' , \"b\"]",
        "[a: b]",
        "- a",
        "-a",
        "|",
        ">-",
        "&a",
        "*a",
        "!t",
        "{a: b}",
        "@",
        "%",
        ": ",
        ":",
        " #c",
        "#",
        ",",
        "]",
        "'",
        '"',
        "\\",
        "?",
        "é",
        "😀",
        "\x85",
        "\u2028",
        "\ufeff",
        "\t",
        "\x00",
        "\xa0",
        "...",
        "---",
        "~",
        "\r",
        "  ",
        "\n  ",
        "\n",
        "\n- a",
        "\n  - a b",
    ]
)
values = st.lists(scraps, max_size=3).map("".join)
between = st.sampled_from(
    ["\n", "\n", "\n", "\n\n", "\n# c\n", "\n  # c\n", " # c\n", " \n", "\n "]
)
texts = st.lists(
    st.tuples(names, st.sampled_from([": ", ":", ":  ", " : "]), values, between).map("".join),
    max_size=5,
).map("".join)


@settings(max_examples=500)
@given(text=texts.map(lambda text: f"{text}\n"), crlf=st.booleans())
def test_the_fast_way_tells_what_pyyaml_tells(text: str, crlf: bool) -> None:
    """Where a note is read without a YAML reader, the answer is the very same."""
    text = text.replace("\n", "\r\n") if crlf else text
    fast = frontmatter.by_lines(text, MORE)
    if fast is not None:
        assert fast == frontmatter.by_yaml(text, MORE)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "type: guideline\ntrigger: when write the newline-last, in 10:30 #hash? no\n",
        "# a remark\n\ntype: 'quoted' # why\r\nowner: \"über\"\r\n",
        'tags: [a, b-c, \'d e\', "[[f]]"]\nlinks:\n  - a/b c\n  - "[[d]]"\n',
        "links:\nsource:\n- a\n- b # c\ntype: [a]\ntype: b\n",
        'retention_flagged_at: "2026-07-26T00:00:00Z"\nretention_rule: "stale"\n',
    ],
)
def test_plain_notes_need_no_yaml_reader(text: str) -> None:
    """The shapes that notes have in their thousands are read the fast way, to the same answer."""
    fast = frontmatter.by_lines(text, MORE)
    assert fast is not None
    assert fast == frontmatter.by_yaml(text, MORE)


# --- a flag -------------------------------------------------------------------------------

GOLDEN: Mapping[str, tuple[bytes, bytes]] = {
    "plain": (
        b"---\ntype: guideline\n---\n\nbody\n",
        b"---\ntype: guideline\n" + LINES + b"---\n\nbody\n",
    ),
    "no final newline, remarks, odd spaces, other retention_ keys": (
        b"---  \n# why\ntype:   guideline  # c\nretention_class: 'x'\n\n--- \nbody  \n---\nend",
        b"---  \n# why\ntype:   guideline  # c\nretention_class: 'x'\n\n"
        + LINES
        + b"--- \nbody  \n---\nend",
    ),
    "the closing line ends the file": (
        b"---\ntype: guideline\n---",
        b"---\ntype: guideline\n" + LINES + b"---",
    ),
    "CRLF and a BOM": (
        b"\xef\xbb\xbf---\r\ntype: guideline\r\n---\r\nbody\r\n",
        b"\xef\xbb\xbf---\r\ntype: guideline\r\n"
        + LINES.replace(b"\n", b"\r\n")
        + b"---\r\nbody\r\n",
    ),
    "CRLF in the head and LF in the body": (
        b"---\r\ntype: guideline\r\n---\r\nbody\nbody\n",
        b"---\r\ntype: guideline\r\n" + LINES.replace(b"\n", b"\r\n") + b"---\r\nbody\nbody\n",
    ),
    "an empty frontmatter": (b"---\n---\nbody\n", b"---\n" + LINES + b"---\nbody\n"),
    "only a remark": (b"---\n# c\n---\n", b"---\n# c\n" + LINES + b"---\n"),
    "no frontmatter": (b"# Title\n\nbody", b"---\n" + LINES + b"---\n# Title\n\nbody"),
    "no frontmatter, CRLF and a BOM": (
        b"\xef\xbb\xbf# Title\r\nbody\n",
        b"\xef\xbb\xbf---\r\n" + LINES.replace(b"\n", b"\r\n") + b"---\r\n# Title\r\nbody\n",
    ),
    "an empty file": (b"", b"---\n" + LINES + b"---\n"),
    "a body that is not UTF-8": (
        b"---\ntype: guideline\n---\ncaf\xe9\x00\n",
        b"---\ntype: guideline\n" + LINES + b"---\ncaf\xe9\x00\n",
    ),
    "flagged by another rule": (
        (
            b"---\nretention_flagged_at: 2026-01-01\nretention_reason: 'a ''b'''  # c\n"
            b'retention_rule: "old" \ntype: guideline\n---\nbody\n'
        ),
        (
            b'---\nretention_flagged_at: "2026-07-26T00:00:00Z"\nretention_reason: "age"  # c\n'
            b'retention_rule: "stale-guidelines" \ntype: guideline\n---\nbody\n'
        ),
    ),
    "half a flag": (
        b"---\nretention_rule:  # c\ntype: guideline\n'retention_reason': on\n  two lines\n---\n",
        (
            b'---\nretention_rule: "stale-guidelines"  # c\ntype: guideline\n'
            b'\'retention_reason\': "age"\nretention_flagged_at: "2026-07-26T00:00:00Z"\n---\n'
        ),
    ),
    "named without a date by the same rule": (
        b"---\nretention_rule: stale-guidelines\n---\n",
        (
            b'---\nretention_rule: "stale-guidelines"\n'
            b'retention_flagged_at: "2026-07-26T00:00:00Z"\nretention_reason: "age"\n---\n'
        ),
    ),
    "a list, a nested mapping and a block at the end": (
        b"---\nlinks:\n- a\nmeta:\n  retention_rule: inner\ntext: |+\n  a\n\n\n---\nbody\n",
        b"---\nlinks:\n- a\nmeta:\n  retention_rule: inner\ntext: |+\n  a\n\n\n"
        + LINES
        + b"---\nbody\n",
    ),
    "indented as a whole": (
        b"---\n  type: guideline\n  links: [a]\n---\n",
        b"---\n  type: guideline\n  links: [a]\n"
        + b"".join(b"  " + line for line in LINES.splitlines(keepends=True))
        + b"---\n",
    ),
}


@pytest.mark.parametrize("case", GOLDEN)
def test_a_flag_is_written_and_nothing_else_is_touched(case: str) -> None:
    """Before and after, byte for byte; and once it is there it stays as it is."""
    before, after = GOLDEN[case]
    assert flag(before) == after
    assert flag(after) == after


def test_a_note_that_the_rule_flagged_already_is_left_alone() -> None:
    """A later sweep by the same rule, with another date and reason, changes no byte."""
    data = b"---\nretention_rule: 'stale-guidelines'\nretention_flagged_at: 2026-01-01\n---\nbody"
    assert flag(data, at="2027-01-01", reason="unused") == data
    assert flag(data, rule="another") != data


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (note("{type: a, links: b}\n"), "its frontmatter is written in braces"),
        (note("type: a\nowner: x\nowner: y\n"), "a key stands twice in its frontmatter"),
        (note("retention_rule: a\nretention_rule: b\n"), "its retention_rule stands twice"),
        (note("retention_reason: [a]\n"), "its retention_reason is a list and not text"),
        (
            note("retention_reason: |\n  a\n"),
            "its retention_reason is more than words on a line",
        ),
        (
            note("retention_reason: &a x\nowner: *a\n"),
            "its retention_reason is more than words on a line",
        ),
        (
            note("owner: &a x\nretention_reason: *a\n"),
            "its retention_reason is more than words on a line",
        ),
        (note("- a\n"), "its frontmatter is not made of keys and values"),
        (note("type: a: b\n"), "its frontmatter is not YAML in line 2 (mapping values"),
        (b"---\ntype: a\nbody\n", "its frontmatter has no closing line ---"),
        (b"---\ntype: caf\xe9\n---\n", "its frontmatter is not UTF-8"),
        (b"+++\ntype = 'a'\n+++\n", "it begins with a line that only some programs take for"),
        ("body".encode("utf-16"), "it is written in UTF-16"),
        (note("? a\n: !!map\n  b: c\n? d\n"), ""),
    ],
)
def test_a_note_that_a_flag_would_damage_is_refused(data: bytes, why: str) -> None:
    """What cannot be read, or not changed for certain, is left as it is, with a reason."""
    if not why:
        assert by_any_reader(flag(data))["retention_rule"] == RULE
        return
    with pytest.raises(Refused) as refused:
        flag(data)
    assert str(refused.value).startswith(why)


def test_a_flag_that_would_not_be_found_again_is_refused() -> None:
    """A frontmatter that the flag would push past the bound keeps its bytes."""
    data = b"---\ntype: t\n#".ljust(CAP - 20, b"x") + b"\n---\n"
    assert read(data).texts == {"type": "t"}
    with pytest.raises(Refused, match="within the first 64 KiB"):
        flag(data)


def test_a_flag_of_half_a_character_is_refused() -> None:
    """What no file can hold is not written."""
    with pytest.raises(Refused, match="the flag holds half a character"):
        flag(b"", reason="\ud800")


@given(
    reason=st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
    | st.sampled_from(["---", "\n---\n", "a: b", "# c", "'\"", "\\x", "\x85\u2028\ufeff\x00\x7f"]),
    data=st.sampled_from([b"", b"body", note("type: a\n"), note("retention_reason: b\n")]),
)
def test_any_reader_reads_the_flag_back(reason: str, data: bytes) -> None:
    """Whatever is in a name or a reason, it comes back as that text, in the frontmatter alone."""
    values = by_any_reader(flag(data, reason=reason, rule=reason, at=reason))
    assert {key: values[key] for key in FLAG} == dict.fromkeys(FLAG, reason)
    assert read(flag(data, reason=reason)).texts["retention_reason"] == reason


kept_keys = st.sampled_from(["type", "links", "owner", "retention_class", "retention_rules"])
kept_values = st.sampled_from(
    [
        "x",
        "'q'",
        "[a, b]",
        "\n  - a\n  - b",
        "|\n  a\n",
        ">+\n  a\n\n",
        "{a: b}",
        "&a b",
        "x # c",
        "",
        "\n  a: b",
        "two\n  lines",
        '"a\n  b"',
        "\n- a",
        "*b",
        "é",
        "!t x",
        "\t",
        "a: b",
        "'",
    ]
)
kept = st.lists(
    st.tuples(kept_keys, kept_values).map(lambda pair: f"{pair[0]}: {pair[1]}\n"), max_size=4
).map("".join)
bodies = st.binary(max_size=20) | st.sampled_from([b"---\n", b"\n---\ntype: z\n---\n", b"\r\n"])


@settings(max_examples=300)
@given(
    text=kept | st.none(),
    body=bodies,
    eol=st.sampled_from([b"\n", b"\r\n"]),
    bom=st.sampled_from([b"", b"\xef\xbb\xbf"]),
)
def test_without_the_lines_of_the_flag_the_note_is_as_it_was(
    text: str | None, body: bytes, eol: bytes, bom: bytes
) -> None:
    """A flag can be read, stands once, and is made of added lines only; the rest says the same."""
    head = f"---\n{text}---\n".encode().replace(b"\n", eol) if text is not None else b""
    if not head and body.startswith(b"\xef\xbb\xbf"):
        bom, body = bom or body[:3], body[3:] if not bom else body
    data = bom + head + body
    try:
        after = flag(data)
    except Refused:
        return
    said, before = read(after), read(data)
    flags = {"retention_flagged_at": AT, "retention_reason": REASON, "retention_rule": RULE}
    assert said.texts == before.texts | flags
    assert (said.lists, said.unread, said.why) == (before.lists, before.unread, "")
    assert after.endswith(body)
    assert flag(after, at="later") == after
    for line in LINES.splitlines():
        assert after.count(line) == 1
    bare = after
    for ending in (b"\n", b"\r\n"):
        bare = bare.replace(LINES.replace(b"\n", ending), b"")
    if head and read(bom + head + b"\n").complete:
        assert bare == data
    else:
        # A note that had no frontmatter was given one, with fences of its own.
        fence = bare[len(bom) :].partition(b"\n")[0] + b"\n"
        assert bare == data or bare == bom + fence * 2 + data[len(bom) :]


def test_the_notes_of_a_tree_are_flagged_and_read_back(tmp_path: Path) -> None:
    """Many notes of many shapes, written to disk: each says its flag and keeps every other line."""
    shapes = random.Random(4)
    for number in range(50):
        keys = {"type": "guideline", "trigger": f"when note {number}", "owner": "me"}
        chosen = shapes.sample(sorted(keys), k=shapes.randint(1, 3))
        lines = [f"{key}: {json.dumps(keys[key]) if number % 2 else keys[key]}" for key in chosen]
        path = tmp_path / f"{number}.md"
        path.write_bytes(note("".join(f"{line}\n" for line in lines)))
        before = path.read_bytes().splitlines()
        path.write_bytes(flag(path.read_bytes()))
        after = path.read_bytes().splitlines()
        assert [line for line in after if line + b"\n" not in LINES.splitlines(True)] == before
        assert by_any_reader(path.read_bytes()) == {key: keys[key] for key in chosen} | {
            "retention_flagged_at": AT,
            "retention_reason": REASON,
            "retention_rule": RULE,
        }
