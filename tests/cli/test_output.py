"""What is printed is safe to look at, plain where nobody looks, and never stops the work."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from keepfor import wording
from keepfor.cli import documents, progress, render
from keepfor.cli.blocks import Block, Fact, Facts, Heading, Line, Table
from keepfor.escape import visible, visible_lines
from tests.cli.conftest import RECALL, Place

EVIL = "\x1b[31m[red]\r\n\u202e"
BLOCKS: list[Block] = [
    Heading(EVIL, (EVIL,)),
    Line(EVIL),
    Facts([Fact(EVIL, EVIL, "bad")]),
    Table([EVIL, "#n"], [[EVIL, "1"]]),
]
SHOWN = "\\x1b[31m[red]\\r\\n\\u202e"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain/näme 日本.md", "plain/näme 日本.md"),
        ("a\x1b[2Jb", "a\\x1b[2Jb"),
        ("a\nb\tc\rd", "a\\nb\\tc\\rd"),
        ("\x9b31m\x7f\x00", "\\x9b31m\\x7f\\x00"),
        ("\u202egnp.exe\u2028\u200b", "\\u202egnp.exe\\u2028\\u200b"),
        ("\U000e0001", "\\U000e0001"),
        (os.fsdecode(b"\xff\xfe.md"), "\\xff\\xfe.md"),
        ("\ud800", "\\ud800"),
    ],
)
def test_a_hostile_name_is_written_out(text: str, shown: str) -> None:
    """Controls, escapes, direction marks and what is not UTF-8 never reach a terminal as such."""
    assert visible(text) == shown


def test_a_message_keeps_its_lines() -> None:
    """An error of several lines stays so; all else in it is written out."""
    assert visible_lines("one\ntwo\x1b") == "one\ntwo\\x1b"


def test_nothing_hostile_passes_the_plain_text() -> None:
    """Every kind of block is escaped where it becomes plain text."""
    text = render.plain(BLOCKS)
    assert text.count(SHOWN) == 7
    assert set(text) & set("\x1b\r\u202e") == set()
    assert text.count("\n") == 5


def test_nothing_hostile_passes_the_coloured_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does it where the text is coloured, and what looks like markup is none."""
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setenv("COLUMNS", "200")
    text = render.rich(BLOCKS, unicode=False)
    assert text.count(SHOWN) == 7
    assert set(text) & set("\x1b\r\u202e") == set()


def test_a_hostile_path_is_written_out(place: Place) -> None:
    """A store whose path holds an escape sequence is shown, and its errors too, without it."""
    name = "a\x1b]0;title\x07b"
    place.configure(
        f"stores:\n  recall: {{kind: ledger, path: {json.dumps(name)}, keep_for: 1d}}\n"
    )
    (place.folder / name).mkdir()
    ran = place.run("plan")
    assert "a\\x1b]0;title\\x07b" in ran.err
    (place.folder / name).rmdir()
    ran = place.run("plan")
    assert "a\\x1b]0;title\\x07b" in ran.out
    assert "\x1b" not in ran.out


def test_what_a_row_holds_is_written_out(place: Place) -> None:
    """Evidence of a match may be anything; it is shown as text, and is JSON for programs."""
    hit = {
        "slug": "x",
        "path": "\x1b[1m\ud800",
        "sim": float("nan"),
        "rank": 10**40,
        "keyword": [1],
    }
    row = {"hit_slugs": ["x"], "hits": [hit], "ts": "2026-07-25T00:00:00Z"}
    place.ledger.write_text(f"{json.dumps(row)}\n")
    ran = place.run("trace", "recall", "x")
    assert "\\x1b[1m\\ud800" in ran.out
    assert f"rank {10**40}, combined -, sim nan, keyword [1]" in ran.out
    (match,) = place.run("trace", "recall", "x", "--json").json["matches"]
    assert (match["path"], match["sim"], match["rank"]) == ("\x1b[1m\ud800", None, 10**40)


def test_plain_columns_are_aligned() -> None:
    """Numbers stand to the right, words to the left, and no line ends in blanks."""
    assert render.plain(
        [Table(["name", "#n", "end"], [["a", "1,000", ""], ["bcdef", "2", "x"]])]
    ) == ("name       n  end\na      1,000\nbcdef      2  x\n")


@pytest.mark.parametrize("unicode", [True, False])
def test_a_terminal_gets_a_table_of_its_kind(
    monkeypatch: pytest.MonkeyPatch, unicode: bool
) -> None:
    """A rule under the headings where the terminal can show one."""
    monkeypatch.setenv("TERM", "dumb")
    text = render.rich([Table(["a", "b"], [["1", "2"]])], unicode=unicode)
    assert text.isascii() is not unicode


def test_colour_is_for_terminals_alone(
    place: Place, person: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pipe gets plain text, a terminal colour, and NO_COLOR turns it off."""
    place.write([100, 1])
    assert "\x1b" not in place.run("plan").out
    person("")
    assert "\x1b[33m" in place.run("plan").out
    monkeypatch.setenv("NO_COLOR", "1")
    ran = place.run("plan")
    assert not any(f"\x1b[{colour}m" in ran.out for colour in range(30, 40))


def test_a_terminal_of_80_columns_is_enough(place: Place, person: Callable[[str], None]) -> None:
    """No line of the sample's plan, status or log is wider than 80 columns."""
    place.sample()
    person("y\n")
    place.run("apply")
    for verb in ("plan", "status", "check", "log"):
        text = place.run(verb).out
        bare = "".join(part.partition("m")[2] for part in f"\x1b[m{text}".split("\x1b["))
        assert max(map(len, bare.splitlines())) <= 80, verb


def test_documents_are_strict_json_in_ascii() -> None:
    """Instants, durations, infinities and odd characters are what any reader takes."""
    moment = datetime(1, 2, 3, 4, 5, 6, 7, tzinfo=UTC)
    text = documents.encode(
        {
            "instant": moment,
            "whole": datetime(2026, 7, 26, tzinfo=UTC),
            "duration": timedelta(days=1),
            "nan": float("nan"),
            "name": "ä\udcff",
            "path": Path("/x"),
            "many": (1, 2.5, True, None),
        }
    )
    assert text.isascii()
    assert json.loads(text) == {
        "instant": "0001-02-03T04:05:06.000007Z",
        "whole": "2026-07-26T00:00:00Z",
        "duration": 86_400.0,
        "nan": None,
        "name": "ä\udcff",
        "path": "/x",
        "many": [1, 2.5, True, None],
    }


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (26_214_400, "25.0 MiB"), (2**41, "2.0 TiB")],
)
def test_sizes_are_easy_to_take_in(count: int, text: str) -> None:
    """A size is written with one decimal in the largest unit that fits."""
    assert wording.size(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0124, "12ms"),
        (4.52, "4.5s"),
        (75, "1min"),
        (11_100, "3h5min"),
        (200_000, "2d7h"),
        (12.9 * 86_400, "12d"),
    ],
)
def test_durations_are_as_coarse_as_they_are_long(seconds: float, text: str) -> None:
    """Nobody reads the seconds of twelve days."""
    assert wording.span(timedelta(seconds=seconds)) == text


def test_words_for_counts_and_instants() -> None:
    """Thousands are grouped, one is no plural, names are listed, nothing known is a dash."""
    assert [wording.rows(count) for count in (0, 1, 1234)] == ["0 rows", "1 row", "1,234 rows"]
    assert [wording.listed(list(names)) for names in ("a", "ab", "abc")] == [
        "a",
        "a and b",
        "a, b and c",
    ]
    assert wording.instant(None) == "-"


def test_a_closed_pipe_is_silent_and_stops_nothing(place: Place) -> None:
    """`| head` neither makes a noise nor leaves the second store unswept."""
    place.configure(
        f"{RECALL}  other: {{kind: ledger, path: other.jsonl, keep_for: 1d}}\nstate_dir: s\n"
    )
    place.write([2000, *range(20)])
    other = place.write([2000, 1900], "other.jsonl")
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "keepfor", "apply", "--yes", "--force"],
        cwd=place.folder,
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")
    assert other.read_bytes() == b""


def test_a_full_disk_under_stdout_is_said_after_the_work(place: Place) -> None:
    """What could not be printed is 1, but what was to be swept is swept."""
    place.write([100, *(0 for _ in range(3))])
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "keepfor", "apply", "--yes"],
            cwd=place.folder,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env={
                **os.environ,
                "KEEPFOR_STORES__RECALL__KEEP_FOR": "99d",
                "KEEPFOR_STORES__RECALL__BREAKER": "off",
            },
        )
    assert done.returncode == 1
    assert done.stderr.startswith("keepfor: stdout: No space left on device.")
    assert place.ledger.read_bytes() == b""


@pytest.mark.parametrize("stream", ["stdout", "stderr", "stdin"])
def test_a_stream_that_is_closed_stops_nothing(place: Place, stream: str) -> None:
    """A daemon without stdin, stdout or stderr can still apply."""
    place.write([2000, 1999])
    code = (
        f"import sys; sys.{stream} = None; from keepfor.cli import main; main(['apply', '--yes'])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=place.folder, capture_output=True)
    assert done.returncode == 0
    assert place.ledger.read_bytes() == b""


def test_a_terminal_of_another_alphabet_shows_what_it_can(place: Place) -> None:
    """A name that the locale cannot encode is written in escapes."""
    place.configure("stores:\n  recall: {kind: ledger, path: 日本.jsonl, keep_for: 1d}\n")
    done = subprocess.run(
        [sys.executable, "-m", "keepfor", "status"],
        cwd=place.folder,
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert done.returncode == 0
    assert rb"\u65e5\u672c.jsonl" in done.stdout


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_long_work_shows_how_far_it_is(
    place: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """At a terminal a bar appears on stderr when something takes too long, and is gone after it."""
    monkeypatch.setattr(progress, "PATIENCE", -1.0)
    monkeypatch.setenv("TERM", "xterm")
    place.sample()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", terminal := Terminal())
        assert place.run("plan").code == 0
    assert "Reading recall" in terminal.getvalue()
    assert "%" in terminal.getvalue()
    assert terminal.getvalue().endswith("\x1b[2K")


def test_short_work_shows_no_bar(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is done within a second needs no bar."""
    monkeypatch.setattr(progress, "PATIENCE", 3600.0)
    place.sample()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", terminal := Terminal())
        place.run("plan")
    assert terminal.getvalue() == ""


def test_no_bar_is_drawn_into_a_file(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where stderr is no terminal there is no bar, however long it takes."""
    monkeypatch.setattr(progress, "PATIENCE", -1.0)
    place.sample()
    assert place.run("plan").err == ""
