"""Notes and sessions in keepfor.yaml: their rules, wherever those stand, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from keepfor.config import Config, Entities, load, policy_of, show, traps
from keepfor.config.opening import open_store
from keepfor.config.standing import in_words
from keepfor.errors import BadConfig
from keepfor.items import Item
from keepfor.policy.rules import Rule
from keepfor.stores.entities import EntityStore
from keepfor.times import Known
from tests import evolve

Load = Callable[..., Config]

#: The sample's rules, by hand from the file.
SAMPLE = (
    Rule(
        name="unused-guidelines",
        type="guideline",
        max_unused=timedelta(days=180),
        action="delete",
        on_missing_access_signal="skip",
    ),
    Rule(name="stale-guidelines", type="guideline", max_age=timedelta(days=90), action="flag"),
    Rule(
        name="old-sessions",
        type="trajectory",
        max_age=timedelta(days=365),
        action="delete",
        cascade_derived=True,
    ),
)

ONE_RULE = """\
stores:
  notes:
    kind: entities
    path: memory
    rules:
      - name: it
"""


def notes(config: Config) -> Entities:
    """The one store of a configuration."""
    store = config.stores["notes"]
    assert isinstance(store, Entities)
    return store


def refusals(load_text: Load, text: str, **environ: str) -> list[str]:
    """What a text is refused with, a line each."""
    with pytest.raises(BadConfig) as caught:
        load_text(text, **environ)
    return str(caught.value).splitlines()


# --- where the rules stand ----------------------------------------------------------------


def test_the_preset_takes_its_rules_from_the_products_own_file(tmp_path: Path) -> None:
    """`preset: evolve-lite` holds a project to the `retention:` of its evolve.config.yaml."""
    evolve.rebuild(tmp_path)
    (tmp_path / "keepfor.yaml").write_text("stores: {notes: {preset: evolve-lite}}")
    config = load(environ={}, cwd=tmp_path)
    assert policy_of(notes(config)).rules == SAMPLE
    (row,) = (row for row in show(config) if row.key == "stores.notes.rules")
    assert row.source == "evolve.config.yaml:2"
    assert in_words(notes(config)) == (
        "Delete guideline unused for 180d; flag guideline older than 90d; delete trajectory older "
        "than 365d, with what was made from it."
    )


def test_the_products_variable_moves_its_folder(tmp_path: Path) -> None:
    """EVOLVE_DIR says where the notes are, and the store is opened there with all it needs."""
    evolve.rebuild(tmp_path)
    (tmp_path / "keepfor.yaml").write_text(
        "state_dir: state\nstores: {notes: {preset: evolve-lite}}"
    )
    config = load(environ={"EVOLVE_DIR": "/srv/memory"}, cwd=tmp_path)
    store = open_store(config, "notes")
    assert isinstance(store, EntityStore)
    assert (store.path, store.notes, store.sessions) == ("/srv/memory", "entities", "trajectories")
    assert (store.ignore, store.access_log, store.record) == (("subscribed",), "audit.log", True)
    assert store.cache == str(tmp_path / "state" / "entities")


@pytest.mark.parametrize("name", ["rules.yaml", "rules.json", "tabs.json"])
def test_rules_may_stand_in_a_file_of_their_own(tmp_path: Path, name: str) -> None:
    """A file with `rules:` at its top, YAML or JSON, gives them, also in place of the product's."""
    evolve.rebuild(tmp_path)
    indent = "\t" if name == "tabs.json" else 2
    rule = {"name": "old", "max_age_days": 30, "action": "delete"}
    (tmp_path / name).write_text(json.dumps({"rules": [rule]}, indent=indent))
    (tmp_path / "keepfor.yaml").write_text("stores: {notes: {preset: evolve-lite}}")
    config = load(environ={}, cwd=tmp_path, policy=tmp_path / name)
    wanted = (Rule(name="old", max_age=timedelta(days=30), action="delete"),)
    assert policy_of(notes(config)).rules == wanted
    (tmp_path / "keepfor.yaml").write_text(
        f"stores: {{notes: {{preset: evolve-lite, rules_from: {name}}}}}"
    )
    assert policy_of(notes(load(environ={}, cwd=tmp_path))).rules == wanted


@pytest.mark.parametrize(
    ("variable", "text"),
    [("RULES_FROM", "mine.yaml"), ("RULES", "[{name: old, max_age: 30d, action: delete}]")],
)
def test_a_variable_gives_the_rules(tmp_path: Path, variable: str, text: str) -> None:
    """The environment overrides where the rules stand, or what they say."""
    evolve.rebuild(tmp_path)
    (tmp_path / "mine.yaml").write_text("rules: [{name: old, max_age: 30d, action: delete}]")
    (tmp_path / "keepfor.yaml").write_text("stores: {notes: {preset: evolve-lite}}")
    config = load(environ={f"KEEPFOR_STORES__NOTES__{variable}": text}, cwd=tmp_path)
    assert policy_of(notes(config)).rules == (
        Rule(name="old", max_age=timedelta(days=30), action="delete"),
    )


def test_rules_beside_the_preset_stand_in_place_of_the_files(tmp_path: Path) -> None:
    """What keepfor.yaml says itself counts, and the product's file is not asked."""
    evolve.rebuild(tmp_path)
    (tmp_path / "evolve.config.yaml").write_text("retention: {rules: nonsense}")
    (tmp_path / "keepfor.yaml").write_text(
        "stores: {notes: {preset: evolve-lite, rules: [{name: old, max_age: 90d}]}}"
    )
    store = notes(load(environ={}, cwd=tmp_path))
    assert [rule.name for rule in policy_of(store).rules] == ["old"]
    assert store.rules_from is None


def test_a_product_without_rules_holds_nothing_to_anything(load_text: Load, tmp_path: Path) -> None:
    """Where the product's usual file is missing or says nothing of this, nothing goes, and it is
    said."""
    for text in (None, "model: small\n"):
        if text:
            (tmp_path / "evolve.config.yaml").write_text(text)
        store = notes(load_text("stores: {notes: {preset: evolve-lite}}"))
        assert policy_of(store).rules == ()
        assert store.degraded == "it has no rules, so nothing in it is ever flagged or deleted."


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "keepfor.yaml:1: stores.notes.rules_from: there is no such file."),
        ("model: small\n", "keepfor.yaml:1: stores.notes.rules_from: it has no `rules:`. Write"),
        (
            "retention: {}\n",
            "keepfor.yaml:1: stores.notes.rules_from: it has no `rules:`. Write them there.",
        ),
        ("retention: 90d\n", "mine.yaml:1: retention: settings belong here. Write a line `rules:`"),
        ("- a\n", "mine.yaml: it holds a list and not settings. Begin with a line `rules:`."),
        ("rules: [\n", "mine.yaml:2: this is not YAML ("),
        ("rules: []\n", "mine.yaml:1: rules: the list is empty. Write a rule below it, or leave"),
        ("rules: {a: 1}\n", "mine.yaml:1: rules: a list belongs here."),
        ("rules:\n  - max_age: 1d\n", "mine.yaml:2: rules.0: name is missing."),
        (
            "rules:\n  - name: a\n    max_agee: 1d\n    max_age: 1d\n",
            "mine.yaml:3: rules.0.max_agee: this key is unknown. Did you mean max_age?",
        ),
        (
            "retention:\n  rules:\n    - name: a\n      max_age_days: 0\n",
            "mine.yaml:4: retention.rules.0.max_age_days: 0 is no age in days: nothing would be",
        ),
        (
            "rules: [{name: a, max_age: 1d}]\nruels: []\n",
            "mine.yaml:2: ruels: this key is unknown. Did you mean rules?",
        ),
        (
            "rules: [{name: a, max_age: 1d}]\nretention: {rules: [{name: a, max_age: 1d}]}\n",
            "mine.yaml:2: retention: rules stands beside it, and only one of them can hold.",
        ),
    ],
)
def test_a_file_of_rules_is_refused_with_its_own_line(
    load_text: Load, tmp_path: Path, text: str | None, message: str
) -> None:
    """What is wrong in the file of rules is told by that file's name and line."""
    if text is not None:
        (tmp_path / "mine.yaml").write_text(text)
    store = "stores: {notes: {kind: entities, path: a, rules_from: mine.yaml}}"
    (line,) = refusals(load_text, store)
    assert line.startswith(message)


def test_all_that_is_wrong_in_two_files_is_said_at_once(load_text: Load, tmp_path: Path) -> None:
    """Faults of keepfor.yaml and of the file of rules come together."""
    (tmp_path / "mine.yaml").write_text(
        "rules:\n  - {name: a, max_age: 3m, action: remove}\n  - {name: b, cascade_derived: yes}\n"
    )
    lines = refusals(
        load_text,
        "stores:\n  notes:\n    kind: entities\n    path: a\n    rules_from: mine.yaml\n"
        "    session: x\n",
    )
    assert [": ".join(line.split(": ")[:2]) for line in lines] == [
        "keepfor.yaml:6: stores.notes.session",
        "mine.yaml:2: rules.0.max_age",
        "mine.yaml:2: rules.0.action",
        "mine.yaml:3: rules.1.cascade_derived",
    ]
    assert lines[0].endswith("Did you mean sessions?")


def test_rules_in_two_places_are_refused(load_text: Load) -> None:
    """Rules are given here or in a file, not both."""
    (line,) = refusals(
        load_text,
        "stores:\n  notes:\n    kind: entities\n    path: a\n    rules: [{name: a, max_age: 1d}]\n"
        "    rules_from: a.yaml\n",
    )
    assert line == (
        "keepfor.yaml:6: stores.notes.rules_from: rules are given too, and only one of them can "
        "hold. Leave one out."
    )


# --- a rule -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("max_age: 90d", {"max_age": timedelta(days=90)}),
        ("max_age_days: 90", {"max_age": timedelta(days=90)}),
        ("max_unused: 2w", {"max_unused": timedelta(days=14)}),
        ("max_unused_days: 1.5", {"max_unused": timedelta(days=1, hours=12)}),
        ("{max_age: 1d, type: a}", {"max_age": timedelta(days=1), "type": "a"}),
        ("{max_age: 1d, entity_type: a}", {"max_age": timedelta(days=1), "type": "a"}),
        ("action: keep", {"action": "keep"}),
        (
            "{action: keep, match: {id: guideline/core-*, status: approved}}",
            {
                "action": "keep",
                "match_id": "guideline/core-*",
                "match_fields": {"status": "approved"},
            },
        ),
        (
            "{max_age: 1d, action: delete, after_flagged: 14d, keep_if_cited: true}",
            {
                "max_age": timedelta(days=1),
                "action": "delete",
                "after_flagged": timedelta(days=14),
                "keep_if_cited": True,
            },
        ),
    ],
)
def test_a_rule_means_what_it_says(load_text: Load, line: str, rule: dict[str, Any]) -> None:
    """Each way to write a rule comes to the rule that it is short for."""
    said = line if line.startswith("{") else f"{{{line}}}"
    text = ONE_RULE.replace("- name: it", f"- {said.replace('{', '{name: it, ', 1)}")
    assert policy_of(notes(load_text(text))).rules == (Rule(name="it", **rule),)


#: What is wrong with one line of a rule, by the line.
LINES = {
    "max_age: 90": '90 is no max_age: it has no unit. Write "90d" for days',
    "max_age: forever": (
        "'forever' is no max_age: nothing would ever match. Write a duration such as 90d."
    ),
    "max_age: 0d": "'0d' is no max_age: it is not above zero. Write a duration such as 90d.",
    "max_age_days: 90d": (
        "'90d' is no age in days: it is not a number of days. "
        "Write a number such as 90, or use max_age."
    ),
    "max_unused_days: -1": (
        "-1 is no disuse in days: nothing would be kept. "
        "Write a number such as 90, or use max_unused."
    ),
    "max_unused: 3m": "'3m' is no max_unused: m could be minutes or months.",
    "after_flagged: x": "'x' is no after_flagged: ",
    "action: remove": "'remove' means nothing here. ",
    "on_missing_access_signal: keep": "'keep' means nothing here. ",
    "cascade_derived: yes": "'yes' is neither true nor false. Write one of the two.",
    "keep_if_cited: 1": "1 is neither true nor false.",
    "match: {}": "settings belong here: `id:` with a pattern",
    "match: guideline": "settings belong here: `id:` with a pattern",
    "match: {version: 1}": "version is 1, and a note says text. Put it in quotes.",
    "type: ''": "'' is no type.",
    "max_aeg: 90d": "this key is unknown. Did you mean max_age?",
    "entity: a": "this key is unknown. Did you mean entity_type?",
}


@pytest.mark.parametrize("line", LINES)
def test_a_line_of_a_rule_is_refused_in_words(load_text: Load, line: str) -> None:
    """One wrong line of a rule gives one message, with file, line and key."""
    beside = "" if line.startswith("max_age:") else "        max_age: 90d\n"
    text = f"{ONE_RULE}{beside}        {line}\n"
    (said,) = refusals(load_text, text)
    place = f"keepfor.yaml:{text.count(chr(10))}: stores.notes.rules.0.{line.partition(':')[0]}: "
    assert said.startswith(place)
    assert said.removeprefix(place).startswith(LINES[line].partition(' Write "')[0])


#: What is wrong with a whole rule, by what stands in it.
RULES = {
    "action: delete": "rule 'it': it has no threshold. Give it `max_age` or `max_unused`.",
    "max_age: 1d, max_age_days: 1": "max_age and max_age_days say the same. Leave one out.",
    "max_age: 1d, type: a, entity_type: a": "type and entity_type say the same. Leave one out.",
    "max_age: 1d, cascade_derived: true": "rule 'it': `cascade_derived` says nothing here.",
    "max_age: 1d, after_flagged: 1d": "rule 'it': `after_flagged` says nothing here.",
    "max_age: 1d, on_missing_access_signal: delete": (
        "rule 'it': `on_missing_access_signal` says nothing here."
    ),
    "max_age: 1d, match: {id: 'a[b]'}": "rule 'it': its `match` on the id is 'a[b]': brackets",
}


@pytest.mark.parametrize("said", RULES)
def test_a_rule_that_means_nothing_is_refused(load_text: Load, said: str) -> None:
    """What contradicts itself is told at the rule, with what to do."""
    (line,) = refusals(load_text, ONE_RULE.replace("- name: it", f"- {{name: it, {said}}}"))
    assert line.startswith(f"keepfor.yaml:6: stores.notes.rules.0: {RULES[said]}")


def test_names_of_rules_are_told_apart(load_text: Load) -> None:
    """Two rules of one name, or of the name that `keep_for` has, are refused."""
    rule = "{name: it, max_age: 1d}"
    (twice,) = refusals(load_text, ONE_RULE.replace("- name: it", f"- {rule}\n      - {rule}"))
    assert "the name 'it' is taken already." in twice
    (taken,) = refusals(load_text, ONE_RULE.replace("name: it", "{name: keep_for, max_age: 1d}"))
    assert "the name 'keep_for' is taken already." in taken


# --- a store ------------------------------------------------------------------------------

#: What is wrong with one line of a store, by the line.
SETTINGS = {
    "notes: ../other": "'../other' is no folder below the root of the store.",
    "notes: /etc": "'/etc' is no folder below the root of the store.",
    "sessions: .": "'.' is the root itself. Write a name below it, or off.",
    "sessions: a/../../b": "'a/../../b' is no folder below the root of the store.",
    "access_log: ../log": "'../log' is no file below the root of the store.",
    "pattern: a/*.md": "'a/*.md' is no pattern of file names.",
    "ignore: subscribed": "a list belongs here, such as [subscribed, drafts/*].",
    "ignore: [/a]": "'/a' is no folder below that of the notes.",
    "clock: created at": "'created at' tells no age.",
    "fallback: mtime": "'mtime' means nothing here. Known here: modified, off.",
    "record: yes": "'yes' is neither true nor false.",
    "keep_last: {guideline: 0}": "guideline: 0 of guideline is no floor. Leave it out.",
    "keep_last: {guideline: x}": "guideline: 'x' is no number of items.",
    "keep_last: -1": "-1 is no number of items.",
    "max_count: 0": "0 is no bound.",
    "sesions: a": "this key is unknown. Did you mean sessions?",
}


@pytest.mark.parametrize("line", SETTINGS)
def test_a_line_of_a_store_is_refused_in_words(load_text: Load, line: str) -> None:
    """One wrong setting gives one message, with file, line and key."""
    text = f"stores:\n  notes:\n    kind: entities\n    path: a\n    keep_for: 90d\n    {line}\n"
    (said,) = refusals(load_text, text)
    key = line.partition(":")[0]
    assert said.startswith(f"keepfor.yaml:6: stores.notes.{key}: {SETTINGS[line]}")


@pytest.mark.parametrize(
    "said",
    [
        "notes: ., sessions: logs",
        "notes: ., pattern: '*', access_log: .audit.log",
        "notes: ., pattern: '*', access_log: trajectories/audit.log",
        "notes: ., pattern: '*', access_log: subscribed/audit.log",
        "notes: a, pattern: '*', sessions: ab",
    ],
)
def test_what_is_no_note_may_lie_among_them(load_text: Load, said: str) -> None:
    """Hidden and ignored files and the folder of sessions are in nobody's way."""
    text = f"stores: {{notes: {{kind: entities, path: a, keep_for: 90d, {said}}}}}"
    assert notes(load_text(text)).keep_for is not None


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("", "nothing would ever be flagged or deleted. Write `rules:` below it"),
        (", clock: created, keep_for: 1d", "what counts where a note has no created is not said."),
        (", keep_for: 1d, max_count: 1, keep_last: 2", "keep_last (2) is above max_count (1)."),
        (", notes: b, sessions: b", "the notes lie in b and the sessions in b, and one is in the"),
        (", sessions: entities/s", "the notes lie in entities and the sessions in entities/s, and"),
        (", notes: a/b, sessions: a", "the notes lie in a/b and the sessions in a, and one is in"),
        (
            ", notes: ., pattern: '*'",
            "the log audit.log would be a note, by place and pattern. Put",
        ),
        (
            ", notes: b, pattern: '*.l*', access_log: b/c/d.log",
            "the log b/c/d.log would be a note, by place and pattern.",
        ),
        (", max_count: 2, keep_last: {a: 1, b: 2}", "keep_last (3) is above max_count (2)."),
    ],
)
def test_a_store_that_does_not_say_enough_is_refused(
    load_text: Load, said: str, message: str
) -> None:
    """A store without any rule, and one whose age is left to be guessed, are refused."""
    (line,) = refusals(load_text, f"stores: {{notes: {{kind: entities, path: a{said}}}}}")
    assert line.startswith(f"keepfor.yaml:1: stores.notes: {message}")


def test_a_log_that_is_off_records_nothing(load_text: Load) -> None:
    """`record` without a log is refused."""
    (line,) = refusals(
        load_text,
        "stores: {notes: {kind: entities, path: a, keep_for: 1d, access_log: off, record: true}}",
    )
    assert line == (
        "keepfor.yaml:1: stores.notes.record: there is no log to record in. Name one under "
        "access_log."
    )


def test_every_setting_reaches_the_store_and_the_policy(load_text: Load, tmp_path: Path) -> None:
    """What can be written of a store is what it is opened and held to."""
    config = load_text(
        """\
state_dir: state
stores:
  notes:
    kind: entities
    path: memory
    notes: .
    pattern: "*.txt"
    sessions: off
    session_pattern: "*.json"
    ignore: [drafts/*]
    default_type: note
    session_type: talk
    clock: created_at
    fallback: modified
    timezone: Europe/Berlin
    access_log: off
    rules: [{name: a, max_age: 1d, match: {id: x/*, status: old, kind: b}}]
    keep_for: 90d
    max_count: 9
    max_bytes: 1MiB
    keep_last: {note: 2}
    breaker: off
""",
    )
    store = open_store(config, "notes")
    assert isinstance(store, EntityStore)
    assert (store.path, store.notes, store.pattern) == (str(tmp_path / "memory"), ".", "*.txt")
    assert (store.sessions, store.session_pattern, store.ignore) == (None, "*.json", ("drafts/*",))
    assert (store.default_type, store.session_type) == ("note", "talk")
    assert (store.clock, store.fallback, str(store.zone)) == (
        "created_at",
        "modified",
        "Europe/Berlin",
    )
    assert (store.access_log, store.record, store.fields) == (None, False, ("kind", "status"))
    policy = policy_of(config.stores["notes"])
    assert [rule.name for rule in policy.rules] == ["a", "keep_for"]
    assert (policy.max_count, policy.max_bytes, policy.breaker) == (9, 1 << 20, None)
    assert (policy.keep_last, policy.keep_last_of) == (0, {"note": 2})
    assert in_words(config.stores["notes"]).endswith("the newest 2 of type note always stay.")


# --- traps --------------------------------------------------------------------------------


def test_a_log_that_forgets_too_soon_is_a_trap(load_text: Load) -> None:
    """An audit log that another store of the file expires before disuse can be told is named."""
    config = load_text(
        """\
stores:
  notes:
    kind: entities
    path: memory
    rules: [{name: unused, max_unused: 180d, action: delete, on_missing_access_signal: delete}]
  log: {kind: ledger, path: memory/audit.log, keep_for: 90d}
"""
    )
    (trap,) = traps(config)["notes"]
    assert trap.rule == "unused"
    assert "90d" in trap.what


def test_what_a_store_holds_shows_more_traps(load_text: Load) -> None:
    """With the items at hand, a type that none of them has is a trap; without, it is none."""
    config = load_text(ONE_RULE.replace("- name: it", "- {name: it, type: guidline, max_age: 1d}"))
    assert traps(config) == {}
    item = Item(id="a", type="guideline", instant=Known(evolve.NOW, "mtime"))
    (trap,) = traps(config, {"notes": [item]})["notes"]
    assert trap.what == "no item is of type 'guidline'."
