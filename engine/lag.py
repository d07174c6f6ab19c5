"""Lag of the bridge: records in the journal that wait for the router, and records in sink topics that wait for sinks.

The figures come from the running bridge (`from_bridge`) or, without one, from Kafka (`from_kafka`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.kafka.clients import KafkaClients, sink_group
from engine.kafka.offsets import KafkaOffsets
from engine.telemetry.metrics import LAG_RECORDS, LAG_SECONDS, SINK_LAG
from engine.telemetry.report import read

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from engine.router.position_store import PositionStore
    from engine.telemetry.http_section import HttpConfig
    from routes.model import Config, SinkConfig

__all__ = ["LagReport", "from_bridge", "from_kafka"]

_ROUTER = "router"
_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class LagReport:
    """Number of records in one topic or partition that wait for one part of the bridge."""

    component: str
    place: str
    """Topic of a sink, or `topic:partition` of the journal."""
    records: int
    oldest_seconds: float | None = None
    """Age in seconds of the oldest waiting record of all partitions; None if it is unknown."""


def from_bridge(http: HttpConfig, journal_topic: str, sinks: Iterable[SinkConfig]) -> Sequence[LagReport]:
    """Reads the lag from the metrics of the running bridge.

    Raises:
        UnreachableError: no bridge answers.
        HardFailureError: the bridge refuses the login.
    """
    reading = read(http)
    oldest = reading.total(LAG_SECONDS)
    journal = sorted(reading.by(LAG_RECORDS, "partition").items())
    reports = [
        LagReport(_ROUTER, f"{journal_topic}:{partition}", int(records), oldest) for partition, records in journal
    ]
    topics = {f"sink:{sink.name}": sink.topic for sink in sinks}
    for component, records in sorted(reading.by(SINK_LAG, "component").items()):
        reports.append(LagReport(component, topics.get(component.partition("/")[0], ""), int(records)))
    return reports


def from_kafka(config: Config) -> Sequence[LagReport]:
    """Computes the lag from Kafka: the router's position in the state topic and the committed offsets of the sinks.

    Raises:
        UnreachableError: Kafka does not answer.
        HardFailureError: Kafka refuses the bridge.
    """
    # Imported here, since it imports Spark, which `from_bridge` does not need.
    from engine.router.position_store import PositionStore

    clients = KafkaClients(config.kafka_access)
    kafka = KafkaOffsets(clients)
    store = PositionStore(clients, config.bridge_id, config.journal)
    return [*_journal(config.journal.topic, store, kafka), *_sinks(config.bridge_id, config.sinks, kafka)]


def _journal(topic: str, store: PositionStore, kafka: KafkaOffsets) -> Sequence[LagReport]:
    entry = store.read()
    routed = entry.progress.positions if entry else {}
    ends = kafka.ends([topic], committed=True).get(topic, {})
    starts = kafka.starts([topic]).get(topic, {})
    return [
        LagReport(
            _ROUTER, f"{topic}:{partition}", max(end - max(routed.get(partition, 0), starts.get(partition, 0)), 0)
        )
        for partition, end in sorted(ends.items())
    ]


def _sinks(bridge_id: str, sinks: Sequence[SinkConfig], kafka: KafkaOffsets) -> Sequence[LagReport]:
    topics = [sink.topic for sink in sinks]
    ends, starts = kafka.ends(topics, committed=True), kafka.starts(topics)
    reports = []
    for sink in sinks:
        committed = kafka.committed(sink_group(bridge_id, sink.name), sink.topic, ends.get(sink.topic, {}))
        waiting = (
            end - max(committed.get(partition, 0), starts.get(sink.topic, {}).get(partition, 0))
            for partition, end in ends.get(sink.topic, {}).items()
        )
        reports.append(LagReport(f"sink:{sink.name}", sink.topic, sum(max(records, 0) for records in waiting)))
    return reports
