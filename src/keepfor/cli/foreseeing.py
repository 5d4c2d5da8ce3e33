"""The verbs that look back and ahead: what is to come, what a change would do, why it is gone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from keepfor.cli.command import Command, Verb
from keepfor.cli.options import Config, Json, Now, Store, Stores

if TYPE_CHECKING:
    from keepfor.cli.documents import Answer
    from keepfor.cli.invocation import Invocation


def add_to(app: typer.Typer) -> None:
    """Have these verbs understood."""
    for verb in (forecast, diff, why):
        app.command(cls=Command)(verb)


def forecast(
    context: typer.Context,
    stores: Stores = None,
    days: Annotated[
        int, typer.Option("--days", metavar="DAYS", min=1, max=3650, help="How far to look.")
    ] = 90,
    config: Config = None,
    json: Json = False,
) -> Verb:
    """Show what stores will hold, what goes when, and what cuts it short."""

    def do(run: Invocation) -> Answer:
        from keepfor.cli.forecasting import foresee

        return foresee(run, stores or [], days)

    return Verb(do, config or context.obj, json)


def diff(
    context: typer.Context,
    old: Annotated[Path, typer.Argument(metavar="OLD", help="The configuration as it is.")],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="The configuration as it would be.")],
    stores: Annotated[
        list[str] | None,
        typer.Argument(metavar="STORE", help="The stores; all that both know if none is named."),
    ] = None,
    now: Now = None,
    json: Json = False,
) -> Verb:
    """Show what a change of policy newly condemns and spares."""

    def do(run: Invocation) -> Answer:
        from keepfor.cli.diffing import diff

        return diff(run, old, new, stores or [], now)

    return Verb(do, context.obj, json)


def why(
    context: typer.Context,
    store: Store,
    item: Annotated[
        str,
        typer.Argument(
            metavar="ID",
            help="A note, session or run, as plans show it; or when a row was, or a table's key.",
        ),
    ],
    config: Config = None,
    json: Json = False,
) -> Verb:
    """Say which sweep took what is no longer there, and by which rule."""

    def do(run: Invocation) -> Answer:
        from keepfor.cli.remembering import why

        return why(run, store, item)

    return Verb(do, config or context.obj, json)
