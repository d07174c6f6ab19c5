"""Topics and positions of topologies in Kafka: looked up, created, checked and deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import NewTopic

from engine.errors import HardFailureError
from engine.kafka.cluster import Cluster, is_missing, problems_of_access, refused
from engine.kafka.errors import MISSING, UnusableTopicError
from engine.kafka.offsets import TopicFacts

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping, Sequence
    from concurrent.futures import Future

    from engine.kafka.clients import KafkaClients
    from routes.model import JournalConfig

__all__ = ["delete_topology_topics", "ensure_topology_topics", "topology_inputs"]

_SECONDS = 30.0
_HEADERS_BYTES = 1 << 20
"""Bytes by which a record of a topology may exceed the journal's limit."""


def topology_inputs(clients: KafkaClients, name: str, topics: Sequence[str]) -> dict[str, TopicFacts]:
    """Facts about each topic that the topology `name` reads.

    Raises:
        UnusableTopicError: topics are missing, or Kafka does not let this user see them.
        UnreachableError: no broker answers in time.
    """
    descriptions = Cluster(clients, _SECONDS).describe(topics, patiently=True)
    missing = [f"'{topic}'" for topic, description in descriptions.items() if is_missing(description)]
    if missing:
        msg = f"topology '{name}' reads {', '.join(missing)}, which Kafka does not have: create it, or correct the name"
        raise UnusableTopicError(msg)
    facts = {}
    for topic, description in descriptions.items():
        if isinstance(description, KafkaError):
            msg = f"topology '{name}': Kafka refuses its topic '{topic}': {description.str()}"
            raise UnusableTopicError(msg)
        facts[topic] = TopicFacts.of(description)
    return facts


def ensure_topology_topics(
    clients: KafkaClients,
    journal: JournalConfig,
    name: str,
    internal: Mapping[str, int],
    compacted: Mapping[str, int],
    dead_letters: str,
    outputs: Sequence[str],
) -> dict[str, TopicFacts]:
    """Creates the internal, the compacted and the dead-letter topics of a topology, and checks all that it writes to.

    Returns facts about the internal topics.

    Args:
        clients: the Kafka with the topics.
        journal: the settings of the journal, which these topics share.
        name: the name of the topology.
        internal: number of partitions of each internal topic.
        compacted: number of partitions of each topic that has to be compacted.
        dead_letters: the dead-letter topic.
        outputs: topics that the topology always writes to, and that others create.

    Raises:
        HardFailureError: Kafka refuses, an internal topic has another number of partitions, or one that has to be
            compacted is not.
        UnusableTopicError: an output is missing, or the bridge may not write to it; the text has a line for each.
        UnreachableError: no broker answers in time.
    """
    size = {"max.message.bytes": str(journal.max_message_bytes + _HEADERS_BYTES)}
    common = {"message.timestamp.type": "CreateTime", **size}
    # What is in an internal topic is needed until the topology has read it, however long that takes.
    settings = {"cleanup.policy": "delete", "retention.ms": "-1", **common}
    replication = journal.replication
    new = [NewTopic(topic, count, replication, config=settings) for topic, count in internal.items()]
    kept = {"retention.ms": str(journal.retention_ms), **common}
    new.append(NewTopic(dead_letters, 1, replication, config=kept))
    latest = {"cleanup.policy": "compact", **common}
    new += [NewTopic(topic, count, replication, config=latest) for topic, count in compacted.items()]
    cluster = Cluster(clients, _SECONDS)
    descriptions = cluster.ensure(new, {each.topic: f"topology '{name}'" for each in new})
    described = cluster.describe(outputs, patiently=True)
    for topic, settings_now in cluster.settings(compacted).items():
        policy = settings_now.get("cleanup.policy", "compact")
        if "compact" not in policy:
            msg = f"topology '{name}' publishes a table to '{topic}', whose cleanup.policy is {policy}"
            raise HardFailureError(f"{msg}: set it to compact, or name another topic in changelog()")
    facts = {}
    for topic, count in internal.items():
        description = descriptions[topic]
        if isinstance(description, KafkaError):
            msg = f"topology '{name}': Kafka refuses its internal topic '{topic}': {description.str()}"
            raise HardFailureError(msg)
        facts[topic] = TopicFacts.of(description)
        if (actual := facts[topic].partitions) != count:
            msg = f"the internal topic '{topic}' has {actual} partitions and the topology needs {count}"
            raise HardFailureError(f"{msg}: jms-bridge topology reset {name}")
    user = f"topology '{name}' writes it"
    problems = [
        problem for topic in outputs for problem in problems_of_access(topic, user, described[topic], ("WRITE",))
    ]
    if problems:
        raise UnusableTopicError(str(refused(clients.servers, problems)))
    return facts


def delete_topology_topics(clients: KafkaClients, name: str, topics: Sequence[str]) -> Iterator[str]:
    """Deletes internal topics of a topology, and its positions; gives the name of each as it is gone.

    Topics and positions that are gone already are passed over.

    Raises:
        HardFailureError: Kafka refuses to delete something.
        UnreachableError: no broker answers in time.
    """
    Cluster(clients, _SECONDS)
    client = clients.admin()
    try:
        for topic, deleted in client.delete_topics(list(topics), operation_timeout=_SECONDS).items() if topics else ():
            if _is_removed(deleted, MISSING):
                yield f"internal topic {topic}"
        for group, removed in client.delete_consumer_groups([name]).items():
            if _is_removed(removed, {KafkaError.GROUP_ID_NOT_FOUND}):
                yield f"positions of the group {group}"
    except KafkaException as error:
        msg = f"Kafka at {clients.servers} refuses to reset topology '{name}': {error.args[0].str()}"
        raise HardFailureError(msg) from error


def _is_removed(removed: Future[None], missing: Container[int]) -> bool:
    """True if a topic or a group existed and is gone; KafkaException if Kafka refuses.

    `missing` are the codes of errors that say that it did not exist.
    """
    try:
        removed.result(_SECONDS)
    except KafkaException as error:
        if error.args[0].code() in missing:
            return False
        raise
    return True
