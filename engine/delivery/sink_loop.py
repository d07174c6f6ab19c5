"""Loop of one worker of a sink: reads its topic, sends the messages, and commits those that the system has confirmed.

Written once for all systems. Many messages are under way at a time, in the order in which the router wrote them. When a
connection ends, its unconfirmed messages are sent again on the next one, in the same order and with the same ids. A
message that the system refuses, or that cannot be expressed for it, becomes a dead letter unless its route says `skip`;
an expired message is not sent. Neither stops the sink, since the operator is not responsible for a message's content or
the system's answer. Everything is bounded: the messages under way, and those read ahead (`sink_topic_reader`).
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING

import structlog

from engine.claims.bodies import BodyLostError, KeptBodies
from engine.connectors.base import Exclusive, Holding, LoginEndsError, NotConnectedError, Outcome, Outgoing
from engine.connectors.endpoint import SystemEndpoint
from engine.connectors.expiry import has_expired
from engine.connectors.system import connector
from engine.delivery.back_off import BackOff, Connecting
from engine.delivery.replies import Requests
from engine.delivery.reply_receiver import ReplyReceiver
from engine.delivery.sink_letters import SinkLetters
from engine.delivery.sink_topic_reader import SinkTopicReader, TakenRecord
from engine.delivery.spans import SinkSpans
from engine.errors import UnreachableError
from engine.kafka.clients import KafkaClients, sink_group
from engine.kafka.journal import JournalError
from engine.message import DESTINATION, POSITION, ROUTE, Message
from engine.property_names import not_kept, take_not_kept
from engine.telemetry import tracing
from engine.telemetry.meters import SinkMetrics
from engine.telemetry.status import PartStates, State, sink_component
from engine.tracing_section import TracingConfig
from routes.immutable import immutable
from routes.model import Policy

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from threading import Event

    from engine.connectors.base import Sink
    from engine.message import Record
    from engine.telemetry.status import PartState, Reporter
    from routes.model import Config, SinkConfig

__all__ = ["SinkLoop", "run_sink"]

_MOST_BYTES_UNDER_WAY = 64 * 1024 * 1024
_BATCH = 500
_IDLE_SECONDS = 0.2
_SOON_SECONDS = 0.005
_FULL_SECONDS = 0.05
_COMMIT_SECONDS = 0.2
_FIGURES_SECONDS = 1.0
_RELIEVE_SECONDS = 1.0
_SETTLE_SECONDS = 10.0
_RELEASE_SECONDS = 3.0
_OUTAGE_SECONDS = 3.0
_REFUSED = "refused"
_log = structlog.get_logger(__name__)


def run_sink(config: Config, name: str, worker: int, status: Reporter, stop: Event, *, is_first: bool = True) -> None:
    """Runs worker number `worker` (from 1) of `sink.<name>` until `stop` is set, then ends in good order.

    `is_first` is that of `Connecting`.

    Raises:
        BridgeError: the worker cannot go on, and no retry can help; see `engine.errors` for the kinds.
    """
    sink = next(sink for sink in config.sinks if sink.name == name)
    metrics = SinkMetrics(status.registry, name, sink_component(name, worker))
    requests = Requests(config, sink, worker, metrics)
    voices = PartStates(status)
    # Both voices are made before either reports: a voice made later would not be waited for.
    listening, sending = voices.voice(), voices.voice()
    with (
        tracing.opened(config.section(TracingConfig), config.bridge_id, f"sink:{name}") as traces,
        ReplyReceiver(config, sink, requests, status.registry, listening, traces, is_first=is_first) as listener,
    ):
        loop = SinkLoop(
            config,
            sink,
            connector(sink.type).make_sink(SystemEndpoint.of(config, sink), worker),
            requests,
            metrics,
            sending,
            None if traces is None else SinkSpans(traces, config.routes, sink),
            is_first=is_first,
        )
        loop.run(stop, listener)


class _NoJournalError(NotConnectedError):
    """Kafka, not the sink's system, cannot be used."""


class _RebalancedError(Exception):
    """Some messages under way now belong to another reader; only the end of the connection takes them back."""


@immutable
class _UnderWay:
    """Message sent but not confirmed yet, with its record."""

    outgoing: Outgoing
    taken: TakenRecord


class SinkLoop:
    """Loop of one sink worker and its topic; for one thread."""

    def __init__(
        self,
        config: Config,
        own: SinkConfig,
        sink: Sink,
        requests: Requests,
        metrics: SinkMetrics,
        status: PartState,
        spans: SinkSpans | None = None,
        *,
        is_first: bool = True,
    ) -> None:
        """Creates the loop; `is_first` is that of `Connecting`."""
        self._config = config
        self._own = own
        self._sink = sink
        self._requests = requests
        self._metrics = metrics
        self._status = status
        self._spans = spans
        self._policies = {route.name: route.on_soft_failure for route in config.routes}
        group = sink_group(config.bridge_id, own.name)
        self._egress = SinkTopicReader(
            KafkaClients(config.kafka_access), group, own, sink.settle_seconds, self._release
        )
        self._bodies = KeptBodies.of(config)
        self._taken: deque[TakenRecord] = deque()
        """Records of which no message is made yet: their bodies may be kept as files, and be large."""
        self._no_bodies = ""
        """Reason why such a body cannot be read now; empty if it can."""
        self._bodies_at = 0.0
        """Time of `time.monotonic` at which it is tried again."""
        self._body_back_off = BackOff()
        self._under_way: dict[int, _UnderWay] = {}
        self._bytes = 0
        self._number = 0
        self._connections = 0
        self._is_connected = False
        self._is_rebalanced = False
        """True if messages sent on this connection now belong to another reader."""
        self._settled_at = 0.0
        self._back_off = BackOff()
        self._connecting = Connecting(sink.connect, is_first=is_first)
        self._letters = SinkLetters(config, own, requests.worker)
        self._committed_at = 0.0
        self._figures_at = 0.0
        self._relieved_at = 0.0

    def run(self, stop: Event, listener: ReplyReceiver) -> None:
        """Runs until `stop` is set and all is in order; raises BridgeError as `run_sink` does."""
        try:
            while not stop.is_set():
                try:
                    self._session(stop, listener)
                except _RebalancedError:
                    _log.info("reconnects because partitions go to another reader", where=self._sink.address)
                except LoginEndsError as error:
                    _log.info("connects again with a new login", where=self._sink.address, why=str(error))
                except NotConnectedError as error:
                    self._wait(error, stop, listener)
        finally:
            self._egress.close()
            self._letters.close()
            self._bodies.close()

    def _session(self, stop: Event, listener: ReplyReceiver) -> None:
        """Runs one connection from beginning to end."""
        try:
            self._open_letters()
            self._connecting.attempt()
            self._connected()
            self._is_rebalanced = False
            self._send_again()
            while not stop.is_set():
                self._step()
                listener.check()
            self._status.state(State.STOPPING, f"waiting for {self._sink.address}")
            self._settle(_SETTLE_SECONDS)
            self._egress.commit(wait=True)
            self._write_letters()
        except NotConnectedError:
            self._settled_at = time.monotonic() + self._sink.settle_seconds
            raise
        finally:
            self._is_connected = False
            self._sink.close()
            self._metrics.connection(up=False)

    def _step(self) -> None:
        room = min(self._sink.most_under_way - len(self._under_way), _BATCH)
        waits = time.monotonic() < self._bodies_at
        if waits or self._bytes + self._letters.size >= _MOST_BYTES_UNDER_WAY or self._egress.is_full:
            room = 0
        outgoing: list[Outgoing] = []
        if room > 0:
            if not self._taken:
                self._taken += self._egress.take(room, _SOON_SECONDS if self._under_way else _IDLE_SECONDS)
            else:
                self._egress.rest(0)
            outgoing = self._made(room)
        else:
            self._egress.rest(0)
            if not waits:
                self._relieve()
        if self._is_rebalanced:
            raise _RebalancedError
        self._send(outgoing)
        self._note(self._sink.outcomes(0 if room > 0 else _FULL_SECONDS))
        self._look_after()

    def _relieve(self) -> None:
        """Makes room in a `Holding` sink, at intervals, while the loop takes no more records."""
        now = time.monotonic()
        if isinstance(self._sink, Holding) and now - self._relieved_at >= _RELIEVE_SECONDS:
            self._relieved_at = now
            if self._taken or self._egress.has_more():
                self._sink.relieve()

    def _made(self, most: int) -> list[Outgoing]:
        """Makes the messages to send from the records taken, until no more may be under way, or a body cannot be read.

        The connection stays: on a new one, the messages under way would be sent again for nothing.
        """
        made: list[Outgoing] = []
        while self._taken and len(made) < most and self._bytes + self._letters.size < _MOST_BYTES_UNDER_WAY:
            try:
                outgoing = self._take(self._taken[0])
            except UnreachableError as error:
                seconds = self._body_back_off.next()
                self._no_bodies, self._bodies_at = str(error), time.monotonic() + seconds
                _log.warning("will try again", why=self._no_bodies, sink=self._own.name, seconds=round(seconds, 1))
                break
            if self._no_bodies:
                self._no_bodies = ""
                self._body_back_off.reset()
            self._taken.popleft()
            made += [] if outgoing is None else [outgoing]
        return made

    def _take(self, taken: TakenRecord) -> Outgoing | None:
        """Makes the message to send from a record.

        None if the record names no destination, or if its message has expired or has lost its body.
        """
        address, position = _last(taken.record, DESTINATION), _last(taken.record, POSITION)
        if address is None or position is None:
            self._refuse(taken, "the record says no destination; something else wrote it")
            return None
        message = Message.from_record(taken.record)
        if has_expired(message):
            self._drop(taken)
            return None
        try:
            body = self._bodies.body(taken.record.value, taken.record.headers)
        except BodyLostError as error:
            self._refuse(taken, str(error))
            return None
        if body is not taken.record.value:
            message = replace(message, body=body or b"")
        for name, value in message.extra:
            not_kept(name, "a header without a value" if value is None else "a repeated header")
        message, reply_to = self._requests.outgoing(message)
        self._number += 1
        # The id contains the time, since a journal that was made anew repeats the positions.
        identity = f"{self._config.bridge_id}/{taken.timestamp_ms}/{position}"
        outgoing = Outgoing(
            self._number,
            message,
            address,
            identity,
            reply_to,
            taken.timestamp_ms,
            taken.partition,
            taken.offset,
            taken.end,
            taken.record.key,
        )
        if self._spans is not None:
            outgoing = self._spans.begin(outgoing, taken.record)
        self._under_way[self._number] = _UnderWay(outgoing, taken)
        self._bytes += len(message.body)
        return outgoing

    def _send_again(self) -> None:
        """Sends again the messages that an earlier connection left unconfirmed, except expired ones."""
        expired = [number for number, each in self._under_way.items() if has_expired(each.outgoing.message)]
        self._note([Outcome(number, expired=True) for number in expired])
        self._send([each.outgoing for each in self._under_way.values()])

    def _send(self, messages: Sequence[Outgoing]) -> None:
        if messages:
            self._sink.send(messages)

    def _note(self, outcomes: Sequence[Outcome]) -> None:
        delivered = 0
        if self._spans is not None:
            self._spans.end(outcomes)
        for outcome in outcomes:
            found = self._under_way.pop(outcome.number, None)
            if found is None:
                continue
            self._bytes -= len(found.outgoing.message.body)
            if outcome.expired:
                self._drop(found.taken)
            elif outcome.refusal is None:
                delivered += 1
                self._egress.done(found.taken)
            else:
                self._refuse(found.taken, outcome.refusal)
        if delivered:
            self._metrics.delivered(delivered)
            self._back_off.reset()

    def _drop(self, taken: TakenRecord) -> None:
        """Drops a message that has expired."""
        self._metrics.expired()
        who, address = _name(taken.record), _last(taken.record, DESTINATION)
        _log.info("expired before it was sent", message=who, sink=self._own.name, address=address)
        self._egress.done(taken)

    def _refuse(self, taken: TakenRecord, why: str) -> None:
        """Skips or dead-letters a message that the system will never accept."""
        route = _last(taken.record, ROUTE) or ""
        is_skipped = self._policies.get(route, self._config.routing.on_soft_failure) is Policy.SKIP
        policy = Policy.SKIP if is_skipped else Policy.DEAD_LETTER
        self._metrics.rejected(_REFUSED, policy)
        who, address = _name(taken.record), _last(taken.record, DESTINATION)
        _log.warning("not sent", message=who, route=route, sink=self._own.name, address=address, why=why, policy=policy)
        if is_skipped:
            self._egress.done(taken)
        else:
            self._letters.add(taken, why, route)

    def _open_letters(self) -> None:
        try:
            self._letters.open()
        except JournalError as error:
            raise _NoJournalError(str(error)) from error

    def _write_letters(self) -> None:
        if self._letters.write(self._egress):
            self._back_off.reset()

    def _look_after(self) -> None:
        """Does regular work: writes dead letters, commits, updates metrics and reports the state of Kafka."""
        self._write_letters()
        now = time.monotonic()
        if now - self._committed_at >= _COMMIT_SECONDS:
            self._committed_at = now
            self._egress.commit()
        if now - self._figures_at >= _FIGURES_SECONDS:
            self._figures_at = now
            self._metrics.lag(sum(self._egress.lag().values()) + len(self._taken) + len(self._under_way))
            if number := take_not_kept():
                self._metrics.not_kept(number)
            self._requests.count_timeouts()
        if self._egress.down_seconds > _OUTAGE_SECONDS:
            self._status.state(State.DEGRADED, f"waiting for Kafka at {self._config.bootstrap_servers}")
        elif self._no_bodies:
            self._status.state(State.DEGRADED, self._no_bodies)
        elif self._is_connected:
            self._status.state(State.READY, self._sink.address)

    def _settle(self, seconds: float) -> None:
        """Waits up to `seconds` for confirmations of the messages under way.

        Does not wait for messages that a `Holding` sink has given to no client.
        """
        deadline = time.monotonic() + seconds
        while self._under_way and time.monotonic() < deadline:
            if isinstance(self._sink, Holding) and not self._sink.given:
                self._note(self._sink.outcomes(0))
                break
            self._note(self._sink.outcomes(_FULL_SECONDS))

    def _release(self, partitions: Collection[int]) -> None:
        """Prepares for partitions to go to another reader: waits a moment for confirmations, then drops the rest.

        The other reader sends the dropped messages again.
        """
        try:
            if self._is_connected:
                self._settle(_RELEASE_SECONDS)
        except NotConnectedError:
            self._settled_at = time.monotonic() + self._sink.settle_seconds
        self._letters.forget(partitions)
        self._taken = deque(each for each in self._taken if each.partition not in partitions)
        self._egress.commit(wait=True)
        left = [number for number, each in self._under_way.items() if each.taken.partition in partitions]
        is_held = isinstance(self._sink, Exclusive) and self._sink.holds_partitions
        if (left or is_held) and self._is_connected:
            # Ends the connection, so that no client still accepts a message that the next reader sends.
            self._sink.close()
            self._is_connected, self._is_rebalanced = False, True
            self._settled_at = time.monotonic() + self._sink.settle_seconds
        if left:
            time.sleep(max(self._settled_at - time.monotonic(), 0))
        if self._spans is not None:
            self._spans.forget(left)
        for number in left:
            self._bytes -= len(self._under_way.pop(number).outgoing.message.body)

    def _connected(self) -> None:
        self._connections += 1
        self._is_connected = True
        self._metrics.connection(up=True)
        if self._connections > 1:
            self._metrics.reconnected()
        self._back_off.connected()

    def _wait(self, error: NotConnectedError, stop: Event, listener: ReplyReceiver) -> None:
        """Waits before the next connection; meanwhile the worker stays a member of its consumer group."""
        seconds = self._back_off.next(error.back_off_seconds)
        where = (
            f"Kafka at {self._config.bootstrap_servers}" if isinstance(error, _NoJournalError) else self._sink.address
        )
        self._status.state(State.DEGRADED, f"{where}: {error}")
        _log.warning("will try again", where=where, why=str(error), seconds=round(seconds, 1))
        deadline = time.monotonic() + seconds
        while not stop.is_set() and time.monotonic() < deadline:
            self._egress.rest(_SOON_SECONDS)
            self._look_after_outage()
            listener.check()
            stop.wait(_FULL_SECONDS)

    def _look_after_outage(self) -> None:
        self._requests.count_timeouts()
        self._write_letters()
        self._egress.commit()


def _name(record: Record) -> str:
    """Returns a record's message id for log messages."""
    return record.header("jms.JMSMessageID") or "without id"


def _last(record: Record, name: str) -> str | None:
    """Returns the last header called `name`; None if there is none with a value.

    The router appends its own headers behind those of the message, which may have the same names.
    """
    for key, value in reversed(record.headers):
        if key == name and value is not None:
            return value.decode("utf-8", "replace")
    return None
