"""Recorders of the metrics: one class each for router, Spark, source, sink, supervisor and dead letters.

Each process has its own registry, which is passed in; importing this module creates nothing. The router counts in its
JVM and reports *totals* since that process started; sources and sinks report *increments* as things happen. Either way
a counter starts at 0 with its process, which is what Prometheus expects of a restart.
"""

from __future__ import annotations

import math
import time
from collections import deque
from typing import TYPE_CHECKING, Literal

from prometheus_client.registry import Collector

from engine.telemetry.metrics import (
    ACKNOWLEDGED,
    BUILD_INFO,
    COMPONENT_UP,
    CONFIG_INFO,
    CONFIG_RELOAD_SUCCESS,
    CONFIG_RELOAD_TIMESTAMP,
    CONNECTION_UP,
    DEAD_LETTER_AGE,
    DEAD_LETTERS,
    DELIVERED,
    DUPLICATES,
    FAILED,
    FAILURE_REASONS,
    HAS_LEADER,
    JOURNALED,
    LAG_RECORDS,
    LAG_SECONDS,
    LATENCY,
    LATENCY_AVERAGE,
    LATENCY_BUCKETS_SECONDS,
    LEADER,
    NO_ROUTE,
    QUARANTINED,
    RECEIVED,
    RECONNECTS,
    RECOVERY_PUBLISHED,
    RECOVERY_SCANNED,
    RECOVERY_SECONDS,
    REJECTED,
    REJECTION_REASONS,
    REPLIES,
    REQUEST_TIMEOUTS,
    REQUESTS,
    RESTARTS,
    ROUTED,
    ROUTER_START,
    SINK_EXPIRED,
    SINK_LAG,
    SINK_RECONNECTS,
    SINK_REJECTED,
    SINK_REJECTION_REASONS,
    SPARK_BATCH_SECONDS,
    SPARK_BATCHES,
    SPARK_CHECKPOINT_AGE,
    SPARK_GC,
    SPARK_HEAP_MAX,
    SPARK_HEAP_USED,
    SPARK_ROWS,
    UNROUTED,
    UNROUTED_REASONS,
)
from engine.telemetry.registered_values import Buckets, Figures
from routes.model import Policy, Unmatched

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from prometheus_client.metrics_core import Metric as Family
    from prometheus_client.registry import CollectorRegistry
    from prometheus_client.samples import Exemplar

    from engine.dead_letters.backlog import DeadLetterCounts
    from routes.model import Config

__all__ = ["BridgeMetrics", "DeadLetterMetrics", "RouterMetrics", "SinkMetrics", "SourceMetrics", "SparkMetrics"]

_AVERAGE_OVER_SECONDS = 60.0


class RouterMetrics:
    """Metrics of the router: totals since its process started, from its JVM; each call sets the latest value."""

    def __init__(
        self, registry: CollectorRegistry, config: Config, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._figures = Figures()
        self._clock = clock
        self._past: deque[tuple[float, float, int]] = deque([(clock(), 0.0, 0)])
        self._begin(config)
        registry.register(self._figures)

    def routed(self, route: str, topic: str, total: int) -> None:
        """Sets the number of messages that a route has sent to its topic."""
        self._figures.set(ROUTED, total, route, topic)

    def failed(self, route: str, reason: str, policy: str, total: int) -> None:
        """Sets the number of messages that failed in a route; `route` is `NO_ROUTE` for unmatched dead letters."""
        self._figures.set(FAILED, total, route, reason, policy)

    def unrouted(self, reason: str, total: int) -> None:
        """Sets the number of messages passed over for one of `UNROUTED_REASONS`."""
        self._figures.set(UNROUTED, total, reason)

    def latency(
        self, cumulative: Sequence[int], sum_seconds: float, count: int, exemplars: Sequence[Exemplar | None] = ()
    ) -> None:
        """Sets the histogram of routing latency and its average over the last minute.

        `cumulative` has the number of messages up to each of `LATENCY_BUCKETS_SECONDS`, `count` that of all messages,
        `exemplars` a message for each bucket.
        """
        buckets = Buckets(LATENCY_BUCKETS_SECONDS, cumulative, count, exemplars)
        self._figures.set_histogram(LATENCY, buckets, sum_seconds)
        now = self._clock()
        self._past.append((now, sum_seconds, count))
        while len(self._past) > 2 and self._past[1][0] <= now - _AVERAGE_OVER_SECONDS:
            self._past.popleft()
        _, past_sum, past_count = self._past[0]
        average = (sum_seconds - past_sum) / (count - past_count) if count > past_count else math.nan
        self._figures.set(LATENCY_AVERAGE, average)

    def lag(self, partition: int, records: int) -> None:
        """Sets the number of journal records of a partition that wait to be routed."""
        self._figures.set(LAG_RECORDS, records, str(partition))

    def lag_seconds(self, seconds: float) -> None:
        """Sets the age in seconds of the oldest record that waits to be routed."""
        self._figures.set(LAG_SECONDS, seconds)

    def connection(self, up: bool) -> None:
        """Sets whether Kafka answers the router."""
        self._figures.set(CONNECTION_UP, up, "router")

    def prepare(self, config: Config) -> None:
        """Adds the series of these routes, new ones at 0: otherwise rate() misses their first increase."""
        for route in config.routes:
            self._figures.add(ROUTED, 0, route.name, route.target.topic or str(route.target.address))
            for reason in FAILURE_REASONS:
                self._figures.add(FAILED, 0, route.name, reason, route.on_soft_failure)
        if config.routing.on_unmatched is Unmatched.DEAD_LETTER:
            self._figures.add(FAILED, 0, NO_ROUTE, "unmatched", Unmatched.DEAD_LETTER)

    def _begin(self, config: Config) -> None:
        self.prepare(config)
        for reason in UNROUTED_REASONS:
            self.unrouted(reason, 0)
        for partition in range(config.journal.partitions):
            self.lag(partition, 0)
        self.lag_seconds(0)
        self.connection(up=False)
        self.latency([0] * len(LATENCY_BUCKETS_SECONDS), 0.0, 0)


class SparkMetrics:
    """Metrics of Spark and of recoveries: counters grow with each call, gauges are replaced."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._figures = Figures()
        for counter in (SPARK_BATCHES, SPARK_ROWS, RECOVERY_SCANNED, RECOVERY_PUBLISHED, SPARK_GC):
            self._figures.add(counter, 0)
        self.recovered(0.0)
        self.started("ready", 0.0)
        self.started("routed", 0.0)
        self.committed(0.0)
        self.memory(0, 0, 0.0)
        # Stands until a batch is complete, which takes minutes in real-time mode.
        self._figures.set(SPARK_BATCH_SECONDS, 0.0, "triggerExecution")
        registry.register(self._figures)

    def batch(self, rows: int, phases: Mapping[str, float]) -> None:
        """Counts a completed batch of `rows` rows; `phases` has the seconds that each phase took."""
        self._figures.add(SPARK_BATCHES, 1)
        self._figures.add(SPARK_ROWS, rows)
        for phase, seconds in phases.items():
            self._figures.set(SPARK_BATCH_SECONDS, seconds, phase)

    def committed(self, age_seconds: float) -> None:
        """Sets the seconds since the last commit to the checkpoint."""
        self._figures.set(SPARK_CHECKPOINT_AGE, age_seconds)

    def memory(self, used_bytes: int, max_bytes: int, gc_seconds: float) -> None:
        """Sets the JVM's heap use and limit, and the seconds spent on garbage collection since it started."""
        self._figures.set(SPARK_HEAP_USED, used_bytes)
        self._figures.set(SPARK_HEAP_MAX, max_bytes)
        self._figures.set(SPARK_GC, gc_seconds)

    def started(self, until: Literal["ready", "routed"], seconds: float) -> None:
        """Sets the seconds from the last start until the query read the journal or the first message was routed."""
        self._figures.set(ROUTER_START, seconds, until)

    def recovered(self, seconds: float) -> None:
        """Sets the seconds that a recovery took."""
        self._figures.set(RECOVERY_SECONDS, seconds)

    def scanned(self, records: int) -> None:
        """Counts records of the outputs that a recovery has read."""
        self._figures.add(RECOVERY_SCANNED, records)

    def published(self, messages: int) -> None:
        """Counts messages that a recovery has published because they were missing from the outputs."""
        self._figures.add(RECOVERY_PUBLISHED, messages)


class SourceMetrics:
    """Metrics of one source worker: each call counts what just happened. Safe from any thread."""

    def __init__(self, registry: CollectorRegistry, source: str, component: str) -> None:
        """`source` is the configured name, shared by all workers of the source; `component` names this worker."""
        self._source = source
        self._component = component
        self._figures = Figures()
        for metric in (RECEIVED, JOURNALED, DUPLICATES, ACKNOWLEDGED, RECONNECTS):
            self._figures.add(metric, 0, source)
        for reason in REJECTION_REASONS:
            self._figures.add(REJECTED, 0, source, reason)
        self.connection(up=False)
        registry.register(self._figures)

    def received(self, n: int = 1) -> None:
        """Counts messages received from the JMS broker."""
        self._figures.add(RECEIVED, n, self._source)

    def journaled(self, n: int = 1) -> None:
        """Counts messages that the journal confirmed."""
        self._figures.add(JOURNALED, n, self._source)

    def duplicate(self) -> None:
        """Counts a redelivered message that the journal has already."""
        self._figures.add(DUPLICATES, 1, self._source)

    def acknowledged(self, n: int = 1) -> None:
        """Counts messages acknowledged to the JMS broker."""
        self._figures.add(ACKNOWLEDGED, n, self._source)

    def rejected(self, reason: str, n: int = 1) -> None:
        """Counts messages that could not enter the journal, for one of `REJECTION_REASONS`."""
        self._figures.add(REJECTED, n, self._source, reason)

    def reconnected(self) -> None:
        """Counts a connection other than the worker's first."""
        self._figures.add(RECONNECTS, 1, self._source)

    def connection(self, up: bool) -> None:
        """Sets whether the worker is connected to the JMS broker."""
        self._figures.set(CONNECTION_UP, up, self._component)


class SinkMetrics:
    """Metrics of one sink worker: each call counts what just happened. Safe from any thread."""

    def __init__(self, registry: CollectorRegistry, sink: str, component: str) -> None:
        """`sink` is the configured name, shared by all workers of the sink; `component` names this worker."""
        self._sink = sink
        self._component = component
        self._figures = Figures()
        for metric in (DELIVERED, SINK_EXPIRED, SINK_RECONNECTS, REQUESTS, REPLIES, REQUEST_TIMEOUTS):
            self._figures.add(metric, 0, sink)
        for reason in SINK_REJECTION_REASONS:
            for policy in (Policy.SKIP, Policy.DEAD_LETTER):
                self._figures.add(SINK_REJECTED, 0, sink, reason, policy)
        self.lag(0)
        self.connection(up=False)
        registry.register(self._figures)

    def delivered(self, n: int = 1) -> None:
        """Counts messages that the sink's system confirmed."""
        self._figures.add(DELIVERED, n, self._sink)

    def rejected(self, reason: str, policy: str) -> None:
        """Counts a message that the sink's system will never take, for one of `SINK_REJECTION_REASONS`."""
        self._figures.add(SINK_REJECTED, 1, self._sink, reason, policy)

    def expired(self) -> None:
        """Counts a message that expired before the sink's system had it."""
        self._figures.add(SINK_EXPIRED, 1, self._sink)

    def lag(self, records: int) -> None:
        """Sets the number of messages that the sink's system has not confirmed yet."""
        self._figures.set(SINK_LAG, records, self._component)

    def reconnected(self) -> None:
        """Counts a connection other than the worker's first."""
        self._figures.add(SINK_RECONNECTS, 1, self._sink)

    def requested(self) -> None:
        """Counts a request sent, again if it is sent again after a lost connection."""
        self._figures.add(REQUESTS, 1, self._sink)

    def replied(self) -> None:
        """Counts a reply received."""
        self._figures.add(REPLIES, 1, self._sink)

    def timed_out(self, n: int = 1) -> None:
        """Counts requests that got no reply in time."""
        self._figures.add(REQUEST_TIMEOUTS, n, self._sink)

    def connection(self, up: bool) -> None:
        """Sets whether the worker is connected to its system."""
        self._figures.set(CONNECTION_UP, up, self._component)


class BridgeMetrics:
    """Metrics of the supervisor: state and restarts of components, leadership, configuration and versions."""

    def __init__(self, registry: CollectorRegistry, components: Sequence[str], version: str, spark: str) -> None:
        self._figures = Figures()
        for component in components:
            self.joined(component)
        self._figures.set(BUILD_INFO, 1, version, spark)
        registry.register(self._figures)

    def joined(self, component: str) -> None:
        """Adds a component, not ready and with no restarts."""
        self.component(component, up=False)
        self._figures.add(RESTARTS, 0, component)

    def left(self, component: str) -> None:
        """Removes the series of a component."""
        for metric in (COMPONENT_UP, RESTARTS):
            self._figures.forget(metric, component)

    def configuration(self, config_hash: str, *, success: bool, time_seconds: float) -> None:
        """Sets the hash of the configuration in force, and result and time (since 1970) of the last reload."""
        self._figures.forget(CONFIG_INFO)
        self._figures.set(CONFIG_INFO, 1, config_hash)
        self._figures.set(CONFIG_RELOAD_SUCCESS, success)
        self._figures.set(CONFIG_RELOAD_TIMESTAMP, time_seconds)

    def component(self, component: str, up: bool) -> None:
        """Sets whether a component is ready."""
        self._figures.set(COMPONENT_UP, up, component)

    def leader(self, *, leads: bool, has_leader: bool) -> None:
        """Sets whether this bridge leads those with its id, and whether any bridge is known to lead."""
        self._figures.set(LEADER, leads)
        self._figures.set(HAS_LEADER, has_leader)

    def restarted(self, component: str) -> None:
        """Counts a restart of a component that had died."""
        self._figures.add(RESTARTS, 1, component)


class DeadLetterMetrics(Collector):
    """Collector of the number and age of open dead letters, looked up at each scrape; empty until the first count."""

    def __init__(
        self,
        registry: CollectorRegistry,
        census: Callable[[], DeadLetterCounts | None],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._census = census
        self._clock = clock
        registry.register(self)

    def collect(self) -> Iterable[Family]:
        """The families, made from the latest count of dead letters."""
        census, figures = self._census(), Figures()
        if census is not None and census.open is not None:
            for reason, count in census.open.items():
                figures.set(DEAD_LETTERS, count, reason)
            figures.set(DEAD_LETTER_AGE, census.oldest_age(self._clock()))
            figures.set(QUARANTINED, census.quarantined or 0)
        yield from figures.collect()
