"""Checks of documents against a JSON Schema: paths, keywords, exact numbers, bounds, and schemas that are refused."""

from __future__ import annotations

import json
import socket
import time
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft4Validator, Draft202012Validator

from engine.schemas.validator import faults
from engine.schemas.value_source import InvalidSchemaError
from routes.predicate.bodies import UnreadableBodyError

DRAFT_4 = Draft4Validator.META_SCHEMA["$schema"]
NUMBERS = st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**6), max_value=10**6, places=4)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["", "1", "null", "a"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=6,
)
KEYWORDS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["null", "boolean", "integer", "number", "string", "array", "object"]),
        "minimum": st.integers(-2, 2),
        "minLength": st.integers(0, 2),
        "maxItems": st.integers(0, 2),
        "uniqueItems": st.booleans(),
        "const": VALUES,
        "enum": st.lists(VALUES, min_size=1, max_size=3),
        "required": st.lists(st.sampled_from("ab"), unique=True),
    },
)
SCHEMAS: st.SearchStrategy[dict[str, Any]] = st.recursive(
    KEYWORDS,
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "items": inner,
            "properties": st.fixed_dictionaries({"a": inner}),
            "anyOf": st.lists(inner, min_size=1, max_size=2),
            "not": inner,
        },
    ),
    max_leaves=4,
)


def found(schema: object, document: str) -> list[str]:
    return faults(json.dumps(schema), document.encode())


def test_a_fault_names_the_path_as_routes_spell_it_and_the_keyword() -> None:
    schema = {
        "required": ["id"],
        "properties": {
            "odd name": {"minimum": 3},
            "lines": {"items": {"properties": {"amount": {"type": "number"}}}},
        },
    }
    assert found(schema, '{"odd name": 2, "lines": [{"amount": 1}, {"amount": "x"}]}') == [
        "msg.body does not fit 'required'",
        "msg.body.\"odd name\" does not fit 'minimum'",
        "msg.body.lines[1].amount does not fit 'type'",
    ]
    assert found(schema, '\ufeff{"id": 1}') == []


def test_three_faults_are_named_and_the_others_counted() -> None:
    assert found({"items": {"type": "string"}}, "[4, 3, 2, 1, 0]") == [
        "msg.body[0] does not fit 'type'",
        "msg.body[1] does not fit 'type'",
        "msg.body[2] does not fit 'type'",
        "and 2 more",
    ]
    assert len(found({"items": {"type": "string"}}, "[2, 1, 0]")) == 3
    assert found({"minimum": 5, "multipleOf": 2}, "3") == [
        "msg.body does not fit 'minimum'",
        "msg.body does not fit 'multipleOf'",
    ]


@pytest.mark.parametrize(
    ("schema", "document", "keyword"),
    [
        ({"const": 0.1}, "0.10", None),
        ({"const": 1}, "true", "const"),
        ({"enum": [9007199254740993]}, "9007199254740992", "enum"),
        ({"maximum": 0.3}, "0.30000000000000000001", "maximum"),
        ({"type": "integer"}, "1.0", None),
        ({"type": "integer"}, "1e999999999", None),
        ({"type": "integer"}, "1e-999999999", "type"),
        ({"type": "number"}, "true", "type"),
        ({"multipleOf": 0.01}, "12.50", None),
        ({"multipleOf": 0.01}, "12.505", "multipleOf"),
        ({"multipleOf": 7}, "7e999999999", None),
        ({"multipleOf": 7}, "1e999999999", "multipleOf"),
        ({"multipleOf": 7}, "7e-999999999", "multipleOf"),
        ({"multipleOf": 7}, "0e-999999999", None),
        ({"minLength": 2.0}, '"a"', "minLength"),
        ({"uniqueItems": True}, "[1, 1.0]", "uniqueItems"),
        ({"uniqueItems": True}, "[0, -0.0]", "uniqueItems"),
        ({"uniqueItems": True}, '[{"a": 1, "b": [true]}, {"b": [true], "a": 10e-1}]', "uniqueItems"),
        ({"uniqueItems": True}, '[1, true, "1", null, "null", 0, false, [1], {"1": 1}]', None),
        ({"format": "date"}, '"never"', None),
        ({"$schema": DRAFT_4, "minimum": 3, "exclusiveMinimum": True}, "3", "minimum"),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"type": "string"}}}, "1", "type"),
        (False, "1", "false"),
        (True, "1", None),
    ],
)
def test_what_fits(schema: object, document: str, keyword: str | None) -> None:
    assert found(schema, document) == ([f"msg.body does not fit '{keyword}'"] if keyword else [])


@given(SCHEMAS, VALUES)
def test_a_document_fits_as_the_library_says(schema: dict[str, Any], value: object) -> None:
    assert (found(schema, json.dumps(value)) == []) == Draft202012Validator(schema).is_valid(value)


@given(NUMBERS, NUMBERS.filter(lambda number: number > 0), st.integers(-1000, 1000))
def test_multiples_are_exact(value: Decimal, step: Decimal, times: int) -> None:
    schema = f'{{"multipleOf": {step:f}}}'
    is_multiple = (Fraction(value) / Fraction(step)).denominator == 1
    assert (faults(schema, f"{value:f}".encode()) == []) == is_multiple
    assert faults(schema, f"{step * times:f}".encode()) == []


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ("{", "the schema is not JSON"),
        ("7", "$ does not fit 'type'"),
        ("[" * 100_000, "the schema is not JSON"),
        ('{"minLength": -1}', "$.minLength does not fit 'minimum'"),
        ('{"maximum": 1e99999999999999999999}', "too large an exponent"),
        ('{"$schema": "urn:other"}', "the draft 'urn:other'"),
        ('{"$schema": 7}', "the draft 7"),
        ('{"$ref": "#/$defs/missing"}', "'#/$defs/missing', which leads to nothing in it"),
        ('{"items": {"$ref": "other.json"}}', "'other.json', which leads to nothing in it"),
        ('{"pattern": "\\\\p{L}"}', "$.pattern does not fit 'format'"),
        ('{"patternProperties": {"(": {}}}', "$.patternProperties does not fit 'format'"),
        ('{"pattern": "a{99999999999}"}', "a pattern that cannot be used"),
        ('{"$ref": "#"}', "refers to itself without end"),
    ],
)
def test_a_schema_that_cannot_be_used_is_refused(schema: str, reason: str) -> None:
    with pytest.raises(InvalidSchemaError) as raised:
        faults(schema, b"1")
    assert reason in str(raised.value)


def test_a_pattern_of_an_old_draft_is_found_with_a_document() -> None:
    with pytest.raises(InvalidSchemaError, match="the pattern '\\('"):
        found({"$schema": DRAFT_4, "patternProperties": {"(": {}}}, '{"a": 1}')


def test_a_reference_to_a_part_with_an_id_is_within_the_document() -> None:
    schema = {
        "$id": "http://host/order.json",
        "$ref": "line.json",
        "$defs": {"line": {"$id": "line.json", "type": "string"}},
        # Not a reference, but the name of a property.
        "properties": {"$ref": {"type": "string"}},
    }
    assert found(schema, "1") == ["msg.body does not fit 'type'"]


def test_other_documents_are_never_fetched() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        with pytest.raises(InvalidSchemaError):
            found({"$ref": f"http://127.0.0.1:{server.getsockname()[1]}/line.json"}, "1")
        with pytest.raises(TimeoutError):
            server.accept()


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (b"{", "the body is not JSON"),
        (b"NaN", "the body is not JSON"),
        (b'"\xff"', "the body is not JSON"),
        (b"[" * 101 + b"]" * 101, "nested more than 100 deep"),
        (b'"' + b"a" * (1 << 20) + b'"', "the body has more than 1,048,576 bytes"),
        (b"1e99999999999999999999", "too large an exponent"),
        (b"1" * 1_001, "more than 1,000 digits"),
    ],
)
def test_a_document_beyond_the_bounds_is_unreadable(document: bytes, reason: str) -> None:
    with pytest.raises(UnreadableBodyError, match=reason):
        faults("true", document)


def test_unique_elements_are_not_compared_with_each_other() -> None:
    def seconds(count: int) -> float:
        document = json.dumps([{"a": number} for number in range(count)])
        begun = time.process_time()
        assert found({"uniqueItems": True}, document) == []
        return time.process_time() - begun

    # Comparing each with each would take a hundred times as long; the least of several is undisturbed by other work.
    few, many = (min(seconds(count) for _ in range(5)) for count in (2_000, 20_000))
    assert many < 50 * few


def test_half_a_character_in_a_name_is_replaced() -> None:
    assert found({"additionalProperties": False}, '{"\\ud800": 1}') == ["msg.body does not fit 'additionalProperties'"]
    assert found({"additionalProperties": {"type": "null"}}, '{"\\ud800": 1}') == [
        "msg.body.\"\ufffd\" does not fit 'type'"
    ]
