"""What sources and sinks are: the small contracts between one system's connector and the loops that run it.

A connector does the wire work of one system and nothing else. Reconnecting, back-off, the journal, acknowledgement,
order, counting and stopping are written once, in `source_loop` and `sink_loop`. A connector is called from one thread
only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

from routes.immutable import immutable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from threading import Event

    from engine.journal import Journal
    from engine.message import Message

__all__ = [
    "Committing",
    "Delivery",
    "Holding",
    "NotConnectedError",
    "Outcome",
    "Outgoing",
    "Placed",
    "Redelivery",
    "RefusedError",
    "Sink",
    "Source",
    "Transactional",
]


@immutable
class Delivery:
    """One message as a source hands it over."""

    message: Message
    token: object
    """What `Source.acknowledge` takes back; it means something only to its source and its connection."""
    size: int | None = None
    """Bytes of the body as it was sent, where it was too large to keep and `message.body` is only its beginning."""
    fault: str | None = None
    """Why it cannot be read as its source should; `message.body` then is what came, of type bytes. One line."""
    is_past: bool = False
    """Whether it was acknowledged long ago, and its system has forgotten that: to be acknowledged, nothing else."""


@immutable
class Outgoing:
    """One message as a sink gets it."""

    number: int
    """What `Outcome` names it by; numbers go up, and a message keeps its own when it is sent again."""
    message: Message
    address: str
    """Where it goes, as `routes.targets.ADDRESSES` allows it."""
    id: str
    """The same whenever this message is sent to this destination, and no other's: for systems that know repetitions."""
    reply_to: str | None = None
    """Where the other side is to send its reply, in the spelling of `address`; None: it is no request."""
    timestamp_ms: int = 0
    """When the router gave it to the sink, milliseconds since 1970; the same whenever it is sent again. It grows in the
    order of messages of one key, as far as clocks do."""


@immutable
class Outcome:
    """What became of one message."""

    number: int
    """`Outgoing.number`."""
    refusal: str | None = None
    """Why the other side will never take this message, one line for users; None: it has it, or never was given it."""
    expired: bool = False
    """Whether the message expired before the other side had it, so that it is dropped."""


@immutable
class Redelivery:
    """How a system gives messages again: for how long one side does not know what the other has."""

    returns_seconds: float
    """For how long after connecting what an earlier connection left open may take to come again."""
    doubt_seconds: float
    """For how long an acknowledgement may be lost without anybody knowing: a dead connection is noticed by then.

    0: what was acknowledged never comes again.
    """
    is_marked: bool = True
    """Whether a message that was given to another consumer before says so, by JMSRedelivered."""


class NotConnectedError(Exception):
    """There is no working connection; the loop closes the source, waits and connects again. One line for users."""

    def __init__(self, reason: str, back_off_seconds: float | None = None) -> None:
        """`back_off_seconds` is given where asking again soon would be wrong, as after a refused login."""
        super().__init__(reason)
        self.back_off_seconds = back_off_seconds


class RefusedError(Exception):
    """A message cannot be put in the form of this system, now or ever. One line for users."""


class Source(Protocol):
    """One connection to a system that messages are taken from.

    Every delivery is handed over again, by this or by another connection, unless it was acknowledged: a source never
    acknowledges by itself.
    """

    @property
    def address(self) -> str:
        """Where it connects to and what it reads, for people; free of secrets."""

    @property
    def redelivery(self) -> Redelivery | None:
        """Of the connection there is; None where nothing that the journal has comes again, or nobody can tell."""

    def connect(self) -> None:
        """Connects and subscribes; returns when the other side has confirmed both. Also used after `close`.

        Raises:
            NotConnectedError: it could not.
            BridgeError: it never will, such as for a missing certificate file.
        """

    def receive(self, timeout_seconds: float) -> Delivery | None:
        """The next delivery; None if none came in time. What is not asked for stays with the broker.

        Raises:
            NotConnectedError: the connection is gone; its deliveries can no longer be acknowledged.
        """

    def acknowledge(self, tokens: Sequence[object]) -> None:
        """The broker may forget these deliveries, given in the order in which they were received.

        Raises:
            NotConnectedError: the connection is gone; any of them may come again.
        """

    def tend(self) -> None:
        """Shows the other side that everything is in order while nothing is asked for. Hands nothing over.

        Called several times a second while the journal takes nothing.

        Raises:
            NotConnectedError: the connection is gone.
        """

    def close(self) -> None:
        """Ends the connection; deliveries not acknowledged go back. Never raises, may be called at any time.

        Where the connection still works it returns only when the broker has taken all acknowledgements.
        """


@runtime_checkable
class Placed(Protocol):
    """A source whose system counts its messages and knows up to which all are acknowledged, but may forget that."""

    def place(self) -> str:
        """That, as a text for `recall`; empty where there is no such thing.

        Raises:
            NotConnectedError: the connection is gone.
        """

    def recall(self, notes: Sequence[str]) -> None:
        """What `place` said before, on this or other connections, the latest of each worker.

        Deliveries from here on that were acknowledged by then are `Delivery.is_past`.
        """


@runtime_checkable
class Transactional(Protocol):
    """A source that keeps its position in the journal's own Kafka, and moves it in one transaction with the journal."""

    def journal(self, stop: Event, while_full: Callable[[], None]) -> Journal:
        """The journal of one connection, in place of an ordinary one; `acknowledge` ends its transactions.

        Raises:
            JournalError: Kafka has not answered.
            HardFailureError: Kafka refuses the bridge.
        """


@runtime_checkable
class Committing(Protocol):
    """A source that also brings transactions of its clients into the journal, by itself and beside its deliveries."""

    def committed(self) -> int:
        """How many messages since it was last asked: for the figures."""

    @property
    def stalled_seconds(self) -> float:
        """For how long Kafka has committed nothing although there is something to commit."""


class Sink(Protocol):
    """One connection to a system that messages are given to.

    A message counts as given only when the other side has confirmed it. What was sent on a connection that ended
    before is sent again on the next one, in the same order and with the same `Outgoing.id`.
    """

    most_under_way: int
    """Messages sent and not confirmed, at most."""
    settle_seconds: float
    """For how long the other side may still be taking in what came by a connection that was lost. Who sends that again
    sooner, and others after it, may see these stand before it."""

    @property
    def address(self) -> str:
        """Where it connects to, for people; free of secrets."""

    def connect(self) -> None:
        """Connects; returns when the other side has confirmed that. Also used after `close`.

        Raises:
            NotConnectedError: it could not.
            BridgeError: it never will, such as for a missing certificate file.
        """

    def send(self, messages: Sequence[Outgoing]) -> None:
        """Sends messages in this order, without waiting for what the other side says of them.

        What cannot be sent at all is an `Outcome` with a refusal, as what the other side refuses.

        Raises:
            NotConnectedError: the connection is gone.
        """

    def outcomes(self, timeout_seconds: float) -> Sequence[Outcome]:
        """What is known of messages sent, each told once; waits so long for the first, 0: not at all.

        Raises:
            NotConnectedError: the connection is gone.
        """

    def close(self) -> None:
        """Ends the connection. Never raises, may be called at any time."""


@runtime_checkable
class Holding(Protocol):
    """A sink that keeps messages for whom it may concern: nobody waits for those at the end."""

    @property
    def given(self) -> int:
        """How many messages somebody has and has not answered."""

    def relieve(self) -> None:
        """Makes room where no more can be held and more is there: messages that nobody takes give way to others."""
