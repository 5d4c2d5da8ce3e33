"""The verbs that are about single things: a note, a session, a run, a recall."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from keepfor.cli.command import Command, Verb
from keepfor.cli.options import Config, Json, Now, Policy, Store

if TYPE_CHECKING:
    from keepfor.cli.documents import Answer
    from keepfor.cli.invocation import Invocation


def add_to(app: typer.Typer) -> None:
    """Have these verbs understood."""
    for verb in (explain, access, trace, count, recent):
        app.command(cls=Command)(verb)


def explain(
    context: typer.Context,
    store: Store,
    item: Annotated[
        str, typer.Argument(metavar="ID", help="The note, session or run, as plans show it.")
    ],
    now: Now = None,
    policy: Policy = None,
    config: Config = None,
    json: Json = False,
) -> Verb:
    """Say why an item stays or goes.

    What each rule says of it, with the numbers, and what would take it next, and when.
    """

    def do(run: Invocation) -> Answer:
        from keepfor.cli.explaining import explain

        return explain(run, store, item, now, policy)

    return Verb(do, config or context.obj, json)


def access(
    context: typer.Context,
    store: Store,
    items: Annotated[
        list[str], typer.Argument(metavar="ID", help="What was recalled, as plans show it.")
    ],
    config: Config = None,
    json: Json = False,
) -> Verb:
    """Record that notes or sessions were recalled now.

    By this, rules know what is in use. No note is touched.
    """

    def do(run: Invocation) -> Answer:
        from keepfor.cli.accessing import access

        return access(run, store, items)

    return Verb(do, config or context.obj, json)


def trace(
    context: typer.Context,
    store: Store,
    slug: Annotated[str, typer.Argument(metavar="SLUG", help="The note's slug.")],
    count: Annotated[
        int, typer.Option("-n", metavar="COUNT", min=1, help="How many recalls at the most.")
    ] = 3,
    config: Config = None,
    json: Json = False,
) -> Verb:
    """Show when a note was last recalled, and on what evidence."""

    def do(run: Invocation) -> Answer:
        from keepfor.cli.recalling import trace

        return trace(run, store, slug, count)

    return Verb(do, config or context.obj, json)


def count(
    context: typer.Context,
    store: Store,
    since: Annotated[
        str,
        typer.Option("--since", metavar="TIME", help="A date, an instant, or a duration like 7d."),
    ],
    config: Config = None,
    json: Json = False,
) -> Verb:
    """Count recalls, and how often notes surfaced in them."""

    def do(run: Invocation) -> Answer:
        from keepfor.cli.recalling import count

        return count(run, store, since)

    return Verb(do, config or context.obj, json)


def recent(
    context: typer.Context,
    store: Store,
    count: Annotated[
        int, typer.Option("-n", metavar="COUNT", min=1, help="How many runs at the most.")
    ] = 10,
    fields: Annotated[
        str | None,
        typer.Option(
            "--fields",
            metavar="FIELD,…",
            help="What to show of each run; a dotted path reaches into objects.",
        ),
    ] = None,
    config: Config = None,
    json: Json = False,
) -> Verb:
    """Show what the newest runs say last, the newest first."""

    def do(run: Invocation) -> Answer:
        from keepfor.cli.recent import recent

        return recent(run, store, count, fields)

    return Verb(do, config or context.obj, json)
