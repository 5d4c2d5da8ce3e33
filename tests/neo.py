"""The sample of neo's rem-runs, as its program writes it: one file per run, with its own time."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

_RUNS = Path(__file__).parent / "data" / "neo" / "rem-runs.jsonl"


def rebuild(folder: Path) -> Path:
    """Lays the 260 runs out in a folder, each changed last when it was completed."""
    folder.mkdir(parents=True)
    for line in _RUNS.read_bytes().splitlines(keepends=True):
        run = json.loads(line)
        path = folder / f"{re.sub(r'[^A-Za-z0-9_.-]', '_', run['runId'])}.jsonl"
        path.write_bytes(line)
        os.utime(path, (run["completedAt"] / 1000,) * 2)
    return folder
