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

from engine.kafka.clients import KafkaClients
from engine.kafka.cluster import (
    Cluster,
    Problem,
    is_missing,
    problem_of_error,
    problems_of_access,
    refused,
)
from engine.kafka.journal import FRAMING_BYTES
from routes.targets import (
    KAFKAS_OWN,
    TOPIC,
    actions_topic,
    audit_topic,
    looks_topic,
    position_topic,
    quarantine_topic,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from confluent_kafka.admin import TopicDescription

    from routes.model import Config, JournalConfig, Route, SourceConfig, Target

__all__ = [
    "ACTIONS",
    "LOOKS",
    "BridgeTopics",
    "Survey",
    "audit_problems",
    "ensure_audit_topic",
    "ensure_looks_topic",
    "ensure_quarantine_topic",
    "ensure_sink_positions",
    "exists",
    "identity",
]

_GROWTH_BYTES = 64 * 1024
"""Bytes by which a published record may exceed the journal record; a dead letter has headers about its failure."""

_SECONDS = 30.0
"""Time of a request unless a caller gives another."""
_JOURNAL_USERS = "the journal"
"""User of the journal topic, for the text of errors."""
_STATE_USERS = "journal.state-topic"
"""User of the state topic, for the text of errors: the key that names it."""
_AUDIT_USERS = "the audit of dead letters"
"""User of the audit topic of the dead letters, for the text of errors."""
LOOKS, ACTIONS = "the audit of looks", "the audit of actions"
"""Users of the topics of the status page's audits, for the text of errors."""
_POSITION_USERS = "the sources of other clusters"
"""Users of the topic of positions, for the text of errors."""
_POSITION_PARTITIONS = 16
"""Partitions of the topic of positions, and so the largest number of workers of a source that have work."""
_ROLL_MS = 600_000
"""Age in milliseconds at which a segment is closed. Only closed segments are compacted, so this bounds what a start
reads."""
_COMPACTED = {"cleanup.policy": "compact", "segment.ms": str(_ROLL_MS), "min.cleanable.dirty.ratio": "0.1"}
"""Settings of a topic of which the last record of each key counts."""
_KEPT = ("retention.ms", "retention.bytes", "max.message.bytes")
"""Settings copied from the dead-letter topic, so that the quarantine can hold its messages, and for as long."""
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Survey:
    """State of all topics that a configuration names."""

    there: tuple[str, ...]
    """Topics that exist and have no problem."""
    to_make: tuple[str, ...]
    """Topics that are missing and that the bridge creates when it starts."""
    problems: tuple[Problem, ...]
    """Problems with which the bridge would not start, or not work."""


class BridgeTopics:
    """The topics of one bridge, as its configuration names them.

    Every method that connects raises UnreachableError if no broker answers in time.
    """

    def __init__(self, config: Config) -> None:
        self._clients = KafkaClients(config.kafka_access)
        self._journal = config.journal
        self._routes = config.routes
        self._own = config.own_topics
        self._sinks = {sink.topic: f"sink '{sink.name}'" for sink in config.sinks}
        self._letters = config.letter_topic
        self._makes_letters = config.routing.dead_letter_topic is None
        has_others = any(not source.in_own_cluster for source in config.sources if source.type.own_cluster)
        self._position_users = {position_topic(self._journal.topic): _POSITION_USERS} if has_others else {}
        self._letter_users = {self._letters: "dead letters" if self._makes_letters else "routing.dead-letter-topic"}
        self._read = _read(config.sources)
        self._written = _written(config.routes) | (self._letter_users if config.router_dead_letters else {})
        wanted = config.routing.create_topics
        self._creates = config.embedded_kafka if wanted is None else wanted

    def ensure_journal(self, timeout_seconds: float = _SECONDS) -> int:
        """Creates the journal topic as configured, or checks the existing one; returns its number of partitions.

        Also creates the dead-letter topic if it is missing and the configuration names none, and the topic of positions
        if a source needs it.

        An existing journal keeps its partitions and retention; a difference from the configuration is logged.

        Raises:
            HardFailureError: the journal cannot be created, read or written, or cannot hold the bridge's messages.
        """
        cluster = Cluster(self._clients, timeout_seconds)
        journal, topic = self._journal, self._journal.topic
        new = [self._new_journal(), *self._new_letter_topic().values(), *self._new_position_topic().values()]
        users = {topic: _JOURNAL_USERS, **self._letter_users, **self._position_users}
        description = cluster.ensure(new, users)[topic]
        actual = {} if isinstance(description, KafkaError) else cluster.settings([topic]).get(topic, {})
        problems = self._journal_problems(description, actual)
        if isinstance(description, KafkaError) or problems:
            raise refused(self._clients.servers, problems)
        partitions = len(description.partitions)
        _log_difference(topic, "journal.partitions", str(journal.partitions), str(partitions))
        _log_difference(topic, "journal.retention", str(journal.retention_ms), actual.get("retention.ms"))
        return partitions

    def ensure_sink_topics(self, timeout_seconds: float = _SECONDS) -> None:
        """Creates the missing topics between the router and its sinks, with the journal's settings.

        Raises:
            HardFailureError: Kafka refuses to create some.
        """
        if self._sinks:
            Cluster(self._clients, timeout_seconds).ensure([*self._new_sink_topics().values()], self._sinks)

    def ensure_state_topic(self, timeout_seconds: float = _SECONDS) -> None:
        """Creates the state topic, or checks the existing one.

        Raises:
            HardFailureError: the topic cannot be created, read or written, or would lose the bridge's notes.
        """
        cluster, topic = Cluster(self._clients, timeout_seconds), self._journal.state_topic
        description = cluster.ensure([self._new_state_topic()], {topic: _STATE_USERS})[topic]
        actual = {} if isinstance(description, KafkaError) else cluster.settings([topic]).get(topic, {})
        if problems := _state_problems(topic, description, actual):
            raise refused(self._clients.servers, problems)

    def create_missing(self, timeout_seconds: float = _SECONDS) -> list[str]:
        """Creates the missing topics of `_wanted_topics`, and returns their names.

        These are destinations, the dead-letter topic, and topics that Kafka sources read. Of a source's regular
        expressions only those count that are the name of one topic.

        Raises:
            HardFailureError: Kafka refuses to create some.
        """
        new = self._wanted_topics()
        if not new:
            return []
        cluster, users = Cluster(self._clients, timeout_seconds), self._read | self._written
        missing = [topic for topic, found in cluster.describe(users).items() if is_missing(found)]
        cluster.create([new[topic] for topic in missing], users)
        return missing

    def check(self, timeout_seconds: float = _SECONDS) -> None:
        """Checks that every destination and the dead-letter topic exist, and that the bridge may write them.

        Raises:
            HardFailureError: a check failed; the text has a line for each topic.
        """
        if problems := self._write_problems(timeout_seconds):
            raise refused(self._clients.servers, problems)

    def unwritable(self, timeout_seconds: float = _SECONDS) -> dict[str, str]:
        """Returns the destinations that `check` would refuse, each with the reason in one line that names it.

        Raises:
            HardFailureError: the dead-letter topic is one of them.
        """
        problems = self._write_problems(timeout_seconds)
        if letters := [problem for problem in problems if problem.topic == self._letters]:
            raise refused(self._clients.servers, letters)
        return {problem.topic: f"topic '{problem.topic}' {problem.what}" for problem in problems}

    def limits(self, timeout_seconds: float = _SECONDS) -> dict[str, int]:
        """Returns the `max.message.bytes` of each destination and the dead-letter topic.

        A topic whose settings the bridge may not read (DESCRIBE_CONFIGS) is left out: only the broker knows its limit.
        """
        cluster = Cluster(self._clients, timeout_seconds)
        # A new topic has no settings until brokers know it.
        cluster.describe(self._written, patiently=True)
        settings = cluster.settings(self._written)
        return {topic: int(values["max.message.bytes"]) for topic, values in settings.items()}

    def routes(self, timeout_seconds: float = _SECONDS) -> tuple[Route, ...]:
        """Returns the routes with each template of a Kafka topic resolved to the existing topics that match it.

        A message for any other topic fails softly, because a send to a missing topic would end the query. The bridge's
        own topics and Kafka's internal ones are never destinations of a template.
        """
        if all(target.topic for route in self._routes for target in route.targets):
            return self._routes
        there = {
            topic
            for topic in Cluster(self._clients, timeout_seconds).names()
            if topic not in self._own and not topic.startswith(KAFKAS_OWN)
        }
        return tuple(
            replace(route, targets=tuple(_resolved(target, there) for target in route.targets))
            for route in self._routes
        )

    def survey(self, cluster: Cluster) -> Survey:
        """Looks up all topics that the configuration names."""
        users, new = self._users(), self._new_topics()
        described = cluster.describe(users)
        missing = [topic for topic, found in described.items() if is_missing(found) and topic in new]
        refused = cluster.refusals([new[topic] for topic in missing], users)
        kept = [topic for topic in (self._journal.topic, self._journal.state_topic) if topic not in missing]
        settings = cluster.settings(kept)
        unfit = [
            problem
            for topic, found in described.items()
            if topic not in missing
            for problem in self._problems(topic, users[topic], found, settings.get(topic, {}))
        ]
        bad = {problem.topic for problem in (*refused, *unfit)}
        return Survey(
            tuple(topic for topic in described if topic not in missing and topic not in bad),
            tuple(topic for topic in missing if topic not in bad),
            (*unfit, *refused),
        )

    def _new_journal(self) -> NewTopic:
        """The journal topic as the bridge creates it."""
        return _new_topic(self._journal.topic, self._journal, _largest(self._journal))

    def _new_letter_topic(self) -> dict[str, NewTopic]:
        """The bridge's own dead-letter topic, by its name; empty if the configuration names one."""
        return self._new_large_topics([self._letters]) if self._makes_letters else {}

    def _new_sink_topics(self) -> dict[str, NewTopic]:
        """The topics between the router and its sinks as the bridge creates them, by name."""
        return self._new_large_topics(self._sinks)

    def _new_large_topics(self, names: Iterable[str]) -> dict[str, NewTopic]:
        """Topics as the journal, with room for what a routed record has beside a journal record."""
        size = _largest(self._journal) + _GROWTH_BYTES
        return {name: _new_topic(name, self._journal, size) for name in names}

    def _new_state_topic(self) -> NewTopic:
        """The state topic as the bridge creates it."""
        settings = {**_COMPACTED, "max.message.bytes": str(_largest(self._journal))}
        return NewTopic(self._journal.state_topic, 1, self._journal.replication, config=settings)

    def _new_position_topic(self) -> dict[str, NewTopic]:
        """The topic of positions as the bridge creates it, by its name; empty if no source needs it."""
        replication = self._journal.replication
        names = self._position_users
        return {name: NewTopic(name, _POSITION_PARTITIONS, replication, config=dict(_COMPACTED)) for name in names}

    def _wanted_topics(self) -> dict[str, NewTopic]:
        """Topics that the bridge creates if they are missing, by name; empty unless the configuration asks for it.

        It asks with `routing.create-topics=true`, or with `auto` on the embedded Kafka. The topics get the journal's
        partitions and replication, and room for each message that the journal takes.
        """
        if not self._creates:
            return {}
        journal = self._journal
        settings = {"max.message.bytes": str(journal.max_message_bytes + _GROWTH_BYTES)}
        names = self._read | self._written
        return {name: NewTopic(name, journal.partitions, journal.replication, config=settings) for name in names}

    def _new_topics(self) -> dict[str, NewTopic]:
        """Topics that the bridge creates if they are missing, as it creates them."""
        journal_topics = {self._journal.topic: self._new_journal(), self._journal.state_topic: self._new_state_topic()}
        own_topics = self._new_sink_topics() | self._new_letter_topic() | self._new_position_topic()
        return self._wanted_topics() | own_topics | journal_topics

    def _users(self) -> dict[str, str]:
        """Every topic to look at, with the parts of the bridge that need it.

        A topic that a source reads is left out unless the bridge creates it: the source waits for a missing topic.
        """
        journal_users = {self._journal.topic: _JOURNAL_USERS, self._journal.state_topic: _STATE_USERS}
        made = self._read if self._creates else {}
        return made | self._written | self._sinks | journal_users | self._letter_users | self._position_users

    def _problems(
        self, topic: str, users: str, found: TopicDescription | KafkaError, actual: Mapping[str, str]
    ) -> list[Problem]:
        if topic == self._journal.topic:
            return self._journal_problems(found, actual)
        if topic == self._journal.state_topic:
            return _state_problems(topic, found, actual)
        needed = ["WRITE"] if topic in self._written or topic == self._letters else []
        if topic in self._sinks:
            needed.append("READ")
        if topic in self._position_users:
            needed = ["READ", "WRITE"]
        return problems_of_access(topic, users, found, needed)

    def _journal_problems(self, description: TopicDescription | KafkaError, actual: Mapping[str, str]) -> list[Problem]:
        """Problems with an existing journal; `actual` holds those of its settings that the bridge may read."""
        problems = problems_of_access(self._journal.topic, _JOURNAL_USERS, description, ("READ", "WRITE"))
        return [*problems, *_unfit_journal(self._journal, actual)]

    def _write_problems(self, timeout_seconds: float) -> list[Problem]:
        """Problems of the topics that the router writes."""
        cluster = Cluster(self._clients, timeout_seconds)
        described = cluster.describe(self._written, patiently=True)
        return [
            problem
            for topic, found in described.items()
            for problem in problems_of_access(topic, self._written[topic], found, ("WRITE",))
        ]


def exists(clients: KafkaClients, topic: str, timeout_seconds: float = _SECONDS) -> bool:
    """True if the topic exists; UnreachableError if no broker answers in time."""
    return not is_missing(Cluster(clients, timeout_seconds).describe([topic])[topic])


def identity(clients: KafkaClients, topic: str, timeout_seconds: float = _SECONDS) -> str:
    """Kafka's id of a topic, which changes if the topic is deleted and created again; empty from brokers without ids.

    Raises:
        HardFailureError: the topic does not exist, or Kafka does not let this user see it.
        UnreachableError: no broker answers in time.
    """
    description = Cluster(clients, timeout_seconds).describe([topic])[topic]
    if isinstance(description, KafkaError):
        raise refused(clients.servers, [problem_of_error(topic, "dead letters", description)])
    return "" if description.topic_id is None else str(description.topic_id)


def ensure_audit_topic(clients: KafkaClients, dead_letters: str, replication: int) -> None:
    """Creates the audit topic of a dead-letter topic if it is missing; `replication` is -1 for the cluster's default.

    Raises:
        HardFailureError: Kafka refuses to create it.
        UnreachableError: no broker answers in time.
    """
    new = _new_audit_topic(dead_letters, replication)
    Cluster(clients, _SECONDS).ensure([new], {new.topic: _AUDIT_USERS})


def ensure_looks_topic(
    clients: KafkaClients, topic: str, replication: int, retention_ms: int, timeout_seconds: float, user: str
) -> None:
    """Creates the topic of the audit of looks or of actions, `user`, if it is missing.

    As `ensure_audit_topic`; -1 keeps entries for ever.
    """
    new = _new_looks_topic(topic, replication, retention_ms)
    Cluster(clients, timeout_seconds).ensure([new], {new.topic: user})


def ensure_sink_positions(clients: KafkaClients, topic: str, timeout_seconds: float = _SECONDS) -> None:
    """Creates the topic at another cluster in which sinks keep their positions. As `ensure_audit_topic`."""
    Cluster(clients, timeout_seconds).ensure([NewTopic(topic, 1, -1, config=dict(_COMPACTED))], {topic: "positions"})


def audit_problems(
    cluster: Cluster, journal: JournalConfig, dead_letters: str, looks_retention_ms: int
) -> list[Problem]:
    """Problems for which an audit, of dead letters, looks or actions, could not be written; creates no topic.

    Args:
        cluster: the Kafka with the topics.
        journal: the settings of the journal, beside which the audit of looks is.
        dead_letters: the topic of the dead letters.
        looks_retention_ms: milliseconds for which the audit of looks is kept; -1: for ever.

    Raises:
        UnreachableError: no broker answers in time.
    """
    letters = _new_audit_topic(dead_letters, journal.replication)
    looks = _new_looks_topic(looks_topic(journal.topic), journal.replication, looks_retention_ms)
    actions = _new_looks_topic(actions_topic(journal.topic), journal.replication, looks_retention_ms)
    users = {letters.topic: _AUDIT_USERS, looks.topic: LOOKS, actions.topic: ACTIONS}
    described = cluster.describe(users)
    missing = [new for new in (letters, looks, actions) if is_missing(described[new.topic])]
    refusals = cluster.refusals(missing, users)
    there = described.keys() - {new.topic for new in missing}
    return refusals + [
        problem
        for topic in sorted(there)
        for problem in problems_of_access(topic, users[topic], described[topic], ("READ", "WRITE"))
    ]


def ensure_quarantine_topic(clients: KafkaClients, dead_letters: str, replication: int) -> None:
    """Creates the quarantine topic of a dead-letter topic if it is missing. As `ensure_audit_topic`."""
    cluster, topic = Cluster(clients, _SECONDS), quarantine_topic(dead_letters)
    if is_missing(cluster.describe([topic])[topic]):
        like = cluster.settings([dead_letters]).get(dead_letters, {})
        settings = {name: like[name] for name in _KEPT if name in like}
        new = NewTopic(topic, 1, replication, config=settings)
        cluster.create([new], {topic: "the quarantine of dead letters"})


def _new_audit_topic(dead_letters: str, replication: int) -> NewTopic:
    return NewTopic(audit_topic(dead_letters), 1, replication, config={"cleanup.policy": "compact"})


def _new_looks_topic(topic: str, replication: int, retention_ms: int) -> NewTopic:
    return NewTopic(topic, 1, replication, config={"cleanup.policy": "delete", "retention.ms": str(retention_ms)})


def _new_topic(topic: str, journal: JournalConfig, max_message_bytes: int) -> NewTopic:
    """A topic with the settings of the journal, and room for records of that size."""
    settings = {
        "cleanup.policy": "delete",
        # The timestamp that the source gave the record, from which latency is measured.
        "message.timestamp.type": "CreateTime",
        "retention.ms": str(journal.retention_ms),
        "max.message.bytes": str(max_message_bytes),
    }
    return NewTopic(topic, journal.partitions, journal.replication, config=settings)


def _largest(journal: JournalConfig) -> int:
    return journal.max_message_bytes + FRAMING_BYTES


def _unfit_journal(journal: JournalConfig, actual: Mapping[str, str]) -> Iterator[Problem]:
    """Problems with settings of the journal that would lose or refuse messages."""
    if "compact" in actual.get("cleanup.policy", ""):
        remedy = "set its cleanup.policy to delete, or name another journal.topic"
        yield Problem(journal.topic, _JOURNAL_USERS, "is compacted, which drops messages", remedy)
    limit, largest = int(actual.get("max.message.bytes", _largest(journal))), _largest(journal)
    if limit < largest:
        what = f"takes {limit} bytes, and the bridge may write {largest}"
        remedy = f"set its max.message.bytes to {largest}, or lower journal.max-message-bytes"
        yield Problem(journal.topic, _JOURNAL_USERS, what, remedy)


def _log_difference(topic: str, key: str, configured: str, actual: str | None) -> None:
    if actual is not None and actual != configured:
        _log.warning("the existing journal is not as configured", topic=topic, key=key, want=configured, have=actual)


def _state_problems(topic: str, description: TopicDescription | KafkaError, actual: Mapping[str, str]) -> list[Problem]:
    """Problems with an existing state topic; `actual` holds those of its settings that the bridge may read."""
    problems = problems_of_access(topic, _STATE_USERS, description, ("READ", "WRITE"))
    return problems if isinstance(description, KafkaError) else [*problems, *_unfit_state(topic, description, actual)]


def _unfit_state(topic: str, description: TopicDescription, actual: Mapping[str, str]) -> Iterator[Problem]:
    """Problems with a topic in which two bridges could lead, or that would lose notes."""
    another = "or name another journal.state-topic"
    if (count := len(description.partitions)) != 1:
        what = f"has {count} partitions, and the bridge that holds its only partition leads"
        yield Problem(topic, _STATE_USERS, what, f"delete it, {another}")
    if "delete" in actual.get("cleanup.policy", "compact"):
        remedy = f"set its cleanup.policy to compact, {another}"
        yield Problem(topic, _STATE_USERS, "loses old records, and the router's position with them", remedy)


def _read(sources: Iterable[SourceConfig]) -> dict[str, str]:
    """Every topic that a Kafka source names in full, with that source."""
    own_cluster_sources = (source for source in sources if source.in_own_cluster)
    return {
        t: f"source '{source.name}'"
        for source in own_cluster_sources
        for t in source.destinations
        if TOPIC.fullmatch(t)
    }


def _written(routes: Iterable[Route]) -> dict[str, str]:
    """Every topic to which routes send, those of sinks included, with the routes that need it."""
    users: dict[str, list[str]] = {}
    for route in routes:
        for topic in dict.fromkeys(topic for target in route.targets for topic in target.topics):
            users.setdefault(topic, []).append(f"'{route.name}'")
    return {topic: f"route{'s' if len(names) > 1 else ''} {', '.join(names)}" for topic, names in users.items()}


def _resolved(target: Target, there: Collection[str]) -> Target:
    if target.topic:
        return target
    pattern = re.compile(target.address.pattern)
    return replace(target, topics=tuple(sorted(topic for topic in there if pattern.fullmatch(topic))))
