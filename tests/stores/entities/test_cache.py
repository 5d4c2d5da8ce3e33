"""A cache of what was found costs no promise: it is believed only where nothing has changed."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from keepfor.stores import headcache, looking, notes
from keepfor.stores.entities import EntityStore, entities_at
from keepfor.times import Known
from tests.entities import NOW, YOUNG, note, recall, scanned, session

LINKED = "---\ntype: fact\ntrajectory: s.json\nlinks: [a]\nowner: me\n---\n"


@pytest.fixture(autouse=True)
def _settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was made a moment ago counts as settled, so that no test has to wait."""
    monkeypatch.setattr(looking, "RACY", -(10**12))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    path = tmp_path / "store"
    note(path, "guideline/a")
    note(path, "b", LINKED)
    note(path, "guideline/deep/c", "no frontmatter\n")
    note(path, "broken", "---\ntype: [a]\n---\n")
    session(path, "s.json")
    recall(path, "b")
    return path


def cached(root: Path, **settings: Any) -> EntityStore:
    return entities_at(root, cache=str(root.parent / "state"), fields=("owner",), **settings)


def plain(root: Path, **settings: Any) -> EntityStore:
    return entities_at(root, fields=("owner",), **settings)


def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the notes that are read from here on."""
    seen: list[str] = []
    read = notes.Reader.read

    def told(self: notes.Reader, name: str, folder: int) -> notes.Head:
        seen.append(name)
        return read(self, name, folder)

    monkeypatch.setattr(notes.Reader, "read", told)
    return seen


def test_an_unchanged_tree_is_not_read_again(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second look opens no note, and finds the very same."""
    first = scanned(cached(root))
    assert first == scanned(plain(root))
    seen = reads(monkeypatch)
    assert scanned(cached(root)) == first
    assert seen == []


def grow(root: Path) -> None:
    (root / "entities/guideline/a.md").write_text("---\ntype: other\n---\n")


def edit_with_mtime_put_back(root: Path) -> None:
    path = root / "entities/guideline/a.md"
    was = path.stat()
    path.write_text(path.read_text().replace("guideline", "preferred"))
    os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))


def replace(root: Path) -> None:
    path = root / "entities/guideline/a.md"
    was = path.stat()
    note(root, "new", path.read_text().replace("guideline", "preferred"))
    os.utime(root / "entities/new.md", ns=(was.st_atime_ns, was.st_mtime_ns))
    (root / "entities/new.md").rename(path)


def move(root: Path) -> None:
    (root / "entities/guideline/deep/c.md").rename(root / "entities/c.md")


def swap(root: Path) -> None:
    one, other, aside = (root / f"entities/guideline/{name}" for name in ("a.md", "x.md", "t"))
    note(root, "guideline/x", "---\ntype: x\n---\n")
    one.rename(aside)
    other.rename(one)
    aside.rename(other)


def remove(root: Path) -> None:
    shutil.rmtree(root / "entities/guideline/deep")


def recalled(root: Path) -> None:
    recall(root, "guideline/a", NOW)
    recall(root, "b", NOW)


def log_lost(root: Path) -> None:
    (root / "audit.log").unlink()


def log_rewritten(root: Path) -> None:
    path = root / "audit.log"
    was = path.stat()
    path.write_text(path.read_text().replace('"b"', '"x"'))
    os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))


@pytest.mark.parametrize(
    "change",
    [
        *(grow, edit_with_mtime_put_back, replace, move, swap, remove),
        *(recalled, log_lost, log_rewritten),
    ],
)
def test_what_changed_is_found(root: Path, change: Callable[[Path], None]) -> None:
    """Whatever happens to a note or to the log, a look with a cache finds what one without does."""
    before = scanned(cached(root))
    change(root)
    after = scanned(plain(root))
    assert after != before
    for _ in range(2):
        assert scanned(cached(root)) == after


def test_what_has_just_changed_is_not_believed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A note whose times are of this moment may change once more within the same tick."""
    monkeypatch.setattr(looking, "RACY", headcache.RACY)
    scanned(cached(root))
    seen = reads(monkeypatch)
    scanned(cached(root))
    assert sorted(seen) == ["a.md", "b.md", "broken.md", "c.md"]
    assert time.time_ns() - (root / "entities/b.md").stat().st_ctime_ns < headcache.RACY


@pytest.mark.parametrize(
    "settings",
    [
        {"default_type": "memo"},
        {"clock": "created_at"},
        {"pattern": "*.m*"},
        {"ignore": ("guideline",)},
        {"access_log": None},
        {"sessions": None},
    ],
)
def test_another_way_of_reading_starts_anew(root: Path, settings: dict[str, Any]) -> None:
    """What was found under other settings is not believed under these, and the other way round."""
    before = scanned(cached(root))
    assert scanned(cached(root, **settings)) == scanned(plain(root, **settings))
    assert scanned(cached(root)) == before


def test_keys_that_were_not_asked_for_are_read(root: Path) -> None:
    """A rule that begins to match on a key gets its values at once."""
    scanned(entities_at(root, cache=str(root.parent / "state")))
    assert scanned(cached(root))["b"].fields == {"owner": "me"}


def test_a_corrupt_cache_is_not_believed(root: Path) -> None:
    """Torn, empty, or with any byte of it changed, it costs time and nothing else."""
    whole = scanned(cached(root))
    (path,) = (root.parent / "state").iterdir()
    data = path.read_bytes()
    spoiled = [b"", data[:5], data[:-1], data + b"x", b"x" * len(data)]
    spoiled += [
        data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :] for at in range(0, len(data), 7)
    ]
    for one in spoiled:
        path.write_bytes(one)
        assert scanned(cached(root)) == whole


def test_odd_names_are_no_trouble_to_the_cache(root: Path) -> None:
    """Files, folders and rows of the log whose names are not UTF-8 are found each time."""
    note(root, os.fsdecode(b"caf\xe9/n\xff"))
    note(root, os.fsdecode(b"caf\xe9/plain"))
    with (root / "audit.log").open("a") as log:
        log.write('{"event": "recall", "entities": ["\\ud800", "b"], "ts": "2026-07-02"}\n')
        log.write('{"event": "retention", "action": "flag", "entity": "\\ud800", "rule": "r"}\n')
    whole = scanned(plain(root))
    assert r"caf\xe9/n\xff" in whole
    for _ in range(2):
        assert scanned(cached(root)) == whole


def test_a_cache_of_another_format_is_not_believed(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What another version of keepfor read, which may have read it otherwise, is read again."""
    scanned(cached(root))
    monkeypatch.setattr(headcache, "FORMAT", headcache.FORMAT + 1)
    seen = reads(monkeypatch)
    assert scanned(cached(root)) == scanned(plain(root))
    assert len(seen) == 2 * 4


def test_a_cache_that_was_deleted_is_made_again(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Deleting it costs only time."""
    whole = scanned(cached(root))
    shutil.rmtree(root.parent / "state")
    assert scanned(cached(root)) == whole
    seen = reads(monkeypatch)
    assert scanned(cached(root)) == whole
    assert seen == []


def test_a_state_folder_that_cannot_be_written_to_hurts_nobody(root: Path) -> None:
    """A look without a cache is as good, only slower."""
    (root.parent / "state").write_text("a file\n")
    assert scanned(cached(root)) == scanned(plain(root))


def test_a_look_writes_nothing_in_the_store(root: Path) -> None:
    """The cache lies in the state folder; bytes, names and times of the store stay as they were."""

    def snapshot() -> list[tuple[str, int, int]]:
        return [
            (str(path), path.lstat().st_mtime_ns, path.lstat().st_ctime_ns)
            for path in [root, *sorted(root.rglob("*"))]
        ]

    before = snapshot()
    for _ in range(2):
        scanned(cached(root))
    assert snapshot() == before
    assert len(os.listdir(root.parent / "state")) == 1


def test_a_note_that_could_not_be_read_is_tried_again(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That somebody was not allowed to read it, or a disk failed, is not remembered."""
    read = notes.Reader.read

    def failing(self: notes.Reader, name: str, folder: int) -> notes.Head:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(notes.Reader, "read", failing)
    held = scanned(cached(root))["b"].held
    assert held == "it cannot be read (Input/output error)"
    monkeypatch.setattr(notes.Reader, "read", read)
    assert scanned(cached(root)) == scanned(plain(root))


def test_a_few_changes_do_not_cost_a_new_cache(tmp_path: Path) -> None:
    """Where fewer than one in a hundred changed, they are read each time, and found each time."""
    root = tmp_path / "store"
    for number in range(300):
        note(root, f"guideline/n{number}")
    scanned(cached(root))
    (path,) = (tmp_path / "state").iterdir()
    before = path.stat().st_mtime_ns
    note(root, "guideline/n7", LINKED)
    recall(root, "guideline/n8", YOUNG)
    shutil.copy(path, tmp_path / "copy")
    recorded = scanned(cached(root))
    assert recorded == scanned(plain(root)) == scanned(cached(root))
    for number in range(50):
        note(root, f"guideline/n{number}", LINKED)
    scanned(cached(root))
    assert path.stat().st_mtime_ns > before


@pytest.mark.parametrize("first", [True, False], ids=["all of the log", "the end of the log"])
@pytest.mark.parametrize("then", ["cut", "rotated", "ended"])
def test_a_recall_in_an_unfinished_line_is_not_kept(root: Path, first: bool, then: str) -> None:
    """It counts while it is there; its writer may end it, or it may be gone the next time."""
    log, store = root / "audit.log", cached(root)
    if first:
        log.write_bytes(b"")
    whole = log.read_bytes()
    scanned(store)
    recall(root, "guideline/a", NOW)
    log.write_bytes(log.read_bytes().removesuffix(b"\n"))
    assert scanned(store)["guideline/a"].accessed == Known(NOW, "audit.log")
    match then:
        case "cut":
            log.write_bytes(whole)
        case "rotated":
            log.unlink()
        case "ended":
            recall(root, "guideline/a", NOW)
    assert scanned(store) == scanned(plain(root))
    assert scanned(store) == scanned(plain(root))
