"""The Kafka topic that a sink reads: records in, and how far the other side has confirmed them.

Workers of a sink are a consumer group, so each partition has one reader, and a standby takes over by Kafka's own rules.
An offset is committed only when everything before it has been dealt with, and with it what is done behind it
(`offsets`).
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import structlog
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from engine.connectors.group import HEARTBEAT_MS, REFUSED, SESSION_MS, member, sink_group
from engine.connectors.offsets import Position, Positions
from engine.errors import ClientEndedError, HardFailureError, UnreachableError
from engine.journal import JournalError
from engine.kafka import SILENT, is_fatal, librdkafka
from engine.message import Record
from routes.immutable import immutable

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from confluent_kafka import Message as KafkaMessage

    from engine.connectors.transactions import TransactionalJournal
    from routes.model import Config, SinkConfig

__all__ = ["Egress", "Taken"]

_BRIEFLY_SECONDS = 0.5
_ASK_SECONDS = 5.0
_ANSWER_SECONDS = 1.0
_COMMITTING_SECONDS = 60.0
_PAUSE_SECONDS = 0.2
_log = structlog.get_logger(__name__)
_REFUSED = {
    **REFUSED,
    KafkaError.UNKNOWN_TOPIC_OR_PART: "there is no such topic; start the bridge again, which makes it",
}


@immutable
class Taken:
    """One record, and where it stands."""

    partition: int
    offset: int
    record: Record
    timestamp_ms: int = 0
    """When it was written, milliseconds since 1970."""


class Egress:
    """A reader of one sink's topic. For one thread; `released` is called inside `take` and `rest`.

    Every record that `take` gives is told to `done` in the end.
    """

    def __init__(
        self, config: Config, sink: SinkConfig, settle_seconds: float, released: Callable[[Collection[int]], None]
    ) -> None:
        """`released` is told which partitions are about to go to another reader, while they can still be committed.

        Partitions of a reader that was killed rest for `settle_seconds`, but at least for as long as Kafka needs to
        notice that it is gone.
        """
        self._topic = sink.topic
        self._servers = config.bootstrap_servers
        self._outage_seconds = config.router.outage_timeout_seconds
        self._released = released
        self._down_since: float | None = None
        self._asked = 0.0
        self._refusal: str | None = None
        self._fatal: str | None = None
        """Why Kafka's client can do nothing any more."""
        self._rests = False
        self._took_at = 0.0
        self._early: list[Taken] = []
        self._positions = Positions()
        self._committing_since: float | None = None
        self._texts = True
        """Whether Kafka takes a text with each offset."""
        self._revoked: set[int] = set()
        """Partitions that went away during the last `take`."""
        # Kafka counts from a reader's last heart-beat.
        session_ms = max(SESSION_MS, int(settle_seconds * 1000) + HEARTBEAT_MS)
        settings = librdkafka(config, "consumer") | {
            "auto.offset.reset": "earliest",
            "on_commit": self._on_commit,
            **member(sink_group(config, sink.name), self._on_error, session_ms),
        }
        self._consumer = Consumer(settings, logger=SILENT)
        self._consumer.subscribe([self._topic], on_revoke=self._on_revoke, on_lost=self._on_revoke)

    @property
    def down_seconds(self) -> float:
        """For how long Kafka has not answered."""
        return 0.0 if self._down_since is None else time.monotonic() - self._down_since

    def take(self, most: int, timeout_seconds: float) -> list[Taken]:
        """The next records, at most so many; waits so long for the first.

        Raises:
            HardFailureError: Kafka refuses the bridge.
            ClientEndedError: a new reader has to be made.
            UnreachableError: Kafka is gone for longer than `router.outage-timeout`.
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
        # Asked for one alone, it gives it at once; asked for many, it would wait for all of them.
        self._revoked.clear()
        others = self._consumer.consume(most - 1, 0) if most > 1 else []
        # Its partition may go to another reader in that moment: Kafka's client drops only what it still has itself.
        messages = others if first.partition() in self._revoked else [first, *others]
        taken = [each for message in messages if (each := self._taken(message)) is not None]
        if taken:
            self._down_since = None
        return taken

    def rest(self, timeout_seconds: float) -> None:
        """Takes nothing, but stays a member of the group; raises as `take` does. Soon after a `take` it returns."""
        if time.monotonic() - self._took_at < _BRIEFLY_SECONDS:
            # Kafka's client drops what it has read ahead of a partition that is paused, and reads it again.
            return
        self._rest(rests=True)
        message = self._consumer.poll(timeout_seconds)
        self._check()
        if message is not None and message.error() is None:
            # From a partition that was assigned only now. It rests like the others, so that `take` resumes them all.
            self._consumer.pause(self._consumer.assignment())
        if message is not None and (taken := self._taken(message)) is not None:
            self._early.append(taken)

    @property
    def is_full(self) -> bool:
        """Whether nothing should be taken before something is done, for what is done would be forgotten."""
        return self._positions.is_full

    def done(self, taken: Taken) -> None:
        """A record was dealt with."""
        self._positions.done(taken.partition, taken.offset)

    def commit(self, *, wait: bool = False) -> None:
        """Tells Kafka where the next reader of each partition would begin. What does not get through is told again.

        With `wait` it returns when Kafka has it, or will not take it now.
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
        """Whether Kafka has not answered the last commit."""
        return self._committing_since is not None

    def commit_in(self, journal: TransactionalJournal) -> None:
        """Commits what is done in the transaction that is open in a journal, and that transaction with it.

        To be called only while no other commit is under way. Raises as `TransactionalJournal.commit`.
        """
        try:
            journal.move(self._moved(), self._consumer.consumer_group_metadata())
        except JournalError as error:
            self._positions.again()
            cause = error.__cause__
            if isinstance(cause, KafkaException) and cause.args[0].code() == KafkaError.OFFSET_METADATA_TOO_LARGE:
                self._without_texts()
            raise
        try:
            journal.commit()
        except JournalError:
            self._positions.again()
            raise

    def lag(self) -> dict[int, int]:
        """Records behind the last one taken, by partition, as far as Kafka has told."""
        found = {}
        for place in self._consumer.position(self._consumer.assignment()):
            _, end = self._consumer.get_watermark_offsets(place, cached=True)
            if end >= 0 and place.offset >= 0:
                found[place.partition] = max(end - place.offset, 0)
        return found

    def has_more(self) -> bool:
        """Whether Kafka says now that there are records behind the last one taken."""
        try:
            for place in self._consumer.position(self._consumer.assignment()):
                _, end = self._consumer.get_watermark_offsets(place, timeout=_ANSWER_SECONDS)
                if 0 <= place.offset < end:
                    return True
        except KafkaException as error:
            self._on_error(error.args[0])
        return False

    def close(self) -> None:
        """Leaves the group; `released` is called for what is still assigned."""
        self._consumer.close()

    def _moved(self) -> list[TopicPartition]:
        return [
            TopicPartition(self._topic, partition, position.offset, position.text if self._texts else "")
            for partition, position in self._positions.moved().items()
        ]

    def _without_texts(self) -> None:
        self._texts = False
        _log.warning(
            "Kafka does not take which messages are delivered behind one that waits; they come again after a "
            "restart. Its offset.metadata.max.bytes should be 4096 or more",
            topic=self._topic,
        )

    def _taken(self, message: KafkaMessage) -> Taken | None:
        if (error := message.error()) is not None:
            self._on_error(error)
            return None
        headers: Any = message.headers() or ()
        partition: Any = message.partition()
        offset: Any = message.offset()
        if not self._positions.knows(partition):
            self._positions.recall(partition, self._committed(partition))
        if not self._positions.take(partition, offset):
            return None
        return Taken(
            partition, offset, Record(message.key(), message.value(), tuple(headers)), max(message.timestamp()[1], 0)
        )

    def _committed(self, partition: int) -> Position:
        """What the last reader of a partition has committed; waits for Kafka for as long as it may be away."""
        place = TopicPartition(self._topic, partition)
        deadline = time.monotonic() + self._outage_seconds
        while time.monotonic() < deadline:
            try:
                (found,) = self._consumer.committed([place], timeout=_ASK_SECONDS)
                if found.error is None:
                    return Position(max(found.offset, 0), found.metadata or "")
                self._on_error(found.error)
            except KafkaException as error:
                self._on_error(error.args[0])
            self._check()
            time.sleep(_PAUSE_SECONDS)
        msg = f"Kafka at {self._servers} has not said for {self._outage_seconds:.0f} s how far the sink is; is it well?"
        raise UnreachableError(msg)

    def _rest(self, *, rests: bool) -> None:
        if rests is not self._rests:
            change = self._consumer.pause if rests else self._consumer.resume
            change(self._consumer.assignment())
            self._rests = rests

    def _on_revoke(self, _: Consumer, places: list[TopicPartition]) -> None:
        partitions = {place.partition for place in places}
        self._revoked |= partitions
        self._early = [taken for taken in self._early if taken.partition not in partitions]
        self._released(partitions)
        self._positions.forget(partitions)
        # What is assigned next is not paused.
        self._rests = False

    def _on_commit(self, error: KafkaError | None, places: list[TopicPartition]) -> None:
        """How a commit has ended: as a whole, or for each partition."""
        self._committing_since = None
        errors = [found for found in (error, *(place.error for place in places)) if found is not None]
        if not errors:
            return
        if any(each.code() == KafkaError.OFFSET_METADATA_TOO_LARGE for each in errors):
            self._without_texts()
        self._positions.again()
        self._on_error(errors[0])

    def _on_error(self, error: KafkaError) -> None:
        if is_fatal(error):
            self._fatal = self._fatal or error.str()
        elif error.code() in _REFUSED:
            self._refusal = _REFUSED[error.code()]
        elif error.code() == KafkaError._ALL_BROKERS_DOWN and self._down_since is None:
            self._down_since = time.monotonic()

    def _check(self) -> None:
        if self._refusal:
            raise HardFailureError(f"Kafka at {self._servers} refuses topic '{self._topic}': {self._refusal}")
        if self._fatal:
            msg = f"Kafka at {self._servers} has shut out the reader of '{self._topic}': {self._fatal}"
            raise ClientEndedError(msg)
        if self._down_since is None or time.monotonic() - self._asked < _ASK_SECONDS:
            return
        # Nobody tells that brokers are back when there is nothing to read.
        self._asked = time.monotonic()
        try:
            self._consumer.list_topics(self._topic, timeout=_ANSWER_SECONDS)
        except KafkaException as error:
            if self.down_seconds > self._outage_seconds:
                msg = f"Kafka at {self._servers} has not answered for {self._outage_seconds:.0f} s; is it running?"
                raise UnreachableError(msg) from error
        else:
            self._down_since = None
