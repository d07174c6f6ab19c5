"""Topics that accompany a dead-letter topic: the audit, and the quarantine of messages that were replayed too often."""

from __future__ import annotations

from typing import TYPE_CHECKING

from confluent_kafka import KafkaError
from confluent_kafka.admin import NewTopic

from engine.topics.cluster import Cluster
from engine.topics.problems import is_missing, problem_of_error, refused
from routes.targets import audit_topic, quarantine_topic

if TYPE_CHECKING:
    from routes.model import Config

__all__ = ["ensure_audit_topic", "ensure_quarantine_topic", "exists", "identity"]

_AUDIT_USERS = "the audit of dead letters"
_QUARANTINE_USERS = "the quarantine of dead letters"
_KEPT = ("retention.ms", "retention.bytes", "max.message.bytes")
"""Settings copied from the dead-letter topic, so that the quarantine can hold its messages, and for as long."""


def exists(config: Config, topic: str, timeout_seconds: float = 30.0) -> bool:
    """True if the topic exists; UnreachableError if no broker answers in time."""
    return not is_missing(Cluster(config, timeout_seconds).describe([topic])[topic])


def identity(config: Config, topic: str, timeout_seconds: float = 30.0) -> str:
    """Kafka's id of a topic, which changes if the topic is deleted and created again; empty from brokers without ids.

    Raises:
        HardFailureError: the topic does not exist, or Kafka does not let this user see it.
        UnreachableError: no broker answers in time.
    """
    found = Cluster(config, timeout_seconds).describe([topic])[topic]
    if isinstance(found, KafkaError):
        raise refused(config.bootstrap_servers, [problem_of_error(topic, "dead letters", found)])
    return "" if found.topic_id is None else str(found.topic_id)


def ensure_audit_topic(config: Config, dead_letters: str, timeout_seconds: float = 30.0) -> None:
    """Creates the audit topic of a dead-letter topic if it is missing.

    Raises:
        HardFailureError: Kafka refuses to create it.
        UnreachableError: no broker answers in time.
    """
    cluster, topic = Cluster(config, timeout_seconds), audit_topic(dead_letters)
    if is_missing(cluster.describe([topic])[topic]):
        new = NewTopic(topic, 1, config.journal.replication, config={"cleanup.policy": "compact"})
        cluster.create([new], {topic: _AUDIT_USERS})


def ensure_quarantine_topic(config: Config, dead_letters: str, timeout_seconds: float = 30.0) -> None:
    """Creates the quarantine topic of a dead-letter topic if it is missing. Raises as `ensure_audit_topic`."""
    cluster, topic = Cluster(config, timeout_seconds), quarantine_topic(dead_letters)
    if is_missing(cluster.describe([topic])[topic]):
        like = cluster.settings([dead_letters]).get(dead_letters, {})
        settings = {name: like[name] for name in _KEPT if name in like}
        cluster.create([NewTopic(topic, 1, config.journal.replication, config=settings)], {topic: _QUARANTINE_USERS})
