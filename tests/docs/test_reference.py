"""The reference says what the code says, all of it, and nothing else."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

import keepfor
from keepfor import (
    Dependent,
    Entities,
    Ledger,
    RecallLedger,
    Record,
    RunDirectory,
    Sweeper,
    Table,
    Trail,
    config,
    errors,
    presets,
)
from keepfor.cli import codes
from keepfor.config import document
from keepfor.config.models import KINDS
from keepfor.config.showing import flow
from keepfor.errors import KeepforError
from keepfor.history import Window
from keepfor.items import Outcome, Report, Tally
from keepfor.plan import Plan
from keepfor.policy.explain import Change, Explanation, Opinion
from keepfor.recalls import Count, Match, Trace
from tests import caesar
from tests.docs import docstrings
from tests.docs.pages import DOCS, ROOT, headings, plain, reference, rows, sections, sections_in

#: A store of each kind that has a section, in as few words as it takes.
STORES: dict[str, dict[str, object]] = {
    "A ledger": {"kind": "ledger", "path": "recall-history.jsonl", "keep_for": "90d"},
    "A directory of runs": {"kind": "runs", "path": "rem-runs", "max_count": 200},
    "A table": {
        "kind": "table",
        "url": "sqlite:///caesar.sqlite3",
        "table": "audit_log",
        "time": "ts",
        "type": "event_type",
        "keep_for": "90d",
    },
    # A key under `clock` needs a fallback beside it.
    "Notes and sessions": {
        "kind": "entities",
        "path": ".evolve",
        "keep_for": "90d",
        "fallback": "off",
    },
}
#: What stands within a setting, by its section: of which store, which setting, and the least it
#: takes.
PARTS: dict[str, tuple[str, str, dict[str, object]]] = {
    "A rule of a table": ("A table", "rules", {"type": "debug", "keep_for": "7d"}),
    "A dependent of a table": (
        "A table",
        "dependents",
        {"table": "semantic_chunks", "column": "row"},
    ),
    "The record of a sweep in a table": (
        "A table",
        "record_sweeps",
        {"type": "sweep", "payload": "said"},
    ),
    "A rule of notes and sessions": (
        "Notes and sessions",
        "rules",
        {"name": "unused", "max_unused": "180d", "action": "delete"},
    ),
}
STORE = STORES["A ledger"]


def table(page: str, section: str) -> dict[str, list[str]]:
    """The tables of one section, by what stands in their first column."""
    return {plain(row[0]): row[1:] for row in rows(sections(reference(page), "h2")[section])}


# --- configuration ------------------------------------------------------------------------


def schema_of(section: str) -> dict[str, Any]:
    """The keys that a section takes, with what their schema says."""
    schema = config.schema()
    wanted = schema if section == "The whole" else schema["$defs"][section]
    return {
        key: schema["$defs"]["Trail"] | setting if "$ref" in setting else setting
        for key, setting in wanted["properties"].items()
    }


SECTIONS = {
    "A ledger": "Ledger",
    "A directory of runs": "Runs",
    "A table": "Table",
    "A rule of a table": "TypeRule",
    "A dependent of a table": "Dependent",
    "The record of a sweep in a table": "RecordSweeps",
    "Notes and sessions": "Entities",
    "A rule of notes and sessions": "EntityRule",
    "The trail": "Trail",
    "The whole": "The whole",
}


def test_every_kind_of_store_is_in_the_reference() -> None:
    """Whatever has settings has a section of the reference."""
    assert {"The whole", *config.schema()["$defs"]} == set(SECTIONS.values())


@pytest.mark.parametrize("section", SECTIONS)
def test_every_key_is_in_the_reference(section: str) -> None:
    """A key that can be written is in the reference, with the meaning that its schema gives."""
    known = schema_of(SECTIONS[section])
    listed = table("configuration", section)
    assert set(listed) == set(known)
    for key, (meaning, *_) in listed.items():
        assert plain(meaning) == plain(known[key]["description"]), key


def loaded(folder: Path, text: str) -> config.Config:
    """The configuration in a text."""
    file = folder / config.NAME
    file.write_text(text, encoding="utf-8")
    return config.load(file, environ={"HOME": str(folder)}, cwd=folder)


def with_store(
    folder: Path, store: Mapping[str, object] = STORE, **settings: object
) -> config.Config:
    """A configuration with one store that says this too."""
    return loaded(folder, yaml.safe_dump({"stores": {"recall": {**store, **settings}}}))


@pytest.mark.parametrize("section", STORES)
def test_a_default_in_the_reference_is_the_default(section: str, tmp_path: Path) -> None:
    """Writing out the default that the reference names changes nothing."""
    store = STORES[section]
    as_it_is = with_store(tmp_path, store).stores["recall"]
    for key, (_, default, _) in table("configuration", section).items():
        if default not in ("required", "none"):
            said = {key: document.flow(plain(default))}
            assert with_store(tmp_path, store, **said).stores["recall"] == as_it_is, key
        elif key in ("unit", "max_bytes"):
            assert getattr(as_it_is, key) is None, key


def test_the_trail_is_kept_as_long_as_the_reference_says(tmp_path: Path) -> None:
    """The default of the trail's `keep_for` is the one in the reference."""
    default = plain(table("configuration", "The trail")["keep_for"][1])
    text = yaml.safe_dump({"stores": {"recall": STORE}, "trail": {"keep_for": default}})
    assert loaded(tmp_path, text).trail == with_store(tmp_path).trail


@pytest.mark.parametrize("section", SECTIONS)
def test_every_example_of_a_key_loads(section: str, tmp_path: Path) -> None:
    """What the reference gives as an example can be written, for each key."""
    (tmp_path / "evolve.config.yaml").write_text("retention: {rules: [{name: a, max_age: 1d}]}")
    for key, (*_, example) in table("configuration", section).items():
        said = yaml.safe_load(plain(example).replace(": off", ": 'off'"))
        assert list(said) == [key]
        whole: dict[str, Any] = {"stores": {"recall": dict(STORE)}}
        match section:
            case _ if section in STORES and key == "preset":
                whole["stores"]["recall"] = said
            case _ if section in STORES:
                whole["stores"]["recall"] = STORES[section] | said
                if key == "max_age_days":
                    whole["stores"]["recall"].pop("keep_for", None)
            case _ if section in PARTS:
                store, setting, part = PARTS[section]
                if store == "A table" and key in ("max_age", "max_age_days", "action"):
                    part = {"type": "debug"}
                elif key.startswith("max_"):
                    part = {"name": "old"}
                whole["stores"]["recall"] = STORES[store] | {
                    setting: part | said if setting == "record_sweeps" else [part | said]
                }
            case "The trail":
                whole["trail"] = said
            case _:
                whole |= said
        loaded(tmp_path, yaml.safe_dump(whole))


def test_every_preset_is_in_the_reference() -> None:
    """Each known product is listed with what its data file says."""
    content = sections(reference("configuration"), "h2")["Presets"]
    listed = [[plain(cell) for cell in row] for row in rows(content)]
    known = []
    for name in presets.names():
        preset = presets.load(name)
        settings = [
            f"{key}: {value if isinstance(value, str) else flow(value)}"
            for key, value in preset.store.items()
        ]
        known.append([name, ", ".join(settings), ", ".join(preset.environment)])
    assert listed == known


def test_the_first_pages_name_every_kind_of_store() -> None:
    """README and index name the kinds that there are, and no others."""
    for page in (ROOT / "README.md", DOCS / "index.md"):
        sentence = page.read_text().partition("of store are there: ")[2].partition(".")[0]
        assert set(re.findall(r"\*(\w+)\*", sentence)) == set(KINDS), page


# --- errors and exit codes ----------------------------------------------------------------


def test_every_error_is_in_the_reference() -> None:
    """Each error is listed with what it is and the exit code that it ends a command with."""
    content = rows(
        [token for section in sections(reference("errors"), "h1").values() for token in section]
    )
    listed = {plain(row[0]): (plain(row[1]), row[2]) for row in content}
    known = {
        name: (thing.__bases__[0].__name__, str(thing.exit_code))
        for name, thing in vars(errors).items()
        if inspect.isclass(thing) and issubclass(thing, KeepforError)
    }
    assert listed == known


def test_every_exit_code_is_in_the_reference() -> None:
    """Each exit code is listed with the meaning that the command line gives it."""
    content = sections(reference("exit-codes"), "h1")["Exit codes"]
    listed = {int(code): meaning for code, meaning, _ in rows(content)}
    assert listed == codes.MEANINGS


# --- Python -------------------------------------------------------------------------------

CLASSES: list[type] = [
    Ledger,
    RecallLedger,
    RunDirectory,
    Table,
    Entities,
    Dependent,
    Record,
    Sweeper,
    Trail,
]
HANDED_BACK: list[type] = [Plan, Window, Count, Trace, Match, Explanation, Opinion, Change]


def fields(kind: Any, *bases: Any) -> dict[str, str]:
    """What the docstrings say of each field of a struct."""
    said: dict[str, str] = {}
    for each in (*bases, kind):
        said |= docstrings.read(each).parameters
    return {name: plain(said[name]) for name in kind.__struct_fields__}


def listed_fields(table: Mapping[str, list[str]]) -> dict[str, str]:
    """The same as a page says it."""
    return {name: plain(meaning) for name, (meaning,) in table.items()}


def test_every_public_name_is_in_the_reference() -> None:
    """What `import keepfor` offers has a section each."""
    found = [plain(heading) for heading in headings(reference("python"))]
    assert set(keepfor.__all__) <= set(found)
    assert {kind.__name__ for kind in CLASSES} <= set(keepfor.__all__)


@pytest.mark.parametrize("kind", HANDED_BACK, ids=lambda kind: kind.__name__)
def test_what_is_handed_back_is_in_the_reference(kind: type) -> None:
    """Each field of what a call returns is listed with what its docstring says."""
    assert listed_fields(table("python", f"`{kind.__name__}`")) == fields(kind)


def parameters(function: Any, documented: object) -> list[list[str]]:
    """Name, default and meaning of each parameter, as the reference should list them."""
    signature = inspect.signature(function).parameters
    return [
        [name, default_of(signature[name]), plain(meaning)]
        for name, meaning in docstrings.read(documented).parameters.items()
    ]


def default_of(parameter: inspect.Parameter) -> str:
    """How the reference writes a default."""
    if parameter.default is inspect.Parameter.empty:
        return "required"
    return parameter.default.__name__ if callable(parameter.default) else repr(parameter.default)


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_every_parameter_and_method_is_in_the_reference(kind: type) -> None:
    """Each parameter and public method of a class is listed, as its docstring has it."""
    section = sections(reference("python"), "h2")[f"`{kind.__name__}`"]
    text = plain(" ".join(token.content for token in section))
    below = sections_in(section, "h3")
    expected = parameters(kind, kind)
    listed = [[plain(cell) for cell in row] for row in rows(section)]
    assert listed[: len(expected)] == expected
    assert plain(docstrings.read(kind).summary) in text
    for method in docstrings.methods(kind).values():
        said = docstrings.read(method)
        content = below[f"`{docstrings.signature(method)}`"]
        text = plain(" ".join(token.content for token in content))
        assert plain(said.summary) in text
        assert [[plain(cell) for cell in row] for row in rows(content)] == parameters(
            method, method
        )
        for names, when in said.raises.items():
            assert f"raises {names}: {plain(when)}" in text


# --- what is written and printed ----------------------------------------------------------


def test_every_field_of_a_report_is_in_the_reference() -> None:
    """A report's fields, and those of an outcome, are listed with what their docstrings say."""
    assert listed_fields(table("report", "Fields")) == fields(Report, Tally)
    assert listed_fields(table("report", "An outcome")) == fields(Outcome)


def test_every_field_of_a_record_is_in_the_reference(tmp_path: Path) -> None:
    """The fields of the trail's records are listed: those of all, and those of an outcome."""
    ledger = tmp_path / "recall-history.jsonl"
    ledger.write_text('{"ts": "2026-03-28T02:53:09+00:00"}\n{"ts": "2026-07-25T02:53:09+00:00"}\n')
    trail = Trail(path=str(tmp_path / "trail.jsonl"))
    Ledger(ledger, keep_for="90d", trail=trail).prune(now="2026-07-26")
    outcome, intent = trail.records()
    every = list(table("trail", "Every record"))
    besides = ", ".join(table("trail", "An outcome, besides")).split(", ")
    assert list(intent) == every
    url = f"sqlite:///{caesar.rebuild(tmp_path)}"
    Table(url, "audit_log", time="ts", keep_for="90d", trail=trail).prune(now="2026-07-26")
    of_table, *_ = trail.records()
    # `items` stands where there were any, and `error` where something went wrong.
    assert sorted({*outcome, *of_table, "items", "error"} - set(intent)) == sorted(besides)
