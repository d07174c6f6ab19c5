"""The metrics table and the objects that fill it, on registries of their own."""

import math
import re
import sys
from pathlib import Path
from runpy import run_module

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as open_metrics

from engine.dead_letters.backlog import OTHER, Backlog
from engine.telemetry.machine import MachineMetrics
from engine.telemetry.meters import (
    BridgeMetrics,
    DeadLetterMetrics,
    ExecutorFigures,
    ProcessMetrics,
    RouterMetrics,
    SinkMetrics,
    SourceMetrics,
    SparkMetrics,
    TopologyMetrics,
)
from engine.telemetry.metrics import (
    DEAD_LETTER_REASONS,
    FAILURE_REASONS,
    LATENCY_BUCKETS_SECONDS,
    METRICS,
    UNROUTED_REASONS,
)
from engine.telemetry.reference import reference
from engine.telemetry.status import DeadLetterCounts, Merged, State, Status, StatusBoard
from routes.config import loads
from routes.model import Config
from tests.unit.clock import Clock

ROOT = Path(__file__).parents[2]

TWO_ROUTES = """
bridge.id=test
routing.dead-letter-topic=dead
routing.on-unmatched=dead-letter
journal.partitions=2
routes.a.name=a
routes.a.in.include=msg.address==a
routes.a.out.topic=topic-a
routes.b.name=b
routes.b.in.include=msg.address==b
routes.b.out.topic=topic-b
routes.b.on-soft-failure=dead-letter
source.jms.type=stomp
source.jms.destinations=queue:a
"""


@pytest.fixture
def config() -> Config:
    return loads(TWO_ROUTES)


def everything(config: Config) -> CollectorRegistry:
    """What `/metrics` shows of a bridge: each process has figures of its own."""
    router, source, sink, topology, bridge = (CollectorRegistry() for _ in range(5))
    of_router = RouterMetrics(router, config)
    of_router.connection(up=True)
    of_router.unmatched("a", 1)
    SparkMetrics(router).executors([ExecutorFigures("3", 2, 100, 200, 300, 1.5)])
    SourceMetrics(source, "jms", "source:jms").waiting(3)
    SinkMetrics(sink, "nats", "sink:nats")
    TopologyMetrics(topology, "totals").update(5, 2, 1_000, {("totals", "late_records"): 1})
    supervisor = BridgeMetrics(bridge, ["router"], "0.1", "4.2")
    supervisor.leader(leads=True, has_leader=True)
    supervisor.configuration("0123456789abcdef", success=True, time_seconds=1.0)
    ProcessMetrics(bridge, dict)
    MachineMetrics(bridge, lambda: {"ca.pem": 2e9}, lambda: {"embedded.data": 1 << 30}).look()
    census = DeadLetterCounts("dead", reachable=True, open=Backlog(DEAD_LETTER_REASONS).open, quarantined=0)
    DeadLetterMetrics(bridge, lambda: census)
    board = StatusBoard(["router", "source:jms", "sink:nats", "topology:totals"])
    board.put(Status("router", State.READY, metrics=text(router)))
    board.put(Status("source:jms", State.READY, metrics=text(source)))
    board.put(Status("sink:nats", State.READY, metrics=text(sink)))
    board.put(Status("topology:totals", State.READY, metrics=text(topology)))
    bridge.register(Merged(board))
    return bridge


def text(registry: CollectorRegistry) -> str:
    """What a process tells its supervisor."""
    return open_metrics(registry).decode()


def value(registry: CollectorRegistry, name: str, **labels: str) -> float | None:
    return registry.get_sample_value(name, labels)


def test_every_series_of_a_route_exists_before_the_first_message(config: Config) -> None:
    registry = CollectorRegistry()
    RouterMetrics(registry, config)
    assert value(registry, "jmsbridge_routed_messages_total", route="a", topic="topic-a") == 0
    to_a, to_b = {"destination": "kafka:topic-a"}, {"destination": "kafka:topic-b"}
    for reason in FAILURE_REASONS:
        assert value(registry, "jmsbridge_failed_messages_total", route="a", **to_a, reason=reason, policy="stop") == 0
        assert (
            value(registry, "jmsbridge_failed_messages_total", route="b", **to_b, reason=reason, policy="dead-letter")
            == 0
        )
    labels = {"route": "-", "destination": "-", "reason": "unmatched", "policy": "dead-letter"}
    assert registry.get_sample_value("jmsbridge_failed_messages_total", labels) == 0
    for reason in UNROUTED_REASONS:
        assert value(registry, "jmsbridge_unrouted_messages_total", reason=reason) == 0
    assert [value(registry, "jmsbridge_journal_lag_records", partition=str(p)) for p in (0, 1, 2)] == [0, 0, None]


def test_figures_of_an_executor_end_with_it() -> None:
    registry = CollectorRegistry()
    metrics = SparkMetrics(registry)
    metrics.executors([ExecutorFigures("0", 2, 100, 200, 300, 1.5), ExecutorFigures("1", 4, 10, 20, 30, 0.5)])
    metrics.executors([ExecutorFigures("1", 4, 11, 20, 30, 0.75), ExecutorFigures("2", 1, 7, 8, 9, 0.0)])
    names = {
        "task_slots": (4, 1),
        "heap_used_bytes": (11, 7),
        "heap_committed_bytes": (20, 8),
        "heap_max_bytes": (30, 9),
        "gc_seconds_total": (0.75, 0),
    }
    for name, expected in names.items():
        values = [value(registry, f"jmsbridge_spark_executor_{name}", executor=each) for each in ("0", "1", "2")]
        assert values == [None, *expected]


def test_router_figures_are_totals_that_a_repeated_call_replaces(config: Config) -> None:
    registry = CollectorRegistry()
    metrics = RouterMetrics(registry, config)
    metrics.routed("a", "topic-a", 5)
    metrics.routed("a", "topic-a", 5)
    metrics.unrouted("expired", 2)
    metrics.lag(1, 9)
    assert value(registry, "jmsbridge_routed_messages_total", route="a", topic="topic-a") == 5
    assert value(registry, "jmsbridge_unrouted_messages_total", reason="expired") == 2
    assert value(registry, "jmsbridge_journal_lag_records", partition="1") == 9


def test_open_dead_letters_are_told_by_reason_as_of_the_scrape() -> None:
    census = DeadLetterCounts("dead", reachable=True, open={"unmatched": 2, OTHER: 1}, oldest=100.0, quarantined=4)
    clock = Clock(0.0)
    registry = CollectorRegistry()
    DeadLetterMetrics(registry, lambda: census, clock)
    for now, age in ((100.5, 0.5), (160.0, 60.0)):
        clock.now = now
        assert value(registry, "jmsbridge_dead_letters_oldest_seconds") == age
    assert value(registry, "jmsbridge_dead_letters", reason="unmatched") == 2
    assert value(registry, "jmsbridge_dead_letters", reason=OTHER) == 1
    assert value(registry, "jmsbridge_dead_letters_quarantined") == 4


@pytest.mark.parametrize(
    "census", [None, DeadLetterCounts("dead"), DeadLetterCounts("dead", reachable=True, trouble="not authorised")]
)
def test_dead_letters_that_nobody_has_counted_have_no_figures(census: DeadLetterCounts | None) -> None:
    registry = CollectorRegistry()
    DeadLetterMetrics(registry, lambda: census)
    assert generate_latest(registry) == b""


def test_every_reason_of_the_bridge_is_told_apart() -> None:
    assert {*FAILURE_REASONS, "unmatched", "refused", "unreadable"} <= set(DEAD_LETTER_REASONS)
    assert OTHER not in DEAD_LETTER_REASONS


def test_source_figures_add_up(config: Config) -> None:
    registry = CollectorRegistry()
    metrics = SourceMetrics(registry, "jms", "source:jms/2")
    assert value(registry, "jmsbridge_connection_up", component="source:jms/2") == 0
    metrics.received()
    metrics.received(2)
    metrics.reconnected()
    metrics.connection(up=True)
    assert value(registry, "jmsbridge_source_received_messages_total", source="jms") == 3
    assert value(registry, "jmsbridge_source_journaled_messages_total", source="jms") == 0
    assert value(registry, "jmsbridge_source_reconnects_total", source="jms") == 1
    assert value(registry, "jmsbridge_connection_up", component="source:jms/2") == 1


def test_latency_counts_from_the_jvm_become_a_histogram(config: Config) -> None:
    registry = CollectorRegistry()
    metrics = RouterMetrics(registry, config)
    cumulative = [3] * len(LATENCY_BUCKETS_SECONDS)
    metrics.latency([1, 2, *cumulative[2:]], 12.5, 4)
    assert value(registry, "jmsbridge_routing_latency_seconds_bucket", le="0.001") == 1
    assert value(registry, "jmsbridge_routing_latency_seconds_bucket", le="300.0") == 3
    assert value(registry, "jmsbridge_routing_latency_seconds_bucket", le="+Inf") == 4
    assert value(registry, "jmsbridge_routing_latency_seconds_count") == 4
    assert value(registry, "jmsbridge_routing_latency_seconds_sum") == 12.5


def test_latency_counts_of_another_number_of_buckets_are_refused(config: Config) -> None:
    metrics = RouterMetrics(CollectorRegistry(), config)
    with pytest.raises(ValueError, match="zip"):
        metrics.latency([1, 2], 1.0, 2)


def test_the_average_is_that_of_the_last_minute(config: Config) -> None:
    clock = Clock(0.0)
    registry = CollectorRegistry()
    metrics = RouterMetrics(registry, config, clock)
    none = [0] * len(LATENCY_BUCKETS_SECONDS)

    def average(now: float, total: float, count: int) -> float:
        clock.now = now
        metrics.latency(none, total, count)
        return value(registry, "jmsbridge_routing_latency_average_seconds") or 0.0

    assert math.isnan(average(0, 0, 0))
    assert average(1, 10, 2) == 5
    assert average(30, 11, 3) == pytest.approx(11 / 3)
    assert average(65, 11.5, 4) == pytest.approx(1.5 / 2)
    assert math.isnan(average(200, 11.5, 4))


def test_every_metric_is_exposed_with_the_name_kind_and_help_of_the_table(config: Config) -> None:
    registry = everything(config)
    exposed = generate_latest(registry).decode()
    for metric in METRICS:
        assert f"# HELP {metric.name} {metric.help}\n# TYPE {metric.name} {metric.kind}\n" in exposed
    assert len(re.findall("^# TYPE", exposed, re.MULTILINE)) == len(METRICS)
    assert "_created" not in exposed


def test_labels_in_the_exposition_are_those_of_the_table(config: Config) -> None:
    registry = everything(config)
    table = {metric.name.removesuffix("_total"): set(metric.labels) for metric in METRICS}
    for family in registry.collect():
        for sample in family.samples:
            assert set(sample.labels) - {"le"} == table[family.name]


def test_the_documentation_is_current() -> None:
    assert (ROOT / "docs/metrics.md").read_text() == reference(), (
        "run: python -m engine.telemetry.reference > docs/metrics.md"
    )


def test_the_module_prints_the_documentation(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delitem(sys.modules, "engine.telemetry.reference")
    run_module("engine.telemetry.reference", run_name="__main__")
    assert capsys.readouterr().out == reference()
