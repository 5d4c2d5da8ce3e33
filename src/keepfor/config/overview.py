"""All that is told of how a configured store stands, put together for whoever shows it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime

import msgspec

from keepfor.config.asking import settings, store
from keepfor.config.loading import Config, policy_of
from keepfor.config.models import Store
from keepfor.config.opening import open_trail
from keepfor.config.standing import Leftover, leftovers
from keepfor.errors import KeepforError
from keepfor.history.coming import NextRun, next_run, process_of
from keepfor.history.standing import Standing, standing
from keepfor.stores.base import Progress
from keepfor.trail import Sweep, latest


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """How a store was found to stand.

    Parameters:
        name: the store's.
        stands: what history it holds, and what its policy would do now.
        settings: its settings.
        swept: its last sweep, if any is on record.
        coming: its next one, as far as that is known.
        left: what earlier sweeps left.
    """

    name: str
    stands: Standing
    settings: Store
    swept: Sweep | None
    coming: NextRun | None
    left: Sequence[Leftover]


def last_sweeps(config: Config, names: Iterable[str]) -> dict[str, Sweep]:
    """The last sweep of each of these stores that has one on record, by their addresses.

    Raises:
        StoreError: when the trail cannot be read.
    """
    targets = set[str]()
    for name in names:
        # Of a store that cannot even be opened, `overview` says so, and the others show on.
        with suppress(KeepforError):
            targets.add(store(config, name).target)
    return latest(open_trail(config).records(), targets)


def overview(
    config: Config,
    name: str,
    now: datetime,
    last: Mapping[str, Sweep],
    progress: Progress | None = None,
) -> Overview:
    """How a store stands. Writes nothing.

    Parameters:
        config: the configuration.
        name: the store's.
        now: the instant to judge ages by.
        last: from `last_sweeps`, which reads the trail once for many stores.
        progress: called with how far it is, where it takes long.

    Raises:
        UnknownStore: when there is no such store.
        StoreError: when it cannot be read.
    """
    said, opened = settings(config, name), store(config, name)
    stands = standing(opened, policy_of(said), now, progress)
    swept = last.get(stands.target)
    process = process_of(config.state_dir, stands.target)
    return Overview(
        name=name,
        stands=stands,
        settings=said,
        swept=swept,
        coming=next_run(swept, said.interval, stands.now, process),
        left=leftovers(opened),
    )
