"""Detection of redelivered messages on one connection of a source.

It recognises deliveries that the journal already has, and advances the worker's position. A message that an earlier
connection or another worker wrote to the journal is delivered again if its acknowledgement did not arrive. It stands in
the tail of the journal. A worker reads the tail when it connects, and reads on when a delivery shows that another
consumer had it before.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import structlog

from engine.delivery.deduplication.clean_ends import CleanEnds
from engine.delivery.deduplication.out_of_order_detector import OutOfOrderDetector
from engine.delivery.deduplication.seen_messages import SeenMessages
from engine.kafka.types import KafkaException

if TYPE_CHECKING:
    from collections.abc import Mapping
    from concurrent.futures import Future

    from engine.connectors.base import Positioned, Redelivery
    from engine.delivery.deduplication.safe_offsets import SafeOffsets
    from engine.delivery.deduplication.tail import Tail
    from engine.kafka.retry import KafkaRetry
    from engine.kafka.types import ListOffsetsResultInfo
    from engine.message import Message, Record

__all__ = ["Deduplicator"]

_PERIOD_SECONDS = 5.0
_LOOK_SECONDS = 0.2
_log = structlog.get_logger(__name__)


class Deduplicator:
    """Redelivery detection of one connection; for one thread. Waits for Kafka raise as `KafkaRetry.answers` does."""

    def __init__(
        self,
        safe_offsets: SafeOffsets,
        tail: Tail,
        retry: KafkaRetry,
        redelivery: Redelivery,
        positioned: Positioned | None = None,
    ) -> None:
        """`positioned` is the source, if it implements `Positioned`."""
        self._safe_offsets = safe_offsets
        self._positioned = positioned
        self._tail = tail
        self._retry = retry
        self._known = SeenMessages()
        # A single worker takes over no other worker's messages while it is connected.
        self._order = OutOfOrderDetector() if safe_offsets.workers > 1 and not redelivery.is_marked else None
        self._read_to: dict[int, int] = {}
        self._read_at = 0.0
        self._firsts: dict[int, int] = {}
        self._clean = CleanEnds(redelivery.doubt_seconds)
        self._is_certain = redelivery.doubt_seconds == 0
        self._asked: dict[int, Future[ListOffsetsResultInfo]] = {}
        self._look_at = 0.0
        self._ask_at = time.monotonic() + redelivery.returns_seconds

    def begin(self) -> None:
        """Reads the journal's tail; called once, after the source has connected."""
        self._safe_offsets.find(self._retry)
        ends = self._safe_offsets.ends(self._retry)
        starts = self._safe_offsets.starts(self._retry) if any(ends.values()) else None
        if self._positioned is not None:
            self._positioned.recall(self._safe_offsets.notes)
        self._read(starts or {}, ends)
        if starts is None:
            # The first position spares later connections from reading the journal before this source's first record.
            starts = {partition: self._firsts.get(partition, end) for partition, end in ends.items()}
        self._safe_offsets.keep_first(starts)

    def suspects(self, message: Message) -> bool:
        """Returns True if the journal may have the message, so that the caller should ask `knows`.

        The caller calls it once for each message, in the order of arrival.
        """
        headers = message.headers
        return (
            headers.get("JMSMessageID") in self._known.ids
            or headers.get("JMSRedelivered") == "true"
            or (self._order is not None and self._order.is_late(headers))
        )

    def is_unsure(self, message: Message) -> bool:
        """Returns True if another worker may have journalled the message since the last `look`."""
        headers = message.headers
        return headers.get("JMSRedelivered") == "true" or (self._order is not None and self._order.is_late(headers))

    def knows(self, message: Message) -> bool:
        """Returns True if the journal's tail, as far as it was read, has the message.

        Each record of the tail answers for one delivery only.
        """
        return message.headers.get("JMSMessageID") in self._known.ids and self._known.take(message.to_record())

    def look(self) -> None:
        """Reads the journal on to its current end, also in partitions that were added since.

        Afterwards `knows` recognises each message that has arrived by now and that another worker had journalled
        before.
        """
        self._safe_offsets.find_partitions(self._retry)
        ends = self._safe_offsets.ends(self._retry)
        starts = self._read_to
        if time.monotonic() - self._read_at > _PERIOD_SECONDS:
            clean = self._safe_offsets.starts(self._retry) or {}
            starts = {partition: max(at, starts.get(partition, 0)) for partition, at in clean.items()} or starts
        self._read(starts, ends)

    def tend(self, received: int, acknowledged: int) -> None:
        """Advances the worker's position to the latest clean end; the caller calls it often.

        `received` and `acknowledged` count the deliveries of this connection.

        Raises:
            NotConnectedError: the connection to the source's broker is gone.
            JournalError: positions cannot be written any more.
        """
        now = time.monotonic()
        if now < self._look_at:
            return
        self._look_at = now + _LOOK_SECONDS
        self._mark(received, now)
        self._clean.acknowledged(acknowledged, now)
        if (due := self._clean.due(now)) is not None:
            self._safe_offsets.keep(due, self._positioned.position() if self._positioned else "")
            if all(due.get(partition, 0) >= end for partition, end in self._read_to.items()):
                # All messages of the tail that could be delivered again have been.
                self._known.clear()
        self._safe_offsets.tend()

    def finish(self) -> None:
        """Moves the position to the journal's end at a clean stop, if the system's acknowledgements are certain.

        The caller calls it when everything is acknowledged.
        """
        if self._is_certain:
            self._safe_offsets.keep_end()

    def _mark(self, received: int, now: float) -> None:
        if self._asked:
            if not all(future.done() for future in self._asked.values()):
                return
            asked, self._asked = self._asked, {}
            try:
                ends = {partition: future.result().offset for partition, future in asked.items()}
            except KafkaException as error:
                _log.debug("the end of the journal is not known", why=error.args[0].str())
                return
            self._clean.mark(ends, received)
        elif now >= self._ask_at and self._clean.wants_ends:
            self._ask_at = now + _PERIOD_SECONDS
            self._asked = self._safe_offsets.ask_ends()

    def _read(self, starts: Mapping[int, int], ends: dict[int, int]) -> None:
        self._tail.read(starts, ends, self._take, self._retry)
        self._read_to, self._read_at = ends, time.monotonic()

    def _take(self, partition: int, offset: int, message_id: str, record: Record) -> None:
        self._firsts.setdefault(partition, offset)
        self._known.add(message_id, record)
