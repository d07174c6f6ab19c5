"""Canonical messages as SEND frames: which header says what, and that nothing in a message can break out of it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.connectors.base import Outgoing, RefusedError
from engine.connectors.products import ARTEMIS, CLASSIC, RABBITMQ, Product, product_of
from engine.connectors.stomp.frames import StompFrame, StompFrameParser
from engine.connectors.stomp.message import to_frame, to_message
from engine.connectors.stomp.traits import SPECIFICATION, traits_of
from engine.message import BodyType, Message
from routes.properties import Property

if TYPE_CHECKING:
    from collections.abc import Mapping

OTHER = product_of("")
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=30)
NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=30)


def sent(
    body: bytes = b"hello",
    body_type: BodyType = BodyType.TEXT,
    headers: Mapping[str, str] | None = None,
    properties: Mapping[str, str] | None = None,
    *,
    address: str = "queue/orders",
    reply_to: str | None = None,
    origins: tuple[str, ...] = (),
    artemis: bool = True,
) -> StompFrame:
    """The frame, read back by the parser of the source, which takes no SEND."""
    values = {name: Property(text) for name, text in (properties or {}).items()}
    message = Message(body, body_type, headers or {}, values, origins=origins)
    data = to_frame(Outgoing(7, message, address, "the-id", reply_to), traits_of(ARTEMIS if artemis else OTHER))
    assert data.startswith(b"SEND\n")
    (frame,) = StompFrameParser(1 << 20, 1 << 20).feed(b"MESSAGE" + data.removeprefix(b"SEND"))
    return frame


def headers(**more: str) -> dict[str, str]:
    fixed = {"destination": "orders", "destination-type": "ANYCAST", "receipt": "7", "_AMQ_DUPL_ID": "the-id"}
    return {**fixed, "persistent": "true"} | {name.replace("_", "-"): value for name, value in more.items()}


@pytest.mark.parametrize("address", ["queue/orders", "/queue/orders", "queue:orders", "/queue:orders"])
def test_artemis_gets_the_bare_name_and_the_kind(address: str) -> None:
    assert sent(address=address).headers == headers()


def test_topics_are_multicast() -> None:
    assert sent(address="topic/a/b:c").headers == headers(destination="a/b:c", destination_type="MULTICAST")


def test_other_brokers_get_a_path_and_nothing_of_artemis() -> None:
    fields = {"JMSXGroupSeq": "2", "JMSDeliveryTime": str(2**60)}
    found = sent(address="topic:prices", reply_to="queue:replies", headers=fields, artemis=False).headers
    assert found == {
        "destination": "/topic/prices",
        "receipt": "7",
        "persistent": "true",
        "JMSXGroupSeq": "2",
        "reply-to": "/queue/replies",
    }


def test_standard_fields_have_their_stomp_names() -> None:
    later = str(int(time.time() * 1000) + 60_000)
    fields = {
        "JMSCorrelationID": "c:1",
        "JMSType": "invoice",
        "JMSPriority": "9",
        "JMSExpiration": "1795243901073",
        "JMSDeliveryMode": "NON_PERSISTENT",
        "JMSDeliveryTime": later,
        "JMSXGroupID": "g",
        "JMSXGroupSeq": "2",
    }
    more = {"AMQ_SCHEDULED_TIME": later, "JMSXGroupID": "g", "_AMQ_GROUP_SEQUENCE": "2"}
    expected = headers(correlation_id="c:1", type="invoice", priority="9", expires="1795243901073", persistent="false")
    assert sent(headers=fields).headers == expected | more


def test_what_only_a_broker_sets_is_not_sent() -> None:
    names = ("JMSMessageID", "JMSDestination", "JMSTimestamp", "JMSRedelivered", "JMSXDeliveryCount", "JMSXUserID")
    assert sent(headers=dict.fromkeys((*names, "JMSReplyTo"), "1")).headers == headers()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("JMSPriority", "10"),
        ("JMSPriority", "-1"),
        ("JMSPriority", "high"),
        ("JMSPriority", "٣"),
        ("JMSExpiration", "0"),
        ("JMSExpiration", str(2**63)),
        ("JMSExpiration", "9" * 5000),
        ("JMSXGroupSeq", "2147483648"),
        ("JMSDeliveryTime", "1000"),
        ("JMSDeliveryTime", ""),
    ],
)
def test_a_number_that_the_broker_would_refuse_or_that_says_nothing_is_left_out(name: str, value: str) -> None:
    assert sent(headers={name: value}).headers == headers()


def test_the_reply_address_is_one_that_jms_clients_can_send_to() -> None:
    assert sent(reply_to="queue:replies").headers["reply-to"] == "queue://replies"
    assert sent(reply_to="/topic/replies").headers["reply-to"] == "topic://replies"


def test_properties_go_by_their_names() -> None:
    found = sent(properties={"region": "emea", "id": "5", "x y": "", "content-type": "a/b"}).headers
    assert found == headers() | {"region": "emea", "id": "5", "x y": "", "content-type": "a/b"}


@pytest.mark.parametrize(
    "name",
    [
        *("destination", "receipt", "transaction", "content-length", "ack", "message-id", "subscription", "reply-to"),
        *("correlation-id", "type", "priority", "expires", "persistent", "timestamp", "redelivered"),
        *("destination-type", "_AMQ_DUPL_ID", "_AMQ_ROUTING_TYPE", "_AMQ_SCHED_DELIVERY", "AMQ_SCHEDULED_DELAY"),
        *("JMSType", "JMSReplyTo", "JMSXGroupID", "JMSMessageID"),
        *("jmsbridge.origin", "jmsbridge.position", "JMS_JmsBridge_ReplySink", "JMS_JmsBridge_ReplyTo"),
    ],
)
def test_a_property_cannot_take_the_place_of_a_header_or_pass_for_the_bridges_own(name: str) -> None:
    assert sent(properties={name: "hostile"}).headers == headers()


def test_all_bridges_that_a_message_came_through_are_known_on_the_other_side() -> None:
    frame = sent(origins=("a", "b"))
    assert to_message(frame, "queue", "s", traits_of(ARTEMIS)).origins == ("a", "b")


def test_text_has_no_length_so_that_it_stays_text() -> None:
    assert "content-length" not in sent("é😀".encode()).headers
    assert "content-length" not in sent(b"").headers


@pytest.mark.parametrize(
    ("body", "body_type"),
    [
        (b"hello", BodyType.BYTES),
        (b"", BodyType.BYTES),
        (b"\x00\xff\n\n\x00", BodyType.BYTES),
        (b"a\0b", BodyType.TEXT),
        (b"\xff", BodyType.TEXT),
        (b"x", BodyType.OBJECT),
    ],
)
def test_bytes_and_what_cannot_be_text_have_a_length(body: bytes, body_type: BodyType) -> None:
    frame = sent(body, body_type)
    assert frame.headers["content-length"] == str(len(body))
    assert frame.body == body


@pytest.mark.parametrize(
    ("fields", "properties", "named"),
    [({"JMSType": "a\0"}, {}, "'type'"), ({}, {"p": "\0"}, "'p'"), ({}, {"p\0": ""}, r"'p\\x00'")],
)
def test_a_nul_in_a_header_is_refused_by_name(
    fields: Mapping[str, str], properties: Mapping[str, str], named: str
) -> None:
    with pytest.raises(RefusedError, match=f"^header {named} has a NUL"):
        sent(headers=fields, properties=properties)


@pytest.mark.parametrize("address", ["orders", "queue", "queue/", "temp-queue/x", "", "dynamic:x"])
def test_an_address_of_another_kind_is_refused(address: str) -> None:
    with pytest.raises(RefusedError, match="expected queue/NAME or topic/NAME"):
        sent(address=address)


def test_a_lone_surrogate_does_not_end_the_sink() -> None:
    assert sent(properties={"p": "\ud800"}).headers["p"] == "?"


@pytest.mark.parametrize(
    "name",
    ["_AMQ_OperationName", "_AMQ_DUPL_ID", "_AMQ_LVQ_NAME", "__AMQ_CID", "AMQ_SCHEDULED_CRON", "AMQ_SCHEDULED_DELAY"],
)
def test_properties_that_tell_artemis_or_classic_what_to_do_are_left_out(name: str) -> None:
    assert sent(properties={name: "x", "AMQ": "kept"}).headers == headers(AMQ="kept")
    assert name not in sent(properties={name: "x"}, artemis=False).headers


@pytest.mark.parametrize(
    ("server", "name"),
    [
        ("RabbitMQ/3.10.8", "x-message-ttl"),
        ("RabbitMQ/3.10.8", "exclusive"),
        ("RabbitMQ/3.10.8", "user-id"),
        ("ActiveMQ/5.18.3", "transformation"),
    ],
)
def test_properties_that_tell_another_broker_what_to_do_are_left_out_there(server: str, name: str) -> None:
    message = Message(b"", properties={name: Property("1")})
    line = f"{name}:1\n".encode()
    assert line not in to_frame(Outgoing(7, message, "queue/a", "id"), traits_of(product_of(server)))
    assert line in to_frame(Outgoing(7, message, "queue/a", "id"), traits_of(ARTEMIS))


@given(
    body=st.binary(max_size=50) | TEXT.map(str.encode),
    body_type=st.sampled_from(BodyType),
    fields=st.dictionaries(st.sampled_from(["JMSCorrelationID", "JMSType", "JMSXGroupID"]), TEXT),
    properties=st.dictionaries(NAMES | st.sampled_from(["destination", "receipt", "a:b", "a\nb", "\r", "\\"]), TEXT),
    artemis=st.booleans(),
)
def test_any_message_is_one_frame_with_its_headers_and_its_body(
    body: bytes, body_type: BodyType, fields: dict[str, str], properties: dict[str, str], artemis: bool
) -> None:
    frame = sent(body, body_type, fields, properties, artemis=artemis)

    assert frame.body == body
    assert frame.headers["receipt"] == "7"
    assert frame.headers["destination"] == ("orders" if artemis else "/queue/orders")
    back = to_message(frame, "queue", "s", traits_of(ARTEMIS) if artemis else SPECIFICATION)
    assert {name: back.headers.get(name) for name in fields} == fields
    for name, value in back.properties.items():
        assert properties[name] == value.text
    lost = properties.keys() - back.properties.keys()
    assert all(sent(properties={name: "x"}).headers == headers() for name in lost)


def test_the_reply_address_of_a_request_takes_the_place_of_another() -> None:
    frame = sent(headers={"JMSReplyTo": "queue:theirs"}, reply_to="queue:ours")
    assert frame.headers["reply-to"] == "queue://ours"


def test_messages_for_rabbitmq_always_have_a_priority() -> None:
    plain, urgent = Message(b"x"), Message(b"x", headers={"JMSPriority": "7"})
    frames = [
        to_frame(Outgoing(7, message, "queue/a", "the-id"), traits_of(product))
        for product, message in ((RABBITMQ, plain), (RABBITMQ, urgent), (CLASSIC, plain))
    ]
    assert [frame.partition(b"\npriority:")[2][:1] for frame in frames] == [b"4", b"7", b""]


def test_rabbitmq_does_not_make_a_queue_of_the_connection_for_a_message_that_is_not_persistent() -> None:
    def head(mode: str, product: Product = RABBITMQ) -> bytes:
        message = Message(b"x", headers={"JMSDeliveryMode": mode})
        return to_frame(Outgoing(7, message, "queue/orders", "the-id"), traits_of(product))

    # For the queue the later one counts.
    assert b"\npersistent:false\ndurable:true\n" in head("NON_PERSISTENT")
    assert b"durable" not in head("PERSISTENT")
    assert b"durable" not in head("NON_PERSISTENT", CLASSIC)
