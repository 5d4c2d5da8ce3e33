"""Makes what an AI agent remembers expire on a clock."""

from __future__ import annotations

__version__ = "0.1.0"

#: Where each public name lives; it is imported when it is first asked for, so that a program
#: that only appends pays for nothing else.
_HOMES = {
    "Entities": "keepfor.writers.entities",
    "Ledger": "keepfor.writers.ledger",
    "RecallLedger": "keepfor.writers.recall",
    "RunDirectory": "keepfor.writers.runs",
    "Sweeper": "keepfor.sweeper",
    "Table": "keepfor.writers.table",
    "Dependent": "keepfor.stores.table",
    "Record": "keepfor.stores.table",
    "Trail": "keepfor.trail",
    "KeepforError": "keepfor.errors",
}

TYPE_CHECKING = False
if TYPE_CHECKING:
    from keepfor.errors import KeepforError
    from keepfor.stores.table import Dependent, Record
    from keepfor.sweeper import Sweeper
    from keepfor.trail import Trail
    from keepfor.writers.entities import Entities
    from keepfor.writers.ledger import Ledger
    from keepfor.writers.recall import RecallLedger
    from keepfor.writers.runs import RunDirectory
    from keepfor.writers.table import Table

__all__ = [
    "Dependent",
    "Entities",
    "KeepforError",
    "Ledger",
    "RecallLedger",
    "Record",
    "RunDirectory",
    "Sweeper",
    "Table",
    "Trail",
    "__version__",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'keepfor' has no attribute {name!r}")
    # `importlib` would have to be imported first.
    return getattr(__import__(_HOMES[name], fromlist=[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
