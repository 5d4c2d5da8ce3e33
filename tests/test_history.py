"""What history a store holds, and by how much it has outstayed its policy."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from keepfor.history import window
from keepfor.items import Survey, Terms
from keepfor.stores.ledger import ledger_at


def july(day: int, hour: int = 0) -> datetime:
    return datetime(2026, 7, day, hour, tzinfo=UTC)


def test_an_empty_store_holds_no_history() -> None:
    """Without rows nothing is known, no days are held and nothing is late."""
    held = window(Survey(cutoff=july(1)))
    assert (held.oldest, held.newest, held.rows, held.bytes) == (None, None, 0, 0)
    assert (held.days, held.lag) == (0, timedelta())


def test_what_is_due_is_still_held() -> None:
    """The history begins with the oldest row that is there, also when it is about to go."""
    survey = Survey(
        scanned=12, bytes_before=340, cutoff=july(8), due=july(5), oldest=july(9), newest=july(20)
    )
    held = window(survey)
    assert (held.oldest, held.newest, held.days) == (july(5), july(20), 15)
    assert (held.rows, held.bytes) == (12, 340)


def test_days_are_not_rounded() -> None:
    """Half a day is half a day."""
    assert window(Survey(oldest=july(5), newest=july(6, hour=12))).days == 1.5


@pytest.mark.parametrize(
    ("rows", "cutoff", "late"),
    [
        ([], july(8), timedelta()),
        ([july(8), july(9)], july(8), timedelta()),
        ([july(5)], None, timedelta()),
        ([july(9), july(5), july(7)], july(8), timedelta(days=3)),
        ([july(7, hour=23)], july(8), timedelta(hours=1)),
    ],
)
def test_lag_is_read_from_the_data(
    tmp_path: Path, rows: list[datetime], cutoff: datetime | None, late: timedelta
) -> None:
    """Lag is how long the oldest row that would go by age has been past the cutoff."""
    path = tmp_path / "ledger.jsonl"
    path.write_text("".join(f'{{"ts": "{row.isoformat()}"}}\n' for row in rows))
    survey = ledger_at(path).survey(Terms(now=july(20), cutoff=cutoff))
    assert window(survey).lag == late
