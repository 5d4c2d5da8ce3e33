"""What the tests of the sweeper share: a folder with stores, a timer that is moved, a gate."""

from __future__ import annotations

import asyncio
import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from keepfor import Sweeper, sweep
from keepfor.items import Report
from keepfor.plan import Plan, build
from keepfor.testing import FixedClock
from keepfor.trail import Trail

SAMPLE = Path(__file__).parents[1] / "data" / "agentm" / "recall-history.jsonl"

#: The instant that the samples' known figures are for.
NOW = datetime(2026, 7, 26, tzinfo=UTC)

#: Only a test that hangs waits as long as this, in seconds.
LONG = 60


class HandTimer:
    """Time that goes on when it is told to, for the sweepers of one test.

    Attributes:
        now: seconds, as `steady` tells them.
        asked: for how long each sleeper wanted to sleep, in order.
    """

    def __init__(self) -> None:
        self.now = 0.0
        self.asked: list[float] = []
        self._sleepers: list[asyncio.Future[None]] = []
        self._changed = asyncio.Event()

    def steady(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.asked.append(seconds)
        sleeper = asyncio.get_running_loop().create_future()
        self._sleepers.append(sleeper)
        self._changed.set()
        try:
            await sleeper
        finally:
            self._sleepers = [each for each in self._sleepers if each is not sleeper]

    async def asleep(self, count: int = 1) -> None:
        """Wait until so many are asleep."""
        async with asyncio.timeout(LONG):
            while len(self._sleepers) < count:
                self._changed = asyncio.Event()
                await self._changed.wait()

    async def advance(self, seconds: float, count: int = 1) -> None:
        """Let time go by, and wait until so many are asleep again."""
        self.now += seconds
        sleepers, self._sleepers = self._sleepers, []
        for sleeper in sleepers:
            sleeper.set_result(None)
        await self.asleep(count)


class Gate:
    """Holds sweeps between their plan and their act, until it is opened."""

    def __init__(self, *stores: str) -> None:
        self._stores = stores
        self._reached = threading.Event()
        self._opened = threading.Event()

    async def reached(self) -> None:
        """Wait until a sweep stands at the gate."""
        assert await asyncio.to_thread(self._reached.wait, LONG)

    def open(self) -> None:
        """Let it go on, and all that come later."""
        self._opened.set()

    def stand(self, store: str) -> None:
        """What a sweep does at the gate."""
        if not self._stores or store in self._stores:
            self._reached.set()
            assert self._opened.wait(LONG)


@contextmanager
def gated(monkeypatch: pytest.MonkeyPatch, *stores: str) -> Iterator[Gate]:
    """Put a gate into the way of every sweep, or of those of these stores."""
    gate, act = Gate(*stores), sweep.sweep_now

    def sweep_now(*given: Any, on_plan: Callable[[Plan], None], **more: Any) -> Report:
        def stand(plan: Plan) -> None:
            gate.stand(plan.store)
            on_plan(plan)

        return act(*given, on_plan=stand, **more)

    with monkeypatch.context() as patch:
        patch.setattr(sweep, "sweep_now", sweep_now)
        try:
            yield gate
        finally:
            gate.open()


@contextmanager
def all_at_once(monkeypatch: pytest.MonkeyPatch, count: int) -> Iterator[None]:
    """No sweep that has made its plan goes on before so many have come as far, or wait for it."""
    come, changed = set[int](), threading.Condition()
    locked = sweep._locked

    def arrive() -> None:
        with changed:
            come.add(threading.get_ident())
            changed.notify_all()

    def planned(*given: Any, **more: Any) -> Plan:
        plan = build(*given, **more)
        arrive()
        with changed:
            assert changed.wait_for(lambda: len(come) == count, LONG)
        return plan

    def waiting(*given: Any) -> Any:
        arrive()
        return locked(*given)

    with monkeypatch.context() as patch:
        patch.setattr(sweep, "build", planned)
        patch.setattr(sweep, "_locked", waiting)
        yield


async def settled() -> None:
    """Wait until the loop has done all that it can do by itself, such as a cancellation."""
    for _ in range(20):
        await asyncio.sleep(0)


class Yard:
    """A folder with a configuration, whose sweepers go by a clock and a timer that are moved."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = FixedClock(NOW)
        self.timer = HandTimer()

    def configure(self, **stores: str) -> None:
        """Write keepfor.yaml, with the settings of each store as YAML has them in braces."""
        lines = [f"  {name}: {{{settings}}}\n" for name, settings in stores.items()]
        text = f"stores:\n{''.join(lines)}state_dir: state\n"
        (self.folder / "keepfor.yaml").write_text(text, encoding="utf-8")

    def sweeper(self, **more: Any) -> Sweeper:
        """A sweeper of what is configured, without jitter."""
        given: dict[str, Any] = {
            "clock": self.clock,
            "jitter": lambda: 1.0,
            "steady": self.timer.steady,
            "sleep": self.timer.sleep,
        }
        return Sweeper(self.folder / "keepfor.yaml", **(given | more))

    def write(self, ages: Sequence[float], name: str = "recall.jsonl") -> Path:
        """A ledger with a row of each of these ages, in days."""
        path = self.folder / name
        moments = (NOW - timedelta(days=age) for age in ages)
        path.write_text("".join(f'{{"ts": "{moment.isoformat()}"}}\n' for moment in moments))
        return path

    def sample(self) -> Path:
        """The ledger that the real program wrote: 600 rows over 120 days up to NOW."""
        return Path(shutil.copyfile(SAMPLE, self.folder / "recall.jsonl"))

    @property
    def trail(self) -> list[dict[str, Any]]:
        """The records, the oldest first."""
        return list(Trail(self.folder / "state" / "trail.jsonl").records())[::-1]


def rows(path: Path) -> int:
    """How many rows a ledger has."""
    return path.read_bytes().count(b"\n")


def report(sweeper: Sweeper, store: str = "recall") -> Report:
    """What came of a store's last sweep, which did not fail."""
    last = sweeper.last_report[store]
    assert isinstance(last, Report), last
    return last
