"""How the stores stand can be read at any time, from before the first sweep on."""

from __future__ import annotations

import asyncio
import socket
import sys

import pytest
from prometheus_client import REGISTRY
from prometheus_client.parser import text_string_to_metric_families

from keepfor.errors import CannotServe, ConfigError
from keepfor.sweeper import Sweeper
from keepfor.sweeper.metrics import serve
from tests.docs.pages import plain, reference, sections
from tests.docs.pages import rows as rows_of
from tests.sweeper.build import Yard

#: The instant NOW, in seconds since 1970: 20,660 days.
NOW = 20_660 * 86_400.0
DAY = 86_400.0

ALL = {
    "last_success_timestamp_seconds",
    "oldest_overdue_seconds",
    "deleted_rows_total",
    "failed_sweeps_total",
    "sweep_duration_seconds",
    "breaker_tripped",
    "next_sweep_timestamp_seconds",
}


def read(sweeper: Sweeper, store: str = "recall") -> dict[str, float]:
    """The series of one store, as any reader of the text form finds them."""
    return {
        sample.name.removeprefix("keepfor_"): sample.value
        for family in text_string_to_metric_families(sweeper.metrics_text())
        for sample in family.samples
        if sample.labels == {"store": store}
    }


def test_every_series_is_there_before_the_first_sweep(yard: Yard) -> None:
    """For each store, all of them, at zero, so that none can be missing later."""
    yard.configure(
        recall="kind: ledger, path: recall.jsonl, keep_for: 90d",
        rem="kind: runs, path: rem-runs, max_count: 200",
    )
    sweeper = yard.sweeper()
    for store in ("recall", "rem"):
        assert read(sweeper, store) == dict.fromkeys(ALL, 0.0)


def test_a_sweep_is_told_in_figures(yard: Yard) -> None:
    """After the sample is swept: when, how many went, nothing overdue, and when the next one is."""
    yard.sample()

    async def main() -> None:
        async with yard.sweeper() as sweeper:
            await yard.timer.asleep()
            found = read(sweeper)
            assert found.pop("sweep_duration_seconds") > 0
            assert found == {
                "last_success_timestamp_seconds": NOW,
                "oldest_overdue_seconds": 0,
                "deleted_rows_total": 151,
                "failed_sweeps_total": 0,
                "breaker_tripped": 0,
                "next_sweep_timestamp_seconds": NOW + 3600,
            }

    asyncio.run(main())


def test_the_lag_is_read_from_the_data_and_goes_on_growing(yard: Yard) -> None:
    """What the breaker holds back has been due for ten days, and an hour later for an hour more."""
    yard.write([100] * 9 + [1])
    sweeper = yard.sweeper()
    asyncio.run(sweeper.sweep_now())
    found = read(sweeper)
    assert (found["breaker_tripped"], found["failed_sweeps_total"]) == (1, 1)
    assert found["last_success_timestamp_seconds"] == 0
    assert found["oldest_overdue_seconds"] == 10 * DAY
    yard.timer.now += 3600
    assert read(sweeper)["oldest_overdue_seconds"] == 10 * DAY + 3600
    # It falls silent when somebody sees to it.
    yard.write([100, 1])
    asyncio.run(sweeper.sweep_now())
    found = read(sweeper)
    assert (found["breaker_tripped"], found["oldest_overdue_seconds"]) == (0, 0)
    assert (found["failed_sweeps_total"], found["deleted_rows_total"]) == (1, 1)
    assert found["last_success_timestamp_seconds"] == NOW


def test_what_cannot_be_read_keeps_its_last_figures(yard: Yard) -> None:
    """A store that cannot be looked at any more is not taken for one that is in order."""
    ledger = yard.write([100] * 9 + [1])
    sweeper = yard.sweeper()
    asyncio.run(sweeper.sweep_now())
    ledger.unlink()
    ledger.mkdir()
    asyncio.run(sweeper.sweep_now())
    found = read(sweeper)
    assert (found["failed_sweeps_total"], found["breaker_tripped"]) == (2, 1)
    assert found["oldest_overdue_seconds"] == 10 * DAY


def test_sweepers_do_not_collide_with_each_other_or_the_host(yard: Yard) -> None:
    """Each has a registry of its own, and that of the process has none of theirs."""
    one, other = yard.sweeper(), yard.sweeper()
    assert one.registry is one.registry is not other.registry
    assert set(read(one)) == set(read(other)) == ALL
    assert "keepfor_" not in "".join(metric.name for metric in REGISTRY.collect())


def test_a_port_is_free_again_when_it_is_closed(yard: Yard) -> None:
    """Metrics are served at the address that is told, until they are no more."""
    address, close = serve(yard.sweeper().registry, "127.0.0.1", 0)
    port = int(address.removeprefix("http://127.0.0.1:").removesuffix("/metrics"))
    with pytest.raises(CannotServe, match=f"127.0.0.1:{port}: Address already in use"):
        serve(yard.sweeper().registry, "127.0.0.1", port)
    close()
    with socket.create_server(("127.0.0.1", port)):
        pass


@pytest.fixture
def without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """prometheus-client is not installed."""
    for name in [name for name in sys.modules if name.startswith("prometheus_client")]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "keepfor.sweeper.metrics", raising=False)


@pytest.mark.usefixtures("without_the_library")
def test_a_missing_library_is_named_when_it_is_needed(yard: Yard) -> None:
    """Without the extra a sweeper works, and who asks for metrics is told what to install."""
    yard.write([100, 80])
    sweeper = yard.sweeper()
    asyncio.run(sweeper.sweep_now())
    with pytest.raises(ConfigError, match=r"pip install '.\[metrics\]'"):
        sweeper.metrics_text()


def test_every_series_is_in_the_reference(yard: Yard) -> None:
    """The page lists each series with its type and with the help that Prometheus shows."""
    families = text_string_to_metric_families(yard.sweeper().metrics_text())
    known = {
        f"{family.name}_total" if family.type == "counter" else family.name: (
            family.type,
            family.documentation,
        )
        for family in families
    }
    listed = rows_of(sections(reference("metrics"), "h2")["Series"])
    assert {plain(name): (kind, meaning) for name, kind, meaning in listed} == known
