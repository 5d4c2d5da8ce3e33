"""Runs two ways of doing the same by turns, and says how they compare.

By turns, because a machine is never equally fast for long: what slows one way down for a while
slows down the other as well, and the ratio stands.
"""

from __future__ import annotations

import gc
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Literal

import msgspec

import keepfor


class Way(msgspec.Struct, frozen=True, kw_only=True):
    """One way of doing something.

    Parameters:
        run: does it; this is what is timed.
        before: makes ready for each run, untimed.
    """

    run: Callable[[], object]
    before: Callable[[], object] = lambda: None


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """What one comparison came to.

    Parameters:
        what: what was done.
        unit: of `plain` and `ours`.
        plain: the straightforward way's median; or what an idle interpreter, or keepfor itself in
            the smaller case, takes.
        ours: keepfor's median.
        kind: whether keepfor is to be so many `times` faster, at most so much `above`, or at most
            such a `ratio` of it.
        value: how many times faster, how much above, or which ratio, by the medians.
        best: the same by the best runs, which a busy machine distorts least.
        target: what the value is to be, at least or at most.
    """

    what: str
    unit: str
    plain: float
    ours: float
    kind: Literal["times", "above", "ratio"]
    value: float
    best: float
    target: float

    @property
    def met(self) -> bool:
        """Whether the target is met."""
        if self.kind == "times":
            return self.value >= self.target
        return self.value <= self.target


def race(plain: Way, ours: Way, *, rounds: int) -> tuple[list[float], list[float]]:
    """Time two ways by turns; returns the seconds that each run of each took."""
    taken: tuple[list[float], list[float]] = ([], [])
    for number in range(rounds):
        turns = list(zip((plain, ours), taken, strict=True))
        for way, seconds in turns if number % 2 == 0 else reversed(turns):
            way.before()
            gc.collect()
            start = time.perf_counter()
            way.run()
            seconds.append(time.perf_counter() - start)
    return taken


def times_faster(
    what: str,
    taken: tuple[list[float], list[float]],
    *,
    target: float,
    unit: Literal["s", "ms", "µs"] = "s",
    each: int = 1,
) -> Figure:
    """The figure for two ways of which keepfor's is to be so many times faster.

    Parameters:
        what: what was done.
        taken: from `race`.
        target: how many times faster it is to be.
        unit: what to print seconds in.
        each: how often it was done in one run.
    """
    plain, ours = taken
    scale = {"s": 1, "ms": 10**3, "µs": 10**6}[unit] / each
    return Figure(
        what=what,
        unit=unit,
        plain=median(plain) * scale,
        ours=median(ours) * scale,
        kind="times",
        value=median(plain) / median(ours),
        best=min(plain) / min(ours),
        target=target,
    )


def at_most(
    what: str,
    taken: tuple[list[float], list[float]],
    *,
    target: float,
    unit: Literal["s", "ms", "µs"] = "s",
    each: int = 1,
) -> Figure:
    """The figure for two cases of which the larger is to cost at most so many times the smaller.

    Parameters: as for `times_faster`, the smaller case first.
    """
    figure = times_faster(what, taken, target=target, unit=unit, each=each)
    return msgspec.structs.replace(
        figure, kind="ratio", value=1 / figure.value, best=1 / figure.best
    )


def above(what: str, plain: list[float], ours: list[float], *, target: float, unit: str) -> Figure:
    """The figure for something of which keepfor is to take no more than so much above nothing."""
    return Figure(
        what=what,
        unit=unit,
        plain=median(plain),
        ours=median(ours),
        kind="above",
        value=median(ours) - median(plain),
        best=min(ours) - min(plain),
        target=target,
    )


HEADER = f"{'':44} {'plain':>11} {'keepfor':>11}   {'result':>13} {'best runs':>10}   target"


def row(figure: Figure) -> str:
    """A figure as a line of the table."""
    if figure.kind == "times":
        value, best = f"{figure.value:.1f} times", f"{figure.best:.1f}"
        target = f"≥ {figure.target:g} times"
    elif figure.kind == "ratio":
        value, best = f"{figure.value:.2f} times", f"{figure.best:.2f}"
        target = f"≤ {figure.target:g} times"
    else:
        value, best = f"+{figure.value:.1f} {figure.unit}", f"+{figure.best:.1f}"
        target = f"≤ +{figure.target:g} {figure.unit}"
    verdict = "met" if figure.met else "MISSED"
    plain, ours = (f"{number:.4g} {figure.unit}" for number in (figure.plain, figure.ours))
    return f"{figure.what:44} {plain:>11} {ours:>11}   {value:>13} {best:>10}   {target}: {verdict}"


def save(figures: Iterable[Figure], path: Path) -> None:
    """Write figures as JSON, with what they were measured on."""
    document = {
        "measured": datetime.now(UTC).isoformat(timespec="seconds"),
        "keepfor": keepfor.__version__,
        "python": sys.version.split()[0],
        "platform": platform.platform(),
        "cpus": os.cpu_count(),
        "figures": [msgspec.to_builtins(figure) | {"met": figure.met} for figure in figures],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
