"""Traits of JMS brokers over STOMP: everything that a broker does in its own way, in one table.

STOMP leaves destinations, durable subscriptions, expiry and the kinds of messages to the broker. Each trait was
observed on ActiveMQ Artemis 2.40 and 2.56, ActiveMQ Classic 5.18.3 and 6.1.7, RabbitMQ 3.10.8 and 4.0.5, and
OpenMQ 6.5.0, and `docs/connectors/stomp.md` describes them for users. Sessions, sources, sinks and the conversion of
messages ask the traits and never the product.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from enum import Enum, auto
from types import MappingProxyType
from urllib.parse import quote

from engine.connectors.features import IGNORES_SELECTOR, NOT_KNOWN, Feature
from engine.connectors.products import ARTEMIS, CLASSIC, OPENMQ, RABBITMQ, Product
from engine.message import ORIGIN
from engine.property_names import ANY, JMS, NameRules
from routes.immutable import immutable

__all__ = ["ORIGINS", "SPECIFICATION", "TRAITS", "PlainBody", "StompTraits", "traits_of"]

_NONE: Mapping[str, str] = MappingProxyType({})
_NO_LACKS: Mapping[Feature, str] = MappingProxyType({})
_DURABLE = MappingProxyType({"durable-subscription-name": "{subscription}.{topic}"})
_ROUTING = {"queue": "ANYCAST", "topic": "MULTICAST"}
"""Kind of destination to Artemis's name of its routing type."""
_PLAIN_ORIGIN = "JMS_JmsBridge_Origin"
ORIGINS = (ORIGIN, _PLAIN_ORIGIN)
"""Headers that may hold the bridges which a message has passed."""
_JAVA_NAME = re.compile(
    r"(?!(?:NULL|TRUE|FALSE|NOT|AND|OR|BETWEEN|LIKE|IN|IS|ESCAPE)$)[^\W\d][\w$]*|\$[\w$]*", re.IGNORECASE
)
"""Names that OpenMQ takes for queues: identifiers of Java, without the words of selectors."""


class PlainBody(Enum):
    """Sign by which a broker's frames tell a text message from a bytes message."""

    LENGTH = auto()
    """Only bytes messages have a content-length, as in the examples of the specification."""
    LENGTH_FIRST = auto()
    """All have one; that of bytes messages stands before the message-id."""
    CONTENT = auto()
    """None: all have one, and the content decides, unless the sender gave a content-type."""


def _path(kind: str, name: str) -> str:
    return f"/{kind}/{name}"


def _bare(_kind: str, name: str) -> str:
    return name


def _url(kind: str, name: str) -> str:
    return f"{kind}://{name}"


def _classic_path(kind: str, name: str) -> str:
    # ActiveMQ Classic begins the names of all temporary destinations, and of no others, with the id of a connection.
    return f"/remote-temp-{kind}/{name}" if name.startswith("ID:") else f"/{kind}/{name}"


def _rabbit_path(kind: str, name: str) -> str:
    if name.startswith(_RABBIT_OWN):
        return name
    # `/queue/` declares the queue, which RabbitMQ refuses for a temporary one: that belongs to its client's connection.
    prefix = "/amq/queue" if name.startswith(_RABBIT_TEMPORARY) else f"/{kind}"
    return f"{prefix}/{quote(name, safe=_UNQUOTED)}"


_RABBIT_OWN = ("/amq/queue/", "/exchange/")
"""Beginnings of names that are in RabbitMQ's spelling already: they declare no queue, and so reach each type of one."""
_RABBIT_TEMPORARY = "jms-temp-queue-"
"""Beginning of the names that RabbitMQ's JMS client gives to temporary queues."""
_UNQUOTED = "".join(char for char in map(chr, range(33, 127)) if char not in "/%")


@immutable
class StompTraits:
    """Behaviour of a broker over STOMP; the default of each trait is the specification, or else the usual way."""

    lacks: Mapping[Feature, str] = field(default_factory=lambda: _NO_LACKS)
    """Features that the broker does not honour, each with its behaviour instead."""

    spelled: Callable[[str, str], str] = _path
    """Makes the header `destination` of kind (`queue` or `topic`) and name."""
    spelled_reply: Callable[[str, str], str] = _path
    """Makes the header `reply-to` of kind and name."""
    is_quoted: bool = False
    """The broker quotes names in the headers `destination` and `reply-to` as URLs do (`%2F`)."""
    kinds: Mapping[str, str] = field(default_factory=lambda: _NONE)
    """Words for the kinds, which headers of SUBSCRIBE (`subscription-type`) and SEND (`destination-type`) hold."""

    subscribe: Mapping[str, str] = field(default_factory=lambda: _NONE)
    """Further headers of each SUBSCRIBE."""
    durable: Mapping[str, str] = field(default_factory=lambda: _DURABLE)
    """Headers of the SUBSCRIBE of a durable subscription: `{client_id}`, `{subscription}`, `{topic}` are filled in."""
    keeps_selector: str = ""
    """Name of the queue of a durable subscription, where the broker keeps the selector with which it was created,
    whatever a later SUBSCRIBE says; filled in as `durable`. Empty: a new selector takes the place of the old one."""
    acknowledges_one: bool = True
    """The broker takes `client-individual`; else the source acknowledges cumulatively."""
    transformation: str = ""
    """Value of the header `transformation` of SUBSCRIBE which makes it convert map messages; empty: it cannot."""

    is_message_id: bool = True
    """`message-id` identifies the message; else it only identifies the delivery, and is not a JMSMessageID."""
    native_id: str = ""
    """Header with the id that the sender gave the message; precedes `message-id`."""
    returns: tuple[str, ...] = ()
    """Headers that count how often the broker has given the message out before."""
    absent_delivery_mode: str = ""
    """JMSDeliveryMode of a frame without the header `persistent`; empty: it is not known."""
    plain_body: PlainBody = PlainBody.LENGTH
    """Sign of a bytes message."""
    sends_modified_utf8: bool = False
    """True if texts of the broker may have NUL and the characters beyond U+FFFF in Java's modified UTF-8."""
    takes_modified_utf8: bool = False
    """True if the broker passes texts on as they are to clients that read modified UTF-8, and fail at UTF-8."""
    hides_bodies: bool = False
    """Map, stream and object messages come without a body and without a sign of their kind."""
    hidden_sender: str = ""
    """Header of messages from the clients whose bodies may be hidden; empty: those of every client may be."""
    garbles_maps: bool = False
    """Map messages of some entries come as texts that begin with NUL."""
    hangs_up: str = ""
    """Possible cause and remedy, for users, if the broker hangs up right behind acknowledgements; empty: not known."""
    foreign_type: str = ""
    """Value of the header `type` of messages whose bodies have the encoding of another protocol; empty: there are
    none."""
    omits: tuple[str, ...] = ()
    """JMS fields that its frames never have, though its messages may."""

    sent_id: str = ""
    """Header of SEND for the id of a message, which stays the same when it is sent again; empty: none."""
    drops_duplicates: bool = False
    """True if the broker drops a message that comes again with the same `sent_id`."""
    scheduled: str = ""
    """Header of SEND for a JMSDeliveryTime in the future; empty: none."""
    group_sequence: str = "JMSXGroupSeq"
    """Header of SEND for JMSXGroupSeq."""
    lifetime: str = ""
    """Header of SEND for the milliseconds that a message has left until JMSExpiration; empty: none."""
    is_expires_absolute: bool = True
    """`expires` of SEND is a time; else the header has another meaning, and is `lifetime` or left out."""
    with_non_persistent: Mapping[str, str] = field(default_factory=lambda: _NONE)
    """Further headers of SEND for a message that is not persistent."""
    needs_priority: bool = False
    """True if its JMS client fails to read the priority of a message that was sent without one."""
    marks_bytes: bool = False
    """A bytes message needs a content-type to be told from text."""
    errors_name_messages: bool = True
    """An ERROR about a message has its receipt-id."""
    refusals: re.Pattern[str] | None = None
    """Beginnings of errors about a message or its destination that no other try can change; None: not known."""
    origin: str = ORIGIN
    """Header of SEND for the bridges that a message has passed."""
    names: re.Pattern[str] | None = None
    """Names of queues that the broker takes; None: all."""
    property_names: NameRules = ANY
    """Names of properties that the broker takes; others have another spelling."""
    commands: re.Pattern[str] | None = None
    """Properties by which a sender would tell the broker how to treat a message or a queue; they are not sent."""


SPECIFICATION = StompTraits(
    lacks={Feature.SUBSCRIPTION: NOT_KNOWN, Feature.SELECTOR: NOT_KNOWN, Feature.POSITIONS: NOT_KNOWN}
)
"""Traits of a broker that the bridge does not know: it is assumed to follow STOMP and no more."""

TRAITS: Mapping[Product, StompTraits] = {
    ARTEMIS: StompTraits(
        lacks={
            Feature.POSITIONS: "an acknowledgement stays when its transaction is aborted; it needs none, as it drops "
            "duplicates itself"
        },
        spelled=_bare,
        # From a bare name, JMS clients of Artemis would make a destination that is neither queue nor topic.
        spelled_reply=_url,
        kinds=_ROUTING,
        # No limit to unacknowledged messages on their way; TCP limits these.
        subscribe={"consumer-window-size": "-1"},
        keeps_selector="{client_id}.{subscription}.{topic}",
        # From messages that arrived by AMQP.
        native_id="NATIVE_MESSAGE_ID",
        plain_body=PlainBody.LENGTH_FIRST,
        hides_bodies=True,
        # Of a connection of its JMS client. Headers of messages by AMQP tell their kind; STOMP has no such messages.
        hidden_sender="__AMQ_CID",
        garbles_maps=True,
        sent_id="_AMQ_DUPL_ID",
        drops_duplicates=True,
        scheduled="AMQ_SCHEDULED_TIME",
        group_sequence="_AMQ_GROUP_SEQUENCE",
    ),
    CLASSIC: StompTraits(
        spelled=_classic_path,
        spelled_reply=_classic_path,
        durable={"activemq.subscriptionName": "{subscription}.{topic}"},
        transformation="jms-xml",
        refusals=re.compile("User .{0,200} is not authorized to "),
        hangs_up="it does so at the acknowledgement of a message that came by AMQP; read such a queue with type=amqp "
        "or type=jms",
        absent_delivery_mode="NON_PERSISTENT",
        sends_modified_utf8=True,
        hides_bodies=True,
        omits=("JMSXGroupID", "JMSXGroupSeq"),
        commands=re.compile("(?:transformation|transformation-error|amq-msg-type)$"),
    ),
    RABBITMQ: StompTraits(
        lacks={
            Feature.SELECTOR: IGNORES_SELECTOR,
            Feature.POSITIONS: "its transactions are atomic for one queue only, and it ignores selectors",
        },
        spelled=_rabbit_path,
        spelled_reply=_rabbit_path,
        # Else it sends all that waits, and reads acknowledgements late: what they name comes again after a kill.
        subscribe={"prefetch-count": "1000"},
        is_quoted=True,
        durable={
            "durable": "true",
            "auto-delete": "false",
            "x-queue-name": "{client_id}.{subscription}.{topic}",
        },
        is_message_id=False,
        needs_priority=True,
        native_id="amqp-message-id",
        # Of quorum queues, the latter from 4.3 on.
        returns=("x-delivery-count", "x-acquired-count"),
        absent_delivery_mode="NON_PERSISTENT",
        plain_body=PlainBody.CONTENT,
        foreign_type="amqp-1.0",
        sent_id="amqp-message-id",
        lifetime="expiration",
        # Else it declares a queue for the connection alone: refused where a durable one exists, lost with the
        # connection where none does. The later of `persistent` and `durable` counts for the queue.
        with_non_persistent={"durable": "true"},
        marks_bytes=True,
        errors_name_messages=False,
        refusals=re.compile("(?:access_refused|not_found|precondition_failed|Invalid destination|Unknown destination)"),
        # Properties that say how to make the queue, who else gets the message, and what to compare with the login.
        commands=re.compile("x-|(?:durable|auto-delete|exclusive|expiration|user-id|cluster-id|CC|BCC)$"),
    ),
    OPENMQ: StompTraits(
        lacks={Feature.POSITIONS: "it refuses an acknowledgement in a transaction, which it commits nevertheless"},
        durable={"durable-subscriber-name": "{subscription}.{topic}"},
        acknowledges_one=False,
        plain_body=PlainBody.CONTENT,
        omits=("JMSDeliveryMode",),
        lifetime="expires",
        is_expires_absolute=False,
        errors_name_messages=False,
        # Its properties are those of JMS, whose names have no dots.
        origin=_PLAIN_ORIGIN,
        names=_JAVA_NAME,
        property_names=JMS,
        commands=re.compile("content-type$"),
    ),
}
"""Traits by product; a product that is not here has those of the specification."""


_OLD_CLASSIC = replace(TRAITS[CLASSIC], takes_modified_utf8=True)
"""Traits of ActiveMQ Classic before AMQ-8398, in 5.18.6 and 6.1.4."""
_VERSION = re.compile(r"/([0-9]{1,6})\.([0-9]{1,6})(?:\.([0-9]{1,6}))?")


def traits_of(product: Product, server: str = "") -> StompTraits:
    """Returns the traits of a broker; `server` is the name that it gives, with its version."""
    if product is CLASSIC and (match := _VERSION.search(server)) is not None:
        version = tuple(int(number or 0) for number in match.groups())
        if version < (5, 18, 6) or (6, 0, 0) <= version < (6, 1, 4):
            return _OLD_CLASSIC
    return TRAITS.get(product, SPECIFICATION)
