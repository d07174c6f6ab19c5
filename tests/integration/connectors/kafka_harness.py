"""Topics of a second Kafka cluster, as the other side of a sink."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from tests.integration.connectors.running import read
from tests.integration.connectors.sinks import Arrived
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.embedded import EmbeddedKafka
    from engine.message import Message

__all__ = ["KafkaSinkHarness", "admin", "create", "killed"]


def admin(server: EmbeddedKafka) -> AdminClient:
    return AdminClient({"bootstrap.servers": server.bootstrap, "log_level": 0})


def create(server: EmbeddedKafka, topic: str, partitions: int = 1) -> None:
    """Returns when the topic exists; one that is being deleted is waited for."""
    client = admin(server)

    def made() -> bool:
        try:
            client.create_topics([NewTopic(topic, partitions, 1, config={"retention.ms": "-1"})])[topic].result(30)
        except KafkaException:
            return False
        return True

    until(made, 30)
    until(lambda: topic in client.list_topics(timeout=10).topics, 30)


def killed(server: EmbeddedKafka) -> None:
    """Ends a server without a word; returns when it is gone."""
    assert server.pid is not None
    os.kill(server.pid, signal.SIGKILL)
    until(lambda: not server.alive(), 30)
    server.stop()


class KafkaSinkHarness:
    """Topics of a Kafka cluster."""

    def __init__(self, server: EmbeddedKafka) -> None:
        self._server = server

    @property
    def port(self) -> int:
        return int(self._server.bootstrap.rpartition(":")[2])

    def settings(self, port: int | None = None) -> Mapping[str, str]:
        return {".type": "kafka", ".bootstrap.servers": f"127.0.0.1:{port or self.port}"}

    def address(self, name: str) -> str:
        return name

    def refused(self, message: Message) -> tuple[str, Message]:
        return "no-such-topic", message

    def create(self, name: str) -> None:
        create(self._server, name, 3)

    def arrived(self, name: str, count: int) -> list[Arrived]:
        until(lambda: len(read(self._server.bootstrap, name)) >= count, 60, f"{count} in {name}")
        time.sleep(0.3)
        found = read(self._server.bootstrap, name)
        prefix = len("jms.")
        return [
            Arrived(
                each.record.value or b"",
                {
                    (key[prefix:] if key.startswith("jms.") else key): (value or b"").decode("utf-8", "replace")
                    for key, value in each.record.headers
                },
            )
            for each in found
        ]

    def kill(self) -> None:
        killed(self._server)

    def start(self) -> None:
        self._server.start()
