"""`apply`: delete what is due, once it was seen and agreed to."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from keepfor import plan as plans
from keepfor import sweep
from keepfor.cli import codes, entities
from keepfor.cli.blocks import Block, Fact, Facts, Heading, Line
from keepfor.cli.documents import Answer, error, of_report
from keepfor.cli.invocation import Invocation
from keepfor.cli.planning import SHOWN, build, by_table, counted, described
from keepfor.config import policy_of, traps
from keepfor.errors import ConfigError, KeepforError, NotConfirmed
from keepfor.items import Item, Report
from keepfor.plan import Plan
from keepfor.wording import listed, number, rows, span

_NAME = re.compile(r"[a-z0-9_]+")


def apply(
    run: Invocation,
    wanted: Sequence[str],
    *,
    yes: bool = False,
    force: bool = False,
    policy: Path | None = None,
) -> Answer:
    """Delete what is due, and flag what a rule wants looked at.

    A plan file is its own confirmation: it was made to be looked at. Stores are independent of
    each other: what keeps one from being swept does not stop the others.

    Parameters:
        wanted: the stores, all if none is named; or one plan file.
        yes: whether to do it without asking.
        force: whether to pass the breaker.
        policy: a file with the rules of the stores, which have to be of notes then.

    Returns:
        The document has `stores`: for each what `documents.of_report` says, with `outcome` (`done`,
        `nothing to do` or `partly done`) and `error` (null). A store that was not swept has
        `store`, `outcome` (`failed`) and `error` only.

    Raises:
        NotConfirmed: when there was something to do, and nobody agreed.
    """
    run.policy = policy
    results: dict[str, Plan | KeepforError | OSError]
    held: dict[str, list[Item]] = {}
    if file := _plan_file(run, wanted):
        saved = plans.load(file)
        run.settings(saved.store)
        results = {saved.store: saved}
    else:
        names = run.names(wanted)
        held = {name: [] for name in names}
        results = {
            name: build(run, name, run.clock(), at_once=True, seen=held[name]) for name in names
        }
        if not yes:
            _confirm(run, [plan for plan in results.values() if isinstance(plan, Plan)], force)
    _warn_of_traps(run, list(results), held)
    # A sweep looks at everything once more, and both looks together would take twice the memory.
    held.clear()
    documents, exit_codes = [], []
    for name, planned in results.items():
        document, code = _swept(run, name, planned, force)
        documents.append(document)
        exit_codes.append(code)
    return Answer(verb="apply", facts={"stores": documents}, exit_code=codes.gravest(exit_codes))


def _plan_file(run: Invocation, wanted: Sequence[str]) -> Path | None:
    """The plan file among the arguments: what cannot be a store, or is a file and no store."""
    files = [
        word
        for word in wanted
        if not _NAME.fullmatch(word) or (Path(word).is_file() and word not in run.config.stores)
    ]
    if files and len(wanted) > 1:
        raise ConfigError(
            where=files[0],
            what="a plan file is carried out by itself.",
            fix=f"Run `keepfor apply {files[0]}`, and the rest after it.",
        )
    return Path(files[0]) if files else None


def _warn_of_traps(
    run: Invocation, names: Sequence[str], held: Mapping[str, Sequence[Item]]
) -> None:
    found = traps(run.config, held)
    for name in names:
        for trap in found.get(name, []):
            run.out.say(f"keepfor: {name}: {trap.rule}: {trap.what} {trap.fix}")


def _confirm(run: Invocation, planned: Sequence[Plan], force: bool) -> None:
    due = [plan for plan in planned if _changes(run, plan) and (force or not plan.trips_breaker)]
    if not due:
        return
    for plan in planned:
        run.out.show(*described(plan, run.settings(plan.store)))
    if not run.out.asks:
        raise NotConfirmed(why="nobody is at a terminal to agree to it. Give --yes to do it.")
    names = listed([plan.store for plan in due])
    if not run.out.confirmed(_question(run, due, names)):
        raise NotConfirmed(why="you did not agree.")


def _question(run: Invocation, due: Sequence[Plan], names: str) -> str:
    flags = sum(map(entities.flags, due))
    if not flags:
        return f"Delete {_all_of(run, due)} from {names}?"
    if not any(_deletes(run, plan) for plan in due):
        return f"Flag {rows(flags, 'entities')} in {names}?"
    return f"Delete {_all_of(run, due)} and flag {number(flags)} in {names}?"


def _changes(run: Invocation, plan: Plan) -> int:
    return _deletes(run, plan) + entities.flags(plan)


def _deletes(run: Invocation, plan: Plan) -> int:
    return plan.deletes + _orphans(run, plan)


def _orphans(run: Invocation, plan: Plan) -> int:
    """How many rows go that hang on rows that are gone already."""
    return 0 if run.settings(plan.store).keeps_orphans else sum(plan.survey.orphans.values())


def _all_of(run: Invocation, due: Sequence[Plan]) -> str:
    """How many things of each kind are to go."""
    counts = Counter[str]()
    for plan in due:
        counts[plan.kind] += plan.deletes
    orphans = sum(_orphans(run, plan) for plan in due)
    return listed(
        [
            *(rows(count, kind) for kind, count in counts.items() if count),
            *([f"{number(orphans)} orphan{'' if orphans == 1 else 's'}"] if orphans else []),
        ]
    )


def _swept(
    run: Invocation, name: str, planned: Plan | KeepforError | OSError, force: bool
) -> tuple[dict[str, Any], int]:
    """Carry out one store's plan, and tell what came of it."""
    try:
        if isinstance(planned, Exception):
            raise planned
        with run.out.progress(f"Sweeping {name}") as progress:
            report = sweep.apply(
                planned,
                run.store(name),
                policy_of(run.settings(name)),
                run.clock(),
                trail=run.trail,
                force=force,
                progress=progress,
            )
    except (KeepforError, OSError) as problem:
        run.warn(problem)
        return {"store": name, "outcome": "failed", "error": error(problem)}, codes.of(problem)
    run.out.show(*_described(report, planned))
    outcome, code = _outcome(report)
    return {**of_report(report), "outcome": outcome, "error": None}, code


def _outcome(report: Report) -> tuple[str, int]:
    if report.skipped or report.failed:
        return "partly done", codes.PARTLY
    return "done" if report.applied or report.orphans else "nothing to do", codes.DONE


def _described(report: Report, planned: Plan) -> list[Block]:
    heading = Heading(report.store, (report.kind, report.target))
    notes = [Fact("note", note, "warn") for note in report.notes]
    outcome, code = _outcome(report)
    if outcome == "nothing to do":
        stay = "stays" if report.kept == 1 else "stay"
        nothing = Line(
            f"  There was nothing to do; {rows(report.kept, report.kind)} {stay}.", "good"
        )
        return [heading, nothing, Facts(notes)]
    are = "is" if report.applied == 1 else "are"
    gone = f"{number(report.applied)} of {rows(report.scanned, report.kind)} {are} gone."
    if report.orphans and not report.applied:
        gone = f"Only orphans are gone: {by_table(report.orphans)}."
    items: list[Block] = []
    if report.kind == "entities":
        gone, items = entities.done(report, planned)
    took = Fact("took", span(timedelta(seconds=report.duration)))
    facts = Facts([*counted(report, report.kind), took, *_left(report), *notes])
    return [heading, Line(f"  {gone}", "warn" if code else "good"), Line(), facts, *items]


def _left(report: Report) -> list[Fact]:
    """What of a store of items was not done, and why."""
    left = [outcome for outcome in report.outcomes if outcome.result != "applied"]
    facts = [
        Fact("skipped", f"{outcome.id}: {outcome.why}", "warn")
        if outcome.result == "skipped"
        else Fact("failed", f"{outcome.id}: {outcome.why}", "bad")
        for outcome in left[:SHOWN]
    ]
    if len(left) > SHOWN:
        facts.append(Fact("", f"and {number(len(left) - SHOWN)} more; --json shows all"))
    return facts
