"""Kafka records as messages: every row of the table in docs/connectors/kafka.md, and all styles of headers."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import permutations
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.connectors.kafka import message as kafka_message
from engine.connectors.kafka.message import HOPS, RecordConverter, SourceRecord, as_text
from engine.connectors.kafka.settings import KafkaSourceConfig, MessageType
from engine.connectors.kafka.system import SYSTEM
from engine.explain.explanation import published_headers
from engine.limits import MOST_HEADERS, excess
from engine.message import BodyType, Message, Record
from engine.property_names import take_not_kept
from engine.record import LONGEST_KEY, key_text
from engine.trace_context import of_properties
from routes.keys.pattern import DEFAULT_KEY_PATTERN
from routes.model import HeaderStyle
from routes.properties import JmsType, Property
from routes.targets import KAFKA_TOPIC, Reference, Template

if TYPE_CHECKING:
    from collections.abc import Sequence

SOURCE = KafkaSourceConfig(
    name="in", type=SYSTEM, destinations=("t",), address=Template(("topic:kafka.", Reference(KAFKA_TOPIC)))
)
PLACE = {"JMS_Kafka_Topic", "JMS_Kafka_Partition", "JMS_Kafka_Offset", "JMS_Kafka_Key"}


def read(record: Record, source: KafkaSourceConfig = SOURCE, timestamp: int = 1000) -> tuple[Message, str | None]:
    return RecordConverter(source, "b1").message(SourceRecord(record, "t", 2, 7, timestamp))


def plain(*headers: tuple[str, bytes | None], key: bytes | None = None, value: bytes | None = b"x") -> Record:
    return Record(key, value, headers)


def test_a_record_without_headers_gets_what_jms_asks_for() -> None:
    message, fault = read(plain(key=b"k"))
    assert fault is None
    assert message.headers == {
        "JMSDestination": "topic:kafka.t",
        "JMSMessageID": "ID:t:2:7",
        "JMSCorrelationID": "k",
        "JMSDeliveryMode": "PERSISTENT",
        "JMSRedelivered": "false",
        "JMSTimestamp": "1000",
    }
    assert set(message.properties) == PLACE
    assert message.key == "k"


@pytest.mark.parametrize("key", [None, b"", b"\xff"])
def test_a_key_that_is_no_text_is_no_correlation_id(key: bytes | None) -> None:
    message, _ = read(plain(key=key))
    assert "JMSCorrelationID" not in message.headers
    assert message.key == "ID:t:2:7"


def test_a_binary_key_is_a_property_of_type_bytes() -> None:
    assert read(plain(key=b"\xff"))[0].properties["JMS_Kafka_Key"] == Property("/w==", JmsType.BYTES)


def test_a_long_key_is_kept_once_and_orders_its_records_by_its_digest() -> None:
    key = "k" * 900_000
    message, fault = read(plain(key=key.encode()))
    record = message.to_record()
    assert fault is None
    assert record.size < len(key) + 2000
    assert message.properties["JMS_Kafka_Key"] == Property(key, JmsType.STRING)
    assert message.headers["JMSCorrelationID"] == message.key == key_text(key)
    assert re.fullmatch(DEFAULT_KEY_PATTERN, key_text(key))
    other, _ = read(plain(("jms.JMSCorrelationID", b"c"), key=key.encode()))
    assert other.headers["JMSCorrelationID"] == "c"
    assert read(plain(key=b"k" * LONGEST_KEY))[0].headers["JMSCorrelationID"] == "k" * LONGEST_KEY


@pytest.mark.parametrize("name", ["h{}", "jms.p{}", "jms.int.p{}", "same"])
def test_a_record_with_too_many_headers_is_unreadable(name: str) -> None:
    fits, faulty = (
        read(plain(*[(name.format(number), b"1") for number in range(count)])) for count in (MOST_HEADERS, 60_000)
    )
    assert fits[1] is None
    assert excess(fits[0]) is None
    assert faulty[1] == "it has 60,000 headers; a message may have 1,000"


def test_headers_of_a_bridge_do_not_count() -> None:
    before = Message(b"x", properties={f"p{number}": Property("1", JmsType.INT) for number in range(MOST_HEADERS)})
    once, _ = read(before.to_record())
    message, fault = read(once.to_record())
    assert (fault, excess(message)) == (None, None)
    assert before.properties.items() <= message.properties.items()


def test_without_a_time_there_is_no_timestamp() -> None:
    assert "JMSTimestamp" not in read(plain(), timestamp=-1)[0].headers


def test_a_record_with_an_empty_message_id_gets_that_of_its_place() -> None:
    message, _ = read(plain(("jms.JMSMessageID", b"")))
    assert message.headers["JMSMessageID"] == read(plain())[0].headers["JMSMessageID"] != ""


def test_fields_of_the_record_win_but_those_of_its_way_to_the_bridge() -> None:
    stale = [("jms.JMSDestination", b"queue:a"), ("jms.JMSRedelivered", b"true"), ("jms.JMSXDeliveryCount", b"3")]
    own = [("jms.JMSMessageID", b"ID:1"), ("jms.JMSTimestamp", b"5"), ("jms.JMSCorrelationID", b"c")]
    message, _ = read(plain(*stale, *own, key=b"k"))
    assert message.headers == {
        "JMSDestination": "topic:kafka.t",
        "JMSMessageID": "ID:1",
        "JMSCorrelationID": "c",
        "JMSDeliveryMode": "PERSISTENT",
        "JMSRedelivered": "false",
        "JMSTimestamp": "5",
    }


@pytest.mark.parametrize(
    ("name", "spelling"),
    [
        ("region", None),
        ("a-b.c", "a_b_c"),
        ("1st", "_1st"),
        ("NOT", None),
        ("größe", "gr__e"),
        ("\N{PARTY POPPER}", "_"),
    ],
)
def test_other_headers_are_properties_of_their_names_and_known_by_their_spellings(
    name: str, spelling: str | None
) -> None:
    message, _ = read(plain((name, b"v")))
    value = Property("v", JmsType.STRING)
    assert {key: found for key, found in message.properties.items() if key not in PLACE} == {name: value}
    assert message.spellings == ({} if spelling is None else {spelling: name})
    assert message.lookup(name) == message.lookup(spelling or name) == value
    again = Message.from_record(message.to_record())
    assert (again.lookup(spelling or name), again.spellings) == (value, message.spellings)


@pytest.mark.parametrize("order", list(permutations(("trace-id", "trace_id", "trace.id"))))
def test_headers_of_which_one_spelling_could_mean_several_are_told_apart(order: tuple[str, ...]) -> None:
    message, _ = read(plain(*((name, name.encode()) for name in order)))
    for name in order:
        found = message.lookup(name)
        assert found is not None
        assert found.text == name
    assert not message.spellings
    assert read(plain(*((name, b"") for name in order if name != "trace_id")))[0].lookup("trace_id") is None
    headers = message.to_record().headers
    assert [(name, value) for name, value in headers if "trace" in name and name != "jmsbridge.types"] == [
        (f"jms.{name}", name.encode()) for name in order
    ]


@pytest.mark.parametrize(("name", "property_name"), [("", "_"), ("JMSType", "_JMSType"), ("JMS_x", "_JMS_x")])
def test_names_that_are_reserved_or_missing_are_changed_and_counted(name: str, property_name: str) -> None:
    take_not_kept()
    message, _ = read(plain((name, b"v")))
    assert message.properties[property_name] == Property("v", JmsType.STRING)
    assert take_not_kept() == 1


def test_repeated_headers_and_those_without_a_value_reach_kafka_again() -> None:
    given = (("a", b"1"), ("none", None), ("a", b"2"), ("b", None), ("b", b"3"), ("traceparent", b"x"))
    message, _ = read(plain(*given, ("traceparent", b"y")))
    assert [message.lookup(name) for name in ("a", "none", "b")] == [Property("1", JmsType.STRING), None, None]
    for _ in range(2):
        record = message.to_record()
        found = [(name[4:], value) for name, value in record.headers if name in ("jms.a", "jms.b", "jms.none")]
        assert sorted(found, key=str) == sorted(given[:-1], key=str)
        assert [value for name, value in found if name == "a"] == [b"1", b"2"]
        assert [value for name, value in found if name == "b"] == [None, b"3"]
        message, _ = read(record)


def test_a_null_value_stays_null_and_an_empty_one_empty() -> None:
    for wanted in MessageType:
        source = replace(SOURCE, message_type=wanted)
        for value in (None, b""):
            message, fault = read(plain(value=value, key=b"k"), source)
            assert fault is None
            record = message.to_record()
            assert (record.value, record.key) == (value, b"k")
            assert read(record, source)[0].to_record().value == value
            assert (record.header("jmsbridge.body-types") == "null") is (value is None)
            assert Message.from_record(record).body_types == ("null" if value is None else "")


@pytest.mark.parametrize("names", ["a=JMSType", "a=jmsbridge.position", "a=JMS_JmsBridge_ReplySink", "x=y", "x", ""])
def test_a_record_cannot_tell_names_that_belong_to_jms_or_to_bridges(names: str) -> None:
    message, _ = read(plain(("jms.a", b"1"), ("jmsbridge.names", names.encode())))
    assert not message.spellings
    assert read(plain(("jms.a_b", b"1"), ("jmsbridge.names", b"a_b=a-b")))[0].named()["a-b"] == Property("1")


@pytest.mark.parametrize("style", HeaderStyle)
def test_names_and_missing_values_survive_every_style_of_headers(style: HeaderStyle) -> None:
    given = (("int.x", b"1"), ("trace.id", b"2"), ("string.none", None), ("NOT", b"3"))
    record = read(plain(*given))[0].to_record()
    back = as_text(Record(record.key, record.value, tuple(published_headers(record, style, "b", "j:0:1"))))
    for name, value in given:
        assert (f"jms.{name}", value) in back.headers


def test_nobody_but_the_bridge_sets_its_properties() -> None:
    foreign = (("jms.JMS_JmsBridge_ReplySink", b"x"), ("jms.a", b"1"), ("jmsbridge.position", b"t:0:0"))
    message, _ = read(plain(*foreign, key=b"k"))
    assert set(message.properties) == {"a", *PLACE}


@pytest.mark.parametrize(
    ("wanted", "value", "kind", "faulty"),
    [
        (MessageType.AUTO, b"x", BodyType.TEXT, False),
        (MessageType.AUTO, b"\xff", BodyType.BYTES, False),
        (MessageType.AUTO, None, BodyType.TEXT, False),
        (MessageType.TEXT, b"x", BodyType.TEXT, False),
        (MessageType.TEXT, b"\xff", BodyType.BYTES, True),
        (MessageType.BYTES, b"x", BodyType.BYTES, False),
    ],
)
def test_message_types(wanted: MessageType, value: bytes | None, kind: BodyType, faulty: bool) -> None:
    message, fault = read(plain(value=value), replace(SOURCE, message_type=wanted))
    assert (message.body, message.body_type, fault is not None) == (value or b"", kind, faulty)


@pytest.mark.parametrize(
    ("hops", "origins", "before", "kept", "counted"),
    [
        (0, (), None, (), None),
        (0, ("b2",), None, ("b2",), None),
        (0, ("b1",), None, ("b1",), "1"),
        (1, ("b1",), None, (), "1"),
        (1, ("b2", "b1"), None, ("b2",), "1"),
        (1, ("b1", "b1"), None, ("b1", "b1"), "2"),
        (1, ("b1",), "1", ("b1",), "2"),
        (2, ("b1",), "1", (), "2"),
        (2, (), "3", ("b1",), "3"),
        (1, ("b1",), "9" * 5000, (), "1"),
    ],
)
def test_hops_through_this_bridge_are_counted(
    hops: int, origins: tuple[str, ...], before: str | None, kept: Sequence[str], counted: str | None
) -> None:
    """What may not come again keeps this bridge as its origin, so that the router leaves it out."""
    properties = {} if before is None else {HOPS: Property(before, JmsType.INT)}
    record = Message(b"x", properties=properties, origins=origins).to_record()
    message, _ = read(record, replace(SOURCE, hops=hops))
    found = message.properties.get(HOPS)
    assert message.origins == tuple(kept)
    assert (found.text if found else None) == counted


def test_an_address_of_headers_that_are_not_there_is_a_fault() -> None:
    source = replace(SOURCE, address=Template(("queue:", Reference("region"))))
    assert read(plain(("jms.region", b"eu")), source)[0].headers["JMSDestination"] == "queue:eu"
    message, fault = read(plain(), source)
    assert fault is not None
    assert "${msg.header.region}" in fault
    assert "JMSDestination" not in message.headers


FIELDS = {"JMSMessageID": "ID:1", "JMSType": "t", "JMSPriority": "4", "JMSTimestamp": "12345678901"}
VALUES: dict[JmsType, st.SearchStrategy[str]] = {
    JmsType.BOOLEAN: st.sampled_from(["true", "false"]),
    JmsType.BYTE: st.integers(-(2**7), 2**7 - 1).map(str),
    JmsType.SHORT: st.integers(-(2**15), 2**15 - 1).map(str),
    JmsType.INT: st.integers(-(2**31), 2**31 - 1).map(str),
    JmsType.LONG: st.integers(-(2**63), 2**63 - 1).map(str),
    JmsType.FLOAT: st.floats(width=32).map(lambda value: Property.of(value).text),
    JmsType.DOUBLE: st.floats().map(lambda value: Property.of(value).text),
    JmsType.STRING: st.text(st.characters(codec="utf-8")),
}
TYPED = st.sampled_from(sorted(VALUES)).flatmap(lambda kind: VALUES[kind].map(lambda text: Property(text, kind)))


@given(
    st.dictionaries(st.from_regex("[a-z_][A-Za-z0-9_]{0,10}", fullmatch=True), TYPED, max_size=5),
    st.sampled_from(HeaderStyle),
)
def test_a_published_message_comes_back_in_every_style(properties: dict[str, Property], style: HeaderStyle) -> None:
    message = Message(b"x", BodyType.TEXT, FIELDS, properties)
    record = message.to_record()
    published = replace(record, headers=published_headers(record, style, "b1", "journal:0:0"))
    found = Message.from_record(as_text(published))
    assert found.headers == FIELDS
    assert {name: value.type for name, value in found.properties.items()} == {
        name: value.type for name, value in properties.items()
    }
    for name, value in properties.items():
        if value.type is JmsType.FLOAT:
            assert float(found.properties[name].text) == pytest.approx(float(value.text), rel=1e-7, nan_ok=True)
        else:
            assert found.properties[name].text == value.text


def test_typed_headers_of_another_program_bring_their_types() -> None:
    headers = (("jms.int.amount", b"\0\0\0\5"), ("jms.string.JMSType", b"t"), ("jms.short.bad", b"1"))
    found = Message.from_record(as_text(Record(None, b"", headers)))
    assert found.headers == {"JMSType": "t"}
    assert found.properties == {"amount": Property("5", JmsType.INT), "bad": Property("1", JmsType.SHORT)}


def test_a_property_that_is_called_like_a_short_field_stays_one() -> None:
    record = Message(b"", headers={"JMSMessageID": "ID:1"}, properties={"Priority": Property("9")}).to_record()
    assert Message.from_record(as_text(record)).properties == {"Priority": Property("9")}


@given(st.lists(st.tuples(st.text(max_size=20).map(lambda t: "jms." + t), st.none() | st.binary(max_size=12))))
def test_no_headers_make_it_fail(headers: list[tuple[str, bytes | None]]) -> None:
    read(Record(b"k", b"v", tuple(headers)))


OLD, NEW = (f"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b{digit}-01" for digit in "67")


def contexts(*headers: tuple[str, bytes | None], propagates: bool = True) -> dict[str, Property]:
    """The properties of a trace context that a record with these headers has as a message."""
    found = RecordConverter(SOURCE, "b1", propagates=propagates).message(
        SourceRecord(plain(*headers), "t", 2, 7, 1000)
    )[0]
    return {name: found.properties[name] for name in ("traceparent", "tracestate") if name in found.properties}


def test_the_trace_context_of_an_agent_stands_before_what_the_message_came_with() -> None:
    published = (("jms.traceparent", OLD.encode()), ("jms.tracestate", b"a=1"), ("traceparent", OLD.encode()))
    read_on = (*published, ("traceparent", NEW.encode()), ("tracestate", b"b=2"))
    assert contexts(*read_on) == {
        "traceparent": Property(NEW, JmsType.STRING),
        "tracestate": Property("b=2", JmsType.STRING),
    }
    assert contexts(*published) == {"traceparent": Property(OLD, JmsType.STRING)}, "its state is of the other context"


@pytest.mark.parametrize("style", HeaderStyle)
def test_a_trace_context_goes_to_kafka_and_back_in_every_style(style: HeaderStyle) -> None:
    message = Message(b"x", headers={"JMSMessageID": "ID:1"}, properties={"traceparent": Property(OLD)})
    record = message.to_record(of_properties(message.properties))
    headers = published_headers(record, style, "b2", "journal:0:0")
    assert ("traceparent", OLD.encode()) in headers
    assert contexts(*headers) == {"traceparent": Property(OLD, JmsType.STRING)}


def test_an_invalid_trace_context_is_a_property_like_any() -> None:
    headers = (("jms.traceparent", OLD.encode()), ("traceparent", b"hello"))
    assert contexts(*headers) == {"traceparent": Property(OLD)}
    assert contexts(*headers[1:]) == {"traceparent": Property("hello", JmsType.STRING)}


def test_without_propagation_headers_stand_behind_properties_as_any_other() -> None:
    headers = (("jms.traceparent", OLD.encode()), ("traceparent", NEW.encode()))
    assert contexts(*headers, propagates=False) == {"traceparent": Property(OLD)}


def test_a_long_header_name_does_not_stay_in_memory() -> None:
    known = kafka_message._known_identifier
    known.cache_clear()
    assert kafka_message._identifier("a-" * 51) == "a_" * 51
    assert known.cache_info().currsize == 0
    assert kafka_message._identifier("a-b") == "a_b"
    assert known.cache_info().currsize == 1
