"""The tools that there are: what each is for, takes and answers, and what it does to the world."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import mcp_types as types

from keepfor.mcp import answers, asked, looking, planning
from keepfor.mcp.desk import Desk

# Stores are those that a person configured, so no tool reaches out into an open world.
_READS = types.ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)
#: One more row each time, and nothing that was there is changed.
_APPENDS = types.ToolAnnotations(
    read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=False
)
#: A plan is carried out once: the same call again does nothing more.
_DELETES = types.ToolAnnotations(
    read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False
)


class Tool(NamedTuple):
    """One tool.

    Parameters:
        name: what it is called.
        title: the same for a person.
        text: what it is for; an agent reads it before it calls.
        hints: what it does to the world.
        takes: the arguments.
        gives: the answer.
        run: does it.
    """

    name: str
    title: str
    text: str
    hints: types.ToolAnnotations
    takes: type[asked.Asked]
    gives: type[answers.Said]
    run: Callable[[Desk, Any], answers.Said]


TOOLS = (
    Tool(
        "retention_status",
        "How the stores stand",
        "Tells how each store of memory stands: days of history, size, what its policy would "
        "delete now, how late that is, the last sweep and the next. Begin here. A store that "
        "cannot be read has an error, and the others are told all the same.",
        _READS,
        asked.Stores,
        answers.Status,
        looking.retention_status,
    ),
    Tool(
        "retention_plan",
        "What would go",
        "Tells what the policy would delete or flag in each store now, with the rule and the "
        "numbers for each item, and what was spared. Nothing is done. Each plan has a digest.",
        _READS,
        asked.Planned,
        answers.Plans,
        planning.retention_plan,
    ),
    Tool(
        "retention_explain",
        "Why an item stays or goes",
        "Tells why one note, session or run stays or goes: what every rule says of it, and what "
        "would take it next, and when. For stores of kind entities or runs.",
        _READS,
        asked.OneItem,
        answers.Explanation,
        planning.retention_explain,
    ),
    Tool(
        "recall_trace",
        "When a note was recalled",
        "Tells in which recalls a note surfaced last, and with what scores, or why nothing is "
        "known of it. For stores of kind ledger that hold recall events.",
        _READS,
        asked.OneNote,
        answers.Trace,
        looking.recall_trace,
    ),
    Tool(
        "recent_runs",
        "The newest runs",
        "Tells what the newest background runs say last, the newest first: runId, wallClockMs, "
        "cycleOverflowSignal, cycleOverflowRatio and outcome. For stores of kind runs.",
        _READS,
        asked.NewestRuns,
        answers.Runs,
        looking.recent_runs,
    ),
    Tool(
        "history_window",
        "How much history there is",
        "Tells how many days of history one store holds, from when to when, in how many items and "
        "bytes, and how late its policy is. Before you conclude that something never happened, "
        "see here whether the store reaches back that far.",
        _READS,
        asked.OneStore,
        answers.Window,
        looking.history_window,
    ),
    Tool(
        "record_access",
        "Record that items were recalled",
        "Records that notes or sessions were recalled now, so that rules on disuse leave them "
        "alone. Appends a row to the store's log; no note is touched. An id of nothing that is "
        "there is told and not recorded. For stores of kind entities.",
        _APPENDS,
        asked.Recalled,
        answers.Accessed,
        planning.record_access,
    ),
)

APPLY = Tool(
    "retention_apply",
    "Carry out a plan",
    "Deletes and flags what a plan says, for good. Takes the digest of the last plan that "
    "retention_plan gave out for a store, and nothing else; show that plan to a person first. Does "
    "it once, leaves alone what changed since, and never passes the breaker.",
    _DELETES,
    asked.OnePlan,
    answers.Report,
    planning.retention_apply,
)
