"""Sink for the topics of another Kafka cluster, which gets each message once.

The position in each partition of the sink's own topic is a record in a compacted topic of the other cluster, written in
the transactions that write the messages. A partition has a transactional id of its own: who gets the partition fences
the worker that had it before, and reads the position once that worker's last transaction has ended.
`partition_writer` has the transactions.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

import structlog

from engine.connectors.base import UNKNOWN_END, NotConnectedError
from engine.connectors.kafka.partition_writer import PartitionWriter
from engine.connectors.kafka.target_topics import TargetTopics
from engine.connectors.position_seals import PositionSeals
from engine.connectors.position_sink import SinkPosition, position_owner
from engine.errors import HardFailureError
from engine.kafka.clients import KafkaClients
from engine.kafka.errors import KafkaUnavailableError
from engine.kafka.newest_values import NewestValues
from engine.kafka.topics import ensure_sink_positions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.connectors.base import Outcome, Outgoing
    from engine.connectors.endpoint import SystemEndpoint
    from engine.connectors.kafka.settings import KafkaSinkConfig

__all__ = ["KafkaSink"]

_ANSWER_SECONDS = 10.0
_REFUSED_SECONDS = 30.0
_MOST_WRITERS = 8
"""Partitions that are written at the same time."""
_log = structlog.get_logger(__name__)


class KafkaSink:
    """Sink of one worker. `outcomes` sends what `send` has taken, so no message waits for a later call."""

    most_under_way = 1_000
    settle_seconds = 0.0
    """None: the next writer of a partition waits for the transaction of the one before."""
    holds_partitions = True
    """See `Exclusive`: a partition that comes back has another position."""

    def __init__(self, endpoint: SystemEndpoint[KafkaSinkConfig], worker: int) -> None:
        """Sets up the sink without connecting; its workers differ by their partitions alone."""
        del worker
        self._endpoint = endpoint
        self._kafka = KafkaClients(endpoint.settings.access(endpoint.access))
        self._seals = PositionSeals(endpoint.position_keys)
        self._values = NewestValues(self._kafka, endpoint.settings.position_topic)
        self._topics = TargetTopics(self._kafka)
        self._writers: dict[int, PartitionWriter] = {}
        """Writers of this connection, by partition."""
        self._ends: dict[int, int] = {}
        """Greatest end known of each partition: no position lies behind it."""
        self._waiting: list[Outgoing] = []
        self._failure: NotConnectedError | None = None
        """Failure of a partition, raised when the outcomes of the others are told."""

    @property
    def address(self) -> str:
        """Servers of the other cluster, such as `kafka://host:port`."""
        return f"kafka://{self._kafka.servers}"

    def connect(self) -> None:
        """Connects, and creates the topic of positions if it is missing.

        Raises:
            NotConnectedError: the cluster does not answer.
            HardFailureError: it refuses the login, or to create the topic.
        """
        self.close()
        self._failure = None
        self._values = NewestValues(self._kafka, self._endpoint.settings.position_topic)
        self._topics = TargetTopics(self._kafka)
        try:
            ensure_sink_positions(self._kafka, self._endpoint.settings.position_topic, _ANSWER_SECONDS)
        except KafkaUnavailableError as error:
            raise NotConnectedError(str(error)) from error

    def send(self, messages: Sequence[Outgoing]) -> None:
        """Takes messages for the next `outcomes`."""
        self._check()
        self._waiting += messages

    def outcomes(self, timeout_seconds: float) -> Sequence[Outcome]:
        """Sends the messages taken, and returns their results."""
        self._check()
        if not self._waiting:
            time.sleep(timeout_seconds)
            return ()
        waiting, self._waiting = self._waiting, []
        shares: dict[int, list[Outgoing]] = {}
        for each in waiting:
            shares.setdefault(each.partition, []).append(each)
            if each.end != UNKNOWN_END:
                self._ends[each.partition] = max(self._ends.get(each.partition, 0), each.end)
        self._open(shares.keys() - self._writers.keys())
        if len(shares) == 1:
            ((partition, messages),) = shares.items()
            return self._writers[partition].write(messages)
        return self._together(shares)

    def close(self) -> None:
        """Ends the connection; open transactions are aborted."""
        for writer in self._writers.values():
            writer.close()
        self._writers.clear()
        self._waiting.clear()

    def _together(self, shares: dict[int, list[Outgoing]]) -> Sequence[Outcome]:
        """Writes several partitions at the same time."""
        outcomes: list[Outcome] = []
        with ThreadPoolExecutor(min(len(shares), _MOST_WRITERS)) as pool:
            written = [pool.submit(self._writers[each].write, messages) for each, messages in shares.items()]
        for each in written:
            try:
                outcomes += each.result()
            except NotConnectedError as error:
                self._failure = error
        if not outcomes:
            self._check()
        return outcomes

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _open(self, partitions: set[int]) -> None:
        """Makes the writers of partitions, and reads their positions.

        Raises:
            NotConnectedError: the cluster does not answer, or refuses transactions or the position.
        """
        if not partitions:
            return
        endpoint = self._endpoint
        own = position_owner(endpoint)
        make = partial(PartitionWriter, self._kafka, endpoint, self._topics)
        made = {each: make(each, SinkPosition(f"{own}/{each}", self._seals)) for each in partitions}
        self._writers |= made
        try:
            for writer in made.values():
                writer.open()
            values = self._values.read(range(self._values.partitions()))
        except KafkaUnavailableError as error:
            raise NotConnectedError(str(error)) from error
        except HardFailureError as error:
            raise NotConnectedError(str(error), _REFUSED_SECONDS) from error
        for partition, writer in made.items():
            self._recall(writer.position, values.get(writer.position.name, ""), self._ends.get(partition, UNKNOWN_END))

    def _recall(self, position: SinkPosition, text: str, end: int) -> None:
        """Takes over a position that was read; others may have written to its topic."""
        if not text:
            return
        try:
            if not self._seals.holds(position.name, text):
                msg = "it has no seal of this bridge"
                raise ValueError(msg)
            position.add(text, end)
        except ValueError as error:
            topic = self._endpoint.settings.position_topic
            _log.warning("a position is left out", to=self.address, topic=topic, key=position.name, why=str(error))
