"""The skill for coding agents, followed step by step on the sample."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import yaml

from keepfor.cli.app import parse
from tests import evolve
from tests.cli.conftest import Place, Ran
from tests.docs.pages import ROOT

SKILL = ROOT / "skills" / "retention" / "SKILL.md"
_, HEAD, BODY = SKILL.read_text(encoding="utf-8").split("---\n", 2)
STEPS = dict(re.findall(r"(?ms)^## (\d)\. [^\n]*\n(.*?)(?=^## |\Z)", BODY))


def blocks(step: int, language: str) -> list[str]:
    """The blocks of a step that are written in a language."""
    return re.findall(rf"(?ms)^```{language}\n(.*?)^```$", STEPS[str(step)])


def follow(place: Place, step: int, **words: str) -> Ran:
    """Run the one command of a step, with words put in for those that stand for others."""
    (command,) = blocks(step, "sh")
    program, *arguments = shlex.split(command)
    assert program == "keepfor"
    return place.run(*(words.get(argument, argument) for argument in arguments))


@pytest.fixture
def root(place: Place) -> Path:
    """The sample of 40 notes and 14 sessions, without any keepfor.yaml."""
    (place.folder / "keepfor.yaml").unlink()
    return evolve.rebuild(place.folder)


def configure(place: Place) -> None:
    """Write the keepfor.yaml that the first step shows."""
    (text,) = blocks(1, "yaml")
    place.configure(f"state_dir: state\n{text}")


def test_it_is_a_skill() -> None:
    """It has the form that agents look for: a name like its folder's, and when to use it."""
    head = yaml.safe_load(HEAD)
    assert head["name"] == SKILL.parent.name
    assert re.fullmatch(r"[a-z0-9-]{1,64}", head["name"])
    assert 0 < len(head["description"]) <= 1024
    assert "Use when" in head["description"]
    assert list(STEPS) == ["1", "2", "3", "4", "5", "6"]


def test_every_command_is_one_that_there_is() -> None:
    """Whatever stands in a block for the shell is understood by keepfor."""
    for step in STEPS:
        for command in blocks(int(step), "sh"):
            program, *arguments = shlex.split(command)
            assert program == "keepfor"
            assert callable(parse(arguments))


def test_the_first_step_finds_that_nothing_is_configured(place: Place, root: Path) -> None:
    """Without a keepfor.yaml the first command says so, and the file that is shown loads."""
    ran = follow(place, 1)
    assert ran.code == 2
    assert "There is no keepfor.yaml" in ran.err
    configure(place)
    assert follow(place, 1).code == 0


def test_without_rules_it_stops(place: Place, root: Path) -> None:
    """Where there are no rules, the second step says the words to look for; the example that is
    shown then is one that keepfor takes."""
    configure(place)
    (place.folder / "evolve.config.yaml").unlink()
    before = evolve.files(root)
    assert "it has no rules" in STEPS["2"]
    assert "it has no rules" in follow(place, 2).out
    assert evolve.files(root) == before
    (example,) = blocks(2, "yaml")
    (place.folder / "evolve.config.yaml").write_text(example)
    assert "it has no rules" not in follow(place, 2).out
    assert yaml.safe_load(example)["retention"]["rules"] == evolve.RULES


def test_it_looks_shows_and_touches_nothing(place: Place, root: Path) -> None:
    """Up to the person's word every file is as it was; the report has all that is to be relayed."""
    configure(place)
    before = evolve.files(root)
    follow(place, 1)
    follow(place, 2)
    report = follow(place, 3).out
    for item in evolve.expected():
        assert item["id"] in report
        assert item["rule"] in report
    assert "note         8 of 30 have no recorded access" in report
    assert "made from trajectories/trajectory_2025-05-08T00-00-00_sess-02.json" in report
    assert re.search(r"(?m)^  breaker +lets it pass", report)
    told = follow(place, 4, ID="guideline/write-the-newline-last-note-27")
    assert "It is to be flagged, by stale-guidelines" in told.out
    assert evolve.files(root) == before
    assert "**stop**" in STEPS["4"]


def test_on_the_persons_word_it_does_what_it_showed(place: Place, root: Path) -> None:
    """The saved plan is carried out, just as is known to be right, and what was done is on
    record."""
    configure(place)
    before = evolve.files(root)
    follow(place, 3)
    assert follow(place, 5).code == 0
    after = evolve.files(root)
    assert set(before) - set(after) == {
        evolve.file_of(id_) for id_ in evolve.expected_ids("delete")
    }
    changed = {name for name, now in after.items() if before[name] != now}
    assert changed == {evolve.file_of(id_) for id_ in evolve.expected_ids("flag")} | {"audit.log"}
    assert re.search(r"notes +done +9 of 54 +14", follow(place, 6).out)
    # A second time there is no such plan any more.
    assert follow(place, 5).code == 6


def test_an_objection_is_heard(place: Place, root: Path) -> None:
    """The rule that the skill names for an item to keep does keep it."""
    configure(place)
    (pin,) = re.findall(r"`(\{name: pinned.*?\})`", STEPS["4"])
    id_ = "guideline/write-the-newline-last-note-27"
    pin = pin.replace("guideline/use-temp-files", id_)
    file = place.folder / "evolve.config.yaml"
    file.write_text(file.read_text().replace("  rules:\n", f"  rules:\n    - {pin}\n"))
    report = follow(place, 3).out
    assert "13 flagged" in report
    assert not re.search(rf"(?m)^{id_} ", report)
    assert "It stays, by pinned" in follow(place, 4, ID=id_).out
