"""A sandbox for a page: its own home, its own day, and no way to write elsewhere."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import time_machine

from tests.docs.child.fence import fenced
from tests.docs.sandbox import TODAY, Sandbox


@pytest.fixture
def sandbox(monkeypatch: pytest.MonkeyPatch) -> Iterator[Sandbox]:
    """An empty home on the day of the pages, with the test and its children fenced in."""
    with tempfile.TemporaryDirectory(prefix="kf-") as folder:
        sandbox = Sandbox(Path(folder).resolve())
        surroundings = sandbox.environment()
        for name in [name for name in os.environ if name.startswith(("KEEPFOR_", "XDG_"))]:
            monkeypatch.delenv(name)
        for name in ("HOME", "TMPDIR", "TZ"):
            monkeypatch.setenv(name, surroundings[name])
        monkeypatch.setattr(tempfile, "tempdir", surroundings["TMPDIR"])
        monkeypatch.chdir(sandbox.home)
        with time_machine.travel(TODAY, tick=False), fenced(folder):
            yield sandbox
        monkeypatch.undo()
