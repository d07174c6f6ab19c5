"""Destinations of routes: templates such as `orders.${msg.header.region}`, and the names of the bridge's own topics.

A template is a value: `routes.config` reads it, the router makes a Column of it, `explain` fills it in for one message.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from routes.predicate.nodes import ADDRESS, PATHS

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "KAFKAS_OWN",
    "KAFKA_TOPIC",
    "REPLY_FORMAT",
    "REPLY_SINK",
    "REPLY_TO",
    "REQUEST_FORMAT",
    "TOPIC",
    "Reference",
    "Template",
    "actions_topic",
    "audit_topic",
    "looks_topic",
    "position_topic",
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


KAFKA_TOPIC = "kafka.topic"
"""Reference in the address of a Kafka source to the topic that the record is from. No header has a name with a dot."""
_PLAIN = {ADDRESS: ADDRESS, KAFKA_TOPIC: "topic"}
TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
"""Pattern of topic names that Kafka takes; `.` and `..`, which Kafka does not take, match as well."""
KAFKAS_OWN = "__"
"""Prefix of the topics of Kafka itself."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A text of the message in a template: `${msg.header.NAME}`, `${msg.body.NAME}`, `${msg.address}` or `${topic}`."""

    name: str
    """The JMS field or property, in JMS spelling, a path into the body, `msg.address`, or `KAFKA_TOPIC`."""

    def __str__(self) -> str:
        name = self.name if self.name.startswith(PATHS) else f"msg.header.{self.name}"
        return f"${{{_PLAIN.get(self.name, name)}}}"


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


def looks_topic(journal: str) -> str:
    """Returns the topic beside a journal that says who looked at which bodies on the page and through the API."""
    return f"{journal}.looks"


def position_topic(journal: str) -> str:
    """Returns the topic with the positions of the sources that read other Kafka clusters."""
    return f"{journal}.positions"


def actions_topic(journal: str) -> str:
    """Returns the topic beside a journal that says who changed what on the page and through the API."""
    return f"{journal}.actions"


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
