"""A file goes only if it is what the plan saw and at rest; a kill leaves it whole or gone."""

from __future__ import annotations

import errno
import multiprocessing
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import IO, Any

import pytest

from keepfor.stores import leases, removal
from keepfor.stores.exchange import rename_new
from tests.killing import killed_after

CHANGED = "it changed since the plan"
IN_USE = "somebody has it open for writing"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "store"
    path.mkdir()
    return path


@pytest.fixture
def opened(folder: Path) -> Iterator[int]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    yield descriptor
    os.close(descriptor)


def written(folder: Path, name: str = "a.jsonl", text: str = "{}\n") -> str:
    """Makes a file, and returns the fingerprint that a plan made now would see."""
    path = folder / name
    path.write_text(text)
    return removal.fingerprint(path.lstat())


@pytest.fixture
def unheld(monkeypatch: pytest.MonkeyPatch) -> None:
    """No lease is to be had, as on another system, so that nothing keeps a writer away."""
    monkeypatch.setattr(removal, "hold", lambda _: None)


def names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


def test_what_the_plan_saw_goes(folder: Path, opened: int) -> None:
    """A file that is as the plan saw it is removed, and nothing else is left of it."""
    seen = written(folder)
    written(folder, "b.jsonl")
    assert removal.remove(opened, "a.jsonl", seen) == removal.Removal(result="applied")
    assert names(folder) == ["b.jsonl"]


@pytest.mark.parametrize("length", [222, 223, 249, 255])
def test_a_long_name_goes_as_well(folder: Path, opened: int, length: int) -> None:
    """A name that leaves no room for a mark beside it is removed like any other."""
    name = "x" * length
    seen = written(folder, name)
    assert removal.remove(opened, name, seen).result == "applied"
    assert names(folder) == []


def test_what_was_written_to_since_stays(folder: Path, opened: int) -> None:
    """A file that changed since the plan is skipped, with its new content."""
    seen = written(folder)
    with (folder / "a.jsonl").open("a") as file:
        file.write("more\n")
    assert removal.remove(opened, "a.jsonl", seen).why == CHANGED
    assert (folder / "a.jsonl").read_text() == "{}\nmore\n"


def test_what_changed_in_its_rights_alone_stays(folder: Path, opened: int) -> None:
    """Who may read a file is part of what the plan saw: somebody did something to it since."""
    seen = written(folder)
    (folder / "a.jsonl").chmod(0o600)
    assert removal.remove(opened, "a.jsonl", seen).why == CHANGED


def test_another_file_of_that_name_stays(folder: Path, opened: int) -> None:
    """A file that replaced the one that the plan saw is skipped, even if it looks the same."""
    seen = written(folder)
    status = (folder / "a.jsonl").stat()
    written(folder, "new")
    os.utime(folder / "new", ns=(status.st_atime_ns, status.st_mtime_ns))
    (folder / "new").rename(folder / "a.jsonl")
    assert removal.remove(opened, "a.jsonl", seen).why == CHANGED
    assert names(folder) == ["a.jsonl"]


def test_what_is_gone_is_no_error(folder: Path, opened: int) -> None:
    """What another process removed first is told as such."""
    seen = written(folder)
    (folder / "a.jsonl").unlink()
    done = removal.remove(opened, "a.jsonl", seen)
    assert (done.result, done.why) == ("skipped", "it is gone already")


def test_what_somebody_writes_to_stays(folder: Path, opened: int) -> None:
    """A file that is open for writing is not even moved, and its writer's next row is in it."""
    seen = written(folder)
    with (folder / "a.jsonl").open("a") as writer:
        assert removal.remove(opened, "a.jsonl", seen).why == IN_USE
        assert removal.fingerprint((folder / "a.jsonl").stat()) == seen
        writer.write("next\n")
    assert (folder / "a.jsonl").read_text() == "{}\nnext\n"


def test_a_reader_keeps_nothing(folder: Path, opened: int) -> None:
    """A file that somebody only reads goes."""
    seen = written(folder)
    with (folder / "a.jsonl").open():
        assert removal.remove(opened, "a.jsonl", seen).result == "applied"


def test_another_name_of_it_is_told(folder: Path, opened: int, tmp_path: Path) -> None:
    """Where a hard link elsewhere still holds the content, the result says so."""
    written(folder)
    os.link(folder / "a.jsonl", tmp_path / "backup")
    seen = removal.fingerprint((folder / "a.jsonl").stat())
    done = removal.remove(opened, "a.jsonl", seen)
    assert done.result == "applied"
    assert done.why == "1 other name of the file still hold its content"
    assert (tmp_path / "backup").read_text() == "{}\n"


def test_a_symlink_in_its_place_leads_nowhere(folder: Path, opened: int, tmp_path: Path) -> None:
    """A symlink that took the file's place is left, and so is what it leads to."""
    seen = written(folder)
    (tmp_path / "precious").write_text("{}\n")
    (folder / "a.jsonl").unlink()
    (folder / "a.jsonl").symlink_to(tmp_path / "precious")
    assert removal.remove(opened, "a.jsonl", seen).why == CHANGED
    assert (folder / "a.jsonl").is_symlink()
    assert (tmp_path / "precious").read_text() == "{}\n"


def test_a_folder_swapped_for_a_symlink_leads_nowhere(folder: Path, tmp_path: Path) -> None:
    """A removal goes by the folder that was opened, whatever its path leads to by now."""
    seen = written(folder)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    written(elsewhere)
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    folder.rename(tmp_path / "moved")
    folder.symlink_to(elsewhere)
    assert removal.remove(descriptor, "a.jsonl", seen).result == "applied"
    os.close(descriptor)
    assert names(elsewhere) == ["a.jsonl"]
    assert names(tmp_path / "moved") == []


class Between:
    """Does something right after a file was renamed aside for the first time.

    What it does is handed a function that opens the file where it is now, for appending.
    """

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, act: Callable[[Callable[[], IO[bytes]]], object]
    ) -> None:
        self._rename, self._act, self._done = os.rename, act, False
        monkeypatch.setattr(os, "rename", self)

    def __call__(self, source: str, target: str, *, src_dir_fd: int, dst_dir_fd: int) -> None:
        self._rename(source, target, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)
        if not self._done:
            self._done = True
            flags = os.O_WRONLY | os.O_APPEND
            self._act(lambda: os.fdopen(os.open(target, flags, dir_fd=dst_dir_fd), "ab"))


def append_late(opened: Callable[[], IO[bytes]]) -> None:
    with opened() as file:
        file.write(b"late\n")


def append_late_and_take(name: Path) -> Callable[[Callable[[], IO[bytes]]], None]:
    """Appends to the file that is aside, and makes another one of its name."""

    def act(opened: Callable[[], IO[bytes]]) -> None:
        append_late(opened)
        name.write_text("new\n")

    return act


@pytest.mark.usefixtures("unheld")
@pytest.mark.parametrize("name", ["a.jsonl", "x" * 250])
def test_what_changes_at_the_last_moment_is_put_back(
    folder: Path, opened: int, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A row that lands between check and removal is not lost: the file gets its name back."""
    seen = written(folder, name)
    Between(monkeypatch, append_late)
    assert removal.remove(opened, name, seen).why == CHANGED
    assert names(folder) == [name]
    assert (folder / name).read_text() == "{}\nlate\n"


@pytest.mark.usefixtures("unheld")
def test_a_change_that_leaves_the_mtime_is_noticed(
    folder: Path, opened: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row that lands at the last moment counts even where the clock of the file did not tick."""
    seen = written(folder)
    status = (folder / "a.jsonl").stat()

    def act(opened: Callable[[], IO[bytes]]) -> None:
        with opened() as file:
            file.write(b"late\n")
            file.flush()
            os.utime(file.fileno(), ns=(status.st_atime_ns, status.st_mtime_ns))

    Between(monkeypatch, act)
    assert removal.remove(opened, "a.jsonl", seen).why == CHANGED
    assert (folder / "a.jsonl").read_text() == "{}\nlate\n"


def same_size(path: Path) -> None:
    """Edits a file in place; neither its size nor its mtime tells of it."""
    was = path.stat()
    path.write_text("[]\n")
    os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))


@pytest.mark.usefixtures("unheld")
def test_an_edit_that_puts_the_mtime_back_at_the_last_moment_is_put_back(
    folder: Path, opened: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was written right before the rename is found by the bytes, where nothing else tells."""
    seen = written(folder)
    rename = os.rename

    def late(source: str, target: str, **where: int) -> None:
        if source == "a.jsonl":
            same_size(folder / source)
        rename(source, target, **where)

    monkeypatch.setattr(os, "rename", late)
    assert removal.remove(opened, "a.jsonl", seen).why == CHANGED
    assert names(folder) == ["a.jsonl"]
    assert (folder / "a.jsonl").read_text() == "[]\n"


@pytest.mark.usefixtures("unheld")
def test_an_edit_that_puts_the_mtime_back_before_the_last_look_is_not_touched(
    folder: Path, opened: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ctime is looked at once more before the rename, however long the file is."""
    seen = written(folder)
    read = os.pread

    def late(descriptor: int, size: int, at: int) -> bytes:
        data = read(descriptor, size, at)
        same_size(folder / "a.jsonl")
        return data

    def never(*_: object, **__: object) -> None:
        raise AssertionError("it was renamed")

    monkeypatch.setattr(os, "pread", late)
    monkeypatch.setattr(os, "rename", never)
    assert removal.remove(opened, "a.jsonl", seen).why == CHANGED
    assert (folder / "a.jsonl").read_text() == "[]\n"


@pytest.mark.parametrize("flags", [os.O_WRONLY, os.O_RDWR | os.O_APPEND, os.O_WRONLY | os.O_TRUNC])
def test_who_comes_to_write_while_it_is_held_gets_it(
    folder: Path, opened: int, monkeypatch: pytest.MonkeyPatch, flags: int
) -> None:
    """A writer who came by just before the name was gone waits, and finds the file in its place."""
    seen = written(folder)
    rename = os.rename

    def late(source: str, target: str, **where: int) -> None:
        if source == "a.jsonl":
            # One that would wait is told so, and counts as waiting.
            with pytest.raises(BlockingIOError):
                os.open(folder / "a.jsonl", flags | os.O_NONBLOCK)
        rename(source, target, **where)

    monkeypatch.setattr(os, "rename", late)
    assert removal.remove(opened, "a.jsonl", seen).why == IN_USE
    assert names(folder) == ["a.jsonl"]
    with (folder / "a.jsonl").open("a") as file:
        file.write("late\n")
    assert (folder / "a.jsonl").read_text() == "{}\nlate\n"


def test_nobody_waits_for_what_a_removal_has_left(folder: Path, opened: int) -> None:
    """However it ends, and whoever was forked off meanwhile, the file can be opened at once."""
    seen = written(folder)
    (folder / "a.jsonl").chmod(0o600)
    assert removal.remove(opened, "a.jsonl", seen).why == CHANGED
    os.close(os.open(folder / "a.jsonl", os.O_WRONLY | os.O_NONBLOCK))


def test_a_lease_that_the_system_took_away_is_no_failure(folder: Path, opened: int) -> None:
    """Who was suspended for long has lost it, and leaves the file to whoever came meanwhile."""
    written(folder)
    descriptor = os.open("a.jsonl", os.O_RDONLY, dir_fd=opened)
    try:
        assert leases.hold(descriptor)
        assert not leases.is_wanted(descriptor)
        leases.release(descriptor)
        assert leases.is_wanted(descriptor)
        leases.release(descriptor)
    finally:
        os.close(descriptor)


def _append_rows(path: str, count: int) -> None:
    """As a program does that has never heard of keepfor: open, append, close."""
    for number in range(count):
        with open(path, "a", encoding="utf-8") as file:
            file.write(f"{number}\n")


def test_no_row_of_a_plain_writer_goes_that_no_plan_saw(folder: Path, opened: int) -> None:
    """A file is removed over and over while another process appends to it by its name."""
    path, seen = folder / "a.jsonl", []
    writer = multiprocessing.get_context("fork").Process(target=_append_rows, args=(path, 5_000))
    writer.start()
    while writer.is_alive():
        with suppress(FileNotFoundError):
            plan, text = removal.fingerprint(path.stat()), path.read_text()
            if removal.fingerprint(path.stat()) != plan:
                continue
            if removal.remove(opened, "a.jsonl", plan).result == "applied":
                seen += text.splitlines()
    writer.join()
    left = path.read_text().splitlines() if path.exists() else []
    assert seen + left == [str(number) for number in range(5_000)]
    assert names(folder) in ([], ["a.jsonl"])


def test_a_symlink_swapped_in_at_the_last_moment_is_put_back(
    folder: Path, opened: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A symlink that was renamed aside in the place of the file gets its name back."""
    seen = written(folder)
    (tmp_path / "precious").write_text("{}\n")
    rename = os.rename

    def swapping(source: str, target: str, **where: int) -> None:
        if source == "a.jsonl":
            (folder / "a.jsonl").unlink()
            (folder / "a.jsonl").symlink_to(tmp_path / "precious")
        rename(source, target, **where)

    monkeypatch.setattr(os, "rename", swapping)
    assert removal.remove(opened, "a.jsonl", seen).why == CHANGED
    assert names(folder) == ["a.jsonl"]
    assert (folder / "a.jsonl").is_symlink()
    assert (tmp_path / "precious").read_text() == "{}\n"


def test_a_folder_swapped_in_at_the_last_moment_is_put_back(
    folder: Path, opened: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder cannot be linked, and is put back all the same."""
    seen = written(folder)
    rename = os.rename

    def swapping(source: str, target: str, **where: int) -> None:
        if source == "a.jsonl":
            (folder / "a.jsonl").unlink()
            (folder / "a.jsonl").mkdir()
        rename(source, target, **where)

    monkeypatch.setattr(os, "rename", swapping)
    assert removal.remove(opened, "a.jsonl", seen).why == CHANGED
    assert names(folder) == ["a.jsonl"]
    assert (folder / "a.jsonl").is_dir()


@pytest.mark.usefixtures("unheld")
def test_both_stay_where_the_name_was_taken_meanwhile(
    folder: Path, opened: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that changed and whose name was taken stays aside, and comes back when it is free."""
    seen = written(folder)
    Between(monkeypatch, append_late_and_take(folder / "a.jsonl"))
    done = removal.remove(opened, "a.jsonl", seen)
    assert done.result == "skipped"
    assert "its name was taken meanwhile: it is aside as .a.jsonl.keepfor-aside." in done.why
    (aside,) = removal.leftovers(opened)
    assert aside.startswith(".a.jsonl.keepfor-aside.")
    removal.recover(opened)
    assert (folder / "a.jsonl").read_text() == "new\n"
    assert removal.leftovers(opened) == [aside]
    seen = removal.fingerprint((folder / "a.jsonl").stat())
    assert removal.remove(opened, "a.jsonl", seen).result == "applied"
    removal.recover(opened)
    assert names(folder) == ["a.jsonl"]
    assert (folder / "a.jsonl").read_text() == "{}\nlate\n"


@pytest.mark.usefixtures("unheld")
def test_without_hard_links_it_is_put_back_too(
    folder: Path, opened: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file system that knows no hard links loses nothing either, and no other file's name."""
    seen = written(folder)

    def refuses(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuses)
    Between(monkeypatch, append_late)
    assert removal.remove(opened, "a.jsonl", seen).why == CHANGED
    assert (folder / "a.jsonl").read_text() == "{}\nlate\n"

    seen = removal.fingerprint((folder / "a.jsonl").stat())
    Between(monkeypatch, append_late_and_take(folder / "a.jsonl"))
    assert "its name was taken" in removal.remove(opened, "a.jsonl", seen).why
    assert (folder / "a.jsonl").read_text() == "new\n"


@pytest.mark.usefixtures("unheld")
@pytest.mark.parametrize("able", [True, False])
def test_a_new_file_is_never_put_back_over(
    folder: Path, opened: int, monkeypatch: pytest.MonkeyPatch, able: bool
) -> None:
    """Without hard links, a file that comes in the very last moment keeps its name, and is told."""
    seen = written(folder)

    def refuses(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    def late(*where: Any) -> None:
        if not able:
            raise OSError(errno.EINVAL, "this file system cannot rename without replacing")
        (folder / "a.jsonl").write_text("new\n")
        rename_new(*where)

    monkeypatch.setattr(os, "link", refuses)
    monkeypatch.setattr(removal, "rename_new", late)
    Between(monkeypatch, append_late)
    done = removal.remove(opened, "a.jsonl", seen)
    (aside,) = removal.leftovers(opened)
    assert (folder / aside).read_text() == "{}\nlate\n"
    assert done.result == "skipped"
    if able:
        assert done.why == f"{CHANGED}, and its name was taken meanwhile: it is aside as {aside}"
        assert (folder / "a.jsonl").read_text() == "new\n"
    else:
        refused = "it cannot be put back (this file system cannot rename without replacing)"
        assert done.why == f"{CHANGED}, and {refused}: it is aside as {aside}"
        removal.recover(opened)
        assert names(folder) == [aside]


def test_what_the_system_refuses_is_put_back(
    folder: Path, opened: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that cannot be unlinked is where it was, and the system's word is told."""
    seen = written(folder)
    unlink = os.unlink
    refused: list[str] = []

    def refusing(name: str, **where: int) -> None:
        if not refused:
            refused.append(name)
            raise PermissionError(1, "Operation not permitted")
        unlink(name, **where)

    monkeypatch.setattr(os, "unlink", refusing)
    done = removal.remove(opened, "a.jsonl", seen)
    assert (done.result, done.why) == ("failed", "Operation not permitted")
    assert names(folder) == ["a.jsonl"]


def test_what_cannot_be_removed_nor_put_back_is_told(
    folder: Path, opened: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that fails and whose name was taken is named by where it is."""
    seen = written(folder)

    def refusing(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "unlink", refusing)
    Between(monkeypatch, lambda _: (folder / "a.jsonl").write_text("new\n"))
    done = removal.remove(opened, "a.jsonl", seen)
    (aside,) = removal.leftovers(opened)
    assert done == removal.Removal(
        result="failed",
        why=f"Operation not permitted, and its name was taken meanwhile: it is aside as {aside}",
    )
    assert (folder / "a.jsonl").read_text() == "new\n"


def test_what_may_not_be_read_is_told(
    folder: Path, opened: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that cannot be opened has failed, if it is the one that the plan saw."""
    seen = written(folder)
    real = os.open

    def refusing(path: str, flags: int, **where: int) -> int:
        if path == "a.jsonl":
            raise PermissionError(13, "Permission denied")
        return real(path, flags, **where)

    monkeypatch.setattr(os, "open", refusing)
    assert removal.remove(opened, "a.jsonl", seen) == removal.Removal(
        result="failed", why="Permission denied"
    )
    assert removal.remove(opened, "a.jsonl", "another").why == CHANGED


@pytest.mark.parametrize("name", ["a.jsonl", "x" * 250])
def test_killed_at_any_step_it_is_there_or_gone(folder: Path, opened: int, name: str) -> None:
    """A removal killed anywhere leaves, once it was recovered, the file as it was or no file."""
    fates = []
    for steps in range(1, 40):
        seen = written(folder, name)
        if not killed_after(steps, partial(removal.remove, opened, name, seen)):
            break
        removal.recover(opened)
        there = names(folder)
        assert there in ([name], [])
        if there:
            assert (folder / name).read_text() == "{}\n"
            assert (folder / name).stat().st_nlink == 1
        fates.append(len(there))
    assert fates == sorted(fates, reverse=True)
    assert set(fates) == {0, 1}
    assert names(folder) == []


@pytest.mark.parametrize("name", ["a.jsonl", "x" * 250])
def test_a_recovery_that_is_killed_is_finished_by_the_next(
    folder: Path, opened: int, name: str
) -> None:
    """However often recoveries are killed, the file comes back once."""
    for steps in range(1, 40):
        seen = written(folder, name)
        aside = next(
            n
            for n in range(1, 40)
            if killed_after(n, partial(removal.remove, opened, name, seen))
            and removal.leftovers(opened)
        )
        (left,) = removal.leftovers(opened)
        assert (folder / left).read_text() == "{}\n"
        assert aside > 1
        if not killed_after(steps, lambda: removal.recover(opened)):
            break
        removal.recover(opened)
        assert names(folder) == [name]
        assert (folder / name).stat().st_nlink == 1
    assert steps > 2
    assert names(folder) == [name]


def test_a_killed_removal_is_finished_where_the_name_was_taken(folder: Path, opened: int) -> None:
    """What was to go, and was not changed, goes when a new file has its name by now."""
    seen = written(folder)
    for steps in range(1, 40):
        killed_after(steps, lambda: removal.remove(opened, "a.jsonl", seen))
        if removal.leftovers(opened):
            break
    (folder / "a.jsonl").write_text("new\n")
    removal.recover(opened)
    assert names(folder) == ["a.jsonl"]
    assert (folder / "a.jsonl").read_text() == "new\n"


def test_a_changed_file_that_was_just_put_back_loses_only_its_second_name(
    folder: Path, opened: int
) -> None:
    """Killed between giving a changed file its name and clearing the other one, it is whole."""
    written(folder)
    os.link(folder / "a.jsonl", folder / ".a.jsonl.keepfor-aside.0123456789ab")
    removal.recover(opened)
    assert names(folder) == ["a.jsonl"]
    assert (folder / "a.jsonl").stat().st_nlink == 1


def test_what_only_looks_like_a_leftover_is_left_alone(folder: Path, opened: int) -> None:
    """Files of other programs are none of ours, however they are called."""
    strange = [".keepfor-aside.0123456789ab", ".keepfor-aside.", ".a.keepfor-aside.xyz"]
    for name in strange:
        (folder / name).touch()
    assert removal.leftovers(opened) == []
    removal.recover(opened)
    assert names(folder) == sorted(strange)
