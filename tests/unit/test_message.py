"""The canonical message as a Kafka record: what stands in it, and what is read of it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from engine.message import BODY, BODY_TYPES, TYPES, BodyType, Message, Record
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


def test_a_header_without_a_value_is_none() -> None:
    assert Message.from_record(Record(None, b"x", ((BODY_TYPES, None),))).body_types == ""


@given(TEXT, st.sampled_from(BodyType), st.binary(max_size=20))
def test_types_of_a_body_come_back(types: str, kind: BodyType, body: bytes) -> None:
    message = Message(body, kind, body_types=types)
    assert Message.from_record(message.to_record()) == message
