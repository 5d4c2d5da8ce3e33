"""Whole decisions, with their reasons and their evidence, for one store under many policies.

Each file of `golden/` holds a policy, what it shows, and what comes of it for the items of
`golden/store.yaml`. What is expected was written from what the rules mean, with the days counted by
hand. To change it on purpose, write the outcomes anew, and read the difference line by line:

    python -m tests.policy.test_golden --write && git diff tests/policy/golden

Every line of it is a decision that turned out another way.
"""

from __future__ import annotations

import difflib
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from keepfor.items import Item
from keepfor.policy.decide import decide
from keepfor.policy.explain import explain
from keepfor.policy.limits import shortfalls
from keepfor.policy.rules import Policy, Rule
from keepfor.times import Known, Unknown, parse_duration
from tests.policy.build import NOW, at, item

GOLDEN = Path(__file__).with_name("golden")
STORE = GOLDEN / "store.yaml"
FILES = sorted(set(GOLDEN.iterdir()) - {STORE})
#: What stands above this line is written by hand; what stands below can be written anew.
OUTCOME = "decided:\n"


def load(path: Path) -> Any:
    """What a file says; dates stay texts."""
    return yaml.load(path.read_text(encoding="utf-8"), yaml.BaseLoader)


def store() -> tuple[list[Item], dict[str, str]]:
    """The items, and what is vetoed."""
    items, vetoes = [], {}
    for said in load(STORE):
        id_ = said.pop("id")
        if "veto" in said:
            vetoes[id_] = said.pop("veto")
        when = said.pop("flagged_at", None)
        flagged_at = Known(at(when), "flag") if when else Unknown("when is not told")
        cites = said.pop("cites", [])
        items.append(
            item(
                id_,
                said.pop("date", None),
                said.pop("used", None),
                bytes=int(said.pop("bytes")),
                cites=None if cites == "null" else tuple(cites),
                flagged_at=flagged_at if "flagged_by" in said else Unknown("it is not flagged"),
                **said,
            )
        )
    return items, vetoes


def policy(said: dict[str, Any]) -> Policy:
    """The policy that a file speaks of, with durations as they are written in one."""
    rules = []
    for rule in said.pop("rules", []):
        for key in {"max_age", "max_unused", "after_flagged"} & set(rule):
            rule[key] = parse_duration(rule[key])
        for key in {"cascade_derived", "keep_if_cited"} & set(rule):
            rule[key] = {"true": True, "false": False}[rule[key]]
        rules.append(Rule(**rule))
    floors = {type_: int(count) for type_, count in said.pop("keep_last_of", {}).items()}
    numbers = {key: int(value) for key, value in said.items()}
    return Policy(rules=tuple(rules), keep_last_of=floors, **numbers)


def outcome(held_to: Policy) -> str:
    """What the policy says of the store, an item a line; last, what nothing is said of."""
    items, vetoes = store()
    decisions = decide(held_to, items, NOW, vetoes)
    lines, quiet = [], []
    for said in decisions:
        if (said.action, said.rule, said.reason, said.evidence) == ("keep", None, "none", {}):
            quiet.append(said.id)
            continue
        shown = {"action": said.action, "rule": said.rule, "reason": said.reason}
        lines.append(f"  {said.id}: {flow(shown | {'evidence': said.evidence})}\n")
    text = "".join(lines) + f"untouched: {flow(quiet)}\n"
    for short in shortfalls(held_to, items, decisions):
        text += f"missed {short.ceiling}: "
        text += flow({"over": short.over, "remains": short.remains, "because": short.because})
        text += "\n"
    return text


def flow(value: Any) -> str:
    dumped: str = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=10_000)
    return dumped.strip()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_decision_and_its_evidence_stay_as_they_were_agreed(path: Path) -> None:
    """No change of the code changes a decision, a reason or a number without being noticed."""
    _, _, agreed = path.read_text(encoding="utf-8").partition(OUTCOME)
    found = outcome(policy(load(path)["policy"]))
    difference = "".join(
        difflib.unified_diff(agreed.splitlines(True), found.splitlines(True), "agreed", "found")
    )
    assert found == agreed, f"{path.name}\n{difference}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_an_explanation_is_what_was_agreed(path: Path) -> None:
    """For every item, what `explain` calls the decision is the decision, and it follows."""
    items, vetoes = store()
    held_to = policy(load(path)["policy"])
    for one, said in zip(items, decide(held_to, items, NOW, vetoes), strict=True):
        told = explain(held_to, items, NOW, one.id, vetoes)
        assert told.decision == said
        first = next((each.rule for each in told.opinions if each.answer == "yes"), None)
        assert first in (said.rule, said.evidence.get("superseded"), said.evidence.get("withheld"))


def test_there_are_enough_of_them() -> None:
    """About thirty policies, each of which says what it shows."""
    assert len(FILES) >= 30
    assert all(load(path)["why"] for path in FILES)


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit(__doc__)
    for file in FILES:
        head, line, _ = file.read_text(encoding="utf-8").partition(OUTCOME)
        file.write_text(head + line + outcome(policy(load(file)["policy"])), encoding="utf-8")
