"""What the tests of the write site share: a ledger's place, a clock, and a count of its prunes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from keepfor import sweep
from tests.writers.build import Clock


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.jsonl"


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def prunes(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What each attempt to prune came to: its report, or the error that it ended with."""
    attempts: list[Any] = []
    prune: Callable[..., Any] = sweep.prune

    def counted(*args: Any, **how: Any) -> Any:
        try:
            attempts.append(prune(*args, **how))
        except BaseException as error:
            attempts.append(error)
            raise
        return attempts[-1]

    monkeypatch.setattr(sweep, "prune", counted)
    return attempts
