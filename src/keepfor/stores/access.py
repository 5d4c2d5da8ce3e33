"""The log of a store of entities: who was recalled when, and which sessions carry a flag.

A file of JSON lines that others write as well: `{"event": "recall", "entities": [ids], "ts": …}`
for what was recalled, `{"event": "retention", "action": …, "entity": id, …}` for what was done.
It is read as a stream; lines that nobody can read are passed over and counted.
"""

from __future__ import annotations

import hashlib
import json
import os
from datetime import UTC, datetime, tzinfo
from typing import Any

import msgspec

from keepfor.stores import files, replace
from keepfor.stores.frontmatter import is_text
from keepfor.stores.ids import escape
from keepfor.times import Known, parse_instant

#: A line that is longer is no row of such a log.
_LONGEST_LINE = 1 << 20

#: So many bytes, up to where a log was read, tell whether it only grew since.
_END = 256

#: How often a log is read that is being pruned meanwhile.
_LOOKS = 3

#: Stands for a recall of which nobody can read when it was: later than any other, so that disuse
#: takes nothing for which such a row stands.
UNTOLD = datetime.max.replace(tzinfo=UTC)


class Flag(msgspec.Struct, frozen=True, array_like=True):
    """A flag that the log holds, since what it is about cannot hold it.

    Parameters:
        rule: the rule that flagged it.
        at: when, as it is written.
    """

    rule: str
    at: str


class LogState(msgspec.Struct, frozen=True, array_like=True):
    """What a log said as far as it was read, to go on from there.

    Parameters:
        digest: over all that was read.
        upto: how many bytes that was.
        newest: the newest recorded recall, by id, encoded.
        flags: the flags that stand, by id.
        unreadable: how many lines could not be read.
    """

    digest: bytes
    upto: int
    newest: msgspec.Raw
    flags: dict[str, Flag]
    unreadable: int


class _Row(msgspec.Struct, gc=False):
    event: str = ""
    ts: str = ""
    entities: list[str] | None = None
    action: str = ""
    entity: str = ""
    rule: str = ""


_decode = msgspec.json.Decoder(_Row).decode
_decode_newest = msgspec.msgpack.Decoder(dict[str, datetime]).decode


class AccessLog:
    """What a log says, as far as it was read.

    Parameters:
        path: the file's, which need not be there; None for none.
        zone: the zone of a timestamp that names none.
        before: what it said the last time, which spares reading it again where it still begins so.
        suffix: what the files of notes end with, and their ids do not.

    Attributes:
        name: what it is called.
        touched: the ids that were recalled since `before`; None where all may have been.
        flags: the flags that stand, by id.
        unreadable: how many lines could not be read.
        loose: whether recalls were taken from where they may not stay: an unfinished last line, or
            what a prune has put aside. What is known of them is not to be kept.
    """

    touched: set[str] | None
    flags: dict[str, Flag]
    _newest: dict[str, datetime]
    _base: msgspec.Raw | None
    _mark: tuple[int, ...]
    _replaced: list[replace.OldFile] | None
    _marks: dict[str, tuple[int, ...]]

    def __init__(
        self,
        path: str | None,
        zone: tzinfo,
        before: LogState | None = None,
        suffix: str = ".md",
    ) -> None:
        self.path = path
        self.name = os.path.basename(path) if path else "the log"
        self.zone = zone
        self._before = before
        self._suffix = suffix
        self._forget()

    @property
    def newest(self) -> dict[str, datetime]:
        """The newest recorded recall, by id."""
        if self._base is not None:
            newest = _decode_newest(self._base)
            self._base = None
            for id_, instant in self._newest.items():
                if newest.get(id_, instant) <= instant:
                    newest[id_] = instant
            self._newest = newest
        return self._newest

    def refresh(self) -> None:
        """Read what was written since the last time; all of it, where the file is another one.

        Raises:
            StoreError: when it is there and cannot be read.
        """
        if self.path is None:
            return
        for _ in range(_LOOKS):
            self._refresh(self.path)
            # Nothing is aside, and where a prune puts something there, the log is another one.
            if self._replaced == []:
                return
            seen = self._mark
            try:
                whole = self._read_replaced(self.path)
            except OSError as error:
                raise files.explained(error, self.path) from error
            # What a prune brings over meanwhile is in neither as it was read.
            self._refresh(self.path)
            if whole and seen == self._mark:
                return

    def _refresh(self, path: str) -> None:
        try:
            if _mark(os.stat(path)) == self._mark:
                return
            descriptor = files.open_for_reading(path)
        except FileNotFoundError:
            if self._mark:
                self._forget()
            return
        except OSError as error:
            raise files.explained(error, path) from error
        try:
            # Another file may stand there than a moment ago.
            mark = _mark(os.fstat(descriptor))
            same = bool(self._mark) and mark[:2] == self._mark[:2] and mark[2] > self._mark[2]
            # One that was written anew, or is shorter, is read from its beginning.
            if not same or not self._goes_on(descriptor):
                self._forget()
                self._resume(descriptor, mark[2])
            self._read(descriptor)
        except OSError as error:
            raise files.explained(error, path) from error
        finally:
            os.close(descriptor)
        self._mark = mark

    def _read_replaced(self, path: str) -> bool:
        """Take the recalls that writers added to what a prune of the log has put aside.

        Whoever holds the log open goes on writing there, until a prune brings it over.

        Returns:
            Whether all of it was there to be read.
        """
        # A prune puts another file in the place of the log, which is then read anew.
        if self._replaced is None:
            try:
                self._replaced = replace.leftovers(path)
            except FileNotFoundError:
                self._replaced = []
        for old in self._replaced:
            try:
                descriptor = files.open_for_reading(old.path, os.O_NOFOLLOW)
            except FileNotFoundError:
                self._replaced = None
                return False
            try:
                self._read_on(descriptor, old)
            finally:
                os.close(descriptor)
        return True

    def _read_on(self, descriptor: int, old: replace.OldFile) -> None:
        status = os.fstat(descriptor)
        mark = (status.st_ino, status.st_size, status.st_mtime_ns)
        if self._marks.get(old.path) == mark:
            return
        # Somebody emptied one that is shorter; and a row may have been copied half written.
        copied = old.copied if old.copied <= status.st_size else 0
        at, rest = files.end_of_lines(descriptor, copied), b""
        while block := os.pread(descriptor, files.BLOCK, at):
            at += len(block)
            *lines, rest = (rest + block).split(b"\n")
            for line in lines:
                self.loose |= self._take(line, torn=True)
            if len(rest) > _LONGEST_LINE:
                rest = b""
        self.loose |= self._take(rest, torn=True)
        self._marks[old.path] = mark

    def is_at(self, status: os.stat_result) -> bool:
        """Whether a file is the log itself, as it was read last."""
        return self._mark[:2] == (status.st_dev, status.st_ino)

    def accessed(self, id_: str) -> str:
        """What a fingerprint holds of the newest recall; empty where there is none."""
        newest = self.newest.get(id_)
        return "" if newest is None else newest.isoformat()

    def state(self) -> LogState:
        """What it says, to be handed in as `before` another time."""
        return LogState(
            self._hash.digest(),
            self._upto,
            msgspec.Raw(msgspec.msgpack.encode(self.newest)),
            self.flags,
            self.unreadable,
        )

    def _forget(self) -> None:
        self._newest, self._base = {}, None
        # Nothing was read the last time: then all that will be is new.
        self.touched = set() if self._before is not None and not self._before.upto else None
        self.flags = {}
        self.unreadable = 0
        self.loose = False
        self._mark = ()
        self._replaced = None
        self._marks = {}
        self._upto = 0
        self._end = b""
        self._hash = _digest()

    def _goes_on(self, descriptor: int) -> bool:
        """Whether a file still ends, up to where it was read, as it did then."""
        end = self._end
        return os.pread(descriptor, len(end), self._upto - len(end)) == end

    def _resume(self, descriptor: int, size: int) -> None:
        """Go on from what it said the last time, if it still begins with the very same bytes."""
        before = self._before
        if before is None or size < before.upto:
            return
        at, hash_ = 0, _digest()
        while at < before.upto:
            block = os.pread(descriptor, min(files.BLOCK, before.upto - at), at)
            if not block:
                return
            hash_.update(block)
            at += len(block)
        if hash_.digest() == before.digest:
            self._hash, self._upto, self.touched = hash_, at, set()
            self._end = os.pread(descriptor, min(_END, at), at - min(_END, at))
            self._base, self.flags = before.newest, dict(before.flags)
            self.unreadable = before.unreadable

    def _read(self, descriptor: int) -> None:
        rest, at, overlong = b"", self._upto, False
        while block := os.pread(descriptor, files.BLOCK, at):
            at += len(block)
            data = rest + block
            cut = data.rfind(b"\n") + 1
            whole, rest = data[:cut], data[cut:]
            lines = whole.split(b"\n")[:-1]
            if overlong and lines:
                del lines[0]
                overlong = False
                self.unreadable += 1
            if len(rest) > _LONGEST_LINE:
                whole, rest, overlong = whole + rest, b"", True
            for line in lines:
                self._take(line)
            self._hash.update(whole)
            self._upto += len(whole)
            self._end = (self._end + whole)[-_END:]
        if rest and not overlong:
            # Its writer may be about to end it; what is whole already counts.
            self.loose |= self._take(rest, torn=True)

    def _take(self, line: bytes, torn: bool = False) -> bool:
        """Take in what a line says; tells whether it is a recall."""
        try:
            row = _decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            found = _leniently(line)
            if found is None:
                self.unreadable += bool(line.strip()) and not torn
                # Behind what a killed writer left, the next may have gone on in the same line.
                at = line.rfind(b'{"event"')
                if at <= 0 or (found := _leniently(line[at:])) is None:
                    return False
                torn = True
            row = found
        if row.event == "recall":
            instant = _instant(row.ts, self.zone)
            ids = row.entities if row.entities is not None else [row.entity] if row.entity else None
            self.unreadable += (instant is None or ids is None) and not torn
            self._recalled(ids or [], instant or UNTOLD)
        elif row.event == "retention" and not torn:
            if row.action == "flag":
                self.flags[row.entity] = Flag(row.rule, row.ts)
            elif row.action == "delete":
                self.flags.pop(row.entity, None)
                self._ended(row.entity)
        return row.event == "recall"

    def _ended(self, id_: str) -> None:
        """What comes under an id after a deletion is another thing, which nobody has recalled."""
        self.newest.pop(id_, None)
        if self.touched is not None:
            self.touched.add(id_)

    def _recalled(self, ids: list[str], instant: datetime) -> None:
        newest = self._newest
        for id_ in ids:
            # Other programs write names as they are, and not as ids, or with what they end with.
            escaped = escape(id_)
            names = [id_] if escaped == id_ else [id_, escaped]
            if self._suffix and id_.endswith(self._suffix):
                names += [name.removesuffix(self._suffix) for name in names]
            for name in names:
                if newest.get(name, instant) <= instant:
                    newest[name] = instant
                if self.touched is not None:
                    self.touched.add(name)


def _mark(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _digest() -> hashlib.blake2b:
    # The mark is to be changed whenever something else than before is read from the same log.
    return hashlib.blake2b(digest_size=16, person=b"3")


def _instant(text: str, zone: tzinfo) -> datetime | None:
    # By far the most are written like this, and read so four times as fast.
    if text[4:5] == "-" and text[10:11] == "T" and text[-1:] == "Z":
        try:
            return datetime.fromisoformat(text)
        except ValueError:
            pass
    match parse_instant(text, source="ts", zone=zone):
        case Known(instant):
            return instant
        case _:
            return None


def _leniently(line: bytes) -> _Row | None:
    """A row as any JSON reader takes it, with those of its parts that are what they should be."""
    try:
        raw: Any = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(raw, dict):
        return None
    texts = {
        key: raw[key] if isinstance(raw.get(key), str) and is_text(raw[key]) else ""
        for key in ("event", "ts", "action", "entity", "rule")
    }
    listed = raw.get("entities")
    if not isinstance(listed, list):
        listed = [raw.get("entity") if listed is None else listed]
    named = [one.get("id") if isinstance(one, dict) else one for one in listed]
    # A name that is not UTF-8 is known by its id alone.
    ids = [id_ if is_text(id_) else escape(id_) for id_ in named if isinstance(id_, str)]
    ids = [id_ for id_ in ids if is_text(id_)]
    return _Row(**texts, entities=ids if ids or not named else None)
