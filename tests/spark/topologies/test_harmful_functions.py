"""Python functions that end their process, never return, or return too much: each costs the records that caused it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from engine.limits import RESULT_BYTES
from engine.streams import InputRecord, ProcessorContext, StreamsBuilder, Topology, TopologyTestDriver, json, python
from engine.topologies.library.program import plan
from tests.waiting import until

BAD = 3
NUMBERS = range(6)
KEPT = [number for number in NUMBERS if number != BAD]
TIMEOUT_SECONDS = 1.5


def leaves() -> None:
    sys.exit(3)


def dies() -> None:
    os._exit(3)


def hangs() -> None:
    while True:
        time.sleep(60)


def hangs_on() -> None:
    while True:
        try:
            time.sleep(60)
        except BaseException:  # noqa: S112
            continue


HARMS: list[tuple[Callable[[], None], str]] = [
    (leaves, "SystemExit: 3"),
    (dies, "has ended with 3"),
    (hangs, "FunctionTimeoutError: it took longer than 1.5 seconds"),
]


def processing(harm: Callable[[], Any], state: str | None = None) -> Topology:
    def function(record: InputRecord, context: ProcessorContext) -> Iterator[dict[str, Any]]:
        assert record.value is not None
        count = 0
        if state is not None:
            count = (context.state or {"count": 0})["count"] + 1
            context.state = {"count": count}
        text = harm() if record.value["n"] == BAD else ""
        yield {"n": record.value["n"], "text": text, "count": count}

    builder = StreamsBuilder("harmful")
    stream = builder.stream("in", value=json("n int"))
    stream.process(function, fields="n int, text string, count int", state=state, name="made").to("out")
    return builder.build()


def driven(topology: Topology, spark: SparkSession) -> TopologyTestDriver:
    """A driver that gives all records to the functions at once, with a limit of time."""
    driver = TopologyTestDriver(topology, spark)
    jvm: Any = spark._jvm
    driver._program = plan(topology, spark, function_timeout_seconds=TIMEOUT_SECONDS)
    driver._run = jvm.jmsbridge.streams.TestRun(driver._program.java)
    return driver


def pipe_all(driver: TopologyTestDriver) -> None:
    for number in NUMBERS:
        driver._run.hold("in", b"k", b'{"n": %d}' % number, number)
    driver._run.processHeld()


def error_of(driver: TopologyTestDriver) -> str:
    (letter,) = driver.rejected()
    about = {name: (value or b"").decode() for name, value in letter.headers}
    assert letter.value == {"n": BAD}
    assert about["jmsbridge.position"] == f"in:0:{BAD}"
    return about["jmsbridge.error"]


@pytest.mark.parametrize(("harm", "says"), HARMS)
@pytest.mark.parametrize("state", [None, "count int"])
def test_a_record_that_harms_the_process_of_a_function_is_a_dead_letter(
    spark: SparkSession, harm: Callable[[], None], says: str, state: str | None
) -> None:
    driver = driven(processing(harm, state), spark)
    pipe_all(driver)
    found = [each.value for each in driver.read_output("out")]
    assert [each["n"] for each in found] == KEPT
    if state is not None:
        assert [each["count"] for each in found] == list(range(1, len(KEPT) + 1))
    assert says in error_of(driver)
    driver._run.close()


@pytest.mark.parametrize(("harm", "says"), HARMS)
def test_a_batch_that_harms_the_process_of_a_function_costs_one_record(
    spark: SparkSession, harm: Callable[[], None], says: str
) -> None:
    def column(batch: pa.RecordBatch) -> list[int]:
        numbers = batch["n"].to_pylist()
        if BAD in numbers:
            harm()
        return [each + 1 for each in numbers]

    builder = StreamsBuilder("harmful")
    builder.stream("in", value=json("n int")).map_values(m=python(column, "int")).to("out")
    driver = driven(builder.build(), spark)
    pipe_all(driver)
    assert [each.value["m"] - 1 for each in driver.read_output("out")] == KEPT
    assert says in error_of(driver)
    driver._run.close()


def test_a_function_that_catches_everything_ends_with_its_process(spark: SparkSession) -> None:
    driver = driven(processing(hangs_on), spark)
    pipe_all(driver)
    assert [each.value["n"] for each in driver.read_output("out")] == KEPT
    assert "has ended with 1" in error_of(driver)
    driver._run.close()


@pytest.mark.parametrize("state", [None, "count int"])
def test_a_result_that_is_too_large_is_a_dead_letter(spark: SparkSession, state: str | None) -> None:
    driver = driven(processing(lambda: "x" * 300_000_000, state), spark)
    pipe_all(driver)
    assert [each.value["n"] for each in driver.read_output("out")] == KEPT
    assert f"for one record; at most {RESULT_BYTES:,} are allowed" in error_of(driver)
    driver._run.close()


def test_results_that_are_large_together_come_in_pieces(spark: SparkSession) -> None:
    size = RESULT_BYTES - 1_000

    def column(batch: pa.RecordBatch) -> list[str]:
        return ["x" * (size + 2_000 if each == BAD else size) for each in batch["n"].to_pylist()]

    builder = StreamsBuilder("large")
    stream = builder.stream("in", value=json("n int")).map_values(n="n", text=python(column, "string"))
    stream.map_values(n="n", size="length(text)").to("out")
    driver = driven(builder.build(), spark)
    pipe_all(driver)
    assert [each.value for each in driver.read_output("out")] == [{"n": number, "size": size} for number in KEPT]
    assert f"for one record; at most {RESULT_BYTES:,} are allowed" in error_of(driver)
    driver._run.close()


def test_arrays_whose_offsets_lie_are_refused(spark: SparkSession) -> None:
    def column(batch: pa.RecordBatch) -> pa.Array:
        count = batch.num_rows
        offsets = pa.py_buffer(b"".join((each * 4_000).to_bytes(4, "little") for each in range(count + 1)))
        return pa.Array.from_buffers(pa.string(), count, [None, offsets, pa.py_buffer(b"short")])

    builder = StreamsBuilder("lying")
    builder.stream("in", value=json("n int")).map_values(text=python(column, "string")).to("out")
    driver = driven(builder.build(), spark)
    pipe_all(driver)
    assert driver.read_output("out") == []
    assert len(driver.rejected()) == len(NUMBERS)
    driver._run.close()


def test_the_process_of_a_function_that_hangs_ends_with_its_requests() -> None:
    code = (
        "import sys, time\n"
        "from engine.topologies.library.function_watch import FunctionWatch\n"
        "watch = FunctionWatch(None, 0)\n"
        "watch.begin()\n"
        "while True:\n"
        "    time.sleep(60)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE)
    assert process.stdin is not None
    assert process.poll() is None
    process.stdin.close()
    until(lambda: process.poll() == 1, seconds=20)
