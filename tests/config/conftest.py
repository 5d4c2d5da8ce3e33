"""What the tests of the configuration share: a file written and loaded in one go."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from keepfor.config import Config, Ledger, Runs, Store, load


@pytest.fixture
def load_text(tmp_path: Path) -> Callable[..., Config]:
    """Loads a text as keepfor.yaml in `tmp_path`, under the given environment and $HOME."""

    def load_it(text: str, **environ: str) -> Config:
        (tmp_path / "keepfor.yaml").write_text(text, encoding="utf-8")
        return load(environ={"HOME": "/home/ada", **environ}, cwd=tmp_path)

    return load_it


def on_disk(store: Store) -> Ledger | Runs:
    """A store that is known to be a file or a folder."""
    assert isinstance(store, Ledger | Runs)
    return store
