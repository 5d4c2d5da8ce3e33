"""The entities store: a tree of Markdown notes, and the session files that they were made from."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from contextlib import AbstractContextManager
from datetime import UTC, datetime, tzinfo
from typing import Any, Literal

import msgspec

from keepfor.items import Decision, Item, Outcome
from keepfor.stores.base import Progress
from keepfor.stores.ids import escape


class EntityStore(msgspec.Struct, frozen=True, kw_only=True):
    """Notes and sessions on disk.

    Parameters:
        path: the root; `entities_at` resolves a symlink.
        notes: the folder of notes below it.
        pattern: which files there are notes, by name.
        sessions: the folder of session files below the root; None for none.
        session_pattern: which files there are sessions, by name.
        ignore: globs of folders below `notes` that are out of scope.
        default_type: the type of a note that names none and lies in no folder.
        session_type: the type of a session.
        clock: what tells a note's age: `modified`, or the frontmatter key that holds the date.
        fallback: what stands in where that key is missing or cannot be read; None for nothing, so
            that the age is unknown.
        zone: the zone of a timestamp that names none.
        access_log: the log of recalls below the root; None where a store has none.
        record: whether an applied action is told in that log.
        fields: the frontmatter keys that rules match on.
        cache: a folder of ours in the state folder, for what may be lost; and for the flags of
            sessions where the store has no log. None for none.
    """

    path: str
    notes: str = "entities"
    pattern: str = "*.md"
    sessions: str | None = "trajectories"
    session_pattern: str = "*"
    ignore: tuple[str, ...] = ("subscribed",)
    default_type: str = "guideline"
    session_type: str = "trajectory"
    clock: str = "modified"
    fallback: Literal["modified"] | None = None
    zone: tzinfo = UTC
    access_log: str | None = "audit.log"
    record: bool = False
    fields: tuple[str, ...] = ()
    cache: str | None = None

    @property
    def kind(self) -> str:
        return "entities"

    @property
    def target(self) -> str:
        return escape(self.path)

    @property
    def settings(self) -> dict[str, str]:
        return {}

    def locked(self, wait: float = 0.0) -> AbstractContextManager[None]:
        """See `Store.locked`. What a killed sweep left is put in order first."""
        raise NotImplementedError

    def scan(self, progress: Progress | None = None) -> Iterator[Item]:
        """Every note and session that is there, in order of their ids. Writes nothing there."""
        raise NotImplementedError

    def apply(self, decisions: Iterable[Decision]) -> Iterator[Outcome]:
        """Flag and delete, each item only if it is as its fingerprint says and at rest."""
        raise NotImplementedError

    def leftovers(self) -> list[str]:
        """The paths of files that a killed sweep left; reads only."""
        raise NotImplementedError

    def record_access(self, ids: Collection[str], now: datetime | None = None) -> None:
        """Note in the log that these were recalled."""
        raise NotImplementedError

    def remarks(self) -> list[str]:
        """What the last `scan` passed over, by name, and what a person should know of it."""
        raise NotImplementedError


def entities_at(path: str | os.PathLike[str], **settings: Any) -> EntityStore:
    """The store at a path; where that is a symlink, the folder it leads to."""
    return EntityStore(path=os.path.realpath(path), **settings)
