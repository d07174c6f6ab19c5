"""The bridge's state topic: compacted to the latest note of each router; the bridge that holds its one partition leads.

The consumer group that assigns the partition is in `engine.supervision.election`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from confluent_kafka import KafkaError
from confluent_kafka.admin import AclOperation, NewTopic

from engine.journal import FRAMING_BYTES
from engine.topics.cluster import PROPAGATION_SECONDS, Cluster
from engine.topics.problems import Problem, is_missing, problems_of_access, refused

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from confluent_kafka.admin import TopicDescription

    from routes.model import Config

__all__ = ["STATE_USERS", "ensure_state_topic", "new_state_topic", "state_problems"]

STATE_USERS = "journal.state-topic"
"""User of the state topic, for the text of errors: the key that names it."""
_ROLL_MS = 600_000
"""Age in milliseconds at which a segment is closed. Only closed segments are compacted, so this bounds what a start
reads."""


def ensure_state_topic(config: Config, timeout_seconds: float = 30.0) -> None:
    """Creates the state topic, or checks the existing one.

    Raises:
        HardFailureError: the topic cannot be created, read or written, or would lose the bridge's notes.
        UnreachableError: no broker answers in time.
    """
    cluster, topic = Cluster(config, timeout_seconds), config.journal.state_topic
    found = cluster.describe([topic])[topic]
    if is_missing(found):
        cluster.create([new_state_topic(config)], {topic: STATE_USERS})
        found = cluster.describe([topic], PROPAGATION_SECONDS)[topic]
    actual = {} if isinstance(found, KafkaError) else cluster.settings([topic]).get(topic, {})
    if problems := state_problems(config, found, actual):
        raise refused(config.bootstrap_servers, problems)


def state_problems(config: Config, found: TopicDescription | KafkaError, actual: Mapping[str, str]) -> list[Problem]:
    """Problems with an existing state topic; `actual` holds those of its settings that the bridge may read."""
    topic = config.journal.state_topic
    problems = problems_of_access(topic, STATE_USERS, found, (AclOperation.READ, AclOperation.WRITE))
    return problems if isinstance(found, KafkaError) else [*problems, *_unfit(topic, found, actual)]


def new_state_topic(config: Config) -> NewTopic:
    """The state topic as the bridge creates it."""
    settings = {
        "cleanup.policy": "compact",
        "segment.ms": str(_ROLL_MS),
        "min.cleanable.dirty.ratio": "0.1",
        "max.message.bytes": str(config.journal.max_message_bytes + FRAMING_BYTES),
    }
    return NewTopic(config.journal.state_topic, 1, config.journal.replication, config=settings)


def _unfit(topic: str, found: TopicDescription, actual: Mapping[str, str]) -> Iterator[Problem]:
    """Problems with a topic in which two bridges could lead, or that would lose notes."""
    another = "or name another journal.state-topic"
    if (count := len(found.partitions)) != 1:
        what = f"has {count} partitions, and who has its one partition leads"
        yield Problem(topic, STATE_USERS, what, f"delete it, {another}")
    if "delete" in actual.get("cleanup.policy", "compact"):
        remedy = f"set its cleanup.policy to compact, {another}"
        yield Problem(topic, STATE_USERS, "loses what is old, and the router's place with it", remedy)
