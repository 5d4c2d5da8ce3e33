"""Opening, appending, locking, and telling what stands in the way."""

from __future__ import annotations

import errno
import multiprocessing
import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepfor.errors import StoreBusy, StoreError
from keepfor.stores import files
from tests.stores.nobody import as_nobody, common_ground


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "ledger"
    path.write_bytes(b'{"n": 1}\n')
    return path


def put(path: Path, data: bytes) -> tuple[int, int]:
    descriptor = files.open_for_append(str(path))
    try:
        return files.append(descriptor, data)
    finally:
        files.close(descriptor)


def test_an_append_says_where_its_rows_stand(path: Path) -> None:
    """The offsets are those of the data, without the line feed that ended a torn line first."""
    assert put(path, b"second\n") == (9, 16)
    path.write_bytes(b"torn")
    assert put(path, b"whole\n") == (5, 11)
    assert path.read_bytes() == b"torn\nwhole\n"


@pytest.mark.parametrize("torn", [False, True])
def test_half_an_append_is_an_error(
    torn: bool, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a write takes only a part, the row is not there, and that is said."""
    if torn:
        path.write_bytes(b"torn")
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, data[:-1]))
    with pytest.raises(OSError, match="No space left"):
        put(path, b"row\n")


def test_a_folder_is_made_for_the_first_row(tmp_path: Path) -> None:
    """The folders on the way to a ledger are made with it."""
    path = tmp_path / "a" / "b" / "ledger"
    put(path, b"row\n")
    assert path.read_bytes() == b"row\n"


def pipe(path: Path) -> None:
    os.mkfifo(path)


def unix_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


def device(path: Path) -> None:
    path.symlink_to("/dev/null")


@pytest.mark.parametrize(
    ("make", "kind"),
    [(Path.mkdir, "a folder"), (pipe, "a pipe"), (unix_socket, "a socket"), (device, "a device")],
)
def test_what_is_no_file_is_named_and_not_waited_for(
    make: Callable[[Path], None], kind: str, tmp_path: Path
) -> None:
    """Whatever stands where a ledger should be is told for what it is, at once."""
    path = tmp_path / "x"
    make(path)
    with pytest.raises(StoreError, match=f"is {kind}.*Give the path of the ledger itself"):
        files.open_for_reading(str(path))


@pytest.mark.parametrize("make", [pipe, device])
def test_nothing_is_appended_to_what_is_no_file(
    make: Callable[[Path], None], tmp_path: Path
) -> None:
    """No byte goes into a pipe or a device."""
    path = tmp_path / "x"
    make(path)
    with pytest.raises(StoreError, match="not a file"):
        put(path, b"row\n")


def test_a_circle_of_symlinks_is_told(tmp_path: Path) -> None:
    """Symlinks that lead nowhere are an error that says so."""
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with pytest.raises(StoreError, match="lead in a circle"):
        files.open_for_reading(str(tmp_path / "a"))


def test_what_may_not_be_read_is_told() -> None:
    """A file that belongs to somebody else is an error that says what to do."""
    with common_ground() as folder:
        path = folder / "ledger"
        path.write_bytes(b"row\n")
        path.chmod(0)

        def act() -> None:
            with pytest.raises(StoreError, match=r"Permission denied.*Run as a user who may"):
                files.open_for_reading(str(path))

        as_nobody(act)


@pytest.mark.parametrize(
    ("code", "advice"),
    [
        (errno.EROFS, "read-only"),
        (errno.EPERM, "user that owns it"),
        (errno.ENOSPC, "Free some space"),
        (errno.EDQUOT, "Free some quota"),
        (errno.EBUSY, "mount its folder"),
        (errno.EXDEV, "mount its folder"),
        (errno.ENOTDIR, "mend the path"),
        (errno.EIO, "Nothing was done"),
    ],
)
def test_a_system_error_says_what_to_do(code: int, advice: str) -> None:
    """What the system said is followed by what to do about it."""
    said = str(files.explained(OSError(code, os.strerror(code)), "/a/ledger"))
    assert said.startswith(f"/a/ledger: {os.strerror(code)}. ")
    assert advice in said


def test_an_error_without_a_number_is_told_too() -> None:
    """An error of Python's own has no number, and its words will do."""
    assert "odd. Nothing was done" in str(files.explained(OSError("odd"), "x"))


LINES = st.lists(st.sampled_from([b"\n", b"a", b"bc", b"\n\n", b"x" * 9]), max_size=12).map(
    b"".join
)


@given(LINES, st.integers(0, 30), st.integers(0, 30), st.integers(1, 12))
def test_the_end_of_the_whole_lines_is_found(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, start: int, end: int, block: int
) -> None:
    """It is the offset after the last line feed between two offsets, else the first of them."""
    path = tmp_path_factory.getbasetemp() / "lines"
    path.write_bytes(data)
    end = min(end, len(data))
    start = min(start, end)
    descriptor = files.open_for_reading(str(path))
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(files, "BLOCK", block)
            found = data[start:end].rfind(b"\n")
            assert files.end_of_lines(descriptor, end, start) == start + found + 1
    finally:
        os.close(descriptor)


@given(LINES, st.integers(1, 12))
def test_lines_are_read_whole(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, about: int
) -> None:
    """Pieces end where lines end, but for the last; together they are what was to be read."""
    path = tmp_path_factory.getbasetemp() / "lines"
    path.write_bytes(data)
    descriptor = files.open_for_reading(str(path))
    try:
        pieces: list[bytes] = []
        while piece := files.read_lines(descriptor, sum(map(len, pieces)), len(data), about):
            pieces.append(piece)
    finally:
        os.close(descriptor)
    assert b"".join(pieces) == data
    assert all(piece.endswith(b"\n") for piece in pieces[:-1])


def test_a_file_that_became_shorter_ends_the_search(path: Path) -> None:
    """Offsets past the end of the file find nothing, and do not wait for it."""
    descriptor = files.open_for_reading(str(path))
    try:
        os.truncate(path, 0)
        assert files.end_of_lines(descriptor, 9, 0) == 0
        assert files.read_lines(descriptor, 0, 9, 100) == b""
    finally:
        os.close(descriptor)


def busy(path: Path) -> bool:
    try:
        with files.locked(str(path)):
            return False
    except StoreBusy:
        return True


def test_a_lock_holds_by_every_name_and_for_every_process(path: Path, tmp_path: Path) -> None:
    """A second name of the file, and another process, meet the same lock; afterwards it is free."""
    other = tmp_path / "other"
    os.link(path, other)
    with (
        files.locked(str(path)),
        multiprocessing.get_context("fork").Pool(1) as pool,
    ):
        assert busy(path)
        assert busy(other)
        assert pool.apply(busy, (path,))
    assert not busy(other)


def test_a_lock_that_is_waited_for_is_had(path: Path) -> None:
    """Whoever waits gets the lock when the other is done."""
    got = threading.Event()

    def wait() -> None:
        with files.locked(str(path), wait=30.0):
            got.set()

    waiter = threading.Thread(target=wait)
    with files.locked(str(path)):
        waiter.start()
        assert not got.is_set()
    waiter.join()
    assert got.is_set()


def test_a_lock_on_a_replaced_file_is_none(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the file was replaced between opening and locking, the new one is locked."""
    flock = files._flock
    replaced: list[Path] = []

    def late(descriptor: int) -> bool:
        if not replaced:
            new = path.with_name("new")
            new.write_bytes(b"new\n")
            replaced.append(new.replace(path))
        return flock(descriptor)

    monkeypatch.setattr(files, "_flock", late)
    with files.locked(str(path), wait=30.0) as descriptor:
        assert os.pread(descriptor, 9, 0) == b"new\n"


def test_a_lock_on_a_file_that_is_gone_is_none(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the file was removed between opening and locking, there is nothing to lock."""
    flock = files._flock

    def late(descriptor: int) -> bool:
        path.unlink(missing_ok=True)
        return flock(descriptor)

    monkeypatch.setattr(files, "_flock", late)
    with pytest.raises(FileNotFoundError), files.locked(str(path), wait=30.0):
        pass


def test_a_fork_keeps_no_lock(path: Path) -> None:
    """A child that lives on does not hold the lock that its parent has given back."""
    go, gone = os.pipe()
    with files.locked(str(path)):
        child = os.fork()
        if child == 0:
            os.close(gone)
            os.read(go, 1)
            os._exit(0)
    os.close(go)
    try:
        assert not busy(path)
    finally:
        os.close(gone)
        os.waitpid(child, 0)


def test_a_fork_keeps_no_ledger_open(path: Path) -> None:
    """A child forked in the middle of another thread's append does not hold the file open."""
    done = threading.Event()

    def append_all_the_time() -> None:
        while not done.is_set():
            put(path, b"row\n")

    def held() -> int:
        links = [f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd")]
        return sum(os.path.exists(link) and os.readlink(link) == str(path) for link in links)

    writer = threading.Thread(target=append_all_the_time)
    writer.start()
    try:
        for _ in range(20):
            child = os.fork()
            if child == 0:
                os._exit(held())
            _, status = os.waitpid(child, 0)
            assert os.waitstatus_to_exitcode(status) == 0
    finally:
        done.set()
        writer.join()


def test_a_child_can_append(path: Path) -> None:
    """What keeps a fork from an append in mid-way is given back in the child as well."""
    child = os.fork()
    if child == 0:
        put(path, b"child\n")
        grandchild = os.fork()
        if grandchild == 0:
            put(path, b"grandchild\n")
            os._exit(0)
        _, status = os.waitpid(grandchild, 0)
        os._exit(os.waitstatus_to_exitcode(status))
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    put(path, b"parent\n")
    assert path.read_bytes() == b'{"n": 1}\nchild\ngrandchild\nparent\n'
