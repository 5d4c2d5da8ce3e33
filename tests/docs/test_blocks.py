"""Every block of every page does what the page says: run, loaded or, for a named few, parsed."""

from __future__ import annotations

import configparser
import os
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
import yaml
from sybil.example import SybilFailure

from keepfor.cli.app import parse
from tests.docs.pages import (
    DOCS,
    PAGES,
    ROOT,
    Fence,
    fences,
    named,
    reference,
    rows,
    sections,
)
from tests.docs.sandbox import Sandbox, matches, refused, steps, words

RUN = {"console", "json", "jsonl", "python", "yaml"}


def understood(command: str) -> None:
    """Hold a command that cannot run here to being one that keepfor understands."""
    program, *arguments = words(command)[0]
    assert Path(program).name == "keepfor"
    assert callable(parse(arguments))


def crontab(text: str) -> None:
    """Lines of a crontab: five fields, and a command that keepfor knows."""
    for line in text.splitlines():
        match = re.fullmatch(r"(?:[\d*/,-]+ ){5}(.*)", line)
        assert match, line
        command = match[1].removeprefix("out=$(").partition(")")[0]
        understood(command.partition(" 2>> ")[0])


def units(text: str) -> None:
    """Units of systemd: sections with settings."""
    parser = configparser.ConfigParser(interpolation=None, strict=True)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(text)
    assert parser.sections()
    if parser.has_option("Service", "ExecStart"):
        understood(parser["Service"]["ExecStart"])


def image(text: str) -> None:
    """Lines of a Dockerfile: what it runs, as a list of words that keepfor knows."""
    for line in text.splitlines():
        instruction, words = line.split(" ", 1)
        assert instruction == "CMD"
        understood(shlex.join(msgspec.json.decode(words, type=list[str])))


def container(text: str) -> None:
    """A container that is started, with each of its volumes at an absolute path of its own."""
    assert shlex.split(text)[:2] == ["docker", "run"]
    volumes = re.findall(r"-v (\S+)", text)
    places = [volume.split(":")[1] for volume in volumes]
    assert all(map(os.path.isabs, places))
    assert len(set(places)) == len(places) == 3


def alerts(text: str) -> None:
    """Rules for Prometheus, of series that there are."""
    series = {row[0] for row in rows(sections(reference("metrics"), "h2")["Series"])}
    for group in yaml.safe_load(text)["groups"]:
        for rule in group["rules"]:
            named = re.findall(r"keepfor_\w+", rule["expr"])
            assert named
            assert {f"`{name}`" for name in named} <= series


def clone(text: str) -> None:
    """What is done once in a clone: targets of the Makefile, and the installation of the clone."""
    targets = re.findall(r"(?m)^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"))
    for step in steps(text):
        call = shlex.split(step.command, comments=True)
        assert (call[0] == "make" and call[1] in targets) or call == ["pip", "install", "."], call


def server(text: str) -> None:
    """Commands that run until they are ended, and that keepfor knows."""
    for line in text.splitlines():
        understood(line)


def shape(text: str) -> None:
    """A drawing; the page's own test compares it with the code."""
    assert text.strip()


#: The blocks that cannot run here, by page and language, with the reason and what parses them.
NOT_RUN: dict[tuple[str, str], tuple[str, Callable[[str], None]]] = {
    ("README.md", "sh"): ("sets up a whole environment", clone),
    ("docs/tutorial/first-ledger.md", "sh"): ("installs into an environment", clone),
    ("docs/architecture.md", "text"): ("is the tree of the sources", shape),
    ("docs/how-to/hold-a-ledger-from-cron.md", "cron"): ("needs a cron daemon", crontab),
    ("docs/how-to/hold-a-ledger-from-cron.md", "ini"): ("needs systemd", units),
    ("docs/how-to/check-health.md", "cron"): ("needs a cron daemon", crontab),
    ("docs/how-to/run-in-the-background.md", "cron"): ("needs a cron daemon", crontab),
    ("docs/how-to/run-in-the-background.md", "ini"): ("needs systemd", units),
    ("docs/how-to/run-in-the-background.md", "dockerfile"): ("needs Docker", image),
    ("docs/how-to/run-in-the-background.md", "sh"): ("needs Docker", container),
    ("docs/how-to/see-it-in-a-browser.md", "sh"): ("runs until it is ended", server),
    ("docs/reference/metrics.md", "yml"): ("is for Prometheus", alerts),
    ("docs/how-to/bound-a-directory-of-runs.md", "cron"): ("needs a cron daemon", crontab),
}


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_what_a_page_shows_is_what_happens(page: Path, sandbox: Sandbox) -> None:
    """A reader who does what a page says, from its first block to its last, sees what it shows."""
    for example in sandbox.sybil().parse(page).examples():
        try:
            example.evaluate()
        except SybilFailure as failure:
            pytest.fail(f"{named(page)}:{example.line}: {failure.result}", pytrace=False)
        except Exception as error:
            error.add_note(f"{named(page)}:{example.line}")
            raise


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_no_block_goes_unread(page: Path, sandbox: Sandbox) -> None:
    """A block is of a language that is run, or on the list of those that cannot be, and parses."""
    found = fences(page)
    for fence in found:
        if fence.language not in RUN:
            _, parse = NOT_RUN[named(page), fence.language]
            parse(fence.text)
    run = {(example.line, str(example.parsed)) for example in sandbox.sybil().parse(page)}
    whole = [fence for fence in found if fence.language in RUN and ">>> " not in fence.text]
    assert [fence for fence in whole if (fence.line, fence.text) not in run] == []


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_a_saved_script_is_run(page: Path) -> None:
    """A block that names its file is run by a later block of its page."""
    found = fences(page)
    for index, fence in enumerate(found):
        if script := re.match(r"# (\w+\.py)\n", fence.text):
            assert any(script[1] in later.text for later in found[index + 1 :]), script[1]


def test_the_list_of_what_cannot_run_has_nothing_to_spare() -> None:
    """Each entry of the list is needed by a page."""
    found = {(named(page), fence.language) for page in PAGES for fence in fences(page)}
    assert set(NOT_RUN) <= found


def test_a_wrong_output_is_noticed(sandbox: Sandbox) -> None:
    """A page whose output is off by one character fails."""
    assert problem(sandbox, "```console\n$ echo kept 360\nkept 361\n```\n")
    assert problem(sandbox, "```console\n$ echo kept 360\nkept 360\n```\n") is None


def test_a_failure_that_a_page_does_not_own_up_to_is_noticed(sandbox: Sandbox) -> None:
    """A command that fails fails its page, unless the page shows its exit code."""
    assert problem(sandbox, "```console\n$ ls nowhere\n…\n```\n")
    sandbox.status = 0
    assert problem(sandbox, "```console\n$ ls nowhere\n…\n$ echo $?\n2\n```\n") is None


def test_wrong_python_and_wrong_settings_are_noticed(sandbox: Sandbox) -> None:
    """A page with a false assertion, a false output or an unknown key fails."""
    assert problem(sandbox, "```python\n>>> 1 + 1\n3\n```\n")
    assert problem(sandbox, "```yaml\nstores: {a: {kind: ledger, path: x, keep_fro: 9d}}\n```\n")
    with pytest.raises(AssertionError):
        problem(sandbox, "```python\nassert 1 + 1 == 3\n```\n")


@pytest.mark.parametrize(
    "command",
    ["rm -r .", "keepfor plan --config /etc/x", "cat ../x", "ls; curl x", "echo x > /tmp/x"],
)
def test_a_command_stays_in_the_sandbox(command: str) -> None:
    """A page cannot run an unknown program, or name a place outside."""
    assert refused(command)


def test_no_python_writes_outside_the_sandbox(tmp_path: Path, sandbox: Sandbox) -> None:
    """A write outside the sandbox fails, in the test's process and in those that it starts."""
    outside = tmp_path / "outside"
    with pytest.raises(PermissionError, match="outside the sandbox"):
        outside.touch()
    with pytest.raises(PermissionError, match="outside the sandbox"):
        outside.mkdir()
    script = f"open({str(outside)!r}, 'w')"
    done = problem(sandbox, f'```console\n$ python -c "{script}"\n```\n')
    assert "outside the sandbox" in (done or "")
    assert not outside.exists()


def test_dots_stand_for_anything_on_their_line_only() -> None:
    """`…` in a line matches within it; `…` by itself matches any lines."""
    assert matches("took … s", "took 0.1 s")
    assert not matches("took … s", "took\nlong s")
    assert matches("first\n…\nlast", "first\n2\n3\nlast")
    assert matches("a  b", "a    b")


def test_every_page_can_be_found() -> None:
    """The documentation has its four parts, a way in, and the picture of the house."""
    for part in ("tutorial", "how-to", "reference", "explanation"):
        assert list((DOCS / part).glob("*.md"))
    assert (DOCS / "index.md").is_file()
    assert (DOCS / "architecture.md").is_file()


def problem(sandbox: Sandbox, text: str) -> str | None:
    """What a page of this text is told."""
    page = sandbox.home / "page.md"
    page.write_text(text, encoding="utf-8")
    for example in sandbox.sybil().parse(page).examples():
        try:
            example.evaluate()
        except SybilFailure as failure:
            return str(failure.result)
    return None


def test_a_fence_is_found_by_both_readers(sandbox: Sandbox) -> None:
    """What finds blocks to run and what finds blocks to list see the same ones."""
    page = sandbox.home / "page.md"
    page.write_text("Text.\n\n```python\nx = 1\n```\n", encoding="utf-8")
    assert fences(page) == [Fence(language="python", text="x = 1\n", line=3)]
    assert [example.line for example in sandbox.sybil().parse(page)] == [3]
