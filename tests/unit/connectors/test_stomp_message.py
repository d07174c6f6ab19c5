"""STOMP headers as JMS fields and properties, and the body types that a frame tells."""

from __future__ import annotations

import pytest

from engine.connectors.products import ARTEMIS
from engine.connectors.stomp.frames import StompFrame
from engine.connectors.stomp.message import to_message
from engine.connectors.stomp.traits import SPECIFICATION, TRAITS, StompTraits, traits_of
from engine.message import BodyType, Message
from routes.targets import REPLY_SINK, REPLY_TO

# As Artemis 2.40 sends a text message of its own JMS client; of a bytes message the length comes first.
JMS_TEXT = {
    "subscription": "1",
    "message-id": "2147483712,2147483690",
    "destination": "orders",
    "correlation-id": "corr:1",
    "expires": "1795243901073",
    "redelivered": "false",
    "priority": "7",
    "persistent": "true",
    "reply-to": "queue://replies",
    "timestamp": "1795240301012",
    "type": "invoice",
    "destination-type": "ANYCAST",
    "_AMQ_GROUP_ID": "g1",
    "_AMQ_GROUP_SEQUENCE": "2",
    "__AMQ_CID": "9fb02e42-e56f-11f1-9d9d-02fc00000001",
    "region": "emea",
    "n": "42",
    "ack": "2147483712,2147483690",
    "content-length": "5",
}


def made(
    headers: dict[str, str], body: bytes = b"hello", kind: str = "queue", traits: StompTraits = TRAITS[ARTEMIS]
) -> Message:
    return to_message(StompFrame("MESSAGE", headers, body, len(body)), kind, "s", traits)


def texts(message: Message) -> dict[str, str]:
    return {name: value.text for name, value in message.properties.items()}


def test_the_standard_fields_have_their_jms_names() -> None:
    assert dict(made(JMS_TEXT).headers) == {
        "JMSMessageID": "ID:2147483690",
        "JMSDestination": "queue:orders",
        "JMSCorrelationID": "corr:1",
        "JMSExpiration": "1795243901073",
        "JMSRedelivered": "false",
        "JMSPriority": "7",
        "JMSDeliveryMode": "PERSISTENT",
        "JMSReplyTo": "queue:replies",
        "JMSTimestamp": "1795240301012",
        "JMSType": "invoice",
        "JMSXGroupID": "g1",
        "JMSXGroupSeq": "2",
    }


def test_everything_else_is_a_property_under_its_own_name_and_without_a_type() -> None:
    message = made(JMS_TEXT)

    assert texts(message) == {"region": "emea", "n": "42"}
    assert all(value.type is None for value in message.properties.values())


def test_odd_names_of_properties_are_kept() -> None:
    odd = {"a.b-c": "1", "x y": "2", "é": "3", "": "4", "JMS_custom": "5", "content-type": "text/plain"}

    assert texts(made(JMS_TEXT | odd)) == {"region": "emea", "n": "42"} | odd


def test_the_message_says_which_source_took_it() -> None:
    assert made(JMS_TEXT).source == "s"


def test_only_the_origin_is_taken_of_what_claims_to_be_the_bridges_own() -> None:
    message = made(JMS_TEXT | {"jmsbridge.origin": "other", "jmsbridge.position": "j:0:1", "jmsbridge.body": "map"})

    assert message.origins == ("other",)
    assert not [name for name in message.properties if name.startswith("jmsbridge")]


def test_no_sender_from_outside_can_direct_a_reply_of_the_bridge() -> None:
    assert texts(made(JMS_TEXT | {REPLY_SINK: "out", REPLY_TO: "queue:x", "JMS_JmsBridge_": "1"})) == {
        "region": "emea",
        "n": "42",
    }


def test_all_bridges_that_routed_it_are_its_origins() -> None:
    assert made(JMS_TEXT | {"jmsbridge.origin": "a,b"}).origins == ("a", "b")


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, "ID:2147483690"),
        ({"message-id": "ID:host-1:2:3"}, "ID:host-1:2:3"),
        ({"NATIVE_MESSAGE_ID": "ID:AMQP_NO_PREFIX:my-id"}, "ID:AMQP_NO_PREFIX:my-id"),
        ({"JMSMessageID": "ID:given"}, "ID:given"),
        ({"JMSMessageID": ""}, "ID:2147483690"),
    ],
    ids=["artemis", "activemq", "amqp sender", "stomp sender", "empty"],
)
def test_the_message_id_is_what_identifies_it_at_the_broker(headers: dict[str, str], expected: str) -> None:
    assert made(JMS_TEXT | headers).headers["JMSMessageID"] == expected


def test_a_sender_cannot_set_what_only_the_broker_may() -> None:
    message = made({**JMS_TEXT, "JMSPriority": "9", "JMSRedelivered": "true", "JMSDestination": "queue:other"})

    assert message.headers["JMSPriority"] == "7"
    assert message.headers["JMSRedelivered"] == "false"
    assert message.headers["JMSDestination"] == "queue:orders"
    assert "JMSPriority" not in message.properties


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("replies", "queue:replies"),
        ("queue://replies", "queue:replies"),
        ("topic://replies", "topic:replies"),
        ("temp-queue://e552df5e-1", "queue:e552df5e-1"),
        ("/topic/a/b", "topic:a/b"),
        ("/temp-queue/x", "queue:x"),
        ("queue", "queue:queue"),
        ("queues/x", "queue:queues/x"),
    ],
)
def test_reply_to_is_written_like_every_destination(text: str, expected: str) -> None:
    assert made(JMS_TEXT | {"reply-to": text}).headers["JMSReplyTo"] == expected


def test_the_kind_of_destination_is_that_of_the_subscription() -> None:
    message = made(JMS_TEXT | {"destination": "/topic/prices.eu"}, kind="topic")

    assert message.headers["JMSDestination"] == "topic:prices.eu"


@pytest.mark.parametrize(
    ("persistent", "expected"), [("true", "PERSISTENT"), ("false", "NON_PERSISTENT"), (None, None)]
)
def test_the_delivery_mode_is_known_if_the_broker_tells_it(persistent: str | None, expected: str | None) -> None:
    headers = {name: value for name, value in JMS_TEXT.items() if name != "persistent"}
    if persistent:
        headers["persistent"] = persistent

    assert made(headers).headers.get("JMSDeliveryMode") == expected


BYTES = {"content-length": "5"} | JMS_TEXT
NO_LENGTH = {name: value for name, value in JMS_TEXT.items() if name != "content-length"}


@pytest.mark.parametrize(
    ("headers", "body", "artemis", "expected"),
    [
        (JMS_TEXT, b"hello", True, BodyType.TEXT),
        (BYTES, b"hello", True, BodyType.BYTES),
        (NO_LENGTH, b"", True, BodyType.TEXT),
        (JMS_TEXT, b"\xff\xfe", True, BodyType.BYTES),
        (JMS_TEXT, b"hello", False, BodyType.BYTES),
        (NO_LENGTH, b"hello", False, BodyType.TEXT),
        (BYTES | {"content-type": "text/plain"}, b"hello", False, BodyType.TEXT),
        (NO_LENGTH | {"JMS_AMQP_MA_x-opt-jms-msg-type": "1"}, b"", True, BodyType.OBJECT),
        (NO_LENGTH | {"JMS_AMQP_MA_x-opt-jms-msg-type": "2"}, b"", True, BodyType.MAP),
        (NO_LENGTH | {"JMS_AMQP_MA_x-opt-jms-msg-type": "3"}, b"", True, BodyType.BYTES),
        (NO_LENGTH | {"JMS_AMQP_MA_x-opt-jms-msg-type": "4"}, b"", True, BodyType.STREAM),
        (NO_LENGTH | {"JMS_AMQP_ORIGINAL_ENCODING": "7"}, b"", True, BodyType.MAP),
        (NO_LENGTH | {"JMS_AMQP_ORIGINAL_ENCODING": "8"}, b"", True, BodyType.STREAM),
        (NO_LENGTH | {"JMS_AMQP_ORIGINAL_ENCODING": "5"}, b"x", True, BodyType.TEXT),
        (NO_LENGTH | {"JMS_AMQP_ContentType": "application/x-java-serialized-object"}, b"", True, BodyType.OBJECT),
    ],
)
def test_the_body_type_is_told_as_far_as_the_frame_tells_it(
    headers: dict[str, str], body: bytes, artemis: bool, expected: BodyType
) -> None:
    assert made(headers, body, traits=traits_of(ARTEMIS) if artemis else SPECIFICATION).body_type is expected


def test_a_text_that_was_cut_within_a_character_is_still_text() -> None:
    frame = StompFrame("MESSAGE", JMS_TEXT, "é".encode()[:1], 2_000_000)

    assert to_message(frame, "queue", "s", traits_of(ARTEMIS)).body_type is BodyType.TEXT


def test_a_frame_without_any_header_still_makes_a_message() -> None:
    message = made({})

    assert dict(message.headers) == {"JMSDestination": "queue:"}
    assert message.to_record().value == b"hello"
