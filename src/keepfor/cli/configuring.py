"""`config show`, `config schema` and `config init`."""

from __future__ import annotations

from pathlib import Path

from keepfor import config
from keepfor.cli.blocks import Heading, Line, Table
from keepfor.cli.documents import Answer
from keepfor.cli.invocation import Invocation
from keepfor.config.paths import VARIABLE
from keepfor.errors import ConfigError


def show(run: Invocation) -> Answer:
    """Show every setting in force, and where its value came from.

    Returns:
        The document has `path` (the file) and `settings`: for each `key` (dotted), `value` (as the
        file would say it, null where there is nothing to say) and `source`.
    """
    settings = config.show(run.config)
    rows = [[row.key, "-" if row.value is None else str(row.value), row.source] for row in settings]
    run.out.show(Heading(str(run.config.path)), Line(), Table(["setting", "value", "from"], rows))
    facts = {"path": run.config.path, "settings": settings}
    return Answer(verb="config show", facts=facts)


def schema(run: Invocation) -> Answer:
    """Print the JSON Schema of keepfor.yaml, bare, or with `--json` under `schema`."""
    found = config.schema()
    if not run.out.as_json:
        from keepfor.cli.documents import encode

        run.out.write(encode(found))
    return Answer(verb="config schema", facts={"schema": found})


def init(run: Invocation) -> Answer:
    """Write a first keepfor.yaml: where one was named, or in the working folder.

    Returns:
        The document has `path`, the file that was written.

    Raises:
        ConfigError: when something stands there already.
    """
    folder = Path.cwd()
    path = folder / config.NAME
    if run.named is not None or VARIABLE in run.environ:
        path = config.find(run.named, run.environ, folder)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(config.INIT)
    except FileExistsError:
        raise ConfigError(
            where=path, what="it is there already.", fix="Edit it, or remove it first."
        ) from None
    run.out.show(
        Line(f"Wrote {path}.", "good"),
        Line("Say in it where your store lies and how long to keep, then: keepfor plan"),
    )
    return Answer(verb="config init", facts={"path": path})
