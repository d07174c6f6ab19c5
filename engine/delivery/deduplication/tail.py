"""Reader of the journal's tail for the records of one source; skips the records of others as fast as it can."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from engine.kafka.errors import END, PASSING
from engine.kafka.types import OFFSET_BEGINNING, TopicPartition
from engine.message import SOURCE, Record

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from engine.kafka.retry import KafkaRetry
    from engine.kafka.types import Consumer, KafkaMessage

__all__ = ["Tail"]

_BATCH = 1000
_WAIT_SECONDS = 0.05
_REPORT_SECONDS = 1.0
_MESSAGE_ID = "jms.JMSMessageID"


class Tail:
    """Reader of ranges of the journal; for one thread."""

    def __init__(self, journal: str, source: str, consumer: Consumer, report: Callable[[int], None]) -> None:
        """`journal` is its topic; `consumer` reports the ends of partitions and has none assigned between two reads.

        During a long read, `report` is called each second with the number of records that are left.
        """
        self._topic = journal
        self._source = source.encode()
        self._consumer = consumer
        self._report = report

    def read(
        self,
        starts: Mapping[int, int],
        ends: Mapping[int, int],
        take: Callable[[int, int, str, Record], None],
        retry: KafkaRetry,
    ) -> None:
        """Calls `take` with partition, offset, message id and record of each record of the source.

        Records without a message id are left out. Reads from `starts` up to `ends`; a start below the journal's first
        record, or behind its end, means its first record.

        Raises as `KafkaRetry.answers` does.
        """
        left = {
            partition: (start if start <= end else 0, end)
            for partition, end in ends.items()
            if (start := starts.get(partition, 0)) != end
        }
        if not left:
            return
        consumer = self._consumer
        consumer.assign([TopicPartition(self._topic, p, start or OFFSET_BEGINNING) for p, (start, _) in left.items()])
        try:
            self._read(consumer, left, take, retry)
        finally:
            consumer.unassign()

    def _read(
        self,
        consumer: Consumer,
        left: dict[int, tuple[int, int]],
        take: Callable[[int, int, str, Record], None],
        retry: KafkaRetry,
    ) -> None:
        retry.restart()
        report_at = time.monotonic() + _REPORT_SECONDS
        while left:
            found = consumer.consume(_BATCH, _WAIT_SECONDS)
            if found:
                retry.restart()
            retry.wait()
            for message in found:
                self._advance(message, left, retry)
                if message.error() is None:
                    self._sift(message, take)
            if left and time.monotonic() > report_at:
                report_at += _REPORT_SECONDS
                self._report(sum(end - at for at, end in left.values()))

    def _advance(self, message: KafkaMessage, left: dict[int, tuple[int, int]], retry: KafkaRetry) -> None:
        """Updates the progress of a partition, and removes it from `left` when its end is reached."""
        error: Any = message.error()
        partition: Any = message.partition()
        offset: Any = message.offset()
        if error is not None and error.code() not in END:
            if error.code() not in PASSING:
                raise retry.translated(error)
        elif partition in left:
            end = left[partition][1]
            # The last offsets may belong to transaction markers, which no consumer receives.
            if error is not None or offset + 1 >= end:
                del left[partition]
            else:
                left[partition] = offset + 1, end

    def _sift(self, message: KafkaMessage, take: Callable[[int, int, str, Record], None]) -> None:
        headers: Any = message.headers() or ()
        message_id = None
        is_own = False
        for name, value in headers:
            if name == SOURCE:
                is_own = value == self._source
            elif name == _MESSAGE_ID:
                message_id = value
        if is_own and message_id is not None:
            partition: Any = message.partition()
            offset: Any = message.offset()
            record = Record(None, message.value(), tuple(headers))
            take(partition, offset, message_id.decode("utf-8", "replace"), record)
