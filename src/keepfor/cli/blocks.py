"""What a verb shows to people, before it is known on what."""

from __future__ import annotations

from typing import Literal

import msgspec

#: What a piece of text means; a terminal gives each a colour.
Tone = Literal["plain", "strong", "faint", "good", "warn", "bad", "command"]


class Line(msgspec.Struct, frozen=True):
    """A sentence or two."""

    text: str = ""
    tone: Tone = "plain"


class Heading(msgspec.Struct, frozen=True):
    """What the blocks after it are about.

    Parameters:
        name: the store's.
        facts: what else tells it apart.
    """

    name: str
    facts: tuple[str, ...] = ()


class Fact(msgspec.Struct, frozen=True):
    """A name and what it stands at."""

    name: str
    value: str
    tone: Tone = "plain"


class Facts(msgspec.Struct, frozen=True):
    """Facts, one a line."""

    facts: list[Fact]


class Table(msgspec.Struct, frozen=True):
    """Rows under headings; columns of which the heading begins with `#` hold numbers."""

    headings: list[str]
    rows: list[list[str]]


Block = Line | Heading | Facts | Table
