"""What a program that was killed left in a database, when the next sweep comes."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from keepfor import plan as plans
from keepfor.errors import StoreChanged, StoreError, Unfinished
from keepfor.policy.rules import Policy, keep_for
from keepfor.stores.sql.sqlite import SqliteDatabase
from keepfor.stores.table import table_at
from keepfor.sweep import apply, planned, sweep_now
from keepfor.trail import Trail
from tests.stores.sql import build

NOW = datetime(2026, 7, 26, tzinfo=UTC)
KEEP = Policy(rules=keep_for(timedelta(days=90)), breaker=None)
#: A change that does not fit into memory, so that it is on the disk when its program is killed.
HALF_A_CHANGE = """
import os, signal, sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA cache_size = 1")
connection.execute("BEGIN")
connection.execute("UPDATE vectors SET data = hex(randomblob(20000))")
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def url(tmp_path: Path) -> str:
    made = build.make(f"sqlite:///{tmp_path}/notes.sqlite3")
    build.add(made, "old", datetime(2026, 1, 1, tzinfo=UTC))
    build.add(made, "young", datetime(2026, 7, 1, tzinfo=UTC))
    return made


def test_a_sweep_undoes_half_a_change_that_a_plan_only_tells_of(url: str, tmp_path: Path) -> None:
    """A look writes nothing, so it stops at a hot journal; what is to be carried out goes on."""
    path = url.removeprefix("sqlite:///")
    assert subprocess.run([sys.executable, "-c", HALF_A_CHANGE, path]).returncode < 0
    store = build.notes(url, tmp_path)
    with pytest.raises(Unfinished, match="killed in the middle of a change"):
        plans.build(store, KEEP, NOW, name="notes")
    plan = planned(store, KEEP, NOW, name="notes")
    apply(plan, store, KEEP, NOW, trail=Trail(tmp_path / "trail.jsonl", keep_for="forever"))
    assert build.names(url) == {"young"}


def test_a_copy_without_its_shm_is_put_in_order_for_a_sweep(url: str, tmp_path: Path) -> None:
    """Changes that nobody took in stop a look; where they are to be swept, they are taken in."""
    path = Path(url.removeprefix("sqlite:///"))
    copy = tmp_path / "copy.sqlite3"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("UPDATE notes SET ts = '2026-01-01 00:00:00.000000'")
        connection.commit()
        shutil.copyfile(path, copy)
        shutil.copyfile(f"{path}-wal", f"{copy}-wal")
    store = build.notes(f"sqlite:///{copy}", tmp_path)
    with pytest.raises(Unfinished, match="lie in its -wal"):
        plans.build(store, KEEP, NOW, name="notes")
    assert planned(store, KEEP, NOW, name="notes").survey.applied == 2


@pytest.mark.parametrize("act", [planned, partial(sweep_now, trail=None)])
def test_a_name_that_is_no_table_leaves_nothing_behind(act: Any, url: str, tmp_path: Path) -> None:
    """No lock is made for it, which nobody would clear away."""
    before = sorted(os.listdir(tmp_path))
    store = table_at(url, "nots", folder=tmp_path / "state", time="ts")
    with pytest.raises(StoreError, match="it has no table nots"):
        act(store, KEEP, NOW, name="notes")
    assert sorted(os.listdir(tmp_path)) == before


def test_a_look_that_somebody_disturbed_is_taken_once_more(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that opens the database for each of its rows makes no plan fail."""
    looks = []

    class Disturbed(SqliteDatabase, frozen=True, kw_only=True):
        @property
        def notes(self) -> list[str]:
            looks.append("looked")
            if len(looks) == 1:
                raise StoreChanged(path=self.path, why="somebody wrote to it meanwhile")
            return []

    store = build.notes(url, tmp_path)
    disturbed = Disturbed(path=url.removeprefix("sqlite:///"))
    store = type(store)(database=disturbed, spec=store.spec, folder=tmp_path)
    assert plans.build(store, KEEP, NOW, name="notes").survey.applied == 1
    assert len(looks) == 2
