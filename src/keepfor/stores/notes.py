"""One note: what the store needs to know of its frontmatter, read from its first bytes."""

from __future__ import annotations

import os
from collections.abc import Collection

import msgspec

from keepfor.stores import frontmatter
from keepfor.stores.frontmatter import CAP, FLAG, FLAGGED_AT, KEYS, LISTS, RULE, Frontmatter

#: How much of a note is read at first, in bytes; more only where its frontmatter goes on.
FIRST = 2048

_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
#: A key that is in doubt, and without which nobody can say what the note is.
_TELLING = ("type", *FLAG)


class Head(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What a note says of itself, before anybody asks where it lies.

    Parameters:
        type: under `type`; empty where it says nothing.
        session: under `trajectory`.
        links: what it names in `supersedes`, `source` and `links`; None where that cannot be told.
        rule: the rule that flagged it.
        flagged_at: when that was, as it is written.
        date: what stands under the key that tells its age; None where that key is missing.
        fields: what stands under the keys that rules match on.
        held: why nothing may happen to it: what it is cannot be told.
        doubts: what else cannot be told of it, each a short sentence.
    """

    type: str = ""
    session: str = ""
    links: tuple[str, ...] | None = ()
    rule: str = ""
    flagged_at: str = ""
    date: str | None = None
    fields: dict[str, str] = {}
    held: str = ""
    doubts: tuple[str, ...] = ()


class Reader:
    """Reads notes.

    Parameters:
        fields: the keys that rules match on.
        date: the key that tells the age of a note; None where its mtime does.
    """

    def __init__(self, fields: Collection[str], date: str | None) -> None:
        self._fields = tuple(fields)
        self._date = date
        self._telling = tuple(dict.fromkeys((*_TELLING, *self._fields)))
        self.keys = frozenset(KEYS | set(fields) | ({date} if date else set()))
        # Thousands of notes say the same.
        self._said: dict[tuple[tuple[bytes, bytes], ...], Head] = {}

    def read(self, name: str, folder: int) -> Head:
        """What the note of that name in a folder says.

        Raises:
            OSError: when it cannot be read.
        """
        descriptor = os.open(name, _FILE, dir_fd=folder)
        try:
            data = os.read(descriptor, FIRST)
            found = frontmatter.pairs(data, self.keys)
            if found is not None:
                known = tuple(found)
                if known in self._said:
                    return self._said[known]
            said = frontmatter.read(data, self.keys)
            if not said.complete and len(data) == FIRST:
                said = frontmatter.read(data + os.pread(descriptor, CAP - FIRST, FIRST), self.keys)
        finally:
            os.close(descriptor)
        head = self._head(said)
        if found is not None:
            self._said[known] = head
        return head

    def _head(self, said: Frontmatter) -> Head:
        if said.why:
            return Head(links=None, held=said.why)
        texts = said.texts
        held = next((said.doubt(key) for key in self._telling if key in said.unread), "")
        unsaid = LISTS & said.unread.keys()
        named = [name for key in sorted(LISTS) for name in said.named(key)]
        return Head(
            type=texts.get("type", ""),
            session=texts.get("trajectory", ""),
            links=None if unsaid else tuple(named),
            rule=texts.get(RULE, ""),
            flagged_at=texts.get(FLAGGED_AT, ""),
            date=texts.get(self._date) if self._date else None,
            fields={key: texts[key] for key in self._fields if key in texts},
            held=held,
            doubts=tuple(said.doubt(key) for key in said.unread if key not in self._telling),
        )
