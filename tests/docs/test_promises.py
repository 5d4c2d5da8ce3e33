"""A promise stands in the documentation with tests that are there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, ROOT, sections

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


def test_no_promise_is_missing() -> None:
    """The twelve promises are there, in order."""
    assert [int(title.split(".")[0]) for title in PROMISES] == list(range(1, 13))
