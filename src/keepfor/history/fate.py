"""What became of something that is no longer there, as far as the trail remembers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

import msgspec

from keepfor.times import Known, parse_instant


class Fate(msgspec.Struct, frozen=True, kw_only=True):
    """What is on record of one row or item.

    Parameters:
        found: whether a sweep is on record that took it.
        at: when that sweep was recorded.
        rule: the rule that took it; None where the record does not say.
        reason: why, as plans have it: `age`, `unused`, `count`, …; None for rows.
        by: who asked for the sweep.
        plan: the digest of its plan, if it had one.
        since: when the oldest record of the store was written; None where there is none.
        whole: whether that is the first that was ever written, so that nothing is forgotten yet.
    """

    found: bool
    at: datetime | None = None
    rule: str | None = None
    reason: str | None = None
    by: str | None = None
    plan: str | None = None
    since: datetime | None = None
    whole: bool = True


#: What a record says of the one that is asked for: the rule and the reason; None for nothing.
Found = tuple[str | None, str | None]
Ask = Callable[[dict[str, Any]], Found | None]


def fate(records: Iterable[dict[str, Any]], target: str, ask: Ask) -> Fate:
    """What the trail remembers.

    Parameters:
        records: the trail's, the newest first.
        target: the store's address.
        ask: what a record of the store says of what is asked for.

    Returns:
        The first sweep that took it, for a name may have been given again since; of an item, the
        last one, which is the one that it is missing since.
    """
    found: Fate | None = None
    since, lowest = None, 1
    for record in records:
        lowest = seq if isinstance(seq := record.get("seq"), int) else lowest
        if record.get("target") != target:
            continue
        since = _instant(record.get("ts"))
        if record.get("event") != "outcome" or (found and found.reason is not None):
            continue
        if (said := ask(record)) is not None:
            rule, reason = said
            found = Fate(
                found=True,
                at=since,
                rule=rule,
                reason=reason,
                by=_text(record.get("started_by")),
                plan=_text(record.get("plan")),
            )
    told = found or Fate(found=False)
    return msgspec.structs.replace(told, since=since, whole=lowest <= 1)


def of_item(id_: str) -> Ask:
    """Asks for an item that was deleted, by its id."""

    def ask(record: dict[str, Any]) -> Found | None:
        items = record.get("items")
        for item in items if isinstance(items, list) else ():
            if (
                isinstance(item, dict)
                and item.get("id") == id_
                and item.get("action") == "delete"
                and item.get("result") == "applied"
            ):
                return _text(item.get("rule")), _text(item.get("reason")) or "unknown"
        return None

    return ask


def of_instant(instant: datetime) -> Ask:
    """Asks for rows of an instant: they go with the first sweep of which the cutoff is later."""

    def ask(record: dict[str, Any]) -> Found | None:
        if not record.get("applied"):
            return None
        if parts := _parts(record):
            rules = [_text(part.get("rule")) for part in parts if _within(instant, part)]
            return (" or ".join(filter(None, rules)), None) if rules else None
        if record.get("expired") and _before(instant, record.get("cutoff")):
            return "keep_for", None
        # Above a ceiling the oldest go, whatever their age.
        over = record.get("over_ceiling") and _before(instant, record.get("oldest"))
        return ("max_bytes", None) if over else None

    return ask


def of_key(key: int) -> Ask:
    """Asks for a row of a table by its key, where that is a number and grows with age."""

    def ask(record: dict[str, Any]) -> Found | None:
        for part in _parts(record):
            first, last = _number(part.get("first")), _number(part.get("last"))
            if first is not None and last is not None and first <= key <= last:
                return _text(part.get("rule")), None
        return None

    return ask


def _parts(record: dict[str, Any]) -> list[dict[str, Any]]:
    parts = record.get("parts")
    return [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []


def _within(instant: datetime, part: dict[str, Any]) -> bool:
    """Whether an instant lies between the oldest and the newest that a part took."""
    oldest, newest = _instant(part.get("oldest")), _instant(part.get("newest"))
    return oldest is not None and newest is not None and oldest <= instant <= newest


def _before(instant: datetime, cutoff: object) -> bool:
    limit = _instant(cutoff)
    return limit is not None and instant < limit


def _instant(value: object) -> datetime | None:
    told = parse_instant(value, source="trail")
    return told.instant if isinstance(told, Known) else None


def _number(key: object) -> int | None:
    if isinstance(key, list) and len(key) == 1 and isinstance(key[0], int):
        return key[0]
    return None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
