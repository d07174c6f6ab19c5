"""Messages from a STOMP 1.2 broker: queues and topics of ActiveMQ Artemis, and of others that speak it.

Here are the steps of a source: subscribe, receive, acknowledge. The connection is in `session`, bytes become frames in
`frames`, frames become messages in `message`, sockets are in `wire`; `source_loop` does the rest.

Each message is acknowledged by itself (`client-individual`), unless `acknowledge=cumulative`. A cumulative one is
cheaper, above all for Artemis, but it includes messages that the broker failed to put into a frame, such as Artemis a
stream message: these are lost without ever having been seen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from engine.connectors.base import Delivery, Redelivery
from engine.connectors.products import require
from engine.connectors.stomp.frames import escape
from engine.connectors.stomp.message import to_message
from engine.connectors.stomp.session import ROUTING, StompSession
from routes.model import Acknowledge

if TYPE_CHECKING:
    from collections.abc import Sequence

    from routes.model import Config, SourceConfig

__all__ = ["StompSource"]

_RETURNS_SECONDS = 60.0
"""After so long Artemis gives up a client that has vanished with its machine."""


class StompSource:
    """A connection of its own to the broker, with a subscription for each destination."""

    def __init__(self, config: Config, source: SourceConfig, worker: int) -> None:
        """SetupError where a TLS file is no good."""
        self._config = config
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
        self._cumulative = source.acknowledge is Acknowledge.CUMULATIVE

    @property
    def address(self) -> str:
        """`stomp://host:port (queue:orders, …)`."""
        return f"{self._session.endpoint} ({', '.join(self._destinations) or 'nothing left for this worker'})"

    @property
    def redelivery(self) -> Redelivery:
        """See `Source`."""
        return Redelivery(_RETURNS_SECONDS, self._session.unnoticed_seconds)

    def connect(self) -> None:
        """Also logs in; a refused login is asked for again only after a while.

        HardFailureError where the broker does not honour a subscription or a selector.
        """
        self.close()
        self._session.open()
        require(self._config, self._source, self._session.product, self._session.server)
        for number, destination in enumerate(self._destinations, 1):
            self._subscribe(str(number), destination)

    def receive(self, timeout_seconds: float) -> Delivery | None:
        """A message, with what was left of it if it was too large to keep."""
        frame = self._session.next(timeout_seconds)
        if frame is None or frame.command == "RECEIPT":
            return None
        if frame.command != "MESSAGE":
            raise self._session.refused(frame)
        subscription, ack = frame.headers.get("subscription", ""), frame.headers.get("ack")
        if ack is None:
            raise self._session.lost("the broker sent a message without an ack header, which cannot be acknowledged")
        kind = self._kinds.get(subscription, "queue")
        message = to_message(frame, kind, self._source.name, artemis=self._session.artemis)
        return Delivery(message, (subscription, ack), frame.size if frame.size > len(frame.body) else None)

    def acknowledge(self, tokens: Sequence[object]) -> None:
        """A frame for each, or for the last of each subscription; all in one write."""
        pairs = cast("Sequence[tuple[str, str]]", tokens)
        # Later ones take the place of earlier ones.
        acks = dict(pairs).values() if self._cumulative else (ack for _, ack in pairs)
        frames = "".join([f"ACK\nid:{escape(ack)}\n\n\0" for ack in acks])
        self._session.send(frames.encode())

    def tend(self) -> None:
        """Heart-beats have a thread of their own."""

    def close(self) -> None:
        """Leaves in order, so that the broker has taken every acknowledgement before the connection ends."""
        kinds, self._kinds = self._kinds, {}
        self._session.close(kinds)

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
        ack = "client" if self._cumulative else "client-individual"
        self._session.connection.subscribe(target, number, ack=ack, headers=headers)
        self._session.expect("RECEIPT", headers["receipt"])
