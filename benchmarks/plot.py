"""Draws a few lines on logarithmic axes as SVG, so that a page can show what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from math import ceil, floor, log10

import msgspec

WIDTH, HEIGHT = 760, 440
LEFT, RIGHT, TOP, BOTTOM = 70, 250, 50, 60


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a plot.

    Parameters:
        name: what the legend calls it.
        points: x and y, both above zero.
        colour: as CSS has it.
        dashed: whether it is.
    """

    name: str
    points: list[tuple[float, float]]
    colour: str
    dashed: bool = False


def draw(title: str, across: str, up: str, lines: Sequence[Line]) -> str:
    """The plot.

    Parameters:
        title: of the picture.
        across: what the x axis counts.
        up: what the y axis counts.
        lines: what to draw.
    """
    points = [point for line in lines for point in line.points]
    x = _Axis([point[0] for point in points], LEFT, WIDTH - RIGHT)
    y = _Axis([point[1] for point in points], HEIGHT - BOTTOM, TOP)
    size = f'viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{escape(title)}">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        _text(LEFT, 24, title, size=14),
    ]
    for tick in x.ticks:
        at = x.place(tick)
        parts.append(_rule(at, TOP, at, HEIGHT - BOTTOM))
        parts.append(_text(at, HEIGHT - BOTTOM + 18, f"{tick:,.0f}", anchor="middle"))
    for tick in y.ticks:
        at = y.place(tick)
        parts.append(_rule(LEFT, at, WIDTH - RIGHT, at))
        parts.append(_text(LEFT - 8, at + 4, f"{tick:g} {up}", anchor="end"))
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 16, across, anchor="middle"))
    for number, line in enumerate(lines):
        parts += _line(line, x, y, TOP + 16 + 22 * number)
    return "\n".join([*parts, "</svg>", ""])


class _Axis:
    """Places values between two ends, by their logarithms."""

    def __init__(self, values: list[float], start: float, end: float) -> None:
        self._low, self._high = floor(log10(min(values))), ceil(log10(max(values)))
        self._start, self._end = start, end
        self.ticks = [10.0**power for power in range(self._low, self._high + 1)]

    def place(self, value: float) -> float:
        share = (log10(value) - self._low) / (self._high - self._low)
        return round(self._start + share * (self._end - self._start), 1)


def _line(line: Line, x: _Axis, y: _Axis, legend: float) -> list[str]:
    dash = ' stroke-dasharray="6 4"' if line.dashed else ""
    style = f'fill="none" stroke="{line.colour}" stroke-width="2"{dash}'
    places = [(x.place(across), y.place(up)) for across, up in line.points]
    path = " ".join(f"{across},{up}" for across, up in places)
    key = WIDTH - RIGHT + 16
    return [
        f'<polyline points="{path}" {style}/>',
        *(f'<circle cx="{a}" cy="{u}" r="3" fill="{line.colour}"/>' for a, u in places),
        f'<line x1="{key}" y1="{legend}" x2="{key + 28}" y2="{legend}" {style}/>',
        _text(key + 36, legend + 4, line.name),
    ]


def _rule(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="#dddddd"/>'


def _text(x: float, y: float, text: str, anchor: str = "start", size: int = 12) -> str:
    place = f'x="{x}" y="{y}" text-anchor="{anchor}" font-size="{size}" fill="#333333"'
    return f"<text {place}>{escape(text)}</text>"
