"""Messages that RabbitMQ's JMS client 3.4.0 sent, as RabbitMQ 3.10.8 hands them to an AMQP 1.0 client."""

from __future__ import annotations

import base64
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.connectors.amqp.codec.sections import DATA, Header, Sections, decode, encode_sections
from engine.connectors.amqp.rabbitmq_messages import unpacked
from engine.connectors.amqp.traits import TRAITS
from engine.connectors.amqp.transformer_settings import Transformers, TransformerSettings
from engine.connectors.amqp.transformers import inbound, outbound_of
from engine.connectors.products import CLASSIC, RABBITMQ, Product
from engine.delivery.deduplication.seen_messages import SeenMessages, digest
from engine.message import BodyType, Message
from routes.properties import JmsType, Property

RECORDED = [
    base64.b64decode(line) for line in Path(__file__).with_name("rabbitmq_jms_messages.txt").read_text().splitlines()
]
TEXT, BYTES, MAP, STREAM, OBJECT, EMPTY = RECORDED
READER = inbound(TransformerSettings(), TRAITS[RABBITMQ])


def read(encoded: bytes) -> Message:
    return READER.to_message(encoded, 0, "queue:ow2", "plant")


@pytest.mark.parametrize(
    ("encoded", "identity", "expected"),
    [
        (TEXT, "6383e8e5-40b8-434b-800e-f268c8086ad1", (b"text", BodyType.TEXT)),
        (BYTES, "0d0afe0b-9c8b-4407-a3e0-757840b92736", (b"\x01\x02\x03", BodyType.BYTES)),
        (MAP, "bdc176d4-bbff-41a0-8ff0-e2c461c3c5b1", (b'{"i":5}', BodyType.MAP)),
        (STREAM, "409b0e63-2ca1-423b-a70b-9b4dbaa5de25", (b"[6]", BodyType.STREAM)),
        (OBJECT, "12f2809a-c8a1-4ad4-b3a9-f8fef49ca666", (b"\xac\xed\x00\x05t\x00\x03obj", BodyType.OBJECT)),
        (EMPTY, "6bd9c453-c7c7-474d-b54c-506b0e726d49", (b"", BodyType.TEXT)),
    ],
)
def test_a_message_of_rabbitmqs_jms_client_keeps_what_its_sender_gave_it(
    encoded: bytes, identity: str, expected: tuple[bytes, BodyType]
) -> None:
    message = read(encoded)
    assert (message.body, message.body_type) == expected
    fields = message.headers
    assert fields["JMSMessageID"] == f"ID:{identity}"
    assert int(fields["JMSExpiration"]) - int(fields["JMSTimestamp"]) == 600_000
    assert {name: fields[name] for name in ("JMSType", "JMSCorrelationID", "JMSXGroupID", "JMSPriority")} == {
        "JMSType": "ty",
        "JMSCorrelationID": "corr",
        "JMSXGroupID": "g1",
        "JMSPriority": "7",
    }
    assert (fields["JMSDestination"], fields["JMSReplyTo"]) == ("queue:ow2", "topic:replies")
    assert fields["JMSDeliveryMode"] == "PERSISTENT"
    given = {name: found for name, found in message.properties.items() if not name.startswith("JMS_AMQP_")}
    assert given == {
        "s": Property("v", JmsType.STRING),
        "n": Property("3", JmsType.INT),
        "l": Property("4", JmsType.LONG),
        "b": Property("true", JmsType.BOOLEAN),
        "d": Property("1.5", JmsType.DOUBLE),
    }


def test_rabbitmq_says_by_first_acquirer_that_a_message_comes_again() -> None:
    again = decode(TEXT)
    assert again.header is not None
    assert again.header.first_acquirer is False
    first = encode_sections(replace(again, header=replace(again.header, first_acquirer=True)))
    assert read(first).headers["JMSRedelivered"] == "false"
    assert read(TEXT).headers["JMSRedelivered"] == "true"
    assert read(TEXT).headers["JMSXDeliveryCount"] == "2"


def test_a_message_that_comes_again_is_recognised() -> None:
    again = decode(TEXT)
    assert again.header is not None
    first = read(encode_sections(replace(again, header=replace(again.header, first_acquirer=True)))).to_record()
    assert digest(first) == digest(read(TEXT).to_record())
    seen = SeenMessages()
    seen.add(read(TEXT).headers["JMSMessageID"], first)
    assert seen.take(read(TEXT).to_record())
    assert not seen.take(read(TEXT).to_record())


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xac\xed\x00\x05",
        b"\xac\xed\x00\x05t\x00\x03obj",
        b"\xac\xed\x00\x05w\x04\x00\x02ab",
        # A value of another type than the header has, an object in an object in an object …
        decode(TEXT).content.replace(b"\x08\x00\x02ty", b"\x04\x00\x00ty"),
        decode(TEXT).content[:180] + b"s" * 50_000,
        # One block for each byte.
        b"\xac\xed\x00\x05" + b"w\x01\x00" * 100_000,
        decode(TEXT).content + b"more",
    ],
)
def test_bytes_that_are_no_such_message_stay_bytes(content: bytes) -> None:
    sections = Sections(header=Header(), body=DATA, content=content)
    assert unpacked(sections) is sections
    assert read(encode_sections(sections)).body == content


@given(st.sampled_from(RECORDED), st.integers(0, 900), st.binary(max_size=4), st.integers(0, 4))
def test_any_change_of_a_message_leaves_one_that_can_be_read(
    encoded: bytes, offset: int, inserted: bytes, removed: int
) -> None:
    content = decode(encoded).content
    changed = content[:offset] + inserted + content[offset + removed :]
    message = read(encode_sections(Sections(body=DATA, content=changed)))
    assert message.to_record()


def test_messages_for_rabbitmq_always_have_a_priority() -> None:
    def priority(product: Product, message: Message) -> int | None:
        outbound = outbound_of(Transformers(), TRAITS[product])
        encoded, _ = outbound.encoded(message, "queue/orders", None)
        header = decode(encoded).header
        return header and header.priority

    assert priority(RABBITMQ, Message(b"x")) == 4
    assert priority(RABBITMQ, Message(b"x", headers={"JMSPriority": "7"})) == 7
    assert priority(CLASSIC, Message(b"x")) is None
