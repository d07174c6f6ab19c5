"""Where each worker of a source had nothing in doubt any more: positions in the journal, kept in Kafka.

Each worker has a consumer group that nobody joins, `BRIDGE-ID.source.SOURCE.WORKER`, and only its offsets are of use.
All workers count, also those that a smaller `workers` has left behind: what they had comes to others. Offsets are read
and written by consumers, not by the admin client, which librdkafka lets crash when a coordinator moves.
"""

from __future__ import annotations

import re
import time
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any

import structlog
from confluent_kafka import Consumer, IsolationLevel, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from engine.connectors.redelivery.patience import ANSWER_SECONDS
from engine.journal import JournalError
from engine.kafka import SILENT, is_fatal, librdkafka

if TYPE_CHECKING:
    from collections.abc import Mapping
    from concurrent.futures import Future

    from confluent_kafka import KafkaError
    from confluent_kafka.admin import ListOffsetsResultInfo

    from engine.connectors.redelivery.patience import Patience
    from routes.model import Config

__all__ = ["Bookmarks"]

_REPEATED_SECONDS = 3600.0
"""How often a position is written that has not moved: Kafka forgets those of groups without members."""
_BRIEFLY_SECONDS = 2.0
_SLICE_SECONDS = 0.5
_QUEUED_KIB = 16 * 1024
_log = structlog.get_logger(__name__)


class Bookmarks:
    """The positions of one source; for one thread. Offsets go by partition of the journal."""

    def __init__(self, config: Config, source: str, worker: int, workers: int) -> None:
        """Makes clients that connect by themselves."""
        self.workers = workers
        """How many the source has."""
        self._config = config
        self._topic = config.journal.topic
        self._prefix = f"{config.bridge_id}.source.{source}."
        self._worker = worker
        self._group = f"{self._prefix}{worker}"
        self._former: set[str] = set()
        self._partitions: tuple[int, ...] = ()
        self._has_own = False
        self._writing = False
        self.notes: list[str] = []
        """What workers have noted beside their positions, as of `starts`."""
        self._note = ""
        self._wanted: Mapping[int, int] = {}
        self._kept: Mapping[int, int] = {}
        self._kept_at = 0.0
        self._fatal: str | None = None
        """Why the consumer can do nothing any more."""
        settings: dict[str, Any] = {**librdkafka(config, "admin"), "log_level": 0}
        self._admin = AdminClient(settings)
        self.consumer = self._consumer(self._group)
        """Also reads the journal; it has no partitions in between."""

    def find(self, patience: Patience) -> None:
        """Finds out about the journal's partitions, and the groups of workers that are no more."""
        self.find_partitions(patience)
        listed = patience.answers(lambda: {"": self._admin.list_consumer_groups(request_timeout=ANSWER_SECONDS)})
        pattern = re.compile(re.escape(self._prefix) + "[0-9]{1,4}")
        self._former = {found.group_id for found in listed[""].valid if pattern.fullmatch(found.group_id)}
        self._former -= self._present

    def find_partitions(self, patience: Patience) -> None:
        """Finds out which the journal has by now: they may become more at any time."""
        journal = TopicCollection([self._topic])
        topics = patience.answers(lambda: self._admin.describe_topics(journal, request_timeout=ANSWER_SECONDS))
        self._partitions = tuple(partition.id for partition in topics[self._topic].partitions)

    def ask_ends(self) -> dict[int, Future[ListOffsetsResultInfo]]:
        """Asks where the journal ends, also behind transactions that are open: nothing in them is of such a source."""
        latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        asked = {TopicPartition(self._topic, partition): latest for partition in self._partitions}
        level = IsolationLevel.READ_UNCOMMITTED
        found = self._admin.list_offsets(asked, isolation_level=level, request_timeout=ANSWER_SECONDS)
        return {place.partition: future for place, future in found.items()}

    def ends(self, patience: Patience) -> dict[int, int]:
        """Where the journal ends."""
        return {partition: found.offset for partition, found in patience.answers(self.ask_ends).items()}

    def starts(self, patience: Patience) -> dict[int, int] | None:
        """The least position of any worker in each partition, 0 where one has none; None if no worker has any."""
        self.notes = []
        own = self._positions(self.consumer, patience)
        self._note = self._note or next(iter(self.notes), "")
        self._has_own = bool(own)
        every = [own]
        for group in sorted((self._present | self._former) - {self._group}):
            with closing(self._consumer(group)) as consumer:
                every.append(self._positions(consumer, patience))
        known = [each for each in every if each]
        if not known:
            return None
        return {partition: min(each.get(partition, 0) for each in known) for partition in self._partitions}

    def keep(self, positions: Mapping[int, int], note: str = "") -> None:
        """From there on this worker may have something in doubt. What does not get through is repeated by `tend`.

        `note` is kept beside it; an empty one leaves what there is.
        """
        self._wanted = dict(positions)
        self._note = note or self._note
        self.tend()
        if self._worker == 1 and self._former:
            # What they had has come to others by now. Where deleting is not allowed, Kafka forgets them in time.
            self._admin.delete_consumer_groups(sorted(self._former), request_timeout=ANSWER_SECONDS)
            self._former = set()

    def keep_first(self, positions: Mapping[int, int]) -> None:
        """The first position of a worker that has none yet."""
        if not self._has_own:
            self._has_own = True
            self._wanted = dict(positions)
            self.tend()

    def keep_end(self) -> None:
        """Nothing is in doubt: the position is where the journal ends. Waits a moment until Kafka has it."""
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
        """Writes what is wanted, if nothing is on its way. To be called now and then.

        Raises:
            JournalError: its clients are of no more use.
        """
        self.consumer.poll(0)
        if self._fatal:
            raise JournalError(f"positions of group '{self._group}' cannot be written: {self._fatal}")
        is_old = time.monotonic() - self._kept_at > _REPEATED_SECONDS
        if self._writing or not self._wanted or (self._wanted == self._kept and not is_old):
            return
        places = [
            TopicPartition(self._topic, partition, offset, metadata=self._note)
            for partition, offset in self._wanted.items()
        ]
        self._kept, self._kept_at, self._writing = self._wanted, time.monotonic(), True
        self.consumer.commit(offsets=places, asynchronous=True)

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

    def _positions(self, consumer: Consumer, patience: Patience) -> dict[int, int]:
        places = [TopicPartition(self._topic, partition) for partition in self._partitions]
        found = patience.result(partial(consumer.committed, places, timeout=_SLICE_SECONDS))
        self.notes += {place.metadata for place in found if place.metadata}
        return {place.partition: place.offset for place in found if place.offset >= 0}

    def _consumer(self, group: str) -> Consumer:
        settings: dict[str, Any] = {
            **librdkafka(self._config, "consumer"),
            "group.id": group,
            "on_commit": self._written,
            # Records that count are in no transaction, and none that is open may hold up the reading.
            "isolation.level": "read_uncommitted",
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
            "enable.auto.offset.store": False,
            "queued.max.messages.kbytes": _QUEUED_KIB,
            "fetch.queue.backoff.ms": 20,
            "log_level": 0,
        }
        return Consumer(settings, logger=SILENT)
