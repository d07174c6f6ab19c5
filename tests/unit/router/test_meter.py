"""Tests that the JVM's numbers reach the metrics under the right names, and go on from query to query."""

from __future__ import annotations

import re
import time
from dataclasses import replace

from prometheus_client import CollectorRegistry
from prometheus_client.openmetrics.exposition import generate_latest as open_metrics

from engine.router import RoutingOutcome
from engine.router.meter import Meter
from engine.router.plan.failures import StoppedByPolicyError
from engine.router.row_counters import BUCKETS, Example, Note, RowCounts
from engine.telemetry.meters import RouterMetrics
from routes.config import loads

CONFIG = loads("""
bridge.id=b
routes.a.in.include=a='b'
routes.a.out.topic=ta
routes.b.in.include=b='c'
routes.b.out.topic=tb
routes.b.on-soft-failure=skip
""")
OUTCOMES = (
    RoutingOutcome("routed"),
    RoutingOutcome("unrouted", "expired"),
    RoutingOutcome("skip", "key-invalid"),
    RoutingOutcome("dead-letter", "unmatched"),
)
READING = RowCounts(
    counts=((0, 3, 4), (5, 0, 0), (0, 0, 6), (7, 0, 0)),
    emitted=14,
    sent=14,
    acknowledged=14,
    failed=0,
    failure=None,
    buckets=(1, 2, *[0] * (BUCKETS - 3), 4),
    latency_seconds=1.5,
    examples=(None,) * BUCKETS,
    processed={0: 24},
    times_ms={0: 0},
    notes=(),
    unnoted=0,
)


def test_a_recent_message_of_each_bucket_is_an_exemplar() -> None:
    registry = CollectorRegistry()
    meter = Meter(RouterMetrics(registry, CONFIG))
    meter.begin(CONFIG.publications, CONFIG.journal.topic, OUTCOMES)
    now_ms = round(time.time() * 1000)
    old, recent = Example(0, 17, 1, now_ms - 700_000), Example(1, 5, 70_000, now_ms)
    meter.update(replace(READING, examples=(old, *[None] * (BUCKETS - 2), recent)))
    (told,) = [line for line in open_metrics(registry).decode().splitlines() if "#" in line[1:]]
    assert told.startswith('jmsbridge_routing_latency_seconds_bucket{le="+Inf"} 7.0 # {journal="1:5"} 70.0 ')


def test_totals_go_on_when_a_query_starts_again() -> None:
    registry = CollectorRegistry()
    meter = Meter(RouterMetrics(registry, CONFIG))
    for _ in range(2):
        meter.begin(CONFIG.publications, CONFIG.journal.topic, OUTCOMES)
        meter.update(READING)
        meter.update(READING)
    value = registry.get_sample_value
    name = "jmsbridge_failed_messages_total"
    assert value("jmsbridge_routed_messages_total", {"route": "a", "topic": "ta"}) == 6
    assert value("jmsbridge_routed_messages_total", {"route": "b", "topic": "tb"}) == 8
    assert value("jmsbridge_unrouted_messages_total", {"reason": "expired"}) == 10
    assert value(name, {"route": "b", "destination": "kafka:tb", "reason": "key-invalid", "policy": "skip"}) == 12
    assert value(name, {"route": "-", "destination": "-", "reason": "unmatched", "policy": "dead-letter"}) == 14
    assert value("jmsbridge_routing_latency_seconds_sum") == 3.0
    assert value("jmsbridge_routing_latency_seconds_count") == 14
    assert value("jmsbridge_routing_latency_seconds_bucket", {"le": "0.002"}) == 6
    assert value("jmsbridge_routing_latency_seconds_bucket", {"le": "300.0"}) == 6


def test_a_failure_belongs_to_one_of_the_destinations_of_a_route() -> None:
    config = loads("""
bridge.id=b
sink.n.type=nats
routes.a.in.include=TRUE
routes.a.out.topic=ta, n:a.${msg.header.region}
""")
    registry = CollectorRegistry()
    meter = Meter(RouterMetrics(registry, config))
    meter.begin(config.publications, config.journal.topic, OUTCOMES)
    meter.update(replace(READING, counts=((0, 3, 4), (5, 0, 0), (0, 1, 6), (0, 0, 0))))
    told = {
        sample.labels["destination"]: sample.value
        for family in registry.collect()
        for sample in family.samples
        if sample.name == "jmsbridge_failed_messages_total" and sample.value
    }
    assert told == {"kafka:ta": 1, "n:a.${msg.header.region}": 6}


def test_messages_that_no_route_took_are_counted_by_address_within_a_bound() -> None:
    registry = CollectorRegistry()
    meter = Meter(RouterMetrics(registry, CONFIG))
    first = {f"queue:a{number}": 1 for number in range(99)} | {"": 2}
    for destinations in (first, {"topic:a5": 4, "queue:new": 8, "queue:a\x1b": 16}):
        meter.begin(CONFIG.publications, CONFIG.journal.topic, OUTCOMES)
        meter.update(replace(READING, destinations=destinations, elsewhere=3))

    def value(address: str) -> float | None:
        return registry.get_sample_value("jmsbridge_unmatched_messages_total", {"address": address})

    assert (value("a5"), value(""), value("(others)"), value("new")) == (5, 2, 3 + 3 + 8 + 16, None)


def test_what_the_jvm_does_not_count_is_added() -> None:
    registry = CollectorRegistry()
    meter = Meter(RouterMetrics(registry, CONFIG))
    meter.lost(3)
    meter.stopped(StoppedByPolicyError("a", "kafka:ta", "key-not-found", "j:0:1", "none"))
    meter.begin(CONFIG.publications, CONFIG.journal.topic, OUTCOMES)
    meter.update(READING)
    labels = {"route": "a", "destination": "kafka:ta", "reason": "key-not-found", "policy": "stop"}
    assert registry.get_sample_value("jmsbridge_unrouted_messages_total", {"reason": "retention"}) == 3
    assert registry.get_sample_value("jmsbridge_failed_messages_total", labels) == 1


def test_failures_are_logged_one_by_one_up_to_a_limit(capsys) -> None:  # type: ignore[no-untyped-def]
    now = 0.0
    meter = Meter(RouterMetrics(CollectorRegistry(), CONFIG), lambda: now)
    meter.begin(CONFIG.publications, CONFIG.journal.topic, OUTCOMES)
    notes = tuple(Note(2, 1, 0, offset, 0, f"ID:{offset}") for offset in range(25))
    meter.update(replace(READING, notes=notes, unnoted=100))
    now = 20.0
    meter.update(replace(READING, unnoted=100))
    lines = capsys.readouterr().out.splitlines()
    assert sum("message skipped" in line for line in lines) == 20
    assert re.search("message=ID:0 .*reason=key-invalid route=b", lines[0])
    assert sum("messages=105" in line for line in lines) == 1
