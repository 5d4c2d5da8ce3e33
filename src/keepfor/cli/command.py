"""What a command line asks for, and how its help is laid out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typer.core import TyperCommand

if TYPE_CHECKING:
    from keepfor.cli.documents import Answer
    from keepfor.cli.invocation import Invocation
    from keepfor.cli.output import Output


class Verb:
    """What a command line asks for.

    Parameters:
        do: does it.
        named: the configuration file that the command line names, if any.
        as_json: whether stdout is for a program.
    """

    def __init__(
        self, do: Callable[[Invocation], Answer], named: Path | None, as_json: bool
    ) -> None:
        self._do = do
        self._named = named
        self._as_json = as_json

    def __call__(self, out: Output) -> Answer:
        from keepfor.cli.invocation import Invocation

        out.as_json = self._as_json
        return self._do(Invocation(out, self._named))


class Command(TyperCommand):
    """A verb whose help calls an argument by its name, without its type in Python."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        records: dict[str, list[Any]] = {"argument": [], "option": []}
        param: Any
        for param in self.get_params(ctx):
            plain = param.param_type_name == "argument"
            record = (param.metavar, param.help) if plain else param.get_help_record(ctx)
            records[param.param_type_name].append(record)
        for kind, found in records.items():
            if found:
                with formatter.section(f"{kind.capitalize()}s"):
                    formatter.write_dl(found)
