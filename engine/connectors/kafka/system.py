"""Kafka topics as a source: its settings, and how it is made. A message that goes to a Kafka topic needs no sink."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from engine.connectors.kafka.settings import KafkaSourceConfig
from engine.connectors.system import Connector
from routes.keys.addresses import KAFKA
from routes.systems import BrokerConfig, SinkConfig
from routes.targets import KAFKA_TOPIC, TOPIC, audit_topic, quarantine_topic, set_aside_topic

if TYPE_CHECKING:
    from collections.abc import Iterator

    from routes.keys.settings import Settings

__all__ = ["SYSTEM", "KafkaConnector"]


class KafkaConnector(Connector[BrokerConfig, KafkaSourceConfig, SinkConfig]):
    """Topics of the bridge's own Kafka. `engine.kafka.topics` and the doctor's check of Kafka look after them."""

    name = "kafka"
    connection = BrokerConfig
    source = KafkaSourceConfig
    source_class = "source.KafkaSource"
    depth_class = "depth.KafkaDepth"
    own_cluster = True
    has_login = False
    place = ("", "")

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
            f"'{pattern}' is not a regular expression: {error}",
            "as in orders, or orders\\\\..*: commas separate several",
        )
    sinks = [settings.effective("sink.NAME.topic", name) for name in settings.names("sink")]
    journal, state = settings.get("journal.topic"), settings.effective("journal.state-topic")
    dead_letters = settings.get("routing.dead-letter-topic") or set_aside_topic(journal)
    if pattern in (journal, state, dead_letters, audit_topic(dead_letters), quarantine_topic(dead_letters), *sinks):
        return f"'{pattern}' is a topic of the bridge itself", "take messages from topics that others write"
    return None


SYSTEM = KafkaConnector()
