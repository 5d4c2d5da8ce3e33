"""The pages of the documentation: which there are, and what stands in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import msgspec
from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
REFERENCE = DOCS / "reference"

_MARKDOWN = MarkdownIt("commonmark").enable("table")


class Fence(msgspec.Struct, frozen=True, kw_only=True):
    """A fenced block: what it is written in, what it holds, and on which line it begins."""

    language: str
    text: str
    line: int


def named(page: Path) -> str:
    """What a page is called in messages."""
    return str(page.relative_to(ROOT))


def tokens(page: Path) -> list[Token]:
    """The page, parsed."""
    return _MARKDOWN.parse(page.read_text(encoding="utf-8"))


def fences(page: Path) -> list[Fence]:
    """The fenced blocks of a page, in order."""
    return [
        Fence(language=token.info.strip(), text=token.content, line=(token.map or [0])[0] + 1)
        for token in tokens(page)
        if token.type in ("fence", "code_block")
    ]


def links(page: Path) -> Iterator[str]:
    """Where the links and pictures of a page lead."""
    for token in tokens(page):
        for child in token.children or ():
            if child.type in ("link_open", "image"):
                yield str(child.attrs.get("href") or child.attrs.get("src"))


def headings(page: Path) -> list[str]:
    """The titles in a page, as they are written."""
    found = tokens(page)
    return [
        following.content for token, following in pairwise(found) if token.type == "heading_open"
    ]


def anchors(page: Path) -> set[str]:
    """What can stand behind a `#` to lead to a heading of a page."""
    return {anchor(heading) for heading in headings(page)}


def anchor(heading: str) -> str:
    """The anchor of a heading, as code hosts make it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def sections(page: Path, level: str) -> dict[str, list[Token]]:
    """The parsed content below each heading of one level (`h2`), up to the next."""
    return sections_in(tokens(page), level)


def sections_in(content: list[Token], level: str) -> dict[str, list[Token]]:
    """The same for what is parsed already, such as a section."""
    found: dict[str, list[Token]] = {}
    current: list[Token] = []
    for token, following in pairwise(content):
        if token.type == "heading_open" and token.tag <= level:
            current = []
            if token.tag == level:
                found[following.content] = current
        current.append(token)
    return found


def rows(content: list[Token]) -> list[list[str]]:
    """The rows of the tables in some content, without their heads, as they are written."""
    table: list[list[str]] = []
    for token, following in pairwise(content):
        if token.type == "tr_open":
            table.append([])
        elif token.type == "td_open":
            table[-1].append(following.content)
    return [row for row in table if row]


def plain(text: str) -> str:
    """Text without the marks for code."""
    return text.replace("`", "")


def reference(name: str) -> Path:
    """A page of the reference."""
    return REFERENCE / f"{name}.md"
