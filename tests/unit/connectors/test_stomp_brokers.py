"""What brokers do in their own way over STOMP, by frames that they sent.

The frames are those of Artemis 2.56.0, ActiveMQ Classic 5.18.3, RabbitMQ 3.10.8 and OpenMQ 6.5.0.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from structlog.testing import capture_logs

from engine.connectors.base import NotConnectedError, Outgoing
from engine.connectors.content_id import content_id
from engine.connectors.products import ARTEMIS, CLASSIC, OPENMQ, RABBITMQ, Product
from engine.connectors.stomp.frames import StompFrame, StompFrameParser
from engine.connectors.stomp.message import to_frame, to_message
from engine.connectors.stomp.traits import traits_of
from engine.delivery.deduplication.seen_messages import digest
from engine.message import BodyType, Message
from engine.property_names import take_not_kept
from routes.properties import Property
from tests.unit.connectors.stomp_broker import opened as opened
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from engine.connectors.stomp.source import StompSource
    from tests.unit.connectors.stomp_broker import Broker

CLASSIC_TEXT = {
    "expires": "0",
    "kind": "text",
    "destination": "/queue/t",
    "ack": "ID:vm-33805-1795439815244-4:2",
    "subscription": "1",
    "priority": "4",
    "message-id": "ID:vm-32881-1795440127717-1:1:1:1:2",
    "persistent": "true",
    "timestamp": "1795440128344",
}
ARTEMIS_TEXT = {
    "subscription": "1",
    "message-id": "48,27",
    "ack": "1",
    "destination": "q",
    "persistent": "true",
    "destination-type": "ANYCAST",
    "__AMQ_CID": "1af0a3bd-e764-11f1-91f1-02fc00000001",
}
RABBITMQ_TEXT = {
    "subscription": "1",
    "destination": "/topic/prices",
    "message-id": "T_1@@session-tq-c5B5mrXy-uQLw-eMvHw@@1",
    "redelivered": "true",
    "ack": "T_1@@session-tq-c5B5mrXy-uQLw-eMvHw@@1",
    "JMSXGroupID": "g",
    "receipt": "q",
    "reply-to": "/reply-queue/amq.gen-mVzWTVp7udmhpsccKlfQhA",
    "persistent": "true",
    "content-length": "3",
}
OPENMQ_TEXT = {
    "subscription": "1",
    "destination": "/queue/a",
    "message-id": "ID:65-127.0.0.1(e9:b2:3d:e8:81:12)-34044-1795440048260",
    "ack": "1ID:65-127.0.0.1(e9:b2:3d:e8:81:12)-34044-1795440048260",
    "expires": "1795440108334",
    "redelivered": "false",
    "priority": "7",
    "timestamp": "1795440048260",
    "JMSXDeliveryCount": "1",
    "content-length": "7",
}


def received(product: Product, headers: Mapping[str, str], body: bytes = b"abc", kind: str = "queue") -> Message:
    return to_message(StompFrame("MESSAGE", headers, body, len(body)), kind, "s", traits_of(product))


def sent(
    product: Product, message: Message, address: str = "queue/a", reply_to: str | None = None, server: str = ""
) -> StompFrame:
    data = to_frame(Outgoing(7, message, address, "the-id", reply_to), traits_of(product, server))
    (frame,) = StompFrameParser(1 << 20, 1 << 20).feed(b"MESSAGE" + data.removeprefix(b"SEND"))
    return frame


# Identity


def test_at_rabbitmq_the_id_of_a_delivery_is_no_message_id() -> None:
    assert "JMSMessageID" not in received(RABBITMQ, RABBITMQ_TEXT).headers


def test_at_rabbitmq_an_id_that_the_sender_gave_is_the_message_id_and_no_property() -> None:
    message = received(RABBITMQ, RABBITMQ_TEXT | {"amqp-message-id": "my"})

    assert message.headers["JMSMessageID"] == "ID:my"
    assert not message.properties


def test_messages_for_rabbitmq_have_an_id_that_stays_when_they_are_sent_again() -> None:
    assert sent(RABBITMQ, Message(b"x")).headers["amqp-message-id"] == "the-id"


def test_an_id_made_of_the_content_stays_when_the_message_is_delivered_again() -> None:
    again = RABBITMQ_TEXT | {"message-id": "T_1@@session-other@@9", "ack": "T_1@@session-other@@9"}
    first, second = received(RABBITMQ, RABBITMQ_TEXT | {"redelivered": "false"}), received(RABBITMQ, again)

    assert content_id(first) == content_id(second)
    assert content_id(first).startswith("ID:content-")


@pytest.mark.parametrize(
    ("headers", "body"), [({}, b"abd"), ({"x": ""}, b"abc"), ({"JMSXGroupID": "h"}, b"abc"), ({"type": "t"}, b"abc")]
)
def test_messages_that_differ_in_body_field_or_property_have_other_ids(headers: dict[str, str], body: bytes) -> None:
    assert content_id(received(RABBITMQ, RABBITMQ_TEXT | headers, body)) != content_id(
        received(RABBITMQ, RABBITMQ_TEXT)
    )


def test_the_reply_queue_of_a_stomp_client_of_rabbitmq_has_its_name() -> None:
    reply_to = received(RABBITMQ, RABBITMQ_TEXT).headers["JMSReplyTo"]

    assert reply_to == "queue:amq.gen-mVzWTVp7udmhpsccKlfQhA"


# Fields


@pytest.mark.parametrize(
    ("product", "headers", "expected"),
    [
        (CLASSIC, CLASSIC_TEXT, "NON_PERSISTENT"),
        (RABBITMQ, RABBITMQ_TEXT, "NON_PERSISTENT"),
        (OPENMQ, OPENMQ_TEXT, None),
        (ARTEMIS, {}, None),
    ],
)
def test_a_frame_that_does_not_call_its_message_persistent_says_what_the_broker_means_by_that(
    product: Product, headers: Mapping[str, str], expected: str | None
) -> None:
    without = {name: value for name, value in headers.items() if name != "persistent"}

    assert received(product, without).headers.get("JMSDeliveryMode") == expected


@pytest.mark.parametrize(
    ("product", "name", "spelled"),
    [
        (RABBITMQ, "a/b%ü c:d", "/queue/a%2Fb%25%C3%BC%20c:d"),
        (RABBITMQ, "jms-temp-queue-99ee-1", "/amq/queue/jms-temp-queue-99ee-1"),
        (RABBITMQ, "/queue/a", "/queue/%2Fqueue%2Fa"),
        (CLASSIC, "a/b", "/queue/a/b"),
        (CLASSIC, "ID:vm-1-2:1:1", "/remote-temp-queue/ID:vm-1-2:1:1"),
        (OPENMQ, "a.b", "/queue/a.b"),
    ],
)
def test_a_name_is_spelled_as_the_broker_reads_it_and_read_as_it_is_spelled(
    product: Product, name: str, spelled: str
) -> None:
    frame = sent(product, Message(b"x"), f"queue/{name}", f"queue/{name}")

    assert frame.headers["destination"] == frame.headers["reply-to"] == spelled
    back = received(product, frame.headers).headers
    assert back["JMSReplyTo"] == back["JMSDestination"] == f"queue:{name}"


@pytest.mark.parametrize(("count", "deliveries"), [("3", "4"), ("1", "3"), ("x", "3"), ("9" * 50, "3"), ("", "3")])
def test_the_count_of_a_quorum_queue_is_no_property_and_makes_no_other_message(
    count: str, deliveries: str | None
) -> None:
    again = received(RABBITMQ, RABBITMQ_TEXT | {"x-delivery-count": count, "x-acquired-count": "2"})
    assert again.headers.get("JMSXDeliveryCount") == deliveries
    assert digest(again.to_record()) == digest(received(RABBITMQ, RABBITMQ_TEXT).to_record())


@pytest.mark.parametrize("name", ["/amq/queue/a%2Fb", "/exchange/e/key"])
def test_an_address_of_rabbitmq_that_declares_no_queue_is_sent_as_it_is(name: str) -> None:
    frame = sent(RABBITMQ, Message(b"x"), f"queue/{name}", None)
    assert frame.headers["destination"] == name


@pytest.mark.parametrize(
    ("product", "given", "spelled"),
    [
        (ARTEMIS, "queue:replies", "queue://replies"),
        (CLASSIC, "topic:replies", "/topic/replies"),
        (RABBITMQ, "queue:a/b", "/queue/a%2Fb"),
        (OPENMQ, "queue:replies", "/queue/replies"),
        (OPENMQ, "queue:ID:a-1", None),
        (ARTEMIS, "_INBOX.a", None),
    ],
)
def test_the_reply_address_of_a_message_that_is_no_request_is_kept(
    product: Product, given: str, spelled: str | None
) -> None:
    assert sent(product, Message(b"x", headers={"JMSReplyTo": given})).headers.get("reply-to") == spelled


def test_at_openmq_expires_is_the_time_that_is_left() -> None:
    later = int(time.time() * 1000) + 60_000

    left = int(sent(OPENMQ, Message(b"x", headers={"JMSExpiration": str(later)})).headers["expires"])

    assert 50_000 < left <= 60_000


def test_at_openmq_a_message_that_has_expired_on_the_way_expires_there() -> None:
    assert sent(OPENMQ, Message(b"x", headers={"JMSExpiration": "1000"})).headers["expires"] == "1"


def test_at_rabbitmq_the_time_that_is_left_has_a_header_of_its_own() -> None:
    later = str(int(time.time() * 1000) + 60_000)

    headers = sent(RABBITMQ, Message(b"x", headers={"JMSExpiration": later})).headers

    assert headers["expires"] == later
    assert 50_000 < int(headers["expiration"]) <= 60_000


def test_at_openmq_the_origin_has_a_name_that_jms_allows_and_is_known_on_the_way_back() -> None:
    frame = sent(OPENMQ, Message(b"x", origins=("a", "b")))

    assert frame.headers["JMS_JmsBridge_Origin"] == "a,b"
    back = received(OPENMQ, frame.headers)
    assert back.origins == ("a", "b")
    assert not back.properties


@pytest.mark.parametrize(
    ("name", "spelling"),
    [
        ("a-b", "a_HYPHEN_b"),
        ("a.b", "a_DOT_b"),
        ("1a", "_U0031_a"),
        ("null", "_U006E_ull"),
        ("And", "_U0041_nd"),
        ("a b", "a_U0020_b"),
    ],
)
def test_openmq_gets_a_property_that_it_would_refuse_with_the_connection_under_another_name(
    name: str, spelling: str
) -> None:
    message = Message(b"x", properties={name: Property("1")})

    frame = sent(OPENMQ, message)
    assert frame.headers[spelling] == "1"
    assert received(OPENMQ, frame.headers).properties[name] == Property("1")
    assert sent(RABBITMQ, message).headers[name] == "1"


def test_openmq_gets_no_property_without_a_name() -> None:
    take_not_kept()
    assert "" not in sent(OPENMQ, Message(b"x", properties={"": Property("1")})).headers
    assert take_not_kept() == 1


@pytest.mark.parametrize("name", ["a", "_a", "$1", "ä", "JMSXUserIDs", "nulls", "region_2"])
def test_openmq_gets_every_other_property(name: str) -> None:
    assert sent(OPENMQ, Message(b"x", properties={name: Property("1")})).headers[name] == "1"


# Bodies


@pytest.mark.parametrize("product", [RABBITMQ, OPENMQ])
@pytest.mark.parametrize(
    ("headers", "body", "expected"),
    [
        ({}, b"abc", BodyType.TEXT),
        ({}, b"\xff", BodyType.BYTES),
        ({"content-type": "application/octet-stream"}, b"abc", BodyType.BYTES),
        ({"content-type": "text/plain"}, b"abc", BodyType.TEXT),
        ({"content-type": "application/json"}, b"{}", BodyType.TEXT),
    ],
)
def test_where_each_frame_has_a_length_the_content_tells_text_from_bytes(
    product: Product, headers: dict[str, str], body: bytes, expected: BodyType
) -> None:
    assert received(product, OPENMQ_TEXT | headers, body).body_type is expected


def test_bytes_for_rabbitmq_are_bytes_on_the_way_back() -> None:
    frame = sent(RABBITMQ, Message(b"abc", BodyType.BYTES))

    assert received(RABBITMQ, frame.headers).body_type is BodyType.BYTES
    assert sent(RABBITMQ, Message(b"a", BodyType.BYTES, properties={"content-type": Property("a/b")})).headers[
        "content-type"
    ] == ("a/b")


def test_emoji_of_classic_are_text() -> None:
    message = received(CLASSIC, CLASSIC_TEXT, b"e\xed\xa0\xbd\xed\xb8\x80\xc3\xa9\xc0\x80")

    assert (message.body.decode(), message.body_type) == ("e😀é\0", BodyType.TEXT)


def test_bytes_of_classic_that_look_like_its_texts_stay_bytes() -> None:
    message = received(CLASSIC, CLASSIC_TEXT | {"content-length": "6"}, b"\xed\xa0\xbd\xed\xb8\x80")

    assert (message.body, message.body_type) == (b"\xed\xa0\xbd\xed\xb8\x80", BodyType.BYTES)


@pytest.mark.parametrize("version", ["5.16.0", "5.18.3", "5.18.5", "6.0.1", "6.1.3"])
def test_texts_for_an_old_classic_are_in_the_spelling_of_its_clients(version: str) -> None:
    frame = sent(CLASSIC, Message("e😀é\0".encode()), server=f"ActiveMQ/{version}")

    assert frame.body == b"e\xed\xa0\xbd\xed\xb8\x80\xc3\xa9\xc0\x80"
    assert "content-length" not in frame.headers


@pytest.mark.parametrize(
    "server", ["ActiveMQ/5.18.6", "ActiveMQ/5.19.0", "ActiveMQ/6.1.4", "ActiveMQ/6.2", "ActiveMQ", ""]
)
def test_texts_for_another_classic_are_in_utf8(server: str) -> None:
    frame = sent(CLASSIC, Message("e😀é\0".encode()), server=server)

    assert frame.body == "e😀é\0".encode()
    assert frame.headers["content-length"] == "8"


# Sources


def frame(headers: Mapping[str, str], body: bytes = b"") -> bytes:
    lines = "".join(f"{name}:{value.replace(':', chr(92) + 'c')}\n" for name, value in headers.items())
    return f"MESSAGE\n{lines}\n".encode() + body + b"\0"


CLASSIC_SAYS, RABBITMQ_SAYS, OPENMQ_SAYS = "ActiveMQ/5.18.3", "RabbitMQ/3.10.8", "Eclipse OpenMQ(tm)"
ARTEMIS_SAYS = "ActiveMQ-Artemis/2.56.0 ActiveMQ Artemis Messaging Engine"


@pytest.mark.parametrize(
    ("server", "expected"),
    [
        (
            RABBITMQ_SAYS,
            {
                "destination": "/topic/prices",
                "durable": "true",
                "auto-delete": "false",
                "x-queue-name": "b.s.to-kafka.prices",
                "prefetch-count": "1000",
            },
        ),
        (CLASSIC_SAYS, {"destination": "/topic/prices", "activemq.subscriptionName": "to-kafka.prices"}),
        (OPENMQ_SAYS, {"destination": "/topic/prices", "durable-subscriber-name": "to-kafka.prices"}),
        (
            "ActiveMQ-Artemis/2.40.0 ActiveMQ Artemis Messaging Engine",
            {
                "destination": "prices",
                "subscription-type": "MULTICAST",
                "consumer-window-size": "-1",
                "durable-subscription-name": "to-kafka.prices",
            },
        ),
    ],
)
def test_a_durable_subscription_is_asked_for_in_the_brokers_words(
    opened: Callable[..., tuple[StompSource, Broker]], server: str, expected: dict[str, str]
) -> None:
    _, broker = opened(server, "destinations=topic:prices", "subscription=to-kafka")

    found = broker.subscription()

    fixed = {"id": "1", "ack": "client" if server == OPENMQ_SAYS else "client-individual", "receipt": "subscribed-1"}
    assert found == expected | fixed


@pytest.mark.parametrize(("server", "is_told"), [(ARTEMIS_SAYS, True), (CLASSIC_SAYS, False)])
def test_a_selector_that_the_broker_keeps_is_told_with_the_queue_to_delete(
    opened: Callable[..., tuple[StompSource, Broker]], server: str, is_told: bool
) -> None:
    with capture_logs() as logs:
        opened(server, "destinations=topic:prices", "subscription=keep", "selector=region = 'emea'")
        opened(server, "destinations=topic:prices", "selector=region = 'emea'")

    told = [(each["queue"], each["selector"]) for each in logs if "queue" in each]
    assert told == [("b.s.keep.prices", "region = 'emea'")] * is_told


def test_openmq_gets_cumulative_acknowledgements(opened: Callable[..., tuple[StompSource, Broker]]) -> None:
    acks = [OPENMQ_TEXT | {"ack": f"1ID{number}"} for number in (1, 2)]
    source, broker = opened(OPENMQ_SAYS, frames=[frame(each, b"seven 7") for each in acks])

    deliveries = [source.receive(5), source.receive(5)]
    source.acknowledge([each.token for each in deliveries if each])
    source.close()

    assert b"ACK\nid:1ID2\n" in broker.heard
    assert b"ACK\nid:1ID1\n" not in broker.heard


def test_a_message_of_classic_without_a_body_is_not_taken_as_an_empty_text(
    opened: Callable[..., tuple[StompSource, Broker]],
) -> None:
    source, broker = opened(CLASSIC_SAYS, frames=[frame(CLASSIC_TEXT), frame(CLASSIC_TEXT, b"x")])

    empty, other = source.receive(5), source.receive(5)

    assert empty is not None
    assert other is not None
    assert empty.fault == (
        "the frame has no body: it may be an empty text, or a map, stream or object message, which ActiveMQ/5.18.3 "
        "sends in the same way; set source.s.convert-bodies=true for map messages, source.s.empty-body=accept if all "
        "are empty texts, or use type=jms"
    )
    assert other.fault is None
    assert "transformation" not in broker.subscription()


@pytest.mark.parametrize(
    ("headers", "body", "what"),
    [
        ({}, b"", "the frame has no body: it may be an empty text, or"),
        # A map of two entries.
        ({"content-length": "1"}, b"\0", "the body begins with NUL: it may be a text, or"),
    ],
)
def test_a_map_or_stream_of_artemis_own_client_is_not_taken_as_a_text(
    opened: Callable[..., tuple[StompSource, Broker]], headers: dict[str, str], body: bytes, what: str
) -> None:
    mine, others = ARTEMIS_TEXT | headers, {name: text for name, text in ARTEMIS_TEXT.items() if name != "__AMQ_CID"}
    source, _ = opened(ARTEMIS_SAYS, frames=[frame(mine, body), frame(ARTEMIS_TEXT, b"x"), frame(others)])

    hidden, text, of_stomp = source.receive(5), source.receive(5), source.receive(5)

    assert hidden is not None
    assert hidden.fault is not None
    assert hidden.fault.startswith(f"{what} a map, stream or object message, which ActiveMQ-Artemis/2.56.0")
    assert "convert-bodies" not in hidden.fault
    assert text is not None
    assert text.fault is None
    assert of_stomp is not None
    assert of_stomp.fault is None


@pytest.mark.parametrize(
    ("server", "settings", "headers"),
    [
        (ARTEMIS_SAYS, ("empty-body=accept",), ARTEMIS_TEXT),
        (CLASSIC_SAYS, ("empty-body=accept",), CLASSIC_TEXT),
        (CLASSIC_SAYS, (), CLASSIC_TEXT | {"content-length": "0"}),
        (RABBITMQ_SAYS, (), CLASSIC_TEXT),
    ],
)
def test_an_empty_message_is_taken_where_it_can_be_nothing_else_or_the_key_says_so(
    opened: Callable[..., tuple[StompSource, Broker]], server: str, settings: Sequence[str], headers: dict[str, str]
) -> None:
    source, _ = opened(server, *settings, frames=[frame(headers)])

    delivery = source.receive(5)

    assert delivery is not None
    assert delivery.fault is None
    assert delivery.message.body == b""


def test_maps_of_classic_arrive_as_maps_on_request(opened: Callable[..., tuple[StompSource, Broker]]) -> None:
    frames = [
        frame(CLASSIC_TEXT | {"transformation": "jms-map-xml"}, b"<map/>"),
        frame(CLASSIC_TEXT | {"transformation": "jms-xml"}, b"text"),
        frame(CLASSIC_TEXT | {"transformation": "jms-map-xml"}, b"<map><entry/></map>"),
        frame(CLASSIC_TEXT | {"transformation": "jms-xml"}),
    ]
    source, broker = opened(CLASSIC_SAYS, "convert-bodies=true", frames=frames)

    found = [source.receive(5) for _ in frames]

    assert broker.subscription()["transformation"] == "jms-xml"
    assert [each.message.body_type for each in found if each] == ["map", "text", "bytes", "text"]
    assert [each.fault and each.fault[:33] for each in found if each] == [
        None,
        None,
        "the broker sent a map message wit",
        "the frame has no body: it may be ",
    ]
    assert all("transformation" not in each.message.properties for each in found if each)


def test_a_message_that_came_to_rabbitmq_by_amqp_1_is_not_taken_as_it_is(
    opened: Callable[..., tuple[StompSource, Broker]],
) -> None:
    headers = RABBITMQ_TEXT | {"type": "amqp-1.0", "content-length": "9"}
    source, _ = opened(RABBITMQ_SAYS, frames=[frame(headers, b"\0Sw\xa1\4text")])

    delivery = source.receive(5)

    assert delivery is not None
    assert (
        delivery.fault
        == "the body is in the encoding of amqp-1.0, as its sender sent it; read the queue with type=amqp"
    )


def test_another_broker_is_not_asked_to_convert(opened: Callable[..., tuple[StompSource, Broker]]) -> None:
    _, broker = opened(RABBITMQ_SAYS, "convert-bodies=true")

    assert "transformation" not in broker.subscription()


@pytest.mark.parametrize(("settings", "is_content"), [((), False), (("identity=content",), True)])
def test_a_message_without_an_id_gets_one_and_one_by_its_content_only_on_request(
    opened: Callable[..., tuple[StompSource, Broker]], settings: Sequence[str], is_content: bool
) -> None:
    source, _ = opened(RABBITMQ_SAYS, *settings, frames=[frame(RABBITMQ_TEXT, b"abc")] * 2)

    found = [each for _ in range(2) if (each := source.receive(5)) is not None]

    ids = [each.message.headers["JMSMessageID"] for each in found]
    assert [each.startswith("ID:content-") for each in ids] == [is_content] * 2
    assert [each.startswith("ID:") for each in ids] == [True] * 2
    assert (ids[0] == ids[1]) is is_content, "without a request, equal messages are not taken for one"
    assert [each.has_own_id for each in found] == [is_content] * 2


@pytest.mark.parametrize(("server", "is_known"), [(CLASSIC_SAYS, True), (ARTEMIS_SAYS, False)])
def test_a_broker_that_hangs_up_behind_an_acknowledgement_gets_the_known_cause(
    opened: Callable[..., tuple[StompSource, Broker]], server: str, is_known: bool
) -> None:
    message = b"MESSAGE\nsubscription:1\nmessage-id:1\nack:1\ndestination:/queue/a\ncontent-length:1\n\nx\0"
    source, _ = opened(server, frames=[message], hangs_up=True)
    delivery = source.receive(5)
    assert delivery is not None

    with pytest.raises(NotConnectedError) as caught:
        until(lambda: source.acknowledge([delivery.token]) is not None, 10, "the write fails")

    assert ("a message that came by AMQP; read such a queue with type=amqp" in str(caught.value)) is is_known


def test_what_the_broker_said_before_is_why_nothing_can_be_acknowledged(
    opened: Callable[..., tuple[StompSource, Broker]],
) -> None:
    message = b"MESSAGE\nsubscription:1\nmessage-id:1\nack:1\ndestination:/queue/a\ncontent-length:1\n\nx\0"
    frames = [message, b"ERROR\nmessage:too many of you\n\n\0"]
    source, _ = opened(CLASSIC_SAYS, frames=frames, hangs_up=True)
    delivery = source.receive(5)
    assert delivery is not None

    with pytest.raises(NotConnectedError, match=r"^the broker says: too many of you$"):
        until(lambda: source.acknowledge([delivery.token]) is not None, 10, "the write fails")
