"""Items and rules in a few words, for the tests of this folder."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from keepfor.items import Item
from keepfor.policy.rules import Rule
from keepfor.times import Instant, Known, Unknown

#: 90 days before it is 2026-04-27 (26 + 30 + 31 + 3 days back); 180 days, 2026-01-27
#: (26 + 30 + 31 + 30 + 31 + 28 + 4 days back); 365 days, 2025-07-26.
NOW = datetime(2026, 7, 26, tzinfo=UTC)


def at(text: str) -> datetime:
    """The instant, in UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def days(count: float) -> timedelta:
    return timedelta(days=count)


def known(text: str | None, source: str) -> Instant:
    return Known(at(text), source) if text else Unknown(f"{source} is missing")


def item(id: str = "a", when: str | None = None, used: str | None = None, **more: Any) -> Item:  # noqa: A002
    """An item of that date, last recalled at the other; None where that is not known."""
    more.setdefault("type", "note")
    return Item(id=id, instant=known(when, "mtime"), accessed=known(used, "recall"), **more)


def delete(name: str = "old", **more: Any) -> Rule:
    return Rule(name=name, action="delete", **more)


def flag(name: str = "stale", **more: Any) -> Rule:
    return Rule(name=name, action="flag", **more)


def keep(name: str = "pin", **more: Any) -> Rule:
    return Rule(name=name, action="keep", **more)
