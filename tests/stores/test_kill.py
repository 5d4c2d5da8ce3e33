"""kill -9 before, after and in the middle of every step of a prune."""

from __future__ import annotations

import json
import os
import signal
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import pytest

from keepfor.stores import files, replace
from tests.stores.build import OLD, append, beside, pruned, row, write

Moment = Literal["after", "half"]

#: All by which a prune changes anything that outlives it; between two of them nothing differs.
CHANGES = ["open", "write", "writev", "link", "rename", "unlink", "fchmod", "fchown", "setxattr"]
#: What else it calls, where a writer may come in between.
LOOKS = ["close", "fsync", "scandir", "lstat", "fstat", "pread"]


class Killer:
    """Wraps the system calls of this process so that it dies at a change.

    Parameters:
        step: at which, counted from one.
        moment: when it is done; or, if it writes, when half of it is written.
        meanwhile: done before each call.
    """

    def __init__(self, step: int, moment: Moment, meanwhile: Callable[[], None]) -> None:
        self.left = step
        self.moment = moment
        self.meanwhile = meanwhile

    def lie_in_wait(self) -> None:
        for name in CHANGES + LOOKS:
            setattr(os, name, self.wrapped(name, getattr(os, name)))

    def wrapped(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        write = os.write
        counts = name in (CHANGES if self.moment == "after" else ("write", "writev"))

        def step(*args: Any, **how: Any) -> Any:
            self.left -= counts
            # The size of a file is looked at under a lease, for which a writer would wait.
            if name != "fstat":
                self.meanwhile()
            if not counts or self.left:
                return call(*args, **how)
            if self.moment == "half":
                data = args[1] if name == "write" else b"".join(args[1])
                write(args[0], data[: len(data) // 2])
            else:
                with suppress(OSError):
                    call(*args, **how)
            os.kill(os.getpid(), signal.SIGKILL)
            raise AssertionError("it is dead")

        return step


def killed(step: int, moment: Moment, path: Path, meanwhile: Callable[[], None]) -> bool:
    """Prune in a child that dies at a step; False if it came to its end before."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            Killer(step, moment, meanwhile).lie_in_wait()
            pruned(path)
            code = 0
        except BaseException:
            traceback.print_exc()
            raise
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert status in (0, signal.SIGKILL)
    return status == signal.SIGKILL


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)
    monkeypatch.setattr(replace, "_PAUSE", 0.0)
    monkeypatch.setattr(replace, "PATIENCE", 0.0)


def numbers(data: bytes) -> Counter[int]:
    """The numbers of the rows in a ledger, and how often each is there; half a row is none."""
    found: Counter[int] = Counter()
    for line in data.split(b"\n"):
        try:
            found[json.loads(line)["n"]] += 1
        except ValueError:
            continue
    return found


KEPT, GONE = range(100, 110), range(200, 210)
#: Those of the rows that come meanwhile.
NUMBERS = range(10_000, 99_999)
SETUP = [row(n=n) for n in KEPT[:5]] + [row(OLD, n=n) for n in GONE] + [row(n=n) for n in KEPT[5:]]


def is_whole(data: bytes) -> None:
    """As before the prune or as after it: what stays is there, and of the others all or none."""
    found = numbers(data)
    assert all(found[n] == 1 for n in KEPT)
    assert {found[n] for n in GONE} in ({0}, {1})


def steps(moment: Moment, path: Path, prepare: Callable[[], Callable[[], None]]) -> Iterator[int]:
    """Kill a prune of a ledger at each step in turn; yields when it is dead."""
    step = 1
    while True:
        for name in beside(path):
            path.with_name(name).unlink()
        if not killed(step, moment, path, prepare()):
            break
        yield step
        step += 1
    assert step > (1 if moment == "half" else 8)


def finished(path: Path, appended: set[int]) -> None:
    """What the next prune makes of it: all is there, once, and nothing is left about."""
    descriptor = files.open_for_append(str(path))
    files.append(descriptor, row(n=1000))
    files.close(descriptor)
    pruned(path)
    assert numbers(path.read_bytes()) == Counter([*KEPT, *appended, 1000])
    assert b"" not in path.read_bytes().split(b"\n")[:-1]
    assert beside(path) == [path.name]
    assert replace.leftovers(str(path)) == []


@pytest.mark.parametrize("moment", ["after", "half"])
def test_a_ledger_is_whole_wherever_a_prune_is_killed(moment: Moment, tmp_path: Path) -> None:
    """It is as before or as after, and the next prune clears what was left lying about."""
    path = tmp_path / "ledger.jsonl"

    def prepare() -> Callable[[], None]:
        write(path, SETUP)
        return lambda: None

    for _ in steps(moment, path, prepare):
        is_whole(path.read_bytes())
        finished(path, set())


@pytest.mark.parametrize("moment", ["after", "half"])
def test_no_row_that_came_meanwhile_is_lost_by_a_kill(moment: Moment, tmp_path: Path) -> None:
    """Plain writers append at every step, and each of their rows is there in the end, once."""
    path, log = tmp_path / "folder" / "ledger.jsonl", tmp_path / "log"
    path.parent.mkdir()

    def prepare() -> Callable[[], None]:
        write(path, SETUP)
        write(log, [])

        def append_one() -> None:
            append(path, row(n=NUMBERS.start + log.stat().st_size))
            append(log, b".")

        return append_one

    for _ in steps(moment, path, prepare):
        is_whole(path.read_bytes())
        finished(path, set(NUMBERS[: log.stat().st_size]))


@pytest.mark.parametrize("held", [True, False])
@pytest.mark.parametrize("moment", ["after", "half"])
def test_a_piece_that_is_landing_when_the_kill_comes_lands_once(
    held: bool, moment: Moment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of a writer that kept the old file open are there in the end, once, whether it has
    closed it by now or not."""
    monkeypatch.setattr(replace, "_PIECE", 100)
    path = tmp_path / "ledger.jsonl"
    late = range(300, 306)
    writers = []

    def prepare() -> Callable[[], None]:
        write(path, SETUP)
        writers.append(path.open("ab", buffering=0))
        pruned(path)
        append(path, row(OLD, n=250), row(n=400))
        writers[-1].write(b"".join(row(n=n) for n in late))
        if not held:
            writers[-1].close()
        return lambda: None

    for _ in steps(moment, path, prepare):
        is_whole(path.read_bytes())
        writers.pop().close()
        finished(path, {*late, 400})
    writers.pop().close()


def test_a_prune_that_is_killed_again_and_again_gets_there(tmp_path: Path) -> None:
    """Prunes that each get one step further over the same ledger lose and double nothing."""
    path, log = tmp_path / "folder" / "ledger.jsonl", tmp_path / "log"
    path.parent.mkdir()
    write(path, SETUP)
    write(log, [])

    def append_one() -> None:
        append(path, row(n=NUMBERS.start + log.stat().st_size))
        append(log, b".")

    step = 1
    while killed(step, "after", path, append_one):
        is_whole(path.read_bytes())
        step += 1
    finished(path, set(NUMBERS[: log.stat().st_size]))
