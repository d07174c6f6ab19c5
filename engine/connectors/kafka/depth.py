"""Depth of the topics of a Kafka source: records behind the offsets that its consumer group has committed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.connectors.base import NotConnectedError
from engine.connectors.depth import NotSaidError
from engine.connectors.kafka.source import begins_at_end, group_of, is_wanted
from engine.kafka.errors import KafkaUnavailableError, refusal
from engine.kafka.offsets import ANSWER_SECONDS, KafkaOffsets, committed_positions
from engine.kafka.types import KafkaException, TopicPartition

if TYPE_CHECKING:
    from engine.connectors.endpoint import SystemEndpoint
    from engine.connectors.kafka.settings import KafkaSourceConfig
    from engine.kafka.types import Consumer

__all__ = ["KafkaDepth"]


class KafkaDepth:
    """Client that asks for the ends of topics and the committed offsets; the group stays as it is."""

    def __init__(self, endpoint: SystemEndpoint[KafkaSourceConfig]) -> None:
        """Creates the depth without connecting."""
        self._endpoint = endpoint
        self._begins_at_end = begins_at_end(endpoint)
        self._consumer: Consumer | None = None
        self._offsets: KafkaOffsets | None = None

    def ask(self) -> int:
        """See `Depth`."""
        kafka = self._endpoint.kafka
        self._consumer = self._consumer or kafka.consumer(group_of(self._endpoint))
        self._offsets = self._offsets or KafkaOffsets(kafka)
        try:
            found = self._consumer.list_topics(timeout=ANSWER_SECONDS).topics
            topics = [name for name in found if is_wanted(self._endpoint, name)]
            starts, ends = self._offsets.starts(topics), self._offsets.ends(topics, committed=True)
            places = [TopicPartition(topic, partition) for topic, each in ends.items() for partition in each]
            committed = committed_positions(self._consumer, places, ANSWER_SECONDS) if places else []
        except KafkaException as error:
            refused = refusal(error.args[0], kafka.servers, f"source '{self._endpoint.settings.name}'")
            raise refused or NotConnectedError(f"Kafka gives no answer: {error.args[0].str()}") from error
        except KafkaUnavailableError as error:
            raise NotConnectedError(str(error)) from error
        waiting = 0
        for place in committed:
            if place.offset < 0 and self._begins_at_end:
                raise NotSaidError(f"the source has no position in topic {place.topic} yet")
            start = starts.get(place.topic, {}).get(place.partition, 0)
            waiting += max(ends[place.topic][place.partition] - max(place.offset, start), 0)
        return waiting

    def close(self) -> None:
        """See `Depth`."""
        if self._consumer is not None:
            self._consumer.close()
        self._consumer = self._offsets = None
