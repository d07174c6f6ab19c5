"""Destinations of sinks: what each system can be sent to, and templates such as `orders.${msg.header.region}`.

A template is a value: `routes.config` reads it, the router makes a Column of it, `explain` fills it in for one message.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from routes.predicate.nodes import ADDRESS

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "ADDRESSES",
    "JMS",
    "KAFKAS_OWN",
    "KAFKA_TOPIC",
    "NETWORKED",
    "REPLY_FORMAT",
    "REPLY_SINK",
    "REPLY_TO",
    "REQUEST_FORMAT",
    "TOPIC",
    "Addresses",
    "Reference",
    "System",
    "Template",
    "audit_topic",
    "may_be_sent_to",
    "quarantine_topic",
    "reply_route",
    "set_aside_topic",
    "sink_topic",
    "state_topic",
]

REPLY_SINK = "JMS_JmsBridge_ReplySink"
"""Property of a reply that the bridge takes back: the sink that leads to who asked. In JMS, names that begin with
`JMS_` and a vendor are the provider's; no source takes such a one of the bridge from outside."""
REPLY_TO = "JMS_JmsBridge_ReplyTo"
"""Beside it: where that sink sends it."""
REPLY_FORMAT = "JMS_JmsBridge_ReplyFormat"
"""Beside it, where the request came over NATS: the `WireFormat` in which that sink sends it."""
REQUEST_FORMAT = "JMS_JmsBridge_RequestFormat"
"""Property of a request from NATS: the `WireFormat` in which it came, and in which its reply goes back."""


class System(StrEnum):
    """The kinds of systems that sources and sinks connect to."""

    STOMP = "stomp"
    AMQP = "amqp"
    NATS = "nats"
    DROPBOX = "dropbox"
    KAFKA = "kafka"
    """Only to take from: what goes to a topic needs no sink."""


JMS = (System.STOMP, System.AMQP)
"""What speaks to JMS brokers."""
NETWORKED = (*JMS, System.NATS)
"""What is reached by a connection of its own, to a URL."""


@dataclass(frozen=True, slots=True)
class Addresses:
    """What one system can be sent to."""

    pattern: str
    """Regular expression that a whole address has to match; Java and Python read it alike."""
    expected: str
    """For people."""
    internal: str = "(?!)"
    """Regular expression of how addresses begin that its servers use themselves, such as to be managed."""

    @property
    def allowed(self) -> str:
        """Regular expression of whole addresses that a message, or its sender, may choose; read alike as well."""
        return f"(?!{self.internal})(?:{self.pattern})"


def may_be_sent_to(system: System, address: str) -> bool:
    """Whether an address is one of that system, and none by which its servers are managed."""
    return re.fullmatch(ADDRESSES[system].allowed, address) is not None


_JMS_PATTERN = r"/?(?:queue|topic)[/:][^\x00-\x1f\x7f]{1,500}"
_JMS_INTERNAL = (
    # A name may have another one behind a comma (lists of ActiveMQ Classic), a colon or a slash (prefixes of kinds).
    r"/?(?:queue|topic)[/:](?:.*[,/: ])?(?:jms\.(?:queue|topic)\.)?"
    # Artemis, with `$sys.` and `$.artemis.internal`; `$management` of AMQP brokers; ActiveMQ Classic; RabbitMQ.
    r"(?:activemq\.(?:management|notifications)|\$|ActiveMQ\.Advisory|amq\.)"
)
# Not the buckets of values and objects: those belong to applications.
_NATS_INTERNAL = r"(?:(?:queue|topic)[/:])?\$(?!(?:KV|O)\.)"

ADDRESSES: Mapping[System, Addresses] = {
    **{
        each: Addresses(_JMS_PATTERN, f"queue/NAME or topic/NAME, as in {each}:queue/orders", _JMS_INTERNAL)
        for each in JMS
    },
    System.NATS: Addresses(
        r"(?:(?:queue|topic)[/:])?[^\x00-\x20\x7f.*>]{1,500}(?:\.[^\x00-\x20\x7f.*>]{1,500}){0,100}",
        "a subject without wildcards, as in nats:orders.eu",
        _NATS_INTERNAL,
    ),
    System.DROPBOX: Addresses(
        r"/?(?:queue[/:])?(?!(?:queue|topic)[/:]|(?:topic-root|dropboxmq|global-read-lock)$)"
        r"[^\x00-\x1f\x7f./][^\x00-\x1f\x7f/]{0,254}"
        r"|/?topic[/:][^\x00-\x1f\x7f./]{1,255}(?:\.[^\x00-\x1f\x7f./]{1,255}){0,30}",
        "queue/NAME, topic/NAME or the NAME of a queue, as in dropbox:queue/orders",
    ),
}
"""By the type of the sink. NATS subjects may be written like the topics that messages from there come from. Names of
dropboxes become names of folders: none begins with a dot, leads out of its folder or means something to DropboxMQ."""


KAFKA_TOPIC = "kafka.topic"
"""In the address of a Kafka source: the topic that the record is from. No header has a name with a dot."""
_PLAIN = {ADDRESS: ADDRESS, KAFKA_TOPIC: "topic"}
TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
"""What Kafka takes for a topic's name, `.` and `..` excepted."""
KAFKAS_OWN = "__"
"""How topics of Kafka itself begin."""


@dataclass(frozen=True, slots=True)
class Reference:
    """`${msg.header.NAME}`, `${msg.address}` or `${topic}`: a text of the message."""

    name: str
    """The JMS field or property, in JMS spelling, `msg.address`, or `KAFKA_TOPIC`."""

    def __str__(self) -> str:
        return f"${{{_PLAIN.get(self.name, f'msg.header.{self.name}')}}}"


@dataclass(frozen=True, slots=True)
class Template:
    """Text, and references between it."""

    parts: tuple[str | Reference, ...]

    @property
    def references(self) -> tuple[Reference, ...]:
        """What it takes from the message; nothing if it is the same for all messages."""
        return tuple(part for part in self.parts if isinstance(part, Reference))

    def fill(self, text_of: Callable[[str], str | None]) -> str | None:
        """The text for one message, whose headers `text_of` gives; None if one of them is missing or empty."""
        texts = [part if isinstance(part, str) else text_of(part.name) for part in self.parts]
        return "".join(text for text in texts if text) if all(texts) else None

    @property
    def pattern(self) -> str:
        """Regular expression of all that it can make."""
        return "".join(re.escape(part) if isinstance(part, str) else ".+" for part in self.parts)

    def __str__(self) -> str:
        return "".join(map(str, self.parts))


def sink_topic(name: str) -> str:
    """The Kafka topic between the router and `sink.<name>`, unless the configuration names another."""
    return f"jms-bridge.sink.{name}"


def state_topic(journal: str) -> str:
    """The topic of a bridge's own state beside a journal, unless the configuration names another."""
    return f"{journal}.state"


def set_aside_topic(journal: str) -> str:
    """The topic for dead letters of a bridge whose configuration names none."""
    return f"{journal}.set-aside"


def audit_topic(dead_letters: str) -> str:
    """The topic beside the dead letters that says which of them are settled: by whom, when and how."""
    return f"{dead_letters}.replayed"


def quarantine_topic(dead_letters: str) -> str:
    """The topic beside the dead letters for those that were replayed too often."""
    return f"{dead_letters}.quarantine"


def reply_route(sink: str) -> str:
    """Name of the route that the bridge adds for replies to those who asked on the broker of a sink."""
    return f"replies to {sink}"
