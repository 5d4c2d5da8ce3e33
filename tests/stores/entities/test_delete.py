"""A delete takes what the plan saw and nothing else; a kill leaves a store whole."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from keepfor.items import Action, Decision, Item, Outcome
from keepfor.policy.decide import decide
from keepfor.policy.rules import Policy, Rule
from keepfor.stores import flagging, removal
from keepfor.stores.entities import EntityStore, entities_at
from keepfor.stores.exchange import exchange
from tests import killing
from tests.entities import NOW, OLD, done, note, scanned, session, to
from tests.stores.nobody import as_nobody, common_ground

MOVED = "its folder was moved since the sweep began"
LINK = "---\ntype: guideline\ntrajectory: s.json\n---\n"


def files(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()
    }


def cascade(store: EntityStore) -> list[Decision]:
    """A session that goes, and the note that was made from it."""
    items = scanned(store)
    derived = {"reason": "cascade:s.json", "from": "trajectories/s.json"}
    return [
        to("delete", items["a"], **derived),
        to("delete", items["trajectories/s.json"]),
    ]


def test_what_the_plan_saw_goes_and_folders_stay(tmp_path: Path) -> None:
    """The file is gone, its neighbours and the emptied folder are there."""
    note(tmp_path, "f/a")
    note(tmp_path, "g/b")
    store = entities_at(tmp_path)
    assert done(store, to("delete", scanned(store)["f/a"]))["f/a"].result == "applied"
    assert list(scanned(store)) == ["g/b"]
    assert os.listdir(tmp_path / "entities/f") == []


def test_another_name_of_a_note_is_told(tmp_path: Path) -> None:
    """A hard link elsewhere still holds the content, and the result says so."""
    os.link(note(tmp_path, "a"), tmp_path / "backup")
    store = entities_at(tmp_path)
    said = done(store, to("delete", scanned(store)["a"]))["a"]
    assert said.result == "applied"
    assert said.why == "1 other name of the file still hold its content"


def test_a_session_goes_before_what_was_made_from_it(tmp_path: Path) -> None:
    """Both go, and were there a kill between them, the note would stay."""
    session(tmp_path, "s.json")
    note(tmp_path, "a", LINK)
    store = entities_at(tmp_path)
    outcomes = list(store.apply(cascade(store)))
    assert [said.id for said in outcomes] == ["trajectories/s.json", "a"]
    assert {said.result for said in outcomes} == {"applied"}
    assert files(tmp_path) == {}


def test_what_a_session_takes_along_follows_it_at_once(tmp_path: Path) -> None:
    """So a kill leaves little behind of which no session is left to take it along."""
    items = []
    for name in "st":
        session(tmp_path, f"{name}.json")
        for id_ in (f"a-{name}", f"b-{name}"):
            note(tmp_path, id_, f"---\ntrajectory: {name}.json\n---\n")
    for item in scanned(tmp_path).values():
        cause = item.derived_from
        of = {"reason": f"cascade:{item.id[-1]}.json", "from": cause} if cause else {}
        items.append(to("delete", item, **of))
    outcomes = list(entities_at(tmp_path).apply(items))
    assert [said.id for said in outcomes] == [
        "trajectories/s.json",
        "a-s",
        "b-s",
        "trajectories/t.json",
        "a-t",
        "b-t",
    ]
    assert {said.result for said in outcomes} == {"applied"}


@pytest.mark.parametrize("drift", [True, False])
def test_a_note_stays_where_its_session_stays(tmp_path: Path, drift: bool) -> None:
    """A session that goes on, or is not to be deleted after all, takes nothing along."""
    path = session(tmp_path, "s.json")
    note(tmp_path, "a", LINK)
    store = entities_at(tmp_path)
    decisions = cascade(store)
    if drift:
        path.write_text("it goes on\n")
    outcomes = done(store, *decisions[: 2 if drift else 1])
    assert outcomes["a"].result == "skipped"
    assert outcomes["a"].why == "the session that it was made from was not deleted"
    assert (tmp_path / "entities/a.md").exists()


def citing(root: Path, **cites: str) -> list[Decision]:
    """Notes that all go, each with what it names; none may go where what names it stays."""
    for id_, names in cites.items():
        links = ", ".join(names)
        note(root, id_, f"---\ntype: guideline\nlinks: [{links}]\n---\n")
    policy = Policy(
        rules=(Rule(name="old", max_age=timedelta(days=90), action="delete", keep_if_cited=True),),
        breaker=None,
    )
    decisions = decide(policy, list(scanned(root).values()), NOW)
    assert {said.action for said in decisions} == {"delete"}
    return decisions


def test_what_names_a_note_goes_before_it(tmp_path: Path) -> None:
    """In a circle one has to be the first; the rest goes after what names it."""
    decisions = citing(tmp_path, a="b", b="c", c="", d="ac", e="f", f="e")
    outcomes = list(entities_at(tmp_path).apply(decisions))
    assert [said.id for said in outcomes] == ["d", "a", "b", "c", "f", "e"]
    assert {said.result for said in outcomes} == {"applied"}


def test_a_note_stays_where_what_names_it_stays(tmp_path: Path) -> None:
    """One that was edited in the meantime still names what it names, and so on along the chain."""
    decisions = citing(tmp_path, a="", b="a", c="b", d="")
    note(tmp_path, "c", "---\nlinks: [b]\n---\nedited\n")
    outcomes = {said.id: said for said in entities_at(tmp_path).apply(decisions)}
    assert {id_: said.result for id_, said in outcomes.items()} == {
        "a": "skipped",
        "b": "skipped",
        "c": "skipped",
        "d": "applied",
    }
    assert outcomes["a"].why == "b names it, and was not deleted"
    assert outcomes["b"].why == "c names it, and was not deleted"


def test_a_session_goes_before_a_note_of_its_own_that_names_it(tmp_path: Path) -> None:
    """A note that a session takes along never goes first, whatever it names."""
    session(tmp_path, "s.json")
    note(tmp_path, "a", LINK)
    derived, taken = cascade(entities_at(tmp_path))
    circle = [
        replace(derived, cited_by=("trajectories/s.json",)),
        replace(taken, cited_by=("a",)),
    ]
    outcomes = list(entities_at(tmp_path).apply(circle))
    assert [(said.id, said.result) for said in outcomes] == [
        ("trajectories/s.json", "applied"),
        ("a", "applied"),
    ]


def test_a_store_that_is_gone_skips_everything(tmp_path: Path) -> None:
    """A root that somebody removed is no failure."""
    note(tmp_path / "store", "a")
    store = entities_at(tmp_path / "store")
    item = scanned(store)["a"]
    (tmp_path / "store").rename(tmp_path / "moved")
    said = done(store, to("delete", item))["a"]
    assert (said.result, said.why) == ("skipped", "it is gone already")


@pytest.mark.parametrize("id_", ["../precious", "f/../../precious", "/etc/x", "f//a", "."])
def test_an_id_leads_nowhere_else(tmp_path: Path, id_: str) -> None:
    """No id reaches anything outside the notes, whatever a plan may say."""
    precious = tmp_path / "store/precious.md"
    note(tmp_path / "store", "f/a")
    precious.write_text("text\n")
    store = entities_at(tmp_path / "store")
    (item,) = scanned(store).values()
    status = precious.stat()
    seen = f"{status.st_ino}:{status.st_size}:{status.st_mtime_ns}:{status.st_ctime_ns}@"
    for action in ("delete", "flag"):
        said = Decision(id=id_, action=action, rule="r", reason="age", fingerprint=seen)
        (outcome,) = store.apply([said])
        assert outcome.result == "skipped"
    assert precious.read_text() == "text\n"
    assert list(scanned(store)) == [item.id]


def test_a_folder_that_may_not_be_written_to_fails() -> None:
    """The system's reason is told, and the file is there."""
    with common_ground() as ground:
        path = note(ground, "f/a")
        path.parent.chmod(0o555)

        def check() -> None:
            store = entities_at(ground)
            said = done(store, to("delete", scanned(store)["f/a"]))["f/a"]
            assert (said.result, said.why) == ("failed", "Permission denied")

        as_nobody(check)
        assert path.exists()
        path.parent.chmod(0o777)


def in_one_sweep(
    store: EntityStore, action: Action, between: Callable[[], object]
) -> Iterator[Outcome]:
    """Acts on every item, with something done after the first one; tells the other outcomes."""
    outcomes = store.apply([to(action, item) for item in scanned(store).values()])
    assert next(outcomes).result == "applied"
    between()
    return outcomes


@pytest.mark.parametrize("action", ["delete", "flag"])
@pytest.mark.parametrize("what", ["store/entities/f", "store/entities", "store"])
@pytest.mark.parametrize("instead", [True, False])
def test_what_was_moved_away_during_the_sweep_is_left_alone(
    tmp_path: Path, action: Action, what: str, instead: bool
) -> None:
    """A folder, or the store itself, that is a backup by now keeps every note as it is."""
    if what == "store" and not os.path.exists("/proc/self/fd"):
        pytest.skip("this system does not tell where an open folder stands")
    for name in "abc":
        note(tmp_path / "store", f"f/{name}", "text\n")
    backup = tmp_path / "backup"

    def between() -> None:
        (tmp_path / what).rename(backup)
        if instead:
            note(tmp_path / "store", "f/b", "another\n")

    said = list(in_one_sweep(entities_at(tmp_path / "store"), action, between))
    assert {(one.result, one.why) for one in said} == {("skipped", MOVED)}
    assert len(said) == 2
    texts = {path.name: path.read_text() for path in backup.rglob("*.md")}
    assert (texts["b.md"], texts["c.md"]) == ("text\n", "text\n")


@pytest.mark.parametrize("action", ["delete", "flag"])
def test_what_is_moved_away_at_the_last_moment_is_put_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, action: Action
) -> None:
    """A folder that leaves the store while a note of it is aside has the note again."""
    path = note(tmp_path / "store", "f/a", "text\n")
    store = entities_at(tmp_path / "store")
    item = scanned(store)["f/a"]
    rename, backup = os.rename, tmp_path / "backup"

    def moving(act: Callable[..., None], *args: Any, **where: Any) -> None:
        if not backup.exists():
            rename(path.parent, backup)
        act(*args, **where)

    if action == "delete":
        monkeypatch.setattr(os, "rename", partial(moving, rename))
    else:
        monkeypatch.setattr(flagging, "exchange", partial(moving, exchange))
    said = done(store, to(action, item))["f/a"]
    assert (said.result, said.why) == ("skipped", MOVED)
    assert files(tmp_path) == {"backup/a.md": b"text\n"}


# --- killed -------------------------------------------------------------------------------


def deletes(store: EntityStore) -> None:
    with store.locked():
        done(store, to("delete", scanned(store)["f/a"]))


def flags(store: EntityStore) -> None:
    with store.locked():
        done(store, to("flag", scanned(store)["f/a"]))


@pytest.fixture
def every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets a kill come after an exchange, a write or a sync as well."""

    def late(*names: Any) -> None:
        # Looked up anew each time, so that what counts the steps is found.
        vars(os)["exchange"](*names)

    monkeypatch.setattr(os, "exchange", exchange, raising=False)
    monkeypatch.setattr(flagging, "exchange", late)
    more = ("exchange", "write", "fsync", "utime", "fchmod", "pread")
    monkeypatch.setattr(killing, "STEPS", (*killing.STEPS, *more))


@pytest.mark.usefixtures("every_step")
@pytest.mark.parametrize("act", [deletes, flags])
@pytest.mark.parametrize("name", ["f/a", "f/" + "a" * 252])
def test_killed_at_any_step_a_store_is_as_before_or_as_after(
    tmp_path: Path, act: Callable[[EntityStore], None], name: str
) -> None:
    """The next sweep clears away what was left; the note is there with or without its flag."""
    before = b"---\ntype: guideline\n---\n\nbody\n"

    def work(store: EntityStore) -> None:
        with store.locked():
            action = "delete" if act is deletes else "flag"
            done(store, to(action, scanned(store)[name]))

    ends = set()
    for steps in range(1, 200):
        root = tmp_path / str(steps)
        path = note(root, name, before, OLD)
        note(root, "f/z", "another\n")
        store = entities_at(root)
        if not killing.killed_after(steps, partial(work, store)):
            break
        left = store.leftovers()
        with store.locked():
            pass
        assert store.leftovers() == []
        assert sorted(os.listdir(root)) == ["entities"]
        found = files(root)
        assert found.pop("entities/f/z.md") == b"another\n"
        if act is deletes:
            assert found in ({}, {f"entities/{name}.md": before})
        else:
            lines = path.read_bytes().splitlines(keepends=True)
            assert b"".join(line for line in lines if b"retention_" not in line) == before
            assert len(lines) in (5, 8)
            assert list(found) == [f"entities/{name}.md"]
            assert path.stat().st_mtime == OLD.timestamp()
        ends.add((bool(left), path.exists() and b"retention_" in path.read_bytes()))
    else:
        pytest.fail("it never came to an end")
    assert {left for left, _ in ends} == {True, False}
    assert {flagged for _, flagged in ends} == ({True, False} if act is flags else {False})


@pytest.mark.usefixtures("every_step")
def test_killed_over_an_edit_that_slipped_in_the_edit_is_found_again(tmp_path: Path) -> None:
    """What an editor saved right before the exchange has the note's name after the next sweep."""
    for steps in range(1, 200):
        root = tmp_path / str(steps)
        path = note(root, "f/a", "text\n")
        store = entities_at(root)
        item = scanned(store)["f/a"]

        def work(store: EntityStore = store, path: Path = path, item: Item = item) -> None:
            def late(*names: Any) -> None:
                if path.read_text() == "text\n":
                    path.write_text("edited\n")
                vars(os)["exchange"](*names)

            vars(flagging)["exchange"] = late
            done(store, to("flag", item))

        killed = killing.killed_after(steps, work)
        with store.locked():
            pass
        assert store.leftovers() == []
        assert path.read_text() in (("text\n", "edited\n") if killed else ("edited\n",))
        assert os.listdir(path.parent) == ["a.md"]
        if not killed:
            return
    pytest.fail("it never came to an end")


def test_leftovers_are_told_and_readers_leave_them(tmp_path: Path) -> None:
    """What a killed sweep left is named by its path, is no item, and is not touched by a look."""
    note(tmp_path, "f/a")
    left = [
        *("entities/.keepfor-draft.0123456789ab", "entities/f/.b.md.keepfor-aside.0123456789ab"),
        "entities/f/.keepfor-flag.0123456789ab.0123456789ab.0123456789ab",
        "trajectories/.c.keepfor-aside.0123456789ab",
    ]
    (tmp_path / "trajectories").mkdir()
    for path in left:
        (tmp_path / path).write_text("x")
    store = entities_at(tmp_path)
    assert list(scanned(store)) == ["f/a"]
    assert store.leftovers() == [str(tmp_path / path) for path in left]


def exchanged(path: Path) -> Path:
    """Leaves a note as a sweep does that is killed right after the exchange; tells the mark."""
    token = removal.token_of(path.stat())
    new = path.with_name("new")
    new.write_text("flagged text\n")
    whose = hashlib.sha256(path.name.encode()).hexdigest()[:12]
    mark = path.with_name(f".keepfor-flag.{token}.{removal.token_of(new.stat())}.{whose}")
    path.rename(mark)
    new.rename(path)
    return mark


@pytest.mark.parametrize("since", ["nothing", "an edit slipped in", "the note was deleted"])
def test_a_flag_killed_after_the_exchange_is_ended(tmp_path: Path, since: str) -> None:
    """The flag stands and the old text goes; an edit gets its name back, or stays and is told."""
    path = note(tmp_path, "f/a", "text\n")
    mark = exchanged(path)
    if since != "nothing":
        mark.write_text("edited\n")
    if since == "the note was deleted":
        path.unlink()
    store = entities_at(tmp_path)
    assert store.leftovers() == [str(mark)]
    with store.locked():
        pass
    if since == "the note was deleted":
        assert store.leftovers() == [str(mark)]
        assert mark.read_text() == "edited\n"
    else:
        assert path.read_text() == ("flagged text\n" if since == "nothing" else "edited\n")
        assert os.listdir(path.parent) == ["a.md"]


@pytest.mark.parametrize("later", ["in place", "by rename", "another note has the inode"])
def test_a_later_edit_of_a_flagged_note_is_not_undone(tmp_path: Path, later: str) -> None:
    """After a killed flag, what came later keeps its name, and the edit that slipped in is told."""
    path = note(tmp_path, "f/a", "text\n")
    mark = exchanged(path)
    mark.write_text("edited\n")
    kept = path
    match later:
        case "in place":
            path.write_text("edited again\n")
        case "by rename":
            note(tmp_path, "f/new", "edited again\n").rename(path)
        case "another note has the inode":
            kept = path.with_name("b.md")
            path.rename(kept)
            kept.write_text("edited again\n")
            path.write_text("another\n")
    store = entities_at(tmp_path)
    for _ in range(2):
        with store.locked():
            pass
    assert kept.read_text() == "edited again\n"
    assert mark.read_text() == "edited\n"
    assert store.leftovers() == [str(mark)]


def test_an_edit_during_the_recovery_keeps_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is saved right before the edit gets its name back is not unlinked for the old flag."""
    path = note(tmp_path, "f/a", "text\n")
    mark = exchanged(path)
    mark.write_text("edited\n")
    calls: list[str] = []

    def slow(folder: int, one: str, other: str) -> None:
        if not calls:
            path.write_text("edited again\n")
        calls.append(one)
        exchange(folder, one, other)

    monkeypatch.setattr(flagging, "exchange", slow)
    with entities_at(tmp_path).locked():
        pass
    assert (path.read_text(), mark.read_text()) == ("edited again\n", "edited\n")


def test_what_somebody_writes_to_is_not_cleared_away(tmp_path: Path) -> None:
    """A displaced text that is open for writing stays aside until its writer is done."""
    path = note(tmp_path, "f/a", "text\n")
    with path.open("a") as writer:
        mark = exchanged(path)
        with entities_at(tmp_path).locked():
            pass
        writer.write("more\n")
    with entities_at(tmp_path).locked():
        pass
    assert path.read_text() == "text\nmore\n"
    assert not mark.exists()


@pytest.mark.parametrize(
    "name",
    [
        ".keepfor-draft.0123456789ab",
        ".keepfor-flag.0123456789ab.0123456789ab.0123456789ab",
    ],
)
def test_a_folder_that_is_called_like_ours_is_in_nobodys_way(tmp_path: Path, name: str) -> None:
    """What only looks like something of a killed sweep stays, and the store is swept on."""
    note(tmp_path, "a")
    stray = tmp_path / "entities" / name / "precious"
    stray.parent.mkdir()
    stray.write_text("text")
    store = entities_at(tmp_path)
    with store.locked():
        assert done(store, to("delete", scanned(store)["a"]))["a"].result == "applied"
    with store.locked():
        pass
    assert stray.read_text() == "text"
