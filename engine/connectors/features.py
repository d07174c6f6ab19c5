"""Features that a source or sink asks of a JMS broker, and the refusal of those that the broker silently ignores.

A broker that ignores a durable subscription, a selector or the kind of a destination does not say so: it confirms the
request, and messages are lost or go elsewhere. So a source or sink that asks for such a feature is refused when it
connects. The behaviour of each product over a protocol is in that protocol's table of traits.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

from engine.connectors.addresses import parsed
from engine.connectors.jms import JmsSinkConfig, JmsSourceConfig
from engine.errors import HardFailureError
from routes.model import SourceConfig

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from engine.connectors.endpoint import SystemEndpoint
    from engine.connectors.products import Product
    from routes.model import BrokerConfig

__all__ = [
    "IGNORES_SELECTOR",
    "NOT_KNOWN",
    "Feature",
    "ProductSession",
    "asked",
    "duplicates",
    "is_topic",
    "refusal",
    "require",
]

_SAYS_TOPIC = "topic://"
"""Prefix of an address that itself says that it is a topic."""


class Feature(StrEnum):
    """Feature that a source or sink may ask of a JMS broker; its value is the text in error messages."""

    READ_TOPIC = "messages of a topic"
    WRITE_TOPIC = "messages to a topic"
    SUBSCRIPTION = "a durable subscription"
    SELECTOR = "a selector"
    POSITIONS = "a position queue"


NOT_KNOWN = "the bridge does not know this broker, and nothing in its answer tells"
"""Text in place of the behaviour of an unknown product that does not honour a feature."""
IGNORES_SELECTOR = "it sends every message, also those that the selector leaves out"


class ProductSession(Protocol):
    """Session with a broker that reported its product."""

    @property
    def product(self) -> Product:
        """Product of the broker."""

    @property
    def server(self) -> str:
        """Name and version as the broker reports them; empty if it reports none."""

    @property
    def drops_duplicates(self) -> bool:
        """True if the broker drops a message that comes again with the same id."""

    @property
    def lacks(self) -> Mapping[Feature, str]:
        """Features that the broker does not honour over the session's protocol, each with its behaviour instead."""


_REMEDIES = {
    Feature.READ_TOPIC: "Read a queue that the broker fills from the topic, or use type=stomp where it has STOMP",
    Feature.WRITE_TOPIC: "Send to a queue, or use type=stomp where it has STOMP",
    Feature.SUBSCRIPTION: "Remove {key}.subscription, and read a queue that the broker fills from the topic",
    Feature.SELECTOR: "Remove {key}.selector, and filter by routes.NAME.in.include",
    Feature.POSITIONS: "Remove {key}.position-queue; then messages may be sent twice after a crash",
}


def is_topic(address: str) -> bool:
    """Returns True if only the kind of an address, as in `topic:prices` or `topic/prices`, marks it as a topic."""
    parts = parsed(address)
    return parts is not None and parts[0] == "topic" and not parts[1].startswith(_SAYS_TOPIC)


def asked(endpoint: SystemEndpoint[Any]) -> Iterator[tuple[Feature, str]]:
    """Yields each feature that a source or sink asks for by its configuration, with the value that asks for it."""
    broker = endpoint.settings
    if not isinstance(broker, JmsSourceConfig):
        for route in endpoint.routes:
            for target in route.targets:
                if target.sink == broker.name and is_topic(address := str(target.address)):
                    yield Feature.WRITE_TOPIC, f"{address} of route '{route.name}'"
        if isinstance(broker, JmsSinkConfig) and broker.position_queue is not None:
            yield Feature.POSITIONS, broker.position_queue
        return
    if topics := [destination for destination in broker.destinations if is_topic(destination)]:
        yield Feature.READ_TOPIC, ", ".join(topics)
    if broker.subscription is not None:
        yield Feature.SUBSCRIPTION, broker.subscription
    if broker.selector is not None:
        yield Feature.SELECTOR, broker.selector


def require(endpoint: SystemEndpoint[Any], session: ProductSession) -> None:
    """Refuses a source or sink that asks for features that the broker of its session does not honour.

    Raises:
        HardFailureError: the configuration asks for such a feature; the text says what the broker does instead, and the
            remedy.
    """
    for feature, value in asked(endpoint):
        if (instead := session.lacks.get(feature)) is not None:
            raise refusal(endpoint.settings, feature, value, session.server or session.product.title, instead)


def duplicates(
    broker: BrokerConfig, connected: Callable[[str], AbstractContextManager[ProductSession]]
) -> Iterator[tuple[str, str]]:
    """Yields the doubt that a broker gets messages of a sink twice after a crash, with its remedy, if it may.

    Args:
        broker: the settings of the source or sink.
        connected: function that connects with a client id, for the time of a block.

    Raises:
        NotConnectedError: the connection failed.
        BridgeError: no attempt to connect can succeed.
    """
    if not isinstance(broker, JmsSinkConfig) or broker.accepts_duplicates or broker.position_queue is not None:
        return
    with connected(f"jms-bridge-doctor-{uuid.uuid4().hex[:8]}") as session:
        if session.drops_duplicates:
            return
        key, server = f"sink.{broker.name}", session.server or session.product.title
        accept = f"set {key}.accept-duplicates=true where receivers can take a message twice"
        positions = "" if Feature.POSITIONS in session.lacks else f"set {key}.position-queue, or "
        yield f"messages may come twice after a crash: {server} drops no duplicates", positions + accept


def refusal(broker: BrokerConfig, feature: Feature, value: str, name: str, instead: str) -> HardFailureError:
    """Error for a source or sink that asks for a feature that its broker does not honour."""
    key = f"{'source' if isinstance(broker, SourceConfig) else 'sink'}.{broker.name}"
    what = (
        f"{key} asks for {feature} ({value}), which {name} does not honour over {broker.type.name.upper()}: {instead}"
    )
    return HardFailureError(f"{what}. {_REMEDIES[feature].format(key=key)}")
