"""Source for Kafka topics whose names match regular expressions; topics created later are found while it runs.

A consumer group reads the topics. Its offsets are committed in the same Kafka transaction that writes the records to
the journal (`engine.kafka.transactions`), so each record is in the journal exactly once, even if a process dies.
`message` converts records; the loop is in `source_loop`.
"""

from __future__ import annotations

import re
import time
from collections import deque
from typing import TYPE_CHECKING, Any, cast

import structlog

from engine.claims.bodies import BodyLostError
from engine.connectors.base import Delivery, NotConnectedError
from engine.connectors.kafka.message import RecordConverter, SourceRecord
from engine.errors import HardFailureError, UnreachableError
from engine.kafka.clients import KafkaClients, member
from engine.kafka.errors import MISSING, PASSING, UNPLACED, KafkaUnavailableError, is_fatal, refusal, remedy
from engine.kafka.journal import JournalError
from engine.kafka.offsets import KafkaOffsets, committed_positions
from engine.kafka.settings import librdkafka
from engine.kafka.transactions import TransactionalJournal
from engine.kafka.types import OFFSET_BEGINNING, OFFSET_END, KafkaException, TopicPartition
from engine.message import Record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from threading import Event

    from engine.connectors.endpoint import SystemEndpoint
    from engine.connectors.kafka.settings import KafkaSourceConfig
    from engine.kafka.journal import Journal
    from engine.kafka.offsets import TopicFacts
    from engine.kafka.types import Consumer, KafkaError, KafkaMessage

__all__ = ["KafkaSource", "begins_at_end", "group_of", "is_wanted"]

_BATCH = 500
_LOOK_SECONDS = 5.0
_ANSWER_SECONDS = 5.0
_COMMITTED_SECONDS = 30.0
"""Time for an answer about committed offsets; Kafka gives none while a transaction of a dead worker is open."""
_LATEST = ("latest", "largest", "end")
"""Values of `auto.offset.reset` with which a source leaves out the records that a topic has at first."""
_OPEN_SECONDS = 0.05
"""Time after which a transaction is committed although more records keep arriving."""
_log = structlog.get_logger(__name__)

Place = tuple[str, int]
"""Topic and partition number."""


def group_of(endpoint: SystemEndpoint[KafkaSourceConfig]) -> str:
    """Returns the name of the consumer group of a source's workers."""
    source = endpoint.settings
    return source.consumer or f"{endpoint.bridge_id}.source.{source.name}"


def is_wanted(endpoint: SystemEndpoint[KafkaSourceConfig], topic: str) -> bool:
    """Returns True if a source reads the topic."""
    if topic.startswith("__") or (endpoint.settings.in_own_cluster and topic in endpoint.own_topics):
        return False
    return any(re.fullmatch(pattern, topic) for pattern in endpoint.settings.destinations)


def begins_at_end(endpoint: SystemEndpoint[KafkaSourceConfig]) -> bool:
    """Returns True if a source leaves out the records that a topic has at first."""
    return librdkafka(endpoint.access, "consumer").get("auto.offset.reset") in _LATEST


class KafkaSource:
    """Source of one worker, a member of the consumer group. One thread uses it, and also runs the callbacks."""

    def __init__(self, endpoint: SystemEndpoint[KafkaSourceConfig], worker: int) -> None:
        """Creates the source without connecting; `worker` is its number, from 1, and part of the transactional id."""
        source = endpoint.settings
        self._endpoint = endpoint
        self._source = source
        self._kafka = KafkaClients(source.access(endpoint.access))
        """Access to the cluster that is read."""
        self._worker = worker
        self._reader = RecordConverter(source, endpoint.bridge_id, propagates=endpoint.tracing.propagate)
        self._bodies = endpoint.bodies()
        self._consumer: Consumer | None = None
        self._journal: TransactionalJournal | None = None
        self._group = ""
        self._topics: frozenset[str] = frozenset()
        self._read: deque[KafkaMessage] = deque()
        self._next: dict[Place, int] = {}
        """Offsets to commit: for each partition the offset behind the last record handed over since the last commit."""
        self._begun_at = 0.0
        self._looked_at = 0.0
        self._fault: Exception | None = None
        self._ids: dict[str, str] = {}
        """Kafka's id of each topic of which partitions are assigned; it is committed with their offsets."""
        self._removed = 0
        self._offsets: KafkaOffsets | None = None
        defaults = librdkafka(endpoint.access, "consumer")
        self._begins_at = OFFSET_END if begins_at_end(endpoint) else OFFSET_BEGINNING
        self._is_cooperative = "cooperative" in str(defaults.get("partition.assignment.strategy"))

    @property
    def removed(self) -> int:
        """Number of records that Kafka removed before the source had read them, since it was made."""
        return self._removed

    @property
    def address(self) -> str:
        """Servers and topic patterns, such as `kafka://host:port (orders, payments-.*)`."""
        return f"kafka://{self._kafka.servers} ({', '.join(self._source.destinations)})"

    @property
    def redelivery(self) -> None:
        """Always None: offsets are committed with the journal, so no record that it has is read again."""

    def connect(self) -> None:
        """Creates the consumer and finds the topics; partitions are assigned later, while `receive` is called.

        Raises:
            NotConnectedError: Kafka does not answer.
            HardFailureError: Kafka refuses the bridge.
        """
        self.close()
        self._fault = None
        group = group_of(self._endpoint)
        settings = member(self._on_error) | {"topic.metadata.refresh.interval.ms": int(_LOOK_SECONDS * 1000)}
        # Where Kafka does not have the next record any more, the client would go on elsewhere without a word.
        self._consumer = self._kafka.consumer(group, settings | {"auto.offset.reset": "error"})
        self._group = group
        self._look(first=True)

    def journal(self, stop: Event, while_full: Callable[[], None]) -> Journal:
        """Creates the transactional journal of this connection.

        This also aborts a transaction that a dead worker of the same source, number and machine has left open.
        """
        endpoint, owner = self._endpoint, f"{self._endpoint.bridge_id}.source.{self._source.name}.{self._worker}"
        self._journal = TransactionalJournal(
            endpoint.kafka, endpoint.journal, endpoint.tracing, owner, stop, while_full
        )
        return self._journal

    def receive(self, timeout_seconds: float) -> Delivery | None:
        """Returns the next record; None if none came in time, or if the open transaction is to be committed now."""
        now = time.monotonic()
        if self._next and now - self._begun_at > _OPEN_SECONDS:
            self._begun_at = now
            return None
        if not self._read:
            self._fill(timeout_seconds, now)
            if not self._read:
                return None
        if not self._next:
            self._begun_at = now
        return self._delivery(self._read.popleft())

    def acknowledge(self, tokens: Sequence[object]) -> None:
        """Commits the transaction with the offsets of these deliveries, which are all that were written in it."""
        ends: dict[Place, int] = {}
        for token in tokens:
            topic, partition, offset = cast("tuple[str, int, int]", token)
            ends[topic, partition] = offset + 1
        # Offsets of partitions that were reassigned are left out: their new owner commits its own.
        self._commit({place: at for place, at in ends.items() if place in self._next})

    def tend(self) -> None:
        """Does nothing: librdkafka sends heart-beats from its own threads."""

    def close(self) -> None:
        """Leaves the consumer group; records that were not committed are read again."""
        self._read.clear()
        self._next.clear()
        self._bodies.close()
        if self._consumer is not None:
            self._consumer.close()
        self._consumer = self._journal = None
        self._topics = frozenset()
        self._ids.clear()

    def _fill(self, timeout_seconds: float, now: float) -> None:
        """Reads the available records, and waits up to `timeout_seconds` for the first one."""
        client = self._opened()
        if now - self._looked_at > _LOOK_SECONDS:
            self._look()
        if not self._topics:
            time.sleep(timeout_seconds)
            return
        first = client.poll(timeout_seconds)
        if self._fault:
            raise self._fault
        if first is not None:
            # Stored before `consume` is called: a rebalance in that call removes records of revoked partitions here.
            if self._is_record(first):
                self._read.append(first)
            others = client.consume(_BATCH - 1, 0)
            self._read.extend(filter(self._is_record, others))
        if self._fault:
            raise self._fault

    def _look(self, *, first: bool = False) -> None:
        """Looks for matching topics and changes the subscription if they have changed.

        Raises:
            NotConnectedError: Kafka does not answer.
            HardFailureError: Kafka refuses the bridge.
        """
        self._looked_at = time.monotonic()
        try:
            topics = self._opened().list_topics(timeout=_ANSWER_SECONDS).topics
        except KafkaException as error:
            raise self._translated(error.args[0], "topics") from error
        found = {name: len(each.partitions) for name, each in topics.items() if is_wanted(self._endpoint, name)}
        if new := sorted(found.keys() - self._topics):
            _log.info("topics found", source=self._source.name, topics=new[:20])
        elif not found and (first or self._topics):
            _log.warning("there is no such topic yet", source=self._source.name, wanted=self._source.destinations)
        self._follow(found)
        self._topics = frozenset(found)
        if self._ids:
            self._check_ids(self._facts(self._ids))

    def _follow(self, found: Mapping[str, int]) -> None:
        """Reads the topics `found`, by name with their numbers of partitions, in place of those in `_topics`."""
        if found and found.keys() != self._topics:
            rebalancing = {"on_assign": self._on_assign, "on_revoke": self._on_revoke, "on_lost": self._on_lost}
            self._opened().subscribe(sorted(found), **rebalancing)
        elif not found:
            self._opened().unsubscribe()

    def _is_record(self, message: KafkaMessage) -> bool:
        error = message.error()
        if error is not None:
            self._on_error(error)
        return error is None

    def _delivery(self, message: KafkaMessage) -> Delivery:
        topic: Any = message.topic()
        partition: Any = message.partition()
        offset: Any = message.offset()
        headers: Any = message.headers() or ()
        record, lost = Record(message.key(), message.value(), tuple(headers)), None
        try:
            # Another bridge may have kept the body as a file.
            record = self._bodies.restored(record)
        except BodyLostError as error:
            lost = str(error)
        except UnreachableError as error:
            raise NotConnectedError(str(error)) from error
        self._next[topic, partition] = offset + 1
        taken, fault = self._reader.message(SourceRecord(record, topic, partition, offset, message.timestamp()[1]))
        return Delivery(taken, (topic, partition, offset), fault=lost or fault)

    def _commit(self, ends: Mapping[Place, int]) -> None:
        client = self._opened()
        positions = [
            TopicPartition(topic, partition, at, self._ids.get(topic, "")) for (topic, partition), at in ends.items()
        ]
        if self._journal is not None and self._journal.begun:
            self._journal.move(positions, client.consumer_group_metadata())
            self._journal.commit()
        elif positions:
            # No record went into the journal: all had faults, and the policy is to skip such records.
            try:
                client.commit(offsets=positions, asynchronous=False)
            except KafkaException as error:
                raise self._translated(error.args[0], positions[0].topic) from error
        self._next.clear()

    def _on_assign(self, client: Consumer, places: list[TopicPartition]) -> None:
        """Handles new partitions: the source goes on at their committed offsets, or behind what Kafka has removed."""
        try:
            starts = self._starts(client, places)
        except (KafkaUnavailableError, HardFailureError, NotConnectedError) as error:
            self._fault = error if isinstance(error, HardFailureError) else NotConnectedError(str(error))
            return
        (client.incremental_assign if self._is_cooperative else client.assign)(starts)

    def _starts(self, client: Consumer, places: list[TopicPartition]) -> list[TopicPartition]:
        """The partitions with the offsets to begin at; raises NotConnectedError if a topic is another one."""
        if not places:
            return []
        kafka, topics = self._asked(), {place.topic for place in places}
        try:
            committed = committed_positions(client, places, _COMMITTED_SECONDS)
        except KafkaException as error:
            raise self._translated(error.args[0], "committed offsets") from error
        now, starts = kafka.topics(topics), kafka.starts(topics)
        self._ids |= {place.topic: place.metadata for place in committed if place.offset >= 0 and place.metadata}
        self._check_ids(now)
        self._ids |= {topic: each.id for topic, each in now.items()}
        return [self._start(place, starts.get(place.topic, {}).get(place.partition, 0)) for place in committed]

    def _start(self, committed: TopicPartition, start: int) -> TopicPartition:
        """The partition with the offset to begin at. `start` is the first one that Kafka still has."""
        topic, partition, offset = committed.topic, committed.partition, committed.offset
        if 0 <= offset < start:
            self._removed += start - offset
            _log.error(
                "records are gone before the source has read them",
                source=self._source.name,
                topic=topic,
                partition=partition,
                from_offset=offset,
                to_offset=start - 1,
                remedy="raise the retention of the topic",
            )
        return TopicPartition(topic, partition, self._begins_at if offset < 0 else max(offset, start))

    def _check_ids(self, now: Mapping[str, TopicFacts]) -> None:
        """Raises NotConnectedError if the position in a topic is that of another one of its name."""
        for topic, before in self._ids.items():
            if before and topic in now and now[topic].id not in ("", before):
                raise NotConnectedError(
                    f"topic '{topic}' was deleted and created again (Kafka's id is {now[topic].id} and was {before}), "
                    "and the position of the source is of the former one. Restore that; or have the new one read from "
                    "its beginning: stop the bridge, and call kafka-consumer-groups.sh --bootstrap-server "
                    f"{self._kafka.servers} --group {self._group} --topic {topic} --delete-offsets"
                )

    def _on_revoke(self, _: Consumer, places: list[TopicPartition]) -> None:
        """Handles the revocation of partitions in a rebalance.

        Commits the offsets of records handed over, and drops records that were only read: the new owner reads them.
        """
        revoked = {(place.topic, place.partition) for place in places}
        self._read = deque(m for m in self._read if (m.topic(), m.partition()) not in revoked)
        self._commit_handed_over()

    def _commit_handed_over(self) -> None:
        """Commits the offsets of records handed over, in a rebalance; a failure is raised by the next call."""
        if not self._next:
            return
        try:
            self._commit(self._next)
        except (JournalError, HardFailureError, NotConnectedError) as error:
            self._fault = error

    def _on_lost(self, _: Consumer, places: list[TopicPartition]) -> None:
        self._fault = NotConnectedError(
            "Kafka has given its partitions to another worker: it was not heard from in time"
        )

    def _on_error(self, error: KafkaError) -> None:
        if error.code() in MISSING | PASSING:
            return
        if error.code() in UNPLACED:
            # A new connection begins where it can.
            self._fault = NotConnectedError(f"Kafka has no record at the position of the source: {error.str()}")
            return
        if remedy(error) or is_fatal(error):
            self._fault = self._translated(error, str(self._source.name))
        else:
            _log.warning("Kafka says", source=self._source.name, why=error.str())

    def _translated(self, error: KafkaError, what: str) -> Exception:
        # The source waits for a missing topic.
        refused = None
        if error.code() not in MISSING:
            refused = refusal(error, self._kafka.servers, f"source '{self._source.name}'", keys=self._kafka.access.keys)
        return refused or NotConnectedError(f"Kafka gives no answer about {what}: {error.str()}")

    def _facts(self, topics: Iterable[str]) -> dict[str, TopicFacts]:
        """Returns what Kafka tells about topics; raises as `_look`."""
        try:
            return self._asked().topics(topics)
        except KafkaUnavailableError as error:
            raise NotConnectedError(str(error)) from error

    def _asked(self) -> KafkaOffsets:
        """The client for questions about topics, one for the whole time."""
        self._offsets = self._offsets or KafkaOffsets(self._kafka)
        return self._offsets

    def _opened(self) -> Consumer:
        if self._consumer is None:
            raise NotConnectedError("not connected")
        return self._consumer
