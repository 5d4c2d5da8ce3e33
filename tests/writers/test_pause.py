"""The pause: a prune that came to nothing, or was just done, is not tried again by each append."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from keepfor import Ledger
from tests.writers.build import Clock, ago, line, rows, spread, write

#: 100 bytes with its LF, and fresh for all that these tests last.
FRESH = {"ts": "2026-07-26T00:00:00+00:00", "x": "x" * 55}


@pytest.fixture(params=["same process", "fresh process"])
def process(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Whether the next append comes from the same process or from one that remembers nothing."""
    name = str(request.param)
    if name == "fresh process":
        probe = tmp_path / "probe"
        probe.touch()
        try:
            os.setxattr(probe, "user.keepfor.test", b"1")
        except (AttributeError, OSError):
            pytest.skip("this file system has no extended attributes")
    return name


class Program:
    """Appends to one ledger as a long-lived process, or as a row of short-lived ones."""

    def __init__(self, process: str, path: Path, **settings: Any) -> None:
        self.fresh = process == "fresh process"
        self.path = path
        self.settings = settings
        self.ledger = Ledger(path, **settings)

    def append(self, row: dict[str, Any] = FRESH) -> None:
        if self.fresh:
            self.ledger = Ledger(self.path, **self.settings)
        self.ledger.append(row)


def nothing_to_drop(path: Path, clock: Clock) -> dict[str, Any]:
    """A first row from the far future, which trips each probe and never goes."""
    write(path, [{"ts": "9999-01-01T00:00:00Z"}, *[FRESH] * 9])
    return {"keep_for": "90d", "clock": clock}


def refused(path: Path, clock: Clock) -> dict[str, Any]:
    """A wrong field, by which every prune is refused."""
    write(path, [FRESH] * 10)
    return {"keep_for": "90d", "time": "when", "clock": clock}


def waiting(path: Path, clock: Clock) -> dict[str, Any]:
    """All has expired but what was just written, so that the guard has every prune wait."""
    write(path, [ago(400, x="x" * 55)] * 12)
    return {"keep_for": "90d", "clock": clock}


def unreadable(path: Path, clock: Clock) -> dict[str, Any]:
    """A first line that tells nothing, and is to be kept."""
    path.write_bytes(b"{\n" + line(FRESH) * 10)
    return {"keep_for": "90d", "unreadable": "keep", "clock": clock}


@pytest.fixture(params=[nothing_to_drop, refused, waiting, unreadable])
def settings(request: pytest.FixtureRequest, path: Path, clock: Clock) -> dict[str, Any]:
    """Those of a ledger that trips every probe, and of which no prune drops anything."""
    made: dict[str, Any] = request.param(path, clock)
    return made


def test_what_came_to_nothing_is_not_tried_again(
    path: Path, process: str, settings: dict[str, Any], prunes: list[Any]
) -> None:
    """Appends that follow leave the ledger alone, though the probe trips each time."""
    program = Program(process, path, **settings)
    program.append()
    assert len(prunes) == 1
    # Less than a tenth: the ledger is of 1,000 bytes or more now.
    program.append({"ts": "2026-07-26T00:00:00Z"})
    program.append({"ts": "2026-07-26T00:00:00Z"})
    assert len(prunes) == 1


def test_it_is_tried_again_after_an_hour(
    path: Path, process: str, settings: dict[str, Any], prunes: list[Any], clock: Clock
) -> None:
    """An hour later, and not a minute before, an append tries once more, and then rests again."""
    program = Program(process, path, **settings)
    program.append()
    clock.forward(minutes=59)
    program.append({"ts": "2026-07-26T00:00:00Z"})
    assert len(prunes) == 1
    clock.forward(minutes=1)
    program.append({"ts": "2026-07-26T00:00:00Z"})
    assert len(prunes) == 2
    program.append({"ts": "2026-07-26T00:00:00Z"})
    assert len(prunes) == 2


def test_it_is_tried_again_when_the_file_was_replaced(
    path: Path, process: str, settings: dict[str, Any], prunes: list[Any]
) -> None:
    """Another file at the path knows of no attempt, even with the same rows in it."""
    program = Program(process, path, **settings)
    program.append()
    other = path.with_name("other")
    other.write_bytes(path.read_bytes())
    other.rename(path)
    program.append({"ts": "2026-07-26T00:00:00Z"})
    assert len(prunes) == 2


def test_it_is_tried_again_when_the_file_has_grown_by_a_tenth(
    path: Path, process: str, prunes: list[Any], clock: Clock
) -> None:
    """From 1,000 bytes, 99 more are too few and 100 are enough."""
    head = b'{"ts": "9999-01-01T00:00:00Z", "x": "%s"}\n'
    path.write_bytes(head % (b"x" * (900 - len(head) + 2)))
    program = Program(process, path, keep_for="90d", clock=clock)
    program.append()
    assert (path.stat().st_size, len(prunes)) == (1000, 1)
    program.append({"ts": "2026-07-26T00:00:00+00:00", "x": "x" * 54})
    assert (path.stat().st_size, len(prunes)) == (1099, 1)
    path.write_bytes(path.read_bytes() + b"\n")
    program.append({})
    assert (path.stat().st_size, len(prunes)) == (1103, 2)


def test_it_is_tried_again_when_the_file_has_become_shorter(
    path: Path, process: str, settings: dict[str, Any], prunes: list[Any]
) -> None:
    """A ledger that somebody cut is not the one of which the attempt was made."""
    program = Program(process, path, **settings)
    program.append()
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - 200)
    program.append({"ts": "2026-07-26T00:00:00Z"})
    assert len(prunes) == 2


def test_a_clock_set_back_ends_the_pause(
    path: Path, process: str, settings: dict[str, Any], prunes: list[Any], clock: Clock
) -> None:
    """An attempt that was made in the future, by a clock since put right, holds nobody up."""
    program = Program(process, path, **settings)
    clock.forward(hours=10)
    program.append()
    assert len(prunes) == 1
    clock.forward(hours=-10)
    program.append({"ts": "2026-07-26T00:00:00Z"})
    assert len(prunes) == 2


def test_a_prune_that_failed_is_not_tried_again(
    path: Path,
    process: str,
    prunes: list[Any],
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A full disk is not run into by each append; an hour later it is tried once more."""
    write(path, [ago(91), *spread(20, oldest=80)])
    program = Program(process, path, keep_for="90d", clock=clock)

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        program.append(ago(0))
        program.append(ago(0))
        assert len(prunes) == 1
        assert rows(path)[0] == ago(91)
    clock.forward(hours=1)
    program.append(ago(0))
    assert len(prunes) == 2
    assert rows(path)[0] != ago(91)


def test_after_a_prune_what_expires_next_waits(
    path: Path, process: str, prunes: list[Any], clock: Clock
) -> None:
    """Rows that expire one by one do not have each append rewrite the ledger."""
    write(path, [ago(90 - minutes / 1440, n=minutes) for minutes in range(200)])
    program = Program(process, path, keep_for="90d", clock=clock)
    clock.forward(seconds=30)
    for _ in range(3):
        program.append({"ts": "2026-07-26T00:00:00Z"})
        clock.forward(minutes=10)
    assert [report.expired for report in prunes] == [1]
    clock.forward(minutes=30)
    program.append({"ts": "2026-07-26T00:00:00Z"})
    assert [report.expired for report in prunes] == [1, 60]


def test_after_a_prune_the_ceiling_does_not_wait(
    path: Path, process: str, prunes: list[Any], clock: Clock
) -> None:
    """The pause after a successful prune is for age; a file above its ceiling is cut at once."""
    write(path, [ago(91, x="x" * 55), ago(2, x="x" * 55), *[FRESH] * 18])
    program = Program(process, path, keep_for="90d", max_bytes=2050, clock=clock)
    program.append()
    assert [(report.expired, report.over_ceiling) for report in prunes] == [(1, 0)]
    # Not grown by a tenth yet, nor an hour later, and above the ceiling all the same.
    program.append()
    assert [(report.expired, report.over_ceiling) for report in prunes] == [(1, 0), (0, 5)]
    assert path.stat().st_size == 1600


def test_a_ceiling_out_of_reach_does_wait(
    path: Path, process: str, prunes: list[Any], clock: Clock
) -> None:
    """A ceiling that a floor keeps from being met is not run against by each append."""
    write(path, [FRESH] * 50)
    program = Program(process, path, max_bytes=1000, keep_last=100, clock=clock)
    program.append()
    program.append()
    program.append()
    assert [report.applied for report in prunes] == [0]
    assert len(rows(path)) == 53


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system that has no extended attributes."""

    def unsupported(*args: Any, **how: Any) -> Any:
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))

    for name in ("getxattr", "setxattr"):
        monkeypatch.setattr(os, name, unsupported, raising=False)
    monkeypatch.setattr(os, "listxattr", lambda *args, **how: [], raising=False)


@pytest.mark.usefixtures("bare")
def test_without_extended_attributes_a_process_remembers(
    path: Path, settings: dict[str, Any], prunes: list[Any]
) -> None:
    """Where a file system has none, the pause holds within a process, and nothing fails."""
    program = Program("same process", path, **settings)
    program.append()
    program.append({"ts": "2026-07-26T00:00:00Z"})
    assert len(prunes) == 1
    Ledger(path, **settings).append({"ts": "2026-07-26T00:00:00Z"})
    assert len(prunes) == 2, "the next process has to find out by itself"


@pytest.mark.parametrize("note", [b"", b"1 2", b"x y z", b"1 2 3 4", b"\xff \xff \xff"])
def test_a_note_that_makes_no_sense_is_no_note(
    path: Path, clock: Clock, prunes: list[Any], note: bytes
) -> None:
    """An attribute that somebody else wrote, or that was damaged, holds no prune up."""
    write(path, [ago(91), ago(1)])
    try:
        os.setxattr(path, "user.keepfor.attempt", note)
    except (AttributeError, OSError):
        pytest.skip("this file system has no extended attributes")
    Ledger(path, keep_for="90d", clock=clock).append(ago(0))
    assert [report.expired for report in prunes] == [1]


def test_an_explicit_prune_knows_no_pause(
    path: Path, settings: dict[str, Any], prunes: list[Any]
) -> None:
    """`prune()` is done each time that it is asked for."""
    ledger = Ledger(path, **(settings | {"time": "ts"}))
    ledger.append(FRESH)
    ledger.prune()
    ledger.prune()
    assert len(prunes) >= 2
