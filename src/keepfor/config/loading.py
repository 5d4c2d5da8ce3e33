"""Loads the configuration: finds the file, lays the environment over it, checks all of it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from types import MappingProxyType

import msgspec

from keepfor.config.document import Dotted, read
from keepfor.config.entities import Entities
from keepfor.config.faults import refusal
from keepfor.config.judging import judge
from keepfor.config.layers import Layer, Surroundings, gather
from keepfor.config.models import Ledger, Settings, Store, Trail
from keepfor.config.paths import find, shown
from keepfor.config.sections import Section
from keepfor.errors import BadConfig
from keepfor.items import Item
from keepfor.policy.lint import Trap, lint
from keepfor.policy.rules import Policy

NOTHING: Mapping[str, Sequence[Item]] = MappingProxyType({})


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """What is in force: read as it stands, with no default to add anywhere.

    Parameters:
        path: the file that it was loaded from.
        stores: the stores by name, in the order of the file.
        trail: what the record of sweeps is held to.
        state_dir: the folder for the trail, plans and caches.
        sources: where each setting's value came from, by its dotted path.
    """

    path: Path
    stores: dict[str, Store]
    trail: Trail
    state_dir: Path
    sources: dict[str, str]


def load(
    path: Path | None = None,
    environ: Mapping[str, str] = os.environ,
    cwd: Path | None = None,
    policy: Path | None = None,
) -> Config:
    """The configuration in force.

    Parameters:
        path: the file, where the command line names one.
        environ: the environment, which overrides what the file says.
        cwd: the working folder, in which the search for a file begins.
        policy: a file with the rules of every store of notes, in place of what holds else.

    Returns:
        The configuration, every value of it checked.

    Raises:
        BadConfig: with everything that is wrong, a line each.
    """
    folder = _working_folder() if cwd is None else cwd.absolute()
    file = find(path, environ, folder)
    document = read(file, shown(file, folder))
    faults = list(document.faults)
    around = Surroundings(
        document=document, file=file, folder=folder, environ=environ, policy=policy
    )
    sections = gather(around, faults)
    settings = judge(sections, document, faults)
    if settings is None or faults:
        raise refusal(faults)
    return Config(
        path=file,
        stores=settings.stores,
        trail=settings.trail,
        state_dir=settings.state_dir,
        sources=_sources(settings, sections),
    )


def policy_of(store: Store) -> Policy:
    """What a store is held to."""
    return store.policy()


def traps(config: Config, held: Mapping[str, Sequence[Item]] = NOTHING) -> dict[str, list[Trap]]:
    """What is well-formed and will still surprise its owner, by store; stores without are left out.

    Two stores in one place are a trap where they differ: the stricter one wins each time.

    Parameters:
        config: the configuration.
        held: what some stores hold, by their names; of others the settings alone are looked at.
    """
    found: dict[str, list[Trap]] = {}
    first: dict[str, str] = {}
    for name, store in config.stores.items():
        found[name] = lint(policy_of(store), held.get(name, ()), _log_keep_for(config, store))
        other = first.setdefault(store.place, name)
        if _but_for_its_place(store) != _but_for_its_place(config.stores[other]):
            what = f"stores {other} and {name} hold {store.place} to different settings."
            fix = "Write the same for both, or leave one out."
            found[name].append(Trap(rule=store.LIES_AT, what=what, fix=fix))
    return {name: store_traps for name, store_traps in found.items() if store_traps}


def _log_keep_for(config: Config, store: Store) -> timedelta | None:
    """How long the log of accesses is kept that a store of notes goes by; None for ever."""
    if not isinstance(store, Entities) or store.log is None:
        return None
    log = os.path.realpath(store.log)
    ledgers = (other for other in config.stores.values() if isinstance(other, Ledger))
    spans = [each.keep_for for each in ledgers if each.keep_for and each.place == log]
    return min(spans, default=None)


def _but_for_its_place(store: Store) -> dict[str, object]:
    return store.model_dump(exclude={store.LIES_AT})


def _working_folder() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise BadConfig(faults="The working folder is gone. Change to another one.") from None


def _sources(settings: Settings, sections: Mapping[Dotted, Layer]) -> dict[str, str]:
    in_order: dict[Dotted, Section] = {
        ("stores", name): store for name, store in settings.stores.items()
    }
    in_order["trail",] = settings.trail
    sources = {
        ".".join((*path, key)): _source(sections[path], key)
        for path, section in in_order.items()
        for key in type(section).model_fields
    }
    return sources | {"state_dir": _source(sections[()], "state_dir")}


def _source(layer: Layer, key: str) -> str:
    return layer[key].source if key in layer else "default"
