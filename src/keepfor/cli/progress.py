"""A progress bar that appears when something takes longer than one cares to wait blindly."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from keepfor.escape import visible

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

#: Shorter work shows no bar, in seconds.
PATIENCE = 1.0


class Bar:
    """A bar on stderr, which is gone when the work is done.

    Parameters:
        what: what is being done, in a few words.
    """

    def __init__(self, what: str) -> None:
        self._what = visible(what)
        self._started = time.monotonic()
        self._bar: tuple[Progress, TaskID] | None = None

    def update(self, done: int, total: int) -> None:
        """Show how far it is.

        Parameters:
            done: how much is done, in bytes or items.
            total: how much there is to do.
        """
        if self._bar is None:
            if time.monotonic() - self._started < PATIENCE:
                return
            self._bar = self._begin()
        progress, task = self._bar
        progress.update(task, completed=done, total=total)

    def close(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar[0].stop()

    def _begin(self) -> tuple[Progress, TaskID]:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f}%", markup=False),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        progress.start()
        return progress, progress.add_task(self._what, total=None)
