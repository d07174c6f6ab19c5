"""Messages without content as JMS clients send them over AMQP 1.0: each stays what its sender made of it.

The bytes are those that a broker delivered to the bridge, with Qpid JMS 2.7, Artemis' client and OpenWire as senders.
"""

from __future__ import annotations

import pytest

from engine.connectors.amqp.annotations import DESTINATION
from engine.connectors.amqp.codec.sections import DATA, VALUE, Sections, encode_sections
from engine.connectors.amqp.codec.values import AmqpMap, Byte, Char, Short
from engine.connectors.amqp.inbound import JmsMappingInbound
from engine.connectors.amqp.traits import TRAITS
from engine.connectors.amqp.transformer_settings import TransformerSettings
from engine.connectors.products import ARTEMIS, BROKER_J, CLASSIC, RABBITMQ, Product
from engine.message import BodyType

_MARKS = "005370c0020141005372c12904a30e782d6f70742d6a6d732d646573745100a312782d6f70742d6a6d732d6d73672d7479706551"
_TO = "a112636173655f616d71705f315f333232343334"
_QPID = "005373d0000000590000000aa12f49443a31663039356233662d356230342d343335342d383433372d3533316134613862383961633a"
_TEXT = f"{_MARKS}05{_QPID}313a323a312d3140{_TO}40404040404083000001a20bbc0fca"
_PLAIN = f"{_MARKS}00{_QPID}313a323a332d3140{_TO}40404040404083000001a20bbc18ea"
_BYTES = (
    f"{_MARKS}03005373d0000000720000000aa12f49443a31663039356233662d356230342d343335342d383433372d3533316134613862383961633a"
    f"313a323a342d3140{_TO}404040a3186170706c69636174696f6e2f6f637465742d73747265616d404083000001a20bbc1d41005375a000"
)
_CORE = (
    f"{_MARKS}00005373d0000000510000000aa12749443a32346364633866322d653762632d313166312d383030332d303266633030303030303031"
    "40a112636173655f616d71705f355f36383136393640404040404083000001a20bb9fddd"
    "005374c11502a1114a4d535844656c6976657279436f756e7440"
)
_OPENWIRE = (
    "005370c0020141005372c11302a30e782d6f70742d6a6d732d646573745100"
    "005373d0000000550000000aa12349443a766d2d34313236312d313739353439333137363633382d313a313a323a333a3140"
    "a11a71756575653a2f2f636173655f616d71705f355f39393139393140404040404083000001a20bbbaf06"
)


@pytest.mark.parametrize(
    ("product", "encoded", "kind", "types"),
    [
        pytest.param(BROKER_J, f"{_TEXT}005377a100", BodyType.TEXT, "", id="Qpid JMS, empty text"),
        pytest.param(BROKER_J, f"{_TEXT}00537740", BodyType.TEXT, "null", id="Qpid JMS, text with null"),
        pytest.param(BROKER_J, _PLAIN, BodyType.TEXT, "none", id="Qpid JMS, message without a body"),
        pytest.param(RABBITMQ, f"{_PLAIN}005375a000", BodyType.TEXT, "none", id="Qpid JMS, the same at RabbitMQ"),
        pytest.param(BROKER_J, f"{_PLAIN}00537740", BodyType.TEXT, "none", id="the same with null as its body"),
        pytest.param(BROKER_J, _BYTES, BodyType.BYTES, "", id="Qpid JMS, empty bytes"),
        pytest.param(ARTEMIS, _CORE, BodyType.TEXT, "none", id="Artemis' client, message without a body"),
        pytest.param(CLASSIC, f"{_OPENWIRE}005377a100", BodyType.TEXT, "", id="OpenWire, empty text"),
        pytest.param(CLASSIC, f"{_OPENWIRE}00537740", BodyType.TEXT, "null", id="OpenWire, text with null"),
        pytest.param(CLASSIC, _OPENWIRE, BodyType.TEXT, "none", id="OpenWire, message without a body"),
        pytest.param(CLASSIC, f"{_OPENWIRE}005375a000", BodyType.BYTES, "", id="OpenWire, empty bytes"),
    ],
)
def test_a_message_without_content_keeps_its_kind(product: Product, encoded: str, kind: BodyType, types: str) -> None:
    transformer = JmsMappingInbound(TransformerSettings(), TRAITS[product])
    message = transformer.to_message(bytes.fromhex(encoded), 0, "queue:orders", "plant")
    assert (message.body, message.body_type, message.body_types) == (b"", kind, types)
    assert not [name for name in message.properties if name.endswith("_ERROR")]


def test_a_plain_message_with_content_is_read_by_its_body() -> None:
    content = bytes.fromhex(f"{_PLAIN}005375a00101")
    message = JmsMappingInbound(TransformerSettings()).to_message(content, 0, "queue:orders", "plant")
    assert (message.body, message.body_type) == (b"\x01", BodyType.BYTES)


@pytest.mark.parametrize(("body", "content"), [(VALUE, None), (DATA, b""), (None, None)])
def test_other_clients_messages_are_read_by_the_table(body: int | None, content: bytes | None) -> None:
    encoded = encode_sections(Sections(body=body, content=content))
    message = JmsMappingInbound(TransformerSettings(), TRAITS[CLASSIC]).to_message(encoded, 0, "queue:orders", "plant")
    assert message.body_type is (BodyType.OBJECT if body == VALUE else BodyType.BYTES)


def test_values_of_openwire_bodies_keep_their_types() -> None:
    marks = AmqpMap([(DESTINATION, Byte(0))])
    pairs = AmqpMap([("n", Short(7)), ("c", Char("x"))])
    transformer = JmsMappingInbound(TransformerSettings(), TRAITS[CLASSIC])
    for content, types in ((pairs, "n=short,c=char"), ([Short(7), Char("x")], "short,char")):
        encoded = encode_sections(Sections(message_annotations=marks, body=VALUE, content=content))
        assert transformer.to_message(encoded, 0, "queue:orders", "plant").body_types == types
