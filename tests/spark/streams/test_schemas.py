"""Avro and Protobuf values in topologies, beside fastavro and Google's own Protobuf."""

from __future__ import annotations

import io
import json as plain_json
import struct
from typing import Any

import fastavro
from pyspark.sql import SparkSession

from engine.streams import (
    SchemaSerde,
    StreamsBuilder,
    Topology,
    TopologyTestDriver,
    avro,
    json,
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
