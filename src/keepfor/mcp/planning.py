"""The tools that decide and do: what would go and why, what was recalled, and what is applied."""

from __future__ import annotations

from collections.abc import Sequence

from keepfor import plan as plans
from keepfor import sweep
from keepfor.config import asking, policy_of, traps
from keepfor.config.opening import open_trail
from keepfor.config.standing import in_words
from keepfor.errors import KeepforError
from keepfor.items import Decision, Item
from keepfor.mcp import answers, asked
from keepfor.mcp.desk import Desk, names_of, problem, until_cancelled
from keepfor.plan import Plan
from keepfor.policy.lint import Trap
from keepfor.sweeper.keeping import outcome

#: How many items that a sweep left alone are told.
_NOT_DONE = 50


def retention_plan(desk: Desk, wanted: asked.Planned) -> answers.Plans:
    """What would go, and why."""
    config, now = desk.config(), desk.now()
    stores = []
    for name in names_of(config, wanted.stores):
        settings, proposal, error = asking.settings(config, name), None, None
        seen: list[Item] = []
        try:
            plan = plans.build(
                asking.store(config, name),
                policy_of(settings),
                now,
                name=name,
                progress=until_cancelled(name),
                seen=seen,
            )
        except (KeepforError, OSError) as failure:
            error = problem(failure)
        else:
            desk.keep(plan)
            found = traps(config, {name: seen}).get(name, [])
            proposal = _proposal(plan, found, settings.keeps_orphans, wanted.limit)
        stores.append(
            answers.StorePlan(
                store=name,
                kind=settings.kind,
                policy=in_words(settings),
                plan=proposal,
                error=error,
            )
        )
    return answers.Plans(now=now, stores=stores)


def retention_explain(desk: Desk, wanted: asked.OneItem) -> answers.Explanation:
    """Why one item stays or goes."""
    config, name, now = desk.config(), wanted.store, desk.now()
    store, policy = asking.items(config, name), policy_of(asking.settings(config, name))
    found = asking.explain(store, policy, now, wanted.id, until_cancelled(name))
    following = None
    if change := found.next:
        following = answers.Change(
            due=change.due,
            action=change.decision.action,
            rule=change.decision.rule,
            reason=change.decision.reason,
        )
    return answers.Explanation(
        store=name,
        id=wanted.id,
        now=now,
        decision=answers.Decision.model_validate(found.decision),
        rules=[answers.Opinion.model_validate(said) for said in found.opinions],
        next=following,
    )


def record_access(desk: Desk, wanted: asked.Recalled) -> answers.Accessed:
    """Note that items were recalled."""
    store, now = asking.entities(desk.config(), wanted.store), desk.now()
    found = asking.record_access(store, wanted.ids, now)
    unknown = [
        answers.UnknownId(id=id_, message=str(error)) for id_, error in found.unknown.items()
    ]
    return answers.Accessed(store=wanted.store, at=now, recorded=found.recorded, unknown=unknown)


def retention_apply(desk: Desk, wanted: asked.OnePlan) -> answers.Report:
    """Carry out a plan that was shown: once, and never past the breaker."""
    plan, config = desk.shown(wanted.digest), desk.config()
    settings = asking.settings(config, plan.store)
    report = sweep.apply(
        plan,
        asking.store(config, plan.store),
        policy_of(settings),
        desk.now(),
        trail=open_trail(config),
        started_by="mcp",
        progress=until_cancelled(plan.store),
    )
    left = [done for done in report.outcomes if done.result != "applied"]
    flagged = sum(done.action == "flag" and done.result == "applied" for done in report.outcomes)
    return answers.Report(
        store=report.store,
        kind=settings.kind,
        plan=plan.digest,
        outcome=outcome(report),
        scanned=report.scanned,
        kept=report.kept,
        applied=report.applied,
        skipped=report.skipped,
        failed=report.failed,
        deleted=report.applied - flagged,
        flagged=flagged,
        dependents=report.dependents,
        orphans=report.orphans,
        bytes_before=report.bytes_before,
        bytes_after=report.bytes_after,
        duration_seconds=report.duration,
        not_done=[answers.NotDone.model_validate(done) for done in left[:_NOT_DONE]],
        not_done_left_off=max(0, len(left) - _NOT_DONE),
        notes=report.notes,
    )


def _proposal(
    plan: Plan, found: Sequence[Trap], orphans_stay: bool, limit: int
) -> answers.Proposal:
    survey = plan.survey
    taken = sorted(
        (said for said in plan.decisions if said.action != "keep"),
        # What is deleted comes before what is flagged, so that no limit hides it.
        key=lambda said: (said.action != "delete", said.id),
    )
    spared = plans.spared(plan)
    return answers.Proposal(
        digest=plan.digest,
        exists=plan.exists,
        scanned=survey.scanned,
        kept=survey.kept,
        delete=plan.deletes,
        flag=survey.applied - plan.deletes,
        expired=survey.expired,
        unreadable=survey.unreadable,
        over_ceiling=survey.over_ceiling,
        future=survey.future,
        unknown=survey.unknown,
        cutoff=survey.cutoff,
        oldest_kept=survey.oldest,
        lag_seconds=survey.lag.total_seconds(),
        bytes_before=survey.bytes_before,
        bytes_after=survey.bytes_after,
        dependents=survey.dependents,
        orphans=survey.orphans,
        orphans_stay=orphans_stay,
        breaker=answers.Breaker(limit=plan.breaker, share=plan.share, tripped=plan.trips_breaker),
        parts=[answers.Part.model_validate(part) for part in survey.parts],
        items=_first(taken, limit),
        items_left_off=max(0, len(taken) - limit),
        spared=_first(spared, limit),
        spared_left_off=max(0, len(spared) - limit),
        traps=[answers.Trap.model_validate(trap) for trap in found],
        notes=survey.notes,
    )


def _first(decisions: Sequence[Decision], limit: int) -> list[answers.Decision]:
    return [answers.Decision.model_validate(said) for said in decisions[:limit]]
