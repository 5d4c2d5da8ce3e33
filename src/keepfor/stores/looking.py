"""A look at a store of entities: every note and session, with all that rules may ask of them."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from posixpath import basename

from msgspec.structs import replace

from keepfor import garbage
from keepfor.items import Item
from keepfor.stores import removal
from keepfor.stores.access import UNTOLD, AccessLog
from keepfor.stores.base import Progress
from keepfor.stores.frontmatter import FLAGGED_AT
from keepfor.stores.headcache import RACY, HeadCache, Row
from keepfor.stores.ids import escape
from keepfor.stores.links import Links
from keepfor.stores.notes import Head, Reader
from keepfor.stores.scope import Scope
from keepfor.stores.tree import DEEPEST, Folder
from keepfor.times import Instant, Known, Unknown, parse_instant

#: So many recalls are sooner read again than written to the cache.
_FEW = 1000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NOT_FLAGGED = Unknown("it is not flagged")
_NEVER = Unknown("no access was ever recorded")


class Look:
    """One look at a store.

    Parameters:
        scope: what belongs to the store.
        log: the file of its log; None for none.
        cache: the file of the cache of heads; None for none.

    Attributes:
        remarks: what was passed over, by name, and what could not be told.
    """

    def __init__(self, scope: Scope, log: str | None, cache: str | None) -> None:
        self.remarks: list[str] = []
        self._scope = scope
        self._reader = Reader(scope.fields, scope.date)
        self._cache = HeadCache(cache, f"{scope!r} {log!r}")
        self._log = AccessLog(log, scope.zone, self._cache.log, scope.suffix)
        self._unseen = False
        self._sessions: dict[str, str] = {}
        self._derived = _Derived(self._sessions)
        self._items: list[Item] = []
        self._linked: dict[str, Head] = {}

    def items(self, root: int, progress: Progress | None = None) -> list[Item]:
        """Everything that is there, in order of ids.

        Parameters:
            root: the root's descriptor.
            progress: called with how far it is.

        Raises:
            StoreError: when the log is there and cannot be read.
        """
        try:
            with garbage.put_off():
                return self._all(root, progress)
        finally:
            self._cache.close()

    def _all(self, root: int, progress: Progress | None) -> list[Item]:
        self._log.refresh()
        if count := self._log.unreadable:
            lines = "1 line that" if count == 1 else f"{count} lines that"
            self.remarks.append(f"{self._log.name}: passed over {lines} nobody can read")
        for path, folder in self._scope.folders(root, self._failed):
            if path == self._scope.sessions:
                self._take_sessions(folder)
            else:
                self._take_notes(folder)
            if progress:
                progress(len(self._items), len(self._items))
        items = self._items
        items.sort(key=attrgetter("id"))
        if self._linked or self._unseen:
            items = self._with_links(items)
        if self._cache.used:
            touched = self._log.touched
            known = touched is not None and len(touched) <= _FEW
            self._cache.save(None if known or self._log.loose else self._log.state())
        return items

    def _failed(self, path: str, error: OSError | None) -> None:
        why = error.strerror if error else f"it lies more than {DEEPEST} folders deep"
        self.remarks.append(f"{escape(path) or '.'}: the folder cannot be read ({why})")
        self._unseen = True

    def _take_sessions(self, folder: Folder) -> None:
        scope = self._scope
        prefix = f"{scope.sessions}/"
        for entry in scope.sessions_among(folder.files):
            name = entry.name
            try:
                status = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            if self._log.is_at(status):
                continue
            id_ = escape(prefix + name)
            flag = self._log.flags.get(id_)
            self._sessions[name] = id_
            self._items.append(
                Item(
                    id=id_,
                    type=scope.session_type,
                    instant=Known(modified(status.st_mtime_ns), "mtime"),
                    accessed=self._accessed(id_),
                    bytes=status.st_size,
                    fingerprint=f"{removal.fingerprint(status)}@{self._log.accessed(id_)}",
                    flagged_by=flag.rule if flag else None,
                    flagged_at=self._flagged_at(flag.at, status.st_mtime_ns)
                    if flag
                    else _NOT_FLAGGED,
                )
            )

    def _take_notes(self, folder: Folder) -> None:
        log, cache = self._log, self._cache
        found = self._scope.notes_among(folder.files)
        where = escape(folder.path)
        known = cache.rows(where)
        heads, derived, touched = cache.heads, self._derived, log.touched
        of_folder = where.partition("/")[0] or self._scope.default_type
        simple, append = self._scope.date is None, self._items.append
        changed: dict[str, Row | None] = {}
        for entry in found:
            try:
                status = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            if log.is_at(status):
                continue
            row = known.get(entry.name)
            if (
                row is not None
                and row.ctime == status.st_ctime_ns
                and row.mtime == status.st_mtime_ns
                and row.inode == status.st_ino
                and row.size == status.st_size
            ):
                head = heads[row.head]
                if touched is None or row.id in touched:
                    row = self._row(row.id, status, row.head)
                    if not log.loose:
                        changed[entry.name] = row
            else:
                read = self._read(folder, entry.name)
                if read is None:
                    continue
                head, lasting = read
                stem = escape(entry.name.removesuffix(self._scope.suffix))
                id_ = f"{where}/{stem}" if where else stem
                row = self._row(id_, status, cache.number(head) if lasting else -1)
                # What has just changed may change once more without its times telling.
                lasting = lasting and status.st_ctime_ns < time.time_ns() - RACY
                lasting = lasting and not (log.loose and id_ in log.newest)
                changed[entry.name] = row if lasting else None
            item = Item(
                id=row.id,
                type=head.type or of_folder,
                instant=Known(row.instant, "mtime"),
                accessed=_NEVER if row.accessed is None else self._recalled(row.accessed),
                bytes=row.size,
                fingerprint=row.fingerprint,
                derived_from=derived[head.session],
            )
            if head.rule or head.fields or head.links != () or head.held or head.doubts:
                item = self._told(item, head, row.mtime)
            if not simple:
                item = replace(item, instant=self._dated(item, head))
            append(item)
        cache.put(where, known, changed, {entry.name for entry in found})

    def _read(self, folder: Folder, name: str) -> tuple[Head, bool] | None:
        """What a note says, and whether it will be so again; None where it is gone."""
        try:
            return self._reader.read(name, folder.descriptor), True
        except FileNotFoundError:
            return None
        except OSError as error:
            return Head(links=None, held=f"it cannot be read ({error.strerror})"), False

    def _row(self, id_: str, status: os.stat_result, head: int) -> Row:
        inode, size = status.st_ino, status.st_size
        mtime, ctime = status.st_mtime_ns, status.st_ctime_ns
        newest = self._log.newest.get(id_)
        access = "" if newest is None else newest.isoformat()
        fingerprint = f"{inode}:{size}:{mtime}:{ctime}@{access}"
        instant = modified(mtime)
        return Row(id_, inode, size, mtime, ctime, instant, fingerprint, newest, head)

    def _told(self, item: Item, head: Head, mtime: int) -> Item:
        """The item with what only some notes say."""
        if head.links:
            self._linked[item.id] = head
        for doubt in head.doubts:
            self.remarks.append(f"{item.id}: {doubt}")
        # A rule alone, without a date, is no flag: it is to be set anew.
        flag = head.rule if head.rule and head.flagged_at else None
        return replace(
            item,
            flagged_by=flag,
            flagged_at=self._flagged_at(head.flagged_at, mtime) if flag else _NOT_FLAGGED,
            fields=head.fields,
            cites=None if head.links is None else (),
            held=head.held or None,
        )

    def _dated(self, item: Item, head: Head) -> Instant:
        """When a note began to age, by the date that it carries."""
        key = self._scope.date
        assert key is not None
        doubt = head.held or next((said for said in head.doubts if f"its {key} " in said), "")
        dated = (
            Unknown(doubt) if doubt else parse_instant(head.date, source=key, zone=self._scope.zone)
        )
        if isinstance(dated, Unknown) and self._scope.by_mtime and not head.held:
            return item.instant
        return dated

    def _flagged_at(self, text: str, mtime: int) -> Instant:
        """Since when a flag stands; an edit since then is a word of its own, and it begins anew."""
        flagged = parse_instant(text, source=FLAGGED_AT, zone=self._scope.zone)
        changed = modified(mtime)
        if isinstance(flagged, Known) and flagged.instant < changed:
            return Known(changed, f"mtime, later than {FLAGGED_AT}")
        return flagged

    def _accessed(self, id_: str) -> Instant:
        newest = self._log.newest.get(id_)
        return _NEVER if newest is None else self._recalled(newest)

    def _recalled(self, newest: datetime) -> Known:
        name = self._log.name
        return Known(newest, f"{name}, its time cannot be read" if newest == UNTOLD else name)

    def _with_links(self, items: list[Item]) -> list[Item]:
        if self._unseen:
            # What nobody could read may name anything.
            return [replace(item, cites=None) for item in items]
        links = Links((item.id for item in items), self._scope.suffix)
        return [
            replace(item, cites=links.resolve(item.id, head.links or ()))
            if (head := self._linked.get(item.id))
            else item
            for item in items
        ]


class _Derived(dict[str, str | None]):
    """The id of the session that a note names by its file; another case is another name.

    Parameters:
        sessions: the ids of sessions by the names of their files.
    """

    def __init__(self, sessions: dict[str, str]) -> None:
        super().__init__({"": None})
        self._sessions = sessions

    def __missing__(self, link: str) -> str | None:
        self[link] = self._sessions.get(basename(link))
        return self[link]


def modified(mtime: int) -> datetime:
    """The instant of an mtime in ns, to the microsecond."""
    try:
        return _EPOCH + timedelta(0, 0, mtime // 1000)
    except OverflowError:
        # Some file systems hold times that no calendar does; such a file is never old.
        return datetime.max.replace(tzinfo=UTC)
