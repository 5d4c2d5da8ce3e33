"""A promise stands in the documentation with tests that are there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, ROOT, rows, sections, tokens

PAGE = DOCS / "explanation" / "promises.md"
PROMISES = {
    title: re.findall(r"`(\S+\.py)::([\w:]+)`", " ".join(token.content for token in content))
    for title, content in sections(PAGE, "h2").items()
}


@pytest.mark.parametrize("title", PROMISES)
def test_every_promise_is_held_by_tests_that_are_there(title: str) -> None:
    """Each promise names tests, and each of them is a test of that file."""
    assert PROMISES[title], "no test holds this promise"
    for path, name in PROMISES[title]:
        assert name in defined(ROOT / path), f"{path} has no {name}"


def defined(path: Path) -> set[str]:
    """The tests in a file, those in a class by its name."""
    tree = ast.parse(path.read_bytes())
    found = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    for kind in tree.body:
        if isinstance(kind, ast.ClassDef):
            methods = (node for node in kind.body if isinstance(node, ast.FunctionDef))
            found |= {f"{kind.name}::{method.name}" for method in methods}
    return {name for name in found if "test_" in name}


#: What says in a test's file which kind of store it is about; the rest are about ledgers, or about
#: no kind alone.
KINDS = {
    "runs": ("runs", "removal"),
    "table": ("/sql/", "table"),
    "entities": ("entities", "frontmatter"),
}
ALL = ("ledger", "runs", "table", "entities")
#: Which kinds pass the suites, by the name of each.
SUITES = {
    "StoreSuite": set(ALL),
    "RowStoreSuite": {"ledger", "table"},
    "ItemStoreSuite": {"runs", "entities"},
}


def about(path: str, name: str) -> set[str]:
    """The kinds of store that a test is about."""
    if path.endswith("testing/suite.py"):
        return SUITES[name.partition("::")[0]]
    found = {kind for kind, marks in KINDS.items() if any(mark in path for mark in marks)}
    return found or {"ledger"}


@pytest.mark.parametrize("row", rows(tokens(PAGE)), ids=lambda row: row[0])
def test_a_promise_is_held_for_each_kind_that_it_concerns(row: list[str]) -> None:
    """The table at the top says of which kinds a promise holds; a test of that kind is named."""
    title, *said = row
    named = set().union(*(about(path, name) for path, name in PROMISES[title]))
    concerned = [kind for kind, yes in zip(ALL, said, strict=True) if yes == "yes"]
    assert [kind for kind in concerned if kind not in named] == []


def test_the_table_has_every_promise() -> None:
    """Each promise has its line at the top, and each line its promise."""
    assert [row[0] for row in rows(tokens(PAGE))] == list(PROMISES)


def test_no_promise_is_missing() -> None:
    """The fifteen promises are there, in order."""
    assert [int(title.split(".")[0]) for title in PROMISES] == list(range(1, 16))
