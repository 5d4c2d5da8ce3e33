"""The command line: it parses, asks and prints, and decides nothing."""

from __future__ import annotations

import sys


def main(arguments: list[str] | None = None) -> None:
    """Run one verb and leave with its exit code.

    Parameters:
        arguments: what stands after the program's name; None for what this process was given.
    """
    try:
        from keepfor.cli.running import run

        code = run(sys.argv[1:] if arguments is None else arguments)
    except KeyboardInterrupt:
        # Ctrl-C before the verb began; once it has, `run` says what became of it.
        code = 130
    sys.exit(code)
