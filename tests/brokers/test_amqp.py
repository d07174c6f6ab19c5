"""Sources and sinks of AMQP 1.0 at real brokers, beside their own JMS clients: what each does in its own way."""

from __future__ import annotations

import uuid
from functools import partial
from typing import TYPE_CHECKING

import pytest

from engine.connectors.base import NotConnectedError
from engine.errors import HardFailureError
from engine.message import BodyType, Message
from routes.properties import JmsType, Property
from tests.brokers.application import Application
from tests.brokers.broker import PASSWORD, Protocol
from tests.brokers.connections import Connections, same
from tests.brokers.connections import received as received_at_least
from tests.brokers.rabbitmq import RabbitNode
from tests.brokers.registry import BROKERS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from engine.connectors.base import Delivery
    from tests.brokers.broker import Broker

pytestmark = pytest.mark.brokers

NAMES = ("classic5", "classic6", "rabbitmq", "rabbitmq4", "broker-j")


@pytest.fixture(scope="module", params=NAMES)
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with BROKERS[request.param](tmp_path_factory.mktemp("b")) as started:
        yield started


@pytest.fixture
def name() -> str:
    return f"q{uuid.uuid4().hex[:8]}"


@pytest.fixture
def connections(broker: Broker) -> Iterator[Connections]:
    made = Connections(broker, Protocol.AMQP)
    yield made
    made.close()


received = partial(received_at_least, alone=True)


def bodies(found: list[Delivery]) -> list[bytes]:
    return [each.message.body for each in found]


def typed(jms_type: str, body: bytes) -> Message:
    return Message(body, BodyType.TEXT, {"JMSType": jms_type})


def needs_topics(broker: Broker) -> None:
    if broker.title == "RabbitMQ":
        pytest.skip("a source of a topic is refused there")


def test_a_topic_is_a_topic(connections: Connections, name: str) -> None:
    needs_topics(connections.broker)
    first, second = (
        connections.source(f"topic:{name}", client_id="1"),
        connections.source(f"topic:{name}", client_id="2"),
    )
    connections.send(f"topic/{name}", Message(b"1"))
    (delivery,) = received(first, 1)
    assert bodies(received(second, 1)) == [b"1"]
    assert delivery.message.headers["JMSDestination"] == f"topic:{name}"


def test_a_durable_subscription_with_a_selector_keeps_what_comes_while_the_source_is_away(
    connections: Connections, name: str
) -> None:
    needs_topics(connections.broker)
    keys = {"subscription": "to-kafka", "client_id": f"c-{name}", "selector": "JMSType = 'wanted'"}
    connections.source(f"topic:{name}", **keys).close()
    connections.send(f"topic/{name}", typed("wanted", b"1"), typed("other", b"2"), typed("wanted", b"3"))
    assert bodies(received(connections.source(f"topic:{name}", **keys), 2)) == [b"1", b"3"]


@pytest.mark.parametrize("keys", [{}, {"subscription": "x"}, {"selector": "a = 1"}])
def test_what_rabbitmq_does_not_honour_is_refused(connections: Connections, name: str, keys: dict[str, str]) -> None:
    if connections.broker.title != "RabbitMQ":
        pytest.skip("the others honour it")
    with pytest.raises(HardFailureError, match="does not honour over AMQP"):
        connections.source(f"queue:{name}" if "selector" in keys else f"topic:{name}", **keys)


def test_a_message_with_a_user_of_another_broker_is_taken(connections: Connections, name: str) -> None:
    connections.broker.create(name)
    connections.send(f"queue/{name}", Message(b"1", headers={"JMSXUserID": "somebody"}))
    assert bodies(received(connections.source(f"queue:{name}"), 1)) == [b"1"]


def test_a_wrong_password_is_a_refused_login(connections: Connections, name: str) -> None:
    with pytest.raises(NotConnectedError, match="the broker refuses the login of user"):
        connections.source(f"queue:{name}", password=f"not-{PASSWORD}")


def test_a_message_that_a_jms_client_sends_keeps_its_type_and_properties(connections: Connections, name: str) -> None:
    connections.broker.create(name)
    properties = {"n": Property("3", JmsType.INT), "d": Property("1.5", JmsType.DOUBLE)}
    headers = {"JMSType": "ty", "JMSCorrelationID": "k", "JMSPriority": "7"}
    sent = Message(b"text", BodyType.TEXT, headers, properties)
    connections.send(f"queue/{name}", sent, protocol=Protocol.JMS)
    (delivery,) = received(connections.source(f"queue:{name}"), 1)
    came = delivery.message
    assert (came.body, came.body_type) == (b"text", BodyType.TEXT)
    assert {key: came.headers.get(key) for key in headers} == headers
    assert {key: came.properties.get(key) for key in properties} == properties
    assert delivery.has_own_id


def test_a_message_that_comes_again_has_the_same_id(connections: Connections, name: str) -> None:
    connections.broker.create(name)
    connections.send(f"queue/{name}", Message(b"1", BodyType.TEXT), protocol=Protocol.JMS)
    first = connections.source(f"queue:{name}")
    (once,) = received(first, 1, acknowledge=False)
    first.close()
    (again,) = received(connections.source(f"queue:{name}"), 1)
    assert again.message.headers["JMSMessageID"] == once.message.headers["JMSMessageID"]


@pytest.mark.parametrize("broker", ["rabbitmq", "rabbitmq4"], indirect=True)
def test_a_message_that_comes_again_from_a_quorum_queue_is_the_same_with_another_count(
    connections: Connections, name: str
) -> None:
    assert isinstance(connections.broker, RabbitNode)
    connections.broker.create(name, "quorum")
    address = "/queues/" if connections.broker.version >= "4" else "/amq/queue/"
    connections.send(f"queue/{address}{name}", Message(b"1", headers={"JMSMessageID": "ID:1"}))
    deliveries = []
    for _ in range(3):
        source = connections.source(f"queue:{address}{name}")
        deliveries += received(source, 1, acknowledge=False)
        source.close()
    first, second, third = deliveries
    assert same([first]) == same([second]) == same([third])
    # The plugin of version 3 does not tell how often.
    counts = ["1", "2", "3" if connections.broker.version >= "4" else "2"]
    assert [each.message.headers["JMSXDeliveryCount"] for each in deliveries] == counts


def test_a_reply_reaches_the_temporary_queue_of_a_requester(
    connections: Connections, name: str, tmp_path: Path
) -> None:
    broker = connections.broker
    if broker.title == "RabbitMQ":
        pytest.skip("it makes no temporary queues over AMQP")
    broker.create(name)
    application = Application(broker, Protocol.AMQP, tmp_path / "application.log")
    try:
        application.request(f"queue:{name}", "question")
        (request,) = received(connections.source(f"queue:{name}"), 1)
        connections.send(request.message.headers["JMSReplyTo"], Message(b"answer"))
        assert application.reply().get("body") == "answer"
    finally:
        application.kill()
