"""A connection of SQLite that waits for others in steps so short that neither side starves.

SQLite's own waiting grows to a tenth of a second. Where readers and writers share a lock, whoever
waits like that finds it taken again each time.
"""

from __future__ import annotations

import random
import sqlite3
import time
from typing import Any

from keepfor.stores.sql.sqlitesaid import is_busy

#: The first and the longest pause between two tries, in seconds.
_SHORTEST, _LONGEST = 0.001, 0.005


class PatientCursor(sqlite3.Cursor):
    """Tries a statement again for as long as others hold a lock and its connection is patient."""

    def execute(self, sql: str, parameters: Any = (), /) -> PatientCursor:
        """As the original does it.

        Raises:
            sqlite3.OperationalError: SQLITE_BUSY when patience ran out, or whatever else it says.
        """
        assert isinstance(self.connection, PatientConnection)
        began, pause = time.monotonic(), _SHORTEST
        while True:
            try:
                super().execute(sql, parameters)
            except sqlite3.OperationalError as error:
                left = self.connection.patience - (time.monotonic() - began)
                if not is_busy(error) or left <= 0:
                    raise
            else:
                return self
            # Two that wait must not wait in step.
            time.sleep(min(pause * random.uniform(0.5, 1.5), left))  # noqa: S311
            pause = min(pause * 1.5, _LONGEST)


class PatientConnection(sqlite3.Connection):
    """A connection whose statements wait for others.

    Attributes:
        patience: how long each of them does, in seconds.
    """

    patience = 0.0

    def cursor(self, factory: Any = PatientCursor) -> Any:
        """A cursor that is as patient."""
        return super().cursor(factory)

    def execute(self, sql: str, parameters: Any = (), /) -> PatientCursor:
        """A new cursor's; the original would take one that is not patient."""
        cursor = self.cursor()
        assert isinstance(cursor, PatientCursor)
        return cursor.execute(sql, parameters)
