"""The loop itself: each store swept at once and then again and again, off the event loop."""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import Awaitable, Callable, Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Self

from keepfor import config as configuration
from keepfor.config.faults import nearest
from keepfor.errors import ConfigError, UnknownStore
from keepfor.items import Report
from keepfor.sweeper.keeping import LOG, Keeper
from keepfor.times import parse_duration, utc_now

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

#: How long to sleep at the most, in seconds: a timer of the system's stands still while a laptop
#: sleeps, so that what became due meanwhile is noticed this long after it woke.
LOOK = 60.0


def steady() -> float:
    """Seconds that nobody sets, and that go on while the machine is suspended."""
    # CLOCK_MONOTONIC does so on macOS, and on Linux it does not.
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def within_a_tenth() -> float:
    """A factor from 0.9 to 1.1, so that many sweepers do not all start at once."""
    return random.uniform(0.9, 1.1)  # noqa: S311 - nothing is secret here


class Sweeper:
    """Holds stores to their policies in the background of an asyncio program.

    Each store is swept at the start and then every interval, in a thread of its own: one that hangs
    or fails holds no other up, and never the event loop. What goes wrong is logged as a warning by
    the logger `keepfor.sweeper`, put in the trail, and tried again next time.

    Parameters:
        config: the path of a `keepfor.yaml`, or a configuration that was loaded.
        stores: the names of those to sweep; None for all.
        interval: how long between two sweeps of a store (`1h`, a timedelta); None for what the
            configuration says of each.
        clock: tells the present instant, which ages are judged by.
        jitter: gives the factor that the next interval is multiplied by.
        steady: seconds that nobody sets, which intervals are measured by.
        sleep: waits for so many seconds.

    Raises:
        BadConfig: when the configuration is wrong.
        UnknownStore: when it has no store of one of these names.
        ConfigError: when the interval is none.
    """

    def __init__(
        self,
        config: configuration.Config | str | os.PathLike[str],
        *,
        stores: Iterable[str] | None = None,
        interval: str | timedelta | None = None,
        clock: Callable[[], datetime] = utc_now,
        jitter: Callable[[], float] = within_a_tenth,
        steady: Callable[[], float] = steady,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        if not isinstance(config, configuration.Config):
            config = configuration.load(Path(config))
        names = list(config.stores) if stores is None else list(dict.fromkeys(stores))
        for name in names:
            _must_be_one(name, config.stores, config.path)
        self._interval = None if interval is None else _bounded(interval)
        self._keepers = {name: Keeper(config, name, clock, steady) for name in names}
        self._clock, self._jitter, self._steady, self._sleep = clock, jitter, steady, sleep
        self._path = config.path
        self._workers: dict[str, ThreadPoolExecutor] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._due: dict[str, float] = {}

    @property
    def is_running(self) -> bool:
        """Whether it was started and not stopped since."""
        return any(not task.done() for task in self._tasks)

    @property
    def last_report(self) -> dict[str, Report | Exception]:
        """What came of each store's last sweep; a store that was not swept yet is not in it."""
        standings = ((name, keeper.standing.last) for name, keeper in self._keepers.items())
        return {name: last for name, last in standings if last is not None}

    @property
    def next_run(self) -> dict[str, datetime]:
        """When each store is swept next; past for one that is just being swept, none if stopped."""
        now, steady = self._clock(), self._steady()
        due = self._due if self.is_running else {}
        return {name: now + timedelta(seconds=at - steady) for name, at in due.items()}

    async def start(self) -> None:
        """Begin to sweep; nothing if it has begun. One that is being stopped begins after that."""
        if self.is_running and any(task.cancelling() for task in self._tasks):
            await asyncio.wait(self._tasks)
        if not self.is_running:
            self._due = dict.fromkeys(self._keepers, self._steady())
            self._tasks = [asyncio.create_task(self._keep(each)) for each in self._keepers.values()]

    async def stop(self) -> None:
        """End it; a sweep at work stops at its next slice. It may be started again."""
        tasks = self._tasks
        for task in tasks:
            # A second cancellation would not wait for the sweep to end.
            if not task.cancelling():
                task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        if self._tasks is not tasks:
            # Somebody stopped it as well, and perhaps it was started again.
            return
        self._tasks = []
        self._due.clear()
        while self._workers:
            self._workers.popitem()[1].shutdown(wait=False)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def sweep_now(self, store: str | None = None) -> dict[str, Report | Exception]:
        """Sweep without waiting for the time, whether it is running or not.

        Parameters:
            store: its name; None for all.

        Returns:
            What came of it, by store: the report, or what it failed with.

        Raises:
            UnknownStore: when none that is swept here has that name.
        """
        if store is not None:
            _must_be_one(store, self._keepers, self._path)
        keepers = list(self._keepers.values()) if store is None else [self._keepers[store]]
        await asyncio.gather(*map(self._sweep, keepers))
        return {name: last for name, last in self.last_report.items() if store in (None, name)}

    @cached_property
    def registry(self) -> CollectorRegistry:
        """Its metrics, in a registry of its own."""
        from keepfor.sweeper.metrics import registry

        return registry(self._keepers.values(), lambda: self.next_run, self._steady)

    def metrics_text(self) -> str:
        """Its metrics, in Prometheus' text form.

        Raises:
            ConfigError: when prometheus-client is not installed.
        """
        from keepfor.sweeper.metrics import text

        return text(self.registry)

    async def _keep(self, keeper: Keeper) -> None:
        pause = self._interval or keeper.interval
        while True:
            self._due[keeper.name] = self._steady()
            try:
                await self._sweep(keeper)
            except Exception:  # noqa: BLE001 - housekeeping never hurts the host
                # A mistake of ours, or of who logs: the next sweep may fare better.
                with suppress(Exception):
                    LOG.exception("The sweep of %s ended in an error of its own.", keeper.name)
            due = self._steady() + pause.total_seconds() * self._jitter()
            self._due[keeper.name] = due
            while (left := due - self._steady()) > 0:
                await self._sleep(min(left, LOOK))

    async def _sweep(self, keeper: Keeper) -> None:
        """Sweep in the store's own thread; when cancelled, ask it to stop and wait until it has."""
        # One thread each, so that two sweeps of one store take turns, and no other store waits.
        worker = self._workers.get(keeper.name)
        if worker is None:
            worker = ThreadPoolExecutor(1, thread_name_prefix=f"keepfor-{keeper.name}")
            self._workers[keeper.name] = worker
        asked = Event()
        work = asyncio.get_running_loop().run_in_executor(worker, keeper.sweep, asked)
        try:
            await asyncio.shield(work)
        except asyncio.CancelledError:
            asked.set()
            await asyncio.wait([work])
            raise


def _must_be_one(name: str, stores: Collection[str], path: Path) -> None:
    if name not in stores:
        raise UnknownStore(name=name, where=path, fix=nearest(name, stores))


def _bounded(interval: str | timedelta) -> timedelta:
    span = parse_duration(interval)
    if span is None:
        raise ConfigError(
            where="interval",
            what="a sweeper that waits for ever sweeps once.",
            fix="Write how long, such as 1h; or run `keepfor run --once`.",
        )
    return span
