"""Encoders of JSON bodies: their values are those of the libraries, and faults say where and what."""

from __future__ import annotations

import json
import time
from random import Random

import pytest

from engine.schemas.body_json import UnfitBodyError
from engine.schemas.encoders import encoder
from engine.schemas.value_source import InvalidSchemaError
from tests.encoded_bodies import AvroCases, ProtobufCases, SchemaCase, written
from tests.encoder_examples import AVRO_EXAMPLES, HOSTILE, ORDER, PROTOBUF_EXAMPLES, SHOP


@pytest.mark.parametrize("seed", range(300))
def test_a_body_becomes_the_value_that_a_library_makes(seed: int) -> None:
    cases = AvroCases(Random(seed))
    made = encoder("AVRO", SchemaCase(json.dumps(cases.schema)))
    for _ in range(10):
        body, expected = cases.case()
        assert made.encode(written(body), from_xml=False) == expected, (cases.schema, body)


@pytest.mark.parametrize("seed", range(300))
def test_a_body_becomes_the_message_that_the_library_makes(seed: int) -> None:
    cases = ProtobufCases(Random(seed))
    made = encoder("PROTOBUF", SchemaCase(cases.schema), cases.message)
    for _ in range(10):
        body, expected = cases.case()
        # A library writes keys and values in maps that are defaults, too; readers take both for the same.
        assert cases.read(made.encode(written(body), from_xml=False)) == expected, body


def outcome(kind: str, schema: str, body: bytes, from_xml: bool) -> bytes | str:
    try:
        return encoder(kind, SchemaCase(schema)).encode(body, from_xml=from_xml)
    except UnfitBodyError as error:
        return str(error)


@pytest.mark.parametrize(("body", "from_xml", "expected"), AVRO_EXAMPLES)
def test_an_avro_value_is_made_or_refused_with_its_place(body: str, from_xml: bool, expected: bytes | str) -> None:
    assert outcome("AVRO", ORDER, body.encode(), from_xml) == expected


@pytest.mark.parametrize(("body", "from_xml", "expected"), PROTOBUF_EXAMPLES)
def test_a_message_is_made_or_refused_with_its_place(body: str, from_xml: bool, expected: bytes | str) -> None:
    assert outcome("PROTOBUF", SHOP, body.encode(), from_xml) == expected


@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_no_body_takes_long_or_gives_a_long_reason(number: int) -> None:
    for kind, schema in (("AVRO", ORDER), ("PROTOBUF", SHOP)):
        begin = time.process_time()
        found = outcome(kind, schema, HOSTILE[number], from_xml=number % 2 == 0)
        assert time.process_time() - begin < 20
        assert isinstance(found, bytes) or len(found) < 10_000


def test_defaults_do_not_make_a_value_larger_without_end() -> None:
    item = {"type": "record", "name": "Item", "fields": [{"name": "text", "type": "string", "default": "x" * 10_000}]}
    found = outcome("AVRO", json.dumps({"type": "array", "items": item}), b"[" + b"{}," * 10_000 + b"{}]", False)
    assert found == "the body has more than 16,777,216 bytes as Avro"


@pytest.mark.parametrize(
    ("kind", "schema", "message", "reason"),
    [
        ("JSON", "{}", "", "bodies cannot be encoded with a schema of JSON"),
        ("AVRO", "{", "", "is not an Avro schema"),
        ("AVRO", '{"type": "record", "name": "A", "fields": [{"name": "a", "type": "A"}]}', "", "it has no values"),
        ("PROTOBUF", "AAAA", "", "cannot be used"),
        ("PROTOBUF", 'syntax = "proto3";', "", "only the router compiles"),
        ("PROTOBUF", SHOP, "shop.Other", "has no message 'shop.Other'"),
    ],
)
def test_a_schema_that_cannot_be_used_is_refused(kind: str, schema: str, message: str, reason: str) -> None:
    with pytest.raises(InvalidSchemaError, match=reason):
        encoder(kind, SchemaCase(schema), message)


def test_a_schema_may_refer_to_another() -> None:
    class Reference:
        name = "shop.Line"
        schema = SchemaCase('{"type": "record", "name": "shop.Line", "fields": [{"name": "a", "type": "int"}]}')

    made = encoder("AVRO", SchemaCase('{"type": "array", "items": "shop.Line"}', (Reference(),)))
    assert made.encode(b'[{"a": 1}]', from_xml=False) == b"\x02\x02\0"
