"""Qpid Proton as the witness: what it writes is read, and it reads what is written.

Proton has to be compiled; where set-up could not do that, these tests are skipped.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.connectors.amqp.codec.decoding import decode
from engine.connectors.amqp.codec.encoding import encode
from engine.connectors.amqp.codec.sections import decode as decode_sections
from engine.connectors.amqp.codec.sections import encode_sections
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
    UShort,
)
from engine.connectors.amqp.transformer_settings import TransformerSettings
from engine.connectors.amqp.transformers import inbound, outbound
from engine.message import BodyType
from routes.properties import JmsType, Property
from tests.unit.connectors.test_amqp_types import SCALARS, TEXT, same

proton = pytest.importorskip("proton", reason="no Qpid Proton: .venv/bin/pip install python-qpid-proton")

TO_PROTON: dict[type, Any] = {
    UByte: proton.ubyte,
    UShort: proton.ushort,
    UInt: proton.uint,
    ULong: proton.ulong,
    Byte: proton.byte,
    Short: proton.short,
    Int: proton.int32,
    Float: proton.float32,
    Char: proton.char,
    Timestamp: proton.timestamp,
    Symbol: proton.symbol,
}
PROTON_TYPES = st.one_of(*[values for name, values in SCALARS.items()])
PROTON_VALUES = st.recursive(
    PROTON_TYPES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=6), st.dictionaries(TEXT, inner, max_size=4).map(lambda found: AmqpMap(found.items()))
    ),
    max_leaves=10,
)


def as_proton(value: Any) -> Any:
    if type(value) is list:
        return [as_proton(item) for item in value]
    if type(value) is AmqpMap:
        return {as_proton(key): as_proton(item) for key, item in value}
    make = TO_PROTON.get(type(value))
    return value if make is None else make(value)


def same_to_proton(one: Any, other: Any) -> bool:
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(same_to_proton(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same_to_proton, one, other))
    if isinstance(one, memoryview):
        one = bytes(one)
    return type(one) is type(other) and (one == other or (one != one and other != other))


@given(PROTON_VALUES)
def test_proton_reads_what_is_written(value: Any) -> None:
    data = proton.Data()
    data.decode(encode(value))
    data.rewind()
    data.next()
    assert same_to_proton(data.get_object(), as_proton(value))


@given(PROTON_VALUES)
def test_what_proton_writes_is_read(value: Any) -> None:
    data = proton.Data()
    data.put_object(as_proton(value))
    assert same(decode(bytes(data.encode())), value)


@given(st.data())
def test_proton_reads_what_is_written_and_the_other_way(data: st.DataObject) -> None:
    text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=20)
    message = proton.Message(
        id=data.draw(text),
        address=data.draw(text),
        subject=data.draw(text),
        correlation_id=data.draw(st.one_of(text, st.uuids())),
        group_id=data.draw(text),
        durable=data.draw(st.booleans()),
        priority=data.draw(st.integers(0, 9)),
        properties=data.draw(st.dictionaries(text, st.one_of(text, st.booleans(), st.integers(-(2**63), 2**63 - 1)))),
        body=data.draw(st.one_of(text, st.binary(max_size=300), st.lists(text, max_size=3))),
    )
    message.inferred = isinstance(message.body, bytes)
    found = decode_sections(bytes(message.encode()))
    assert found.properties is not None
    assert (found.properties.message_id, found.properties.to) == (message.id, message.address)
    assert found.properties.correlation_id == message.correlation_id
    assert dict(found.application_properties or ()) == message.properties
    assert found.content == message.body
    again = proton.Message()
    again.decode(encode_sections(found))
    for name in ("id", "address", "subject", "correlation_id", "group_id", "durable", "priority", "properties", "body"):
        value = getattr(again, name)
        if name == "properties":
            value = value or {}
        assert (bytes(value) if isinstance(value, memoryview) else value) == getattr(message, name), name


def test_a_message_that_proton_writes_is_read_by_proton_again() -> None:
    message = proton.Message(
        id=UUID(int=5),
        address="orders",
        subject="order",
        reply_to="replies",
        durable=True,
        priority=7,
        ttl=60,
        body={"id": proton.int32(7), "urgent": True, "note": "für Elise"},
        properties={"region": "emea", "amount": 1.5, "count": proton.short(3)},
        annotations={proton.symbol("x-opt-jms-msg-type"): proton.byte(2)},
    )
    encoded = bytes(message.encode())
    came = inbound(TransformerSettings()).to_message(encoded, 0, "queue:orders", "plant")
    assert came.body_type is BodyType.MAP
    assert came.properties["count"] == Property("3", JmsType.SHORT)
    again = proton.Message()
    again.decode(outbound(TransformerSettings()).encoded(came, "queue/orders", None)[0])
    for name in ("id", "address", "subject", "reply_to", "durable", "priority", "body", "properties"):
        assert getattr(again, name) == getattr(message, name), name
    assert 0 < again.ttl <= 60
