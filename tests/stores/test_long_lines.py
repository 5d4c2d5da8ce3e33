"""Lines that are longer than memory should hold, and where a block ends."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from keepfor.stores import files, sift
from keepfor.stores.sift import blocks
from tests.stores.build import OLD, YOUNG, pruned, row, write

MIB = 1 << 20


@pytest.mark.parametrize("block", [*range(1, 60), 90, 119, 120, 121])
def test_a_block_may_end_anywhere(
    block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However the file is cut into blocks, the same rows go."""
    monkeypatch.setattr(files, "BLOCK", block)
    monkeypatch.setattr(os, "fsync", lambda _: None)
    path = tmp_path / "ledger"
    kept = [row(YOUNG, n=1), row(YOUNG, x="x" * 30)]
    write(path, [row(OLD), kept[0], b"\n", b"debris\n", row(OLD, n=2), kept[1], b'{"ts'])
    report = pruned(path)
    assert path.read_bytes() == b"".join(kept) + b'{"ts'
    assert (report.expired, report.unreadable, report.kept) == (2, 1, 3)
    assert report.bytes_after == path.stat().st_size


@pytest.mark.parametrize(("length", "oversized"), [(99, 0), (100, 0), (101, 1), (150, 1), (250, 1)])
@pytest.mark.parametrize("block", [10, 99, 100])
def test_only_a_line_that_is_too_long_is_passed_by(
    length: int, oversized: int, block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line of the longest allowed length is judged, and a longer one is kept and counted."""
    monkeypatch.setattr(files, "BLOCK", block)
    monkeypatch.setattr(sift, "LONGEST_LINE", 100)
    path = tmp_path / "ledger"
    line = row(OLD, x="")
    line = row(OLD, x="x" * (length - len(line) + 1))
    assert len(line) == length + 1
    write(path, [row(OLD), line, row(YOUNG)])
    report = pruned(path)
    assert (report.expired, report.oversized, report.unknown) == (
        2 - oversized,
        oversized,
        oversized,
    )
    assert path.read_bytes() == line * oversized + row(YOUNG)
    assert report.bytes_after == path.stat().st_size


@pytest.mark.parametrize("wanted", ["before", "after"])
def test_a_line_of_17_mib_is_kept_unread(wanted: str, tmp_path: Path) -> None:
    """An old line of more than 16 MiB stays, whether the copy has begun when it comes or not."""
    path = tmp_path / "ledger"
    line = row(OLD, x="x" * 17 * MIB)
    lines = [row(YOUNG), line, row(YOUNG), row(OLD)]
    if wanted == "after":
        lines.insert(0, row(OLD))
    write(path, lines)
    report = pruned(path)
    assert path.read_bytes() == row(YOUNG) + line + row(YOUNG)
    assert (report.oversized, report.unknown) == (1, 1)
    assert report.expired == len(lines) - 3
    assert report.bytes_after == path.stat().st_size


def test_a_line_of_16_mib_is_judged(tmp_path: Path) -> None:
    """An old line of 16 MiB goes."""
    path = tmp_path / "ledger"
    write(path, [row(OLD, x="x" * (16 * MIB - 60)), row(YOUNG)])
    assert pruned(path).expired == 1
    assert path.read_bytes() == row(YOUNG)


SURVEY = """
import resource
import sys
from datetime import UTC, datetime

from keepfor.policy.rules import Policy, keep_for, terms
from keepfor.stores.ledger import ledger_at
from keepfor.times import DAY

store = ledger_at(sys.argv[1])
store.survey(terms(Policy(), datetime(2026, 7, 26, tzinfo=UTC)))  # of a ledger that is not there
idle = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
store = ledger_at(sys.argv[2])
now = datetime(2026, 7, 26, tzinfo=UTC)
found = store.survey(terms(Policy(rules=keep_for(90 * DAY), max_bytes=1 << 20), now))
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - idle
print(found.scanned, found.oversized, found.expired, found.unknown, grown // 1024)
"""


@pytest.mark.long
@pytest.mark.parametrize("ended", [True, False])
def test_a_line_of_1_gib_takes_no_memory(ended: bool, tmp_path: Path) -> None:
    """A line of 1 GiB is looked at in blocks, whether it is ended or still being written."""
    path = tmp_path / "ledger"
    with path.open("wb") as file:
        file.write(row(OLD))
        file.truncate((1 << 30) + len(row(OLD)))
        file.seek(0, os.SEEK_END)
        file.write(b"\n" + row(OLD) if ended else b"x")
    done = subprocess.run(
        [sys.executable, "-c", SURVEY, str(tmp_path / "none"), str(path)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    *counts, grown = map(int, done.stdout.split())
    assert counts == ([3, 1, 2, 1] if ended else [2, 0, 1, 1])
    assert grown < 64


def test_a_line_that_is_cut_short_while_it_is_read_ends_the_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that somebody truncates leaves nobody waiting, and no half a row is taken for one."""
    monkeypatch.setattr(files, "BLOCK", 8)
    path = tmp_path / "ledger"
    size = len(write(path, [row(YOUNG), row(OLD)]))
    descriptor = os.open(path, os.O_RDONLY)
    os.truncate(path, len(row(YOUNG)) + 20)
    try:
        found = list(blocks(descriptor, 0, size))
    finally:
        os.close(descriptor)
    assert found == [(0, row(YOUNG)), (len(row(YOUNG)), len(row(OLD)))]
