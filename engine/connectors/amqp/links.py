"""The links of an AMQP session: receivers take messages in, senders send them (OASIS AMQP 1.0, part 2.6).

The links serve both the bridge's connections to brokers and those of clients to a listener; "remote end" stands for
either. A receiver gives new credit as its messages are taken, so that at most `window` of them are under way. A sender
keeps messages until it has credit for them.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from engine.connectors.amqp import performatives
from engine.connectors.amqp.codec.values import Described
from engine.connectors.amqp.frames import frame
from engine.connectors.amqp.performatives import Condition, Role, Terminus, Transfer, field, names, number, serial

if TYPE_CHECKING:
    from collections.abc import Callable, Collection


__all__ = ["IncomingTransfer", "Link", "LinkSession", "Receiver", "Sender"]

_HEAD_BYTES = 100
"""Upper bound for the bytes of a transfer frame beside its part of the message."""
_ADDRESS, _DURABILITY, _FILTER, _CAPABILITIES = 0, 1, 7, 10
"""Indexes of fields of a source (AMQP 1.0, 3.5.3)."""
_GONE = Condition("amqp:link:detach-forced", "the broker has ended the link")


class LinkSession(Protocol):
    """The part of a session that its links use, whichever side opened the connection."""

    channel: int
    max_frame_bytes: int
    """Largest frame that the remote end accepts."""
    remote_window: int
    """Number of transfers that the remote end's session window still allows."""

    def give_credit(self, link: Link, delivery_count: int, credit: int) -> None:
        """Sends a flow with the delivery count and the credit of a link."""

    def next_delivery(self) -> int:
        """Returns a new delivery id for a message to the remote end."""

    def sent_transfer(self) -> None:
        """Counts a transfer that is sent, and takes it off the session window."""


class Link:
    """Base class of receivers and senders: attaching and detaching."""

    role: Role
    ends = True
    """True if leaving ends the link for good; False for a durable subscription, which stays."""

    def __init__(self, session: LinkSession, name: str, terminus: Terminus) -> None:
        self.session = session
        self.name = name
        self.terminus = terminus
        self.handle = 0
        """Handle of this end, assigned by the session."""
        self.attached = False
        self.leaving = False
        """True if this end has detached the link."""
        self.fault: Condition | None = None
        """Reason why the broker refused or ended the link."""

    def attachment(self) -> bytes:
        """Returns the attach performative that asks for the link."""
        raise NotImplementedError

    def answered(self, fields: list[Any]) -> None:
        """Handles the broker's attach. One without a terminus is a refusal; a detach with the reason follows it."""
        terminus = field(fields, 5 if self.role is Role.RECEIVER else 6)
        self.attached = isinstance(terminus, Described) and type(terminus.value) is list

    def detached(self, condition: Condition | None) -> None:
        """Handles the broker's detach."""
        self.attached = False
        self.fault = condition or _GONE

    def transferred(self, transfer: Transfer) -> None:
        """Handles a transfer: a message or a part of it."""

    def flowed(self, fields: list[Any]) -> None:
        """Handles a flow, in which the remote end tells its credit."""


class IncomingTransfer(NamedTuple):
    """A message that a receiver has received completely."""

    receiver: Receiver
    delivery_id: int
    message_format: int
    encoded: bytes
    """The encoded message; only its beginning if the message was too large to keep."""
    size: int
    """Bytes of the message as it was sent."""
    settled: bool = False
    """True if the sender has settled the message and needs no outcome."""
    transaction: bytes | None = None
    """Id of the transaction in which the message was sent; None outside of transactions."""


class Receiver(Link):
    """A link that takes in the messages of one source."""

    role = Role.RECEIVER

    def __init__(
        self,
        session: LinkSession,
        name: str,
        terminus: Terminus,
        take: Callable[[IncomingTransfer], None],
        *,
        window: int,
        max_bytes: int,
        kept_bytes: int,
    ) -> None:
        """Creates the receiver; `take` is called with each complete message.

        A message of more than `max_bytes` is cut to its first `kept_bytes`.
        """
        super().__init__(session, name, terminus)
        self.ends = not terminus.durable
        self.filtered = terminus.selector is None
        """True if no selector was asked for, or the broker says that it applies the selector."""
        self.is_topic = False
        """True if the broker says that its source is a topic."""
        self.is_durable = False
        """True if the broker says that its source outlives the link."""
        self.address = ""
        """Address of the source as the broker says it, such as the name that it gave to a dynamic one."""
        self._take = take
        self._window = window
        self._max = max_bytes
        self._kept = kept_bytes
        self._count = 0
        self._credit = 0
        self._waiting = 0
        self._partial: _Partial | None = None

    def attachment(self) -> bytes:
        """See `Link`."""
        return performatives.attach(self.name, self.handle, self.role, self.terminus.source(), self.terminus.target())

    def answered(self, fields: list[Any]) -> None:
        """See `Link`."""
        super().answered(fields)
        if not self.attached:
            return
        source = field(fields, 5)
        self.address = str(field(source.value, _ADDRESS) or "")
        self.filtered = self.filtered or bool(field(source.value, _FILTER))
        self.is_topic = "topic" in names(field(source.value, _CAPABILITIES))
        self.is_durable = number(source.value, _DURABILITY) > 0
        self.begin(number(fields, 9))

    def begin(self, delivery_count: int) -> None:
        """Starts to receive: takes over the sender's delivery count and gives the first credit."""
        self.attached = True
        self._count = delivery_count
        self._give_credit()

    @property
    def overrun(self) -> bool:
        """True if more messages have arrived than there was credit for."""
        return self._credit < 0

    @property
    def held_bytes(self) -> int:
        """Bytes kept of a message that is still incomplete."""
        return len(self._partial.kept) if self._partial else 0

    def taken(self) -> None:
        """Notes that a message has left the window, and gives new credit when half of the window is free."""
        self._waiting -= 1
        if self._credit + self._waiting <= self._window // 2:
            self._give_credit()

    def transferred(self, transfer: Transfer) -> None:
        """See `Link`."""
        partial = self._partial
        if partial is None:
            transaction = None
            if transfer.state is not None:
                transaction, _ = performatives.transaction_of(transfer.state)
            number, form, encoded = transfer.delivery_id or 0, transfer.message_format or 0, transfer.payload
            if not transfer.more and not transfer.aborted and len(encoded) <= self._max:
                self._complete(
                    IncomingTransfer(self, number, form, encoded, len(encoded), transfer.settled, transaction)
                )
                return
            self._partial = partial = _Partial(number, form, transaction)
        if transfer.aborted:
            self._partial = None
            self._counted()
            return
        partial.settled = partial.settled or transfer.settled
        partial.add(transfer.payload, self._max, self._kept)
        if not transfer.more:
            self._partial = None
            self._complete(partial.complete(self))

    def _complete(self, incoming: IncomingTransfer) -> None:
        self._counted()
        self._waiting += 1
        self._take(incoming)

    def _counted(self) -> None:
        self._count = serial(self._count + 1)
        self._credit -= 1

    def _give_credit(self) -> None:
        self._credit = self._window - self._waiting
        self.session.give_credit(self, self._count, self._credit)


class _Partial:
    """A message that has arrived only in part."""

    __slots__ = ("delivery_id", "kept", "message_format", "settled", "size", "transaction")

    def __init__(self, delivery_id: int, message_format: int, transaction: bytes | None) -> None:
        self.delivery_id = delivery_id
        self.message_format = message_format
        self.transaction = transaction
        self.settled = False
        self.kept = bytearray()
        self.size = 0

    def add(self, piece: bytes, most: int, kept: int) -> None:
        self.size += len(piece)
        self.kept += piece
        if self.size > most:
            del self.kept[kept:]

    def complete(self, receiver: Receiver) -> IncomingTransfer:
        """Makes the message of which all parts have arrived."""
        encoded = bytes(self.kept)
        return IncomingTransfer(
            receiver, self.delivery_id, self.message_format, encoded, self.size, self.settled, self.transaction
        )


class _Unsent:
    """A message that waits for credit, or has been sent only in part."""

    __slots__ = ("delivery_id", "encoded", "message_format", "number", "offset")

    def __init__(self, number: int, encoded: bytes, message_format: int) -> None:
        self.number = number
        self.encoded = encoded
        self.message_format = message_format
        self.delivery_id: int | None = None
        self.offset = 0


class Sender(Link):
    """A link that sends messages to one target."""

    role = Role.SENDER

    def __init__(
        self,
        session: LinkSession,
        name: str,
        terminus: Terminus,
        on_credit: Callable[[], None] = lambda: None,
    ) -> None:
        """Creates the sender with a callback for new credit.

        `on_credit` is called after each flow of the remote end, before unused credit is given back to a remote end that
        asks for that (drain).
        """
        super().__init__(session, name, terminus)
        self._on_credit = on_credit
        self.state: Described | None = None
        """Delivery state of the messages sent from now on, which names their transaction; None: they are in none."""
        self.sent = 0
        """Number of messages sent, at least in part."""
        self.most = 0
        """Largest message that the remote end accepts, in bytes; 0: no limit."""
        self._too_large: list[int] = []
        self._count = 0
        self._credit = 0
        self._unsent: deque[_Unsent] = deque()

    def attachment(self) -> bytes:
        """See `Link`."""
        source = Terminus(self.name, self.terminus.kind).source()
        return performatives.attach(self.name, self.handle, self.role, source, self.terminus.target())

    def answered(self, fields: list[Any]) -> None:
        """See `Link`."""
        super().answered(fields)
        self.most = number(fields, 10)

    @property
    def unsent(self) -> list[int]:
        """Numbers of the messages that have not been sent completely."""
        return [each.number for each in self._unsent]

    @property
    def half_sent(self) -> int | None:
        """Delivery id of the message that has been sent only in part; None if there is none."""
        return self._unsent[0].delivery_id if self._unsent else None

    @property
    def room(self) -> int:
        """Number of messages that could still be added and sent at once."""
        # Only the first waiting message can have taken its credit already.
        return self._credit - len(self._unsent) + (self.half_sent is not None) if self.attached else 0

    def add(self, number: int, encoded: bytes, message_format: int) -> None:
        """Adds a message, to be sent when there is credit."""
        self._unsent.append(_Unsent(number, encoded, message_format))

    def withdraw(self, numbers: Collection[int]) -> list[int]:
        """Takes back those of the given messages of which nothing has been sent; returns their numbers."""
        withdrawn = [each.number for each in self._unsent if each.number in numbers and each.delivery_id is None]
        if withdrawn:
            self._unsent = deque(each for each in self._unsent if each.number not in withdrawn)
        return withdrawn

    def flowed(self, fields: list[Any]) -> None:
        """See `Link`."""
        self._credit = max(number(fields, 6) - serial(self._count - number(fields, 5)), 0)
        self._on_credit()
        if field(fields, 8):
            # The remote end asks to drain: credit that no message waits for is given back.
            spent = 0 if self._unsent else self._credit
            self._count, self._credit = serial(self._count + spent), self._credit - spent
            self.session.give_credit(self, self._count, self._credit)

    def too_large(self) -> list[int]:
        """Returns the numbers of messages that exceed the remote end's limit, each one once."""
        found, self._too_large = self._too_large, []
        return found

    def frames(self, under_way: dict[int, int]) -> list[bytes]:
        """Encodes the transfers that credit and the session window allow now, oldest message first.

        `under_way` receives the number of each message that begins to be sent, by its delivery id.
        """
        frames = []
        session = self.session
        most = session.max_frame_bytes - _HEAD_BYTES
        while self._unsent and self.attached and session.remote_window > 0:
            each = self._unsent[0]
            if each.delivery_id is None:
                if self._credit <= 0:
                    break
                if 0 < self.most < len(each.encoded):
                    self._too_large.append(self._unsent.popleft().number)
                    continue
                self.sent += 1
                self._credit -= 1
                self._count = serial(self._count + 1)
                each.delivery_id = session.next_delivery()
                under_way[each.delivery_id] = each.number
            part = each.encoded if len(each.encoded) <= most else each.encoded[each.offset : each.offset + most]
            each.offset += len(part)
            more = each.offset < len(each.encoded)
            tag = each.number.to_bytes(8)
            form = each.message_format
            head = performatives.transfer(self.handle, each.delivery_id, tag, form, more=more, state=self.state)
            frames.append(frame(session.channel, head + part))
            session.sent_transfer()
            if not more:
                self._unsent.popleft()
        return frames
