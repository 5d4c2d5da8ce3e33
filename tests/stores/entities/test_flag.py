"""A flag changes a few lines of a note and nothing else, and never costs an edit."""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import IO

import pytest

from keepfor.errors import CannotReplace
from keepfor.items import Item, Outcome
from keepfor.stores import flagging
from keepfor.stores.entities import EntityStore, entities_at
from keepfor.stores.exchange import exchange
from tests.entities import done, note, recall, scanned, session, to
from tests.stores.nobody import as_nobody, common_ground

CHANGED = "it changed since the plan"
TEXT = "---\r\ntype: guideline # why\r\nretention_class: x\r\n---\r\n\r\nbody \r\nand no newline"


def flag(store: EntityStore, item: Item, rule: str = "stale") -> Outcome:
    return done(store, to("flag", item, rule))[item.id]


def names(root: Path) -> list[str]:
    return sorted(os.listdir(root / "entities"))


def bare(path: Path) -> bytes:
    """A note without the lines of a flag."""
    lines = path.read_bytes().splitlines(keepends=True)
    keys = (b"retention_flagged_at:", b"retention_reason:", b"retention_rule:")
    return b"".join(line for line in lines if not line.startswith(keys))


@pytest.fixture
def store(tmp_path: Path) -> EntityStore:
    return entities_at(tmp_path)


def test_a_flag_is_all_that_changes(tmp_path: Path, store: EntityStore) -> None:
    """Bytes, line ends, mode and mtime to the nanosecond stay; no file is left beside the note."""
    path = note(tmp_path, "a", TEXT)
    path.chmod(0o640)
    os.utime(path, ns=(1, 1_767_225_600_123_456_789))
    if hasattr(os, "setxattr"):
        os.setxattr(path, "user.mine", b"kept")
    assert flag(store, scanned(store)["a"]).result == "applied"
    assert bare(path) == TEXT.encode()
    status = path.stat()
    assert (status.st_mtime_ns, stat.S_IMODE(status.st_mode)) == (1_767_225_600_123_456_789, 0o640)
    if hasattr(os, "getxattr"):
        assert os.getxattr(path, "user.mine") == b"kept"
    assert names(tmp_path) == ["a.md"]
    again = scanned(store)["a"]
    assert (again.flagged_by, again.instant) == ("stale", scanned(store)["a"].instant)


def test_a_note_without_frontmatter_gets_one(tmp_path: Path, store: EntityStore) -> None:
    """The flag stands at its beginning, and the note follows as it was."""
    path = note(tmp_path, "a", "text\n")
    assert flag(store, scanned(store)["a"]).result == "applied"
    head, _, body = path.read_text().rpartition("---\n")
    assert body == "text\n"
    lines = head.splitlines()
    assert [line.partition(":")[0] for line in lines] == [
        "---",
        "retention_flagged_at",
        "retention_reason",
        "retention_rule",
    ]
    assert lines[2:] == ['retention_reason: "age"', 'retention_rule: "stale"']


def test_a_second_flag_of_the_same_rule_changes_nothing(tmp_path: Path, store: EntityStore) -> None:
    """What this rule flagged already keeps its date; another rule's flag replaces it."""
    path = note(tmp_path, "a")
    flag(store, scanned(store)["a"])
    before, status = path.read_bytes(), path.stat()
    said = flag(store, scanned(store)["a"])
    assert (said.result, said.why) == ("skipped", "it carries this flag already")
    assert (path.read_bytes(), path.stat()) == (before, status)
    assert flag(store, scanned(store)["a"], "other").result == "applied"
    assert scanned(store)["a"].flagged_by == "other"
    assert path.read_bytes().count(b"retention_rule") == 1


def test_a_long_note_keeps_every_byte(tmp_path: Path, store: EntityStore) -> None:
    """What follows the first 64 KiB is copied as it is."""
    body = os.urandom(200_000)
    path = note(tmp_path, "a", b"---\ntype: t\n---\n" + body)
    assert flag(store, scanned(store)["a"]).result == "applied"
    assert path.read_bytes().endswith(body)
    assert path.stat().st_size - scanned(store)["a"].bytes == 0


@pytest.mark.parametrize("edited", ["grown", "same size, mtime put back", "touched", "mode"])
def test_what_changed_since_the_plan_is_not_flagged(
    tmp_path: Path, store: EntityStore, edited: str
) -> None:
    """An edit of any kind, also one that put the mtime back, keeps the flag away."""
    path = note(tmp_path, "a", "text\n")
    item, was = scanned(store)["a"], path.stat()
    match edited:
        case "grown":
            path.write_text("text and more\n")
        case "same size, mtime put back":
            path.write_text("TEXT\n")
            os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))
        case "touched":
            os.utime(path)
        case "mode":
            path.chmod(0o600)
    before = path.read_bytes()
    said = flag(store, item)
    assert (said.result, said.why) == ("skipped", CHANGED)
    assert path.read_bytes() == before


def test_what_was_recalled_since_the_plan_is_left_alone(tmp_path: Path, store: EntityStore) -> None:
    """A recall is as good as an edit, for a flag and for a delete."""
    path = note(tmp_path, "a")
    item = scanned(store)["a"]
    recall(tmp_path, "a")
    for action in ("flag", "delete"):
        said = done(store, to(action, item))["a"]
        assert (said.result, said.why) == ("skipped", "it was recalled since the plan")
    assert bare(path) == path.read_bytes()


def test_a_recall_during_the_sweep_counts_as_well(tmp_path: Path, store: EntityStore) -> None:
    """The log is looked at again before each item."""
    for id_ in "ab":
        note(tmp_path, id_)
    items = scanned(store)
    outcomes = store.apply([to("delete", items[id_]) for id_ in "ab"])
    assert next(outcomes).result == "applied"
    recall(tmp_path, "b")
    assert next(outcomes).why == "it was recalled since the plan"
    assert names(tmp_path) == ["b.md"]


def test_what_somebody_writes_to_is_not_flagged(tmp_path: Path, store: EntityStore) -> None:
    """A note that is open for writing is left to its writer."""
    path = note(tmp_path, "a", "text\n")
    item = scanned(store)["a"]
    with path.open("a") as writer:
        said = flag(store, item)
        assert (said.result, said.why) == ("skipped", "somebody has it open for writing")
        writer.write("more\n")
    assert path.read_text() == "text\nmore\n"


def in_place(path: Path) -> None:
    was = path.stat()
    path.write_text("TEXT\n")
    os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))


def by_rename(path: Path) -> None:
    new = path.with_suffix(".new")
    new.write_text("TEXT\n")
    new.rename(path)


@pytest.mark.parametrize("edit", [in_place, by_rename])
@pytest.mark.parametrize("moment", ["before", "after"])
def test_an_edit_that_slips_in_keeps_its_name(
    tmp_path: Path,
    store: EntityStore,
    monkeypatch: pytest.MonkeyPatch,
    edit: Callable[[Path], None],
    moment: str,
) -> None:
    """What an editor saves right before, or through a name it opened before, wins over a flag."""
    path = note(tmp_path, "a", "text\n")
    item = scanned(store)["a"]
    calls = []

    def slow(folder: int, one: str, other: str) -> None:
        calls.append(one)
        if moment == "before" and len(calls) == 1:
            edit(path)
        exchange(folder, one, other)
        if moment == "after" and len(calls) == 1 and edit is in_place:
            # Whoever opened it before the exchange writes to what was displaced.
            edit(path.with_name(one))
        elif moment == "after" and len(calls) == 1:
            edit(path)

    monkeypatch.setattr(flagging, "exchange", slow)
    said = flag(store, item)
    assert path.read_text() == "TEXT\n"
    if moment == "after" and edit is by_rename:
        assert said.result == "applied"
    else:
        assert (said.result, said.why) == ("skipped", CHANGED)
        assert len(calls) == 2
    assert names(tmp_path) == ["a.md"]


@pytest.mark.parametrize("at", [30, 100_000])
def test_an_edit_that_slips_in_and_puts_the_mtime_back_keeps_its_name(
    tmp_path: Path, store: EntityStore, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    """What is displaced is compared byte by byte to its end, not by its size and mtime alone."""
    path = note(tmp_path, "a", b"---\ntype: t\n---\n" + b"x" * 150_000)
    item, was = scanned(store)["a"], path.stat()
    calls: list[str] = []

    def slow(folder: int, one: str, other: str) -> None:
        if not calls:
            with path.open("r+b") as file:
                file.seek(at)
                file.write(b"EDIT")
            os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))
        calls.append(one)
        exchange(folder, one, other)

    monkeypatch.setattr(flagging, "exchange", slow)
    said = flag(store, item)
    assert (said.result, said.why) == ("skipped", CHANGED)
    assert path.read_bytes()[at : at + 4] == b"EDIT"
    assert names(tmp_path) == ["a.md"]


def test_a_writer_who_opened_it_in_the_last_moment_gets_it_back(
    tmp_path: Path, store: EntityStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is displaced while somebody has it open is put back, and what they write is in it."""
    path = note(tmp_path, "a", "text\n")
    item = scanned(store)["a"]
    writers: list[IO[str]] = []

    def slow(folder: int, one: str, other: str) -> None:
        if not writers:
            writers.append(path.open("a"))
        exchange(folder, one, other)

    monkeypatch.setattr(flagging, "exchange", slow)
    said = flag(store, item)
    assert (said.result, said.why) == ("skipped", "somebody has it open for writing")
    with writers[0]:
        writers[0].write("more\n")
    assert path.read_text() == "text\nmore\n"
    assert names(tmp_path) == ["a.md"]


def test_what_comes_while_an_edit_gets_its_name_back_is_not_lost(
    tmp_path: Path, store: EntityStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second edit, made to the text with the flag, is kept aside and named."""
    path = note(tmp_path, "a", "text\n")
    item = scanned(store)["a"]
    calls = []

    def slow(folder: int, one: str, other: str) -> None:
        calls.append(one)
        in_place(path)
        if len(calls) == 2:
            path.write_text("second edit\n")
        exchange(folder, one, other)

    monkeypatch.setattr(flagging, "exchange", slow)
    said = flag(store, item)
    assert said.result == "skipped"
    assert said.why == f"{CHANGED}, and what came after that is aside as {calls[0]}"
    assert path.read_text() == "TEXT\n"
    assert path.with_name(calls[0]).read_text() == "second edit\n"


def test_a_symlink_swapped_in_leads_nowhere(tmp_path: Path) -> None:
    """Neither a note nor its folder is followed to elsewhere."""
    precious = note(tmp_path / "elsewhere", "f/a", "text\n")
    root = tmp_path / "store"
    path, other = note(root, "f/a", "text\n"), note(root, "g/b", "text\n")
    store = entities_at(root)
    items = scanned(store)
    path.parent.rename(tmp_path / "moved")
    path.parent.symlink_to(precious.parent)
    other.unlink()
    other.symlink_to(precious)
    for action in ("flag", "delete"):
        outcomes = done(store, to(action, items["f/a"]), to(action, items["g/b"]))
        assert {said.result for said in outcomes.values()} == {"skipped"}
        assert {said.why for said in outcomes.values()} == {CHANGED}
    assert precious.read_text() == "text\n"


@pytest.mark.parametrize("instead", ["nothing", "folder", "pipe", "another file"])
def test_what_stands_there_instead_is_left_alone(
    tmp_path: Path, store: EntityStore, instead: str
) -> None:
    """A note that is gone, or is a folder, a pipe or another file by now, is skipped."""
    path = note(tmp_path, "a", "text\n")
    item, was = scanned(store)["a"], path.stat()
    path.unlink()
    match instead:
        case "folder":
            path.mkdir()
        case "pipe":
            os.mkfifo(path)
        case "another file":
            (tmp_path / "x").write_text("text\n")
            os.utime(tmp_path / "x", ns=(was.st_atime_ns, was.st_mtime_ns))
            (tmp_path / "x").rename(path)
    for action in ("flag", "delete"):
        said = done(store, to(action, item))["a"]
        why = "it is gone already" if instead == "nothing" else CHANGED
        assert (said.result, said.why) == ("skipped", why)


def test_one_failure_does_not_stop_the_others(tmp_path: Path, store: EntityStore) -> None:
    """A note that cannot be written to without damage is told, and the next is flagged."""
    before = note(tmp_path, "a", "---\ntype: t\nowner: x\nowner: y\n---\n").read_bytes()
    note(tmp_path, "b")
    items = scanned(store)
    outcomes = done(store, to("flag", items["a"]), to("flag", items["b"]))
    assert outcomes["a"].result == "failed"
    assert outcomes["a"].why == "a key stands twice in its frontmatter"
    assert outcomes["b"].result == "applied"
    assert (tmp_path / "entities/a.md").read_bytes() == before


@pytest.mark.parametrize("what", ["file", "folder"])
def test_what_is_read_only_is_not_got_round(what: str) -> None:
    """A note that is not to be written to, or whose folder is not, fails and is as it was."""
    with common_ground() as ground:
        path = note(ground, "f/a", "text\n")
        path.parent.chmod(0o777 if what == "file" else 0o555)
        path.chmod(0o444 if what == "file" else 0o666)

        def check() -> None:
            store = entities_at(ground)
            said = flag(store, scanned(store)["f/a"])
            assert (said.result, said.why) == ("failed", "Permission denied")
            assert path.read_text() == "text\n"
            assert os.listdir(path.parent) == ["a.md"]

        as_nobody(check)
        path.parent.chmod(0o777)


def test_an_owner_that_cannot_be_kept_keeps_the_flag_away() -> None:
    """A note of somebody else's is not made one's own."""
    if os.geteuid() != 0:
        pytest.skip("only root can make a file of somebody else's")
    with common_ground() as ground:
        path = note(ground, "f/a", "text\n")
        path.chmod(0o666)
        path.parent.chmod(0o777)

        def check() -> None:
            store = entities_at(ground)
            said = flag(store, scanned(store)["f/a"])
            assert said.result == "failed"
            assert "owner" in said.why
            assert os.listdir(path.parent) == ["a.md"]

        as_nobody(check)
        assert path.read_text() == "text\n"


def test_another_name_of_a_note_is_told(tmp_path: Path, store: EntityStore) -> None:
    """A hard link elsewhere keeps the text without the flag, and the result says so."""
    path = note(tmp_path, "a", "text\n")
    os.link(path, tmp_path / "backup")
    said = flag(store, scanned(store)["a"])
    assert said.result == "applied"
    assert said.why == "1 other name of the file still hold it unflagged"
    assert (tmp_path / "backup").read_text() == "text\n"


def test_a_file_system_that_cannot_exchange_is_told(
    tmp_path: Path, store: EntityStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without an exchange in one step nothing is flagged, and nothing is left lying about."""
    path = note(tmp_path, "a", "text\n")
    item = scanned(store)["a"]

    def unable(*_: object) -> None:
        raise OSError(errno.EINVAL, "this file system cannot exchange two files in one step")

    monkeypatch.setattr(flagging, "exchange", unable)
    said = flag(store, item)
    assert (said.result, said.why) == (
        "failed",
        "this file system cannot exchange two files in one step",
    )
    assert path.read_text() == "text\n"
    assert names(tmp_path) == ["a.md"]


def test_a_full_disk_leaves_the_note(
    tmp_path: Path, store: EntityStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A text that cannot be written whole never gets the note's name."""
    path = note(tmp_path, "a", "text\n")
    item = scanned(store)["a"]

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    said = flag(store, item)
    assert (said.result, said.why) == ("failed", "No space left on device")
    assert path.read_text() == "text\n"
    assert names(tmp_path) == ["a.md"]


def test_attributes_that_cannot_be_kept_keep_the_flag_away(
    tmp_path: Path, store: EntityStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the new file cannot be given what the old one has, the note is left as it was."""
    path = note(tmp_path, "a", "text\n")
    item = scanned(store)["a"]

    def refuse(*_: object) -> None:
        raise CannotReplace(path="a.md", attribute="user.mine", why="not supported")

    monkeypatch.setattr(flagging, "copy_attributes", refuse)
    assert flag(store, item).result == "failed"
    assert path.read_text() == "text\n"
    assert names(tmp_path) == ["a.md"]


# --- sessions -----------------------------------------------------------------------------


def test_the_flag_of_a_session_is_a_row_of_the_log(tmp_path: Path, store: EntityStore) -> None:
    """The session keeps its bytes and times; the log says who flagged it, and a scan reads it."""
    path = session(tmp_path, "s.json")
    before, status = path.read_bytes(), path.stat()
    (item,) = scanned(store).values()
    assert flag(store, item).result == "applied"
    assert (path.read_bytes(), path.stat()) == (before, status)
    (row,) = [json.loads(line) for line in (tmp_path / "audit.log").read_text().splitlines()]
    assert {key: row[key] for key in ("event", "action", "entity", "rule", "reason")} == {
        "event": "retention",
        "action": "flag",
        "entity": "trajectories/s.json",
        "rule": "stale",
        "reason": "age",
    }
    (again,) = scanned(store).values()
    assert again.flagged_by == "stale"
    assert repr(again.flagged_at).startswith("Known(")
    assert again.fingerprint == item.fingerprint


def test_a_store_without_a_log_keeps_the_flags_of_sessions_elsewhere(tmp_path: Path) -> None:
    """A sidecar in the state folder holds them; without one the flag fails and says why."""
    root, state = tmp_path / "store", tmp_path / "state"
    session(root, "s.json")
    store = entities_at(root, access_log=None, cache=str(state))
    (item,) = scanned(store).values()
    assert flag(store, item).result == "applied"
    assert next(iter(scanned(store).values())).flagged_by == "stale"
    assert sorted(os.listdir(root)) == ["trajectories"]
    said = flag(entities_at(root, access_log=None), item)
    assert said.result == "failed"
    assert "no folder of ours" in said.why


def test_a_session_that_was_deleted_leaves_no_flag(tmp_path: Path, store: EntityStore) -> None:
    """What comes later under its name has not had the time to be objected to."""
    session(tmp_path, "s.json")
    flag(store, next(iter(scanned(store).values())))
    done(store, to("delete", next(iter(scanned(store).values()))))
    session(tmp_path, "s.json")
    assert next(iter(scanned(store).values())).flagged_by is None


def test_a_session_that_grew_is_not_flagged(tmp_path: Path, store: EntityStore) -> None:
    """One that goes on is not what the plan saw."""
    path = session(tmp_path, "s.json")
    (item,) = scanned(store).values()
    path.write_text("more than there was\n")
    assert flag(store, item).why == CHANGED
    assert not (tmp_path / "audit.log").exists()


def test_a_log_that_is_a_symlink_is_not_written_through(tmp_path: Path) -> None:
    """What it leads to lies outside, so nothing is written there; what was done is told."""
    root = tmp_path / "store"
    note(root, "a")
    session(root, "s.json")
    (tmp_path / "precious").write_text("")
    (root / "audit.log").symlink_to(tmp_path / "precious")
    store = entities_at(root, record=True)
    items = scanned(store)
    outcomes = done(store, to("delete", items["a"]), to("flag", items["trajectories/s.json"]))
    assert outcomes["a"].result == "applied"
    assert "its log does not tell of it" in outcomes["a"].why
    assert outcomes["trajectories/s.json"].result == "failed"
    assert (tmp_path / "precious").read_text() == ""
