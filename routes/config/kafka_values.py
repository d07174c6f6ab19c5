"""Values that both of Kafka's clients accept for a setting, the Java client and librdkafka.

Bounds are the narrower ones of `ProducerConfig` and `ConsumerConfig` in kafka-clients 3.9 and of librdkafka's
CONFIGURATION.md; a test asks librdkafka itself. A setting that is not here is text of any kind.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["CHOICES", "NOT_LESS", "WHOLE"]

_INT = 2**31 - 1
_LONG = 10**18 - 1
"""The largest number that `whole` reads; Java's limit is a little higher."""

WHOLE: Mapping[str, tuple[int, int]] = {
    "batch.size": (1, _INT),
    "buffer.memory": (1, _LONG),
    "compression.gzip.level": (-1, 9),
    "compression.lz4.level": (1, 17),
    "compression.zstd.level": (-131072, 22),
    "connections.max.idle.ms": (0, _INT),
    "default.api.timeout.ms": (0, _INT),
    "delivery.timeout.ms": (0, _INT),
    "fetch.max.bytes": (1_000_000, 2_147_483_135),
    "fetch.max.wait.ms": (0, 300_000),
    "fetch.min.bytes": (1, 100_000_000),
    "heartbeat.interval.ms": (1, 3_600_000),
    # librdkafka: less than the time that it gives a message to be delivered.
    "linger.ms": (0, 299_999),
    "max.block.ms": (0, _LONG),
    # More would let a retry change the order, which an idempotent producer never does.
    "max.in.flight.requests.per.connection": (1, 5),
    "max.partition.fetch.bytes": (1, 1_000_000_000),
    "max.poll.interval.ms": (1, 86_400_000),
    "max.poll.records": (1, _INT),
    "metadata.max.age.ms": (0, 3_600_000),
    "metadata.max.idle.ms": (5000, _LONG),
    "metrics.num.samples": (1, _INT),
    "metrics.sample.window.ms": (0, _LONG),
    "partitioner.availability.timeout.ms": (0, _LONG),
    "receive.buffer.bytes": (-1, 100_000_000),
    "reconnect.backoff.max.ms": (0, 3_600_000),
    "reconnect.backoff.ms": (0, 3_600_000),
    "request.timeout.ms": (10, 300_000),
    "retries": (1, _INT),
    "retry.backoff.max.ms": (1, 300_000),
    "retry.backoff.ms": (1, 300_000),
    "sasl.login.connect.timeout.ms": (0, _INT),
    "sasl.login.read.timeout.ms": (0, _INT),
    "sasl.login.retry.backoff.max.ms": (0, _LONG),
    "sasl.login.retry.backoff.ms": (0, _LONG),
    "send.buffer.bytes": (-1, 100_000_000),
    "session.timeout.ms": (1, 3_600_000),
    "socket.connection.setup.timeout.max.ms": (0, _LONG),
    "socket.connection.setup.timeout.ms": (1000, _INT),
    "transaction.timeout.ms": (1000, _INT),
}
"""Settings that are whole numbers: the lowest and the highest value."""

CHOICES: Mapping[str, tuple[str, ...]] = {
    "client.dns.lookup": ("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"),
    "compression.type": ("none", "gzip", "snappy", "lz4", "zstd"),
    "metadata.recovery.strategy": ("none", "rebootstrap"),
    "metrics.recording.level": ("INFO", "DEBUG", "TRACE"),
    **dict.fromkeys(
        (
            "auto.include.jmx.reporter",
            "check.crcs",
            "enable.metrics.push",
            "exclude.internal.topics",
            "partitioner.adaptive.partitioning.enable",
            "partitioner.ignore.keys",
        ),
        ("true", "false"),
    ),
}
"""Settings that take one of a few words."""

NOT_LESS: tuple[tuple[str, int | None, Mapping[str, int]], ...] = (
    ("reconnect.backoff.max.ms", 10_000, {"reconnect.backoff.ms": 100}),
    ("max.poll.interval.ms", 300_000, {"session.timeout.ms": 45_000}),
    ("delivery.timeout.ms", None, {"linger.ms": 0, "request.timeout.ms": 30_000}),
)
"""Settings that may not be less than the sum of others, each with its value when not set; None: it follows the
others."""
