"""Sources and sinks of STOMP at real brokers, beside their own JMS clients: what each does in its own way."""

from __future__ import annotations

import time
import uuid
from typing import TYPE_CHECKING

import pytest

from engine.connectors.base import NotConnectedError
from engine.jms_values import MapEntry, encode_map
from engine.message import BodyType, Message
from routes.properties import Property
from tests.brokers.broker import Protocol
from tests.brokers.connections import Connections, received, same
from tests.brokers.rabbitmq import RabbitNode
from tests.brokers.registry import BROKERS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.brokers.broker import Broker

pytestmark = pytest.mark.brokers

NAMES = ("classic5", "classic6", "rabbitmq", "rabbitmq4", "openmq")


@pytest.fixture(scope="module", params=NAMES)
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with BROKERS[request.param](tmp_path_factory.mktemp("b")) as started:
        yield started


@pytest.fixture
def name() -> str:
    return f"q{uuid.uuid4().hex[:8]}"


@pytest.fixture
def connections(broker: Broker) -> Iterator[Connections]:
    made = Connections(broker, Protocol.STOMP)
    yield made
    made.close()


def test_a_durable_subscription_keeps_what_comes_while_the_source_is_away(connections: Connections, name: str) -> None:
    keys = {"subscription": "to-kafka", "client_id": f"c-{name}"}
    connections.source(f"topic:{name}", **keys).close()
    connections.send(f"topic/{name}", Message(b"1"), Message(b"2"))

    found = received(connections.source(f"topic:{name}", **keys), 2)

    assert [(each.message.body, each.message.headers["JMSDestination"]) for each in found] == [
        (b"1", f"topic:{name}"),
        (b"2", f"topic:{name}"),
    ]


def test_a_message_is_the_same_on_the_way_back(connections: Connections, name: str) -> None:
    later = str(int(time.time() * 1000) + 600_000)
    fields = {"JMSCorrelationID": "c:1", "JMSType": "t", "JMSPriority": "7", "JMSExpiration": later}
    properties = {"region": Property("é")}
    sent = Message("x😀é\n".encode(), BodyType.TEXT, fields, properties, origins=("other",))
    connections.send(f"queue/{name}", sent, Message(b"\x00\xff", BodyType.BYTES), Message(b"plain", BodyType.BYTES))

    text, *others = received(connections.source(f"queue:{name}"), 3)

    assert (text.message.body, text.message.body_type) == (sent.body, BodyType.TEXT)
    found = text.message.headers
    assert {each: found[each] for each in fields if each != "JMSExpiration"} == {
        each: value for each, value in fields.items() if each != "JMSExpiration"
    }
    assert abs(int(found["JMSExpiration"]) - int(later)) < 10_000
    assert found.get("JMSDeliveryMode", "PERSISTENT") == "PERSISTENT"
    assert text.message.properties["region"].text == "é"
    assert text.message.origins == ("other",)
    assert [each.message.body for each in others] == [b"\x00\xff", b"plain"]
    # OpenMQ tells text from bytes by nothing but the content.
    told = BodyType.TEXT if connections.broker.title == "OpenMQ" else BodyType.BYTES
    assert [each.message.body_type for each in others] == [BodyType.BYTES, told]


def test_what_is_acknowledged_is_gone_and_the_rest_comes_again_with_the_same_id(
    connections: Connections, name: str
) -> None:
    connections.send(f"queue/{name}", *(Message(str(number).encode()) for number in range(20)))
    source = connections.source(f"queue:{name}")
    first = received(source, 20, acknowledge=False)
    source.acknowledge([each.token for each in first[:8]])
    source.close()

    again = received(connections.source(f"queue:{name}"), 12)

    assert [each.message.body for each in again] == [each.message.body for each in first[8:]]
    ids = [each.message.headers["JMSMessageID"] for each in first]
    assert [each.message.headers["JMSMessageID"] for each in again] == ids[8:]
    assert len(set(ids)) == 20
    assert {each.message.headers.get("JMSRedelivered") for each in again} == {"true"}


@pytest.mark.parametrize("broker", ["rabbitmq", "rabbitmq4"], indirect=True)
def test_a_plain_senders_message_has_an_id_which_stays_the_same_by_its_content(
    connections: Connections, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from engine.connectors.stomp import sink as module

    plain = module.to_frame
    # A sender that gives no id.
    monkeypatch.setattr(module, "to_frame", lambda *given: plain(*given).replace(b"amqp-message-id", b"x-nothing"))
    connections.send(f"queue/{name}", Message(b"1"), Message(b"2"))
    without = connections.source(f"queue:{name}")
    made = [each.message.headers["JMSMessageID"] for each in received(without, 2, acknowledge=False)]
    assert len(set(made)) == 2
    assert all(each.startswith("ID:") for each in made)
    without.close()

    ids: list[str] = []
    for _ in range(2):
        source = connections.source(f"queue:{name}", identity="content")
        ids += [each.message.headers["JMSMessageID"] for each in received(source, 2, acknowledge=False)]
        source.close()

    assert ids[:2] == ids[2:]
    assert len(set(ids)) == 2


@pytest.mark.parametrize("broker", ["rabbitmq", "rabbitmq4"], indirect=True)
def test_a_quorum_queue_is_reached_by_an_address_that_declares_nothing(connections: Connections, name: str) -> None:
    assert isinstance(connections.broker, RabbitNode)
    connections.broker.create(name, "quorum")
    connections.send(f"queue//amq/queue/{name}", Message(b"1"), Message(b"2"))
    for _ in range(2):
        first = connections.source(f"queue:/amq/queue/{name}")
        came = received(first, 2, acknowledge=False)
        first.close()
    again = received(connections.source(f"queue:/amq/queue/{name}"), 2)
    assert same(again) == same(came)
    assert {each.message.headers["JMSDestination"] for each in again} == {f"queue:{name}"}
    assert {each.message.headers["JMSRedelivered"] for each in again} == {"true"}
    with pytest.raises(NotConnectedError, match="precondition_failed"):
        connections.source(f"queue:{name}").receive(5)


@pytest.mark.parametrize("broker", ["rabbitmq", "rabbitmq4"], indirect=True)
def test_a_message_of_amqp_1_0_is_taken_as_far_as_the_broker_translates_it(connections: Connections, name: str) -> None:
    broker = connections.broker
    broker.create(name)
    for body_type in (BodyType.BYTES, BodyType.TEXT):
        connections.send(f"queue/{name}", Message(b"x", body_type), protocol=Protocol.AMQP)
    bytes_, text = received(connections.source(f"queue:{name}"), 2)
    assert text.fault is not None
    assert (bytes_.fault is None) is (broker.version >= "4")
    assert bytes_.message.body == b"x"


@pytest.mark.parametrize("broker", ["classic5", "classic6"], indirect=True)
def test_texts_go_between_stomp_and_the_brokers_own_client(connections: Connections, name: str) -> None:
    text = "x😀é".encode()
    connections.send(f"queue/{name}", Message(text, headers={"JMSXGroupID": "g"}))
    (there,) = received(connections.source(f"queue:{name}", Protocol.JMS), 1)
    connections.send(f"queue/{name}.back", Message(text), protocol=Protocol.JMS)
    (back,) = received(connections.source(f"queue:{name}.back"), 1)

    assert [there.message.body, back.message.body] == [text, text]
    assert there.message.headers["JMSXGroupID"] == "g"


@pytest.mark.parametrize("broker", ["classic5", "classic6"], indirect=True)
def test_a_map_is_not_taken_for_an_empty_text(connections: Connections, name: str) -> None:
    body, types = encode_map({"a": MapEntry("int", 5)})
    connections.send(f"queue/{name}", Message(body, BodyType.MAP, body_types=types), protocol=Protocol.JMS)

    (delivery,) = received(connections.source(f"queue:{name}"), 1)

    assert delivery.fault is not None
    assert "it may be an empty text, or a map, stream or object message" in delivery.fault


@pytest.mark.parametrize("broker", ["rabbitmq", "rabbitmq4"], indirect=True)
def test_the_reason_why_a_virtual_host_is_refused_is_shown(
    connections: Connections, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = {key: value for key, value in connections.broker.settings(Protocol.STOMP).items() if key != ".virtual-host"}
    monkeypatch.setattr(connections.broker, "settings", lambda _: keys)
    with pytest.raises(NotConnectedError, match=r"Virtual host '127.0.0.1' access denied; the key virtual-host names"):
        connections.source("queue:a")


def test_a_message_that_is_not_persistent_comes_to_a_queue_that_stays(connections: Connections, name: str) -> None:
    """At RabbitMQ it made a queue of the sink's connection, and where there was a queue, ended the connection."""
    message = Message(b"x", headers={"JMSDeliveryMode": "NON_PERSISTENT"})
    connections.send(f"queue/{name}", message)
    connections.close()
    connections.send(f"queue/{name}", message)
    found = received(connections.source(f"queue:{name}"), 2, alone=True)
    if connections.broker.title != "OpenMQ":
        assert {each.message.headers["JMSDeliveryMode"] for each in found} == {"NON_PERSISTENT"}
