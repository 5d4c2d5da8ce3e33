"""`explain`: why one item stays or goes, and what would take it next."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from keepfor.cli.blocks import Block, Fact, Facts, Heading, Line, Table
from keepfor.cli.documents import Answer
from keepfor.cli.invocation import Invocation
from keepfor.config import asking, policy_of
from keepfor.items import Decision, Evidence
from keepfor.policy.explain import Change, Explanation, Opinion
from keepfor.times import parse_now
from keepfor.wording import days, instant, threshold, why

_WOULD = {"delete": "it would be deleted", "flag": "it would be flagged", "keep": "it would stay"}
_IS = {"delete": "It is to be deleted", "flag": "It is to be flagged", "keep": "It stays"}


def explain(
    run: Invocation, name: str, id_: str, now: str | None = None, policy: Path | None = None
) -> Answer:
    """Say why an item is decided as it is. Writes nothing.

    Parameters:
        name: the store's.
        id_: the item's, as plans show it.
        now: the instant to judge ages by; None for the present.
        policy: a file with the rules of the store, which has to be of notes then.

    Returns:
        The document has `store`, `id` and `now`; `decision`, what a plan says of it (`action`,
        `rule`, `reason`, `bytes`, `evidence`); `rules`: for each rule its name as `rule`, its
        `action`, `answer` (`yes`, `no` or `unknown`), `reason`, `evidence` and `due` (the instant
        after which it says yes, or null); and `next`, null or what becomes of the item after that:
        `due`, `action`, `rule`, `reason`.

    Raises:
        UnknownItem: when the store holds no such item.
        ConfigError: when the store holds rows, which have no identity.
    """
    run.policy = policy
    store, moment = run.items(name), run.clock() if now is None else parse_now(now)
    with run.out.progress(f"Reading {name}") as progress:
        found = asking.explain(store, policy_of(run.settings(name)), moment, id_, progress)
    run.out.show(*_described(name, id_, found))
    facts = {"store": name, "id": id_, "now": moment, **_document(found)}
    return Answer(verb="explain", facts=facts)


def _document(found: Explanation) -> dict[str, Any]:
    told = found.decision
    following = None
    if found.next:
        then = found.next.decision
        following = {"due": found.next.due, **_said(then)}
    return {
        "decision": {**_said(told), "bytes": told.bytes, "evidence": told.evidence},
        "rules": found.opinions,
        "next": following,
    }


def _said(decision: Decision) -> dict[str, Any]:
    return {name: getattr(decision, name) for name in ("action", "rule", "reason")}


def _described(name: str, id_: str, found: Explanation) -> list[Block]:
    said = found.decision
    tone: Any = "good" if said.action == "keep" else "warn"
    how = "spared from" if said.reason == "spared" else "by"
    by = f", {how} {said.rule}" if said.rule and said.reason != "veto" else ""
    blocks: list[Block] = [
        Heading(id_, (name,)),
        Line(f"  {_IS[said.action]}{by}: {why(said)}.", tone),
    ]
    if said.action != "delete":
        blocks += [Line(), Facts([Fact("next", _next(found.next))])]
    if found.opinions:
        lines = [[each.rule, each.action, each.answer, _why(each)] for each in found.opinions]
        blocks += [Line(), Table(["rule", "would", "matches", "why"], lines)]
    return blocks


def _next(change: Change | None) -> str:
    if change is None:
        return "nothing, as far as can be told"
    then = change.decision
    by = f" by {then.rule}" if then.rule else ""
    return f"after {instant(change.due)} {_WOULD[then.action]}{by} ({then.reason})"


def _why(said: Opinion) -> str:
    facts = said.evidence
    match said.reason:
        case "type":
            return "it is of another type"
        case "match":
            return f"its {facts['unmet']} does not match"
        case "pinned":
            return "it keeps all that it speaks of"
    parts = [threshold(facts)]
    if "after_flagged" in facts:
        parts.append(_flag(facts))
    if said.answer != "yes" and said.due:
        parts.append(f"matches after {instant(said.due)}")
    return "; ".join(filter(None, parts))


def _flag(facts: Evidence) -> str:
    if "flagged_days" not in facts:
        return f"needs a flag that stood for {facts['after_flagged']}"
    stood = days(facts["flagged_days"])
    return f"flagged {stood} ago, after {facts['after_flagged']} it may go"
