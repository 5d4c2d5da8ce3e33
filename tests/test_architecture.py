"""The house keeps its shape: a pure policy, small modules, an import that costs nearly nothing."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "keepfor"
MODULES = sorted(SOURCE.rglob("*.py"))
POLICY = sorted((SOURCE / "policy").glob("**/*.py"))

#: What policy/ may lean on; anything else could read a clock, a file or the dice.
ALLOWED_IMPORTS = {
    *("__future__", "bisect", "collections", "collections.abc", "dataclasses", "enum", "fractions"),
    *("functools", "heapq", "itertools", "math", "msgspec", "msgspec.structs", "operator"),
    *("types", "typing"),
    *("keepfor.errors", "keepfor.items", "keepfor.policy", "keepfor.sizes"),
}
#: Modules with a pure part and an impure one: only these names of them.
ALLOWED_NAMES = {
    "datetime": {"UTC", "date", "datetime", "time", "timedelta", "timezone", "tzinfo"},
    "keepfor.times": {"DAY", "Instant", "Known", "Unknown", "before", "format_duration"},
}
#: Impure even where no import is needed, or on a class that may be imported.
FORBIDDEN_CALLS = {"__import__", "breakpoint", "compile", "eval", "exec", "input", "open", "print"}
FORBIDDEN_ATTRIBUTES = {"utcnow", "today", "fromtimestamp", "utcfromtimestamp", "astimezone"}


def impurities(tree: ast.AST) -> Iterator[str]:
    """What in this module depends on more than its arguments."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                # `import datetime` would open every name in it; the names are imported one by one.
                yield from (name.name for name in names if not allowed(name.name))
            case ast.ImportFrom(module=module, names=names, level=level):
                home = module or ""
                for name in names:
                    if level or not allowed(home, name.name):
                        yield f"{'.' * level}{home}.{name.name}"
            case ast.Name(id=name, ctx=ast.Load()) if name in FORBIDDEN_CALLS:
                yield name
            case ast.Attribute(attr=name) if name in FORBIDDEN_ATTRIBUTES:
                yield f".{name}"
            # `terms.now` is a value that was handed in; the clock is called, or a class's.
            case ast.Call(func=ast.Attribute(attr="now")):
                yield ".now()"
            case ast.Attribute(
                attr="now", value=ast.Name(id="datetime") | ast.Attribute(attr="datetime")
            ):
                yield "datetime.now"


def allowed(module: str, name: str | None = None) -> bool:
    """Whether policy/ may import this name of this module."""
    if name is not None and name in ALLOWED_NAMES.get(module, ()):
        return True
    return any(
        candidate in ALLOWED_IMPORTS or candidate.startswith("keepfor.policy.")
        for candidate in (module, f"{module}.{name}")
    )


@pytest.mark.parametrize("path", POLICY, ids=lambda path: path.stem)
def test_policy_is_pure(path: Path) -> None:
    """No module of policy/ reads a clock, a file, the environment or the dice."""
    assert list(impurities(ast.parse(path.read_bytes()))) == []


@pytest.mark.parametrize(
    "code",
    [
        "import os",
        "import os.path",
        "import pathlib as p",
        "from pathlib import Path",
        "import time",
        "from time import time",
        "from time import monotonic",
        "import random",
        "from secrets import token_hex",
        "import sqlite3",
        "import subprocess",
        "import socket",
        "import logging",
        "import sys",
        "import io",
        "import importlib",
        "import datetime",
        "import keepfor.times",
        "from keepfor import times",
        "from keepfor.times import utc_now",
        "from keepfor.times import load_timezone",
        "from keepfor.stores import base",
        "from keepfor.stores.ledger import LedgerStore",
        "from .. import times",
        "from ..times import utc_now",
        "open('x')",
        "with open('x') as f: pass",
        "read = open",
        "print('x')",
        "eval('x')",
        "__import__('os')",
        "datetime.now(UTC)",
        "datetime.datetime.now()",
        "datetime.utcnow()",
        "date.today()",
        "clock = datetime.now",
        "datetime.fromtimestamp(0)",
        "moment.astimezone()",
        "def inner():\n    if True:\n        import os",
    ],
)
def test_the_check_of_purity_catches(code: str) -> None:
    """Each way out of purity is caught, so that the check above is worth its name."""
    assert list(impurities(ast.parse(code))) != []


@pytest.mark.parametrize(
    "code",
    [
        "from datetime import datetime, timedelta",
        "import msgspec",
        "from collections.abc import Mapping",
        "from keepfor.items import Item",
        "from keepfor.policy.rules import Rule",
        "from keepfor.policy import rules",
        "from keepfor.times import Known, Unknown, before",
        "cutoff = now - rule.max_age",
        "datetime.max.replace(tzinfo=UTC)",
        "cutoff = before(terms.now, rule.max_age)",
    ],
)
def test_the_check_of_purity_allows(code: str) -> None:
    """What a pure function needs is not mistaken for a way out."""
    assert list(impurities(ast.parse(code))) == []


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_module_is_small_and_says_what_it_is_for(path: Path) -> None:
    """Every module starts with a docstring, and none has grown past one job."""
    text = path.read_text(encoding="utf-8")
    assert text.startswith('"""'), "the first line is a docstring"
    assert ast.get_docstring(ast.parse(text))
    assert text.count("\n") <= 400


APPEND_ONCE = """
import sys
before = set(sys.modules)
from datetime import UTC, datetime
from keepfor import Ledger
Ledger("ledger.jsonl", keep_for="90d").append({"ts": datetime.now(UTC).isoformat()})
print(*(set(sys.modules) - before))
"""
#: What each of these costs to import is more than the append itself.
HEAVY = {
    *(
        "asyncio",
        "dataclasses",
        "enum",
        "inspect",
        "json",
        "logging",
        "msgspec",
        "pathlib",
        "platformdirs",
    ),
    *(
        "pydantic",
        "re",
        "rich",
        "socket",
        "sqlalchemy",
        "subprocess",
        "tempfile",
        "typer",
        "typing",
    ),
    *("yaml", "zoneinfo"),
}


def test_an_append_pays_for_nothing_heavy(tmp_path: Path) -> None:
    """A fresh process that appends one row has loaded no library that it does not need."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("COV")}
    done = subprocess.run(
        [sys.executable, "-c", APPEND_ONCE],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        check=True,
    )
    assert HEAVY.intersection(done.stdout.split()) == set()
    assert tmp_path.joinpath("ledger.jsonl").read_bytes().count(b"\n") == 1
