"""The command line: it parses, asks and prints, and decides nothing."""

from __future__ import annotations

import sys


def main(arguments: list[str] | None = None) -> None:
    """Run one verb and leave with its exit code.

    Parameters:
        arguments: what stands after the program's name; None for what this process was given.
    """
    from keepfor.cli.running import run

    sys.exit(run(sys.argv[1:] if arguments is None else arguments))
