"""JSON values are read and written as Spark's own functions read and write them, the common ones by faster code.

Numbers that Spark's functions would not read as they are have a test of their own, in `test_json_numbers`.
"""

from __future__ import annotations

import json as python_json
import random
import re
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from engine.streams import StreamsBuilder, TopologyTestDriver, json
from engine.topologies.library.serdes import ColumnSerde, SerdeKind

SCHEMA = "a string, b bigint, c int, d double, e boolean"
NAMES = "abcde"
NUMBER_AS_TEXT = re.compile(rb'"a" ?: ?(-?\d|\{|\[|NaN)')
SCALARS: tuple[str, ...] = (
    "null", "true", "false", "0", "-0", "7", "-12", "007", "2147483647", "2147483648", "-2147483649",
    "999999999999999999", "9999999999999999999", "1.5", "-0.25", "1e3", "-0.0", "1.", ".5", "-", "0.1",
    "123456789.123456789",     '""', '"x"', '"ä€😀"',
    '"a\\"b"', '"tab\\tend"', '"a/b"', '"1"', '"NaN"', '"true"', "[]", "[1]", "{}", '{"x": 1}', "tru", "nul",
    "'x'", '"\x01"', '"\x7f"', "NaN",
)  # fmt: skip
WHOLE: tuple[bytes, ...] = (
    b"", b" ", b"{}", b" { } ", b"null", b"7", b"[]", b"[{}]", b'{"a":"x"', b'{"a":"x"}}', b'{"a":"x"} x',
    b'{"a":"x",}',
    b'{"a" "x"}', b'{,"a":"x"}', b'{"a":"\xff"}', b'{"\xff":1}', b'{"z":"\xff"}', b'\xef\xbb\xbf{"a":"x"}',
    b'{"a":"x","a":"y"}',
    b'{"\\u0061":"x"}', b'{"a":"x"}\n', b'{"b":1 }', b'{"b":1\n,"c":2}', b'{"A":"x"}', b'{"e":truex}',
    b'{"b":1"c":2}', b'{"b":12x}',
)  # fmt: skip


def texts(seed: int, count: int) -> list[bytes]:
    """Random JSON objects, some of them with a byte changed, left out or put in."""
    source = random.Random(seed)  # noqa: S311 # test data
    found = []
    for _ in range(count):
        names = source.sample(NAMES + "zy", source.randrange(7))
        fitting = {"a": '"x"', "b": "5", "c": "-6", "d": "2.5", "e": "true"}
        values = [
            f'"{name}"{source.choice(("", " "))}:{source.choice(("", " "))}'
            + (fitting[name] if name in fitting and source.random() < 0.6 else source.choice(SCALARS))
            for name in names
        ]
        text = ("{" + source.choice((",", " , ")).join(values) + "}").encode()
        if source.random() < 0.2:
            at = source.randrange(len(text))
            text = (
                text[:at]
                + source.choice((b"", b"}", b'"', b",", b" ", b"1", b"\x80"))
                + text[at + source.randrange(2) :]
            )
        found.append(text)
    return found


@pytest.fixture(scope="module")
def program(spark: SparkSession) -> Any:
    jvm: Any = spark._jvm
    return jvm.jmsbridge.streams.Planner(spark._jsparkSession, "json", "skip", "dead", jvm.java.util.ArrayList(), "")


def read(reader: Any, value: bytes) -> bytes | None:
    try:
        return bytes(reader.read(value).getBytes())
    except Py4JJavaError as error:
        if error.java_exception.getClass().getSimpleName() != "UnfitValueException":
            raise
        return None


@pytest.mark.parametrize("schema", [SCHEMA, "e boolean, a string", "b bigint"])
def test_the_fast_reader_reads_what_spark_reads(program: Any, schema: str) -> None:
    column = json(schema).reader()._jc
    fast, slow = program.jsonReader(column), program.reader(column)
    assert fast.getClass().getSimpleName() == "JsonReader"
    for value in (
        *WHOLE,
        *(f'{{"{name}":{each}}}'.encode() for name in NAMES for each in SCALARS),
        *texts(len(schema), 400),
    ):
        if not NUMBER_AS_TEXT.search(value):
            assert read(fast, value) == read(slow, value), value


NESTED = "a string, s struct<a: string, b: bigint, s: struct<d: double, e: boolean>>, b bigint"
INNER = (
    "{}", "null", "7", '"x"', "[]", "true", '{"d":2.5,"e":true}', '{"e":false,"d":1}', '{"d":"x"}', '{"d":null}',
    '{"d":1,"d":2}', '{"z":{"y":[1,{"x":"w"}]},"d":3}', '{"z":[1,]}', '{"z":[,1]}', '{"z":{"y"}}',
    '{"z":[[[]],{}],"e":true}',
    '{"z":1e3}', '{"z":"\\n"}', '{"d":2.5', '{"d":2.5}}', '{"e":tru}', '{"z":[1 2]}', '{"z":007}', '{"z":{"a":1,}}',
)  # fmt: skip


def test_the_fast_reader_reads_objects_in_objects_as_spark_does(program: Any) -> None:
    column = json(NESTED).reader()._jc
    fast, slow = program.jsonReader(column), program.reader(column)
    assert fast.getClass().getSimpleName() == "JsonReader"
    source = random.Random(7)  # noqa: S311 # test data
    values = [b"{}", b'{"s":null}', b'{"s":{}}', b'{"s":{"s":{}}}', b'{"s":[]}', b'{"s":"x"}', b'{"s":{"a":"\xff"}}']
    for inner in INNER:
        texts_of_s = ['"a":"ä"', '"b":7', f'"s":{inner}', f'"z":{inner}']
        for _ in range(6):
            # In the order of the schema, in which Spark lays out the row.
            parts = sorted(source.sample(texts_of_s, source.randrange(1, 5)), key=texts_of_s.index)
            fields = ['"a":"x"', f'"z":{inner}', f'"s":{{{",".join(parts)}}}', '"b":-1']
            outer = sorted(source.sample(fields, 3), key=fields.index)
            values.append(f"{{{source.choice((',', ' , ')).join(outer)}}}".encode())
    for value in values:
        assert read(fast, value) == read(slow, value), value


def test_fields_of_objects_come_in_any_order(spark: SparkSession) -> None:
    builder = StreamsBuilder("order")
    builder.stream("in", value=json(NESTED)).map_values(d="s.s.d", inner="s.a", a="a", b="s.b").to("out")
    with TopologyTestDriver(builder.build(), spark) as driver:
        driver.pipe_input("in", "k", b'{"b":1,"s":{"s":{"e":true,"d":2.5},"z":[{}],"b":7,"a":"in"},"a":"out"}')
        (record,) = driver.read_output("out")
    assert record.value == {"d": 2.5, "inner": "in", "a": "out", "b": 7}


@pytest.mark.parametrize(
    "schema", ["a string, t timestamp", "a array<int>", "a string, s struct<x: array<int>>", "n decimal(10,2)"]
)
def test_other_types_are_left_to_spark(program: Any, schema: str) -> None:
    assert program.jsonReader(json(schema).reader()._jc).getClass().getSimpleName() == "ColumnReader"


def test_what_is_written_is_what_spark_writes(spark: SparkSession) -> None:
    schema = SCHEMA + ", t timestamp, n decimal(23,3), s struct<x: bigint, y: string>"
    schema += ", l array<struct<p: decimal(10,2), q: string>>, m array<bigint>"
    source = random.Random(5)  # noqa: S311 # test data
    strings = [None, "", "x", 'a"b', "a\\b", "a\nb", "ä€😀", "\x7f", "a/b", "<&'>"]
    times = [
        None,
        *(
            f"{source.randrange(1, 9999):04}-0{source.randrange(1, 10)}-1{source.randrange(10)}T01:02:03.45{n}Z"
            for n in range(9)
        ),
    ]
    objects = [
        {
            "a": source.choice(strings),
            "b": source.choice([None, 0, -1, 2**63 - 1, -(2**63)]),
            "c": source.choice([None, 5, -(2**31)]),
            "d": source.choice([None, 0.0, -0.0, 1e300, 1.5, 100.0, 1e7, 1e-7, 123456.789]),
            "e": source.choice([None, True, False]),
            "t": source.choice(times),
            "n": source.choice([None, 0, 1.5, -0.001, 12345678901234567890]),
            "s": source.choice([None, {}, {"x": 1}, {"y": 'a"b'}, {"x": -(2**63), "y": "ä"}]),
            "l": source.choice([None, [], [None], [{"p": 0.25}, {}, {"q": "x"}], [{"p": 10, "q": "a\\b"}]]),
            "m": source.choice([None, [], [0, None, 10**18, 999, -1000]]),
        }
        for _ in range(150)
    ]
    values = [python_json.dumps({name: each for name, each in row.items() if each is not None}) for row in objects]
    builder = StreamsBuilder("written")
    builder.stream("in", value=json(schema)).to("out", value=ColumnSerde(SerdeKind.JSON))
    driver = TopologyTestDriver(builder.build(), spark)
    for value in values:
        driver.pipe_input("in", "k", value)
    frame = spark.createDataFrame(
        [(number, each.encode()) for number, each in enumerate(values)], "at int, value binary"
    )
    fields = frame.select("at", json(schema).reader().alias("v")).select("at", "v.*")
    written = fields.select("at", ColumnSerde(SerdeKind.JSON).writer(tuple(fields.columns[1:])).alias("text")).orderBy(
        "at"
    )
    expected = [row.text.encode() for row in written.collect()]
    assert [each.value for each in driver.read_output("out", as_bytes=True)] == expected
