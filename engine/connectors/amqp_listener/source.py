"""AMQP listener source: clients connect to the bridge and send messages, as JMS applications do with Qpid JMS.

A message is accepted when the journal has it, and a transaction's discharge when the journal has all of the transaction
(`transaction_writer`). Messages that are not accepted when their client's connection ends may still enter the journal,
and the client sends them again. A message that can never be taken is rejected at once, so that its sender knows: no
client can stop the bridge by what it sends. `server` has the sockets, `connection` the connection of one client.
"""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from typing import TYPE_CHECKING, Any, cast

import structlog

from engine.connectors.amqp import server_performatives
from engine.connectors.amqp.performatives import ACCEPTED, Condition, Role, Terminus, disposition, serial
from engine.connectors.amqp.transformers import TransformError, inbound_of
from engine.connectors.amqp_listener.access import AllowedDestinations, Logins, server_tls
from engine.connectors.amqp_listener.background_pump import BackgroundPump
from engine.connectors.amqp_listener.limits import ListenerLimits
from engine.connectors.amqp_listener.server import OFFERED, STOPPING, Server
from engine.connectors.amqp_listener.transaction_writer import TransactionWriter
from engine.connectors.base import Delivery
from engine.kafka.transactions import TransactionalJournal
from engine.limits import excess
from engine.trace_context import published

if TYPE_CHECKING:
    from collections.abc import Sequence
    from threading import Event

    from engine.connectors.amqp.codec.values import Described
    from engine.connectors.amqp.links import IncomingTransfer, Link, Sender
    from engine.connectors.amqp.settings import AmqpSourceConfig
    from engine.connectors.amqp_listener.coordinator import Transaction
    from engine.connectors.amqp_listener.session import ClientConnection, ServerSession
    from engine.connectors.endpoint import SystemEndpoint
    from engine.message import Message

__all__ = ["AmqpListenerSource", "Arrivals"]

_MESSAGE_BYTES = 500
"""Memory of a waiting message in bytes, beside its encoded form."""
_EXPANSION = 16
"""Largest size of a record, its body apart, as a multiple of the encoded message."""
_HEADER_FRAMING_BYTES = 6
_UNATTENDED_SECONDS = 0.5
_TURN_SECONDS = 0.01
_log = structlog.get_logger(__name__)


class AmqpListenerSource:
    """Source that AMQP clients connect to and send to."""

    offered: tuple[str, ...] = ("ANONYMOUS-RELAY", *OFFERED)

    def __init__(self, endpoint: SystemEndpoint[AmqpSourceConfig], worker: int) -> None:
        """Prepares the listener of a source; `connect` opens it.

        Raises:
            SetupError: TLS cannot use one of the files.
        """
        source = endpoint.settings
        self.container = source.client_id or f"{endpoint.bridge_id}.{source.name}"
        self.heartbeat_seconds = source.heartbeat_seconds
        self.logins = Logins(source)
        self.max_bytes = endpoint.max_message_bytes
        self.limits = ListenerLimits.of(source)
        self.links = 0
        self._endpoint = endpoint
        self._source = source
        self._worker = worker
        self._url = endpoint.url
        self._addresses = AllowedDestinations(source.destinations)
        self._inbound = inbound_of(source.transformers)
        tls = server_tls(source) if self._url.startswith("amqps:") else None
        self._server = Server(self._url, tls, self)
        self._arrivals = Arrivals()
        self._turned = 0.0
        self._commits = self._new_commits()
        self._committed = 0
        self._pump = BackgroundPump(lambda: self._turn(0), _UNATTENDED_SECONDS)

    @property
    def address(self) -> str:
        """URL to listen on and the destinations: `amqp://host:port (queue:orders, …)`."""
        return f"{self._url} ({', '.join(self._source.destinations)})"

    @property
    def redelivery(self) -> None:
        """None: clients may send a message again at any time, not only after the listener has begun."""

    def connect(self) -> None:
        """Starts to listen.

        Raises:
            NotConnectedError: the address cannot be listened on.
        """
        self.close()
        self._commits = self._new_commits()
        self._server.open()
        self._pump.start()

    def receive(self, timeout_seconds: float) -> Delivery | None:
        """Next message of any client; None if none came in time. Also serves the clients."""
        with self._pump:
            if not self._arrivals:
                self._turn(timeout_seconds)
            elif time.monotonic() - self._turned > _TURN_SECONDS:
                # All clients are read at intervals, also while many messages of a few clients wait.
                self._turn(0)
            self._commits.check()
            while self._arrivals:
                incoming = self._arrivals.pop()
                message = self._message(incoming)
                if not isinstance(message, Condition):
                    return Delivery(message, incoming)
                self._reject(incoming, message)
            self._server.flush()
        return None

    def acknowledge(self, tokens: Sequence[object]) -> None:
        """Accepts messages: one disposition for each run of deliveries of a session, then credit for as many."""
        with self._pump:
            self._settle(cast("Sequence[IncomingTransfer]", tokens), ACCEPTED)
            self._server.flush()

    def tend(self) -> None:
        """Does nothing, since the pump serves the clients."""

    def committed(self) -> int:
        """Implements `Committing.committed`."""
        with self._pump:
            committed, self._committed = self._committed, 0
        return committed

    @property
    def stalled_seconds(self) -> float:
        """Implements `Committing.stalled_seconds`."""
        with self._pump:
            return self._commits.stalled_seconds

    def close(self) -> None:
        """Ends commits and connections, and tells every client; clients send unaccepted messages again."""
        self._pump.stop()
        with self._pump:
            self._commits.close()
            self._count_committed()
            self._server.close(STOPPING)
            self._arrivals = Arrivals()

    def takes(self, peer: ClientConnection) -> bool:
        """Implements `Host.takes`; a client that has no waiting message is always read."""
        own_bytes = self._arrivals.bytes_of(peer)
        limits = self.limits
        return not own_bytes or (
            own_bytes < limits.waiting_bytes and self._arrivals.bytes < limits.waiting_bytes_of_all
        )

    def sends(self, terminus: Terminus | None) -> Condition | None:
        """Implements `Host.sends`."""
        if terminus is None or terminus.destination in self._addresses:
            return None
        return _not_found(terminus.destination)

    def receives(self, link: Sender) -> Condition | None:
        """Implements `Host.receives`."""
        return Condition(
            server_performatives.NOT_ALLOWED, f"nothing can be received here, also not from {link.terminus.destination}"
        )

    def arrived(self, incoming: IncomingTransfer) -> None:
        """Implements `Host.arrived`."""
        self._arrivals.add(incoming)

    def posted(self, transaction: Transaction, incoming: IncomingTransfer) -> Condition | None:
        """Implements `Host.posted`."""
        message = self._message(incoming)
        size = len(incoming.encoded)
        why = message if isinstance(message, Condition) else self._commits.take(transaction, message, size)
        if why is not None:
            _log.warning("a transaction can only be rolled back", source=self._source.name, why=str(why))
        return why

    def commit(self, transaction: Transaction) -> None:
        """Implements `Host.commit`."""
        self._commits.ask(transaction)

    def roll_back(self, transaction: Transaction) -> None:
        """Implements `Host.roll_back`."""
        self._commits.forget(transaction)

    def credited(self, link: Sender) -> None:
        """Implements `Host.credited`; does nothing, since clients receive no messages here."""

    def settled(self, session: ServerSession, fields: list[Any], outcome: Any, transaction: Transaction | None) -> None:
        """Implements `Host.settled`; does nothing, since clients receive no messages here."""

    def left(self, link: Link) -> None:
        """Implements `Host.left`; messages of the link that are not accepted yet still go to the journal."""

    def _turn(self, timeout_seconds: float) -> None:
        self._server.turn(timeout_seconds)
        self._count_committed()
        self._server.flush()
        self._turned = time.monotonic()

    def _new_commits(self) -> TransactionWriter:
        return TransactionWriter(self._journal, self._server.wake, self.limits)

    def _count_committed(self) -> None:
        self._committed += self._commits.end()

    def _journal(self, stop: Event) -> TransactionalJournal:
        endpoint, owner = self._endpoint, f"{self._endpoint.bridge_id}.source.{self._source.name}.{self._worker}"
        return TransactionalJournal(endpoint.kafka, endpoint.journal, endpoint.tracing, owner, stop)

    def _message(self, incoming: IncomingTransfer) -> Message | Condition:
        """Message for the journal, or the reason why there is none."""
        if incoming.size > len(incoming.encoded):
            return self._too_large(incoming.size)
        address = incoming.receiver.terminus.destination
        try:
            message = self._inbound.to_message(incoming.encoded, incoming.message_format, address, self._source.name)
        except TransformError as error:
            return Condition(server_performatives.DECODE_ERROR, str(error))
        # The destination that the message itself names is checked, since that one decides about its route.
        destination = message.headers["JMSDestination"]
        if destination not in self._addresses:
            return _not_found(destination)
        if (why := excess(message)) is not None:
            return Condition(server_performatives.RESOURCE_LIMIT, why)
        may_be_too_large = len(message.body) + _EXPANSION * len(incoming.encoded) > self.max_bytes
        if may_be_too_large and (size := self._size(message)) > self.max_bytes:
            return self._too_large(size)
        return message

    def _reject(self, incoming: IncomingTransfer, why: Condition) -> None:
        _log.warning("rejected", source=self._source.name, address=incoming.receiver.terminus.address, why=str(why))
        self._settle([incoming], server_performatives.rejected(why))

    def _settle(self, messages: Sequence[IncomingTransfer], state: Described) -> None:
        runs: dict[ServerSession, list[list[int]]] = {}
        for each in messages:
            if each.settled:
                continue
            own = runs.setdefault(cast("ServerSession", each.receiver.session), [])
            if own and each.delivery_id == serial(own[-1][1] + 1):
                own[-1][1] = each.delivery_id
            else:
                own.append([each.delivery_id, each.delivery_id])
        for session, found in runs.items():
            if session.open:
                for first, last in found:
                    session.send(disposition(Role.RECEIVER, first, last, state))
        for each in messages:
            if each.receiver.attached:
                each.receiver.taken()

    def _size(self, message: Message) -> int:
        """Bytes of the message's record, with some room for Kafka's framing of headers."""
        record = message.to_record(published(message, self._endpoint.tracing))
        return record.size + _HEADER_FRAMING_BYTES * len(record.headers)

    def _too_large(self, size: int) -> Condition:
        return Condition(server_performatives.SIZE_EXCEEDED, f"{size} bytes, the journal takes {self.max_bytes}")


class Arrivals:
    """Messages that wait for the journal: one client's in order, clients in turns."""

    def __init__(self) -> None:
        self._lines: OrderedDict[ClientConnection, deque[IncomingTransfer]] = OrderedDict()
        self._bytes: dict[ClientConnection, int] = {}
        self.bytes = 0
        """Memory of all waiting messages, in bytes."""

    def __bool__(self) -> bool:
        return bool(self._lines)

    def bytes_of(self, peer: ClientConnection) -> int:
        """Memory of one client's waiting messages, in bytes."""
        return self._bytes.get(peer, 0)

    def add(self, incoming: IncomingTransfer) -> None:
        """Adds a message behind those of the same client."""
        peer = cast("ServerSession", incoming.receiver.session).peer
        self._lines.setdefault(peer, deque()).append(incoming)
        self._count(peer, incoming, 1)

    def pop(self) -> IncomingTransfer:
        """Removes and returns the next message. Raises KeyError if there is none."""
        peer, line = self._lines.popitem(last=False)
        incoming = line.popleft()
        self._count(peer, incoming, -1)
        if line:
            self._lines[peer] = line
        else:
            del self._bytes[peer]
        return incoming

    def _count(self, peer: ClientConnection, incoming: IncomingTransfer, sign: int) -> None:
        size = sign * (len(incoming.encoded) + _MESSAGE_BYTES)
        self._bytes[peer] = self._bytes.get(peer, 0) + size
        self.bytes += size


def _not_found(destination: str) -> Condition:
    return Condition(
        server_performatives.NOT_FOUND, f"{destination} is not among the destinations that this bridge takes"
    )
