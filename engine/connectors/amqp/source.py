"""Source for AMQP 1.0 brokers: reads queues, and topics with or without a durable subscription.

This module has the steps of a source: attach, receive, settle. The connection is in `session`, links are in `links`,
messages are decoded in `transformers`, and `source_loop` runs the source. A message stays unsettled until the journal
has it. One disposition then accepts each run of consecutive deliveries.
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import structlog

from engine.connectors.addresses import is_pattern
from engine.connectors.amqp.encoded_edits import shortened
from engine.connectors.amqp.links import IncomingTransfer, Receiver
from engine.connectors.amqp.performatives import ACCEPTED, Role, Terminus, disposition, serial
from engine.connectors.amqp.session import AmqpSession
from engine.connectors.amqp.traits import SPECIFIED
from engine.connectors.amqp.transformers import TransformError, inbound_of, translated_selector
from engine.connectors.base import Delivery, Redelivery
from engine.connectors.content_id import content_id, is_made_up
from engine.connectors.features import Feature, is_topic, refusal, require
from engine.connectors.jms import Identity, client_id_of
from engine.message import BodyType, Message

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.connectors.amqp.settings import AmqpSourceConfig
    from engine.connectors.endpoint import SystemEndpoint

__all__ = ["AmqpSource"]

_log = structlog.get_logger(__name__)

_WINDOW = 1000
_HEAD_BYTES = 1024 * 1024
"""Bytes allowed for the sections around a body that the journal accepts."""
_KEPT_BYTES = 64 * 1024
_RETURNS_SECONDS = 60.0
"""Time after which Artemis gives up a client whose machine has vanished."""


class AmqpSource:
    """Source that reads with one worker: a connection of its own, and a link for each destination."""

    def __init__(self, endpoint: SystemEndpoint[AmqpSourceConfig], worker: int) -> None:
        """Sets up the source without connecting. SetupError if a TLS file is missing or invalid."""
        source = endpoint.settings
        self._endpoint = endpoint
        self._source = source
        self._worker = worker
        container = source.client_id or f"{endpoint.bridge_id}.{source.name}"
        # Workers that share a durable subscription share its container.
        container = container if source.subscription else client_id_of(container, worker)
        who = f"source '{source.name}'"
        self._session = AmqpSession(source, who, endpoint.url, container, sole=source.sole_connection)
        self._max_bytes = endpoint.max_message_bytes + _HEAD_BYTES
        self._traits = SPECIFIED
        self._inbound = inbound_of(source.transformers, self._traits)
        self._by_content = source.identity is Identity.CONTENT
        self._patterns = {name for name in source.destinations if is_pattern(name)}
        """Destinations with wildcards of which each message so far has named its own address."""
        self._links: list[Receiver] = []
        self._waiting: deque[IncomingTransfer] = deque()
        self._unsettled = 0
        """Number of deliveries of this connection that are handed over and not acknowledged."""

    @property
    def address(self) -> str:
        """Broker and destinations as `amqp://host:port (queue:orders, …)`."""
        read = ", ".join(self._destinations(shared=self._source.subscription is not None))
        return f"{self._session.endpoint} ({read or 'nothing left for this worker'})"

    @property
    def redelivery(self) -> Redelivery:
        """See `Source`. Messages that a client held when it vanished do not count as delivered (AMQP 1.0, 2.7.5)."""
        return Redelivery(_RETURNS_SECONDS, self._session.unnoticed_seconds, is_marked=False)

    def connect(self) -> None:
        """Connects, logs in and attaches; NotConnectedError with a longer back-off after a refused login.

        HardFailureError if the broker does not honour a topic, a subscription, a selector or `sole-connection`.
        """
        self.close()
        self._session.open()
        require(self._endpoint, self._session)
        if self._session.traits != self._traits:
            self._traits = self._session.traits
            self._inbound = inbound_of(self._source.transformers, self._traits)
        shared = self._source.subscription is not None and self._traits.shares_subscriptions
        self._links = [self._receiver(name, shared=shared) for name in self._destinations(shared=shared)]
        for link in self._links:
            self._session.attach(link)
        for link in self._links:
            self._session.await_attached(link)
            self._check_granted(link)

    def receive(self, timeout_seconds: float) -> Delivery | None:
        """Returns the next message. An oversized one is only its beginning; an unreadable one has a `fault`."""
        self._session.check_login(is_idle=not self._unsettled)
        if self._is_ending:
            # What waits here returns to the broker; what was handed over is acknowledged first.
            self._session.pump(timeout_seconds)
            self._check()
            return None
        if not self._waiting:
            self._session.pump(timeout_seconds)
            self._check()
            if not self._waiting:
                return None
        incoming = self._waiting.popleft()
        self._unsettled += 1
        incoming.receiver.taken()
        return self._delivery(incoming)

    def acknowledge(self, tokens: Sequence[object]) -> None:
        """Accepts deliveries with one disposition for each run of consecutive ids, all in one write."""
        runs: list[list[int]] = []
        for number in cast("Sequence[int]", tokens):
            if runs and number == serial(runs[-1][1] + 1):
                runs[-1][1] = number
            else:
                runs.append([number, number])
        self._session.send(*(disposition(Role.RECEIVER, first, last, ACCEPTED) for first, last in runs))
        self._unsettled -= len(tokens)

    @property
    def _is_ending(self) -> bool:
        """True if a new login is due, so that the connection takes no more messages."""
        return time.monotonic() >= self._session.renew_at

    def tend(self) -> None:
        """Does nothing: heart-beats have a thread of their own."""

    def close(self) -> None:
        """Closes in order, so that the broker has taken every acknowledgement before the connection ends."""
        self._waiting.clear()
        self._unsettled = 0
        links, self._links = self._links, []
        self._session.close(links)

    def _destinations(self, *, shared: bool) -> list[str]:
        """Returns the destinations of this worker.

        A topic gives each subscriber every message, so only worker 1 reads topics, unless the workers share a
        subscription.
        """
        every = self._worker == 1 or shared
        return [name for name in self._source.destinations if every or name.startswith("queue:")]

    def _receiver(self, destination: str, *, shared: bool) -> Receiver:
        kind, _, name = destination.partition(":")
        durable = kind == "topic" and self._source.subscription is not None
        # The name of a durable link is the name of the subscription; Artemis ignores what follows the bar.
        link = f"{self._source.subscription}.{name}" if durable else f"{destination}#{self._worker}"
        if durable and shared and self._worker > 1:
            link += f"|{self._worker}"
        selector = self._source.selector and translated_selector(self._source.selector)
        terminus = Terminus(
            name,
            kind,
            selector,
            durable=durable,
            shared=durable and shared,
            spelt=self._traits.spelling(kind, name),
            is_declared=kind == "queue" and self._traits.declares_queues,
        )
        return Receiver(
            self._session,
            link,
            terminus,
            self._waiting.append,
            window=_WINDOW,
            max_bytes=self._max_bytes,
            kept_bytes=_HEAD_BYTES + _KEPT_BYTES,
        )

    def _check_granted(self, link: Receiver) -> None:
        """Raises HardFailureError if the broker's attach does not grant the request."""
        destination, server = link.terminus.destination, self._session.server or str(self._session.endpoint)
        if not link.filtered:
            selector, instead = self._source.selector or "", "its attach has no filter"
            raise refusal(self._source, Feature.SELECTOR, selector, server, instead)
        if is_topic(destination) and not link.is_topic:
            raise refusal(self._source, Feature.READ_TOPIC, destination, server, "its attach does not call it a topic")
        if link.terminus.durable and not link.is_durable:
            subscription, instead = self._source.subscription or "", "its attach says that the source is not durable"
            raise refusal(self._source, Feature.SUBSCRIPTION, subscription, server, instead)

    def _delivery(self, incoming: IncomingTransfer) -> Delivery:
        destination = incoming.receiver.terminus.destination
        encoded, size = incoming.encoded, None
        if incoming.size > len(encoded):
            encoded, around = shortened(encoded, _KEPT_BYTES)
            size = incoming.size - around
        try:
            message = self._inbound.to_message(encoded, incoming.message_format, destination, self._source.name)
        except TransformError as error:
            received = Message(encoded, BodyType.BYTES, {"JMSDestination": destination}, source=self._source.name)
            return Delivery(received, incoming.delivery_id, size, str(error))
        if destination in self._patterns and message.headers["JMSDestination"] == destination:
            self._patterns.discard(destination)
            _log.warning(
                "messages that do not name their address (`to`) come with the wildcards in its place; routes that need "
                "the address miss them: have senders set `to`, read each address by itself, or use type=stomp",
                source=self._source.name,
                destination=destination,
            )
        has_own_id = not is_made_up(message.headers.get("JMSMessageID"))
        if not has_own_id and self._by_content and size is None and not _is_native(message):
            message = replace(message, headers={**message.headers, "JMSMessageID": content_id(message)})
            has_own_id = True
        return Delivery(message, incoming.delivery_id, size, has_own_id=has_own_id)

    def _check(self) -> None:
        """Raises NotConnectedError if the broker has ended a link."""
        for link in self._links:
            if link.fault is not None:
                raise self._session.fail(f"the broker says of {link.terminus.address}: {link.fault}")


def _is_native(message: Message) -> bool:
    """Returns True for a message of the transformer AMQPNative, whose timestamp is that of the delivery."""
    return any(name.endswith("NATIVE") and found.text == "true" for name, found in message.properties.items())
