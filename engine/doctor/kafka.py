"""Checks Kafka and the topics in it, as a start of the bridge would find them.

Makes no topic, reads and writes no record.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from engine.doctor.checks import Finding, failed, of_error, ok, warning
from engine.errors import HardFailureError
from engine.kafka.clients import KafkaClients
from engine.kafka.cluster import Cluster
from engine.kafka.topics import BridgeTopics, audit_problems
from engine.printable import listed
from engine.telemetry.http_section import HttpConfig
from routes.errors import BridgeError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from engine.connectors.endpoint import SystemEndpoint
    from engine.kafka.cluster import Problem
    from engine.kafka.topics import Survey
    from routes.model import Config, SourceConfig

__all__ = ["REMEDY", "audit_findings", "check_kafka", "check_kafka_source", "forgotten", "topic_findings"]

REMEDY = "start it, or correct kafka.bootstrap.servers"
_FOR_EVER_MS = (2**31 - 1) * 60_000


def check_kafka(config: Config, timeout_seconds: float) -> Iterator[Finding]:
    """Checks that Kafka answers, takes the login, and has the topics that are needed."""
    try:
        cluster = Cluster(KafkaClients(config.kafka_access), timeout_seconds)
        number, identity = cluster.brokers()
    except BridgeError as error:
        yield of_error("kafka", error, REMEDY)
        return
    brokers = f"{number} broker{'s' * (number != 1)}"
    yield ok("kafka", f"{brokers} at {config.bootstrap_servers}" + (f", cluster {identity}" if identity else ""))
    try:
        yield from topic_findings(BridgeTopics(config).survey(cluster))
        retention_ms = config.section(HttpConfig).looks_retention_ms
        yield from audit_findings(audit_problems(cluster, config.journal, config.letter_topic, retention_ms))
        if config.sinks and (kept_ms := cluster.offsets_kept_ms()) is not None:
            yield from forgotten(kept_ms, config.journal.retention_ms)
    except BridgeError as error:
        # The given address answers; an address that Kafka advertises may not.
        yield of_error("topics", error, "do the advertised.listeners of the brokers lead here?")


def topic_findings(found: Survey) -> Iterator[Finding]:
    """Yields one finding for all topics that are well, and one for each problem."""
    for problem in found.problems:
        users = f"{problem.topic} ({problem.users})"
        yield failed(f"topic {problem.topic}", f"{users} {problem.what}", problem.remedy, HardFailureError)
    parts = []
    if found.there:
        parts.append(f"{listed(found.there)} can be used")
    if found.to_make:
        parts.append(f"the bridge makes {listed(found.to_make)} when it starts")
    if parts:
        yield ok("topics", "; ".join(parts))


def audit_findings(problems: Iterable[Problem]) -> Iterator[Finding]:
    """Yields a warning for each audit that could not be written: the bridge refuses actions that it cannot record."""
    for problem in problems:
        what = f"{problem.topic} {problem.what}; the bridge refuses actions that it cannot record there"
        yield warning(problem.users, what, problem.remedy)


def forgotten(kept_ms: int, retention_ms: int) -> Iterator[Finding]:
    """Yields a warning if Kafka forgets a sink's offsets before it forgets the sink's messages.

    Args:
        kept_ms: time for which Kafka keeps the offsets of groups without members.
        retention_ms: retention of the topics of sinks; -1 is for ever.
    """
    if kept_ms < _FOR_EVER_MS and not 0 <= retention_ms <= kept_ms:
        days = kept_ms / 86_400_000
        what = (
            f"Kafka forgets the position of a sink that is stopped for {days:.3g} days before it removes its messages"
        )
        remedy = (
            "raise offsets.retention.minutes of the brokers, or lower journal.retention, or the sink sends all again"
        )
        yield warning("offsets", what, remedy)


def check_kafka_source(endpoint: SystemEndpoint[SourceConfig], name: str, timeout_seconds: float) -> Iterator[Finding]:
    """Checks that there is a topic to read for a source of type `kafka`."""
    source = endpoint.settings
    topics = Cluster(endpoint.kafka, timeout_seconds).names()
    patterns = [re.compile(pattern) for pattern in source.destinations]
    found = sorted(
        topic
        for topic in topics
        if topic not in endpoint.own_topics and topic[:2] != "__" and any(each.fullmatch(topic) for each in patterns)
    )
    if found:
        yield ok(name, f"reads {listed(found)}")
    else:
        remedy = f"create one, let the bridge's user see it, or correct source.{source.name}.destinations"
        yield warning(name, "Kafka has no topic yet that the source would read", remedy)
