"""An append is one whole line in one write, and nothing else is asked of the program."""

from __future__ import annotations

import errno
import fcntl
import json
import logging
import os
import re
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from keepfor import Ledger, RunDirectory
from keepfor.errors import StoreError
from tests.writers.build import Clock, ago, line, rows, write

ROW = {"ts": "2026-07-26T00:00:00+00:00", "n": 1}
LINE = b'{"ts": "2026-07-26T00:00:00+00:00", "n": 1}\n'

Writes = list[bytes]


@pytest.fixture
def writes(monkeypatch: pytest.MonkeyPatch) -> Writes:
    """What was handed to the system, write by write."""
    seen: Writes = []
    real = os.write

    def spied(descriptor: int, data: bytes) -> int:
        seen.append(bytes(data))
        return real(descriptor, data)

    monkeypatch.setattr(os, "write", spied)
    return seen


def full_disk(monkeypatch: pytest.MonkeyPatch, room: int = 0) -> None:
    """From now on, only so many bytes of each write find room."""
    real = os.write

    def cramped(descriptor: int, data: bytes) -> int:
        if not room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(descriptor, data[:room])

    monkeypatch.setattr(os, "write", cramped)


def test_a_row_is_one_line_in_one_write(path: Path, writes: Writes) -> None:
    """Each append hands its whole line, LF included, to the system in a single write."""
    ledger = Ledger(path, keep_for="forever")
    ledger.append(ROW)
    ledger.append(ROW)
    assert writes == [LINE, LINE]
    assert path.read_bytes() == LINE + LINE


def test_a_row_after_a_torn_line_stands_on_its_own(path: Path, writes: Writes) -> None:
    """Where a writer was killed in the middle, the row starts a new line, still in one write."""
    path.write_bytes(LINE + b'{"ts": "2026-07-2')
    Ledger(path, keep_for="forever").append(ROW)
    assert path.read_bytes() == LINE + b'{"ts": "2026-07-2\n' + LINE
    # Writes of no bytes only wait for other writers.
    assert [data for data in writes if data] == [b"\n" + LINE]


def test_a_file_that_ends_whole_gets_no_blank_line(path: Path) -> None:
    """An empty file and one that ends in LF are appended to as they are."""
    path.touch()
    Ledger(path, keep_for="forever").append(ROW)
    assert path.read_bytes() == LINE


def test_the_folder_is_made(tmp_path: Path) -> None:
    """The first append makes the file and the folders above it."""
    path = tmp_path / "a" / "b" / "ledger.jsonl"
    Ledger(path, keep_for="90d")
    assert not path.parent.exists()
    Ledger(path, keep_for="forever").append(ROW)
    assert path.read_bytes() == LINE


def test_a_bare_name_is_in_the_working_folder() -> None:
    """A path without a folder needs none to be made."""
    Ledger("ledger.jsonl", keep_for="forever").append(ROW)
    assert Path("ledger.jsonl").read_bytes() == LINE


def test_nothing_is_held_open_between_appends(path: Path) -> None:
    """After an append, also after one that pruned, no descriptor is left."""
    folder = Path("/proc/self/fd")
    if not folder.exists():
        pytest.skip("no way to list descriptors here")
    ledger = Ledger(path, keep_for="90d")
    ledger.append(ROW)
    before = sorted(os.listdir(folder))
    ledger.append(ROW)
    write(path, [ago(5000), ago(4999)])
    ledger.append(ROW)
    assert len(rows(path)) == 1, "it pruned"
    assert sorted(os.listdir(folder)) == before


def test_the_file_is_found_anew_by_each_append(path: Path) -> None:
    """A ledger that was moved away, by a log rotation say, is begun again at its path."""
    ledger = Ledger(path, keep_for="forever")
    ledger.append(ROW)
    path.rename(path.with_suffix(".1"))
    ledger.append(ROW)
    assert path.read_bytes() == LINE


def test_a_symlink_stays_one(path: Path, tmp_path: Path) -> None:
    """Where the path is a symlink, rows reach the file that it leads to, prunes included."""
    target = tmp_path / "elsewhere.jsonl"
    write(target, [ago(5000)])
    path.symlink_to(target)
    Ledger(path, keep_for="90d").append(ago(0))
    assert path.is_symlink()
    assert rows(target) == [ago(0)]


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"name": "café"}, b'{"name": "caf\\u00e9"}\n'),
        ({"sign": "😀"}, b'{"sign": "\\ud83d\\ude00"}\n'),
        ({"sep": "a\u2028b\nc"}, b'{"sep": "a\\u2028b\\nc"}\n'),
        ({"b": [1, 2.5, None, True], "a": {}}, b'{"b": [1, 2.5, null, true], "a": {}}\n'),
        ({"odd": float("nan")}, b'{"odd": NaN}\n'),
        ({1: "one", None: "none"}, b'{"1": "one", "null": "none"}\n'),
        ({"lone": "\ud800"}, b'{"lone": "\\ud800"}\n'),
    ],
)
def test_readers_find_what_they_always_found(path: Path, row: Any, expected: bytes) -> None:
    """A row is encoded as `json.dumps` with its defaults does, and stays on one line of ASCII."""
    Ledger(path, keep_for="forever").append(row)
    assert path.read_bytes() == expected == json.dumps(row).encode() + b"\n"


@pytest.mark.parametrize(
    ("row", "error"),
    [({"x": object()}, TypeError), ({("a", "b"): 1}, TypeError), ({"x": b"bytes"}, TypeError)],
)
def test_a_row_that_is_no_json_is_refused_before_anything_is_written(
    path: Path, row: Any, error: type[Exception]
) -> None:
    """What `json` cannot encode raises as it would there, and the file is not even made."""
    with pytest.raises(error):
        Ledger(path, keep_for="forever").append(row)
    assert not path.exists()


def test_a_row_that_contains_itself_is_refused(path: Path) -> None:
    """A circular row raises ValueError, as `json` does."""
    row: dict[str, Any] = {}
    row["self"] = row
    with pytest.raises(ValueError, match="Circular"):
        Ledger(path, keep_for="forever").append(row)
    assert not path.exists()


def test_a_failed_append_raises(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that did not ask for best effort hears that its row was not written."""
    ledger = Ledger(path, keep_for="90d")
    full_disk(monkeypatch)
    with pytest.raises(OSError, match="No space left") as caught:
        ledger.append(ROW)
    assert caught.value.errno == errno.ENOSPC
    assert ledger.failed_appends == 0


def test_half_a_row_is_a_failed_append(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write that finds room for a part of the row raises, and the next row is whole."""
    ledger = Ledger(path, keep_for="forever")
    with monkeypatch.context() as patch:
        full_disk(patch, room=10)
        with pytest.raises(OSError, match="No space left"):
            ledger.append(ROW)
    ledger.append(ROW)
    assert path.read_bytes() == LINE[:10] + b"\n" + LINE


@pytest.mark.parametrize("row", [ROW, {"x": object()}], ids=["no room", "no JSON"])
def test_best_effort_logs_and_counts(
    path: Path,
    row: Any,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """With best effort a failed append reaches the log and the count, and not the program."""
    ledger = Ledger(path, keep_for="90d", best_effort=True)
    with monkeypatch.context() as patch, caplog.at_level(logging.WARNING, logger="keepfor"):
        full_disk(patch)
        ledger.append(row)
        ledger.append(row)
    assert ledger.failed_appends == 2
    assert [record.name for record in caplog.records] == ["keepfor", "keepfor"]
    assert str(path) in caplog.text
    ledger.append(ROW)
    assert ledger.failed_appends == 2
    assert rows(path) == [ROW]


def test_best_effort_is_no_excuse_to_swallow_an_interrupt(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C in an append ends the program, best effort or not."""

    def interrupted(descriptor: int, data: bytes) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "write", interrupted)
    with pytest.raises(KeyboardInterrupt):
        Ledger(path, keep_for="90d", best_effort=True).append(ROW)


@pytest.mark.parametrize("best_effort", [False, True])
def test_a_failed_append_triggers_no_prune(
    path: Path, prunes: list[Any], monkeypatch: pytest.MonkeyPatch, best_effort: bool
) -> None:
    """Where the row could not be written, nothing is removed, however much has expired."""
    before = write(path, [ago(5000)] * 3)
    ledger = Ledger(path, keep_for="90d", max_bytes=10, best_effort=best_effort)
    with monkeypatch.context() as patch:
        full_disk(patch)
        if best_effort:
            ledger.append(ROW)
        else:
            with pytest.raises(OSError, match="No space left"):
                ledger.append(ROW)
    assert prunes == []
    assert path.read_bytes() == before


def test_a_folder_in_its_place_is_an_error(tmp_path: Path) -> None:
    """A folder where the ledger should be raises as `open(path, "a")` would."""
    with pytest.raises(IsADirectoryError):
        Ledger(tmp_path, keep_for="90d").append(ROW)


def test_a_pipe_in_its_place_is_refused_and_not_waited_for(path: Path) -> None:
    """A pipe where the ledger should be gets an error at once, and no byte."""
    os.mkfifo(path)
    with pytest.raises(StoreError, match=f"{re.escape(str(path))}: it is a pipe, not a file"):
        Ledger(path, keep_for="90d").append(ROW)


def test_threads_write_whole_rows(path: Path) -> None:
    """Eight threads share one ledger, and every row of theirs is there, whole, once."""
    write(path, [ago(5000, n=-1)])
    ledger = Ledger(path, keep_for="90d", clock=Clock())
    start = threading.Barrier(8)

    def work(name: int) -> None:
        start.wait()
        for number in range(200):
            ledger.append(ago(number % 80, n=name * 200 + number))

    threads = [threading.Thread(target=work, args=(name,)) for name in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ledger.prune()
    assert sorted(row["n"] for row in rows(path)) == list(range(1600))


def test_forks_write_whole_rows(path: Path) -> None:
    """A ledger made before a fork is used in the children and the parent, and no row is lost."""
    ledger = Ledger(path, keep_for="forever", max_bytes="1MiB")
    ledger.append({"ts": "2026-07-26T00:00:00+00:00", "n": 0})
    children = []
    for name in range(1, 5):
        if child := os.fork():
            children.append(child)
            continue
        status = 1
        try:
            for number in range(100):
                ledger.append(ago(0, n=name * 100 + number))
            status = 0
        finally:
            os._exit(status)
    for number in range(1, 100):
        ledger.append(ago(0, n=number))
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0] * 4
    assert sorted(row["n"] for row in rows(path)) == list(range(500))


def test_rows_of_other_writers_are_left_alone(path: Path) -> None:
    """Appending changes no byte of what stood in the file."""
    strange = b'\xef\xbb\xbf{"ts": 1}\r\n\x00\x00\n[1, 2\n'
    path.write_bytes(strange)
    Ledger(path, keep_for="forever").append(ROW)
    assert path.read_bytes() == strange + line(ROW)


@pytest.mark.skipif(sys.platform != "linux", reason="leases are Linux's")
@pytest.mark.parametrize("kind", ["ledger", "run"])
def test_an_append_waits_out_a_lease(path: Path, kind: str) -> None:
    """For the moment in which a prune holds a lease on the file, an append waits."""
    target = path if kind == "ledger" else path.parent / "runs" / "r-2026-07-26.jsonl"
    target.parent.mkdir(exist_ok=True)
    target.touch()
    lease = os.open(target, os.O_RDONLY)
    fcntl.fcntl(lease, fcntl.F_SETSIG, signal.SIGURG)
    fcntl.fcntl(lease, fcntl.F_SETLEASE, fcntl.F_RDLCK)

    def append() -> None:
        if kind == "ledger":
            Ledger(path, keep_for="forever").append(ROW)
        else:
            RunDirectory(target.parent, max_count=9).append("r-2026-07-26", ROW)

    writer = threading.Thread(target=append)
    writer.start()
    while writer.is_alive() and fcntl.fcntl(lease, fcntl.F_GETLEASE) == fcntl.F_RDLCK:
        pass
    fcntl.fcntl(lease, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    writer.join()
    os.close(lease)
    assert target.read_bytes() == LINE
