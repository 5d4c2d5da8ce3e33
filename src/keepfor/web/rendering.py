"""Turns what is told into a page: the templates, and how they write numbers, times and names."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import HTMLResponse

from keepfor.config.standing import in_words
from keepfor.escape import visible
from keepfor.items import noun
from keepfor.times import Known, parse_instant
from keepfor.web import charts
from keepfor.web.forecasts import some
from keepfor.web.storepages import evidence
from keepfor.wording import instant, number, rows, size, span, why

STATIC = Path(__file__).parent / "static"


def page(
    request: Request,
    template: str,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    **facts: Any,
) -> HTMLResponse:
    """An answer made from a template.

    Parameters:
        request: what was asked.
        template: the template's name.
        status: the HTTP status.
        headers: more headers.
        facts: what the template tells.
    """
    text = _templates().get_template(template).render(here=request.url.path, status=status, **facts)
    return HTMLResponse(text, status, dict(headers or {}))


@lru_cache(maxsize=1)
def _templates() -> Environment:
    # Every value that is no markup of ours is escaped, and before that made visible: a name may
    # hold characters that turn what follows around.
    found = Environment(
        loader=PackageLoader("keepfor.web"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_visible,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters |= {
        "evidence": evidence,
        "number": number,
        "rows": rows,
        "size": size,
        "span": span,
        "why": why,
        "words": in_words,
        "when": when,
        "ago": ago,
        "noun": noun,
        "sentence": sentence,
        "some": some,
        "day": lambda moment: f"{moment:%Y-%m-%d}",
        "seconds": lambda seconds: span(timedelta(seconds=seconds)),
    }
    found.globals |= {"charts": charts}
    return found


def when(moment: datetime | str | None) -> Markup | str:
    """An instant, to the minute; the whole of it for programs, and for who points at it."""
    known = _read(moment)
    if known is None:
        return "-" if moment is None else str(moment)
    return Markup('<time datetime="{whole}" title="{whole}">{short}</time>').format(
        whole=instant(known), short=f"{known.astimezone(UTC):%Y-%m-%d %H:%M}"
    )


def ago(moment: datetime | str | None, now: datetime) -> Markup | str:
    """An instant, as how long ago it was, or how long it is until then."""
    known = _read(moment)
    if known is None:
        return "-" if moment is None else str(moment)
    passed = now - known
    told = f"{span(passed)} ago" if passed >= timedelta() else f"in {span(-passed)}"
    if abs(passed) < timedelta(seconds=1):
        told = "just now"
    return Markup('<time datetime="{whole}" title="{whole}">{told}</time>').format(
        whole=instant(known), told=told
    )


def sentence(text: str) -> Markup:
    """A message as a sentence, in which what can be typed is told apart."""
    text = visible(f"{text[:1].upper()}{text[1:]}")
    parts = text.split("`")
    # What has no closing mark is no command.
    if len(parts) % 2 == 0:
        return escape(text)
    told = [
        Markup("<code>{}</code>").format(part) if odd % 2 else escape(part)
        for odd, part in enumerate(parts)
    ]
    return Markup("").join(told)


def _read(moment: datetime | str | None) -> datetime | None:
    if isinstance(moment, str):
        read = parse_instant(moment, source="ts")
        return read.instant if isinstance(read, Known) else None
    return moment


def _visible(value: Any) -> Any:
    return visible(value) if type(value) is str else value
