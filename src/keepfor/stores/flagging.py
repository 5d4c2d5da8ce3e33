"""Flags one note, only if it is still the one that the plan saw, and nobody is writing to it.

The text with the flag is written beside the note, given its mode, owner, attributes and times, and
then exchanged with it in one step. What was displaced is compared with what was read; an edit that
slipped in gets its name back. What lies beside a note meanwhile:

    .keepfor-draft.TOKEN            a text that is being written
    .keepfor-flag.TOKEN.OURS.NAME   the finished text, which OURS tells, as NAME tells the note's
                                    name; after the exchange, what it displaced. TOKEN tells
                                    whether that is as the plan saw it

A flag killed on the way is cleared away by `recover`, or undone where an edit had slipped in. Where
the text with the flag was changed as well, both stay, and `leftovers` tells of what is aside.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress

from keepfor.errors import CannotReplace
from keepfor.stores.exchange import exchange
from keepfor.stores.flagtext import flagged
from keepfor.stores.frontmatter import CAP, Refused
from keepfor.stores.leases import held_open
from keepfor.stores.removal import (
    CHANGED,
    GONE,
    IN_USE,
    MOVED,
    Removal,
    content_of,
    fingerprint,
    never_moved,
    not_opened,
    token_of,
)
from keepfor.stores.replace import copy_attributes

_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_PROBE = os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_DRAFT = re.compile(r"\.keepfor-draft\.[0-9a-f]{12}")
_MARK = re.compile(r"\.keepfor-flag\.([0-9a-f]{12})\.([0-9a-f]{12})\.([0-9a-f]{12})")
_STANDS = "it carries this flag already"


def flag(
    folder: int,
    name: str,
    seen: str,
    *,
    at: str,
    reason: str,
    rule: str,
    moved: Callable[[], bool] = never_moved,
) -> Removal:
    """Write a flag into the frontmatter of a note; nothing else of it changes.

    Parameters:
        folder: the folder's descriptor; its store is locked, so that no other sweep is at work.
        name: the note's.
        seen: the fingerprint that the plan saw.
        at: when it is flagged.
        reason: why.
        rule: by which rule.
        moved: whether the folder stands elsewhere by now; asked once the text is displaced.
    """
    try:
        # An exchange would get round the mode of a file that is not to be changed.
        os.close(os.open(name, _PROBE, dir_fd=folder))
        descriptor = os.open(name, _FILE, dir_fd=folder)
    except FileNotFoundError:
        return Removal(result="skipped", why=GONE)
    except OSError as error:
        return not_opened(folder, name, seen, error)
    try:
        status = os.fstat(descriptor)
        if fingerprint(status) != seen:
            return Removal(result="skipped", why=CHANGED)
        if held_open(descriptor):
            return Removal(result="skipped", why=IN_USE)
        head = os.pread(descriptor, CAP, 0)
        new = flagged(head, at=at, reason=reason, rule=rule)
        if new == head:
            return Removal(result="skipped", why=_STANDS)
        return _exchange(folder, name, descriptor, status, head, new, moved)
    except (Refused, CannotReplace) as refused:
        return Removal(result="failed", why=str(refused))
    except FileNotFoundError:
        return Removal(result="skipped", why=GONE)
    except OSError as error:
        return Removal(result="failed", why=error.strerror or str(error))
    finally:
        os.close(descriptor)


def recover(folder: int, names: list[str]) -> None:
    """Clear away, or undo, what a killed sweep left.

    Parameters:
        folder: the folder's descriptor, of a store that is locked.
        names: what is in it.
    """
    for name in names:
        with suppress(FileNotFoundError):
            if _DRAFT.fullmatch(name):
                # A folder that is called so is none of ours.
                if stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
                    os.unlink(name, dir_fd=folder)
            elif mark := _MARK.fullmatch(name):
                _settle(folder, mark)


def leftovers(names: list[str]) -> list[str]:
    """Which of these names in a folder a killed sweep left."""
    return [name for name in names if _DRAFT.fullmatch(name) or _MARK.fullmatch(name)]


def _exchange(
    folder: int,
    name: str,
    descriptor: int,
    status: os.stat_result,
    head: bytes,
    new: bytes,
    moved: Callable[[], bool],
) -> Removal:
    mark, ours, copied = _draft(folder, name, descriptor, status, head, new)
    try:
        if fingerprint(os.fstat(descriptor)) != fingerprint(status):
            return Removal(result="skipped", why=CHANGED)
        exchange(folder, mark, name)
        why = MOVED if moved() else _still(folder, mark, descriptor, status, copied)
        if not why:
            os.unlink(mark, dir_fd=folder)
            return Removal(result="applied", why=_other_names(status))
        # An edit slipped in, or it is none of ours any more: it gets its name back.
        exchange(folder, mark, name)
        if not _is(ours, folder, mark):
            why += f", and what came after that is aside as {mark}"
        return Removal(result="skipped", why=why)
    finally:
        # Anything else that stands under the mark is for `recover` to settle.
        with suppress(FileNotFoundError):
            if _is(ours, folder, mark):
                os.unlink(mark, dir_fd=folder)


def _draft(
    folder: int, name: str, source: int, status: os.stat_result, head: bytes, new: bytes
) -> tuple[str, str, bytes]:
    """Write the whole text with the flag beside a note.

    Returns: its name, what it looks like, and a digest of the note that was read for it.
    """
    token = token_of(status)
    draft = f".keepfor-draft.{token}"
    target = os.open(draft, _NEW, 0o600, dir_fd=folder)
    try:
        copied = hashlib.sha256(head)
        _write(target, new)
        for block in _blocks(source, CAP):
            copied.update(block)
            _write(target, block)
        copy_attributes(source, target, name)
        os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))
        os.fsync(target)
        ours = os.fstat(target)
        mark = f".keepfor-flag.{token}.{token_of(ours)}.{_hash(name)}"
        os.rename(draft, mark, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(draft, dir_fd=folder)
        raise
    finally:
        os.close(target)
    return mark, content_of(ours), copied.digest()


def _blocks(source: int, at: int) -> Iterator[bytes]:
    while block := os.pread(source, CAP, at):
        yield block
        at += len(block)


def _write(target: int, data: bytes) -> None:
    while data:
        data = data[os.write(target, data) :]


def _still(folder: int, mark: str, descriptor: int, status: os.stat_result, copied: bytes) -> str:
    """Why what was displaced is not what was read."""
    displaced = os.stat(mark, dir_fd=folder, follow_symlinks=False)
    if content_of(displaced) != content_of(status):
        return CHANGED
    if held_open(descriptor):
        return IN_USE
    # An edit may have put the size and the mtime back.
    now = hashlib.sha256()
    for block in _blocks(descriptor, 0):
        now.update(block)
    return "" if now.digest() == copied else CHANGED


def _is(ours: str, folder: int, mark: str) -> bool:
    """Whether what stands under a mark is the text that was written there, and at rest."""
    descriptor = os.open(mark, _FILE, dir_fd=folder)
    try:
        return content_of(os.fstat(descriptor)) == ours and not held_open(descriptor)
    finally:
        os.close(descriptor)


def _settle(folder: int, mark: re.Match[str]) -> None:
    token, ours, whose = mark.groups()
    # Ours, which nobody has had by the note's name; or the note as the plan saw it, displaced.
    if _told_by((ours, token), folder, mark[0]):
        os.unlink(mark[0], dir_fd=folder)
        return
    for name in os.listdir(folder):
        # An edit that slipped in; it gets its name back from the text that displaced it.
        if _hash(name) == whose and _told_by((ours,), folder, name):
            exchange(folder, mark[0], name)
            if _told_by((ours,), folder, mark[0]):
                os.unlink(mark[0], dir_fd=folder)
            else:
                # Another edit came just now: it keeps the name.
                exchange(folder, mark[0], name)
            return


def _told_by(tokens: tuple[str, ...], folder: int, name: str) -> bool:
    """Whether a file is one that these tokens tell, and nobody writes to it."""
    try:
        descriptor = os.open(name, _FILE, dir_fd=folder)
    except FileNotFoundError:
        raise
    except OSError:
        return False
    try:
        # Asked in this order, so that what a writer did before he closed it is seen.
        return not held_open(descriptor) and token_of(os.fstat(descriptor)) in tokens
    finally:
        os.close(descriptor)


def _hash(name: str) -> str:
    return hashlib.sha256(os.fsencode(name)).hexdigest()[:12]


def _other_names(status: os.stat_result) -> str:
    others = status.st_nlink - 1
    if not others:
        return ""
    return f"{others} other name{'s' if others > 1 else ''} of the file still hold it unflagged"
