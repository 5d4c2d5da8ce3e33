"""What is told of notes and sessions: item by item, what goes, what is flagged, what was spared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from keepfor.cli.blocks import Block, Fact, Line, Table
from keepfor.items import Decision, Report
from keepfor.plan import Plan, spared
from keepfor.wording import instant, number, rows, size, why

#: The order in which the gravest comes first.
_GRAVITY = {"delete": 0, "flag": 1}
#: What a reason is called where many are counted.
_CALLED = {
    "unused": "by disuse",
    "count": "above the ceiling",
    "bytes": "above the ceiling",
    "spared": "with no access on record",
    "cited": "named by others",
    "flagged": "flagged already",
    "pinned": "pinned",
    "floor": "among the newest that always stay",
    "veto": "not to be judged",
}


def flags(plan: Plan) -> int:
    """How many items would be flagged."""
    return sum(said.action == "flag" for said in plan.decisions)


def total(plan: Plan) -> Line:
    """What it comes to, in a sentence."""
    deleted, flagged = plan.deletes, flags(plan)
    of = rows(plan.survey.scanned, plan.kind)
    if not deleted and not flagged:
        return Line(f"  Nothing would be deleted or flagged of {of}.", "good")
    if not deleted:
        return Line(f"  {number(flagged)} of {of} would be flagged, and nothing deleted.", "warn")
    more = f", and {number(flagged)} flagged" if flagged else ""
    return Line(f"  {number(deleted)} of {of} would be deleted{more}.", "warn")


def counts(plan: Plan) -> list[Fact]:
    """What happens to how many items, and for which reasons."""
    by_action: dict[str, list[Decision]] = {"delete": [], "flag": [], "keep": []}
    for said in plan.decisions:
        by_action[said.action].append(said)
    kept_back = spared(plan)
    held = {said.id for said in kept_back}
    rest = [said for said in by_action["keep"] if said.id not in held]
    return [
        Fact("delete", _by_reason(by_action["delete"])),
        Fact("flag", _by_reason(by_action["flag"])),
        Fact("spare", _by_reason(kept_back, "of unknown age")),
        Fact("keep", _by_reason(rest)),
        *_ages(plan),
    ]


def going(plan: Plan) -> list[Block]:
    """Every item that would go or be flagged, the gravest first; and what was spared."""
    taken = sorted(
        (said for said in plan.decisions if said.action != "keep"),
        key=lambda said: (_GRAVITY[said.action], said.id),
    )
    blocks: list[Block] = []
    if taken:
        lines = [[said.id, said.action, said.rule or "-", why(said)] for said in taken]
        blocks += [Line(), Table(["item", "action", "rule", "why"], lines)]
    return blocks + _spared(plan)


def done(report: Report, planned: Plan) -> tuple[str, list[Block]]:
    """What a sweep came to: in a sentence, and item by item."""
    said = {decision.id: decision for decision in planned.decisions}
    applied = [outcome for outcome in report.outcomes if outcome.result == "applied"]
    deleted = sum(outcome.action == "delete" for outcome in applied)
    flagged = len(applied) - deleted
    of = rows(report.scanned, report.kind)
    parts = [f"{number(deleted)} of {of} {_are(deleted)} gone"]
    if flagged:
        parts.append(f"{number(flagged)} {_are(flagged)} flagged")
    sentence = f"{', and '.join(parts)}."
    if flagged and not deleted:
        sentence = f"{number(flagged)} of {of} {_are(flagged)} flagged, and nothing is gone."
    lines = [
        [
            outcome.id,
            {"delete": "deleted", "flag": "flagged"}.get(outcome.action, outcome.action),
            said[outcome.id].rule or "-",
            why(said[outcome.id]),
        ]
        for outcome in sorted(applied, key=lambda each: (_GRAVITY[each.action], each.id))
    ]
    blocks: list[Block] = []
    if lines:
        blocks += [Line(), Table(["item", "done", "rule", "why"], lines)]
    return sentence, blocks + _spared(planned)


def _spared(plan: Plan) -> list[Block]:
    """What something kept from a rule, and why."""
    lines = [[said.id, _taker(said), why(said)] for said in spared(plan)]
    return [Line(), Table(["spared", "from", "why"], lines)] if lines else []


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _taker(said: Decision) -> str:
    """What would have taken an item that was spared."""
    if said.reason == "spared":
        return str(said.rule)
    return str(said.evidence.get("withheld") or "-")


def _by_reason(decisions: Sequence[Decision], no_reason: str = "that no rule took") -> str:
    reasons = Counter(said.reason.partition(":")[0] for said in decisions)
    if not reasons:
        return "0"
    called = _CALLED | {"none": no_reason}
    told = ", ".join(
        f"{number(count)} {called.get(reason, f'by {reason}')}"
        for reason, count in sorted(reasons.items())
    )
    return f"{number(len(decisions))} ({told})"


def _ages(plan: Plan) -> Iterable[Fact]:
    survey = plan.survey
    if survey.future or survey.unknown:
        future, unknown = number(survey.future), number(survey.unknown)
        yield Fact("of these", f"{future} in the future, {unknown} of unknown age", "warn")
    yield Fact("oldest kept", instant(survey.oldest))
    yield Fact("size", f"{size(survey.bytes_before)} -> {size(survey.bytes_after)}")
