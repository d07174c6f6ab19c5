"""The STOMP sink against a real Artemis, with a real JMS application behind it."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from engine.connectors.base import NotConnectedError, Outgoing
from engine.connectors.endpoint import SystemEndpoint
from engine.connectors.products import ARTEMIS
from engine.connectors.stomp.message import to_message
from engine.connectors.stomp.settings import StompSinkConfig
from engine.connectors.stomp.sink import StompSink
from engine.connectors.stomp.system import SYSTEM
from engine.connectors.stomp.traits import traits_of
from engine.message import BodyType, Message
from routes.properties import Property
from tests.integration.connectors.running import configure
from tests.integration.connectors.stomp_harness import Peer
from tests.integration.connectors.stomp_jms import PASSWORD, USER, JmsClient, StrictArtemis
from tests.waiting import patience, until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from engine.embedded import EmbeddedArtemis
    from tests.integration.connectors.stomp_harness import StompHarness


@pytest.fixture(scope="module")
def jms(artemis: EmbeddedArtemis, tmp_path_factory: pytest.TempPathFactory) -> Iterator[JmsClient]:
    """An application until a test kills the broker."""
    client = JmsClient(artemis.core_url, tmp_path_factory.mktemp("jms") / "log")
    yield client
    client.close()


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., StompSink]]:
    """Makes sinks to a URL; closes them at the end."""
    config = configure(tmp_path, "127.0.0.1:1", "journal", {".destinations": "queue:unused"})
    made: list[StompSink] = []

    def sink(url: str, **settings: object) -> StompSink:
        made.append(
            StompSink(
                SystemEndpoint.of(config, StompSinkConfig(name="out", type=SYSTEM, topic="t", url=url, **settings)), 1
            )
        )
        return made[-1]

    yield sink
    for each in made:
        each.close()


@pytest.fixture
def sink(make: Callable[..., StompSink], artemis: EmbeddedArtemis) -> StompSink:
    made = make(artemis.stomp_url)
    made.connect()
    return made


@pytest.fixture
def refused(make: Callable[..., StompSink], strict: StrictArtemis) -> StompSink:
    """A sink that is logged in at the strict broker, not connected yet."""
    return make(strict.stomp_url, username=USER, password=PASSWORD)


def outgoing(
    number: int,
    address: str,
    body: bytes = b"hello",
    reply_to: str | None = None,
    *,
    body_type: BodyType = BodyType.TEXT,
    headers: Mapping[str, str] | None = None,
    properties: Mapping[str, str] | None = None,
) -> Outgoing:
    values = {name: Property(value) for name, value in (properties or {}).items()}
    return Outgoing(number, Message(body, body_type, headers or {}, values), address, f"{address} {number}", reply_to)


def numbered(address: str, count: int, size: int = 0, begin: int = 0) -> list[Outgoing]:
    return [outgoing(n, address, str(n).encode().ljust(size, b".")) for n in range(begin, begin + count)]


def told(sink: StompSink, count: int, seconds: float = 30) -> dict[int, str | None]:
    """The first so many outcomes, each told once."""
    found: dict[int, str | None] = {}
    deadline = time.monotonic() + patience(seconds)
    while len(found) < count:
        assert time.monotonic() < deadline, f"{len(found)} of {count}"
        for outcome in sink.outcomes(1):
            assert outcome.number not in found
            found[outcome.number] = outcome.refusal
    return found


def drained(sink: StompSink) -> tuple[dict[int, str | None], NotConnectedError]:
    """What is told until the connection is gone, and why it is."""
    found: dict[int, str | None] = {}
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            found |= {outcome.number: outcome.refusal for outcome in sink.outcomes(1)}
        except NotConnectedError as error:
            return found, error
    raise AssertionError("still connected")


def deliver(sink: StompSink, messages: Sequence[Outgoing], seconds: float = 60) -> tuple[dict[int, str | None], int]:
    """As the loop does it: sends again, on a new connection, what has no outcome; also how many connections it took."""
    found: dict[int, str | None] = {}
    connections = 0
    deadline = time.monotonic() + patience(seconds)
    while left := [message for message in messages if message.number not in found]:
        assert time.monotonic() < deadline, f"{len(found)} of {len(messages)}"
        with suppress(NotConnectedError):
            sink.connect()
            connections += 1
            sink.send(left)
            while len(found) < len(messages):
                for outcome in sink.outcomes(1):
                    assert outcome.number not in found
                    found[outcome.number] = outcome.refusal
        time.sleep(0.1)
    return found, connections


def arrived(port: int, queue: str, count: int, **login: str) -> list[bytes]:
    """The bodies in a queue, in order; fails if there are more."""
    with Peer(port, **login) as peer:
        peer.subscribe(queue, "auto")
        found = [peer.expect("MESSAGE").body.rstrip(b".") for _ in range(count)]
        peer.write(peer.frame("UNSUBSCRIBE", {"id": "1", "receipt": "r"}))
        peer.expect("RECEIPT")
    return found


def test_a_jms_application_sees_fields_and_properties(sink: StompSink, jms: JmsClient, queue: str) -> None:
    expiration = str(int(time.time() * 1000) + 60_000)
    fields = {
        "JMSCorrelationID": "c: 1\r\n\\ é",
        "JMSType": "invoice",
        "JMSPriority": "7",
        "JMSExpiration": expiration,
        "JMSXGroupID": "g",
        "JMSXGroupSeq": "3",
    }
    properties = {"region": "emea", "n": "42", "odd: na\\me\n": "x\r\ny: \\n", "destination": "elsewhere", "id": "5"}
    sink.send([outgoing(1, f"queue/{queue}", headers=fields, properties=properties)])
    assert told(sink, 1) == {1: None}

    seen = jms.receive(f"queue:{queue}")

    assert seen["text"] == "hello"
    assert seen["JMSDestination"] == f"ActiveMQQueue {queue}"
    assert seen["JMSDeliveryMode"] == "true"
    same = ("JMSCorrelationID", "JMSType", "JMSPriority", "JMSExpiration")
    assert {name: seen[name] for name in same} == {name: fields[name] for name in same}
    assert (seen["property JMSXGroupID"], seen["property JMSXGroupSeq"]) == ("g", "3")
    for name in ("region", "n", "odd: na\\me\n", "id"):
        assert seen[f"property {name}"] == properties[name]
        assert seen[f"class {name}"] == "String"
    assert seen["property destination"] == queue


@pytest.mark.parametrize(
    ("body", "body_type", "expected"),
    [
        ("é😀\r\n".encode(), BodyType.TEXT, ("text", "é😀\r\n")),
        (b"", BodyType.TEXT, ("text", "")),
        (b"a\0b", BodyType.TEXT, ("bytes", "a\0b")),
        (b"\x00\xff\n\n", BodyType.BYTES, ("bytes", "\x00\xff\n\n")),
        (b"", BodyType.BYTES, ("bytes", "")),
        (b"x" * 300_000, BodyType.TEXT, ("text", "x" * 300_000)),
        (b"\xff" * 300_000, BodyType.BYTES, ("bytes", "\xff" * 300_000)),
    ],
    ids=["text", "empty text", "text with NUL", "bytes", "empty bytes", "large text", "large bytes"],
)
def test_a_jms_application_sees_text_and_bytes(
    sink: StompSink, jms: JmsClient, queue: str, body: bytes, body_type: BodyType, expected: tuple[str, str]
) -> None:
    sink.send([outgoing(1, f"queue:{queue}", body, body_type=body_type)])
    told(sink, 1)

    seen = jms.receive(f"queue:{queue}")

    assert (expected[0], seen.get(expected[0])) == expected


def test_a_topic_goes_to_its_subscribers(sink: StompSink, jms: JmsClient, queue: str) -> None:
    jms.open(f"topic:{queue}")
    sink.send([outgoing(1, f"/topic/{queue}")])
    told(sink, 1)

    assert jms.receive(f"topic:{queue}")["JMSDestination"] == f"ActiveMQTopic ActiveMQTopic[{queue}]"


def test_a_message_may_wait_for_its_delivery_time(sink: StompSink, jms: JmsClient, queue: str) -> None:
    due = int(time.time() * 1000) + 1500
    sink.send([outgoing(1, f"queue/{queue}", headers={"JMSDeliveryTime": str(due)})])
    told(sink, 1)

    seen = jms.receive(f"queue:{queue}")

    assert time.time() * 1000 >= due
    assert seen["JMSDeliveryTime"] == str(due)


def test_a_message_that_has_expired_is_not_delivered(sink: StompSink, jms: JmsClient, queue: str) -> None:
    past = str(int(time.time() * 1000) - 1000)
    sink.send([outgoing(1, f"queue/{queue}", b"late", headers={"JMSExpiration": past}), outgoing(2, f"queue/{queue}")])
    told(sink, 2)

    assert jms.receive(f"queue:{queue}")["text"] == "hello"


def test_a_jms_application_can_answer(sink: StompSink, jms: JmsClient, queue: str) -> None:
    fields = {"JMSCorrelationID": "token"}
    sink.send([outgoing(1, f"queue/{queue}", b"question", f"queue:{queue}-replies", headers=fields)])
    told(sink, 1)

    assert jms.answer(f"queue:{queue}")["JMSReplyTo"] == f"ActiveMQQueue {queue}-replies"

    assert jms.receive(f"queue:{queue}-replies")["JMSCorrelationID"] == "token"


def test_a_jms_application_that_waits_at_a_temporary_queue_gets_its_reply(
    sink: StompSink, stomp: StompHarness, jms: JmsClient, queue: str
) -> None:
    jms.request(queue, "question")
    with stomp.peer() as peer:
        peer.subscribe(queue, "auto")
        request = to_message(peer.expect("MESSAGE"), "queue", "s", traits_of(ARTEMIS))

    sink.send([outgoing(1, request.headers["JMSReplyTo"], b"answer")])

    assert told(sink, 1) == {1: None}
    assert jms.reply()["text"] == "answer"


def test_messages_arrive_in_order_and_are_kept_by_a_broker_that_is_started_again(
    sink: StompSink, stomp: StompHarness, queue: str
) -> None:
    sink.send(numbered(f"queue/{queue}", 500))
    sink.send(numbered(f"queue/{queue}", 500, begin=500))
    transient = outgoing(1000, f"queue/{queue}", b"gone", headers={"JMSDeliveryMode": "NON_PERSISTENT"})
    sink.send([transient])
    assert list(told(sink, 1001)) == list(range(1001))

    stomp.kill()
    stomp.start()

    assert arrived(stomp.port, queue, 1000) == [str(n).encode() for n in range(1000)]
    # The broker counts what it has given a little later.
    until(lambda: stomp.waiting(queue) == 0, what="nothing left")


def test_a_message_that_is_sent_again_is_there_once(sink: StompSink, stomp: StompHarness, queue: str) -> None:
    messages = numbered(f"queue/{queue}", 10)
    sink.send(messages)
    told(sink, 10)
    sink.close()

    sink.connect()
    sink.send(messages)

    assert told(sink, 10) == dict.fromkeys(range(10))
    assert stomp.waiting(queue) == 10


def test_nothing_is_lost_or_twice_when_the_broker_is_killed_in_the_middle(
    sink: StompSink, stomp: StompHarness, queue: str
) -> None:
    messages = numbered(f"queue/{queue}", 8000, size=400)
    for start in range(0, 7900, 500):
        sink.send(messages[start : min(start + 500, 7900)])
    confirmed = told(sink, 1000)
    stomp.pause()
    sink.send(messages[7900:])
    stomp.kill()
    confirmed |= drained(sink)[0]
    stomp.start()

    left = [message for message in messages if message.number not in confirmed]
    found, connections = deliver(sink, left)

    assert left
    assert connections == 1
    assert set((confirmed | found).values()) == {None}
    assert arrived(stomp.port, queue, 8000) == [str(n).encode() for n in range(8000)]
    until(lambda: stomp.waiting(queue) == 0, what="nothing left")


def test_a_header_that_a_frame_cannot_hold_is_refused_without_a_word_to_the_broker(
    sink: StompSink, stomp: StompHarness, queue: str
) -> None:
    bad = outgoing(2, f"queue/{queue}", properties={"evil": "\0\n\nMESSAGE"})
    sink.send([outgoing(1, f"queue/{queue}"), bad, outgoing(3, f"queue/{queue}"), outgoing(4, "nowhere")])

    found = told(sink, 4)

    assert found[2] == "header 'evil' has a NUL character, which STOMP cannot carry"
    assert "'nowhere' is not an address" in str(found[4])
    assert stomp.waiting(queue) == 2


@pytest.mark.parametrize(
    ("address", "says", "connections"),
    [
        ("queue/none.q", "AMQ339001 Destination does not exist none.q", 3),
        ("queue/none.topic", "AMQ339001 Destination does not exist none.topic", 3),
        ("queue/closed.q", "User sink does not have permission='CREATE_ADDRESS' on address closed.q", 3),
        ("queue/secret.q", "AMQ339011 Error sending message; may the bridge send to queue/secret.q", 7),
    ],
)
def test_what_the_broker_refuses_is_told_and_the_rest_arrives(
    refused: StompSink, strict: StrictArtemis, queue: str, address: str, says: str, connections: int
) -> None:
    messages = numbered(f"queue/{queue}", 2000)
    for number in (3, 1500):
        messages[number] = outgoing(number, address)

    found, count = deliver(refused, messages)

    assert {number for number, refusal in found.items() if refusal} == {3, 1500}
    assert all(says in str(found[number]) for number in (3, 1500))
    assert count <= connections
    expected = [str(n).encode() for n in range(2000) if n not in (3, 1500)]
    assert arrived(strict.port, queue, 1998, login=USER, passcode=PASSWORD) == expected


def test_headers_that_are_too_long_are_the_messages_own_fault(
    refused: StompSink, strict: StrictArtemis, queue: str
) -> None:
    messages = numbered(f"queue/{queue}", 10)
    messages[5] = outgoing(5, f"queue/{queue}", b"y" * 200_000, properties={"long": "x" * 200_000})

    found, _ = deliver(refused, messages)

    assert {number for number, refusal in found.items() if refusal} == {5}
    assert "are its headers short?" in str(found[5])
    assert len(str(found[5])) < 200


def test_an_address_that_is_full_is_no_fault_of_the_message(
    refused: StompSink, strict: StrictArtemis, queue: str
) -> None:
    address = f"full.{queue}"
    messages = numbered(f"queue/{address}", 20, size=5000)
    found: dict[int, str | None] = {}
    for _ in range(5):
        refused.connect()
        refused.send([message for message in messages if message.number not in found])
        outcomes, lost = drained(refused)
        found |= outcomes
        assert "AMQ339011" in str(lost)
    assert 0 < len(found) < 20

    with Peer(strict.port, login=USER, passcode=PASSWORD) as peer:
        peer.subscribe(address, "auto")
        found |= deliver(refused, [message for message in messages if message.number not in found])[0]
        received = [peer.expect("MESSAGE").body.rstrip(b".") for _ in range(20)]

    assert set(found.values()) == {None}
    assert sorted(received) == sorted(str(n).encode() for n in range(20))


def test_a_refused_login_is_not_asked_for_again_at_once(make: Callable[..., StompSink], strict: StrictArtemis) -> None:
    with pytest.raises(NotConnectedError, match="password is invalid") as raised:
        make(strict.stomp_url, username=USER, password="wrong").connect()

    assert (raised.value.back_off_seconds or 0) > 10


def test_a_broker_that_goes_away_is_noticed(sink: StompSink, stomp: StompHarness, queue: str) -> None:
    stomp.kill()
    try:
        with pytest.raises(NotConnectedError):
            sink.outcomes(5)
        with pytest.raises(NotConnectedError):
            sink.send([outgoing(1, f"queue/{queue}")])
        with pytest.raises(NotConnectedError):
            sink.connect()
    finally:
        stomp.start()
    sink.connect()
    sink.send([outgoing(1, f"queue/{queue}")])
    assert told(sink, 1) == {1: None}
