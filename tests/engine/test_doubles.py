"""The doubles behave as what they stand for."""

from __future__ import annotations

import threading
from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from keepfor.errors import BadInstant, StoreBusy
from keepfor.policy.rules import Policy, Rule
from keepfor.stores.base import ItemStore, RowStore
from keepfor.sweep import prune_items
from keepfor.testing import FixedClock, MemoryStore
from keepfor.times import DAY
from tests.engine.build import NOW, aged, items, planned


def test_a_clock_tells_what_it_is_set_to() -> None:
    """It stands still until it is moved, forward or backward."""
    clock = FixedClock("2026-07-26T12:00:00Z")
    noon = datetime(2026, 7, 26, 12, tzinfo=UTC)
    assert [clock(), clock()] == [noon, noon]
    assert clock.advance(days=1, hours=-12) == datetime(2026, 7, 27, tzinfo=UTC) == clock()
    clock.now = noon
    assert clock() == noon
    assert FixedClock(noon)() == noon
    assert FixedClock()() == NOW


def test_a_clock_that_cannot_be_set_says_so() -> None:
    """A typo in an instant is refused as it is everywhere."""
    with pytest.raises(BadInstant):
        FixedClock("noon")


def test_a_store_in_memory_is_a_store_of_items() -> None:
    """It can be handed over wherever one is asked for."""
    store = MemoryStore([aged("a", 1)], name="notes")
    assert isinstance(store, ItemStore)
    assert not isinstance(store, RowStore)
    assert (store.kind, store.target, dict(store.settings)) == ("memory", "memory:notes", {})
    assert list(store.scan()) == [aged("a", 1)]


def test_what_is_flagged_in_memory_says_by_which_rule() -> None:
    """A flag leaves the item, changes nothing else of it, and stands from then on."""
    store = items(old=100)
    policy = Policy(rules=(Rule(name="stale", max_age=DAY),))
    assert prune_items(store, policy, NOW, name="store").applied == 1
    assert store.items["old"] == aged("old", 100, flagged_by="stale")
    assert prune_items(store, policy, NOW, name="store").applied == 0


def test_a_store_in_memory_is_waited_for() -> None:
    """Its lock excludes threads, and is had when the other is done."""
    store = MemoryStore()
    got = threading.Event()

    def wait() -> None:
        with store.locked(30.0):
            got.set()

    waiter = threading.Thread(target=wait)
    with store.locked():
        with pytest.raises(StoreBusy, match="memory:memory"), store.locked():
            pass
        waiter.start()
        assert not got.is_set()
    waiter.join()
    assert got.is_set()


def test_what_is_gone_or_changed_in_memory_is_skipped() -> None:
    """Each decision is carried out only if its item is there, and as it was."""
    store = items(gone=100, changed=100, same=100)
    decisions = planned(store).decisions
    del store.items["gone"]
    store.items["changed"] = replace(store.items["changed"], fingerprint="other")
    said = {done.id: (done.result, done.why) for done in store.apply(decisions)}
    assert said == {
        "gone": ("skipped", "it is gone already"),
        "changed": ("skipped", "it changed since the plan"),
        "same": ("applied", ""),
    }
    assert set(store.items) == {"changed"}
