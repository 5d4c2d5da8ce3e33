"""The tools that look: how stores stand, what was recalled, what runs say. They write nothing."""

from __future__ import annotations

import json
import math
from typing import Any

from keepfor import recalls
from keepfor.config import asking, policy_of
from keepfor.config.overview import Overview, last_sweeps, overview
from keepfor.config.standing import degraded, in_words
from keepfor.errors import KeepforError
from keepfor.history import standing
from keepfor.history.window import Window
from keepfor.mcp import answers, asked
from keepfor.mcp.desk import Desk, names_of, problem, until_cancelled


def retention_status(desk: Desk, wanted: asked.Stores) -> answers.Status:
    """How stores stand."""
    config, now = desk.config(), desk.now()
    names = names_of(config, wanted.stores)
    last = last_sweeps(config, names)
    stores = []
    for name in names:
        settings, stands, error = asking.settings(config, name), None, None
        try:
            stands = _standing(overview(config, name, now, last, until_cancelled(name)))
        except (KeepforError, OSError) as failure:
            error = problem(failure)
        stores.append(
            answers.StoreStatus(
                store=name,
                kind=settings.kind,
                policy=in_words(settings),
                standing=stands,
                error=error,
            )
        )
    return answers.Status(now=now, stores=stores)


def history_window(desk: Desk, wanted: asked.OneStore) -> answers.Window:
    """How much history a store holds."""
    config, name, now = desk.config(), wanted.store, desk.now()
    store, settings = asking.store(config, name), asking.settings(config, name)
    seen = standing.standing(store, policy_of(settings), now, until_cancelled(name))
    return answers.Window(
        store=name,
        kind=settings.kind,
        exists=seen.exists,
        policy=in_words(settings),
        now=now,
        estimated=list(seen.estimated),
        notes=seen.notes,
        **_history(seen.held),
    )


def recall_trace(desk: Desk, wanted: asked.OneNote) -> answers.Trace:
    """When a note was recalled, and on what evidence."""
    ledger = asking.ledger(desk.config(), wanted.store)
    found = recalls.trace(ledger, wanted.slug, wanted.limit, desk.now())
    matches = [
        answers.Match(
            at=match.at,
            query_hash=_text(match.query_hash),
            path=_text(match.path),
            sim=_number(match.sim),
            keyword=_number(match.keyword),
            combined=_number(match.combined),
            rank=_number(match.rank),
            lifecycle_tier=_text(match.lifecycle_tier),
            decay_score=_number(match.decay_score),
        )
        for match in found.matches
    ]
    return answers.Trace(
        store=wanted.store,
        slug=found.slug,
        matches=matches,
        empty=found.empty,
        explanation=found.explanation,
    )


def recent_runs(desk: Desk, wanted: asked.NewestRuns) -> answers.Runs:
    """What the newest runs of a directory say last."""
    found = asking.runs(desk.config(), wanted.store).recent(wanted.limit)
    runs = [
        answers.Run(
            runId=_text(entry.get("runId")),
            wallClockMs=_number(entry.get("wallClockMs")),
            cycleOverflowSignal=_truth(entry.get("cycleOverflowSignal")),
            cycleOverflowRatio=_number(entry.get("cycleOverflowRatio")),
            outcome=_text(entry.get("outcome")),
        )
        for entry in found
    ]
    return answers.Runs(store=wanted.store, runs=runs)


def _standing(seen: Overview) -> answers.Standing:
    stands, space = seen.stands, seen.stands.space
    return answers.Standing(
        target=stands.target,
        exists=stands.exists,
        history=answers.History(**_history(stands.held)),
        logical_bytes=space.logical,
        on_disk_bytes=space.on_disk,
        reclaimable_bytes=space.reclaimable,
        due=stands.due,
        flags=stands.flags,
        breaker=answers.Breaker.model_validate(stands),
        last_sweep=answers.LastSweep.model_validate(seen.swept) if seen.swept else None,
        next_run=answers.NextRun.model_validate(seen.coming) if seen.coming else None,
        leftovers=[answers.Leftover.model_validate(old) for old in seen.left],
        orphans=stands.orphans,
        degraded=degraded(seen.settings),
        estimated=list(stands.estimated),
        notes=stands.notes,
    )


def _history(held: Window) -> dict[str, Any]:
    return {
        "oldest": held.oldest,
        "newest": held.newest,
        "days": held.days,
        "items": held.rows,
        "bytes": held.bytes,
        "lag_seconds": held.lag.total_seconds(),
    }


def _number(value: object) -> int | float | str | None:
    """A number as it is; what else a program may have written there, as text."""
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return value
    return _text(value)


def _truth(value: object) -> bool | str | None:
    return value if isinstance(value, bool) else _text(value)


def _text(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    try:
        return json.dumps(value)
    except RecursionError:
        return "nested too deep to be told"
