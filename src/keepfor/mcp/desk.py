"""What all tools work with: the configuration as it is now, the clock, the plans shown."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path

from anyio import from_thread

from keepfor import config
from keepfor.config import Config, asking
from keepfor.errors import ConfigError, KeepforError, UnknownPlan
from keepfor.mcp.answers import Problem
from keepfor.mcp.asked import MOST
from keepfor.mcp.bounds import message
from keepfor.plan import Plan
from keepfor.stores.base import Progress
from keepfor.sweeper import Stopped


class Desk:
    """Where one server keeps what its tools share.

    Parameters:
        named: the configuration file; None for the one that is found.
        environ: the environment, which overrides what the file says.
        clock: tells the present instant.
        applies: whether a plan that is shown may be applied later, and so is remembered.
    """

    def __init__(
        self,
        named: Path | None,
        environ: Mapping[str, str],
        clock: Callable[[], datetime],
        *,
        applies: bool,
    ) -> None:
        self.now = clock
        self._applies = applies
        self._named = named
        self._environ = environ
        self._shown: dict[str, Plan] = {}

    def config(self) -> Config:
        """The configuration in force: read anew, for a server outlives many an edit of it.

        Raises:
            BadConfig: with everything that is wrong.
        """
        return config.load(self._named, self._environ)

    def keep(self, plan: Plan) -> None:
        """Remember a plan that is shown now, in place of an earlier one of its store."""
        if self._applies:
            self._shown[plan.store] = plan

    def shown(self, digest: str) -> Plan:
        """The plan of that digest.

        Raises:
            UnknownPlan: when it was not shown, or is no longer the last of its store.
        """
        for plan in list(self._shown.values()):
            if plan.digest == digest:
                return plan
        raise UnknownPlan(digest=digest[:64])


def names_of(settings: Config, wanted: Sequence[str]) -> list[str]:
    """The stores to work on, each once: those wanted, or all that are configured.

    Raises:
        UnknownStore: when one of them is not configured.
        ConfigError: when they are more than one answer has room for.
    """
    names = list(dict.fromkeys(wanted)) or list(settings.stores)
    if len(names) > MOST:
        what = f"these are {len(names)} stores, and one answer tells of {MOST} at most."
        raise ConfigError(where="stores", what=what, fix="Name those that you want.")
    for name in names:
        asking.settings(settings, name)
    return names


def until_cancelled(store: str) -> Progress:
    """Stops the work on a store, at its next step, once nobody waits for it any more."""

    def step(_done: int, _total: int) -> None:
        try:
            from_thread.check_cancelled()
        except asyncio.CancelledError:
            raise Stopped(store=store) from None

    return step


def problem(error: KeepforError | OSError) -> Problem:
    """What stands in the place of a store that cannot be read."""
    return Problem(type=type(error).__name__, message=message(error))
