"""A ledger that expires as it is written: append, probe, and prune when the probe trips.

The module is imported by every program that appends, often one that lives for a single row, so
what only a prune needs is imported by the prune.
"""

from __future__ import annotations

import os
from datetime import datetime, timedelta

from keepfor.errors import BadPolicy, ConfigError
from keepfor.stores import files
from keepfor.times import (
    DAY,
    UNITS,
    Known,
    before,
    instant_of,
    load_timezone,
    parse_duration,
    parse_now,
    utc_now,
)
from keepfor.writers import rowjson

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Literal

    from keepfor.history import Window
    from keepfor.items import Report
    from keepfor.plan import Plan
    from keepfor.policy.rules import Policy
    from keepfor.stores.ledger import LedgerStore
    from keepfor.sweep import Recorder

    #: The inode, when it was pruned (seconds since 1970), its size then, and whether rows went.
    _Attempt = tuple[int, float, int, bool]

#: How long, and for how much growth, an append leaves a ledger alone after it pruned it. Without
#: this, a ledger whose rows expire one by one would be rewritten by each append.
_PAUSE = timedelta(hours=1)
_GROWTH = 1.1

_FIRST_READ = 1 << 12
_LONGEST_FIRST = 1 << 16


class Ledger:
    """An append-only JSONL file that is held to a policy by its own appends.

    Safe across threads and forks; nothing is held open between two appends.

    Parameters:
        path: the file; it and its folder are made by the first append.
        keep_for: how long a row stays: `90d`, a timedelta, or `forever`.
        max_bytes: how large the file may grow (`25MiB`, or a number of bytes); None for no bound.
        keep_last: how many of the newest rows stay, whatever their age.
        time: the field that holds a row's timestamp; a dotted path reaches into objects.
        unit: what a number in it counts since 1970 (`s`, `ms`, `us`, `ns`).
        timezone: the zone of timestamps that name none.
        unreadable: whether rows that no reader can use, or that have no usable time, are dropped
            or kept.
        best_effort: whether a failed append is logged and counted, and not raised.
        trail: where prunes are recorded; None for nowhere.
        clock: tells the present instant.

    Raises:
        ConfigError: when one of these cannot be understood, or nothing would ever be removed.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        keep_for: str | timedelta | None = None,
        max_bytes: str | int | None = None,
        keep_last: int = 0,
        time: str = "ts",
        unit: Literal["s", "ms", "us", "ns"] | None = None,
        timezone: str = "UTC",
        unreadable: Literal["drop", "keep"] = "drop",
        best_effort: bool = False,
        trail: Recorder | None = None,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        if keep_for is None and max_bytes is None:
            raise BadPolicy(
                what="nothing would ever be removed.",
                fix='Give keep_for="90d" or max_bytes="25MiB"; keep_for="forever" says never.',
            )
        _check(keep_last, time, unit, timezone, unreadable, trail, clock)
        self.path = _path(path)
        self.failed_appends = 0
        self._keep_for = None if keep_for is None else parse_duration(keep_for)
        self._max_bytes = None if max_bytes is None else _size(max_bytes)
        self._keep_last = keep_last
        self._time = time
        self._unit = unit
        self._zone = load_timezone(timezone)
        self._unreadable = unreadable
        self._best_effort = best_effort
        self._trail = trail
        self._clock = clock
        #: The first line as it was last read, and whether and when it expires.
        self._first: tuple[bytes, datetime | None] = (b"", None)
        self._attempt: _Attempt | None = None
        self._warned = False

    def append(self, row: Mapping[str, Any]) -> None:
        """Write a row at the end, in one write, and prune if the oldest row has expired.

        Parameters:
            row: what `json.dumps` takes. Its time field must hold its timestamp: a row without a
                usable one is written and logged as a warning, and goes with the next prune.

        Raises:
            OSError, TypeError, ValueError: when the row could not be written, unless the ledger
                is `best_effort`. What a prune does never reaches the caller.
        """
        try:
            data = f"{rowjson.encode(row)}\n".encode()
            self._warn_of_timeless(row)
            descriptor = files.open_for_append(self.path)
            try:
                start, end = files.append(descriptor, data, self.path)
                due = self._due(descriptor, end)
            finally:
                files.close(descriptor)
        except Exception as error:
            if not self._best_effort:
                raise
            self.failed_appends += 1
            _log("could not append to %s: %s", self.path, error)
            return
        if due:
            self._tend(start)

    def plan(self, now: datetime | str | None = None) -> Plan:
        """What a prune would do. Writes nothing.

        Parameters:
            now: the instant to judge ages by; None for the present.
        """
        from keepfor import plan

        store = self._store()
        return plan.build(store, self._policy(), self._moment(now), name=store.target)

    def prune(self, now: datetime | str | None = None) -> Report:
        """Drop every row that is past the window, that no reader can use, or above the ceiling.

        Parameters:
            now: the instant to judge ages by; None for the present.

        Raises:
            WrongTimeField: when the rows do not carry their time in the field that was given.
            StoreBusy: when another prune does not end.
            StoreError: when the file cannot be read or replaced. It is as it was then.
        """
        return self._prune(self._moment(now))

    def window(self, now: datetime | str | None = None) -> Window:
        """How much history the ledger holds, and how long its oldest row has been due.

        Parameters:
            now: the instant to judge ages by; None for the present.
        """
        import msgspec

        from keepfor import history
        from keepfor.policy import rules

        # A ceiling takes rows as well, but they are there.
        by_age = msgspec.structs.replace(self._policy(), max_bytes=None)
        return history.window(self._store().survey(rules.terms(by_age, self._moment(now))))

    def _moment(self, now: datetime | str | None) -> datetime:
        return self._clock() if now is None else parse_now(now)

    def _store(self) -> LedgerStore:
        from keepfor.stores import ledger, rows

        form = rows.RowFormat(field=self._time, unit=self._unit, zone=self._zone)
        return ledger.ledger_at(self.path, form=form, unreadable=self._unreadable)

    def _policy(self) -> Policy:
        from keepfor.policy import rules

        return rules.Policy(
            rules=rules.keep_for(self._keep_for),
            max_bytes=self._max_bytes,
            keep_last=self._keep_last,
        )

    def _prune(self, now: datetime, **how: Any) -> Report:
        from keepfor import sweep

        store = self._store()
        return sweep.prune(store, self._policy(), now, name=store.target, trail=self._trail, **how)

    def _due(self, descriptor: int, end: int) -> bool:
        """The probe: whether the oldest row has expired, or the file is above its ceiling."""
        if self._max_bytes is not None and end > self._max_bytes:
            return True
        if self._keep_for is None:
            return False
        try:
            line, instant = self._first
            if not line or os.pread(descriptor, len(line), 0) != line:
                line, instant = self._first = self._read_first(descriptor)
            if instant is None:
                return True
            now = self._clock()
            # A first row from the future would hide for ever what expires behind it.
            return instant < before(now, self._keep_for) or instant - now > DAY
        except Exception as error:  # noqa: BLE001 - the row is written; no probe undoes that
            _log("could not probe %s: %s", self.path, error)
            return False

    def _warn_of_timeless(self, row: Mapping[str, Any]) -> None:
        """Say so, once, when a row is written that the next prune will take for debris."""
        if self._warned or self._unreadable == "keep":
            return
        try:
            # As nearly every row tells it; only the others are looked at closely, append by append.
            text = row[self._time]
            usual = text[4] == "-" and datetime.fromisoformat(text) is not None
        except (IndexError, KeyError, TypeError, ValueError):
            usual = False
        if usual:
            return
        instant = instant_of(row, self._time, self._zone, self._unit)
        if not isinstance(instant, Known):
            self._warned = True
            _log("a row for %s goes with its next prune: %s", self.path, instant.why)

    def _read_first(self, descriptor: int) -> tuple[bytes, datetime | None]:
        line = b""
        for size in (_FIRST_READ, _LONGEST_FIRST):
            line = os.pread(descriptor, size, 0)
            if cut := line.find(b"\n") + 1:
                line = line[:cut]
                break
        try:
            instant = instant_of(rowjson.decode(line), self._time, self._zone, self._unit)
        except (ValueError, RecursionError):
            return line, None
        return line, instant.instant if isinstance(instant, Known) else None

    def _tend(self, reach: int) -> None:
        """Prune after an append; its row, at `reach`, and what follows are out of reach."""
        try:
            now = self._clock()
            if self._left_alone(now):
                return
            pruned = False
            try:
                report = self._prune(now, reach=reach, unattended=True, wait=0.0)
                pruned = bool(report.applied)
            finally:
                self._remember(now, pruned)
            if report.applied or report.notes:
                _log_report(report)
        except Exception as error:  # noqa: BLE001 - housekeeping never hurts the host
            _log("could not prune %s: %s", self.path, error)

    def _left_alone(self, now: datetime) -> bool:
        """Whether an append pruned this very file lately, and it has hardly grown since."""
        status = os.stat(self.path)
        attempt = self._attempt
        if attempt is None or attempt[0] != status.st_ino:
            attempt = _last_attempt(self.path, status.st_ino)
        if attempt is None:
            return False
        _, at, size, pruned = attempt
        if pruned and self._max_bytes is not None and status.st_size > self._max_bytes:
            return False
        age = now.timestamp() - at
        return 0 <= age < _PAUSE.total_seconds() and size <= status.st_size < size * _GROWTH

    def _remember(self, now: datetime, pruned: bool) -> None:
        from contextlib import suppress

        status = os.stat(self.path)
        self._attempt = (status.st_ino, now.timestamp(), status.st_size, pruned)
        # Also for the next process, where the file system can tell it.
        with suppress(OSError, AttributeError):
            text = f"{now.timestamp()} {status.st_size} {int(pruned)}"
            os.setxattr(self.path, files.ATTEMPT, text.encode())


def _last_attempt(path: str, inode: int) -> _Attempt | None:
    """What another process, or this one before it ended, noted of its last prune of the file."""
    try:
        at, size, pruned = os.getxattr(path, files.ATTEMPT).split()
        return inode, float(at), int(size), pruned == b"1"
    except (OSError, AttributeError, ValueError):
        return None


def _check(
    keep_last: object,
    time: object,
    unit: object,
    timezone: object,
    unreadable: object,
    trail: object,
    clock: object,
) -> None:
    # What only a prune would look at is refused here, for nobody hears of it there.
    _check_choice("unit", unit, (None, *UNITS))
    _check_choice("unreadable", unreadable, ("drop", "keep"))
    if not isinstance(keep_last, int) or isinstance(keep_last, bool) or keep_last < 0:
        raise _bad("keep_last", keep_last, "number of rows", "0, or a number such as 100")
    if not isinstance(time, str) or not all(time.split(".")):
        raise _bad("time", time, "field", "its name, such as ts or meta.ts")
    if not isinstance(timezone, str):
        raise _bad("timezone", timezone, "time zone", "a name such as Europe/Berlin")
    if not callable(clock):
        raise _bad("clock", clock, "clock", "a function that returns an aware datetime")
    if trail is not None and not hasattr(trail, "begin"):
        raise _bad("trail", trail, "trail", 'Trail("trail.jsonl"), or leave it out')


def _path(path: object) -> str:
    if isinstance(path, str | bytes | os.PathLike):
        text = os.fsdecode(path)
        if text and "\0" not in text:
            return text
    raise _bad("path", path, "path", "where the ledger lies, such as recall-history.jsonl")


def _size(size: str | int) -> int:
    from keepfor.sizes import parse_size

    return parse_size(size)


def _check_choice(name: str, value: object, choices: tuple[object, ...]) -> None:
    if value not in choices:
        raise ConfigError(
            where=name,
            what=f"{value!r} is not one of {', '.join(map(repr, choices))}.",
            fix="Write one of those.",
        )


def _bad(name: str, value: object, noun: str, fix: str) -> ConfigError:
    return ConfigError(where=name, what=f"{value!r} is no {noun}.", fix=f"Write {fix}.")


def _log_report(report: Report) -> None:
    import logging

    logging.getLogger("keepfor").info(
        "pruned %s: %d expired, %d unreadable, %d over the ceiling, %d kept%s",
        report.target,
        report.expired,
        report.unreadable,
        report.over_ceiling,
        report.kept,
        "".join(f"; {note}" for note in report.notes),
    )


def _log(message: str, *facts: object) -> None:
    import logging

    logging.getLogger("keepfor").warning(message, *facts)
