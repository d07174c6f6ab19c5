"""Journal positions of a source's workers, kept in Kafka.

None of a worker's acknowledgements for records before its position is in doubt. Each worker has a consumer group
without members, `BRIDGE-ID.source.SOURCE.WORKER`, which is used only for its committed offsets. The groups of all
workers count, also those left over from a larger `workers`, because their messages are delivered to the remaining
workers. Offsets are read and written by consumers, not by the admin client, since librdkafka crashes in the admin
client when a coordinator moves.
"""

from __future__ import annotations

import re
import time
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any

import structlog

from engine.kafka.errors import is_fatal
from engine.kafka.journal import JournalError
from engine.kafka.offsets import LATEST, ask_offsets, committed_positions
from engine.kafka.retry import ANSWER_SECONDS
from engine.kafka.types import KafkaException, TopicCollection, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Mapping
    from concurrent.futures import Future

    from engine.kafka.clients import KafkaClients
    from engine.kafka.retry import KafkaRetry
    from engine.kafka.types import Consumer, KafkaError, ListOffsetsResultInfo

__all__ = ["SafeOffsets"]

_REPEATED_SECONDS = 3600.0
"""Interval in seconds at which an unchanged position is written again: Kafka forgets the offsets of groups without
members."""
_BRIEFLY_SECONDS = 2.0
_SLICE_SECONDS = 0.5
_QUEUED_KIB = 16 * 1024
_log = structlog.get_logger(__name__)


class SafeOffsets:
    """Positions of one source in the journal, as seen by one of its workers; for one thread.

    Mappings of offsets are keyed by the partition of the journal.
    """

    def __init__(self, clients: KafkaClients, journal: str, group: str, worker: int, workers: int) -> None:
        """Makes the Kafka clients, which connect in the background.

        `journal` is the topic of the journal, `group` names the bridge and the source; `worker` counts from 1.
        """
        self.workers = workers
        """Number of workers of the source."""
        self._clients = clients
        self._topic = journal
        self._prefix = f"{group}."
        self._worker = worker
        self._group = f"{self._prefix}{worker}"
        self._former: set[str] = set()
        self._partitions: tuple[int, ...] = ()
        self._has_own = False
        self._writing = False
        self.notes: list[str] = []
        """Notes of all workers beside their positions, as of the last `starts`."""
        self._note = ""
        self._wanted: Mapping[int, int] = {}
        self._kept: Mapping[int, int] = {}
        self._kept_at = 0.0
        self._fatal: str | None = None
        """Reason why the consumer has failed for good; None while it works."""
        self._admin = clients.admin()
        self.consumer = self._consumer(self._group)
        """Consumer of this worker's group; `Tail` also reads the journal with it. It has no partitions assigned between
        two reads."""

    def find(self, retry: KafkaRetry) -> None:
        """Looks up the journal's partitions, and the groups of workers that the source no longer has."""
        self.find_partitions(retry)
        listed = retry.answers(lambda: {"": self._admin.list_consumer_groups(request_timeout=ANSWER_SECONDS)})
        pattern = re.compile(re.escape(self._prefix) + "[0-9]{1,4}")
        self._former = {found.group_id for found in listed[""].valid if pattern.fullmatch(found.group_id)}
        self._former -= self._present

    def find_partitions(self, retry: KafkaRetry) -> None:
        """Looks up the journal's partitions, of which there may be more at any time."""
        journal = TopicCollection([self._topic])
        topics = retry.answers(lambda: self._admin.describe_topics(journal, request_timeout=ANSWER_SECONDS))
        self._partitions = tuple(partition.id for partition in topics[self._topic].partitions)

    def ask_ends(self) -> dict[int, Future[ListOffsetsResultInfo]]:
        """Asks Kafka for the journal's end offsets, without waiting for the answer.

        Includes records of open transactions: a source that looks for redeliveries writes none of its records in a
        transaction.
        """
        partitions = [(self._topic, partition) for partition in self._partitions]
        found = ask_offsets(self._admin, partitions, LATEST, ANSWER_SECONDS)
        return {partition: future for (_, partition), future in found.items()}

    def ends(self, retry: KafkaRetry) -> dict[int, int]:
        """Returns the journal's end offsets; waits for Kafka as `KafkaRetry.answers` does."""
        return {partition: found.offset for partition, found in retry.answers(self.ask_ends).items()}

    def starts(self, retry: KafkaRetry) -> dict[int, int] | None:
        """Returns the lowest position of any worker in each partition; None if no worker has a position.

        A worker that has positions, but none in some partition, counts as 0 there; a worker without any is left out.
        Also updates `notes`.
        """
        self.notes = []
        own = self._positions(self.consumer, retry)
        self._note = self._note or next(iter(self.notes), "")
        self._has_own = bool(own)
        every = [own]
        for group in sorted((self._present | self._former) - {self._group}):
            with closing(self._consumer(group)) as other:
                every.append(self._positions(other, retry))
        known = [each for each in every if each]
        if not known:
            return None
        return {partition: min(each.get(partition, 0) for each in known) for partition in self._partitions}

    def keep(self, positions: Mapping[int, int], note: str = "") -> None:
        """Stores new positions of this worker, before which none of its acknowledgements is in doubt.

        Does not wait for Kafka: `tend` repeats a commit that fails. `note` is stored beside the positions; an empty
        note leaves the stored one. Raises as `tend` does.
        """
        self._wanted = dict(positions)
        self._note = note or self._note
        self.tend()
        if self._worker == 1 and self._former:
            # The messages of the former workers have been delivered to others by now. Where deleting groups is not
            # allowed, Kafka forgets them in time.
            self._admin.delete_consumer_groups(sorted(self._former), request_timeout=ANSWER_SECONDS)
            self._former = set()

    def keep_first(self, positions: Mapping[int, int]) -> None:
        """Stores the first positions of this worker; does nothing if it already has any."""
        if not self._has_own:
            self._has_own = True
            self._wanted = dict(positions)
            self.tend()

    def keep_end(self) -> None:
        """Stores the journal's end as this worker's position, and waits briefly until Kafka has it.

        For a clean stop of a source whose acknowledgements are certain. If Kafka does not tell the end in time, the
        earlier position stays.
        """
        deadline = time.monotonic() + _BRIEFLY_SECONDS
        asked = self.ask_ends()
        try:
            left = {partition: max(deadline - time.monotonic(), 0) for partition in asked}
            ends = {partition: future.result(left[partition]).offset for partition, future in asked.items()}
        except (KafkaException, TimeoutError) as error:
            _log.debug("the end of the journal is not known", group=self._group, why=str(error))
            return
        self._wanted = ends
        while (self._writing or self._wanted != self._kept) and time.monotonic() < deadline:
            self.tend()
            self.consumer.poll(0.02)

    def tend(self) -> None:
        """Commits positions that are new or due for repetition, unless a commit is under way.

        The caller calls it several times a second.

        Raises:
            JournalError: the consumer has failed for good.
        """
        self.consumer.poll(0)
        if self._fatal:
            raise JournalError(f"positions of group '{self._group}' cannot be written: {self._fatal}")
        is_old = time.monotonic() - self._kept_at > _REPEATED_SECONDS
        if self._writing or not self._wanted or (self._wanted == self._kept and not is_old):
            return
        partitions = [
            TopicPartition(self._topic, partition, offset, metadata=self._note)
            for partition, offset in self._wanted.items()
        ]
        self._kept, self._kept_at, self._writing = self._wanted, time.monotonic(), True
        self.consumer.commit(offsets=partitions, asynchronous=True)

    def close(self) -> None:
        """Ends the connections."""
        self.consumer.close()

    @property
    def _present(self) -> set[str]:
        return {f"{self._prefix}{number}" for number in range(1, self.workers + 1)}

    def _written(self, error: KafkaError | None, _: list[TopicPartition]) -> None:
        self._writing = False
        if error is not None:
            self._kept = {}
            if is_fatal(error):
                self._fatal = error.str()
            _log.debug("a position was not taken", group=self._group, why=error.str())

    def _positions(self, consumer: Consumer, retry: KafkaRetry) -> dict[int, int]:
        partitions = [TopicPartition(self._topic, partition) for partition in self._partitions]
        found = retry.result(partial(committed_positions, consumer, partitions, _SLICE_SECONDS))
        self.notes += {place.metadata for place in found if place.metadata}
        return {place.partition: place.offset for place in found if place.offset >= 0}

    def _consumer(self, group: str) -> Consumer:
        settings: dict[str, Any] = {
            "on_commit": self._written,
            # The records that count are in no transaction, and an open transaction must not hold up the reading.
            "isolation.level": "read_uncommitted",
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
            "enable.auto.offset.store": False,
            "queued.max.messages.kbytes": _QUEUED_KIB,
            "fetch.queue.backoff.ms": 20,
        }
        return self._clients.consumer(group, settings)
