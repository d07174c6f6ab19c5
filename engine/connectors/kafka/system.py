"""Kafka topics as a source: its settings, and how it is made. A message that goes to a Kafka topic needs no sink."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.connectors.system import Connector
from routes.keys.addresses import FROM, KAFKA
from routes.keys.table import key
from routes.keys.values import choice, whole
from routes.model import MessageType
from routes.systems import BrokerConfig, SinkConfig, SourceConfig, consumer
from routes.targets import KAFKA_TOPIC, TOPIC, audit_topic, quarantine_topic, set_aside_topic

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.connectors.base import Source
    from routes.keys.settings import Settings
    from routes.model import Config
    from routes.targets import Template

__all__ = ["SYSTEM", "KafkaConnector", "KafkaSourceConfig"]


@dataclass(frozen=True, kw_only=True)
class KafkaSourceConfig(SourceConfig):
    """Settings of a Kafka source; destinations are regular expressions of topics."""

    consumer: str | None = consumer()
    """Name of the group of consumers; None: made of bridge and source."""
    address: Template = key(
        "address",
        FROM,
        "Where the messages of a Kafka topic are said to come from, as `msg.address` and JMSDestination: a topic "
        "unless it begins with `queue:`. `${topic}` is the Kafka topic, `${msg.header.NAME}` the text of a header.",
        default="kafka.${topic}",
        example="queue:${topic}",
        template=True,
    )
    """Template of the destination that messages are said to come from, `queue:` or `topic:` included."""
    message_type: MessageType = key(
        "message.type",
        choice(MessageType, any_case=True),
        "What a record's value is. `auto`: what the record says, if a bridge wrote it, else text where it is UTF-8. "
        "A value that is no UTF-8 is no `TEXT` and fails softly.",
        default="auto",
    )
    hops: int = key(
        "hops",
        whole(0, 100),
        "How often a record may have come through this bridge before. With `0`, what this bridge has published itself "
        "is not routed again, so that nothing goes round in circles; `1` lets a message go from JMS to Kafka and back.",
        default="0",
    )
    """Number of times that a record may have passed through this bridge before."""


class KafkaConnector(Connector[BrokerConfig, KafkaSourceConfig, SinkConfig]):
    """Topics of the bridge's own Kafka. `engine.topics` and the doctor's check of Kafka look after them."""

    name = "kafka"
    connection = BrokerConfig
    source = KafkaSourceConfig
    own_cluster = True
    place = ("", "")

    def make_source(self, config: Config, source: KafkaSourceConfig, worker: int) -> Source:
        """See `Connector`."""
        from engine.connectors.kafka.source import KafkaSource

        return KafkaSource(config, source, worker)

    def examples(self, source: KafkaSourceConfig) -> Iterator[tuple[str, str]]:
        """See `Connector`; a regular expression names a topic to send to only if it is a plain name."""
        for topic in filter(TOPIC.fullmatch, source.destinations):
            # None if the address depends on a header.
            address = source.address.fill(lambda name, topic=topic: topic if name == KAFKA_TOPIC else None)  # type: ignore[misc]
            if address is not None:
                yield f"{KAFKA}:{topic}", address

    def check(self, settings: Settings, section: str, name: str) -> None:
        """Checks that the destinations of a source are regular expressions of topics that others write."""
        if section == "sink":
            hint = f"remove sink '{name}'; a route names a topic, as in routes.NAME.out.topic=orders"
            settings.fault("sink.NAME.type", name, "Kafka needs no sink", hint)
            return
        entry = settings.entry("source.NAME.destinations", name)
        for pattern in settings.get("source.NAME.destinations", name) or ():
            if entry is not None and (fault := _no_topics(settings, pattern)):
                settings.faults.append(entry.fault(*fault, max(entry.value.find(pattern), 0)))


def _no_topics(settings: Settings, pattern: str) -> tuple[str, str] | None:
    """Returns message and hint for a faulty regular expression of topics; None if it is right."""
    try:
        re.compile(pattern)
    except re.error as error:
        return (
            f"'{pattern}' is no regular expression: {error}",
            "as in orders, or orders\\\\..*: commas separate several",
        )
    sinks = [settings.effective("sink.NAME.topic", name) for name in settings.names("sink")]
    journal, state = settings.get("journal.topic"), settings.effective("journal.state-topic")
    dead_letters = settings.get("routing.dead-letter-topic") or set_aside_topic(journal)
    if pattern in (journal, state, dead_letters, audit_topic(dead_letters), quarantine_topic(dead_letters), *sinks):
        return f"'{pattern}' is a topic of the bridge itself", "take messages from topics that others write"
    return None


SYSTEM = KafkaConnector()
