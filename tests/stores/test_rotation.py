"""Whoever rotates a ledger while it is pruned, by renaming or by emptying it, loses no row."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from keepfor.errors import StoreChanged
from keepfor.stores import replace
from tests.stores.build import OLD, append, beside, pruned, row, write

NEW = [row(n=f"new {number}") for number in range(40)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A ledger of which one row is to go."""
    path = tmp_path / "ledger.jsonl"
    write(path, [row(OLD), row(n=0)])
    return path


def before(monkeypatch: pytest.MonkeyPatch, name: str, act: Callable[[], object]) -> None:
    """Have something happen when a prune first makes that system call."""
    call: Callable[..., Any] = getattr(os, name)

    def wrapped(*args: Any, **how: Any) -> Any:
        monkeypatch.setattr(os, name, call)
        act()
        return call(*args, **how)

    monkeypatch.setattr(os, name, wrapped)


@pytest.mark.parametrize("call", ["writev", "fsync", "link"])
@pytest.mark.parametrize("held", [False, True])
def test_a_ledger_that_is_renamed_away_is_not_put_back_over_its_successor(
    call: str, held: bool, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was written to the file that took the ledger's place meanwhile stands there still."""
    whole = path.read_bytes()
    aside = path.with_name("ledger.jsonl.1")
    writers = []

    def rotate() -> None:
        path.rename(aside)
        append(path, *NEW)
        if held:
            writers.append(path.open("ab"))

    before(monkeypatch, call, rotate)
    with pytest.raises(StoreChanged, match="another file stands there now"):
        pruned(path)
    for writer in writers:
        writer.close()
    assert path.read_bytes() == b"".join(NEW)
    assert aside.read_bytes() == whole
    assert beside(path) == [path.name, aside.name]


@pytest.mark.parametrize("call", ["writev", "fsync"])
@pytest.mark.parametrize("count", [1, len(NEW)])
def test_a_ledger_that_is_emptied_before_the_swap_is_left_alone(
    call: str, count: int, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However large it has grown again, the rows that it lost stay away and its new ones stay."""

    def rotate() -> None:
        os.truncate(path, 0)
        append(path, *NEW[:count])

    before(monkeypatch, call, rotate)
    with pytest.raises(StoreChanged):
        pruned(path)
    assert path.read_bytes() == b"".join(NEW[:count])
    assert beside(path) == [path.name]


def test_an_old_file_that_is_emptied_holds_new_rows_alone(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever empties the old file over the swap, and writes on, has those rows brought over."""
    rotator = path.open("ab", buffering=0)
    append(path, *[row(n=number) for number in range(1, 5)])
    stay = [row(n=number) for number in range(5)]

    def rotate() -> None:
        rotator.truncate(0)
        rotator.write(NEW[0])
        rotator.close()

    before(monkeypatch, "rename", rotate)
    pruned(path)
    assert path.read_bytes() == b"".join([*stay, NEW[0]])
    assert beside(path) == [path.name]


def test_an_old_file_that_is_emptied_while_it_is_held_open_stops_no_prune(path: Path) -> None:
    """It is drained from its beginning then, and each row lands once."""
    with path.open("ab", buffering=0) as writer:
        pruned(path)
        writer.truncate(0)
        writer.write(NEW[0])
        pruned(path)
        assert path.read_bytes() == row(n=0) + NEW[0]
        writer.write(NEW[1])
        pruned(path)
    pruned(path)
    assert path.read_bytes() == row(n=0) + NEW[0] + NEW[1]
    assert beside(path) == [path.name]


@pytest.mark.parametrize("call", ["writev", "fsync", "link", "rename"])
def test_a_row_whose_halves_were_written_by_two_openers_is_one_row(
    call: str, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first half was copied as the torn line that it was; the row is brought over whole."""
    append(path, row(n=1)[:9])
    before(monkeypatch, call, lambda: append(path, row(n=1)[9:] + row(n=2)))
    pruned(path)
    assert path.read_bytes() in (
        row(n=0) + row(n=1) + row(n=2),
        row(n=0) + row(n=1)[:9] + b"\n" + row(n=1) + row(n=2),
    )
    assert beside(path) == [path.name]


def test_a_row_that_was_written_right_behind_a_torn_line_is_parted_from_it(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is a row by itself is no second half: better apart than glued, as it would have been."""
    append(path, b'{"torn')
    before(monkeypatch, "rename", lambda: append(path, row(n=1)))
    pruned(path)
    assert path.read_bytes() == row(n=0) + b'{"torn\n' + row(n=1)


def test_a_half_row_of_a_writer_that_stays_is_brought_over_whole(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is punched out of a file that is held open never hides where its next row begins."""
    writers = []

    def hold() -> None:
        writers.append(path.open("ab", buffering=0))
        writers[0].write(row(n=1)[9:20])

    append(path, row(n=1)[:9])
    before(monkeypatch, "rename", hold)
    pruned(path)
    pruned(path)
    writers[0].write(row(n=1)[20:] + row(n=2))
    pruned(path)
    writers[0].close()
    pruned(path)
    assert path.read_bytes() == row(n=0) + row(n=1) + row(n=2)


@pytest.mark.parametrize(
    "numbers", ["7.0.9999999999999.0", "7.9999", "7.999999999999999999", "7.0.9999.9999"]
)
def test_an_old_file_with_strange_numbers_loses_no_row_and_stops_no_prune(
    numbers: str, path: Path
) -> None:
    """Where its name says that more was copied than there is, it is brought over as it is."""
    write(path.with_name(f".{path.name}.keepfor-old.{numbers}"), [row(n=1)])
    pruned(path)
    assert path.read_bytes() == row(n=0) + row(n=1)
    assert beside(path) == [path.name]


@pytest.mark.parametrize("numbers", ["7.5.2.0", "7.1" + "0" * 30, "7.0.1" + "0" * 30 + ".0", "7.٣"])
def test_numbers_that_no_prune_would_write_are_none_of_ours(numbers: str, path: Path) -> None:
    """A name that only looks like an old file's is left alone, and stops no prune."""
    planted = path.with_name(f".{path.name}.keepfor-old.{numbers}")
    write(planted, [row(n=1)])
    assert replace.leftovers(str(path)) == []
    assert pruned(path).applied == 1
    assert planted.read_bytes() == row(n=1)


def test_a_file_that_has_the_name_of_the_old_one_already_is_not_removed(path: Path) -> None:
    """What a restored backup left under that very name is somebody's rows."""
    source = os.open(path, os.O_RDONLY)
    new = replace.create(str(path), source)
    copied = path.stat().st_size
    planted = path.with_name(f".{path.name}.keepfor-old.{path.stat().st_ino}.{copied}")
    write(planted, [row(n=1)])
    try:
        with pytest.raises(FileExistsError):
            replace.swap(str(path), source, new, copied)
    finally:
        os.close(source)
    assert planted.read_bytes() == row(n=1)
    assert beside(path) == sorted([path.name, planted.name])
