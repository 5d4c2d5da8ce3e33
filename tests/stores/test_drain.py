"""What is appended while a ledger is replaced reaches the new one, once and whole."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from keepfor.errors import StoreBusy, StoreChanged, StoreError
from keepfor.policy.rules import terms
from keepfor.stores import leases, replace
from keepfor.stores.ledger import ledger_at
from tests.stores.build import NOW, OLD, append, beside, policy, pruned, row, write


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A ledger of which one row is to go."""
    path = tmp_path / "ledger.jsonl"
    write(path, [row(OLD), row(n=0)])
    return path


def during(
    monkeypatch: pytest.MonkeyPatch, name: str, act: Callable[[], object], after: bool = False
) -> None:
    """Have something happen when a prune first makes that system call, before it or after."""
    call: Callable[..., Any] = getattr(os, name)
    done: list[object] = []

    def wrapped(*args: Any, **how: Any) -> Any:
        if done:
            return call(*args, **how)
        if after:
            result = call(*args, **how)
            done.append(act())
            return result
        done.append(act())
        return call(*args, **how)

    monkeypatch.setattr(os, name, wrapped)


@pytest.mark.parametrize("call", ["fsync", "link", "rename", "unlink"])
@pytest.mark.parametrize("after", [False, True])
def test_what_comes_during_a_prune_is_brought_over(
    call: str, after: bool, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At whatever moment a plain writer appends, its row is in the ledger afterwards, once."""
    during(monkeypatch, call, lambda: append(path, row(n=1)), after)
    report = pruned(path)
    assert path.read_bytes() == row(n=0) + row(n=1)
    assert report.notes == []
    assert beside(path) == [path.name]


def test_what_an_opener_writes_that_came_before_the_rename_is_brought_over(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer that has the old file open over the rename, and closes it soon, loses nothing."""
    writer = path.open("ab", buffering=0)

    def write_and_close() -> None:
        writer.write(row(n=1))
        writer.close()

    during(monkeypatch, "rename", write_and_close, after=True)
    pruned(path)
    assert path.read_bytes() == row(n=0) + row(n=1)
    assert beside(path) == [path.name]


def test_an_opener_that_comes_late_is_waited_for(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that looked the path up before the rename may open the old file after it was drained."""
    sleep = time.sleep

    def come_late(seconds: float) -> None:
        (old,) = replace.leftovers(str(path))
        append(Path(old.path), row(n=1))
        monkeypatch.setattr(time, "sleep", sleep)

    monkeypatch.setattr(time, "sleep", come_late)
    pruned(path)
    assert path.read_bytes() == row(n=0) + row(n=1)
    assert beside(path) == [path.name]


@pytest.mark.parametrize("rows_came", [False, True])
def test_where_rows_came_a_drain_takes_its_time(
    rows_came: bool, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits for more openers for as long as it may, and hardly at all without a sign of any."""
    waits: list[float] = []
    if rows_came:
        during(monkeypatch, "fsync", lambda: append(path, row(n=1)))
    monkeypatch.setattr(time, "sleep", waits.append)
    monkeypatch.setattr(time, "monotonic", lambda: 100.0)
    pruned(path)
    assert waits == [pytest.approx(replace.PATIENCE if rows_came else replace._PAUSE)]


def test_a_writer_that_stays_is_drained_each_time(path: Path) -> None:
    """Whole rows of one that holds the file open come over with each prune, and it is named."""
    with path.open("ab", buffering=0) as writer:
        writer.write(row(n=1))
        report = pruned(path)
        assert path.read_bytes() == row(n=0) + row(n=1)
        (old,) = replace.leftovers(str(path))
        assert any(old.path in note and "hold the old file open" in note for note in report.notes)
        writer.write(row(n=2) + row(n=3)[:10])
        append(path, row(n="other"))
        assert pruned(path).applied == 0
        assert path.read_bytes() == row(n=0) + row(n=1) + row(n="other") + row(n=2)
        writer.write(row(n=3)[10:])
    append(path, row(OLD))
    assert pruned(path).expired == 1
    assert path.read_bytes() == row(n=0) + row(n=1) + row(n="other") + row(n=2) + row(n=3)
    assert beside(path) == [path.name]


def test_a_writer_may_stay_over_many_prunes(path: Path) -> None:
    """Each file that was replaced under a writer's hands is drained on its own."""
    writers = []
    for number in range(3):
        append(path, row(OLD))
        writers.append(path.open("ab", buffering=0))
        assert pruned(path).expired == 1 + (number == 0)
    assert len(replace.leftovers(str(path))) == 3
    for number, writer in enumerate(writers):
        writer.write(row(writer=number))
        writer.close()
    pruned(path)
    rows = path.read_bytes().splitlines(keepends=True)
    assert sorted(rows) == sorted([row(n=0), *(row(writer=number) for number in range(3))])
    assert beside(path) == [path.name]


def test_no_expired_row_stays_on_disk_for_a_writer_s_sake(path: Path) -> None:
    """What was copied of a file that is held open is punched out of it, and gives its room back."""
    write(path, [row(OLD, x="secret" * 100)] * 2000)
    with path.open("ab", buffering=0) as writer:
        before = os.fstat(writer.fileno()).st_blocks
        pruned(path)
        (old,) = replace.leftovers(str(path))
        assert os.stat(old.path).st_blocks < before // 10
        assert b"secret" not in Path(old.path).read_bytes()
        writer.write(row(n=1))
    pruned(path)
    assert path.read_bytes() == row(n=1)


def test_a_file_with_a_second_name_is_never_punched(path: Path, tmp_path: Path) -> None:
    """What somebody else keeps under another name keeps its bytes."""
    other = tmp_path / "other"
    os.link(path, other)
    before = other.read_bytes()
    with path.open("ab"):
        pruned(path)
        assert len(replace.leftovers(str(path))) == 1
        assert other.read_bytes() == before
    pruned(path)
    assert other.read_bytes() == before


def test_an_unfinished_line_that_is_finished_during_a_prune_is_whole(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row whose first half was there before the copy, and its second came later, is one row."""
    writer = path.open("ab", buffering=0)
    writer.write(row(n=1)[:9])

    def finish() -> None:
        writer.write(row(n=1)[9:])
        writer.close()

    during(monkeypatch, "rename", finish)
    pruned(path)
    assert path.read_bytes() == row(n=0) + row(n=1)
    assert beside(path) == [path.name]


def test_a_torn_line_that_nobody_holds_is_carried_over_as_it_is(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A last line without its line feed stays the last, and what comes after it is a row."""
    append(path, b'{"ts": "2026-07')
    during(monkeypatch, "rename", lambda: append(path, b"\n" + row(n=1)), after=True)
    report = pruned(path)
    assert path.read_bytes() == row(n=0) + b'{"ts": "2026-07\n' + row(n=1)
    assert report.unknown == 1


def test_a_row_that_comes_behind_a_torn_line_stands_on_its_own(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is brought over is not glued to a torn line that was."""
    append(path, b'{"torn')
    during(monkeypatch, "fsync", lambda: append(path, b"\n" + row(n=1)))
    pruned(path)
    rows = [line for line in path.read_bytes().split(b"\n") if line]
    assert [row + b"\n" for row in rows] == [row(n=0), b'{"torn\n', row(n=1)]


def test_rows_that_came_before_the_copy_was_done_are_not_taken_for_a_torn_line(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind an unfinished line that was finished meanwhile, nothing is copied twice."""
    append(path, row(n=1)[:9])
    survey = leases.size_at_rest

    def finish(descriptor: int, until: float = 0.0) -> int | None:
        monkeypatch.setattr(leases, "size_at_rest", survey)
        append(path, row(n=1)[9:] + row(n=2))
        return survey(descriptor, until)

    monkeypatch.setattr(leases, "size_at_rest", finish)
    pruned(path)
    assert path.read_bytes() == row(n=0) + row(n=1) + row(n=2)


def test_the_size_of_a_file_at_rest_is_read_while_nobody_can_write(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A write that is just going on shows in parts, so the size is looked at under the lease."""
    steps: list[object] = []
    control, fstat = fcntl.fcntl, os.fstat

    def noted_control(descriptor: int, *what: int) -> int:
        steps.append(what)
        return control(descriptor, *what)

    def noted_size(descriptor: int) -> os.stat_result:
        steps.append("size")
        return fstat(descriptor)

    monkeypatch.setattr(fcntl, "fcntl", noted_control)
    monkeypatch.setattr(os, "fstat", noted_size)
    descriptor = os.open(path, os.O_RDONLY)
    try:
        assert leases.size_at_rest(descriptor) == path.stat().st_size
        with path.open("ab"):
            assert leases.size_at_rest(descriptor) is None
            assert leases.held_open(descriptor)
        assert not leases.held_open(descriptor)
    finally:
        os.close(descriptor)
    lease, release = (fcntl.F_SETLEASE, fcntl.F_RDLCK), (fcntl.F_SETLEASE, fcntl.F_UNLCK)
    assert steps[1:4] == [lease, "size", release]


@pytest.mark.parametrize("hours", [23, 25])
def test_where_leases_tell_nothing_a_day_without_a_write_is_rest(
    hours: int, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On another system, or for another's file, the old file is left for a day."""
    monkeypatch.setattr(sys, "platform", "elsewhere")
    before = time.time() - hours * 3600
    os.utime(path, (before, before))
    report = pruned(path)
    assert path.read_bytes() == row(n=0)
    assert len(replace.leftovers(str(path))) == (hours < 24)
    assert len(report.notes) == (hours < 24)
    descriptor = os.open(path, os.O_RDONLY)
    try:
        assert not leases.held_open(descriptor)
    finally:
        os.close(descriptor)


def test_a_drain_that_fails_is_made_up_for(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the rest cannot be brought over for want of room, the next prune brings it, once."""

    def full(descriptor: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def fill_up() -> None:
        append(path, row(n=1))
        monkeypatch.setattr(os, "write", full)

    during(monkeypatch, "rename", fill_up)
    report = pruned(path)
    assert path.read_bytes() == row(n=0)
    assert len(report.notes) == 1
    monkeypatch.undo()
    assert pruned(path).applied == 0
    assert path.read_bytes() == row(n=0) + row(n=1)
    assert beside(path) == [path.name]


@pytest.mark.parametrize("call", ["fsync", "link", "rename"])
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(errno.EIO, "broken")])
def test_an_interrupt_loses_nothing(
    call: str, after: bool, error: BaseException, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whenever Ctrl-C or an error comes, rows appended meanwhile are there after the next prune."""
    in_place = call == "rename" and after
    writer = path.open("ab", buffering=0)

    def interrupt() -> None:
        writer.write(row(n=1))
        writer.close()
        raise error

    during(monkeypatch, call, interrupt, after)
    with pytest.raises((KeyboardInterrupt, StoreError)):
        pruned(path)
    monkeypatch.undo()
    assert path.read_bytes() == (row(n=0) if in_place else row(OLD) + row(n=0) + row(n=1))
    assert len(beside(path)) == 1 + in_place
    pruned(path)
    assert path.read_bytes() == row(n=0) + row(n=1)
    assert beside(path) == [path.name]


ROWS = [row(n=number) for number in range(1, 4)]
PIECE = b"".join(ROWS)


@pytest.mark.parametrize(
    ("landed", "rest"),
    [
        (b"", PIECE),
        (PIECE, b""),
        (ROWS[0], ROWS[1] + ROWS[2]),
        (ROWS[0] + ROWS[1][:9] + b"\n", ROWS[1] + ROWS[2]),
        (ROWS[0][:9] + b"\n", PIECE),
        (row(n="other"), PIECE),
        (row(n="other") + PIECE + row(n="more"), b""),
        (row(n="other") + ROWS[0] + ROWS[1] + row(n="more"), ROWS[2]),
        (ROWS[0] + row(n="more") + PIECE, b""),
        (PIECE + ROWS[0], b""),
        (b"\n" + PIECE, b""),
    ],
)
@pytest.mark.parametrize("size", [1 << 23, 16, 100])
def test_a_piece_lands_once_however_much_of_it_had(
    landed: bytes, rest: bytes, size: int, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A prune that was killed over a piece is gone on with behind the last whole row of it."""
    monkeypatch.setattr(replace, "_PIECE", size)
    start = len(row(n=0))
    landing = len(write(path, [row(n=0)]))
    old = path.with_name(f".{path.name}.keepfor-old.7.{start}.{start + len(PIECE)}.{landing}")
    write(old, [row(n=0), *ROWS])
    append(path, landed)
    report = pruned(path)
    assert report.unreadable == landed.count(ROWS[0][:9] + b"\n")
    rows = path.read_bytes().replace(b"\n\n", b"\n")
    assert rows == row(n=0) + landed.replace(ROWS[0][:9] + b"\n", b"").lstrip(b"\n") + rest
    assert beside(path) == [path.name]


def test_what_stood_before_a_piece_is_not_taken_for_it(path: Path) -> None:
    """Only behind its landing can a piece have landed: the same rows before it are others."""
    landing = len(write(path, [row(n=1)]))
    old = path.with_name(f".{path.name}.keepfor-old.7.0.{landing}.{landing}")
    write(old, [row(n=1)])
    pruned(path)
    assert path.read_bytes() == row(n=1) * 2


def test_a_ledger_that_became_shorter_is_searched_from_its_beginning(path: Path) -> None:
    """Where a landing is past the end, somebody rewrote the ledger: the piece may be anywhere."""
    write(path, [row(n=1)])
    old = path.with_name(f".{path.name}.keepfor-old.7.0.{len(row(n=1))}.1000")
    write(old, [row(n=1)])
    pruned(path)
    assert path.read_bytes() == row(n=1)


def test_a_ledger_that_is_cut_short_during_a_prune_is_left_alone(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever empties a ledger while it is copied does not get its rows back, nor lose new ones."""
    append(path, *[row(n=number) for number in range(9)])
    store = ledger_at(path)

    def rotate(_: object) -> bool:
        os.truncate(path, 0)
        append(path, row(n="new"))
        return True

    agreed = terms(policy(), NOW)
    survey = store.aim(agreed)
    with pytest.raises(StoreChanged, match="become shorter"):
        store.delete(survey, agreed, accept=rotate)
    assert path.read_bytes() == row(n="new")
    assert beside(path) == [path.name]


def test_a_ledger_that_is_cut_back_to_what_was_planned_is_left_alone(path: Path) -> None:
    """Whoever takes back what came after the plan does not get it again with the copy."""
    store, agreed = ledger_at(path), terms(policy(), NOW)
    survey, before = store.aim(agreed), path.read_bytes()
    append(path, row(n="taken back"))

    def take_back(_: object) -> bool:
        os.truncate(path, len(before))
        return True

    with pytest.raises(StoreChanged, match="become shorter"):
        store.delete(survey, agreed, accept=take_back)
    assert path.read_bytes() == before
    assert beside(path) == [path.name]


@pytest.mark.parametrize(
    ("call", "after"), [("rename", False), ("rename", True), ("unlink", False)]
)
def test_no_other_prune_comes_between_copy_and_drain(
    call: str, after: bool, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever comes by the new file finds it locked until all is brought over."""
    met: list[StoreBusy] = []

    def prune_too() -> None:
        with pytest.raises(StoreBusy) as busy:
            pruned(path)
        met.append(busy.value)

    during(monkeypatch, call, prune_too, after)
    assert pruned(path).applied == 1
    assert len(met) == 1
    assert pruned(path).applied == 0


@pytest.mark.parametrize("processes", [False, True])
def test_prunes_at_once_take_turns(processes: bool, path: Path) -> None:
    """Prunes in threads or processes, with rows coming in between, lose and double nothing."""
    rows = [row(n=number) for number in range(40)]

    def prune_and_append(mine: list[bytes]) -> None:
        for line in mine:
            append(path, line, row(OLD))
            pruned(path, wait=60.0)

    parts = [rows[number::4] for number in range(4)]
    if processes:
        children = []
        for part in parts:
            child = os.fork()
            if child == 0:
                prune_and_append(part)
                os._exit(0)
            children.append(child)
        assert [os.waitpid(child, 0)[1] for child in children] == [0] * 4
    else:
        threads = [threading.Thread(target=prune_and_append, args=(part,)) for part in parts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    pruned(path)
    assert sorted(path.read_bytes().splitlines(keepends=True)) == sorted([row(n=0), *rows])
    assert beside(path) == [path.name]


SIGNALS = """
import fcntl
import os
import sys
from datetime import UTC, datetime
from pathlib import Path

from tests.stores.build import pruned

path = Path(sys.argv[1])
control = fcntl.fcntl
opened = []


def open_during_the_lease(descriptor, *what):
    result = control(descriptor, *what)
    if what == (fcntl.F_SETLEASE, fcntl.F_RDLCK):
        for name in os.listdir(path.parent):
            try:
                os.close(os.open(path.parent / name, os.O_WRONLY | os.O_NONBLOCK))
            except BlockingIOError:
                opened.append(name)
    return result


fcntl.fcntl = open_during_the_lease
assert pruned(path).applied == 1
assert len(opened) >= 2, opened
print("alive")
"""


def test_an_opener_during_the_lease_brings_no_signal(path: Path) -> None:
    """A program that has prepared for no signal lives on when its lease is broken."""
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", SIGNALS, str(path)], cwd=root, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, "alive\n"), done.stderr
    assert path.read_bytes() == row(n=0)
