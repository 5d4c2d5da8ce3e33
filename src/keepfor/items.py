"""The nouns that travel between the layers: items, cutoffs, decisions, tallies."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Literal

import msgspec

from keepfor.times import Instant, Unknown

Action = Literal["keep", "flag", "delete"]

#: What a decision's evidence may hold: numbers and short strings, never content.
Evidence = dict[str, str | int | float | bool | None]


def noun(kind: str) -> str:
    """What one of the things is called that a store of that kind holds."""
    return {"runs": "run", "entities": "item"}.get(kind, "row")


# No circle can pass through an item or a decision, and there may be a hundred thousand of them: the
# collector of circles is not to go through them over and over.
class Item(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One thing with an identity in an item store, as a scan found it.

    Parameters:
        id: its name within the store, reversibly escaped where it is not UTF-8.
        type: what rules call it.
        instant: when it began to age.
        accessed: when it was last recalled; Unknown where nothing ever recorded an access.
        bytes: what deleting it gives back, in bytes.
        fingerprint: changes whenever the item does.
        derived_from: the id of the item that this one was made from, if any.
        flagged_by: the rule that flagged it already, if any.
        flagged_at: when it was flagged; Unknown where it is not, or where that cannot be read.
        fields: what it says of itself, by name, as far as rules ask for it.
        cites: the ids of the items that it names; None where that cannot be told.
        held: why it must stay as it is for now, if a store knows of anything.
    """

    id: str
    type: str
    instant: Instant
    accessed: Instant = Unknown("no access was ever recorded")
    bytes: int = 0
    fingerprint: str = ""
    derived_from: str | None = None
    flagged_by: str | None = None
    flagged_at: Instant = Unknown("it is not flagged")
    fields: dict[str, str] = {}
    cites: tuple[str, ...] | None = ()
    held: str | None = None


class Decision(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a policy says of one item, and why.

    Parameters:
        id: the item's.
        action: what is to happen to it.
        rule: the rule, ceiling or veto that said so; None where nothing matched.
        reason: `age`, `unused`, `count`, `bytes`, `cascade:<the last part of an id>`, `pinned`,
            `floor`, `veto`, `spared`, `cited`, `flagged` (a flag that stands already) or `none`.
        evidence: the numbers that the decision was reached on.
        fingerprint: the item's when it was decided.
        bytes: the item's size.
        cited_by: of a delete that spares what is cited, the ids of what names it and is to go as
            well: where one of these stays after all, so does this.
    """

    id: str
    action: Action
    rule: str | None = None
    reason: str = "none"
    evidence: Evidence = {}
    fingerprint: str = ""
    bytes: int = 0
    cited_by: tuple[str, ...] = ()


class Key(msgspec.Struct, frozen=True, order=True, array_like=True):
    """Where a row stands in the order of age: by instant, and by position within one instant."""

    instant: datetime
    position: int = -1


class Cut(msgspec.Struct, frozen=True, kw_only=True):
    """What a rule comes to for the rows of one type.

    Parameters:
        rule: its name.
        type: the type that it speaks of.
        cutoff: rows of that type that are strictly older are expired; None expires none.
    """

    rule: str
    type: str
    cutoff: datetime | None


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """What a policy comes to, at one instant, for a store of rows.

    Parameters:
        now: the instant it was worked out for.
        rule: the name of the rule for rows whose type has none of its own.
        cutoff: such rows that are strictly older are expired; None expires none.
        by_type: the cutoffs of types that have a rule of their own, each type once.
        ceiling: how many bytes the store may hold; None for no bound.
        target: what it is brought down to once it holds more.
        max_count: how many rows the store may hold; None for no bound.
        keep_last: how many of the newest rows are out of reach.
    """

    now: datetime
    rule: str = "keep_for"
    cutoff: datetime | None = None
    by_type: tuple[Cut, ...] = ()
    ceiling: int | None = None
    target: int | None = None
    max_count: int | None = None
    keep_last: int = 0


class Tally(msgspec.Struct, kw_only=True):
    """The counts of one look at a store, or one sweep of it; they always add up.

    `scanned = kept + applied + skipped + failed`; for rows,
    `applied = expired + unreadable + over_ceiling`.

    Parameters:
        scanned: rows or items that are there.
        kept: those that stay, flagged already or of unknown age ones included.
        applied: those that were (in a plan: would be) flagged or deleted.
        skipped: those that changed since the plan and were left alone.
        failed: those that an error kept from being done.
        expired: rows past the cutoff.
        unreadable: rows dropped because no reader can use them.
        over_ceiling: rows dropped, oldest first, to get below the ceiling.
        future: kept rows whose time is still to come.
        unknown: kept rows whose age cannot be read (an unfinished last line among them).
        oversized: kept rows too long or too deep to be judged; they are among the unknown.
        dependents: of a table, rows of other tables that go with those applied, by table.
        orphans: rows of other tables whose own row was gone already, by table.
        bytes_before: the store's size before, in bytes; of a table, its database's on disk.
        bytes_after: its size after.
        bytes_deleted: of a table, what was deleted held, in bytes; None where it is not known.
        oldest: the oldest known instant that stays.
        newest: the newest known instant, whether it stays or goes.
        due: the oldest known instant that goes because of its age; of items, for any reason.
    """

    scanned: int = 0
    kept: int = 0
    applied: int = 0
    skipped: int = 0
    failed: int = 0
    expired: int = 0
    unreadable: int = 0
    over_ceiling: int = 0
    future: int = 0
    unknown: int = 0
    oversized: int = 0
    dependents: dict[str, int] = {}
    orphans: dict[str, int] = {}
    bytes_before: int = 0
    bytes_after: int = 0
    bytes_deleted: int | None = None
    oldest: datetime | None = None
    newest: datetime | None = None
    due: datetime | None = None


class Extent(msgspec.Struct, frozen=True, kw_only=True, tag_field="of", tag="file"):
    """Which rows of a file a look at it covered, so that a later sweep stays within them.

    Parameters:
        identity: changes when the store is no longer the same one.
        end: rows at or past this position came later.
        beginning: a digest of the first rows' bytes.
        beginning_bytes: how many bytes that digest covers.
    """

    identity: str
    end: int
    beginning: str
    beginning_bytes: int


class TableExtent(msgspec.Struct, frozen=True, kw_only=True, tag_field="of", tag="table"):
    """Which rows of a table a look at it covered, so that a later sweep stays within them.

    Parameters:
        identity: changes when the table is no longer the same one.
        highest: the highest key that was there, where the database itself hands out ever higher
            ones; rows above it came later.
        witness: a digest of the row that has this key, which tells that it was not given again.
        keys: the file that holds the keys of all that would go, orphans among them, and is not
            bounded by the highest; empty where there is nothing of that kind, None for no bound.
        keys_digest: a digest of that file.
    """

    identity: str
    highest: int | None = None
    witness: str = ""
    keys: str | None = None
    keys_digest: str = ""


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """What one rule, or a ceiling, takes of a table.

    Parameters:
        rule: its name.
        type: the type of row that it speaks of; None for all that no other rule speaks of.
        ceiling: whether it is the ceiling on rows, whatever a rule may be called.
        cutoff: rows strictly older go; None takes none.
        count: how many go.
        first: the key of the oldest that goes.
        last: the key of the newest that goes.
        oldest: the instant of the oldest that goes.
        newest: the instant of the newest that goes.
    """

    rule: str
    type: str | None = None
    ceiling: bool = False
    cutoff: datetime | None = None
    count: int = 0
    first: list[str | int] = []
    last: list[str | int] = []
    oldest: datetime | None = None
    newest: datetime | None = None


class Survey(Tally, kw_only=True):
    """What a row store would keep and lose under some terms.

    Parameters:
        below: of a file, rows whose key is less go; None when none does.
        parts: of a table, what each rule takes.
        times: of a table, how its times are written.
        cutoff: the part of it that age alone explains.
        extent: what was covered; None when nothing is there yet.
        lag: how long the oldest of what would go now has been due, by age or above a ceiling.
        fresh: the oldest known instant that stays because it is young enough, and not because a
            floor, a veto or its place holds it.
        notes: what a person should know of it.
        adrift: of a table whose orphans are to go, how many rows each table that has some holds.
    """

    below: Key | None = None
    parts: list[Part] = []
    times: str = ""
    cutoff: datetime | None = None
    extent: Extent | TableExtent | None = None
    lag: timedelta = timedelta()
    fresh: datetime | None = None
    notes: list[str] = []
    adrift: dict[str, int] = {}


class Outcome(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What became of one decision in a sweep.

    Parameters:
        id: the item's.
        action: what the plan said.
        reason: why the plan said so.
        result: `applied`, `skipped` (it changed since the plan) or `failed`.
        why: what changed, or what the system said.
        rule: the rule or ceiling that said so; a store need not tell, for the plan does.
    """

    id: str
    action: Action
    reason: str
    result: Literal["applied", "skipped", "failed"]
    why: str = ""
    rule: str | None = None


class Report(Tally, kw_only=True):
    """What a sweep, or a prune at the write site, did.

    Parameters:
        store: the store's name, or its path where it has none.
        kind: what kind of store it is.
        target: the store's resolved address.
        rules: the names of the rules that it was held to.
        policy: a digest of the policy.
        plan: the digest of the plan that was carried out; empty for a prune at the write site.
        now: the instant it was judged by.
        cutoff: rows strictly older were expired.
        started_by: `apply`, `background`, `dashboard`, `mcp` or `write site`.
        duration: in seconds.
        notes: what a person should know, such as a second name that still holds the old rows.
        outcomes: for a store of items, what became of each decision.
        parts: for a table, what each rule took.
    """

    store: str
    kind: str
    target: str
    rules: list[str] = []
    policy: str = ""
    plan: str = ""
    now: datetime
    cutoff: datetime | None = None
    started_by: str = "apply"
    duration: float = 0.0
    notes: list[str] = []
    outcomes: list[Outcome] = []
    parts: list[Part] = []
