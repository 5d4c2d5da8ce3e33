"""Runs the blocks of a page, in order, in a home folder of its own on a day that stands still."""

from __future__ import annotations

import doctest
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
from sybil import Document, Example, Region, Sybil
from sybil.parsers.markdown import CodeBlockParser, PythonCodeBlockParser

from keepfor import config
from keepfor.errors import ConfigError
from tests.docs.pages import ROOT

#: The day on which all pages were written. Ninety days before it is 2026-04-27.
TODAY = "2026-07-26T00:00:00+00:00"
#: What the pages call their reader's home folder.
HOME_SHOWN = "/home/ada"

#: The programs that a console block may run besides keepfor, none of which looks around by itself.
PROGRAMS = {"cat", "cp", "echo", "grep", "head", "ls", "mkdir", "printf", "python", "tail", "wc"}

_CHILD = Path(__file__).with_name("child")
_ASSIGNMENT = re.compile(r"\w+=")


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """A command of a console block, and what it is said to print."""

    command: str
    expected: str


class Sandbox:
    """A home folder to run a page in.

    Parameters:
        root: an empty folder; nothing outside it can be written by Python.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.home = root / "home"
        self.status = 0
        for folder in (self.home, root / "tmp"):
            folder.mkdir()

    def environment(self) -> dict[str, str]:
        """What a process sees; nothing of ours, and that is also why no coverage is measured."""
        return {
            "COLUMNS": "100",
            "DOCS_SANDBOX": str(self.root),
            "DOCS_TODAY": TODAY,
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONPATH": f"{_CHILD}:{ROOT}",
            "TMPDIR": str(self.root / "tmp"),
            "TZ": "UTC",
        }

    def sybil(self) -> Sybil:
        """What finds the blocks of a page and runs them here."""
        languages = {
            "console": self.console,
            "json": parse_json,
            "jsonl": parse_rows,
            "yaml": self.yaml,
        }
        return Sybil(
            [self._python, *(CodeBlockParser(name, run) for name, run in languages.items())]
        )

    def console(self, example: Example) -> str | None:
        """Run the commands of a block, and compare what they print."""
        for step in steps(example.parsed):
            if self.status and "$?" not in step.command:
                return f"a command ended with {self.status} before {step.command!r}: show `echo $?`"
            if problem := refused(step.command) or self._run(step):
                return problem
        if self.status:
            return f"the last command ended with {self.status}: show `echo $?`"
        return None

    def yaml(self, example: Example) -> str | None:
        """Save a configuration as `keepfor.yaml`, and load it."""
        file = Path.cwd() / config.NAME
        file.write_text(example.parsed, encoding="utf-8")
        try:
            config.load(file)
        except ConfigError as error:
            return f"keepfor refuses this: {error}"
        return None

    def _python(self, document: Document) -> Iterator[Region]:
        flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        for region in PythonCodeBlockParser(doctest_optionflags=flags)(document):
            if re.match(r"# \w+\.py\n", str(region.parsed)):
                region.evaluator = save_script
            yield region

    def _run(self, step: Step) -> str | None:
        done = subprocess.run(
            ["/bin/sh", "-c", f"(exit {self.status}); {step.command}"],
            capture_output=True,
            check=False,
            stdin=subprocess.DEVNULL,
            env=self.environment(),
            text=True,
            timeout=60,
        )
        self.status = done.returncode
        output = (done.stdout + done.stderr).replace(str(self.home), HOME_SHOWN)
        return difference(step, output)


def steps(block: str) -> list[Step]:
    """The commands of a console block."""
    found: list[tuple[str, list[str]]] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif found and found[-1][0].endswith("\\"):
            found[-1] = (f"{found[-1][0]}\n{line}", [])
        elif found:
            found[-1][1].append(line)
        else:
            raise ValueError(f"a console block begins with a command, not with {line!r}")
    return [Step(command=command, expected="\n".join(lines)) for command, lines in found]


def words(command: str) -> list[list[str]]:
    """The words of each program call in a command line, without variables set for it."""
    lexer = shlex.shlex(command.replace("\\\n", " "), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    calls: list[list[str]] = [[]]
    for word in lexer:
        if word in ("|", "&&", "||", ";"):
            calls.append([])
        elif calls[-1] or not _ASSIGNMENT.match(word):
            calls[-1].append(word)
    return calls


def refused(command: str) -> str | None:
    """Why a command may not run in the sandbox, if so."""
    for call in words(command):
        if call[0] not in PROGRAMS | {"keepfor"}:
            return f"{call[0]} is not among the programs that a page may run"
        if any(word.startswith("/") or ".." in word.split("/") for word in call):
            return f"{command!r} reaches out of the sandbox"
    return None


def difference(step: Step, output: str) -> str | None:
    """How the output differs from what the page says; `…` stands for anything."""
    if matches(step.expected, output):
        return None
    return (
        f"$ {step.command}\nshould print:\n{step.expected}\nand prints:\n{output}"
        "\n(… stands for anything; by itself on a line, for any lines)"
    )


def matches(expected: str, output: str) -> bool:
    """Whether an output is the expected one, spacing within a line aside."""
    pattern = ""
    for line in _spaced(expected).split("\n"):
        text = re.escape(line).replace("…", ".*?")
        pattern += r"(?s:.*\n)??" if line == "…" else f"{text}\n"
    return re.fullmatch(pattern, f"{_spaced(output)}\n") is not None


def _spaced(text: str) -> str:
    lines = (re.sub(r" {2,}", " ", line.rstrip()) for line in text.strip("\n").splitlines())
    return "\n".join(lines)


def save_script(example: Example) -> None:
    """Save a block whose first line names a file, to be run by a later block."""
    name = example.parsed.splitlines()[0].removeprefix("# ")
    Path(name).write_text(example.parsed, encoding="utf-8")


def parse_json(example: Example) -> str | None:
    """Hold a block to being JSON."""
    return _parsed([str(example.parsed)])


def parse_rows(example: Example) -> str | None:
    """Hold each line of a block to being JSON."""
    return _parsed(example.parsed.splitlines())


def _parsed(texts: list[str]) -> str | None:
    try:
        for text in texts:
            msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        return f"this is not JSON: {error}"
    return None
