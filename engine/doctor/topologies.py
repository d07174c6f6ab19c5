"""Checks of the topologies of a configuration: their definitions, and whether Kafka has their topics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.doctor.checks import Finding, failed, ok, warning
from engine.kafka.cluster import Cluster, is_missing, problems_of_access
from engine.printable import listed
from engine.topologies.runtime.check import check_planned, fault_of
from engine.topologies.runtime.topics import topics_of
from routes.errors import BridgeError, ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from engine.kafka.clients import KafkaClients
    from engine.topologies.runtime.topics import TopologyTopics
    from engine.topologies.section import TopologiesConfig
    from routes.config.snapshot import Snapshot

__all__ = ["check_definitions", "check_topologies"]


def check_definitions(topologies: TopologiesConfig, snapshot: Snapshot) -> Iterator[Finding]:
    """Checks that each topology can be built and planned, in a process of its own that starts Spark."""
    for each in check_planned(topologies, snapshot):
        name = f"topologies.{each.name}.build"
        if not each.fault and not each.unplanned:
            yield ok(name, "the topology can be built and planned")
            continue
        fault = fault_of(each, snapshot.path)
        if each.fault:
            yield failed(name, each.fault, fault.hint, ConfigurationError)
        else:
            yield warning(name, fault.message, fault.hint)


def check_topologies(
    topologies: TopologiesConfig, clients: KafkaClients, data: Path, timeout_seconds: float
) -> Iterator[Finding]:
    """Checks that the topics exist which each topology reads and always writes to, if it can be built.

    What a topology lacks ends no bridge: the topology alone waits for it. So all findings are warnings.

    Args:
        topologies: the topologies.
        clients: the Kafka with the topics.
        data: the folder of the bridge's own files.
        timeout_seconds: time for Kafka's answers about one topology.
    """
    for each in topologies:
        name = f"topology {each.name}"
        try:
            topics = topics_of(data, each)
        except BridgeError:
            # `check_definitions` says why.
            continue
        if topics is None:
            what = "its topics are not known before it has run once: its function makes Columns, which need Spark"
            yield warning(name, what, f"write them as text, or try it: jms-bridge topology run {each.build}")
        else:
            yield from _lacking(clients, name, topics, timeout_seconds)


def _lacking(clients: KafkaClients, name: str, topics: TopologyTopics, timeout_seconds: float) -> Iterator[Finding]:
    wanted = list(dict.fromkeys((*topics.read, *topics.written)))
    described = Cluster(clients, timeout_seconds).describe(wanted)
    missing, closed = [], []
    for topic in wanted:
        verb, right = ("reads", "READ") if topic in topics.read else ("writes", "WRITE")
        if is_missing(described[topic]):
            missing.append(f"it {verb} topic '{topic}', which does not exist")
        else:
            closed += problems_of_access(topic, name, described[topic], (right,))
    if missing:
        yield warning(name, "; ".join(missing), "create each: the topology waits for it")
    for problem in closed:
        yield warning(name, f"topic '{problem.topic}' {problem.what}", problem.remedy)
    if not missing and not closed:
        yield ok(name, f"its topics are there: {listed(wanted)}")
