"""What waits: in the journal for the router, in topics for sinks. The running bridge knows it, or Kafka says it."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, KafkaException, TopicPartition

from engine.connectors.group import sink_group
from engine.errors import UnreachableError
from engine.kafka import QUIET, librdkafka
from engine.telemetry.metrics import LAG_RECORDS, LAG_SECONDS, SINK_LAG
from engine.telemetry.report import read

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.spark.positions import KafkaOffsets
    from routes.model import Config

__all__ = ["Waiting", "from_bridge", "from_kafka"]

_ROUTER = "router"
_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Waiting:
    """Records that wait for a part of the bridge."""

    component: str
    place: str
    """A topic, or a partition of the journal."""
    records: int
    oldest_seconds: float | None = None
    """Age of the oldest of all partitions; None where it is not known."""


def from_bridge(config: Config) -> Sequence[Waiting]:
    """As the running bridge has it.

    Raises:
        UnreachableError: none answers.
        HardFailureError: it does not take the login.
    """
    reading = read(config.http)
    oldest = reading.total(LAG_SECONDS)
    journal = sorted(reading.by(LAG_RECORDS, "partition").items())
    found = [
        Waiting(_ROUTER, f"{config.journal.topic}:{partition}", int(records), oldest) for partition, records in journal
    ]
    topics = {f"sink:{sink.name}": sink.topic for sink in config.sinks}
    for component, records in sorted(reading.by(SINK_LAG, "component").items()):
        found.append(Waiting(component, topics.get(component.partition("/")[0], ""), int(records)))
    return found


def from_kafka(config: Config) -> Sequence[Waiting]:
    """As Kafka has it: behind what the router has noted there, and what the sinks have committed.

    Raises:
        UnreachableError: Kafka does not answer.
        HardFailureError: it refuses the bridge.
    """
    # Imported here: with them comes Spark, which nobody needs who asks a bridge.
    from engine.spark.positions import KafkaOffsets, KafkaUnavailableError

    kafka = KafkaOffsets(librdkafka(config, "admin"))
    try:
        return [*_journal(config, kafka), *_sinks(config, kafka)]
    except (KafkaUnavailableError, KafkaException) as error:
        msg = f"Kafka at {config.bootstrap_servers} does not answer: {error}; is it running?"
        raise UnreachableError(msg) from error


def _journal(config: Config, kafka: KafkaOffsets) -> Sequence[Waiting]:
    from engine.spark.notebook import Notebook

    topic = config.journal.topic
    entry = Notebook(config).read()
    routed = entry.place.positions if entry else {}
    ends = kafka.ends([topic], committed=True).get(topic, {})
    starts = kafka.starts([topic]).get(topic, {})
    return [
        Waiting(_ROUTER, f"{topic}:{partition}", max(end - max(routed.get(partition, 0), starts.get(partition, 0)), 0))
        for partition, end in sorted(ends.items())
    ]


def _sinks(config: Config, kafka: KafkaOffsets) -> Sequence[Waiting]:
    topics = [sink.topic for sink in config.sinks]
    ends, starts = kafka.ends(topics, committed=True), kafka.starts(topics)
    found = []
    for sink in config.sinks:
        committed = _committed(config, sink_group(config, sink.name), sink.topic, list(ends.get(sink.topic, {})))
        waiting = (
            end - max(committed.get(partition, 0), starts[sink.topic][partition])
            for partition, end in ends.get(sink.topic, {}).items()
        )
        found.append(Waiting(f"sink:{sink.name}", sink.topic, sum(max(records, 0) for records in waiting)))
    return found


def _committed(config: Config, group: str, topic: str, partitions: Sequence[int]) -> Mapping[int, int]:
    settings: dict[str, Any] = {**librdkafka(config, "consumer"), "group.id": group, **QUIET}
    with closing(Consumer(settings)) as consumer:
        places = consumer.committed([TopicPartition(topic, partition) for partition in partitions], timeout=_SECONDS)
    return {place.partition: place.offset for place in places if place.offset >= 0}
