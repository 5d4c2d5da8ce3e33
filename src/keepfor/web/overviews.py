"""How each store stands, in words and in colour, for the page of all stores."""

from __future__ import annotations

from typing import Literal

import msgspec

from keepfor.config import Config, asking
from keepfor.config.overview import Overview, last_sweeps, overview
from keepfor.config.standing import degraded, in_words
from keepfor.errors import KeepforError
from keepfor.items import noun
from keepfor.web.desk import Desk
from keepfor.wording import number, rows, size, span

Tone = Literal["good", "warn", "bad", "idle"]


class State(msgspec.Struct, frozen=True, kw_only=True):
    """How a store stands to its policy.

    Parameters:
        tone: how grave it is; never told by its colour alone.
        word: the same in a word or three.
        what: the same in a sentence.
    """

    tone: Tone
    word: str
    what: str


class Bound(msgspec.Struct, frozen=True, kw_only=True):
    """How much there is beside how much there may be.

    Parameters:
        value: how much there is.
        ceiling: how much there may be; None for no bound.
        told: the two in words.
    """

    value: int
    ceiling: int | None
    told: str


class Card(msgspec.Struct, frozen=True, kw_only=True):
    """One store on the page of all stores.

    Parameters:
        name: its name.
        kind: what kind of store it is.
        words: what it is held to.
        state: how it stands.
        seen: all that is told of it; None where it cannot be read.
        bounds: how large it is.
    """

    name: str
    kind: str
    words: str
    state: State
    seen: Overview | None = None
    bounds: list[Bound] = []


def cards(desk: Desk, config: Config) -> list[Card]:
    """All stores, each by itself: one that cannot be read keeps no other from being shown."""
    try:
        last = last_sweeps(config, config.stores)
    except (KeepforError, OSError):
        # The page of the trail says what is the matter with it.
        last = {}
    found = []
    for name, settings in config.stores.items():
        card = Card(
            name=name,
            kind=settings.kind,
            words=in_words(settings),
            state=State(tone="good", word="", what=""),
        )
        try:
            seen = overview(config, name, desk.now(), last)
        except (KeepforError, OSError) as error:
            found.append(msgspec.structs.replace(card, state=unreadable(error)))
        else:
            held, stands = seen.stands.held, seen.stands
            found.append(
                msgspec.structs.replace(
                    card,
                    state=state(seen),
                    seen=seen,
                    bounds=bounds(config, name, held.rows, held.bytes, stands.kind),
                )
            )
    return found


def unreadable(error: Exception) -> State:
    """How a store stands that cannot be read."""
    return State(tone="bad", word="Cannot be read", what=str(error))


def state(seen: Overview) -> State:
    """How a store stands to its policy, the gravest first."""
    stands, settings = seen.stands, seen.settings
    late, grace, thing = stands.held.lag, settings.tolerance, noun(stands.kind)
    if not stands.exists:
        return State(tone="idle", word="Empty", what="There is nothing there yet.")
    if late > grace:
        what = f"The oldest {thing} has been due for {span(late)}; the grace is {span(grace)}."
        if stands.tripped:
            what += " The breaker holds a sweep back."
        return State(tone="bad", word=f"Overdue by {span(late)}", what=what)
    if stands.tripped:
        of = rows(stands.held.rows, stands.kind)
        what = f"{number(stands.due)} of {of} would go, {stands.limit or 0:.0%} may at once."
        return State(tone="bad", word="Held back", what=f"The breaker holds a sweep back: {what}")
    if late:
        what = f"The oldest {thing} has been due for {span(late)}, within the grace."
        return State(tone="warn", word=f"Due for {span(late)}", what=what)
    if slow := degraded(settings):
        return State(tone="warn", word="Unbounded", what=f"{slow[0].upper()}{slow[1:]}")
    return State(tone="good", word="In order", what="Nothing is overdue.")


def bounds(config: Config, name: str, count: int, held: int, kind: str) -> list[Bound]:
    """How large a store is beside how large it may be: by bytes, and by count if that is bounded.

    Parameters:
        config: the configuration.
        name: the store's.
        count: how many rows or items it holds.
        held: how many bytes.
        kind: what kind of store it is.
    """
    policy = asking.settings(config, name).policy()
    on_disk = " on disk" if kind == "table" else ""
    told = f"{size(held)}{on_disk}"
    if policy.max_bytes:
        told += f" of {size(policy.max_bytes)}"
    found = [Bound(value=held, ceiling=policy.max_bytes, told=told)]
    if policy.max_count:
        told = f"{number(count)} of {rows(policy.max_count, kind)}"
        found.append(Bound(value=count, ceiling=policy.max_count, told=told))
    return found
