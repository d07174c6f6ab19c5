"""What one JMS client sends is what another gets: through the bridge, and the journal in between, and out again."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.connectors.amqp.codec.sections import (
    DATA,
    SEQUENCE,
    VALUE,
    Header,
    Properties,
    Sections,
    decode,
    encode_sections,
)
from engine.connectors.amqp.codec.values import AmqpMap, Byte, Char, Float, Int, Short, Symbol, Timestamp, UByte, UInt
from engine.connectors.amqp.transformer_settings import Transformer, TransformerSettings
from engine.connectors.amqp.transformers import inbound, outbound
from engine.connectors.base import RefusedError
from engine.message import BodyType, Message
from routes.properties import JmsType, Property

MESSAGE_TYPE, DESTINATION, REPLY_TO = (Symbol(f"x-opt-jms-{name}") for name in ("msg-type", "dest", "reply-to"))


def through(sections: Sections) -> tuple[Sections, Message]:
    """A message as it leaves the bridge, and as it was in the journal."""
    came = inbound(TransformerSettings()).to_message(encode_sections(sections), 0, "queue:orders", "plant")
    stored = Message.from_record(came.to_record())
    assert stored == came
    encoded, message_format = outbound(TransformerSettings()).encoded(stored, "queue/orders", None)
    assert message_format == 0
    return decode(encoded), stored


def same(one: Any, other: Any) -> bool:
    """Equal in value and in types."""
    if type(one) is not type(other):
        return False
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other) or (one != one and other != other)


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
ENTRY_NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30)
"""JMS clients refuse an empty one."""
ENTRIES = st.one_of(
    st.booleans(),
    st.integers(-128, 127).map(Byte),
    st.integers(-(2**15), 2**15 - 1).map(Short),
    st.integers(-(2**31), 2**31 - 1).map(Int),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(width=32).map(Float),
    st.floats(),
    TEXT,
)
VALUES = st.one_of(ENTRIES, st.characters(exclude_categories=["Cs"]).map(Char), st.binary(max_size=30), st.none())
BODIES = st.one_of(
    st.just((0, None, None)),
    TEXT.map(lambda text: (5, VALUE, text)),
    st.just((5, VALUE, None)),
    st.binary(max_size=50).map(lambda raw: (3, DATA, raw)),
    st.dictionaries(ENTRY_NAMES, VALUES, max_size=6).map(lambda found: (2, VALUE, AmqpMap(found.items()))),
    st.lists(VALUES, max_size=6).map(lambda found: (4, SEQUENCE, found)),
    st.binary(max_size=50).map(lambda raw: (1, DATA, b"\xac\xed\x00\x05" + raw)),
    VALUES.map(lambda value: (1, VALUE, value)),
    st.dictionaries(TEXT, st.lists(VALUES, max_size=3), max_size=3).map(lambda f: (1, VALUE, AmqpMap(f.items()))),
    st.lists(st.lists(VALUES, max_size=3), max_size=3).map(lambda found: (1, VALUE, found)),
)
NAMES = st.from_regex(r"[A-Za-z_$][A-Za-z0-9_$]{0,15}", fullmatch=True).filter(lambda name: not name.startswith("JMS"))
HEADERS = st.builds(
    Header,
    durable=st.sampled_from([True, None]),
    priority=st.one_of(st.none(), st.integers(0, 9).map(UByte)),
    delivery_count=st.one_of(st.none(), st.integers(1, 5).map(UInt)),
)
IDS = st.one_of(TEXT, TEXT.map(lambda text: f"ID:{text}"), st.uuids(), st.binary(max_size=10))
GIVEN = st.builds(
    Properties,
    message_id=st.one_of(TEXT.map(lambda text: f"ID:{text}"), st.uuids(), st.binary(max_size=10)),
    user_id=st.one_of(st.none(), TEXT.filter(bool).map(str.encode)),
    to=st.just("orders"),
    subject=st.one_of(st.none(), TEXT),
    reply_to=st.sampled_from([None, "replies"]),
    correlation_id=st.one_of(st.none(), IDS),
    content_type=st.sampled_from([None, Symbol("application/octet-stream")]),
    creation_time=st.one_of(st.none(), st.integers(1, 2**62).map(Timestamp)),
    absolute_expiry_time=st.one_of(st.none(), st.integers(2**50, 2**62).map(Timestamp)),
    group_id=st.one_of(st.none(), TEXT),
    group_sequence=st.one_of(st.none(), st.integers(0, 2**32 - 1).map(UInt)),
    reply_to_group_id=st.one_of(st.none(), TEXT),
)


@given(HEADERS, GIVEN, st.dictionaries(NAMES, ENTRIES, max_size=5), BODIES)
def test_a_message_of_a_jms_client_comes_out_as_it_went_in(
    header: Header, properties: Properties, application: dict[str, Any], body: tuple[int, int | None, Any]
) -> None:
    message_type, kind, content = body
    annotations = AmqpMap([(MESSAGE_TYPE, Byte(message_type)), (DESTINATION, Byte(0))])
    if properties.reply_to is not None:
        annotations.append((REPLY_TO, Byte(1)))
    sections = Sections(header, None, annotations, properties, AmqpMap(application.items()), kind, content)
    found, _ = through(sections)
    assert found.header is not None
    assert found.header.durable == bool(header.durable)
    assert (found.header.priority or 4) == (4 if header.priority is None else header.priority or 4)
    assert found.header.delivery_count == header.delivery_count
    assert found.message_annotations is not None
    kept = AmqpMap(pair for pair in found.message_annotations if pair[0] != "x-opt-jms-type")
    assert same(kept, annotations)
    assert found.properties is not None
    if message_type == 1 and kind == DATA and properties.content_type is None:
        properties.content_type = Symbol("application/x-java-serialized-object")
    assert found.properties == properties
    assert same(found.application_properties or AmqpMap(), AmqpMap(application.items()))
    if message_type == 0:
        assert (found.body, found.content) == (VALUE, "")
    else:
        assert found.body == kind
        assert same(found.content, content)


def test_the_body_of_a_map_message_is_what_anyone_would_publish() -> None:
    sections = Sections(body=VALUE, content=AmqpMap([("id", Int(7)), ("price", Float(0.1)), ("raw", b"\x01")]))
    _, stored = through(sections)
    assert stored.body == b'{"id":7,"price":0.1,"raw":"AQ=="}'
    assert stored.to_record().header("jmsbridge.body-types") == "id=int,price=float,raw=bytes"


# AMQPNative: the message as it is, in a BytesMessage.
NATIVE = TransformerSettings(
    transformer=Transformer.AMQP_NATIVE, default_priority=6, default_ttl_ms=5000, default_delivery_mode="NON_PERSISTENT"
)


@given(st.binary(max_size=100), st.integers(0, 2**32 - 1))
def test_a_native_message_is_not_looked_at(encoded: bytes, message_format: int) -> None:
    message = inbound(NATIVE).to_message(encoded, message_format, "queue:orders", "plant")
    stored = Message.from_record(message.to_record())
    assert outbound(NATIVE).encoded(stored, "queue/orders", None) == (encoded, message_format)


@pytest.mark.parametrize(
    ("to", "pattern", "expected"),
    [
        ("orders.north", "topic:orders.#", "topic:orders.north"),
        ("topic://orders", "topic:*", "topic:orders"),
        ("orders.north", "queue:*.north", "queue:orders.north"),
        (None, "topic:orders.#", "topic:orders.#"),
        ("other", "topic:orders", "topic:orders"),
    ],
)
def test_a_native_message_of_a_pattern_has_the_address_that_it_names(
    to: str | None, pattern: str, expected: str
) -> None:
    encoded = encode_sections(Sections(properties=Properties(to=to), body=DATA, content=b"x"))
    assert inbound(NATIVE).to_message(encoded, 0, pattern, "p").headers["JMSDestination"] == expected


def test_a_native_message_has_the_fields_of_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time_ns", lambda: 1_795_000_000_000_000_000)
    message = inbound(NATIVE).to_message(b"raw", 9, "topic:prices", "plant")
    assert (message.body, message.body_type, message.source) == (b"raw", BodyType.BYTES, "plant")
    identity = message.headers["JMSMessageID"]
    assert identity.startswith("ID:")
    assert message.headers == {
        "JMSMessageID": identity,
        "JMSDestination": "topic:prices",
        "JMSTimestamp": "1795000000000",
        "JMSExpiration": "1795000005000",
        "JMSDeliveryMode": "NON_PERSISTENT",
        "JMSPriority": "6",
    }
    assert message.properties == {
        "JMS_AMQP_MESSAGE_FORMAT": Property("9", JmsType.LONG),
        "JMS_AMQP_NATIVE": Property("true", JmsType.BOOLEAN),
    }
    assert inbound(NATIVE).to_message(b"raw", 9, "topic:prices", "plant").headers["JMSMessageID"] != identity
    by_default = inbound(TransformerSettings(transformer=Transformer.AMQP_NATIVE)).to_message(b"", 0, "queue:q", "p")
    assert "JMSExpiration" not in by_default.headers


TRUE, ZERO = Property("true", JmsType.BOOLEAN), Property("0", JmsType.LONG)


@pytest.mark.parametrize(
    ("kind", "properties", "problem"),
    [
        (
            BodyType.TEXT,
            {"JMS_AMQP_NATIVE": TRUE, "JMS_AMQP_MESSAGE_FORMAT": ZERO},
            "transformer AMQPNative sends bytes messages only, and this is a text",
        ),
        (
            BodyType.BYTES,
            {"JMS_AMQP_MESSAGE_FORMAT": ZERO},
            "transformer AMQPNative needs property JMS_AMQP_NATIVE to be true",
        ),
        (
            BodyType.BYTES,
            {"JMS_AMQP_NATIVE": Property("false", JmsType.BOOLEAN), "JMS_AMQP_MESSAGE_FORMAT": ZERO},
            "transformer AMQPNative needs property JMS_AMQP_NATIVE to be true",
        ),
        (
            BodyType.BYTES,
            {"JMS_AMQP_NATIVE": Property("true", JmsType.STRING), "JMS_AMQP_MESSAGE_FORMAT": ZERO},
            "transformer AMQPNative needs property JMS_AMQP_NATIVE to be true",
        ),
        (
            BodyType.BYTES,
            {"JMS_AMQP_NATIVE": TRUE},
            "transformer AMQPNative needs the message format as a number in JMS_AMQP_MESSAGE_FORMAT",
        ),
        (
            BodyType.BYTES,
            {"JMS_AMQP_NATIVE": TRUE, "JMS_AMQP_MESSAGE_FORMAT": Property("4294967296", JmsType.LONG)},
            "JMS_AMQP_MESSAGE_FORMAT is 4294967296, larger than any message format",
        ),
    ],
)
def test_what_is_no_native_message_is_refused(kind: BodyType, properties: dict[str, Property], problem: str) -> None:
    with pytest.raises(RefusedError) as raised:
        outbound(NATIVE).encoded(Message(b"", kind, properties=properties), "queue/orders", None)
    assert str(raised.value) == problem
