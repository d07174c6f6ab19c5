"""AMQP listener sink: clients connect to the bridge and receive messages, as JMS applications do with Qpid JMS.

A message counts as given when a client has accepted it. Until then it waits in memory and in the sink's Kafka topic; no
more are read from the topic while `most_under_way` messages have no outcome. `delivery_queue` decides which client gets
which message, `server` has the sockets.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from engine.connectors.addresses import parsed
from engine.connectors.amqp import server_performatives
from engine.connectors.amqp.links import Sender
from engine.connectors.amqp.performatives import Condition, Terminus
from engine.connectors.amqp.transformers import outbound_of, translated_selector
from engine.connectors.amqp_listener.access import Logins, server_tls
from engine.connectors.amqp_listener.background_pump import BackgroundPump
from engine.connectors.amqp_listener.delivery_queue import DeliveryQueue
from engine.connectors.amqp_listener.limits import ListenerLimits
from engine.connectors.amqp_listener.server import OFFERED, STOPPING, Server
from engine.connectors.base import Outcome
from routes.errors import PredicateError
from routes.predicate import parse
from routes.predicate.nodes import Like, Logical, Not, asks_for_body

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.connectors.amqp.links import IncomingTransfer, Link
    from engine.connectors.amqp.settings import AmqpSinkConfig
    from engine.connectors.amqp_listener.coordinator import Transaction
    from engine.connectors.amqp_listener.receivers import Held
    from engine.connectors.amqp_listener.session import ClientConnection, ServerSession
    from engine.connectors.base import Outgoing
    from engine.connectors.endpoint import SystemEndpoint
    from routes.predicate.nodes import PredicateNode

__all__ = ["AmqpListenerSink"]

_UNATTENDED_SECONDS = 0.04


class AmqpListenerSink:
    """Sink that AMQP clients connect to and receive from."""

    most_under_way = 4_000
    settle_seconds = 0.0
    offered: tuple[str, ...] = OFFERED
    max_bytes = 0

    def __init__(self, endpoint: SystemEndpoint[AmqpSinkConfig], worker: int) -> None:
        """Prepares the listener of a sink; `connect` opens it.

        Raises:
            SetupError: TLS cannot use one of the files.
        """
        sink = endpoint.settings
        self.container = sink.client_id or f"{endpoint.bridge_id}.sink.{sink.name}"
        self.heartbeat_seconds = sink.heartbeat_seconds
        self.logins = Logins(sink)
        self.limits = ListenerLimits.of(sink)
        self.links = 0
        self._url = endpoint.url
        self._outbound = outbound_of(sink.transformers)
        tls = server_tls(sink) if self._url.startswith("amqps:") else None
        self._server = Server(self._url, tls, self)
        self._queue = DeliveryQueue(self._encoded, self.limits)
        self._pump = BackgroundPump(lambda: self._turn(0), _UNATTENDED_SECONDS)

    @property
    def address(self) -> str:
        """URL to listen on: `amqp://host:port`."""
        return self._url

    @property
    def given(self) -> int:
        """Implements `Holding.given`."""
        return self._queue.given

    def connect(self) -> None:
        """Forgets all messages and starts to listen.

        Raises:
            NotConnectedError: the address cannot be listened on.
        """
        self.close()
        self._queue.clear()
        self._server.open()
        self._pump.start()

    def send(self, messages: Sequence[Outgoing]) -> None:
        """Hands messages to clients that have given credit; the others wait for a client that does."""
        with self._pump:
            for each in messages:
                parts = parsed(each.address)
                if parts is None:
                    why = f"{each.address[:100]!r} is not an address of a listener; expected queue/NAME or topic/NAME"
                    self._queue.known.append(Outcome(each.number, why))
                else:
                    self._queue.add(each, f"{parts[0]}:{parts[1]}")
            self._queue.serve()
            self._server.flush()

    def outcomes(self, timeout_seconds: float) -> Sequence[Outcome]:
        """Serves the clients and returns the outcomes of messages, each once."""
        with self._pump:
            self._turn(0 if self._queue.known else timeout_seconds)
            known, self._queue.known = self._queue.known, []
            return known

    def relieve(self) -> None:
        """Implements `Holding.relieve`."""
        with self._pump:
            self._queue.relieve()
            self._server.flush()

    def close(self) -> None:
        """Tells every client that the listener ends; messages that were not accepted are sent again later."""
        self._pump.stop()
        with self._pump:
            self._server.close(STOPPING)

    def sends(self, terminus: Terminus | None) -> Condition | None:
        """Implements `Host.sends`; clients may send nothing here."""
        where = f", also not to {terminus.destination}" if terminus else ""
        return Condition(server_performatives.NOT_ALLOWED, f"nothing can be sent here{where}")

    def receives(self, link: Sender) -> Condition | None:
        """Implements `Host.receives`."""
        text = link.terminus.selector
        if text is None:
            self._queue.receive(link, None)
            return None
        translates = cast("ServerSession", link.session).peer.translates
        try:
            selector = parse(translated_selector(text) if translates else text)
        except PredicateError as error:
            return Condition(server_performatives.INVALID_FIELD, f"the selector: {' '.join(str(error).split())}")
        if asks_for_body(selector.root):
            text = "the selector asks for the body, and a broker's selectors see headers and properties alone"
            return Condition(server_performatives.INVALID_FIELD, text)
        if (likes := _likes(selector.root)) > (most_likes := self.limits.selector_likes):
            return Condition(
                server_performatives.INVALID_FIELD,
                f"the selector has {likes} LIKE conditions; at most {most_likes} are taken",
            )
        self._queue.receive(link, selector)
        return None

    def takes(self, peer: ClientConnection) -> bool:
        """Implements `Host.takes`."""
        return True

    def arrived(self, incoming: IncomingTransfer) -> None:
        """Implements `Host.arrived`; does nothing, since clients send no messages here."""

    def credited(self, link: Sender) -> None:
        """Implements `Host.credited`."""
        self._queue.serve_link(link)

    def posted(self, transaction: Transaction, incoming: IncomingTransfer) -> Condition | None:
        """Implements `Host.posted`; does nothing, since clients send no messages here."""

    def settled(self, session: ServerSession, fields: list[Any], outcome: Any, transaction: Transaction | None) -> None:
        """Implements `Host.settled`."""
        self._queue.settled(session, fields, outcome, transaction)

    def commit(self, transaction: Transaction) -> None:
        """Implements `Host.commit`; the client's answers in the transaction take effect."""
        self._queue.commit(transaction)
        transaction.committed()

    def roll_back(self, transaction: Transaction) -> None:
        """Implements `Host.roll_back`; messages that the client has answered in the transaction wait again."""
        self._queue.roll_back(transaction)

    def left(self, link: Link) -> None:
        """Implements `Host.left`."""
        if isinstance(link, Sender):
            self._queue.left(link)

    def _turn(self, timeout_seconds: float) -> None:
        self._server.turn(0 if self._queue.is_unfinished else timeout_seconds)
        self._queue.serve()
        self._server.flush()

    def _encoded(self, held: Held) -> tuple[bytes, int]:
        """Encoded message and its message format.

        JMSXDeliveryCount and JMSRedelivered tell of earlier deliveries in vain.
        """
        outgoing = held.outgoing
        message = outgoing.message
        if held.failed:
            again = {"JMSXDeliveryCount": str(held.failed + 1), "JMSRedelivered": "true"}
            message = replace(message, headers={**message.headers, **again})
        return self._outbound.encoded(message, outgoing.address, outgoing.reply_to)


def _likes(node: PredicateNode) -> int:
    """Number of LIKE conditions in a selector."""
    match node:
        case Like():
            return 1
        case Not():
            return _likes(node.operand)
        case Logical():
            return sum(map(_likes, node.operands))
    return 0
