"""What the suite needs of a store that it tries out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from typing import Literal

from keepfor.stores.base import ItemStore, RowStore
from keepfor.trail import Trail


class Bench(ABC):
    """A store to be tried out, and hands that reach past its own code.

    What the store holds, rows or items, goes by short names here.

    Parameters:
        folder: an empty one.

    Attributes:
        place: where the store may lie; nothing else does.
        trail: where its sweeps are recorded.
    """

    #: The ceiling that such a store can be held to.
    ceiling: Literal["max_bytes", "max_count"] = "max_bytes"

    def __init__(self, folder: Path) -> None:
        self.place = folder / "store"
        # For ever, so that no test depends on the day on which it runs.
        self.trail = Trail(folder / "state" / "trail.jsonl", keep_for="forever")

    @abstractmethod
    def open(self) -> RowStore | ItemStore:
        """The store, as another process would come by it. Nothing may be there yet."""

    @abstractmethod
    def elsewhere(self) -> RowStore | ItemStore:
        """Another store of the same kind, at another address."""

    @abstractmethod
    def put(self, name: str, instant: datetime | None) -> None:
        """Add a row or an item; None is an age that cannot be read."""

    @abstractmethod
    def names(self) -> set[str]:
        """What is there now."""

    @abstractmethod
    def snapshot(self) -> object:
        """All that a reader must leave alone: bytes, times, what lies beside."""

    @abstractmethod
    def drift(self, name: str) -> None:
        """Change an item so that it is not what a plan saw, but no younger; of rows, the store."""

    @abstractmethod
    def jammed(self) -> AbstractContextManager[object]:
        """Within it no row and no item can be deleted, as on a disk that fails."""


class ItemBench(Bench):
    """A store of items to be tried out."""

    @abstractmethod
    def lose(self, name: str) -> None:
        """Remove an item, as somebody else would."""
