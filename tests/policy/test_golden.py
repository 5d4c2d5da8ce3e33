"""Whole decisions, with their reasons and their evidence, for one store under several policies.

`python -m tests.policy.test_golden --write` writes the files anew; look at the difference before
committing it, for every line of it is a decision that turned out another way.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from keepfor.items import Item
from keepfor.policy.decide import decide
from keepfor.policy.limits import shortfalls
from keepfor.policy.rules import Policy, keep_for
from tests.policy.build import NOW, days, delete, flag, item, keep

GOLDEN = Path(__file__).with_name("golden")

#: One of each kind: fresh and stale, recalled and not, linked, flagged, pinned by type, undated.
STORE: list[Item] = [
    item("note/fresh", "2026-07-20", "2026-07-25", bytes=100),
    item("note/stale", "2026-03-01", "2026-07-24", bytes=200),
    item("note/on-the-cutoff", "2026-04-27", "2026-04-27", bytes=100),
    item("note/forgotten", "2025-09-01", "2025-11-01", bytes=300),
    item("note/never-recalled", "2025-08-01", bytes=150),
    item("note/undated", None, "2025-12-01", bytes=50),
    item("note/unreadable", bytes=50),
    item("note/derived", "2026-07-01", "2026-07-02", bytes=80, derived_from="session/old"),
    item("note/derived-stale", "2026-02-01", "2026-07-02", bytes=80, derived_from="session/old"),
    item("note/flagged", "2026-01-01", "2026-07-01", bytes=120, flagged_by="stale"),
    item("note/held", "2025-01-01", "2025-01-02", bytes=90),
    item("note/ahead", "2027-01-01", "2027-01-01", bytes=10),
    item("preference/old", "2024-01-01", "2024-06-01", type="preference", bytes=40),
    item("session/old", "2025-05-08", type="session", bytes=5000),
    item("session/recent", "2026-06-06", type="session", bytes=4000),
]
VETOES = {"note/held": "on hold"}

UNUSED = delete("unused", type="note", max_unused=days(180))
STALE = flag("stale", type="note", max_age=days(90))
SESSIONS = delete("sessions", type="session", max_age=days(365), cascade_derived=True)
POLICIES = {
    "nothing": Policy(),
    "keep_for": Policy(rules=keep_for(days(90))),
    "keep_for_with_floor": Policy(rules=keep_for(days(90)), keep_last=8),
    "evolve": Policy(rules=(UNUSED, STALE, SESSIONS)),
    "either_threshold": Policy(rules=(delete("d", max_age=days(365), max_unused=days(180)),)),
    "missing_means_flag": Policy(
        rules=(delete("d", max_unused=days(180), on_missing_access_signal="flag"),)
    ),
    "missing_means_delete": Policy(
        rules=(delete("d", max_unused=days(180), on_missing_access_signal="delete"),)
    ),
    "pinned_preferences": Policy(
        rules=(keep("mine", type="preference", max_age=days(30)), *keep_for(days(30))), max_count=4
    ),
    "capped": Policy(rules=(SESSIONS,), max_count=9, max_bytes=4500, keep_last=2),
    "out_of_reach": Policy(rules=(UNUSED,), max_count=8, max_bytes=100, keep_last=8),
}


def found(policy: Policy) -> str:
    """What the policy says of the store, one decision a line, and what its ceilings miss."""
    decisions = decide(policy, STORE, NOW, VETOES)
    lines = [
        json.dumps(
            {
                "id": said.id,
                "action": said.action,
                "rule": said.rule,
                "reason": said.reason,
                "evidence": said.evidence,
            }
        )
        for said in decisions
    ]
    lines += [
        json.dumps(
            {
                "ceiling": short.ceiling,
                "remains": short.remains,
                "over": short.over,
                "because": short.because,
            }
        )
        for short in shortfalls(policy, STORE, decisions)
    ]
    return "[\n " + ",\n ".join(lines) + "\n]\n"


@pytest.mark.parametrize("name", POLICIES)
def test_a_decision_and_its_evidence_stay_as_they_were_agreed(name: str) -> None:
    """No change of the code changes a decision, a reason or a number without being noticed."""
    assert found(POLICIES[name]) == (GOLDEN / f"{name}.json").read_text(encoding="utf-8")


def test_every_golden_file_is_one_that_is_tested() -> None:
    """No golden file is left over from a policy that is not tried any more."""
    assert {path.stem for path in GOLDEN.iterdir()} == set(POLICIES)


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit(__doc__)
    GOLDEN.mkdir(exist_ok=True)
    for name, policy in POLICIES.items():
        (GOLDEN / f"{name}.json").write_text(found(policy), encoding="utf-8")
