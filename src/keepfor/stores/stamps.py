"""Timestamps in names, read one by one or, where they are all of one shape, all at once.

Imported by every program that appends a run, so it imports next to nothing.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, tzinfo

from keepfor.times import Instant, Unknown, parse_instant

#: `2026-07-25T23:00:00.000Z` and what becomes of it in a file name, where colons and plus signs
#: turn into something else; a date alone. Separators of hours, minutes and seconds are the same.
_DASHED = (
    r"(?<!\d)((?:19|20|21)\d\d)-(\d\d)-(\d\d)"
    r"(?:([Tt_ -])(\d\d)([:_.-])(\d\d)\6(\d\d)"
    r"(?:[.,](\d{1,9})|_(\d{3}|\d{6}))?(?!\d)([Zz]|[+_-]\d\d[:_]\d\d(?!\d))?)?(?!\d)"
)
#: `20260725T230000Z`. Eight digits alone could be a part of anything, and are no date.
_COMPACT = (
    r"(?<![0-9A-Za-z])((?:19|20|21)\d\d)(\d\d)(\d\d)[T_-](\d\d)(\d\d)(\d\d)"
    r"(?:[.,](\d{1,9}))?(Z|[+-]\d{4})?(?![0-9A-Za-z])"
)
_STAMP = re.compile(f"(?:{_DASHED})|(?:{_COMPACT})", re.ASCII)

_DIGITS_TO_ZERO = str.maketrans("123456789", "000000000")


def stamp(name: str, zone: tzinfo = UTC) -> Instant:
    """The first timestamp in a name.

    Parameters:
        name: with its suffix or without.
        zone: the zone of a timestamp that names none.

    Returns:
        Known, with the source `name`; a date alone is the end of its day.
    """
    found = _STAMP.search(name)
    if found is None:
        return Unknown("the name carries no timestamp")
    return parse_instant(_iso(found), source="name", zone=zone)


def uniform(names: list[str], zone: tzinfo = UTC) -> list[datetime] | None:
    """The timestamps of names that all begin alike and go on with one of the same shape.

    Such names, sorted as text, are sorted by their timestamps. All are read at once, which costs a
    tenth of reading them one by one; they are read all the same, since a thirteenth month has that
    shape too.

    Returns:
        None where the names are not of one shape, or the order of the text is not that of time.
    """
    found = _STAMP.search(names[0]) if names else None
    if found is None or found[4] != "T" or found[6] not in ("_", ":"):
        return None
    if found[11] not in (None, "Z") or (found[11] is None and zone is not UTC):
        return None
    start, end = found.span()
    if min(names)[:start] != max(names)[:start]:
        return None
    if any(_goes_on(tail, found[11]) for tail in {name[end : end + 2] for name in names}):
        return None
    heads = [name[:end] for name in names]
    shape = heads[0].translate(_DIGITS_TO_ZERO)
    if "\0".join(heads).translate(_DIGITS_TO_ZERO) != "\0".join([shape] * len(heads)):
        return None
    ending = "" if found[11] else "Z"
    text = f"{ending}\0".join([name[start:end] for name in names]).replace("_", ":") + ending
    try:
        return list(map(datetime.fromisoformat, text.split("\0")))
    except ValueError:
        return None


def _goes_on(tail: str, zone: str | None) -> bool:
    """Whether what follows a timestamp of that zone would be a part of it, and it of another shape.

    Parameters:
        tail: the next two characters.
    """
    if zone is None and tail[:1] in (".", ",", "_", "+", "-"):
        return tail[1:].isdigit()
    return tail[:1].isdigit() or (zone is None and tail[:1] in ("Z", "z"))


def _iso(found: re.Match[str]) -> str:
    if found[1] is None:
        year, month, day, hour, minute, second, fraction, zone = found.groups()[11:]
    else:
        year, month, day, _, hour, _, minute, second, fraction, millis, zone = found.groups()[:11]
        fraction = fraction or millis
    if hour is None:
        return f"{year}-{month}-{day}"
    if zone is not None and zone not in "Zz":
        # A plus sign and the colon behind it are what a name can hold least of all.
        zone = zone.replace("_", "+", 1) if zone[0] == "_" else zone
        zone = zone.replace("_", ":")
    fraction = f".{fraction}" if fraction else ""
    return f"{year}-{month}-{day}T{hour}:{minute}:{second}{fraction}{zone or ''}"
