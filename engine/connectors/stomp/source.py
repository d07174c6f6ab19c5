"""Source for queues and topics of a STOMP 1.2 broker, such as ActiveMQ Artemis.

This module subscribes, receives and acknowledges. `session` holds the connection, `frames` parses bytes, and
`message` converts frames. The journal, reconnecting and stopping are in `source_loop`.

Each message is acknowledged individually (`client-individual`), unless `acknowledge=cumulative` is set. Cumulative
acknowledgement is cheaper, above all for Artemis, but it includes messages that the broker failed to put into a frame,
such as stream messages on Artemis: these are lost without having been delivered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from engine.connectors.base import Delivery, Redelivery
from engine.connectors.features import require
from engine.connectors.stomp.frames import escape
from engine.connectors.stomp.message import to_message
from engine.connectors.stomp.session import ROUTING, StompSession
from engine.connectors.stomp.settings import Acknowledge

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.connectors.stomp.settings import StompSourceConfig
    from routes.model import Config

__all__ = ["StompSource"]

_RETURNS_SECONDS = 60.0
"""Time after which Artemis drops the connection of a client whose machine has vanished."""


class StompSource:
    """Source of one worker, with its own connection to the broker and a subscription for each destination."""

    def __init__(self, config: Config, source: StompSourceConfig, worker: int) -> None:
        """Reads TLS files; does not connect. Only worker 1 subscribes to topics.

        Raises:
            SetupError: a TLS file is missing or invalid.
        """
        self._config = config
        self._source = source
        self._session = StompSession(
            source,
            f"source '{source.name}'",
            config.url(source),
            source.client_id or f"{config.bridge_id}.{source.name}",
            config.journal.max_message_bytes,
        )
        # A topic delivers every message to each subscriber, so only one worker subscribes to it.
        self._destinations = [name for name in source.destinations if worker == 1 or name.startswith("queue:")]
        self._kinds: dict[str, str] = {}
        self._cumulative = source.acknowledge is Acknowledge.CUMULATIVE

    @property
    def address(self) -> str:
        """Endpoint and destinations, such as `stomp://host:port (queue:orders, …)`."""
        return f"{self._session.endpoint} ({', '.join(self._destinations) or 'nothing left for this worker'})"

    @property
    def redelivery(self) -> Redelivery:
        """Redelivery of the broker: up to a minute after connecting, see `Source`."""
        return Redelivery(_RETURNS_SECONDS, self._session.unnoticed_seconds)

    def connect(self) -> None:
        """Connects, logs in and subscribes.

        Raises:
            NotConnectedError: a step failed; after a refused login with a back-off.
            HardFailureError: the broker does not implement STOMP 1.2, or does not honour the configured durable
                subscription or selector.
        """
        self.close()
        self._session.open()
        require(self._config, self._source, self._session)
        for number, destination in enumerate(self._destinations, 1):
            self._subscribe(str(number), destination)

    def receive(self, timeout_seconds: float) -> Delivery | None:
        """Returns the next message, None if none came in time; of a body too large to keep only the beginning."""
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
        """Sends an ACK frame for each delivery, or for the last of each subscription if cumulative, in one write."""
        pairs = cast("Sequence[tuple[str, str]]", tokens)
        # In the dict a later acknowledgement of a subscription replaces the earlier ones.
        acks = dict(pairs).values() if self._cumulative else (ack for _, ack in pairs)
        frames = "".join([f"ACK\nid:{escape(ack)}\n\n\0" for ack in acks])
        self._session.send(frames.encode())

    def tend(self) -> None:
        """Does nothing: stomp.py sends heart-beats on a thread of its own."""

    def close(self) -> None:
        """Unsubscribes and disconnects in order, so that the broker processes all acknowledgements before."""
        kinds, self._kinds = self._kinds, {}
        self._session.close(kinds)

    def _subscribe(self, number: str, destination: str) -> None:
        kind, _, name = destination.partition(":")
        headers = {
            "receipt": f"subscribed-{number}",
            # Artemis: the routing type, and no limit to unacknowledged messages on their way; TCP limits these.
            "subscription-type": ROUTING[kind],
            "consumer-window-size": "-1",
        }
        if self._source.selector:
            headers["selector"] = self._source.selector
        if self._source.subscription and kind == "topic":
            # A durable name belongs to one topic. The first header is for Artemis, the second for ActiveMQ Classic.
            durable = f"{self._source.subscription}.{name}"
            headers |= {"durable-subscription-name": durable, "activemq.subscriptionName": durable}
        self._kinds[number] = kind
        target = name if self._session.artemis else f"/{kind}/{name}"
        ack = "client" if self._cumulative else "client-individual"
        self._session.connection.subscribe(target, number, ack=ack, headers=headers)
        self._session.expect("RECEIPT", headers["receipt"])
