"""The shipped presets: each one is what its product writes, and loads."""

from __future__ import annotations

from pathlib import Path

import pytest

from keepfor import presets
from keepfor.config import load


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


@pytest.mark.parametrize("name", presets.names())
def test_every_preset_is_a_whole_store(name: str, tmp_path: Path) -> None:
    """A store that names a preset and nothing else loads, wherever its file lies."""
    (tmp_path / "keepfor.yaml").write_text(f"stores: {{it: {{preset: {name}}}}}")
    store = load(environ={"HOME": "/home/ada"}, cwd=tmp_path).stores["it"]
    assert not store.path.is_relative_to(tmp_path)


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
