"""`why`: what became of something that is no longer there."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from keepfor.cli.blocks import Block, Heading, Line
from keepfor.cli.documents import Answer
from keepfor.cli.invocation import Invocation
from keepfor.errors import ConfigError
from keepfor.history.fate import Fate, fate, of_instant, of_item, of_key
from keepfor.stores.base import ItemStore
from keepfor.times import Known, parse_instant
from keepfor.wording import instant

Standing = Literal["there", "deleted", "not on record", "forgotten"]


def why(run: Invocation, name: str, id_: str) -> Answer:
    """Say which sweep took something, when, and by which rule. Writes nothing.

    Parameters:
        name: the store's.
        id_: an item's id, as plans show it; of rows an instant, or of a table a key that is a
            number.

    Returns:
        The document has `store`, `id`, `state` (`there`, `deleted`, `not on record`, or `forgotten`
        where the trail does not reach back to its own beginning), `at`, `rule`, `reason`, `by` and
        `plan` of the sweep that took it (null otherwise), and `since`, when the oldest record of
        the store was written.

    Raises:
        ConfigError: when the store holds rows, and `id_` is neither an instant nor a key.
    """
    store = run.store(name)
    if isinstance(store, ItemStore):
        with run.out.progress(f"Reading {name}") as progress:
            there = any(item.id == id_ for item in store.scan(progress))
        ask, many = of_item(id_), False
    else:
        there, many = False, True
        ask = of_key(int(id_)) if store.kind == "table" and id_.isdecimal() else _of_time(id_)
    told = fate(run.trail.records(), store.target, ask)
    state = _state(told, there=there)
    run.out.show(*_described(name, id_, state, told, many=many))
    facts: dict[str, Any] = {
        field: getattr(told, field) if state == "deleted" else None
        for field in ("at", "rule", "reason", "by", "plan")
    }
    facts = {"store": name, "id": id_, "state": state, **facts, "since": told.since}
    return Answer(verb="why", facts=facts)


def _of_time(text: str) -> Any:
    moment = parse_instant(text, source="ID")
    if isinstance(moment, Known):
        return of_instant(moment.instant)
    raise ConfigError(
        where=text,
        what="rows have no name, and this is no instant that a row could be of.",
        fix="Write when it was, such as 2026-07-26T12:00:00Z; of a table, a key that is a number.",
    )


def _state(told: Fate, *, there: bool) -> Standing:
    if there:
        return "there"
    if told.found:
        return "deleted"
    return "not on record" if told.whole else "forgotten"


def _described(name: str, id_: str, state: Standing, told: Fate, *, many: bool) -> list[Block]:
    return [Heading(id_, (name,)), Line(f"  {_sentence(name, state, told, many=many)}")]


def _sentence(name: str, state: Standing, told: Fate, *, many: bool) -> str:
    match state:
        case "there":
            return f"It is there still. `keepfor explain {name} ID` says why it stays or goes."
        case "deleted":
            by = f", by {told.rule}" if told.rule else ""
            reason = f" ({told.reason})" if told.reason else ""
            what = "If there was such a row, it went" if many else "It was deleted"
            plan = f", plan {told.plan[:8]}" if told.plan else ""
            return f"{what} at {_when(told.at)}{by}{reason}; asked for by {told.by}{plan}."
        case "not on record" if many:
            return "No sweep took such a row: if there was one, it is there, or others took it."
        case "not on record":
            return "No sweep on record took it, and the trail is whole: keepfor never did."
    since = f" before {instant(told.since)}" if told.since else ""
    return (
        f"No sweep on record took it. The trail has forgotten what was done{since}: nobody can "
        "tell any more."
    )


def _when(at: datetime | None) -> str:
    return "a time that cannot be read" if at is None else instant(at)
