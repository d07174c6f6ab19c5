"""Needs and limits of JMS providers beyond the specification, recognised by the classes of their clients."""

from __future__ import annotations

from typing import TYPE_CHECKING

from routes.immutable import immutable

if TYPE_CHECKING:
    from engine.connectors.jms_client.settings import JmsClientConfig

__all__ = ["Provider", "provider_of"]

_INITIAL_CONTEXT = "java.naming.factory.initial"


@immutable
class Provider:
    """Traits of a provider; the defaults are for one of which nothing is known."""

    most_received: int = 4000
    """Messages that a source acknowledges in one transaction at most; it receives nothing while the last of them enter
    the journal, so a transaction of few is slow."""
    most_sent: int = 500
    """Messages that a sink sends in one transaction at most."""
    duplicate_id: str | None = None
    """Property by which the broker recognises a message that is sent twice; None: it does not."""
    deserialized: str = "!*"
    """Filter (JEP 290) for objects that the client deserialises in every message."""


_UNKNOWN = Provider()
_PROVIDERS = {
    "org.apache.activemq.artemis.": Provider(duplicate_id="_AMQ_DUPL_ID"),
    "com.rabbitmq.jms.": Provider(deserialized="com.rabbitmq.jms.admin.RMQDestination;!*"),
    # The broker's imq.transaction.consumer.maxNumMsgs, by default; it refuses the whole transaction.
    "com.sun.messaging.": Provider(most_received=100),
    # The broker allows 256 messages in all by default, the positions of a sink included.
    "com.solacesystems.": Provider(most_received=200, most_sent=200),
}
"""Providers by the beginning of the names of their connection factories and initial contexts."""


def provider_of(broker: JmsClientConfig) -> Provider:
    """Returns the provider whose client a connection uses; one of which nothing is known, if no class tells."""
    names = (broker.factory, broker.jndi.get(_INITIAL_CONTEXT))
    matching = (each for start, each in _PROVIDERS.items() for name in names if name and name.startswith(start))
    return next(matching, _UNKNOWN)
