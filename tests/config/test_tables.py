"""A table's settings are read, refused, shown and opened as what they say."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import yaml

from keepfor.config import Config, Table, policy_of, schema, show, traps
from keepfor.config.document import flow
from keepfor.config.opening import open_store
from keepfor.config.standing import findings, in_words
from keepfor.errors import BadConfig
from keepfor.items import Survey
from keepfor.plan import Plan
from keepfor.policy.lint import lint
from keepfor.policy.rules import Policy, Rule, terms
from keepfor.stores.table import Dependent, Record, TableStore

Load = Callable[..., Config]

DAY = timedelta(days=1)
NOW = datetime(2026, 7, 26, tzinfo=UTC)

EXAMPLE = """\
stores:
  audit:
    kind: table
    url: sqlite:///caesar.sqlite3
    table: audit_log
    key: id
    time: ts
    type: event_type
    unit: ms
    timezone: Europe/Berlin
    keep_for: 90d
    max_count: 100000
    keep_last: 3
    rules:
      - {name: denials, type: policy.denied, keep_for: 365d}
      - {name: consents, type: consent.given, action: keep}
      - type: debug
        max_age_days: 7
      - {type: trace, max_age: 1d}
      - {type: login, keep_for: forever}
    dependents:
      - {table: semantic_chunks, column: audit_log_id}
      - {table: messages, column: audit_id, key: [tenant, id],
         dependents: [{table: message_vectors, column: [tenant, message_id]}]}
    orphans: delete
    record_sweeps: {type: memory.retention_sweep, payload: payload, when: deleted}
    breaker: 0.2
    grace: 2d
    interval: 15min
"""


def table(config: Config, name: str = "audit") -> Table:
    """A store that is known to be a table."""
    store = config.stores[name]
    assert isinstance(store, Table)
    return store


def with_lines(*lines: str, without: str = "") -> str:
    """A table in as few words as it takes, with these lines too."""
    least = ["kind: table", "url: sqlite:///a.db", "table: audit_log", "time: ts", "type: kind"]
    said = [line for line in [*least, "keep_for: 90d"] if not without or without not in line]
    return "stores:\n  audit:\n    " + "\n    ".join([*said, *lines]) + "\n"


# --- what it comes to ---------------------------------------------------------------------


def test_a_table_is_opened_as_it_is_configured(load_text: Load, tmp_path: Path) -> None:
    """All that bears on how a table is read and emptied reaches the store; no file is made."""
    config = load_text(EXAMPLE, KEEPFOR_STATE_DIR="/srv/state")
    store = open_store(config, "audit")
    assert isinstance(store, TableStore)
    assert store.target == f"sqlite:///{tmp_path}/caesar.sqlite3#audit_log"
    assert (store.unit, store.zone, store.orphans) == ("ms", ZoneInfo("Europe/Berlin"), "delete")
    assert store.folder == Path("/srv/state")
    spec = store.spec
    assert (spec.table, spec.time, spec.key, spec.type) == (
        "audit_log",
        "ts",
        ("id",),
        "event_type",
    )
    vectors = Dependent(table="message_vectors", columns=("tenant", "message_id"))
    assert spec.dependents == (
        Dependent(table="semantic_chunks", columns=("audit_log_id",)),
        Dependent(
            table="messages", columns=("audit_id",), key=("tenant", "id"), dependents=(vectors,)
        ),
    )
    assert spec.record == Record(type="memory.retention_sweep", payload="payload", when="deleted")
    assert not (tmp_path / "caesar.sqlite3").exists()


def test_the_least_that_a_table_takes(load_text: Load) -> None:
    """What is left out is found out by the store, or switched off."""
    store = open_store(load_text(with_lines(without="type")), "audit")
    assert isinstance(store, TableStore)
    assert (store.spec.key, store.spec.type, store.spec.dependents) == ((), None, ())
    assert (store.spec.record, store.unit, store.orphans) == (None, None, "keep")


def test_a_type_that_has_a_rule_is_held_to_it_alone(load_text: Load) -> None:
    """A type goes after its own time, neither sooner nor later, and all others by keep_for."""
    policy = policy_of(load_text(EXAMPLE).stores["audit"])
    assert policy == Policy(
        rules=(
            Rule(name="denials", type="policy.denied", max_age=365 * DAY, action="delete"),
            Rule(name="denials (younger)", type="policy.denied", action="keep"),
            Rule(name="consents", type="consent.given", action="keep"),
            Rule(name="debug", type="debug", max_age=7 * DAY, action="delete"),
            Rule(name="debug (younger)", type="debug", action="keep"),
            Rule(name="trace", type="trace", max_age=DAY, action="delete"),
            Rule(name="trace (younger)", type="trace", action="keep"),
            Rule(name="login", type="login", action="keep"),
            Rule(name="keep_for", max_age=90 * DAY, action="delete"),
        ),
        max_count=100_000,
        keep_last=3,
        breaker=0.2,
    )
    assert lint(policy) == []
    found = terms(policy, NOW, bounds=("type", "max_count"))
    assert found.cutoff == datetime(2026, 4, 27, tzinfo=UTC)
    assert {cut.type: cut.cutoff for cut in found.by_type} == {
        "policy.denied": datetime(2025, 7, 26, tzinfo=UTC),
        "consent.given": None,
        "debug": datetime(2026, 7, 19, tzinfo=UTC),
        "trace": datetime(2026, 7, 25, tzinfo=UTC),
        "login": None,
    }


@pytest.mark.parametrize(
    ("line", "policy"),
    [
        ("keep_for: forever", Policy()),
        ("max_age_days: 1", Policy(rules=(Rule(name="keep_for", max_age=DAY, action="delete"),))),
        ("max_count: 5", Policy(max_count=5)),
        ("max_count: off", Policy()),
    ],
)
def test_a_table_says_when_in_one_way_or_another(
    load_text: Load, line: str, policy: Policy
) -> None:
    """Any one bound is enough, and so is the word that there is none."""
    assert policy_of(load_text(with_lines(line, without="keep_for")).stores["audit"]) == policy


# --- in the environment, and shown --------------------------------------------------------

#: For every key of a table: what the variable says, the setting it moves, and how that is shown.
VARIABLES: dict[str, tuple[str, str, object]] = {
    "kind": ("table", "kind", "table"),
    "url": ("sqlite:////srv/b.db", "url", "sqlite:////srv/b.db"),
    "table": ("public.log", "table", "public.log"),
    "key": ("[tenant, id]", "key", "[tenant, id]"),
    "time": ("at", "time", "at"),
    "type": ("event", "type", "event"),
    "unit": ("us", "unit", "us"),
    "timezone": ("Europe/Berlin", "timezone", "Europe/Berlin"),
    "keep_for": ("30d", "keep_for", "30d"),
    "max_age_days": ("1.5", "keep_for", "1d12h"),
    "max_count": ("7", "max_count", 7),
    "keep_last": ("7", "keep_last", 7),
    "rules": ("[{type: '7', action: keep}]", "rules", '[{type: "7", action: keep}]'),
    "dependents": ("[{table: x, column: y}]", "dependents", "[{table: x, column: y}]"),
    "orphans": ("delete", "orphans", "delete"),
    "record_sweeps": ("{type: s, payload: p}", "record_sweeps", "{type: s, payload: p}"),
    "breaker": ("off", "breaker", "off"),
    "grace": ("2h", "grace", "2h"),
    "interval": ("15min", "interval", "15min"),
    "interval_seconds": ("90", "interval", "1min30s"),
    "preset": ("caesar", "dependents", "[{table: semantic_chunks, column: audit_log_id}]"),
}


@pytest.mark.parametrize("key", sorted(schema()["$defs"]["Table"]["properties"]))
def test_every_setting_of_a_table_can_be_overridden(load_text: Load, key: str) -> None:
    """A variable says a list or settings in one line of YAML, as `config show` prints them."""
    text, moved, shown = VARIABLES[key]
    name = f"KEEPFOR_STORES__AUDIT__{key.upper()}"
    rows = {row.key: row for row in show(load_text(with_lines(), **{name: text}))}
    row = rows[f"stores.audit.{moved}"]
    assert row.value == shown
    assert row.source == ("preset caesar" if key == "preset" else f"environment {name}")


def test_what_a_preset_says_can_be_taken_back(load_text: Load) -> None:
    """An empty list and `off` undo what a preset gives."""
    store = table(
        load_text(
            "stores: {audit: {preset: caesar, dependents: [], record_sweeps: off}}",
        )
    )
    assert (store.dependents, store.record_sweeps) == ((), None)


def test_a_table_that_is_shown_loads_to_the_same(load_text: Load) -> None:
    """Written down as shown, line by line, a table is the one that it was."""
    config = load_text(EXAMPLE)
    lines = [
        f"    {row.key.removeprefix('stores.audit.')}: {row.value}"
        for row in show(config)
        if row.key.startswith("stores.audit.")
    ]
    assert load_text("stores:\n  audit:\n" + "\n".join(lines)).stores == config.stores
    rows = {row.key: row.value for row in show(config)}
    assert rows["stores.audit.dependents"] == (
        "[{table: semantic_chunks, column: audit_log_id}, {table: messages, column: audit_id, "
        "key: [tenant, id], dependents: [{table: message_vectors, column: [tenant, message_id]}]}]"
    )


@pytest.mark.parametrize(
    "value", ["90", "true", "off", "a: b", "a #b", "{x", "[", "é", " a", "", "1e3", "-", "'", '"']
)
def test_a_word_within_a_line_is_shown_so_that_it_stays_that_word(
    load_text: Load, value: str
) -> None:
    """What YAML would take for something else stands in quotes."""
    quoted = yaml.safe_dump(value, default_style='"').strip()
    text = with_lines(f"dependents: [{{table: x, column: {quoted or chr(34) * 2}}}]")
    if not value:
        with pytest.raises(BadConfig, match="'' is no column"):
            load_text(text)
        return
    (row,) = [row for row in show(load_text(text)) if row.key.endswith("dependents")]
    assert flow(str(row.value)) == [{"table": "x", "column": value}]


# --- what is refused ----------------------------------------------------------------------

RULE = "rules: [{type: a, %s}]"
LINK = "dependents: [{table: m, column: x, %s}]"

#: What is wrong with a line (which is the ninth), with the place and the message that it gets.
LINES = {
    "rules: [{keep_for: 7d}]": ("rules.0", "type is missing. Write it too, as `type: …`."),
    "rules: [{type: a}]": ("rules.0", "it does not say for how long. Write `keep_for: 365d`, or"),
    "rules: [a]": ("rules.0", "settings belong here. Known here: name, type, keep_for, max_age,"),
    "rules: a": ("rules", "a list belongs here. Write its items below it, each after a dash."),
    "rules: {type: a, keep_for: 7d}": ("rules", "a list belongs here."),
    "rules: [~]": ("rules.0", "it has no value."),
    "rules:": ("rules", "it has no value."),
    "rules: [{type: 5, action: keep}]": ("rules.0.type", "5 is no type. Write its name, such as"),
    "rules: [{type: , action: keep}]": ("rules.0.type", "it has no value."),
    RULE % "keep_for: 7": ("rules.0.keep_for", "7 is not a duration: it has no unit."),
    RULE % "max_age: 0d": ("rules.0.max_age", "'0d' is not a duration: nothing would be kept."),
    RULE % "max_age_days: 7d": ("rules.0.max_age_days", "'7d' is no age in days: it is not a"),
    RULE % "keep_fro: 7d, action: keep": ("rules.0.keep_fro", "this key is unknown. Did you mean"),
    RULE % "keep_for: 7d, max_age: 7d": ("rules.0", "keep_for and max_age say the same."),
    RULE % "keep_for: 7d, action: keep": ("rules.0", "`action: keep` and keep_for both say for"),
    RULE % "action: delete": ("rules.0", "it does not say for how long."),
    RULE % "action: flag": ("rules.0.action", "'flag' means nothing here. Known here: delete, "),
    RULE % "keep_for: forever, action: delete": ("rules.0", "`action: delete` with forever"),
    RULE % "action: keep}, {type: a, keep_for: 7d": ("rules", "2 of them speak of the type 'a'."),
    RULE % "action: keep}, {name: a, type: b, action: keep": ("rules", "the name 'a' is taken"),
    RULE % "name: keep_for, action: keep": ("rules", "the name 'keep_for' is taken already."),
    RULE % "keep_for: 7d}, {type: a (younger), action: keep": ("rules", "the name 'a (younger)'"),
    "dependents: [{table: m}]": ("dependents.0", "column is missing. Write it too, as `column:"),
    "dependents: [{table: a.b.c, column: x}]": ("dependents.0.table", "'a.b.c' names no table."),
    "dependents: [{table: m, column: 5}]": ("dependents.0.column", "5 is no column. Write its"),
    "dependents: [{table: m, column: []}]": ("dependents.0.column", "the list is empty. Name a"),
    "dependents: [{table: m, column: [a, a]}]": ("dependents.0.column", "'a' stands in it twice."),
    "dependents: [{table: audit_log, column: x}]": ("dependents", "audit_log is the store's own"),
    LINK % "dependents: [{table: audit_log, column: y}]": ("dependents", "audit_log is the store"),
    LINK % "dependents: [{table: m, column: y}]": ("dependents", "m hangs on itself."),
    LINK % "}, {table: m, column: [x]": ("dependents", "m stands in them twice with the column x."),
    LINK % "key: [a, b], dependents: [{table: n, column: y}]": (
        "dependents.0.dependents",
        "n has 1 in `column`, and the key of m has 2. Write as many, in the same order.",
    ),
    LINK % "dependents: [{table: n, colum: y, column: z}]": (
        "dependents.0.dependents.0.colum",
        "this key is unknown. Did you mean column?",
    ),
    "key: []": ("key", "the list is empty."),
    "key: 5": ("key", "5 is no column."),
    "orphans: drop": ("orphans", "'drop' means nothing here. Known here: keep, delete."),
    "record_sweeps: {type: a}": ("record_sweeps", "payload is missing. Write it too, as"),
    "record_sweeps: true": ("record_sweeps", "settings belong here. Known here: type, payload,"),
    "record_sweeps: {type: a, payload: b, when: never}": (
        "record_sweeps.when",
        "'never' means nothing here. Known here: always, deleted.",
    ),
    "max_count: 0": ("max_count", "0 is no bound. Write a whole number above 0, such as 200"),
    "max_bytes: 1MiB": ("max_bytes", "this key is unknown."),
    "path: a": ("path", "this key is unknown."),
}


@pytest.mark.parametrize("line", LINES)
def test_a_line_of_a_table_is_refused_in_words(load_text: Load, line: str) -> None:
    """File, line and key, down into lists; what is wrong; what to write."""
    place, message = LINES[line]
    with pytest.raises(BadConfig) as caught:
        load_text(with_lines(line))
    assert str(caught.value).startswith(f"keepfor.yaml:9: stores.audit.{place}: {message}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("lines", "without", "message"),
    [
        (["rules: [{type: a, action: keep}]"], "type", "rules: rules name types, and the store"),
        (
            ["record_sweeps: {type: a, payload: b}"],
            "type",
            "record_sweeps: the row of a sweep has a type, and the store does not say",
        ),
        ([], "keep_for", " nothing would ever be removed. Write `keep_for: 90d`, `max_count: "),
        (["rules: [{type: a, action: keep}]"], "keep_for", " nothing would ever be removed."),
        (["max_count: 3", "keep_last: 4"], "", " keep_last (4) is above max_count (3)."),
        (["key: [a, b]", "dependents: [{table: m, column: x}]"], "", "dependents: m has 1 in `c"),
        ([], "url", " url is missing. Write a line `url:` below it."),
        ([], "table: ", " table is missing."),
        ([], "time", " time is missing."),
    ],
)
def test_a_table_that_says_too_little_is_refused(
    load_text: Load, lines: list[str], without: str, message: str
) -> None:
    """What one setting needs of another is said where it is missed."""
    with pytest.raises(BadConfig) as caught:
        load_text(with_lines(*lines, without=without))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_faults_in_a_list_stand_in_the_order_of_the_file(load_text: Load) -> None:
    """Each item has its own line, and all of them are told at once."""
    text = with_lines(
        "rules:",
        "  - {type: a, action: keep}",
        "  - type: b",
        "    keep_for: 0d",
        "  -",
        "    colour: red",
        "    type: c",
        "    keep_for: 1d",
        "  - {type: d}",
    )
    with pytest.raises(BadConfig) as caught:
        load_text(text)
    places = [": ".join(line.split(": ")[:2]) for line in str(caught.value).splitlines()]
    assert places == [
        "keepfor.yaml:12: stores.audit.rules.1.keep_for",
        "keepfor.yaml:14: stores.audit.rules.2.colour",
        "keepfor.yaml:17: stores.audit.rules.3",
    ]


@pytest.mark.parametrize(
    ("key", "text", "message"),
    [
        ("RULES", "[{type: a, keep_for: 0d}]", ".0.keep_for: '0d' is not a duration"),
        ("RULES", "[{type: a", ": this is not YAML (expected ',' or '}'"),
        ("RULES", "[!x a]", ": the tag !x is not understood."),
        ("RULES", "[{type: a, type: b}]", ": it stands on line 1 already."),
        ("RULES", "", ": it has no value."),
        ("RULES", "a", ": a list belongs here."),
        ("DEPENDENTS", "[{table: m}]", ".0: column is missing."),
        ("RECORD_SWEEPS", "{type: a, payload: b, wen: x}", ".wen: this key is unknown. Did you"),
        ("KEY", "[a", ": this is not YAML"),
        ("DEPENDENTS__0__TABLE", "x", ": no setting has this name."),
    ],
)
def test_a_fault_within_a_variable_names_the_variable(
    load_text: Load, key: str, text: str, message: str
) -> None:
    """There is no line to name, so the way to it stands behind the variable's name."""
    name = f"KEEPFOR_STORES__AUDIT__{key}"
    with pytest.raises(BadConfig) as caught:
        load_text(with_lines(), **{name: text})
    assert str(caught.value).startswith(f"{name}{message}")


# --- how it stands ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([], "Rows older than 90d go."),
        (["keep_last: 5"], "Rows older than 90d go; the newest 5 always stay."),
        (
            ["dependents: [{table: a, column: x, dependents: [{table: b, column: y}]}]"],
            "Rows older than 90d go, with their a and b.",
        ),
        (
            [
                "rules: [{type: d, keep_for: 365d}, {type: c, action: keep}]",
                "dependents: [{table: a, column: x}, {table: b, column: x}, {table: c, column: x}]",
                "max_count: 9",
            ],
            (
                "Rows older than 90d go, with their a, b and c; d after 365d; c for ever; "
                "above 9 the oldest go."
            ),
        ),
    ],
)
def test_a_table_is_put_in_words(load_text: Load, lines: list[str], words: str) -> None:
    """One sentence says what goes, with what, and what is kept longer."""
    assert in_words(load_text(with_lines(*lines)).stores["audit"]) == words


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("keep_for: forever", "Rows stay for ever."),
        ("max_count: 9", "Above 9 the oldest go."),
        ("rules: [{type: d, max_age: 7d}]", "Rows go by their type alone; d after 7d."),
    ],
)
def test_a_table_without_an_age_is_put_in_words(load_text: Load, line: str, words: str) -> None:
    """What has no age of its own does not seem to have one."""
    assert in_words(load_text(with_lines(line, without="keep_for")).stores["audit"]) == words


def planned(**survey: Any) -> Plan:
    """A plan that found this."""
    found = Survey(**survey)
    return Plan(store="audit", kind="table", target="t", policy="", made=NOW, now=NOW, survey=found)


def test_orphans_are_a_finding_unless_they_go(load_text: Load) -> None:
    """What hangs on rows that are gone is counted, with what to write; it is no failure."""
    plan = planned(orphans={"semantic_chunks": 3, "vectors": 1})
    kept = load_text(with_lines()).stores["audit"]
    (finding,) = findings("audit", kept, plan, [], [])
    assert (finding.problem, finding.exit_code) == ("orphans", 0)
    assert finding.what.endswith("hang on rows that are gone: 3 of semantic_chunks, 1 of vectors.")
    assert "`orphans: delete`" in finding.fix
    gone = load_text(with_lines("orphans: delete")).stores["audit"]
    assert findings("audit", gone, plan, [], []) == []
    assert findings("audit", kept, planned(), [], []) == []


def test_a_folder_that_is_missing_is_a_finding_for_a_file_only(load_text: Load) -> None:
    """The folder of an SQLite file can be missing; a server has none to look for."""
    text = with_lines(without="url")
    file = load_text(f"{text}    url: sqlite:////no/such/a.db\n").stores["audit"]
    (finding,) = findings("audit", file, planned(), [], [])
    assert (finding.problem, finding.exit_code) == ("missing", 0)
    assert "/no/such" in finding.what
    assert "url is right" in finding.fix
    server = load_text(f"{text}    url: postgresql://h/d\n").stores["audit"]
    assert findings("audit", server, planned(), [], []) == []


def test_two_policies_on_one_table_are_a_trap(load_text: Load, tmp_path: Path) -> None:
    """The same table of the same database, through a link even, is told; another table is not."""
    (tmp_path / "link.sqlite3").symlink_to("caesar.sqlite3")
    found = traps(
        load_text(
            "stores:\n"
            "  one: {preset: caesar}\n"
            "  same: {preset: caesar, url: 'sqlite:///link.sqlite3'}\n"
            "  apart: {preset: caesar, table: other, keep_for: 1d}\n"
            "  two: {preset: caesar, url: 'sqlite:///link.sqlite3', keep_for: 1d}\n"
        )
    )
    assert list(found) == ["two"]
    assert found["two"][0].rule == "url"
    assert "one and two" in found["two"][0].what


def test_the_grace_of_a_table_is_its_own(load_text: Load) -> None:
    """`grace: 2d` is what `keepfor check` bears with."""
    assert load_text(EXAMPLE).stores["audit"].tolerance == timedelta(days=2)
    assert load_text(with_lines()).stores["audit"].tolerance == timedelta(hours=24)


# --- the schema ---------------------------------------------------------------------------


def test_the_schema_knows_what_a_table_takes() -> None:
    """An editor is told of rules, dependents and records, each with keys of its own."""
    known = schema()["$defs"]
    properties = known["Table"]["properties"]
    assert known["Table"]["anyOf"][1]["required"] == ["kind", "url", "table", "time"]
    assert {"required": ["rules"]} in known["Table"]["anyOf"][1]["anyOf"]
    assert properties["rules"]["items"] == {"$ref": "#/$defs/TypeRule"}
    assert properties["dependents"]["items"] == {"$ref": "#/$defs/Dependent"}
    assert properties["record_sweeps"]["anyOf"] == [
        {"const": "off"},
        {"$ref": "#/$defs/RecordSweeps"},
    ]
    assert known["TypeRule"]["required"] == ["type"]
    assert known["Dependent"]["required"] == ["table", "column"]
    assert known["RecordSweeps"]["required"] == ["type", "payload"]
    assert properties["orphans"]["enum"] == ["keep", "delete"]


def test_loading_a_table_needs_no_database_library(tmp_path: Path) -> None:
    """SQLAlchemy is imported when a table is opened, and not to read its settings."""
    (tmp_path / "keepfor.yaml").write_text(EXAMPLE)
    code = "import sys, keepfor.config as c; c.load(); print('sqlalchemy' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"
