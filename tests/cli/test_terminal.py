"""At a real terminal: what is seen there, what is asked, and what the answer does."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys

import pytest

from tests.cli.conftest import Place

QUESTION = b"[y/N] "


def at_terminal(place: Place, *words: str, answer: bytes | signal.Signals = b"") -> tuple[int, str]:
    """Run keepfor in a pseudo-terminal of 80 columns, and answer its question.

    Returns:
        The exit code, and all that was seen.
    """
    ours, its = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "80", "LINES": "40"}
    command = [sys.executable, "-m", "keepfor", *words]
    with subprocess.Popen(
        command, cwd=place.folder, stdin=its, stdout=its, stderr=its, env=environment
    ) as process:
        os.close(its)
        seen, answered = b"", False
        while piece := read(ours):
            seen += piece
            if QUESTION in seen and not answered:
                answered = True
                if isinstance(answer, signal.Signals):
                    process.send_signal(answer)
                else:
                    os.write(ours, answer)
        os.close(ours)
        return process.wait(timeout=30), seen.decode()


def read(terminal: int) -> bytes:
    """What comes next; nothing once the other side is closed."""
    try:
        return os.read(terminal, 1 << 16)
    except OSError:
        return b""


@pytest.fixture
def due(place: Place) -> Place:
    """A ledger of which one row of two is due on any day that the tests may run."""
    place.configure((place.folder / "keepfor.yaml").read_text().replace("90d", "36500d"))
    place.ledger.write_text('{"ts": "1900-01-01"}\n{"ts": "2026-07-26"}\n')
    return place


def test_a_yes_at_a_terminal_does_it(due: Place) -> None:
    """The plan is shown in colour, the question asked, and a yes deletes what was shown."""
    code, seen = at_terminal(due, "apply", answer=b"y\n")
    assert code == 0
    assert "1 of 2 rows would go." in seen
    assert "Delete 1 row from recall? [y/N]" in seen
    assert "1 of 2 rows is gone." in seen
    assert "\x1b[" in seen
    assert due.ledger.read_text() == '{"ts": "2026-07-26"}\n'


@pytest.mark.parametrize("answer", [b"\n", b"n\n", b"\x04"])
def test_a_no_at_a_terminal_leaves_it(due: Place, answer: bytes) -> None:
    """Enter, n and Ctrl-D leave the ledger as it is, with 7."""
    before = due.snapshot()
    code, seen = at_terminal(due, "apply", answer=answer)
    assert code == 7
    assert "Nothing was done: you did not agree." in seen
    assert due.snapshot() == before


def test_ctrl_c_at_the_question_leaves_it(due: Place) -> None:
    """An interruption at the question leaves the ledger as it is, with 130."""
    before = due.snapshot()
    code, seen = at_terminal(due, "apply", answer=signal.SIGINT)
    assert code == 130
    assert "Interrupted." in seen
    assert "Traceback" not in seen
    assert due.snapshot() == before


def test_yes_asks_nothing(due: Place) -> None:
    """With --yes there is no question, at a terminal either."""
    code, seen = at_terminal(due, "apply", "--yes")
    assert code == 0
    assert "[y/N]" not in seen
    assert due.ledger.read_text() == '{"ts": "2026-07-26"}\n'
