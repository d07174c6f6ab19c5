"""Documents of bodies with a schema: equal to the values that were written, or refused with a reason."""

from __future__ import annotations

import json
import struct
import time
from base64 import b64encode
from random import Random
from typing import Any

import pytest
from google.protobuf import descriptor_pb2
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.schemas.documents import Documents
from engine.schemas.schema_text import RegisteredSchema, SchemaReference
from routes.predicate.bodies import UnreadableBodyError
from tests.schema_bodies import AvroBodies, ProtobufBodies, damaged, framed, read_json

DECIMAL = {"logicalType": "decimal", "precision": 4, "scale": 2}
SEEDS = st.integers(0, (1 << 32) - 1)


class Schemas:
    """Schemas by their ids."""

    def __init__(self, *schemas: RegisteredSchema) -> None:
        self._schemas = schemas

    def schema(self, number: int) -> RegisteredSchema:
        if not 0 <= number < len(self._schemas):
            msg = f"the schema registry knows no schema with the id {number}"
            raise UnreadableBodyError(msg)
        return self._schemas[number]


def avro(schema: Any, *references: SchemaReference) -> Documents:
    return Documents(Schemas(RegisteredSchema("AVRO", json.dumps(schema), references)))


def protobuf(file: descriptor_pb2.FileDescriptorProto) -> Documents:
    text = b64encode(file.SerializeToString()).decode()
    return Documents(Schemas(RegisteredSchema("PROTOBUF", text)))


def text(documents: Documents, value: bytes) -> str:
    return documents.document(framed(0, value)).content.decode()


def reason(documents: Documents, value: bytes, number: int = 0) -> str:
    with pytest.raises(UnreadableBodyError) as raised:
        documents.document(framed(number, value))
    return str(raised.value)


def long(number: int) -> bytes:
    """A number as Avro writes it."""
    left = (number << 1 ^ number >> 63) & ((1 << 64) - 1)
    groups = []
    while left > 0x7F:
        groups.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes((*groups, left))


@given(SEEDS)
@settings(max_examples=300, deadline=None)
def test_avro_values_are_what_was_written(seed: int) -> None:
    drawn = AvroBodies(Random(seed))
    documents = avro(drawn.schema)
    for _ in range(3):
        body, expected = drawn.body(0)
        found = documents.document(body)
        assert found.format == "AVRO"
        assert read_json(found.content) == expected
        for each in damaged(Random(seed), body):
            or_refused(documents, each)


@given(SEEDS)
@settings(max_examples=200, deadline=None)
def test_protobuf_messages_are_what_was_written(seed: int) -> None:
    drawn = ProtobufBodies(Random(seed))
    documents = protobuf(drawn.file)
    for _ in range(3):
        body, expected = drawn.body(0)
        found = documents.document(body)
        assert found.format == "PROTOBUF"
        assert read_json(found.content) == expected
        assert list(json.loads(found.content)) == list(expected)
        for each in damaged(Random(seed), body):
            or_refused(documents, each)


def or_refused(documents: Documents, body: bytes) -> None:
    """Reads a body that may be damaged: there is a document, or a reason."""
    try:
        content = documents.document(body).content
    except UnreadableBodyError:
        return
    json.loads(content)


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        ("float", struct.pack("<f", 0.1), "0.1"),
        ("double", struct.pack("<d", 0.1), "0.1"),
        ("double", struct.pack("<d", float("nan")), "null"),
        ("double", b"\1" + bytes(7), "4.9e-324"),
        ({"type": "bytes", **DECIMAL}, b"\x04\x04\xe2", "12.50"),
        ({"type": "bytes", **DECIMAL}, b"\x02\xfb", "-0.05"),
        ({"type": "bytes", **DECIMAL}, b"\x00", "0.00"),
        ({"type": "bytes", **DECIMAL, "scale": 5}, b"\x02\x01", '"AQ=="'),
        ({"type": "fixed", "name": "F", "size": 1, **DECIMAL}, b"\x01", '"AQ=="'),
        ({"type": "long", "logicalType": "timestamp-millis"}, long(-7), "-7"),
        ({"type": "map", "values": "int"}, long(1) + long(1) + b"a" + long(3) + long(0), '{"a":3}'),
        ({"type": "array", "items": "null"}, long(-2) + long(0) + long(0), "[null,null]"),
    ],
)
def test_an_avro_value(schema: Any, value: bytes, expected: str) -> None:
    assert text(avro(schema), value) == expected


def test_an_avro_schema_that_names_itself_and_others() -> None:
    other = RegisteredSchema("AVRO", json.dumps({"type": "enum", "name": "a.E", "symbols": ["X", "Y"]}))
    fields = [{"name": "e", "type": "E"}, {"name": "next", "type": ["null", "R"]}]
    documents = avro({"type": "record", "name": "R", "namespace": "a", "fields": fields}, SchemaReference("a.E", other))
    assert text(documents, long(1) + long(1) + long(0) + long(0)) == '{"e":"Y","next":{"e":"X","next":null}}'
    assert "nested more than 100 deep" in reason(documents, (long(0) + long(1)) * 200)


@pytest.mark.parametrize(
    ("schema", "value", "told"),
    [
        ("string", long(9) + b"abc", "announce 9 bytes, and 3 are there"),
        ("string", long(-1), "announce -1 bytes"),
        ("string", long(2) + b"\xff\xfe", "not UTF-8"),
        ("long", b"\x80" * 11, "more than 64 bits"),
        ("long", b"\x80", "the bytes end before the AVRO value of the schema with the id 0 does"),
        ("int", long(5) + b"\0", "bytes behind its end"),
        (["null", "int"], long(2), "the choice 2 where there are 2"),
        ({"type": "bytes", **DECIMAL}, long(3) + b"\x7f\xff\xff", "more than 4 digits"),
        ({"type": "bytes", **DECIMAL}, long(90_000) + b"\x7f" * 90_000, "more than 4 digits"),
        ({"type": "array", "items": "null"}, long(1 << 60), "more items than the value has bytes"),
        ({"type": "map", "values": "null"}, long(1 - (1 << 63)) + long(0), "more items than the value has bytes"),
        ({"type": "fixed", "name": "F", "size": 1 << 40}, b"", "the bytes end before"),
        ({"type": "sum"}, b"", "it names the type 'sum', which it does not define"),
        (7, b"", "the schema with the id 0: it has the type 7"),
    ],
)
def test_a_value_that_is_not_valid_has_a_reason(schema: Any, value: bytes, told: str) -> None:
    assert told in reason(avro(schema), value)


def test_a_body_without_a_head_or_a_known_schema_has_a_reason() -> None:
    documents = avro("int")
    for size in range(1, 5):
        with pytest.raises(UnreadableBodyError, match=f"{size} bytes are fewer than"):
            documents.document(bytes(size))
    assert reason(documents, b"", 7) == "the schema registry knows no schema with the id 7"
    unknown = Documents(Schemas(RegisteredSchema("XML", "<x/>")))
    assert reason(unknown, b"") == "the schema with the id 0: it is of the unknown format XML"


def test_a_body_of_json_schema_is_its_document() -> None:
    documents = Documents(Schemas(RegisteredSchema("JSON", "{}")))
    found = documents.document(framed(0, b'{"a": 1.50}'))
    assert (found.format, found.content) == ("JSON", b'{"a": 1.50}')


def test_a_small_body_does_not_become_a_huge_document() -> None:
    fields = [{"name": "a name that makes the document long " * 50, "type": "null"}]
    schema = {"type": "array", "items": {"type": "record", "name": "R", "fields": fields}}
    assert "more than 16,777,216 bytes" in reason(avro(schema), long(9_999) + long(0))
    begun = time.monotonic()
    size = 1 << 20
    assert len(text(avro({"type": "array", "items": "int"}), long(size) + bytes(size) + long(0))) == 2 * size + 1
    assert time.monotonic() - begun < 20


def test_protobuf_of_files_that_import_others_and_extend_messages() -> None:
    field = descriptor_pb2.FieldDescriptorProto
    imported = descriptor_pb2.FileDescriptorProto(name="default", package="shop", syntax="proto2")
    inner = imported.message_type.add(name="Inner")
    inner.field.add(name="text", number=1, label=field.LABEL_REQUIRED, type=field.TYPE_STRING)
    inner.extension_range.add(start=100, end=200)
    file = descriptor_pb2.FileDescriptorProto(
        name="default", package="shop", dependency=["inner.proto", "google/protobuf/timestamp.proto"]
    )
    outer = file.message_type.add(name="Outer")
    for name, kind in (("inner", ".shop.Inner"), ("at", ".google.protobuf.Timestamp")):
        number = len(outer.field) + 1
        outer.field.add(name=name, number=number, label=1, type=field.TYPE_MESSAGE, type_name=kind)
    file.extension.add(name="more", number=100, label=1, type=field.TYPE_STRING, extendee=".shop.Inner")
    texts = [b64encode(each.SerializeToString()).decode() for each in (file, imported)]
    reference = SchemaReference("inner.proto", RegisteredSchema("PROTOBUF", texts[1]))
    documents = Documents(Schemas(RegisteredSchema("PROTOBUF", texts[0], (reference,))))
    value = b"\0\x0a\x08\x0a\x01a\xa2\x06\x02\xff\xff\x12\x02\x08\x07"
    assert text(documents, value) == '{"inner":{"text":"a"},"at":{"seconds":7,"nanos":0}}'
    assert "lacks the required field inner.text" in reason(documents, b"\0\x0a\x00")
    assert "no message with the indexes [1]" in reason(documents, b"\x02\x02")
    assert "indexes of its message are damaged" in reason(documents, b"\x7f")
    lacking = Documents(Schemas(RegisteredSchema("PROTOBUF", texts[0])))
    assert "lacks 'inner.proto', which it imports" in reason(lacking, b"\0")
    assert "only the router compiles" in reason(Documents(Schemas(RegisteredSchema("PROTOBUF", "message M {}"))), b"")
