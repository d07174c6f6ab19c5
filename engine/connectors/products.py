"""JMS broker products, recognised by the name they report, and the features that each silently does not honour.

A broker that ignores a durable subscription, a selector or the kind of a destination does not say so: it confirms the
request, and messages are lost or go elsewhere. So a source or sink that asks for such a feature is refused when it
connects. Observed on ActiveMQ Artemis 2.40, ActiveMQ Classic 5.18, RabbitMQ 3.10 and Qpid Broker-J 9.2.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING

from engine.connectors.addresses import parsed
from engine.connectors.jms import JmsSourceConfig
from engine.errors import HardFailureError
from routes.immutable import immutable
from routes.model import SourceConfig

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from routes.model import BrokerConfig, Config

__all__ = ["ARTEMIS", "COMMANDS", "Feature", "Product", "asked", "is_topic", "product_of", "refusal", "require"]

_STOMP = "stomp"
_AMQP = "amqp"
_SHARED = "SHARED-SUBS"
"""Capability of AMQP brokers that implement the JMS mapping, and so know topics (AMQP JMS mapping, section 5.1)."""
_SAYS_TOPIC = "topic://"
"""Prefix of an address that itself says that it is a topic."""


COMMANDS = re.compile("_{0,2}AMQ_")
"""Prefix of properties that command ActiveMQ Artemis and Classic: management operations, routing, schedules, last
values, identities. The bridge passes them on to no JMS broker; sinks set their own."""


class Feature(StrEnum):
    """Feature that a source or sink may ask of a JMS broker; its value is the text in error messages."""

    READ_TOPIC = "messages of a topic"
    WRITE_TOPIC = "messages to a topic"
    SUBSCRIPTION = "a durable subscription"
    SELECTOR = "a selector"


@immutable
class Product:
    """JMS broker product."""

    title: str
    mark: str
    """Lower-case part of the name that the broker reports."""
    lacks: Mapping[str, Mapping[Feature, str]]
    """Features that the broker does not honour, by protocol, each with what it does instead."""
    stomp_commands: re.Pattern[str] = re.compile("(?!)")
    """Pattern of the properties, besides `COMMANDS`, that command this broker over STOMP how to treat a message or a
    queue."""

    def lack(self, system: str, feature: Feature) -> str | None:
        """Returns what the broker does instead of `feature`; None if it honours the feature."""
        return self.lacks.get(system, {}).get(feature)


ARTEMIS = Product("ActiveMQ Artemis", "artemis", {})
"""Broker for which the bridge is made: the bridge uses its spelling of destinations, and ids by which it drops
duplicates."""
_NOT_KNOWN = "the bridge does not know this broker, and nothing in its answer tells"
_KNOWN = (
    ARTEMIS,
    Product(
        "ActiveMQ Classic",
        "activemq",
        {
            _AMQP: {
                Feature.READ_TOPIC: "it reads a queue of that name",
                Feature.WRITE_TOPIC: "it puts them into a queue of that name",
            }
        },
        re.compile("(?:transformation|transformation-error|amq-msg-type)$"),
    ),
    Product(
        "RabbitMQ",
        "rabbitmq",
        {
            _STOMP: {
                Feature.SUBSCRIPTION: "it drops what is sent while the bridge is not connected",
                Feature.SELECTOR: "it sends every message, also those that the selector leaves out",
            },
            _AMQP: {
                Feature.READ_TOPIC: "it reads a queue of that name",
                Feature.WRITE_TOPIC: "it puts them into a queue of that name",
                Feature.SELECTOR: "it sends every message, also those that the selector leaves out",
            },
        },
        # Properties that say how to make the queue, who else gets the message, and what to compare with the login.
        re.compile("x-|(?:durable|auto-delete|exclusive|expiration|user-id|cluster-id|CC|BCC)$"),
    ),
    Product(
        "Qpid Broker-J",
        "qpid broker-j",
        {_AMQP: {Feature.WRITE_TOPIC: "it puts them into the queue of that name, if there is one"}},
    ),
    Product("JMS bridge", "jms-bridge", {}),
)
"""Known products, in the order in which their marks are looked up in a broker's name."""
_TOPICS_UNKNOWN = {Feature.READ_TOPIC: _NOT_KNOWN, Feature.WRITE_TOPIC: _NOT_KNOWN}
_REMEDIES = {
    Feature.READ_TOPIC: "Read a queue that the broker fills from the topic, or use type=stomp where it has STOMP",
    Feature.WRITE_TOPIC: "Send to a queue, or use type=stomp where it has STOMP",
    Feature.SUBSCRIPTION: "Remove {key}.subscription, and read a queue that the broker fills from the topic",
    Feature.SELECTOR: "Remove {key}.selector, and filter by routes.NAME.in.include",
}


def product_of(system: str, name: str, offered: Iterable[str] = ()) -> Product:
    """Finds the product that reports `name`; `offered` are the broker's capabilities over AMQP.

    Of an unknown product the bridge assumes only what the protocol specifies.
    """
    lowered = name.lower()
    for product in _KNOWN:
        if product.mark in lowered:
            return product
    title = name or "a broker that does not say its name"
    if system is _AMQP:
        return Product(title, "", {} if _SHARED in offered else {system: _TOPICS_UNKNOWN})
    return Product(title, "", {system: {Feature.SUBSCRIPTION: _NOT_KNOWN, Feature.SELECTOR: _NOT_KNOWN}})


def is_topic(address: str) -> bool:
    """Returns True if only the kind of an address, as in `topic:prices` or `topic/prices`, marks it as a topic."""
    found = parsed(address)
    return found is not None and found[0] == "topic" and not found[1].startswith(_SAYS_TOPIC)


def asked(config: Config, broker: BrokerConfig) -> Iterator[tuple[Feature, str]]:
    """Yields each feature that a source or sink asks for by its configuration, with the value that asks for it."""
    if not isinstance(broker, JmsSourceConfig):
        for route in config.routes:
            if route.target.sink == broker.name and is_topic(address := str(route.target.address)):
                yield Feature.WRITE_TOPIC, f"{address} of route '{route.name}'"
        return
    if topics := [destination for destination in broker.destinations if is_topic(destination)]:
        yield Feature.READ_TOPIC, ", ".join(topics)
    if broker.subscription is not None:
        yield Feature.SUBSCRIPTION, broker.subscription
    if broker.selector is not None:
        yield Feature.SELECTOR, broker.selector


def require(config: Config, broker: BrokerConfig, product: Product, name: str) -> None:
    """Refuses a source or sink that asks for features that `product`, which reports `name`, does not honour.

    Raises:
        HardFailureError: the configuration asks for such a feature; the text says what the broker does instead, and the
            remedy.
    """
    for feature, value in asked(config, broker):
        if (instead := product.lack(broker.type.name, feature)) is not None:
            raise refusal(broker, feature, value, name or product.title, instead)


def refusal(broker: BrokerConfig, feature: Feature, value: str, name: str, instead: str) -> HardFailureError:
    """Error for a source or sink that asks for a feature that its broker does not honour."""
    key = f"{'source' if isinstance(broker, SourceConfig) else 'sink'}.{broker.name}"
    what = (
        f"{key} asks for {feature} ({value}), which {name} does not honour over {broker.type.name.upper()}: {instead}"
    )
    return HardFailureError(f"{what}. {_REMEDIES[feature].format(key=key)}")
