"""keepfor.yaml and the environment, read strictly into stores and their policies."""

from __future__ import annotations

from keepfor.config.entities import Entities
from keepfor.config.loading import Config, load, policy_of, traps
from keepfor.config.models import Ledger, Runs, Store, Trail
from keepfor.config.paths import NAME, find
from keepfor.config.showing import INIT, Row, schema, show
from keepfor.config.tables import Table

__all__ = [
    "INIT",
    "NAME",
    "Config",
    "Entities",
    "Ledger",
    "Row",
    "Runs",
    "Store",
    "Table",
    "Trail",
    "find",
    "load",
    "policy_of",
    "schema",
    "show",
    "traps",
]
