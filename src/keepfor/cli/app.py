"""What can be typed: every verb, argument and option, and the help for them.

Nothing is done here. A command line becomes a function that does what it says, so that a `--help`
costs no more than what it prints.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from keepfor.cli import foreseeing, single
from keepfor.cli.codes import MEANINGS
from keepfor.cli.command import Command, Verb
from keepfor.cli.options import Config, Json, Now, Policy, Stores

if TYPE_CHECKING:
    from keepfor.cli.documents import Answer
    from keepfor.cli.invocation import Invocation

_CODES = "\n".join(f"  {code}  {meaning}" for code, meaning in MEANINGS.items())
_EPILOG = f"""\b
Exit codes:
{_CODES}

Where several would do, the lowest but 0 counts. Ctrl-C exits with 130."""

_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}

app = typer.Typer(
    name="keepfor",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings=_SETTINGS,
    epilog=_EPILOG,
)
config_app = typer.Typer(rich_markup_mode=None)
app.add_typer(config_app, name="config", help="The configuration: show it, or begin one.")


class UsageError(Exception):
    """A command line that cannot be understood.

    Parameters:
        message: why not.
        hint: where to look.
    """

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


#: What typer raises for a command line; it has no public name of its own.
_REFUSED = typer.BadParameter.__mro__[1]


def parse(arguments: Sequence[str]) -> Verb | int:
    """Turn a command line into what it asks for.

    Returns:
        A function that does it; or an exit code, where help or version was all that was asked.

    Raises:
        UsageError: when it cannot be understood.
    """
    try:
        verb: Verb | int = app(
            list(arguments) or ["--help"], prog_name="keepfor", standalone_mode=False
        )
    except Exception as error:
        if not isinstance(error, _REFUSED):
            raise
        context = getattr(error, "ctx", None)
        command = context.command_path if context else "keepfor"
        message = getattr(error, "format_message", error.__str__)()
        raise UsageError(message, f"Try '{command} --help'.") from None
    # To ask for nothing is no success: a crontab that forgot its verb should notice.
    return verb if arguments else 2


def _version(wanted: bool) -> None:
    if wanted:
        from keepfor import __version__

        typer.echo(f"keepfor {__version__}")
        raise typer.Exit


@app.callback()
def keepfor(
    context: typer.Context,
    config: Config = None,
    _: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Make what an AI agent remembers expire on a clock.

    Every store is held to what keepfor.yaml says of it: `plan` shows what would go and touches
    nothing, `apply` does it, `check` tells a monitor when it is not done.
    """
    context.obj = config


@app.command(cls=Command)
def plan(
    context: typer.Context,
    stores: Stores = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Save the plan, for `apply FILE`."),
    ] = None,
    now: Now = None,
    policy: Policy = None,
    config: Config = None,
    json: Json = False,
) -> Verb:
    """Show what would go, and why. Nothing is touched."""

    def do(run: Invocation) -> Answer:
        from keepfor.cli.planning import plan

        return plan(run, stores or [], output, now, policy)

    return Verb(do, config or context.obj, json)


@app.command(cls=Command)
def apply(
    context: typer.Context,
    stores: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="STORE|PLAN_FILE",
            help="The stores, all of them if none is named; or a plan that was saved.",
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Pass the breaker.")] = False,
    policy: Policy = None,
    config: Config = None,
    json: Json = False,
) -> Verb:
    """Delete what is due, and flag what is to be looked at.

    Without a plan file it plans, shows and asks. A plan file is carried out as it stands, once,
    and only as far as a plan made now would go too.
    """

    def do(run: Invocation) -> Answer:
        from keepfor.cli.applying import apply

        return apply(run, stores or [], yes=yes, force=force, policy=policy)

    return Verb(do, config or context.obj, json)


@app.command(cls=Command)
def run(
    context: typer.Context,
    stores: Annotated[
        list[str] | None,
        typer.Argument(metavar="STORE", help="The stores to sweep; all of them if none is named."),
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", help="Sweep each store once, for cron, and end.")
    ] = False,
    metrics_port: Annotated[
        int | None,
        typer.Option(
            "--metrics-port",
            metavar="PORT",
            min=0,
            max=65535,
            help="Serve metrics for Prometheus; 0 takes any port that is free.",
        ),
    ] = None,
    metrics_host: Annotated[
        str, typer.Option("--metrics-host", metavar="ADDRESS", help="Serve them at this address.")
    ] = "127.0.0.1",
    config: Config = None,
    json: Json = False,
) -> Verb:
    """Apply again and again in the background, until it is told to stop.

    Each store is swept at the start and then every interval. What happens is told on stderr, one
    line for each event.
    """

    def do(invocation: Invocation) -> Answer:
        from keepfor.cli.sweeping import run

        return run(invocation, stores or [], once=once, port=metrics_port, host=metrics_host)

    return Verb(do, config or context.obj, json)


@app.command(cls=Command)
def status(
    context: typer.Context, stores: Stores = None, config: Config = None, json: Json = False
) -> Verb:
    """Show what history each store holds, and what is due."""

    def do(run: Invocation) -> Answer:
        from keepfor.cli.watching import status

        return status(run, stores or [])

    return Verb(do, config or context.obj, json)


@app.command(cls=Command)
def check(
    context: typer.Context, stores: Stores = None, config: Config = None, json: Json = False
) -> Verb:
    """Fail if a store outstays its policy, for cron and monitoring."""

    def do(run: Invocation) -> Answer:
        from keepfor.cli.watching import check

        return check(run, stores or [])

    return Verb(do, config or context.obj, json)


foreseeing.add_to(app)
single.add_to(app)


@app.command(cls=Command)
def reclaim(
    context: typer.Context,
    stores: Annotated[list[str], typer.Argument(metavar="STORE", help="The stores, each a table.")],
    config: Config = None,
    json: Json = False,
) -> Verb:
    """Give a database's free space back to the system. No row goes.

    Nothing else does it: SQLite writes its file anew for this, and nobody can write meanwhile.
    """

    def do(run: Invocation) -> Answer:
        from keepfor.cli.reclaiming import reclaim

        return reclaim(run, stores)

    return Verb(do, config or context.obj, json)


@app.command(cls=Command)
def log(
    context: typer.Context,
    stores: Stores = None,
    count: Annotated[
        int, typer.Option("-n", metavar="COUNT", min=1, help="How many sweeps at the most.")
    ] = 20,
    config: Config = None,
    json: Json = False,
) -> Verb:
    """Show what was done, the newest first."""

    def do(run: Invocation) -> Answer:
        from keepfor.cli.record import log

        return log(run, stores or [], count)

    return Verb(do, config or context.obj, json)


@app.command(cls=Command)
def serve(
    context: typer.Context,
    host: Annotated[
        str, typer.Option("--host", metavar="ADDRESS", help="Serve it at this address.")
    ] = "127.0.0.1",
    port: Annotated[
        int,
        typer.Option(
            "--port", metavar="PORT", min=0, max=65535, help="The port; 0 takes any that is free."
        ),
    ] = 8765,
    allow_apply: Annotated[
        bool, typer.Option("--allow-apply", help="Let a person apply plans that it shows.")
    ] = False,
    config: Config = None,
) -> Verb:
    """Show stores, plans and the trail in a browser.

    It only shows, unless it is let; then it prints a token that lets one plan be applied. Beyond
    this machine nobody reads without a token either.
    """

    def do(run: Invocation) -> Answer:
        from keepfor.cli.serving import serve

        return serve(run, host=host, port=port, allow_apply=allow_apply)

    return Verb(do, config or context.obj, False)


@app.command(cls=Command)
def mcp(
    context: typer.Context,
    allow_apply: Annotated[
        bool, typer.Option("--allow-apply", help="Let the agent apply plans that it was shown.")
    ] = False,
    config: Config = None,
) -> Verb:
    """Answer an agent over stdin and stdout, by the Model Context Protocol.

    The agent sees how stores stand, what would go and why. It deletes nothing, unless it is let.
    """

    def do(run: Invocation) -> Answer:
        from keepfor.cli.serving_mcp import mcp

        return mcp(run, allow_apply=allow_apply)

    return Verb(do, config or context.obj, False)


@app.command(cls=Command)
def demo(context: typer.Context, json: Json = False) -> Verb:
    """Hold a sandbox of 120 days of recalls to 90, and show each step."""

    def do(run: Invocation) -> Answer:
        from keepfor.cli.demo import demo

        return demo(run)

    return Verb(do, context.obj, json)


@config_app.command("show", cls=Command)
def config_show(context: typer.Context, config: Config = None, json: Json = False) -> Verb:
    """Show every setting in force, and where its value came from."""

    def do(run: Invocation) -> Answer:
        from keepfor.cli.configuring import show

        return show(run)

    return Verb(do, config or context.obj, json)


@config_app.command("schema", cls=Command)
def config_schema(context: typer.Context, json: Json = False) -> Verb:
    """Print the JSON Schema of keepfor.yaml, for editors."""

    def do(run: Invocation) -> Answer:
        from keepfor.cli.configuring import schema

        return schema(run)

    return Verb(do, context.obj, json)


@config_app.command("init", cls=Command)
def config_init(context: typer.Context, config: Config = None, json: Json = False) -> Verb:
    """Write a first keepfor.yaml, with every setting explained."""

    def do(run: Invocation) -> Answer:
        from keepfor.cli.configuring import init

        return init(run)

    return Verb(do, config or context.obj, json)
