"""Measures each store, prints the table, and writes it as JSON beside this file."""

from __future__ import annotations

import sys
import tempfile
from itertools import chain
from pathlib import Path

from benchmarks import entities, ledger, runs, status, table
from benchmarks.harness import HEADER, row, save

#: Not kept in the repository: figures belong to the machine that they were measured on.
RESULTS = Path(__file__).parent / "results" / "latest.json"


def main() -> int:
    """Run every comparison; returns 1 if a target was missed."""
    print(HEADER)
    figures = []
    with tempfile.TemporaryDirectory(prefix="keepfor-bench-") as folder:
        measured = chain(
            ledger.figures(Path(folder), ledger.Scale()),
            runs.figures(Path(folder), runs.Scale()),
            table.figures(Path(folder), table.Scale()),
            entities.figures(Path(folder) / "entities", entities.Scale()),
            status.figures(Path(folder) / "status", status.Scale()),
        )
        for figure in measured:
            print(row(figure), flush=True)
            figures.append(figure)
    save(figures, RESULTS)
    print(f"\nAs JSON: {RESULTS}")
    return not all(figure.met for figure in figures)


if __name__ == "__main__":
    sys.exit(main())
