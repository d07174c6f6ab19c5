"""Schemas that refer to others: fetched from a registry with all that they need, and registered behind it."""

from __future__ import annotations

import base64
import json as json_text
import struct
from collections.abc import Iterator
from typing import Any

import pytest
from google.protobuf import descriptor_pb2
from pyspark.sql import SparkSession

from engine.streams import SchemaSerde, StreamsBuilder, TopologyTestDriver, avro, json, protobuf
from tests.registry_server import RegistryServer, registry_server
from tests.spark.topologies.test_registry import client
from tests.spark.topologies.test_schemas import avro_bytes, classes, framed, passing, record

TIMESTAMP = "google/protobuf/timestamp.proto"


@pytest.fixture
def server() -> Iterator[RegistryServer]:
    with registry_server() as server:
        yield server


def file(path: str, message: str, imports: list[str], **fields: int | str) -> descriptor_pb2.FileDescriptorProto:
    """A file with a message, whose fields have the number of a scalar type or the name of a message."""
    made = descriptor_pb2.FileDescriptorProto(name=path, package="shop", syntax="proto3")
    made.dependency.extend(imports)
    own = made.message_type.add(name=message)
    for number, (field, kind) in enumerate(fields.items(), 1):
        about: dict[str, Any] = {"type": kind} if isinstance(kind, int) else {"type": 11, "type_name": f".{kind}"}
        own.field.add(name=field, number=number, label=1, **about)
    return made


UNIT = file("shop/unit.proto", "Unit", [], name=9)
MONEY = file(
    "shop/money.proto", "Money", ["shop/unit.proto", TIMESTAMP], amount=1, unit="shop.Unit",
    at="google.protobuf.Timestamp",
)  # fmt: skip
ORDER = file(
    "order.proto", "Order", ["shop/money.proto", TIMESTAMP, "shop/unit.proto"], id=3, price="shop.Money",
    size="shop.Unit", at="google.protobuf.Timestamp",
)  # fmt: skip


def reference(name: str, subject: str, version: int) -> dict[str, Any]:
    return {"name": name, "subject": subject, "version": version}


def answer(schema: Any, *references: dict[str, Any], number: int = 1) -> list[tuple[int, object]]:
    """The answer of a registry with a schema: a file of Protobuf, or JSON of Avro."""
    if isinstance(schema, str):
        return [(200, {"id": number, "schema": schema, "references": list(references)})]
    text = base64.b64encode(schema.SerializeToString()).decode()
    return [(200, {"id": number, "schema": text, "schemaType": "PROTOBUF", "references": list(references)})]


def driver_of(spark: SparkSession, server: RegistryServer, serde: SchemaSerde) -> TopologyTestDriver:
    driver = TopologyTestDriver(passing(serde), spark)
    driver._registry = client(spark, server.url)
    return driver


def test_a_protobuf_schema_is_read_with_all_that_it_imports(spark: SparkSession, server: RegistryServer) -> None:
    form = "?format=serialized"
    order = answer(ORDER, reference("shop/money.proto", "money", 2), reference("shop/unit.proto", "unit", 1), number=7)
    server.answers["/subjects/in-value/versions/latest" + form] = order
    server.answers["/schemas/ids/7" + form] = order
    server.answers["/subjects/money/versions/2" + form] = answer(MONEY, reference("shop/unit.proto", "unit", 1))
    server.answers["/subjects/unit/versions/1" + form] = answer(UNIT)
    made = classes(UNIT, MONEY, ORDER)["shop.Order"](id=5)
    made.price.amount, made.price.unit.name, made.size.name = 1.5, "EUR", "kg"
    made.at.FromMilliseconds(1_000)
    made.price.at.FromMilliseconds(2_000)
    driver = driver_of(spark, server, protobuf())
    driver.pipe_input("in", "k", framed(7, b"\0" + made.SerializeToString()))
    assert driver.rejected() == []
    (output,) = driver.read_output("out")
    assert output.value == {
        "id": 5,
        "price": {"amount": 1.5, "unit": {"name": "EUR"}, "at": "1970-01-01T00:00:02.000Z"},
        "size": {"name": "kg"},
        "at": "1970-01-01T00:00:01.000Z",
    }


def test_a_protobuf_schema_without_what_it_imports_is_refused(spark: SparkSession, server: RegistryServer) -> None:
    server.answers["/schemas/ids/7?format=serialized"] = answer(MONEY, number=7)
    driver = driver_of(spark, server, protobuf(classes(UNIT, MONEY)["shop.Money"]))
    driver.pipe_input("in", "k", framed(7, b"\0"))
    (letter,) = driver.rejected()
    assert "the schema lacks 'shop/unit.proto', which it imports" in dict(letter.headers)["jmsbridge.error"].decode()


def test_an_avro_schema_is_read_with_all_that_it_names(spark: SparkSession, server: RegistryServer) -> None:
    unit = record({"name": "name", "type": "string"}, name="Unit")
    money = record({"name": "amount", "type": "double"}, {"name": "unit", "type": "Unit"}, name="Money")
    order = record({"name": "price", "type": "Money"}, {"name": "size", "type": "Unit"})
    found = answer(order, reference("Money", "money", 2), reference("Unit", "unit", 1), number=7)
    server.answers["/subjects/in-value/versions/latest"] = server.answers["/schemas/ids/7"] = found
    server.answers["/subjects/money/versions/2"] = answer(money, reference("Unit", "unit", 1))
    server.answers["/subjects/unit/versions/1"] = answer(unit)
    value = {"price": {"amount": 1.5, "unit": {"name": "EUR"}}, "size": {"name": "kg"}}
    inner = json_text.loads(money)
    inner["fields"][1]["type"] = json_text.loads(unit)
    whole = record({"name": "price", "type": inner}, {"name": "size", "type": "Unit"})
    driver = driver_of(spark, server, avro())
    driver.pipe_input("in", "k", framed(7, avro_bytes(whole, value)))
    assert driver.rejected() == []
    assert [each.value for each in driver.read_output("out")] == [value]


def test_a_sink_registers_what_its_schema_imports_before_it(spark: SparkSession, server: RegistryServer) -> None:
    server.answers = {
        "/subjects/shop%2Funit.proto/versions": [(200, {"id": 1})],
        "/subjects/shop%2Funit.proto": [(200, {"id": 1, "version": 4})],
        "/subjects/shop%2Fmoney.proto/versions": [(200, {"id": 2})],
        "/subjects/shop%2Fmoney.proto": [(200, {"id": 2, "version": 5})],
        "/subjects/out-value/versions": [(200, {"id": 3})],
    }
    builder = StreamsBuilder("registering")
    order = classes(UNIT, MONEY, ORDER)["shop.Order"]
    builder.stream("in", value=json("id bigint, size struct<name: string>")).to("out", value=protobuf(order))
    driver = TopologyTestDriver(builder.build(), spark)
    driver._registry = client(spark, server.url)
    driver.pipe_input("in", "k", {"id": 5, "size": {"name": "kg"}})
    (output,) = driver.read_output("out", as_bytes=True)
    wanted = order(id=5)
    wanted.size.name = "kg"
    assert output.value == framed(3, b"\0" + wanted.SerializeToString())
    posted: dict[str, Any] = {each.path: each.body for each in server.asked}
    unit = reference("shop/unit.proto", "shop/unit.proto", 4)
    assert posted["/subjects/shop%2Fmoney.proto/versions"]["references"] == [unit]
    money = reference("shop/money.proto", "shop/money.proto", 5)
    assert posted["/subjects/out-value/versions"]["references"] == [money, unit]
    assert "references" not in posted["/subjects/shop%2Funit.proto/versions"]


UNIT_TEXT = 'syntax = "proto3";\npackage shop;\nmessage Unit { string name = 1; }\n'
MONEY_TEXT = """
syntax = "proto3";
package shop;
import "shop/unit.proto";
import "google/protobuf/timestamp.proto";
message Money { double amount = 1; Unit unit = 2; google.protobuf.Timestamp at = 3; }
"""
ORDER_TEXT = """
syntax = "proto3";
package shop;
import "shop/money.proto";
import "shop/unit.proto";
import "google/protobuf/wrappers.proto";
// An order; { comments and "quotes" are not a schema.
message Order {
  enum Level { LOW = 0; HIGH = 1; }
  message Head { int32 n = 1; }
  reserved 20 to 30;
  int64 id = 1;
  optional string note = 2;
  Money price = 3;
  map<string, Unit> sizes = 4;
  oneof paid { string card = 5; int32 cash = 6; }
  repeated int32 counts = 7;
  repeated Head heads = 8 [deprecated = true];
  Level level = 9;
  google.protobuf.Int64Value more = 10;
}
"""


def text_answer(text: str, *references: dict[str, Any], number: int = 1) -> list[tuple[int, object]]:
    return [(200, {"id": number, "schema": text, "schemaType": "PROTOBUF", "references": list(references)})]


def test_a_protobuf_schema_that_is_text_is_compiled_with_all_that_it_imports(
    spark: SparkSession, server: RegistryServer
) -> None:
    form = "?format=serialized"
    unit = reference("shop/unit.proto", "unit", 1)
    order = text_answer(ORDER_TEXT, reference("shop/money.proto", "money", 2), unit, number=7)
    server.answers["/subjects/in-value/versions/latest" + form] = order
    server.answers["/schemas/ids/7" + form] = order
    server.answers["/subjects/money/versions/2" + form] = text_answer(MONEY_TEXT, unit)
    server.answers["/subjects/unit/versions/1" + form] = text_answer(UNIT_TEXT)
    driver = driver_of(spark, server, protobuf())
    value = (
        b"\x08\x05" b"\x1a\x10" b"\x09" + struct.pack("<d", 1.5) + b"\x12\x05\x0a\x03EUR"
        b"\x22\x09\x0a\x01a\x12\x04\x0a\x02kg" b"\x30\x00" b"\x3a\x02\x01\x02" b"\x42\x02\x08\x07"
        b"\x48\x01" b"\x52\x02\x08\x09"
    )  # fmt: skip
    driver.pipe_input("in", "k", framed(7, b"\0" + value))
    assert driver.rejected() == []
    (output,) = driver.read_output("out")
    # `note` and `card` are absent, which differs from empty.
    assert output.value == {
        "id": 5,
        "price": {"amount": 1.5, "unit": {"name": "EUR"}},
        "sizes": {"a": {"name": "kg"}},
        "cash": 0,
        "counts": [1, 2],
        "heads": [{"n": 7}],
        "level": "HIGH",
        "more": {"value": 9},
    }


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("hello; {", "Syntax error in schema.proto:1:1"),
        (MONEY_TEXT, "the schema lacks 'shop/unit.proto', which it imports"),
        ('syntax = "proto3"; message A { B b = 1; }', "unable to resolve B"),
        ('syntax = "proto3"; import "google/protobuf/field_mask.proto"; message A {}', "lacks 'google/protobuf/field_"),
    ],
)  # fmt: skip
def test_text_that_cannot_be_compiled_is_refused_with_the_reason(
    spark: SparkSession, server: RegistryServer, text: str, fault: str
) -> None:
    server.answers["/schemas/ids/7?format=serialized"] = text_answer(text, number=7)
    driver = driver_of(spark, server, protobuf(classes(UNIT)["shop.Unit"]))
    driver.pipe_input("in", "k", framed(7, b"\0"))
    (letter,) = driver.rejected()
    assert fault in dict(letter.headers)["jmsbridge.error"].decode()
