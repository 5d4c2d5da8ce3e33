"""`status` and `check`: how the stores stand, for a person and for a monitor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from keepfor.cli import codes
from keepfor.cli.blocks import Block, Fact, Facts, Heading, Line
from keepfor.cli.documents import Answer, error, of_plan
from keepfor.cli.invocation import Invocation
from keepfor.cli.planning import build
from keepfor.cli.wording import instant, number, rows, size, span
from keepfor.config import traps
from keepfor.config.standing import (
    Finding,
    Leftover,
    degraded,
    findings,
    in_words,
    leftovers,
)
from keepfor.history import Window, window
from keepfor.plan import Plan
from keepfor.times import DAY
from keepfor.trail import Sweep, latest


def status(run: Invocation, wanted: Sequence[str]) -> Answer:
    """Show what history each store holds, and how it stands to its policy. Writes nothing.

    Parameters:
        wanted: the stores; all if none is named.

    Returns:
        The document has `stores`: for each `store`, `kind`, `target`, `exists`, `policy` (in
        words), `rows`, `bytes`, `oldest`, `newest`, `days` (of history), `lag`, `due` (how many
        rows or items would go now), `breaker` (as in a plan), `last_sweep` (as in `log`, or null),
        `leftovers` (`path`, `bytes` that are not in the ledger yet, `held` by a writer),
        `degraded` (what makes it slower and slower, or null) and `error` (null). A store that
        could not be read has `store` and `error` only.
    """
    documents: list[dict[str, Any]] = []
    exit_codes = []
    names = run.names(wanted)
    targets = {name: run.store(name).target for name in names}
    last = latest(run.trail.records(), set(targets.values()))
    for name in names:
        plan = build(run, name, run.clock())
        if isinstance(plan, Exception):
            run.warn(plan)
            exit_codes.append(codes.of(plan))
            documents.append({"store": name, "error": error(plan)})
            continue
        held, left, swept = window(plan.survey), leftovers(run.store(name)), last.get(plan.target)
        settings = run.settings(name)
        policy, slow = in_words(settings), degraded(settings)
        run.out.show(*_described(plan, held, policy, swept, left, slow))
        documents.append(_document(plan, held, policy, swept, left, slow))
    facts = {"stores": documents}
    return Answer(verb="status", facts=facts, exit_code=codes.gravest(exit_codes))


def check(run: Invocation, wanted: Sequence[str]) -> Answer:
    """Fail if something needs a person: for cron and monitoring. Writes nothing.

    Parameters:
        wanted: the stores; all if none is named.

    Returns:
        The document has `stores`: for each `store`, `ok`, `lag`, `grace`, `findings` (the gravest
        first: `problem`, which is `trap`, `lag`, `breaker`, `leftover`, `held` or `unbounded`; the
        `exit_code` that it accounts for, `what` and `fix`) and `error` (null). A store that could
        not be read has `store`, `ok` and `error` only.
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


def _document(
    plan: Plan,
    held: Window,
    policy: str,
    swept: Sweep | None,
    left: Sequence[Leftover],
    slow: str | None,
) -> dict[str, Any]:
    planned = of_plan(plan)
    return {
        **{name: planned[name] for name in ("store", "kind", "target", "exists")},
        "policy": policy,
        **{name: getattr(held, name) for name in held.__struct_fields__},
        "due": plan.deletes,
        "breaker": planned["breaker"],
        "last_sweep": swept,
        "leftovers": left,
        "degraded": slow,
        "error": None,
    }


def _described(
    plan: Plan,
    held: Window,
    policy: str,
    swept: Sweep | None,
    left: Sequence[Leftover],
    slow: str | None,
) -> list[Block]:
    heading = Heading(plan.store, (plan.kind, plan.target))
    facts = [Fact("policy", policy), _last(swept), *map(_of_leftover, left)]
    if slow:
        facts.append(Fact("degraded", slow, "warn"))
    if not plan.exists:
        nothing = Line("  There is nothing there yet.", "faint")
        return [heading, nothing, Line(), Facts(facts)]
    days = f"{held.days:.0f} {'day' if round(held.days) == 1 else 'days'}"
    history = Line(
        f"  {days} of history in {rows(held.rows, plan.kind)}, {size(held.bytes)}.", "strong"
    )
    facts[1:1] = [
        Fact("oldest", f"{instant(held.oldest)}{_age(plan, held)}"),
        Fact("newest", instant(held.newest)),
        Fact("due now", _due(plan), "bad" if plan.trips_breaker else "plain"),
        Fact("lag", span(held.lag), "warn") if held.lag else Fact("lag", "none", "good"),
    ]
    return [heading, history, Line(), Facts(facts)]


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
        Line(f"{name}: {finding.what} {finding.fix}", "bad" if finding.exit_code else "warn")
        for finding in found
    ]
