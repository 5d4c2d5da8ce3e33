"""What each tool answers, typed: these become the schemas that an agent is shown."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from keepfor.items import Action, Evidence

#: Sentences that a person should read.
Notes = Annotated[list[str], Field(description="What a person should know of it.")]
Kind = Literal["ledger", "runs", "table", "entities"]


class Said(BaseModel):
    """What all answers have in common: they are made from what the engine says."""

    model_config = ConfigDict(from_attributes=True)


class Problem(Said):
    """Why a store cannot be read; the others are told all the same."""

    type: str
    message: str = Field(description="What happened, and what to do now.")


class Breaker(Said):
    """Whether so much would go at once that a person has to look at it first."""

    limit: float | None = Field(description="The fraction that may go at once; null for any.")
    share: float = Field(description="The fraction that would go.")
    tripped: bool = Field(description="Whether a sweep is held back until a person passes it.")


# --- retention_status, history_window -----------------------------------------------------


class History(Said):
    """What history a store holds."""

    oldest: datetime | None
    newest: datetime | None
    days: float = Field(description="Days from the oldest to the newest.")
    items: int = Field(description="How many rows, or items, there are.")
    bytes: int
    lag_seconds: float = Field(
        description="How long the oldest of what is due has been due; 0 when nothing is."
    )


class LastSweep(Said):
    """The last sweep on record."""

    at: str
    outcome: str = Field(
        description="done, nothing to do, partly done, failed, or unfinished: killed, or at work."
    )
    started_by: str = Field(description="apply, background, dashboard, mcp or write site.")
    applied: int = Field(description="How many were deleted or flagged.")
    flagged: int
    failed: int
    error: str | None


class NextRun(Said):
    """When the store is swept next."""

    by: Literal["background", "write site"]
    latest: datetime | None


class Leftover(Said):
    """A file that an earlier sweep put aside, and that is not cleared away yet."""

    path: str
    bytes: int
    held: bool = Field(description="Whether a writer has it open still.")


class Standing(Said):
    """How a store stands."""

    target: str = Field(description="Where it lies.")
    exists: bool = Field(description="Whether anything is there yet.")
    history: History
    logical_bytes: int = Field(description="What its content comes to.")
    on_disk_bytes: int = Field(description="What the disk gives it; of a table, its database.")
    reclaimable_bytes: int | None = Field(
        description="How much of that holds nothing any more; null where that cannot be."
    )
    due: int = Field(description="How many rows or items a sweep would delete now.")
    flags: int = Field(description="How many items it would flag.")
    breaker: Breaker
    last_sweep: LastSweep | None
    next_run: NextRun | None = Field(description="Null where nothing is known to sweep it.")
    leftovers: list[Leftover]
    orphans: dict[str, int] | None = Field(
        description="Rows of other tables whose own row is gone; null where nobody looked."
    )
    degraded: str | None = Field(description="What makes it slower and slower, if anything does.")
    estimated: list[str] = Field(description="Which of these are estimates.")
    notes: Notes


class StoreStatus(Said):
    """One store: how it stands, or why that cannot be told."""

    store: str
    kind: Kind
    policy: str = Field(description="What it is held to, in words.")
    standing: Standing | None
    error: Problem | None


class Status(Said):
    """How the stores stand."""

    now: datetime
    stores: list[StoreStatus]


class Window(History):
    """What history one store holds."""

    store: str
    kind: Kind
    exists: bool
    policy: str
    now: datetime
    estimated: list[str] = Field(description="Which of these are estimates.")
    notes: Notes


# --- retention_plan, retention_explain ----------------------------------------------------


class Decision(Said):
    """What the policy says of one item, and on what numbers."""

    id: str
    action: Action
    rule: str | None
    reason: str = Field(description="In a word: age, unused, count, bytes, spared, cited, …")
    bytes: int
    evidence: Evidence = Field(description="The numbers that it was decided on.")


class Part(Said):
    """What one rule takes of a table."""

    rule: str
    type: str | None = Field(description="Of which type of row; null: all that no other speaks of.")
    cutoff: datetime | None = Field(description="Rows strictly older go.")
    count: int
    oldest: datetime | None
    newest: datetime | None


class Trap(Said):
    """A setting that will surprise its owner."""

    rule: str
    what: str
    fix: str


class Proposal(Said):
    """What would become of a store. Nothing was done."""

    digest: str = Field(description="Names this very plan; retention_apply takes it.")
    exists: bool = Field(description="Whether anything is there yet.")
    scanned: int = Field(description="Rows or items; scanned = kept + delete + flag.")
    kept: int
    delete: int
    flag: int
    expired: int = Field(description="Of what would be deleted: past their age.")
    unreadable: int = Field(description="Rows that no reader can use.")
    over_ceiling: int = Field(description="The oldest above a ceiling.")
    future: int = Field(description="Kept, with a time that is still to come.")
    unknown: int = Field(description="Kept, with an age that cannot be read.")
    cutoff: datetime | None = Field(description="Rows strictly older are expired.")
    oldest_kept: datetime | None
    lag_seconds: float = Field(description="How long the oldest of what is due has been due.")
    bytes_before: int
    bytes_after: int
    dependents: dict[str, int] = Field(description="Rows of other tables that go along.")
    orphans: dict[str, int] = Field(description="Rows of other tables whose own row is gone.")
    orphans_stay: bool = Field(description="Whether a sweep leaves those where they are.")
    breaker: Breaker
    parts: list[Part] = Field(description="Of a table, what each rule takes.")
    items: list[Decision] = Field(description="Of items, what would go or be flagged.")
    items_left_off: int = Field(description="How many more would; ask with a higher limit.")
    spared: list[Decision] = Field(description="What something kept from a rule or a ceiling.")
    spared_left_off: int = Field(description="How many more were; ask with a higher limit.")
    traps: list[Trap]
    notes: Notes


class StorePlan(Said):
    """One store: its plan, or why there is none."""

    store: str
    kind: Kind
    policy: str = Field(description="What it is held to, in words.")
    plan: Proposal | None
    error: Problem | None


class Plans(Said):
    """What would become of the stores. Nothing was done."""

    now: datetime = Field(description="The instant that ages were judged by.")
    stores: list[StorePlan]


class Opinion(Said):
    """What one rule says of an item."""

    rule: str
    action: Action
    answer: Literal["yes", "no", "unknown"]
    reason: str
    evidence: Evidence
    due: datetime | None = Field(description="It says yes after this instant; null for never.")


class Change(Said):
    """What becomes of an item next, if nothing but time passes."""

    due: datetime
    action: Action
    rule: str | None
    reason: str


class Explanation(Said):
    """Why one item stays or goes."""

    store: str
    id: str
    now: datetime
    decision: Decision
    rules: list[Opinion] = Field(description="In their order; the first yes decides.")
    next: Change | None = Field(description="What becomes of it after this; null where unknown.")


# --- recall_trace, recent_runs, record_access ---------------------------------------------


class Match(Said):
    """One recall in which the note surfaced. What a row says otherwise is told as text."""

    at: datetime | None
    query_hash: str | None = Field(description="Of the query, which itself is not recorded.")
    path: str | None
    sim: float | str | None
    keyword: float | str | None
    combined: float | str | None = Field(description="The score that it was ranked by.")
    rank: int | float | str | None = Field(description="Its place among the notes of the recall.")
    lifecycle_tier: str | None
    decay_score: float | str | None = Field(description="How much of it had decayed.")


class Trace(Said):
    """When a note was recalled, the newest first, or why nothing is known of it."""

    store: str
    slug: str
    matches: list[Match]
    empty: Literal["no ledger", "never recalled", "no evidence"] | None = Field(
        description="Why there are no matches; null where there are some."
    )
    explanation: str = Field(description="The same in words; empty where there are matches.")


class Run(Said):
    """What one run says last; null for what it does not say. What is odd is told as text."""

    runId: str | None  # noqa: N815 - the names are the runs'
    wallClockMs: int | float | str | None  # noqa: N815
    cycleOverflowSignal: bool | str | None  # noqa: N815
    cycleOverflowRatio: float | str | None  # noqa: N815
    outcome: str | None


class Runs(Said):
    """The newest runs, the newest first."""

    store: str
    runs: list[Run]


class UnknownId(Said):
    """An id of nothing that is there; its recall was not recorded."""

    id: str
    message: str


class Accessed(Said):
    """What was recorded as recalled."""

    store: str
    at: datetime
    recorded: list[str] = Field(description="The ids whose recall stands in the log now.")
    unknown: list[UnknownId] = Field(description="Ids of nothing that is there; not recorded.")


# --- retention_apply ----------------------------------------------------------------------


class NotDone(Said):
    """An item that was left alone, and why."""

    id: str
    action: Action
    result: Literal["skipped", "failed"]
    why: str


class Report(Said):
    """What was done."""

    store: str
    kind: Kind
    plan: str = Field(description="The digest of the plan, which is spent now.")
    outcome: str = Field(description="done, partly done, or nothing to do.")
    scanned: int = Field(description="scanned = kept + applied + skipped + failed.")
    kept: int
    applied: int = Field(description="How many were deleted or flagged.")
    skipped: int = Field(description="How many had changed since the plan, and were left alone.")
    failed: int
    deleted: int
    flagged: int
    dependents: dict[str, int] = Field(description="Rows of other tables that went along.")
    orphans: dict[str, int] = Field(description="Rows of other tables whose own row was gone.")
    bytes_before: int
    bytes_after: int
    duration_seconds: float
    not_done: list[NotDone] = Field(description="What was left alone, item by item.")
    not_done_left_off: int = Field(description="How many more were.")
    notes: Notes
