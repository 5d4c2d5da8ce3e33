"""Reads docstrings, so that the reference can be held to say the same."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

import msgspec


class Docstring(msgspec.Struct, frozen=True, kw_only=True):
    """A docstring in its parts.

    Parameters:
        summary: its first paragraph.
        parameters: what it says of each parameter.
        raises: what it says of each error.
    """

    summary: str
    parameters: dict[str, str]
    raises: dict[str, str]


def read(thing: object) -> Docstring:
    """The docstring of a class or a function."""
    text = inspect.getdoc(thing) or ""
    return Docstring(
        summary=_one_line(text.split("\n\n")[0]),
        parameters=_entries(text, "Parameters"),
        raises=_entries(text, "Raises"),
    )


def signature(function: Callable[..., Any]) -> str:
    """How a function is called, without annotations and without `self`."""
    found = inspect.signature(function)
    parameters = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for name, parameter in found.parameters.items()
        if name != "self"
    ]
    bare = found.replace(parameters=parameters, return_annotation=inspect.Signature.empty)
    return f"{function.__name__}{bare}"


def methods(kind: type) -> dict[str, Callable[..., Any]]:
    """The public methods that a class defines itself."""
    return {
        name: value
        for name, value in vars(kind).items()
        if inspect.isfunction(value) and not name.startswith("_")
    }


def _entries(text: str, title: str) -> dict[str, str]:
    block = re.search(rf"(?m)^{title}:\n((?:^    .*\n?|^\n)+)", text)
    if block is None:
        return {}
    entries = re.findall(r"(?m)^    (\S[^:]*): ((?:.*)(?:\n {8}.*)*)", block[1])
    return {name: _one_line(meaning) for name, meaning in entries}


def _one_line(text: str) -> str:
    return " ".join(text.split())
