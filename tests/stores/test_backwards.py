"""A file's lines from its end."""

from __future__ import annotations

import os
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepfor.stores import backwards, files
from keepfor.stores.backwards import lines_backwards


def told(path: Path, **how: int) -> list[bytes]:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return list(lines_backwards(descriptor, **how))
    finally:
        os.close(descriptor)


@given(
    st.lists(st.binary(max_size=12).map(lambda data: data.replace(b"\n", b""))),
    st.sampled_from([b"", b"x", b"unfinished"]),
    st.integers(1, 20),
)
def test_every_whole_line_is_told_the_last_first(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], tail: bytes, block: int
) -> None:
    """However the file is cut into blocks, its lines are told once each, the unfinished not."""
    path = tmp_path_factory.getbasetemp() / "lines"
    path.write_bytes(b"".join(line + b"\n" for line in lines) + tail)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(backwards, "BLOCK", block)
        assert told(path) == lines[::-1]


@pytest.mark.parametrize("block", [1, 3, 50])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_line_that_is_too_long_is_passed_over(
    place: int, block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is longer than the bound by more than a block is left out, and nothing else."""
    monkeypatch.setattr(backwards, "BLOCK", block)
    lines = [b"a", b"b"]
    path = tmp_path / "lines"
    path.write_bytes(b"\n".join([*lines[:place], b"x" * 3000, *lines[place:]]) + b"\n")
    assert told(path, longest=100) == [b"b", b"a"]


def test_who_stops_reads_no_further(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest lines of a large file cost the reading of one block."""
    path = tmp_path / "lines"
    path.write_bytes(b"".join(b"%07d\n" % number for number in range(100_000)))
    reads: list[int] = []
    pread = os.pread

    def counted(descriptor: int, size: int, offset: int) -> bytes:
        reads.append(size)
        return pread(descriptor, size, offset)

    monkeypatch.setattr(os, "pread", counted)
    descriptor = os.open(path, os.O_RDONLY)
    try:
        assert next(lines_backwards(descriptor)) == b"0099999"
    finally:
        os.close(descriptor)
    assert reads == [files.BLOCK]


def test_what_is_too_long_to_be_told_is_not_held(tmp_path: Path) -> None:
    """A line of 40 MiB takes no more memory than the bound and a few blocks."""
    path = tmp_path / "lines"
    with path.open("wb") as file:
        file.write(b"first\n")
        file.truncate(40 << 20)
        file.seek(0, os.SEEK_END)
        file.write(b"\nlast\n")
    tracemalloc.start()
    try:
        assert told(path, longest=1 << 20) == [b"last", b"first"]
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()
