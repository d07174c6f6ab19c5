"""Dead letters of a sink, each written once: in one Kafka transaction with the offset of its record.

A worker that is killed leaves both or neither (KIP-98), and a worker whose partitions have gone to another reader can
no longer commit (KIP-447). So no later reader processes a record whose dead letter exists.
"""

from __future__ import annotations

from threading import Event
from typing import TYPE_CHECKING

import structlog

from engine.delivery.dead_letter_record import dead_letter, letter_limit
from engine.kafka.clients import KafkaClients
from engine.kafka.journal import JournalError
from engine.kafka.transactions import InDoubtError, TransactionalJournal
from engine.tracing_section import TracingConfig
from routes.immutable import immutable

if TYPE_CHECKING:
    from collections.abc import Collection

    from engine.delivery.sink_topic_reader import SinkTopicReader, TakenRecord
    from routes.model import Config, SinkConfig

__all__ = ["SinkLetters"]

_log = structlog.get_logger(__name__)


@immutable
class _Refused:
    """Record that the sink cannot deliver, with the reason and the route."""

    taken: TakenRecord
    why: str
    route: str


class SinkLetters:
    """Refused records of one worker of a sink that wait for their dead letters to be written; for one thread."""

    def __init__(self, config: Config, sink: SinkConfig, worker: int) -> None:
        """`worker` counts from 1."""
        self._config = config
        self._sink = sink.name
        self._owner = f"{config.bridge_id}.sink.{sink.name}.{worker}"
        self._journal: TransactionalJournal | None = None
        self._limit: int | None = None
        """Largest record in bytes that the dead-letter topic accepts; None while unknown."""
        self._waiting: list[_Refused] = []
        self.size = 0
        """Total bytes of the waiting records."""

    def open(self) -> None:
        """Connects to Kafka, and aborts an open transaction that a killed worker of this name left behind.

        Raises:
            JournalError: Kafka does not answer.
            HardFailureError: Kafka refuses the bridge.
        """
        if self._journal is None:
            clients, topic = KafkaClients(self._config.kafka_access), self._config.journal.topic
            self._journal = TransactionalJournal(
                clients, topic, self._config.section(TracingConfig), self._owner, Event()
            )

    def add(self, taken: TakenRecord, why: str, route: str) -> None:
        """Adds a record, to become a dead letter in the next `write`."""
        self._waiting.append(_Refused(taken, why, route))
        self.size += taken.record.size

    def forget(self, partitions: Collection[int]) -> None:
        """Drops the records of partitions that go to another reader, which processes them anew."""
        self._keep([each for each in self._waiting if each.taken.partition not in partitions])

    def write(self, egress: SinkTopicReader) -> int:
        """Writes the dead letters of all waiting records and commits their offsets with them; returns their number.

        Does nothing while Kafka is away, or while an earlier commit of offsets is unanswered, since that one could
        arrive after this one.

        Raises:
            JournalError: Kafka has not accepted the dead letters, or has not confirmed them. This worker can commit
                nothing more.
            HardFailureError: Kafka refuses the bridge.
        """
        if not self._waiting or egress.is_committing or egress.down_seconds > 0:
            return 0
        for each in self._waiting:
            egress.done(each.taken)
        try:
            self._commit(egress)
        except InDoubtError:
            raise
        except JournalError as error:
            # For example, Kafka has aborted the transaction because it took too long.
            _log.warning("dead letters are written again", sink=self._sink, why=str(error))
            self.close()
            self._commit(egress)
        count = len(self._waiting)
        self._keep([])
        return count

    def close(self) -> None:
        """Ends the connection and aborts an open transaction."""
        if self._journal is not None:
            self._journal.close()
            self._journal = None

    def _commit(self, egress: SinkTopicReader) -> None:
        self.open()
        assert self._journal is not None, "it was opened"
        topic = self._config.letter_topic
        if self._limit is None:
            self._limit = letter_limit(KafkaClients(self._config.kafka_access), topic)
        for each in self._waiting:
            letter = dead_letter(each.taken.record, each.why, each.route, self._sink, self._limit)
            # The journal keeps the first error, and committing raises it.
            self._journal.write(topic, letter, lambda _: None)
        egress.commit_in(self._journal)

    def _keep(self, waiting: list[_Refused]) -> None:
        self._waiting = waiting
        self.size = sum(each.taken.record.size for each in waiting)
