"""The shipped presets: each one is what its product writes, and loads."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from keepfor import presets
from keepfor.config import Entities, Runs, Table, load, policy_of
from keepfor.config.sections import STAND_INS
from keepfor.policy.rules import Policy, keep_for


def test_agentm_is_known() -> None:
    """agentm's recall ledger needs no more than its name."""
    preset = presets.load("agentm")
    assert preset.store == {
        "kind": "ledger",
        "path": "~/.cache/agentm/telemetry/recall-history.jsonl",
        "time": "ts",
        "keep_for": "90d",
        "max_bytes": "25MiB",
    }
    assert preset.environment == {"AGENTM_RECALL_HISTORY": "path"}


def test_neo_is_known(tmp_path: Path) -> None:
    """neo's runs need no more than its name, and its own variables move what they move for it."""
    assert presets.load("neo").store == {
        "kind": "runs",
        "path": ".neo-ai-data/rem-runs",
        "max_count": "200",
    }
    (tmp_path / "keepfor.yaml").write_text("stores: {rem: {preset: neo}}")
    store = load(environ={}, cwd=tmp_path).stores["rem"]
    assert isinstance(store, Runs)
    assert (store.path, store.max_count) == (tmp_path / ".neo-ai-data/rem-runs", 200)
    environ = {"NEO_REM_RUN_RETENTION_LIMIT": "50", "NEO_REM_RUN_STATE_DIR": "/srv/rem-runs"}
    store = load(environ=environ, cwd=tmp_path).stores["rem"]
    assert isinstance(store, Runs)
    assert (store.path, store.max_count) == (Path("/srv/rem-runs"), 50)


def test_caesar_is_known(tmp_path: Path) -> None:
    """caesar's audit log needs no more than its name, and caesar's own variables move it."""
    (tmp_path / "keepfor.yaml").write_text("stores: {audit: {preset: caesar}}")
    store = load(environ={}, cwd=tmp_path).stores["audit"]
    assert isinstance(store, Table)
    assert store.url.reveal() == f"sqlite:///{tmp_path}/caesar.sqlite3"
    assert (store.table, store.key, store.time, store.type) == (
        "audit_log",
        ("id",),
        "ts",
        "event_type",
    )
    assert policy_of(store) == Policy(rules=keep_for(timedelta(days=90)))
    assert [(each.table, each.column) for each in store.dependents] == [
        ("semantic_chunks", ("audit_log_id",))
    ]
    assert store.record_sweeps is not None
    record = store.record_sweeps
    assert (record.type, record.payload, record.when) == (
        "memory.retention_sweep",
        "payload",
        "always",
    )
    assert store.interval == timedelta(seconds=3600)
    environ = {
        "CAESAR_DB__URL": "sqlite+aiosqlite:////srv/caesar.sqlite3",
        "CAESAR_MEMORY__RETENTION_DAYS": "30",
        "CAESAR_MEMORY__SWEEP_INTERVAL_SECONDS": "600",
    }
    store = load(environ=environ, cwd=tmp_path).stores["audit"]
    assert isinstance(store, Table)
    assert store.url.reveal() == "sqlite:////srv/caesar.sqlite3"
    assert (store.keep_for, store.interval) == (timedelta(days=30), timedelta(minutes=10))


def test_evolve_lite_is_known(tmp_path: Path) -> None:
    """evolve-lite's notes need no more than its name, and its own variable moves them."""
    (tmp_path / "keepfor.yaml").write_text("stores: {notes: {preset: evolve-lite}}")
    store = load(environ={}, cwd=tmp_path).stores["notes"]
    assert isinstance(store, Entities)
    assert (store.path, store.notes, store.sessions) == (
        tmp_path / ".evolve",
        "entities",
        "trajectories",
    )
    assert (store.ignore, store.access_log, store.record) == (("subscribed",), "audit.log", True)
    assert (store.default_type, store.session_type, store.clock) == (
        "guideline",
        "trajectory",
        "modified",
    )
    assert store.rules_from == tmp_path / "evolve.config.yaml"
    store = load(environ={"EVOLVE_DIR": "/srv/memory"}, cwd=tmp_path).stores["notes"]
    assert isinstance(store, Entities)
    assert store.path == Path("/srv/memory")


@pytest.mark.parametrize("name", presets.names())
def test_every_preset_is_a_whole_store(name: str, tmp_path: Path) -> None:
    """A store that names a preset and nothing else loads, wherever its file lies."""
    (tmp_path / "keepfor.yaml").write_text(f"stores: {{it: {{preset: {name}}}}}")
    store = load(environ={"HOME": "/home/ada"}, cwd=tmp_path).stores["it"]
    assert store.folder is not None
    at_home = store.folder.startswith("/home/ada/")
    # What a product keeps in the project that it works in lies beside the file.
    assert at_home or store.folder.startswith(str(tmp_path))


@pytest.mark.parametrize("name", presets.names())
def test_a_products_variable_moves_a_setting_that_the_preset_gives(name: str) -> None:
    """What a product's environment moves is one of the settings of its store."""
    preset = presets.load(name)
    moved = {STAND_INS[key][0] if key in STAND_INS else key for key in preset.environment.values()}
    assert moved <= set(preset.store)
    assert not any(variable.startswith("KEEPFOR_") for variable in preset.environment)


def test_the_names_are_those_of_the_data_files() -> None:
    """To add a product is to add a file; nothing else in the folder counts as one."""
    folder = Path(presets.__file__).parent
    assert presets.names() == sorted(path.stem for path in folder.glob("*.yaml"))
    assert "agentm" in presets.names()
