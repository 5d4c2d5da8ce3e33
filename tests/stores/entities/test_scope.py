"""What is an item and what is not: ids, types, folders, names of every kind, and no symlink."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from keepfor.errors import StoreError
from keepfor.plan import build
from keepfor.stores import looking
from keepfor.stores.entities import entities_at
from keepfor.times import Known
from tests.entities import NOW, OLD, POLICY, YOUNG, note, recall, scanned, session, to
from tests.stores.nobody import as_nobody, common_ground


def test_an_id_is_the_path_and_a_type_what_the_note_says(tmp_path: Path) -> None:
    """`type` counts, else the first folder, else guideline; sessions are of a type of their own."""
    note(tmp_path, "guideline/a", "---\ntype: preference\n---\n")
    note(tmp_path, "fact/deep/b", "no frontmatter\n")
    note(tmp_path, "c", "---\ntype:\n---\n")
    note(tmp_path, "guideline/empty", "")
    session(tmp_path, "s.json")
    assert {id_: item.type for id_, item in scanned(tmp_path).items()} == {
        "guideline/a": "preference",
        "fact/deep/b": "fact",
        "c": "guideline",
        "guideline/empty": "guideline",
        "trajectories/s.json": "trajectory",
    }


def test_what_is_out_of_scope_is_no_item(tmp_path: Path) -> None:
    """Clones, copies, other files, hidden things and what only looks like a note stay out."""
    note(tmp_path, "guideline/a")
    for path in (
        *("public/guideline/p.md", "entities/subscribed/team/guideline/s.md", "README.md"),
        *("entities/.git/x.md", "entities/guideline/.git/x.md", "entities/.hidden.md"),
        *("entities/guideline/a.txt", "entities/guideline/.md", "entities/guideline/A.MD"),
        *("trajectories/deep/x.json", "trajectories/.keep", "entities/trajectories/t.md"),
    ):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("---\ntype: guideline\n---\n")
    (tmp_path / "entities/guideline/folder.md").mkdir()
    os.mkfifo(tmp_path / "entities/guideline/pipe.md")
    assert list(scanned(tmp_path)) == ["guideline/a"]


@pytest.mark.parametrize("log", ["audit.log", "logs/audit.log"])
def test_the_log_of_a_store_is_no_item(tmp_path: Path, log: str) -> None:
    """Wherever it lies and whatever the patterns, what tells of recalls is never held to a rule."""
    (tmp_path / "x.md").write_text("x")
    how = {"notes": ".", "pattern": "*", "sessions": "logs", "access_log": log}
    store = entities_at(tmp_path, cache=str(tmp_path.parent / "state"), **how)
    store.record_access(["x.md"], NOW)
    for _ in range(2):
        assert list(scanned(store)) == ["x.md"]


def test_symlinks_lead_nowhere(tmp_path: Path) -> None:
    """Neither a note, a session, a folder nor one of the roots is looked for behind a symlink."""
    outside, root = tmp_path / "outside", tmp_path / "store"
    note(outside, "guideline/precious")
    session(outside, "s.json")
    note(root, "guideline/a")
    (root / "entities/linked").symlink_to(outside / "entities")
    (root / "entities/guideline/b.md").symlink_to(outside / "entities/guideline/precious.md")
    (root / "trajectories").symlink_to(outside / "trajectories")
    store = entities_at(root)
    assert list(scanned(store)) == ["guideline/a"]
    assert store.remarks() == ["trajectories: the folder cannot be read (Not a directory)"]


def test_a_store_given_as_a_symlink_is_the_one_it_leads_to(tmp_path: Path) -> None:
    """The root is resolved once, so that it is the same store by whatever name."""
    note(tmp_path / "store", "a")
    (tmp_path / "link").symlink_to(tmp_path / "store")
    assert entities_at(tmp_path / "link").target == str(tmp_path / "store")
    assert list(scanned(tmp_path / "link")) == ["a"]


def test_roots_and_patterns_are_as_they_are_set(tmp_path: Path) -> None:
    """Notes may lie in the root itself, end otherwise, and there may be no sessions."""
    for path in ("a.note.txt", "b.txt", "trash/c.note.txt", "logs/d.jsonl", "logs/e.txt"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text("text\n")
    how = {"notes": ".", "pattern": "*.note.txt", "ignore": ("tr*",)}
    assert list(scanned(tmp_path, sessions=None, **how)) == ["a"]
    how |= {"sessions": "logs", "session_pattern": "*.jsonl", "default_type": "memo"}
    items = scanned(tmp_path, session_type="chat", **how)
    assert {id_: item.type for id_, item in items.items()} == {"a": "memo", "logs/d.jsonl": "chat"}


@pytest.mark.parametrize(
    ("name", "id_"),
    [
        (b"two words", "two words"),
        (b"'quoted\"", "'quoted\""),
        (b"line\nbreak", r"line\x0abreak"),
        (b"back\\slash", r"back\x5cslash"),
        (b"caf\xe9", r"caf\xe9"),
        ("café".encode(), "café"),
        (b"x" * 252, "x" * 252),
    ],
)
def test_any_name_is_scanned_flagged_and_deleted(tmp_path: Path, name: bytes, id_: str) -> None:
    """A file of an odd name is an item like any other, under an id that can be told and read."""
    folder = os.fsencode(tmp_path) + b"/entities/" + name[:200]
    os.makedirs(folder)
    path = folder + b"/" + name + b".md"
    Path(os.fsdecode(path)).write_text("body\n")
    store = entities_at(tmp_path, cache=str(tmp_path / "state"))
    (item,) = scanned(store).values()
    prefix = id_ if len(name) < 200 else "x" * 200
    assert (item.id, item.type) == (f"{prefix}/{id_}", prefix)
    (flagged,) = store.apply([to("flag", item)])
    assert flagged.result == "applied"
    recall(tmp_path, os.fsdecode(name[:200] + b"/" + name))
    for _ in range(2):
        (again,) = scanned(store).values()
    assert (again.id, again.flagged_by) == (item.id, "stale")
    assert isinstance(again.accessed, Known)
    (gone,) = store.apply([to("delete", again)])
    assert gone.result == "applied"
    assert os.listdir(folder) == []
    build(store, POLICY, NOW, name="a plan can hold such ids")


def test_a_folder_that_nobody_may_read_is_told_by_name(tmp_path: Path) -> None:
    """What lies in it stays, the rest is scanned, and what it might cite is not known."""
    with common_ground() as ground:
        note(ground, "guideline/a")
        note(ground, "secret/b")
        (ground / "entities/secret").chmod(0)

        def check() -> None:
            store = entities_at(ground)
            items = scanned(store)
            assert list(items) == ["guideline/a"]
            assert items["guideline/a"].cites is None
            told = ["entities/secret: the folder cannot be read (Permission denied)"]
            assert store.remarks() == told

        as_nobody(check)


def test_a_note_that_nobody_may_read_is_held(tmp_path: Path) -> None:
    """It is an item with the reason why it stays, and its neighbours are none the worse."""
    with common_ground() as ground:
        note(ground, "guideline/a").chmod(0)
        note(ground, "guideline/b")

        def check() -> None:
            items = scanned(ground)
            assert items["guideline/a"].held == "it cannot be read (Permission denied)"
            assert items["guideline/b"].held is None

        as_nobody(check)


def test_folders_without_end_are_not_followed(tmp_path: Path) -> None:
    """Deeper than a hundred folders nothing is looked for, and where that is is told."""
    here = tmp_path / "entities"
    for _ in range(101):
        here /= "d"
    here.mkdir(parents=True)
    (here / "a.md").write_text("")
    store = entities_at(tmp_path)
    assert scanned(store) == {}
    (told,) = store.remarks()
    assert told.startswith(f"entities/{'/'.join('d' * 100)}: the folder cannot be read")
    assert told.endswith("(it lies more than 100 folders deep)")


def test_something_else_in_the_place_of_the_store_is_refused(tmp_path: Path) -> None:
    """A file is no store; the error says what to do."""
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="not a folder"):
        scanned(tmp_path / "file")


def test_what_tells_the_age(tmp_path: Path) -> None:
    """The mtime counts to the microsecond, and the evidence names it."""
    path = note(tmp_path, "a")
    os.utime(path, ns=(0, 1_767_225_600_123_456_789))
    (item,) = scanned(tmp_path).values()
    assert repr(item.instant) == "Known(2026-01-01T00:00:00.123456+00:00, 'mtime')"


@pytest.mark.parametrize("seconds", [10**12, -(10**12)])
def test_a_time_that_no_calendar_holds_is_never_old(seconds: int) -> None:
    """Some file systems keep times of any year; a file of such a time stays."""
    assert looking.modified(seconds * 10**9).year == 9999
    assert looking.modified(1_767_225_600 * 10**9) == OLD


@pytest.mark.parametrize(
    ("head", "alone", "with_fallback"),
    [
        ("created_at: 2025-01-01T00:00:00Z\n", "Known(2025-01-01T00:00:00+00:00, 'created_at')", 0),
        ("", "Unknown('created_at is missing')", "mtime"),
        ("created_at: soon\n", "Unknown(\"created_at is 'soon', not a timestamp\")", "mtime"),
        ("created_at: [a]\n", "Unknown('its created_at is a list and not text')", "mtime"),
        ("created_at: a: b\n", None, "held"),
    ],
)
def test_a_date_tells_the_age_where_one_is_asked_for(
    tmp_path: Path, head: str, alone: str | None, with_fallback: object
) -> None:
    """What cannot be read is unknown, unless the mtime is to stand in; then it is named."""
    note(tmp_path, "a", f"---\ntype: guideline\n{head}---\n", OLD)
    session(tmp_path, "s.json", YOUNG)
    for _ in range(2):
        items = scanned(tmp_path, clock="created_at", cache=str(tmp_path.parent / "state"))
        if alone is not None:
            assert repr(items["a"].instant) == alone
        assert repr(items["trajectories/s.json"].instant) == (
            "Known(2026-07-01T00:00:00+00:00, 'mtime')"
        )
        fallen = scanned(tmp_path, clock="created_at", fallback="modified")["a"]
        if with_fallback == "mtime":
            assert repr(fallen.instant) == "Known(2026-01-01T00:00:00+00:00, 'mtime')"
        elif with_fallback == "held":
            assert fallen.held is not None
            assert repr(fallen.instant).startswith("Unknown")
        else:
            assert repr(fallen.instant) == alone


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"---\ntype: guideline\nbody\n", "its frontmatter has no closing line ---"),
        (b"---\ntype:\tguideline\n---\n", "its frontmatter is not YAML in line 2"),
        (b"---\ntype: a\ntype: b\n---\n", "its type stands twice"),
        (b"---\ntype: caf\xe9\n---\n", "its frontmatter is not UTF-8"),
        (b"---\ntype: [a, b]\n---\n", "its type is a list and not text"),
        (b"---\nretention_rule: [a]\n---\n", "its retention_rule is a list and not text"),
        (b"---\nowner: [a]\n---\n", "its owner is a list and not text"),
        (b"---\n#" + b"x" * 70_000 + b"\n---\n", "its frontmatter has no closing line --- within"),
    ],
)
def test_a_note_of_which_nobody_can_say_what_it_is_stays(
    tmp_path: Path, text: bytes, why: str
) -> None:
    """It is held with a reason, also by a plan that would have deleted it, and told once."""
    note(tmp_path, "guideline/a", text, OLD)
    store = entities_at(tmp_path, fields=("owner",))
    (item,) = scanned(store).values()
    assert item.held is not None
    assert item.held.startswith(why)
    assert store.remarks() == []
    (said,) = build(store, POLICY, NOW, name="store").decisions
    assert (said.action, said.reason, said.rule) == ("keep", "veto", item.held)


@pytest.mark.parametrize(
    "text",
    [
        b"---\r\ntype: fact\r\n---\r\nbody",
        b"\xef\xbb\xbf---\ntype: fact\n---\n",
        b"---\ntype: fact\n---\nbody\n---\ntype: other\n---\n",
        b"---\ntype: fact\n---\ncaf\xe9\n",
        b"---\ntype: fact\nlong: " + b"x" * 5000 + b"\n---\n",
        b"---\ntype: fact\n---\n" + b"x" * 1_000_000,
    ],
)
def test_what_is_only_unusual_is_read(tmp_path: Path, text: bytes) -> None:
    """Line ends, a byte order mark, what looks like a fence in the body, long heads and bodies."""
    note(tmp_path, "guideline/a", text)
    (item,) = scanned(tmp_path).values()
    assert (item.type, item.held, item.bytes) == ("fact", None, len(text))


@pytest.mark.parametrize(
    ("link", "derived"),
    [
        ("s 1.json", True),
        (".evolve/trajectories/s 1.json", True),
        ("'/elsewhere/s 1.json'", True),
        ('"../../s 1.json"', True),
        ("S 1.json", False),
        ("s 1", False),
        ("s 1.json/", False),
        ("..", False),
        ("''", False),
        ("none.json", False),
        ("[s 1.json]", False),
    ],
)
def test_a_note_is_derived_from_the_session_that_it_names(
    tmp_path: Path, link: str, derived: bool
) -> None:
    """By the name of the file and in the very same case; an empty link links to nothing."""
    session(tmp_path, "s 1.json")
    note(tmp_path, "a", f"---\ntype: guideline\ntrajectory: {link}\n---\n")
    store = entities_at(tmp_path)
    expected = "trajectories/s 1.json" if derived else None
    assert scanned(store)["a"].derived_from == expected
    told = ["a: its trajectory is a list and not text"] if link.startswith("[") else []
    assert store.remarks() == told


def test_a_note_says_what_rules_match_on(tmp_path: Path) -> None:
    """The keys that were asked for are there as text, the others and missing ones are not."""
    note(tmp_path, "a", "---\ntype: t\nvisibility: private\nowner: 5\n---\n")
    (item,) = scanned(tmp_path, fields=("visibility", "owner", "none")).values()
    assert item.fields == {"visibility": "private", "owner": "5"}


def test_a_flag_that_stands_is_told(tmp_path: Path) -> None:
    """By which rule and since when; half a flag is none, and one without a date is set anew."""
    flag = "retention_flagged_at: 2026-07-01T00:00:00Z\nretention_rule: stale\n"
    note(tmp_path, "a", f"---\n{flag}---\n")
    note(tmp_path, "b", "---\nretention_rule: stale\n---\n")
    note(tmp_path, "c", "---\nretention_flagged_at: soon\nretention_rule: stale\n---\n")
    items = scanned(tmp_path)
    assert [items[id_].flagged_by for id_ in "abc"] == ["stale", None, "stale"]
    assert repr(items["a"].flagged_at) == (
        "Known(2026-07-01T00:00:00+00:00, 'retention_flagged_at')"
    )
    assert repr(items["c"].flagged_at).startswith("Unknown")


def test_a_flag_on_what_was_edited_since_begins_anew(tmp_path: Path) -> None:
    """Who edits a note, or goes on with a session, after the flag has had a word in the matter."""
    edited = datetime(2026, 7, 2, tzinfo=UTC)
    flag = "retention_flagged_at: 2026-07-01T00:00:00Z\nretention_rule: stale\n"
    note(tmp_path, "a", f"---\n{flag}---\n", edited)
    session(tmp_path, "s.json", edited)
    row = {"event": "retention", "action": "flag", "entity": "trajectories/s.json"}
    row |= {"rule": "stale", "ts": "2026-07-01T00:00:00Z"}
    (tmp_path / "audit.log").write_text(json.dumps(row) + "\n")
    since = Known(edited, "mtime, later than retention_flagged_at")
    assert [item.flagged_at for item in scanned(tmp_path).values()] == [since, since]


def test_a_fingerprint_tells_of_a_recall(tmp_path: Path) -> None:
    """An item that was recalled since is not what it was."""
    note(tmp_path, "a")
    before = scanned(tmp_path)["a"].fingerprint
    assert scanned(tmp_path)["a"].fingerprint == before
    recall(tmp_path, "a")
    assert scanned(tmp_path)["a"].fingerprint != before
