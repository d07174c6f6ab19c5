"""Kafka: settings of sources and sinks, and how they are made and tested.

A message that goes to a topic of the bridge's own Kafka needs no sink.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from engine.connectors.kafka.settings import (
    ADDRESSES,
    KafkaClusterConfig,
    KafkaSinkConfig,
    KafkaSourceConfig,
    client_keys,
)
from engine.connectors.system import Connector
from engine.kafka.section import check_other_cluster
from routes.keys.addresses import KAFKA
from routes.targets import KAFKA_TOPIC, TOPIC, audit_topic, quarantine_topic, set_aside_topic

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.connectors.base import Source
    from engine.connectors.depth import Depth
    from engine.connectors.endpoint import SystemEndpoint
    from routes.keys.settings import Settings

__all__ = ["SYSTEM", "KafkaConnector"]


class KafkaConnector(Connector[KafkaClusterConfig, KafkaSourceConfig, KafkaSinkConfig]):
    """Topics of the bridge's own Kafka, or of another cluster.

    `engine.kafka.topics` and the doctor's check of Kafka look after the former.
    """

    name = "kafka"
    connection = KafkaClusterConfig
    source = KafkaSourceConfig
    sink = KafkaSinkConfig
    sink_class = "sink.KafkaSink"
    addresses = ADDRESSES
    remedy = "start it, or correct {key}.bootstrap.servers"
    own_cluster = True
    has_login = False
    place = ("", "")

    def make_source(self, endpoint: SystemEndpoint[KafkaSourceConfig], worker: int) -> Source:
        """See `Connector`."""
        if endpoint.settings.in_own_cluster:
            from engine.connectors.kafka.source import KafkaSource

            return KafkaSource(endpoint, worker)
        from engine.connectors.kafka.other_source import OtherClusterSource

        return OtherClusterSource(endpoint, worker)

    def make_depth(self, endpoint: SystemEndpoint[KafkaSourceConfig]) -> Depth:
        """See `Connector`."""
        from engine.connectors.kafka.depth import KafkaDepth, OtherClusterDepth

        return KafkaDepth(endpoint) if endpoint.settings.in_own_cluster else OtherClusterDepth(endpoint)

    def check_connection(self, endpoint: SystemEndpoint[KafkaClusterConfig], client_id: str) -> str:
        """See `Connector`; for another cluster than that of the bridge."""
        from engine.connectors.kafka.other_check import finding

        return finding(endpoint, client_id)

    def spelt(self, address: str, *, wildcards: bool) -> str | None:
        """See `Connector`: a topic stays as it is."""
        return address if TOPIC.fullmatch(address) else None

    def examples(self, source: KafkaSourceConfig) -> Iterator[tuple[str, str]]:
        """See `Connector`; a regular expression names a topic to send to only if it is a plain name."""
        topics = filter(TOPIC.fullmatch, source.destinations) if source.in_own_cluster else ()
        for topic in topics:
            # None if the address depends on a header.
            address = source.address.fill(lambda name, topic=topic: topic if name == KAFKA_TOPIC else None)  # type: ignore[misc]
            if address is not None:
                yield f"{KAFKA}:{topic}", address

    def check(self, settings: Settings, section: str, name: str) -> None:
        """Checks the cluster, and that a source reads regular expressions of topics that others write."""
        is_own = _check_cluster(settings, section, name)
        if section == "sink":
            if is_own:
                hint = "a route names a topic, as in routes.NAME.out.topic=orders; for another cluster set "
                key = f"sink.{name}.bootstrap.servers"
                settings.fault("sink.NAME.type", name, "the bridge's own Kafka needs no sink", hint + key)
            if settings.is_set("sink.NAME.reply-to", name):
                settings.fault("sink.NAME.reply-to", name, "a sink of type kafka takes no replies", "remove the line")
            return
        entry = settings.entry("source.NAME.destinations", name)
        for pattern in settings.get("source.NAME.destinations", name) or ():
            if entry is not None and (fault := _no_pattern(pattern) or (is_own and _own_topic(settings, pattern))):
                settings.faults.append(entry.fault(*fault, max(entry.value.find(pattern), 0)))


def _check_cluster(settings: Settings, section: str, name: str) -> bool:
    """Checks the login to another cluster; returns True if the source or sink connects to that of the bridge."""
    keys = client_keys(settings, section, name)
    if settings.is_set(f"{section}.NAME.bootstrap.servers", name):
        check_other_cluster(settings, keys)
        return False
    for setting in keys.settings.values():
        message = f"'{setting.entry.key}' is for another Kafka cluster than the bridge's own"
        settings.faults.append(setting.entry.key_fault(message, f"set {keys.prefix}bootstrap.servers"))
    return True


def _no_pattern(pattern: str) -> tuple[str, str] | None:
    """Returns message and hint for a faulty regular expression of topics; None if it is right."""
    try:
        re.compile(pattern)
    except re.error as error:
        return (
            f"'{pattern}' is not a regular expression: {error}",
            "as in orders, or orders\\\\..*: commas separate several",
        )
    return None


def _own_topic(settings: Settings, pattern: str) -> tuple[str, str] | None:
    """Returns message and hint for the name of one of the bridge's own topics; None for any other."""
    sinks = [settings.effective("sink.NAME.topic", name) for name in settings.names("sink")]
    journal, state = settings.get("journal.topic"), settings.effective("journal.state-topic")
    dead_letters = settings.get("routing.dead-letter-topic") or set_aside_topic(journal)
    if pattern in (journal, state, dead_letters, audit_topic(dead_letters), quarantine_topic(dead_letters), *sinks):
        return f"'{pattern}' is a topic of the bridge itself", "take messages from topics that others write"
    return None


SYSTEM = KafkaConnector()
