"""The entities store keeps the promises of every store, whatever tells the age of a note."""

from __future__ import annotations

import errno
import os
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from keepfor.stores.entities import EntityStore, entities_at
from keepfor.testing.bench import ItemBench
from keepfor.testing.suite import ItemStoreSuite
from tests.entities import OLD


class EntityBench(ItemBench):
    """A store of entities to be tried out."""

    @abstractmethod
    def at(self, path: Path) -> EntityStore:
        """The store there."""

    def open(self) -> EntityStore:
        return self.at(self.place)

    def elsewhere(self) -> EntityStore:
        return self.at(self.place.with_name("elsewhere"))

    def names(self) -> set[str]:
        found = [path for path in self.place.rglob("*") if path.is_file()]
        assert all(path.suffix == ".md" for path in found)
        return {path.stem for path in found}

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
            for path in [self.place, *sorted(self.place.rglob("*"))]
        ]

    def drift(self, name: str) -> None:
        path = self._path(name)
        was = path.stat()
        path.write_bytes(path.read_bytes().replace(b"body", b"text"))
        os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))

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
        path = self.place / "entities" / "guideline" / f"{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        return path


class DatedBench(EntityBench):
    """Notes whose frontmatter tells when they began to age."""

    def at(self, path: Path) -> EntityStore:
        return entities_at(path, clock="created_at", cache=str(path.parent / "state"))

    def put(self, name: str, instant: datetime | None) -> None:
        path = self._path(name)
        date = instant.isoformat() if instant else "long ago"
        path.write_text(f'---\ntype: guideline\ncreated_at: "{date}"\n---\n\nbody\n')
        os.utime(path, (OLD.timestamp(),) * 2)


class ModifiedBench(EntityBench):
    """Notes that age by their mtime; nobody can tell the age of one whose date cannot be read."""

    def at(self, path: Path) -> EntityStore:
        return entities_at(path, clock="created", fallback="modified")

    def put(self, name: str, instant: datetime | None) -> None:
        path = self._path(name)
        path.write_text("---\ntype: guideline\n---\n\nbody\n")
        if instant is None:
            # What cannot be read at all is not told by its mtime either.
            path.write_bytes(b"---\ntype: caf\xe9\n---\n\nbody\n")
            return
        ticks = (instant - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds()
        os.utime(path, ns=(round(ticks * 10**6) * 1000,) * 2)


class TestDatedNotes(ItemStoreSuite):
    """Notes, told by their frontmatter."""

    def bench(self, folder: Path) -> ItemBench:
        return DatedBench(folder)


class TestModifiedNotes(ItemStoreSuite):
    """Notes, told by their mtime."""

    def bench(self, folder: Path) -> ItemBench:
        return ModifiedBench(folder)
