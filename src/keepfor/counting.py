"""The counts of a plan for a store of items, how long it has been overdue, and what came of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Literal

import msgspec

from keepfor.items import Decision, Item, Outcome, Report, Survey, Tally
from keepfor.policy.limits import Shortfall, shortfalls
from keepfor.policy.rules import Policy, Rule
from keepfor.policy.verdicts import due as due_of
from keepfor.policy.verdicts import speaks_of
from keepfor.times import Known, Unknown, before

#: The reasons that a decision may have by a rule's threshold, and by a ceiling.
BY_RULE = ("age", "unused")
BY_CEILING = ("count", "bytes")


def counted(
    policy: Policy, items: Sequence[Item], decisions: Sequence[Decision], now: datetime
) -> Survey:
    """What the decisions come to, in numbers.

    Parameters:
        policy: what the decisions were made by.
        items: what they were made for.
        decisions: one for each item, in their order.
        now: the instant they were made for.
    """
    kept = future = unknown = expired = over_ceiling = size = freed = by_mtime = 0
    oldest = newest = due = fresh = None
    # One pass and no functions within, since a store may hold a hundred thousand items.
    for item, said in zip(items, decisions, strict=True):
        size += item.bytes
        moment = None
        if isinstance(item.instant, Known):
            moment = item.instant.instant
            by_mtime += item.instant.source == "mtime"
            if newest is None or moment > newest:
                newest = moment
        kept += said.action == "keep"
        if said.action == "delete":
            freed += item.bytes
            expired += said.reason in BY_RULE
            over_ceiling += said.reason in BY_CEILING
            if moment is not None and (due is None or moment < due):
                due = moment
        elif moment is None:
            unknown += 1
        else:
            future += moment > now
            if oldest is None or moment < oldest:
                oldest = moment
        if said.rule is None and moment is not None and (fresh is None or moment < fresh):
            fresh = moment
    return Survey(
        scanned=len(items),
        kept=kept,
        applied=len(items) - kept,
        expired=expired,
        over_ceiling=over_ceiling,
        future=future,
        unknown=unknown,
        bytes_before=size,
        bytes_after=size - freed,
        oldest=oldest,
        newest=newest,
        due=due,
        cutoff=_cutoff(policy, now),
        fresh=fresh,
        lag=max(_overdue(policy, items, decisions, now), default=timedelta()),
        notes=list(_notes(policy, items, decisions, by_mtime)),
    )


def fill(report: Report, done: Survey) -> None:
    """Take the counts of a look at a store over into a report."""
    for field in Tally.__struct_fields__:
        setattr(report, field, getattr(done, field))
    report.cutoff, report.parts = done.cutoff, done.parts
    report.notes += done.notes


def not_done(said: Decision, result: Literal["skipped", "failed"], why: str) -> Outcome:
    """That a decision was not carried out, and why."""
    return Outcome(id=said.id, action=said.action, reason=said.reason, result=result, why=why)


def count_outcomes(
    report: Report, survey: Survey, planned: Sequence[Decision], outcomes: Sequence[Outcome]
) -> None:
    """Say in a report what came of a plan for a store of items.

    Parameters:
        report: takes it.
        survey: the plan's.
        planned: the plan's decisions, without those to keep.
        outcomes: one for each of these.
    """
    results = Counter(outcome.result for outcome in outcomes)
    done = [outcome for outcome in outcomes if outcome.result == "applied"]
    gone = [outcome for outcome in done if outcome.action == "delete"]
    sizes = {decision.id: decision.bytes for decision in planned}
    fill(report, survey)
    report.notes += [f"{outcome.id}: {outcome.why}" for outcome in done if outcome.why]
    rules = {decision.id: decision.rule for decision in planned}
    report.outcomes = [
        msgspec.structs.replace(outcome, rule=rules[outcome.id]) for outcome in outcomes
    ]
    report.applied, report.skipped = results["applied"], results["skipped"]
    report.failed = results["failed"]
    report.expired = sum(outcome.reason in BY_RULE for outcome in gone)
    report.over_ceiling = sum(outcome.reason in BY_CEILING for outcome in gone)
    report.bytes_after = report.bytes_before - sum(sizes[outcome.id] for outcome in gone)


def _cutoff(policy: Policy, now: datetime) -> datetime | None:
    """Before which items expire, where a single rule says so of all of them."""
    match policy.rules:
        case (
            Rule(
                type=None,
                narrow=False,
                max_unused=None,
                keep_if_cited=False,
                action="delete",
                max_age=timedelta() as age,
            ),
        ):
            return before(now, age)
    return None


def _overdue(
    policy: Policy, items: Sequence[Item], decisions: Sequence[Decision], now: datetime
) -> Iterator[timedelta]:
    """For each rule and ceiling that takes something, how long ago it could have begun to."""
    places = {rule.name: place for place, rule in enumerate(policy.rules)}
    for item, said in zip(items, decisions, strict=True):
        if said.rule is not None and said.action != "keep" and said.reason in BY_RULE:
            place = places[said.rule]
            since = due_of(policy.rules[place], item)
            assert since is not None  # Or the rule would not have taken it.
            yield now - max(since, _turned(policy.rules[:place], item, now) or since)
    if not any(said.reason in BY_CEILING for said in decisions):
        return
    # What the rules left, the oldest first; what has no known age was there all the time.
    left = sorted(
        (
            item
            for item, said in zip(items, decisions, strict=True)
            if said.action != "delete" or said.reason in BY_CEILING
        ),
        key=lambda item: (isinstance(item.instant, Known), *_known(item)),
    )
    count = size = 0
    for item in left:
        count, size = count + 1, size + item.bytes
        too_many = policy.max_count is not None and count > policy.max_count
        too_big = policy.max_bytes is not None and size > policy.max_bytes
        if too_many or too_big:
            yield from (now - instant for instant in _known(item))
            return


def _turned(earlier: Sequence[Rule], item: Item, now: datetime) -> datetime | None:
    """The recall until which an earlier rule on disuse may have decided of an item."""
    if not isinstance(item.accessed, Known) or item.accessed.instant > now:
        return None
    held = any(rule.max_unused is not None and speaks_of(rule, item) for rule in earlier)
    return item.accessed.instant if held else None


def _known(item: Item) -> Iterator[datetime]:
    if isinstance(item.instant, Known):
        yield item.instant.instant


def _notes(
    policy: Policy, items: Sequence[Item], decisions: Sequence[Decision], by_mtime: int
) -> Iterator[str]:
    if by_mtime:
        yield (
            f"{by_mtime} of {len(items)} are dated by their file's mtime, which a copy or a "
            "restore may have changed"
        )
    concerned, unrecorded = _accesses(policy, items)
    if unrecorded:
        yield (
            f"{unrecorded} of {concerned} have no recorded access: where a rule goes by disuse, "
            "their own age stood in"
        )
    for short in shortfalls(policy, items, decisions):
        yield f"still {short.over} over {short.ceiling}: {_because(short)}"


def _accesses(policy: Policy, items: Sequence[Item]) -> tuple[int, int]:
    """How many items a rule on disuse speaks of, and how many of these have no recorded access."""
    of_disuse = [rule for rule in policy.rules if rule.max_unused is not None]
    if not of_disuse:
        return 0, 0
    concerned = unrecorded = 0
    by_type: dict[str, list[Rule]] = {}
    for item in items:
        rules = by_type.get(item.type)
        if rules is None:
            rules = [rule for rule in of_disuse if rule.type in (None, item.type)]
            by_type[item.type] = rules
        if rules and (not rules[0].narrow or any(speaks_of(rule, item) for rule in rules)):
            concerned += 1
            unrecorded += isinstance(item.accessed, Unknown)
    return concerned, unrecorded


def _because(short: Shortfall) -> str:
    said = {
        "floor": "held by keep_last",
        "veto": "not to be touched now",
        "spared": "spared",
        "cited": "cited by others",
        "pinned": "pinned",
        "unknown": "of unknown age",
    }
    return ", ".join(f"{count} {said[why]}" for why, count in sorted(short.because.items()))
