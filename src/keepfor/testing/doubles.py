"""Doubles for tests: a clock that is set, and a store of items in memory."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Literal

from msgspec.structs import replace

from keepfor.errors import StoreBusy
from keepfor.items import Decision, Item, Outcome
from keepfor.stores.base import Progress
from keepfor.times import parse_now


class FixedClock:
    """Tells the instant that it is set to, wherever a `clock` is asked for.

    Parameters:
        now: an aware datetime, or text such as `2026-07-26T12:00:00Z`.
    """

    def __init__(self, now: datetime | str = "2026-07-26") -> None:
        self.now = parse_now(now)

    def __call__(self) -> datetime:
        return self.now

    def advance(self, **span: float) -> datetime:
        """Set it forward, or backward: `clock.advance(days=1)`; takes what `timedelta` takes."""
        self.now += timedelta(**span)
        return self.now


class MemoryStore:
    """A store of items that lives in memory, to try a policy out or to test without a disk.

    Parameters:
        items: what it holds at first.
        name: tells it from other such stores.

    Attributes:
        items: what it holds, by id.
        failing: what the system says when it is to act on that id.
    """

    kind = "memory"
    settings = MappingProxyType[str, str]({})

    def __init__(self, items: Iterable[Item] = (), name: str = "memory") -> None:
        self.items = {item.id: item for item in items}
        self.failing: dict[str, str] = {}
        self.target = f"memory:{name}"
        self._lock = threading.Lock()

    @contextmanager
    def locked(self, wait: float = 0.0) -> Iterator[None]:
        """See `Store.locked`."""
        if not self._lock.acquire(timeout=wait):
            raise StoreBusy(path=self.target, waited=wait)
        try:
            yield
        finally:
            self._lock.release()

    def scan(self, progress: Progress | None = None) -> Iterator[Item]:
        """Every item that is there."""
        items = list(self.items.values())
        for done, item in enumerate(items, start=1):
            yield item
            if progress:
                progress(done, len(items))

    def apply(self, decisions: Iterable[Decision]) -> Iterator[Outcome]:
        """Carry decisions out one by one, each only if its item is as its fingerprint says."""
        for said in decisions:
            result, why = self._apply(said)
            yield Outcome(
                id=said.id, action=said.action, reason=said.reason, result=result, why=why
            )

    def _apply(self, said: Decision) -> tuple[Literal["applied", "skipped", "failed"], str]:
        item = self.items.get(said.id)
        if item is None:
            return "skipped", "it is gone already"
        if item.fingerprint != said.fingerprint:
            return "skipped", "it changed since the plan"
        if said.id in self.failing:
            return "failed", self.failing[said.id]
        if said.action == "delete":
            del self.items[said.id]
        else:
            self.items[said.id] = replace(item, flagged_by=said.rule)
        return "applied", ""
