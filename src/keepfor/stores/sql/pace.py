"""How many rows one transaction deletes, so that few notice."""

from __future__ import annotations

from sqlalchemy import Connection

from keepfor.stores.sql.database import KEEPS_WRITERS

_FIRST, _MOST = 200, 20_000


class Pace:
    """How many rows to delete at once, learnt from how long it took.

    Parameters:
        hold: how long one transaction is to take, in seconds.
    """

    def __init__(self, hold: float) -> None:
        self.size = _FIRST
        self.hold = hold

    def learn(self, rows: int, worked: float, committed: float) -> None:
        """Adapt to a transaction.

        Parameters:
            rows: how many it was of.
            worked: how long it took until its end, in seconds.
            committed: how long that end took, in seconds. On a slow disk it is no reason for ever
                more and smaller ones, so at least half the time is for the rows.
        """
        if rows:
            aim = max(self.hold - committed, self.hold / 2)
            fitting = rows * min(2.0, max(0.5, aim / max(worked, 1e-6)))
            self.size = max(1, min(_MOST, int(fitting)))


def hold_of(connection: Connection) -> float:
    """How long one transaction is to take, in seconds, so that few notice."""
    if connection.dialect.name == "postgresql":
        # Only those wait who want the same rows.
        return 0.2
    # With a rollback journal, some milliseconds of each go into making it last.
    return 0.04 if connection.info.get(KEEPS_WRITERS) else 0.02
