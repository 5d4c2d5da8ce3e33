"""`log`: what was done, read back from the trail."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import timedelta
from itertools import islice

from keepfor.cli.blocks import Block, Line, Table
from keepfor.cli.documents import Answer
from keepfor.cli.invocation import Invocation
from keepfor.trail import Sweep, sweeps
from keepfor.wording import number, span

#: How much of a digest tells plans apart for a person.
_SHORT = 8


def log(run: Invocation, wanted: Sequence[str], count: int = 20) -> Answer:
    """Show what was done, the newest first. Writes nothing.

    Parameters:
        wanted: the stores; whatever is on record if none is named.
        count: how many sweeps at the most.

    Returns:
        The document has `trail` (the file) and `sweeps`, each as `Sweep` says.

    Raises:
        UnknownStore: when one is neither configured nor on record.
    """
    for name in wanted:
        if all(record.get("store") != name for record in run.trail.records()):
            run.settings(name)
    targets = {run.store(name).target for name in wanted if name in run.config.stores}
    found = (
        sweep
        for sweep in sweeps(run.trail.records())
        if not wanted or sweep.store in wanted or sweep.target in targets
    )
    shown = list(islice(found, min(count, sys.maxsize)))
    run.out.show(*_described(shown))
    return Answer(verb="log", facts={"trail": run.trail.path, "sweeps": shown})


def _described(shown: Sequence[Sweep]) -> list[Block]:
    if not shown:
        return [Line("Nothing is on record yet.", "faint")]
    table = Table(
        headings=["time", "store", "outcome", "#deleted", "by", "#took", "plan"],
        rows=[
            [
                _minute(sweep.at),
                sweep.store,
                sweep.outcome,
                _deleted(sweep),
                sweep.started_by,
                "-" if sweep.duration is None else span(timedelta(seconds=sweep.duration)),
                (sweep.plan or "-")[:_SHORT],
            ]
            for sweep in shown
        ],
    )
    if any(sweep.flagged for sweep in shown):
        # Of most stores nothing is ever flagged.
        table.headings.insert(4, "#flagged")
        for row, sweep in zip(table.rows, shown, strict=True):
            row.insert(4, number(sweep.flagged))
    errors = [
        Line(f"{_minute(sweep.at)}  {sweep.store}: {sweep.error}", "bad")
        for sweep in shown
        if sweep.error
    ]
    return [table, *([Line()] if errors else []), *errors]


def _minute(at: str) -> str:
    return at[:16].replace("T", " ")


def _deleted(sweep: Sweep) -> str:
    total = sweep.applied + sweep.kept + sweep.skipped + sweep.failed
    return f"{number(sweep.applied - sweep.flagged)} of {number(total)}" if total else "-"
