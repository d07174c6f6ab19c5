"""Where documents do not fit a JSON Schema."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from jsonschema import Draft7Validator

from engine.schemas.validator import faults
from engine.schemas.value_source import InvalidSchemaError
from routes.predicate.bodies import UnreadableBodyError

DRAFT_7 = Draft7Validator.META_SCHEMA["$schema"]


def found(schema: Any, document: str) -> list[str]:
    return faults(json.dumps(schema), document.encode())


ORDER = {
    "$schema": DRAFT_7,
    "type": "object",
    "required": ["id"],
    "properties": {
        "id": {"type": "integer"},
        "lines": {"items": {"properties": {"amount": {"type": "number", "minimum": 0, "multipleOf": 0.01}}}},
        "delivery date": {"type": "string", "format": "date"},
    },
}


@pytest.mark.parametrize(
    ("document", "told"),
    [
        ('{"id": 1.0, "lines": [{"amount": 0.10}], "delivery date": "never"}', []),
        ("{}", ["msg.body does not fit 'required'"]),
        ('{"id": 1.5}', ["msg.body.id does not fit 'type'"]),
        ('{"id": 1, "lines": [{}, {"amount": -1}]}', ["msg.body.lines[1].amount does not fit 'minimum'"]),
        ('{"id": 1, "lines": [{"amount": 0.105}]}', ["msg.body.lines[0].amount does not fit 'multipleOf'"]),
        ('{"id": 1, "delivery date": 7}', ["msg.body.\"delivery date\" does not fit 'type'"]),
        (
            '{"id": "1", "lines": [{"amount": "x"}, {"amount": -0.001}, {"amount": true}]}',
            [
                "msg.body.id does not fit 'type'",
                "msg.body.lines[0].amount does not fit 'type'",
                "msg.body.lines[1].amount does not fit 'minimum'",
                "and 2 more",
            ],
        ),
    ],
)
def test_faults_name_path_and_keyword(document: str, told: list[str]) -> None:
    assert found(ORDER, document) == told


@pytest.mark.parametrize(
    ("schema", "document", "fits"),
    [
        ({"const": 1780921717355446273}, "1780921717355446272", False),
        ({"enum": [100]}, "1e2", True),
        ({"maximum": 0.1}, "0.1000000000000000000000000000000000001", False),
        ({"multipleOf": 3}, "1e999999999", False),
        ({"multipleOf": 4}, "1e999999999", True),
        ({"type": "integer"}, "10e-1", True),
        ({"type": "integer"}, "1e-999999999", False),
        ({"type": "integer"}, "true", False),
        ({"uniqueItems": True}, "[1, 1.0]", False),
        ({"prefixItems": [{"type": "null"}]}, "[7]", False),
        ({"$schema": DRAFT_7, "prefixItems": [{"type": "null"}]}, "[7]", True),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"type": "null"}}}, "7", False),
        (False, "7", False),
    ],
)
def test_numbers_are_exact_and_drafts_are_kept_apart(schema: Any, document: str, fits: bool) -> None:
    assert (found(schema, document) == []) is fits


@pytest.mark.parametrize("reference", ["http://127.0.0.1:1/other.json", "file:///etc/passwd", "#/$defs/none"])
def test_no_other_document_is_fetched(reference: str) -> None:
    with pytest.raises(InvalidSchemaError, match="which is not in it"):
        found({"$ref": reference}, "7")


@pytest.mark.parametrize("text", ["[]", "7", "{", '{"type": 7}', "[" * 100_000])
def test_a_text_that_is_not_a_schema_is_refused(text: str) -> None:
    with pytest.raises(InvalidSchemaError, match="not a JSON Schema"):
        faults(text, b"7")


def test_a_schema_that_refers_to_itself_without_end_is_refused() -> None:
    with pytest.raises(InvalidSchemaError, match="refers to itself"):
        found({"$ref": "#"}, "7")


@pytest.mark.parametrize(
    ("document", "told"),
    [
        (b"{", "not JSON"),
        (b"\xff", "not JSON"),
        (b"NaN", "not finite"),
        (b"1" * 5_000, "more than 1,000 digits"),
        (b"1e99999999999999999999", "not finite"),
        (b"[" * 101 + b"]" * 101, "nested more than 100 deep"),
        (b" " * (1 << 20) + b"7", "more than 1,048,576 bytes"),
    ],
)
def test_a_document_beyond_the_bounds_is_not_read(document: bytes, told: str) -> None:
    with pytest.raises(UnreadableBodyError, match=told):
        faults("true", document)


def test_a_large_document_takes_seconds_at_most() -> None:
    begun = time.monotonic()
    assert found({"items": {"type": "integer"}}, json.dumps(list(range(120_000)))) == []
    assert time.monotonic() - begun < 20
