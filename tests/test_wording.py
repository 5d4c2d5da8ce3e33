"""Numbers, ages and reasons are written so that a person takes them in at once."""

from __future__ import annotations

import pytest

from keepfor import wording
from keepfor.items import Evidence


@pytest.mark.parametrize(
    ("unused_days", "said"),
    [
        (0.0, "last recalled just now by log, limit 90d"),
        (12.0, "last recalled 12d ago by log, limit 90d"),
    ],
)
def test_how_long_ago_a_recall_was_is_told(unused_days: float, said: str) -> None:
    """One of this moment is no odd fraction of a second."""
    facts: Evidence = {"threshold": "90d", "unused_days": unused_days, "source": "log"}
    assert wording.threshold(facts) == said
