"""`keepfor demo` shows a newcomer the whole of it, and leaves nothing behind."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from keepfor.cli import sandbox
from tests.cli.conftest import NOW, Place


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary folders are made."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def test_each_step_is_headed_by_what_one_would_type(place: Place, temporary: Path) -> None:
    """Status, plan, apply, status, log and trace run one after the other."""
    ran = place.run("demo")
    assert ran.code == 0
    assert [line for line in ran.out.splitlines() if line.startswith("$ ")] == [
        "$ keepfor status",
        "$ keepfor plan",
        "$ keepfor apply --yes",
        "$ keepfor status",
        "$ keepfor log",
        "$ keepfor trace recall retry-policy",
    ]
    assert "You have 119.7 days of history in 600 rows" in ran.out
    assert "150 of 600 rows would go." in ran.out
    assert "150 of 600 rows are gone." in ran.out
    assert "You have 89.8 days of history in 450 rows" in ran.out
    assert "projects/harness/retry-policy.md" in ran.out


def test_the_sandbox_is_gone_afterwards(place: Place, temporary: Path) -> None:
    """Neither the temporary folder nor the user's own configuration has anything of it."""
    before = place.snapshot()
    ran = place.run("demo")
    assert "The sandbox is gone." in ran.out
    assert list(temporary.iterdir()) == []
    assert place.snapshot() == before


def test_the_sandbox_is_gone_after_a_failure_too(
    place: Place, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C in the middle leaves nothing behind either."""

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("keepfor.cli.demo.trace", interrupted)
    assert place.run("demo").code == 130
    assert list(temporary.iterdir()) == []


def test_the_users_own_settings_do_not_reach_it(
    place: Place, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A variable that moves or overrides the user's own stores leaves the sandbox alone."""
    monkeypatch.setenv("KEEPFOR_STATE_DIR", str(place.folder / "mine"))
    monkeypatch.setenv("KEEPFOR_STORES__RECALL__KEEP_FOR", "1d")
    monkeypatch.setenv("KEEPFOR_STORES__MINE__KEEP_FOR", "1d")
    monkeypatch.setenv("KEEPFOR_CONFIG", "nowhere.yaml")
    ran = place.run("demo", "--json")
    assert ran.code == 0
    assert ran.json["steps"][2]["document"]["stores"][0]["applied"] == 150
    assert not (place.folder / "mine").exists()


def test_it_is_the_verbs_themselves(place: Place, temporary: Path) -> None:
    """The document of each step is that of its verb."""
    steps = place.run("demo", "--json").json["steps"]
    verbs = [step["document"]["verb"] for step in steps]
    assert verbs == ["status", "plan", "apply", "status", "log", "trace"]
    assert [step["command"].split()[1] for step in steps] == verbs
    assert len(steps[-1]["document"]["matches"]) == 3


def test_the_sandbox_is_the_same_each_time(tmp_path: Path) -> None:
    """Its rows depend on nothing but the instant that they reach up to."""
    ledgers = []
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        sandbox.build(folder, NOW)
        ledgers.append((folder / "recall-history.jsonl").read_bytes())
    assert ledgers[0] == ledgers[1]
    assert ledgers[0].count(b"\n") == 600


def test_it_looks_well_at_a_terminal(
    place: Place, temporary: Path, person: Callable[[str], None]
) -> None:
    """With a person at the terminal it runs through without a question."""
    person("")
    ran = place.run("demo")
    assert ran.code == 0
    assert "\x1b[" in ran.out
    assert "[y/N]" not in ran.err
