"""A table of a database that a program holds to a policy: plan, and prune."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from keepfor.errors import BadPolicy, ConfigError
from keepfor.times import UNITS, load_timezone, parse_duration, parse_now, utc_now

if TYPE_CHECKING:
    from keepfor.items import Report
    from keepfor.plan import Plan
    from keepfor.policy.rules import Policy
    from keepfor.stores.table import Dependent, Record, TableStore
    from keepfor.sweep import Recorder


class Table:
    """Rows of a database that expire, with everything that hangs on them.

    Nothing is held open between two calls.

    Parameters:
        url: `sqlite:///FILE` or `postgresql://USER:PASSWORD@HOST/NAME`, with whatever driver.
        table: the table's name, or schema and name.
        time: the column that holds a row's time.
        key: the columns that tell a row from all others; empty for the primary key.
        type: the column that holds a row's type.
        keep_for: how long a row stays: `90d`, a timedelta, or `forever` (or None).
        keep_types: how long rows of certain types stay instead, by type; it needs `type`.
        max_count: how many rows may stay; None for no bound.
        keep_last: how many of the newest rows stay, whatever their age.
        dependents: the tables of which rows go with the row that they hang on.
        orphans: whether rows of those tables are deleted whose own row is gone already.
        record: the row that each sweep leaves in the table itself; None for none.
        unit: what a time that is a number counts since 1970 (`s`, `ms`, `us`, `ns`); None where
            the numbers tell.
        timezone: the zone of times that name none.
        trail: where prunes are recorded; None for nowhere.
        folder: where a plan keeps its keys, if they do not grow; None for keepfor's own.
        clock: tells the present instant.

    Raises:
        ConfigError: when one of these cannot be understood, or nothing would ever be removed.
    """

    def __init__(
        self,
        url: str,
        table: str,
        *,
        time: str,
        key: Sequence[str] = (),
        type: str | None = None,  # noqa: A002 - what it is called everywhere
        keep_for: str | timedelta | None = None,
        keep_types: Mapping[str, str | timedelta | None] | None = None,
        max_count: int | None = None,
        keep_last: int = 0,
        dependents: Sequence[Dependent] = (),
        orphans: Literal["keep", "delete"] = "keep",
        record: Record | None = None,
        unit: Literal["s", "ms", "us", "ns"] | None = None,
        timezone: str = "UTC",
        trail: Recorder | None = None,
        folder: Path | None = None,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        if keep_for is None and not keep_types and max_count is None:
            raise BadPolicy(
                what="nothing would ever be removed.",
                fix='Give keep_for="90d" or max_count=100_000; keep_for="forever" says never.',
            )
        if keep_types and type is None:
            raise ConfigError(
                where="keep_types",
                what="no column is named that holds a row's type.",
                fix="Give `type`, or leave it out.",
            )
        if unit not in (None, *UNITS):
            raise ConfigError(
                where="unit", what=f"{unit!r} is no unit.", fix=f"Write one of {', '.join(UNITS)}."
            )
        self._address = url
        self._table = table
        self._keep_for = None if keep_for is None else parse_duration(keep_for)
        self._keep_types = {
            name: None if duration is None else parse_duration(duration)
            for name, duration in (keep_types or {}).items()
        }
        self._max_count = max_count
        self._keep_last = keep_last
        self._said: dict[str, Any] = {
            "time": time,
            "key": (key,) if isinstance(key, str) else tuple(key),
            "type": type,
            "dependents": tuple(dependents),
            "record": record,
            "orphans": orphans,
            "unit": unit,
            "zone": load_timezone(timezone),
        }
        self._trail = trail
        self._folder = folder
        self._clock = clock
        self._policy()

    def plan(self, now: datetime | str | None = None) -> Plan:
        """What a prune would do. Writes nothing to the database.

        Parameters:
            now: the instant to judge ages by; None for the present.
        """
        from keepfor import plan

        store = self._store()
        return plan.build(store, self._policy(), self._moment(now), name=store.target)

    def prune(self, now: datetime | str | None = None) -> Report:
        """Delete the rows that are past their time or above the bound, and what hangs on them.

        Parameters:
            now: the instant to judge ages by; None for the present.

        Raises:
            WrongTimes: when times are of more than one shape. Nothing was deleted then.
            StoreBusy: when another sweep does not end.
            SweepStopped: when only some of the rows could be deleted.
            StoreError: when none could.
        """
        from keepfor import sweep

        store = self._store()
        return sweep.prune(
            store, self._policy(), self._moment(now), name=store.target, trail=self._trail
        )

    def _moment(self, now: datetime | str | None) -> datetime:
        return self._clock() if now is None else parse_now(now)

    def _store(self) -> TableStore:
        from keepfor.stores.table import table_at

        folder = self._folder
        if folder is None:
            import platformdirs

            folder = platformdirs.user_state_path("keepfor")
        return table_at(self._address, self._table, folder=folder, **self._said)

    def _policy(self) -> Policy:
        from keepfor.policy import rules

        by_type = [
            rule
            for name, duration in self._keep_types.items()
            for rule in rules.keep_type(name, name, duration)
        ]
        return rules.Policy(
            rules=(*by_type, *rules.keep_for(self._keep_for)),
            max_count=self._max_count,
            keep_last=self._keep_last,
        )
