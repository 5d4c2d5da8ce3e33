"""What is in force is shown as a file would say it; schema and first file fit the loader."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from keepfor.config import INIT, Config, Entities, Row, Table, load, schema, show
from keepfor.errors import BadDuration, BadSize
from keepfor.sizes import parse_size_text
from keepfor.times import parse_duration
from tests.config.conftest import on_disk

Load = Callable[..., Config]


def test_every_setting_is_shown_with_its_value_and_source(load_text: Load) -> None:
    """The rows are all settings in force, in order, each as keepfor.yaml would say it."""
    config = load_text(
        """\
stores:
  recall:
    kind: ledger
    path: /srv/recall.jsonl
    max_age_days: 1.5
    breaker: off
""",
        KEEPFOR_STORES__RECALL__MAX_BYTES="25600KiB",
        KEEPFOR_STATE_DIR="/srv/state",
    )
    assert [(row.key, row.value, row.source) for row in show(config)] == [
        ("stores.recall.kind", "ledger", "keepfor.yaml:3"),
        ("stores.recall.path", "/srv/recall.jsonl", "keepfor.yaml:4"),
        ("stores.recall.time", "ts", "default"),
        ("stores.recall.unit", None, "default"),
        ("stores.recall.timezone", "UTC", "default"),
        ("stores.recall.keep_for", "1d12h", "keepfor.yaml:5"),
        ("stores.recall.max_bytes", "25MiB", "environment KEEPFOR_STORES__RECALL__MAX_BYTES"),
        ("stores.recall.keep_last", 0, "default"),
        ("stores.recall.unreadable", "drop", "default"),
        ("stores.recall.breaker", "off", "keepfor.yaml:6"),
        ("stores.recall.grace", "1d", "default"),
        ("stores.recall.interval", "1h", "default"),
        ("trail.keep_for", "90d", "default"),
        ("state_dir", "/srv/state", "environment KEEPFOR_STATE_DIR"),
    ]


def test_an_age_that_is_never_is_shown_as_forever(load_text: Load) -> None:
    """Where no age expires anything, the row says so, and a ceiling that is not there is empty."""
    config = load_text("stores: {it: {kind: ledger, path: a, keep_for: forever}}")
    rows = {row.key: row.value for row in show(config)}
    assert rows["stores.it.keep_for"] == "forever"
    assert rows["stores.it.max_bytes"] is None


def test_what_is_shown_loads_to_the_same(load_text: Load) -> None:
    """Written down as shown, the settings give the same stores, trail and state folder."""
    config = load_text(
        "stores:\n  one: {preset: agentm, unit: ms, breaker: off, keep_last: 3, grace: P1DT1H}\n"
        "  two: {kind: ledger, path: a, max_bytes: 1234567B, timezone: Europe/Berlin}\n"
    )
    again = load_text(yaml.safe_dump(written(show(config)), sort_keys=False))
    assert again.stores == config.stores
    assert again.trail == config.trail
    assert again.state_dir == config.state_dir


def written(rows: list[Row]) -> dict[str, Any]:
    """The rows as a file would hold them."""
    tree: dict[str, Any] = {}
    for row in rows:
        *above, key = row.key.split(".")
        place = tree
        for name in above:
            place = place.setdefault(name, {})
        if row.value is not None:
            place[key] = row.value
    return tree


# --- the first file -----------------------------------------------------------------------


def test_the_first_file_loads(load_text: Load, tmp_path: Path) -> None:
    """What `keepfor config init` writes is a configuration, of one ledger beside it."""
    config = load_text(INIT)
    assert list(config.stores) == ["recall"]
    assert on_disk(config.stores["recall"]).path == tmp_path / "recall-history.jsonl"


def test_the_first_file_tells_of_every_setting() -> None:
    """Each key that there is stands in the first file, in force or as a comment to take up."""
    definitions = schema()["$defs"].values()
    for section in (schema(), *definitions):
        for key in section["properties"]:
            assert re.search(rf"(^ *(# +)?|[{{ ]){key}:", INIT, re.MULTILINE), key


def test_the_first_files_comments_can_be_taken_up(load_text: Load) -> None:
    """Every commented setting, taken up, loads, and those of the ledger change nothing."""
    plain = load_text(INIT)
    line = r"^( *)# ((?: +)?(?:- \{?)?[a-z_]+: *(?: .*)?)$"
    text = re.sub(line, r"\1\2", INIT, flags=re.MULTILINE)
    text = text.replace("    max_age_days: 90", "    # ").replace("unit: ms", "timezone: UTC", 1)
    text = text.replace("    interval_seconds: 3600", "    # ")
    text = re.sub(r"(timezone: UTC.*\n)(.*timezone: UTC)", r"\1#", text)
    taken = load_text(text)
    assert taken.stores["agentm"].keep_for == plain.stores["recall"].keep_for
    table, preset = taken.stores["audit"], taken.stores["caesar"]
    assert isinstance(table, Table)
    assert [rule.type for rule in table.rules] == ["policy.denied", "debug", "consent.given"]
    assert isinstance(preset, Table)
    assert (table.dependents, table.record_sweeps) == (preset.dependents, preset.record_sweeps)
    notes, evolve = taken.stores["notes"], taken.stores["evolve"]
    assert isinstance(notes, Entities)
    assert [rule.name for rule in notes.rules] == ["unused", "pinned", "old"]
    assert notes.model_copy(update={"rules": (), "record": True}) == evolve.model_copy(
        update={"rules_from": None}
    )
    ledger = taken.stores["recall"].model_copy(update={"max_bytes": None})
    assert ledger == plain.stores["recall"]
    assert taken.trail == plain.trail
    assert taken.state_dir == Path("/home/ada/keepfor-state")


# --- the schema ---------------------------------------------------------------------------


def test_the_schema_is_json() -> None:
    """An editor can take the schema as it is."""
    assert json.loads(json.dumps(schema())) == schema()
    assert schema()["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema()["required"] == ["stores"]


def test_the_schema_knows_no_other_keys() -> None:
    """A typo in a key is seen by an editor too, at every level, and each key says what it is."""
    for section in (schema(), *schema()["$defs"].values()):
        assert section["additionalProperties"] is False
        for key, setting in section["properties"].items():
            assert "$ref" in setting or setting["description"], key
    stores = schema()["properties"]["stores"]
    assert list(stores["patternProperties"]) == ["^[a-z0-9_]+$"]
    assert stores["additionalProperties"] is False
    assert stores["minProperties"] == 1


def test_the_schema_knows_the_ways_to_write_a_store() -> None:
    """A store names a preset, or its kind, its path and when; an age is said in one way only."""
    ledger = schema()["$defs"]["Ledger"]
    assert ledger["anyOf"] == [
        {"required": ["preset"]},
        {
            "required": ["kind", "path"],
            "anyOf": [
                {"required": ["keep_for"]},
                {"required": ["max_age_days"]},
                {"required": ["max_bytes"]},
            ],
        },
    ]
    assert ledger["not"] == {
        "anyOf": [
            {"required": ["keep_for", "max_age_days"]},
            {"required": ["interval", "interval_seconds"]},
        ]
    }
    assert ledger["properties"]["preset"]["enum"] == ["agentm", "caesar", "evolve-lite", "neo"]
    assert ledger["properties"]["unit"]["enum"] == ["s", "ms", "us", "ns"]
    assert ledger["properties"]["unreadable"]["enum"] == ["drop", "keep"]
    assert "required" not in ledger


def test_the_schemas_defaults_are_what_a_file_could_say(tmp_path: Path) -> None:
    """Each default in the schema, written out, is the default."""
    defaults = {
        key: setting["default"]
        for key, setting in schema()["$defs"]["Ledger"]["properties"].items()
        if "default" in setting
    }
    with_defaults = "time timezone keep_last unreadable breaker grace interval"
    assert list(defaults) == with_defaults.split()
    store: dict[str, Any] = {"preset": "agentm"}
    stores = {"stores": {"plain": store, "said": {**store, **defaults}}}
    (tmp_path / "keepfor.yaml").write_text(json.dumps(stores))
    found = load(environ={"HOME": "/home/ada"}, cwd=tmp_path).stores
    assert found["plain"] == found["said"]


LEDGER = schema()["$defs"]["Ledger"]["properties"]
PARTS = ["P", "T", "2w", "90d", "12h", "30min", "5s", "2W", "90D", "12H", "30M", "5S", "7", "d"]
DURATIONS = st.lists(st.sampled_from(PARTS), max_size=5).map("".join)
SIZES = st.from_regex(r"\A[1-9]{1,4}[KMGTkmg]?i?[Bb]?\Z")


@given(DURATIONS | st.sampled_from(["forever", "90d\n", "\u0663d", " 90d", "90 d"]))
def test_an_editor_and_the_loader_agree_on_durations(text: str) -> None:
    """What the schema's pattern takes for a duration is one, and nothing else."""
    try:
        parse_duration(text)
    except BadDuration:
        taken = False
    else:
        taken = True
    assert taken == bool(re.fullmatch(LEDGER["keep_for"]["pattern"], text, re.ASCII))


@given(SIZES | st.sampled_from(["25MiB", "25MB", "25M", "25", "B", "", "25MiB "]))
def test_an_editor_and_the_loader_agree_on_sizes(text: str) -> None:
    """What the schema's pattern takes for a size is one, and nothing else."""
    try:
        parse_size_text(text)
    except BadSize:
        taken = False
    else:
        taken = True
    assert taken == bool(re.fullmatch(LEDGER["max_bytes"]["pattern"], text, re.ASCII))


@pytest.mark.parametrize("text", ["forever", "Forever"])
def test_a_grace_is_never_forever(text: str) -> None:
    """The schema's pattern for grace and interval leaves `forever` out, as the loader does."""
    for key in ("grace", "interval"):
        assert not re.search(LEDGER[key]["pattern"], text)
        assert re.search(LEDGER[key]["pattern"], "24h")
