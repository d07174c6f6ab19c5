"""Merging the figures of several processes."""

import math

from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.exposition import generate_latest as open_metrics
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_open_metrics

from engine.telemetry.families import text_of
from engine.telemetry.meters import SinkMetrics, SourceMetrics
from engine.telemetry.status import Merged, State, Status, StatusBoard, merge

COUNTER = """# HELP received Messages.
# TYPE received counter
received_total{{source="a\\"b\\\\c"}} {}
"""
GAUGE = """# HELP up Up.
# TYPE up gauge
up{{component="{}"}} {}
"""
HISTOGRAM = """# HELP latency_seconds Time.
# TYPE latency_seconds histogram
latency_seconds_bucket{le="0.1"} 1.0 # {journal="0:7"} 0.05 1700000000.000000000
latency_seconds_bucket{le="+Inf"} 2.0
latency_seconds_count 2.0
latency_seconds_sum 0.5
"""


def status(component: str, metrics: str, state: State = State.READY) -> Status:
    return Status(component, state, metrics=metrics + "# EOF\n")


def samples(families: list[Metric]) -> dict[tuple[str, ...], float]:
    return {(s.name, *s.labels.values()): s.value for family in families for s in family.samples}


def test_counters_of_two_workers_of_a_source_add_up() -> None:
    merged = merge([status("x", COUNTER.format(2)), status("y", COUNTER.format(3))])
    assert samples(merged) == {("received_total", 'a"b\\c'): 5}
    assert merged[0].documentation == "Messages."


def test_histograms_add_up_bucket_by_bucket() -> None:
    assert samples(merge([status("x", HISTOGRAM), status("y", HISTOGRAM)])) == {
        ("latency_seconds_bucket", "0.1"): 2,
        ("latency_seconds_bucket", "+Inf"): 4,
        ("latency_seconds_count",): 4,
        ("latency_seconds_sum",): 1,
    }


def test_gauges_are_never_added() -> None:
    merged = merge(
        [status("x", GAUGE.format("x", 1)), status("y", GAUGE.format("y", 0)), status("z", GAUGE.format("y", 1))]
    )
    assert samples(merged) == {("up", "x"): 1, ("up", "y"): 1}


def test_a_dead_component_keeps_its_counters_and_loses_its_gauges() -> None:
    dead = status("x", COUNTER.format(2) + GAUGE.format("x", 1), State.DOWN)
    assert samples(merge([dead])) == {("received_total", 'a"b\\c'): 2}


def test_not_a_number_stays_one() -> None:
    (sample,) = merge([status("x", GAUGE.format("x", "NaN"))])[0].samples
    assert math.isnan(sample.value)


def test_the_merged_text_is_the_text_of_a_single_process() -> None:
    board = StatusBoard(["x"])
    text = COUNTER.format(2.0) + GAUGE.format("x", 1.0) + HISTOGRAM
    board.put(status("x", text))
    registry = CollectorRegistry()
    registry.register(Merged(board))
    assert open_metrics(registry).decode() == text + "# EOF\n"
    assert [family.name for family in parse_open_metrics(open_metrics(registry).decode())] == [
        "received",
        "up",
        "latency_seconds",
    ]


def test_parts_of_one_process_that_count_alike_are_one_family_each() -> None:
    """A sink that awaits replies is a source of them too."""
    registry = CollectorRegistry()
    sink = SinkMetrics(registry, "jms", "sink:jms")
    replies = SourceMetrics(registry, "jms.replies", "source:jms.replies")
    other = SourceMetrics(registry, "jms.replies", "source:jms.replies/2")
    sink.connection(up=True)
    replies.received(2)
    other.received(3)
    merged = samples(merge([Status("sink:jms", State.READY, metrics=text_of(registry))]))
    assert merged["jmsbridge_connection_up", "sink:jms"] == 1
    assert merged["jmsbridge_connection_up", "source:jms.replies"] == 0
    assert merged["jmsbridge_source_received_messages_total", "jms.replies"] == 5
