"""What is told of notes and sessions: item by item, what goes, what is flagged, what was spared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta

from keepfor.cli.blocks import Block, Fact, Line, Table
from keepfor.cli.wording import instant, number, rows, size, span
from keepfor.items import Decision, Evidence, Report
from keepfor.plan import Plan, spared

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

_UNITS = {"count": "", "bytes": " bytes"}


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
    if kept_back := spared(plan):
        lines = [[said.id, _taker(said), why(said)] for said in kept_back]
        blocks += [Line(), Table(["spared", "from", "why"], lines)]
    return blocks


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
    if kept_back := spared(planned):
        lines = [[each.id, _taker(each), why(each)] for each in kept_back]
        blocks += [Line(), Table(["spared", "from", "why"], lines)]
    return sentence, blocks


def why(said: Decision) -> str:
    """Why an item is decided so, with the numbers."""
    return "; ".join(_reasons(said))


def threshold(facts: Evidence) -> str:
    """How old, or how long unused, an item is beside how long it may be."""
    limit = facts.get("threshold")
    if "age_days" in facts:
        return f"{days(facts['age_days'])} old by its {facts['source']}, limit {limit}"
    if "unused_days" in facts and facts.get("access") == "missing":
        spent, source = days(facts["unused_days"]), facts["source"]
        return f"no access on record, {spent} old by its {source}, limit {limit}"
    if "unused_days" in facts:
        spent, source = days(facts["unused_days"]), facts["source"]
        return f"last recalled {spent} ago by {source}, limit {limit}"
    return str(facts["why"]) if "why" in facts else ""


def _reasons(said: Decision) -> Iterator[str]:
    facts = said.evidence
    yield _reason(said)
    if said.reason == "cited" and "why" in facts:
        yield str(facts["why"])
    if "flagged_days" in facts:
        yield f"flagged {days(facts['flagged_days'])} ago, after {facts['after_flagged']}"
    if "superseded" in facts:
        yield f"in place of {facts['superseded']}"


def _reason(said: Decision) -> str:
    facts = said.evidence
    match said.reason:
        case "age" | "unused" | "spared" | "flagged":
            already = "flagged already, " if said.reason == "flagged" else ""
            return f"{already}{threshold(facts)}"
        case "count" | "bytes":
            return f"above the ceiling of {facts['ceiling']}{_UNITS[said.reason]}"
        case "cited":
            return f"named by {facts['by']}, which stays"
        case "floor":
            of = f" of type {facts['type']}" if "type" in facts else ""
            return f"among the newest {facts['keep_last']}{of}"
        case "veto":
            return str(said.rule)
        case "pinned":
            return "a rule keeps it whatever its age"
        case "none":
            return str(facts["why"]) if "why" in facts else "no rule took it"
    return f"made from {facts['from']}, which goes"


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _taker(said: Decision) -> str:
    """What would have taken an item that was spared."""
    if said.reason == "spared":
        return str(said.rule)
    return str(said.evidence.get("withheld") or "-")


def days(count: object) -> str:
    """A number of days, as a duration."""
    return span(timedelta(days=count)) if isinstance(count, int | float) else str(count)


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
