"""A policy, the items of a store and an instant: what is to happen to each item, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from types import MappingProxyType

from msgspec.structs import replace

from keepfor.items import Action, Decision, Evidence, Item
from keepfor.policy.limits import newest, over_ceilings, stands
from keepfor.policy.rules import Policy, Rule
from keepfor.policy.verdicts import Verdict, verdict

_NO_VETOES: Mapping[str, str] = MappingProxyType({})


def decide(
    policy: Policy, items: Sequence[Item], now: datetime, vetoes: Mapping[str, str] = _NO_VETOES
) -> list[Decision]:
    """What the policy says of each item.

    Floors and vetoes come first and win over everything: what they hold is neither flagged nor
    deleted. Then the rules, the cascades, and the ceilings, each over what the former left.

    Parameters:
        policy: what the store is held to.
        items: all that the store holds.
        now: the instant to judge by, aware.
        vetoes: why an item must stay as it is, by its id.

    Returns:
        One decision per item, in the order of the items.
    """
    held = newest(items, policy.keep_last)
    decisions = []
    for index, item in enumerate(items):
        decision = _by_rules(policy.rules, item, now)
        if index in held:
            decision = _withheld(decision, "floor", "keep_last", {"keep_last": policy.keep_last})
        elif item.id in vetoes:
            decision = _withheld(decision, "veto", vetoes[item.id], {})
        decisions.append(decision)
    _cascade(policy.rules, items, decisions)
    for index, reason, evidence in over_ceilings(policy, items, decisions):
        decisions[index] = _deleted(decisions[index], f"max_{reason}", reason, evidence)
    return decisions


def _by_rules(rules: Sequence[Rule], item: Item, now: datetime) -> Decision:
    """The first rule that says yes; where one could not tell, the evidence says so."""
    unknown = 0
    evidence: Evidence = {}
    for rule in rules:
        said = verdict(rule, item, now)
        if said.answer == "yes":
            return _matched(rule, item, said, evidence)
        if said.answer == "unknown":
            unknown += 1
            evidence = {"unknown": unknown, "why": said.evidence()["why"]}
    return _decision(item, "keep", None, "none", evidence)


def _matched(rule: Rule, item: Item, said: Verdict, unknown: Evidence) -> Decision:
    evidence = unknown | said.evidence()
    action: Action = rule.action
    reason: str = said.reason
    if action == "delete" and reason == "unused" and said.degraded:
        if rule.on_missing_access_signal == "skip":
            return _decision(item, "keep", rule.name, "spared", evidence)
        action = rule.on_missing_access_signal
    if action == "flag" and item.flagged_by == rule.name:
        return _decision(item, "keep", rule.name, "flagged", evidence)
    return _decision(item, action, rule.name, reason, evidence)


def _cascade(rules: Sequence[Rule], items: Sequence[Item], decisions: list[Decision]) -> None:
    """Take along what was derived from the items that a cascading rule deletes.

    One step only: what goes by cascade takes nothing along itself, for no rule has looked at it.
    """
    cascading = {rule.name for rule in rules if rule.cascade_derived}
    causes = {
        decision.id: decision
        for decision in decisions
        if decision.action == "delete" and decision.rule in cascading
    }
    if not causes:
        return
    for index, item in enumerate(items):
        # An empty link links to nothing.
        cause = causes.get(item.derived_from) if item.derived_from else None
        was = decisions[index]
        if cause is None or was.action == "delete" or stands(was):
            continue
        evidence: Evidence = {"from": cause.id, "because": cause.reason}
        decisions[index] = _deleted(was, cause.rule, f"cascade:{cause.id}", evidence)


def _deleted(was: Decision, rule: str | None, reason: str, evidence: Evidence) -> Decision:
    if was.rule is not None:
        evidence = evidence | {"superseded": was.rule}
    return replace(was, action="delete", rule=rule, reason=reason, evidence=evidence)


def _withheld(was: Decision, reason: str, by: str, evidence: Evidence) -> Decision:
    if was.action != "keep":
        evidence = evidence | {"withheld": was.rule}
    return replace(was, action="keep", rule=by, reason=reason, evidence=evidence)


def _decision(
    item: Item, action: Action, rule: str | None, reason: str, evidence: Evidence
) -> Decision:
    return Decision(
        id=item.id,
        action=action,
        rule=rule,
        reason=reason,
        evidence=evidence,
        fingerprint=item.fingerprint,
        bytes=item.bytes,
    )
