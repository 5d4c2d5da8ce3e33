"""The entities store: a tree of Markdown notes, and the session files that they were made from."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, tzinfo
from typing import Any, Literal

import msgspec

from keepfor.errors import StoreError
from keepfor.items import Decision, Item, Outcome
from keepfor.stores import flagging, folders, logrows, removal
from keepfor.stores.access import AccessLog
from keepfor.stores.acting import Acting
from keepfor.stores.base import Progress
from keepfor.stores.ids import escape
from keepfor.stores.looking import Look
from keepfor.stores.scope import Scope
from keepfor.times import utc_now


class EntityStore(msgspec.Struct, frozen=True, kw_only=True):
    """Notes and sessions on disk.

    Hidden files and folders, symlinks, and all that does not lie in `notes` or right in `sessions`
    is out of scope.

    Parameters:
        path: the root; `entities_at` resolves a symlink.
        notes: the folder of notes below it; `.` for the root itself.
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
        passed_over: filled by `scan`, see `remarks`.
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
    passed_over: list[str] = msgspec.field(default_factory=list)

    @property
    def kind(self) -> str:
        return "entities"

    @property
    def target(self) -> str:
        return escape(self.path)

    @property
    def settings(self) -> dict[str, str]:
        return {
            "notes": f"{self.notes}/{self.pattern}",
            "sessions": f"{self.sessions}/{self.session_pattern}" if self.sessions else "",
            "ignore": "\n".join(self.ignore),
            "types": f"{self.default_type}, {self.session_type}",
            "clock": self.clock,
            "fallback": self.fallback or "",
            "timezone": str(self.zone),
            "access_log": self.access_log or "",
            "fields": "\n".join(self.fields),
        }

    @contextmanager
    def locked(self, wait: float = 0.0) -> Iterator[None]:
        """See `Store.locked`. What a killed sweep left is put in order first.

        A folder that is not there yet needs no lock.
        """
        with ExitStack() as stack:
            try:
                root = stack.enter_context(folders.locked(self.path, wait))
            except FileNotFoundError:
                pass
            else:
                self._recover(root)
            yield

    def scan(self, progress: Progress | None = None) -> Iterator[Item]:
        """Every note and session that is there, in order of their ids. Writes nothing there.

        Raises:
            StoreError: when the root, or its log, cannot be read.
        """
        self.passed_over.clear()
        try:
            root = folders.open_folder(self.path)
        except FileNotFoundError:
            return
        try:
            look = Look(self._scope, self._log, self._cache_file("heads"))
            items = look.items(root, progress)
        finally:
            os.close(root)
        self.passed_over.extend(look.remarks)
        yield from items

    def apply(self, decisions: Iterable[Decision]) -> Iterator[Outcome]:
        """Flag and delete, each item only if it is as its fingerprint says and at rest.

        Sessions come first: what was derived from one goes only after it has gone.

        Raises:
            StoreError: when the root, or its log, cannot be read.
        """
        try:
            root = folders.open_folder(self.path)
        except FileNotFoundError:
            for said in decisions:
                yield Outcome(
                    id=said.id,
                    action=said.action,
                    reason=said.reason,
                    result="skipped",
                    why=removal.GONE,
                )
            return
        scope = self._scope
        log = AccessLog(self._log, self.zone, suffix=scope.suffix)
        with Acting(scope, self.path, root, log, self.record) as acting:
            yield from acting.carry_out(decisions)

    def leftovers(self) -> list[str]:
        """The paths of files that a killed sweep left; reads only."""
        try:
            root = folders.open_folder(self.path)
        except FileNotFoundError:
            return []
        found = []
        try:
            for place, folder in self._scope.folders(root, _pass_over):
                names = removal.leftovers(folder.descriptor, folder.hidden)
                names += flagging.leftovers(folder.hidden)
                found += [os.path.join(self.path, place, name) for name in names]
        finally:
            os.close(root)
        return sorted(found)

    def record_access(self, ids: Collection[str], now: datetime | None = None) -> None:
        """Note in the log that these were recalled.

        Parameters:
            ids: of notes and sessions; those of nothing that is here do no harm.
            now: when; None for now.

        Raises:
            StoreError: when the store has no log, or it cannot be written.
        """
        if self.access_log is None:
            fix = "Set `access_log` to the name of a file in it."
            raise StoreError(path=self.path, what="it has no log of recalls.", fix=fix)
        if ids:
            path = os.path.join(self.path, self.access_log)
            logrows.write(path, logrows.recall(ids, now or utc_now()), self.path)

    def remarks(self) -> list[str]:
        """What the last `scan` passed over, by name, and what it could not tell."""
        return list(self.passed_over)

    @property
    def _scope(self) -> Scope:
        return Scope(
            notes="" if self.notes == "." else self.notes,
            pattern=self.pattern,
            sessions=self.sessions,
            session_pattern=self.session_pattern,
            ignore=self.ignore,
            default_type=self.default_type,
            session_type=self.session_type,
            date=None if self.clock == "modified" else self.clock,
            by_mtime=self.clock == "modified" or self.fallback == "modified",
            zone=self.zone,
            fields=self.fields,
        )

    @property
    def _log(self) -> str | None:
        """The log of the store; where it has none, what we keep of its sessions elsewhere."""
        if self.access_log is not None:
            return os.path.join(self.path, self.access_log)
        return self._cache_file("flags")

    def _cache_file(self, name: str) -> str | None:
        if self.cache is None:
            return None
        whose = hashlib.sha256(os.fsencode(self.path)).hexdigest()[:16]
        return os.path.join(self.cache, f"{name}-{whose}")

    def _recover(self, root: int) -> None:
        try:
            for _, folder in self._scope.folders(root, _pass_over):
                removal.recover(folder.descriptor, folder.hidden)
                flagging.recover(folder.descriptor, folder.hidden)
        except OSError as error:
            raise folders.explained(error, self.path) from error


def _pass_over(path: str, error: OSError | None) -> None:
    """What cannot be read, a scan tells of."""


def entities_at(path: str | os.PathLike[str], **settings: Any) -> EntityStore:
    """The store at a path; where that is a symlink, the folder it leads to."""
    return EntityStore(path=os.path.realpath(path), **settings)
