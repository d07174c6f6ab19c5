"""A batch that Kafka refuses while the next one of the same producer is on its way."""

from __future__ import annotations

import select
import socket
import struct
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from engine.embedded.ports import free_ports
from engine.kafka.clients import KafkaClients
from engine.kafka.journal import Journal
from engine.kafka.topics import BridgeTopics
from engine.message import Message
from engine.tracing_section import TracingConfig
from tests.conftest import JARS
from tests.integration.connectors.running import configure, visible
from tests.integration.topologies.slow_commits import KafkaBehindProxy
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_PRODUCE = 0
_HELD_SECONDS = 1.0


class DamagingProxy:
    """A proxy to Kafka that changes a byte of the first batch with a text.

    It holds that batch back until the producer has sent the next one, or for a second.
    """

    def __init__(self, target_port: int, text: bytes) -> None:
        self.damaged = threading.Event()
        self._target_port = target_port
        self._text = text
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Accepts no more connections."""
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                try:
                    broker = socket.create_connection(("127.0.0.1", self._target_port))
                except OSError:
                    client.close()
                    continue
                threading.Thread(target=self._up, args=(client, broker), daemon=True).start()
                threading.Thread(target=self._down, args=(broker, client), daemon=True).start()

    def _up(self, client: socket.socket, broker: socket.socket) -> None:
        with suppress(OSError), client, broker, client.makefile("rb") as requests:
            while head := requests.read(4):
                request = requests.read(struct.unpack(">i", head)[0])
                is_batch = struct.unpack(">h", request[:2])[0] == _PRODUCE
                if is_batch and self._text in request and not self.damaged.is_set():
                    self.damaged.set()
                    request = request.replace(self._text, self._text.upper())
                    # The next request is forwarded behind this one, in any case.
                    select.select([client], [], [], _HELD_SECONDS)
                broker.sendall(head + request)

    def _down(self, broker: socket.socket, client: socket.socket) -> None:
        with suppress(OSError):
            while answers := broker.recv(1 << 16):
                client.sendall(answers)


@pytest.fixture
def damaging(tmp_path: Path) -> Iterator[tuple[str, DamagingProxy]]:
    """Address of a Kafka behind a proxy that damages the first batch with `first`, and the proxy."""
    (port,) = free_ports(1)
    proxy = DamagingProxy(port, b"first")
    kafka = KafkaBehindProxy(tmp_path / "kafka", port, JARS, proxy.port)
    try:
        kafka.start()
        yield f"127.0.0.1:{proxy.port}", proxy
    finally:
        kafka.stop()
        proxy.close()


def test_a_refused_batch_is_not_confirmed_by_the_next_one(damaging: tuple[str, DamagingProxy], tmp_path: Path) -> None:
    servers, proxy = damaging
    config = configure(tmp_path, servers, "journal", {".url": "stomp://127.0.0.1:1", ".destinations": "queue:x"})
    BridgeTopics(config).ensure_journal()
    journal = Journal(KafkaClients(config.kafka_access), config.journal.topic, config.section(TracingConfig))
    told: list[Exception | None] = []
    # One key, so that all are in one partition; Kafka knows nothing of the producer there yet.
    journal.append(Message(b"first", headers={"JMSCorrelationID": "k"}), told.append)
    until(lambda: (journal.poll(0.01), proxy.damaged.is_set())[1], 60)
    for number in range(5):
        journal.append(Message(b"later %d" % number, headers={"JMSCorrelationID": "k"}), told.append)
        journal.hurry()
    assert journal.flush(60)
    journal.close()

    assert told == [None] * 6
    assert [message.body for message in visible(config)] == [b"first", *(b"later %d" % number for number in range(5))]
