"""How the server speaks: what it lists, what it writes to stdout, how it starts and how it ends."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import jsonschema  # type: ignore[import-untyped]
import pytest
from mcp import Client

from keepfor.cli import main
from keepfor.mcp.bounds import bounded
from keepfor.mcp.desk import until_cancelled
from keepfor.sweeper import Stopped
from tests.mcp.house import KEEPFOR, House, Server, environment, text

#: What each tool does to the world: reads only, may delete, may be repeated without more effect.
HINTS = {
    "retention_status": (True, False, True),
    "retention_plan": (True, False, True),
    "retention_explain": (True, False, True),
    "recall_trace": (True, False, True),
    "recent_runs": (True, False, True),
    "history_window": (True, False, True),
    "record_access": (False, False, False),
    "retention_apply": (False, True, True),
}


def test_nothing_deletes_unless_it_was_allowed(reader: Server, doer: Server) -> None:
    """Without --allow-apply there are seven tools, none of which deletes; with it there is one
    more."""
    assert list(reader.tools()) == list(HINTS)[:-1]
    assert list(doer.tools()) == list(HINTS)
    assert not any(tool.annotations.destructive_hint for tool in reader.tools().values())  # type: ignore[union-attr]


@pytest.mark.parametrize("name", HINTS)
def test_a_tool_says_what_it_does_takes_and_answers(doer: Server, name: str) -> None:
    """Each tool has its honest hints, a text for who chooses one, and strict, sound schemas."""
    tool = doer.tools()[name]
    hints = tool.annotations
    assert hints is not None
    assert (hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint) == HINTS[name]
    assert hints.open_world_hint is False
    assert tool.title
    assert len(tool.description or "") > 80
    taken, given = tool.input_schema, tool.output_schema
    assert given is not None
    for schema in (taken, given):
        jsonschema.Draft202012Validator.check_schema(schema)
        assert schema["type"] == "object"
    assert taken["additionalProperties"] is False
    assert all("description" in said for said in taken["properties"].values())
    # Every text and list that may be passed has an end.
    for said in taken["properties"].values():
        ends = {"string": "maxLength", "array": "maxItems", "integer": "maximum"}
        assert ends[said["type"]] in said


def spoken(folder: Path, *messages: dict[str, Any]) -> tuple[list[Any], str, int]:
    """What a server writes that is told these messages and then nothing more: the messages on its
    stdout, its stderr and its exit code."""
    lines = "".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in messages)
    with subprocess.Popen(
        [KEEPFOR, "mcp"],
        cwd=folder,
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdin
        assert server.stdout
        assert server.stderr
        server.stdin.write(lines)
        server.stdin.flush()
        wanted = sum("id" in message for message in messages)
        answers = [json.loads(server.stdout.readline()) for _ in range(wanted)]
        server.stdin.close()
        rest = server.stdout.read()
        assert rest == ""
        return answers, server.stderr.read(), server.wait()


INITIALIZE = {
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "0"},
    },
}


def test_stdout_holds_the_protocol_and_nothing_else(tmp_path: Path) -> None:
    """Each line on stdout is a message of the protocol, in the older of its ways too; what the
    server has to say of itself stands on stderr, and it ends with its input."""
    house = House(tmp_path)
    house.build()
    answers, log, code = spoken(
        tmp_path,
        INITIALIZE,
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list"},
        {"id": 3, "method": "tools/call", "params": {"name": "retention_plan", "arguments": {}}},
    )
    assert code == 0
    by_id = {answer["id"]: answer["result"] for answer in answers}
    assert by_id[1]["protocolVersion"] == "2025-06-18"
    assert by_id[1]["serverInfo"]["name"] == "keepfor"
    assert by_id[1]["capabilities"] == {"tools": {"listChanged": False}}
    assert "retention_status" in by_id[1]["instructions"]
    assert len(by_id[2]["tools"]) == 7
    assert len(by_id[3]["structuredContent"]["stores"]) == 6
    (line,) = log.splitlines()
    assert "event=start allow_apply=false" in line


def test_a_server_without_a_configuration_says_how_to_begin(tmp_path: Path) -> None:
    """It starts all the same, each tool says what is missing, and its log does too."""
    call = {"name": "retention_status", "arguments": {}}
    answers, log, code = spoken(
        tmp_path,
        INITIALIZE,
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": call},
    )
    assert code == 0
    (content,) = answers[1]["result"]["content"]
    assert answers[1]["result"]["isError"] is True
    for said in (content["text"], log):
        assert "There is no keepfor.yaml" in said
        assert "keepfor config init" in said


def test_the_old_handshake_and_the_new_one_lead_to_the_same(doer: Server) -> None:
    """A client that knows one way only is served as well."""

    async def asked(mode: str) -> Any:
        from mcp import StdioServerParameters, stdio_client

        server = StdioServerParameters(
            command=str(KEEPFOR), args=["mcp"], env=environment(), cwd=doer.house.folder
        )
        with open(f"{doer.house.folder}.{mode}.log", "w", encoding="utf-8") as log:
            async with Client(stdio_client(server, errlog=log), mode=mode) as client:
                return await client.call_tool("history_window", {"store": "recall"})

    done = doer.portal.call(asked, "legacy")
    assert json.loads(text(done)) == doer.ask("history_window", store="recall")


def test_ctrl_c_ends_it_at_once(tmp_path: Path) -> None:
    """A person who started it by hand gets rid of it, though its input is still open."""
    with subprocess.Popen(
        [KEEPFOR, "mcp"],
        cwd=tmp_path,
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdin
        assert server.stdout
        server.stdin.write(json.dumps({"jsonrpc": "2.0", **INITIALIZE}) + "\n")
        server.stdin.flush()
        server.stdout.readline()
        server.send_signal(signal.SIGINT)
        assert server.wait() == -signal.SIGINT


def test_without_the_sdk_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where the extra is not installed, the command says which one it is, and exits with 2."""
    for name in [name for name in sys.modules if name.startswith("keepfor.mcp")]:
        monkeypatch.delitem(sys.modules, name)
    for name in ("mcp", "mcp.server", "mcp.server.lowlevel", "mcp_types"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(SystemExit) as leaving:
        main(["mcp"])
    assert leaving.value.code == 2
    assert "pip install '.[mcp]'" in capsys.readouterr().err


def test_work_that_nobody_waits_for_stops_at_its_next_step() -> None:
    """A call that is cancelled ends the look or the sweep that it began, as an error of ours, so
    that a store can still say how far it came."""
    outcomes: list[str] = []
    scopes: list[anyio.CancelScope] = []
    cancelled = threading.Event()

    def work() -> None:
        step = until_cancelled("recall")
        step(1, 2)
        outcomes.append("went on")
        anyio.from_thread.run_sync(scopes[0].cancel)
        cancelled.wait()
        try:
            step(2, 2)
        except Stopped as error:
            outcomes.append(str(error))

    async def watch() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            cancelled.set()

    async def run() -> None:
        async with anyio.create_task_group() as tasks:
            scopes.append(tasks.cancel_scope)
            tasks.start_soon(watch)
            await anyio.to_thread.run_sync(work)

    anyio.run(run)
    went_on, said = outcomes
    assert went_on == "went on"
    assert said.startswith("The sweep of recall was asked to stop")


def test_an_answer_has_an_end() -> None:
    """Long texts, lists and tables are cut, texts and lists of texts say by how much, and all the
    rest stays."""
    value = {"a": "x" * 1001, "b": ["y" * 1000] * 201, "c": {str(i): i for i in range(300)}}
    told = bounded({**value, "d": [1, 2.5, True, None, {"e": "é"}]})
    assert told["a"] == "x" * 1000 + "… (1 more characters)"
    assert told["b"] == [*["y" * 1000] * 200, "… and 1 more"]
    assert told["c"] == {str(i): i for i in range(200)}
    assert told["d"] == [1, 2.5, True, None, {"e": "é"}]
