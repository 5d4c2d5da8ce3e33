"""Carries out the very plan that stands on a person's screen, or says why it no longer holds."""

from __future__ import annotations

from collections.abc import Iterator

from keepfor import plan as plans
from keepfor import sweep
from keepfor.config import Config, asking, policy_of
from keepfor.config.opening import open_trail
from keepfor.config.standing import in_words
from keepfor.errors import KeepforError
from keepfor.items import Decision, Report
from keepfor.plan import Plan, policy_digest
from keepfor.stores.base import RowStore
from keepfor.web.desk import Desk, Shown
from keepfor.wording import rows, why

_IS = {"keep": "stays now", "flag": "would be flagged now", "delete": "would be deleted now"}


class Refused(Exception):
    """A plan that is not carried out.

    Parameters:
        status: the HTTP status that says so.
        what: what is the matter.
        changes: what is no longer as it was shown, a sentence for each.
    """

    def __init__(self, status: int, what: str, changes: list[str] | None = None) -> None:
        super().__init__(what)
        self.status = status
        self.changes = changes or []


def apply(desk: Desk, name: str, digest: str, token: str) -> Report:
    """Carry out a plan that was shown: exactly that one, once, and never past the breaker.

    Parameters:
        desk: what was shown, and who may apply.
        name: the store's.
        digest: the plan's.
        token: what the server told the person who started it.

    Raises:
        Refused: when nobody may, the token is wrong, or the plan no longer holds.
        UnknownPlan: when it was not shown here.
        KeepforError: as `sweep.apply` does.
    """
    tokens = desk.tokens
    if tokens is None:
        what = "This dashboard only shows. Start it with --allow-apply to apply what it shows."
        raise Refused(403, what)
    shown, config = desk.shown(name, digest), desk.config()
    settings = asking.settings(config, name)
    if not tokens.matches(token):
        what = "That is not the token. The last one that `keepfor serve` printed is good, once."
        raise Refused(403, what)
    if changes := list(_changes(shown, config, name)):
        raise Refused(409, "What you saw is no longer so.", changes)
    if not tokens.take(token):
        raise Refused(403, "That token was just used for another plan.")
    try:
        report = sweep.apply(
            shown.plan,
            asking.store(config, name),
            policy_of(settings),
            desk.now(),
            trail=open_trail(config),
            started_by="dashboard",
        )
    finally:
        tokens.renew()
    desk.keep(report)
    return report


def _changes(shown: Shown, config: Config, name: str) -> Iterator[str]:
    """What is no longer as it was shown. What came since is out of the plan's reach."""
    plan, settings, store = shown.plan, asking.settings(config, name), asking.store(config, name)
    policy = policy_of(settings)
    if (plan.kind, plan.target) != (store.kind, store.target):
        yield f"The store was {plan.target}, and is {store.target} now."
        return
    if plan.policy != policy_digest(policy, store.settings):
        yield f"The settings changed. They said: {shown.words} They say now: {in_words(settings)}"
        return
    if open_trail(config).spent(plan):
        yield "It was carried out already."
        return
    # Judged by the plan's own instant, so that only what others did counts as a change.
    try:
        fresh = plans.build(store, policy, plan.now, name=name)
    except (KeepforError, OSError) as error:
        yield str(error)
        return
    yield from _of_rows(plan, fresh) if isinstance(store, RowStore) else _of_items(plan, fresh)


def _of_rows(plan: Plan, fresh: Plan) -> Iterator[str]:
    before, after = plan.survey, fresh.survey
    if after.applied < before.applied:
        were = rows(before.applied, plan.kind)
        yield f"{were} would have gone, and {rows(after.applied, plan.kind)} would now."
    elif before.extent and (not after.extent or before.extent.identity != after.extent.identity):
        yield "The store was replaced by another one."


def _of_items(plan: Plan, fresh: Plan) -> Iterator[str]:
    present = {said.id: said for said in fresh.decisions}
    for said in plan.decisions:
        if said.action != "keep" and (change := _change(said, present.get(said.id))):
            yield change


def _change(said: Decision, now: Decision | None) -> str:
    """What became of an item that something was to happen to; empty where nothing did."""
    if now is None:
        return f"{said.id} is no longer there."
    if now.action != said.action:
        return f"{said.id} {_IS[now.action]}: {why(now)}."
    return f"{said.id} was changed." if now.fingerprint != said.fingerprint else ""
