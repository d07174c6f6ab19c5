"""Positions of a source in the topics of another Kafka cluster, kept in a compacted topic beside the journal.

Each transaction that writes records to the journal writes here how far their partitions are read. A partition of this
topic is a *share*: the workers of a source divide the shares among each other as members of a consumer group, and whose
share it is reads the partitions of the other cluster that belong to it.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from engine.kafka.newest_values import NewestValues
from engine.message import Record
from routes.immutable import immutable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from engine.kafka.clients import KafkaClients
    from engine.kafka.offsets import Place

__all__ = ["KeptPosition", "SourcePositions"]


@immutable
class KeptPosition:
    """Position in a partition of another cluster."""

    offset: int
    """Offset behind the last record that the journal has; -1: it has none."""
    topic_id: str
    """Kafka's id of the topic then; empty from brokers without ids."""

    def is_of(self, topic_id: str) -> bool:
        """Returns False if a topic of that id is another one, created under the name of the former."""
        return not self.topic_id or not topic_id or self.topic_id == topic_id


class SourcePositions:
    """Positions of one source. Its methods raise as those of `NewestValues`."""

    def __init__(self, kafka: KafkaClients, topic: str, owner: str) -> None:
        """Sets up the positions without connecting.

        Args:
            kafka: maker of clients of the cluster with the journal.
            topic: topic of positions.
            owner: text that the bridge's source has alone; the keys of its positions begin with it.
        """
        self._values = NewestValues(kafka, topic)
        self._owner = owner
        self._found: Mapping[str, str] = {}
        self._shares = 0

    @property
    def shares(self) -> range:
        """All shares; known after `ask`."""
        return range(self._shares)

    def ask(self) -> None:
        """Asks Kafka for the number of shares."""
        self._shares = self._values.partitions()

    def share_of(self, place: Place) -> int:
        """Returns the share that a partition of the other cluster belongs to: those of one topic follow each other."""
        topic, partition = place
        return (zlib.crc32(topic.encode()) + partition) % self._shares

    def read(self, shares: Iterable[int], *, settled: bool = True) -> None:
        """Reads the positions of shares; `settled` as for `NewestValues.read`."""
        self._found = self._values.read(shares, settled=settled)

    def of(self, place: Place) -> KeptPosition:
        """Returns the position in a partition of the other cluster, as it was read last."""
        offset, _, topic_id = self._found.get(self._key(place), "").partition(" ")
        return KeptPosition(int(offset), topic_id) if offset.isdecimal() else KeptPosition(-1, "")

    def record(self, place: Place, position: KeptPosition) -> Record:
        """Returns the record that keeps a position."""
        return Record(self._key(place).encode(), f"{position.offset} {position.topic_id}".encode(), ())

    def _key(self, place: Place) -> str:
        topic, partition = place
        return f"{self._owner}/{topic}/{partition}"
