"""Draws charts as SVG, from numbers alone.

Places are written in percent, and not by a `viewBox`: so a chart fills whatever width there is,
while its words keep their size. Colours come from the style sheet, by class, for pages let no
style in that stands within them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec
from markupsafe import Markup, escape

from keepfor.stores.daily import Daily
from keepfor.wording import number, rows, size

#: A cutoff further off than this many times the oldest is told in words, or it would leave no room.
_FAR = 4
#: Where the plot ends, in percent of the height; below stand the words.
_FOOT, _SMALL_FOOT = 87.0, 78.0
#: The least height of a bar, so that one row in a crowd is still seen.
_LEAST = 2.0


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """An age that a policy names.

    Parameters:
        age: in days.
        label: what is written beside its line.
        short: the same where there is little room.
        deletes: whether what is older goes; otherwise it is flagged.
    """

    age: float
    label: str
    short: str
    deletes: bool = True


class Bar(msgspec.Struct, frozen=True, kw_only=True):
    """What is of some days of age.

    Parameters:
        youngest: the first of those days, in whole days.
        days: how many days they are.
        kept: how many stay.
        taken: how many would go, or be flagged.
        bytes: what all of them hold.
    """

    youngest: int
    days: int
    kept: int
    taken: int
    bytes: int

    @property
    def count(self) -> int:
        """How many there are."""
        return self.kept + self.taken

    @property
    def label(self) -> str:
        """Which days they are."""
        last = self.youngest + self.days - 1
        if last == self.youngest:
            return f"{self.youngest} days old" if self.youngest != 1 else "1 day old"
        return f"{self.youngest} to {last} days old"


class _Frame(msgspec.Struct, frozen=True, kw_only=True):
    """What a histogram is drawn into.

    Parameters:
        width: how many days it shows.
        highest: how many the highest bar stands for.
        head: how much is left free above it, in percent.
        foot: where the bars stand, in percent from the top.
    """

    width: float
    highest: int
    head: float
    foot: float

    def x(self, age: float) -> float:
        """Where an age is, in percent from the left."""
        return (1 - age / self.width) * 100


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """How much there is at some time.

    Parameters:
        day: in days from now; below zero is the past.
        value: in bytes, or a count.
    """

    day: float
    value: float


def bars(kept: Iterable[Daily], taken: Iterable[Daily], most: int = 120) -> list[Bar]:
    """What a store holds by age, in no more than so many bars; the oldest first.

    Parameters:
        kept: what stays.
        taken: what would go.
        most: how many bars at the most; days are put together until they fit.
    """
    stays, goes = _together(kept), _together(taken)
    oldest = max((*stays, *goes), default=-1)
    step = max(1, -(-(oldest + 1) // most))
    found = []
    for youngest in range(oldest // step * step if oldest >= 0 else -1, -1, -step):
        held = [stays.get(day, (0, 0)) for day in range(youngest, youngest + step)]
        going = [goes.get(day, (0, 0)) for day in range(youngest, youngest + step)]
        found.append(
            Bar(
                youngest=youngest,
                days=step,
                kept=sum(count for count, _ in held),
                taken=sum(count for count, _ in going),
                bytes=sum(amount for _, amount in held + going),
            )
        )
    return found


def split(held: Sequence[Daily], cutoffs: Mapping[str | None, float | None]) -> list[list[Daily]]:
    """What stays of rows and what goes, by the age that their type may reach, in days.

    Parameters:
        held: what a store holds, by type.
        cutoffs: that age, by type; None under a type keeps all of it.

    Returns:
        What stays, and what goes.
    """
    stays, goes = [], []
    for daily in held:
        limit = cutoffs.get(daily.type, cutoffs.get(None))
        days = daily.days
        older = {age: days[age] for age in days if limit is not None and age >= limit}
        younger = {age: days[age] for age in days if age not in older}
        stays.append(msgspec.structs.replace(daily, days=younger))
        goes.append(Daily(type=daily.type, days=older))
    return [stays, goes]


def ages(found: Sequence[Bar], marks: Sequence[Mark], kind: str, *, small: bool = False) -> Markup:
    """A histogram: a bar for each day of age, now at the right, with the cutoffs drawn in.

    Parameters:
        found: the bars, from `bars`.
        marks: the ages that the policy names.
        kind: what kind of store it is, for the words.
        small: whether it is one of many on a page.
    """
    there = found[0].youngest + found[0].days if found else 0
    near = [mark for mark in marks if mark.age <= max(there, 1) * _FAR]
    width = max([there, *(mark.age * 1.04 for mark in near), 1.0])
    frame = _Frame(
        width=width,
        highest=max((bar.count for bar in found), default=0) or 1,
        head=(30.0 if small else 16.0) if marks else 4.0,
        foot=_SMALL_FOOT if small else _FOOT,
    )
    parts = [_bar(bar, frame, kind) for bar in found if bar.count]
    for index, mark in enumerate(sorted(near, key=lambda mark: -mark.age)):
        label = mark.short if small else mark.label
        # Labels of lines that are close to each other do not stand on each other.
        parts.append(_line(mark, label, frame, 11 + 13 * (index % 2)))
    far = [mark.short if small else mark.label for mark in marks if mark not in near]
    if far and not near:
        parts.append(_text(0, 14 if small else 6, f"further back: {', '.join(far)}", "start"))
    parts += [
        _rule(frame.foot, "axis"),
        _text(0, 98, f"{width:.0f} days ago", "start"),
        _text(100, 98, "now", "end"),
    ]
    return _svg(parts, _said(found, marks, kind), "ages small" if small else "ages")


def curve(
    points: Sequence[Point], ceiling: float | None, told: str, *, in_bytes: bool = True
) -> Markup:
    """How much there will be, as a curve from now on, with the ceiling drawn in.

    Parameters:
        points: the curve, the earliest first; two at the least.
        ceiling: how much there may be; None for no bound.
        told: the same in words, for who cannot see it.
        in_bytes: whether the values are bytes.
    """
    first, last = points[0].day, points[-1].day
    highest = max(point.value for point in points)
    near = ceiling is not None and ceiling <= highest * _FAR
    top = max(highest, ceiling if near and ceiling else 0.0) * 1.12 or 1.0
    across = (last - first) or 1.0

    def x(day: float) -> float:
        return (day - first) / across * 100

    def y(value: float) -> float:
        return (1 - value / top) * _FOOT

    line = " ".join(f"{x(point.day):.3f},{y(point.value):.3f}" for point in points)
    parts = [
        Markup(
            '<svg viewBox="0 0 100 100" preserveAspectRatio="none" x="0" y="0" width="100%" '
            'height="100%"><polygon class="under" points="0,{foot} {line} 100,{foot}"/>'
            '<polyline class="line" points="{line}"/></svg>'
        ).format(foot=_FOOT, line=line)
    ]
    if near and ceiling is not None:
        parts += [
            _rule(y(ceiling), "ceiling"),
            _text(100, max(y(ceiling) - 2, 6), f"ceiling {_amount(ceiling, in_bytes)}", "end"),
        ]
    parts += [
        _rule(_FOOT, "axis"),
        _text(0, 98, "now" if first == 0 else f"{-first:.0f} days ago", "start"),
        _text(100, 98, f"in {last:.0f} days", "end"),
        _text(0, max(y(points[0].value) - 3, 8), _amount(points[0].value, in_bytes), "start"),
    ]
    if not near or ceiling is None or abs(y(points[-1].value) - y(ceiling)) > 14:
        value = points[-1].value
        parts.append(_text(100, max(y(value) - 3, 8), _amount(value, in_bytes), "end"))
    return _svg(parts, told, "curve")


def meter(value: int, ceiling: int, told: str) -> Markup:
    """How much of what there may be is there.

    Parameters:
        value: how much there is.
        ceiling: how much there may be.
        told: the same in words.
    """
    share = min(100.0, value / ceiling * 100)
    full = "full" if value > ceiling else "near" if share > 90 else "fine"
    return Markup(
        '<svg class="meter" role="img" aria-label="{told}"><rect class="track" width="100%" '
        'height="100%" rx="4"/><rect class="{full}" width="{share:.2f}%" height="100%" rx="4"/>'
        "</svg>"
    ).format(told=told, full=full, share=share)


def _together(held: Iterable[Daily]) -> dict[int, tuple[int, int]]:
    """All types together."""
    total: dict[int, tuple[int, int]] = {}
    for daily in held:
        for age, (count, amount) in daily.days.items():
            before = total.get(age, (0, 0))
            total[age] = (before[0] + count, before[1] + amount)
    return total


def _bar(bar: Bar, frame: _Frame, kind: str) -> Markup:
    left = frame.x(bar.youngest + bar.days)
    wide = bar.days / frame.width * 100
    gap = min(0.15, wide / 6)
    scale = (frame.foot - frame.head) / frame.highest
    rects, foot = Markup(""), frame.foot
    for count, called in ((bar.kept, "kept"), (bar.taken, "taken")):
        if count:
            tall = max(count * scale, _LEAST)
            foot -= tall
            rects += Markup(
                '<rect class="{called}" x="{x:.3f}%" y="{y:.3f}%" width="{w:.3f}%" '
                'height="{h:.3f}%"/>'
            ).format(called=called, x=left + gap, y=foot, w=wide - 2 * gap, h=tall)
    going = f", {number(bar.taken)} of them due" if bar.taken else ""
    title = f"{bar.label}: {rows(bar.count, kind)}{going}, {size(bar.bytes)}"
    return Markup("<g><title>{title}</title>{rects}</g>").format(title=title, rects=rects)


def _line(mark: Mark, label: str, frame: _Frame, top: int) -> Markup:
    x = frame.x(mark.age)
    # Beside the line, on the side where there is room.
    anchor, shift = ("start", 5) if x < 60 else ("end", -5)
    return Markup(
        '<line class="cutoff {what}" x1="{x:.3f}%" x2="{x:.3f}%" y1="0" y2="{foot}%"/>'
        '<text class="cutoff {what}" x="{x:.3f}%" dx="{shift}" y="{top}" text-anchor="{anchor}">'
        "{label}</text>"
    ).format(
        what="deletes" if mark.deletes else "flags",
        x=x,
        foot=frame.foot,
        shift=shift,
        top=top,
        anchor=anchor,
        label=label,
    )


def _rule(y: float, called: str) -> Markup:
    """A line across the whole chart."""
    return Markup('<line class="{c}" x1="0" x2="100%" y1="{y:.3f}%" y2="{y:.3f}%"/>').format(
        c=called, y=y
    )


def _text(x: float, y: float, text: str, anchor: str) -> Markup:
    return Markup('<text x="{x}%" y="{y:.2f}%" text-anchor="{a}">{t}</text>').format(
        x=x, y=y, t=text, a=anchor
    )


def _svg(parts: Iterable[Markup], told: str, called: str) -> Markup:
    inside = Markup("").join(map(escape, parts))
    return Markup('<svg class="chart {c}" role="img" aria-label="{t}">{i}</svg>').format(
        c=called, t=told, i=inside
    )


def _said(found: Sequence[Bar], marks: Sequence[Mark], kind: str) -> str:
    total, taken = sum(bar.count for bar in found), sum(bar.taken for bar in found)
    if not total:
        return "Nothing with a known age is there."
    there = found[0].youngest + found[0].days
    cutoffs = ", ".join(mark.label for mark in marks) or "none"
    return (
        f"{rows(total, kind)} by age, over {there} days; {number(taken)} past what the policy "
        f"allows. Cutoffs: {cutoffs}."
    )


def _amount(value: float, in_bytes: bool) -> str:
    return size(round(value)) if in_bytes else number(round(value))
