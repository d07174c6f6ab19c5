"""Depth of the topics of a Kafka source: records behind the positions that the source has committed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.connectors.base import NotConnectedError
from engine.connectors.depth import NotSaidError
from engine.connectors.kafka.other_source import positions_of
from engine.connectors.kafka.source import begins_at_end, group_of, is_wanted
from engine.kafka.clients import KafkaClients
from engine.kafka.errors import KafkaUnavailableError, refusal
from engine.kafka.offsets import ANSWER_SECONDS, KafkaOffsets, committed_positions
from engine.kafka.types import KafkaException, TopicPartition

if TYPE_CHECKING:
    from engine.connectors.endpoint import SystemEndpoint
    from engine.connectors.kafka.settings import KafkaSourceConfig
    from engine.kafka.offsets import Offsets
    from engine.kafka.types import Consumer

__all__ = ["KafkaDepth", "OtherClusterDepth"]


class KafkaDepth:
    """Client that asks for the ends of topics and the committed offsets; the group stays as it is."""

    def __init__(self, endpoint: SystemEndpoint[KafkaSourceConfig]) -> None:
        """Creates the depth without connecting."""
        self._endpoint = endpoint
        self._kafka = KafkaClients(endpoint.settings.access(endpoint.access))
        self._begins_at_end = begins_at_end(endpoint)
        self._consumer: Consumer | None = None
        self._offsets: KafkaOffsets | None = None

    def ask(self) -> int:
        """See `Depth`."""
        self._consumer = self._consumer or self._kafka.consumer(group_of(self._endpoint))
        self._offsets = self._offsets or KafkaOffsets(self._kafka)
        try:
            found = self._consumer.list_topics(timeout=ANSWER_SECONDS).topics
            topics = [name for name in found if is_wanted(self._endpoint, name)]
            starts, ends = self._offsets.starts(topics), self._offsets.ends(topics, committed=True)
            committed = self._committed(self._consumer, {topic: list(each) for topic, each in ends.items()})
        except KafkaException as error:
            source = f"source '{self._endpoint.settings.name}'"
            refused = refusal(error.args[0], self._kafka.servers, source, keys=self._kafka.access.keys)
            raise refused or NotConnectedError(f"Kafka gives no answer: {error.args[0].str()}") from error
        except KafkaUnavailableError as error:
            raise NotConnectedError(str(error)) from error
        waiting = 0
        for topic, offsets in committed.items():
            if self._begins_at_end and min(offsets.values(), default=0) < 0:
                raise NotSaidError(f"the source has no position in topic {topic} yet")
            first = starts.get(topic, {})
            waiting += sum(max(ends[topic][each] - max(at, first.get(each, 0)), 0) for each, at in offsets.items())
        return waiting

    def close(self) -> None:
        """See `Depth`."""
        if self._consumer is not None:
            self._consumer.close()
        self._consumer = self._offsets = None

    def _committed(self, client: Consumer, partitions: dict[str, list[int]]) -> dict[str, Offsets]:
        """Returns the committed offsets of partitions, by topic; a negative one means none."""
        places = [TopicPartition(topic, each) for topic, numbers in partitions.items() for each in numbers]
        committed: dict[str, Offsets] = {topic: {} for topic in partitions}
        for place in committed_positions(client, places, ANSWER_SECONDS) if places else []:
            committed[place.topic][place.partition] = place.offset
        return committed


class OtherClusterDepth(KafkaDepth):
    """Client that asks for the ends of topics of another cluster, and reads the positions that the bridge keeps."""

    def __init__(self, endpoint: SystemEndpoint[KafkaSourceConfig]) -> None:
        """Creates the depth without connecting."""
        super().__init__(endpoint)
        self._positions = positions_of(endpoint)

    def _committed(self, client: Consumer, partitions: dict[str, list[int]]) -> dict[str, Offsets]:
        self._positions.ask()
        self._positions.read(self._positions.shares, settled=False)
        assert self._offsets is not None, "`ask` made it"
        ids = self._offsets.topics(partitions)

        def offset(topic: str, partition: int) -> int:
            position = self._positions.of((topic, partition))
            return position.offset if topic in ids and position.is_of(ids[topic].id) else -1

        return {topic: {each: offset(topic, each) for each in numbers} for topic, numbers in partitions.items()}
