"""The log of a store: who was recalled when, whoever wrote it and however badly."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from keepfor.errors import StoreError
from keepfor.policy.rules import Policy, Rule
from keepfor.policy.verdicts import verdict
from keepfor.stores import files, logrows, replace
from keepfor.stores.access import AccessLog
from keepfor.stores.entities import entities_at
from keepfor.stores.ledger import ledger_at
from keepfor.sweep import sweep_now
from keepfor.times import Known, Unknown
from tests.entities import NOW, OLD, YOUNG, done, note, recall, scanned, to
from tests.stores.nobody import as_nobody, common_ground


def row(**facts: object) -> bytes:
    return json.dumps(facts).encode() + b"\n"


def read(path: Path, data: bytes) -> AccessLog:
    path.write_bytes(data)
    log = AccessLog(str(path), UTC)
    log.refresh()
    return log


def test_the_newest_recall_counts(tmp_path: Path) -> None:
    """Of several the latest, in whatever order they stand, and none where there is none."""
    note(tmp_path, "a")
    note(tmp_path, "b")
    for at in (OLD, YOUNG, OLD):
        recall(tmp_path, "a", at)
    items = scanned(tmp_path)
    assert items["a"].accessed == Known(YOUNG, "audit.log")
    assert isinstance(items["b"].accessed, Unknown)


def test_what_is_recorded_is_read_back(tmp_path: Path) -> None:
    """`record_access` appends one row for all, without touching a note."""
    path = note(tmp_path, "a")
    note(tmp_path, "b")
    changed = path.stat().st_ctime_ns
    store = entities_at(tmp_path)
    store.record_access(["a", "b", "none"], NOW)
    store.record_access([], NOW)
    assert {item.accessed for item in scanned(store).values()} == {Known(NOW, "audit.log")}
    assert (tmp_path / "audit.log").read_bytes() == row(
        event="recall", entities=["a", "b", "none"], ts="2026-07-26T00:00:00+00:00"
    )
    assert path.stat().st_ctime_ns == changed


def test_a_recall_written_to_a_pruned_log_counts(tmp_path: Path) -> None:
    """Who holds the log open writes to what a prune put aside, and is heard in scan and apply."""
    note(tmp_path, "a")
    note(tmp_path, "b")
    recall(tmp_path, "a", OLD)
    recall(tmp_path, "gone", datetime(2024, 1, 1, tzinfo=UTC))
    path = tmp_path / "audit.log"
    rule = Rule(name="keep_for", max_age=timedelta(days=400), action="delete")
    with path.open("ab") as writer:
        sweep_now(ledger_at(path), Policy(rules=(rule,)), NOW, name="log", trail=None)
        writer.write(row(event="recall", entities=["a"], ts="2026-07-01T00:00:00Z"))
        writer.flush()
        (aside,) = replace.leftovers(str(path))
        store = entities_at(tmp_path, cache=str(tmp_path / "state"))
        for _ in range(2):
            items = scanned(store)
            assert items["a"].accessed == Known(YOUNG, "audit.log")
        writer.write(row(event="recall", entities=["b"], ts="2026-07-01T00:00:00Z"))
        writer.flush()
        before = Path(aside.path).read_bytes()
        assert done(store, to("delete", items["b"]))["b"].result == "skipped"
        assert Path(aside.path).read_bytes() == before
        assert store.remarks() == []


def test_a_store_without_a_log_has_nowhere_to_record(tmp_path: Path) -> None:
    """It says what to set."""
    with pytest.raises(StoreError, match="access_log"):
        entities_at(tmp_path, access_log=None).record_access(["a"], NOW)


def test_a_torn_last_line_is_ended_before_a_row(tmp_path: Path) -> None:
    """What a killed writer left does not spoil what is recorded next."""
    (tmp_path / "audit.log").write_bytes(b'{"event": "rec')
    note(tmp_path, "a")
    store = entities_at(tmp_path)
    store.record_access(["a"], NOW)
    assert scanned(store)["a"].accessed == Known(NOW, "audit.log")
    assert store.remarks() == ["audit.log: passed over 1 line that nobody can read"]


@pytest.mark.parametrize(
    ("line", "unreadable"),
    [
        (b"\n", 0),
        (b"  \n", 0),
        (b"{torn\n", 1),
        (b"[]\n", 1),
        (b"null\n", 1),
        (b"\xff\xfe\n", 1),
        (b"[" * 100_000 + b"\n", 1),
        (b"x" * (3 << 20) + b"\n", 1),
        (row(event="other", entities=["a"], ts="2026-07-20"), 0),
        (row(event="recall", entities=None, ts="2026-07-20T00:00:00Z"), 1),
        (row(event="recall", ts="2026-07-20T00:00:00Z"), 1),
        (row(event="recall", entities=[5], ts="2026-07-20T00:00:00Z"), 1),
        (row(event="recall", entities={"a": 1}, ts="2026-07-20T00:00:00Z"), 1),
        (row(event="recall", entities=[], ts="2026-07-20T00:00:00Z"), 0),
        (row(event=5, entities=["a"], ts="2026-07-20T00:00:00Z"), 0),
    ],
)
def test_lines_that_say_nothing_are_passed_over(
    tmp_path: Path, line: bytes, unreadable: int
) -> None:
    """Debris of any kind spoils no other line, and is counted."""
    good = row(event="recall", entities=["a"], ts="2026-07-01T00:00:00Z")
    log = read(tmp_path / "log", line + good + line)
    assert log.newest == {"a": YOUNG}
    assert log.unreadable == 2 * unreadable


@pytest.mark.parametrize(
    ("facts", "ids"),
    [
        ({"entities": ["b", 5, None, "a"]}, {"a", "b"}),
        ({"entities": "a"}, {"a"}),
        ({"entity": "a"}, {"a"}),
        ({"entity": "a", "rule": 5}, {"a"}),
        ({"entities": [{"id": "a"}, {"name": "b"}]}, {"a"}),
        ({"entities": ["a/b.md"]}, {"a/b.md", "a/b"}),
        ({"entities": ["a"], "rule": 5}, {"a"}),
        ({"entities": ["a"], "more": {"deep": [1, 2]}}, {"a"}),
        ({"entities": ["li\nne"]}, {"li\nne", r"li\x0ane"}),
        ({"entities": ["a\\b"]}, {"a\\b", r"a\x5cb"}),
        ({"entities": ["\ud800", "a"]}, {"a"}),
        ({"entities": ["caf\udce9"]}, {r"caf\xe9", r"caf\x5cxe9"}),
    ],
)
def test_what_a_row_says_is_taken_as_far_as_it_goes(
    tmp_path: Path, facts: dict[str, object], ids: set[str]
) -> None:
    """One odd value does not cost the others their recall, and names are ids as well."""
    log = read(tmp_path / "log", row(event="recall", ts="2026-07-01T00:00:00Z", **facts))
    assert set(log.newest) == ids
    assert set(log.newest.values()) == {YOUNG}


@pytest.mark.parametrize("facts", [{"ts": 1785000000}, {"ts": "soon"}, {"ts": None}, {}])
def test_a_recall_of_which_nobody_can_say_when_keeps_from_disuse(
    tmp_path: Path, facts: dict[str, object]
) -> None:
    """It counts as later than any other, is named as such and told, with a cache as without."""
    note(tmp_path, "a")
    recall(tmp_path, "a", OLD)
    with (tmp_path / "audit.log").open("ab") as file:
        file.write(row(event="recall", entities=["a"], **facts))
    store = entities_at(tmp_path, cache=str(tmp_path / "state"))
    rule = Rule(name="unused", max_unused=timedelta(days=30), action="delete")
    for _ in range(2):
        items = scanned(store)
        assert verdict(rule, items["a"], NOW).answer == "no"
        assert "audit.log, its time cannot be read" in repr(items["a"].accessed)
        assert store.remarks() == ["audit.log: passed over 1 line that nobody can read"]
    (gone,) = store.apply([to("delete", items["a"])])
    assert gone.result == "applied"


def test_a_recall_behind_a_torn_row_counts(tmp_path: Path) -> None:
    """A writer that goes on in the line that another left unfinished has told of its recall."""
    glued = row(event="recall", entities=["a"], ts="2026-07-01T00:00:00Z")
    log = read(tmp_path / "log", b'{"event": "recall", "enti' + glued)
    assert (log.newest, log.unreadable) == ({"a": YOUNG}, 1)


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2026-07-01T00:00:00Z", YOUNG),
        ("2026-07-01T02:00:00+02:00", YOUNG),
        ("2026-07-01T02:00:00", YOUNG),
        ("2026-06-30", datetime(2026, 6, 30, 21, 59, 59, 999999, tzinfo=UTC)),
        ("2026-06-30T23:59:60Z", YOUNG),
    ],
)
def test_times_are_read_as_everywhere(tmp_path: Path, text: str, instant: datetime) -> None:
    """A naive time is of the store's zone, a date its end, a leap second the next minute."""
    path = tmp_path / "log"
    path.write_bytes(row(event="recall", entities=["a"], ts=text))
    log = AccessLog(str(path), ZoneInfo("Europe/Berlin"))
    log.refresh()
    assert log.newest == {"a": instant}


def test_a_note_is_known_by_its_file_in_the_log(tmp_path: Path) -> None:
    """Other programs write what the file of a note ends with, whatever that is."""
    (tmp_path / "entities").mkdir()
    (tmp_path / "entities/a.mdx").write_text("text")
    recall(tmp_path, "a.mdx", YOUNG)
    item = scanned(tmp_path, pattern="*.mdx")["a"]
    assert item.accessed == Known(YOUNG, "audit.log")
    store = entities_at(tmp_path, pattern="*.mdx")
    assert done(store, to("delete", item))["a"].result == "applied"


def test_the_log_is_read_on_from_where_it_ended(tmp_path: Path) -> None:
    """What is appended is found, a torn line once it is whole, a new or shorter file from anew."""
    path = tmp_path / "log"
    one, two, three = (
        row(event="recall", entities=[id_], ts="2026-07-01T00:00:00Z") for id_ in "abc"
    )
    log = read(path, one + two[:10])
    assert set(log.newest) == {"a"}
    path.write_bytes(one + two)
    log.refresh()
    assert set(log.newest) == {"a", "b"}
    path.write_bytes(three)
    log.refresh()
    assert set(log.newest) == {"c"}
    (tmp_path / "new").write_bytes(one + two + three)
    (tmp_path / "new").rename(path)
    log.refresh()
    assert set(log.newest) == {"a", "b", "c"}
    path.unlink()
    log.refresh()
    assert log.newest == {}


def test_a_log_that_was_written_anew_in_place_is_read_anew(tmp_path: Path) -> None:
    """Even where it is longer than before, so that it may seem to have grown."""
    one, two, three = (
        row(event="recall", entities=[id_], ts="2026-07-01T00:00:00Z") for id_ in "abc"
    )
    log = read(tmp_path / "log", one)
    (tmp_path / "log").write_bytes(two + three)
    log.refresh()
    assert set(log.newest) == {"b", "c"}


def test_a_log_that_is_replaced_while_it_is_opened_is_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is read on is the file that was opened, whatever stood there a moment ago."""
    path = tmp_path / "log"
    one, two, three = (
        row(event="recall", entities=[id_], ts="2026-07-01T00:00:00Z") for id_ in "abc"
    )
    log = read(path, one)
    with path.open("ab") as file:
        file.write(two)
    (tmp_path / "new").write_bytes(three)
    opening = files.open_for_reading

    def replaced(path: str, flags: int = 0) -> int:
        if (tmp_path / "new").exists():
            (tmp_path / "new").rename(path)
        return opening(path, flags)

    monkeypatch.setattr(files, "open_for_reading", replaced)
    log.refresh()
    assert set(log.newest) == {"c"}
    with path.open("ab") as file:
        file.write(one)
    log.refresh()
    assert set(log.newest) == {"a", "c"}


@pytest.mark.parametrize("known", [True, False], ids=["read on", "read whole"])
def test_a_deletion_ends_the_recalls_before_it(tmp_path: Path, known: bool) -> None:
    """What comes under an old id later is another note, which nobody has recalled."""
    recalls = [
        row(event="recall", entities=[id_], ts="2026-07-01T00:00:00Z") for id_ in ("a", "b", "c")
    ]
    ends = [
        row(event="retention", action="delete", entity=id_, rule="r", ts="2026-07-02T00:00:00Z")
        for id_ in ("a", "b")
    ]
    after = row(event="recall", entities=["b"], ts="2026-07-03T00:00:00Z")
    before = read(tmp_path / "log", b"".join(recalls)).state() if known else None
    (tmp_path / "log").write_bytes(b"".join((*recalls, *ends, after)))
    log = AccessLog(str(tmp_path / "log"), UTC, before)
    log.refresh()
    assert log.newest == {
        "b": datetime(2026, 7, 3, tzinfo=UTC),
        "c": datetime(2026, 7, 1, tzinfo=UTC),
    }
    assert log.touched == ({"a", "b"} if known else None)


@pytest.mark.parametrize("place", ["logs/audit.log", "logs/deep/audit.log"])
def test_a_log_is_written_only_inside_its_store(tmp_path: Path, place: str) -> None:
    """A folder that is a symlink may lead anywhere; one that is missing is made."""
    note(tmp_path / "store", "a")
    store = entities_at(tmp_path / "store", access_log=place)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "store/logs").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match="a log is written only inside its store"):
        store.record_access(["a"])
    assert os.listdir(tmp_path / "elsewhere") == []
    (tmp_path / "store/logs").unlink()
    store.record_access(["a"], YOUNG)
    assert scanned(store)["a"].accessed == Known(YOUNG, "audit.log")


@pytest.mark.parametrize("change", ["none", "appended", "edited", "shorter", "gone"])
def test_what_is_known_of_a_log_is_believed_only_if_it_begins_so(
    tmp_path: Path, change: str
) -> None:
    """The same as a reading of the whole, and told apart by content, not by time or size."""
    path = tmp_path / "log"
    rows = [
        row(event="recall", entities=[f"n{n}"], ts=f"2026-07-01T00:00:{n:02d}Z") for n in range(60)
    ]
    rows.append(row(event="retention", action="flag", entity="s", rule="r", ts="2026-07-01"))
    rows.append(b"debris\n")
    before, status = read(path, b"".join(rows)), path.stat()
    match change:
        case "appended":
            rows.append(row(event="recall", entities=["n1"], ts="2026-07-02T00:00:00Z"))
        case "edited":
            rows[3] = rows[3].replace(b"n3", b"x3")
        case "shorter":
            del rows[-5:]
        case "gone":
            rows.clear()
    path.write_bytes(b"".join(rows))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    if change == "gone":
        path.unlink()
    resumed = AccessLog(str(path), UTC, before.state())
    resumed.refresh()
    whole = AccessLog(str(path), UTC)
    whole.refresh()
    assert (resumed.newest, resumed.flags, resumed.unreadable) == (
        whole.newest,
        whole.flags,
        whole.unreadable,
    )
    assert resumed.touched == {"none": set(), "appended": {"n1"}}.get(change)


@pytest.mark.parametrize("instead", ["folder", "secret"])
def test_a_log_that_cannot_be_read_stops_a_scan(instead: str) -> None:
    """Who was recalled is unknown then, so nothing may be held to disuse."""
    with common_ground() as ground:
        note(ground, "a")
        if instead == "folder":
            (ground / "audit.log").mkdir()
        else:
            (ground / "audit.log").touch(0)

        def check() -> None:
            with pytest.raises(StoreError, match=r"audit\.log"):
                scanned(ground)

        as_nobody(check)


def test_each_action_is_told_where_that_is_asked_for(tmp_path: Path) -> None:
    """With `record` a row for all that was applied, without it none."""
    for id_ in "abc":
        note(tmp_path, id_)
    for record in (False, True):
        store = entities_at(tmp_path, record=record)
        items = scanned(store)
        done(
            store, to("delete", items["a" if record else "b"]), to("flag", items["c"], f"{record}")
        )
    rows = [json.loads(line) for line in (tmp_path / "audit.log").read_text().splitlines()]
    assert [(said["action"], said["entity"]) for said in rows] == [("delete", "a"), ("flag", "c")]
    assert {tuple(said) for said in rows} == {
        ("event", "action", "entity", "reason", "rule", "ts"),
    }


def test_an_odd_id_is_written_as_it_can_be(tmp_path: Path) -> None:
    """Half a character, which no UTF-8 holds, does not keep a row from being written."""
    logrows.write(str(tmp_path / "log"), logrows.recall(["\ud800"], NOW))
    assert (tmp_path / "log").read_bytes().endswith(b"\n")
