"""A member of a Kafka consumer group, as sinks read their topics and the Kafka source reads those of others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaError

from engine.kafka import QUIET

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from routes.model import Config

__all__ = ["HEARTBEAT_MS", "REFUSED", "SESSION_MS", "member", "sink_group"]

SESSION_MS = 6_000
"""The shortest that brokers allow by default: for so long a killed member's partitions wait for the next one."""
HEARTBEAT_MS = 1_500
_FETCHED_KIB = 16 * 1024
REFUSED: Mapping[int, str] = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "not authorised to read it; grant READ on the topic",
    KafkaError.GROUP_AUTHORIZATION_FAILED: "not authorised to read in this group; grant READ on the group",
    KafkaError._AUTHENTICATION: "the login is refused; check kafka.sasl.*",
}
"""What no other try can change, and what to do about it."""


def sink_group(config: Config, sink: str) -> str:
    """The group of the workers of a sink."""
    return f"{config.bridge_id}.sink.{sink}"


def member(group: str, on_error: Callable[[KafkaError], None], session_ms: int = SESSION_MS) -> dict[str, Any]:
    """The consumer's settings beside those of `engine.kafka.librdkafka`; what is dealt with, the member says itself."""
    return {
        "group.id": group,
        "enable.auto.offset.store": False,
        "session.timeout.ms": session_ms,
        "heartbeat.interval.ms": HEARTBEAT_MS,
        "queued.max.messages.kbytes": _FETCHED_KIB,
        # How long it does not ask again when it has read that much ahead; the default, a second, leaves a pause.
        "fetch.queue.backoff.ms": 20,
        # A record is on its way at once, also after a pause.
        "fetch.wait.max.ms": 100,
        "error_cb": on_error,
        **QUIET,
    }
