"""For tests: a clock that is set, a store in memory; and, in `suite`, what every store promises."""

from __future__ import annotations

from keepfor.testing.doubles import FixedClock, MemoryStore

__all__ = ["FixedClock", "MemoryStore"]
