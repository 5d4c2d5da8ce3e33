"""Tables keep the promises of every store, in SQLite and in PostgreSQL."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import pytest

from keepfor.stores.table import TableStore
from keepfor.testing.bench import Bench
from keepfor.testing.suite import RowStoreSuite
from tests.stores.sql import build

#: Raises an error on each deletion, as a disk that fails would.
_JAM = {
    "sqlite": (
        "CREATE TRIGGER jam BEFORE DELETE ON notes BEGIN SELECT RAISE(ABORT, 'disk fails'); END",
    ),
    "postgresql": (
        (
            "CREATE FUNCTION jam() RETURNS trigger AS "
            "$$ BEGIN RAISE EXCEPTION 'disk fails'; END $$ LANGUAGE plpgsql"
        ),
        "CREATE TRIGGER jam BEFORE DELETE ON notes FOR EACH ROW EXECUTE FUNCTION jam()",
    ),
}
_FREE = {
    "sqlite": ("DROP TRIGGER jam",),
    "postgresql": ("DROP TRIGGER jam ON notes", "DROP FUNCTION jam"),
}


class TableBench(Bench):
    """A table to be tried out."""

    ceiling = "max_count"

    def __init__(self, folder: Path, url: str) -> None:
        super().__init__(folder)
        self.url = url
        self.kind = url.partition(":")[0].partition("+")[0]
        self.folder = folder
        self.made = False

    def open(self) -> TableStore:
        if self.kind == "postgresql":
            self._make()
        return build.notes(self.url, self.folder / "state")

    def elsewhere(self) -> TableStore:
        self._make()
        build.run(self.url, "CREATE TABLE other (id INTEGER PRIMARY KEY, ts TIMESTAMP)")
        from keepfor.stores.table import table_at

        return table_at(self.url, "other", folder=self.folder / "state", time="ts")

    def put(self, name: str, instant: datetime | None) -> None:
        self._make()
        build.add(self.url, name, instant)

    def names(self) -> set[str]:
        return build.names(self.url)

    def snapshot(self) -> object:
        if self.kind == "postgresql":
            self._make()
            return build.run(self.url, "SELECT *, xmin, ctid FROM notes ORDER BY id"), build.run(
                self.url, "SELECT *, xmin, ctid FROM vectors ORDER BY id"
            )
        if not self.place.exists():
            return None
        # The lock file is made by a sweep, and stays.
        paths = [path for path in sorted(self.place.iterdir()) if not path.name.startswith(".")]
        stats = [(path, path.stat()) for path in paths]
        return [
            (path.name, path.read_bytes(), stat.st_ino, stat.st_mtime_ns) for path, stat in stats
        ]

    def drift(self, name: str) -> None:
        if self.kind == "postgresql":
            build.run(
                self.url,
                "ALTER TABLE notes RENAME TO old",
                "CREATE TABLE notes (LIKE old INCLUDING ALL)",
                "INSERT INTO notes SELECT * FROM old",
            )
            return
        # The same bytes, in another file.
        path = self.place / "notes.sqlite3"
        other = self.place / "other"
        other.write_bytes(path.read_bytes())
        os.replace(other, path)

    @contextmanager
    def jammed(self) -> Iterator[None]:
        build.run(self.url, *_JAM[self.kind])
        yield
        build.run(self.url, *_FREE[self.kind])

    def _make(self) -> None:
        if not self.made:
            self.place.mkdir(exist_ok=True)
            build.make(self.url)
            self.made = True


class TestSqliteTable(RowStoreSuite):
    """A table of SQLite."""

    def bench(self, folder: Path) -> Bench:
        return TableBench(folder, f"sqlite:///{folder}/store/notes.sqlite3")


class TestPostgresTable(RowStoreSuite):
    """A table of PostgreSQL."""

    @pytest.fixture(autouse=True)
    def _server(self, postgres_url: str) -> None:
        self.url = postgres_url

    def bench(self, folder: Path) -> Bench:
        return TableBench(folder, self.url)
