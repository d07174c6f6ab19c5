"""Table of the differences of JMS brokers over AMQP 1.0.

Observed on ActiveMQ Artemis 2.44, ActiveMQ Classic 5.18 and 6.1, RabbitMQ 3.10 and 4.0, and Qpid Broker-J 9.2.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from engine.connectors.amqp.annotations import DESTINATION, MESSAGE_TYPE, PREFIXES
from engine.connectors.amqp.codec.values import Symbol
from engine.connectors.amqp.rabbitmq_messages import unpacked
from engine.connectors.features import IGNORES_SELECTOR, NOT_KNOWN, Feature
from engine.connectors.products import ARTEMIS, BROKER_J, CLASSIC, RABBITMQ, Product
from routes.immutable import immutable

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from engine.connectors.amqp.codec.sections import Sections

__all__ = ["SPECIFIED", "TRAITS", "AmqpTraits", "traits_of"]

_SHARED = "SHARED-SUBS"
"""Capability of brokers that implement the JMS mapping, and so know topics (AMQP JMS mapping, section 5.1)."""

_LINK_PAIRS = "LINK_PAIR_V1_0"
"""Capability of RabbitMQ's native AMQP 1.0, which version 4 has."""
_FROM_4 = re.compile(r"rabbitmq[ /](?:[4-9]|[1-9][0-9]{1,5})\.", re.IGNORECASE)
"""Name that RabbitMQ gives itself from version 4 on."""
_WITH_SCHEME = re.compile("|".join(PREFIXES))


@immutable
class AmqpTraits:
    """Differences of a broker over AMQP 1.0; the defaults are those of AMQP and its JMS mapping."""

    lacks: Mapping[Feature, str] = field(default_factory=dict)
    """Features that the broker does not honour, each with its behaviour instead."""
    shares_subscriptions: bool = False
    """True if several connections of a client may share a durable subscription."""
    prefixes: Mapping[str, str] = field(default_factory=dict)
    """Prefix of addresses by kind of destination, `queue` or `topic`; none: the kind is told by capabilities alone."""
    temporary_names: str = ""
    """Beginning of the names of temporary destinations, and of no others, whose prefix has `temp-` before it; empty:
    they are spelt as all others."""
    needs_priority: bool = False
    """True if its own JMS client fails to read the priority of a message that was sent without one."""
    kinds: Mapping[str, str] = field(default_factory=lambda: PREFIXES)
    """Kinds of destinations by the prefix that an address in a message has, and that is not a part of the name."""
    spelt: re.Pattern[str] = _WITH_SCHEME
    """Beginning of names that are already an address in the broker's own spelling."""
    is_quoted: bool = False
    """True if names in addresses behind a prefix of the broker are quoted as in URLs (`%2F`)."""
    declares_queues: bool = False
    """True if the broker declares the queue of each link that is attached: as durable if the terminus says so. Else it
    refuses the link where a durable queue exists, and loses a new queue with its messages when it restarts."""
    jms_marks: frozenset[Symbol] = frozenset((MESSAGE_TYPE,))
    """Message annotations of which any marks a message as one of a JMS client."""
    unpacked: Callable[[Sections], Sections] | None = None
    """Function that finds a message of the broker's own JMS client in the body of another; None: there are none."""
    marks_redelivery: bool = False
    """True if the broker says by first-acquirer, in place of the delivery count, that a message comes again."""
    returns: frozenset[Symbol] = frozenset()
    """Message annotations that count how often the broker has given the message out before."""
    drops_duplicates: bool = False
    """True if the broker drops a message that comes again with the same `_AMQ_DUPL_ID`."""
    releases_unroutable: bool = False
    """True if the broker releases a message that no queue takes; else it releases what it cannot take just now."""
    checks_users: bool = False
    """True if the broker ends the session at a message whose user-id is not the user that has logged in."""
    limits_deliveries: bool = False
    """True if the broker drops a message that it gave out too often, also where connections ended for other reasons."""
    final_errors: tuple[str, ...] = ()
    """First words of errors that no other try can change, although their condition does not say so."""
    raw_for_others: bool = False
    """True if the broker's clients of another protocol may get the encoded AMQP message as a bytes message."""

    def spelling(self, kind: str, name: str) -> str:
        """Returns the address of a queue or topic; a name that is already in the broker's spelling stays as it is."""
        if self.spelt.match(name):
            return name
        is_temporary = bool(self.temporary_names) and name.startswith(self.temporary_names)
        written = quote(name, safe="") if self.is_quoted else name
        return f"{'temp-' if is_temporary else ''}{self.prefixes.get(kind, '')}{written}"

    def destination(self, address: str, kind: str | None, default: str) -> str:
        """Returns `queue:NAME` or `topic:NAME` for an address in a message.

        The kind is `kind`, else that of the prefix of the address in `kinds`, else `default`.
        """
        for prefix, its_kind in self.kinds.items():
            if address.startswith(prefix):
                name = address[len(prefix) :]
                is_quoted = self.is_quoted and prefix in self.prefixes.values()
                return f"{kind or its_kind}:{unquote(name) if is_quoted else name}"
        return f"{kind or default}:{address}"


SPECIFIED = AmqpTraits()
"""Traits of a broker that follows AMQP and its JMS mapping."""
TRAITS: Mapping[Product, AmqpTraits] = {
    ARTEMIS: AmqpTraits(
        drops_duplicates=True,
        # Artemis reports as internal: no permission to create the address or queue, no queue name.
        final_errors=("AMQ229032", "AMQ229216"),
    ),
    CLASSIC: AmqpTraits(
        # Without the prefix, every address is a queue, and its attach still says what it was asked for.
        prefixes={"queue": "queue://", "topic": "topic://"},
        # The id of its owner's connection.
        temporary_names="ID:",
        # Its OpenWire clients' messages have no message type, but always the kind of their destination.
        jms_marks=frozenset((MESSAGE_TYPE, DESTINATION)),
        raw_for_others=True,
    ),
    RABBITMQ: AmqpTraits(
        lacks={
            Feature.READ_TOPIC: "each connection leaves a queue behind that fills without end",
            Feature.SUBSCRIPTION: "it drops what is sent while the bridge is not connected",
            Feature.SELECTOR: IGNORES_SELECTOR,
            Feature.POSITIONS: "it has no transactions over AMQP 1.0",
        },
        prefixes={"topic": "/topic/"},
        kinds={**PREFIXES, "/queue/": "queue", "/amq/queue/": "queue", "/topic/": "topic"},
        spelt=re.compile("/"),
        declares_queues=True,
        needs_priority=True,
        unpacked=unpacked,
        marks_redelivery=True,
        # Of quorum queues, the latter from 4.3 on; the delivery count leaves out connections that were closed in order.
        returns=frozenset((Symbol("x-delivery-count"), Symbol("x-acquired-count"))),
        checks_users=True,
    ),
    # EXCHANGE/KEY; without an exchange, an address is that of a queue.
    BROKER_J: AmqpTraits(prefixes={"topic": "amq.topic/"}, spelt=re.compile(".*/")),
}
"""Traits of known products."""


_OLD_RABBITMQ = TRAITS[RABBITMQ]
_NATIVE_RABBITMQ = replace(
    _OLD_RABBITMQ,
    lacks={
        **_OLD_RABBITMQ.lacks,
        Feature.READ_TOPIC: "it sends what is in queues alone; a topic is refused, or leaves a queue behind that "
        "fills without end",
    },
    # Version 2 of its addresses. Version 1 is refused from 4.3 on, unless its feature `amqp_address_v1` is permitted.
    prefixes={"queue": "/queues/", "topic": "/exchanges/amq.topic/"},
    kinds={**_OLD_RABBITMQ.kinds, "/queues/": "queue", "/exchanges/amq.topic/": "topic"},
    is_quoted=True,
    declares_queues=False,
    releases_unroutable=True,
    limits_deliveries=True,
)
"""Traits of RabbitMQ from version 4 on, which has AMQP 1.0 built in."""


def traits_of(product: Product, capabilities: Collection[str], server: str = "") -> AmqpTraits:
    """Returns the traits of a broker with these capabilities; `server` is the name that it gives, with its version.

    Of an unknown broker, its capabilities tell whether it knows topics.
    """
    traits = TRAITS.get(product, SPECIFIED)
    if product is RABBITMQ and _is_native(capabilities, server):
        traits = _NATIVE_RABBITMQ
    if not product.key and _SHARED not in capabilities:
        traits = replace(traits, lacks={Feature.READ_TOPIC: NOT_KNOWN, Feature.WRITE_TOPIC: NOT_KNOWN})
    return replace(traits, shares_subscriptions=_SHARED in capabilities)


def _is_native(capabilities: Collection[str], server: str) -> bool:
    """Returns True for RabbitMQ 4: by what it offers, also where a proxy has put its own name in place of its."""
    return _LINK_PAIRS in capabilities or _FROM_4.match(server) is not None
