"""The small histogram of a store, for the page of all stores."""

from __future__ import annotations

from markupsafe import Markup

from keepfor import plan as plans
from keepfor.config import Config, asking, policy_of
from keepfor.history.standing import by_day
from keepfor.items import Item
from keepfor.stores.base import RowStore
from keepfor.web import charts, histories
from keepfor.web.desk import Desk

#: So many bars fit into a card.
_BARS = 60


def ages(desk: Desk, config: Config, name: str) -> Markup:
    """What a store holds by age. Writes nothing.

    Raises:
        UnknownStore: when there is no such store.
        StoreError: when it cannot be read.
    """
    store, policy = asking.store(config, name), policy_of(asking.settings(config, name))
    if isinstance(store, RowStore):
        now = desk.now()
        found = histories.of_rows(by_day(store, policy, now), store, policy, now, _BARS)
    else:
        items: list[Item] = []
        plan = plans.build(store, policy, desk.now(), name=name, seen=items)
        found = histories.of_plan(plan, items, policy, _BARS)
    return charts.ages(found.bars, found.marks, store.kind, small=True)
