"""The background loop: holds every store to its policy for as long as a program runs."""

from __future__ import annotations

from keepfor.sweeper.keeping import Stopped
from keepfor.sweeper.loop import Sweeper

__all__ = ["Stopped", "Sweeper"]
