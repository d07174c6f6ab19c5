"""Writes the reference page of the metrics: `python -m engine.telemetry.reference > docs/metrics.md`."""

from __future__ import annotations

from engine.telemetry.metrics import LATENCY_BUCKETS_SECONDS, METRICS

__all__ = ["reference"]


def reference() -> str:
    """The metrics table as Markdown: the content of `docs/metrics.md`."""
    rows = [f"| `{m.name}` | {m.kind} | {', '.join(f'`{x}`' for x in m.labels)} | {m.help} |" for m in METRICS]
    bounds = ", ".join(f"{bound:g}" for bound in LATENCY_BUCKETS_SECONDS)
    return _REFERENCE.format(rows="\n".join(rows), bounds=bounds)


_REFERENCE = """\
# Metrics

Generated from `engine/telemetry/metrics.py` (`make docs`); a test keeps it current.

`/metrics` on `http.address` serves the figures of all processes of the bridge, at most a few seconds old, in
Prometheus' text format or in OpenMetrics. Counters start at 0 with their process: use `rate()` and `increase()`, which
allow for that. Components are `supervisor`, `router`, `source:NAME` (`source:NAME/2` for its second worker),
`sink:NAME`, and the embedded `kafka`, `artemis` and `nats`. Replies that a sink receives count under the
source `NAME.replies`.

| Metric | Type | Labels | Meaning |
|---|---|---|---|
{rows}

The buckets of the latency histogram end at these seconds:
{bounds}, +Inf.
In OpenMetrics a bucket has an exemplar, a message of the last ten minutes with that latency:
`{{journal="PARTITION:OFFSET"}}`. `jms-bridge explain --journal PARTITION:OFFSET` shows that message. Prometheus stores
exemplars if it is started with `--enable-feature=exemplar-storage`.

The leader counts dead letters about every second; the figures are absent until all were read once.

A router that runs on another machine than the sources (`run --only`) serves its own figures there.

## Coming from Confluent's JMS Bridge

Its MBean `stream-jms-bridge-metrics[jms-bridge-id=router]` has three attributes:

- `routing-latency-avg`: `jmsbridge_routing_latency_average_seconds`, of the last minute. Since the start it is
  `jmsbridge_routing_latency_seconds_sum / jmsbridge_routing_latency_seconds_count`.
- `routing-success-rate`, a number since the start: `sum(jmsbridge_routed_messages_total)`. A rate is
  `sum(rate(jmsbridge_routed_messages_total[1m]))`.
- `routing-failure-rate`, a number since the start: `sum(jmsbridge_failed_messages_total)`. A rate is
  `sum(rate(jmsbridge_failed_messages_total[1m]))`.
"""

if __name__ == "__main__":
    print(reference(), end="")
