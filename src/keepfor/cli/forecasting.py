"""`forecast`: what a store will hold, what goes when, and what cuts its history short."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from keepfor.cli import codes
from keepfor.cli.blocks import Block, Fact, Facts, Heading, Line, Table
from keepfor.cli.documents import Answer, error
from keepfor.cli.invocation import Invocation
from keepfor.config import policy_of
from keepfor.errors import KeepforError
from keepfor.history.forecast import Cut, Forecast, forecast
from keepfor.history.standing import by_day
from keepfor.items import noun
from keepfor.wording import rows, size

_SURE = {
    "nothing": "there is nothing to measure yet",
    "guess": "a guess, for it was measured over {days} only",
    "rough": "rough, measured over {days}",
    "fair": "measured over {days}",
}
_HELD_BACK = (
    "the breaker lets none of this go until somebody looks at `keepfor plan {name}` and runs "
    "`keepfor apply {name} --force`"
)
_WIDTH = 40


def foresee(run: Invocation, wanted: Sequence[str], days: int = 90) -> Answer:
    """Show what is to be expected of stores, if they go on as they did. Writes nothing.

    Parameters:
        wanted: the stores; all if none is named.
        days: how far to look.

    Returns:
        The document has `stores`: for each `store`, `kind`, what `Forecast` says, and `error`
        (null). A store that could not be read has `store` and `error` only.
    """
    documents: list[dict[str, Any]] = []
    exit_codes = []
    for name in run.names(wanted):
        try:
            kind, told = run.settings(name).kind, _told(run, name, days)
        except (KeepforError, OSError) as problem:
            run.warn(problem)
            exit_codes.append(codes.of(problem))
            documents.append({"store": name, "error": error(problem)})
            continue
        run.out.show(*_described(name, kind, told))
        facts = {field: getattr(told, field) for field in Forecast.__struct_fields__}
        documents.append({"store": name, "kind": kind, **facts, "error": None})
    facts = {"stores": documents}
    return Answer(verb="forecast", facts=facts, exit_code=codes.gravest(exit_codes))


def _told(run: Invocation, name: str, days: int) -> Forecast:
    policy, now = policy_of(run.settings(name)), run.clock()
    with run.out.progress(f"Reading {name}") as progress:
        held = by_day(run.store(name), policy, now, progress)
    return forecast(held, policy, now, days)


def _described(name: str, kind: str, told: Forecast) -> list[Block]:
    thing = f"{noun(kind)}s"
    sure = _SURE[told.sure].format(days=_days(told.measured))
    facts = [
        Fact("there now", f"{rows(told.count, kind)}, {size(told.bytes)}"),
        Fact("rate", f"{_some(told.rate)} {thing} a day, {size(round(told.rate_bytes))} a day"),
        Fact("how sure", sure, "plain" if told.sure == "fair" else "warn"),
        _settles(told, thing),
        *([Fact("held back", _HELD_BACK.format(name=name), "bad")] if told.held_back else []),
        *(Fact("cut short", _cut(cut), "warn") for cut in told.cuts),
    ]
    if told.unforeseen:
        names = ", ".join(told.unforeseen)
        facts.append(Fact("not foreseen", f"what goes by {names}, which is not a matter of time"))
    return [Heading(name, (kind,)), Line(), Facts(facts), Line(), *_chart(told, thing), Line()]


def _settles(told: Forecast, thing: str) -> Fact:
    if told.sure == "nothing":
        return Fact("settles at", "nobody can tell yet")
    if told.settles is None or told.settles_bytes is None:
        return Fact("settles at", "no size: nothing bounds it, so it grows without end", "warn")
    about = f"about {_some(told.settles)} {thing}, {size(round(told.settles_bytes))}"
    return Fact("settles at", about)


def _cut(cut: Cut) -> str:
    limit = size(cut.limit) if cut.ceiling == "max_bytes" else f"{cut.limit:,}"
    window = _days(round(cut.window))
    instead = f", not {_days(round(cut.instead_of))}" if cut.instead_of is not None else ""
    if not cut.reached_in:
        return f"{limit} is reached already; at this rate the effective window is {window}{instead}"
    when = _days(cut.reached_in)
    return (
        f"at this rate {limit} is reached in {when}; the effective window then is {window}{instead}"
    )


def _chart(told: Forecast, thing: str) -> list[Block]:
    """What goes week by week, with what is left then, drawn as bars."""
    points = {point.day: point for point in told.curve}
    most = max((point.count for point in told.curve), default=0.0) or 1.0
    lines = []
    for number, week in enumerate(told.weeks):
        end = points[min(told.days, (number + 1) * 7)]
        lines.append(
            [
                f"{week.start:%Y-%m-%d}",
                _some(week.count),
                size(round(week.bytes)),
                _some(end.count),
                "#" * round(_WIDTH * end.count / most),
            ]
        )
    headings = ["week from", f"#{thing} that go", "#bytes", "#then there", ""]
    return [Table(headings, lines)]


def _some(count: float) -> str:
    """A count that is an estimate: whole, but where that would be nothing."""
    return f"{count:,.0f}" if count >= 10 or count == round(count) else f"{count:.2g}"


def _days(count: float) -> str:
    span = timedelta(days=count).days
    return f"{span} day{'' if span == 1 else 's'}"
