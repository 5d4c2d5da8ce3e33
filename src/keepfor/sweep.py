"""Carries out what a policy says of a store: a plan made before, or a prune at the write site."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from typing import Literal, Protocol

import msgspec

from keepfor import wording
from keepfor.counting import count_outcomes, fill, not_done
from keepfor.errors import (
    BreakerTripped,
    DatabaseBusy,
    KeepforError,
    PlanSpent,
    PlanStale,
    StoreBusy,
    StoreChanged,
    SweepInterrupted,
    SweepStopped,
    Unfinished,
)
from keepfor.items import Extent, Item, Report, Survey, Terms
from keepfor.plan import Plan, build, policy_digest
from keepfor.policy.limits import must_wait
from keepfor.policy.rules import Policy, terms
from keepfor.stores.base import ItemStore, Progress, RowStore, Store

#: How long a sweep waits for another one of the same store, in seconds.
PATIENCE = 10.0
#: After how long of that whoever watches may call it off.
_STEP = 0.5

StartedBy = Literal["apply", "background", "dashboard", "mcp", "write site"]


class Recorder(Protocol):
    """Where sweeps are recorded: the trail."""

    def spent(self, plan: Plan) -> bool:
        """Whether the plan was begun before, as far as can be told."""

    def begin(self, report: Report) -> None:
        """Record durably that a sweep is about to act."""

    def end(self, report: Report, error: str) -> None:
        """Record what it did, and what went wrong if anything did."""


def planned(
    store: RowStore | ItemStore,
    policy: Policy,
    now: datetime,
    *,
    name: str,
    progress: Progress | None = None,
    seen: list[Item] | None = None,
) -> Plan:
    """A plan that is to be carried out at once; the parameters are those of `plan.build`.

    A reader leaves alone what a killed sweep left. Where that keeps a store from being read, it is
    put in order first, as the sweep itself would do.
    """
    try:
        return build(store, policy, now, name=name, progress=progress, seen=seen)
    except Unfinished:
        with _locked(store, progress):
            pass
        return build(store, policy, now, name=name, progress=progress, seen=seen)


def apply(
    plan: Plan,
    store: RowStore | ItemStore,
    policy: Policy,
    now: datetime,
    *,
    trail: Recorder,
    force: bool = False,
    started_by: StartedBy = "apply",
    progress: Progress | None = None,
) -> Report:
    """Carry out a plan, once, and only as far as a plan made now would go too.

    Parameters:
        plan: what to do.
        store: what to do it to.
        policy: what the store is held to now.
        now: the present instant.
        trail: where it is recorded.
        force: whether to pass the breaker.
        started_by: who asked for it.
        progress: called with how far it is.

    Raises:
        PlanStale: when target or policy changed, or it was made for a later instant.
        PlanSpent: when it was carried out before.
        BreakerTripped: when it takes too much of the store, and `force` is not given.
        StoreBusy: when another sweep of the store does not end.
        StoreError: when the store cannot be read or written.
    """
    _check(plan, store, policy, now)
    _stop_at_breaker(plan, force)
    report = _report(plan.store, store, policy, now, started_by)
    report.plan = plan.digest
    with _locked(store, progress):
        if trail.spent(plan):
            raise PlanSpent(store=plan.store, digest=plan.digest)
        with _recorded(report, trail) as begin:
            if isinstance(store, RowStore):
                agreed = terms(policy, now, store.bounds)
                survey = _both(plan.survey, store.aim(agreed))
                _apply_rows(plan, survey, store, agreed, report, begin, progress)
            else:
                fresh = build(store, policy, now, name=plan.store, progress=progress)
                _apply_items(plan, fresh, store, report, begin, progress)
    return report


def sweep_now(
    store: RowStore | ItemStore,
    policy: Policy,
    now: datetime,
    *,
    name: str,
    trail: Recorder | None,
    started_by: StartedBy = "apply",
    force: bool = False,
    progress: Progress | None = None,
    on_plan: Callable[[Plan], None] | None = None,
) -> Report:
    """Plan and carry the plan out, with every other sweep kept out from before the first look.

    Two that come at once take turns, and the second finds what the first left to do.

    Parameters:
        store: what to sweep.
        policy: what it is held to.
        now: the present instant.
        name: what the store is called.
        trail: where it is recorded, whatever comes of it; None for nowhere.
        started_by: who asked for it.
        force: whether to pass the breaker.
        progress: called with how far it is.
        on_plan: told what is about to be done; an error of its ends the sweep before it acts.

    Raises:
        BreakerTripped: when it takes too much of the store, and `force` is not given.
        StoreBusy: when another sweep of the store does not end.
        StoreError: when the store cannot be read or written.
    """
    report = _report(name, store, policy, now, started_by)
    with _recorded(report, trail) as begin, _locked(store, progress):
        plan = build(store, policy, now, name=name, progress=progress)
        report.plan = plan.digest
        if on_plan:
            on_plan(plan)
        _stop_at_breaker(plan, force)
        if isinstance(store, RowStore):
            agreed = terms(policy, now, store.bounds)
            _apply_rows(plan, plan.survey, store, agreed, report, begin, progress)
        else:
            _apply_items(plan, plan, store, report, begin, progress)
    return report


def prune(
    store: RowStore,
    policy: Policy,
    now: datetime,
    *,
    name: str,
    reach: int | None = None,
    unattended: bool = False,
    trail: Recorder | None = None,
    wait: float = PATIENCE,
) -> Report:
    """Hold a store of rows to its policy in one pass, as the write site does.

    Parameters:
        store: what to prune.
        policy: what it is held to.
        now: the instant to judge ages by.
        name: what the store is called.
        reach: rows at or past this position stay, whatever they are.
        unattended: whether nobody is there to ask, so that rows are expired only once those that
            stay span a day; the ceiling holds all the same.
        trail: where it is recorded, if anywhere.
        wait: how long to wait for another prune, in seconds.

    Raises:
        StoreBusy: when another prune does not end.
        StoreError: when the store cannot be read or written.
    """
    report = _report(name, store, policy, now, "write site")
    with store.locked(wait), _recorded(report, trail) as begin:
        waits = False

        def accept(done: Survey) -> bool:
            nonlocal waits
            waits = unattended and must_wait(policy, done, now)
            if not waits:
                begin()
            return not waits

        agreed = terms(policy, now, store.bounds)
        try:
            done = store.delete(_within(store.aim(agreed), reach), agreed, accept=accept)
        except (SweepStopped, SweepInterrupted) as stopped:
            fill(report, stopped.done)
            raise
        if waits:
            report.notes.append("nothing was expired: the rows that would stay do not span a day")
            unattended, agreed = False, msgspec.structs.replace(agreed, cutoff=None)
            done = store.delete(_within(store.aim(agreed), reach), agreed, accept=accept)
        fill(report, done)
    return report


def prune_items(
    store: ItemStore,
    policy: Policy,
    now: datetime,
    *,
    name: str,
    unattended: bool = False,
    trail: Recorder | None = None,
    wait: float = PATIENCE,
) -> Report:
    """Hold a store of items to its policy, as the write site does; see `prune`."""
    report = _report(name, store, policy, now, "write site")
    with store.locked(wait), _recorded(report, trail) as begin:
        plan = build(store, policy, now, name=name)
        found = plan.survey
        if unattended and must_wait(policy, found, now):
            report.notes.append("nothing was expired: what would stay does not span a day")
            pins = tuple(rule for rule in policy.rules if rule.action == "keep")
            plan = build(store, msgspec.structs.replace(policy, rules=pins), now, name=name)
        _apply_items(plan, plan, store, report, begin)
    return report


@contextmanager
def _locked(store: Store, progress: Progress | None) -> Iterator[None]:
    """Keep other sweeps out; whoever follows the progress can end the waiting for one."""
    until = time.monotonic() + PATIENCE
    with ExitStack() as stack:
        while True:
            left = until - time.monotonic()
            try:
                stack.enter_context(store.locked(max(0.0, min(_STEP, left))))
                break
            except DatabaseBusy:
                raise
            except StoreBusy as busy:
                if left <= _STEP:
                    raise StoreBusy(path=busy.facts["path"], waited=PATIENCE) from None
            if progress:
                progress(0, 0)
        yield


def _check(plan: Plan, store: RowStore | ItemStore, policy: Policy, now: datetime) -> None:
    why = None
    if (plan.kind, plan.target) != (store.kind, store.target):
        why = f"it was made for {plan.target}, and the store is {store.target} now"
    elif plan.policy != policy_digest(policy, store.settings):
        why = "the policy changed since it was made"
    elif plan.now > now:
        why = f"it was made for {plan.now.isoformat()}, which is still to come"
    if why:
        raise PlanStale(store=plan.store, why=why)


def _stop_at_breaker(plan: Plan, force: bool) -> None:
    if plan.tripping and not force:
        delete, total = plan.tripping
        raise BreakerTripped(store=plan.store, delete=delete, total=total, limit=plan.breaker)


def _apply_rows(
    plan: Plan,
    survey: Survey,
    store: RowStore,
    agreed: Terms,
    report: Report,
    begin: Callable[[], None],
    progress: Progress | None,
) -> None:
    def accept(done: Survey) -> bool:
        if done.applied > plan.survey.applied:
            raise StoreChanged(path=plan.target, why="more rows would go than were planned")
        begin()
        return True

    try:
        done = store.delete(survey, agreed, progress, accept)
    except (SweepStopped, SweepInterrupted) as stopped:
        fill(report, stopped.done)
        raise
    fill(report, done)
    if isinstance(plan.survey.extent, Extent):
        # Of a table, the store says which rows are there still: others may have deleted some.
        report.skipped = max(0, min(plan.survey.applied - done.applied, done.kept))
        report.kept -= report.skipped


def _both(planned: Survey, present: Survey) -> Survey:
    """What was planned, as far as a plan made now would reach; the deletion counts it anew."""
    below = min(planned.below, present.below) if planned.below and present.below else None
    cutoffs = {(part.rule, part.type, part.ceiling): part.cutoff for part in present.parts}
    parts = []
    for part in planned.parts:
        now = cutoffs.get((part.rule, part.type, part.ceiling))
        cutoff = min(part.cutoff, now) if part.cutoff and now else None
        parts.append(msgspec.structs.replace(part, cutoff=cutoff))
    return msgspec.structs.replace(planned, below=below, parts=parts)


def _apply_items(
    plan: Plan,
    fresh: Plan,
    store: ItemStore,
    report: Report,
    begin: Callable[[], None],
    progress: Progress | None = None,
) -> None:
    planned = [decision for decision in plan.decisions if decision.action != "keep"]
    present = {decision.id: decision for decision in fresh.decisions}
    standing, outcomes = [], []
    for decision in planned:
        now = present.get(decision.id)
        if now is not None and now.action == decision.action:
            standing.append(decision)
        else:
            outcomes.append(not_done(decision, "skipped", wording.otherwise(now)))
    try:
        if standing:
            begin()
            for outcome in store.apply(standing):
                outcomes.append(outcome)
                if progress:
                    progress(len(outcomes), len(planned))
    finally:
        told = {outcome.id for outcome in outcomes}
        outcomes += [
            not_done(decision, "failed", "the sweep ended before it")
            for decision in standing
            if decision.id not in told
        ]
        count_outcomes(report, plan.survey, planned, outcomes)


def _report(
    name: str, store: RowStore | ItemStore, policy: Policy, now: datetime, started_by: StartedBy
) -> Report:
    return Report(
        store=name,
        kind=store.kind,
        target=store.target,
        rules=[rule.name for rule in policy.rules],
        policy=policy_digest(policy, store.settings),
        now=now,
        started_by=started_by,
    )


def _within(survey: Survey, reach: int | None) -> Survey:
    if reach is None or not isinstance(survey.extent, Extent):
        return survey
    extent = msgspec.structs.replace(survey.extent, end=min(survey.extent.end, reach))
    return msgspec.structs.replace(survey, extent=extent)


@contextmanager
def _recorded(report: Report, trail: Recorder | None) -> Iterator[Callable[[], None]]:
    """Measure a sweep and see that the trail has its beginning, if it acts, and its end."""
    started = time.monotonic()

    def begin() -> None:
        if trail:
            trail.begin(report)

    error = ""
    try:
        yield begin
    except BaseException as failure:
        error = str(failure) or type(failure).__name__
        raise
    finally:
        report.duration = time.monotonic() - started
        if trail:
            try:
                trail.end(report, error)
            except (OSError, KeepforError) as failure:
                report.notes.append(f"the trail has no record of how this ended: {failure}")
