"""Sink for STOMP brokers whose messages belong to transactions, which also replace the messages of a position queue.

Frames name their transaction: SEND of messages and of positions, and ACK of the position messages that are taken out of
their queue. All SEND frames have their receipts before COMMIT is sent, since a broker may refuse a frame and commit the
others. `PositionSink` decides on the messages of a transaction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.connectors.base import Outcome, Outgoing
from engine.connectors.position_sink import POSITION_PROPERTY, PositionMessage, position_selector
from engine.connectors.stomp.frames import escape
from engine.connectors.stomp.message import to_frame
from engine.connectors.stomp.sink import SentMessage, StompSink
from engine.message import Message
from routes.properties import Property

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.connectors.endpoint import SystemEndpoint
    from engine.connectors.stomp.frames import StompFrame
    from engine.connectors.stomp.settings import StompSinkConfig

__all__ = ["TransactedStompSink"]

_PROBE = "probe"
_SEND = b"SEND\n"


class TransactedStompSink(StompSink):
    """Sink of one worker, see `TransactedSink`."""

    settle_seconds = 0.0

    def __init__(self, endpoint: SystemEndpoint[StompSinkConfig], worker: int, queue: str) -> None:
        """Sets up the sink without connecting; `queue` is the position queue. SetupError as `StompSink`."""
        super().__init__(endpoint, worker)
        self._address = f"queue/{queue}"
        self._transactions = 0
        """Number of transactions begun."""
        self._subscriptions = 0
        self._arrived: list[PositionMessage] = []

    def connect(self) -> None:
        """Connects as `StompSink`, and asks for the position queue.

        Raises:
            NotConnectedError: this failed, or the broker refuses the position queue.
            HardFailureError: the broker does not honour a feature that the configuration asks for.
        """
        self._arrived.clear()
        self._subscriptions = 0
        super().connect()
        # Of no sink: a subscription to the sink's own positions would take them ahead of their use.
        self._subscribe("", receipt=_PROBE)
        self._session.expect("RECEIPT", _PROBE)

    def begin(self, number: int) -> None:
        """See `TransactedSink`: a broker that refuses it ends the connection."""
        self._transactions += 1
        self._known.append(Outcome(number))
        self._session.send(_encoded("BEGIN", {"transaction": self._transaction}))

    def watch(self, name: str) -> None:
        """See `TransactedSink`."""
        self._subscribe(name)

    def arrived(self) -> Sequence[PositionMessage]:
        """See `TransactedSink`."""
        arrived, self._arrived = self._arrived, []
        return arrived

    def replace(self, number: int, tokens: Sequence[Any], name: str, text: str) -> None:
        """See `TransactedSink`."""
        self._check()
        message = Message(text.encode(), properties={POSITION_PROPERTY: Property(name)})
        frame = self._frame(Outgoing(number, message, self._address, str(number)))
        taken = [_encoded("ACK", {"id": token, "transaction": self._transaction}) for token in tokens]
        self._open[number] = SentMessage(self._address, len(frame))
        self._session.send(b"".join((*taken, frame)))

    def commit(self, number: int) -> None:
        """See `TransactedSink`."""
        self._check()
        self._open[number] = SentMessage(self._transaction, 0)
        self._session.send(_encoded("COMMIT", {"transaction": self._transaction, "receipt": str(number)}))

    @property
    def _transaction(self) -> str:
        return f"t{self._transactions}"

    def _check(self) -> None:
        """Raises NotConnectedError if the broker has refused something in the open transaction."""
        if self._failure is not None:
            raise self._failure

    def _frame(self, outgoing: Outgoing) -> bytes:
        frame = to_frame(outgoing, self._session.traits)
        return b"".join((_SEND, f"transaction:{self._transaction}\n".encode(), frame.removeprefix(_SEND)))

    def _subscribe(self, name: str, **headers: str) -> None:
        self._subscriptions += 1
        traits = self._session.traits
        kind, _, queue = self._address.partition("/")
        selector = position_selector(name)
        own = {"id": str(self._subscriptions), "destination": traits.spelled(kind, queue), "ack": "client-individual"}
        self._session.send(_encoded("SUBSCRIBE", {**own, "selector": selector, **traits.subscribe, **headers}))

    def _take(self, frame: StompFrame) -> bool:
        if frame.command != "MESSAGE":
            return super()._take(frame)
        name, ack = frame.headers.get(POSITION_PROPERTY, ""), frame.headers.get("ack", "")
        self._arrived.append(PositionMessage(name, frame.body.decode("utf-8", "replace"), ack))
        return True


def _encoded(command: str, headers: dict[str, str]) -> bytes:
    """Returns a frame without a body."""
    lines = "".join(f"{name}:{escape(value)}\n" for name, value in headers.items())
    return f"{command}\n{lines}\n\0".encode()
