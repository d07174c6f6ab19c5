"""Settings of the router's producers: how long they try to get a record to Kafka, and how large their batches are."""

from __future__ import annotations

from typing import cast

import pytest
from pyspark.sql import SparkSession

from engine.router.kafka_io import KafkaIO, batch_bytes, delivery_timeout_ms
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
    assert delivery_timeout_ms(loads(CONFIGURATION.format(outage)).router.outage_timeout_seconds, options) == wanted


@pytest.mark.parametrize(
    ("partitions", "wanted"),
    [(0, 256 << 10), (20, 256 << 10), (64, 256 << 10), (800, 20971), (100_000, 16 << 10)],
)
def test_batches_of_all_partitions_fit_into_the_buffer_twice(partitions: int, wanted: int) -> None:
    assert batch_bytes(32 << 20, partitions) == wanted


@pytest.mark.parametrize(
    ("lines", "limit", "wanted"),
    [
        ("", None, "20971"),
        ("kafka.producer.buffer.memory=67108864\n", None, "41943"),
        ("kafka.producer.batch.size=100000\n", None, "100000"),
        # No larger than the smallest `max.message.bytes`, whoever has set the size.
        ("", 6000, "6000"),
        ("kafka.producer.batch.size=100000\n", 6000, "6000"),
    ],
)
def test_the_size_of_batches_follows_settings_and_limits(lines: str, limit: int | None, wanted: str) -> None:
    kafka_io = KafkaIO(cast(SparkSession, None), loads(CONFIGURATION.format("5m") + lines))
    assert kafka_io._sink(limit, 800)["kafka.batch.size"] == wanted
