"""Rules and policies, one rule's verdict on an item, and a policy's terms for rows."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Literal

import msgspec

from keepfor.items import Action


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """What matches, and what then happens.

    Parameters:
        name: unique within its policy.
        type: the type of item that it speaks of; None for every type.
        max_age: matches what is strictly older.
        max_unused: matches what was last recalled strictly longer ago.
        action: what happens to what matches; `keep` pins it.
        on_missing_access_signal: for a delete that matched on disuse where no access was ever
            recorded: `skip` spares the item, `flag` flags it, `delete` deletes it.
        cascade_derived: whether a delete takes along what was derived from the item.
    """

    name: str
    type: str | None = None
    max_age: timedelta | None = None
    max_unused: timedelta | None = None
    action: Action = "flag"
    on_missing_access_signal: Literal["skip", "flag", "delete"] = "skip"
    cascade_derived: bool = False


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """What a store is held to.

    Parameters:
        rules: in order; the first that matches decides.
        max_count: how many items may stay; None for no ceiling.
        max_bytes: how many bytes may stay; None for no ceiling.
        keep_last: how many of the newest are out of reach of everything else.
        breaker: the largest fraction of a store of ten or more that one sweep may delete; None
            switches it off.
    """

    rules: tuple[Rule, ...] = ()
    max_count: int | None = None
    max_bytes: int | None = None
    keep_last: int = 0
    breaker: float | None = 0.5


def keep_for(duration: timedelta | None) -> tuple[Rule, ...]:
    """The rule that `keep_for: 90d` is short for; none where that is `forever`."""
    if duration is None:
        return ()
    return (Rule(name="keep_for", max_age=duration, action="delete"),)
