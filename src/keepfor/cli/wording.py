"""How numbers, sizes, instants and durations are written for people."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from keepfor.items import noun
from keepfor.times import format_duration

_MINUTE, _DAY = timedelta(minutes=1), timedelta(days=1)


def instant(moment: datetime | None) -> str:
    """To the second, in UTC, and fit to be pasted into `--now` or `--since`."""
    if moment is None:
        return "-"
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def size(count: int) -> str:
    """A size that is easy to take in; the exact one is in the JSON."""
    for unit, bits in (("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if count >= 1 << bits:
            return f"{count / (1 << bits):.1f} {unit}"
    return f"{count} B"


def span(duration: timedelta) -> str:
    """A duration, as coarse as its length allows: `12d`, `3h20min`, `4.5s`, `12ms`."""
    if duration < timedelta(seconds=1):
        return f"{duration / timedelta(milliseconds=1):.0f}ms"
    if duration < _MINUTE:
        return f"{duration.total_seconds():.1f}s"
    grain = 60 if duration < _DAY else 3600 if duration < 10 * _DAY else 86_400
    return format_duration(timedelta(seconds=int(duration.total_seconds()) // grain * grain))


def number(count: int) -> str:
    """A count, in groups of three digits."""
    return f"{count:,}"


def rows(count: int, kind: str = "ledger") -> str:
    """So many rows, or whatever a store of that kind holds."""
    thing = noun(kind)
    return f"{number(count)} {thing if count == 1 else f'{thing}s'}"


def listed(names: list[str]) -> str:
    """`a, b and c`."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
