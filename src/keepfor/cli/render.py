"""Turns blocks into text: aligned and plain for a file or a pipe, in colour for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal

from keepfor.cli.blocks import Block, Facts, Heading, Line, Table, Tone
from keepfor.escape import visible

if TYPE_CHECKING:
    from rich.console import RenderableType

_STYLES: dict[Tone, str] = {
    "plain": "",
    "strong": "bold",
    "faint": "dim",
    "good": "green",
    "warn": "yellow",
    "bad": "bold red",
    "command": "bold cyan",
}
_GAP = "  "


def plain(blocks: Iterable[Block]) -> str:
    """Blocks as text without colour or boxes, one line for each line however long."""
    return "".join(f"{line.rstrip()}\n" for block in blocks for line in _lines(block))


def rich(blocks: Iterable[Block], unicode: bool) -> str:
    """Blocks as text for the terminal that this process runs in.

    Parameters:
        unicode: whether it shows more than ASCII.
    """
    import io

    from rich.console import Console

    console = Console(file=io.StringIO(), force_terminal=True, highlight=False, emoji=False)
    with console.capture() as capture:
        for block in blocks:
            console.print(_renderable(block, unicode))
    return capture.get()


def _lines(block: Block) -> Iterable[str]:
    match block:
        case Line(text):
            return [visible(text)]
        case Heading(name, facts):
            return [_GAP.join(map(visible, (name, *facts)))]
        case Facts(facts):
            return _aligned([[f"{_GAP}{fact.name}", fact.value] for fact in facts], set())
        case Table(headings, rows):
            numeric = _numeric(headings)
            names = [heading.removeprefix("#") for heading in headings]
            return _aligned([names, *rows], numeric)


def _aligned(rows: Sequence[Sequence[str]], numeric: set[int]) -> list[str]:
    safe = [[visible(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*safe, strict=True)]
    return [
        _GAP.join(
            cell.rjust(width) if index in numeric else cell.ljust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in safe
    ]


def _numeric(headings: Sequence[str]) -> set[int]:
    return {index for index, heading in enumerate(headings) if heading.startswith("#")}


def _renderable(block: Block, unicode: bool) -> RenderableType:
    from rich.text import Text

    match block:
        case Line(text, tone):
            return Text(visible(text), style=_STYLES[tone])
        case Heading(name, facts):
            heading = Text(visible(name), style="bold", overflow="fold")
            for fact in facts:
                heading.append(f"{_GAP}{visible(fact)}", style="not bold dim")
            return heading
        case Facts():
            return _facts(block)
        case Table():
            return _table(block, unicode)


def _facts(block: Facts) -> RenderableType:
    from rich.table import Table as Grid
    from rich.text import Text

    grid = Grid.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for fact in block.facts:
        value = Text(visible(fact.value), style=_STYLES[fact.tone])
        grid.add_row(Text(f"{_GAP}{visible(fact.name)}"), value)
    return grid


def _table(block: Table, unicode: bool) -> RenderableType:
    from rich import box
    from rich.table import Table as Grid
    from rich.text import Text

    grid = Grid(
        box=box.SIMPLE_HEAD if unicode else None,
        show_edge=False,
        pad_edge=False,
        header_style="bold",
    )
    numeric = _numeric(block.headings)
    for index, heading in enumerate(block.headings):
        justify: Literal["left", "right"] = "right" if index in numeric else "left"
        name = Text(visible(heading.removeprefix("#")))
        grid.add_column(name, justify=justify, overflow="fold")
    for row in block.rows:
        grid.add_row(*(Text(visible(cell)) for cell in row))
    return grid
