"""What is wrong with a configuration: collected, so that all of it is said at once."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable

import msgspec

from keepfor.errors import BadConfig

#: Faults in the environment come after those of the file.
LAST_LINE = 2**31


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is wrong.

    Parameters:
        where: the file, line and key, or the variable.
        what: what is wrong there and what to write instead, in one or two sentences.
        line: the line in the file, to sort by.
    """

    where: str
    what: str
    line: int = LAST_LINE


def refusal(faults: Iterable[Fault]) -> BadConfig:
    """The error that says all of them, a line each, in the order of the file."""
    ordered = sorted(faults, key=lambda fault: fault.line)
    return BadConfig(faults="\n".join(f"{fault.where}: {fault.what}" for fault in ordered))


def closest(word: str, known: Iterable[str]) -> str | None:
    """The known word that the wrong one most likely meant."""
    return next(iter(difflib.get_close_matches(word, list(known), n=1)), None)


def nearest(word: str, known: Collection[str]) -> str:
    """A sentence that leads from a wrong word to a right one."""
    if close := closest(word, known):
        return f"Did you mean {close}?"
    return f"Known here: {', '.join(known) or 'nothing'}."
