"""Settings of the Kafka clients that a topology reads and writes with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.kafka.settings import java_settings

if TYPE_CHECKING:
    from routes.kafka_access import KafkaAccess

__all__ = ["consumer_settings", "producer_settings"]

_TRANSACTION_MS = 600_000


def consumer_settings(access: KafkaAccess, *, is_batch: bool) -> dict[str, str]:
    """The settings of a share's consumer, as Kafka's Java client has them."""
    configured = java_settings(access, "consumer")
    fixed = {"enable.auto.commit": "false", "auto.offset.reset": "none"}
    # Kafka's client waits for one answer at a time: one that a quiet topic delays holds up the records of the others.
    # Batches read only what is there.
    speed = {"max.poll.records": "500", "fetch.max.wait.ms": "100"}
    if is_batch:
        speed = {"max.poll.records": "2000", "fetch.max.wait.ms": "10", "max.partition.fetch.bytes": str(4 << 20)}
    return {**speed, **configured, **fixed}


def producer_settings(access: KafkaAccess, *, is_batch: bool, is_exact: bool, waits: bool) -> dict[str, str]:
    """The settings of a share's producer; `waits` if shares wait for one another."""
    configured = java_settings(access, "producer")
    # Shares that wait for one another do so until their records are sent.
    linger_ms = 0 if not is_batch else 5 if waits else 20
    speed = {"linger.ms": str(linger_ms), "batch.size": str(256 * 1024)}
    return {**speed, **configured, **({"transaction.timeout.ms": str(_TRANSACTION_MS)} if is_exact else {})}
