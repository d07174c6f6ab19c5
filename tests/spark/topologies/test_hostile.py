"""Records that others than the topology have written, and values made to harm their reader: each is a dead letter."""

from __future__ import annotations

import json as plain_json
import struct
from collections.abc import Iterator
from typing import Any

import pytest
from google.protobuf import descriptor_pb2
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from engine.streams import KeyKind, StreamsBuilder, Topology, TopologyError, TopologyTestDriver, avro, json, protobuf
from tests.schema_bodies import framed, nested_message
from tests.spark.topologies.test_schemas import classes

PAGES = "page string, n int"


def row(page: bytes, number: int, *, offset: int = 24, size: int | None = None, nulls: int = 0) -> bytes:
    """A row of Spark of the fields in PAGES."""
    length = len(page) if size is None else size
    return struct.pack("<QQQ", nulls, offset << 32 | length, number) + page.ljust(-(-len(page) // 8) * 8, b"\0")


def pair(first: bytes, second: bytes, *, length: int | None = None) -> bytes:
    begin = (4 + len(first) + 7) // 8 * 8
    return (struct.pack(">i", len(first) if length is None else length) + first).ljust(begin, b"\0") + second


GOOD = row(b"p1", 5)
BAD_ROWS = {
    "longer than its bytes": row(b"p1", 5, size=4_000),
    "behind its bytes": row(b"p1", 5, offset=150_000, size=8),
    "in front of them": row(b"p1", 5, offset=0xFFFFFFF8, size=8),
    "negative": row(b"p1", 5, size=0xFFFFFFFF),
    "among the fixed fields": row(b"p1", 5, offset=8, size=8),
    "five bytes": b"12345",
    "empty": b"",
    "no whole words": GOOD + b"x",
}


def repartitioned() -> Topology:
    builder = StreamsBuilder("hostile")
    builder.stream("in", value=json(PAGES)).repartition(name="again").to("out")
    return builder.build()


def feed(driver: TopologyTestDriver, topic: str, key: bytes | None, value: bytes | None) -> None:
    """Pipes a record into an internal topic."""
    running = driver._running()
    running.pipe(topic, key, value, 1, driver._spark._jvm.java.util.ArrayList())


def letters(driver: TopologyTestDriver) -> list[tuple[str, str]]:
    found = []
    for each in driver.rejected():
        about = {name: (value or b"").decode() for name, value in each.headers}
        assert about["jmsbridge.position"].rpartition(":")[2].isdecimal()
        found.append((about["jmsbridge.reason"], about["jmsbridge.error"]))
    return found


@pytest.fixture
def driver(spark: SparkSession) -> Iterator[TopologyTestDriver]:
    made = TopologyTestDriver(repartitioned(), spark)
    yield made
    made.close()


def test_records_that_are_no_rows_are_dead_letters(driver: TopologyTestDriver) -> None:
    topic = "hostile-again-repartition"
    feed(driver, topic, b"k", GOOD)
    feed(driver, topic, b"k", None)
    for bad in BAD_ROWS.values():
        feed(driver, topic, b"k", bad)
    feed(driver, topic, None, GOOD)
    assert [each.value for each in driver.read_output("out")] == [{"page": "p1", "n": 5}, None]
    *values, key = letters(driver)
    assert [reason for reason, _ in values] == ["value"] * len(BAD_ROWS)
    assert all("not a row of this topology" in error for _, error in values)
    assert key == ("key", "each record of an internal topic has a key")


def test_a_null_field_is_not_looked_at(driver: TopologyTestDriver) -> None:
    feed(driver, "hostile-again-repartition", b"k", row(b"", 5, offset=1 << 31, size=9_999, nulls=1))
    assert [each.value for each in driver.read_output("out")] == [{"n": 5}]


def test_nested_values_are_checked(spark: SparkSession) -> None:
    builder = StreamsBuilder("nested")
    fields = "tags array<string>, counts map<string,int>, inner struct<x: string, y: decimal(30,2)>, ok boolean"
    builder.stream("in", value=json(fields)).repartition(name="again").to("out")
    driver = TopologyTestDriver(builder.build(), spark)
    head, region = 8 + 4 * 8, 24
    bad_parts = {
        # An array of a string that lies behind it, a map with keys of another size, a struct that is not a row.
        0: struct.pack("<QQQ", 1, 0, 4_000 << 32 | 8),
        1: struct.pack("<QQQ", 4_000, 0, 0),
        2: struct.pack("<QQQ", 0, 4_000 << 32 | 8, 0),
    }
    for field, part in bad_parts.items():
        words = [0] * 4
        words[field] = head << 32 | region
        feed(driver, "nested-again-repartition", b"k", struct.pack("<Q4Q", 0b1111 & ~(1 << field), *words) + part)
    feed(driver, "nested-again-repartition", b"k", struct.pack("<Q4Q", 0b0111, 0, 0, 0, 7))
    assert driver.read_output("out") == []
    assert [error.partition(": ")[2].partition(":")[0] for _, error in letters(driver)] == [
        "field 0", "field 1", "field 2", "field 3"
    ]  # fmt: skip
    driver.close()


def test_keys_with_fields_are_checked(spark: SparkSession) -> None:
    builder = StreamsBuilder("typed")
    stream = builder.stream("in", value=json(PAGES))
    stream.select_key(F.struct("page", "n")).repartition(name="again").to("out", key=KeyKind.TEXT)
    driver = TopologyTestDriver(builder.build(), spark)
    good = struct.pack("<QQ", 0, 16 << 32 | len(GOOD)) + GOOD
    feed(driver, "typed-again-repartition", good, GOOD)
    for bad in BAD_ROWS.values():
        feed(driver, "typed-again-repartition", struct.pack("<QQ", 0, 16 << 32 | len(bad)) + bad, GOOD)
        feed(driver, "typed-again-repartition", bad, GOOD)
    assert [each.key for each in driver.read_output("out")] == ['{"page":"p1","n":5}']
    assert [reason for reason, _ in letters(driver)] == ["key"] * 2 * len(BAD_ROWS)
    driver.close()


BAD_PAIRS = [b"", b"abc", pair(b"m", GOOD, length=-1), pair(b"m", GOOD, length=1 << 30), pair(b"m", GOOD, length=60)]


def test_pairs_of_groups_of_tables_are_checked(spark: SparkSession) -> None:
    builder = StreamsBuilder("grouped")
    table = builder.stream("in", value=json(PAGES)).to_table(name="pages")
    table.group_by(F.col("page")).aggregate("totals", n="sum(n)").to_stream().to("out")
    driver = TopologyTestDriver(builder.build(), spark)
    topic = "grouped-totals-repartition"
    feed(driver, topic, b"p1", pair(b"m", GOOD))
    assert [each.value for each in driver.read_output("out")] == [{"n": 5}]
    bad = [*BAD_PAIRS, None, *(pair(b"m", each) for name, each in BAD_ROWS.items() if name != "empty")]
    for each in bad:
        feed(driver, topic, b"p1", each)
    feed(driver, topic, None, pair(b"m", GOOD))
    assert driver.read_output("out") == []
    assert [reason for reason, _ in letters(driver)] == ["value"] * len(bad) + ["key"]
    driver.close()


def test_questions_and_answers_of_foreign_keys_are_checked(spark: SparkSession) -> None:
    builder = StreamsBuilder("foreign")
    left = builder.stream("left", value=json(PAGES)).to_table(name="lefts")
    right = builder.stream("right", value=json("title string, m int")).to_table(name="rights")
    left.join(right, on=F.col("page"), name="joined").to_stream().to("out")
    driver = TopologyTestDriver(builder.build(), spark)
    driver.pipe_input("left", "l1", {"page": "p1", "n": 5})
    for topic, is_answer in (("foreign-joined-ask-repartition", False), ("foreign-joined-answer-repartition", True)):
        bad = [*BAD_PAIRS, *(pair(GOOD, each) for name, each in BAD_ROWS.items() if name != "empty")]
        for each in bad:
            feed(driver, topic, b"l1", each)
        assert [reason for reason, _ in letters(driver)] == ["value"] * len(bad)
        feed(driver, topic, b"l1", None)
        assert letters(driver) == ([] if is_answer else [("value", "each record of this internal topic has a value")])
    assert driver.read_output("out") == []
    driver.pipe_input("right", "p1", {"title": "t", "m": 1})
    assert [each.value["title"] for each in driver.read_output("out")] == ["t"]
    driver.close()


def test_damaged_state_ends_the_topology_with_the_ways_out(spark: SparkSession) -> None:
    builder = StreamsBuilder("damaged")
    builder.stream("in", value=json(PAGES)).to_table(name="pages").to_stream().to("out")
    driver = TopologyTestDriver(builder.build(), spark)
    driver.pipe_input("in", "k", {"page": "p1", "n": 5})
    entries = _private(_private(_private(driver._running(), "task"), "store"), "entries")
    for entry in list(entries.entrySet()):
        kept = bytes(entry.getValue())
        if len(kept) == 8 + len(GOOD):
            entries.put(entry.getKey(), kept[:8] + row(b"p1", 5, size=4_000))
    with pytest.raises(TopologyError, match=r"the state of the topology is damaged .*topology reset"):
        driver.pipe_input("in", "k", {"page": "p2", "n": 6})
    driver.close()


def _private(of: Any, name: str) -> Any:
    field = of.getClass().getDeclaredField(name)
    field.setAccessible(True)
    return field.get(of)


def schema(*fields: dict[str, Any]) -> str:
    return plain_json.dumps({"type": "record", "name": "R", "fields": list(fields)})


A = {"name": "a", "type": "string"}


def test_an_avro_schema_whose_records_require_themselves_is_that_records_fault(spark: SparkSession) -> None:
    builder = StreamsBuilder("circular")
    builder.stream("in", value=avro(schema(A))).to("out", value=json())
    driver = TopologyTestDriver(builder.build(), spark)
    harmful = driver.register("x-value", avro(schema(A, {"name": "self", "type": "R"})))
    deep = driver.register("y-value", avro(schema({"name": "next", "type": ["null", "R"]}, A)))
    good = driver.register("z-value", avro(schema(A)))
    text = b"\x02x"
    driver.pipe_input("in", "k", struct.pack(">bi", 0, harmful) + text)
    driver.pipe_input("in", "k", struct.pack(">bi", 0, deep) + b"\x02" * 400_000 + b"\x00" + text * 400_001)
    driver.pipe_input("in", "k", struct.pack(">bi", 0, good) + text)
    assert [each.value for each in driver.read_output("out")] == [{"a": "x"}]
    first, second = letters(driver)
    assert "a record requires a field of its own type" in first[1]
    assert "nested too deeply" in second[1]
    driver.close()


@pytest.mark.parametrize(
    ("field", "data"),
    [
        ({"name": "nulls", "type": {"type": "array", "items": "null"}}, b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f"),
        ({"name": "nulls", "type": {"type": "map", "values": "null"}}, b"\xfe\xff\xff\xff\x0f"),
        ({"name": "text", "type": "string"}, b"\xfe\xff\xff\xff\x0f"),
        ({"name": "raw", "type": "bytes"}, b"\xfe\xff\xff\x3f"),
    ],
)
@pytest.mark.parametrize("is_wanted", [True, False])
def test_lengths_in_avro_values_are_no_longer_than_the_value(
    spark: SparkSession, field: dict[str, Any], data: bytes, is_wanted: bool
) -> None:
    builder = StreamsBuilder("lengths")
    is_null = "items" in str(field) or "values" in str(field)
    wanted = schema(A, field) if is_wanted and not is_null else schema(A)
    builder.stream("in", value=avro(wanted)).to("out", value=json())
    driver = TopologyTestDriver(builder.build(), spark)
    number = driver.register("x-value", avro(schema(field, A)))
    driver.pipe_input("in", "k", struct.pack(">bi", 0, number) + data + b"\x02x" * 10)
    assert driver.read_output("out") == []
    assert len(letters(driver)) == 1
    driver.close()


def test_json_that_is_nested_too_deeply_is_a_dead_letter(spark: SparkSession) -> None:
    builder = StreamsBuilder("deep")
    builder.stream("in", value=json("n int, other string")).to("out")
    driver = TopologyTestDriver(builder.build(), spark)
    for opening, closing in (("[", "]"), ('{"a":', "}")):
        deep = opening * 200_000 + "1" + closing * 200_000
        driver.pipe_input("in", "k", '{"n": 1, "unknown": ' + deep + "}")
        driver.pipe_input("in", "k", '{"n": 1, "other": ' + deep + "}")
    assert driver.read_output("out") == []
    assert len(letters(driver)) == 4
    driver.close()


def node_file(*fields: dict[str, Any]) -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto(name="node.proto", package="shop", syntax="proto3")
    node = file.message_type.add(name="Node")
    for each in fields:
        node.field.add(label=1, **each)
    return file


def test_a_protobuf_value_1000_deep_is_a_dead_letter(spark: SparkSession) -> None:
    text = {"name": "a", "number": 1, "type": 9}
    nested = {"name": "next", "number": 2, "type": 11, "type_name": ".shop.Node"}
    read, written = (classes(file)["shop.Node"] for file in (node_file(text), node_file(text, nested)))
    builder = StreamsBuilder("nodes")
    builder.stream("in", value=protobuf(read)).to("out", value=json())
    driver = TopologyTestDriver(builder.build(), spark)
    number = driver.register("in-value", protobuf(written))
    start = b"\0\x0a\x01x"
    for depth in (1_000, 10_000):
        # Groups are read to find their end; what a message holds that the topology does not read is passed over.
        driver.pipe_input("in", "k", framed(number, start + b"\x13" * depth + b"\x14" * depth))
        driver.pipe_input("in", "k", framed(number, start + nested_message(depth, 2)))
    driver.pipe_input("in", "k", framed(number, start))
    assert [each.value for each in driver.read_output("out")] == [{"a": "x"}] * 3
    assert [reason for reason, _ in letters(driver)] == ["value"] * 2
    driver.close()
