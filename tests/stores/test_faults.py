"""Whatever is wrong with file, folder, disk or clock: a clear message, and every row is there."""

from __future__ import annotations

import ctypes
import errno
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from keepfor.errors import StoreChanged, StoreError
from keepfor.plan import build
from keepfor.policy.rules import terms
from keepfor.stores import replace
from keepfor.stores.ledger import ledger_at
from tests.stores.build import NOW, OLD, append, beside, policy, pruned, row, write
from tests.stores.nobody import NOBODY, as_nobody, common_ground


@pytest.fixture
def path(tmp_path: Path) -> Path:
    folder = tmp_path / "folder"
    folder.mkdir()
    path = folder / "ledger.jsonl"
    write(path, [row(OLD), row()])
    return path


def refused(path: Path, match: str, error: type[StoreError] = StoreError) -> None:
    """A prune is refused with a message about this ledger; nothing is changed or left beside it."""
    before, there = path.stat(), beside(path)
    with pytest.raises(error, match=match) as caught:
        pruned(path)
    assert str(caught.value).startswith(f"{path}: ") or error is not StoreError
    after = path.stat()
    assert (after.st_ino, after.st_size, after.st_mtime_ns) == (
        before.st_ino,
        before.st_size,
        before.st_mtime_ns,
    )
    assert beside(path) == there


@pytest.mark.parametrize("missing", ["file", "folder"])
def test_what_is_not_there_yet_is_no_fault(missing: str, path: Path) -> None:
    """Where no ledger or no folder is, nothing is to be done, and nothing is made."""
    path.unlink()
    if missing == "folder":
        path.parent.rmdir()
    plan = build(ledger_at(path), policy(), NOW, name="ledger")
    assert (plan.survey.scanned, plan.survey.extent) == (0, None)
    assert pruned(path).scanned == 0
    assert not path.exists()
    assert path.parent.exists() == (missing == "file")


def test_an_empty_ledger_has_nothing_to_lose(path: Path) -> None:
    """A file of no bytes is a ledger without rows."""
    write(path, [])
    assert pruned(path, policy(max_bytes=1, keep_last=1)).scanned == 0
    assert path.read_bytes() == b""


def a_folder(path: Path) -> None:
    path.mkdir()


def a_pipe(path: Path) -> None:
    os.mkfifo(path)


def a_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


@pytest.mark.parametrize("make", [a_folder, a_pipe, a_socket])
def test_what_is_no_file_is_refused(
    make: Callable[[Path], None], path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder, a pipe or a socket where the ledger should be is told, by a plan as by a prune."""
    monkeypatch.chdir(path.parent)
    path.unlink()
    make(Path(path.name))
    refused(path, make.__name__.replace("_", " "))
    with pytest.raises(StoreError, match="Give the path of the ledger itself"):
        build(ledger_at(path), policy(), NOW, name="ledger")


def test_a_device_is_refused() -> None:
    """Nothing is read from a device, and nothing done to it."""
    with pytest.raises(StoreError, match="/dev/null: it is a device, not a file"):
        pruned(Path("/dev/null"))


def test_a_file_in_place_of_the_folder_is_told(path: Path) -> None:
    """A path that leads through a file leads nowhere."""
    with pytest.raises(StoreError, match="Not a directory"):
        pruned(path / "ledger.jsonl")


@pytest.mark.parametrize(
    ("what", "mode", "said"),
    [
        ("file", 0o000, "Permission denied. Run as a user who may read it"),
        ("file", 0o200, "Permission denied. Run as a user who may read it"),
        ("file", 0o444, "Permission denied. Run as a user who may read it and write its folder"),
        ("folder", 0o555, "Permission denied. Run as a user who may read it and write its folder"),
    ],
)
def test_what_may_not_be_read_or_written_is_told(what: str, mode: int, said: str) -> None:
    """A file or a folder that this user may not use is refused, and stays as it is."""
    with common_ground() as ground:
        folder = ground / "folder"
        folder.mkdir()
        path = folder / "ledger.jsonl"
        write(path, [row(OLD), row()])
        for place in (path, folder):
            if os.geteuid() == 0:
                os.chown(place, NOBODY, NOBODY)
        (path if what == "file" else folder).chmod(mode)
        as_nobody(lambda: refused(path, said))
        folder.chmod(0o777)


def test_a_read_only_ledger_with_nothing_to_drop_is_no_fault() -> None:
    """Where no row goes nothing is written, and nobody needs to be allowed to."""
    with common_ground() as ground:
        path = ground / "ledger.jsonl"
        write(path, [row()])
        path.chmod(0o444)
        ground.chmod(0o555)
        as_nobody(lambda: pruned(path))


def test_a_folder_that_may_not_be_entered_is_told() -> None:
    """What cannot be looked at is not taken for missing."""
    with common_ground() as ground:
        folder = ground / "folder"
        folder.mkdir()
        write(folder / "ledger.jsonl", [row(OLD)])
        folder.chmod(0)

        def act() -> None:
            with pytest.raises(StoreError, match="Permission denied"):
                pruned(folder / "ledger.jsonl")

        as_nobody(act)


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    """A disk of that size, mounted; pytest's skip where that is not allowed."""
    libc = ctypes.CDLL(None, use_errno=True)
    disk = folder / "disk"
    disk.mkdir()
    if libc.mount(b"none", os.fsencode(disk), b"tmpfs", 0, f"size={size}".encode()):
        pytest.skip(f"cannot mount: {os.strerror(ctypes.get_errno())}")
    try:
        yield disk
    finally:
        assert libc.umount2(os.fsencode(disk), 0) == 0


def test_a_full_disk_leaves_the_ledger_and_no_draft(tmp_path: Path) -> None:
    """A rewrite that finds no room ends with advice; when there is room, it goes through."""
    young = [row(n=n, x="x" * 1000) for n in range(300)]
    with small_disk(tmp_path, "512k") as disk:
        path = disk / "ledger.jsonl"
        before = write(path, [row(OLD), *young])
        refused(path, "No space left on device. Free some space: a rewrite needs room")
        assert path.read_bytes() == before
        assert pruned(path, policy(max_bytes=100_000)).over_ceiling > 200
        assert beside(path) == [path.name]


@pytest.mark.parametrize("name", ["write", "writev", "fsync", "link", "rename", "open", "fchmod"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO])
def test_whatever_call_fails_the_ledger_is_left(
    name: str, code: int, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error of the system before the ledger is replaced leaves it, and no draft."""
    call: Callable[..., Any] = getattr(os, name)

    def fail(*args: Any, **how: Any) -> Any:
        if name == "open" and not str(args[0]).endswith("keepfor-new"):
            return call(*args, **how)
        raise OSError(code, os.strerror(code))

    if name == "write":
        # What a gathered write leaves is written by itself.
        writev = os.writev
        monkeypatch.setattr(os, "writev", lambda fd, data: writev(fd, [data[0][:5]]))
    monkeypatch.setattr(os, name, fail)
    refused(path, os.strerror(code))


def test_a_disk_that_takes_little_at_a_time_gets_it_all(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a write takes only a part, the rest is written after it."""
    before = write(path, [row(n=1), row(OLD), row(n=2), row(n=3)])
    real, gather = os.write, os.writev
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, bytes(data)[:7]))
    monkeypatch.setattr(os, "writev", lambda fd, data: gather(fd, [data[0][:7]]))
    assert pruned(path).expired == 1
    assert path.read_bytes() == before.replace(row(OLD), b"")


def test_a_ledger_that_was_changed_in_place_is_refused(path: Path) -> None:
    """Between plan and apply: another beginning, a shorter file, or none."""
    store, agreed = ledger_at(path), terms(policy(), NOW)
    survey = store.survey(agreed)
    with path.open("r+b") as file:
        file.write(b"{'")
    with pytest.raises(StoreChanged, match="it begins with other rows now"):
        store.delete(survey, agreed)
    os.truncate(path, 20)
    with pytest.raises(StoreChanged, match="it has become shorter"):
        store.delete(survey, agreed)
    path.unlink()
    with pytest.raises(StoreChanged, match="it is gone"):
        store.delete(survey, agreed)


def test_only_the_beginning_that_was_there_is_compared(path: Path) -> None:
    """A short ledger that has grown since is the same one."""
    store, agreed = ledger_at(path), terms(policy(), NOW)
    survey = store.survey(agreed)
    append(path, *[row(n=n) for n in range(200)])
    assert store.delete(survey, agreed).expired == 1


def test_no_row_is_cut_where_a_rewritten_ledger_ends_otherwise(tmp_path: Path) -> None:
    """Rewritten in place with the same beginning, a ledger loses whole rows or none."""
    path = tmp_path / "ledger.jsonl"
    head = [row(n=n, x="x" * 100) for n in range(60)]
    write(path, [*head, row(OLD, x="short"), row()])
    store, agreed = ledger_at(path), terms(policy(), NOW)
    survey = store.survey(agreed)
    with path.open("r+b") as file:
        file.truncate(0)
        file.write(b"".join([*head, row(OLD, x="y" * 90), row(n=1), row(n=2)]))
    done = store.delete(survey, agreed)
    assert (done.scanned, done.oversized) == (63, 0)
    assert path.read_bytes().startswith(b"".join(head))
    rest = path.read_bytes()[len(b"".join(head)) :].splitlines(keepends=True)
    assert [line for line in rest if line != row(OLD, x="y" * 90)] == [row(n=1), row(n=2)]


def test_a_clock_that_was_set_back_takes_nothing_young(path: Path) -> None:
    """A year back, no row of today's is old, and those of today are still to come."""
    report = pruned(path, now=NOW - timedelta(days=365))
    assert (report.applied, report.future) == (0, 2)


def test_a_clock_before_all_time_takes_nothing(path: Path) -> None:
    """A cutoff that lies before the first day of all is that day."""
    write(path, [row("0001-01-01T00:00:00Z"), row("0001-01-01T00:00:00+10:00"), row()])
    report = pruned(path, policy(36_500), now=NOW.replace(year=50))
    assert report.applied == 0


def test_a_ledger_can_be_locked_before_it_is_there(path: Path) -> None:
    """A store that nobody has written to yet needs no lock."""
    path.unlink()
    with ledger_at(path).locked(0.0):
        assert not path.exists()


def test_what_goes_wrong_over_leftovers_is_told(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error while a killed prune's work is finished names the ledger, and leaves it."""

    def broken(_: str) -> list[replace.OldFile]:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(replace, "leftovers", broken)
    refused(path, "Input/output error")
