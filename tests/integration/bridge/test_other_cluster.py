"""A whole bridge that takes records from another Kafka cluster and gives them back to it, while both are killed."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest

from engine.embedded import EmbeddedKafka, free_ports
from tests.conftest import JARS
from tests.integration.bridge_process import Bridge, part, read, wait
from tests.integration.connectors.kafka_harness import create, killed
from tests.topic_records import ordered_producer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FILE = """\
bridge.id=test
embedded.data={folder}/var
embedded.kafka.port={kafka}
http.address=127.0.0.1:{http}
router.checkpoint={folder}/var/checkpoint
journal.partitions=2
source.far.type=kafka
source.far.bootstrap.servers={other}
source.far.destinations=orders
sink.back.type=kafka
sink.back.bootstrap.servers={other}
routes.r.in.include=msg.address==kafka.orders
routes.r.out.topic=back:copies
"""


@pytest.fixture
def other(tmp_path: Path) -> Iterator[EmbeddedKafka]:
    server = EmbeddedKafka(tmp_path / "other", *free_ports(1), JARS, heap_megabytes=256)
    server.start()
    create(server, "orders", 3)
    create(server, "copies", 3)
    yield server
    server.stop()


@pytest.fixture
def bridge(tmp_path: Path, other: EmbeddedKafka) -> Iterator[Bridge]:
    kafka, http = free_ports(2)
    file = tmp_path / "jms-bridge.properties"
    file.write_text(FILE.format(folder=tmp_path, kafka=kafka, http=http, other=other.bootstrap))
    made = Bridge(file)
    made.start()
    yield made
    made.end()


@pytest.mark.kills
def test_records_go_through_the_bridge_once_through_kills_of_all_that_takes_part(
    bridge: Bridge, other: EmbeddedKafka
) -> None:
    bridge.wait_ready()
    given = 0

    def give(count: int) -> None:
        nonlocal given
        producer = ordered_producer(other.bootstrap)
        for number in range(given, given + count):
            producer.produce("orders", str(number).encode(), f"key-{number % 10}".encode())
        assert producer.flush(60) == 0
        given += count

    def copied() -> list[tuple[str, str]]:
        return read(other.bootstrap, "copies")

    give(500)
    wait(lambda: len(copied()) >= given, lambda: bridge.output)
    for only in ("source:far", "sink:back"):
        give(2_000)
        os.kill(part(bridge, only), signal.SIGKILL)
    wait(lambda: len(copied()) >= given, lambda: bridge.output)
    give(2_000)
    killed(other)
    other.start()
    give(500)
    wait(lambda: len(copied()) >= given, lambda: bridge.output)
    found = copied()
    assert sorted(int(value) for _, value in found) == list(range(given))
    assert all(key == f"key-{int(value) % 10}" for key, value in found)
    for key in {key for key, _ in found}:
        own = [int(value) for each, value in found if each == key]
        assert own == sorted(own)
    assert bridge.metric("jmsbridge_source_waiting_messages", source="far") == 0
    assert bridge.interrupt() == 0
