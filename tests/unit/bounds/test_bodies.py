"""Ten times what docs/security.md allows for bodies that are read and for values of schemas, and the next of them."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable

import pytest
from google.protobuf import descriptor_pb2

from engine.schemas.documents import Documents
from engine.schemas.encoders import encoder
from engine.schemas.schema_text import RegisteredSchema
from engine.schemas.validator import faults
from routes.body_steps import BodyStep, BodySteps, StepKind
from routes.predicate import evaluate, parse
from routes.predicate.bodies import BOUNDS, Body, UnreadableBodyError
from tests.encoded_bodies import SchemaCase
from tests.schema_bodies import framed, nested_message
from tests.unit.bounds.test_received_bytes import MIB, within
from tests.unit.predicate.test_mask import mask
from tests.unit.schemas.test_documents import Schemas, avro, reason, text

SELF = json.dumps({"type": "record", "name": "R", "fields": [{"name": "next", "type": ["null", "R"]}]})
DEPTHS = [10 * BOUNDS.depth, 100_000]


def json_of(depth: int) -> bytes:
    return b'{"a":' * depth + b"5" + b"}" * depth


def xml_of(depth: int) -> bytes:
    return b"<a>" * depth + b"</a>" * depth


BEYOND = {
    "large JSON": b'{"a":5}'.ljust(10 * BOUNDS.size),
    "large XML": b"<a>5</a>".ljust(10 * BOUNDS.size),
    **{f"JSON {depth} deep": json_of(depth) for depth in DEPTHS},
    **{f"XML {depth} deep": xml_of(depth) for depth in DEPTHS},
}


@pytest.mark.parametrize("name", BEYOND)
def test_a_body_of_ten_times_the_limits_has_no_values(name: str) -> None:
    asked = [parse(text) for text in ("msg.body.a = 5", "xpath('/a') = '5'")]
    with within(2):
        body = Body(BEYOND[name])
        assert [evaluate(each, lambda _: None, body) for each in asked] == [None, None]
    assert evaluate(asked[0], lambda _: None, Body(b'{"a":5}')) is True
    assert evaluate(asked[1], lambda _: None, Body(b"<a>5</a>")) is True


@pytest.mark.parametrize("name", BEYOND)
def test_a_body_of_ten_times_the_limits_is_neither_masked_nor_converted(name: str) -> None:
    hidden = mask("msg.body.a")
    steps = [BodySteps((BodyStep(kind),)) for kind in (StepKind.XML_TO_JSON, StepKind.JSON_TO_XML)]
    with within(2):
        assert hidden.body(BEYOND[name]) is None
        assert all("could not be applied: " in (each.fault(BEYOND[name]) or "") for each in steps)
    assert steps[0].body(b"<a>5</a>") == b'{"a":"5"}'
    assert hidden.body(b'{"a":5}') == b'{"a":"***"}'


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("opening", [b"[", b'{"a":'])
def test_a_document_for_a_json_schema_1000_deep_is_unreadable(depth: int, opening: bytes) -> None:
    with within(2), pytest.raises(UnreadableBodyError, match="nested more than 100 deep"):
        faults("true", opening * depth + b"1" + (b"]" if opening == b"[" else b"}") * depth)
    with within(2), pytest.raises(UnreadableBodyError, match="the body has more than 1,048,576 bytes"):
        faults("true", b'"' + b"a" * 10 * MIB + b'"')
    assert faults('{"type": "object"}', b"{}") == []


@pytest.mark.parametrize("depth", DEPTHS)
def test_an_avro_value_1000_deep_is_unreadable(depth: int) -> None:
    documents = avro(json.loads(SELF))
    with within(2):
        assert "nested more than 100 deep" in reason(documents, b"\x02" * depth + b"\0")
    assert text(documents, b"\x02\0") == '{"next":{"next":null}}'


def test_an_avro_value_with_ten_times_the_items_is_unreadable() -> None:
    documents = avro({"type": "array", "items": "null"})
    # 100,000 items of no bytes.
    with within(2):
        assert "more items than the value has bytes" in reason(documents, b"\xc0\x9a\x0c\0")
    assert text(documents, b"\x04\0") == "[null,null]"


@pytest.mark.parametrize("depth", [10 * BOUNDS.depth, 10_000])
def test_a_protobuf_value_1000_deep_is_unreadable(depth: int) -> None:
    file = descriptor_pb2.FileDescriptorProto(name="default", syntax="proto3")
    kind = file.message_type.add(name="Node")
    kind.field.add(name="next", number=1, label=1, type=11, type_name=".Node")
    schema = RegisteredSchema("PROTOBUF", b64encode(file.SerializeToString()).decode())
    documents = Documents(Schemas(schema))
    content = nested_message(depth, 1)
    with within(2):
        assert "the bytes are not a valid PROTOBUF value" in reason(documents, b"\0" + content)
    assert documents.document(framed(0, b"\0" + nested_message(2, 1))).content == b'{"next":{"next":{}}}'


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("made", [json_of, xml_of])
def test_a_body_1000_deep_is_not_encoded(made: Callable[[int], bytes], depth: int) -> None:
    encoding = encoder("AVRO", SchemaCase(SELF))
    with within(2), pytest.raises(ValueError, match=r"100 deep|is not JSON"):
        encoding.encode(made(depth), from_xml=False)
    assert encoding.encode(b'{"next": null}', from_xml=False) == b"\0"
