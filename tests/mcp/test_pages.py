"""The reference tells of every tool what the server itself lists."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.docs.pages import plain, reference, rows, sections
from tests.mcp.house import Server
from tests.mcp.test_protocol import HINTS

#: What stands in the reference for the hints of a tool.
DOES = {
    (True, False, True): "Reads only.",
    (False, False, False): "Appends, and changes nothing that is there.",
    (False, True, True): "Deletes; the same call again does nothing more.",
}


def fields(schema: dict[str, Any], known: dict[str, Any], path: str = "") -> Iterator[list[str]]:
    """The fields of an answer by their paths (`stores[].plan.digest`), with what they mean."""
    for name, said in schema["properties"].items():
        here = f"{path}.{name}" if path else name
        inner = re.search(r"'#/\$defs/(\w+)'", str(said))
        # What only holds others is told by telling those.
        if inner is None or "description" in said:
            yield [here, plain(said.get("description", ""))]
        if inner:
            within = f"{here}[]" if "items" in said else here
            yield from fields(known[inner[1]], known, within)


def taken(schema: dict[str, Any]) -> list[list[str]]:
    """The arguments of a tool, with what each is when it is not given."""
    return [
        [name, repr(said["default"]) if "default" in said else "required", said["description"]]
        for name, said in schema["properties"].items()
    ]


@pytest.mark.parametrize("name", HINTS)
def test_a_tool_is_in_the_reference(doer: Server, name: str) -> None:
    """A tool's text, hints, arguments and all fields of its answer stand in its section."""
    tool = doer.tools()[name]
    content = sections(reference("mcp"), "h2")[f"`{name}`"]
    text = plain(" ".join(" ".join(token.content for token in content).split()))
    assert plain(tool.description or "") in text
    assert DOES[HINTS[name]] in text
    listed = [[plain(cell) for cell in row] for row in rows(content)]
    arguments = taken(tool.input_schema)
    assert listed[: len(arguments)] == arguments
    assert tool.output_schema is not None
    known = list(fields(tool.output_schema, tool.output_schema.get("$defs", {})))
    assert listed[len(arguments) :] == [field for field in known if field[1]]
    speaking = " ".join(f"`{field}`" for field, meaning in known if not meaning)
    (said,) = [token.content for token in content if token.content.startswith("Besides: ")]
    assert re.findall(r"`[^`]+`", said) == speaking.split()


def test_every_tool_has_a_section() -> None:
    """The reference tells of the tools that there are, and of no others."""
    found = [title.strip("`") for title in sections(reference("mcp"), "h2") if "_" in title]
    assert found == list(HINTS)
