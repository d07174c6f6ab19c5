"""Sessions that clients begin at a listener, and the links that they attach there.

Handles and channels are the same numbers on both sides, since the bridge opens none of its own. A client that violates
the specification loses its connection (`ClientError`); a request that is merely not permitted ends or refuses its link.
`Host` is the contract with the source or sink. Specification: OASIS AMQP 1.0, parts 2.5, 2.6 and 4.4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from engine.connectors.amqp import performatives, server_performatives
from engine.connectors.amqp.codec.values import AmqpMap, Described
from engine.connectors.amqp.frames import frame
from engine.connectors.amqp.links import IncomingTransfer, Link, Receiver, Sender
from engine.connectors.amqp.performatives import (
    ACCEPTED,
    Code,
    Condition,
    Role,
    Terminus,
    disposition,
    field,
    number,
    serial,
    transaction_of,
)
from engine.connectors.amqp_listener.access import address_of
from engine.connectors.amqp_listener.coordinator import Coordinator, TransactionHost

if TYPE_CHECKING:
    from engine.connectors.amqp_listener.access import Logins
    from engine.connectors.amqp_listener.coordinator import Transaction
    from engine.connectors.amqp_listener.limits import TransactionUse

__all__ = ["WINDOW", "ClientConnection", "ClientError", "Host", "ServerSession"]

WINDOW = 1000
"""Largest number of a link's messages that are on their way or not acknowledged."""

_SOURCE, _TARGET = 5, 6
_SOURCE_CAPABILITIES, _TARGET_CAPABILITIES = 10, 6
_DURABLE, _DYNAMIC, _MODE = 1, 4, 6
_COPY = "copy"
_PROPERTIES = 10
"""Index of the properties among the fields of a flow."""
_FILTER = 7
_COORDINATOR = (performatives.COORDINATOR, "amqp:coordinator:list")
_SELECTORS = ("apache.org:selector-filter:string", 0x0000_468C_0000_0004)


class ClientError(Exception):
    """Violation of the specification by a client; its connection ends."""

    def __init__(self, condition: str, why: str) -> None:
        super().__init__(why)
        self.condition = Condition(condition, why)


class Host(TransactionHost, Protocol):
    """Source or sink that clients connect to, as their connections and sessions use it."""

    container: str
    heartbeat_seconds: float
    logins: Logins
    offered: tuple[str, ...]
    """Capabilities beyond the specification."""
    max_bytes: int
    """Largest message that a client may send, in bytes."""
    links: int
    """Number of links of all clients."""

    def takes(self, peer: ClientConnection) -> bool:
        """Returns True if more may be read from a client at present."""

    def sends(self, terminus: Terminus | None) -> Condition | None:
        """Returns why a client may not send to a terminus; None if it may.

        Without a terminus each message names its own destination.
        """

    def receives(self, link: Sender) -> Condition | None:
        """Returns why a client may not receive from the link's terminus; None if it may, and is served from now on."""

    def arrived(self, incoming: IncomingTransfer) -> None:
        """Takes a message that a client has sent; of one that is too large only the size is known."""

    def posted(self, transaction: Transaction, incoming: IncomingTransfer) -> Condition | None:
        """Takes a message that a client has sent in a transaction, as part of the transaction's work.

        Returns:
            The reason why the transaction can only be rolled back now; None if the message was taken.
        """

    def credited(self, link: Sender) -> None:
        """Serves a link whose client may have given more credit.

        The session returns unused credit afterwards, if the client wants it back.
        """

    def settled(self, session: ServerSession, fields: list[Any], outcome: Any, transaction: Transaction | None) -> None:
        """Takes a client's answer to deliveries: the fields of its disposition, and the outcome in it.

        With a transaction the answer becomes part of the transaction's work.
        """

    def left(self, link: Link) -> None:
        """Takes note that an attached link has ended."""


class ClientConnection(Protocol):
    """Connection of one client, as its sessions and their host use it."""

    host: Host
    sessions: dict[int, ServerSession]
    """Sessions by channel."""
    outgoing: bytearray
    """Bytes to be sent to the client."""
    max_frame_bytes: int
    """Largest frame that the client accepts."""
    translates: bool
    """True if the client's selectors name AMQP fields as Apache Qpid does."""
    transaction_use: TransactionUse

    @property
    def now(self) -> float:
        """Time at which the bytes came that are being handled."""

    @property
    def links(self) -> int:
        """Number of links in all sessions of the client."""

    def write(self, data: bytes) -> None:
        """Appends data to `outgoing`."""

    def hold(self, count: int) -> None:
        """Adds `count` bytes of incomplete messages, or takes them away if negative.

        Raises:
            ClientError: the client has too many bytes in incomplete messages.
        """

    def close(self, condition: Condition | None = None) -> None:
        """Ends the connection, with an error if `condition` is given."""


class ServerSession:
    """Session of one client."""

    def __init__(self, peer: ClientConnection, channel: int, fields: list[Any]) -> None:
        self.peer = peer
        self.host = peer.host
        self.transaction_use = peer.transaction_use
        self.channel = channel
        self.remote_window = number(fields, 2)
        self.max_frame_bytes = peer.max_frame_bytes
        self.links: dict[int, Link] = {}
        """Links by handle."""
        self.transactions: dict[bytes, Transaction] = {}
        """Transactions that are declared and not discharged, by id."""
        self._refused: set[int] = set()
        """Handles of links that the bridge has ended and the client has still to detach."""
        self._next_incoming = serial(number(fields, 1))
        self._next_outgoing = 0
        self._next_delivery = 0
        self.send(server_performatives.begun(channel, self.host.limits.handles - 1))

    @property
    def open(self) -> bool:
        """True until the client ends the session or the connection ends."""
        return self.peer.sessions.get(self.channel) is self

    def send(self, body: bytes) -> None:
        """Sends a performative to the client."""
        self.peer.write(frame(self.channel, body))

    def give_credit(self, link: Link, delivery_count: int, credit: int) -> None:
        """Implements `LinkSession.give_credit`."""
        where = (self._next_incoming, self._next_outgoing)
        self.send(performatives.flow(*where, link.handle, serial(delivery_count), credit))

    def next_delivery(self) -> int:
        """Implements `LinkSession.next_delivery`."""
        following, self._next_delivery = self._next_delivery, serial(self._next_delivery + 1)
        return following

    def sent_transfer(self) -> None:
        """Implements `LinkSession.sent_transfer`."""
        self._next_outgoing = serial(self._next_outgoing + 1)
        self.remote_window -= 1

    def take(self, code: int, fields: list[Any]) -> None:
        """Handles a performative of this session.

        Raises:
            ClientError: the performative violates the specification.
            AmqpError: the performative is malformed.
        """
        if code == Code.FLOW:
            self._flowed(fields)
        elif code == Code.DISPOSITION:
            if field(fields, 0):
                self._settled(fields)
        elif code == Code.ATTACH:
            self._attach(fields)
        elif code == Code.DETACH:
            self._detached(fields)
        elif code == Code.END:
            self.leave()
            self.peer.sessions.pop(self.channel)
            self.send(server_performatives.ended())
        else:
            raise ClientError(server_performatives.ILLEGAL_STATE, "a performative that has no place in a session")

    def leave(self) -> None:
        """Ends all links of the session."""
        links, self.links = self.links, {}
        for link in links.values():
            self._forget(link)

    def refuse(self, link: Link, condition: Condition) -> None:
        """Ends a link with an error."""
        self._forget(self.links.pop(link.handle))
        self._refused.add(link.handle)
        self.send(server_performatives.detached(link.handle, condition))

    def disconnect(self, condition: Condition) -> None:
        """Implements `TransactionSession.disconnect`."""
        self.peer.close(condition)

    def transferred(self, body: bytes) -> None:
        """Handles a transfer, which is a message or a part of one; raises as `take` does."""
        transfer = performatives.read_transfer(body)
        self._next_incoming = serial(self._next_incoming + 1)
        link = self.links.get(transfer.handle)
        if not isinstance(link, Receiver):
            if transfer.handle not in self._refused:
                raise ClientError(server_performatives.UNATTACHED_HANDLE, "a transfer over a link that is not there")
            return
        held = link.held_bytes
        link.transferred(transfer)
        if held or transfer.more:
            self.peer.hold(link.held_bytes - held)
        if link.overrun and link.attached:
            self.refuse(link, Condition(server_performatives.TRANSFER_LIMIT, "more messages than there was credit for"))

    def _arrived(self, incoming: IncomingTransfer) -> None:
        """Handles a complete message."""
        if incoming.transaction is None:
            self.host.arrived(incoming)
            return
        link, transaction = incoming.receiver, self.transactions.get(incoming.transaction)
        # The limits of transactions count this message from now on, not the window of the link.
        link.taken()
        if transaction is None:
            self._unknown(incoming)
            return
        transaction.begin(self.peer.now)
        if transaction.failure is None and (why := self.host.posted(transaction, incoming)) is not None:
            transaction.fail(why)
        if not incoming.settled:
            outcome = ACCEPTED if transaction.failure is None else server_performatives.rejected(transaction.failure)
            self._answer(incoming, performatives.transactional(transaction.id, outcome))

    def _unknown(self, incoming: IncomingTransfer) -> None:
        """Refuses a message of an unknown transaction: rejects it, or ends its link if it was sent settled."""
        why = Condition(
            server_performatives.UNKNOWN_TRANSACTION, "a message of a transaction that is not there any more"
        )
        if incoming.settled:
            self.refuse(incoming.receiver, why)
        else:
            self._answer(incoming, server_performatives.rejected(why))

    def _answer(self, incoming: IncomingTransfer, state: Described) -> None:
        self.send(disposition(Role.RECEIVER, incoming.delivery_id, incoming.delivery_id, state))

    def _settled(self, fields: list[Any]) -> None:
        identity, outcome = transaction_of(field(fields, 4))
        transaction = None if identity is None else self.transactions.get(identity)
        if identity is not None and transaction is None:
            raise ClientError(
                server_performatives.UNKNOWN_TRANSACTION, "an outcome in a transaction that is not there any more"
            )
        if transaction is not None:
            transaction.begin(self.peer.now)
        self.host.settled(self, fields, outcome, transaction)
        if transaction is not None and transaction.failure is not None:
            self.host.roll_back(transaction)

    def _flowed(self, fields: list[Any]) -> None:
        under_way = serial(self._next_outgoing - number(fields, 0))
        self.remote_window = max(number(fields, 1) - under_way, 0)
        handle = field(fields, 4)
        if handle is not None:
            link = self.links.get(number(fields, 4))
            if link is None:
                if handle not in self._refused:
                    raise ClientError(server_performatives.UNATTACHED_HANDLE, "a flow of a link that is not there")
                return
            if _acquires(field(fields, _PROPERTIES)):
                self.refuse(
                    link,
                    Condition(server_performatives.NOT_IMPLEMENTED, "only outcomes can be part of a transaction here"),
                )
            else:
                link.flowed(fields)
        if field(fields, 9):
            self.send(performatives.flow(self._next_incoming, self._next_outgoing))

    def _attach(self, fields: list[Any]) -> None:
        name, handle = field(fields, 0), number(fields, 1)
        if not isinstance(name, str):
            raise ClientError(server_performatives.INVALID_FIELD, "a link without a name")
        limits = self.host.limits
        if not 0 <= handle < limits.handles or handle in self.links or handle in self._refused:
            raise ClientError(
                server_performatives.INVALID_FIELD, f"a link with handle {handle}, which is in use or too high"
            )
        # The listener's role is the opposite of the one in the client's attach.
        role = Role.SENDER if field(fields, 2) else Role.RECEIVER
        condition: Condition | None
        if (open_links := self.peer.links) >= limits.links:
            condition = Condition(server_performatives.RESOURCE_LIMIT, f"more than {limits.links} links of one client")
        elif limits.link_pool.is_spent(open_links, self.host.links):
            condition = Condition(
                server_performatives.RESOURCE_LIMIT, f"all clients have {self.host.links} links together"
            )
        elif role is Role.RECEIVER:
            condition = self._intake(name, handle, fields)
        else:
            condition = self._outlet(name, handle, fields)
        if condition is not None:
            self._refused.add(handle)
            self.send(server_performatives.attached(name, handle, role, None, None, None))
            self.send(server_performatives.detached(handle, condition))

    def _intake(self, name: str, handle: int, fields: list[Any]) -> Condition | None:
        """Attaches a link over which the client sends; returns the reason if it is refused."""
        target = field(fields, _TARGET)
        if isinstance(target, Described) and target.descriptor in _COORDINATOR:
            self._begin(Coordinator(self, name), handle, fields, performatives.coordinator_target(), None)
            return None
        details = _fields(target)
        if details is None or field(details, _DYNAMIC):
            return Condition(server_performatives.NOT_IMPLEMENTED, "there are no temporary destinations here")
        terminus = _terminus(address_of(details, _TARGET_CAPABILITIES))
        condition = self.host.sends(terminus)
        if condition is not None:
            return condition
        link = Receiver(
            self,
            name,
            terminus or Terminus("", "queue"),
            self._arrived,
            window=WINDOW,
            max_bytes=self.host.max_bytes,
            kept_bytes=0,
        )
        # Some clients compare the address with the one they sent, so its spelling is kept.
        mine = (
            link.terminus._replace(address=details[0]).target() if terminus else server_performatives.anonymous_target()
        )
        self._begin(link, handle, fields, mine, self.host.max_bytes)
        return None

    def _begin(self, link: Receiver, handle: int, fields: list[Any], target: Described, max_bytes: int | None) -> None:
        """Confirms a link over which the client sends, and gives it credit."""
        link.handle = handle
        self._add(link)
        source = Terminus(link.name, "queue").source()
        self.send(server_performatives.attached(link.name, handle, Role.RECEIVER, source, target, max_bytes))
        link.begin(number(fields, 9))

    def _outlet(self, name: str, handle: int, fields: list[Any]) -> Condition | None:
        """Attaches a link over which the client receives; returns the reason if it is refused."""
        details = _fields(field(fields, _SOURCE))
        if details is None or field(details, _DYNAMIC):
            return Condition(server_performatives.NOT_IMPLEMENTED, "there are no temporary destinations here")
        terminus = _terminus(address_of(details, _SOURCE_CAPABILITIES))
        if terminus is None:
            return Condition(server_performatives.INVALID_FIELD, "a source without an address")
        if field(details, _DURABLE) or field(details, _MODE) == _COPY:
            return Condition(
                server_performatives.NOT_IMPLEMENTED, "there are no durable subscriptions and no browsers here"
            )
        wanted = terminus._replace(selector=_selector(field(details, _FILTER)))
        most_bytes = self.host.limits.selector_bytes
        if len((wanted.selector or "").encode()) > most_bytes:
            return Condition(server_performatives.INVALID_FIELD, f"the selector is longer than {most_bytes} bytes")
        link = Sender(self, name, wanted, lambda: self.host.credited(link))
        link.handle = handle
        condition = self.host.receives(link)
        if condition is not None:
            return condition
        self._add(link)
        target = Terminus(name, "queue").target()
        mine = link.terminus._replace(address=details[0]).source()
        self.send(server_performatives.attached(name, handle, Role.SENDER, mine, target, None))
        link.answered(fields)
        link.attached = True
        return None

    def _detached(self, fields: list[Any]) -> None:
        handle = number(fields, 0)
        if handle in self._refused:
            self._refused.discard(handle)
            return
        link = self.links.pop(handle, None)
        if link is None:
            raise ClientError(server_performatives.UNATTACHED_HANDLE, "the end of a link that is not there")
        self._forget(link)
        self.send(server_performatives.detached(handle, None, closed=bool(field(fields, 1))))

    def _add(self, link: Link) -> None:
        self.links[link.handle] = link
        self.host.links += 1

    def _forget(self, link: Link) -> None:
        self.host.links -= 1
        if isinstance(link, Receiver):
            self.peer.hold(-link.held_bytes)
        link.detached(None)
        self.host.left(link)


def _fields(terminus: Any) -> list[Any] | None:
    """Fields of a source or target; None if the value is neither."""
    if isinstance(terminus, Described) and type(terminus.value) is list:
        return terminus.value
    return None


def _terminus(destination: str | None) -> Terminus | None:
    if destination is None:
        return None
    kind, _, name = destination.partition(":")
    return Terminus(name, kind)


def _acquires(properties: Any) -> bool:
    """Returns True if messages for this credit are to be acquired in a transaction (part 4.4.3)."""
    return isinstance(properties, AmqpMap) and any(name == "txn-id" for name, _ in properties)


def _selector(filters: Any) -> str | None:
    """JMS selector among the filters of a source; None if there is none."""
    for name, value in filters if isinstance(filters, AmqpMap) else ():
        is_selector = isinstance(value, Described) and (name == _SELECTORS[0] or value.descriptor in _SELECTORS)
        if is_selector and isinstance(value.value, str):
            return str(value.value)
    return None
