"""Sources and sinks of STOMP at real brokers, beside their own JMS clients: what each does in its own way."""

from __future__ import annotations

import time
import uuid
from typing import TYPE_CHECKING

import pytest

from engine.connectors.base import NotConnectedError, Outgoing
from engine.connectors.system import connector
from engine.jms_values import MapEntry, encode_map
from engine.message import BodyType, Message
from routes.config import loads
from routes.properties import Property
from tests.brokers.broker import Protocol
from tests.brokers.registry import BROKERS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from engine.connectors.base import Delivery, Sink, Source
    from tests.brokers.broker import Broker

pytestmark = pytest.mark.brokers

NAMES = ("classic5", "classic6", "rabbitmq", "openmq")


@pytest.fixture(scope="module", params=NAMES)
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with BROKERS[request.param](tmp_path_factory.mktemp("b")) as started:
        yield started


@pytest.fixture
def name() -> str:
    return f"q{uuid.uuid4().hex[:8]}"


class Ends:
    """Sources and sinks of one broker, which are closed at the end of the test."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self._open: list[Source | Sink] = []

    def source(self, destinations: str, protocol: Protocol = Protocol.STOMP, **more: str) -> Source:
        keys = self._keys(protocol) | {".destinations": destinations}
        keys |= {f".{key.replace('_', '-')}": value for key, value in more.items()}
        lines = [f"source.s{key}={value}" for key, value in keys.items()]
        config = loads("\n".join(("bridge.id=b", "routes.a.in.include=TRUE", "routes.a.out.topic=o", *lines)))
        made = connector(config.sources[0].type).make_source(config, config.sources[0], 1)
        self._open.append(made)
        made.connect()
        return made

    def send(self, address: str, *messages: Message, protocol: Protocol = Protocol.STOMP) -> None:
        """Sends by a sink, and waits until the broker has all."""
        lines = [f"sink.o{key}={value}" for key, value in self._keys(protocol).items()]
        own = ("bridge.id=b", "source.s.type=stomp", "source.s.destinations=queue:a")
        config = loads("\n".join((*own, "routes.a.in.include=TRUE", f"routes.a.out.topic=o:{address}", *lines)))
        sink = connector(config.sinks[0].type).make_sink(config, config.sinks[0], 1)
        sink.connect()
        sink.send([Outgoing(number, each, address, uuid.uuid4().hex) for number, each in enumerate(messages, 1)])
        left, until = len(messages), time.monotonic() + 30
        while left and time.monotonic() < until:
            for outcome in sink.outcomes(1):
                assert outcome.refusal is None
                left -= 1
        sink.close()
        assert not left

    def close(self) -> None:
        for each in self._open:
            each.close()

    def _keys(self, protocol: Protocol) -> dict[str, str]:
        keys = dict(self.broker.settings(protocol))
        if protocol is Protocol.STOMP and self.broker.title == "RabbitMQ":
            keys[".virtual-host"] = "/"
        return keys


@pytest.fixture
def ends(broker: Broker) -> Iterator[Ends]:
    made = Ends(broker)
    yield made
    made.close()


def received(source: Source, count: int, seconds: float = 20, *, acknowledge: bool = True) -> list[Delivery]:
    found: list[Delivery] = []
    until = time.monotonic() + seconds
    while len(found) < count and time.monotonic() < until:
        if (delivery := source.receive(0.5)) is not None:
            found.append(delivery)
    if acknowledge:
        source.acknowledge([each.token for each in found])
    assert len(found) == count
    return found


def test_a_durable_subscription_keeps_what_comes_while_the_source_is_away(ends: Ends, name: str) -> None:
    keys = {"subscription": "to-kafka", "client_id": f"c-{name}"}
    ends.source(f"topic:{name}", **keys).close()
    ends.send(f"topic/{name}", Message(b"1"), Message(b"2"))

    found = received(ends.source(f"topic:{name}", **keys), 2)

    assert [(each.message.body, each.message.headers["JMSDestination"]) for each in found] == [
        (b"1", f"topic:{name}"),
        (b"2", f"topic:{name}"),
    ]


def test_a_message_is_the_same_on_the_way_back(ends: Ends, name: str) -> None:
    later = str(int(time.time() * 1000) + 600_000)
    fields = {"JMSCorrelationID": "c:1", "JMSType": "t", "JMSPriority": "7", "JMSExpiration": later}
    properties = {"region": Property("é")}
    sent = Message("x😀é\n".encode(), BodyType.TEXT, fields, properties, origins=("other",))
    ends.send(f"queue/{name}", sent, Message(b"\x00\xff", BodyType.BYTES), Message(b"plain", BodyType.BYTES))

    text, *others = received(ends.source(f"queue:{name}"), 3)

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
    told = BodyType.TEXT if ends.broker.title == "OpenMQ" else BodyType.BYTES
    assert [each.message.body_type for each in others] == [BodyType.BYTES, told]


def test_what_is_acknowledged_is_gone_and_the_rest_comes_again_with_the_same_id(ends: Ends, name: str) -> None:
    ends.send(f"queue/{name}", *(Message(str(number).encode()) for number in range(20)))
    source = ends.source(f"queue:{name}")
    first = received(source, 20, acknowledge=False)
    source.acknowledge([each.token for each in first[:8]])
    source.close()

    again = received(ends.source(f"queue:{name}"), 12)

    assert [each.message.body for each in again] == [each.message.body for each in first[8:]]
    ids = [each.message.headers["JMSMessageID"] for each in first]
    assert [each.message.headers["JMSMessageID"] for each in again] == ids[8:]
    assert len(set(ids)) == 20
    assert {each.message.headers.get("JMSRedelivered") for each in again} == {"true"}


@pytest.mark.parametrize("broker", ["rabbitmq"], indirect=True)
def test_a_plain_senders_message_has_an_id_by_its_content_alone(
    ends: Ends, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from engine.connectors.stomp import sink as module

    plain = module.to_frame
    # A sender that gives no id.
    monkeypatch.setattr(module, "to_frame", lambda *given: plain(*given).replace(b"amqp-message-id", b"x-nothing"))
    ends.send(f"queue/{name}", Message(b"1"), Message(b"2"))
    without = ends.source(f"queue:{name}")
    assert [each.message.headers.get("JMSMessageID") for each in received(without, 2, acknowledge=False)] == [None] * 2
    without.close()

    ids: list[str] = []
    for _ in range(2):
        source = ends.source(f"queue:{name}", identity="content")
        ids += [each.message.headers["JMSMessageID"] for each in received(source, 2, acknowledge=False)]
        source.close()

    assert ids[:2] == ids[2:]
    assert len(set(ids)) == 2


@pytest.mark.parametrize("broker", ["classic5", "classic6"], indirect=True)
def test_texts_go_between_stomp_and_the_brokers_own_client(ends: Ends, name: str) -> None:
    text = "x😀é".encode()
    ends.send(f"queue/{name}", Message(text, headers={"JMSXGroupID": "g"}))
    (there,) = received(ends.source(f"queue:{name}", Protocol.JMS), 1)
    ends.send(f"queue/{name}.back", Message(text), protocol=Protocol.JMS)
    (back,) = received(ends.source(f"queue:{name}.back"), 1)

    assert [there.message.body, back.message.body] == [text, text]
    assert there.message.headers["JMSXGroupID"] == "g"


@pytest.mark.parametrize("broker", ["classic5", "classic6"], indirect=True)
def test_a_map_is_not_taken_for_an_empty_text(ends: Ends, name: str) -> None:
    body, types = encode_map({"a": MapEntry("int", 5)})
    ends.send(f"queue/{name}", Message(body, BodyType.MAP, body_types=types), protocol=Protocol.JMS)

    (delivery,) = received(ends.source(f"queue:{name}"), 1)

    assert delivery.fault is not None
    assert "it may be an empty text, or a map, stream or object message" in delivery.fault


@pytest.mark.parametrize("broker", ["rabbitmq"], indirect=True)
def test_the_reason_why_a_virtual_host_is_refused_is_shown(ends: Ends, monkeypatch: pytest.MonkeyPatch) -> None:
    keys: Callable[[Protocol], dict[str, str]] = ends.broker.settings
    monkeypatch.setattr(ends, "_keys", keys)
    with pytest.raises(NotConnectedError, match=r"Virtual host '127.0.0.1' access denied; the key virtual-host names"):
        ends.source("queue:a")
