"""Picks the rows that a part takes for certain, some at a time, without their keys coming here."""

from __future__ import annotations

from sqlalchemy import Connection, Row, select

from keepfor.stores.sql.keys import Gathered, gather
from keepfor.stores.sql.reach import Reach, beyond, up_to


class Picking:
    """Goes through what a part takes for certain, the oldest first.

    In SQLite the next rows are picked before the transaction that deletes them, so that its lock
    is not held for the search; in PostgreSQL within it, where each is locked as it is found.

    Parameters:
        reach: the part's.

    Attributes:
        done: whether nothing is left to pick.
    """

    def __init__(self, reach: Reach) -> None:
        self.done = False
        self._reach = reach
        self._last: Row[tuple[object, ...]] | None = None
        self._version: int | None = None

    def before(self, connection: Connection, most: int) -> Gathered | None:
        """The next rows, where they are picked before the transaction; None where within it."""
        if connection.dialect.name == "postgresql":
            return None
        self._version = _version(connection)
        return self._pick(connection, most)

    def within(self, connection: Connection, picked: Gathered | None, most: int) -> Gathered:
        """Those of them, in the transaction, that are to go; locked ones are passed over."""
        if picked is None:
            return self._pick(connection, most)
        if self._version == _version(connection):
            return picked
        return self._reach.still(connection, picked, 1, certain=True)

    def _pick(self, connection: Connection, most: int) -> Gathered:
        layout = self._reach.layout
        condition = self._reach.certain
        if self._last is not None:
            condition &= beyond(layout.order, self._last)
        edge = select(*layout.order).where(condition).order_by(*layout.order)
        ends = connection.execute(edge.offset(most - 1).limit(2)).all()
        self.done = len(ends) < 2
        if not self.done:
            self._last = ends[0]
            condition = up_to(layout.order, self._last) & condition
        found = select(*layout.key).where(condition).with_for_update(skip_locked=True)
        return gather(connection, found, 0, numbers=layout.grows)


def _version(connection: Connection) -> int:
    """Changes in SQLite whenever somebody else changed the database."""
    return int(connection.exec_driver_sql("PRAGMA data_version").scalar_one())
