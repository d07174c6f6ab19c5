"""Settings for members of Kafka consumer groups: sinks, which read their topics, and the Kafka source."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaError

from engine.kafka import QUIET

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from routes.model import Config

__all__ = ["HEARTBEAT_MS", "REFUSED", "SESSION_MS", "member", "sink_group"]

SESSION_MS = 6_000
"""Shortest session timeout that brokers allow by default: the partitions of a killed member stay unread for this
long."""
HEARTBEAT_MS = 1_500
_FETCHED_KIB = 16 * 1024
REFUSED: Mapping[int, str] = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "not authorised to read it; grant READ on the topic",
    KafkaError.GROUP_AUTHORIZATION_FAILED: "not authorised to read in this group; grant READ on the group",
    KafkaError._AUTHENTICATION: "the login is refused; check kafka.sasl.*",
}
"""Kafka errors that no retry can overcome, each with its remedy."""


def sink_group(config: Config, sink: str) -> str:
    """Name of the consumer group of a sink's workers."""
    return f"{config.bridge_id}.sink.{sink}"


def member(group: str, on_error: Callable[[KafkaError], None], session_ms: int = SESSION_MS) -> dict[str, Any]:
    """Consumer settings of a group member, in addition to those of `engine.kafka.librdkafka`.

    Offsets are not stored automatically: the member itself commits the records that it has dealt with.
    """
    return {
        "group.id": group,
        "enable.auto.offset.store": False,
        "session.timeout.ms": session_ms,
        "heartbeat.interval.ms": HEARTBEAT_MS,
        "queued.max.messages.kbytes": _FETCHED_KIB,
        # Pause before the next fetch when the queue is full; the default of a second would leave a gap.
        "fetch.queue.backoff.ms": 20,
        # Limits the delay of a record that follows a pause.
        "fetch.wait.max.ms": 100,
        "error_cb": on_error,
        **QUIET,
    }
