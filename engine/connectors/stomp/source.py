"""Messages from a STOMP 1.2 broker: queues and topics of ActiveMQ Artemis, and of others that speak it.

Here are the steps of a source: subscribe, receive, acknowledge. The connection is in `session`, bytes become frames in
`frames`, frames become messages in `message`, sockets are in `wire`; `source_loop` does the rest.

Each message is acknowledged by itself (`client-individual`). A cumulative acknowledgement would be cheaper, but it
would include messages that the broker failed to put into a frame, such as Artemis a stream message: these would be
lost without ever having been seen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.connectors.base import Delivery
from engine.connectors.stomp.frames import escape
from engine.connectors.stomp.message import to_message
from engine.connectors.stomp.session import ROUTING, StompSession

if TYPE_CHECKING:
    from collections.abc import Sequence

    from routes.model import Config, SourceConfig

__all__ = ["StompSource"]


class StompSource:
    """A connection of its own to the broker, with a subscription for each destination."""

    def __init__(self, config: Config, source: SourceConfig, worker: int) -> None:
        """SetupError where a TLS file is no good."""
        self._source = source
        self._session = StompSession(
            source,
            f"source '{source.name}'",
            config.url(source),
            source.client_id or f"{config.bridge_id}.{source.name}",
            config.journal.max_message_bytes,
        )
        # A topic gives each of its subscribers everything, so only one worker listens to it.
        self._destinations = [name for name in source.destinations if worker == 1 or name.startswith("queue:")]
        self._kinds: dict[str, str] = {}

    @property
    def address(self) -> str:
        """`stomp://host:port (queue:orders, …)`."""
        return f"{self._session.endpoint} ({', '.join(self._destinations) or 'nothing left for this worker'})"

    def connect(self) -> None:
        """Also logs in; a refused login is asked for again only after a while."""
        self.close()
        self._session.open()
        for number, destination in enumerate(self._destinations, 1):
            self._subscribe(str(number), destination)

    def receive(self, timeout_seconds: float) -> Delivery | None:
        """A message, with what was left of it if it was too large to keep."""
        frame = self._session.next(timeout_seconds)
        if frame is None or frame.command == "RECEIPT":
            return None
        if frame.command != "MESSAGE":
            raise self._session.refused(frame)
        token = frame.headers.get("ack")
        if token is None:
            raise self._session.lost("the broker sent a message without an ack header, which cannot be acknowledged")
        kind = self._kinds.get(frame.headers.get("subscription", ""), "queue")
        message = to_message(frame, kind, self._source.name, artemis=self._session.artemis)
        return Delivery(message, token, frame.size if frame.size > len(frame.body) else None)

    def acknowledge(self, tokens: Sequence[object]) -> None:
        """One frame for each, all in one write."""
        frames = "".join(f"ACK\nid:{escape(str(token))}\n\n\0" for token in tokens)
        self._session.send(frames.encode())

    def close(self) -> None:
        """Leaves in order, so that the broker has taken every acknowledgement before the connection ends."""
        self._session.close(self._kinds)
        self._kinds = {}

    def _subscribe(self, number: str, destination: str) -> None:
        kind, _, name = destination.partition(":")
        headers = {
            "receipt": f"subscribed-{number}",
            # Artemis: the kind of address, and no limit to what is on its way; TCP limits it.
            "subscription-type": ROUTING[kind],
            "consumer-window-size": "-1",
        }
        if self._source.selector:
            headers["selector"] = self._source.selector
        if self._source.subscription and kind == "topic":
            # The name belongs to one topic; that of Artemis, that of ActiveMQ.
            durable = f"{self._source.subscription}.{name}"
            headers |= {"durable-subscription-name": durable, "activemq.subscriptionName": durable}
        self._kinds[number] = kind
        target = name if self._session.artemis else f"/{kind}/{name}"
        self._session.connection.subscribe(target, number, ack="client-individual", headers=headers)
        self._session.expect("RECEIPT", headers["receipt"])
