"""A house with a store of each kind in it, made of the samples, and a server to ask of it."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client, StdioServerParameters, stdio_client
from mcp_types import CallToolResult, TextContent, Tool

from tests import caesar, evolve, neo

RECALLS = Path(__file__).parents[1] / "data" / "agentm" / "recall-history.jsonl"
KEEPFOR = Path(sys.executable).with_name("keepfor")

#: A password that must be in no answer.
SECRET = "hunter2-and-more"
CONFIG = f"""\
state_dir: state
stores:
  recall: {{kind: ledger, path: recall.jsonl, keep_for: 90d}}
  rem: {{kind: runs, path: rem-runs, max_count: 200}}
  audit: {{preset: caesar}}
  notes: {{preset: evolve-lite}}
  broken: {{kind: ledger, path: a-folder, keep_for: 90d}}
  remote:
    kind: table
    url: postgresql://ada:{SECRET}@127.0.0.1:1/memory
    table: events
    key: id
    time: ts
    keep_for: 90d
"""


class House:
    """A folder with a configuration and stores.

    Parameters:
        folder: where it is made.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.recalls = folder / "recall.jsonl"
        self.runs = folder / "rem-runs"
        self.database = folder / "caesar.sqlite3"
        self.notes = folder / ".evolve"

    def build(self) -> None:
        """Lay the samples out, in place of whatever is there."""
        for path in self.folder.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()
        shutil.copyfile(RECALLS, self.recalls)
        neo.rebuild(self.runs)
        caesar.rebuild(self.folder)
        evolve.rebuild(self.folder)
        (self.folder / "a-folder").mkdir()
        self.configure()

    def configure(self, text: str = CONFIG) -> None:
        """Write keepfor.yaml."""
        (self.folder / "keepfor.yaml").write_text(text, encoding="utf-8")

    def snapshot(self) -> dict[str, tuple[bytes, int]]:
        """Every file of the stores, with its bytes and its mtime in ns."""
        return {
            str(path.relative_to(self.folder)): (path.read_bytes(), path.stat().st_mtime_ns)
            for path in self.folder.rglob("*")
            if path.is_file() and "state" not in path.relative_to(self.folder).parts
        }

    @property
    def trail(self) -> list[dict[str, Any]]:
        """The records of what was done."""
        path = self.folder / "state" / "trail.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


class Server:
    """A server that runs, asked through the SDK's own client."""

    def __init__(self, portal: BlockingPortal, client: Client, house: House) -> None:
        self.portal = portal
        self.client = client
        self.house = house

    def tools(self) -> dict[str, Tool]:
        """The tools that it lists, by name."""
        return {tool.name: tool for tool in self.portal.call(self.client.list_tools).tools}

    def call(self, tool: str, **arguments: Any) -> CallToolResult:
        """What a call comes to."""
        done: CallToolResult = self.portal.call(self.client.call_tool, tool, arguments)
        return done

    def ask(self, tool: str, **arguments: Any) -> Any:
        """What a tool answers; the client holds it to the schema, and the text says the same."""
        done = self.call(tool, **arguments)
        assert not done.is_error, text(done)
        assert json.loads(text(done)) == done.structured_content
        return done.structured_content

    def refusal(self, tool: str, **arguments: Any) -> str:
        """What a tool says that does not answer: one message, and no insides of the program."""
        done = self.call(tool, **arguments)
        assert done.is_error
        assert done.structured_content is None
        said = text(done)
        assert "Traceback" not in said
        assert SECRET not in said
        assert len(said) < 5000
        return said


def text(done: CallToolResult) -> str:
    """The one text of a result."""
    (content,) = done.content
    assert isinstance(content, TextContent)
    return content.text


def environment() -> dict[str, str]:
    """What a server sees: the tests' own environment, on the day of the samples."""
    root = Path(__file__).parents[2]
    # The house has a state folder of its own, which lasts as long as the server does.
    inherited = {name: value for name, value in os.environ.items() if name != "KEEPFOR_STATE_DIR"}
    return inherited | {
        "MCP_TODAY": "2026-07-26T00:00:00+00:00",
        "PYTHONPATH": f"{Path(__file__).with_name('child')}:{root}",
    }


@contextmanager
def serving(folder: Path, *options: str) -> Iterator[Server]:
    """A server over a house in that folder."""
    folder.mkdir()
    house = House(folder)
    house.build()
    server = StdioServerParameters(
        command=str(KEEPFOR),
        args=["mcp", "--config", str(folder / "keepfor.yaml"), *options],
        env=environment(),
        cwd=folder,
    )
    with (
        open(f"{folder}.log", "w", encoding="utf-8") as log,
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(Client(stdio_client(server, errlog=log))) as client,
    ):
        yield Server(portal, client, house)
