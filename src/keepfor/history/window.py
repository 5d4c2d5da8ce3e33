"""What history a store really holds, and by how much it has outstayed its policy."""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec

from keepfor.items import Survey
from keepfor.times import DAY


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """How much history a store of rows holds.

    Parameters:
        oldest: the oldest row's instant; None where none is known.
        newest: the newest row's.
        rows: how many there are.
        bytes: the store's size.
        days: from the oldest row to the newest.
        lag: how long the oldest row that the policy would take by age has been due.
    """

    oldest: datetime | None
    newest: datetime | None
    rows: int
    bytes: int
    days: float
    lag: timedelta


def window(survey: Survey) -> Window:
    """The history that a survey found, what is due included."""
    oldest, newest = survey.due or survey.oldest, survey.newest
    return Window(
        oldest=oldest,
        newest=newest,
        rows=survey.scanned,
        bytes=survey.bytes_before,
        days=(newest - oldest) / DAY if newest and oldest else 0.0,
        lag=survey.lag,
    )
