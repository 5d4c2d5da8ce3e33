"""`plan`: what would go, and why."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from shlex import quote
from typing import Any

from keepfor import plan as plans
from keepfor import sweep
from keepfor.cli import codes, entities
from keepfor.cli.blocks import Block, Fact, Facts, Heading, Line, Table
from keepfor.cli.documents import Answer, error, of_plan
from keepfor.cli.invocation import Invocation
from keepfor.config import policy_of, traps
from keepfor.config.models import Store
from keepfor.config.standing import in_words
from keepfor.errors import ConfigError, KeepforError, PlanStale
from keepfor.items import Decision, Item, Survey, Tally, noun
from keepfor.plan import Plan
from keepfor.policy.lint import Trap
from keepfor.times import parse_now
from keepfor.wording import instant, listed, number, rows, size

#: How many single items are shown to a person; a program gets all.
SHOWN = 10


def plan(
    run: Invocation,
    wanted: Sequence[str],
    output: Path | None = None,
    now: str | None = None,
    policy: Path | None = None,
) -> Answer:
    """Show what would go.

    Parameters:
        wanted: the stores; all if none is named.
        output: where the plan is saved, if anywhere.
        now: the instant to judge ages by; None for the present.
        policy: a file with the rules of the stores, which have to be of notes then.

    Returns:
        The document has `saved`, the file the plan was saved in or null, and `stores`: for each
        store what `documents.of_plan` says, with `policy` (in words), `traps` (`rule`, `what` and
        `fix` of what will surprise its owner) and `error` (null). A store that could not be read
        has `store` and `error` only.
    """
    run.policy = policy
    names = run.names(wanted)
    if output is not None:
        _check_output(output, names)
    moment = run.clock() if now is None else parse_now(now)
    documents: list[dict[str, Any]] = []
    made: list[Plan] = []
    exit_codes = []
    for name in names:
        seen: list[Item] = []
        plan = build(run, name, moment, seen=seen)
        if isinstance(plan, Exception):
            run.warn(plan)
            exit_codes.append(codes.of(plan))
            documents.append({"store": name, "error": error(plan)})
            continue
        made.append(plan)
        settings, found = run.settings(name), traps(run.config, {name: seen}).get(name, [])
        run.out.show(*described(plan, settings, found))
        facts = {"policy": in_words(settings), "traps": found, "error": None}
        documents.append({**of_plan(plan), **facts})
    if output is not None and made:
        plans.save(made[0], output)
        run.out.show(Line(f"Saved. To carry it out: keepfor apply {quote(str(output))}", "command"))
    saved = str(output) if output is not None and made else None
    whole = {"saved": saved, "stores": documents}
    return Answer(verb="plan", facts=whole, exit_code=codes.gravest(exit_codes))


def build(
    run: Invocation,
    name: str,
    moment: datetime,
    *,
    at_once: bool = False,
    seen: list[Item] | None = None,
) -> Plan | KeepforError | OSError:
    """A store's plan, with a bar if it takes long; or what kept it from being made.

    That one store cannot be read is handed back, for it does not keep the others from being.

    Parameters:
        name: the store's.
        moment: the instant to judge ages by.
        at_once: whether it is to be carried out, so that what a killed sweep left is put in order.
        seen: takes the items of a store that holds some.
    """
    try:
        store, policy = run.store(name), policy_of(run.settings(name))
        with run.out.progress(f"Reading {name}") as progress:
            make = sweep.planned if at_once else plans.build
            return make(store, policy, moment, name=name, progress=progress, seen=seen)
    except (KeepforError, OSError) as problem:
        return problem


def described(plan: Plan, settings: Store, found: Sequence[Trap] = ()) -> list[Block]:
    """A plan for people, of a store with these settings, in which these traps were found."""
    survey, heading = plan.survey, Heading(plan.store, (plan.kind, plan.target))
    if not plan.exists:
        nothing = Line("  There is nothing there yet.", "faint")
        told: list[Block] = [Line(), Facts(warnings(found))] if found else []
        return [heading, nothing, *told]
    if plan.kind == "entities":
        facts = [
            Fact("policy", in_words(settings)),
            Fact("judged at", instant(plan.now)),
            *entities.counts(plan),
            _breaker(plan),
            *_notes(survey),
            *warnings(found),
        ]
        return [heading, entities.total(plan), Line(), Facts(facts), *entities.going(plan)]
    total = Line(f"  Nothing would go of {rows(survey.scanned, plan.kind)}.", "good")
    if survey.orphans and not settings.keeps_orphans:
        total = Line(f"  Only orphans would go: {by_table(survey.orphans)}.", "warn")
    if survey.applied:
        of = rows(survey.scanned, plan.kind)
        total = Line(f"  {number(survey.applied)} of {of} would go.", "warn")
    facts = [
        Fact("policy", in_words(settings)),
        _cutoff(plan),
        *([Fact("times", survey.times)] if survey.times else []),
        *counted(survey, plan.kind, ", which stay" if settings.keeps_orphans else ""),
        _breaker(plan),
    ]
    facts += [*_notes(survey), *warnings(found)]
    return [heading, total, Line(), Facts(facts), *_parts(plan), *_going(plan)]


def warnings(found: Sequence[Trap]) -> list[Fact]:
    """What of the settings will surprise their owner, and what to change."""
    return [Fact("trap", f"{trap.rule}: {trap.what} {trap.fix}", "warn") for trap in found]


def _notes(survey: Survey) -> list[Fact]:
    return [Fact("note", note, "warn") for note in survey.notes]


def _parts(plan: Plan) -> list[Block]:
    """Of a table, what each rule takes."""
    taking = [part for part in plan.survey.parts if part.count]
    if not taking:
        return []
    rows = [
        [
            part.rule,
            number(part.count),
            instant(part.cutoff),
            f"{instant(part.oldest)} ({_key(part.first)})",
            f"{instant(part.newest)} ({_key(part.last)})",
        ]
        for part in taking
    ]
    return [Line(), Table(["rule", "#rows", "older than", "the oldest", "the newest"], rows)]


def _key(values: list[str | int]) -> str:
    return "/".join(map(str, values))


def _going(plan: Plan) -> list[Block]:
    """Of a store of items, the first of those that would go, the oldest first."""
    going = sorted(
        (said for said in plan.decisions if said.action != "keep"),
        key=lambda said: (str(said.evidence.get("instant")), said.id),
    )
    if not going:
        return []
    shown = [[said.id, _reason(said)] for said in going[:SHOWN]]
    blocks: list[Block] = [Line(), Table([noun(plan.kind), "why"], shown)]
    if len(going) > SHOWN:
        more = number(len(going) - SHOWN)
        blocks.append(Line(f"  And {more} more; --json shows all.", "faint"))
    return blocks


def _reason(said: Decision) -> str:
    evidence = said.evidence
    match said.reason:
        case "age":
            return f"{evidence['age_days']} days old by its {evidence['source']}"
        case "count":
            return f"above the ceiling of {evidence['ceiling']}"
        case "bytes":
            return f"above the ceiling of {evidence['ceiling']} bytes"
        case _:
            return said.reason


def counted(tally: Tally, kind: str, fate: str = "") -> list[Fact]:
    """The counts of a look at a store, or of a sweep of it.

    Parameters:
        fate: what becomes of the orphans, where that is not what becomes of the rows.
    """
    unreadable = [Fact("unreadable", number(tally.unreadable))] if kind == "ledger" else []
    # Of notes and sessions, each that is done tells why.
    reasons = (
        []
        if kind == "entities"
        else [
            Fact("expired", number(tally.expired)),
            *unreadable,
            Fact("over ceiling", number(tally.over_ceiling)),
        ]
    )
    facts = [
        *reasons,
        *([Fact("with them", by_table(tally.dependents))] if tally.dependents else []),
        *([Fact("orphans", f"{by_table(tally.orphans)}{fate}")] if tally.orphans else []),
        Fact("kept", _kept(tally)),
        Fact("oldest kept", instant(tally.oldest)),
        *_size(tally, kind),
    ]
    if tally.skipped or tally.failed:
        changed = "" if kind in ("runs", "entities") else ", changed since the plan"
        facts += [
            Fact("skipped", f"{number(tally.skipped)}{changed}", "warn"),
            Fact("failed", number(tally.failed), "bad" if tally.failed else "plain"),
        ]
    return facts


def by_table(counts: Mapping[str, int]) -> str:
    """So many rows of each table."""
    return listed([f"{number(count)} of {name}" for name, count in counts.items()])


def _size(tally: Tally, kind: str) -> list[Fact]:
    if kind != "table":
        return [Fact("size", f"{size(tally.bytes_before)} -> {size(tally.bytes_after)}")]
    on_disk = size(tally.bytes_after)
    if tally.bytes_deleted is None:
        return [Fact("on disk", on_disk)]
    given_back = max(0, tally.bytes_before - tally.bytes_after)
    where = f"{size(given_back)} went back to the system" if given_back else "kept for new rows"
    return [Fact("deleted", f"{size(tally.bytes_deleted)}, {where}"), Fact("on disk", on_disk)]


def _cutoff(plan: Plan) -> Fact:
    judged = f"judged at {instant(plan.now)}"
    cutoff = plan.survey.cutoff
    return Fact("cutoff", f"{instant(cutoff) if cutoff else 'none'}, {judged}")


def _kept(tally: Tally) -> str:
    future, unknown = number(tally.future), number(tally.unknown)
    return f"{number(tally.kept)} ({future} in the future, {unknown} of unknown age)"


def _breaker(plan: Plan) -> Fact:
    if plan.breaker is None:
        return Fact("breaker", "off")
    allowed = f"{plan.share:.1%} would go, and {plan.breaker:.0%} may"
    if plan.trips_breaker:
        return Fact("breaker", f"holds it back: {allowed}; --force passes it", "bad")
    return Fact("breaker", f"lets it pass: {allowed}")


def _check_output(output: Path, names: Sequence[str]) -> None:
    """Refuse to save where something stands that is no plan, such as a ledger."""
    if len(names) != 1:
        raise ConfigError(
            where="--output",
            what=f"a plan file is of one store, and these are {len(names)}.",
            fix=f"Name one of them: `keepfor plan {names[0]} -o {output}`.",
        )
    if not output.parent.is_dir():
        fix = "Make it first, or name another place."
        raise ConfigError(where=output, what="its folder is not there.", fix=fix)
    if os.path.lexists(output) and not _is_plan(output):
        what = "something that is not a plan stands there already."
        raise ConfigError(where=output, what=what, fix="Name another file, or remove it.")


def _is_plan(path: Path) -> bool:
    try:
        return path.is_file() and plans.load(path) is not None
    except PlanStale:
        return True
    except ConfigError:
        return False
