"""AMQP messages with zeros, empty names and names that are there twice."""

from __future__ import annotations

from typing import Any

import pytest

from engine.connectors.amqp.codec.sections import VALUE, Header, Properties, Sections, decode, encode_sections
from engine.connectors.amqp.codec.values import AmqpMap, Int, Timestamp, UInt
from engine.connectors.amqp.transformer_settings import TransformerSettings
from engine.connectors.amqp.transformers import inbound, outbound
from engine.message import Message
from routes.properties import Property


def read(sections: Sections, **settings: Any) -> Message:
    return inbound(TransformerSettings(**settings)).to_message(encode_sections(sections), 0, "queue:orders", "plant")


def errors(message: Message) -> dict[str, str]:
    return {name: value.text for name, value in message.properties.items() if name.endswith("_ERROR")}


@pytest.mark.parametrize(
    "sections",
    [
        Sections(Header(ttl=UInt(0))),
        Sections(properties=Properties(absolute_expiry_time=Timestamp(0))),
        Sections(Header(ttl=UInt(5)), properties=Properties(absolute_expiry_time=Timestamp(0))),
    ],
)
def test_a_sender_that_writes_zero_wants_its_message_never_to_expire(sections: Sections) -> None:
    assert "JMSExpiration" not in read(sections, default_ttl_ms=1000).headers
    assert "JMSExpiration" in read(Sections(Header()), default_ttl_ms=1000).headers


def test_entries_of_a_map_with_an_empty_name_or_that_of_another_are_flagged() -> None:
    message = read(Sections(body=VALUE, content=AmqpMap([("", "lost"), ("1", "kept"), (Int(1), "too late")])))
    assert message.body == b'{"1":"kept"}'
    assert errors(message) == {
        "_ERROR": "no JMS value: 'lost', as its name is empty",
        "1_ERROR": "no JMS value: 'too late', as another entry has this name",
    }


def test_a_property_without_a_name_is_flagged() -> None:
    message = read(Sections(application_properties=AmqpMap([("", "lost"), ("a", "kept")])))
    assert message.properties["a"] == Property.of("kept")
    assert "" not in message.properties
    assert errors(message) == {"_ERROR": "no JMS value: 'lost', as its name is empty"}
    assert errors(read(Sections(application_properties=AmqpMap([("", None)])))) == {}


def test_the_largest_delivery_count_is_one_of_jms() -> None:
    most = read(Sections(Header(delivery_count=UInt(2**32 - 1))))
    assert most.headers["JMSXDeliveryCount"] == str(2**31 - 1)


def test_of_properties_whose_names_become_one_the_first_is_sent() -> None:
    message = Message(properties={"a_b": Property.of("first"), "a-b": Property.of("second"), "c": Property.of("other")})
    encoded, _ = outbound(TransformerSettings(name_translator="UnderscoreToDash")).encoded(message, "queue/q", None)
    assert decode(encoded).application_properties == AmqpMap([("a-b", "first"), ("c", "other")])
