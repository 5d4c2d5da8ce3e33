"""The plain texts as they are, so that a change of what people read is a change one sees.

To take over what is printed now: WRITE_GOLDEN=1 pytest tests/cli/test_golden.py
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests import caesar, evolve
from tests.cli.conftest import Place, Ran

GOLDEN = Path(__file__).parent / "golden"


def agrees(name: str, ran: Ran, place: Place) -> None:
    """Hold a text against its golden one, but for what differs from run to run."""
    text = ran.out.replace(str(place.folder), "/home/ada")
    text = re.sub(r"\b[0-9a-f]{8}$", "01234567", text, flags=re.MULTILINE)
    file = GOLDEN / f"{name}.txt"
    if os.environ.get("WRITE_GOLDEN"):
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")


def test_the_sample_from_plan_to_log(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a person reads on the way from status to log, on the sample, word by word."""
    monkeypatch.setattr("keepfor.sweep.time", SimpleNamespace(monotonic=lambda: 0.0))
    place.sample()
    agrees("status-before", place.run("status"), place)
    agrees("plan", place.run("plan"), place)
    agrees("apply", place.run("apply", "--yes"), place)
    agrees("status-after", place.run("status"), place)
    agrees("check", place.run("check"), place)
    agrees("log", place.run("log"), place)
    agrees("trace", place.run("trace", "recall", "naming"), place)


def test_a_table_from_plan_to_reclaim(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a person reads of a table, on the sample, from status to reclaim, word by word."""
    monkeypatch.setattr("keepfor.sweep.time", SimpleNamespace(monotonic=lambda: 0.0))
    place.configure("state_dir: state\nstores: {audit: {preset: caesar}}\n")
    caesar.rebuild(place.folder)
    agrees("table-status-before", place.run("status"), place)
    agrees("table-plan", place.run("plan"), place)
    agrees("table-apply", place.run("apply", "--yes"), place)
    agrees("table-status-after", place.run("status"), place)
    agrees("table-check", place.run("check"), place)
    agrees("table-log", place.run("log"), place)
    agrees("table-reclaim", place.run("reclaim", "audit"), place)


def test_notes_from_plan_to_log(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a person reads of notes and sessions, on the sample, word by word."""
    monkeypatch.setattr("keepfor.sweep.time", SimpleNamespace(monotonic=lambda: 0.0))
    place.configure("state_dir: state\nstores: {notes: {preset: evolve-lite}}\n")
    evolve.rebuild(place.folder)
    agrees("notes-plan", place.run("plan"), place)
    for fate, id_ in (
        ("spared", "guideline/close-sqlite-connections-note-15"),
        ("flag", "guideline/keep-fixtures-small-note-3"),
        ("delete", "trajectories/trajectory_2025-05-08T00-00-00_sess-02.json"),
        ("keep", "preference/use-temp-files-for-json-transfer-note-0"),
    ):
        agrees(f"notes-explain-{fate}", place.run("explain", "notes", id_), place)
    agrees("notes-apply", place.run("apply", "--yes"), place)
    agrees("notes-plan-after", place.run("plan"), place)
    agrees("notes-check", place.run("check"), place)
    agrees("notes-log", place.run("log"), place)


@pytest.mark.parametrize("verb", ["", "plan", "apply"])
def test_the_help(place: Place, verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a person reads who asks for help, word by word."""
    monkeypatch.setenv("COLUMNS", "80")
    agrees(f"help{verb and '-'}{verb}", place.run(*verb.split(), "--help"), place)
