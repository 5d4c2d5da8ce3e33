"""A folder is locked for one sweep at a time, whatever becomes of its path meanwhile."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

import pytest

from keepfor.errors import StoreBusy, StoreError
from keepfor.stores import folders


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "store"
    path.mkdir()
    return path


def test_a_lock_keeps_others_out_and_ends(folder: Path) -> None:
    """While one holds it another is told that it is busy, and afterwards may have it."""
    busy = pytest.raises(StoreBusy, match="did not finish within 0 s")
    with folders.locked(str(folder)), busy, folders.locked(str(folder)):
        pass
    with folders.locked(str(folder)) as descriptor:
        assert os.path.samestat(os.fstat(descriptor), folder.stat())


def test_a_lock_is_waited_for(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever may wait gets the lock when the other one is done."""
    other = os.open(folder, os.O_RDONLY)
    fcntl.flock(other, fcntl.LOCK_EX)
    waited: list[float] = []

    def sleep(seconds: float) -> None:
        waited.append(seconds)
        fcntl.flock(other, fcntl.LOCK_UN)

    monkeypatch.setattr("keepfor.stores.files.time.sleep", sleep)
    with folders.locked(str(folder), 60.0):
        assert len(waited) == 1
    os.close(other)


def test_the_folder_that_is_locked_is_the_one_at_the_path(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where another folder takes the place before the lock is there, that one is locked."""
    flock = fcntl.flock

    def swapping(descriptor: int, operation: int) -> None:
        if not folder.with_name("moved").exists():
            folder.rename(folder.with_name("moved"))
            folder.mkdir()
        flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", swapping)
    with folders.locked(str(folder), 60.0) as descriptor:
        assert os.path.samestat(os.fstat(descriptor), folder.stat())


def test_no_folder_is_no_lock(tmp_path: Path) -> None:
    """What is not there is for the caller to take as it will."""
    with pytest.raises(FileNotFoundError), folders.locked(str(tmp_path / "nowhere")):
        pass


def test_what_stands_in_its_place_is_told(tmp_path: Path) -> None:
    """A file is no folder, and what the system says is told with what to do."""
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="it is not a folder"):
        folders.open_folder(str(tmp_path / "file"))
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    with pytest.raises(StoreError, match="Its symlinks lead in a circle"):
        folders.open_folder(str(tmp_path / "circle"))
    error = folders.explained(OSError(errno.EIO, "Input/output error"), "/srv/runs")
    assert str(error) == "/srv/runs: Input/output error. Nothing was done."


@pytest.mark.parametrize("told", [True, False], ids=["by the system", "by its path"])
@pytest.mark.parametrize("change", ["none", "gone", "another", "symlink", "above", "symlink above"])
def test_a_folder_that_stands_elsewhere_is_told_from_one_that_does_not(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: bool, change: str
) -> None:
    """Whatever took its place, or that of a folder on the way; with and without the system."""
    inner = folder / "inner"
    inner.mkdir()
    descriptor = os.open(inner, os.O_RDONLY)
    way = [(str(path), path.stat()) for path in (folder, inner)]
    above = "above" in change
    if change != "none":
        (folder if above else inner).rename(tmp_path / "moved")
    if change == "another":
        inner.mkdir()
    elif "symlink" in change:
        (folder if above else inner).symlink_to(tmp_path / "moved")
    if not told:

        def refuses(_: str) -> str:
            raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))

        monkeypatch.setattr(os, "readlink", refuses)
    assert folders.is_moved(descriptor, way) == (change != "none")
    os.close(descriptor)
