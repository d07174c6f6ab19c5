"""State that is read while records are processed, against dicts of Python."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from engine.streams import NodeState, StreamsBuilder, TopologyTestDriver, json
from tests.spark.topologies.test_state_store import run_in

KEYS = [f"k{number}" for number in range(40)]


def live_state(driver: TopologyTestDriver, run: Any, spark: SparkSession) -> NodeState:
    """The state of the table of a run in a folder, as other threads than that of the run see it."""
    ranges: Any = spark._jvm.jmsbridge.streams.StateRange  # type: ignore[union-attr]
    assert driver._program is not None
    return NodeState(driver._program, "table", lambda *bounds, place: run.live("table", ranges(*bounds), place))


@pytest.fixture
def driver(spark: SparkSession) -> TopologyTestDriver:
    builder = StreamsBuilder("live")
    builder.table("in", value=json("n int"), name="table").to("out")
    return TopologyTestDriver(builder.build(), spark)


@pytest.mark.parametrize("cache_bytes", [0, 2_000, 1 << 20])
def test_rows_are_never_older_than_what_was_processed_before_the_question(
    spark: SparkSession, tmp_path: Path, driver: TopologyTestDriver, cache_bytes: int
) -> None:
    run = run_in(driver, spark, tmp_path, cache_bytes)
    asked = live_state(driver, run, spark)
    processed: dict[str, int] = {}
    """Number of the last record of each key that is processed."""
    begun: dict[str, int] = {}
    is_over = Event()

    def process() -> None:
        source = random.Random(cache_bytes)  # noqa: S311 # test data
        try:
            for number in range(1, 601):
                key = source.choice(KEYS)
                begun[key] = number
                driver.pipe_input("in", key, {"n": number}, number)
                processed[key] = number
                if source.random() < 0.05:
                    run.commit()
        finally:
            is_over.set()

    reads = 0
    with ThreadPoolExecutor(1) as pool:
        work = pool.submit(process)
        source = random.Random(1)  # noqa: S311 # test data
        while not is_over.is_set():
            low, high = sorted(source.sample(KEYS, 2))
            least = dict(processed)
            rows = {row["key"]: row["n"] for row in asked.range(low, high)}
            most = dict(begun)
            assert all(least[key] <= rows[key] for key in least if low <= key <= high)
            assert all(rows[key] <= most[key] for key in rows)
            assert all(low <= key <= high for key in rows)
            reads += 1
        work.result()
    assert reads > 5
    assert {row["key"]: row["n"] for row in asked.all()} == processed


@pytest.mark.parametrize("cache_bytes", [0, 2_000, 1 << 20])
def test_pages_have_all_rows_once_in_their_order(
    spark: SparkSession, tmp_path: Path, driver: TopologyTestDriver, cache_bytes: int
) -> None:
    run = run_in(driver, spark, tmp_path, cache_bytes)
    asked = live_state(driver, run, spark)
    source = random.Random(cache_bytes)  # noqa: S311 # test data
    model: dict[str, int] = {}
    for number in range(60):
        key = "".join(source.choices("abc", k=source.randrange(1, 4)))
        if source.random() < 0.3:
            driver.pipe_input("in", key, None, number)
            model.pop(key, None)
        else:
            driver.pipe_input("in", key, {"n": number}, number)
            model[key] = number
        if source.random() < 0.1:
            run.commit()
    expected = [{"key": key, "n": model[key]} for key in sorted(model, key=lambda key: (len(key), key))]
    for limit in (1, 3, 100):
        for most_bytes in (1, 1 << 20):
            found, after = asked.page(limit=limit, most_bytes=most_bytes)
            while after:
                rows, after = asked.page(limit=limit, after=after, most_bytes=most_bytes)
                assert len(rows) <= (1 if most_bytes == 1 else limit)
                found += rows
            assert found == expected
    some = [row for row in expected if "ab" <= row["key"] <= "b"]
    assert asked.page(from_key="ab", to_key="b") == (some, "")


def test_a_state_that_is_rolled_back_is_read_again_when_it_is_loaded(
    spark: SparkSession, tmp_path: Path, driver: TopologyTestDriver
) -> None:
    run = run_in(driver, spark, tmp_path, 1 << 20)
    asked = live_state(driver, run, spark)
    driver.pipe_input("in", "a", {"n": 1}, 1)
    run.commit()
    driver.pipe_input("in", "a", {"n": 2}, 2)
    assert asked.get("a") == {"key": "a", "n": 2}
    run.rollBack()
    assert asked.get("a") == {"key": "a", "n": 1}
    run.giveUp()
    with pytest.raises(Py4JJavaError, match="the share is being loaded"):
        asked.get("a")


def test_a_large_state_is_opened_from_a_whole_copy_and_few_changes(
    spark: SparkSession, tmp_path: Path, driver: TopologyTestDriver
) -> None:
    run = run_in(driver, spark, tmp_path, 0)

    def commit(first: int) -> None:
        for number in range(first, first + 30):
            driver.pipe_input("in", f"k{number}", {"n": number}, number)
        run.commit()
        run.maintain()

    commit(0)
    assert list(tmp_path.glob("0/*.zip")) == []
    commit(30)
    assert [path.name for path in tmp_path.glob("0/*.zip")] == ["2.zip"]
    for changelog in tmp_path.glob("0/[12].changelog"):
        changelog.unlink()
    commit(60)
    again = run_in(driver, spark, tmp_path, 0)
    again.goOn(3)
    assert len(list(live_state(driver, again, spark).all())) == 90
