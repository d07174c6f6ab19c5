"""The AMQP sink against a real Artemis, with real JMS applications behind it."""

from __future__ import annotations

import base64
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from engine.connectors.amqp.settings import AmqpSinkConfig
from engine.connectors.amqp.sink import AmqpSink
from engine.connectors.amqp.system import SYSTEM
from engine.connectors.base import NotConnectedError, Outgoing
from engine.connectors.endpoint import SystemEndpoint
from engine.jms_values import MapEntry, encode_map, encode_stream
from engine.message import BodyType, Message
from routes.properties import JmsType, Property
from tests.integration.connectors.amqp_jms import QpidClient
from tests.integration.connectors.running import configure
from tests.integration.connectors.stomp_harness import Peer
from tests.integration.connectors.stomp_jms import PASSWORD, USER, JmsClient, StrictArtemis
from tests.waiting import patience

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from engine.embedded import EmbeddedArtemis
    from tests.integration.connectors.amqp_harness import AmqpHarness

PROPERTIES = {
    "boolean": Property("true", JmsType.BOOLEAN),
    "byte": Property("-128", JmsType.BYTE),
    "short": Property("32767", JmsType.SHORT),
    "int": Property("-5", JmsType.INT),
    "long": Property("9223372036854775807", JmsType.LONG),
    "float": Property("1.5", JmsType.FLOAT),
    "double": Property("-1e-300", JmsType.DOUBLE),
    "string": Property("grüße ☃", JmsType.STRING),
    "untyped": Property("5"),
}


def structured(kind: BodyType, body: bytes, types: str) -> Message:
    return Message(body, kind, body_types=types)


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., AmqpSink]]:
    """Makes sinks to a URL; closes them at the end."""
    config = configure(tmp_path, "127.0.0.1:1", "journal", {".destinations": "queue:unused"})
    made: list[AmqpSink] = []

    def sink(url: str, **settings: object) -> AmqpSink:
        made.append(
            AmqpSink(
                SystemEndpoint.of(config, AmqpSinkConfig(name="out", type=SYSTEM, topic="t", url=url, **settings)), 1
            )
        )
        return made[-1]

    yield sink
    for each in made:
        each.close()


@pytest.fixture
def sink(artemis: EmbeddedArtemis, make: Callable[..., AmqpSink]) -> AmqpSink:
    connected = make(artemis.amqp_url)
    connected.connect()
    return connected


@pytest.fixture
def refused(strict: StrictArtemis, make: Callable[..., AmqpSink]) -> AmqpSink:
    connected = make(strict.amqp_url, username=USER, password=PASSWORD)
    connected.connect()
    return connected


def outgoing(number: int, address: str, message: Message | None = None, reply_to: str | None = None) -> Outgoing:
    return Outgoing(number, message or Message(str(number).encode()), address, f"id-{address}-{number}", reply_to)


def told(sink: AmqpSink, count: int, seconds: float = 20) -> dict[int, str | None]:
    """What becomes of so many messages."""
    found: dict[int, str | None] = {}
    deadline = time.monotonic() + patience(seconds)
    while len(found) < count and time.monotonic() < deadline:
        found |= {outcome.number: outcome.refusal for outcome in sink.outcomes(0.5)}
    assert len(found) == count, found
    return found


def test_a_jms_application_sees_fields_and_properties(sink: AmqpSink, qpid: QpidClient, queue: str) -> None:
    later = int(time.time() * 1000) + 3_600_000
    fields = {
        "JMSMessageID": "ID:mine",
        "JMSCorrelationID": "c 1",
        "JMSType": "new",
        "JMSPriority": "9",
        "JMSTimestamp": "1795240301012",
        "JMSExpiration": str(later),
        "JMSDeliveryMode": "NON_PERSISTENT",
    }
    group = {"JMSXGroupID": "g", "JMSXGroupSeq": "7"}
    sink.send([outgoing(1, f"queue/{queue}", Message(b"x", headers={**fields, **group}, properties=PROPERTIES))])
    assert told(sink, 1) == {1: None}

    found = qpid.receive(f"queue:{queue}")
    assert abs(int(found["JMSExpiration"]) - later) < 10_000
    # The message id is the broker's where it had to make the message anew.
    assert {name: found[name] for name in fields if name != "JMSExpiration"} == {
        name: text for name, text in fields.items() if name != "JMSExpiration"
    }
    assert found["JMSDestination"] == f"queue:{queue}"
    assert found["JMSRedelivered"] == "false"
    expected = {
        "boolean": "boolean:true",
        "byte": "byte:-128",
        "short": "short:32767",
        "int": "int:-5",
        "long": "long:9223372036854775807",
        "float": "float:1.5",
        "double": "double:-1.0E-300",
        "string": "string:grüße ☃",
        "untyped": "string:5",
        "JMSXGroupID": "string:g",
        "JMSXGroupSeq": "int:7",
    }
    assert {name: found[f"property {name}"] for name in expected} == expected


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (Message("grüße".encode()), {"type": "text", "body": "grüße"}),
        (Message(b""), {"type": "text"}),
        (
            Message(bytes(range(256)), BodyType.BYTES),
            {"type": "bytes", "body": base64.b64encode(bytes(range(256))).decode()},
        ),
        (
            structured(BodyType.MAP, *encode_map({"a": MapEntry("int", 1), "b": MapEntry("bytes", b"\0")})),
            {"type": "map", "entry a": "int:1", "entry b": "bytes:AA=="},
        ),
        (
            structured(BodyType.STREAM, *encode_stream([MapEntry("byte", 1), MapEntry("string", "x")])),
            {"type": "stream", "item 0": "byte:1", "item 1": "string:x"},
        ),
    ],
    ids=["text", "empty", "bytes", "map", "stream"],
)
def test_a_jms_application_sees_bodies_of_every_type(
    sink: AmqpSink, qpid: QpidClient, queue: str, message: Message, expected: dict[str, str]
) -> None:
    sink.send([outgoing(1, f"queue/{queue}", message)])
    assert told(sink, 1) == {1: None}

    found = qpid.receive(f"queue:{queue}")
    assert {name: found.get(name, "") for name in expected} == expected


def test_an_application_with_another_protocol_sees_them_too(
    sink: AmqpSink, artemis: EmbeddedArtemis, tmp_path: Path, queue: str
) -> None:
    jms = JmsClient(artemis.core_url, tmp_path / "jms.log")
    message = Message(b"hello", headers={"JMSType": "new"}, properties={"amount": Property("5", JmsType.INT)})
    sink.send([outgoing(1, f"queue/{queue}", message)])
    told(sink, 1)

    found = jms.receive(f"queue:{queue}")
    jms.close()
    assert (found["text"], found["JMSType"], found["property amount"]) == ("hello", "new", "5")


def test_a_topic_goes_to_its_subscribers(sink: AmqpSink, qpid: QpidClient, queue: str) -> None:
    qpid.open(f"topic:{queue}")
    sink.send([outgoing(1, f"topic/{queue}")])
    assert told(sink, 1) == {1: None}

    found = qpid.receive(f"topic:{queue}")
    assert (found["body"], found["JMSDestination"]) == ("1", f"topic:{queue}")


def test_a_jms_application_can_answer(sink: AmqpSink, qpid: QpidClient, queue: str) -> None:
    message = Message(b"ask", headers={"JMSCorrelationID": "jb1-x"})
    sink.send([outgoing(1, f"queue/{queue}", message, f"queue:{queue}.replies")])
    told(sink, 1)

    qpid.answer(f"queue:{queue}")

    found = qpid.receive(f"queue:{queue}.replies")
    assert (found["body"], found["JMSCorrelationID"]) == ("ask", "jb1-x")


def test_a_large_message_goes_in_parts(sink: AmqpSink, qpid: QpidClient, queue: str) -> None:
    body = bytes(n % 251 for n in range(1_000_000))
    messages = [outgoing(n, f"queue/{queue}", Message(body, BodyType.BYTES)) for n in range(3)]
    sink.send(messages)
    assert set(told(sink, 3).values()) == {None}

    for _ in range(3):
        assert base64.b64decode(qpid.receive(f"queue:{queue}")["body"]) == body


def test_a_message_that_is_sent_again_is_there_once(sink: AmqpSink, amqp: AmqpHarness, queue: str) -> None:
    message = outgoing(1, f"queue/{queue}", Message(b"x", properties={"a": Property("1", JmsType.INT)}))
    for _ in range(3):
        sink.send([message])
        assert told(sink, 1) == {1: None}

    assert amqp.waiting(queue) == 1


def test_a_temporary_queue_whose_owner_leaves_disturbs_nobody(
    sink: AmqpSink, artemis: EmbeddedArtemis, queue: str
) -> None:
    client = QpidClient(artemis.amqp_url)
    client.request(f"queue:{queue}", "ask")
    own = client.receive(f"queue:{queue}")["JMSReplyTo"]
    sink.send([outgoing(1, own)])
    assert told(sink, 1) == {1: None}
    assert client.reply()["body"] == "1"
    client.close()

    assert sink.outcomes(1) == []
    sink.send([outgoing(2, f"/queue/{queue}"), outgoing(3, f"queue:{queue}")])
    assert told(sink, 2) == {2: None, 3: None}


def test_more_addresses_than_links_are_kept_open(sink: AmqpSink, amqp: AmqpHarness, queue: str) -> None:
    for part in range(5):
        messages = [outgoing(100 * part + n, f"queue/{queue}.{100 * part + n}") for n in range(100)]
        sink.send(messages)
        assert set(told(sink, 100).values()) == {None}
    sink.send([outgoing(1000, f"queue/{queue}.0")])
    told(sink, 1)

    assert amqp.waiting(f"{queue}.0") == 2
    assert amqp.waiting(f"{queue}.499") == 1


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("queue/none.q", "none.q"),
        ("queue/closed.q", "CREATE_ADDRESS"),
        ("queue/secret.q", "SEND"),
        ("nowhere", "'nowhere' is not an address of a JMS broker"),
    ],
)
def test_what_the_broker_refuses_is_told_and_the_rest_arrives(
    refused: AmqpSink, strict: StrictArtemis, queue: str, address: str, says: str
) -> None:
    messages = [outgoing(n, address if n in (3, 1500) else f"queue/{queue}") for n in range(2000)]
    refused.send(messages)

    found = told(refused, 2000)

    assert {number for number, refusal in found.items() if refusal} == {3, 1500}
    assert all(says in str(found[number]) for number in (3, 1500)), found[3]
    with Peer(strict.port, login=USER, passcode=PASSWORD) as peer:
        peer.subscribe(queue, "auto")
        received = [int(peer.expect("MESSAGE").body) for _ in range(1998)]
    assert received == [n for n in range(2000) if n not in (3, 1500)]


def test_an_address_that_is_full_is_no_fault_of_the_message(
    refused: AmqpSink, strict: StrictArtemis, queue: str
) -> None:
    address = f"full.{queue}"
    messages = [outgoing(n, f"queue/{address}", Message(str(n).encode().ljust(5000, b"."))) for n in range(20)]
    found: dict[int, str | None] = {}
    for _ in range(3):
        refused.connect()
        refused.send([message for message in messages if message.number not in found])
        found |= drained(refused)
    assert 0 < len(found) < 20

    with Peer(strict.port, login=USER, passcode=PASSWORD) as peer:
        peer.subscribe(address, "auto")
        deadline = time.monotonic() + patience(30)
        while len(found) < 20 and time.monotonic() < deadline:
            refused.connect()
            refused.send([message for message in messages if message.number not in found])
            found |= drained(refused)
        received = [peer.expect("MESSAGE").body.rstrip(b".") for _ in range(20)]

    assert set(found.values()) == {None}
    assert sorted(received) == sorted(str(n).encode() for n in range(20))


def drained(sink: AmqpSink) -> dict[int, str | None]:
    """What becomes known until the connection ends, or within two seconds."""
    found: dict[int, str | None] = {}
    deadline = time.monotonic() + 2
    with suppress(NotConnectedError):
        while time.monotonic() < deadline:
            found |= {outcome.number: outcome.refusal for outcome in sink.outcomes(0.1)}
    return found


def test_a_refused_login_is_not_asked_for_again_at_once(make: Callable[..., AmqpSink], strict: StrictArtemis) -> None:
    with pytest.raises(NotConnectedError, match=f"the broker refuses the login of user '{USER}'") as raised:
        make(strict.amqp_url, username=USER, password="wrong").connect()

    assert (raised.value.back_off_seconds or 0) > 10


def test_a_broker_that_goes_away_is_noticed(sink: AmqpSink, amqp: AmqpHarness, queue: str) -> None:
    amqp.kill()
    try:
        with pytest.raises(NotConnectedError):
            sink.outcomes(5)
        with pytest.raises(NotConnectedError):
            sink.send([outgoing(1, f"queue/{queue}")])
        with pytest.raises(NotConnectedError):
            sink.connect()
    finally:
        amqp.start()
    sink.connect()
    sink.send([outgoing(1, f"queue/{queue}")])
    assert told(sink, 1) == {1: None}
