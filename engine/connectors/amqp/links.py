"""The two kinds of links of an AMQP session: messages come by a receiver, and go by a sender.

Specification: OASIS AMQP 1.0, part 2.6. A receiver gives credit as its messages are taken, so that no more are on their
way than `window`; a sender keeps what it has no credit for.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from engine.codecs.amqp.values import Described
from engine.connectors.amqp import performatives
from engine.connectors.amqp.answers import names
from engine.connectors.amqp.frames import frame
from engine.connectors.amqp.performatives import Condition, Role, Terminus, Transfer, field, number
from engine.connectors.amqp.session import serial

if TYPE_CHECKING:
    from collections.abc import Callable, Collection


__all__ = ["Incoming", "Link", "LinkSession", "Receiver", "Sender"]

_HEAD_BYTES = 100
"""Of a transfer's frame at most, apart from its part of the message."""
_DURABILITY, _FILTER, _CAPABILITIES = 1, 7, 10
"""Fields of a source (AMQP 1.0, 3.5.3)."""
_GONE = Condition("amqp:link:detach-forced", "the broker has ended the link")


class LinkSession(Protocol):
    """What links use of the session that they are part of, whichever side began it."""

    channel: int
    max_frame_bytes: int
    """Of what is sent to the other side."""
    remote_window: int
    """How many transfers it takes in now."""

    def give_credit(self, link: Link, delivery_count: int, credit: int) -> None:
        """The other side may send so many messages more."""

    def next_delivery(self) -> int:
        """The number of the next delivery to the other side."""

    def sent_transfer(self) -> None:
        """One more transfer goes out."""


class Link:
    """What both kinds have in common: how it comes to be and how it ends."""

    role: Role
    ends = True
    """Whether leaving it ends it for good; a durable subscription stays."""

    def __init__(self, session: LinkSession, name: str, terminus: Terminus) -> None:
        self.session = session
        self.name = name
        self.terminus = terminus
        self.handle = 0
        """Given by `AmqpSession.attach`."""
        self.attached = False
        self.leaving = False
        """Whether we have ended it."""
        self.fault: Condition | None = None
        """Why the broker did not take it, or has ended it."""

    def attachment(self) -> bytes:
        """What asks for it."""
        raise NotImplementedError

    def answered(self, fields: list[Any]) -> None:
        """The broker's attach; without our terminus in it, a detach that says why follows."""
        terminus = field(fields, 5 if self.role is Role.RECEIVER else 6)
        self.attached = isinstance(terminus, Described) and type(terminus.value) is list

    def detached(self, condition: Condition | None) -> None:
        """The broker has ended it."""
        self.attached = False
        self.fault = condition or _GONE

    def transferred(self, transfer: Transfer) -> None:
        """Part of a message has come."""

    def flowed(self, fields: list[Any]) -> None:
        """The broker has told how much it takes."""


class Incoming(NamedTuple):
    """A message that has come."""

    receiver: Receiver
    delivery_id: int
    message_format: int
    encoded: bytes
    """Only its beginning where it was too large to keep."""
    size: int
    """Bytes as it was sent."""
    settled: bool = False
    """Whether its sender has no interest in what becomes of it."""
    transaction: bytes | None = None
    """What it is part of."""


class Receiver(Link):
    """Messages of one source at the broker."""

    role = Role.RECEIVER

    def __init__(
        self,
        session: LinkSession,
        name: str,
        terminus: Terminus,
        take: Callable[[Incoming], None],
        *,
        window: int,
        max_bytes: int,
        kept_bytes: int,
    ) -> None:
        """`take` is called for each message; of one over `max_bytes` only the first `kept_bytes` are kept."""
        super().__init__(session, name, terminus)
        self.ends = not terminus.durable
        self.filtered = terminus.selector is None
        """Whether the broker says that it applies the selector that was asked for."""
        self.is_topic = False
        """Whether the broker calls its end a topic."""
        self.is_durable = False
        """Whether the broker says that its end outlives the link."""
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
        self.filtered = self.filtered or bool(field(source.value, _FILTER))
        self.is_topic = "topic" in names(field(source.value, _CAPABILITIES))
        self.is_durable = number(source.value, _DURABILITY) > 0
        self.begin(number(fields, 9))

    def begin(self, delivery_count: int) -> None:
        """The other side may send; it counts its deliveries from there."""
        self.attached = True
        self._count = delivery_count
        self._give_credit()

    @property
    def overrun(self) -> bool:
        """Whether more has come than there was credit for."""
        return self._credit < 0

    @property
    def held_bytes(self) -> int:
        """Of a message of which not everything has come."""
        return len(self._partial.kept) if self._partial else 0

    def taken(self) -> None:
        """One of its messages went on."""
        self._waiting -= 1
        if self._credit + self._waiting <= self._window // 2:
            self._give_credit()

    def transferred(self, transfer: Transfer) -> None:
        """See `Link`."""
        partial = self._partial
        if partial is None:
            partial = _Partial(transfer.delivery_id or 0, transfer.message_format or 0)
            partial.settled = transfer.settled
            if transfer.state is not None:
                partial.transaction, _ = performatives.transaction_of(transfer.state)
            if not transfer.more and not transfer.aborted and len(transfer.payload) <= self._max:
                self._complete(partial, transfer.payload, len(transfer.payload))
                return
            self._partial = partial
        if transfer.aborted:
            self._partial = None
            self._counted()
            return
        partial.settled = partial.settled or transfer.settled
        partial.add(transfer.payload, self._max, self._kept)
        if not transfer.more:
            self._partial = None
            self._complete(partial, bytes(partial.kept), partial.size)

    def _complete(self, partial: _Partial, encoded: bytes, size: int) -> None:
        self._counted()
        self._waiting += 1
        form, settled, transaction = partial.message_format, partial.settled, partial.transaction
        self._take(Incoming(self, partial.delivery_id, form, encoded, size, settled, transaction))

    def _counted(self) -> None:
        self._count = serial(self._count + 1)
        self._credit -= 1

    def _give_credit(self) -> None:
        self._credit = self._window - self._waiting
        self.session.give_credit(self, self._count, self._credit)


class _Partial:
    """A message of which not everything has come."""

    __slots__ = ("delivery_id", "kept", "message_format", "settled", "size", "transaction")

    def __init__(self, delivery_id: int, message_format: int) -> None:
        self.delivery_id = delivery_id
        self.message_format = message_format
        self.settled = False
        self.transaction: bytes | None = None
        self.kept = bytearray()
        self.size = 0

    def add(self, piece: bytes, most: int, kept: int) -> None:
        self.size += len(piece)
        self.kept += piece
        if self.size > most:
            del self.kept[kept:]


class _Unsent:
    """A message that waits for credit, or of which not everything went out."""

    __slots__ = ("delivery_id", "encoded", "message_format", "number", "offset")

    def __init__(self, number: int, encoded: bytes, message_format: int) -> None:
        self.number = number
        self.encoded = encoded
        self.message_format = message_format
        self.delivery_id: int | None = None
        self.offset = 0


class Sender(Link):
    """Messages to one target at the broker."""

    role = Role.SENDER

    def __init__(
        self,
        session: LinkSession,
        name: str,
        terminus: Terminus,
        on_credit: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_credit` is called where there may be more credit, before the other side gets back what is not used."""
        super().__init__(session, name, terminus)
        self._on_credit = on_credit
        self.sent = 0
        """Messages that have gone out, whole or not."""
        self.most = 0
        """Bytes of a message that the other side takes; 0: any."""
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
        """Numbers of messages that have not gone out, or not whole."""
        return [each.number for each in self._unsent]

    @property
    def half_sent(self) -> int | None:
        """The delivery of which a part has gone out, and more is to follow."""
        return self._unsent[0].delivery_id if self._unsent else None

    @property
    def room(self) -> int:
        """How many more messages could go out now."""
        # Only the first can have taken its credit already.
        return self._credit - len(self._unsent) + (self.half_sent is not None) if self.attached else 0

    def add(self, number: int, encoded: bytes, message_format: int) -> None:
        """One more message, to go out when there is credit."""
        self._unsent.append(_Unsent(number, encoded, message_format))

    def withdraw(self, numbers: Collection[int]) -> list[int]:
        """Takes back those of the messages that have not begun to go out; their numbers."""
        found = [each.number for each in self._unsent if each.number in numbers and each.delivery_id is None]
        if found:
            self._unsent = deque(each for each in self._unsent if each.number not in found)
        return found

    def flowed(self, fields: list[Any]) -> None:
        """See `Link`."""
        self._credit = max(number(fields, 6) - serial(self._count - number(fields, 5)), 0)
        self._on_credit()
        if field(fields, 8):
            # It wants its credit back where there is nothing to send.
            spent = 0 if self._unsent else self._credit
            self._count, self._credit = serial(self._count + spent), self._credit - spent
            self.session.give_credit(self, self._count, self._credit)

    def too_large(self) -> list[int]:
        """Numbers of messages that the broker says it would not take, each told once."""
        found, self._too_large = self._too_large, []
        return found

    def frames(self, under_way: dict[int, int]) -> list[bytes]:
        """What may go out now, the oldest first. `under_way` gets the number of each message by its delivery."""
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
            head = performatives.transfer(self.handle, each.delivery_id, tag, each.message_format, more=more)
            frames.append(frame(session.channel, head + part))
            session.sent_transfer()
            if not more:
                self._unsent.popleft()
        return frames
