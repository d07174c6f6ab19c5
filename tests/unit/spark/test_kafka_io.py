"""For how long the router's producers try to get a record to Kafka."""

from __future__ import annotations

import pytest

from engine.spark.kafka_io import delivery_timeout_ms
from routes.config import loads

CONFIGURATION = "bridge.id=b\nroutes.r.in.include=TRUE\nroutes.r.out.topic=x\nrouter.outage-timeout={}\n"


@pytest.mark.parametrize(
    ("outage", "options", "wanted"),
    [
        ("5m", {"kafka.linger.ms": "0"}, 360_000),
        # What Kafka asks for: at least the time of one request and what a record waits for others.
        ("30s", {"kafka.linger.ms": "0", "kafka.request.timeout.ms": "120000"}, 120_000),
        ("30s", {"kafka.linger.ms": "200000"}, 230_000),
    ],
)
def test_they_try_for_longer_than_kafka_may_be_away(outage: str, options: dict[str, str], wanted: int) -> None:
    assert delivery_timeout_ms(loads(CONFIGURATION.format(outage)), options) == wanted
