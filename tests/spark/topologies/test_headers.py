"""Headers that a topology sets, copies and removes, beside a plain Python model of them."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from pyspark.sql import SparkSession

from engine.streams import Expression, Row, StreamsBuilder, TopologyError, TopologyTestDriver, json, plan

NAMES = ("a", "b", "c.d")

Headers = tuple[tuple[str, bytes | None], ...]
Value = Callable[[int, int, Headers], bytes | None]


def first(headers: Headers, name: str) -> bytes | None:
    return next((value for each, value in headers if each == name), None)


VALUES: list[tuple[Expression, Value]] = [
    ("'constant'", lambda n, time, headers: b"constant"),
    ("n + 1", lambda n, time, headers: str(n + 1).encode()),
    ("CASE WHEN n > 9 THEN 'large' END", lambda n, time, headers: b"large" if n > 9 else None),
    ("coalesce(timestamp < '1970-01-01T00:00:00Z', true)", lambda n, time, headers: b"true" if time < 0 else b"false"),
    (lambda row: row.header_bytes("b"), lambda n, time, headers: first(headers, "b")),
    ("X'ff00'", lambda n, time, headers: b"\xff\x00"),
]  # fmt: skip


@pytest.mark.parametrize("seed", range(6))
def test_headers_are_replaced_behind_the_others_and_removed(spark: SparkSession, seed: int) -> None:
    source = random.Random(seed)  # noqa: S311 # test data
    names = source.sample((*NAMES, "new"), source.randrange(1, 5))
    chosen = {name: None if source.random() < 0.3 else source.choice(VALUES) for name in names}
    builder = StreamsBuilder("headers")
    stream = builder.stream("in", value=json("n int")).with_headers(
        {name: None if each is None else each[0] for name, each in chosen.items()}
    )
    stream.to("out")
    # They go with the record through internal topics, too.
    stream.select_key("n").repartition().to("again")
    driver = TopologyTestDriver(builder.build(), spark)
    expected: list[Headers] = []
    for _ in range(40):
        number, time = source.randrange(20), source.randrange(-2, 1000)
        headers = tuple(
            (source.choice(NAMES), source.choice((None, b"", b"\xfe\x01", b"text"))) for _ in range(source.randrange(6))
        )
        driver.pipe_input("in", None, {"n": number}, timestamp=time, headers=headers)
        made = [(name, None if each is None else each[1](number, time, headers)) for name, each in chosen.items()]
        kept = [each for each in headers if each[0] not in chosen]
        expected.append((*kept, *(each for each in made if each[1] is not None)))
    assert [each.headers for each in driver.read_output("out")] == expected
    assert [each.headers for each in driver.read_output("again")] == expected
    assert driver.rejected() == []


def test_values_read_the_headers_as_they_were(spark: SparkSession) -> None:
    def swapped(name: str) -> Callable[[Row], object]:
        return lambda row: row.header(name)

    builder = StreamsBuilder("swap")
    builder.stream("in").with_headers({"a": swapped("b"), "b": swapped("a")}).to("out")  # type: ignore[dict-item]
    driver = TopologyTestDriver(builder.build(), spark)
    driver.pipe_input("in", "k", None, headers={"a": "1", "b": "2"})
    (output,) = driver.read_output("out")
    assert (output.value, output.headers) == (None, (("a", b"2"), ("b", b"1")))


def test_a_record_whose_header_cannot_be_computed_is_a_dead_letter(spark: SparkSession) -> None:
    builder = StreamsBuilder("fails")
    builder.stream("in", value=json("n int")).with_headers({"half": "10 DIV n"}, name="halves").to("out")
    driver = TopologyTestDriver(builder.build(), spark)
    driver.pipe_input("in", "k", {"n": 0}, headers={"a": "1"})
    driver.pipe_input("in", "k", {"n": 5}, headers={"half": "x"})
    (letter,) = driver.rejected()
    assert dict(letter.headers)["jmsbridge.node"] == b"halves"
    assert letter.headers[0] == ("a", b"1")
    assert [each.headers for each in driver.read_output("out")] == [(("half", b"2"),)]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("missing", "missing"),
        ("array(n)", "'h': the header 'a' is a single value or bytes, not ARRAY<INT>: use to_json"),
        (5, "'h': this is 5, and not a Column"),
    ],
)
def test_what_is_no_header_is_refused(spark: SparkSession, value: Expression, message: str) -> None:
    builder = StreamsBuilder("refused")
    builder.stream("in", value=json("n int")).with_headers({"a": value}, name="h").to("out")
    with pytest.raises(TopologyError, match=message):
        plan(builder.build(), spark)
