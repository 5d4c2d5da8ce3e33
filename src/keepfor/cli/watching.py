"""`status` and `check`: how the stores stand, for a person and for a monitor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from keepfor.cli import codes
from keepfor.cli.blocks import Block, Fact, Facts, Heading, Line
from keepfor.cli.documents import Answer, error, of_plan
from keepfor.cli.invocation import Invocation
from keepfor.cli.planning import build, by_table
from keepfor.cli.wording import instant, number, rows, size, span
from keepfor.config import traps
from keepfor.config.models import Store
from keepfor.config.standing import (
    Finding,
    Leftover,
    degraded,
    findings,
    in_words,
    leftovers,
)
from keepfor.errors import KeepforError
from keepfor.history import Window, window
from keepfor.plan import Plan
from keepfor.times import DAY
from keepfor.trail import Sweep, latest

if TYPE_CHECKING:
    from keepfor.stores.sql.database import Footprint


def status(run: Invocation, wanted: Sequence[str]) -> Answer:
    """Show what history each store holds, and how it stands to its policy. Writes nothing.

    Parameters:
        wanted: the stores; all if none is named.

    Returns:
        The document has `stores`: for each `store`, `kind`, `target`, `exists`, `policy` (in
        words), `rows`, `bytes`, `oldest`, `newest`, `days` (of history), `lag`, `due` (how many
        rows or items would go now), `breaker` (as in a plan), `last_sweep` (as in `log`, or null),
        `leftovers` (`path`, `bytes` that are not in the ledger yet, `held` by a writer),
        `orphans` (as in a plan), `reclaimable` (of a table, the bytes of its database that hold
        nothing any more; of other kinds null), `degraded` (what makes it slower and slower, or
        null) and `error` (null). A store that could not be read has `store` and `error` only.
    """
    documents: list[dict[str, Any]] = []
    exit_codes = []
    names = run.names(wanted)
    targets = {name: run.store(name).target for name in names}
    last = latest(run.trail.records(), set(targets.values()))
    for name in names:
        found = _look(run, name)
        if isinstance(found, Exception):
            run.warn(found)
            exit_codes.append(codes.of(found))
            documents.append({"store": name, "error": error(found)})
            continue
        plan, free = found
        seen = _Seen(
            plan=plan,
            held=window(plan.survey),
            settings=run.settings(name),
            swept=last.get(plan.target),
            left=leftovers(run.store(name)),
            free=free,
        )
        run.out.show(*_described(seen))
        documents.append(_document(seen))
    facts = {"stores": documents}
    return Answer(verb="status", facts=facts, exit_code=codes.gravest(exit_codes))


def check(run: Invocation, wanted: Sequence[str]) -> Answer:
    """Fail if something needs a person: for cron and monitoring. Writes nothing.

    Parameters:
        wanted: the stores; all if none is named.

    Returns:
        The document has `stores`: for each `store`, `ok`, `lag`, `grace`, `findings` (the gravest
        first: `problem`, which is `trap`, `lag`, `breaker`, `leftover`, `held`, `missing`, `note`,
        `orphans` or `unbounded`; the `exit_code` that it accounts for, `what` and `fix`) and
        `error` (null). A store that could not be read has `store`, `ok` and `error` only.
    """
    documents: list[dict[str, Any]] = []
    lines: list[Block] = []
    exit_codes = []
    found_traps = traps(run.config)
    for name in run.names(wanted):
        settings = run.settings(name)
        plan = build(run, name, run.clock())
        if isinstance(plan, Exception):
            exit_codes.append(codes.of(plan))
            documents.append({"store": name, "ok": False, "error": error(plan)})
            lines.append(Line(f"{name}: {plan}", "bad"))
            continue
        left = leftovers(run.store(name))
        found = findings(name, settings, plan, left, found_traps.get(name, []))
        code = codes.gravest(finding.exit_code for finding in found)
        exit_codes.append(code)
        lines += _verdict(name, plan, found)
        documents.append(
            {
                "store": name,
                "ok": code == codes.DONE,
                "lag": plan.survey.lag,
                "grace": settings.tolerance,
                "findings": found,
                "error": None,
            }
        )
    run.out.show(*lines)
    facts = {"stores": documents}
    return Answer(verb="check", facts=facts, exit_code=codes.gravest(exit_codes))


class _Seen(msgspec.Struct, frozen=True, kw_only=True):
    """How a store was found to stand.

    Parameters:
        plan: what its policy would do now.
        held: what history it holds.
        settings: its settings.
        swept: its last sweep, if any is on record.
        left: what earlier sweeps left.
        free: what its database takes up; None where it has none, or nothing is there.
    """

    plan: Plan
    held: Window
    settings: Store
    swept: Sweep | None
    left: Sequence[Leftover]
    free: Footprint | None


def _look(run: Invocation, name: str) -> tuple[Plan, Footprint | None] | KeepforError | OSError:
    """A store's plan, and what its database takes up; or what kept them from being seen."""
    plan = build(run, name, run.clock())
    if isinstance(plan, Exception) or plan.kind != "table" or not plan.exists:
        return plan if isinstance(plan, Exception) else (plan, None)
    try:
        return plan, run.table(name).footprint()
    except (KeepforError, OSError) as problem:
        return problem


def _document(seen: _Seen) -> dict[str, Any]:
    plan, held = seen.plan, seen.held
    planned = of_plan(plan)
    return {
        **{name: planned[name] for name in ("store", "kind", "target", "exists")},
        "policy": in_words(seen.settings),
        **{name: getattr(held, name) for name in held.__struct_fields__},
        "due": plan.deletes,
        "breaker": planned["breaker"],
        "last_sweep": seen.swept,
        "leftovers": seen.left,
        "orphans": planned["orphans"],
        "reclaimable": seen.free.reclaimable if seen.free else None,
        "degraded": degraded(seen.settings),
        "error": None,
    }


def _described(seen: _Seen) -> list[Block]:
    plan, held = seen.plan, seen.held
    heading = Heading(plan.store, (plan.kind, plan.target))
    facts = [
        Fact("policy", in_words(seen.settings)),
        _last(seen.swept),
        *map(_of_leftover, seen.left),
        *_of_table(seen),
    ]
    if slow := degraded(seen.settings):
        facts.append(Fact("degraded", slow, "warn"))
    if not plan.exists:
        nothing = Line("  There is nothing there yet.", "faint")
        return [heading, nothing, Line(), Facts(facts)]
    days = f"{held.days:.0f} {'day' if round(held.days) == 1 else 'days'}"
    takes = f"{size(held.bytes)}{' on disk' if plan.kind == 'table' else ''}"
    history = Line(f"  {days} of history in {rows(held.rows, plan.kind)}, {takes}.", "strong")
    facts[1:1] = [
        Fact("oldest", f"{instant(held.oldest)}{_age(plan, held)}"),
        Fact("newest", instant(held.newest)),
        Fact("due now", _due(plan), "bad" if plan.trips_breaker else "plain"),
        Fact("lag", span(held.lag), "warn") if held.lag else Fact("lag", "none", "good"),
    ]
    return [heading, history, Line(), Facts(facts)]


def _of_table(seen: _Seen) -> list[Fact]:
    facts = []
    if orphans := seen.plan.survey.orphans:
        fate = "which stay" if seen.settings.keeps_orphans else "which the next sweep deletes"
        facts.append(Fact("orphans", f"{by_table(orphans)}, {fate}", "warn"))
    if seen.free:
        facts.append(Fact("reclaimable", size(seen.free.reclaimable)))
    return facts


def _age(plan: Plan, held: Window) -> str:
    return f", {(plan.now - held.oldest) / DAY:.1f} days ago" if held.oldest else ""


def _due(plan: Plan) -> str:
    if not plan.deletes:
        return "nothing"
    held_back = ", held back by the breaker" if plan.trips_breaker else ""
    return f"{number(plan.deletes)} of {rows(plan.survey.scanned, plan.kind)}{held_back}"


def _last(swept: Sweep | None) -> Fact:
    if swept is None:
        return Fact("last sweep", "none on record")
    tone: Any = "plain" if swept.outcome in ("done", "nothing to do") else "warn"
    deleted = f", {number(swept.applied)} deleted" if swept.applied else ""
    said = f"{swept.at[:19]}Z by {swept.started_by}: {swept.outcome}{deleted}"
    return Fact("last sweep", said, tone)


def _of_leftover(old: Leftover) -> Fact:
    why = "held open by a writer" if old.held else "left by a prune that was killed"
    return Fact("old file", f"{old.path}, {why}, {size(old.bytes)} not in the ledger yet", "warn")


def _verdict(name: str, plan: Plan, found: Sequence[Finding]) -> list[Block]:
    if not found:
        state = f"{rows(plan.survey.scanned, plan.kind)}, none overdue"
        if not plan.exists:
            state = f"no {plan.kind} yet"
        return [Line(f"{name}: in order ({state}).", "good")]
    return [
        Line(
            f"{name}: {finding.what} {finding.fix}".rstrip(),
            "bad" if finding.exit_code else "warn",
        )
        for finding in found
    ]
