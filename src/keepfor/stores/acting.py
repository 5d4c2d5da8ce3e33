"""Carries out what was decided of the items of a store of entities, one by one."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from types import TracebackType
from typing import Self

import msgspec

from keepfor.errors import KeepforError
from keepfor.items import Decision, Outcome
from keepfor.stores import flagging, folders, logrows, removal, tree
from keepfor.stores.access import AccessLog
from keepfor.stores.removal import CHANGED, MOVED, Removal
from keepfor.stores.scope import Scope
from keepfor.times import utc_now

RECALLED = "it was recalled since the plan"
_SPARED = "the session that it was made from was not deleted"
_CITED = "{} names it, and was not deleted"
_NOWHERE = "the store has no log, and no folder of ours, to keep the flag of a session in"


class Acting:
    """A store that is being swept.

    Parameters:
        scope: what belongs to it.
        path: its root.
        root: the descriptor of that, which is closed in the end.
        log: its log, or what stands in for it.
        record: whether each action is told in the log.
    """

    def __init__(self, scope: Scope, path: str, root: int, log: AccessLog, record: bool) -> None:
        self._scope = scope
        self._root = root
        self._path = path
        self._log = log
        self._record = record
        self._gone: set[str] = set()
        self._ahead: set[str] = set()
        self._open: _Opened | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if self._open is not None:
            os.close(self._open.descriptor)
        os.close(self._root)

    def carry_out(self, decisions: Iterable[Decision]) -> Iterator[Outcome]:
        """What becomes of each decision; one failure never stops the others."""
        by_kind = sorted(decisions, key=lambda said: not self._scope.is_session_id(said.id))
        self._ahead = {said.id for said in by_kind}
        for said in _in_order(by_kind):
            try:
                self._log.refresh()
                done = self._one(said)
            except OSError as error:
                done = Removal(result="failed", why=error.strerror or str(error))
            except KeepforError as error:
                done = Removal(result="failed", why=str(error))
            if done.result == "applied":
                done = self._told(said, done)
            self._ahead.discard(said.id)
            yield Outcome(
                id=said.id, action=said.action, reason=said.reason, result=done.result, why=done.why
            )

    def _one(self, said: Decision) -> Removal:
        seen, _, accessed = said.fingerprint.partition("@")
        if self._log.accessed(said.id) != accessed:
            return Removal(result="skipped", why=RECALLED)
        if (session := _session(said)) and session not in self._gone:
            return Removal(result="skipped", why=_SPARED)
        # Of items that name each other, one has to be the first.
        if stayed := set(said.cited_by) - self._gone - self._ahead:
            return Removal(result="skipped", why=_CITED.format(min(stayed)))
        place, name = self._scope.place(said.id)
        try:
            opened = self._folder(place)
        except FileNotFoundError:
            return Removal(result="skipped", why=removal.GONE)
        except OSError as error:
            if error.errno in (errno.ENOTDIR, errno.ELOOP):
                return Removal(result="skipped", why=CHANGED)
            raise

        folder, moved = opened.descriptor, partial(folders.is_moved, opened.descriptor, opened.way)
        if moved():
            return Removal(result="skipped", why=MOVED)
        if said.action == "delete":
            done = removal.remove(folder, name, seen, moved=moved)
            if done.result == "applied":
                self._gone.add(said.id)
            return done
        if self._scope.is_session_id(said.id):
            return self._flag_session(folder, name, seen)
        return flagging.flag(
            folder,
            name,
            seen,
            at=utc_now().isoformat(),
            reason=said.reason,
            rule=said.rule or "",
            moved=moved,
        )

    def _flag_session(self, folder: int, name: str, seen: str) -> Removal:
        """A session is nobody's to write to: its flag is a row of the log."""
        try:
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            return Removal(result="skipped", why=removal.GONE)
        if not stat.S_ISREG(status.st_mode) or removal.fingerprint(status) != seen:
            return Removal(result="skipped", why=CHANGED)
        if self._log.path is None:
            return Removal(result="failed", why=_NOWHERE)
        return Removal(result="applied")

    def _told(self, said: Decision, done: Removal) -> Removal:
        """Tell in the log what was done, where it is to be told there."""
        session = self._scope.is_session_id(said.id)
        lasting = session and said.action == "flag"
        # A flag that the log holds ends with what it is about.
        ends = session and said.id in self._log.flags
        if self._log.path is None or not (self._record or lasting or ends):
            return done
        try:
            logrows.write(self._log.path, logrows.retention(said, utc_now()), self._path)
        except KeepforError as error:
            if lasting:
                return Removal(result="failed", why=str(error))
            why = f"{done.why}; " if done.why else ""
            return Removal(result="applied", why=f"{why}its log does not tell of it: {error}")
        return done

    def _folder(self, place: str) -> _Opened:
        """A folder, which stays open until another one is asked for."""
        if self._open is not None:
            if self._open.place == place:
                return self._open
            os.close(self._open.descriptor)
            self._open = None
        descriptor = tree.open_folder(self._root, place)
        names = place.split("/") if place else []
        paths = [os.path.join(self._path, *names[:depth]) for depth in range(len(names) + 1)]
        try:
            way = [(path, os.stat(path, follow_symlinks=False)) for path in paths]
        except OSError:
            os.close(descriptor)
            raise
        # By its path it may be another one by now.
        way[0] = self._path, os.fstat(self._root)
        way[-1] = paths[-1], os.fstat(descriptor)
        self._open = _Opened(place, descriptor, way)
        return self._open


class _Opened(msgspec.Struct, frozen=True):
    """A folder of the store that is open, and the way to it."""

    place: str
    descriptor: int
    way: folders.Way


def _in_order(decisions: Sequence[Decision]) -> list[Decision]:
    """Each after what it must not go without: the session that takes it along, and what names it.

    In a circle of names one has to be the first; a session always goes before what it takes along,
    which follows at once, so that a kill leaves little of it behind.
    """
    by_id = {said.id: said for said in decisions}
    taken: dict[str, list[Decision]] = {}
    for said in decisions:
        if session := _session(said):
            taken.setdefault(session, []).append(said)
    reached: set[str] = set()
    ordered: dict[str, Decision] = {}
    for first in decisions:
        way = [] if first.id in reached else [(first, _before(first))]
        reached.add(first.id)
        while way:
            said, rest = way[-1]
            for id_ in rest:
                if id_ not in by_id or id_ in reached:
                    continue
                if (session := _session(by_id[id_])) in reached and session not in ordered:
                    continue
                reached.add(id_)
                way.append((by_id[id_], _before(by_id[id_])))
                break
            else:
                ordered[said.id] = said
                way.pop()
                for follower in reversed(taken.get(said.id, ())):
                    waits = not reached.isdisjoint(set(follower.cited_by) - ordered.keys())
                    if follower.id not in reached and not waits:
                        reached.add(follower.id)
                        way.append((follower, _before(follower)))
    return list(ordered.values())


def _before(said: Decision) -> Iterator[str]:
    if session := _session(said):
        yield session
    yield from said.cited_by


def _session(said: Decision) -> str:
    """The session that takes an item along, if one does."""
    return str(said.evidence.get("from", "")) if said.reason.startswith("cascade:") else ""
