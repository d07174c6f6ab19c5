"""AMQP messages of JMS clients of today: what they say by annotations decides where the tables would not."""

from __future__ import annotations

from typing import Any

import pytest

from engine.connectors.amqp.codec.sections import DATA, SEQUENCE, VALUE, Properties, Sections, decode, encode_sections
from engine.connectors.amqp.codec.values import AmqpMap, Byte, Char, Int, Short, Symbol
from engine.connectors.amqp.traits import TRAITS
from engine.connectors.amqp.transformer_settings import TransformerSettings
from engine.connectors.amqp.transformers import inbound, outbound
from engine.connectors.products import ARTEMIS, CLASSIC, RABBITMQ, Product
from engine.message import BodyType, Message
from routes.properties import JmsType, Property

ORDERS = "queue:orders"
CLIENT = (Symbol("x-opt-jms-msg-type"), Byte(5))


def read(sections: Sections, address: str = ORDERS, **settings: Any) -> Message:
    return inbound(TransformerSettings(**settings)).to_message(encode_sections(sections), 0, address, "plant")


@pytest.mark.parametrize(
    ("message_type", "body", "content", "expected"),
    [
        (0, None, None, (b"", BodyType.TEXT, "none")),
        (0, VALUE, None, (b"", BodyType.TEXT, "none")),
        (0, VALUE, "", (b"", BodyType.TEXT, "none")),
        (0, VALUE, "a", (b"a", BodyType.TEXT, "")),
        (0, VALUE, False, (b"false", BodyType.OBJECT, "boolean")),
        (1, DATA, b"\xac\xed\x00\x05p", (b"\xac\xed\x00\x05p", BodyType.OBJECT, "")),
        (1, VALUE, "text", (b'"text"', BodyType.OBJECT, "string")),
        (1, VALUE, None, (b"null", BodyType.OBJECT, "null")),
        (1, VALUE, Short(7), (b"7", BodyType.OBJECT, "short")),
        (1, VALUE, Char("A"), (b'"A"', BodyType.OBJECT, "char")),
        (1, VALUE, [1, "a"], (b"\0\x53\x77\xc0\x06\x02\x55\x01\xa1\x01a", BodyType.OBJECT, "amqp")),
        (1, SEQUENCE, [1], (b"\0\x53\x76\xc0\x03\x01\x55\x01", BodyType.OBJECT, "amqp")),
        (2, VALUE, AmqpMap([("s", Short(7)), ("c", Char("A"))]), (b'{"s":7,"c":"A"}', BodyType.MAP, "s=short,c=char")),
        (2, None, None, (b"{}", BodyType.MAP, "")),
        (3, DATA, b"\x01", (b"\x01", BodyType.BYTES, "")),
        (3, None, None, (b"", BodyType.BYTES, "")),
        (4, SEQUENCE, [Char("A"), None], (b'["A",null]', BodyType.STREAM, "char,null")),
        (4, VALUE, [Short(1)], (b"[1]", BodyType.STREAM, "short")),
        (4, None, None, (b"[]", BodyType.STREAM, "")),
        (5, VALUE, "", (b"", BodyType.TEXT, "")),
        (5, VALUE, None, (b"", BodyType.TEXT, "null")),
        (5, DATA, b"as data", (b"as data", BodyType.TEXT, "")),
        (5, DATA, b"\xff", (b"\xff", BodyType.BYTES, "")),
        (5, VALUE, Int(7), (b"7", BodyType.OBJECT, "int")),
        (2, VALUE, "no map", (b"no map", BodyType.TEXT, "")),
        (77, VALUE, "text", (b"text", BodyType.TEXT, "")),
    ],
)
def test_the_message_type_decides_between_what_a_body_can_be(
    message_type: int, body: int, content: Any, expected: tuple[bytes, BodyType, str]
) -> None:
    annotations = AmqpMap([(CLIENT[0], Byte(message_type))])
    message = read(Sections(message_annotations=annotations, body=body, content=content))
    assert (message.body, message.body_type, message.body_types) == expected
    assert not [name for name in message.properties if name.endswith("_ERROR")]


def test_a_client_means_the_defaults_of_amqp() -> None:
    message = read(Sections(message_annotations=AmqpMap([CLIENT])), default_priority=9)
    assert message.headers["JMSDeliveryMode"] == "NON_PERSISTENT"
    assert message.headers["JMSPriority"] == "4"
    assert message.properties["JMS_AMQP_MA_x_opt_jms_msg_type"] == Property("5", JmsType.BYTE)


def test_the_subject_of_a_client_is_its_type() -> None:
    sections = Sections(message_annotations=AmqpMap([CLIENT]), properties=Properties(subject="invoice"))
    message = read(sections)
    assert message.headers["JMSType"] == "invoice"
    assert message.properties["JMS_AMQP_Subject"] == Property("invoice", JmsType.STRING)
    assert "JMSType" not in read(Sections(properties=Properties(subject="invoice"))).headers


@pytest.mark.parametrize(
    ("mark", "text", "address", "expected"),
    [
        (None, "a.b", "queue:q", "queue:a.b"),
        (None, "a.b", "topic:t", "topic:a.b"),
        (Byte(0), "a", "topic:t", "queue:a"),
        (Byte(1), "a", "queue:q", "topic:a"),
        (Byte(2), "temp", "topic:t", "queue:temp"),
        (Byte(3), "temp", "queue:q", "topic:temp"),
        (Byte(9), "a", "topic:t", "topic:a"),
        ("queue", "a", "topic:t", "topic:a"),
        (None, "queue://a", "topic:t", "queue:a"),
        (None, "topic://a", "queue:q", "topic:a"),
        (None, "temp-topic://a", "queue:q", "topic:a"),
        (None, "temp-queue://a", "topic:t", "queue:a"),
    ],
)
def test_the_kind_of_a_destination(mark: Any, text: str, address: str, expected: str) -> None:
    annotations = AmqpMap([(Symbol("x-opt-jms-dest"), mark)]) if mark is not None else None
    message = read(Sections(message_annotations=annotations, properties=Properties(to=text)), address)
    assert message.headers["JMSDestination"] == expected


def test_a_reply_goes_to_a_queue_unless_it_is_said() -> None:
    given_reply = Properties(reply_to="back")
    assert read(Sections(properties=given_reply), "topic:t").headers["JMSReplyTo"] == "queue:back"
    annotations = AmqpMap([(Symbol("x-opt-jms-reply-to"), Byte(1))])
    message = read(Sections(message_annotations=annotations, properties=given_reply))
    assert message.headers["JMSReplyTo"] == "topic:back"


@pytest.mark.parametrize(
    ("body", "content", "content_type", "expected"),
    [
        (VALUE, "text", None, (b"text", BodyType.TEXT)),
        (DATA, b"\x01", None, (b"\x01", BodyType.BYTES)),
        (VALUE, AmqpMap([("i", Int(5))]), None, (b'{"i":5}', BodyType.MAP)),
        (VALUE, [Int(6)], None, (b"[6]", BodyType.STREAM)),
        (DATA, b"\xac\xed\x00\x05p", "application/x-java-serialized-object", (b"\xac\xed\x00\x05p", BodyType.OBJECT)),
        (None, None, None, (b"", BodyType.TEXT)),
    ],
)
def test_an_openwire_clients_message_at_classic_is_one_of_a_jms_client(
    body: int, content: Any, content_type: str | None, expected: tuple[bytes, BodyType]
) -> None:
    # As ActiveMQ Classic 5.18.3 writes it: no message type, but always the kind of the destination.
    properties = Properties(
        message_id="ID:vm-1:1:1:1:1",
        to="queue://orders",
        subject="ty",
        reply_to="topic://replies",
        content_type=content_type,
    )
    annotations = AmqpMap([(Symbol("x-opt-jms-reply-to"), Byte(1)), (Symbol("x-opt-jms-dest"), Byte(0))])
    sections = Sections(message_annotations=annotations, properties=properties, body=body, content=content)
    encoded = encode_sections(sections)
    message = inbound(TransformerSettings(), TRAITS[CLASSIC]).to_message(encoded, 0, ORDERS, "plant")
    assert (message.body, message.body_type) == expected
    assert message.headers["JMSType"] == "ty"
    assert message.headers["JMSReplyTo"] == "topic:replies"
    assert message.headers["JMSDestination"] == ORDERS
    assert message.headers["JMSDeliveryMode"] == "NON_PERSISTENT"
    assert "JMSType" not in inbound(TransformerSettings()).to_message(encoded, 0, ORDERS, "plant").headers


def test_rabbitmqs_own_spelling_of_a_destination_tells_its_kind() -> None:
    found = Properties(to="/topic/prices", reply_to="/queue/replies")
    encoded = encode_sections(Sections(properties=found, body=DATA, content=b""))
    message = inbound(TransformerSettings(), TRAITS[RABBITMQ]).to_message(encoded, 0, ORDERS, "plant")
    assert (message.headers["JMSDestination"], message.headers["JMSReplyTo"]) == ("topic:prices", "queue:replies")


@pytest.mark.parametrize(
    ("product", "kind", "name", "spelt"),
    [
        (CLASSIC, "queue", "orders", "queue://orders"),
        (CLASSIC, "queue", "ID:vm-1:2:0", "temp-queue://ID:vm-1:2:0"),
        (CLASSIC, "topic", "ID:vm-1:2:0", "temp-topic://ID:vm-1:2:0"),
        (CLASSIC, "queue", "temp-queue://ID:vm-1:2:0", "temp-queue://ID:vm-1:2:0"),
        (ARTEMIS, "queue", "ID:vm-1:2:0", "ID:vm-1:2:0"),
    ],
)
def test_a_temporary_queue_of_a_client_has_the_brokers_own_spelling(
    product: Product, kind: str, name: str, spelt: str
) -> None:
    assert TRAITS[product].spelling(kind, name) == spelt


@pytest.mark.parametrize(
    ("product", "reply_to"), [(ARTEMIS, "replies"), (CLASSIC, "topic://replies"), (RABBITMQ, "/topic/replies")]
)
def test_a_reply_address_has_the_brokers_own_spelling(product: Product, reply_to: str) -> None:
    message = Message(b"", headers={"JMSReplyTo": "topic:replies"})
    encoded, _ = outbound(TransformerSettings(), TRAITS[product]).encoded(message, "queue/a", None)
    properties = decode(encoded).properties
    assert properties is not None
    assert properties.reply_to == reply_to
