"""What a store must be able to do, for each of the two kinds; no store has heard of a policy."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Protocol, runtime_checkable

from keepfor.items import Decision, Item, Outcome, Survey, Terms

#: Called with bytes or items done and with how many there are, for a progress bar.
Progress = Callable[[int, int], None]


class Store(Protocol):
    """One place where memory lives."""

    @property
    def kind(self) -> str:
        """What kind it is: `ledger`, `runs`, `table` or `entities`."""

    @property
    def target(self) -> str:
        """Its resolved address: the same for the same store, whatever it was called."""

    @property
    def settings(self) -> Mapping[str, str]:
        """How it is read, as far as that bears on what a policy takes."""

    def locked(self, wait: float) -> AbstractContextManager[object]:
        """Keep every other prune out, whichever configuration it comes by.

        Parameters:
            wait: how long to wait for one that is at work, in seconds.

        Raises:
            StoreBusy: when it has not finished by then.
        """


@runtime_checkable
class RowStore(Store, Protocol):
    """A store of rows in order of time, too many to name one by one."""

    @property
    def bounds(self) -> Collection[str]:
        """What it can be held to beside age: `type`, `max_count`, `max_bytes`."""

    def survey(self, terms: Terms, progress: Progress | None = None) -> Survey:
        """Look at every row, and tell what would go under these terms. Writes nothing."""

    def aim(self, terms: Terms) -> Survey:
        """What may go under these terms, without its counts; rows are read only if need be."""

    def delete(
        self,
        survey: Survey,
        terms: Terms,
        progress: Progress | None = None,
        accept: Callable[[Survey], bool] | None = None,
    ) -> Survey:
        """Delete the rows that may go, and nothing that came later.

        Parameters:
            survey: from `survey` or `aim`: rows below its key, or its parts' cutoffs, go, within
                its extent.
            terms: what the counts are reported by.
            progress: called with how far it is.
            accept: asked when all is counted and nothing has changed yet; False leaves it so.

        Returns:
            What was done, with its counts.

        Raises:
            StoreChanged: when the store is no longer the one that was surveyed.
            SweepStopped: when only some of the rows could be deleted.
        """


@runtime_checkable
class ItemStore(Store, Protocol):
    """A store of items with an identity."""

    def scan(self, progress: Progress | None = None) -> Iterator[Item]:
        """Every item that is there. Writes nothing."""

    def apply(self, decisions: Iterable[Decision]) -> Iterator[Outcome]:
        """Carry decisions out one by one, each only if its item is as its fingerprint says."""


@runtime_checkable
class Remarking(Protocol):
    """A store that has something to say of what a scan passed over."""

    def remarks(self) -> list[str]:
        """What the last scan passed over or could not tell, a sentence for each."""
