"""Housekeeping never hurts the host: what a probe or a prune runs into stays with it."""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from keepfor import Ledger
from keepfor.errors import StoreBusy
from keepfor.stores import files
from tests.writers.build import Clock, ago, line, rows, spread, write

#: A row that has expired, four of the last month, and the row whose append triggers a prune.
EXPIRED, FRESH, LAST = ago(91), spread(4, oldest=30, newest=2), ago(0, n=99)

#: What a probe and a prune ask of the system.
CALLS = (
    *("close", "fchmod", "fchown", "fstat", "fsync", "getxattr", "link", "listdir", "listxattr"),
    *(
        "lstat",
        "open",
        "pread",
        "posix_fadvise",
        "removexattr",
        "rename",
        "setxattr",
        "stat",
        "unlink",
        "writev",
    ),
)


def failing(monkeypatch: pytest.MonkeyPatch, name: str, error: Exception) -> list[str]:
    """Let one call fail from the moment on that the row is written; returns what was called."""
    armed: list[str] = []
    called: list[str] = []
    broken: Callable[..., Any] = getattr(os, name)
    lseek, close = os.lseek, files.close

    def call(*args: Any, **how: Any) -> Any:
        if armed:
            called.append(name)
            raise error
        return broken(*args, **how)

    def written(descriptor: int, offset: int, whence: int) -> int:
        if name != "close":
            armed.append("written")
        return lseek(descriptor, offset, whence)

    def closed(descriptor: int) -> None:
        # To close the file is the append's own affair; it is done when its row is safe.
        close(descriptor)
        armed.append("closed")

    monkeypatch.setattr(os, name, call)
    monkeypatch.setattr(os, "lseek", written)
    monkeypatch.setattr(files, "close", closed)
    return called


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC, errno.EACCES])
@pytest.mark.parametrize("name", CALLS)
def test_no_failing_call_reaches_the_program(
    path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, name: str, code: int
) -> None:
    """Whichever call of a probe or prune fails, the append returns and no row is lost by it."""
    if not hasattr(os, name):
        pytest.skip(f"no os.{name} here")
    write(path, [EXPIRED, *FRESH])
    ledger = Ledger(path, keep_for="90d", clock=clock)
    with monkeypatch.context() as patch:
        failing(patch, name, OSError(code, os.strerror(code)))
        ledger.append(LAST)
    after = rows(path)
    assert after in ([EXPIRED, *FRESH, LAST], [*FRESH, LAST])
    ledger.prune()
    assert rows(path) == [*FRESH, LAST]


@pytest.mark.parametrize("name", ["fsync", "link", "open", "rename", "writev"])
def test_the_calls_that_fail_above_are_made(
    path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The failures of the test above do happen, and are logged."""
    write(path, [EXPIRED, *FRESH])
    with monkeypatch.context() as patch:
        called = failing(patch, name, OSError(errno.EIO, os.strerror(errno.EIO)))
        Ledger(path, keep_for="90d", clock=clock).append(LAST)
    assert called


@pytest.mark.parametrize("error", [ValueError("odd"), MemoryError(), RecursionError(), KeyError(1)])
def test_no_error_of_another_kind_does_either(
    path: Path,
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: Exception,
) -> None:
    """Not even a fault of keepfor's own reaches the program that appends."""
    write(path, [EXPIRED, *FRESH])

    def broken(*args: Any) -> None:
        raise error

    monkeypatch.setattr(fcntl, "flock", broken)
    with caplog.at_level(logging.WARNING, logger="keepfor"):
        Ledger(path, keep_for="90d", clock=clock).append(LAST)
    assert rows(path) == [EXPIRED, *FRESH, LAST]
    assert [record.name for record in caplog.records] == ["keepfor"]
    assert str(path) in caplog.text


def test_a_clock_that_fails_is_the_probe_s_affair(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A probe that raises is logged, and the row is written."""

    def broken() -> Any:
        raise RuntimeError("no time")

    write(path, [EXPIRED])
    with caplog.at_level(logging.WARNING, logger="keepfor"):
        Ledger(path, keep_for="90d", clock=broken).append(LAST)
    assert rows(path) == [EXPIRED, LAST]
    assert f"could not probe {path}: no time" in caplog.text


def test_a_prune_that_is_refused_leaves_all_as_it_was(
    path: Path, clock: Clock, prunes: list[Any], caplog: pytest.LogCaptureFixture
) -> None:
    """A wrong `time` is logged by name and drops nothing, and the append has succeeded."""
    before = write(path, FRESH)
    with caplog.at_level(logging.WARNING, logger="keepfor"):
        Ledger(path, keep_for="90d", time="when", clock=clock).append(LAST)
    assert path.read_bytes() == before + line(LAST)
    assert "no usable time in 'when'" in caplog.text
    assert len(prunes) == 1


def test_an_append_does_not_wait_for_another_prune(
    path: Path, clock: Clock, prunes: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """While somebody else prunes, an append writes its row and goes on at once."""
    write(path, [EXPIRED, *FRESH])

    def sleep(span: float) -> None:
        raise AssertionError("an append waits for nobody")

    with path.open("rb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        monkeypatch.setattr(time, "sleep", sleep)
        Ledger(path, keep_for="90d", clock=clock).append(LAST)
    assert rows(path) == [EXPIRED, *FRESH, LAST]
    assert [type(attempt) for attempt in prunes] == [StoreBusy]


def test_a_writer_that_never_lets_go_costs_50_milliseconds_at_most(
    path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A drain waits for a writer that holds the file open for no more than that, all told.

    What that writer writes afterwards is brought over by the next prune.
    """
    write(path, [EXPIRED, *FRESH])
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    monkeypatch.setattr(time, "monotonic", lambda: sum(slept))
    ledger = Ledger(path, keep_for="90d", clock=clock)
    late = ago(1, n=7)
    with path.open("ab", buffering=0) as writer:
        ledger.append(LAST)
        assert rows(path) == [*FRESH, LAST]
        assert sum(slept) < 0.052
        writer.write(line(late))
    ledger.prune()
    assert rows(path) == [*FRESH, LAST, late]


SIGNALLED = """
import os, signal, sys, threading
from keepfor import Ledger

received = []
for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD}:
    # What is ignored unless asked for is let be: SIGURG, by which a lease tells of an opener.
    if number not in (signal.SIGURG, signal.SIGWINCH, signal.SIGCONT):
        signal.signal(number, lambda number, frame: received.append(number))

done = threading.Event()

def open_and_close():
    while not done.is_set():
        with open("ledger.jsonl", "a"):
            pass

opener = threading.Thread(target=open_and_close)
ledger = Ledger("ledger.jsonl", keep_for="90d")
opener.start()
for _ in range(50):
    with open("ledger.jsonl", "a") as file:
        file.write('{"ts": "2001-01-01T00:00:00Z"}\\n')
    ledger.prune(now="2026-07-26")
done.set()
opener.join()
print("received", *received)
"""


def test_no_signal_reaches_the_program(tmp_path: Path) -> None:
    """Openers that run into a prune's lease bring no signal on the program that prunes."""
    (tmp_path / "ledger.jsonl").write_text('{"ts": "2026-07-25T00:00:00Z"}\n')
    done = subprocess.run(
        [sys.executable, "-c", SIGNALLED], cwd=tmp_path, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "received\n", "")
    assert rows(tmp_path / "ledger.jsonl") == [{"ts": "2026-07-25T00:00:00Z"}]


def test_a_row_that_will_not_last_is_told_once(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A row without a usable time is written, and the log says at once what becomes of it."""
    ledger = Ledger(path, keep_for="90d")
    ledger.append({"tss": "2026-07-26T00:00:00Z"})
    ledger.append({"ts": 1785024000})
    assert [record.getMessage() for record in caplog.records if "goes with" in record.msg] == [
        f"a row for {path} goes with its next prune: ts is missing"
    ]
    caplog.clear()
    Ledger(path, keep_for="90d", unreadable="keep").append({"tss": 1})
    assert not [record for record in caplog.records if "goes with" in record.msg]


def test_a_prune_by_an_append_is_logged(
    path: Path, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    """What went at the write site is said where the program looks: one line, at level INFO."""
    caplog.set_level("INFO", "keepfor")
    write(path, [ago(100), ago(1), "debris"])
    Ledger(path, keep_for="90d", clock=clock).append(ago(0))
    assert [record.getMessage() for record in caplog.records] == [
        f"pruned {path}: 1 expired, 1 unreadable, 0 over the ceiling, 2 kept"
    ]


@pytest.mark.parametrize(
    ("time", "usable"),
    [
        ("2026-07-26T00:00:00+00:00", True),
        ("2026-07-26", True),
        ("2026-07-26t00:00:00z", True),
        ("2026-06-30T23:59:60Z", True),
        ("20260726T000000", True),
        ("2026-W30-7", True),
        ("2026-13-26T00:00:00+00:00", False),
        ("2026-07-26T25:00:00+00:00", False),
        ("2026-", False),
        ("2026", False),
        ("1712011200000", False),
        ("", False),
        ("-----", False),
        (1785024000, False),
        (None, False),
        (["2", "0", "2", "6", "-"], False),
        ({"4": "-"}, False),
    ],
)
def test_a_row_is_warned_of_if_a_prune_would_drop_it(
    path: Path, clock: Clock, caplog: pytest.LogCaptureFixture, time: Any, usable: bool
) -> None:
    """The warning and the prune are of one mind, whatever stands in the time field."""
    write(path, [ago(0)])
    ledger = Ledger(path, keep_for="90d", clock=clock)
    ledger.append({"ts": time})
    assert len(caplog.records) == (not usable)
    assert ledger.prune().unreadable == (not usable)


def test_a_prune_that_worked_is_nothing_to_warn_of(
    path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A prune whose time cannot be noted on the file, since its file system cannot, is no fault."""

    def unsupported(*args: Any) -> None:
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))

    monkeypatch.setattr(os, "setxattr", unsupported, raising=False)
    write(path, [EXPIRED, *FRESH])
    Ledger(path, keep_for="90d", clock=clock).append(LAST)
    assert rows(path) == [*FRESH, LAST]
    assert [
        record.levelname for record in caplog.records if record.levelno >= logging.WARNING
    ] == []
