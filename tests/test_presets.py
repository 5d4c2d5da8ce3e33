"""The shipped presets: each one is what its product writes, and loads."""

from __future__ import annotations

from pathlib import Path

import pytest

from keepfor import presets
from keepfor.config import Runs, load


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


@pytest.mark.parametrize("name", presets.names())
def test_every_preset_is_a_whole_store(name: str, tmp_path: Path) -> None:
    """A store that names a preset and nothing else loads, wherever its file lies."""
    (tmp_path / "keepfor.yaml").write_text(f"stores: {{it: {{preset: {name}}}}}")
    store = load(environ={"HOME": "/home/ada"}, cwd=tmp_path).stores["it"]
    at_home = store.path.is_relative_to("/home/ada")
    # What a product keeps in the project that it works in lies beside the file.
    assert at_home or store.path.is_relative_to(tmp_path)


@pytest.mark.parametrize("name", presets.names())
def test_a_products_variable_moves_a_setting_that_the_preset_gives(name: str) -> None:
    """What a product's environment moves is one of the settings of its store."""
    preset = presets.load(name)
    assert set(preset.environment.values()) <= set(preset.store)
    assert not any(variable.startswith("KEEPFOR_") for variable in preset.environment)


def test_the_names_are_those_of_the_data_files() -> None:
    """To add a product is to add a file; nothing else in the folder counts as one."""
    folder = Path(presets.__file__).parent
    assert presets.names() == sorted(path.stem for path in folder.glob("*.yaml"))
    assert "agentm" in presets.names()
