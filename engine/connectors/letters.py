"""Dead letters of a sink, each written once: with the offset of its record, in one Kafka transaction.

A worker that is killed leaves both or neither behind (KIP-98), and one whose partitions have gone to another reader
can no longer commit (KIP-447): so no other reader deals with a record whose dead letter is there.
"""

from __future__ import annotations

from threading import Event
from typing import TYPE_CHECKING

import structlog

from engine.connectors.rejected import dead_letter, letter_limit
from engine.connectors.transactions import InDoubtError, TransactionalJournal
from engine.journal import JournalError
from routes.immutable import immutable

if TYPE_CHECKING:
    from collections.abc import Collection

    from engine.connectors.egress import Egress, Taken
    from routes.model import Config, SinkConfig

__all__ = ["SinkLetters"]

_log = structlog.get_logger(__name__)


@immutable
class _Refused:
    """A record that the sink cannot pass on."""

    taken: Taken
    why: str
    route: str


class SinkLetters:
    """Refused records of one worker of a sink, until their dead letters are written. For one thread."""

    def __init__(self, config: Config, sink: SinkConfig, worker: int) -> None:
        """`worker` counts from 1."""
        self._config = config
        self._sink = sink.name
        self._owner = f"sink.{sink.name}.{worker}"
        self._journal: TransactionalJournal | None = None
        self._limit: int | None = None
        """Bytes that the topic takes of a record, where that is known."""
        self._waiting: list[_Refused] = []
        self.size = 0
        """Bytes of the records that wait."""

    def open(self) -> None:
        """Connects to Kafka, and ends what a worker of this name that was killed had begun.

        Raises:
            JournalError: Kafka does not answer.
            HardFailureError: Kafka refuses the bridge.
        """
        if self._journal is None:
            self._journal = TransactionalJournal(self._config, self._owner, Event())

    def add(self, taken: Taken, why: str, route: str) -> None:
        """A record to be dead-lettered by the next `write`."""
        self._waiting.append(_Refused(taken, why, route))
        self.size += taken.record.size

    def forget(self, partitions: Collection[int]) -> None:
        """Drops the records of partitions that go to another reader, which deals with them anew."""
        self._keep([each for each in self._waiting if each.taken.partition not in partitions])

    def write(self, egress: Egress) -> int:
        """Writes the dead letters of all that wait, and commits their offsets with them; how many there were.

        Does nothing while Kafka is away, or has not answered an earlier commit of offsets, which could come after this.

        Raises:
            JournalError: Kafka has not taken them, or has not said so. Nothing more can be committed by this worker.
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
            # Such as a transaction that Kafka has ended because it took too long.
            _log.warning("dead letters are written again", sink=self._sink, why=str(error))
            self.close()
            self._commit(egress)
        count = len(self._waiting)
        self._keep([])
        return count

    def close(self) -> None:
        """Ends the connection; a transaction that is open is dropped."""
        if self._journal is not None:
            self._journal.close()
            self._journal = None

    def _commit(self, egress: Egress) -> None:
        self.open()
        assert self._journal is not None, "it was opened"
        topic = self._config.letter_topic
        if self._limit is None:
            self._limit = letter_limit(self._config, topic)
        for each in self._waiting:
            letter = dead_letter(each.taken.record, each.why, each.route, self._sink, self._limit)
            # The journal keeps the first error, and committing raises it.
            self._journal.write(topic, letter, lambda _: None)
        egress.commit_in(self._journal)

    def _keep(self, waiting: list[_Refused]) -> None:
        self._waiting = waiting
        self.size = sum(each.taken.record.size for each in waiting)
