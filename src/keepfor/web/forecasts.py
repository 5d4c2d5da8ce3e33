"""What a store will hold, in words and as a curve, for its page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

import msgspec
from markupsafe import Markup

from keepfor.history.forecast import Cut, Forecast, forecast
from keepfor.items import noun
from keepfor.policy.rules import Policy
from keepfor.stores.daily import Daily
from keepfor.web import charts
from keepfor.wording import number, size

#: How far ahead it looks, in days.
_AHEAD = 90


class Outlook(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be expected of a store.

    Parameters:
        told: the forecast.
        chart: the curve; None where there is nothing to measure.
        facts: the same in words, each under its name.
        cuts: what will cut its history short, a sentence for each.
    """

    told: Forecast
    chart: Markup | None
    facts: list[tuple[str, str]]
    cuts: list[str]


def outlook(held: Sequence[Daily], policy: Policy, now: datetime, kind: str) -> Outlook:
    """What is to be expected of a store, if it goes on as it did and is swept every day.

    Parameters:
        held: what it holds, by type and day of age.
        policy: what it is held to.
        now: the instant to look ahead from.
        kind: what kind of store it is.
    """
    told = forecast(held, policy, now, _AHEAD)
    facts = list(_facts(told, f"{noun(kind)}s"))
    chart = None
    if told.sure != "nothing":
        in_bytes = policy.max_count is None or policy.max_bytes is not None
        limit = policy.max_bytes if in_bytes else policy.max_count
        values = ((point.day, point.bytes if in_bytes else point.count) for point in told.curve)
        points = [
            charts.Point(day=day, value=min(value, limit) if limit else value)
            for day, value in values
        ]
        words = "; ".join(f"{name}: {fact}" for name, fact in facts)
        chart = charts.curve(points, limit, f"What it will hold. {words}.", in_bytes=in_bytes)
    return Outlook(told=told, chart=chart, facts=facts, cuts=list(map(_cut, told.cuts)))


def _facts(told: Forecast, things: str) -> Iterator[tuple[str, str]]:
    if told.sure == "nothing":
        yield "How sure", "there is nothing to measure yet"
        return
    yield "Rate", f"{some(told.rate)} {things} and {size(round(told.rate_bytes))} a day"
    over = f"measured over {_days(told.measured)}"
    sure = {"guess": f"a guess, {over} only", "rough": f"rough, {over}"}
    yield "How sure", sure.get(told.sure, over)
    if told.settles is None or told.settles_bytes is None:
        yield "Settles at", "no size: nothing bounds it, so it grows without end"
    else:
        many = f"{some(told.settles)} {things}, {size(round(told.settles_bytes))}"
        yield "Settles at", f"about {many}"
    if told.unforeseen:
        yield "Not foreseen", f"what goes by {', '.join(told.unforeseen)}: no matter of time alone"


def _cut(cut: Cut) -> str:
    limit = size(cut.limit) if cut.ceiling == "max_bytes" else number(cut.limit)
    reached = f"is reached in {_days(cut.reached_in)}" if cut.reached_in else "is reached by now"
    instead = f", not {_days(cut.instead_of)}" if cut.instead_of is not None else ""
    return f"At this rate {limit} {reached}: the window then is {_days(cut.window)}{instead}."


def some(count: float) -> str:
    """A count that is an estimate: whole, but where that would be nothing."""
    return f"{count:,.0f}" if count >= 10 or count == round(count) else f"{count:.2g}"


def _days(count: float) -> str:
    return f"{count:.0f} day{'' if round(count) == 1 else 's'}"
