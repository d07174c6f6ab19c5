"""AMQP messages as JMS messages: every row of the tables, and what JMS cannot hold."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from itertools import permutations
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.connectors.amqp.codec.sections import DATA, SEQUENCE, VALUE, Header, Properties, Sections, encode_sections
from engine.connectors.amqp.codec.values import (
    AmqpMap,
    Array,
    Byte,
    Char,
    Decimal32,
    Described,
    Float,
    Int,
    Short,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
)
from engine.connectors.amqp.inbound import JmsMappingInbound
from engine.connectors.amqp.transformer_settings import Transformer, Transformers, TransformerSettings
from engine.connectors.amqp.transformers import TransformError, inbound, inbound_of
from engine.message import BodyType, Message
from engine.property_names import take_not_kept
from routes.properties import JmsType, Property

ORDERS = "queue:orders"
CLIENT = (Symbol("x-opt-jms-msg-type"), Byte(5))
STRING, LONG, BOOLEAN, INT, BYTE = JmsType.STRING, JmsType.LONG, JmsType.BOOLEAN, JmsType.INT, JmsType.BYTE


def read(sections: Sections, address: str = ORDERS, **settings: Any) -> Message:
    return inbound(TransformerSettings(**settings)).to_message(encode_sections(sections), 0, address, "plant")


def with_body(body: int, content: Any, message_type: int | None = None) -> Message:
    annotations = None if message_type is None else AmqpMap([(CLIENT[0], Byte(message_type))])
    return read(Sections(message_annotations=annotations, body=body, content=content))


def errors(message: Message) -> dict[str, str]:
    return {name: value.text for name, value in message.properties.items() if name.endswith("_ERROR")}


# Bodies: "AMQP message body type", "resulting JMS message type".


@pytest.mark.parametrize(
    ("body", "content", "kind", "text"),
    [
        (DATA, b"\x00\xff", BodyType.BYTES, b"\x00\xff"),
        (DATA, b"text", BodyType.BYTES, b"text"),
        (SEQUENCE, [Int(1), "a"], BodyType.STREAM, b'[1,"a"]'),
        (VALUE, "text €", BodyType.TEXT, "text €".encode()),
        (VALUE, Symbol("name"), BodyType.TEXT, b"name"),
        (VALUE, b"\x00\xff", BodyType.BYTES, b"\x00\xff"),
        (VALUE, [Int(1), "a"], BodyType.STREAM, b'[1,"a"]'),
        (VALUE, AmqpMap([("a", Int(1)), (Symbol("b"), True)]), BodyType.MAP, b'{"a":1,"b":true}'),
        (VALUE, 7, BodyType.OBJECT, b"7"),
        (VALUE, None, BodyType.OBJECT, b"null"),
        (None, None, BodyType.BYTES, b""),
    ],
)
def test_the_body_decides_what_message_it_is(body: int, content: Any, kind: BodyType, text: bytes) -> None:
    message = with_body(body, content)
    assert (message.body_type, message.body) == (kind, text)
    assert not errors(message)


# Object messages: "AMQP primitive", "java.io.Serializable".
PRIMITIVES: list[tuple[Any, str, str]] = [
    (True, "boolean", "true"),
    (Byte(-1), "byte", "-1"),
    (UByte(200), "int", "200"),
    (Short(-300), "int", "-300"),
    (UShort(60_000), "int", "60000"),
    (Int(-70_000), "int", "-70000"),
    (UInt(4_000_000_000), "long", "4000000000"),
    (-(2**40), "long", "-1099511627776"),
    (ULong(2**40), "long", "1099511627776"),
    (1.5, "double", "1.5"),
    (Float(0.5), "float", "0.5"),
    (Char("A"), "int", "65"),
    (Timestamp(1_700_000_000_000), "long", "1700000000000"),
]


@pytest.mark.parametrize(("value", "kind", "text"), PRIMITIVES, ids=[type(row[0]).__name__ for row in PRIMITIVES])
def test_every_primitive_is_the_java_type_of_the_table(value: Any, kind: str, text: str) -> None:
    message = with_body(VALUE, value)
    assert (message.body_type, message.body.decode(), message.body_types) == (BodyType.OBJECT, text, kind)
    in_map = with_body(VALUE, AmqpMap([("it", value)]))
    assert (json.loads(in_map.body), in_map.body_types) == ({"it": json.loads(text)}, f"it={kind}")
    in_stream = with_body(SEQUENCE, [value])
    assert (json.loads(in_stream.body), in_stream.body_types) == ([json.loads(text)], kind)
    assert property_of(value) == Property(text, JmsType(kind))


def property_of(value: Any) -> Property | None:
    message = read(Sections(application_properties=AmqpMap([("it", value)]), body=VALUE, content=""))
    return message.properties.get("it")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("text", Property("text", STRING)),
        (Symbol("name"), Property("name", STRING)),
        (b"\x00\xff", Property("AP8=", JmsType.BYTES)),
        (float("nan"), Property("NaN", JmsType.DOUBLE)),
        (Float(0.1), Property("0.1", JmsType.FLOAT)),
        (None, None),
    ],
)
def test_texts_and_bytes_are_properties_too(value: Any, expected: Property | None) -> None:
    assert property_of(value) == expected


# "Non-body sections of the AMQP message".
NOW = 1_795_000_000_000
HEADERS: list[tuple[str, Sections, str, str]] = [
    ("durable", Sections(Header(durable=True)), "JMSDeliveryMode", "PERSISTENT"),
    ("durable, false", Sections(Header(durable=False)), "JMSDeliveryMode", "NON_PERSISTENT"),
    ("priority", Sections(Header(priority=UByte(7))), "JMSPriority", "7"),
    ("priority, higher than JMS has", Sections(Header(priority=UByte(255))), "JMSPriority", "9"),
    ("ttl", Sections(Header(ttl=UInt(5000))), "JMSExpiration", str(NOW + 5000)),
    ("delivery-count", Sections(Header(delivery_count=UInt(2))), "JMSXDeliveryCount", "3"),
    ("delivery-count, redelivered", Sections(Header(delivery_count=UInt(2))), "JMSRedelivered", "true"),
    ("delivery-count, first", Sections(Header(delivery_count=UInt(0))), "JMSRedelivered", "false"),
    ("x-opt-jms-type", Sections(message_annotations=AmqpMap([(Symbol("x-opt-jms-type"), "t")])), "JMSType", "t"),
    ("message-id", Sections(properties=Properties(message_id="ID:1")), "JMSMessageID", "ID:1"),
    ("user-id", Sections(properties=Properties(user_id="jö".encode())), "JMSXUserID", "jö"),
    ("to", Sections(properties=Properties(to="bills")), "JMSDestination", "queue:bills"),
    ("no to", Sections(properties=Properties()), "JMSDestination", ORDERS),
    ("reply-to", Sections(properties=Properties(reply_to="back")), "JMSReplyTo", "queue:back"),
    ("correlation-id", Sections(properties=Properties(correlation_id="c-1")), "JMSCorrelationID", "c-1"),
    (
        "absolute-expiry-time",
        Sections(Header(ttl=UInt(5000)), properties=Properties(absolute_expiry_time=Timestamp(NOW + 1))),
        "JMSExpiration",
        str(NOW + 1),
    ),
    ("creation-time", Sections(properties=Properties(creation_time=Timestamp(NOW))), "JMSTimestamp", str(NOW)),
    ("group-id", Sections(properties=Properties(group_id="g")), "JMSXGroupID", "g"),
    ("group-sequence", Sections(properties=Properties(group_sequence=UInt(5))), "JMSXGroupSeq", "5"),
    ("group-sequence, large", Sections(properties=Properties(group_sequence=UInt(2**32 - 1))), "JMSXGroupSeq", "-1"),
    (
        "x-opt-delivery-time",
        Sections(message_annotations=AmqpMap([(Symbol("x-opt-delivery-time"), NOW)])),
        "JMSDeliveryTime",
        str(NOW),
    ),
]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: NOW * 1_000_000)


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize(("sections", "name", "text"), [row[1:] for row in HEADERS], ids=[row[0] for row in HEADERS])
def test_each_field_goes_where_the_table_says(sections: Sections, name: str, text: str) -> None:
    assert read(sections).headers[name] == text


SINGLE = {Symbol("x-opt-it"): Int(1), Symbol("y"): "why"}
PROPERTIES: list[tuple[str, Sections, str, Property]] = [
    ("first-acquirer", Sections(Header(first_acquirer=True)), "JMS_AMQP_FirstAcquirer", Property("true", BOOLEAN)),
    (
        "delivery-annotations",
        Sections(delivery_annotations=AmqpMap(SINGLE.items())),
        "JMS_AMQP_DA_x_opt_it",
        Property("1", INT),
    ),
    (
        "message-annotations",
        Sections(message_annotations=AmqpMap(SINGLE.items())),
        "JMS_AMQP_MA_x_opt_it",
        Property("1", INT),
    ),
    (
        "annotation, number",
        Sections(message_annotations=AmqpMap([(ULong(7), "x")])),
        "JMS_AMQP_MA__",
        Property("x", STRING),
    ),
    ("footer", Sections(footer=AmqpMap(SINGLE.items())), "JMS_AMQP_FT_y", Property("why", STRING)),
    ("subject", Sections(properties=Properties(subject="s")), "JMS_AMQP_Subject", Property("s", STRING)),
    (
        "content-type",
        Sections(properties=Properties(content_type="a/b")),
        "JMS_AMQP_ContentType",
        Property("a/b", STRING),
    ),
    (
        "content-encoding",
        Sections(properties=Properties(content_encoding="gzip")),
        "JMS_AMQP_ContentEncoding",
        Property("gzip", STRING),
    ),
    (
        "reply-to-group-id",
        Sections(properties=Properties(reply_to_group_id="g")),
        "JMS_AMQP_ReplyToGroupID",
        Property("g", STRING),
    ),
    ("application-properties", Sections(application_properties=AmqpMap([("x-y", 2)])), "x_y", Property("2", LONG)),
    ("message format", Sections(), "JMS_AMQP_MESSAGE_FORMAT", Property("0", LONG)),
    ("native", Sections(), "JMS_AMQP_NATIVE", Property("false", BOOLEAN)),
]


@pytest.mark.parametrize(
    ("sections", "name", "value"), [row[1:] for row in PROPERTIES], ids=[row[0] for row in PROPERTIES]
)
def test_each_section_becomes_the_properties_of_the_table(sections: Sections, name: str, value: Property) -> None:
    assert read(sections).properties[name] == value


def test_the_type_is_no_annotation_any_more() -> None:
    message = read(Sections(message_annotations=AmqpMap([(Symbol("x-opt-jms-type"), "t")])))
    assert list(message.properties) == ["JMS_AMQP_MESSAGE_FORMAT", "JMS_AMQP_NATIVE"]


# The properties of the transformer.


def test_a_name_on_which_the_translator_fails_is_the_fault_of_its_message() -> None:
    with pytest.raises(TransformError, match="name translator 'builtins:int' failed on 'a'"):
        read(Sections(application_properties=AmqpMap([("a", "1")])), name_translator="builtins:int")


def test_the_defaults_are_those_of_the_table() -> None:
    message = read(Sections())
    assert message.headers["JMSDeliveryMode"] == "PERSISTENT"
    assert message.headers["JMSPriority"] == "4"
    assert "JMSExpiration" not in message.headers
    assert message.headers["JMSMessageID"].startswith("ID:")
    assert message.headers["JMSMessageID"] != read(Sections()).headers["JMSMessageID"]


@pytest.mark.usefixtures("clock")
def test_the_properties_of_the_transformer_take_their_place() -> None:
    sections = Sections(
        delivery_annotations=AmqpMap([(Symbol("d-a"), "1")]),
        message_annotations=AmqpMap([(Symbol("m-a"), "2")]),
        footer=AmqpMap([(Symbol("f-t"), "3")]),
        properties=Properties(message_id="ID:given", subject="s"),
        application_properties=AmqpMap([("kind", "invoice"), ("a_b", "4")]),
    )
    message = read(
        sections,
        name_translator="UnderscoreToDash",
        prefix_vendor="V_",
        prefix_delivery_annotations="D_",
        prefix_message_annotations="M_",
        prefix_footer="F_",
        default_delivery_mode="NON_PERSISTENT",
        default_priority=8,
        default_ttl_ms=1000,
        overwrite_message_id=True,
        jms_type_property="kind",
    )
    names = ["V_D_d-a", "V_M_m-a", "V_F_f-t", "V_Subject", "a-b", "V_MESSAGE_FORMAT", "V_NATIVE"]
    assert sorted(message.properties) == sorted(names)
    assert message.headers["JMSType"] == "invoice"
    assert message.headers["JMSDeliveryMode"] == "NON_PERSISTENT"
    assert message.headers["JMSPriority"] == "8"
    assert message.headers["JMSExpiration"] == str(NOW + 1000)
    assert message.headers["JMSMessageID"] not in ("", "ID:given")


def test_a_type_in_a_property_overwrites_the_annotation() -> None:
    sections = Sections(
        message_annotations=AmqpMap([(Symbol("x-opt-jms-type"), "annotation")]),
        application_properties=AmqpMap([("kind", "property")]),
    )
    assert read(sections).headers["JMSType"] == "annotation"
    assert read(sections, jms_type_property="kind").headers["JMSType"] == "property"


# What JMS cannot hold.


@pytest.mark.parametrize(
    ("value", "what"),
    [
        (UUID(int=7), "uuid 00000000-0000-0000-0000-000000000007"),
        (ULong(2**63), "ulong 9223372036854775808 does not fit a long"),
        (Decimal32(b"1234"), "decimal32 b'1234'"),
        ([1], "list [1]"),
        (AmqpMap([("a", 1)]), "map [('a', 1)]"),
        (Array(0x50, (UByte(1),)), "array Array(code=80, values=(1,), descriptor=None)"),
        (Described(ULong(1), 2), "described type Described(descriptor=1, value=2)"),
    ],
)
def test_what_jms_cannot_hold_is_flagged(value: Any, what: str) -> None:
    message = read(Sections(application_properties=AmqpMap([("Order-ID", value), ("b", 1)]), body=VALUE, content=""))
    assert errors(message) == {"Order_ID_ERROR": f"no JMS value: {what}"}
    assert "Order_ID" not in message.properties
    assert message.properties["b"] == Property("1", LONG)
    in_map = with_body(VALUE, AmqpMap([("it", value), ("b", 1)]))
    assert (in_map.body, errors(in_map)) == (b'{"b":1}', {"it_ERROR": f"no JMS value: {what}"})
    in_stream = with_body(SEQUENCE, [1, value])
    assert (in_stream.body, errors(in_stream)) == (b"[1,null]", {"JMS_AMQP_Body_1_ERROR": f"no JMS value: {what}"})


@pytest.mark.parametrize("value", [UUID(int=7), Described(ULong(1), 2), Array(0x50, (UByte(1),))])
def test_an_object_that_is_none_stays_as_it_came(value: Any) -> None:
    message = with_body(VALUE, value)
    assert (message.body_type, message.body_types) == (BodyType.OBJECT, "amqp")
    assert message.body == encode_sections(Sections(body=VALUE, content=value))
    assert list(errors(message)) == ["JMS_AMQP_Body_ERROR"]


def test_a_user_id_that_is_no_text_is_flagged() -> None:
    message = read(Sections(properties=Properties(user_id=b"\xff\xfe")))
    assert errors(message) == {"JMSXUserID_ERROR": "no JMS value: binary fffe"}


@pytest.mark.parametrize("names", list(permutations(("a-b", "a_b", "a.b"))))
def test_names_that_become_one_are_properties_of_their_own_names(names: tuple[str, ...]) -> None:
    message = read(Sections(application_properties=AmqpMap([(name, name) for name in names])))
    assert not errors(message)
    assert message.named().keys() & set(names) == set(names)
    assert all(found.text == name for name, found in message.named().items() if name in names)
    assert message.properties["a_b"].text == "a_b"


def test_a_name_that_came_twice_is_flagged() -> None:
    pairs = AmqpMap([("a-b", "1"), (Symbol("a-b"), "2")])
    message = read(Sections(message_annotations=pairs))
    assert message.properties["JMS_AMQP_MA_a_b"] == Property("1", STRING)
    problem = "no JMS value: '2', as another field or property has this name"
    assert errors(message) == {"JMS_AMQP_MA_a_b_ERROR": problem}


def test_values_that_jms_cannot_hold_are_counted_for_each_message() -> None:
    values = [(Symbol("x-opt-list"), ["a", "b"]), (Symbol("x-opt-note"), "a")]
    encoded = encode_sections(Sections(message_annotations=AmqpMap(values), body=VALUE, content="x"))
    transformer = inbound(TransformerSettings())
    take_not_kept()
    for _ in range(3):
        message = transformer.to_message(encoded, 0, "queue:q", "plant")
        assert list(errors(message)) == ["JMS_AMQP_MA_x_opt_list_ERROR"]
    assert take_not_kept() == 3


def test_a_translated_name_is_told_as_it_was() -> None:
    annotations = AmqpMap([(Symbol("x-opt-note"), "a"), (Symbol("x-opt-l_U00E4_"), "b")])
    message = read(Sections(message_annotations=annotations, application_properties=AmqpMap([("trace-id", "1")])))
    assert message.spellings == {
        "JMS_AMQP_MA_x_opt_note": "JMS_AMQP_MA_x-opt-note",
        "JMS_AMQP_MA_x_opt_lä": "JMS_AMQP_MA_x-opt-lä",
        "trace_id": "trace-id",
    }
    assert message.properties["trace_id"] == Property("1", STRING)


def test_a_property_cannot_pass_for_a_field_or_for_one_of_the_bridge() -> None:
    pairs = [
        ("JMSMessageID", "ID:false"),
        ("JMS_JmsBridge_ReplySink", "false"),
        ("JMS-JmsBridge_ReplyTo", "false"),
        ("jmsbridge.position", "false"),
        ("jmsbridge.origin", "one,two"),
    ]
    message = read(Sections(application_properties=AmqpMap(pairs), body=VALUE, content=""))
    assert list(message.properties) == ["JMSMessageID_ERROR", "JMS_AMQP_MESSAGE_FORMAT", "JMS_AMQP_NATIVE"]
    assert message.headers["JMSMessageID"] != "ID:false"
    assert message.origins == ("one", "two")


def test_the_sender_cannot_claim_the_format() -> None:
    pairs = [("JMS_AMQP_NATIVE", True), ("JMS_AMQP_MESSAGE_FORMAT", 9)]
    message = read(Sections(application_properties=AmqpMap(pairs)))
    assert message.properties["JMS_AMQP_NATIVE"] == Property("false", BOOLEAN)
    assert message.properties["JMS_AMQP_MESSAGE_FORMAT"] == Property("0", LONG)


# What is not a message, and which transformer is taken.


def test_what_is_no_message_is_one_line() -> None:
    with pytest.raises(TransformError) as raised:
        inbound(TransformerSettings()).to_message(b"no message", 0, ORDERS, "plant")
    assert str(raised.value) == "no AMQP 1.0 message: a section begins with byte 0, not 0x6e, at byte 0"


@given(st.one_of(st.binary(max_size=60), st.binary(max_size=60).map(lambda raw: bytes.fromhex("00537245005377") + raw)))
def test_any_bytes_are_a_message_or_a_named_error(data: bytes) -> None:
    with suppress(TransformError):
        message = inbound(TransformerSettings()).to_message(data, 0, ORDERS, "plant")
        assert Message.from_record(message.to_record()).body == message.body


def test_transformers_are_chosen_by_destination_and_format() -> None:
    native = TransformerSettings(
        transformer=Transformer.AMQP_NATIVE, destinations=frozenset((ORDERS,)), prefix_vendor="N_"
    )
    later = TransformerSettings(message_format=1, prefix_vendor="L_")
    chosen = inbound_of(Transformers((native, later)))
    encoded = encode_sections(Sections(body=VALUE, content="x"))

    def vendor(address: str, message_format: int) -> str:
        return next(iter(chosen.to_message(encoded, message_format, address, "plant").properties)).partition("_")[0]

    assert vendor(ORDERS, 0) == "N"
    assert vendor("queue:other", 0) == "JMS"
    assert vendor(ORDERS, 1) == "L"
    with pytest.raises(TransformError) as raised:
        vendor(ORDERS, 2)
    assert str(raised.value) == "there is no transformer for message format 2 from queue:orders"


@pytest.mark.parametrize(
    ("annotations", "count"),
    [
        (AmqpMap([CLIENT]), 1),
        (AmqpMap([(Symbol("a"), "x" * 101)]), 0),
        (AmqpMap([(Symbol("a"), b"x" * 101)]), 0),
        (AmqpMap([(Symbol("a" * 101), True)]), 0),
        (AmqpMap([(Symbol("a"), ["x" * 1000])]), 0),
        (AmqpMap([(Symbol("a"), AmqpMap([("x", "x" * 1000)]))]), 0),
        (AmqpMap([(Symbol(f"a{number}"), True) for number in range(17)]), 0),
    ],
)
def test_only_short_annotations_are_cached(annotations: AmqpMap, count: int) -> None:
    transformer = JmsMappingInbound(TransformerSettings())
    encoded = encode_sections(Sections(message_annotations=annotations))
    first = transformer.to_message(encoded, 0, ORDERS, "plant")
    assert len(transformer._known) == count
    assert transformer.to_message(encoded, 0, ORDERS, "plant").properties == first.properties
