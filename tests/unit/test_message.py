"""The canonical message as a Kafka record: what stands in it, and what is read of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.message import BODY, BODY_TYPES, LARGE_BYTES, SIZE, TYPES, BodyType, Message, Record
from engine.record import LONGEST_KEY
from routes.properties import JmsType, Property

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


def test_types_of_a_body_stand_beside_those_of_properties() -> None:
    message = Message(b'{"a":1}', BodyType.MAP, properties={"p": Property("1", JmsType.INT)}, body_types="a=short")
    record = message.to_record()
    assert record.headers == (("jms.p", b"1"), (TYPES, b"p=int"), (BODY, b"map"), (BODY_TYPES, b"a=short"))
    assert Message.from_record(record) == message


def test_a_body_that_says_everything_has_no_such_header() -> None:
    assert Message(b"x").to_record().header(BODY_TYPES) is None
    assert Message.from_record(Record(None, b"x", ())).body_types == ""


def test_a_record_that_only_its_key_makes_large_tells_its_size() -> None:
    body = b"x" * (LARGE_BYTES - 2 * LONGEST_KEY)
    record = Message(body, headers={"JMSCorrelationID": "x" * LONGEST_KEY}).to_record()
    others = sum(len(name) + len(value or b"") for name, value in record.headers if name != SIZE) + len(body)
    size = others + LONGEST_KEY
    assert others < LARGE_BYTES < size
    assert record.header(SIZE) == str(size)


@pytest.mark.parametrize("field", ["JMSXGroupID", "JMSCorrelationID", "JMSMessageID"])
def test_a_long_id_is_not_repeated_as_the_key(field: str) -> None:
    one, same, other = (Message(headers={field: "x" * 900_000 + last}) for last in ("1", "1", "2"))
    assert one.to_record().size < 900_000 + 1000
    assert Message.from_record(one.to_record()).headers[field] == one.headers[field]
    assert one.key == same.key != other.key
    assert one.key is not None
    assert len(one.key) < 100
    assert Message(headers={field: "x" * LONGEST_KEY}).key == "x" * LONGEST_KEY


def test_each_text_without_utf_8_becomes_a_question_mark() -> None:
    record = Message(headers={"JMSType": "a\ud800"}, properties={"p": Property("\ud800b", JmsType.STRING)}).to_record()
    assert record.headers[:2] == (("jms.JMSType", b"a?"), ("jms.p", b"?b"))


def test_the_types_of_another_message_with_these_names_are_others() -> None:
    for kind in (JmsType.INT, JmsType.LONG, None):
        types = Message(properties={"p": Property("1", kind)}).to_record().header(TYPES)
        assert types == (None if kind is None else f"p={kind}")


def test_a_header_without_a_value_is_none() -> None:
    assert Message.from_record(Record(None, b"x", ((BODY_TYPES, None),))).body_types == ""


@given(TEXT, st.sampled_from(BodyType), st.binary(max_size=20))
def test_types_of_a_body_come_back(types: str, kind: BodyType, body: bytes) -> None:
    message = Message(body, kind, body_types=types)
    assert Message.from_record(message.to_record()) == message


def test_a_header_without_a_value_is_not_found_under_another_name() -> None:
    own = {"trace-id": Property("1"), "": Property("2")}
    there = Message(properties=own, spellings={"trace_id": "trace-id"}, extra=(("trace_id", None),))
    assert there.lookup("trace_id") is None
    other = Message(properties=own, spellings={"trace_id": "trace-id"})
    assert [other.lookup(name) for name in ("trace_id", "trace.id")] == [Property("1"), None]
