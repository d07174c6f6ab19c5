"""Reader of a sink's topic: hands out its records and commits how far they are dealt with.

The workers of a sink form a consumer group, so each partition has one reader, and a standby takes over by Kafka's own
rules. The committed offset is that of the first record that is not done; the text committed with it lists those done
behind it (`open_offsets`).
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import structlog

from engine.connectors.base import UNKNOWN_END
from engine.delivery.open_offsets import CommittedPosition, OpenOffsets
from engine.errors import ClientEndedError
from engine.kafka.clients import HEARTBEAT_MS, SESSION_MS, member
from engine.kafka.errors import MISSING, UNREACHABLE, is_fatal, is_text_too_long, refusal
from engine.kafka.journal import JournalError
from engine.kafka.offsets import committed_positions
from engine.kafka.retry import Outage
from engine.kafka.types import KafkaException, TopicPartition
from engine.message import Record
from routes.immutable import immutable

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from engine.errors import HardFailureError
    from engine.kafka.clients import KafkaClients
    from engine.kafka.transactions import TransactionalJournal
    from engine.kafka.types import Consumer, KafkaError, KafkaMessage
    from routes.model import SinkConfig

__all__ = ["SinkTopicReader", "TakenRecord"]

_BRIEFLY_SECONDS = 0.5
_ASK_SECONDS = 5.0
_ANSWER_SECONDS = 1.0
_COMMITTING_SECONDS = 60.0
_PAUSE_SECONDS = 0.2
_log = structlog.get_logger(__name__)


@immutable
class TakenRecord:
    """Record of a sink's topic, with its partition and offset."""

    partition: int
    offset: int
    record: Record
    timestamp_ms: int = 0
    """Time at which the record was written, in milliseconds since 1970."""
    end: int = UNKNOWN_END
    """Offset behind the last record of the partition that was known then."""


class SinkTopicReader:
    """Reader of one sink's topic, as a member of the sink's consumer group.

    For one thread; `released` is called inside `take` and `rest`. The caller must report every record that `take`
    returns to `done` in the end.
    """

    def __init__(
        self,
        clients: KafkaClients,
        group: str,
        sink: SinkConfig,
        settle_seconds: float,
        released: Callable[[Collection[int]], None],
    ) -> None:
        """Makes the consumer and subscribes to the topic.

        `released` is called with the partitions that are about to go to another reader, while their offsets can still
        be committed. Partitions of a killed reader stay unread for `settle_seconds`, but at least until Kafka has
        noticed that the reader is gone.
        """
        self._topic = sink.topic
        self._clients = clients
        self._servers = clients.servers
        self._released = released
        self._outage: Outage | None = None
        """Outage under way; None while Kafka answers."""
        self._asked = 0.0
        self._refusal: HardFailureError | None = None
        self._fatal: str | None = None
        """Failure that has ended the reader, with Kafka as its subject; None while the reader works."""
        self._rests = False
        self._took_at = 0.0
        self._early: list[TakenRecord] = []
        self._positions = OpenOffsets()
        self._ends: dict[int, int] = {}
        """Ends of partitions as they were known when one was last needed."""
        self._committing_since: float | None = None
        self._texts = True
        """True while Kafka accepts a text with each offset."""
        self._revoked: set[int] = set()
        """Partitions revoked during the last `take`."""
        # Kafka measures the session from a reader's last heart-beat, so one heart-beat interval is added.
        session_ms = max(SESSION_MS, int(settle_seconds * 1000) + HEARTBEAT_MS)
        settings = {"auto.offset.reset": "earliest", "on_commit": self._on_commit}
        self._consumer = clients.consumer(group, settings | member(self._on_error, session_ms))
        self._consumer.subscribe([self._topic], on_revoke=self._on_revoke, on_lost=self._on_revoke)

    @property
    def down_seconds(self) -> float:
        """Seconds since Kafka stopped answering; 0 while it answers."""
        return 0.0 if self._outage is None else self._outage.seconds

    def take(self, most: int, timeout_seconds: float) -> list[TakenRecord]:
        """Returns the next records, at most `most`; waits up to `timeout_seconds` for the first.

        Raises:
            HardFailureError: Kafka refuses the bridge.
            ClientEndedError: Kafka's client has failed for good, or the topic is gone; a new reader has to be made.
            UnreachableError: Kafka has not answered for longer than `router.outage-timeout`.
        """
        self._took_at = time.monotonic()
        if self._early:
            early, self._early = self._early[:most], self._early[most:]
            return early
        self._rest(rests=False)
        first = self._consumer.poll(timeout_seconds)
        self._check()
        if first is None:
            return []
        # `poll` returns one record at once; `consume` would wait until it has all the records asked for.
        self._revoked.clear()
        others = self._consumer.consume(most - 1, 0) if most > 1 else []
        # The first record's partition may be revoked during `consume`; Kafka's client then drops only records that it
        # has not handed out yet.
        messages = others if first.partition() in self._revoked else [first, *others]
        taken = [each for message in messages if (each := self._taken(message)) is not None]
        if taken:
            self._outage = None
        return taken

    def rest(self, timeout_seconds: float) -> None:
        """Reads no records but keeps the membership in the group. Raises as `take` does.

        Within half a second after a `take` it returns at once.
        """
        if time.monotonic() - self._took_at < _BRIEFLY_SECONDS:
            # Kafka's client drops the records fetched ahead from a partition that is paused, and fetches them again.
            return
        self._rest(rests=True)
        message = self._consumer.poll(timeout_seconds)
        self._check()
        if message is not None and message.error() is None:
            # The record comes from a partition that was assigned just now. All partitions are paused, so that `take`
            # resumes them all.
            self._consumer.pause(self._consumer.assignment())
        if message is not None and (taken := self._taken(message)) is not None:
            self._early.append(taken)

    @property
    def is_full(self) -> bool:
        """True if no more should be taken until older records are done: the text cannot list more done records."""
        return self._positions.is_full

    def done(self, taken: TakenRecord) -> None:
        """Marks a record as dealt with."""
        self._positions.done(taken.partition, taken.offset)

    def commit(self, *, wait: bool = False) -> None:
        """Commits where the next reader of each partition would begin; a later call repeats what does not arrive.

        With `wait` it returns when Kafka has accepted or refused the commit.
        """
        since = self._committing_since
        if since is not None and not wait and time.monotonic() - since < _COMMITTING_SECONDS:
            return
        if since is not None:
            self._positions.again()
        offsets = self._moved()
        if not offsets:
            return
        try:
            if wait:
                self._on_commit(None, self._consumer.commit(offsets=offsets, asynchronous=False))
            else:
                self._consumer.commit(offsets=offsets, asynchronous=True)
                self._committing_since = time.monotonic()
        except KafkaException as error:
            self._on_commit(error.args[0], offsets)

    @property
    def is_committing(self) -> bool:
        """True if Kafka has not answered the last commit yet."""
        return self._committing_since is not None

    def commit_in(self, journal: TransactionalJournal) -> None:
        """Adds the offsets of done records to a journal's open transaction, and commits the transaction.

        The caller calls it only while no other commit is under way. Raises as `TransactionalJournal.commit` does.
        """
        try:
            journal.move(self._moved(), self._consumer.consumer_group_metadata())
        except JournalError as error:
            self._positions.again()
            cause = error.__cause__
            if isinstance(cause, KafkaException) and is_text_too_long(cause.args[0]):
                self._without_texts()
            raise
        try:
            journal.commit()
        except JournalError:
            self._positions.again()
            raise

    def lag(self) -> dict[int, int]:
        """Number of records behind the last one taken, by partition, as far as Kafka has told."""
        lags = {}
        for assigned in self._consumer.position(self._consumer.assignment()):
            _, end = self._consumer.get_watermark_offsets(assigned, cached=True)
            if end >= 0 and assigned.offset >= 0:
                lags[assigned.partition] = max(end - assigned.offset, 0)
        return lags

    def has_more(self) -> bool:
        """Asks Kafka and returns True if there are records behind the last one taken."""
        try:
            for assigned in self._consumer.position(self._consumer.assignment()):
                _, end = self._consumer.get_watermark_offsets(assigned, timeout=_ANSWER_SECONDS)
                if 0 <= assigned.offset < end:
                    return True
        except KafkaException as error:
            self._on_error(error.args[0])
        return False

    def close(self) -> None:
        """Leaves the group; `released` is called for the partitions that are still assigned."""
        self._consumer.close()

    def _moved(self) -> list[TopicPartition]:
        return [
            TopicPartition(self._topic, partition, position.offset, position.text if self._texts else "")
            for partition, position in self._positions.moved().items()
        ]

    def _without_texts(self) -> None:
        self._texts = False
        _log.warning(
            "Kafka refuses the note of messages delivered after a waiting one; they are sent again after a restart. "
            "Its offset.metadata.max.bytes should be 4096 or more",
            topic=self._topic,
        )

    def _taken(self, message: KafkaMessage) -> TakenRecord | None:
        if (error := message.error()) is not None:
            self._on_error(error)
            return None
        headers: Any = message.headers() or ()
        partition: Any = message.partition()
        offset: Any = message.offset()
        if not self._positions.knows(partition):
            committed = self._committed(partition)
            self._note_gap(partition, committed.offset)
            self._positions.recall(partition, committed)
            self._ends.pop(partition, None)
        if not self._positions.take(partition, offset):
            return None
        record = Record(message.key(), message.value(), tuple(headers))
        return TakenRecord(partition, offset, record, max(message.timestamp()[1], 0), self._end(partition, offset))

    def _end(self, partition: int, offset: int) -> int:
        """Offset behind the last record that Kafka has told of, the one at `offset` among them."""
        if offset >= self._ends.get(partition, 0):
            _, end = self._consumer.get_watermark_offsets(TopicPartition(self._topic, partition), cached=True)
            self._ends[partition] = end if end > offset else UNKNOWN_END
        return self._ends[partition]

    def _note_gap(self, partition: int, committed: int) -> None:
        """Logs records that Kafka has removed since the last reader committed; an outage tells nothing."""
        if committed == 0:
            return
        try:
            place = TopicPartition(self._topic, partition)
            start, _ = self._consumer.get_watermark_offsets(place, timeout=_ANSWER_SECONDS)
        except KafkaException as error:
            self._on_error(error.args[0])
            return
        if start > committed:
            _log.error(
                "records are gone before the sink has read them",
                topic=self._topic,
                partition=partition,
                from_offset=committed,
                to_offset=start - 1,
                remedy="raise the retention of the topic",
            )

    def _committed(self, partition: int) -> CommittedPosition:
        """Position that a partition's last reader has committed; waits for Kafka until `router.outage-timeout`."""
        topic_partition = TopicPartition(self._topic, partition)
        outage = Outage(self._clients.access)
        while True:
            try:
                (position,) = committed_positions(self._consumer, [topic_partition], _ASK_SECONDS)
                return CommittedPosition(max(position.offset, 0), position.metadata or "")
            except KafkaException as error:
                self._on_error(error.args[0])
                self._check()
                outage.check(error)
            time.sleep(_PAUSE_SECONDS)

    def _rest(self, *, rests: bool) -> None:
        if rests is not self._rests:
            change = self._consumer.pause if rests else self._consumer.resume
            change(self._consumer.assignment())
            self._rests = rests

    def _on_revoke(self, _: Consumer, revoked: list[TopicPartition]) -> None:
        partitions = {each.partition for each in revoked}
        self._revoked |= partitions
        self._early = [taken for taken in self._early if taken.partition not in partitions]
        self._released(partitions)
        self._positions.forget(partitions)
        # Partitions assigned next are not paused.
        self._rests = False

    def _on_commit(self, error: KafkaError | None, committed: list[TopicPartition]) -> None:
        """Handles the result of a commit: for all partitions together, or for each."""
        self._committing_since = None
        errors = [found for found in (error, *(each.error for each in committed)) if found is not None]
        if not errors:
            return
        if any(map(is_text_too_long, errors)):
            self._without_texts()
        self._positions.again()
        self._on_error(errors[0])

    def _on_error(self, error: KafkaError) -> None:
        if is_fatal(error):
            self._fatal = self._fatal or f"has shut out the reader of '{self._topic}': {error.str()}"
        elif error.code() in MISSING:
            # The next process makes the topic again.
            self._fatal = self._fatal or f"does not have topic '{self._topic}' any more"
        elif refused := refusal(error, self._servers, f"topic '{self._topic}'"):
            self._refusal = refused
        elif error.code() in UNREACHABLE and self._outage is None:
            self._outage = Outage(self._clients.access)

    def _check(self) -> None:
        if self._refusal:
            raise self._refusal
        if self._fatal:
            msg = f"Kafka at {self._servers} {self._fatal}"
            raise ClientEndedError(msg)
        if self._outage is None or time.monotonic() - self._asked < _ASK_SECONDS:
            return
        # librdkafka does not report that brokers are back while there is nothing to read.
        self._asked = time.monotonic()
        try:
            self._consumer.list_topics(self._topic, timeout=_ANSWER_SECONDS)
        except KafkaException as error:
            self._outage.check(error)
        else:
            self._outage = None
