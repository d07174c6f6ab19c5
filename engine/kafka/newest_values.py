"""Reader of a compacted topic, of which the newest record of each key counts."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from engine.errors import HardFailureError
from engine.kafka.errors import unavailable
from engine.kafka.offsets import KafkaOffsets
from engine.kafka.reader import KafkaTopicReader

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from engine.kafka.clients import KafkaClients

__all__ = ["NewestValues"]

_SETTLED_SECONDS = 30.0
"""Time for the end of transactions that are open; Kafka ends one of a dead client sooner."""
_PAUSE_SECONDS = 0.1


class NewestValues:
    """Values by key of a compacted topic of texts; it reads no record twice.

    Its methods raise `HardFailureError` if the topic does not exist, or Kafka refuses access to it, and
    `KafkaUnavailableError` if Kafka does not answer.
    """

    def __init__(self, clients: KafkaClients, topic: str) -> None:
        """Sets up the reader without connecting."""
        self._clients = clients
        self._topic = topic
        self._offsets: KafkaOffsets | None = None
        self._read: dict[int, int] = {}
        """Offset behind the last record read, by partition."""
        self._values: dict[str, str] = {}

    def partitions(self) -> int:
        """Asks Kafka for the number of partitions."""
        return len(self._ends())

    def read(self, partitions: Iterable[int], *, settled: bool = True) -> Mapping[str, str]:
        """Returns the committed values by key.

        Those of the partitions given are up to date; if `settled`, also with regard to transactions that are open now:
        it waits for their end. Others may be missing or old.
        """
        ends = self._ends()
        wanted = {each: ends[each] for each in partitions if ends.get(each, 0) > self._read.get(each, 0)}
        if settled:
            self._settle(wanted)
        if wanted:
            starts = {each: self._read.get(each, 0) for each in wanted}
            with KafkaTopicReader(self._clients, self._topic) as reader:
                for located in reader.read(starts, wanted):
                    key, value = located.record.key or b"", located.record.value or b""
                    self._values[key.decode("utf-8", "replace")] = value.decode("utf-8", "replace")
                    self._read[located.position.partition] = located.position.offset + 1
        return self._values

    def _settle(self, ends: Mapping[int, int]) -> None:
        """Waits until all transactions have ended that have records before `ends`."""
        deadline = time.monotonic() + _SETTLED_SECONDS
        while ends:
            settled = self._ends(committed=True)
            if all(settled.get(each, 0) >= end for each, end in ends.items()):
                return
            if time.monotonic() > deadline:
                raise unavailable(self._clients.servers, f"a transaction in topic '{self._topic}' does not end")
            time.sleep(_PAUSE_SECONDS)

    def _ends(self, *, committed: bool = False) -> Mapping[int, int]:
        self._offsets = self._offsets or KafkaOffsets(self._clients)
        ends = self._offsets.ends([self._topic], committed=committed).get(self._topic)
        if ends is None:
            raise HardFailureError(f"Kafka at {self._clients.servers} has no topic '{self._topic}'; create it")
        return ends
