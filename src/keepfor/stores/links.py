"""What notes name, as ids of what is there: an id, a file's name, a path, or a [[wikilink]]."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator

_WIKI = re.compile(r"\[\[([^\[\]]*)\]\]")


class Links:
    """The ids of a store, to be found by whatever notes call them.

    Where a name may mean several, it means all of them: what is cited is spared.

    Parameters:
        ids: of all that is there.
        suffix: what the files of notes end with, and their ids do not.
    """

    def __init__(self, ids: Iterable[str], suffix: str) -> None:
        self._ids = set(ids)
        self._suffix = suffix
        self._named: dict[str, list[str]] = {}
        for id_ in self._ids:
            self._named.setdefault(_last(id_), []).append(id_)
        self._known: dict[tuple[str, str], tuple[str, ...]] = {}

    def resolve(self, id_: str, links: Iterable[str]) -> tuple[str, ...]:
        """The ids that a note names, in order; what leads to nothing that is there is left out.

        Parameters:
            id_: the note's own.
            links: what stands in it.
        """
        folder = posixpath.dirname(id_)
        found: set[str] = set()
        for link in links:
            key = (folder, link)
            if key not in self._known:
                self._known[key] = tuple(self._one(folder, link))
            found.update(self._known[key])
        return tuple(sorted(found))

    def _one(self, folder: str, link: str) -> Iterator[str]:
        for name in _WIKI.findall(link) or (link,):
            yield from self._meant(folder, name.partition("|")[0].partition("#")[0].strip())

    def _meant(self, folder: str, name: str) -> Iterator[str]:
        for form in dict.fromkeys((name, name.removesuffix(self._suffix))):
            if not form:
                continue
            below = posixpath.normpath(posixpath.join(folder, form))
            here = {candidate for candidate in (form, below) if candidate in self._ids}
            if here:
                yield from here
                return
        # From elsewhere, such as `.evolve/entities/guideline/x.md`: by as much of it as is known.
        parts = name.removesuffix(self._suffix).split("/")
        for start in range(1, len(parts)):
            tail = "/".join(parts[start:])
            if tail in self._ids:
                yield tail
                return
        yield from self._named.get(_last(name.removesuffix(self._suffix)), ())


def _last(id_: str) -> str:
    """The last part of a path, in whatever case it is written."""
    return id_.rpartition("/")[2].casefold()
