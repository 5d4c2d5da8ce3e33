"""What several verbs take: the arguments and options that mean the same everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Config = Annotated[
    Path | None,
    typer.Option("--config", metavar="FILE", help="Use this configuration file."),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document for a program.")]
Stores = Annotated[
    list[str] | None,
    typer.Argument(metavar="STORE", help="The stores to look at; all of them if none is named."),
]
Store = Annotated[str, typer.Argument(metavar="STORE", help="The store, by its name.")]
Policy = Annotated[
    Path | None,
    typer.Option(
        "--policy", metavar="FILE", help="Hold notes to the rules in this file, YAML or JSON."
    ),
]
Now = Annotated[
    str | None,
    typer.Option("--now", metavar="TIME", help="Judge ages by this instant, such as 2026-07-26."),
]
