"""What every verb is handed: where it prints, what is configured, what time it is."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from keepfor.errors import KeepforError
from keepfor.times import utc_now

if TYPE_CHECKING:
    from keepfor.cli.output import Output
    from keepfor.config import Config
    from keepfor.config.models import Store
    from keepfor.stores.entities import EntityStore
    from keepfor.stores.ledger import LedgerStore
    from keepfor.stores.runs import RunStore
    from keepfor.stores.table import TableStore
    from keepfor.trail import Trail


class Invocation:
    """One run of keepfor.

    Parameters:
        out: where it prints.
        named: the configuration file that the command line names, if any.
        clock: tells the present instant.
        environ: the environment, which overrides what the file says.

    Attributes:
        policy: a file with the rules of stores of notes, in place of what holds else. It counts if
            it is named before the configuration is first asked for.
    """

    def __init__(
        self,
        out: Output,
        named: Path | None = None,
        clock: Callable[[], datetime] = utc_now,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self.out = out
        self.named = named
        self.clock = clock
        self.environ = environ
        self.policy: Path | None = None

    @cached_property
    def config(self) -> Config:
        """The configuration in force."""
        from keepfor import config

        return config.load(self.named, self.environ, policy=self.policy)

    @cached_property
    def trail(self) -> Trail:
        """Where sweeps are recorded."""
        from keepfor.config.opening import open_trail

        return open_trail(self.config)

    def names(self, wanted: Iterable[str]) -> list[str]:
        """The stores to work on, each once: those wanted, or all that are configured.

        Raises:
            UnknownStore: when one of them is not configured.
        """
        names = list(dict.fromkeys(wanted)) or list(self.config.stores)
        for name in names:
            self.settings(name)
        return names

    def settings(self, name: str) -> Store:
        """A store's settings.

        Raises:
            UnknownStore: when there is no such store.
        """
        from keepfor.config import asking

        found = asking.settings(self.config, name)
        if self.policy is not None and found.kind != "entities":
            raise asking.of_another_kind(self.config, name, "entities")
        return found

    def store(self, name: str) -> LedgerStore | RunStore | TableStore | EntityStore:
        """A store, to look at or to act on."""
        from keepfor.config.opening import open_store

        self.settings(name)
        return open_store(self.config, name)

    def ledger(self, name: str) -> LedgerStore:
        """A store that has to be a ledger.

        Raises:
            ConfigError: when it is of another kind.
        """
        from keepfor.config import asking

        return asking.ledger(self.config, name)

    def runs(self, name: str) -> RunStore:
        """A store that has to be a directory of runs.

        Raises:
            ConfigError: when it is of another kind.
        """
        from keepfor.config import asking

        return asking.runs(self.config, name)

    def entities(self, name: str) -> EntityStore:
        """A store that has to be one of notes and sessions.

        Raises:
            ConfigError: when it is of another kind.
        """
        from keepfor.config import asking

        return asking.entities(self.config, name)

    def items(self, name: str) -> RunStore | EntityStore:
        """A store that has to hold items with an identity.

        Raises:
            ConfigError: when it holds rows.
        """
        from keepfor.config import asking

        self.settings(name)
        return asking.items(self.config, name)

    def table(self, name: str) -> TableStore:
        """A store that has to be a table.

        Raises:
            ConfigError: when it is of another kind.
        """
        if self.settings(name).kind != "table":
            from keepfor.config import asking

            raise asking.of_another_kind(self.config, name, "table")
        from keepfor.stores.table import TableStore

        store = self.store(name)
        assert isinstance(store, TableStore)
        return store

    def warn(self, error: KeepforError | OSError) -> None:
        """Say what kept one store of several from being worked on."""
        self.out.say(f"keepfor: {error}")
