"""Records that a topology sets aside: each goes to its dead letters unprocessed, with the reason `skipped`.

They are noted in the folder of its state. The topology meets each at its place among the others, so that its dead
letter and the position behind it are written in one transaction, and a second run over the same records repeats the
first.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.errors import SetupError, UsageError
from engine.kafka.clients import KafkaClients
from engine.kafka.offsets import KafkaOffsets
from engine.kafka.reader import KafkaTopicReader, LocatedRecord, Position
from engine.spark import session
from engine.spark.checkpoint_lock import CheckpointLock
from engine.topologies.runtime.kept import KeptState, state_folder
from engine.topologies.runtime.state_reader import committed_positions
from engine.topologies.section import TopologiesConfig

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.spark.stored_files import Folder
    from routes.model import Config

__all__ = ["Skip", "open_skip"]


@dataclass(frozen=True, slots=True)
class Skip:
    """Record that is to be set aside."""

    record: LocatedRecord
    is_noted: bool
    """True if it is set aside already."""
    _folder: Folder

    def run(self) -> None:
        """Notes it for the next run of the topology."""
        KeptState.skip(self._folder, str(self.record.position))


@contextmanager
def open_skip(config: Config, name: str, text: str) -> Iterator[Skip]:
    """Finds a record that a topology is to set aside, and locks the topology's state meanwhile.

    Args:
        config: the configuration, for Kafka, the data folder and Spark's settings.
        name: the name given to `StreamsBuilder`.
        text: the record's position, as `topic:partition:offset`.

    Raises:
        UsageError: the text is not a position, the topology does not read the topic, or Kafka has no such record.
        SetupError: the topology runs, has no state, or has processed the record.
        UnreachableError: Kafka does not answer.
    """
    position = Position.parse(text, "")
    if not position.topic:
        msg = f"{text!r} names no topic: expected TOPIC:PARTITION:OFFSET"
        raise UsageError(msg)
    with session.opened(config, 1) as spark:
        folder = state_folder(config.section(TopologiesConfig).state, spark, name)
        kept = KeptState.existing(folder)
        if position.topic not in kept.partitions:
            msg = f"topology '{name}' does not read {position.topic}; it reads {', '.join(sorted(kept.partitions))}"
            raise UsageError(msg)
        lock = CheckpointLock(spark, config.embedded.data, folder, 0.0)
        try:
            clients = KafkaClients(config.kafka_access)
            _check_ahead(clients, name, folder, position)
            with KafkaTopicReader(clients, position.topic) as reader:
                record = reader.at(position.partition, position.offset)
            yield Skip(record, str(position) in KeptState.skipped(folder), folder)
        finally:
            lock.release()


def _check_ahead(clients: KafkaClients, name: str, folder: Folder, position: Position) -> None:
    """Raises SetupError for a record that the topology has processed."""
    topic, partition = position.topic, position.partition
    published = KafkaOffsets(clients).committed(name, topic, [partition]).get(partition, 0)
    processed = max(published, committed_positions(folder).get(topic, {}).get(str(partition), 0))
    if processed > position.offset:
        msg = f"topology '{name}' has processed {position}: it goes on at {topic}:{partition}:{processed}"
        raise SetupError(msg)
