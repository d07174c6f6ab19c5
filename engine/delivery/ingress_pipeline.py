"""Flow of one connection's deliveries: from the broker through the journal to their acknowledgement.

Reading goes on while records are on their way to Kafka. Acknowledgements follow in the order of reading, each only
after the journal has confirmed its message and all before it. Everything is bounded: the records on their way
(`engine.kafka.journal`), and the deliveries that wait for their acknowledgement.
"""

from __future__ import annotations

import time
from collections import deque
from functools import partial
from typing import TYPE_CHECKING

import structlog

from engine.connectors.base import Committing, NotConnectedError, Transactional
from engine.delivery.dead_letter_record import TOO_LARGE, UNREADABLE, unjournaled
from engine.kafka.journal import JournalError, JournalTooLargeError
from engine.kafka.retry import StoppedError
from engine.limits import excess
from engine.property_names import take_not_kept
from engine.tracing_section import TracingConfig
from routes.errors import BridgeError
from routes.model import Policy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.connectors.base import Delivery, Source
    from engine.delivery.deduplication.deduplicator import Deduplicator
    from engine.delivery.spans import SourceSpans
    from engine.kafka.journal import Journal
    from engine.message import Message
    from engine.telemetry.meters import SourceMetrics
    from routes.model import Config

__all__ = ["IngressPipeline"]

_MOST_OUTSTANDING = 20_000
_ACKNOWLEDGE_AT = 500
_BATCH = 32
_IDLE_SECONDS = 0.2
_BRIEFLY_SECONDS = 0.001
_SOON_SECONDS = 0.01
_FLUSH_SECONDS = 10.0
_LOG_SECONDS = 5.0
_MOST_LOOKED_AT = 1000
_MOST_LOOKED_AT_BYTES = 8 * 1024 * 1024
_log = structlog.get_logger(__name__)


class IngressPipeline:
    """Flow of one connection's deliveries into the journal; for one thread."""

    def __init__(
        self,
        config: Config,
        source: Source,
        journal: Journal,
        deduplicator: Deduplicator | None,
        metrics: SourceMetrics,
        spans: SourceSpans | None = None,
    ) -> None:
        self._config = config
        self._source = source
        self._journal = journal
        self._append = journal.append if spans is None else partial(spans.append, journal)
        self._deduplicator = deduplicator
        self._metrics = metrics
        self._waiting: deque[_Waiting] = deque()
        self._in_transactions = isinstance(source, Transactional)
        # A transaction ends when its source has nothing to hand over, or signals the end by handing over nothing.
        self._acknowledge_at = _MOST_OUTSTANDING if self._in_transactions else _ACKNOWLEDGE_AT
        self._received = 0
        self._received_before = 0
        """Deliveries received on this connection until the last `count`."""
        self._acknowledged = 0
        """Deliveries acknowledged on this connection."""
        self._duplicates = 0
        """Duplicates not logged yet."""
        self._unidentified = 0
        """Messages taken without an id since the last `count`, from a system that may deliver them again."""
        self._log_at = 0.0
        self.confirmed = 0
        """Number of waiting deliveries that are confirmed."""
        self.journaled = 0
        """Messages that the journal has confirmed since the last `count`."""
        self.failure: Exception | None = None
        """Reason why a waiting delivery will never be confirmed; None if there is none."""

    @property
    def is_settled(self) -> bool:
        """True if every received delivery is acknowledged."""
        return not self._waiting and self.failure is None

    def step(self) -> bool:
        """Reads available deliveries, or waits briefly for some; returns True if any was acknowledged.

        Raises:
            StoppedError: the worker is to stop, and the journal has no room for the next message.
            NotConnectedError: the connection is lost.
            JournalError: the journal has failed.
            BridgeError: Kafka refuses the bridge, or has been away for too long.
        """
        for _ in range(_BATCH):
            if len(self._waiting) >= _MOST_OUTSTANDING:
                self._source.tend()
                self._journal.poll(_SOON_SECONDS)
                return self._acknowledge()
            delivery = self._source.receive(_BRIEFLY_SECONDS) or self._pause()
            if delivery is None:
                return self._acknowledge()
            self._received += 1
            if delivery.is_past:
                self._pass_over(delivery)
            elif self._deduplicator is not None and self._deduplicator.suspects(delivery.message):
                self._examine(self._deduplicator, delivery)
            else:
                self._take(delivery)
        return (self.failure is not None or self.confirmed >= self._acknowledge_at) and self._acknowledge()

    def _pause(self) -> Delivery | None:
        """Sends the queued records to Kafka at once, since no delivery has come for a moment.

        Returns the next delivery; None if none arrives in time, or if a transaction should end.
        """
        self._journal.hurry()
        if self._waiting and self._in_transactions:
            return None
        delivery = self._source.receive(_SOON_SECONDS if self._waiting else _IDLE_SECONDS)
        self._journal.poll()
        return delivery

    def _examine(self, deduplicator: Deduplicator, delivery: Delivery) -> None:
        """Takes a delivery or passes over it, depending on whether the journal already has it."""
        if self._leave_out(deduplicator, delivery):
            return
        if not deduplicator.is_unsure(delivery.message):
            self._take(delivery)
            return
        # Another worker may have journalled the message meanwhile. One look at the journal serves all deliveries that
        # have arrived by now.
        batch = [delivery, *self._collect()]
        deduplicator.look()
        for each in batch:
            if each.is_past:
                self._pass_over(each)
            elif not (deduplicator.suspects(each.message) and self._leave_out(deduplicator, each)):
                self._take(each)

    def _collect(self) -> Iterator[Delivery]:
        """Yields deliveries that have arrived already, up to limits of number and bytes."""
        bytes_ = 0
        for _ in range(_MOST_LOOKED_AT):
            delivery = self._source.receive(0) if bytes_ < _MOST_LOOKED_AT_BYTES else None
            if delivery is None:
                return
            self._received += 1
            bytes_ += len(delivery.message.body)
            yield delivery

    def _leave_out(self, deduplicator: Deduplicator, delivery: Delivery) -> bool:
        """Passes over a delivery and returns True if the journal has it: then it is only acknowledged, in its turn."""
        if delivery.fault is not None or delivery.size is not None or not deduplicator.knows(delivery.message):
            return False
        self._pass_over(delivery)
        return True

    def _pass_over(self, delivery: Delivery) -> None:
        waiting = _Waiting(self, delivery.token)
        self._waiting.append(waiting)
        waiting.settled(None)
        self._metrics.duplicate()
        self._duplicates += 1

    def settle(self) -> None:
        """Waits for the journal to confirm the messages read, for a limited time, and acknowledges those confirmed."""
        self._journal.flush(_FLUSH_SECONDS)
        self._acknowledge()

    def settle_quietly(self) -> None:
        """Settles after a failure, and only logs further errors: the first one says more."""
        try:
            self.settle()
        except (NotConnectedError, JournalError, BridgeError) as error:
            _log.warning("some messages will be delivered again", why=str(error))

    def count(self) -> None:
        """Updates the metrics.

        Not called for each message, since that would take longer than parsing it.
        """
        received, self._received = self._received, 0
        self._received_before += received
        journaled, self.journaled = self.journaled, 0
        committed = self._source.committed() if isinstance(self._source, Committing) else 0
        self._metrics.received(received + committed)
        self._metrics.journaled(journaled + committed)
        self._metrics.acknowledged(committed)
        if not_kept := take_not_kept():
            self._metrics.not_kept(not_kept)
        if self._unidentified:
            unidentified, self._unidentified = self._unidentified, 0
            self._metrics.unidentified(unidentified)

    def _take(self, delivery: Delivery) -> None:
        waiting = _Waiting(self, delivery.token)
        self._waiting.append(waiting)
        fault = delivery.fault or excess(delivery.message)
        try:
            if fault is not None:
                taken = self._reject(delivery.message, UNREADABLE, fault, None, waiting)
            elif delivery.size is not None:
                raise JournalTooLargeError(delivery.size, self._config.journal.max_message_bytes)
            else:
                taken = self._append(delivery.message, waiting.journaled)
        except JournalTooLargeError as error:
            why = f"too large for the journal: {error}"
            taken = self._reject(delivery.message, TOO_LARGE, why, error.size, waiting)
        if not taken:
            # The worker was asked to stop while it waited for room: this message and all behind it stay with the
            # broker.
            self._waiting.pop()
            raise StoppedError
        has_id = delivery.has_own_id and "JMSMessageID" in delivery.message.headers
        if self._deduplicator is not None and not has_id:
            self._unidentified += 1

    def _reject(self, message: Message, reason: str, why: str, size: int | None, waiting: _Waiting) -> bool:
        """Skips or dead-letters a message that cannot enter the journal.

        Returns False if the worker stops before the journal has room for the dead letter; the message is then not
        taken.
        """
        who = message.headers.get("JMSMessageID", "without id")
        where = message.headers.get("JMSDestination", self._source.address)
        is_skipped = self._config.routing.on_soft_failure is Policy.SKIP
        policy = Policy.SKIP if is_skipped else Policy.DEAD_LETTER
        self._metrics.rejected(reason)
        _log.warning("message rejected", message=who, destination=where, why=why, policy=policy.value)
        if is_skipped:
            waiting.settled(None)
            return True
        letter = unjournaled(message, reason, why, size, self._config.bridge_id, self._config.section(TracingConfig))
        return self._journal.write(self._config.letter_topic, letter, waiting.settled)

    def _acknowledge(self) -> bool:
        """Acknowledges deliveries in order, up to one that is unconfirmed; those of a transaction all at once."""
        if self._waiting and self._in_transactions and not self._journal.flush(_FLUSH_SECONDS):
            raise JournalError(f"Kafka has not confirmed a transaction for {_FLUSH_SECONDS:.0f} s")
        tokens = []
        while self._waiting and self._waiting[0].confirmed:
            tokens.append(self._waiting.popleft().token)
        if tokens:
            self.confirmed -= len(tokens)
            self._source.acknowledge(tokens)
            self._metrics.acknowledged(len(tokens))
            self._acknowledged += len(tokens)
        self.count()
        if self._deduplicator is not None:
            self._deduplicator.tend(self._received_before, self._acknowledged)
        if self._duplicates and not tokens and time.monotonic() > self._log_at:
            _log.info("redelivered messages left out: the journal has them", messages=self._duplicates)
            self._duplicates, self._log_at = 0, time.monotonic() + _LOG_SECONDS
        if self.failure:
            raise self.failure
        return bool(tokens)


class _Waiting:
    """Delivery that is not acknowledged yet."""

    __slots__ = ("_pipeline", "confirmed", "token")

    def __init__(self, pipeline: IngressPipeline, token: object) -> None:
        self._pipeline = pipeline
        self.token = token
        self.confirmed = False

    def journaled(self, error: Exception | None) -> None:
        """Receives the journal's confirmation, or the reason why the journal will not have the message."""
        if error is not None:
            self.settled(error)
            return
        # As `settled` does, without the call: this runs for each message.
        self.confirmed = True
        pipeline = self._pipeline
        pipeline.confirmed += 1
        pipeline.journaled += 1

    def settled(self, error: Exception | None) -> None:
        """Receives the end of a delivery, also one that was not journalled but dealt with otherwise."""
        if error is None:
            self.confirmed = True
            self._pipeline.confirmed += 1
        elif self._pipeline.failure is None:
            self._pipeline.failure = error
