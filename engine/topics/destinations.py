"""Checks of the topics that the router writes, their size limits, and the creation of missing ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from confluent_kafka.admin import AclOperation, NewTopic

from engine.topics.cluster import PROPAGATION_SECONDS, Cluster
from engine.topics.journal import GROWTH_BYTES, letter_user
from engine.topics.problems import is_missing, problems_of_access, refused
from routes.targets import TOPIC

if TYPE_CHECKING:
    from routes.model import Config

__all__ = ["check_topics", "create_missing", "limits", "new_topics", "read", "written"]


def create_missing(config: Config, timeout_seconds: float = 30.0) -> list[str]:
    """Creates the missing topics of `new_topics`, and returns their names.

    These are destinations, the dead-letter topic, and topics that Kafka sources read. Of a source's regular expressions
    only those count that are the name of one topic.

    Raises:
        HardFailureError: Kafka refuses to create some.
        UnreachableError: no broker answers in time.
    """
    new = new_topics(config)
    if not new:
        return []
    cluster, users = Cluster(config, timeout_seconds), read(config) | written(config)
    missing = [topic for topic, found in cluster.describe(users).items() if is_missing(found)]
    cluster.create([new[topic] for topic in missing], users)
    return missing


def new_topics(config: Config) -> dict[str, NewTopic]:
    """Topics that the bridge creates if they are missing, by name; empty unless the configuration asks for it.

    It asks with `routing.create-topics=true`, or with `auto` on the embedded Kafka. The topics get the journal's
    partitions and replication, and room for each message that the journal takes.
    """
    wanted = config.routing.create_topics
    if not (config.embedded_kafka if wanted is None else wanted):
        return {}
    journal = config.journal
    settings = {"max.message.bytes": str(journal.max_message_bytes + GROWTH_BYTES)}
    names = read(config) | written(config)
    return {name: NewTopic(name, journal.partitions, journal.replication, config=settings) for name in names}


def check_topics(config: Config, timeout_seconds: float = 30.0) -> None:
    """Checks that every destination and the dead-letter topic exist, and that the bridge may write them.

    Raises:
        HardFailureError: a check failed; the text has a line for each topic.
        UnreachableError: no broker answers in time.
    """
    users = written(config)
    described = Cluster(config, timeout_seconds).describe(users, PROPAGATION_SECONDS)
    problems = [
        problem
        for topic, found in described.items()
        for problem in problems_of_access(topic, users[topic], found, (AclOperation.WRITE,))
    ]
    if problems:
        raise refused(config.bootstrap_servers, problems)


def limits(config: Config, timeout_seconds: float = 30.0) -> dict[str, int]:
    """The `max.message.bytes` of each destination and the dead-letter topic.

    A topic whose settings the bridge may not read (DESCRIBE_CONFIGS) is left out: only the broker knows its limit.
    """
    cluster, users = Cluster(config, timeout_seconds), written(config)
    cluster.describe(users, PROPAGATION_SECONDS)  # A new topic has no settings until brokers know it.
    settings = cluster.settings(users)
    return {topic: int(values["max.message.bytes"]) for topic, values in settings.items()}


def read(config: Config) -> dict[str, str]:
    """Every topic that a Kafka source names in full, with that source."""
    sources = (source for source in config.sources if source.type.own_cluster)
    return {t: f"source '{source.name}'" for source in sources for t in source.destinations if TOPIC.fullmatch(t)}


def written(config: Config) -> dict[str, str]:
    """Every topic that the router writes, those of sinks and dead letters included, with the routes that need it."""
    routes: dict[str, list[str]] = {}
    for route in config.routes:
        for topic in route.target.topics:
            routes.setdefault(topic, []).append(f"'{route.name}'")
    users = {topic: f"route{'s' if len(names) > 1 else ''} {', '.join(names)}" for topic, names in routes.items()}
    if config.router_dead_letters:
        users[config.letter_topic] = letter_user(config)
    return users
