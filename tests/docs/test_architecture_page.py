"""The picture of the house is the house."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import keepfor.items
from tests.docs.pages import DOCS, ROOT, fences, plain, rows, sections

PAGE = DOCS / "architecture.md"
SOURCE = ROOT / "src" / "keepfor"


def drawn(tree: str) -> list[str]:
    """The paths in a tree that is drawn by indenting; a folder's own name ends with a slash."""
    paths = []
    folders: list[str] = []
    for line in tree.splitlines():
        indent, name = re.match(r"( *)(\S+)", line).groups()  # type: ignore[union-attr]
        del folders[len(indent) // 2 :]
        paths.append("".join([*folders, name]))
        if name.endswith("/"):
            folders.append(name)
    return paths


def standing() -> dict[str, str]:
    """The modules that there are, with what each says it is for; a package stands for its own."""
    found = {}
    for module in SOURCE.rglob("*.py"):
        docstring = ast.get_docstring(ast.parse(module.read_bytes())) or ""
        path = str(module.relative_to(ROOT))
        if module.name == "__init__.py" and module.parent != SOURCE:
            path = path.removesuffix("__init__.py")
        found[path] = docstring.splitlines()[0]
    return found


def test_every_module_is_in_the_tree() -> None:
    """The tree shows each module and package that there is, and none that is not."""
    shown = drawn(fences(PAGE)[0].text)
    known = standing()
    missing = [f"{path}  {known[path]}" for path in sorted(set(known) - set(shown))]
    assert missing == [], "add these to the tree in docs/architecture.md"
    assert set(shown) - {"src/keepfor/"} <= set(known), "take what is gone out of the tree"
    assert len(set(shown)) == len(shown)


def test_the_layers_are_those_that_are_checked() -> None:
    """The page lists the layers in the order in which imports are checked."""
    shown = [re.split(r" {2,}", line)[0].split(", ") for line in fences(PAGE)[1].text.splitlines()]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    assert shown == [re.findall(r"\w+", layer) for layer in layers]


def test_what_is_to_come_has_not_come() -> None:
    """A module that the page says is to come is not there yet."""
    for line in fences(PAGE)[1].text.splitlines():
        names, description = re.split(r" {2,}", line)
        if to_come := re.search(r"\(((?:[\w ]+: )?)to come\)", description):
            for name in re.findall(r"(?!and\b)\w+", to_come[1] or names):
                assert not any(SOURCE.glob(f"{name}*")), name


def test_every_noun_is_on_the_page() -> None:
    """The table of nouns has each struct of `items.py`."""
    listed = {plain(row[0]) for row in rows(sections(PAGE, "h2")["The nouns"])}
    tree = ast.parse(Path(keepfor.items.__file__).read_bytes())
    assert listed == {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
