"""Offsets in Kafka: starts and ends of topics, offsets at a time, and the journal positions in output records.

Each output record holds the journal position it was made from (`engine.message.POSITION`), so the outputs tell which
messages have been published. `engine.spark.recovery` uses this module to decide which messages to publish.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from engine.errors import HardFailureError
from engine.kafka import QUIET

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["KafkaOffsets", "KafkaUnavailableError", "Offsets", "Topics", "spark_offsets"]

Offsets = dict[int, int]
"""Offset by partition."""
Topics = dict[str, Offsets]
"""Offsets by topic."""

_SECONDS = 10.0
_SPEC: Any = OffsetSpec
_REFUSED = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
}
_MISSING = {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC}


class KafkaUnavailableError(Exception):
    """Kafka does not answer at present; a later attempt may succeed."""


class KafkaOffsets:
    """Client for questions to a Kafka cluster about its topics.

    Each request waits for `_SECONDS` at most. Every method raises `KafkaUnavailableError` if Kafka does not answer, and
    `HardFailureError` if it refuses access.
    """

    def __init__(self, settings: Mapping[str, str]) -> None:
        """Makes the client; `settings` are librdkafka's settings of an admin client."""
        # QUIET: the errors that it raises hold all that it would log.
        self._admin = AdminClient({**settings, **QUIET})

    def partitions(self, topics: Iterable[str]) -> dict[str, int]:
        """Number of partitions by topic; missing topics are left out."""
        return {topic: len(found.partitions) for topic, found in self._describe(topics).items()}

    def identity(self, topic: str) -> str:
        """Kafka's id of the topic, which changes if it is deleted and created again; empty from brokers without ids."""
        found = self._describe([topic]).get(topic)
        return "" if found is None or found.topic_id is None else str(found.topic_id)

    def starts(self, topics: Iterable[str]) -> Topics:
        """First offset still present in each partition; missing topics are left out."""
        return self._offsets(topics, _SPEC.earliest())

    def ends(self, topics: Iterable[str], *, committed: bool = False) -> Topics:
        """Offset of the next record in each partition; `committed`: the end for readers of committed records.

        The latter is at the first open transaction, if there is one. Missing topics are left out.
        """
        level = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
        return self._offsets(topics, _SPEC.latest(), level)

    def since(self, topics: Iterable[str], time_ms: int) -> Topics:
        """First offset of a record with timestamp `time_ms` or later, in each partition; its end if there is none."""
        topics = list(topics)
        found = self._offsets(topics, OffsetSpec.for_timestamp(time_ms))
        ends = self.ends(topics)
        return {
            topic: {
                partition: ends[topic][partition] if offset < 0 else offset for partition, offset in offsets.items()
            }
            for topic, offsets in found.items()
        }

    def _describe(self, topics: Iterable[str]) -> dict[str, Any]:
        names = sorted(set(topics))
        if not names:
            return {}
        futures = self._admin.describe_topics(TopicCollection(names), request_timeout=_SECONDS)
        found = {}
        for name, future in futures.items():
            try:
                found[name] = future.result()
            except KafkaException as error:
                if error.args[0].code() not in _MISSING:
                    raise _translated(error, name) from error
        return found

    def _offsets(
        self, topics: Iterable[str], spec: OffsetSpec, level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED
    ) -> Topics:
        result: Topics = {}
        wanted = {}
        for topic, count in self.partitions(topics).items():
            result[topic] = {}
            wanted.update({TopicPartition(topic, partition): spec for partition in range(count)})
        if not wanted:
            return result
        futures = self._admin.list_offsets(wanted, isolation_level=level, request_timeout=_SECONDS)
        for place, future in futures.items():
            try:
                result[place.topic][place.partition] = future.result().offset
            except KafkaException as error:
                raise _translated(error, place.topic) from error
        return result


def _translated(error: KafkaException, topic: str) -> Exception:
    cause = error.args[0]
    if cause.code() in _REFUSED:
        return HardFailureError(f"not authorised to read topic {topic!r}: {cause.str()}; grant it")
    return KafkaUnavailableError(f"Kafka gives no answer about topic {topic!r}: {cause.str()}")


def spark_offsets(topics: Mapping[str, Mapping[int, int]]) -> str:
    """Offsets in the form of Spark's options `startingOffsets` and `endingOffsets`."""
    return json.dumps({topic: {str(partition): at for partition, at in each.items()} for topic, each in topics.items()})
