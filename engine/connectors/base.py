"""Contracts between a connector, which serves one system, and the loops that run connectors.

A connector does the wire work of one system and nothing else. Reconnecting, back-off, the journal, acknowledgement,
order, counting and stopping are written once, in `source_loop` and `sink_loop`. The loop calls a connector from one
thread only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

from routes.immutable import immutable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from threading import Event

    from engine.kafka.journal import Journal
    from engine.message import Message

__all__ = [
    "RESERVED",
    "UNKNOWN_END",
    "Committing",
    "Delivery",
    "Exclusive",
    "Expiring",
    "Holding",
    "LoginEndsError",
    "MissingError",
    "NotConnectedError",
    "Outcome",
    "Outgoing",
    "Positioned",
    "Redelivery",
    "RefusedError",
    "Sink",
    "Source",
    "Transactional",
    "WrappedSource",
]

RESERVED = ("jmsbridge.", "JMS_JmsBridge_")
"""Prefixes of names reserved for bridges; dropping them keeps other senders from posing as a bridge."""


@immutable
class Delivery:
    """Message as a source hands it to the loop, with the token to acknowledge it by."""

    message: Message
    token: object
    """Token for `Source.acknowledge`; valid only for the source and the connection that made it."""
    size: int | None = None
    """Bytes of the body as sent, if it was too large to keep and `message.body` is only its beginning; else None."""
    fault: str | None = None
    """Reason, in one line, why the source cannot decode the message; `message.body` then holds the received bytes, of
    type bytes. None if it can."""
    has_own_id: bool = True
    """False if the source made up the message id, since its sender gave none: delivered again, the message would get
    another one."""
    is_past: bool = False
    """True if the message was acknowledged before and its system has forgotten that: the loop only acknowledges it
    again."""


UNKNOWN_END = 2**63 - 1
"""Stands for the end of a partition that is not known: greater than any offset."""


@immutable
class Outgoing:
    """Message as the loop hands it to a sink."""

    number: int
    """Number by which `Outcome` refers to the message. Numbers increase; a message keeps its number when it is sent
    again."""
    message: Message
    address: str
    """Address to send to, in a form that the addresses of the system allow."""
    id: str
    """Unique id of this message at this destination, unchanged when it is sent again: for systems that drop
    duplicates."""
    reply_to: str | None = None
    """Address to which the receiver is to send its reply, in the spelling of `address`; None if the message is not a
    request."""
    timestamp_ms: int = 0
    """Time at which the router wrote the message for the sink, in milliseconds since 1970; unchanged when it is sent
    again. It grows in the order of messages of one key, as far as clocks do."""
    partition: int = -1
    """Partition of the message's record in the sink's topic; -1 for a message that is from no topic."""
    offset: int = 0
    """Offset of that record; messages of a partition are handed over in the order of their offsets."""
    end: int = UNKNOWN_END
    """Offset behind the last record of that partition that was known when the message was taken."""
    key: bytes | None = None
    """Key of that record, as the route chose it; None if it has none, or the message is from no topic."""


@immutable
class Outcome:
    """Result of sending one message."""

    number: int
    """`Outgoing.number`."""
    refusal: str | None = None
    """Reason, in one line for users, why the system will never accept this message; None if the system has accepted it
    or has no receiver for it, or if it expired."""
    expired: bool = False
    """True if the message expired before the system accepted it, so that it is dropped."""


@immutable
class Redelivery:
    """Redelivery behaviour of a system: how long deliveries and acknowledgements of a lost connection stay in doubt."""

    returns_seconds: float
    """Seconds after connecting in which deliveries that an earlier connection left unacknowledged may still arrive."""
    doubt_seconds: float
    """Seconds after sending in which an acknowledgement may be lost unnoticed; a dead connection is detected by then.

    0: an acknowledged message is never delivered again.
    """
    is_marked: bool = True
    """True if the system marks a message that another consumer had before, by JMSRedelivered."""


class NotConnectedError(Exception):
    """No working connection exists; the loop closes the connector, waits and connects again.

    The text is one line for users.
    """

    def __init__(self, reason: str, back_off_seconds: float | None = None) -> None:
        """`back_off_seconds` is the shortest wait where an early retry would be wrong, as after a refused login."""
        super().__init__(reason)
        self.back_off_seconds = back_off_seconds


class LoginEndsError(NotConnectedError):
    """The login of a connection will end, and nothing is under way on it: a new connection takes its place.

    A source or sink raises it with nothing in doubt, so that nothing is sent or delivered twice for it.
    """


class MissingError(NotConnectedError):
    """The system answers, but so far lacks a resource that a source or sink needs."""


class RefusedError(Exception):
    """A message can never be expressed in the form that this system needs. The text is one line for users."""


@runtime_checkable
class Expiring(Protocol):
    """Source whose system may remove messages before the source has read them."""

    @property
    def removed(self) -> int:
        """Number of messages removed so, since the source was made."""


class Source(Protocol):
    """Connection to a system from which the bridge receives messages.

    A delivery that is not acknowledged is delivered again, on this or another connection: a source never acknowledges
    by itself.
    """

    @property
    def address(self) -> str:
        """Server and destinations of the source, as text without secrets for logs and states."""

    @property
    def redelivery(self) -> Redelivery | None:
        """Redelivery behaviour of the current connection; None to read no tail of the journal.

        None is right where the system never delivers again what the journal has, or where a redelivery cannot be
        recognised.
        """

    def connect(self) -> None:
        """Connects and subscribes; returns when the broker has confirmed both. Also called after `close`.

        Raises:
            NotConnectedError: the attempt failed.
            BridgeError: no attempt can succeed, for example because a certificate file is missing.
        """

    def receive(self, timeout_seconds: float) -> Delivery | None:
        """Returns the next delivery; None if none arrives within `timeout_seconds`.

        Messages that the loop has not asked for stay with the broker.

        Raises:
            NotConnectedError: the connection is lost; its deliveries can no longer be acknowledged.
        """

    def acknowledge(self, tokens: Sequence[object]) -> None:
        """Acknowledges deliveries by their tokens, given in the order in which they were received.

        Raises:
            NotConnectedError: the connection is lost; any of these deliveries may arrive again.
        """

    def tend(self) -> None:
        """Keeps the connection alive, for example with heart-beats, while the loop asks for no delivery.

        Hands over no delivery. Called several times a second while the journal accepts nothing.

        Raises:
            NotConnectedError: the connection is lost.
        """

    def close(self) -> None:
        """Ends the connection; unacknowledged deliveries return to the broker. Never raises, may be called at any time.

        If the connection still works, it returns only after the broker has received all acknowledgements.
        """


class WrappedSource:
    """Source that passes every call on to another source; a subclass changes some of them."""

    def __init__(self, source: Source) -> None:
        self._source = source

    @property
    def address(self) -> str:
        """Address of the wrapped source."""
        return self._source.address

    @property
    def redelivery(self) -> Redelivery | None:
        """Redelivery behaviour of the wrapped source."""
        return self._source.redelivery

    def connect(self) -> None:
        """Connects, see `Source`."""
        self._source.connect()

    def receive(self, timeout_seconds: float) -> Delivery | None:
        """Returns the next delivery, see `Source`."""
        return self._source.receive(timeout_seconds)

    def acknowledge(self, tokens: Sequence[object]) -> None:
        """Acknowledges deliveries, see `Source`."""
        self._source.acknowledge(tokens)

    def tend(self) -> None:
        """Keeps the connection alive, see `Source`."""
        self._source.tend()

    def close(self) -> None:
        """Ends the connection, see `Source`."""
        self._source.close()


@runtime_checkable
class Positioned(Protocol):
    """Source whose system numbers its messages and knows up to which all are acknowledged.

    The system may lose that knowledge and then deliver acknowledged messages again.
    """

    def position(self) -> str:
        """Returns the system's current acknowledgement position as text for `recall`; empty if there is none.

        Raises:
            NotConnectedError: the connection is lost.
        """

    def recall(self, notes: Sequence[str]) -> None:
        """Takes texts that `position` returned before, on this or other connections: the latest of each worker.

        Later deliveries that were acknowledged by then have `Delivery.is_past`.
        """


@runtime_checkable
class Transactional(Protocol):
    """Source with its position in the journal's Kafka cluster, committed in one transaction with the journal."""

    def journal(self, stop: Event, while_full: Callable[[], None]) -> Journal:
        """Makes the journal of one connection, in place of an ordinary one; `acknowledge` commits its transactions.

        `stop` and `while_full` are those of `Journal`.

        Raises:
            JournalError: Kafka does not answer.
            HardFailureError: Kafka refuses the bridge.
        """


@runtime_checkable
class Committing(Protocol):
    """Source that journals its clients' transactions itself, besides the deliveries that it hands to the loop."""

    def committed(self) -> int:
        """Returns the number of messages committed to the journal since the last call, for the metrics."""

    @property
    def stalled_seconds(self) -> float:
        """Seconds since Kafka last committed a transaction, while one waits; 0 if none waits."""


class Sink(Protocol):
    """Connection to a system to which the bridge sends messages.

    A message counts as sent only when the system has confirmed it. Unconfirmed messages of a connection that ended are
    sent again on the next one, in the same order and with the same `Outgoing.id`.
    """

    most_under_way: int
    """Largest number of messages sent and not yet confirmed; from the latest connection on."""
    settle_seconds: float
    """Seconds in which the system may still be accepting messages from a lost connection. If these messages are sent
    again sooner, with others after them, the others may be placed before them."""

    @property
    def address(self) -> str:
        """Server that the sink connects to, as text without secrets for logs and states."""

    def connect(self) -> None:
        """Connects; returns when the system has confirmed the connection. Also called after `close`.

        Raises:
            NotConnectedError: the attempt failed.
            BridgeError: no attempt can succeed, for example because a certificate file is missing.
        """

    def send(self, messages: Sequence[Outgoing]) -> None:
        """Sends messages in the given order, without waiting for confirmations.

        A message that cannot be sent at all gets an `Outcome` with a refusal, like one that the system refuses.

        Raises:
            NotConnectedError: the connection is lost.
        """

    def outcomes(self, timeout_seconds: float) -> Sequence[Outcome]:
        """Returns new results of messages sent, each once; waits up to `timeout_seconds` for the first (0: not at all).

        Raises:
            NotConnectedError: the connection is lost.
        """

    def close(self) -> None:
        """Ends the connection. Never raises, may be called at any time."""


@runtime_checkable
class Exclusive(Protocol):
    """Sink that may keep the position of each partition of its topic at its system."""

    @property
    def holds_partitions(self) -> bool:
        """True if another worker can send messages of a partition only after the connection has ended."""


@runtime_checkable
class Holding(Protocol):
    """Sink that holds messages until a client asks for them; a loop that stops does not wait for these."""

    @property
    def given(self) -> int:
        """Number of messages that clients have received and not answered yet."""

    def relieve(self) -> None:
        """Makes room when the sink is full and more waits: messages that no client takes give way to others."""
