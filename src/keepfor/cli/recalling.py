"""`trace` and `count`: what a ledger of recall events says of a note, and of a span of time."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from keepfor import recalls
from keepfor.cli.blocks import Block, Fact, Facts, Heading, Line
from keepfor.cli.documents import Answer
from keepfor.cli.invocation import Invocation
from keepfor.recalls import Match
from keepfor.times import before, parse_duration, parse_now
from keepfor.wording import instant, number

#: A number and something other than what a date goes on with.
_DURATION = re.compile(r"\s*-?[\d.]+\s*[A-SU-Za-zµ].*|P.*", re.ASCII)


def trace(run: Invocation, name: str, slug: str, count: int = 3) -> Answer:
    """Show when a note was last recalled, and on what evidence. Writes nothing.

    Parameters:
        name: the store's.
        slug: the note's.
        count: how many recalls at the most.

    Returns:
        The document has `store`, `slug`, `matches` (the newest first, each as in `recalls.Match`),
        `empty` (null, or why there are none: `no ledger`, `never recalled`, `no evidence`) and
        `explanation` (the same, for a person).
    """
    found = recalls.trace(run.ledger(name), slug, count, run.clock())
    if found.matches:
        run.out.show(*_described(slug, found.matches))
    else:
        run.out.show(Line(f"{found.explanation}.", "warn"))
    facts = {
        "store": name,
        "slug": slug,
        "matches": found.matches,
        "empty": found.empty,
        "explanation": found.explanation,
    }
    return Answer(verb="trace", facts=facts)


def count(run: Invocation, name: str, since: str) -> Answer:
    """Count recalls, and how often notes surfaced in them. Writes nothing.

    Parameters:
        name: the store's.
        since: a date (from its first moment on), an instant, or a duration that reaches back from
            now.

    Returns:
        The document has `store`, `since` (an instant), `recalls` and `hits`.
    """
    store = run.ledger(name)
    if _DURATION.fullmatch(since):
        span = parse_duration(since)
        assert span is not None, "forever is no number"
        start = before(run.clock(), span)
    else:
        start = parse_now(since)
    found = recalls.count(store, start)
    said = f"{number(found.recalls)} {'recall' if found.recalls == 1 else 'recalls'}"
    times = f"{number(found.hits)} {'time' if found.hits == 1 else 'times'}"
    run.out.show(Line(f"{said} since {instant(start)}, in which notes surfaced {times}."))
    facts = {"store": name, "since": start, "recalls": found.recalls, "hits": found.hits}
    return Answer(verb="count", facts=facts)


def _described(slug: str, matches: Sequence[Match]) -> list[Block]:
    latest = "latest recall" if len(matches) == 1 else f"{len(matches)} latest recalls"
    facts = []
    for match in matches:
        scores = {"rank": match.rank, "combined": match.combined, "sim": match.sim}
        facts.append(Fact(instant(match.at), _said(match.path)))
        facts.append(Fact("", _pairs({**scores, "keyword": match.keyword})))
        about = {"tier": match.lifecycle_tier, "decay": match.decay_score}
        facts.append(Fact("", _pairs({**about, "query": match.query_hash})))
    return [Heading(slug, (latest,)), Line(), Facts(facts)]


def _pairs(values: Mapping[str, object]) -> str:
    return ", ".join(f"{name} {_said(value)}" for name, value in values.items())


def _said(value: object) -> str:
    """What a row says, which may be anything: nobody checks what programs write."""
    return "-" if value is None else str(value)
