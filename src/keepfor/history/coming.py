"""When a store is swept next, as far as anybody can tell who is not the one that sweeps it."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal

import msgspec

from keepfor.times import DAY, Known, parse_instant
from keepfor.trail import Sweep

#: By how much more than its interval a sweeper may wait.
_JITTER = 1.1


class NextRun(msgspec.Struct, frozen=True, kw_only=True):
    """When a store is swept next.

    Parameters:
        by: `background`: a program that sweeps it again and again; `write site`: the program that
            appends to it, when it next appends and something is due.
        process: the number of the `keepfor run` that does it, where it is one.
        latest: when it is swept at the latest; None where that depends on the next append.
    """

    by: Literal["background", "write site"]
    process: int | None = None
    latest: datetime | None = None


def lock_of(state: Path, target: str) -> Path:
    """The file that a `keepfor run` has locked for as long as it looks after a store.

    Parameters:
        state: the state folder.
        target: the store's resolved address.
    """
    digest = hashlib.sha256(target.encode()).hexdigest()
    return state / f"run-{digest[:16]}.lock"


def process_of(state: Path, target: str) -> int | None:
    """The number of the `keepfor run` that looks after a store; None where none does.

    The lock is not tried, for one that was just starting would take that for another one.
    """
    with suppress(OSError, ValueError, OverflowError):
        process = int(lock_of(state, target).read_text(encoding="ascii"))
        # One of another user may not be asked, and lives.
        with suppress(PermissionError):
            os.kill(process, 0)
        return process
    return None


def next_run(
    last: Sweep | None, interval: timedelta, now: datetime, process: int | None
) -> NextRun | None:
    """When a store is swept next.

    Parameters:
        last: its last sweep on record.
        interval: how often it is swept in the background.
        now: the present instant.
        process: the `keepfor run` that looks after it, if there is one.

    Returns:
        None where nothing is known to sweep it by itself. A program's own sweeper is known by the
        record that it leaves once a day at the least.
    """
    latest = now + interval * _JITTER
    if process is not None:
        return NextRun(by="background", process=process, latest=latest)
    if last is None:
        return None
    if last.started_by == "write site":
        return NextRun(by="write site")
    at = parse_instant(last.at, source="ts")
    recent = isinstance(at, Known) and now - at.instant <= DAY + interval * _JITTER
    if last.started_by == "background" and recent:
        return NextRun(by="background", latest=latest)
    return None
