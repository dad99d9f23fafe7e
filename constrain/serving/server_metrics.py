"""Prometheus metrics of one server, in a registry of its own. All names begin with `constrain_`.

Times are in seconds. Histograms of tokens are filled as the events of a stream are read: several tokens that arrive
together count as so many equal intervals. Gauges and the counters of the cache are read when they are scraped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily

from ..compilation.compile_caches import recent
from ..decoding.scheduler import Scheduler
from .request_record import RequestRecord

__all__ = ["ServerMetrics"]

FAST = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
SLOW = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
TINY = (1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 1e-1)


class ServerMetrics:
    """The metrics of a server.

    Parameters
    ----------
    scheduler : Scheduler
        The gauges read it.
    count_queued : callable
        Returns how many texts wait.
    """

    def __init__(self, scheduler: Scheduler, count_queued: Callable[[], int]) -> None:
        self.registry = registry = CollectorRegistry()
        self.requests = Counter(
            "constrain_requests", "Requests that have ended, by route and status.", ["endpoint", "status"],
            registry=registry,
        )  # fmt: skip
        self.refusals = Counter(
            "constrain_refusals", "Requests that were refused or interrupted, by the code of the error.", ["reason"],
            registry=registry,
        )  # fmt: skip
        self.request_seconds = Histogram(
            "constrain_request_seconds", "From a request to the end of its answer.", ["endpoint"], buckets=SLOW,
            registry=registry,
        )  # fmt: skip
        self.first_token = Histogram(
            "constrain_time_to_first_token_seconds", "From a request to its first token.", buckets=SLOW,
            registry=registry,
        )  # fmt: skip
        self.between_tokens = Histogram(
            "constrain_time_between_tokens_seconds", "Between the tokens of a text.", buckets=FAST, registry=registry
        )
        self.generated = Counter("constrain_generated_tokens", "Tokens generated.", registry=registry)
        self.prompted = Counter("constrain_prompt_tokens", "Tokens of prompts.", registry=registry)
        self.compiling = Histogram(
            "constrain_compile_seconds", "Compiling the constraint of a request, or finding it in the cache.",
            buckets=FAST, registry=registry,
        )  # fmt: skip
        self.masking = Histogram(
            "constrain_mask_seconds", "Computing one mask: the mean of a text.", buckets=TINY, registry=registry
        )
        self.add_gauge("running_texts", "Texts that occupy a slot.", lambda: scheduler.used)
        self.add_gauge("free_slots", "Slots that no text occupies.", lambda: scheduler.slots - scheduler.used)
        self.add_gauge(
            "queued_texts", "Texts that wait: for a slot, or while their constraint is compiled.", count_queued
        )
        registry.register(CacheCollector())

    def add_gauge(self, name: str, meaning: str, read: Callable[[], float]) -> None:
        """Add a gauge that is read when it is scraped."""
        Gauge(f"constrain_{name}", meaning, registry=self.registry).set_function(read)

    def count_request(self, record: RequestRecord) -> None:
        """Count a request that has ended."""
        self.requests.labels(record.endpoint, str(record.status)).inc()
        self.request_seconds.labels(record.endpoint).observe(record.elapsed)
        if record.reason:
            self.refusals.labels(record.reason).inc()

    def observe_intervals(self, seconds: float, count: int) -> None:
        """Observe so many equal intervals between tokens."""
        for _ in range(count):
            self.between_tokens.observe(seconds)

    def render(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self.registry)


class CacheCollector:
    """Reads the counters of the LRU of Constraints, which all servers of a process share."""

    def collect(self) -> Iterable[CounterMetricFamily]:
        """Yield the counters."""
        yield CounterMetricFamily(
            "constrain_constraint_cache_hits", "Constraints that were found in the cache.", value=recent.hits
        )
        yield CounterMetricFamily(
            "constrain_constraint_cache_misses", "Constraints that had to be compiled.", value=recent.misses
        )
