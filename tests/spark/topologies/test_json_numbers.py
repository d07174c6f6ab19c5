"""Numbers in JSON values are read exactly, or are refused by the name of their field: against a model with decimals."""

from __future__ import annotations

import math
import random
import re
import struct
import time
from collections.abc import Callable
from decimal import Decimal, localcontext
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from engine.streams import StreamsBuilder, TopologyTestDriver, json

NUMBERS: tuple[str, ...] = (
    "0", "-0", "7", "-12", "1.0", "99.90", "0.1", "0.125", "0.120", "-0.005", "12345678901234567.89", "1e2", "1E+2",
    "1e-2", "-1.50e1", "0e5", "0.0e-400", "1e-400", "1E400", "-1E400", "1e999999999", "1e-999999999", "16777217",
    "3.5e38", "1e38", "99999999.99", "100000000.00", "123456789012345678901234567890123456789",
    "99999999999999999999999999999999999999", "9223372036854775807", "9223372036854775808", "-9223372036854775808",
    "-9223372036854775809", "2147483648", "-2147483649", "32768", "128", "200", "127", "-129", "999999999999999999",
    "1234567890123456789", "0.30000000000000004", "1.7976931348623157e308", "1.7976931348623159e308", "4.9e-324",
    "9007199254740993", "0.1000000000000000055511151231257827",
)  # fmt: skip
TYPES = ("string", "bigint", "int", "smallint", "tinyint", "double", "float", "decimal(38,0)", "decimal(10,2)")
REFUSED = "refused"


def model(kind: str, text: str) -> Any:
    """The value of a number as it is written, in a field of a type."""
    with localcontext(prec=60):
        if kind == "string":
            return text
        if kind in ("double", "float"):
            return nearest(kind, text)
        if found := re.fullmatch(r"decimal\((\d+),(\d+)\)", kind):
            return exact(text, int(found[1]), int(found[2]))
        bits = {"bigint": 64, "int": 32, "smallint": 16, "tinyint": 8}[kind]
        if re.fullmatch(r"-?\d+", text) is None:
            return REFUSED
        number = int(text)
        return number if -(2 ** (bits - 1)) <= number < 2 ** (bits - 1) else REFUSED


def nearest(kind: str, text: str) -> Any:
    number = float(text)
    try:
        number = number if kind == "double" else struct.unpack("f", struct.pack("f", number))[0]
    except OverflowError:
        return REFUSED
    return REFUSED if math.isinf(number) else number


def exact(text: str, precision: int, scale: int) -> Any:
    sign, digits, exponent = Decimal(text).as_tuple()
    assert isinstance(exponent, int)
    written = "".join(map(str, digits)).lstrip("0")
    plain = written.rstrip("0")
    exponent += len(written) - len(plain)
    if plain and (exponent < -scale or len(plain) + exponent > precision - scale):
        return REFUSED
    return Decimal((sign, tuple(map(int, plain or "0")), exponent if plain else 0))


@pytest.fixture(scope="module")
def program(spark: SparkSession) -> Any:
    jvm: Any = spark._jvm
    return jvm.jmsbridge.streams.Planner(spark._jsparkSession, "json", "skip", "dead", jvm.java.util.ArrayList(), "")


def shown(row: Any, at: int, kind: str) -> Any:
    if found := re.fullmatch(r"decimal\((\d+),(\d+)\)", kind):
        return Decimal(row.getDecimal(at, int(found[1]), int(found[2])).toString())
    getters: dict[str, Callable[[], Any]] = {
        "string": lambda: row.getUTF8String(at).toString(),
        "bigint": lambda: row.getLong(at),
        "int": lambda: row.getInt(at),
        "smallint": lambda: row.getShort(at),
        "tinyint": lambda: row.getByte(at),
        "double": lambda: row.getDouble(at),
        # Java's text of a float has as many digits as tell it from its neighbours.
        "float": lambda: struct.unpack("f", struct.pack("f", row.getFloat(at)))[0],
    }
    return getters[kind]()


def refusal(error: Py4JJavaError) -> str:
    assert error.java_exception.getClass().getSimpleName() == "UnfitValueException"
    return str(error.java_exception.getMessage())


def found(reader: Any, kind: str, text: str) -> Any:
    try:
        return shown(reader.read(f'{{"a": 1, "x": {text}}}'.encode()), 1, kind)
    except Py4JJavaError as error:
        told = refusal(error)
        assert told.startswith(f"the field x is a {kind}, which cannot be "), told
        return REFUSED


def texts(seed: int, count: int) -> list[str]:
    source = random.Random(seed)  # noqa: S311 # test data
    made = []
    for _ in range(count):
        digits = "".join(source.choices("0123456789", k=source.choice((1, 3, 9, 18, 19, 20, 38, 39))))
        whole = digits.lstrip("0") or "0"
        decimals = "".join(source.choices("0123456789", k=source.randrange(1, 20)))
        fraction = source.choice(("", "", ".0", ".50", f".{decimals}"))
        power = source.choice(("", "", "", "e0", "E-3", "e+17", "e-20", "e300"))
        made.append(source.choice(("", "-")) + whole + fraction + power)
    return made


@pytest.mark.parametrize("kind", TYPES)
def test_both_ways_to_read_a_number_give_what_the_model_gives(program: Any, kind: str) -> None:
    # Spark reads what has an array; the rest is read by the faster code, where it has types for it.
    fast, slow = (program.jsonReader(json(f"a int, x {kind}{more}").reader()._jc) for more in ("", ", z array<int>"))
    is_simple = kind in ("string", "bigint", "int", "double")
    assert fast.getClass().getSimpleName() == ("JsonReader" if is_simple else "ColumnReader")
    assert slow.getClass().getSimpleName() == "ColumnReader"
    for text in (*NUMBERS, *texts(len(kind), 150)):
        wanted = model(kind, text)
        for reader in (fast, slow):
            assert found(reader, kind, text) == wanted, text


def test_nested_fields_are_named_by_their_path(program: Any) -> None:
    schema = "s struct<d: decimal(10,2), t: string>, l array<struct<x: double>>, m map<string, bigint>, n array<string>"
    reader = program.jsonReader(json(schema).reader()._jc)
    for value, name in (
        ('{"s": {"d": 0.125}}', "s.d"),
        ('{"l": [{"x": 1}, {"x": 1E400}]}', "l.1.x"),
        ('{"m": {"k": 9223372036854775808}}', "m.k"),
    ):
        with pytest.raises(Py4JJavaError) as raised:
            reader.read(value.encode())
        assert refusal(raised.value).startswith(f"the field {name} is a ")
    elements = b'[99.90, true, {"y": 12345678901234567.89, "z": [ 1.10 ]}]'
    row = reader.read(b'{"s": {"d": 0.120, "t": 1E400}, "n": ' + elements + b"}")
    assert shown(row.getStruct(0, 2), 0, "decimal(10,2)") == Decimal("0.12")
    assert shown(row.getStruct(0, 2), 1, "string") == "1E400"
    kept = [row.getArray(3).getUTF8String(at).toString() for at in range(3)]
    assert kept == ["99.90", "true", '{"y":12345678901234567.89,"z":[1.10]}']


def test_a_decimal_that_is_text_is_exact_as_well(program: Any) -> None:
    reader = program.jsonReader(json("d decimal(10,2)").reader()._jc)
    assert shown(reader.read(b'{"d": "1,234.50"}'), 0, "decimal(10,2)") == Decimal("1234.5")
    for text in ("0.125", "x", "100000000"):
        with pytest.raises(Py4JJavaError) as raised:
            reader.read(f'{{"d": "{text}"}}'.encode())
        assert refusal(raised.value) == f"the field d is a decimal(10,2), which cannot be {text} without loss"


def test_digits_without_end_take_a_bounded_time(program: Any) -> None:
    digits = "7" * 10_000_000
    for schema, is_text in (("d decimal(38,0)", False), ("d double", False), ("d bigint", False), ("d string", True)):
        reader = program.jsonReader(json(schema).reader()._jc)
        begun = time.monotonic()
        if is_text:
            assert reader.read(f'{{"d": {digits}}}'.encode()).getUTF8String(0).numBytes() == len(digits)
        else:
            with pytest.raises(Py4JJavaError) as raised:
                reader.read(f'{{"d": {digits}}}'.encode())
            assert refusal(raised.value).endswith(f" cannot be {'7' * 40}... without loss")
        # Most of the time is that of the way into the JVM.
        assert time.monotonic() - begun < 20


def test_a_letter_names_the_field(spark: SparkSession) -> None:
    builder = StreamsBuilder("numbers")
    builder.stream("in", value=json("s string, d decimal(10,2), x double"), name="in").to("out")
    driver = TopologyTestDriver(builder.build(), spark)
    for value in ('{"s": 99.90, "d": 0.120, "x": 1e2}', '{"d": 0.125}', '{"x": 1E400}'):
        driver.pipe_input("in", "k", value)
    (written,) = driver.read_output("out", as_bytes=True)
    assert written.value == b'{"s":"99.90","d":0.12,"x":100.0}'
    told = [dict(each.headers)["jmsbridge.error"] for each in driver.rejected()]
    assert told == [
        b"the field d is a decimal(10,2), which cannot be 0.125 without loss",
        b"the field x is a double, which cannot be 1E400 without loss",
    ]


def test_numbers_that_are_written_are_read_again_as_they_were(spark: SparkSession) -> None:
    schema = "b bigint, d decimal(38,18), x double, f float"
    builder = StreamsBuilder("written")
    builder.stream("in", value=json(schema)).to("out", value=json())
    driver = TopologyTestDriver(builder.build(), spark)
    values = [
        '{"b":9223372036854775807,"d":12345678901234567890.123456789012345678,"x":1.7976931348623157E308,"f":3.4028235E38}',
        '{"b":-9223372036854775808,"d":-0.000000000000000001,"x":4.9E-324,"f":1.4E-45}',
        '{"x":"NaN","f":"-Infinity"}',
    ]
    for _ in range(2):
        for value in values:
            driver.pipe_input("in", "k", value)
        values = [each.value.decode() for each in driver.read_output("out", as_bytes=True)]
    assert values == [
        '{"b":9223372036854775807,"d":12345678901234567890.123456789012345678,"x":1.7976931348623157E308,"f":3.4028235E38}',
        '{"b":-9223372036854775808,"d":-1E-18,"x":4.9E-324,"f":1.4E-45}',
        '{"x":"NaN","f":"-Infinity"}',
    ]
