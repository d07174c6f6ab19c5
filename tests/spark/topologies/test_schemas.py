"""Avro and Protobuf values in topologies, beside fastavro and Google's own Protobuf."""

from __future__ import annotations

import io
import json as plain_json
import struct
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, NamedTuple

import fastavro
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.timestamp_pb2 import DESCRIPTOR as TIMESTAMP_FILE
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from engine.streams import (
    SchemaSerde,
    StreamsBuilder,
    Topology,
    TopologyError,
    TopologyTestDriver,
    avro,
    json,
    protobuf,
)

ORDER = plain_json.dumps(
    {
        "type": "record",
        "name": "Order",
        "fields": [
            {"name": "customer", "type": "string"},
            {"name": "amount", "type": "double"},
            {"name": "note", "type": ["null", "string"], "default": None},
        ],
    }
)


def record(*fields: dict[str, Any], name: str = "Order") -> str:
    return plain_json.dumps({"type": "record", "name": name, "fields": list(fields)})


def avro_bytes(schema: str, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(plain_json.loads(schema)), value)
    return out.getvalue()


def framed(number: int, payload: bytes) -> bytes:
    return struct.pack(">bi", 0, number) + payload


def passing(source: SchemaSerde | Any, sink: SchemaSerde | Any = None) -> Topology:
    builder = StreamsBuilder("passing")
    builder.stream("in", value=source).to("out", value=sink or json())
    return builder.build()


def errors(driver: TopologyTestDriver) -> list[str]:
    return [dict(each.headers)["jmsbridge.error"].decode() for each in driver.rejected()]


def test_bare_avro_values_are_read_and_written_as_fastavro_has_them(spark: SparkSession) -> None:
    serde = avro(ORDER, registry=False)
    driver = TopologyTestDriver(passing(serde, serde), spark)
    payload = avro_bytes(ORDER, {"customer": "ann", "amount": 1.5, "note": None})
    driver.pipe_input("in", "k", payload)
    driver.pipe_input("in", "k", {"customer": "bob", "amount": 2.5, "note": "x"})
    assert errors(driver) == []
    first, second = driver.read_output("out", as_bytes=True)
    assert first.value == payload
    assert second.value == avro_bytes(ORDER, {"customer": "bob", "amount": 2.5, "note": "x"})


def test_records_of_several_writers_are_read_into_one_schema(spark: SparkSession) -> None:
    old = record({"name": "customer", "type": "string"}, {"name": "amount", "type": "int"})
    wider = record(
        {"name": "extra", "type": {"type": "array", "items": "int"}},
        {"name": "customer", "type": "string"},
        {"name": "amount", "type": "float"},
    )
    unfit = record({"name": "customer", "type": "string"}, {"name": "amount", "type": "string"})
    driver = TopologyTestDriver(passing(avro(ORDER)), spark)
    numbers = [driver.register("in-value", avro(each)) for each in (old, wider, unfit)]
    driver.pipe_input("in", "k", framed(numbers[0], avro_bytes(old, {"customer": "a", "amount": 1})))
    driver.pipe_input("in", "k", framed(numbers[1], avro_bytes(wider, {"extra": [1], "customer": "b", "amount": 0.5})))
    driver.pipe_input("in", "k", framed(numbers[2], avro_bytes(unfit, {"customer": "c", "amount": "1"})))
    assert [each.value for each in driver.read_output("out")] == [
        {"customer": "a", "amount": 1.0},
        {"customer": "b", "amount": 0.5},
    ]
    (error,) = errors(driver)
    assert "Found string, expecting double" in error


def test_types_of_avro_are_those_of_spark(spark: SparkSession) -> None:
    schema = record(
        {"name": "i", "type": "int"},
        {"name": "l", "type": "long"},
        {"name": "f", "type": "float"},
        {"name": "d", "type": "double"},
        {"name": "b", "type": "boolean"},
        {"name": "s", "type": "string"},
        {"name": "raw", "type": "bytes"},
        {"name": "fixed", "type": {"type": "fixed", "name": "F", "size": 2}},
        {"name": "millis", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "micros", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "id", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "level", "type": {"type": "enum", "name": "Level", "symbols": ["LOW", "HIGH"]}},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "counts", "type": {"type": "map", "values": "int"}},
        {"name": "nested", "type": {"type": "record", "name": "N", "fields": [{"name": "x", "type": ["int", "null"]}]}},
        {"name": "either", "type": ["null", "int", "string"]},
    )
    moment = datetime(2026, 11, 25, 4, 5, 6, 789_000, tzinfo=UTC)
    given = {
        "i": -1, "l": 1 << 40, "f": 0.5, "d": 0.1, "b": True, "s": "é", "raw": b"\x00\xff", "fixed": b"ab",
        "millis": moment, "micros": moment, "day": moment.date(), "price": Decimal("12.34"),
        "id": uuid.UUID(int=5), "level": "HIGH", "tags": ["a", "b"], "counts": {"n": 1}, "nested": {"x": None},
        "either": "text",
    }  # fmt: skip
    serde = avro(schema, registry=False)
    driver = TopologyTestDriver(passing(serde, serde), spark)
    payload = avro_bytes(schema, given)
    driver.pipe_input("in", "k", payload)
    assert errors(driver) == []
    (output,) = driver.read_output("out", as_bytes=True)
    assert output.value == payload
    driver.pipe_input("in", "k", payload)
    (output,) = driver.read_output("out")
    assert output.value["millis"] == output.value["micros"] == "2026-11-25T04:05:06.789Z"
    assert output.value["price"] == 12.34
    assert output.value["day"] == "2026-11-25"
    assert output.value["id"] == str(uuid.UUID(int=5))
    assert output.value["nested"] == {}
    assert output.value["either"] == {"member1": "text"}


class Typed(NamedTuple):
    schema: Any
    values: st.SearchStrategy[Any]


_SIMPLE = [
    Typed("int", st.integers(-(2**31), 2**31 - 1)),
    Typed("long", st.integers(-(2**63), 2**63 - 1)),
    Typed("double", st.floats(allow_nan=False)),
    Typed("float", st.floats(width=32, allow_nan=False)),
    Typed("boolean", st.booleans()),
    Typed("string", st.text()),
    Typed("bytes", st.binary()),
    Typed({"type": "long", "logicalType": "timestamp-micros"}, st.datetimes(timezones=st.just(UTC))),
    Typed({"type": "int", "logicalType": "date"}, st.dates()),
]


def _composed(inner: st.SearchStrategy[Typed]) -> st.SearchStrategy[Typed]:
    return inner.flatmap(
        lambda each: st.sampled_from(
            [
                Typed({"type": "array", "items": each.schema}, st.lists(each.values, max_size=3)),
                # One entry: the order in a map is not defined.
                Typed({"type": "map", "values": each.schema}, st.dictionaries(st.text(), each.values, max_size=1)),
                *([] if isinstance(each.schema, list) else [_optional(each)]),
            ]
        )
    )


def _optional(each: Typed) -> Typed:
    return Typed(["null", each.schema], st.none() | each.values)


TYPES = st.recursive(st.sampled_from(_SIMPLE), _composed, max_leaves=4)


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(types=st.lists(TYPES, min_size=1, max_size=5), data=st.data())
def test_random_values_of_random_schemas_come_out_as_they_went_in(
    spark: SparkSession, types: list[Typed], data: st.DataObject
) -> None:
    schema = record(*({"name": f"f{at}", "type": each.schema} for at, each in enumerate(types)))
    serde = avro(schema, registry=False)
    driver = TopologyTestDriver(passing(serde, serde), spark)
    payloads = [
        avro_bytes(schema, {f"f{at}": data.draw(each.values) for at, each in enumerate(types)}) for _ in range(4)
    ]
    for payload in payloads:
        driver.pipe_input("in", "k", payload)
    assert errors(driver) == []
    assert [each.value for each in driver.read_output("out", as_bytes=True)] == payloads


def message_file() -> descriptor_pb2.FileDescriptorProto:
    """The file of a proto3 message with a field of each kind."""
    file = descriptor_pb2.FileDescriptorProto(name="orders.proto", package="shop", syntax="proto3")
    file.dependency.append("google/protobuf/timestamp.proto")
    file.message_type.add(name="Head").field.add(name="n", number=1, label=1, type=5)
    level = file.enum_type.add(name="Level")
    level.value.add(name="LOW", number=0)
    level.value.add(name="HIGH", number=1)
    order = file.message_type.add(name="Order")
    kinds = {each: number for number, each in enumerate(FIELD_TYPES, 1)}
    for name, number in kinds.items():
        order.field.add(name=f"f_{name}", number=number, label=1, type=FIELD_TYPES[name])
    more = [
        {"name": "level", "number": 30, "label": 1, "type": 14, "type_name": ".shop.Level"},
        {"name": "tags", "number": 31, "label": 3, "type": 9},
        {"name": "head", "number": 32, "label": 1, "type": 11, "type_name": ".shop.Head"},
        {"name": "heads", "number": 33, "label": 3, "type": 11, "type_name": ".shop.Head"},
        {"name": "at", "number": 34, "label": 1, "type": 11, "type_name": ".google.protobuf.Timestamp"},
        {"name": "counts", "number": 35, "label": 3, "type": 11, "type_name": ".shop.Order.CountsEntry"},
        {"name": "card", "number": 36, "label": 1, "type": 9, "oneof_index": 0},
        {"name": "cash", "number": 37, "label": 1, "type": 5, "oneof_index": 0},
        {"name": "note", "number": 38, "label": 1, "type": 9, "oneof_index": 1, "proto3_optional": True},
    ]
    for each in more:
        order.field.add(**each)
    order.oneof_decl.add(name="paid")
    order.oneof_decl.add(name="_note")
    entry = order.nested_type.add(name="CountsEntry")
    entry.field.add(name="key", number=1, label=1, type=9)
    entry.field.add(name="value", number=2, label=1, type=11, type_name=".shop.Head")
    entry.options.map_entry = True
    return file


FIELD_TYPES = {
    "double": 1, "float": 2, "int64": 3, "uint64": 4, "int32": 5, "fixed64": 6, "fixed32": 7, "bool": 8, "string": 9,
    "bytes": 12, "uint32": 13, "sfixed32": 15, "sfixed64": 16, "sint32": 17, "sint64": 18,
}  # fmt: skip


def classes(*files: descriptor_pb2.FileDescriptorProto) -> dict[str, Any]:
    """Generated classes of messages by their full names."""
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(TIMESTAMP_FILE.serialized_pb)
    for each in files:
        pool.Add(each)
    return dict(message_factory.GetMessageClassesForFiles([each.name for each in files], pool))


def some_order(order: Any) -> Any:
    made = order(
        f_double=0.1, f_float=0.5, f_int64=-(2**62), f_uint64=2**64 - 1, f_int32=-5, f_fixed64=2**63,
        f_fixed32=2**32 - 1, f_bool=True, f_string="é", f_bytes=b"\x00\xff", f_uint32=2**32 - 1, f_sfixed32=-1,
        f_sfixed64=-2, f_sint32=-3, f_sint64=-4, level=1, tags=["a", "b"], cash=0,
    )  # fmt: skip
    made.head.n = 7
    made.heads.add(n=1)
    made.at.FromMilliseconds(1_795_243_602_871)
    made.counts["x"].n = 2
    return made


def test_protobuf_values_are_read_and_written_as_google_has_them(spark: SparkSession) -> None:
    order = classes(message_file())["shop.Order"]
    serde = protobuf(order, registry=False)
    driver = TopologyTestDriver(passing(serde, serde), spark)
    full, empty = some_order(order), order()
    for each in (full, empty):
        driver.pipe_input("in", "k", each.SerializeToString())
    assert errors(driver) == []
    outputs = driver.read_output("out", as_bytes=True)
    assert [order.FromString(each.value) for each in outputs] == [full, empty]
    driver.pipe_input("in", "k", full.SerializeToString())
    (output,) = driver.read_output("out")
    assert output.value["level"] == "HIGH"
    assert output.value["f_uint64"] == 2**64 - 1
    assert output.value["f_uint32"] == 2**32 - 1
    assert output.value["at"] == "2026-11-21T06:46:42.871Z"
    assert output.value["counts"] == {"x": {"n": 2}}
    assert "note" not in output.value
    assert "card" not in output.value
    assert output.value["cash"] == 0
    driver.pipe_input("in", "k", output.value)
    (again,) = driver.read_output("out", as_bytes=True)
    assert order.FromString(again.value) == full


def old_file(**fields: int) -> Any:
    """A class of a proto2 message with these optional fields, by their types."""
    file = descriptor_pb2.FileDescriptorProto(name="old.proto", package="shop", syntax="proto2")
    message = file.message_type.add(name="Old")
    for number, (name, kind) in enumerate(fields.items(), 1):
        message.field.add(name=name, number=number, label=1, type=kind)
    message.field.add(name="needed", number=20, label=2, type=5)
    message.field.add(name="given", number=21, label=1, type=5, default_value="9")
    return classes(file)["shop.Old"]


def test_proto2_has_absent_values_defaults_and_required_fields(spark: SparkSession) -> None:
    old = old_file(a=9)
    serde = protobuf(old, registry=False)
    driver = TopologyTestDriver(passing(serde, serde), spark)
    driver.pipe_input("in", "k", old(needed=1).SerializeToString())
    driver.pipe_input("in", "k", b"")
    (output,) = driver.read_output("out")
    assert output.value == {"needed": 1, "given": 9}
    (error,) = errors(driver)
    assert "needed" in error
    builder = StreamsBuilder("lacking")
    builder.stream("in", value=json("a string")).to("out", value=serde)
    with pytest.raises(TopologyError, match="missing: \\[needed\\]"):
        TopologyTestDriver(builder.build(), spark).read_output("out")


def test_protobuf_records_are_read_by_the_message_that_they_name(spark: SparkSession) -> None:
    made = classes(message_file())
    driver = TopologyTestDriver(passing(protobuf(made["shop.Order"])), spark)
    number = driver.register("in-value", protobuf(made["shop.Order"]))
    payload = made["shop.Order"](f_string="x").SerializeToString()
    driver.pipe_input("in", "k", framed(number, b"\x02\x02" + payload))
    (output,) = driver.read_output("out")
    assert output.value["f_string"] == "x"
    driver.pipe_input("in", "k", framed(number, b"\x00" + payload))
    driver.pipe_input("in", "k", framed(number, b"\x02\x08" + payload))
    driver.pipe_input("in", "k", framed(number, b"\xff\xff"))
    assert errors(driver) == [
        "the message is a shop.Head and not a shop.Order",
        "the schema has no message with the indexes [4]",
        "the indexes of its message are damaged",
    ]
    other = old_file(a=5)
    reads = TopologyTestDriver(passing(protobuf(old_file(a=9))), spark)
    unfit = reads.register("in-value", protobuf(other))
    reads.pipe_input("in", "k", framed(unfit, b"\x00" + other(a=1, needed=1).SerializeToString()))
    assert errors(reads) == ["the field shop.Old.a was written as int32, and cannot be read as string"]


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (b"", "0 bytes are fewer than Confluent's wire format has before a value"),
        (b"\x00\x00\x00\x00", "4 bytes are fewer than Confluent's wire format has before a value"),
        (b'{"customer": "ann"}', "the first byte is 123 and not 0: the value is not in Confluent's wire format"),
        (b"\x00\x00\x00\x00\x63x", "the schema registry has no AVRO schema with the id 99"),
        (
            b"\x00\x00\x00\x00\x01\x06an",
            "the bytes are not a valid AVRO value of the schema with the id 1: a text or bytes announce 3 bytes, "
            "and 2 are there",
        ),
        (
            framed(1, avro_bytes(ORDER, {"customer": "ann", "amount": 1.5})) + b"\x00",
            "the bytes are not a valid AVRO value of the schema with the id 1: there are bytes behind its end",
        ),
    ],
)
def test_bytes_that_do_not_fit_become_dead_letters_with_the_reason(
    spark: SparkSession, value: bytes, error: str
) -> None:
    driver = TopologyTestDriver(passing(avro(ORDER)), spark)
    driver.register("in-value", avro(ORDER))
    driver.pipe_input("in", "k", value)
    (letter,) = driver.rejected()
    headers = dict(letter.headers)
    assert headers["jmsbridge.reason"] == b"value"
    assert headers["jmsbridge.error"].decode() == error


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("bytes", "a text or bytes announce 1073741824 bytes, and 0 are there"),
        ("string", "a text or bytes announce 1073741824 bytes, and 0 are there"),
        ({"type": "array", "items": "null"}, "an array or a map announces more items than the value has bytes"),
    ],
)  # fmt: skip
def test_a_length_that_no_value_has_takes_no_memory(spark: SparkSession, kind: Any, error: str) -> None:
    driver = TopologyTestDriver(passing(avro(record({"name": "f", "type": kind}), registry=False)), spark)
    driver.pipe_input("in", "k", avro_bytes('"long"', 2**30))
    (told,) = errors(driver)
    assert error in told


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(change=st.binary(max_size=12), at=st.integers(0, 80), cut=st.integers(0, 80))
def test_no_bytes_end_a_topology(spark: SparkSession, change: bytes, at: int, cut: int) -> None:
    for driver, number, payload in _hostile(spark):
        value = framed(number, payload)
        driver.pipe_input("in", "k", (value[:at] + change + value[at + len(change) :])[: len(value) - cut % 3])
        assert len(driver.rejected()) + len(driver.read_output("out")) == 1


def _hostile(spark: SparkSession) -> list[tuple[TopologyTestDriver, int, bytes]]:
    if not _DRIVERS:
        order = classes(message_file())["shop.Order"]
        schema = record(
            {"name": "tags", "type": {"type": "array", "items": "string"}},
            {"name": "counts", "type": {"type": "map", "values": "bytes"}},
            {"name": "note", "type": ["null", "string"]},
        )
        value = {"tags": ["a", "b"], "counts": {"x": b"y"}, "note": "z"}
        payloads = [avro_bytes(schema, value), b"\x02\x02" + some_order(order).SerializeToString()]
        for serde, payload in zip((avro(schema), protobuf(order)), payloads, strict=True):
            driver = TopologyTestDriver(passing(serde), spark)
            _DRIVERS.append((driver, driver.register("in-value", serde), payload))
    return _DRIVERS


_DRIVERS: list[tuple[TopologyTestDriver, int, bytes]] = []


def test_a_decimal_of_another_scale_or_with_too_many_digits_is_a_record_that_fails(spark: SparkSession) -> None:
    def of(scale: int) -> str:
        decimal = {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": scale}
        several = {"type": "array", "items": ["null", decimal]}
        return record({"name": "d", "type": decimal}, {"name": "l", "type": several, "default": []})

    driver = TopologyTestDriver(passing(avro(of(2))), spark)
    same, other = (driver.register("in-value", avro(of(scale))) for scale in (2, 3))
    good = {"d": Decimal("-1.25"), "l": [None, Decimal("99999999.99")]}
    driver.pipe_input("in", "k", framed(same, avro_bytes(of(2), good)))
    driver.pipe_input("in", "k", framed(other, avro_bytes(of(3), {"d": Decimal("1.250"), "l": []})))
    # A length, the digits, and an array without elements.
    driver.pipe_input("in", "k", framed(same, b"\x12" + (2**64 + 5).to_bytes(9) + b"\x00"))
    # Then an array of one element, of the second type of the union.
    element = b"\x02\x02\x0a" + (10**10).to_bytes(5) + b"\x00"
    driver.pipe_input("in", "k", framed(same, b"\x02\x05" + element))
    (read,) = driver.read_output("out", as_bytes=True)
    assert read.value == b'{"d":-1.25,"l":[null,99999999.99]}'
    assert errors(driver) == [
        f"the schema with the id {other}: its decimal(10,3) cannot be read as decimal(10,2)",
        "the field d is a decimal(10,2), and the value has more digits",
        "the field l is a decimal(10,2), and the value has more digits",
    ]
    with pytest.raises(TopologyError, match=r"the field d is a decimal\(10,2\), which cannot be 0.125 without loss"):
        driver.pipe_input("in", "k", {"d": 0.125, "l": []})


@pytest.mark.parametrize("scale", [2, 3])
def test_a_sink_writes_a_decimal_as_it_is_or_refuses_it(spark: SparkSession, scale: int) -> None:
    decimal = {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}
    sink = avro(record({"name": "d", "type": decimal}), registry=False)
    driver = TopologyTestDriver(passing(json(f"d decimal(10,{scale})"), sink), spark)
    if scale == 2:
        driver.pipe_input("in", "k", '{"d": 0.12}')
        assert [each.value for each in driver.read_output("out")] == [{"d": 0.12}]
        return
    driver.pipe_input("in", "k", '{"d": 0.120}')
    driver.pipe_input("in", "k", '{"d": 0.125}')
    assert [each.value for each in driver.read_output("out")] == [{"d": 0.12}]
    assert errors(driver) == [
        "[USER_RAISED_EXCEPTION] the field d is a decimal(10,2), which cannot be 0.125 without loss SQLSTATE: P0001"
    ]


def test_a_sink_writes_no_whole_number_of_one_with_a_fraction(spark: SparkSession) -> None:
    sink = avro(record({"name": "n", "type": "int"}), registry=False)
    driver = TopologyTestDriver(passing(json("n double"), sink), spark)
    for number in ("5.0", "5.5", "3e9"):
        driver.pipe_input("in", "k", f'{{"n": {number}}}')
    assert [each.value for each in driver.read_output("out")] == [{"n": 5}]
    assert [each.split(", which")[0] for each in errors(driver)] == ["[USER_RAISED_EXCEPTION] the field n is a int"] * 2


def test_a_sink_registers_the_schema_of_its_fields_and_writes_its_id(spark: SparkSession) -> None:
    builder = StreamsBuilder("totals")
    orders = builder.stream("orders", value=json("customer string, amount double"))
    orders.group_by("customer").aggregate(total="sum(amount)").to("totals", value=avro())
    driver = TopologyTestDriver(builder.build(), spark)
    driver.pipe_input("orders", None, {"customer": "ann", "amount": 1.5})
    (raw,) = driver.read_output("totals", as_bytes=True)
    made = record({"name": "total", "type": ["double", "null"]}, name="Value")
    assert raw.value == framed(1, avro_bytes(made, {"total": 1.5}))
    driver.pipe_input("orders", None, {"customer": "ann", "amount": 1.0})
    (output,) = driver.read_output("totals")
    assert output.value == {"total": 2.5}


@pytest.mark.parametrize(
    ("fields", "sink", "fault"),
    [
        ("customer string", avro(ORDER), r"missing: \[amount\]; not in the schema: \[\]"),
        ("customer string, amount double, x int", avro(ORDER), r"missing: \[\]; not in the schema: \[x\]"),
        ("customer string, amount string", avro(ORDER), "amount"),
        ("customer string", avro(version=3), "no subject 'out-value' with the version 3"),
        ("customer string", avro(register=False), "no subject 'out-value' with a version"),
        ("customer string", avro(ORDER[:-1]), "the text is not an Avro schema"),
        ("customer string", protobuf(), "the numbers of Protobuf's fields cannot be told"),
        ("customer string", protobuf(b"x"), "the schema is not a FileDescriptorSet"),
    ],
)
def test_a_sink_whose_fields_do_not_fit_is_a_fault_of_the_topology(
    spark: SparkSession, fields: str, sink: SchemaSerde, fault: str
) -> None:
    driver = TopologyTestDriver(passing(json(fields), sink), spark)
    with pytest.raises(TopologyError, match=fault):
        driver.read_output("out")


def test_a_number_is_widened_and_a_missing_value_is_a_dead_letter(spark: SparkSession) -> None:
    driver = TopologyTestDriver(passing(json("customer string, amount int"), avro(ORDER)), spark)
    driver.pipe_input("in", "k", {"customer": "ann", "amount": 1})
    driver.pipe_input("in", "k", {"amount": 1})
    (output,) = driver.read_output("out")
    assert output.value == {"customer": "ann", "amount": 1.0}
    (error,) = errors(driver)
    assert error.startswith("the fields do not fit the AVRO schema")
    assert "customer" in error


def test_a_topic_of_each_record_has_its_own_subject(spark: SparkSession) -> None:
    builder = StreamsBuilder("spread")
    builder.stream("in", value=json("customer string, amount double")).to(
        lambda row: row["customer"], value=avro(ORDER)
    )
    driver = TopologyTestDriver(builder.build(), spark)
    for topic in ("a", "b"):
        driver.pipe_input("in", "k", {"customer": topic, "amount": 1.0})
        (output,) = driver.read_output(topic)
        assert output.value == {"customer": topic, "amount": 1.0}
    assert driver.register("a-value", avro(ORDER)) == 1


def test_serdes_of_tables_and_streams_join(spark: SparkSession) -> None:
    builder = StreamsBuilder("joined")
    orders = builder.stream("orders", value=avro(ORDER))
    order = classes(message_file())["shop.Head"]
    heads = builder.table("heads", value=protobuf(order))
    everywhere = builder.global_table("all", value=avro(record({"name": "g", "type": "int"}, name="G")))
    orders.join(heads).join(everywhere, on="key").map_values(sum="amount + n + g").to("out")
    driver = TopologyTestDriver(builder.build(), spark)
    driver.pipe_input("heads", "k", {"n": 2})
    driver.pipe_input("all", "k", {"g": 3})
    driver.pipe_input("orders", "k", {"customer": "ann", "amount": 1.5})
    (output,) = driver.read_output("out")
    assert output.value == {"sum": 6.5}
    assert errors(driver) == []


@pytest.mark.parametrize(
    ("make", "fault"),
    [
        (lambda: avro(registry=False), "avro without a registry needs a schema"),
        (lambda: avro(ORDER, registry=False, subject="x"), "no subject and no version"),
        (lambda: avro(ORDER, version=1), "either a schema or a version"),
        (lambda: protobuf(version=0), "begin with 1, not 0"),
    ],
)
def test_a_serde_that_cannot_be_is_refused_at_once(make: Callable[[], SchemaSerde], fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        make()
