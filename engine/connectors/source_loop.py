"""Runs one worker of a source: connects, reads, journals, acknowledges what the journal has, and starts over.

Written once for all systems. Reading goes on while records are on their way to Kafka; acknowledgements follow in the
order of reading, each only after the journal has confirmed its message and all before it. What is neither confirmed
nor acknowledged when a connection ends comes again, from the broker, on the next one. Nothing here is unbounded: not
the records on their way (`engine.journal`), not the deliveries waiting for their turn.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import structlog

from engine.connectors import SOURCES
from engine.connectors.back_off import BackOff
from engine.connectors.base import NotConnectedError, Transactional
from engine.connectors.rejected import TOO_LARGE, UNREADABLE, unjournaled
from engine.errors import HardFailureError, SoftFailureError
from engine.journal import Journal, JournalError, JournalTooLargeError
from engine.telemetry.meters import SourceMetrics
from engine.telemetry.status import State, component_name
from routes.errors import BridgeError
from routes.model import Policy

if TYPE_CHECKING:
    from threading import Event

    from engine.connectors.base import Delivery, Source
    from engine.message import Message
    from engine.telemetry.status import Reporter, Speaker
    from routes.model import Config

__all__ = ["SourceLoop", "run_source"]

_MOST_OUTSTANDING = 20_000
_ACKNOWLEDGE_AT = 500
_BATCH = 32
_IDLE_SECONDS = 0.2
_BRIEFLY_SECONDS = 0.001
_SOON_SECONDS = 0.01
_FLUSH_SECONDS = 10.0
_STALLED_SECONDS = 3.0
_log = structlog.get_logger(__name__)


def run_source(config: Config, name: str, worker: int, status: Reporter, stop: Event) -> None:
    """Runs worker number `worker` (from 1) of `source.<name>` until `stop` is set, then leaves its broker in order.

    Raises:
        BridgeError: it cannot go on, and no other try can help; see `engine.errors` for which.
    """
    source = next(source for source in config.sources if source.name == name)
    metrics = SourceMetrics(status.registry, name, component_name(name, worker))
    SourceLoop(config, SOURCES[source.type](config, source, worker), metrics, status).run(stop)


class SourceLoop:
    """One source and its journal, for one thread."""

    def __init__(self, config: Config, source: Source, metrics: SourceMetrics, status: Speaker) -> None:
        self._config = config
        self._source = source
        self._metrics = metrics
        self._status = status
        self._connections = 0
        self._is_stalled = False
        self._back_off = BackOff()

    def run(self, stop: Event) -> None:
        """Returns when `stop` was set and everything is in order; raises BridgeError as `run_source` does."""
        while not stop.is_set():
            try:
                self._session(stop)
            except (NotConnectedError, JournalError) as error:
                where = self._source.address if isinstance(error, NotConnectedError) else "the journal"
                self._back_off.check(where, error, self._config.router.outage_timeout_seconds)
                wait = self._back_off.next(getattr(error, "back_off_seconds", None))
                self._status.state(State.DEGRADED, f"{where}: {error}")
                _log.warning("will try again", where=where, why=str(error), seconds=round(wait, 1))
                stop.wait(wait)

    def _session(self, stop: Event) -> None:
        """One connection from beginning to end."""
        try:
            self._source.connect()
            self._connected()
            journal = self._journal(stop)
            flow = _Flow(self._config, self._source, journal, self._metrics)
            try:
                self._flow(flow, journal, stop)
            finally:
                journal.close()
                # Only now: closing confirms what was on its way.
                flow.count()
        finally:
            self._source.close()
            self._metrics.connection(up=False)

    def _journal(self, stop: Event) -> Journal:
        if isinstance(self._source, Transactional):
            return self._source.journal(stop, self._stalled)
        return Journal(self._config, stop, self._stalled)

    def _flow(self, flow: _Flow, journal: Journal, stop: Event) -> None:
        try:
            while not stop.is_set():
                if flow.step():
                    self._back_off.reset()
                if journal.stalled_seconds > _STALLED_SECONDS:
                    self._stalled()
                elif self._is_stalled:
                    self._ready()
            self._status.state(State.STOPPING, "waiting for the journal")
            flow.settle()
        except (HardFailureError, SoftFailureError):
            # What is safe already need not come again.
            flow.settle_quietly()
            raise

    def _connected(self) -> None:
        self._connections += 1
        self._metrics.connection(up=True)
        if self._connections > 1:
            self._metrics.reconnected()
        self._back_off.connected()
        self._ready()

    def _ready(self) -> None:
        self._is_stalled = False
        self._status.state(State.READY, self._source.address)

    def _stalled(self) -> None:
        self._is_stalled = True
        self._status.state(State.DEGRADED, f"waiting for Kafka at {self._config.bootstrap_servers}")


class _Flow:
    """The deliveries of one connection, from the broker through the journal to their acknowledgement."""

    def __init__(self, config: Config, source: Source, journal: Journal, metrics: SourceMetrics) -> None:
        self._config = config
        self._source = source
        self._journal = journal
        self._metrics = metrics
        self._waiting: deque[_Waiting] = deque()
        self._in_transactions = isinstance(source, Transactional)
        # A transaction ends when its source has nothing to hand over, or says so by handing over nothing.
        self._acknowledge_at = _MOST_OUTSTANDING if self._in_transactions else _ACKNOWLEDGE_AT
        self._received = 0
        self.confirmed = 0
        """Of the waiting ones."""
        self.journaled = 0
        """Since the last `count`."""
        self.failure: Exception | None = None
        """Why one of them will never be confirmed."""

    def step(self) -> bool:
        """Reads what is there, or waits for some; whether anything was acknowledged."""
        for _ in range(_BATCH):
            if len(self._waiting) >= _MOST_OUTSTANDING:
                self._journal.poll(_SOON_SECONDS)
                return self._acknowledge()
            delivery = self._source.receive(_BRIEFLY_SECONDS) or self._pause()
            if delivery is None:
                return self._acknowledge()
            self._received += 1
            self._take(delivery)
        return (self.failure is not None or self.confirmed >= self._acknowledge_at) and self._acknowledge()

    def _pause(self) -> Delivery | None:
        """Nothing has come for a moment: what was read goes to Kafka at once. Gives what comes next."""
        self._journal.hurry()
        if self._waiting and self._in_transactions:
            return None
        delivery = self._source.receive(_SOON_SECONDS if self._waiting else _IDLE_SECONDS)
        self._journal.poll()
        return delivery

    def settle(self) -> None:
        """Waits until the journal has all that was read, and acknowledges it."""
        self._journal.flush(_FLUSH_SECONDS)
        self._acknowledge()

    def settle_quietly(self) -> None:
        """The same on the way out after a failure, which says more than another one would."""
        try:
            self.settle()
        except (NotConnectedError, JournalError, BridgeError) as error:
            _log.warning("some messages will come again", why=str(error))

    def count(self) -> None:
        """Brings the metrics up to date; not done for each message, since it would take longer than its parsing."""
        received, self._received = self._received, 0
        journaled, self.journaled = self.journaled, 0
        self._metrics.received(received)
        self._metrics.journaled(journaled)

    def _take(self, delivery: Delivery) -> None:
        waiting = _Waiting(self, delivery.token)
        self._waiting.append(waiting)
        try:
            if delivery.fault is not None:
                taken = self._reject(delivery.message, UNREADABLE, delivery.fault, None, waiting)
            elif delivery.size is not None:
                raise JournalTooLargeError(delivery.size, self._config.journal.max_message_bytes)
            else:
                taken = self._journal.append(delivery.message, waiting.journaled)
        except JournalTooLargeError as error:
            why = f"too large for the journal: {error}"
            taken = self._reject(delivery.message, TOO_LARGE, why, error.size, waiting)
        if not taken:
            # Asked to stop while waiting for room: it stays with the broker.
            self._waiting.pop()

    def _reject(self, message: Message, reason: str, why: str, size: int | None, waiting: _Waiting) -> bool:
        who = message.headers.get("JMSMessageID", "without id")
        where = message.headers.get("JMSDestination", self._source.address)
        policy, topic = self._config.routing.on_soft_failure, self._config.routing.dead_letter_topic
        if policy is Policy.STOP:
            self._waiting.pop()
            remedy = "raise journal.max-message-bytes, or " if reason == TOO_LARGE else ""
            msg = (
                f"message {who} from {where} cannot be taken in: {why}; it stays with the broker. Either {remedy}set "
                "routing.on-soft-failure to dead-letter or skip"
            )
            raise SoftFailureError(msg)
        self._metrics.rejected(reason)
        _log.warning("not taken in", message=who, destination=where, why=why, policy=policy.value)
        if policy is Policy.DEAD_LETTER and topic is not None:
            return self._journal.write(topic, unjournaled(message, reason, why, size, self._config), waiting.settled)
        waiting.settled(None)
        return True

    def _acknowledge(self) -> bool:
        """Acknowledges the first deliveries, up to one that is not confirmed; those of a transaction all at once."""
        if self._waiting and self._in_transactions and not self._journal.flush(_FLUSH_SECONDS):
            raise JournalError(f"Kafka has not confirmed a transaction for {_FLUSH_SECONDS:.0f} s")
        tokens = []
        while self._waiting and self._waiting[0].confirmed:
            tokens.append(self._waiting.popleft().token)
        if tokens:
            self.confirmed -= len(tokens)
            self._source.acknowledge(tokens)
            self._metrics.acknowledged(len(tokens))
        self.count()
        if self.failure:
            raise self.failure
        return bool(tokens)


class _Waiting:
    """A delivery that is not acknowledged yet."""

    __slots__ = ("_flow", "confirmed", "token")

    def __init__(self, flow: _Flow, token: object) -> None:
        self._flow = flow
        self.token = token
        self.confirmed = False

    def journaled(self, error: Exception | None) -> None:
        """What the journal calls for it."""
        if error is None:
            self._flow.journaled += 1
        self.settled(error)

    def settled(self, error: Exception | None) -> None:
        """The same where it did not go into the journal but was dealt with otherwise."""
        if error is None:
            self.confirmed = True
            self._flow.confirmed += 1
        elif self._flow.failure is None:
            self._flow.failure = error
