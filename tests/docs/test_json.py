"""What the reference says of `--json` is what each verb prints."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from keepfor import RecallLedger, RunDirectory
from keepfor.cli.running import run
from tests import caesar, evolve
from tests.docs.pages import plain, reference, rows, sections
from tests.docs.sandbox import Sandbox

TODAY = datetime(2026, 7, 26, tzinfo=UTC)

#: The command lines whose documents, taken together, show every field of a verb.
COMMANDS = {
    "keepfor plan": [
        "plan -o saved.json recall",
        "plan broken",
        "plan rem",
        "plan audit",
        "plan notes",
        "plan notes --policy trapped.yaml",
    ],
    "keepfor apply": [
        "plan -o saved.json rem",
        "apply saved.json",
        "apply broken --yes",
        "apply audit --yes",
    ],
    "keepfor run": ["run --once"],
    "keepfor status": ["status recall", "run --once", "status"],
    "keepfor check": ["check recall", "check broken"],
    "keepfor forecast": ["forecast"],
    "keepfor diff": ["diff keepfor.yaml shorter.yaml"],
    "keepfor why": ["apply notes --yes", "why notes guideline/close-sqlite-connections-note-5"],
    "keepfor explain": ["explain notes guideline/write-the-newline-last-note-7"],
    "keepfor access": ["access notes guideline/write-the-newline-last-note-7"],
    "keepfor trace": ["trace recall naming"],
    "keepfor count": ["count recall --since 7d"],
    "keepfor recent": ["recent rem"],
    "keepfor reclaim": ["reclaim audit wreck"],
    "keepfor log": ["apply recall --yes", "log"],
    "keepfor config show": ["config show"],
    "keepfor config schema": ["config schema"],
    "keepfor config init": ["config init --config another.yaml"],
    "keepfor demo": ["demo"],
}
#: Documents within documents, which their own sections describe.
WITHIN = (
    "schema.",
    "steps[].document.",
    "stores[].items[].evidence.",
    "stores[].spared[].evidence.",
    "decision.evidence.",
    "rules[].evidence.",
    "stores[].dependents.",
    "stores[].orphans.",
    "runs[].",
)


def fields(document: Any, path: str = "") -> Iterator[str]:
    """The paths of what a document holds: `stores[].breaker.limit`."""
    if isinstance(document, list):
        for item in document:
            yield from fields(item, f"{path}[]")
    elif isinstance(document, dict):
        for key, value in document.items():
            here = f"{path}.{key}" if path else key
            yield here
            yield from fields(value, here)


@pytest.fixture
def stores(sandbox: Sandbox) -> Path:
    """A configuration of a store with something of everything, and of one that cannot be read."""
    folder = sandbox.home
    history = RecallLedger("recall-history.jsonl", keep_for="forever")
    for days in range(120, 0, -1):
        hits = [{"slug": "naming", "path": "notes/naming.md", "sim": 0.82}]
        history.record("?", ["naming"], hits, now=TODAY - timedelta(days=days))
    # What a prune leaves while a writer holds the old file open.
    (folder / ".recall-history.jsonl.keepfor-old.1.0").write_text("")
    (folder / "a-folder").mkdir()
    for name in ("first", "second"):
        RunDirectory("rem-runs").append(name, {"runId": name})
    for path in (folder / "rem-runs").iterdir():
        os.utime(path, (0, 0))
    caesar.rebuild(folder)
    (folder / "wreck.sqlite3").write_text("no database" * 99)
    (folder / "keepfor.yaml").write_text(
        "stores:\n"
        "  recall: {kind: ledger, path: recall-history.jsonl, keep_for: 90d}\n"
        "  broken: {kind: ledger, path: a-folder, keep_for: 90d}\n"
        "  rem: {kind: runs, path: rem-runs, max_count: 1}\n"
        "  audit: {preset: caesar}\n"
        "  wreck: {preset: caesar, url: 'sqlite:///wreck.sqlite3'}\n"
        "  notes: {preset: evolve-lite}\n"
    )
    evolve.rebuild(folder)
    (folder / "shorter.yaml").write_text(
        "stores:\n"
        "  recall: {kind: ledger, path: recall-history.jsonl, keep_for: 30d, max_bytes: 9KiB}\n"
        "  broken: {kind: ledger, path: a-folder, keep_for: 30d}\n"
    )
    (folder / "trapped.yaml").write_text(
        "rules:\n  - {name: stale, max_age: 90d}\n  - {name: never, max_age: 180d}\n"
    )
    return folder


def documents(commands: list[str], capsys: pytest.CaptureFixture[str]) -> Iterator[Any]:
    """What these command lines print."""
    for command in commands:
        run([*command.split(), "--json"])
        yield json.loads(capsys.readouterr().out)


def listed(section: str) -> dict[str, str]:
    """The fields that a section of the reference lists, with their meanings."""
    content = sections(reference("json"), "h2")[section]
    return {
        field: meaning for names, meaning in rows(content) for field in plain(names).split(", ")
    }


@pytest.mark.parametrize("verb", COMMANDS)
def test_every_field_that_a_verb_prints_is_in_the_reference(
    verb: str, stores: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each field of a verb's document is listed for it or for every document, and no other is."""
    printed = {
        field
        for document in documents(COMMANDS[verb], capsys)
        if f"keepfor {document.get('verb')}" == verb
        for field in fields(document)
        if not field.startswith(WITHIN)
    }
    assert printed == {*listed("Every document"), *listed(f"`{verb}`")}


def test_the_document_of_a_failure_is_in_the_reference(
    stores: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is printed when a verb cannot answer at all has the fields that the reference lists."""
    (document,) = documents(["plan nowhere"], capsys)
    assert set(fields(document)) == set(listed("When a verb cannot answer"))


def test_every_verb_has_a_section() -> None:
    """The reference tells the document of each verb that there is; `mcp` and `serve` have none."""
    shown = set(sections(reference("command-line"), "h2"))
    without = {"`keepfor`", "`keepfor config`", "`keepfor mcp`", "`keepfor serve`"}
    assert {f"`{verb}`" for verb in COMMANDS} == shown - without
