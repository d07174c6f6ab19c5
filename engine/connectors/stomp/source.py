"""Source for queues and topics of a STOMP 1.2 broker, such as ActiveMQ Artemis.

This module subscribes, receives and acknowledges. `session` holds the connection, `frames` parses bytes, and
`message` converts frames. The journal, reconnecting and stopping are in `source_loop`.

Each message is acknowledged individually (`client-individual`), unless `acknowledge=cumulative` is set. Cumulative
acknowledgement is cheaper, above all for Artemis, but it includes messages that the broker failed to put into a frame,
such as stream messages on Artemis: these are lost without having been delivered. A broker that refuses individual
acknowledgements closes the connection at a message that it cannot put into a frame.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import structlog

from engine.connectors.base import Delivery, NotConnectedError, Redelivery
from engine.connectors.content_id import identified
from engine.connectors.features import require
from engine.connectors.jms import Identity, client_id_of
from engine.connectors.stomp.frames import escape
from engine.connectors.stomp.message import to_message
from engine.connectors.stomp.session import BROKER_SAYS, StompSession
from engine.connectors.stomp.settings import Acknowledge, EmptyBody
from engine.connectors.stomp.structured_bodies import MAP, OBJECT, structured
from engine.jms_values import StructureError
from engine.message import BodyType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.connectors.endpoint import SystemEndpoint
    from engine.connectors.stomp.frames import StompFrame
    from engine.connectors.stomp.settings import StompSourceConfig
    from engine.message import Message

__all__ = ["StompSource"]

_RETURNS_SECONDS = 60.0
"""Time after which Artemis drops the connection of a client whose machine has vanished."""
_RIGHT_BEHIND_SECONDS = 5.0
"""Time within which the end of a connection may be the broker's answer to an acknowledgement."""
_REQUIRED = ("ack", "destination", "message-id", "subscription")
"""Headers of every MESSAGE frame of a subscription with acknowledgements (STOMP 1.2, MESSAGE)."""
_log = structlog.get_logger(__name__)


class StompSource:
    """Source of one worker, with its own connection to the broker and a subscription for each destination."""

    def __init__(self, endpoint: SystemEndpoint[StompSourceConfig], worker: int) -> None:
        """Reads TLS files; does not connect. Only worker 1 subscribes to topics.

        Raises:
            SetupError: a TLS file is missing or invalid.
        """
        source = endpoint.settings
        self._endpoint = endpoint
        self._source = source
        self._client_id = source.client_id or f"{endpoint.bridge_id}.{source.name}"
        # A topic delivers every message to each subscriber, so only one worker subscribes to it.
        self._destinations = [name for name in source.destinations if worker == 1 or name.startswith("queue:")]
        is_durable = source.subscription is not None and any(name.startswith("topic:") for name in self._destinations)
        client_id = client_id_of(self._client_id, worker) if source.client_id or is_durable else None
        self._session = StompSession(
            source, f"source '{source.name}'", endpoint.url, client_id, endpoint.max_message_bytes
        )
        self._kinds: dict[str, str] = {}
        self._cumulative = False
        self._told: set[str] = set()
        """Destinations of durable subscriptions of whose selector the log has told."""
        self._acknowledged_at = -math.inf

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
        self._acknowledged_at = -math.inf
        self._session.open()
        require(self._endpoint, self._session)
        traits = self._session.traits
        self._cumulative = self._source.acknowledge is Acknowledge.CUMULATIVE or not traits.acknowledges_one
        if traits.omits:
            _log.warning("the broker's frames lack fields", broker=self._session.server, fields=", ".join(traits.omits))
        for number, destination in enumerate(self._destinations, 1):
            self._subscribe(str(number), destination)

    def receive(self, timeout_seconds: float) -> Delivery | None:
        """Returns the next message, None if none came in time; of a body too large to keep only the beginning.

        A frame that is not STOMP 1.2 is one unreadable message, which has a `fault`.
        """
        frame = self._next(timeout_seconds)
        if frame is None or frame.command == "RECEIPT":
            return None
        if frame.command != "MESSAGE":
            raise self._session.refused(frame)
        subscription, ack = frame.headers.get("subscription", ""), frame.headers.get("ack", "")
        kind = self._kinds.get(subscription, "queue")
        message = to_message(frame, kind, self._source.name, self._session.traits)
        size = frame.size if frame.size > len(frame.body) else None
        fault = self._malformed(frame)
        if fault is not None:
            message = self._unreadable(message, frame)
        elif self._may_be_hidden(frame) and size is None:
            message, fault = self._examined(message, frame)
        elif (foreign := self._session.traits.foreign_type) and frame.headers.get("type") == foreign:
            fault = f"the body is in the encoding of {foreign}, as its sender sent it; read the queue with type=amqp"
            message = replace(message, body_type=BodyType.BYTES)
        message, has_own_id = identified(message, by_content=self._source.identity is Identity.CONTENT)
        return Delivery(message, (subscription, ack), size, fault, has_own_id)

    def acknowledge(self, tokens: Sequence[object]) -> None:
        """Sends an ACK frame for each delivery, or for the last of each subscription if cumulative, in one write."""
        # A message that came without an ack header cannot be acknowledged, which its fault says.
        pairs = [(subscription, ack) for subscription, ack in cast("Sequence[tuple[str, str]]", tokens) if ack]
        # In the dict a later acknowledgement of a subscription replaces the earlier ones.
        acks = dict(pairs).values() if self._cumulative else (ack for _, ack in pairs)
        frames = "".join([f"ACK\nid:{escape(ack)}\n\n\0" for ack in acks])
        self._acknowledged_at = time.monotonic()
        try:
            self._session.send(frames.encode())
        except NotConnectedError as error:
            raise self._explained(error) from error

    def tend(self) -> None:
        """Does nothing: stomp.py sends heart-beats on a thread of its own."""

    def close(self) -> None:
        """Unsubscribes and disconnects in order, so that the broker processes all acknowledgements before."""
        kinds, self._kinds = self._kinds, {}
        self._session.close(kinds)

    def _next(self, timeout_seconds: float) -> StompFrame | None:
        try:
            return self._session.next(timeout_seconds)
        except NotConnectedError as error:
            raise self._explained(error) from error

    def _explained(self, error: NotConnectedError) -> NotConnectedError:
        """Returns the error for a lost connection, with causes that this broker is known for."""
        traits, causes = self._session.traits, []
        if self._source.convert_bodies and traits.transformation:
            causes.append(
                "it may lack XStream, or distrust the class of an object message; "
                f"source.{self._source.name}.convert-bodies=false ends that"
            )
        is_silent = not str(error).startswith(BROKER_SAYS)
        if traits.hangs_up and is_silent and time.monotonic() - self._acknowledged_at < _RIGHT_BEHIND_SECONDS:
            causes.append(traits.hangs_up)
        if not causes:
            return error
        why = f"{error}; if it does so again and again, see its log: {'; or '.join(causes)}"
        return NotConnectedError(why, error.back_off_seconds)

    def _malformed(self, frame: StompFrame) -> str | None:
        """Returns the violation of STOMP 1.2 in a MESSAGE frame; None for a sound frame."""
        if frame.fault is not None:
            return f"the broker sent {frame.fault}"
        missing = [name for name in _REQUIRED if not frame.headers.get(name)]
        if not missing:
            return None
        if "ack" in missing:
            return (
                "the broker sent a message without the header ack, which each message of a subscription with "
                "acknowledgements needs: it cannot be acknowledged, and comes again on the next connection; read the "
                "queue with type=amqp or type=jms if all its messages come so"
            )
        return f"the broker sent a message without the header {missing[0]}"

    def _unreadable(self, message: Message, frame: StompFrame) -> Message:
        """Returns the message of a malformed frame as bytes, with the destination that it was read from."""
        number = frame.headers.get("subscription", "")
        names = dict(zip(self._kinds, self._destinations, strict=False))
        found = names.get(number) or (self._destinations[0] if len(self._destinations) == 1 else None)
        read = {"JMSDestination": found} if found is not None and not frame.headers.get("destination") else {}
        return replace(message, body=frame.body, body_type=BodyType.BYTES, headers={**message.headers, **read})

    def _may_be_hidden(self, frame: StompFrame) -> bool:
        traits = self._session.traits
        return traits.hides_bodies and (not traits.hidden_sender or traits.hidden_sender in frame.headers)

    def _examined(self, message: Message, frame: StompFrame) -> tuple[Message, str | None]:
        """Returns a message with its converted body, and the reason why it cannot be taken, None if it can."""
        traits = self._session.traits
        converts = self._source.convert_bodies and bool(traits.transformation)
        transformation = frame.headers.get("transformation", "") if converts else ""
        if transformation in (MAP, OBJECT):
            try:
                return structured(message, transformation), None
            except StructureError as error:
                return replace(message, body_type=BodyType.BYTES), f"the broker sent {error}"
        is_garbled = traits.garbles_maps and message.body.startswith(b"\0")
        is_whole = (message.body and not is_garbled) or message.body_type is BodyType.BYTES or message.body_types
        if is_whole or self._source.empty_body is EmptyBody.ACCEPT:
            return message, None
        key = f"source.{self._source.name}"
        others = "a stream message" if converts else "a map, stream or object message"
        for_maps = f"{key}.convert-bodies=true for map messages, " if traits.transformation and not converts else ""
        what, text = ("the body begins with NUL", "text") if is_garbled else ("the frame has no body", "empty text")
        fault = (
            f"{what}: it may be a{'' if is_garbled else 'n'} {text}, or {others}, which {self._session.server} sends "
            f"in the same way; set {for_maps}{key}.empty-body=accept if all are {text}s, or use type=jms"
        )
        return message, fault

    def _tell_of_selector(self, destination: str, queue: str) -> None:
        """Says once that the broker keeps the first selector of a durable subscription, since it does not say so."""
        if not queue or destination in self._told:
            return
        self._told.add(destination)
        _log.warning(
            "the broker keeps the selector with which it made the durable subscription; if it was another one, stop "
            "the bridge and delete the queue when no messages wait in it",
            source=self._source.name,
            destination=destination,
            queue=queue,
            selector=self._source.selector or "none",
        )

    def _subscribe(self, number: str, destination: str) -> None:
        kind, _, name = destination.partition(":")
        traits = self._session.traits
        headers = {"receipt": f"subscribed-{number}", **traits.subscribe}
        if traits.kinds:
            headers["subscription-type"] = traits.kinds[kind]
        if self._source.convert_bodies and traits.transformation:
            headers["transformation"] = traits.transformation
        if self._source.selector:
            headers["selector"] = self._source.selector
        if self._source.subscription and kind == "topic":
            # A durable name belongs to one topic.
            names = {"client_id": self._client_id, "subscription": self._source.subscription, "topic": name}
            headers |= {header: text.format_map(names) for header, text in traits.durable.items()}
            self._tell_of_selector(destination, traits.keeps_selector.format_map(names))
        self._kinds[number] = kind
        ack = "client" if self._cumulative else "client-individual"
        self._session.connection.subscribe(traits.spelled(kind, name), number, ack=ack, headers=headers)
        self._session.expect("RECEIPT", headers["receipt"])
