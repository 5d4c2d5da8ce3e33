"""Two names are exchanged in one step, or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from keepfor.stores.exchange import exchange


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[int]:
    descriptor = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    yield descriptor
    os.close(descriptor)


def test_each_gets_the_name_of_the_other(tmp_path: Path, opened: int) -> None:
    """Content, inode and all; odd names are names like others."""
    one, other = tmp_path / "one", tmp_path / os.fsdecode(b"caf\xe9\n")
    one.write_text("1")
    other.write_text("2")
    inodes = one.stat().st_ino, other.stat().st_ino
    exchange(opened, one.name, other.name)
    assert (one.read_text(), other.read_text()) == ("2", "1")
    assert (other.stat().st_ino, one.stat().st_ino) == inodes


def test_where_one_is_missing_nothing_moves(tmp_path: Path, opened: int) -> None:
    """The system's reason is told, and the other is as it was."""
    (tmp_path / "one").write_text("1")
    with pytest.raises(FileNotFoundError):
        exchange(opened, "one", "none")
    assert os.listdir(tmp_path) == ["one"]
