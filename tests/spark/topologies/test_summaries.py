"""Aggregates that keep a bounded part of their values, or an estimate of them, beside a plain Python model."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import pytest
from pyspark.sql import SparkSession

from engine.streams import (
    SessionWindows,
    SlidingWindows,
    StreamsBuilder,
    TimeWindows,
    TopologyError,
    TopologyTestDriver,
    json,
    plan,
)

SEEDS = (1, 2)
MOST = 4

AGGREGATES = {
    "list": f"collect_list(n, {MOST})",
    "set": f"collect_set(n, {MOST})",
    "top": f"top(n, {MOST})",
    "bottom": f"bottom(n, {MOST})",
    "best": "top(struct(n, s), 2)",
    "early": f"collect_list(s, {MOST}) FILTER (WHERE n > 3)",
    "different": "approx_count_distinct(n)",
    "exactly": "count_distinct(n, 6)",
    "texts": "count_distinct(concat(s, coalesce(cast(n as string), '')), 10000)",
    "middle": "approx_percentile(n, 0.5)",
    "ends": "approx_percentile(n, array(0, 1))",
    "first_n": "first(n)",
    "last_n": "last(n)",
    "min_s": "min_by(s, n)",
    "max_s": "max_by(s, n)",
}


def model(records: Sequence[tuple[int | None, str]]) -> dict[str, Any]:
    """The aggregates of records in their order."""
    present = [n for n, _ in records if n is not None]
    ranked = sorted(present, reverse=True)
    structs = sorted(records, key=lambda each: (each[0] is not None, each[0], each[1]), reverse=True)
    rows = [(n, s) for n, s in records if n is not None]
    least = min((n for n, _ in rows), default=None)
    most = max((n for n, _ in rows), default=None)
    return {
        "list": present[:MOST],
        "set": list(dict.fromkeys(present))[:MOST],
        "top": ranked[:MOST],
        "bottom": ranked[::-1][:MOST],
        "best": [{"s": s} if n is None else {"n": n, "s": s} for n, s in structs[:2]],
        "early": [s for n, s in rows if n > 3][:MOST],
        "different": len(set(present)),
        "exactly": min(6, len(set(present))),
        "texts": len(set(records)),
        "middle": None if not present else float(sorted(present)[(len(present) + 1) // 2 - 1]),
        "ends": None if not present else [float(min(present)), float(max(present))],
        "first_n": records[0][0],
        "last_n": records[-1][0],
        # Of equal ones the latest.
        "min_s": next((s for n, s in reversed(rows) if n == least), None),
        "max_s": next((s for n, s in reversed(rows) if n == most), None),
    }


def samples(seed: int) -> list[tuple[str, int | None, str, int]]:
    """Keys, numbers, texts and times; some numbers are missing, some times late, equal or below 0."""
    source = random.Random(seed)  # noqa: S311 # test data
    return [
        (
            source.choice("ab"),
            source.choice((None, *range(-3, 9))),
            source.choice("xyz"),
            source.choice((at * 50, at * 50 - source.randrange(400), -1)),
        )
        for at in range(10, 90)
    ]


def said(value: dict[str, Any]) -> dict[str, Any]:
    return {name: value.get(name) for name in AGGREGATES}


@pytest.mark.parametrize("seed", SEEDS)
def test_all_records_of_a_key(spark: SparkSession, seed: int) -> None:
    builder = StreamsBuilder("all")
    builder.stream("in", value=json("n int, s string")).group_by_key().aggregate("t", **AGGREGATES).to("out")
    driver = TopologyTestDriver(builder.build(), spark)
    kept: dict[str, list[tuple[int | None, str]]] = defaultdict(list)
    expected = []
    for key, number, text, time in samples(seed):
        driver.pipe_input("in", key, {"n": number, "s": text}, timestamp=time)
        kept[key].append((number, text))
        expected.append((key, model(kept[key])))
    assert driver.rejected() == []
    assert [(each.key, said(each.value)) for each in driver.read_output("out")] == expected


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    "windows",
    [
        TimeWindows.of("1 s", advance="400 ms", grace="200 ms"),
        SessionWindows.of("60 ms", grace="200 ms"),
        SlidingWindows.of("300 ms", grace="200 ms"),
    ],
    ids=["hopping", "sessions", "sliding"],
)
def test_the_records_of_a_window(
    spark: SparkSession, seed: int, windows: TimeWindows | SessionWindows | SlidingWindows
) -> None:
    """A window has what the aggregate of its own list of records says, sessions that were joined too."""
    builder = StreamsBuilder("windows")
    grouped = builder.stream("in", value=json("n int, s string")).group_by_key().windowed_by(windows)
    wanted = {name: AGGREGATES[name] for name in ("top", "bottom", "different", "exactly", "texts", "middle", "ends")}
    grouped.aggregate("t", everything="collect_list(struct(n, s), 10000)", **wanted).suppress().to("out")
    driver = TopologyTestDriver(builder.build(), spark)
    records = samples(seed)
    for key, number, text, time in records:
        driver.pipe_input("in", key, {"n": number, "s": text}, timestamp=time)
    driver.advance_time(100_000)
    assert len(driver.rejected()) == sum(time < 0 for *_, time in records)
    outputs = driver.read_output("out")
    assert len(outputs) > 10
    for each in outputs:
        expected = model([(one.get("n"), one["s"]) for one in each.value["everything"]])
        assert {name: each.value.get(name) for name in wanted} == {name: expected[name] for name in wanted}


@pytest.mark.parametrize("seed", SEEDS)
def test_groups_of_a_table_have_their_present_rows_in_the_order_of_keys(spark: SparkSession, seed: int) -> None:
    builder = StreamsBuilder("groups")
    table = builder.table("in", value=json("g string, n int, s string"))
    table.group_by("g").aggregate("t", **AGGREGATES).to("out")
    driver = TopologyTestDriver(builder.build(), spark)
    source = random.Random(seed)  # noqa: S311 # test data
    rows: dict[str, tuple[str, int | None, str]] = {}
    expected: dict[str, Any] = {}
    for _ in range(60):
        key = source.choice("abcdef")
        before = rows.pop(key, None)
        value = None
        if source.random() < 0.8:
            row = rows[key] = source.choice("xy"), source.choice((None, *range(5))), source.choice("st")
            value = dict(zip("gns", row, strict=True))
        driver.pipe_input("in", key, value)
        for group in {each[0] for each in (before, rows.get(key)) if each is not None}:
            members = [(n, s) for _, (g, n, s) in sorted(rows.items()) if g == group]
            expected[group] = model(members) if members else None
    found = {each.key: None if each.value is None else said(each.value) for each in driver.read_output("out")}
    assert driver.rejected() == []
    assert found == expected


def test_estimates_are_within_their_errors(spark: SparkSession) -> None:
    builder = StreamsBuilder("many")
    grouped = builder.stream("in", value=json("n int, items array<int>")).flat_map("items").group_by_key()
    columns = {
        "all": "approx_count_distinct(value)",
        "exact": "approx_count_distinct(value, 0.005)",
        "texts": "approx_count_distinct(concat('id-', value))",
        "signs": "count_distinct(CASE value WHEN 0 THEN 0.0D WHEN 1 THEN -0.0D ELSE double('NaN') END, 9)",
        "zeros": "approx_count_distinct(CASE WHEN value % 2 = 0 THEN 0.0D ELSE -0.0D END)",
        "ranks": "approx_percentile(value, array(0.1, 0.5, 0.99))",
        "fine": "approx_percentile(CAST(value AS decimal(20, 2)), 0.5, 500)",
    }
    grouped.aggregate("t", **columns).to("out")
    driver = TopologyTestDriver(builder.build(), spark)
    count = 20_000
    numbers = list(range(count))
    random.Random(1).shuffle(numbers)  # noqa: S311 # test data
    for at in range(0, count, 2_000):
        driver.pipe_input("in", "k", {"items": [*numbers[at : at + 2_000], *numbers[at : at + 10]]})
    value = driver.read_output("out")[-1].value
    # Three standard errors, and the 99 % that the documentation names.
    assert abs(value["all"] - count) < 0.05 * count
    assert abs(value["texts"] - count) < 0.05 * count
    assert abs(value["exact"] - count) < 0.015 * count
    assert value["zeros"] == 1
    assert value["signs"] == 2
    for rank, found in zip((0.1, 0.5, 0.99), value["ranks"], strict=True):
        assert abs(found - rank * count) < 0.02 * count
    assert abs(value["fine"] - 0.5 * count) < 0.004 * count


ERRORS = [
    ("collect_list(n)", "collect_list is called with 1 arguments: write collect_list(item, 100), which keeps"),
    ("collect_set(n, m)", "collect_set needs a constant in place of"),
    ("collect_set(n, 0)", "collect_set keeps a whole number of values from 1 to 10,000, not 0"),
    ("collect_list(n, 10001)", "collect_list keeps a whole number of values from 1 to 10,000, not 10001"),
    ("count_distinct(n)", "count_distinct is called with 1 arguments: write count_distinct(item, 1000)"),
    ("count_distinct(v, 9)", "count_distinct cannot compare values of the type MAP<STRING, INT>"),
    ("top(n, 1.5)", "top keeps a whole number of values from 1 to 10,000, not 1.5"),
    ("top(n, 'x')", "top needs a number in place of"),
    ("bottom(v, 2)", "bottom cannot compare values of the type MAP<STRING, INT>"),
    ("approx_percentile(n, 1.5)", "approx_percentile takes ranks from 0 to 1, not 1.5"),
    ("approx_percentile(s, 0.5)", "approx_percentile is of numbers, not of STRING"),
    ("approx_percentile(n, 0.5, 100000)", "approx_percentile takes an accuracy from 1 to 1,000, not 100000"),
    ("approx_count_distinct(n, 0.0001)", "approx_count_distinct takes a standard error from 0.005 to 1, not 0.0001"),
    ("count(DISTINCT n)", "cannot be aggregated record by record; use functions such as"),
    ("percentile(n, 0.5)", "cannot be aggregated record by record; use functions such as"),
]


@pytest.mark.parametrize(("text", "message"), ERRORS)
def test_what_cannot_be_aggregated_is_refused_with_what_to_write(spark: SparkSession, text: str, message: str) -> None:
    builder = StreamsBuilder("refused")
    value = json("n int, m int, s string, v map<string, int>")
    builder.stream("in", value=value).group_by_key().aggregate("t", found=text).to("out")
    with pytest.raises(TopologyError) as caught:
        plan(builder.build(), spark)
    assert "'t'" in str(caught.value)
    assert message in str(caught.value)


def test_a_session_keeps_its_own_functions(spark: SparkSession) -> None:
    builder = StreamsBuilder("own")
    builder.stream("in", value=json("n int")).group_by_key().aggregate(t="collect_list(n, 5)", u="top(n, 1)").to("out")
    plan(builder.build(), spark)
    frame = spark.range(3)
    (row,) = frame.selectExpr("collect_list(id) l", "approx_percentile(id, 0.5, 100) p").collect()
    assert (sorted(row.l), row.p) == ([0, 1, 2], 1)
    assert not spark.catalog.functionExists("top")
