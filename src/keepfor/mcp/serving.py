"""Speaks the protocol: lists the tools, checks what a call brings, and turns errors into words."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from pydantic import ValidationError
from pydantic.json_schema import GenerateJsonSchema

from keepfor import __version__
from keepfor.errors import BreakerTripped, KeepforError, PlanSpent, PlanStale, StoreChanged
from keepfor.mcp.bounds import bounded, message
from keepfor.mcp.desk import Desk
from keepfor.mcp.tools import APPLY, TOOLS, Tool

LOG = logging.getLogger("keepfor.mcp")

_INSTRUCTIONS = """\
keepfor holds an agent's memory (ledgers, runs, tables, notes) to retention policies that a person \
wrote. Begin with retention_status. Names of stores are those that it lists, ids are those that \
retention_plan gives. Call record_access when you used a note, so that it does not count as unused.\
"""
#: What to do here about an error that was written for the command line.
_ADVICE: dict[type[KeepforError], str] = {
    BreakerTripped: "Nothing passes the breaker here: show the plan to a person, who decides.",
    PlanSpent: "Here: call retention_plan again.",
    PlanStale: "Here: call retention_plan again, look at what it says now, and apply that.",
    StoreChanged: "Here: call retention_plan again, look at what it says now, and apply that.",
}


def serve(
    named: Path | None,
    environ: Mapping[str, str],
    clock: Callable[[], datetime],
    *,
    allow_apply: bool = False,
) -> None:
    """Answer over stdin and stdout until stdin ends. Nothing else is written to stdout.

    Parameters:
        named: the configuration file; None for the one that is found.
        environ: the environment, which overrides what the file says.
        clock: tells the present instant.
        allow_apply: whether there is a tool that deletes.
    """
    desk = Desk(named, environ, clock, applies=allow_apply)
    anyio.run(_serve, desk, (*TOOLS, APPLY) if allow_apply else TOOLS)


async def _serve(desk: Desk, tools: tuple[Tool, ...]) -> None:
    by_name = {tool.name: tool for tool in tools}
    listed = [_listed(tool) for tool in tools]

    async def on_list_tools(_: Any, __: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=listed)

    async def on_call_tool(_: Any, call: types.CallToolRequestParams) -> types.CallToolResult:
        # A store may take its time, and others are answered meanwhile.
        return await anyio.to_thread.run_sync(
            _called, desk, by_name, call.name, call.arguments or {}
        )

    server: Server[Any] = Server(
        "keepfor",
        version=__version__,
        title="keepfor",
        instructions=_INSTRUCTIONS,
        on_list_tools=on_list_tools,
        on_call_tool=on_call_tool,
    )
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


class _Schema(GenerateJsonSchema):
    """Leaves out titles that only say a field's name once more."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002
        return False


def _listed(tool: Tool) -> types.Tool:
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.text,
        annotations=tool.hints,
        input_schema=tool.takes.model_json_schema(schema_generator=_Schema),
        output_schema=tool.gives.model_json_schema(mode="serialization", schema_generator=_Schema),
    )


def _called(
    desk: Desk, tools: Mapping[str, Tool], name: str, arguments: dict[str, Any]
) -> types.CallToolResult:
    """The answer to one call, whatever came of it."""
    tool = tools.get(name)
    if tool is None:
        return _refused(_no_such_tool(name, tools))
    try:
        wanted = tool.takes.model_validate(arguments)
    except ValidationError as error:
        return _refused(_misunderstood(tool, error))
    try:
        told = bounded(tool.run(desk, wanted).model_dump(mode="json"))
        text = json.dumps(told, ensure_ascii=False, allow_nan=False)
    except KeepforError as error:
        return _refused(f"{message(error)} {_ADVICE.get(type(error), '')}".rstrip())
    except OSError as error:
        return _refused(message(error))
    except Exception:
        LOG.exception("%s failed", name)
        return _refused(
            f"{name} failed because of a mistake in keepfor itself. What it was stands in the "
            "server's own log, on its stderr; please have a person report it."
        )
    content: list[types.ContentBlock] = [types.TextContent(type="text", text=text)]
    return types.CallToolResult(content=content, structured_content=told)


def _refused(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=True)


def _no_such_tool(name: str, tools: Mapping[str, Tool]) -> str:
    if name == APPLY.name:
        return (
            f"{name} is not offered here: this server only looks. A person who wants an agent to "
            "apply plans starts it with `keepfor mcp --allow-apply`."
        )
    return f"There is no tool {name[:100]!r}. There are: {', '.join(tools)}."


def _misunderstood(tool: Tool, error: ValidationError) -> str:
    """What is wrong with the arguments, without what they held."""
    faults = []
    for fault in error.errors(include_url=False, include_input=False, include_context=False)[:10]:
        where = ".".join(str(part) for part in fault["loc"])[:100]
        what = "there is no such argument" if fault["type"] == "extra_forbidden" else fault["msg"]
        faults.append(f"{where}: {what}")
    takes = ", ".join(tool.takes.model_fields)
    return f"{tool.name} does not understand its arguments. {'; '.join(faults)}. It takes: {takes}."
