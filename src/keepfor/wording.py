"""How numbers, sizes, instants, names and reasons are written for people, on whatever surface."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

from keepfor.items import Decision, Evidence, noun
from keepfor.times import format_duration

_MINUTE, _DAY = timedelta(minutes=1), timedelta(days=1)

_UNITS = {"count": "", "bytes": " bytes"}


def instant(moment: datetime | None) -> str:
    """To the second, in UTC, and fit to be pasted into `--now` or `--since`."""
    if moment is None:
        return "-"
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def size(count: int) -> str:
    """A size that is easy to take in."""
    for unit, bits in (("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if count >= 1 << bits:
            return f"{count / (1 << bits):.1f} {unit}"
    return f"{count} B"


def span(duration: timedelta) -> str:
    """A duration, as coarse as its length allows: `12d`, `3h20min`, `4.5s`, `12ms`."""
    if duration < timedelta(seconds=1):
        return f"{duration / timedelta(milliseconds=1):.0f}ms"
    if duration < _MINUTE:
        return f"{duration.total_seconds():.1f}s"
    grain = 60 if duration < _DAY else 3600 if duration < 10 * _DAY else 86_400
    return format_duration(timedelta(seconds=int(duration.total_seconds()) // grain * grain))


def number(count: int) -> str:
    """A count, in groups of three digits."""
    return f"{count:,}"


def rows(count: int, kind: str = "ledger") -> str:
    """So many rows, or whatever a store of that kind holds."""
    thing = noun(kind)
    return f"{number(count)} {thing if count == 1 else f'{thing}s'}"


def listed(names: Sequence[str]) -> str:
    """`a, b and c`."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def days(count: object) -> str:
    """A number of days, as a duration."""
    return span(timedelta(days=count)) if isinstance(count, int | float) else str(count)


def why(said: Decision) -> str:
    """Why an item is decided so, with the numbers."""
    return "; ".join(_reasons(said))


def otherwise(now: Decision | None) -> str:
    """What a plan made now does with an item, where that is something else."""
    if now is None:
        return "it is gone already"
    why = ", ".join(filter(None, (now.rule, "" if now.reason == "none" else now.reason)))
    return f"a plan made now would {now.action} it{f' ({why})' if why else ''}"


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
        ago = "just now" if spent == "0ms" else f"{spent} ago"
        return f"last recalled {ago} by {source}, limit {limit}"
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
