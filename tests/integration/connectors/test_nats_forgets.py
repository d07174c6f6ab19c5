"""A NATS server that has forgotten how far its consumer was, and gives everything again."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition

from engine.embedded import EmbeddedNats, free_ports
from tests.integration.connectors.nats_harness import CONSUMER, NatsHarness
from tests.integration.connectors.running import SOURCE, numbered, numbers
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from routes.model import Config
    from tests.integration.connectors.conftest import Configure, Start


@pytest.fixture
def server(tmp_path: Path, nats_server: Path) -> Iterator[EmbeddedNats]:
    server = EmbeddedNats(tmp_path, *free_ports(1), nats_server)
    server.start()
    yield server
    server.stop()


def forgets(server: EmbeddedNats) -> None:
    """What a server that lost power may have lost: the consumer is there, and its place is not."""
    server.stop()
    (state,) = server.folder.rglob(f"obs/{CONSUMER}/o.dat")
    state.unlink()
    server.start()


def noted(config: Config) -> int:
    """The records of the journal before the noted position; -1 while there is none with a note."""
    settings = {"bootstrap.servers": config.bootstrap_servers, "group.id": f"b1.source.{SOURCE}.1"}
    consumer = Consumer(settings)
    try:
        places = [TopicPartition(config.journal.topic, partition) for partition in range(config.journal.partitions)]
        found = consumer.committed(places, timeout=10)
    except KafkaException:
        return -1  # The group has no coordinator yet.
    else:
        return sum(place.offset for place in found) if all(place.metadata for place in found) else -1
    finally:
        consumer.close()


def all_once(config: Config, count: int) -> None:
    found = Counter(numbers(config.bootstrap_servers, config.journal.topic))
    assert found == Counter(range(count))


def test_nothing_is_twice_when_it_is_forgotten_under_a_source(
    server: EmbeddedNats, configured: Configure, start: Start, queue: str
) -> None:
    harness = NatsHarness(server)
    config = configured(harness.settings(queue))
    source = start(config)
    harness.send(queue, numbered(300))
    until(lambda: noted(config) == 300, 60, "position noted")

    forgets(server)
    harness.send(queue, numbered(100, begin=300))
    until(lambda: harness.waiting(queue) == 0, what="empty")
    source.stop()

    all_once(config, 400)
    assert source.sample("jmsbridge_source_duplicates_total", source=SOURCE) == 300


def test_nothing_is_twice_when_it_is_forgotten_between_two_runs(
    server: EmbeddedNats, configured: Configure, start: Start, queue: str
) -> None:
    harness = NatsHarness(server)
    config = configured(harness.settings(queue))
    source = start(config)
    harness.send(queue, numbered(300))
    source.acknowledges(300)
    source.stop()

    forgets(server)
    harness.send(queue, numbered(100, begin=300))
    source = start(config)
    until(lambda: harness.waiting(queue) == 0, what="empty")
    source.stop()

    all_once(config, 400)
    assert source.sample("jmsbridge_source_duplicates_total", source=SOURCE) == 300
