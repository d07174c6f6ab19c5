"""Expressions of which Spark's optimiser computes a part once, below its users: in fields, filters and aggregates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.streams import StreamsBuilder, TopologyTestDriver, json

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NUMBERS = (1, 2, 3, 11, 12)


def test_parts_that_are_used_twice_are_computed_in_all_places(spark: SparkSession) -> None:
    builder = StreamsBuilder("shared")
    numbers = builder.stream("in", value=json("n int"))
    numbers.group_by_key().aggregate(
        "counts",
        low="count_if(n < 10)",
        high="count_if(n >= 10)",
        middle="count_if(n * 2 between 3 and 30)",
        squares="sum(nullif(n * n, 4))",
        few="count_if(n > 0) filter (where n * n between n + 1 and 130)",
    ).to("counted")
    numbers.map_values(a="nullif(n * n, 4)", b="nullif(n * n + n * 3, 10)", c="(n * n + n) between n and n * n").to(
        "fields"
    )
    numbers.filter("nullif(n * n + n * 3, 10) is null or (n * n between n and 7)").to("passed")
    with TopologyTestDriver(builder.build(), spark) as driver:
        for number in NUMBERS:
            driver.pipe_input("in", "k", {"n": number})
        counted = driver.read_output("counted")[-1].value
        fields = [record.value for record in driver.read_output("fields")]
        passed = [record.value["n"] for record in driver.read_output("passed")]
    assert counted == {"low": 3, "high": 2, "middle": 4, "squares": 1 + 9 + 121 + 144, "few": 3}
    none = {"a": 4, "b": 10}
    assert fields == [
        {name: value for name, value in {"a": n * n, "b": n * n + n * 3}.items() if value != none[name]} | {"c": False}
        for n in NUMBERS
    ]
    assert passed == [1, 2]
