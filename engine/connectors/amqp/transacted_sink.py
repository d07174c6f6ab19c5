"""Sink for AMQP 1.0 brokers whose messages belong to transactions, which also replace the messages of a position queue.

A link to the broker's coordinator declares each transaction and discharges it. Transfers name their transaction in
their delivery state, and so do the outcomes by which position messages are taken out of their queue (OASIS AMQP 1.0,
part 4). `PositionSink` decides on the messages of a transaction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.connectors.amqp import performatives
from engine.connectors.amqp.annotations import MESSAGE_TYPE, MESSAGE_TYPES
from engine.connectors.amqp.codec.sections import VALUE, Header, Sections, decode, encode_sections
from engine.connectors.amqp.codec.values import AmqpError, AmqpMap, Byte
from engine.connectors.amqp.links import Receiver, Sender
from engine.connectors.amqp.performatives import (
    ACCEPTED,
    Condition,
    DeliveryState,
    Role,
    Terminus,
    condition_of,
    disposition,
    field,
    transactional,
)
from engine.connectors.amqp.sink import AmqpSink
from engine.connectors.base import NotConnectedError
from engine.connectors.features import Feature, refusal
from engine.connectors.position_sink import POSITION_PROPERTY, PositionMessage, position_selector
from engine.message import BodyType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.connectors.amqp.codec.values import Described
    from engine.connectors.amqp.links import IncomingTransfer, LinkSession
    from engine.connectors.amqp.settings import AmqpSinkConfig
    from engine.connectors.endpoint import SystemEndpoint

__all__ = ["TransactedAmqpSink"]

_WINDOW = 10
_MOST_BYTES = 64 * 1024
_TEXT = Byte(MESSAGE_TYPES[BodyType.TEXT])
_FORMAT = 0


class TransactedAmqpSink(AmqpSink):
    """Sink of one worker, see `TransactedSink`."""

    gives_duplicate_ids = False
    """Artemis would undo a transaction for a message that it has already."""

    def __init__(self, endpoint: SystemEndpoint[AmqpSinkConfig], worker: int, queue: str) -> None:
        """Sets up the sink without connecting; `queue` is the position queue. SetupError as `AmqpSink`."""
        super().__init__(endpoint, worker)
        self._queue = queue
        self._coordinator = _CoordinatorLink(self._session)
        self._watching: list[Receiver] = []
        self._arrived: list[PositionMessage] = []
        self._declare = 0
        """Number of the latest declare."""
        self._transaction: bytes | None = None
        """Id of the open transaction; None: the broker has not answered its declare yet."""
        self._is_spoilt = False
        """True if the broker has refused a message of the open transaction, which may be committed no more."""

    def connect(self) -> None:
        """Connects as `AmqpSink`, and asks for transactions and for the position queue.

        Raises:
            NotConnectedError: this failed, or the broker refuses one of the two.
            HardFailureError: the broker does not honour a feature that the configuration asks for.
        """
        self._transaction, self._is_spoilt = None, False
        self._watching.clear()
        self._arrived.clear()
        super().connect()
        self._coordinator = _CoordinatorLink(self._session)
        # Of no sink: a receiver of the sink's own positions would take them ahead of their use.
        probe = self._receiver("")
        for link in (self._coordinator, probe):
            self._session.attach(link)
            self._session.await_attached(link)
        if not probe.filtered:
            instead = "its attach has no filter, so each sink would get the positions of all"
            server = self._session.server or str(self._session.endpoint)
            raise refusal(self._sink, Feature.POSITIONS, self._queue, server, instead)

    def begin(self, number: int) -> None:
        """See `TransactedSink`: messages wait until the broker has answered the declare."""
        self._transaction, self._is_spoilt = None, False
        self._declare = number
        self._ask(number, performatives.declare())

    def watch(self, name: str) -> None:
        """See `TransactedSink`."""
        link = self._receiver(name)
        self._watching.append(link)
        self._session.attach(link)

    def arrived(self) -> Sequence[PositionMessage]:
        """See `TransactedSink`."""
        arrived, self._arrived = self._arrived, []
        return arrived

    def replace(self, number: int, tokens: Sequence[Any], name: str, text: str) -> None:
        """See `TransactedSink`."""
        transaction = self._whole_transaction()
        taken = transactional(transaction, ACCEPTED)
        self._session.send(*(disposition(Role.RECEIVER, token, token, taken) for token in tokens))
        sections = Sections(
            header=Header(durable=True),
            message_annotations=AmqpMap([(MESSAGE_TYPE, _TEXT)]),
            application_properties=AmqpMap([(POSITION_PROPERTY, name)]),
            body=VALUE,
            content=text,
        )
        link = self._link(f"queue/{self._queue}")
        self._open[number] = link.terminus.destination
        link.add(number, encode_sections(sections), _FORMAT)
        self._push()

    def commit(self, number: int) -> None:
        """See `TransactedSink`."""
        self._ask(number, performatives.discharge(self._whole_transaction()))

    def _ask(self, number: int, request: Described) -> None:
        """Sends a request to the coordinator, whose outcome has that number."""
        self._open[number] = self._coordinator.terminus.destination
        self._coordinator.add(number, encode_sections(Sections(body=VALUE, content=request)), _FORMAT)
        self._push()

    def _whole_transaction(self) -> bytes:
        """Returns the id of the open transaction; NotConnectedError if it can no longer be committed."""
        if self._failure is not None:
            raise self._failure
        if self._is_spoilt or self._transaction is None:
            msg = "the broker has refused a message, so its transaction is undone and the others are sent again"
            raise NotConnectedError(msg)
        return self._transaction

    def _receiver(self, name: str) -> Receiver:
        spelt = self._traits.spelling("queue", self._queue)
        terminus = Terminus(self._queue, "queue", position_selector(name), spelt=spelt)
        self._named += 1
        link = f"{terminus.destination}#{self._named}"
        return Receiver(
            self._session, link, terminus, self._received, window=_WINDOW, max_bytes=_MOST_BYTES, kept_bytes=0
        )

    def _received(self, incoming: IncomingTransfer) -> None:
        incoming.receiver.taken()
        try:
            sections = decode(incoming.encoded)
        except AmqpError as error:
            raise self._session.fail(
                f"the position queue {self._queue} has a message that is not AMQP: {error}"
            ) from error
        properties = dict(sections.application_properties or ())
        name, text = properties.get(POSITION_PROPERTY), sections.content
        self._arrived.append(PositionMessage(str(name), str(text), incoming.delivery_id))

    def _push(self) -> None:
        if frames := self._coordinator.frames(self._deliveries):
            self._session.write(b"".join(frames))
        if self._transaction is not None:
            state = transactional(self._transaction)
            for link in self._links.values():
                link.state = state
            super()._push()

    def _check_links(self) -> None:
        super()._check_links()
        for link in (self._coordinator, *self._watching):
            if link.fault is not None:
                raise self._session.fail(f"the broker says of {link.terminus.address}: {link.fault}")

    def _outcome(self, message: int, state: int, details: Sequence[Any]) -> None:
        if self._open.get(message) != self._coordinator.terminus.destination:
            self._is_spoilt = self._is_spoilt or state != DeliveryState.ACCEPTED
            super()._outcome(message, state, details)
            return
        transaction = field(details, 0)
        is_declared = state == DeliveryState.DECLARED and isinstance(transaction, bytes)
        if is_declared and message == self._declare:
            self._transaction = transaction
            self._record_outcome(message)
        elif state == DeliveryState.ACCEPTED and message != self._declare:
            self._record_outcome(message)
        else:
            condition = condition_of(field(details, 0)) or Condition("amqp:transaction:rollback", "")
            self._failure = self._failure or NotConnectedError(f"the broker has undone a transaction: {condition}")


class _CoordinatorLink(Sender):
    """Link over which transactions are declared and discharged."""

    def __init__(self, session: LinkSession) -> None:
        super().__init__(session, "transactions", Terminus("transactions", "coordinator"))

    def attachment(self) -> bytes:
        """See `Link`."""
        source = Terminus(self.name, "queue").source()
        return performatives.attach(self.name, self.handle, self.role, source, performatives.coordinator_target())
