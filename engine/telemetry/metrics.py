"""Every metric of the bridge: one table of names, labels and help texts, and the objects that fill it in.

Each process has its own registry, passed in; nothing is made at import. The router counts in its JVM and reports
*totals* since that process started; a source reports *increments* as things happen. Either way a counter starts at 0
with its process, which is what Prometheus expects of a restart. `engine.telemetry.exposition` merges the processes'
figures, `engine.telemetry.http` serves them. Label values come from the configuration or from the lists here, never
from messages.
"""

from __future__ import annotations

import math
import time
from collections import deque
from typing import TYPE_CHECKING

from engine.telemetry.figures import Figures, Kind, Metric
from routes.model import Unmatched

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from prometheus_client.registry import CollectorRegistry

    from routes.model import Config

__all__ = [
    "FAILURE_REASONS",
    "LATENCY_BUCKETS_SECONDS",
    "METRICS",
    "NO_ROUTE",
    "REJECTION_REASONS",
    "UNROUTED_REASONS",
    "BridgeMetrics",
    "RouterMetrics",
    "SourceMetrics",
    "reference",
]

FAILURE_REASONS = ("key-not-found", "key-invalid", "body-not-convertible", "too-large")
"""Why a route can fail on a message."""
UNROUTED_REASONS = ("unmatched", "expired", "own-origin", "non-durable", "retention")
"""Why a message is passed over without being a failure."""
REJECTION_REASONS = ("too-large",)
"""Why a message cannot enter the journal as it is; `routing.on-soft-failure` says what happens to it."""
NO_ROUTE = "-"
"""Label `route` of a dead letter that no route wanted."""
LATENCY_BUCKETS_SECONDS = (
    *(0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
    *(1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0),
)
"""Upper bounds, +Inf left out: from real-time mode (milliseconds) over batches (seconds) to a stuck interval."""

_AVERAGE_OVER_SECONDS = 60.0


LATENCY = Metric(
    "jmsbridge_routing_latency_seconds",
    Kind.HISTOGRAM,
    (),
    "Time from a message's arrival in the journal to its routing and conversion.",
)
LATENCY_AVERAGE = Metric(
    "jmsbridge_routing_latency_average_seconds",
    Kind.GAUGE,
    (),
    "Average routing latency of the last minute; NaN while nothing was routed in it.",
)
ROUTED = Metric(
    "jmsbridge_routed_messages_total",
    Kind.COUNTER,
    ("route", "topic"),
    "Messages routed and converted for a destination topic.",
)
FAILED = Metric(
    "jmsbridge_failed_messages_total",
    Kind.COUNTER,
    ("route", "reason", "policy"),
    f"Messages that failed softly, by what was done with them (stop, skip or dead-letter); route {NO_ROUTE} where "
    "none wanted the message.",
)
UNROUTED = Metric(
    "jmsbridge_unrouted_messages_total",
    Kind.COUNTER,
    ("reason",),
    "Messages passed over without a failure: no route wanted them, they had expired, came from this bridge, were not "
    "durable, or the journal's retention removed them first.",
)
LAG_RECORDS = Metric(
    "jmsbridge_journal_lag_records",
    Kind.GAUGE,
    ("partition",),
    "Journal records that are not routed yet.",
)
LAG_SECONDS = Metric(
    "jmsbridge_journal_lag_seconds",
    Kind.GAUGE,
    (),
    "Age of the oldest journal record that is not routed yet; 0 when there is none.",
)
RECEIVED = Metric(
    "jmsbridge_source_received_messages_total",
    Kind.COUNTER,
    ("source",),
    "Messages delivered by the JMS broker, redeliveries included.",
)
JOURNALED = Metric(
    "jmsbridge_source_journaled_messages_total",
    Kind.COUNTER,
    ("source",),
    "Messages that the journal has confirmed.",
)
ACKNOWLEDGED = Metric(
    "jmsbridge_source_acknowledged_messages_total",
    Kind.COUNTER,
    ("source",),
    "Messages acknowledged to the JMS broker, after the journal had them.",
)
REJECTED = Metric(
    "jmsbridge_source_rejected_messages_total",
    Kind.COUNTER,
    ("source", "reason"),
    "Messages that could not enter the journal as they are.",
)
RECONNECTS = Metric(
    "jmsbridge_source_reconnects_total",
    Kind.COUNTER,
    ("source",),
    "Connections to the JMS broker made after the first one.",
)
CONNECTION_UP = Metric(
    "jmsbridge_connection_up",
    Kind.GAUGE,
    ("component",),
    "1 while a component is connected to its broker: a source to the JMS broker, the router to Kafka.",
)
COMPONENT_UP = Metric(
    "jmsbridge_component_up",
    Kind.GAUGE,
    ("component",),
    "1 while a component's process runs and says that it is ready.",
)
RESTARTS = Metric(
    "jmsbridge_component_restarts_total",
    Kind.COUNTER,
    ("component",),
    "Times a component was started again after it had died.",
)
BUILD_INFO = Metric(
    "jmsbridge_build_info",
    Kind.GAUGE,
    ("version", "spark_version"),
    "Always 1; the versions are in the labels.",
)

METRICS: tuple[Metric, ...] = (
    *(LATENCY, LATENCY_AVERAGE, ROUTED, FAILED, UNROUTED, LAG_RECORDS, LAG_SECONDS),
    *(RECEIVED, JOURNALED, ACKNOWLEDGED, REJECTED, RECONNECTS),
    *(CONNECTION_UP, COMPONENT_UP, RESTARTS, BUILD_INFO),
)
"""All of them, in the order of the documentation."""


class RouterMetrics:
    """The router's figures: totals since its process started, as the JVM keeps them; a repeated call replaces."""

    def __init__(
        self, registry: CollectorRegistry, config: Config, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._figures = Figures()
        self._clock = clock
        self._past: deque[tuple[float, float, int]] = deque([(clock(), 0.0, 0)])
        self._prepare(config)
        registry.register(self._figures)

    def routed(self, route: str, topic: str, total: int) -> None:
        """Messages a route has sent to its topic."""
        self._figures.set(ROUTED, total, route, topic)

    def failed(self, route: str, reason: str, policy: str, total: int) -> None:
        """Messages that failed under a route; `route` is `NO_ROUTE` for an unmatched dead letter."""
        self._figures.set(FAILED, total, route, reason, policy)

    def unrouted(self, reason: str, total: int) -> None:
        """Messages passed over for one of `UNROUTED_REASONS`."""
        self._figures.set(UNROUTED, total, reason)

    def latency(self, cumulative: Sequence[int], sum_seconds: float, count: int) -> None:
        """How long routing took: for each of `LATENCY_BUCKETS_SECONDS` the messages up to it, then all of them."""
        self._figures.set_histogram(LATENCY, LATENCY_BUCKETS_SECONDS, cumulative, sum_seconds, count)
        now = self._clock()
        self._past.append((now, sum_seconds, count))
        while len(self._past) > 2 and self._past[1][0] <= now - _AVERAGE_OVER_SECONDS:
            self._past.popleft()
        _, past_sum, past_count = self._past[0]
        average = (sum_seconds - past_sum) / (count - past_count) if count > past_count else math.nan
        self._figures.set(LATENCY_AVERAGE, average)

    def lag(self, partition: int, records: int) -> None:
        """Journal records of a partition still to be routed, at this moment."""
        self._figures.set(LAG_RECORDS, records, str(partition))

    def lag_seconds(self, seconds: float) -> None:
        """Age of the oldest record still to be routed, at this moment."""
        self._figures.set(LAG_SECONDS, seconds)

    def connection(self, up: bool) -> None:
        """Whether Kafka answers the router, at this moment."""
        self._figures.set(CONNECTION_UP, up, "router")

    def _prepare(self, config: Config) -> None:
        # Every series a rule may ask for exists from the start, else rate() misses the first increase.
        for route in config.routes:
            self.routed(route.name, route.target.address, 0)
            for reason in FAILURE_REASONS:
                self.failed(route.name, reason, route.on_soft_failure, 0)
        if config.routing.on_unmatched is Unmatched.DEAD_LETTER:
            self.failed(NO_ROUTE, "unmatched", Unmatched.DEAD_LETTER, 0)
        for reason in UNROUTED_REASONS:
            self.unrouted(reason, 0)
        for partition in range(config.journal.partitions):
            self.lag(partition, 0)
        self.lag_seconds(0)
        self.connection(up=False)
        self.latency([0] * len(LATENCY_BUCKETS_SECONDS), 0.0, 0)


class SourceMetrics:
    """One source worker's figures: each call adds what just happened. Safe from any thread."""

    def __init__(self, registry: CollectorRegistry, source: str, component: str) -> None:
        """`source` is the configured name, which all its workers share; `component` is this worker's own."""
        self._source = source
        self._component = component
        self._figures = Figures()
        for metric in (RECEIVED, JOURNALED, ACKNOWLEDGED, RECONNECTS):
            self._figures.add(metric, 0, source)
        for reason in REJECTION_REASONS:
            self._figures.add(REJECTED, 0, source, reason)
        self.connection(up=False)
        registry.register(self._figures)

    def received(self, n: int = 1) -> None:
        """Messages came from the JMS broker."""
        self._figures.add(RECEIVED, n, self._source)

    def journaled(self, n: int = 1) -> None:
        """The journal confirmed messages."""
        self._figures.add(JOURNALED, n, self._source)

    def acknowledged(self, n: int = 1) -> None:
        """Messages were acknowledged to the JMS broker."""
        self._figures.add(ACKNOWLEDGED, n, self._source)

    def rejected(self, reason: str, n: int = 1) -> None:
        """Messages could not enter the journal, for one of `REJECTION_REASONS`."""
        self._figures.add(REJECTED, n, self._source, reason)

    def reconnected(self) -> None:
        """A connection was made that is not the worker's first."""
        self._figures.add(RECONNECTS, 1, self._source)

    def connection(self, up: bool) -> None:
        """Whether the JMS broker is connected, at this moment."""
        self._figures.set(CONNECTION_UP, up, self._component)


class BridgeMetrics:
    """The supervisor's own figures: which components are up, how often they died, what runs."""

    def __init__(self, registry: CollectorRegistry, components: Sequence[str], version: str, spark: str) -> None:
        self._figures = Figures()
        for component in components:
            self.component(component, up=False)
            self._figures.add(RESTARTS, 0, component)
        self._figures.set(BUILD_INFO, 1, version, spark)
        registry.register(self._figures)

    def component(self, component: str, up: bool) -> None:
        """Whether a component is ready, at this moment."""
        self._figures.set(COMPONENT_UP, up, component)

    def restarted(self, component: str) -> None:
        """A component was started again after it had died."""
        self._figures.add(RESTARTS, 1, component)


def reference() -> str:
    """The table as Markdown: the content of `docs/metrics.md`."""
    rows = [f"| `{m.name}` | {m.kind} | {', '.join(f'`{x}`' for x in m.labels)} | {m.help} |" for m in METRICS]
    bounds = ", ".join(f"{bound:g}" for bound in LATENCY_BUCKETS_SECONDS)
    return _REFERENCE.format(rows="\n".join(rows), bounds=bounds)


_REFERENCE = """\
# Metrics

Generated from `engine/telemetry/metrics.py` (`python -m engine.telemetry.metrics > docs/metrics.md`); a test keeps it
current.

`/metrics` on `http.address` serves the figures of all processes of the bridge, at most a few seconds old, in
Prometheus' text format or in OpenMetrics. Counters start at 0 with their process: use `rate()` and `increase()`, which
know that. Components are `router`, `source:NAME` (`source:NAME/2` for its second worker), and the embedded `kafka` and
`artemis`.

| Metric | Type | Labels | Meaning |
|---|---|---|---|
{rows}

The buckets of the latency histogram end at {bounds} seconds and +Inf.

A router that runs on another machine than the sources (`run --only`) serves its own figures there.
"""

if __name__ == "__main__":
    print(reference(), end="")
