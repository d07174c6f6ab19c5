"""Paths by the schema of a route: those that lead to nothing are doubted, and none that a body which fits may have."""

from __future__ import annotations

import json
from base64 import b64encode
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from google.protobuf import descriptor_pb2
from hypothesis import example, given, settings
from hypothesis import strategies as st
from jsonschema import Draft7Validator

from engine.schemas.path_checks import ShapeDoubts, paths_by_schema
from engine.schemas.schema_text import RegisteredSchema
from engine.schemas.shapes import Shape, shape_of
from engine.schemas.validator import faults
from routes.config import lint_text
from routes.errors import Level
from routes.predicate import parse
from routes.predicate.nodes import BodyPath
from routes.schema_names import SchemaKind, SchemaName
from tests.schema_bodies import AvroBodies, ProtobufBodies

if TYPE_CHECKING:
    from collections.abc import Iterator

    from routes.predicate.nodes import PathStep

START = """\
bridge.id=b
source.s.type=stomp
source.s.destinations=queue:q
schema.registry.url=http://127.0.0.1:1
"""
CUSTOMER = {"type": "object", "properties": {"country": {"type": "string"}}, "additionalProperties": False}
LINES = {"type": "array", "items": {"type": "object", "properties": {"sku": {"type": ["string", "null"]}}}}
ORDER = {
    "properties": {
        "customer": {"$ref": "#/$defs/customer"},
        "buyer": {"anyOf": [{"$ref": "#/$defs/customer"}, {"type": "null"}]},
        "amount": {"type": "number"},
        "is_paid": {"type": "boolean"},
        "lines": LINES,
        "next": {"$ref": "#"},
    },
    "$defs": {"customer": CUSTOMER},
}
AMOUNT = {"properties": {"amount": {"type": "number"}}}
CLOSED = {**ORDER, "additionalProperties": False}
AVRO = {
    "type": "record",
    "name": "shop.Order",
    "fields": [
        {"name": "customer", "type": ["null", {"type": "record", "name": "Customer", "fields": [
            {"name": "country", "type": {"type": "enum", "name": "Country", "symbols": ["FR"]}, "aliases": ["land"]},
        ]}]},
        {"name": "notes", "type": {"type": "map", "values": "string"}},
        {"name": "lines", "type": {"type": "array", "items": "long"}},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2}},
        {"name": "next", "type": ["null", "Order"]},
    ],
}  # fmt: skip


def written(base: Path, schema: Any, name: str = "") -> str:
    """The name of a schema, whose file is written: of JSON Schema, unless another name is given."""
    name = name or "json-schema:order.json"
    content = schema if isinstance(schema, bytes) else json.dumps(schema).encode()
    (base / name.partition(":")[2].partition("#")[0]).write_bytes(content)
    return name


def told(lines: str, base: Path) -> list[str]:
    """The warnings about lines behind the first ones, without file and excerpt."""
    found = lint_text(START + lines, base=base, checks=[paths_by_schema]).faults
    assert {fault.level for fault in found} <= {Level.WARNING}
    return [f"{fault.line}:{fault.column}: {fault.message} ({fault.hint})" for fault in found]


def doubted(condition: str, schema: Any, base: Path, name: str = "") -> list[str]:
    """The warnings about a condition, without their places."""
    place = written(base, schema, name)
    lines = f"routes.big.out.topic=t\nroutes.big.in.include={condition}\nroutes.big.in.schema={place}\n"
    return [each.partition(": ")[2] for each in told(lines, base)]


def test_a_name_near_one_of_the_schema_is_told_at_its_place(tmp_path: Path) -> None:
    lines = f"""\
routes.big.in.schema={written(tmp_path, CLOSED)}
routes.big.in.include=msg.address==q AND msg.body.custmer.country = 'FR'
routes.big.in.exclude=msg.body.lines[*].sqku IN ('a')
routes.big.conv.key=msg.body.customer.contry
routes.big.out.topic=t.${{msg.body.customr.country}}
routes.big.out.header.x=${{msg.body."next".amuont}}
routes.big.out.mask=msg.body.lines[*].skus, msg.body.lines[*].sku, msg.body.line
"""
    start = "the schema of route big has no"
    assert told(lines, tmp_path) == [
        f"6:51: {start} custmer (did you mean customer?)",
        f"7:41: {start} lines[*].sqku (did you mean lines[*].sku?)",
        f"8:39: {start} customer.contry (did you mean customer.country?)",
        f"9:35: {start} customr (did you mean customer?)",
        f"10:25: {start} next.amuont (did you mean next.amount?)",
        f"11:39: {start} lines[*].skus (did you mean lines[*].sku?)",
        f"11:77: {start} line (did you mean lines?)",
    ]


@pytest.mark.parametrize(
    ("condition", "schema", "doubt"),
    [
        ("msg.body.zone = 'a'", CLOSED, "no zone (it has customer, buyer, amount, is_paid, lines, next)"),
        ("msg.body.zone = 'a'", {"additionalProperties": False}, "no zone (it has no fields)"),
        ("msg.body.Customer.x IS NULL", ORDER, "no Customer (did you mean customer?)"),
        ("msg.body.buyer.zone = 'a'", ORDER, "no buyer.zone (it has buyer.country)"),
        ("msg.body.next.next.amont > 1", ORDER, "no next.next.amont (did you mean next.next.amount?)"),
        ("msg.body.amuont > 1", {"anyOf": [AMOUNT, {"required": ["x"]}]}, "no amuont (did you mean amount?)"),
        ("msg.body.amuont > 1", {"allOf": [{}, AMOUNT]}, "no amuont (did you mean amount?)"),
        ("msg.body.amuont > 1", {**ORDER, "patternProperties": {"^x": {}}}, "no amuont (did you mean amount?)"),
    ],
)
def test_a_name_that_json_schema_does_not_have(condition: str, schema: Any, doubt: str, tmp_path: Path) -> None:
    assert doubted(condition, schema, tmp_path) == [f"the schema of route big has {doubt}"]


@pytest.mark.parametrize(
    ("condition", "doubt"),
    [
        ("msg.body.customer.country > 5", "customer.country is text {}, and > compares numbers"),
        ("msg.body.customer.country = 5", "customer.country is text {}, never the number 5"),
        ("msg.body.customer.country = -5", "customer.country is text {}, never the number -5"),
        ("NOT 'a' = msg.body.amount", "amount is a number {}, never the text 'a'"),
        ("msg.body.amount <> '5'", "amount is a number {}, never the text '5'"),
        ("msg.body.is_paid = JMSPriority + 1", "is_paid is TRUE or FALSE {}, never arithmetic"),
        ("msg.body.lines[0].sku IN (1, 2)", "lines[0].sku is text {}, and IN asks for numbers"),
        ("msg.body.is_paid IN ('a', 2)", "is_paid is TRUE or FALSE {}, and IN asks for texts or numbers"),
        ("msg.body.amount LIKE '5%'", "amount is a number {}, and LIKE asks for texts"),
        ("msg.body.customer.country BETWEEN 1 AND 2", "customer.country is text {}, and BETWEEN asks for numbers"),
        ("1 < msg.body.customer.country + 1", "customer.country is text {}, and arithmetic asks for numbers"),
        ("msg.body.is_paid AND msg.body.amount", "amount is a number {}, and never TRUE"),
        ("msg.body.customer = 'a'", "customer is an object {}, never the text 'a'"),
        ("msg.body.lines.sku = 'a'", "lines is an array {}, not an object"),
        ("msg.body.customer[0].country = 'a'", "customer is an object {}, not an array"),
    ],
)
def test_a_condition_that_no_value_of_the_schema_meets(condition: str, doubt: str, tmp_path: Path) -> None:
    (found,) = doubted(condition, CLOSED | {"$defs": {"customer": {**CUSTOMER, "type": "object"}}}, tmp_path)
    assert found.startswith("msg.body." + doubt.format("by the schema of route big"))
    assert not found.endswith("()")


@pytest.mark.parametrize(
    ("condition", "schema"),
    [
        ("msg.body.customer.country = 'FR' AND msg.body.amount > 5 AND msg.body.is_paid", CLOSED),
        ("msg.body.lines[-1].sku LIKE 'a%' OR msg.body.lines[*].zone = 5 OR msg.body.amount + 1 > 2", CLOSED),
        ("msg.body.amount IN ('a', 5) OR msg.body.amount NOT IN ('a') OR msg.body.zone IS NULL", CLOSED),
        ("msg.body.zone = 5 OR msg.body.lines[0].zone > 1", ORDER),
        ("msg.body.line2 = 5", {"properties": {"line1": {}}}),
        ("msg.body.zone = 5", {**CLOSED, "patternProperties": {"^z": {}}}),
        ("msg.body.zone = 5", {**CLOSED, "anyOf": [{"properties": {"zone": {}}}, {}]}),
        ("msg.body.zone = 5", {**CLOSED, "dependentSchemas": {"amount": {}}}),
        ("msg.body.custmer = 5", {**ORDER, "if": {"properties": {"custmer": {}}}}),
        ("msg.body.custmer = 5 AND msg.body.zone = 1", {"$ref": "https://elsewhere.example/order.json"}),
        ("msg.body.a = 5", {"properties": {"a": {"anyOf": [{"type": "string"}, {"type": "integer"}]}}}),
        (
            "msg.body.a[0] = 'x'",
            {"properties": {"a": {"prefixItems": [{"type": "string"}], "items": {"type": "null"}}}},
        ),
        ("msg.body.custmer = 5", {"properties": 5}),
        ("msg.body.a.b = 5", {"properties": {"a": {"$ref": "#/x"}}, "x": {"$ref": "#/nowhere", "properties": 5}}),
        ("msg.body.custmer = 5", b"\xff"),
        ("msg.address==q AND region > 5 AND xpath('/custmer') = 'a'", CLOSED),
    ],
)
def test_a_condition_that_bodies_may_meet_is_not_doubted(condition: str, schema: Any, tmp_path: Path) -> None:
    assert doubted(condition, schema, tmp_path) == []


def test_bodies_that_do_not_fit_may_be_excluded(tmp_path: Path) -> None:
    lines = f"routes.big.out.topic=t\nroutes.big.in.include=TRUE\nroutes.big.in.schema={written(tmp_path, CLOSED)}\n"
    assert told(f"{lines}routes.big.in.exclude=msg.body.zone = 'old' OR msg.body.amount.zone = 1\n", tmp_path) == []


def test_no_registry_is_asked(tmp_path: Path) -> None:
    lines = "routes.big.out.topic=t\nroutes.big.in.include=msg.body.custmer = 5\nroutes.big.in.schema=avro:orders\n"
    assert told(lines, tmp_path) == []


@pytest.mark.parametrize(
    ("condition", "doubt"),
    [
        ("msg.body.customer.contry = 'FR'", "the schema of route big has no customer.contry (did you"),
        ("msg.body.zone = 'FR'", "the schema of route big has no zone (it has customer, notes, lines, price, next)"),
        ("msg.body.next.customer.country = 5", "msg.body.next.customer.country is text by the schema of route big,"),
        ("msg.body.notes.any = 5", "msg.body.notes.any is text by the schema of route big,"),
        ("msg.body.lines[*] = 'a'", "msg.body.lines[*] is a number by the schema of route big,"),
        ("msg.body.customer.land = 'FR' AND msg.body.price > 5 OR msg.body.price = 'a'", ""),
        ("msg.body.notes.custmer IS NOT NULL AND msg.body.next.next.lines[0] > 5", ""),
    ],
)
def test_a_path_by_an_avro_schema(condition: str, doubt: str, tmp_path: Path) -> None:
    found = doubted(condition, AVRO, tmp_path, "avro:order.avsc")
    assert [each[: len(doubt)] for each in found] == ([doubt] if doubt else [])


@pytest.mark.parametrize(
    ("condition", "doubt"),
    [
        ("msg.body.custmer.country = 'FR'", "the schema of route big has no custmer (did you mean customer?)"),
        ("msg.body.customer.zone = 'FR'", "the schema of route big has no customer.zone (it has customer.country)"),
        ("msg.body.customer.country = 5", "msg.body.customer.country is text by the schema of route big,"),
        ("msg.body.notes.any = 'a'", "msg.body.notes.any is a number by the schema of route big,"),
        ("msg.body.sizes = 5", "msg.body.sizes is an array by the schema of route big,"),
        ("msg.body.customer.country = 'FR' AND msg.body.sizes[*] = 'S' OR msg.body.sizes[0] = 7", ""),
    ],
)
def test_a_path_by_a_protobuf_message(condition: str, doubt: str, tmp_path: Path) -> None:
    found = doubted(condition, shop(), tmp_path, "protobuf:shop.desc#shop.Order")
    assert [each[: len(doubt)] for each in found] == ([doubt] if doubt else [])


def shop() -> bytes:
    """The schema of orders, as protoc writes it."""
    kind = descriptor_pb2.FieldDescriptorProto
    files = descriptor_pb2.FileDescriptorSet()
    file = files.file.add(name="shop.proto", package="shop", syntax="proto3")
    file.enum_type.add(name="Size").value.add(name="S", number=0)
    file.message_type.add(name="Customer").field.add(name="country", number=1, label=1, type=kind.TYPE_STRING)
    order = file.message_type.add(name="Order")
    entry = order.nested_type.add(name="NotesEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, label=1, type=kind.TYPE_STRING)
    entry.field.add(name="value", number=2, label=1, type=kind.TYPE_INT64)
    message, enum = kind.TYPE_MESSAGE, kind.TYPE_ENUM
    order.field.add(name="customer", number=1, label=1, type=message, type_name=".shop.Customer")
    order.field.add(name="sizes", number=2, label=3, type=enum, type_name=".shop.Size")
    order.field.add(name="notes", number=3, label=3, type=message, type_name=".shop.Order.NotesEntry")
    return files.SerializeToString()


def test_the_content_of_a_reference_is_not_shown(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("msg.body.custmer")
    lines = f"""\
routes.big.out.topic=t
routes.big.in.schema={written(tmp_path, CLOSED)}
routes.big.in.include=${{file:secret}} = 5 AND msg.body.amuont = 5
"""
    (found,) = told(lines, tmp_path)
    assert found.startswith("7:23: the schema of route big has no amuont")


SEEDS = st.integers(0, (1 << 32) - 1)


@given(SEEDS)
@settings(max_examples=200, deadline=None)
def test_nothing_that_an_avro_value_has_is_doubted(seed: int) -> None:
    drawn = AvroBodies(Random(seed))
    schema = RegisteredSchema("AVRO", json.dumps(drawn.schema))
    not_doubted(drawn.body(0)[1], shape_of(SchemaName(SchemaKind.AVRO), schema))


@given(SEEDS)
@settings(max_examples=100, deadline=None)
def test_nothing_that_a_protobuf_message_has_is_doubted(seed: int) -> None:
    drawn = ProtobufBodies(Random(seed))
    body, document = drawn.body(0)
    name = SchemaName(SchemaKind.PROTOBUF, message=f"shop.M{body[6] // 2 if body[5] else 0}")
    not_doubted(
        document, shape_of(name, RegisteredSchema("PROTOBUF", b64encode(drawn.file.SerializeToString()).decode()))
    )


VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["", "1", "a"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)
KINDS = st.sampled_from(["null", "boolean", "integer", "number", "string", "array", "object"])


def keywords(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    parts = st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    several = st.lists(inner, min_size=1, max_size=2)
    return st.fixed_dictionaries(
        {"properties": parts},
        optional={
            "type": KINDS | st.lists(KINDS, min_size=1, max_size=3, unique=True),
            "additionalProperties": st.booleans() | inner,
            "patternProperties": st.just({"^a": {}}),
            "items": inner,
            "prefixItems": several,
            "allOf": several,
            "anyOf": several,
            "oneOf": several,
            "if": inner,
            "then": inner,
            "else": inner,
            "dependentSchemas": parts,
            "$ref": st.sampled_from(["#", "#/$defs/d"]),
        },
    )


SCHEMAS = st.recursive(st.booleans() | KINDS.map(lambda kind: {"type": kind}), keywords, max_leaves=8)
DRAFT_7 = {"$schema": Draft7Validator.META_SCHEMA["$schema"]}


@given(SCHEMAS, SCHEMAS, st.sampled_from([{}, DRAFT_7]), st.lists(VALUES, min_size=1, max_size=5))
@settings(max_examples=500, deadline=None)
@example({"properties": {"a": {"$ref": "#/$defs/d", "type": "string"}}}, {}, DRAFT_7, [{"a": 1}])
@example({"properties": {"a": {"$ref": "#/$defs/d", "allOf": [{"type": "null"}]}}}, {}, DRAFT_7, [{"a": [None]}])
@example({"$ref": "#/$defs/d", "properties": {"a": {"type": "null"}}}, {}, DRAFT_7, [{"a": False}])
def test_nothing_that_a_json_document_has_is_doubted(root: Any, part: Any, draft: Any, documents: list[Any]) -> None:
    text = json.dumps({**(root if isinstance(root, dict) else {}), "$defs": {"d": part}, **draft})
    shape = None
    for document in documents:
        try:
            is_fit = not faults(text, json.dumps(document).encode())
        except ValueError:
            return  # A schema that refers to itself without end.
        shape = shape or shape_of(SchemaName(SchemaKind.JSON_SCHEMA), RegisteredSchema("JSON", text))
        if is_fit:
            not_doubted(document, shape)


def not_doubted(document: Any, shape: Shape) -> None:
    """Compares all values of a document with themselves."""
    doubts = ShapeDoubts(shape, "the schema")
    for steps, value in values(document, ()):
        path = BodyPath(steps)
        assert doubts.of_path(path) is None, path
        condition = condition_for(value)
        if condition:
            assert list(doubts.of_predicate(parse(f"{path} {condition}"), is_exclude=False)) == [], (path, value)


def values(document: Any, steps: tuple[PathStep, ...]) -> Iterator[tuple[tuple[PathStep, ...], Any]]:
    yield steps, document
    match document:
        case dict():
            for name, each in document.items():
                yield from values(each, (*steps, name))
        case list():
            for number, each in enumerate(document):
                yield from values(each, (*steps, number))


def condition_for(value: Any) -> str:
    """A condition that a value meets; empty for null, objects and arrays."""
    match value:
        case bool():
            return f"= {value}".upper()
        case int() | Decimal():
            return "< 1e300"
        case str():
            return "LIKE '%'"
    return ""
