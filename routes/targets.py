"""Destinations of sinks: the addresses that each system takes, and templates such as `orders.${msg.header.region}`.

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
"""Property of a reply that the bridge takes back: the name of the sink that leads to the asker. In JMS, names that
begin with `JMS_` and a vendor belong to the provider; no source accepts such a property of the bridge from outside."""
REPLY_TO = "JMS_JmsBridge_ReplyTo"
"""Property beside it: the address to which that sink sends the reply."""
REPLY_FORMAT = "JMS_JmsBridge_ReplyFormat"
"""Property beside it, if the request came over NATS: the `WireFormat` in which that sink sends the reply."""
REQUEST_FORMAT = "JMS_JmsBridge_RequestFormat"
"""Property of a request from NATS: the `WireFormat` in which it came, and in which its reply goes back."""


class System(StrEnum):
    """The kinds of systems that sources and sinks connect to."""

    STOMP = "stomp"
    AMQP = "amqp"
    NATS = "nats"
    DROPBOX = "dropbox"
    KAFKA = "kafka"
    """For sources only: a message that goes to a Kafka topic needs no sink."""


JMS = (System.STOMP, System.AMQP)
"""Systems that are JMS brokers."""
NETWORKED = (*JMS, System.NATS)
"""Systems that are reached by a connection to a URL of their own."""


@dataclass(frozen=True, slots=True)
class Addresses:
    """The addresses that one system takes."""

    pattern: str
    """Regular expression that a whole address has to match; Java and Python read it alike."""
    expected: str
    """Description of the addresses, for messages to users."""
    internal: str = "(?!)"
    """Regular expression of the beginnings of addresses that the system's servers use themselves, such as for
    management."""

    @property
    def allowed(self) -> str:
        """Regular expression of whole addresses that a message or its sender may choose.

        Java and Python read it alike.
        """
        return f"(?!{self.internal})(?:{self.pattern})"


def may_be_sent_to(system: System, address: str) -> bool:
    """Returns True if an address is one of that system, and is not used by its servers themselves."""
    return re.fullmatch(ADDRESSES[system].allowed, address) is not None


_JMS_PATTERN = r"/?(?:queue|topic)[/:][^\x00-\x1f\x7f]{1,500}"
_JMS_INTERNAL = (
    # A name may have another one behind a comma (lists of ActiveMQ Classic), a colon or a slash (prefixes of kinds).
    r"/?(?:queue|topic)[/:](?:.*[,/: ])?(?:jms\.(?:queue|topic)\.)?"
    # Artemis, with `$sys.` and `$.artemis.internal`; `$management` of AMQP brokers; ActiveMQ Classic; RabbitMQ.
    r"(?:activemq\.(?:management|notifications)|\$|ActiveMQ\.Advisory|amq\.)"
)
# Excepted are the buckets of values and objects, `$KV` and `$O`, which belong to applications.
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
"""Addresses by the type of the sink. NATS subjects may be written like the topics that messages from there come from.
Names of dropboxes become names of folders: none begins with a dot, leads out of its folder or means something to
DropboxMQ."""


KAFKA_TOPIC = "kafka.topic"
"""Reference in the address of a Kafka source to the topic that the record is from. No header has a name with a dot."""
_PLAIN = {ADDRESS: ADDRESS, KAFKA_TOPIC: "topic"}
TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
"""Pattern of topic names that Kafka takes; `.` and `..`, which Kafka does not take, match as well."""
KAFKAS_OWN = "__"
"""Prefix of the topics of Kafka itself."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A reference in a template: `${msg.header.NAME}`, `${msg.address}` or `${topic}`, a text of the message."""

    name: str
    """The JMS field or property, in JMS spelling, `msg.address`, or `KAFKA_TOPIC`."""

    def __str__(self) -> str:
        return f"${{{_PLAIN.get(self.name, f'msg.header.{self.name}')}}}"


@dataclass(frozen=True, slots=True)
class Template:
    """A text with references in it."""

    parts: tuple[str | Reference, ...]

    @property
    def references(self) -> tuple[Reference, ...]:
        """The references to the message; empty if the text is equal for all messages."""
        return tuple(part for part in self.parts if isinstance(part, Reference))

    def fill(self, text_of: Callable[[str], str | None]) -> str | None:
        """Returns the text for one message, whose headers `text_of` gives; None if one of them is missing or empty."""
        texts = [part if isinstance(part, str) else text_of(part.name) for part in self.parts]
        return "".join(text for text in texts if text) if all(texts) else None

    @property
    def pattern(self) -> str:
        """Regular expression of all texts that the template can make."""
        return "".join(re.escape(part) if isinstance(part, str) else ".+" for part in self.parts)

    def __str__(self) -> str:
        return "".join(map(str, self.parts))


def sink_topic(name: str) -> str:
    """Returns the Kafka topic between the router and `sink.<name>`, unless the configuration names another."""
    return f"jms-bridge.sink.{name}"


def state_topic(journal: str) -> str:
    """Returns the topic of a bridge's own state beside a journal, unless the configuration names another."""
    return f"{journal}.state"


def set_aside_topic(journal: str) -> str:
    """Returns the topic for dead letters of a bridge whose configuration names none."""
    return f"{journal}.set-aside"


def audit_topic(dead_letters: str) -> str:
    """Returns the topic beside the dead letters that says which of them are settled: by whom, when and how."""
    return f"{dead_letters}.replayed"


def quarantine_topic(dead_letters: str) -> str:
    """Returns the topic beside the dead letters for those that were replayed too often."""
    return f"{dead_letters}.quarantine"


def reply_route(sink: str) -> str:
    """Returns the name of the route that the bridge adds for replies to askers on the broker of a sink."""
    return f"replies to {sink}"
