"""The tests of the skill run keepfor as those of the command line do."""

from __future__ import annotations

from tests.cli.conftest import frozen, place

__all__ = ["frozen", "place"]
