"""How stores stand, as Prometheus reads it. The one place that imports prometheus-client."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import datetime

try:
    from prometheus_client import CollectorRegistry, generate_latest, start_http_server
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
except ImportError:
    from keepfor.errors import ConfigError

    raise ConfigError(
        where="metrics",
        what="prometheus-client is not installed here.",
        fix="Install keepfor with its extra: pip install '.[metrics]' in a clone.",
    ) from None

from keepfor.errors import CannotServe
from keepfor.sweeper.keeping import Keeper

_LABELS = ["store"]


class _Collector:
    """Reads the standings when it is asked, so that no series can be missing or out of date."""

    def __init__(
        self,
        keepers: Collection[Keeper],
        next_run: Callable[[], Mapping[str, datetime]],
        steady: Callable[[], float],
    ) -> None:
        self._keepers = keepers
        self._next_run = next_run
        self._steady = steady

    def collect(self) -> Iterator[GaugeMetricFamily | CounterMetricFamily]:
        succeeded = _gauge(
            "last_success_timestamp_seconds",
            "When the last sweep ended that did not fail; 0 before the first.",
        )
        overdue = _gauge(
            "oldest_overdue_seconds",
            "How long the oldest of what is due has been so, read from the data.",
        )
        deleted = _counter("deleted_rows", "Rows or items that were deleted.")
        failures = _counter("failed_sweeps", "Sweeps that failed, or in which something did.")
        duration = _gauge("sweep_duration_seconds", "How long the last sweep took.")
        tripped = _gauge("breaker_tripped", "Whether the breaker held the last sweep back.")
        next_run = _gauge(
            "next_sweep_timestamp_seconds",
            "When the next sweep is; in the past while it is at work, 0 where none is to come.",
        )
        planned, now = self._next_run(), self._steady()
        for keeper in self._keepers:
            stands, store = keeper.standing, [keeper.name]
            since = now if stands.due_since is None else stands.due_since
            succeeded.add_metric(store, _seconds(stands.succeeded))
            overdue.add_metric(store, max(0.0, now - since))
            deleted.add_metric(store, stands.deleted)
            failures.add_metric(store, stands.failures)
            duration.add_metric(store, stands.duration)
            tripped.add_metric(store, stands.tripped)
            next_run.add_metric(store, _seconds(planned.get(keeper.name)))
        yield from (succeeded, overdue, deleted, failures, duration, tripped, next_run)


def registry(
    keepers: Collection[Keeper],
    next_run: Callable[[], Mapping[str, datetime]],
    steady: Callable[[], float],
) -> CollectorRegistry:
    """A registry that holds the metrics of these stores and nothing else.

    Parameters:
        keepers: the stores.
        next_run: tells when each is swept next.
        steady: the clock that their `due_since` goes by.
    """
    found = CollectorRegistry()
    found.register(_Collector(keepers, next_run, steady))
    return found


def text(registry: CollectorRegistry) -> str:
    """The metrics in Prometheus' text form."""
    return generate_latest(registry).decode()


def serve(registry: CollectorRegistry, host: str, port: int) -> tuple[str, Callable[[], None]]:
    """Serve metrics over HTTP, in a thread.

    Parameters:
        registry: whose.
        host: the address to listen at.
        port: the port; 0 for any that is free.

    Returns:
        Where they can be read, and what ends it.

    Raises:
        CannotServe: when it is taken, or not to be had.
    """
    try:
        server, thread = start_http_server(port, host, registry)
    except OSError as error:
        raise CannotServe(host=host, port=port, why=error.strerror or error) from error

    def close() -> None:
        server.shutdown()
        server.server_close()
        thread.join()

    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{server.server_port}/metrics", close


def _gauge(name: str, meaning: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"keepfor_{name}", meaning, labels=_LABELS)


def _counter(name: str, meaning: str) -> CounterMetricFamily:
    return CounterMetricFamily(f"keepfor_{name}", meaning, labels=_LABELS)


def _seconds(moment: datetime | None) -> float:
    return 0.0 if moment is None else moment.timestamp()
