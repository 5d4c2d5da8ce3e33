"""Each store keeps the promises of every store."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import pytest
from msgspec.structs import replace

from keepfor.items import Item
from keepfor.stores.ledger import LedgerStore, ledger_at
from keepfor.testing import MemoryStore
from keepfor.testing.bench import Bench, ItemBench
from keepfor.testing.suite import ItemStoreSuite, RowStoreSuite
from keepfor.times import Known, Unknown
from tests.stores.build import append, row


class MemoryBench(ItemBench):
    """A store in memory to be tried out."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.store = MemoryStore()

    def open(self) -> MemoryStore:
        return self.store

    def elsewhere(self) -> MemoryStore:
        return MemoryStore(name="elsewhere")

    def put(self, name: str, instant: datetime | None) -> None:
        age = Known(instant, "put") if instant else Unknown("none was given")
        self.store.items[name] = Item(id=name, type="note", instant=age, bytes=10, fingerprint="1")

    def names(self) -> set[str]:
        return set(self.store.items)

    def snapshot(self) -> object:
        return dict(self.store.items)

    def drift(self, name: str) -> None:
        self.store.items[name] = replace(self.store.items[name], fingerprint="2")

    @contextmanager
    def jammed(self) -> Iterator[None]:
        self.store.failing = dict.fromkeys(self.store.items, "No space left on device")
        yield
        self.store.failing = {}

    def lose(self, name: str) -> None:
        del self.store.items[name]


class LedgerBench(Bench):
    """A ledger to be tried out; rows without a time are told to stay, or they would be debris."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.path = self.place / "ledger.jsonl"

    def open(self) -> LedgerStore:
        return ledger_at(self.path, unreadable="keep")

    def elsewhere(self) -> LedgerStore:
        return ledger_at(self.place / "other.jsonl", unreadable="keep")

    def put(self, name: str, instant: datetime | None) -> None:
        self.place.mkdir(exist_ok=True)
        append(self.path, row(instant and instant.isoformat(), name=name))

    def names(self) -> set[str]:
        rows = [json.loads(line)["name"] for line in self.path.read_bytes().splitlines()]
        assert len(rows) == len(set(rows))
        return set(rows)

    def snapshot(self) -> object:
        if not self.place.exists():
            return None
        paths = [self.place, *sorted(self.place.iterdir())]
        stats = [(path, path.stat()) for path in paths]
        return [
            (
                path.name,
                path.is_file() and path.read_bytes(),
                stat.st_ino,
                stat.st_mode,
                stat.st_mtime_ns,
            )
            for path, stat in stats
        ]

    def drift(self, name: str) -> None:
        # The same bytes, in another file.
        other = self.place / "other"
        other.write_bytes(self.path.read_bytes())
        other.replace(self.path)

    @contextmanager
    def jammed(self) -> Iterator[None]:
        def full(*_: object) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, "rename", full)
            yield


class TestMemoryStore(ItemStoreSuite):
    """The store in memory, which programs test with."""

    def bench(self, folder: Path) -> ItemBench:
        return MemoryBench(folder)


class TestLedgerStore(RowStoreSuite):
    """The ledger."""

    def bench(self, folder: Path) -> Bench:
        return LedgerBench(folder)
