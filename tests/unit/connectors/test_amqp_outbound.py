"""JMS messages as AMQP messages: every row of the tables, and what AMQP cannot carry."""

from __future__ import annotations

import time
from typing import Any
from uuid import UUID

import pytest

from engine.connectors.amqp.codec.sections import DATA, SEQUENCE, VALUE, Header, Properties, Sections, decode
from engine.connectors.amqp.codec.values import (
    AmqpMap,
    Byte,
    Char,
    Float,
    Int,
    Short,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
)
from engine.connectors.amqp.transformer_settings import Transformer, Transformers, TransformerSettings
from engine.connectors.amqp.transformers import outbound, outbound_of
from engine.connectors.base import RefusedError
from engine.message import BodyType, Message
from engine.property_names import take_not_kept
from routes.properties import JmsType, Property

NOW = 1_795_000_000_000
LATER = str(NOW + 60_000)
STRING = JmsType.STRING


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: NOW * 1_000_000)


def sent(message: Message, address: str = "queue/orders", reply_to: str | None = None, **settings: Any) -> Sections:
    encoded, message_format = outbound(TransformerSettings(**settings)).encoded(message, address, reply_to)
    assert message_format == 0
    return decode(encoded)


def same(one: Any, other: Any) -> bool:
    """Equal in value and in types."""
    if type(one) is not type(other):
        return False
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


# Bodies: "JMS message type", "resulting AMQP message body".


@pytest.mark.parametrize(
    ("message", "body", "content"),
    [
        (Message(b"\x00\xff", BodyType.BYTES), DATA, b"\x00\xff"),
        (Message("€".encode(), BodyType.TEXT), VALUE, "€"),
        (Message(b"", BodyType.TEXT, body_types="null"), VALUE, None),
        (Message(b'{"a":1,"b":true}', BodyType.MAP), VALUE, AmqpMap([("a", Int(1)), ("b", True)])),
        (Message(b'[1,"x"]', BodyType.STREAM, body_types="short,char"), SEQUENCE, [Short(1), Char("x")]),
        (Message(b"7", BodyType.OBJECT, body_types="long"), VALUE, 7),
        (Message(b"\xac\xed\x00\x05p", BodyType.OBJECT), DATA, b"\xac\xed\x00\x05p"),
        (Message(b"what is it", BodyType.OBJECT), DATA, b"what is it"),
        (Message(b'{"a":1}', BodyType.OBJECT), DATA, b'{"a":1}'),
        (Message(b"\0\x53\x77\xc0\x03\x01\x55\x01", BodyType.OBJECT, body_types="amqp"), VALUE, [1]),
    ],
)
def test_the_type_of_the_message_decides_the_body(message: Message, body: int, content: Any) -> None:
    sections = sent(message)
    assert sections.body == body
    assert same(sections.content, content)


# "java.io.Serializable", "AMQP primitive": for maps, streams, and objects.
SERIALIZABLE: list[tuple[str, str, Any]] = [
    ("boolean", "true", True),
    ("byte", "-1", Byte(-1)),
    ("char", '"A"', Char("A")),
    ("short", "300", Short(300)),
    ("int", "70000", Int(70_000)),
    ("long", "1", 1),
    ("double", "1.5", 1.5),
    ("float", "0.5", Float(0.5)),
    ("string", '"text"', "text"),
    ("bytes", '"AP8="', b"\x00\xff"),
]


@pytest.mark.parametrize(("kind", "text", "value"), SERIALIZABLE, ids=[row[0] for row in SERIALIZABLE])
def test_every_serializable_is_the_primitive_of_the_table(kind: str, text: str, value: Any) -> None:
    as_object = sent(Message(text.encode(), BodyType.OBJECT, body_types=kind))
    assert as_object.body == VALUE
    assert same(as_object.content, value)
    in_map = sent(Message(f'{{"it":{text}}}'.encode(), BodyType.MAP, body_types=f"it={kind}"))
    assert same(in_map.content, AmqpMap([("it", value)]))
    in_stream = sent(Message(f"[{text}]".encode(), BodyType.STREAM, body_types=kind))
    assert same(in_stream.content, [value])


# "JMS message", "AMQP message": fields of sections, by attribute.
FIELDS: list[tuple[str, str, Any]] = [
    ("JMSDeliveryMode=PERSISTENT", "header.durable", True),
    ("JMSDeliveryMode=NON_PERSISTENT", "header.durable", False),
    ("", "header.durable", True),
    ("JMSPriority=7", "header.priority", UByte(7)),
    ("JMSPriority=high", "header.priority", None),
    ("JMSPriority=10", "header.priority", None),
    (f"JMSExpiration={LATER}", "header.ttl", UInt(60_000)),
    (f"JMSExpiration={LATER}", "properties.absolute_expiry_time", Timestamp(int(LATER))),
    (f"JMSExpiration={NOW - 1}", "header.ttl", UInt(1)),
    (f"JMSExpiration={NOW + 2**40}", "header.ttl", None),
    (f"JMSExpiration={NOW + 2**40}", "properties.absolute_expiry_time", Timestamp(NOW + 2**40)),
    ("JMSExpiration=0", "properties.absolute_expiry_time", None),
    ("JMSXDeliveryCount=3", "header.delivery_count", UInt(2)),
    ("JMSXDeliveryCount=1", "header.delivery_count", None),
    ("JMSMessageID=ID:1", "properties.message_id", "ID:1"),
    ("JMSMessageID=ID:AMQP_ULONG:7", "properties.message_id", ULong(7)),
    ("JMSXUserID=jö", "properties.user_id", "jö".encode()),
    ("JMSDestination=queue:elsewhere", "properties.to", "orders"),
    ("JMSReplyTo=topic:back", "properties.reply_to", "back"),
    ("JMSReplyTo=somewhere", "properties.reply_to", None),
    ("JMSCorrelationID=c", "properties.correlation_id", "c"),
    (
        "JMSCorrelationID=ID:AMQP_UUID:00000000-0000-0000-0000-000000000007",
        "properties.correlation_id",
        UUID(int=7),
    ),
    (f"JMSTimestamp={NOW}", "properties.creation_time", Timestamp(NOW)),
    ("JMSTimestamp=yesterday", "properties.creation_time", None),
    ("JMSXGroupID=g", "properties.group_id", "g"),
    ("JMSXGroupSeq=5", "properties.group_sequence", UInt(5)),
    ("JMSXGroupSeq=-1", "properties.group_sequence", UInt(2**32 - 1)),
]


@pytest.mark.parametrize(("given", "place", "value"), FIELDS, ids=[f"{row[0]} {row[1]}" for row in FIELDS])
def test_each_field_goes_where_the_table_says(given: str, place: str, value: Any) -> None:
    name, _, text = given.partition("=")
    sections = sent(Message(b"", headers={name: text} if name else {}))
    section, _, field = place.partition(".")
    assert same(getattr(getattr(sections, section), field), value)


TEXT = Property("x", STRING)
PROPERTIES: list[tuple[str, Property, str, Any]] = [
    ("JMS_AMQP_FirstAcquirer", Property("true", JmsType.BOOLEAN), "header.first_acquirer", True),
    ("JMS_AMQP_Subject", TEXT, "properties.subject", "x"),
    ("JMS_AMQP_ContentType", TEXT, "properties.content_type", Symbol("x")),
    ("JMS_AMQP_ContentEncoding", TEXT, "properties.content_encoding", Symbol("x")),
    ("JMS_AMQP_ReplyToGroupID", TEXT, "properties.reply_to_group_id", "x"),
]


@pytest.mark.parametrize(("name", "found", "place", "value"), PROPERTIES, ids=[row[0] for row in PROPERTIES])
def test_vendor_properties_have_a_place(name: str, found: Property, place: str, value: Any) -> None:
    sections = sent(Message(b"", properties={name: found}))
    section, _, field = place.partition(".")
    assert same(getattr(getattr(sections, section), field), value)
    assert sections.application_properties is None


def test_prefixes_lead_to_their_sections() -> None:
    properties = {f"JMS_AMQP_{each}_x_opt_it": Property("1", JmsType.INT) for each in ("DA", "MA", "FT")}
    sections = sent(Message(b"", properties={**properties, "own_name": TEXT}))
    own = [(Symbol("x-opt-it"), Int(1))]
    assert sections.delivery_annotations == own
    assert sections.footer == own
    assert sections.message_annotations is not None
    assert sections.message_annotations[-1:] == own
    assert sections.application_properties == [("own_name", "x")]


@pytest.mark.parametrize(
    ("found", "value"),
    [
        (Property("true", JmsType.BOOLEAN), True),
        (Property("yes", JmsType.BOOLEAN), "yes"),
        (Property("-1", JmsType.BYTE), Byte(-1)),
        (Property("300", JmsType.BYTE), "300"),
        (Property("300", JmsType.SHORT), Short(300)),
        (Property("7", JmsType.INT), Int(7)),
        (Property("7", JmsType.LONG), 7),
        (Property("seven", JmsType.LONG), "seven"),
        (Property("0.5", JmsType.FLOAT), Float(0.5)),
        (Property("1e300", JmsType.FLOAT), "1e300"),
        (Property("Infinity", JmsType.FLOAT), Float("inf")),
        (Property("0.5", JmsType.DOUBLE), 0.5),
        (Property("7", STRING), "7"),
        (Property("7"), "7"),
        (Property("AP8=", JmsType.BYTES), b"\x00\xff"),
        (Property("*", JmsType.BYTES), "*"),
    ],
)
def test_properties_keep_their_types(found: Property, value: Any) -> None:
    sections = sent(Message(b"", properties={"it": found}))
    assert same(sections.application_properties, AmqpMap([("it", value)]))


def test_the_properties_of_the_transformer_take_their_place() -> None:
    properties = {
        "V_D_x_opt_b": TEXT,
        "V_M_x_opt_b": TEXT,
        "V_F_x_opt_b": TEXT,
        "V_Subject": Property("s"),
        "JMS_AMQP_Subject": TEXT,
        "a_b": TEXT,
    }
    sections = sent(
        Message(b"", headers={"JMSType": "invoice"}, properties=properties),
        name_translator="UnderscoreToDash",
        prefix_vendor="V_",
        prefix_delivery_annotations="D_",
        prefix_message_annotations="M_",
        prefix_footer="F_",
        jms_type_property="kind",
    )
    own = [(Symbol("x-opt-b"), "x")]
    assert (sections.delivery_annotations, sections.footer) == (own, own)
    assert sections.message_annotations is not None
    assert sections.message_annotations[2:] == own
    assert sections.application_properties == [("kind", "invoice"), ("JMS-AMQP-Subject", "x"), ("a-b", "x")]
    assert sections.properties is not None
    assert sections.properties.subject == "s"


def test_the_type_is_an_annotation_and_where_clients_look_for_it() -> None:
    sections = sent(Message(b"", headers={"JMSType": "invoice"}))
    assert sections.message_annotations is not None
    assert (Symbol("x-opt-jms-type"), "invoice") in sections.message_annotations
    assert sections.properties == Properties(to="orders", subject="invoice")


def test_jms_clients_are_told_the_class_and_the_kinds_of_destinations() -> None:
    for kind, number in zip(BodyType, (5, 3, 2, 4, 1), strict=True):
        body = {BodyType.MAP: b"{}", BodyType.STREAM: b"[]", BodyType.OBJECT: b"1"}.get(kind, b"")
        sections = sent(Message(body, kind), "topic/prices", "queue/back")
        assert same(
            sections.message_annotations,
            AmqpMap(
                [
                    (Symbol("x-opt-jms-msg-type"), Byte(number)),
                    (Symbol("x-opt-jms-dest"), Byte(1)),
                    (Symbol("x-opt-jms-reply-to"), Byte(0)),
                ]
            ),
        )
        assert sections.properties == Properties(to="prices", reply_to="back")


def test_annotations_that_are_made_anew_are_not_sent_twice() -> None:
    names = ("x_opt_jms_msg_type", "x_opt_jms_dest", "x-opt-jms-reply-to", "x_opt_jms_type", "x_opt_delivery_time")
    properties = {f"JMS_AMQP_MA_{name}": Property("5", JmsType.BYTE) for name in names}
    sections = sent(Message(b"", headers={"JMSDeliveryTime": LATER}, properties=properties))
    assert sections.message_annotations is not None
    assert [name for name, _ in sections.message_annotations] == [
        "x-opt-jms-msg-type",
        "x-opt-jms-dest",
        "x-opt-delivery-time",
    ]


@pytest.mark.parametrize(
    "name",
    [
        *("_AMQ_OperationName", "_AMQ_DUPL_ID", "AMQ_SCHEDULED_CRON", "__AMQ_CID"),
        *("JMS_AMQP_MA_x_opt_routing_type", "JMS_AMQP_MA_x_opt_delivery_delay"),
    ],
)
def test_properties_that_tell_a_broker_what_to_do_are_left_out(name: str) -> None:
    sections = sent(Message(b"x", properties={name: Property("1"), "AMQ": Property("kept")}))
    assert sections.application_properties == AmqpMap([("AMQ", "kept")])
    assert [str(key) for key, _ in sections.message_annotations] == ["x-opt-jms-msg-type", "x-opt-jms-dest"]


def test_a_plain_message_stays_one() -> None:
    properties = {"JMS_AMQP_MA_x_opt_jms_msg_type": Property("0", JmsType.BYTE)}
    sections = sent(Message(b"", properties=properties))
    assert sections.message_annotations is not None
    assert sections.message_annotations[0] == (Symbol("x-opt-jms-msg-type"), 0)
    with_body = sent(Message(b"x", BodyType.BYTES, properties=properties))
    assert with_body.message_annotations is not None
    assert with_body.message_annotations[0] == (Symbol("x-opt-jms-msg-type"), 3)


def test_a_serialized_object_has_its_content_type() -> None:
    sections = sent(Message(b"\xac\xed\x00\x05p", BodyType.OBJECT))
    assert sections.properties is not None
    assert sections.properties.content_type == "application/x-java-serialized-object"


def test_the_way_is_told_and_what_is_the_bridges_own_is_not() -> None:
    properties = {
        "JMS_JmsBridge_ReplySink": TEXT,
        "JMS_AMQP_NATIVE": Property("false", JmsType.BOOLEAN),
        "JMS_AMQP_MESSAGE_FORMAT": Property("0", JmsType.LONG),
    }
    sections = sent(Message(b"", properties=properties, origins=("one", "two")))
    assert sections.application_properties == [("jmsbridge.origin", "one,two")]


def test_an_empty_message_is_small() -> None:
    encoded, _ = outbound(TransformerSettings()).encoded(Message(b"x", BodyType.BYTES), "queue/q", None)
    assert decode(encoded) == Sections(
        Header(durable=True),
        message_annotations=AmqpMap([(Symbol("x-opt-jms-msg-type"), Byte(3)), (Symbol("x-opt-jms-dest"), Byte(0))]),
        properties=Properties(to="q"),
        body=DATA,
        content=b"x",
    )


@pytest.mark.parametrize(
    ("message", "address", "problem"),
    [
        (Message(b"\xff", BodyType.TEXT), "queue/q", "the body of a text message is not UTF-8"),
        (Message(b"[]", BodyType.MAP), "queue/q", "the body of a map message is a JSON object, not an array"),
        (Message(b"x", BodyType.STREAM), "queue/q", "the body is not JSON: Expecting value: line 1 column 1 (char 0)"),
        (Message(b""), "orders", "'orders' is not an address of a JMS broker; expected queue/NAME or topic/NAME"),
        (
            Message(b"", properties={"JMS_AMQP_ContentType": Property("ä")}),
            "queue/q",
            "'ä' is not a symbol: symbols are ASCII",
        ),
    ],
)
def test_what_amqp_cannot_carry_is_refused(message: Message, address: str, problem: str) -> None:
    with pytest.raises(RefusedError) as raised:
        sent(message, address)
    assert str(raised.value) == problem


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("x-opt-note", "x-opt-note"),
        ("x-opt-a_b", "x-opt-a_b"),
        ("x_opt_sequence_number", "x-opt-sequence-number"),
        ("x-opt-ä", "x-opt-_U00E4_"),
        ("note", None),
        ("x-note", None),
        ("x_opt", None),
        ("", None),
    ],
)
@pytest.mark.parametrize("section", ["DA", "MA", "FT"])
def test_annotations_begin_as_the_specification_demands(section: str, name: str, key: str | None) -> None:
    take_not_kept()
    sections = sent(Message(b"", properties={f"JMS_AMQP_{section}_{name}": TEXT}))
    maps = (sections.delivery_annotations, sections.message_annotations, sections.footer)
    own = ("x-opt-jms-msg-type", "x-opt-jms-dest")
    assert [str(each) for pairs in maps for each, _ in pairs or () if each not in own] == ([key] if key else [])
    assert take_not_kept() == (0 if key else 1)


def test_what_rabbitmq_told_of_the_way_of_a_message_is_neither_sent_nor_counted() -> None:
    take_not_kept()
    names = ("x_exchange", "x-routing-key")
    sections = sent(Message(b"", properties={f"JMS_AMQP_MA_{name}": TEXT for name in names}))
    assert sections.message_annotations is not None
    assert len(sections.message_annotations) == 2
    assert take_not_kept() == 0


def test_the_fault_of_an_annotation_is_no_annotation() -> None:
    fault = Property("no JMS value: list ['a', 'b']", STRING)
    sections = sent(Message(b"", properties={"JMS_AMQP_MA_x-opt-list_ERROR": fault, "list_ERROR": fault}))
    assert sections.message_annotations is not None
    assert len(sections.message_annotations) == 2
    assert sections.application_properties == [("list_ERROR", fault.text)]


def test_a_name_on_which_the_translator_fails_is_the_fault_of_its_message() -> None:
    with pytest.raises(RefusedError, match="name translator 'builtins:int' failed on 'a'"):
        sent(Message(properties={"a": Property("1")}), name_translator="builtins:int")


def test_transformers_are_chosen_by_destination_and_format() -> None:
    native = TransformerSettings(
        transformer=Transformer.AMQP_NATIVE, destinations=frozenset(("queue:raw",)), message_format=3
    )
    kind = TransformerSettings(destinations=frozenset(("topic:prices",)), jms_type_property="kind")
    chosen = outbound_of(Transformers((native, kind)))
    raw = Message(
        b"encoded",
        BodyType.BYTES,
        {"JMSType": "t"},
        {"JMS_AMQP_NATIVE": Property("true", JmsType.BOOLEAN), "JMS_AMQP_MESSAGE_FORMAT": Property("3", JmsType.LONG)},
    )
    assert chosen.encoded(raw, "queue/raw", None) == (b"encoded", 3)
    assert decode(chosen.encoded(raw, "/queue/other", None)[0]).content == b"encoded"
    for address in ("topic/prices", "/topic/prices", "topic:prices"):
        found = decode(chosen.encoded(raw, address, None)[0]).application_properties
        assert found == [("kind", "t")]


def test_what_is_not_kept_is_counted_for_each_message() -> None:
    transformer = outbound(TransformerSettings())
    take_not_kept()
    for _ in range(3):
        transformer.encoded(Message(b"", properties={"JMS_AMQP_MA_note": TEXT}), "queue/q", None)
    assert take_not_kept() == 3
