"""Creation and checks of the journal topic, and creation of the topics that have its settings.

These are the topics of sinks, and the dead-letter topic if the configuration names none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog
from confluent_kafka import KafkaError
from confluent_kafka.admin import AclOperation, NewTopic

from engine.journal import FRAMING_BYTES
from engine.topics.cluster import PROPAGATION_SECONDS, Cluster
from engine.topics.problems import Problem, is_missing, problems_of_access, refused

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from confluent_kafka.admin import TopicDescription

    from routes.model import Config

__all__ = [
    "GROWTH_BYTES",
    "JOURNAL_USERS",
    "ensure_journal",
    "ensure_sink_topics",
    "journal_problems",
    "letter_user",
    "new_journal",
    "new_letter_topic",
    "new_sink_topics",
]

GROWTH_BYTES = 64 * 1024
"""Bytes by which a published record may exceed the journal record; a dead letter has headers about its failure."""

JOURNAL_USERS = "the journal"
"""User of the journal topic, for the text of errors."""
_log = structlog.get_logger(__name__)


def letter_user(config: Config) -> str:
    """User of the dead-letter topic, for the text of errors: the key that names it, where one does."""
    return "routing.dead-letter-topic" if config.routing.dead_letter_topic else "dead letters"


def ensure_journal(config: Config, timeout_seconds: float = 30.0) -> int:
    """Creates the journal topic as configured, or checks the existing one; returns its number of partitions.

    Also creates the dead-letter topic if it is missing and the configuration names none.

    An existing journal keeps its partitions and retention; a difference from the configuration is logged.

    Raises:
        HardFailureError: the journal cannot be created, read or written, or cannot hold the bridge's messages.
        UnreachableError: no broker answers in time.
    """
    cluster = Cluster(config, timeout_seconds)
    journal, topic = config.journal, config.journal.topic
    new = {topic: new_journal(config), **new_letter_topic(config)}
    described = cluster.describe(new)
    if missing := [name for name, each in described.items() if is_missing(each)]:
        cluster.create(
            [new[name] for name in missing], {topic: JOURNAL_USERS, config.letter_topic: letter_user(config)}
        )
    found = described[topic]
    if is_missing(found):
        found = cluster.describe([topic], PROPAGATION_SECONDS)[topic]
    actual = {} if isinstance(found, KafkaError) else cluster.settings([topic]).get(topic, {})
    problems = journal_problems(config, found, actual)
    if isinstance(found, KafkaError) or problems:
        raise refused(config.bootstrap_servers, problems)
    partitions = len(found.partitions)
    _log_difference(topic, "journal.partitions", str(journal.partitions), str(partitions))
    _log_difference(topic, "journal.retention", str(journal.retention_ms), actual.get("retention.ms"))
    return partitions


def ensure_sink_topics(config: Config, timeout_seconds: float = 30.0) -> None:
    """Creates the missing topics between the router and its sinks, with the journal's settings.

    Raises:
        HardFailureError: Kafka refuses to create some.
        UnreachableError: no broker answers in time.
    """
    users = {sink.topic: f"sink '{sink.name}'" for sink in config.sinks}
    if not users:
        return
    cluster, new = Cluster(config, timeout_seconds), new_sink_topics(config)
    cluster.create([new[topic] for topic, found in cluster.describe(users).items() if is_missing(found)], users)


def new_journal(config: Config) -> NewTopic:
    """The journal topic as the bridge creates it."""
    return _new(config.journal.topic, config, _largest(config))


def new_letter_topic(config: Config) -> dict[str, NewTopic]:
    """The bridge's own dead-letter topic, by its name; empty if the configuration names one."""
    if config.routing.dead_letter_topic is not None:
        return {}
    return {config.letter_topic: _new(config.letter_topic, config, _largest(config) + GROWTH_BYTES)}


def new_sink_topics(config: Config) -> dict[str, NewTopic]:
    """The topics between the router and its sinks as the bridge creates them, by name."""
    return {sink.topic: _new(sink.topic, config, _largest(config) + GROWTH_BYTES) for sink in config.sinks}


def journal_problems(config: Config, found: TopicDescription | KafkaError, actual: Mapping[str, str]) -> list[Problem]:
    """Problems with an existing journal; `actual` holds those of its settings that the bridge may read."""
    topic = config.journal.topic
    problems = problems_of_access(topic, JOURNAL_USERS, found, (AclOperation.READ, AclOperation.WRITE))
    return [*problems, *_unfit(config, actual)]


def _new(topic: str, config: Config, max_message_bytes: int) -> NewTopic:
    settings = {
        "cleanup.policy": "delete",
        # The timestamp that the source gave the record, from which latency is measured.
        "message.timestamp.type": "CreateTime",
        "retention.ms": str(config.journal.retention_ms),
        "max.message.bytes": str(max_message_bytes),
    }
    return NewTopic(topic, config.journal.partitions, config.journal.replication, config=settings)


def _largest(config: Config) -> int:
    return config.journal.max_message_bytes + FRAMING_BYTES


def _unfit(config: Config, actual: Mapping[str, str]) -> Iterator[Problem]:
    """Problems with settings of the journal that would lose or refuse messages."""
    if "compact" in actual.get("cleanup.policy", ""):
        remedy = "set its cleanup.policy to delete, or name another journal.topic"
        yield Problem(config.journal.topic, JOURNAL_USERS, "is compacted, which drops messages", remedy)
    limit, largest = int(actual.get("max.message.bytes", _largest(config))), _largest(config)
    if limit < largest:
        what = f"takes {limit} bytes, and the bridge may write {largest}"
        remedy = f"set its max.message.bytes to {largest}, or lower journal.max-message-bytes"
        yield Problem(config.journal.topic, JOURNAL_USERS, what, remedy)


def _log_difference(topic: str, key: str, configured: str, actual: str | None) -> None:
    if actual is not None and actual != configured:
        _log.warning("the existing journal is not as configured", topic=topic, key=key, want=configured, have=actual)
