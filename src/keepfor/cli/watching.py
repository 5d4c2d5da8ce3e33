"""`status` and `check`: how the stores stand, for a person and for a monitor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from keepfor.cli import codes
from keepfor.cli.blocks import Block, Fact, Facts, Heading, Line
from keepfor.cli.documents import Answer, error
from keepfor.cli.invocation import Invocation
from keepfor.cli.planning import build, by_table
from keepfor.config import traps
from keepfor.config.overview import Overview, last_sweeps, overview
from keepfor.config.standing import (
    Finding,
    Leftover,
    degraded,
    findings,
    in_words,
    leftovers,
)
from keepfor.errors import KeepforError
from keepfor.history.coming import NextRun
from keepfor.history.standing import Standing
from keepfor.items import Item
from keepfor.plan import Plan
from keepfor.times import DAY
from keepfor.trail import Sweep
from keepfor.wording import instant, number, rows, size, span

#: A difference between what a store holds and what it takes up that is not worth a word, in bytes.
_LITTLE = 64 << 10


def status(run: Invocation, wanted: Sequence[str]) -> Answer:
    """Show what history each store holds, and how it stands to its policy. Writes nothing.

    Parameters:
        wanted: the stores; all if none is named.

    Returns:
        The document has `stores`: for each `store`, `kind`, `target`, `exists`, `policy` (in
        words), `rows`, `bytes`, `oldest`, `newest`, `days` (of history), `lag`, `logical`,
        `on_disk` and `reclaimable` (what it takes up, see `Space`), `due` (how many rows or items
        would go now), `breaker` (as in a plan), `last_sweep` (as in `log`, or null), `next_run`
        (see `NextRun`, or null), `leftovers` (`path`, `bytes` that are not in the ledger yet,
        `held` by a writer), `orphans` (as in a plan; null where they were not looked for),
        `degraded` (what makes it slower and slower, or null), `estimated` (the names of those of
        these that are estimates), `notes` (sentences that a person should read) and `error`
        (null). A store that could not be read has `store` and `error` only.
    """
    documents: list[dict[str, Any]] = []
    exit_codes = []
    names = run.names(wanted)
    last = last_sweeps(run.config, names)
    for name in names:
        try:
            with run.out.progress(f"Reading {name}") as progress:
                seen = overview(run.config, name, run.clock(), last, progress)
        except (KeepforError, OSError) as problem:
            run.warn(problem)
            exit_codes.append(codes.of(problem))
            documents.append({"store": name, "error": error(problem)})
            continue
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
        first: `problem`, which is `trap`, `lag`, `breaker`, `leftover`, `held`, `idle`, `missing`,
        `note`, `orphans` or `unbounded`; the `exit_code` that it accounts for, `what` and `fix`)
        and `error` (null). A store that could not be read has `store`, `ok` and `error` only.
    """
    documents: list[dict[str, Any]] = []
    lines: list[Block] = []
    exit_codes = []
    for name in run.names(wanted):
        settings = run.settings(name)
        seen: list[Item] = []
        plan = build(run, name, run.clock(), seen=seen)
        if isinstance(plan, Exception):
            exit_codes.append(codes.of(plan))
            documents.append({"store": name, "ok": False, "error": error(plan)})
            lines.append(Line(f"{name}: {plan}", "bad"))
            continue
        left = leftovers(run.store(name))
        standing_traps = traps(run.config).get(name, [])
        idle = [
            trap
            for trap in traps(run.config, {name: seen}).get(name, [])
            if trap not in standing_traps
        ]
        found = findings(name, settings, plan, left, standing_traps, idle)
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


def _document(seen: Overview) -> dict[str, Any]:
    stands = seen.stands
    return {
        "store": seen.name,
        **{name: getattr(stands, name) for name in ("kind", "target", "exists")},
        "policy": in_words(seen.settings),
        **{name: getattr(stands.held, name) for name in stands.held.__struct_fields__},
        **{name: getattr(stands.space, name) for name in stands.space.__struct_fields__},
        "due": stands.due,
        "flags": stands.flags,
        "breaker": {"limit": stands.limit, "share": stands.share, "tripped": stands.tripped},
        "last_sweep": seen.swept,
        "next_run": seen.coming,
        "leftovers": seen.left,
        "orphans": stands.orphans,
        "degraded": degraded(seen.settings),
        "estimated": stands.estimated,
        "notes": stands.notes,
        "error": None,
    }


def _described(seen: Overview) -> list[Block]:
    stands, held = seen.stands, seen.stands.held
    heading = Heading(seen.name, (stands.kind, stands.target))
    facts = [
        Fact("policy", in_words(seen.settings)),
        _last(seen.swept),
        _next(seen.coming),
        *map(_of_leftover, seen.left),
        *_orphans(seen),
    ]
    if slow := degraded(seen.settings):
        facts.append(Fact("degraded", slow, "warn"))
    if not stands.exists:
        nothing = Line("  There is nothing there yet.", "faint")
        return [heading, nothing, Line(), Facts(facts)]
    facts[1:1] = [
        Fact("oldest", f"{instant(held.oldest)}{_age(stands)}"),
        Fact("newest", instant(held.newest)),
        *_space(stands),
        Fact("due now", _due(stands), "bad" if stands.tripped else "plain"),
        Fact("lag", span(held.lag), "warn") if held.lag else Fact("lag", "none", "good"),
    ]
    facts += [Fact("note", note) for note in stands.notes]
    return [heading, _history(stands), Line(), Facts(facts)]


def _history(stands: Standing) -> Line:
    held = stands.held
    about = "about " if "rows" in stands.estimated else ""
    takes = f"{size(held.bytes)}{' on disk' if stands.kind == 'table' else ''}"
    holds = f"{about}{rows(held.rows, stands.kind)}, {takes}"
    return Line(f"  You have {held.days:.1f} days of history in {holds}.", "strong")


def _space(stands: Standing) -> list[Fact]:
    """What it takes up, where that is not what it holds."""
    space = stands.space
    if space.reclaimable is not None:
        return [Fact("reclaimable", size(space.reclaimable))]
    if abs(space.on_disk - space.logical) <= max(space.logical // 10, _LITTLE):
        return []
    about = "about " if "on_disk" in stands.estimated else ""
    return [Fact("on disk", f"{about}{size(space.on_disk)}")]


def _orphans(seen: Overview) -> list[Fact]:
    if not seen.stands.orphans:
        return []
    fate = "which stay" if seen.settings.keeps_orphans else "which the next sweep deletes"
    return [Fact("orphans", f"{by_table(seen.stands.orphans)}, {fate}", "warn")]


def _age(stands: Standing) -> str:
    oldest = stands.held.oldest
    return f", {(stands.now - oldest) / DAY:.1f} days ago" if oldest else ""


def _due(stands: Standing) -> str:
    flags = f"{number(stands.flags)} to be flagged" if stands.flags else ""
    if not stands.due:
        return flags or "nothing"
    about = "about " if "due" in stands.estimated else ""
    of = rows(stands.held.rows, stands.kind)
    held_back = ", held back by the breaker" if stands.tripped else ""
    return f"{about}{number(stands.due)} of {of}{f', {flags}' if flags else ''}{held_back}"


def _last(swept: Sweep | None) -> Fact:
    if swept is None:
        return Fact("last sweep", "none on record")
    tone: Any = "plain" if swept.outcome in ("done", "nothing to do") else "warn"
    gone = swept.applied - swept.flagged
    deleted = f", {number(gone)} deleted" if gone else ""
    flagged = f", {number(swept.flagged)} flagged" if swept.flagged else ""
    said = f"{swept.at[:19]}Z by {swept.started_by}: {swept.outcome}{deleted}{flagged}"
    return Fact("last sweep", said, tone)


def _next(coming: NextRun | None) -> Fact:
    if coming is None:
        return Fact("next run", "none is known; `keepfor run`, or cron, would see to it")
    if coming.by == "write site":
        return Fact("next run", "with an append, when something is due")
    who = f" by process {coming.process}" if coming.process else ""
    return Fact("next run", f"in the background{who}, {instant(coming.latest)} at the latest")


def _of_leftover(old: Leftover) -> Fact:
    why = "held open by a writer" if old.held else "left by a prune that was killed"
    return Fact("old file", f"{old.path}, {why}, {size(old.bytes)} not in the ledger yet", "warn")


def _verdict(name: str, plan: Plan, found: Sequence[Finding]) -> list[Block]:
    if not found and not plan.exists:
        # A mistyped path looks like this, too.
        where = f"no {plan.kind} yet at {plan.target}"
        return [Line(f"{name}: {where}. See that this is the right place.", "warn")]
    if not found:
        state = f"{rows(plan.survey.scanned, plan.kind)}, none overdue"
        return [Line(f"{name}: in order ({state}).", "good")]
    return [
        Line(
            f"{name}: {finding.what} {finding.fix}".rstrip(),
            "bad" if finding.exit_code else "warn",
        )
        for finding in found
    ]
