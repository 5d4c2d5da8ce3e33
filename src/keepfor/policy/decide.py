"""A policy, the items of a store and an instant: what is to happen to each item, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType

from msgspec.structs import replace

from keepfor.items import Action, Decision, Evidence, Item
from keepfor.policy.citations import spare_the_cited
from keepfor.policy.limits import floors, over_ceilings, stands
from keepfor.policy.rules import Policy, Rule
from keepfor.policy.verdicts import Verdict, in_utc, verdict
from keepfor.times import Known, before

#: Of most stores nothing is held by anything but the policy.
NO_VETOES: Mapping[str, str] = MappingProxyType({})


def decide(
    policy: Policy, items: Sequence[Item], now: datetime, vetoes: Mapping[str, str] = NO_VETOES
) -> list[Decision]:
    """What the policy says of each item.

    Floors and vetoes come first and win over everything: what they hold is neither flagged nor
    deleted. Then the rules, the cascades, the citations, and the ceilings, each over what the
    former left.

    Parameters:
        policy: what the store is held to.
        items: all that the store holds.
        now: the instant to judge by, aware.
        vetoes: why an item must stay as it is, by its id.

    Returns:
        One decision per item, in the order of the items.
    """
    decisions = _by_rules(policy.rules, items, now)
    held = floors(policy, items)
    if vetoes:
        for index, item in enumerate(items):
            if item.id in vetoes and index not in held:
                decisions[index] = _withheld(decisions[index], "veto", vetoes[item.id], {})
    for index, evidence in held.items():
        decisions[index] = _withheld(decisions[index], "floor", "keep_last", evidence)
    before_cascades = tuple(decisions)
    _cascade(policy.rules, items, decisions)
    spare_the_cited(policy.rules, items, before_cascades, decisions)
    for index, reason, evidence in over_ceilings(policy, items, decisions):
        decisions[index] = _deleted(decisions[index], f"max_{reason}", reason, evidence)
    return decisions


def _by_rules(rules: Sequence[Rule], items: Sequence[Item], now: datetime) -> list[Decision]:
    """What the rules say of each item, by the verdict of each rule that is about its type.

    Most items of a store are too young for any rule. That is seen by comparing two instants, so
    that verdicts are reached on the others alone.
    """
    decisions = []
    # One for all: to make so many empty ones would take longer than all the rest.
    nothing: Evidence = {}
    by_type = {}
    for type_ in {item.type for item in items}:
        of_type = [rule for rule in rules if rule.type in (None, type_)]
        by_type[type_] = of_type, _latest_cutoffs(of_type, now)
    for item in items:
        of_type, cutoffs = by_type[item.type]
        if cutoffs is not None and isinstance(item.instant, Known):
            instant, accessed = item.instant.instant, item.accessed
            used = accessed.instant if isinstance(accessed, Known) else instant
            # One on the cutoff may go either way: its verdicts come to the same.
            if instant >= cutoffs[0] and used >= cutoffs[1]:  # pragma: no mutate
                decisions.append(
                    Decision(
                        id=item.id,
                        action="keep",
                        evidence=nothing,  # pragma: no mutate
                        fingerprint=item.fingerprint,
                        bytes=item.bytes,
                    )
                )
                continue
        decisions.append(_by_verdicts(of_type, item, now))
    return decisions


def _latest_cutoffs(rules: Sequence[Rule], now: datetime) -> tuple[datetime, datetime] | None:
    """From which instants on, of age and of use, each of these rules plainly says no.

    Returns:
        None where a rule says yes whatever the instants are.
    """
    if any(rule.pins for rule in rules):
        return None
    now = in_utc(now)
    earliest = datetime.min.replace(tzinfo=UTC)
    ages = [before(now, rule.max_age) for rule in rules if rule.max_age is not None]
    uses = [before(now, rule.max_unused) for rule in rules if rule.max_unused is not None]
    return max(ages, default=earliest), max(uses, default=earliest)


def _by_verdicts(rules: Sequence[Rule], item: Item, now: datetime) -> Decision:
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
        name = cause.id.rpartition("/")[2]
        decisions[index] = _deleted(was, cause.rule, f"cascade:{name}", evidence)


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
