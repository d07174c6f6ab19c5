"""Sources and sinks of type `jms` with each broker's own client, against the broker."""

from __future__ import annotations

import itertools
import time
from typing import TYPE_CHECKING, NamedTuple

import pytest

from engine.connectors.base import NotConnectedError
from engine.errors import HardFailureError, SetupError
from engine.message import BodyType, Message
from routes.properties import JmsType, Property
from tests.brokers.application import Application
from tests.brokers.broker import Broker, Protocol
from tests.brokers.connections import Connections
from tests.brokers.packages import CACHE
from tests.brokers.registry import BROKERS
from tests.integration.connectors.jms_ends import Ends, ends_of
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from engine.connectors.base import Delivery

pytestmark = pytest.mark.brokers

SERIALIZED = b"\xac\xed\x00\x05t\x00\x01o"
TYPES = "a=int,b=string,c=bytes,d=double,e=boolean,f=char"
BODIES = {
    "text": Message("grüße \u20ac \U0001f600\n".encode()),
    "empty": Message(b""),
    "large": Message(b"x" * 500_000),
    "bytes": Message(bytes(range(256)), BodyType.BYTES),
    "map": Message(b'{"a":5,"b":"x","c":"AQI=","d":1.5,"e":true,"f":"y"}', BodyType.MAP, body_types=TYPES),
    "stream": Message(b'[5,"x","AQI=",1.5,true]', BodyType.STREAM, body_types="long,string,bytes,double,boolean"),
    "object": Message(SERIALIZED, BodyType.OBJECT),
}
PROPERTIES = {
    "on": Property("true", JmsType.BOOLEAN),
    "small": Property("-5", JmsType.BYTE),
    "short": Property("300", JmsType.SHORT),
    "number": Property("70000", JmsType.INT),
    "large": Property(str(1 << 40), JmsType.LONG),
    "single": Property("0.1", JmsType.FLOAT),
    "double": Property("1e+300", JmsType.DOUBLE),
    "text": Property("grüße \u20ac", JmsType.STRING),
}


class Client(NamedTuple):
    """A client and the broker that it is for."""

    broker: str
    package: str = ""
    """Another package than the broker's own."""


CLIENTS: Mapping[str, Client] = {
    "classic5": Client("classic5"),
    "classic6": Client("classic6"),
    "rabbitmq": Client("rabbitmq"),
    "broker-j by jakarta": Client("broker-j", "org.apache.qpid:qpid-jms-client:2.10.0"),
    "broker-j by javax": Client("broker-j", "org.apache.qpid:qpid-jms-client:1.12.1"),
    "openmq": Client("openmq"),
}
_names = itertools.count(1)


@pytest.fixture(scope="session")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Broker]]:
    """Starts a broker when a test first asks for it."""
    running: dict[str, Broker] = {}

    def get(name: str) -> Broker:
        if name not in running:
            broker = BROKERS[name](tmp_path_factory.mktemp(name))
            try:
                broker.start()
            except SetupError as error:
                pytest.skip(str(error))
            running[name] = broker
        return running[name]

    yield get
    for each in running.values():
        each.stop()


@pytest.fixture(params=sorted(CLIENTS))
def client(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def broker(brokers: Callable[[str], Broker], client: str) -> Broker:
    return brokers(CLIENTS[client].broker)


@pytest.fixture
def queue(broker: Broker) -> str:
    name = f"q{next(_names)}x{time.time_ns() % 1_000_000}"
    broker.create(name)
    return name


@pytest.fixture
def make(broker: Broker, client: str, queue: str, tmp_path: Path) -> Iterator[Callable[..., Ends]]:
    """Makes a source and a sink of the client; arguments are a destination, and further keys of the source."""
    made: list[Ends] = []
    keys = broker.settings(Protocol.JMS) | {".heap": "64MiB"}
    if package := CLIENTS[client].package:
        keys[".packages"] = package

    def ends(destination: str = "", **source: str) -> Ends:
        more = {"embedded.data": str(CACHE)}
        made.append(ends_of(tmp_path, keys, destination or f"queue:{queue}", more, **source))
        return made[-1]

    yield ends
    for each in made:
        each.close()


def test_bodies_of_all_types_come_as_they_were_sent(make: Callable[..., Ends], queue: str, client: str) -> None:
    both = make()
    both.sink.connect()
    refused = both.send(f"queue/{queue}", *BODIES.values())
    sent = {name: each for number, (name, each) in enumerate(BODIES.items()) if refused[number] is None}
    told = {name: refused[number] for number, name in enumerate(BODIES) if refused[number] is not None}
    assert set(told) == ({"object"} if client.startswith(("rabbitmq", "openmq")) else set()), told
    both.source.connect()
    found = dict(zip(sent, both.receive(len(sent)), strict=True))
    for name, each in sent.items():
        assert (found[name].body, found[name].body_type) == (each.body, each.body_type), name
    assert dict(pair.split("=") for pair in found["map"].body_types.split(",")) == dict(
        pair.split("=") for pair in TYPES.split(",")
    )
    assert found["stream"].body_types == BODIES["stream"].body_types


def test_fields_and_typed_properties_come_as_they_were_sent(make: Callable[..., Ends], queue: str) -> None:
    both = make()
    both.sink.connect()
    now = int(time.time() * 1000)
    headers = {
        "JMSCorrelationID": "c:1",
        "JMSType": "new",
        "JMSPriority": "7",
        "JMSXGroupID": "group",
        "JMSXGroupSeq": "3",
        "JMSDeliveryMode": "NON_PERSISTENT",
        "JMSExpiration": str(now + 3_600_000),
        "JMSReplyTo": "queue:replies",
    }
    assert both.send(f"queue/{queue}", Message(b"x", headers=headers, properties=PROPERTIES)) == {0: None}
    both.source.connect()
    (found,) = both.receive(1)
    own = {name: value for name, value in found.properties.items() if not name.startswith(("JMS", "rmq"))}
    assert own == PROPERTIES
    got = {name: found.headers.get(name) for name in headers if name != "JMSExpiration"}
    assert got == {name: text for name, text in headers.items() if name != "JMSExpiration"}
    assert abs(int(found.headers["JMSExpiration"]) - int(headers["JMSExpiration"])) < 10_000
    assert abs(int(found.headers["JMSTimestamp"]) - now) < 60_000
    assert found.headers["JMSDestination"] == f"queue:{queue}"
    assert found.headers["JMSMessageID"].startswith("ID:")


@pytest.mark.parametrize("client", ["rabbitmq"], indirect=True)
def test_messages_of_other_clients_are_set_aside_and_stop_nothing(
    make: Callable[..., Ends], queue: str, broker: Broker
) -> None:
    """RabbitMQ's client throws at each message that it has not written itself."""
    both, others = make(), Connections(broker, Protocol.STOMP)
    try:
        both.sink.connect()
        both.send(f"queue/{queue}", Message(b"own 1"))
        others.send(f"queue/{queue}", Message(b"of STOMP"), Message(b"\x00\x01", BodyType.BYTES))
        both.send(f"queue/{queue}", Message(b"own 2"))
        others.send(f"queue/{queue}", Message(b"last"))
        both.source.connect()
        found = taken(both, 5)
    finally:
        others.close()
    assert sorted(each.message.body for each in found if each.fault is None) == [b"own 1", b"own 2"]
    faulty = [each for each in found if each.fault is not None]
    assert sorted(each.message.body for each in faulty) == [b"\x00\x01", b"last", b"of STOMP"]
    assert {each.message.headers["JMSDestination"] for each in found} == {f"queue:{queue}"}
    until(lambda: broker.waiting(queue) == 0, 30)


def taken(both: Ends, count: int, seconds: float = 60) -> list[Delivery]:
    """Deliveries, readable or not, each acknowledged as it comes; one that comes again counts as another."""
    found: list[Delivery] = []
    deadline = time.monotonic() + seconds
    while len(found) < count and time.monotonic() < deadline:
        if (delivery := both.source.receive(0.5)) is not None:
            found.append(delivery)
            both.source.acknowledge([delivery.token])
    return found


def test_what_was_not_acknowledged_comes_again(make: Callable[..., Ends], queue: str, broker: Broker) -> None:
    both = make()
    both.sink.connect()
    both.send(f"queue/{queue}", *[Message(str(n).encode()) for n in range(100)])
    both.source.connect()
    deliveries = both.deliveries(100)
    both.source.acknowledge([each.token for each in deliveries][:37])
    both.source.close()

    both.source.connect()
    assert [each.body for each in both.receive(63)] == [str(n).encode() for n in range(37, 100)]
    both.source.close()
    until(lambda: broker.waiting(queue) == 0)


def test_more_messages_are_taken_than_a_transaction_may_have(make: Callable[..., Ends], queue: str) -> None:
    both = make()
    both.sink.connect()
    count = 1_200
    for begin in range(0, count, 400):
        sent = [Message(str(n).encode()) for n in range(begin, begin + 400)]
        assert set(both.send(f"queue/{queue}", *sent).values()) == {None}
    both.source.connect()
    # As the loop does, each is acknowledged soon: a transaction ends when the client has been told of all its messages.
    found = [each.body for _ in range(count) for each in both.receive(1)]
    assert found == [str(n).encode() for n in range(count)]


def test_client_acknowledgement_loses_nothing_either(make: Callable[..., Ends], queue: str, broker: Broker) -> None:
    both = make(client_acknowledge="true")
    both.sink.connect()
    both.send(f"queue/{queue}", *[Message(str(n).encode()) for n in range(60)])
    both.source.connect()
    deliveries = both.deliveries(60)
    both.source.acknowledge([each.token for each in deliveries][:20])
    both.source.close()
    both.source.connect()
    assert [each.body for each in both.receive(40)] == [str(n).encode() for n in range(20, 60)]
    both.source.close()
    until(lambda: broker.waiting(queue) == 0)


def test_an_expired_message_does_not_come(make: Callable[..., Ends], queue: str) -> None:
    both = make()
    both.sink.connect()
    soon = str(int(time.time() * 1000) + 1500)
    both.send(f"queue/{queue}", Message(b"short", headers={"JMSExpiration": soon}), Message(b"long"))
    time.sleep(2)
    both.source.connect()
    assert [each.body for each in both.receive(1)] == [b"long"]
    assert both.source.receive(1) is None


def test_a_durable_subscription_keeps_messages_while_the_bridge_is_stopped(
    make: Callable[..., Ends], queue: str
) -> None:
    both = make(f"topic:{queue}", subscription="sub")
    both.source.connect()
    both.source.close()
    both.sink.connect()
    assert both.send(f"topic/{queue}", Message(b"1"), Message(b"2")) == {0: None, 1: None}
    both.source.connect()
    found = both.receive(2)
    assert [each.body for each in found] == [b"1", b"2"]
    assert found[0].headers["JMSDestination"] == f"topic:{queue}"


def test_a_selector_is_honoured_or_refused(make: Callable[..., Ends], queue: str) -> None:
    both = make(selector="region = 'emea'")
    both.sink.connect()
    regions = ["apac", "emea", "apac", "emea"]
    sent = [Message(str(n).encode(), properties={"region": Property(to)}) for n, to in enumerate(regions)]
    both.send(f"queue/{queue}", *sent)
    try:
        both.source.connect()
    except (NotConnectedError, HardFailureError) as error:
        assert "elector" in str(error)  # noqa: PT017 - either is right
        return
    assert [each.body for each in both.receive(2)] == [b"1", b"3"]
    assert both.source.receive(1) is None


def test_a_shared_subscription_is_honoured_or_refused(make: Callable[..., Ends], queue: str) -> None:
    both = make(f"topic:{queue}", subscription="both", shared_subscription="true")
    try:
        both.source.connect()
    except HardFailureError as error:
        assert "shared subscription" in str(error)  # noqa: PT017 - either is right
        return
    both.sink.connect()
    both.send(f"topic/{queue}", Message(b"1"))
    assert [each.body for each in both.receive(1)] == [b"1"]


def test_a_delivery_delay_is_honoured_or_refused(make: Callable[..., Ends], queue: str, client: str) -> None:
    both = make()
    both.sink.connect()
    at = int(time.time() * 1000) + 3000
    late = Message(b"late", headers={"JMSDeliveryTime": str(at)})
    if client == "rabbitmq":
        # It closes the connection, unless it has its plugin for delays (docs/connectors/jms.md, "What is missing").
        with pytest.raises(NotConnectedError, match="x-delayed-message"):
            both.send(f"queue/{queue}", late)
        return
    found = both.send(f"queue/{queue}", late, Message(b"now"))
    assert found[1] is None
    both.source.connect()
    if found[0] is None:
        assert [each.body for each in both.receive(2)] == [b"now", b"late"]
        assert time.time() * 1000 >= at
    else:
        assert "delivery delay" in found[0]
        assert [each.body for each in both.receive(1)] == [b"now"]


def test_a_reply_reaches_the_temporary_queue_of_a_requester(
    make: Callable[..., Ends], broker: Broker, queue: str, tmp_path: Path
) -> None:
    both = make()
    both.source.connect()
    both.sink.connect()
    application = Application(broker, Protocol.JMS, tmp_path / "application.log")
    try:
        application.request(f"queue:{queue}", "question")
        (request,) = both.receive(1)
        assert both.send(request.headers["JMSReplyTo"], Message(b"answer")) == {0: None}
        assert application.reply().get("body") == "answer"
    finally:
        application.kill()


def test_a_wrong_password_is_told(make: Callable[..., Ends]) -> None:
    both = make(password="hunter2-x")
    with pytest.raises(NotConnectedError) as refused:
        both.source.connect()
    assert "hunter2-x" not in str(refused.value)
    assert refused.value.back_off_seconds == 30, str(refused.value)
