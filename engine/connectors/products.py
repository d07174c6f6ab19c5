"""JMS broker products, recognised by the name that they report, or named by the key `broker`."""

from __future__ import annotations

import re
from difflib import get_close_matches

from routes.immutable import immutable
from routes.keys.values import BadValueError, ValueKind, one_of

__all__ = [
    "ARTEMIS",
    "BROKER_J",
    "CLASSIC",
    "COMMANDS",
    "OPENMQ",
    "PRODUCT",
    "RABBITMQ",
    "Product",
    "product_of",
]

COMMANDS = re.compile("_{0,2}AMQ_")
"""Prefix of properties that command ActiveMQ Artemis and Classic: management operations, routing, schedules, last
values, identities. The bridge passes them on to no JMS broker; sinks set their own."""


@immutable
class Product:
    """JMS broker product."""

    title: str
    key: str = ""
    """Value of the key `broker`; empty: the bridge does not know the product."""
    mark: str = ""
    """Lower-case part of the name that the broker reports; empty: it reports none."""


ARTEMIS = Product("ActiveMQ Artemis", "artemis", "artemis")
"""Broker for which the bridge is made: the bridge uses its spelling of destinations, and ids by which it drops
duplicates."""
CLASSIC = Product("ActiveMQ Classic", "activemq-classic", "activemq")
RABBITMQ = Product("RabbitMQ", "rabbitmq", "rabbitmq")
BROKER_J = Product("Qpid Broker-J", "broker-j", "qpid broker-j")
OPENMQ = Product("OpenMQ", "openmq", "openmq")
_KNOWN = (ARTEMIS, CLASSIC, RABBITMQ, BROKER_J, OPENMQ, Product("JMS bridge", "jms-bridge", "jms-bridge"))
"""Known products, in the order in which their marks are looked up in a broker's name."""


def product_of(name: str) -> Product:
    """Finds the product that reports `name`; an unknown one has that name as its title."""
    lowered = name.lower()
    unknown = Product(name or "a broker that does not say its name")
    return next((product for product in _KNOWN if product.mark and product.mark in lowered), unknown)


def _parse(text: str) -> Product:
    """Returns the product with this key; raises BadValueError with the nearest one."""
    by_key = {product.key: product for product in _KNOWN}
    if text not in by_key:
        near = get_close_matches(text.lower(), by_key, n=1)
        hint = f"did you mean {near[0]}?" if near else "remove the line for another broker"
        raise BadValueError(f"'{text}' is not {one_of(list(by_key))}", hint)
    return by_key[text]


PRODUCT = ValueKind(
    " \\| ".join(f"`{product.key}`" for product in _KNOWN), one_of([product.key for product in _KNOWN]), _parse
)
"""Value of the key `broker`."""
