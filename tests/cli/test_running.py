"""Whatever goes wrong ends in one message, the right exit code, and a document if one was asked."""

from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from keepfor.cli import codes, main
from tests.cli.conftest import Place

VERBS = ["plan", "apply", "status", "check", "trace", "count", "log", "demo", "config"]


def test_the_codes_are_the_promised_ones(place: Place) -> None:
    """`--help` lists each exit code with its meaning."""
    ran = place.run("--help")
    assert ran.code == 0
    found = dict(re.findall(r"^    (\d)  (.*)$", ran.out, re.MULTILINE))
    assert list(found) == list("01234567")
    assert found["0"] == "done, or nothing to do"
    assert found["3"].startswith("partly done")
    assert "lags" in found["4"]
    assert "breaker" in found["5"]
    assert "spent or stale" in found["6"]
    assert found["7"] == "not confirmed"


@pytest.mark.parametrize(
    ("several", "one"),
    [([], 0), ([0, 0], 0), ([0, 7], 7), ([5, 1, 0], 1), ([4, 2], 2), ([6, 3, 5], 3), ([5, 4], 4)],
)
def test_of_several_codes_the_lowest_but_zero_counts(several: list[int], one: int) -> None:
    """The documented order: 1 is the gravest, and 0 only where nothing else is."""
    assert codes.gravest(several) == one


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_its_help(place: Place, verb: str) -> None:
    """Help is shown without a configuration, plainly, and is no failure."""
    (place.folder / "keepfor.yaml").unlink()
    ran = place.run(verb, "--help")
    assert ran.code == 0
    assert ran.out.startswith(f"Usage: keepfor {verb}")
    assert ran.out.isascii()
    assert verb in place.run("-h").out


@pytest.mark.parametrize("verb", [*VERBS[:-1], "config show", "config schema", "config init"])
def test_every_verb_can_speak_to_programs(place: Place, verb: str) -> None:
    """`--json` is an option of every verb."""
    assert "--json" in place.run(*verb.split(), "--help").out


def test_the_version_is_shown(place: Place) -> None:
    """`--version` names program and version."""
    from keepfor import __version__

    ran = place.run("--version")
    assert (ran.code, ran.out) == (0, f"keepfor {__version__}\n")


def test_a_line_without_a_verb_is_no_success(place: Place) -> None:
    """To ask for nothing shows the help, and 2, which a crontab notices."""
    ran = place.run()
    assert ran.code == 2
    assert ran.out.startswith("Usage: keepfor")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["plna"], "Did you mean 'plan'?"),
        (["plan", "--nwo"], "--nwo"),
        (["config"], "keepfor config --help"),
        (["trace", "recall"], "SLUG"),
    ],
)
def test_a_wrong_command_line_is_explained(place: Place, words: list[str], said: str) -> None:
    """A typo is 2, one message on stderr, and a way on."""
    ran = place.run(*words)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err
    assert "--help'." in ran.err
    assert ran.err.startswith("keepfor: ")


def test_a_wrong_command_line_is_a_document_too(place: Place) -> None:
    """A program that asked for JSON gets it, even where its line could not be parsed."""
    ran = place.run("plan", "--json", "--nwo")
    assert ran.code == 2
    assert ran.json["exit_code"] == 2
    assert ran.json["error"]["type"] == "UsageError"
    assert "--nwo" in ran.json["error"]["message"]


def test_a_system_error_is_explained(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the system says of a file names the file and what to do, without a traceback."""

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/full/plan.json")

    place.write([1])
    monkeypatch.setattr("keepfor.plan.save", full)
    ran = place.run("plan", "-o", "plan.json")
    assert ran.code == 1
    assert "keepfor: /full/plan.json: No space left on device. Free some space" in ran.err
    assert "Traceback" not in ran.err
    assert place.run("plan", "-o", "plan.json", "--json").json["error"]["type"] == "OSError"


def test_a_system_error_without_a_file_is_explained(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error that names no file is said all the same."""

    def broken(*_: object) -> None:
        raise OSError("something odd")

    place.write([1])
    monkeypatch.setattr("keepfor.plan.save", broken)
    assert place.run("plan", "-o", "plan.json").err.endswith("keepfor: something odd.\n")


def test_ctrl_c_is_130(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interruption is said in a word, and has the code that shells expect."""

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("keepfor.plan.build", interrupted)
    ran = place.run("plan")
    assert ran.code == 130
    assert "Interrupted." in ran.err
    assert "Traceback" not in ran.err
    assert place.run("plan", "--json").json["exit_code"] == 130


@pytest.mark.parametrize("late", ["keepfor.cli.app.parse", "keepfor.cli.running.run"])
def test_ctrl_c_before_a_verb_begins_is_130_too(
    late: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Most of a short run is spent loading modules; an interruption there shows no traceback."""

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(late, interrupted)
    with pytest.raises(SystemExit) as left:
        main(["plan"])
    assert left.value.code == 130
    assert "Traceback" not in capsys.readouterr().err


def test_a_mistake_of_ours_is_not_hidden(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """What nobody foresaw keeps its traceback, which a report of it needs."""

    def wrong(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("keepfor.plan.build", wrong)
    with pytest.raises(ZeroDivisionError):
        main(["plan"])
    monkeypatch.setattr("keepfor.cli.app.app", wrong)
    with pytest.raises(ZeroDivisionError):
        main(["plan"])


def test_the_arguments_of_the_process_are_the_default(
    place: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The console script passes nothing; what was typed is taken."""
    monkeypatch.setattr(sys, "argv", ["keepfor", "--version"])
    with pytest.raises(SystemExit, match=r"^0$"):
        main()
    assert capsys.readouterr().out.startswith("keepfor ")


@pytest.mark.parametrize(
    "command", [[sys.executable, "-m", "keepfor"], [str(Path(sys.executable).parent / "keepfor")]]
)
def test_it_runs_as_a_program(place: Place, command: list[str]) -> None:
    """As a module and as a console script the sample has its known figures."""
    place.sample()
    done = subprocess.run(
        [*command, "plan", "--now", "2026-07-26"], cwd=place.folder, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "151 of 600 rows would go." in done.stdout
    assert "\x1b" not in done.stdout


def test_help_imports_nothing_that_it_does_not_need(place: Place) -> None:
    """`keepfor --help` loads neither the configuration's nor the engine's libraries."""
    code = (
        "import sys; before = set(sys.modules); "
        "from keepfor.cli.running import run; run(['--help']); "
        "print(sorted((set(sys.modules) - before) & "
        "{'pydantic', 'yaml', 'rich', 'msgspec', 'json', 'keepfor.plan', 'keepfor.config'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]"
