"""The number of messages that wait at the system of a source, as real brokers, folders and Kafka say it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from engine.connectors.base import NotConnectedError
from engine.connectors.depth import NotSaidError
from engine.connectors.endpoint import SystemEndpoint
from engine.connectors.system import connector
from engine.kafka.clients import KafkaClients
from engine.kafka.offsets import KafkaOffsets
from tests.integration.connectors.nats_harness import add_stream, publish
from tests.integration.connectors.running import SOURCE, numbered
from tests.integration.connectors.test_kafka_source import put
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.connectors.depth import Depth
    from engine.embedded import EmbeddedKafka
    from routes.model import Config
    from tests.conftest import TopicFactory
    from tests.integration.connectors.conftest import Configure, Start
    from tests.integration.connectors.harness import Harness
    from tests.integration.connectors.nats_harness import NatsHarness

WAITING = "jmsbridge_source_waiting_messages"


def depth_of(config: Config) -> Depth:
    source = config.sources[0]
    return connector(source.type).make_depth(SystemEndpoint.of(config, source))


def asked(config: Config) -> int:
    depth = depth_of(config)
    try:
        return depth.ask()
    finally:
        depth.close()


@pytest.fixture(params=["stomp", "amqp", "dropbox"])
def counted(request: pytest.FixtureRequest) -> Harness:
    found: Harness = request.getfixturevalue(request.param)
    return found


def test_a_queue_has_as_many_as_nobody_has_taken(counted: Harness, configured: Configure, queue: str) -> None:
    counted.create(queue)
    config = configured(counted.settings(queue))
    depth = depth_of(config)

    assert depth.ask() == 0
    counted.send(queue, numbered(7))
    until(lambda: depth.ask() == 7)
    source = connector(config.sources[0].type).make_source(SystemEndpoint.of(config, config.sources[0]), 1)
    source.connect()
    try:
        first = source.receive(10)
        assert first is not None
        # What is taken and not acknowledged still waits. Artemis may count a message twice while it gives it out.
        until(lambda: depth.ask() == 7)
        source.acknowledge([first.token])
        until(lambda: depth.ask() == 6)
    finally:
        source.close()
        depth.close()
    until(lambda: asked(config) == 6)


@pytest.mark.parametrize("kind", ["stomp", "amqp"])
def test_a_durable_subscription_has_what_came_while_the_source_was_away(
    request: pytest.FixtureRequest, configured: Configure, queue: str, kind: str
) -> None:
    harness = request.getfixturevalue(kind)
    settings = harness.settings(queue) | {".destinations": f"topic:{queue}", ".subscription": "s", ".client-id": queue}
    config = configured(settings)
    source = connector(config.sources[0].type).make_source(SystemEndpoint.of(config, config.sources[0]), 1)
    source.connect()
    assert asked(config) == 0
    source.close()

    amqp = request.getfixturevalue("qpid")
    amqp.send(f"topic:{queue}", [{"type": "text", "body": str(n)} for n in range(5)])

    until(lambda: asked(config) == 5)


@pytest.mark.parametrize("kind", ["stomp", "amqp"])
def test_a_queue_that_is_not_there_is_named(
    request: pytest.FixtureRequest, configured: Configure, queue: str, kind: str
) -> None:
    config = configured(request.getfixturevalue(kind).settings(queue))
    depth = depth_of(config)
    with pytest.raises(NotSaidError, match=f"the broker has no queue {queue} yet"):
        depth.ask()
    depth.close()


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({".destinations": "topic:prices"}, "a topic without a durable subscription keeps no messages"),
        ({".selector": "a = 1"}, "the broker counts all messages of a queue, not those that the selector wants"),
    ],
)
@pytest.mark.parametrize("kind", ["stomp", "amqp"])
def test_what_the_broker_would_count_wrong_is_not_said(
    request: pytest.FixtureRequest, configured: Configure, queue: str, kind: str, more: Mapping[str, str], why: str
) -> None:
    config = configured(request.getfixturevalue(kind).settings(queue) | more)
    depth = depth_of(config)
    with pytest.raises(NotSaidError, match=why):
        depth.ask()
    depth.close()


def test_a_consumer_of_a_stream_has_what_is_not_acknowledged(
    jetstream: NatsHarness, configured: Configure, queue: str
) -> None:
    add_stream(jetstream, queue, f"{queue}.>")
    url = f"nats://127.0.0.1:{jetstream.port}"
    settings = {".type": "nats", ".url": url, ".destinations": f"{queue}.>", ".stream": queue}
    config = configured(settings)
    with pytest.raises(NotConnectedError, match="JetStream says of consumer 'b1-src': consumer not found"):
        asked(config)
    source = connector(config.sources[0].type).make_source(SystemEndpoint.of(config, config.sources[0]), 1)
    source.connect()
    publish(jetstream, [(f"{queue}.a", str(n).encode()) for n in range(9)])
    first = source.receive(10)
    assert first is not None
    until(lambda: asked(config) == 9)
    source.acknowledge([first.token])
    until(lambda: asked(config) == 8)
    source.close()


def test_a_group_has_the_records_behind_its_offsets(
    kafka: EmbeddedKafka, topic: TopicFactory, configured: Configure, start: Start
) -> None:
    orders = topic("orders", 2)
    config = configured({".type": "kafka", ".destinations": orders})
    put(kafka.bootstrap, orders, [b"x"] * 4)
    # A new Kafka first makes the topic of committed offsets.
    KafkaOffsets(KafkaClients(config.kafka_access)).committed("b1.source.src", orders, [0])
    until(lambda: asked(config) == 4)
    running = start(config)
    until(lambda: running.count("acknowledged") == 4)
    until(lambda: asked(config) == 0)
    running.stop()
    put(kafka.bootstrap, orders, [b"x"] * 3)
    assert asked(config) == 3


def test_a_running_source_tells_its_depth_or_why_not(
    stomp: Harness, configured: Configure, start: Start, queue: str
) -> None:
    stomp.create(queue)
    running = start(configured(stomp.settings(queue)))
    until(lambda: running.registry.get_sample_value(WAITING, {"source": SOURCE}) == 0)
    assert "waiting" not in running.status.current.detail
    running.stop()

    away = start(configured(stomp.settings(queue) | {".destinations": "topic:prices"}))
    until(lambda: "a topic without a durable subscription keeps no messages" in away.status.current.detail)
    assert away.registry.get_sample_value(WAITING, {"source": SOURCE}) is None
