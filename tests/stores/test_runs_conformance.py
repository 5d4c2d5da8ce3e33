"""The runs store keeps the promises of every store, wherever it finds the age of a run."""

from __future__ import annotations

import errno
import json
import os
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import pytest

from keepfor.stores.runs import RunStore, runs_at
from keepfor.testing.bench import ItemBench
from keepfor.testing.suite import ItemStoreSuite
from tests.runs import LONG_AGO


class RunBench(ItemBench):
    """A directory of runs to be tried out."""

    time: str

    def open(self) -> RunStore:
        return runs_at(self.place, time=self.time)

    def elsewhere(self) -> RunStore:
        return runs_at(self.place.with_name("elsewhere"), time=self.time)

    @abstractmethod
    def file(self, name: str, instant: datetime | None) -> tuple[str, dict[str, str]]:
        """What the run's file is called, and what stands in it besides its name."""

    def put(self, name: str, instant: datetime | None) -> None:
        self.place.mkdir(exist_ok=True)
        stem, entry = self.file(name, instant)
        path = self.place / f"{stem}.jsonl"
        path.write_text(json.dumps({"name": name} | entry) + "\n")
        os.utime(path, (LONG_AGO.timestamp(),) * 2)

    def names(self) -> set[str]:
        found = [path.name for path in self.place.iterdir()]
        assert all(name.endswith(".jsonl") for name in found)
        return {json.loads((self.place / name).read_text())["name"] for name in found}

    def snapshot(self) -> object:
        if not self.place.exists():
            return None
        return [
            (
                path.name,
                path.is_file() and path.read_bytes(),
                path.stat()[:7],
                path.stat().st_mtime_ns,
            )
            for path in [self.place, *sorted(self.place.iterdir())]
        ]

    def drift(self, name: str) -> None:
        path = self._path(name)
        path.write_bytes(path.read_bytes().replace(b"{", b"{ "))

    def lose(self, name: str) -> None:
        self._path(name).unlink()

    @contextmanager
    def jammed(self) -> Iterator[None]:
        def full(*_: object, **__: object) -> None:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, "rename", full)
            yield

    def _path(self, name: str) -> Path:
        return next(
            path for path in self.place.iterdir() if json.loads(path.read_text())["name"] == name
        )


class NamedBench(RunBench):
    """Runs whose names tell when they were."""

    time = "name"

    def file(self, name: str, instant: datetime | None) -> tuple[str, dict[str, str]]:
        return f"{instant:%Y-%m-%dT%H_%M_%S.%fZ}-{name}" if instant else name, {}


class DatedBench(RunBench):
    """Runs whose entries tell when they were."""

    time = "at"

    def file(self, name: str, instant: datetime | None) -> tuple[str, dict[str, str]]:
        return name, {"at": instant.isoformat()} if instant else {}


class TestNamedRuns(ItemStoreSuite):
    """A directory of runs, told by their names."""

    def bench(self, folder: Path) -> ItemBench:
        return NamedBench(folder)


class TestDatedRuns(ItemStoreSuite):
    """A directory of runs, told by their entries."""

    def bench(self, folder: Path) -> ItemBench:
        return DatedBench(folder)
