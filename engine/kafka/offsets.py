"""Offsets in Kafka: starts and ends of topics, offsets at a time, and those that a consumer group has committed."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import OffsetSpec

from engine.kafka.cluster import describe
from engine.kafka.errors import MISSING, UNKNOWN_QUESTION, UNREADY, refusal, unanswered
from engine.printable import listed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from concurrent.futures import Future

    from confluent_kafka import Consumer
    from confluent_kafka.admin import AdminClient, ListOffsetsResultInfo, TopicDescription

    from engine.kafka.clients import KafkaClients

__all__ = [
    "ANSWER_SECONDS",
    "EARLIEST",
    "LATEST",
    "KafkaOffsets",
    "Offsets",
    "PartitionSpan",
    "Place",
    "TopicFacts",
    "Topics",
    "ask_offsets",
    "committed_positions",
    "offset_summary",
]

Offsets = dict[int, int]
"""Offset by partition."""
Topics = dict[str, Offsets]
"""Offsets by topic."""
Place = tuple[str, int]
"""Topic and partition."""

_SPEC: Any = OffsetSpec
EARLIEST, LATEST = _SPEC.earliest(), _SPEC.latest()
"""Offsets to ask for: that of the first record, and the one behind the last."""
ANSWER_SECONDS = 10.0
"""Seconds that Kafka has for an answer."""
_COORDINATOR_SECONDS, _PAUSE_SECONDS = 15.0, 0.2
"""Seconds that a broker has to become the coordinator of a group, and those between two questions."""


def offset_summary(offsets: Offsets) -> dict[str, object]:
    """Fields of a log line about offsets of one topic: the first of them, the number of partitions, and the sum."""
    first = listed([f"{partition}: {offset}" for partition, offset in sorted(offsets.items())])
    return {"positions": first, "partitions": len(offsets), "records": sum(offsets.values())}


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """Identity and size of a topic, by which a change is noticed."""

    partitions: int
    """Number of partitions."""
    id: str
    """Kafka's id, which changes if the topic is deleted and created again; empty from brokers without ids."""

    @classmethod
    def of(cls, description: TopicDescription) -> TopicFacts:
        """The facts in Kafka's description of a topic."""
        return cls(len(description.partitions), "" if description.topic_id is None else str(description.topic_id))


@dataclass(frozen=True, slots=True)
class PartitionSpan:
    """Offsets and times of a partition's records."""

    first: int
    """Offset of the first record that is still there."""
    next: int
    """Offset behind the last committed record."""
    first_ms: int | None
    """Time of the first record, in milliseconds since 1970; None if there is none."""
    last_ms: int | None
    """Latest time of a record, in milliseconds since 1970; None if there is none, or the broker is too old to tell."""


class KafkaOffsets:
    """Client for questions to a Kafka cluster about its topics.

    Every method raises `KafkaUnavailableError` if Kafka does not answer within `ANSWER_SECONDS`, and `HardFailureError`
    if it refuses access.
    """

    def __init__(self, clients: KafkaClients) -> None:
        self._clients = clients
        self._servers, self._keys = clients.servers, clients.access.keys
        self._admin = clients.admin()

    def topics(self, topics: Iterable[str]) -> dict[str, TopicFacts]:
        """Facts about each topic; missing topics are left out."""
        return {topic: TopicFacts.of(description) for topic, description in self._describe(topics).items()}

    def partitions(self, topics: Iterable[str]) -> dict[str, int]:
        """Number of partitions by topic; missing topics are left out."""
        return {topic: found.partitions for topic, found in self.topics(topics).items()}

    def identity(self, topic: str) -> str:
        """Kafka's id of the topic, which changes if it is deleted and created again; empty from brokers without ids."""
        facts = self.topics([topic]).get(topic)
        return "" if facts is None else facts.id

    def starts(self, topics: Iterable[str]) -> Topics:
        """First offset still present in each partition; missing topics are left out."""
        return self._offsets(topics, EARLIEST)

    def ends(self, topics: Iterable[str], *, committed: bool = False) -> Topics:
        """Offset of the next record in each partition; `committed`: the end for readers of committed records.

        The latter is at the first open transaction, if there is one. Missing topics are left out.
        """
        level = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
        return self._offsets(topics, LATEST, level)

    def since(self, topics: Iterable[str], time_ms: int) -> Topics:
        """First offset of a record with timestamp `time_ms` or later, in each partition; its end if there is none.

        Missing topics are left out, also those that are deleted between the two questions to Kafka.
        """
        topics = list(topics)
        offsets_since = self._offsets(topics, OffsetSpec.for_timestamp(time_ms))
        ends = self.ends(topics)
        return {
            topic: {
                partition: ends[topic][partition] if offset < 0 else offset
                for partition, offset in offsets.items()
                if partition in ends[topic]
            }
            for topic, offsets in offsets_since.items()
            if topic in ends
        }

    def spans(self, topics: Iterable[str]) -> dict[str, dict[int, PartitionSpan]]:
        """Offsets and times of each partition's records, from Kafka's index; missing topics are left out."""
        counts = self.partitions(topics)
        committed = IsolationLevel.READ_COMMITTED
        # All questions are on their way before the first answer is awaited.
        starts, ends, oldest, newest = (
            self._asked(counts, spec, level)
            for spec, level in (
                (EARLIEST, committed),
                (LATEST, committed),
                (OffsetSpec.for_timestamp(0), committed),
                (_SPEC.max_timestamp(), committed),
            )
        )
        found: dict[str, dict[int, PartitionSpan]] = {topic: {} for topic in counts}
        for place in starts:
            first, following, early, late = (self._answer(place, asked) for asked in (starts, ends, oldest, newest))
            topic, partition = place
            found[topic][partition] = PartitionSpan(
                0 if first is None else first.offset,
                0 if following is None else following.offset,
                _time(early),
                _time(late),
            )
        return found

    def committed(self, group: str, topic: str, partitions: Iterable[int]) -> Offsets:
        """Offsets that a consumer group has committed; partitions without one are left out.

        A new Kafka makes the topic of committed offsets when it is first asked, which is waited for.
        """
        places = [TopicPartition(topic, partition) for partition in partitions]
        if not places:
            return {}
        deadline = time.monotonic() + _COORDINATOR_SECONDS
        # The admin client ends the process by a segmentation fault where a group has no coordinator yet.
        with closing(self._clients.consumer(group)) as asking:
            while True:
                try:
                    committed = committed_positions(asking, places, ANSWER_SECONDS)
                except KafkaException as error:
                    if error.args[0].code() not in UNREADY or time.monotonic() > deadline:
                        raise self._translated(error.args[0], [topic]) from error
                    time.sleep(_PAUSE_SECONDS)
                else:
                    return {place.partition: place.offset for place in committed if place.offset >= 0}

    def _describe(self, topics: Iterable[str]) -> dict[str, TopicDescription]:
        names, descriptions = sorted(set(topics)), {}
        try:
            answers = describe(self._admin, names, ANSWER_SECONDS)
        except KafkaException as error:
            raise self._translated(error.args[0], names) from error
        for name, answer in answers.items():
            if not isinstance(answer, KafkaError):
                descriptions[name] = answer
            elif answer.code() not in MISSING:
                raise self._translated(answer, [name])
        return descriptions

    def _offsets(
        self, topics: Iterable[str], spec: OffsetSpec, level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED
    ) -> Topics:
        counts = self.partitions(topics)
        result: Topics = {topic: {} for topic in counts}
        for (topic, partition), future in self._asked(counts, spec, level).items():
            try:
                result[topic][partition] = future.result().offset
            except KafkaException as error:
                raise self._translated(error.args[0], [topic]) from error
        return result

    def _asked(
        self, counts: Mapping[str, int], spec: OffsetSpec, level: IsolationLevel
    ) -> dict[Place, Future[ListOffsetsResultInfo]]:
        places = [(topic, partition) for topic, count in counts.items() for partition in range(count)]
        return ask_offsets(self._admin, places, spec, ANSWER_SECONDS, level)

    def _answer(
        self, place: Place, asked: Mapping[Place, Future[ListOffsetsResultInfo]]
    ) -> ListOffsetsResultInfo | None:
        """The answer about a partition; None if the broker does not know the question."""
        try:
            return asked[place].result()
        except KafkaException as error:
            if error.args[0].code() in UNKNOWN_QUESTION:
                return None
            raise self._translated(error.args[0], [place[0]]) from error

    def _translated(self, error: KafkaError, topics: Sequence[str]) -> Exception:
        what = "topic " + listed([f"'{topic}'" for topic in topics])
        refused = None if error.code() in MISSING else refusal(error, self._servers, what, keys=self._keys)
        return refused or unanswered(self._servers, error, what)


def _time(answer: ListOffsetsResultInfo | None) -> int | None:
    return None if answer is None or answer.timestamp < 0 else answer.timestamp


def ask_offsets(
    client: AdminClient,
    places: Iterable[Place],
    spec: OffsetSpec,
    seconds: float,
    level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
) -> dict[Place, Future[ListOffsetsResultInfo]]:
    """Asks Kafka for an offset of each partition, without waiting for the answers."""
    asked = {TopicPartition(*place): spec for place in places}
    if not asked:
        return {}
    answers = client.list_offsets(asked, isolation_level=level, request_timeout=seconds)
    return {(place.topic, place.partition): future for place, future in answers.items()}


def committed_positions(consumer: Consumer, places: list[TopicPartition], seconds: float) -> list[TopicPartition]:
    """Returns the positions that the consumer's group has committed; a negative offset means none.

    Raises:
        KafkaException: no answer in that many seconds, or an error, also if it is of one partition only. The client
            raises those of the whole request; those of a partition it returns with an offset that looks like none.
    """
    committed = consumer.committed(places, timeout=seconds)
    for place in committed:
        if place.error is not None:
            raise KafkaException(place.error)
    return committed
