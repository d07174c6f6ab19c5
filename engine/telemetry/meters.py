"""Recorders of the metrics, a class each: router, Spark, source, sink, topology, supervisor, dead letters, processes.

Each process has its own registry, which is passed in; importing this module creates nothing. The router counts in its
JVM and reports *totals* since that process started; sources and sinks report *increments* as things happen. Either way
a counter starts at 0 with its process, which is what Prometheus expects of a restart.

The client library's own metric objects can only count by themselves; `Figures` also takes totals that were counted
elsewhere, in the router's JVM.
"""

from __future__ import annotations

import math
import os
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from itertools import zip_longest
from threading import Lock
from typing import TYPE_CHECKING, Literal, TypeAlias

import psutil
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from engine.telemetry import metrics
from engine.telemetry.metrics import Metric, MetricType
from routes.model import Policy, Unmatched

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence

    from prometheus_client.metrics_core import Metric as Family
    from prometheus_client.registry import CollectorRegistry
    from prometheus_client.samples import Exemplar

    from engine.telemetry.status import DeadLetterCounts
    from routes.model import Config, Route

__all__ = [
    "SUPERVISOR",
    "BridgeMetrics",
    "Buckets",
    "DeadLetterMetrics",
    "ExecutorFigures",
    "Figures",
    "ProcessMetrics",
    "RouterMetrics",
    "SinkMetrics",
    "SourceMetrics",
    "SparkMetrics",
    "TopologyMetrics",
]

_Series: TypeAlias = "list[tuple[str, float] | tuple[str, float, Exemplar]]"
_AVERAGE_OVER_SECONDS = 60.0
SUPERVISOR = "supervisor"
"""Value of the label `component` for the supervisor's own process."""


@dataclass(frozen=True, slots=True)
class Buckets:
    """The state of a histogram: upper bounds of its buckets and counts of values."""

    bounds: Sequence[float]
    cumulative: Sequence[int]
    """Number of values up to each upper bound."""
    count: int
    """Number of all values, those above the last bound included."""
    exemplars: Sequence[Exemplar | None] = ()
    """A value of each bucket, the one without a bound included; only OpenMetrics has exemplars."""

    def series(self) -> _Series:
        """The buckets in the form that the client library takes."""
        buckets = zip((*map(str, self.bounds), "+Inf"), map(float, (*self.cumulative, self.count)), strict=True)
        with_exemplars = zip_longest(buckets, self.exemplars)
        return [(name, count, exemplar) if exemplar else (name, count) for (name, count), exemplar in with_exemplars]


@dataclass(frozen=True, slots=True)
class ExecutorFigures:
    """Figures of an executor of Spark."""

    executor: str
    """Spark's id."""
    task_slots: int
    heap_used: int
    heap_committed: int
    heap_max: int
    gc_seconds: float
    """Time spent on garbage collection since the executor started."""

    def values(self) -> dict[Metric, float]:
        """The figures by their metrics."""
        return {
            metrics.EXECUTOR_SLOTS: self.task_slots,
            metrics.EXECUTOR_HEAP_USED: self.heap_used,
            metrics.EXECUTOR_HEAP_COMMITTED: self.heap_committed,
            metrics.EXECUTOR_HEAP_MAX: self.heap_max,
            metrics.EXECUTOR_GC: self.gc_seconds,
        }


class Figures(Collector):
    """Collector of the current values of metrics, read by a registry at each scrape. Safe from any thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._values: dict[Metric, dict[tuple[str, ...], float]] = {}
        self._histograms: dict[Metric, tuple[_Series, float]] = {}

    def set(self, metric: Metric, value: float, *labels: str) -> None:
        """Sets the value of one series."""
        with self._lock:
            self._values.setdefault(metric, {})[labels] = value

    def add(self, metric: Metric, value: float, *labels: str) -> None:
        """Adds to the value of one series, which starts at 0."""
        with self._lock:
            series = self._values.setdefault(metric, {})
            series[labels] = series.get(labels, 0) + value

    def forget(self, metric: Metric, *labels: str) -> None:
        """Removes a series; without labels, all series of the metric."""
        with self._lock:
            series = self._values.get(metric, {})
            for known in [labels] if labels else list(series):
                series.pop(known, None)

    def set_histogram(self, metric: Metric, buckets: Buckets, total: float) -> None:
        """Sets the state of a histogram without labels; `total` is the sum of its values."""
        series = buckets.series()
        with self._lock:
            self._histograms[metric] = (series, total)

    def collect(self) -> Iterator[Family]:
        """All families, with the values of one moment."""
        with self._lock:
            values = {metric: dict(series) for metric, series in self._values.items()}
            histograms = dict(self._histograms)
        for metric, (counts, total) in histograms.items():
            histogram = HistogramMetricFamily(metric.name, metric.help)
            histogram.add_metric((), counts, total)
            yield histogram
        for metric, series in values.items():
            make = CounterMetricFamily if metric.kind is MetricType.COUNTER else GaugeMetricFamily
            family = make(metric.name, metric.help, labels=metric.labels)
            for labels, value in series.items():
                family.add_metric(labels, value)
            yield family


class RouterMetrics:
    """Metrics of the router: totals since its process started, from its JVM; each call sets the latest value."""

    def __init__(
        self, registry: CollectorRegistry, config: Config, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._figures = Figures()
        self._clock = clock
        self._past: deque[tuple[float, float, int]] = deque([(clock(), 0.0, 0)])
        self.prepare(config.routes, config.routing.on_unmatched)
        for reason in metrics.UNROUTED_REASONS:
            self.unrouted(reason, 0)
        for partition in range(config.journal.partitions):
            self.lag(partition, 0)
        self.lag_seconds(0)
        self.connection(up=False)
        self.latency([0] * len(metrics.LATENCY_BUCKETS_SECONDS), 0.0, 0)
        registry.register(self._figures)

    def routed(self, route: str, topic: str, total: int) -> None:
        """Sets the number of messages that a route has sent to its topic."""
        self._figures.set(metrics.ROUTED, total, route, topic)

    def failed(self, route: str, destination: str, reason: str, policy: str, total: int) -> None:
        """Sets the number of messages that failed on their way to a destination of a route.

        `destination` is that of the configuration (`routes.targets.Target`); both are `NO_ROUTE` for unmatched ones.
        """
        self._figures.set(metrics.FAILED, total, route, destination, reason, policy)

    def unrouted(self, reason: str, total: int) -> None:
        """Sets the number of messages passed over for one of `UNROUTED_REASONS`."""
        self._figures.set(metrics.UNROUTED, total, reason)

    def unmatched(self, address: str, total: int) -> None:
        """Sets the number of messages to an address, or to `OTHER_ADDRESSES`, that no route took."""
        self._figures.set(metrics.UNMATCHED_BY_ADDRESS, total, address)

    def latency(
        self, cumulative: Sequence[int], sum_seconds: float, count: int, exemplars: Sequence[Exemplar | None] = ()
    ) -> None:
        """Sets the histogram of routing latency and its average over the last minute.

        `cumulative` has the number of messages up to each of `LATENCY_BUCKETS_SECONDS`, `count` that of all messages,
        `exemplars` a message for each bucket.
        """
        buckets = Buckets(metrics.LATENCY_BUCKETS_SECONDS, cumulative, count, exemplars)
        self._figures.set_histogram(metrics.LATENCY, buckets, sum_seconds)
        now = self._clock()
        self._past.append((now, sum_seconds, count))
        while len(self._past) > 2 and self._past[1][0] <= now - _AVERAGE_OVER_SECONDS:
            self._past.popleft()
        _, past_sum, past_count = self._past[0]
        average = (sum_seconds - past_sum) / (count - past_count) if count > past_count else math.nan
        self._figures.set(metrics.LATENCY_AVERAGE, average)

    def lag(self, partition: int, records: int) -> None:
        """Sets the number of journal records of a partition that wait to be routed."""
        self._figures.set(metrics.LAG_RECORDS, records, str(partition))

    def lag_seconds(self, seconds: float) -> None:
        """Sets the age in seconds of the oldest record that waits to be routed."""
        self._figures.set(metrics.LAG_SECONDS, seconds)

    def connection(self, up: bool) -> None:
        """Sets whether Kafka answers the router."""
        self._figures.set(metrics.CONNECTION_UP, up, "router")

    def prepare(self, routes: Iterable[Route], on_unmatched: Unmatched) -> None:
        """Adds the series of these routes, new ones at 0: otherwise rate() misses their first increase."""
        for route in routes:
            for target in route.targets:
                self._figures.add(metrics.ROUTED, 0, route.name, target.topic or str(target.address))
                for reason in metrics.FAILURE_REASONS:
                    self._figures.add(metrics.FAILED, 0, route.name, str(target), reason, route.on_soft_failure)
                for reason in metrics.PUBLISH_REASONS:
                    policy = Policy.SKIP if route.on_soft_failure is Policy.SKIP else Policy.DEAD_LETTER
                    self._figures.add(metrics.FAILED, 0, route.name, str(target), reason, policy)
        if on_unmatched is Unmatched.DEAD_LETTER:
            self._figures.add(metrics.FAILED, 0, *[metrics.NO_ROUTE] * 2, metrics.UNMATCHED, Unmatched.DEAD_LETTER)


class SparkMetrics:
    """Metrics of Spark and of recoveries: counters grow with each call, gauges are replaced."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._figures = Figures()
        self._executors: dict[str, ExecutorFigures] = {}
        for counter in (
            metrics.SPARK_BATCHES,
            metrics.SPARK_ROWS,
            metrics.RECOVERY_SCANNED,
            metrics.RECOVERY_PUBLISHED,
            metrics.RECOVERY_FOREIGN,
            metrics.SPARK_GC,
        ):
            self._figures.add(counter, 0)
        self.recovered(0.0)
        self.started("ready", 0.0)
        self.started("routed", 0.0)
        self.committed(0.0)
        self.memory(0, 0, 0.0)
        # Stands until a batch is complete, which takes minutes in real-time mode.
        self._figures.set(metrics.SPARK_BATCH_SECONDS, 0.0, "triggerExecution")
        registry.register(self._figures)

    def batch(self, rows: int, phases: Mapping[str, float]) -> None:
        """Counts a completed batch of `rows` rows; `phases` has the seconds that each phase took."""
        self._figures.add(metrics.SPARK_BATCHES, 1)
        self._figures.add(metrics.SPARK_ROWS, rows)
        for phase, seconds in phases.items():
            self._figures.set(metrics.SPARK_BATCH_SECONDS, seconds, phase)

    def committed(self, age_seconds: float) -> None:
        """Sets the seconds since the last commit to the checkpoint."""
        self._figures.set(metrics.SPARK_CHECKPOINT_AGE, age_seconds)

    def memory(self, used_bytes: int, max_bytes: int, gc_seconds: float) -> None:
        """Sets the JVM's heap use and limit, and the seconds spent on garbage collection since it started."""
        self._figures.set(metrics.SPARK_HEAP_USED, used_bytes)
        self._figures.set(metrics.SPARK_HEAP_MAX, max_bytes)
        self._figures.set(metrics.SPARK_GC, gc_seconds)

    def executors(self, living: Iterable[ExecutorFigures]) -> None:
        """Sets the figures of the living executors, and removes those of others."""
        before, self._executors = self._executors, {each.executor: each for each in living}
        for each in self._executors.values():
            for metric, value in each.values().items():
                self._figures.set(metric, value, each.executor)
        for gone in before.keys() - self._executors.keys():
            for metric in before[gone].values():
                self._figures.forget(metric, gone)

    def started(self, until: Literal["ready", "routed"], seconds: float) -> None:
        """Sets the seconds from the last start until the query read the journal or the first message was routed."""
        self._figures.set(metrics.ROUTER_START, seconds, until)

    def recovered(self, seconds: float) -> None:
        """Sets the seconds that a recovery took."""
        self._figures.set(metrics.RECOVERY_SECONDS, seconds)

    def scanned(self, records: int) -> None:
        """Counts records of the outputs that a recovery has read."""
        self._figures.add(metrics.RECOVERY_SCANNED, records)

    def published(self, messages: int) -> None:
        """Counts messages that a recovery has published because they were missing from the outputs."""
        self._figures.add(metrics.RECOVERY_PUBLISHED, messages)

    def foreign(self, records: int) -> None:
        """Counts records of the outputs that recovery found and that the router did not write."""
        self._figures.add(metrics.RECOVERY_FOREIGN, records)


class SourceMetrics:
    """Metrics of one source worker: each call counts an event. Safe from any thread."""

    def __init__(self, registry: CollectorRegistry, source: str, component: str) -> None:
        """`source` is the configured name, shared by all workers of the source; `component` names this worker."""
        self._source = source
        self._component = component
        self._figures = Figures()
        for metric in (
            metrics.RECEIVED,
            metrics.JOURNALED,
            metrics.DUPLICATES,
            metrics.UNIDENTIFIED,
            metrics.LOST,
            metrics.SOURCE_NOT_KEPT,
            metrics.ACKNOWLEDGED,
            metrics.RECONNECTS,
        ):
            self._figures.add(metric, 0, source)
        for reason in metrics.REJECTION_REASONS:
            self._figures.add(metrics.REJECTED, 0, source, reason)
        self.connection(up=False)
        registry.register(self._figures)

    def received(self, n: int = 1) -> None:
        """Counts messages received from the JMS broker."""
        self._figures.add(metrics.RECEIVED, n, self._source)

    def journaled(self, n: int = 1) -> None:
        """Counts messages that the journal confirmed."""
        self._figures.add(metrics.JOURNALED, n, self._source)

    def duplicate(self) -> None:
        """Counts a redelivered message that the journal has already."""
        self._figures.add(metrics.DUPLICATES, 1, self._source)

    def unidentified(self, n: int) -> None:
        """Counts messages without a message id, of which the journal would not recognise a redelivery."""
        self._figures.add(metrics.UNIDENTIFIED, n, self._source)

    def lost(self, total: int) -> None:
        """Sets the number of messages that their system removed before the source had read them."""
        self._figures.set(metrics.LOST, total, self._source)

    def waiting(self, messages: int | None) -> None:
        """Sets the number of messages that wait at the source's system; None if it is not known."""
        if messages is None:
            self._figures.forget(metrics.SOURCE_WAITING, self._source)
        else:
            self._figures.set(metrics.SOURCE_WAITING, messages, self._source)

    def not_kept(self, n: int) -> None:
        """Counts headers that could not be kept as they were."""
        self._figures.add(metrics.SOURCE_NOT_KEPT, n, self._source)

    def acknowledged(self, n: int = 1) -> None:
        """Counts messages acknowledged to the JMS broker."""
        self._figures.add(metrics.ACKNOWLEDGED, n, self._source)

    def rejected(self, reason: str, n: int = 1) -> None:
        """Counts messages that could not enter the journal, for one of `REJECTION_REASONS`."""
        self._figures.add(metrics.REJECTED, n, self._source, reason)

    def reconnected(self) -> None:
        """Counts a connection other than the worker's first."""
        self._figures.add(metrics.RECONNECTS, 1, self._source)

    def connection(self, up: bool) -> None:
        """Sets whether the worker is connected to the JMS broker."""
        self._figures.set(metrics.CONNECTION_UP, up, self._component)


class SinkMetrics:
    """Metrics of one sink worker: each call counts an event. Safe from any thread."""

    def __init__(self, registry: CollectorRegistry, sink: str, component: str) -> None:
        """`sink` is the configured name, shared by all workers of the sink; `component` names this worker."""
        self._sink = sink
        self._component = component
        self._figures = Figures()
        for metric in (
            metrics.DELIVERED,
            metrics.SINK_EXPIRED,
            metrics.SINK_NOT_KEPT,
            metrics.SINK_RECONNECTS,
            metrics.REQUESTS,
            metrics.REPLIES,
            metrics.REQUEST_TIMEOUTS,
        ):
            self._figures.add(metric, 0, sink)
        for reason in metrics.SINK_REJECTION_REASONS:
            for policy in (Policy.SKIP, Policy.DEAD_LETTER):
                self._figures.add(metrics.SINK_REJECTED, 0, sink, reason, policy)
        self.lag(0)
        self.connection(up=False)
        registry.register(self._figures)

    def delivered(self, n: int = 1) -> None:
        """Counts messages that the sink's system confirmed."""
        self._figures.add(metrics.DELIVERED, n, self._sink)

    def rejected(self, reason: str, policy: str) -> None:
        """Counts a message that the sink's system will never take, for one of `SINK_REJECTION_REASONS`."""
        self._figures.add(metrics.SINK_REJECTED, 1, self._sink, reason, policy)

    def expired(self) -> None:
        """Counts a message that expired before the sink's system had it."""
        self._figures.add(metrics.SINK_EXPIRED, 1, self._sink)

    def not_kept(self, n: int) -> None:
        """Counts headers that the sink's system cannot carry."""
        self._figures.add(metrics.SINK_NOT_KEPT, n, self._sink)

    def lag(self, records: int) -> None:
        """Sets the number of messages that the sink's system has not confirmed yet."""
        self._figures.set(metrics.SINK_LAG, records, self._component)

    def reconnected(self) -> None:
        """Counts a connection other than the worker's first."""
        self._figures.add(metrics.SINK_RECONNECTS, 1, self._sink)

    def requested(self) -> None:
        """Counts a request sent, again if it is sent again after a lost connection."""
        self._figures.add(metrics.REQUESTS, 1, self._sink)

    def replied(self) -> None:
        """Counts a reply received."""
        self._figures.add(metrics.REPLIES, 1, self._sink)

    def timed_out(self, n: int = 1) -> None:
        """Counts requests that got no reply in time."""
        self._figures.add(metrics.REQUEST_TIMEOUTS, n, self._sink)

    def connection(self, up: bool) -> None:
        """Sets whether the worker is connected to its system."""
        self._figures.set(metrics.CONNECTION_UP, up, self._component)


class TopologyMetrics:
    """Metrics of a topology of the user's own."""

    def __init__(self, registry: CollectorRegistry, topology: str) -> None:
        self._figures = Figures()
        self._topology = topology
        self.update(0, 0, 0, {})
        registry.register(self._figures)

    def update(self, records: int, lag: int, state_bytes: int, unprocessed: Mapping[tuple[str, str], int]) -> None:
        """Sets all figures; counts are totals since the start, those of `unprocessed` by node and reason."""
        self._figures.set(metrics.TOPOLOGY_RECORDS, records, self._topology)
        self._figures.set(metrics.TOPOLOGY_LAG, lag, self._topology)
        self._figures.set(metrics.TOPOLOGY_STATE, state_bytes, self._topology)
        for (node, reason), count in unprocessed.items():
            self._figures.set(metrics.TOPOLOGY_UNPROCESSED, count, self._topology, node, reason)


class BridgeMetrics:
    """Metrics of the supervisor: state and restarts of components, leadership, configuration and versions."""

    def __init__(self, registry: CollectorRegistry, components: Sequence[str], version: str, spark: str) -> None:
        self._figures = Figures()
        for component in components:
            self.joined(component)
        self._figures.set(metrics.BUILD_INFO, 1, version, spark)
        registry.register(self._figures)

    def joined(self, component: str) -> None:
        """Adds a component, not ready, not paused and with no restarts."""
        self.component(component, up=False)
        self.paused(component, is_paused=False)
        self._figures.add(metrics.RESTARTS, 0, component)

    def left(self, component: str) -> None:
        """Removes the series of a component."""
        for metric in (metrics.COMPONENT_UP, metrics.COMPONENT_PAUSED, metrics.RESTARTS):
            self._figures.forget(metric, component)

    def configuration(self, config_hash: str, *, success: bool, time_seconds: float) -> None:
        """Sets the hash of the configuration in force, and result and time (since 1970) of the last reload."""
        self._figures.forget(metrics.CONFIG_INFO)
        self._figures.set(metrics.CONFIG_INFO, 1, config_hash)
        self._figures.set(metrics.CONFIG_RELOAD_SUCCESS, success)
        self._figures.set(metrics.CONFIG_RELOAD_TIMESTAMP, time_seconds)

    def component(self, component: str, up: bool) -> None:
        """Sets whether a component is ready."""
        self._figures.set(metrics.COMPONENT_UP, up, component)

    def paused(self, component: str, *, is_paused: bool) -> None:
        """Sets whether a component is paused."""
        self._figures.set(metrics.COMPONENT_PAUSED, is_paused, component)

    def leader(self, *, leads: bool, has_leader: bool) -> None:
        """Sets whether this bridge leads those with its id, and whether any bridge is known to lead."""
        self._figures.set(metrics.LEADER, leads)
        self._figures.set(metrics.HAS_LEADER, has_leader)

    def restarted(self, component: str) -> None:
        """Counts a restart of a component that had died."""
        self._figures.add(metrics.RESTARTS, 1, component)


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
                figures.set(metrics.DEAD_LETTERS, count, reason)
            figures.set(metrics.DEAD_LETTER_AGE, census.oldest_age(self._clock()))
            figures.set(metrics.QUARANTINED, census.quarantined or 0)
        yield from figures.collect()


class ProcessMetrics(Collector):
    """Collector of each component's resource use: that of its own process and all descendants, added up."""

    def __init__(self, registry: CollectorRegistry, leaders: Callable[[], Mapping[str, int]]) -> None:
        """`leaders` returns the process id of each running component, by component."""
        self._leaders = leaders
        registry.register(self)

    def collect(self) -> Iterable[Family]:
        """The families, measured now."""
        figures = Figures()
        names = {os.getpid(): SUPERVISOR} | {leader: name for name, leader in self._leaders().items()}
        parents = _parents()
        for pid in parents:
            if (leader := _leader(pid, parents, names)) is not None:
                # The process may end while it is measured.
                with suppress(psutil.NoSuchProcess):
                    _add(figures, names[leader], psutil.Process(pid), leads=pid == leader)
        return figures.collect()


def _parents() -> Mapping[int, int]:
    """Parent process ids, by process id, of all processes of this machine."""
    parents = {}
    for process in psutil.process_iter():
        with suppress(psutil.NoSuchProcess):
            parents[process.pid] = process.ppid()
    return parents


def _leader(pid: int, parents: Mapping[int, int], leaders: Container[int]) -> int | None:
    """The process id of the component that a process descends from or is itself; None if it belongs to none."""
    seen: set[int] = set()
    while pid not in leaders:
        if pid not in parents or pid in seen:
            return None
        # A process id that was reused while the table was read might lead in a circle.
        seen.add(pid)
        pid = parents[pid]
    return pid


def _add(figures: Figures, name: str, process: psutil.Process, *, leads: bool) -> None:
    with process.oneshot():
        if process.status() == psutil.STATUS_ZOMBIE:
            return  # It has ended, but its parent has not waited for it yet.
        times = process.cpu_times()
        memory, files, threads = process.memory_info().rss, process.num_fds(), process.num_threads()
    # User and system time, its own and that of ended children, which count at the parent that waited for them.
    figures.add(metrics.PROCESS_CPU, sum(times[:4]), name)
    figures.add(metrics.PROCESS_MEMORY, memory, name)
    figures.add(metrics.PROCESS_FILES, files, name)
    figures.add(metrics.PROCESS_THREADS, threads, name)
    if leads:
        figures.set(metrics.PROCESS_START, process.create_time(), name)
