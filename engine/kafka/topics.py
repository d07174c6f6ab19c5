"""Creation and checks of the topics that a configuration needs.

These are the journal, destinations, topics of sinks, the dead-letter topics, and the bridge's own topics. The checks
run before the bridge starts and raise one error that names each unusable topic, its users and the remedy. Errors during
the run are reported by the journal and the router.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import structlog
from confluent_kafka import KafkaError
from confluent_kafka.admin import NewTopic

from engine.kafka.cluster import (
    Cluster,
    Problem,
    is_missing,
    problem_of_error,
    problems_of_access,
    propagation_seconds,
    refused,
)
from engine.kafka.journal import FRAMING_BYTES
from routes.targets import KAFKAS_OWN, TOPIC, audit_topic, quarantine_topic

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from confluent_kafka.admin import TopicDescription

    from routes.model import Config, Route

__all__ = [
    "Survey",
    "check_topics",
    "create_missing",
    "ensure_audit_topic",
    "ensure_journal",
    "ensure_quarantine_topic",
    "ensure_sink_topics",
    "ensure_state_topic",
    "exists",
    "identity",
    "limits",
    "resolved",
    "survey",
    "unwritable",
]

_GROWTH_BYTES = 64 * 1024
"""Bytes by which a published record may exceed the journal record; a dead letter has headers about its failure."""

_JOURNAL_USERS = "the journal"
"""User of the journal topic, for the text of errors."""
_STATE_USERS = "journal.state-topic"
"""User of the state topic, for the text of errors: the key that names it."""
_ROLL_MS = 600_000
"""Age in milliseconds at which a segment is closed. Only closed segments are compacted, so this bounds what a start
reads."""
_KEPT = ("retention.ms", "retention.bytes", "max.message.bytes")
"""Settings copied from the dead-letter topic, so that the quarantine can hold its messages, and for as long."""
_log = structlog.get_logger(__name__)


def _letter_user(config: Config) -> str:
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
    new = [_new_journal(config), *_new_letter_topic(config).values()]
    found = cluster.ensure(new, {topic: _JOURNAL_USERS, config.letter_topic: _letter_user(config)})[topic]
    actual = {} if isinstance(found, KafkaError) else cluster.settings([topic]).get(topic, {})
    problems = _journal_problems(config, found, actual)
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
    if config.sinks:
        users = {sink.topic: f"sink '{sink.name}'" for sink in config.sinks}
        Cluster(config, timeout_seconds).ensure([*_new_sink_topics(config).values()], users)


def _new_journal(config: Config) -> NewTopic:
    """The journal topic as the bridge creates it."""
    return _new_topic(config.journal.topic, config, _largest(config))


def _new_letter_topic(config: Config) -> dict[str, NewTopic]:
    """The bridge's own dead-letter topic, by its name; empty if the configuration names one."""
    if config.routing.dead_letter_topic is not None:
        return {}
    return {config.letter_topic: _new_topic(config.letter_topic, config, _largest(config) + _GROWTH_BYTES)}


def _new_sink_topics(config: Config) -> dict[str, NewTopic]:
    """The topics between the router and its sinks as the bridge creates them, by name."""
    return {sink.topic: _new_topic(sink.topic, config, _largest(config) + _GROWTH_BYTES) for sink in config.sinks}


def _journal_problems(config: Config, found: TopicDescription | KafkaError, actual: Mapping[str, str]) -> list[Problem]:
    """Problems with an existing journal; `actual` holds those of its settings that the bridge may read."""
    topic = config.journal.topic
    problems = problems_of_access(topic, _JOURNAL_USERS, found, ("READ", "WRITE"))
    return [*problems, *_unfit_journal(config, actual)]


def _new_topic(topic: str, config: Config, max_message_bytes: int) -> NewTopic:
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


def _unfit_journal(config: Config, actual: Mapping[str, str]) -> Iterator[Problem]:
    """Problems with settings of the journal that would lose or refuse messages."""
    if "compact" in actual.get("cleanup.policy", ""):
        remedy = "set its cleanup.policy to delete, or name another journal.topic"
        yield Problem(config.journal.topic, _JOURNAL_USERS, "is compacted, which drops messages", remedy)
    limit, largest = int(actual.get("max.message.bytes", _largest(config))), _largest(config)
    if limit < largest:
        what = f"takes {limit} bytes, and the bridge may write {largest}"
        remedy = f"set its max.message.bytes to {largest}, or lower journal.max-message-bytes"
        yield Problem(config.journal.topic, _JOURNAL_USERS, what, remedy)


def _log_difference(topic: str, key: str, configured: str, actual: str | None) -> None:
    if actual is not None and actual != configured:
        _log.warning("the existing journal is not as configured", topic=topic, key=key, want=configured, have=actual)


def ensure_state_topic(config: Config, timeout_seconds: float = 30.0) -> None:
    """Creates the state topic, or checks the existing one.

    Raises:
        HardFailureError: the topic cannot be created, read or written, or would lose the bridge's notes.
        UnreachableError: no broker answers in time.
    """
    cluster, topic = Cluster(config, timeout_seconds), config.journal.state_topic
    found = cluster.ensure([_new_state_topic(config)], {topic: _STATE_USERS})[topic]
    actual = {} if isinstance(found, KafkaError) else cluster.settings([topic]).get(topic, {})
    if problems := _state_problems(config, found, actual):
        raise refused(config.bootstrap_servers, problems)


def _state_problems(config: Config, found: TopicDescription | KafkaError, actual: Mapping[str, str]) -> list[Problem]:
    """Problems with an existing state topic; `actual` holds those of its settings that the bridge may read."""
    topic = config.journal.state_topic
    problems = problems_of_access(topic, _STATE_USERS, found, ("READ", "WRITE"))
    return problems if isinstance(found, KafkaError) else [*problems, *_unfit_state(topic, found, actual)]


def _new_state_topic(config: Config) -> NewTopic:
    """The state topic as the bridge creates it."""
    settings = {
        "cleanup.policy": "compact",
        "segment.ms": str(_ROLL_MS),
        "min.cleanable.dirty.ratio": "0.1",
        "max.message.bytes": str(config.journal.max_message_bytes + FRAMING_BYTES),
    }
    return NewTopic(config.journal.state_topic, 1, config.journal.replication, config=settings)


def _unfit_state(topic: str, found: TopicDescription, actual: Mapping[str, str]) -> Iterator[Problem]:
    """Problems with a topic in which two bridges could lead, or that would lose notes."""
    another = "or name another journal.state-topic"
    if (count := len(found.partitions)) != 1:
        what = f"has {count} partitions, and the bridge that holds its only partition leads"
        yield Problem(topic, _STATE_USERS, what, f"delete it, {another}")
    if "delete" in actual.get("cleanup.policy", "compact"):
        remedy = f"set its cleanup.policy to compact, {another}"
        yield Problem(topic, _STATE_USERS, "loses old records, and the router's position with them", remedy)


def create_missing(config: Config, timeout_seconds: float = 30.0) -> list[str]:
    """Creates the missing topics of `_wanted_topics`, and returns their names.

    These are destinations, the dead-letter topic, and topics that Kafka sources read. Of a source's regular expressions
    only those count that are the name of one topic.

    Raises:
        HardFailureError: Kafka refuses to create some.
        UnreachableError: no broker answers in time.
    """
    new = _wanted_topics(config)
    if not new:
        return []
    cluster, users = Cluster(config, timeout_seconds), _read(config) | _written(config)
    missing = [topic for topic, found in cluster.describe(users).items() if is_missing(found)]
    cluster.create([new[topic] for topic in missing], users)
    return missing


def _wanted_topics(config: Config) -> dict[str, NewTopic]:
    """Topics that the bridge creates if they are missing, by name; empty unless the configuration asks for it.

    It asks with `routing.create-topics=true`, or with `auto` on the embedded Kafka. The topics get the journal's
    partitions and replication, and room for each message that the journal takes.
    """
    wanted = config.routing.create_topics
    if not (config.embedded_kafka if wanted is None else wanted):
        return {}
    journal = config.journal
    settings = {"max.message.bytes": str(journal.max_message_bytes + _GROWTH_BYTES)}
    names = _read(config) | _written(config)
    return {name: NewTopic(name, journal.partitions, journal.replication, config=settings) for name in names}


def check_topics(config: Config, timeout_seconds: float = 30.0) -> None:
    """Checks that every destination and the dead-letter topic exist, and that the bridge may write them.

    Raises:
        HardFailureError: a check failed; the text has a line for each topic.
        UnreachableError: no broker answers in time.
    """
    if problems := _write_problems(config, timeout_seconds):
        raise refused(config.bootstrap_servers, problems)


def unwritable(config: Config, timeout_seconds: float = 30.0) -> dict[str, str]:
    """The destinations that `check_topics` would refuse, each with the reason in one line that names it.

    Raises:
        HardFailureError: the dead-letter topic is one of them.
        UnreachableError: no broker answers in time.
    """
    problems = _write_problems(config, timeout_seconds)
    if letters := [problem for problem in problems if problem.topic == config.letter_topic]:
        raise refused(config.bootstrap_servers, letters)
    return {problem.topic: f"topic '{problem.topic}' {problem.what}" for problem in problems}


def _write_problems(config: Config, timeout_seconds: float) -> list[Problem]:
    """Problems of the topics that the router writes."""
    users = _written(config)
    described = Cluster(config, timeout_seconds).describe(users, propagation_seconds(config))
    return [
        problem
        for topic, found in described.items()
        for problem in problems_of_access(topic, users[topic], found, ("WRITE",))
    ]


def limits(config: Config, timeout_seconds: float = 30.0) -> dict[str, int]:
    """The `max.message.bytes` of each destination and the dead-letter topic.

    A topic whose settings the bridge may not read (DESCRIBE_CONFIGS) is left out: only the broker knows its limit.
    """
    cluster, users = Cluster(config, timeout_seconds), _written(config)
    cluster.describe(users, propagation_seconds(config))  # A new topic has no settings until brokers know it.
    settings = cluster.settings(users)
    return {topic: int(values["max.message.bytes"]) for topic, values in settings.items()}


def _read(config: Config) -> dict[str, str]:
    """Every topic that a Kafka source names in full, with that source."""
    sources = (source for source in config.sources if source.type.own_cluster)
    return {t: f"source '{source.name}'" for source in sources for t in source.destinations if TOPIC.fullmatch(t)}


def _written(config: Config) -> dict[str, str]:
    """Every topic that the router writes, those of sinks and dead letters included, with the routes that need it."""
    routes: dict[str, list[str]] = {}
    for route in config.routes:
        for topic in route.target.topics:
            routes.setdefault(topic, []).append(f"'{route.name}'")
    users = {topic: f"route{'s' if len(names) > 1 else ''} {', '.join(names)}" for topic, names in routes.items()}
    if config.router_dead_letters:
        users[config.letter_topic] = _letter_user(config)
    return users


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
    topic = audit_topic(dead_letters)
    new = NewTopic(topic, 1, config.journal.replication, config={"cleanup.policy": "compact"})
    Cluster(config, timeout_seconds).ensure([new], {topic: "the audit of dead letters"})


def ensure_quarantine_topic(config: Config, dead_letters: str, timeout_seconds: float = 30.0) -> None:
    """Creates the quarantine topic of a dead-letter topic if it is missing. Raises as `ensure_audit_topic`."""
    cluster, topic = Cluster(config, timeout_seconds), quarantine_topic(dead_letters)
    if is_missing(cluster.describe([topic])[topic]):
        like = cluster.settings([dead_letters]).get(dead_letters, {})
        settings = {name: like[name] for name in _KEPT if name in like}
        new = NewTopic(topic, 1, config.journal.replication, config=settings)
        cluster.create([new], {topic: "the quarantine of dead letters"})


@dataclass(frozen=True, slots=True)
class Survey:
    """State of all topics that a configuration names."""

    there: tuple[str, ...]
    """Topics that exist and have no problem."""
    to_make: tuple[str, ...]
    """Topics that are missing and that the bridge creates when it starts."""
    problems: tuple[Problem, ...]
    """Problems with which the bridge would not start, or not work."""


def survey(cluster: Cluster, config: Config) -> Survey:
    """Looks up all topics that the configuration names; UnreachableError if no broker answers in time."""
    users, new = _users(config), _new_topics(config)
    described = cluster.describe(users)
    missing = [topic for topic, found in described.items() if is_missing(found) and topic in new]
    refused = cluster.refusals([new[topic] for topic in missing], users)
    kept = [topic for topic in (config.journal.topic, config.journal.state_topic) if topic not in missing]
    settings = cluster.settings(kept)
    unfit = [
        problem
        for topic, found in described.items()
        if topic not in missing
        for problem in _problems(config, topic, users[topic], found, settings.get(topic, {}))
    ]
    bad = {problem.topic for problem in (*refused, *unfit)}
    return Survey(
        tuple(topic for topic in described if topic not in missing and topic not in bad),
        tuple(topic for topic in missing if topic not in bad),
        (*unfit, *refused),
    )


def _users(config: Config) -> dict[str, str]:
    """Every topic to look at, with the parts of the bridge that need it.

    A topic that a source reads is left out unless the bridge creates it: the source waits for a missing topic.
    """
    own = {config.journal.topic: _JOURNAL_USERS, config.journal.state_topic: _STATE_USERS}
    sinks = {sink.topic: f"sink '{sink.name}'" for sink in config.sinks}
    made = {topic: users for topic, users in _read(config).items() if topic in _wanted_topics(config)}
    return made | _written(config) | sinks | own | {config.letter_topic: _letter_user(config)}


def _new_topics(config: Config) -> dict[str, NewTopic]:
    """Topics that the bridge creates if they are missing, as it creates them."""
    own = {config.journal.topic: _new_journal(config), config.journal.state_topic: _new_state_topic(config)}
    return _wanted_topics(config) | _new_sink_topics(config) | _new_letter_topic(config) | own


def _problems(
    config: Config, topic: str, users: str, found: TopicDescription | KafkaError, actual: Mapping[str, str]
) -> list[Problem]:
    if topic == config.journal.topic:
        return _journal_problems(config, found, actual)
    if topic == config.journal.state_topic:
        return _state_problems(config, found, actual)
    needed = ["WRITE"] if topic in _written(config) or topic == config.letter_topic else []
    if any(topic == sink.topic for sink in config.sinks):
        needed.append("READ")
    return problems_of_access(topic, users, found, needed)


def resolved(config: Config, timeout_seconds: float = 30.0) -> Config:
    """The configuration with each template of a Kafka topic resolved to the existing topics that match it.

    A message for any other topic fails softly, because a send to a missing topic would end the query. The bridge's own
    topics and Kafka's internal ones are never destinations of a template.

    Raises:
        UnreachableError: no broker answers in time.
    """
    if all(route.target.topic for route in config.routes):
        return config
    own = config.own_topics
    there = {
        topic
        for topic in Cluster(config, timeout_seconds).names()
        if topic not in own and not topic.startswith(KAFKAS_OWN)
    }
    return replace(config, routes=tuple(_resolved(route, there) for route in config.routes))


def _resolved(route: Route, there: Collection[str]) -> Route:
    if route.target.topic:
        return route
    pattern = re.compile(route.target.address.pattern)
    found = tuple(sorted(topic for topic in there if pattern.fullmatch(topic)))
    return replace(route, target=replace(route.target, topics=found))
