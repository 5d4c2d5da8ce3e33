"""Stores of entities: what plans and sweeps cost beside the straightforward way and bare walks."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.harness import Figure, Way, at_most, race, times_faster
from keepfor import plan as plans
from keepfor.policy.rules import Policy, Rule
from keepfor.stores.entities import EntityStore, entities_at
from keepfor.stores.headcache import RACY
from keepfor.sweep import apply
from keepfor.trail import Trail

NOW = datetime(2026, 7, 26, tzinfo=UTC)
TYPES = ("guideline", "preference", "fact", "workflow")
RULES = (
    Rule(name="unused", type="guideline", max_unused=timedelta(days=180), action="delete"),
    Rule(name="stale", type="guideline", max_age=timedelta(days=90), action="flag"),
    Rule(
        name="old-sessions",
        type="trajectory",
        max_age=timedelta(days=365),
        action="delete",
        cascade_derived=True,
    ),
)
POLICY = Policy(rules=RULES, breaker=None)
_HOME = Path(__file__).parents[1]
#: The most that a plan may take, in MiB.
MEMORY = 150


class Scale(msgspec.Struct, frozen=True, kw_only=True):
    """How much is done, so that a test can do less.

    Parameters:
        notes: how many notes there are.
        sessions: how many sessions.
        recalls: how many rows of recalls the log has.
        deleted: how many notes a sweep deletes.
        rounds: how often each way is run.
    """

    notes: int = 100_000
    sessions: int = 5_000
    recalls: int = 50_000
    deleted: int = 10_000
    rounds: int = 5


def build(root: Path, scale: Scale) -> Path:
    """A store with ages from none to 400 days, spread over folders as people keep them."""
    (root / "trajectories").mkdir(parents=True)
    for number in range(scale.sessions):
        path = root / "trajectories" / session_name(number)
        path.write_text('{"messages": []}\n' * 10)
        _age(path, number)
    for number in range(scale.notes):
        path = root / "entities" / f"{_id(number)}.md"
        if number < len(TYPES) * 50:
            path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_note(number, scale))
        _age(path, number)
    rows = [_recall(number, scale) for number in range(scale.recalls)]
    (root / "audit.log").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return root


def _recall(number: int, scale: Scale) -> dict[str, Any]:
    at = NOW - timedelta(days=200 * (1 - number / scale.recalls))
    return {
        "event": "recall",
        "session_id": f"s-{number % 50}",
        "entities": [_id(number * 7 % scale.notes)],
        "ts": f"{at:%Y-%m-%dT%H:%M:%S.%fZ}",
    }


def _id(number: int) -> str:
    return f"{TYPES[number % 4]}/{number // 4 % 50:02}/what-was-learnt-about-this-{number}"


def session_name(number: int) -> str:
    return f"trajectory_2026-01-01T00-00-00_sess-{number:05}.json"


def _note(number: int, scale: Scale) -> str:
    return (
        f"---\ntype: {TYPES[number % 4]}\ntrigger: when number {number} comes up\n"
        f"trajectory: .evolve/trajectories/{session_name(number % scale.sessions)}\n---\n\n"
        + "What was learnt, in a line of prose of the usual length, and one more.\n"
        * 12
    )


def _age(path: Path, number: int) -> None:
    os.utime(path, ((NOW - timedelta(days=number * 7919 % 400, hours=1)).timestamp(),) * 2)


# --- the straightforward way --------------------------------------------------------------


def plan(root: Path) -> dict[str, str]:
    """What is to happen to each item: walk with pathlib, read each file whole, split, match."""
    recalled = _recalled(root / "audit.log")
    actions: dict[str, str] = {}
    derived: dict[str, list[str]] = {}
    for path in sorted((root / "entities").rglob("*.md")):
        id_ = path.relative_to(root / "entities").with_suffix("").as_posix()
        facts = _facts(path)
        if link := facts.get("trajectory"):
            derived.setdefault(Path(link).name, []).append(id_)
        modified = datetime.fromtimestamp(path.stat().st_mtime, UTC)
        if facts.get("type", path.parent.name) == "guideline":
            if NOW - recalled.get(id_, modified) > timedelta(days=180):
                actions[id_] = "delete" if id_ in recalled else "keep"
            elif NOW - modified > timedelta(days=90):
                actions[id_] = "flag"
    for path in sorted((root / "trajectories").iterdir()):
        if NOW - datetime.fromtimestamp(path.stat().st_mtime, UTC) > timedelta(days=365):
            actions[f"trajectories/{path.name}"] = "delete"
            for id_ in derived.get(path.name, ()):
                # What was spared for want of a recall is decided.
                actions.setdefault(id_, "delete")
                if actions[id_] == "flag":
                    actions[id_] = "delete"
    return {id_: action for id_, action in actions.items() if action != "keep"}


def _recalled(log: Path) -> dict[str, datetime]:
    recalled: dict[str, datetime] = {}
    for line in log.read_text().splitlines():
        row = json.loads(line)
        if row.get("event") == "recall":
            at = datetime.fromisoformat(row["ts"])
            for id_ in row["entities"]:
                recalled[id_] = max(recalled.get(id_, at), at)
    return recalled


def _facts(path: Path) -> dict[str, str]:
    lines = path.read_text(encoding="utf-8").splitlines()
    facts: dict[str, str] = {}
    for line in lines[1:] if lines and lines[0] == "---" else ():
        if line == "---":
            return facts
        key, _, value = line.partition(":")
        facts[key.strip()] = value.strip()
    return {}


def walk(root: Path, *, read: bool) -> int:
    """A bare walk: list, stat, and read the first 2 KiB if that is asked for."""
    count, folders = 0, [str(root)]
    while folders:
        with os.scandir(folders.pop()) as found:
            for entry in found:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                    continue
                entry.stat(follow_symlinks=False)
                count += 1
                if read:
                    descriptor = os.open(entry.path, os.O_RDONLY)
                    os.read(descriptor, 2048)
                    os.close(descriptor)
    return count


# --- the comparison -----------------------------------------------------------------------


def ours(store: EntityStore) -> dict[str, str]:
    """The same, by a plan."""
    made = plans.build(store, POLICY, NOW, name="bench")
    return {said.id: said.action for said in made.decisions if said.action != "keep"}


def figures(folder: Path, scale: Scale) -> Iterator[Figure]:
    """Measure what must hold of stores of entities, in an empty folder."""
    folder.mkdir(exist_ok=True)
    root, state = build(folder / "store", scale), folder / "state"
    store = entities_at(root, cache=str(state))
    assert ours(store) == plan(root)

    def forget() -> None:
        shutil.rmtree(state, ignore_errors=True)

    first = Way(run=lambda: ours(store), before=forget)
    second = Way(run=lambda: ours(store))
    said, rounds = f"of {scale.notes:,} notes", scale.rounds
    yield times_faster(
        f"first plan {said}",
        race(Way(run=lambda: plan(root)), first, rounds=rounds),
        target=2,
    )
    yield at_most(
        "first plan : bare walk with stat and read",
        race(Way(run=lambda: walk(root, read=True)), first, rounds=rounds),
        target=1.5,
    )
    ours(store)
    bare = Way(run=lambda: walk(root, read=False))
    yield at_most(
        "second plan : bare walk with stat", race(bare, second, rounds=rounds), target=2.5
    )
    few = range(0, scale.notes, max(1, scale.notes // 100))

    def touch() -> None:
        for number in few:
            os.utime(root / "entities" / f"{_id(number)}.md")

    changed = Way(run=lambda: ours(store), before=touch)
    yield at_most(
        "plan after few changes : the same", race(bare, changed, rounds=rounds), target=2.5
    )
    yield _memory(root, folder)
    yield at_most(
        f"delete {scale.deleted:,} : bare unlink",
        race(*_deletions(folder, scale), rounds=rounds),
        target=2,
    )


#: Tells its own height: what the system tells of a child counts what its parent held.
_PEAK = """
import pathlib, re, resource, sys
from benchmarks.entities import entities_at, ours
ours(entities_at(sys.argv[1], cache=sys.argv[2]))
status = pathlib.Path("/proc/self/status")
if status.exists():
    print(int(re.search(r"VmHWM:\\s+(\\d+)", status.read_text())[1]) * 1024)
else:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def _memory(root: Path, folder: Path) -> Figure:
    """What a process that plans takes at its height, beside what it may."""
    peaks = []
    for _ in range(2):
        command = [sys.executable, "-c", _PEAK, str(root), str(folder / "memory")]
        done = subprocess.run(command, cwd=_HOME, check=True, capture_output=True, text=True)
        peaks.append(int(done.stdout) / 1024**2)
    return Figure(
        what="memory of a plan",
        unit="MiB",
        plain=MEMORY,
        ours=max(peaks),
        kind="ratio",
        value=max(peaks) / MEMORY,
        best=min(peaks) / MEMORY,
        target=1,
    )


def _deletions(folder: Path, scale: Scale) -> tuple[Way, Way]:
    """The same files, unlinked in a loop, and swept with a trail."""
    small = msgspec.structs.replace(scale, notes=scale.deleted, sessions=1, recalls=0)
    root, policy = folder / "doomed", _everything()
    made: dict[str, Any] = {}

    def ready() -> None:
        shutil.rmtree(root, ignore_errors=True)
        build(root, small)
        store = entities_at(root, cache=str(folder / "doomed-state"))
        made["store"] = store
        # A store is not made in the moment before it is swept, when no cache would be believed.
        time.sleep(RACY / 1e9)
        made["plan"] = plans.build(store, policy, NOW, name="bench")

    def bare() -> None:
        for said in made["plan"].decisions:
            if said.action == "delete":
                os.unlink(f"{root}/entities/{said.id}.md")

    def sweep() -> None:
        trail = Trail(folder / "trail.jsonl", keep_for="forever")
        report = apply(made["plan"], made["store"], policy, NOW, trail=trail)
        assert report.applied == scale.deleted

    return Way(run=bare, before=ready), Way(run=sweep, before=ready)


def _everything() -> Policy:
    rules = [
        Rule(name=f"all-{type_}", type=type_, max_age=timedelta(minutes=1), action="delete")
        for type_ in TYPES
    ]
    return Policy(rules=tuple(rules), breaker=None)
