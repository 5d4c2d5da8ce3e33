"""No append is lost: plain writers at full speed, and prunes back to back."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.storm import Write, storm, write_plainly, write_with_keepfor


@pytest.mark.parametrize("write", [write_plainly, write_with_keepfor])
def test_every_row_of_a_storm_is_accounted_for(write: Write, tmp_path: Path) -> None:
    """Of four writers that open, append and close for each row, none loses one or has it twice."""
    weather = storm(str(tmp_path / "ledger.jsonl"), rows=1500, writers=4, write=write)
    assert (weather.lost, weather.doubled, weather.torn) == (0, 0, 0)
    assert weather.dropped == weather.expired == 5400
    assert weather.prunes >= 1
