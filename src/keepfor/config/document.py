"""Reads a YAML file into plain values, and remembers on which line each key stands.

Words mean what they mean in YAML 1.2 and in JSON: `off`, `no` and `2026-01-01` are text, and
`010` is ten. The older YAML that PyYAML speaks would make a boolean, a date and an eight of them.
"""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

import msgspec
import yaml

from keepfor.config.faults import Fault, refusal
from keepfor.errors import BadConfig

Dotted = tuple[str, ...]

_NULL = ("", "~", "null", "Null", "NULL")
_TRUE = ("true", "True", "TRUE")
_FALSE = ("false", "False", "FALSE")
_INTEGER = re.compile(r"[-+]?[0-9]{1,18}")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]{1,4})?")
#: So many values no file holds but through aliases of aliases, which multiply.
_MOST_VALUES = 100_000
_TAGS = {f"tag:yaml.org,2002:{kind}" for kind in ("str", "seq", "map")}


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """A file as it was written.

    Parameters:
        name: what messages call it.
        values: what stands in it.
        lines: the line of each key, and of each item of a list, by its dotted path.
        faults: keys that stand twice, and the like.
    """

    name: str
    values: dict[str, object]
    lines: dict[Dotted, int]
    faults: list[Fault]

    def place(self, path: Dotted) -> str:
        """File, line and key, for a message."""
        return f"{self.source(path)}: {'.'.join(path)}"

    def source(self, path: Dotted) -> str:
        """File and line."""
        return f"{self.name}:{self.line(path)}"

    def line(self, path: Dotted) -> int:
        """The line of a key or an item, or of the nearest thing above it that has one."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)


class _Loader(yaml.SafeLoader):
    """Tells plain words from quoted ones, and guesses at neither."""

    yaml_implicit_resolvers = {}  # noqa: RUF012 - PyYAML looks for it on the class


def read(path: Path, name: str, begins: str = "stores") -> Document:
    """The file's values, with the faults that can be told without knowing any key.

    Parameters:
        path: the file.
        name: what messages call it.
        begins: the key that such a file begins with.

    Raises:
        BadConfig: when it cannot be read as a mapping of settings at all.
    """
    lines: dict[Dotted, int] = {}
    faults: list[Fault] = []
    values = _values(_text(path, name), name, lines, faults)
    if values is None:
        values = {}
    if not isinstance(values, dict):
        kind = "a list" if isinstance(values, list) else "one word"
        raise _refused(name, f"it holds {kind} and not settings. Begin with a line `{begins}:`.")
    return Document(name=name, values=values, lines=lines, faults=faults)


def flow(text: str) -> object:
    """What stands in a text alone: a word, a list `[a, b]`, settings `{a: 1}`.

    Raises:
        ValueError: when it cannot be read; a sentence that says why.
    """
    faults: list[Fault] = []
    try:
        value = _values(text, "", {}, faults)
    except BadConfig as error:
        raise ValueError(str(error).partition(": ")[2]) from None
    if faults:
        raise ValueError(faults[0].what)
    return value


def _values(text: str, name: str, lines: dict[Dotted, int], faults: list[Fault]) -> object:
    loader = _Loader(text)
    try:
        root = loader.get_single_node()
        return _Builder(name, lines, faults).value(root, ()) if root else None
    except RecursionError:
        raise _refused(name, "it is nested without end. Write each setting out.") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{name}:{mark.line + 1}" if mark else name
        raise _refused(where, _syntax(error.problem or str(error))) from None
    except (ValueError, OverflowError) as error:
        # An escape that stands for no character, or a version of five thousand digits.
        raise _refused(f"{name}:{loader.line + 1}", _syntax(str(error))) from None
    finally:
        loader.dispose()


def scalar(text: str) -> object:
    """What a plain word means: null, a boolean, a number, or else itself."""
    if text in _NULL:
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    if _INTEGER.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    return text


class _Builder:
    """Plain values from YAML nodes; keeps what it learns of lines and faults on the way."""

    def __init__(self, name: str, lines: dict[Dotted, int], faults: list[Fault]) -> None:
        self.name = name
        self.lines = lines
        self.faults = faults
        self.values = 0

    def value(self, node: yaml.Node, path: Dotted) -> object:
        self.values += 1
        if self.values > _MOST_VALUES:
            raise _refused(self.name, "its aliases make it endless. Write each setting out.")
        if isinstance(node, yaml.ScalarNode) and not _is_text(node.value):
            self.fault(node, path, "an escape in it stands for half a character. Take it out.")
        if node.tag not in _TAGS:
            self.fault(node, path, f"the tag {node.tag} is not understood. Leave it out.")
        if isinstance(node, yaml.MappingNode):
            return self.mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self.item(item, (*path, str(at))) for at, item in enumerate(node.value)]
        plain = isinstance(node, yaml.ScalarNode) and node.style is None
        return scalar(node.value) if plain else node.value

    def item(self, node: yaml.Node, path: Dotted) -> object:
        self.lines[path] = node.start_mark.line + 1
        return self.value(node, path)

    def mapping(self, node: yaml.MappingNode, path: Dotted) -> dict[str, object]:
        values: dict[str, object] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode) or not _is_text(key_node.value):
                self.fault(key_node, path, "a key must be a word.")
                continue
            key = (*path, key_node.value)
            if key in self.lines:
                first = self.lines[key]
                self.fault(key_node, key, f"it stands on line {first} already. Leave one out.")
                continue
            self.lines[key] = key_node.start_mark.line + 1
            values[key_node.value] = self.value(value_node, key)
        return values

    def fault(self, node: yaml.Node, path: Dotted, what: str) -> None:
        line = node.start_mark.line + 1
        where = f"{self.name}:{line}: {'.'.join(path)}" if path else f"{self.name}:{line}"
        self.faults.append(Fault(where=where, what=what, line=line))


def _text(path: Path, name: str) -> str:
    try:
        # A pipe would wait for a writer for ever.
        if not stat.S_ISREG(path.stat().st_mode):
            kind = "a folder" if path.is_dir() else "not a file"
            raise _refused(name, f"this is {kind}. Name the file itself, such as keepfor.yaml.")
        raw = path.read_bytes()
    except FileNotFoundError:
        what = "there is no such file. Write one with `keepfor config init`, or mend the name."
        raise _refused(name, what) from None
    except OSError as error:
        what = f"it cannot be read ({error.strerror}). Make it readable for this user."
        raise _refused(name, what) from None
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise _refused(f"{name}:{line}", "this is not UTF-8. Save the file as UTF-8.") from None
    if strange := yaml.reader.Reader.NON_PRINTABLE.search(text):
        line = text.count("\n", 0, strange.start()) + 1
        what = f"here is a character that no text holds ({strange[0]!r}). Take it out."
        raise _refused(f"{name}:{line}", what)
    # JSON may be indented with tabs, and holds none elsewhere; YAML may not.
    return text.replace("\t", " ") if path.suffix == ".json" else text


def _is_text(text: str) -> bool:
    """Whether a path or a variable can be called so."""
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        return False
    return True


def _syntax(problem: str) -> str:
    if r"'\t'" in problem:
        return "a tab cannot indent a line. Write spaces."
    return f"this is not YAML ({problem}). Look at indents and colons, and quote odd characters."


def _refused(where: str, what: str) -> BadConfig:
    return refusal([Fault(where=where, what=what)])
