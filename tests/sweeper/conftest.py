"""A yard for each test."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sweeper.build import Yard


@pytest.fixture
def yard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Yard:
    """A folder whose configuration holds `recall.jsonl` to 90 days, at NOW."""
    monkeypatch.delenv("KEEPFOR_STATE_DIR")
    found = Yard(tmp_path)
    found.configure(recall="kind: ledger, path: recall.jsonl, keep_for: 90d")
    return found
