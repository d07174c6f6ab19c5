"""Python functions of topologies: columns of batches, and records one by one with state and timers."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from typing import Any

import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

from engine.streams import (
    InputRecord,
    KeyKind,
    ProcessorContext,
    StreamsBuilder,
    Topology,
    TopologyError,
    TopologyTestDriver,
    json,
    python,
)

LINE = "test_process.py:"


def counted(record: InputRecord, context: ProcessorContext) -> Iterator[dict[str, Any]]:
    """Counts the records of a key, and forgets it when none came for ten seconds."""
    assert record.value is not None
    state = context.state or {"count": 0, "due": None, "last": []}
    if state["due"] is not None:
        context.cancel(state["due"])
    state["count"] += 1
    state["last"] = [*state["last"], record.value["n"]][-2:]
    state["due"] = record.timestamp + 10_000
    context.schedule(state["due"])
    if record.value["n"] == 13:
        raise ArithmeticError("thirteen")
    context.state = state
    yield {"count": state["count"], "last": state["last"], "why": "record"}


def forgotten(context: ProcessorContext, time: int) -> dict[str, Any]:
    state = context.state
    assert state is not None
    assert state["due"] == time
    context.state = None
    return {"count": state["count"], "last": state["last"], "why": f"{context.key} at {time}"}


def counting(state: str = "count int, due bigint, last array<int>") -> Topology:
    builder = StreamsBuilder("counting")
    stream = builder.stream("in", value=json("n int"))
    fields = "count int, last array<int>, why string"
    stream.process(counted, on_timer=forgotten, fields=fields, state=state, name="counts").to("out")
    return builder.build()


def test_state_and_timers_of_keys_follow_the_time_of_the_records(spark: SparkSession) -> None:
    driver = TopologyTestDriver(counting(), spark)
    for key, time, number in (("a", 1_000, 1), ("b", 2_000, 2), ("a", 5_000, 3), ("b", 14_000, 4), ("b", 15_000, 5)):
        driver.pipe_input("in", key, {"n": number}, timestamp=time)
    assert [
        (each.key, each.timestamp, each.value["count"], each.value["why"]) for each in driver.read_output("out")
    ] == [
        ("a", 1_000, 1, "record"),
        ("b", 2_000, 1, "record"),
        ("a", 5_000, 2, "record"),
        ("b", 12_000, 1, "b at 12000"),
        ("b", 14_000, 1, "record"),
        ("a", 15_000, 2, "a at 15000"),
        ("b", 15_000, 2, "record"),
    ]
    assert list(driver.get_store("counts").all()) == [{"key": "b", "count": 2, "due": 25_000, "last": [4, 5]}]
    driver.advance_time(25_000)
    assert [(each.key, each.value["why"]) for each in driver.read_output("out")] == [("b", "b at 25000")]
    assert list(driver.get_store("counts").all()) == []
    driver.close()


def test_a_function_that_raises_changes_nothing_and_its_record_tells_the_line(spark: SparkSession) -> None:
    driver = TopologyTestDriver(counting(), spark)
    for number in (1, 13, 2):
        driver.pipe_input("in", "a", {"n": number}, timestamp=number, headers=[("id", b"7")])
    assert [each.value["last"] for each in driver.read_output("out")] == [[1], [1, 2]]
    (rejected,) = driver.rejected()
    about = dict(rejected.headers)
    assert (rejected.key, rejected.value, about["id"], about["jmsbridge.node"]) == ("a", {"n": 13}, b"7", b"counts")
    error = about["jmsbridge.error"]
    assert error is not None
    assert error.decode().startswith("ArithmeticError: thirteen (")
    assert LINE in error.decode()
    assert driver.counts() == {("counts", "rejected_records"): 1}
    driver.close()


@pytest.mark.parametrize(
    ("result", "says"),
    [
        ({"count": "many"}, "ArrowInvalid: Could not convert 'many' with type str"),
        ({"counts": 1}, "ValueError: counts: no such field among those of the output, count"),
        ([1], "TypeError: it forwards a int"),
    ],
)
def test_results_that_do_not_fit_are_told_at_their_record(spark: SparkSession, result: Any, says: str) -> None:
    builder = StreamsBuilder("misfits")
    stream = builder.stream("in", value=json("n int"))
    stream.process(lambda record, _: result if record.value == {"n": 1} else {"count": 0}, fields="count int").to("out")
    driver = TopologyTestDriver(builder.build(), spark)
    for number in (0, 1, 2):
        driver.pipe_input("in", None, {"n": number})
    assert [each.value for each in driver.read_output("out")] == [{"count": 0}] * 2
    (rejected,) = driver.rejected()
    error = dict(rejected.headers)["jmsbridge.error"]
    assert error is not None
    assert says in error.decode()
    driver.close()


def test_a_state_that_does_not_fit_is_told_and_not_kept(spark: SparkSession) -> None:
    def keep(record: InputRecord, context: ProcessorContext) -> None:
        assert record.value is not None
        context.state = {"n": "text" if record.value["n"] else 7}

    builder = StreamsBuilder("kept")
    builder.stream("in", value=json("n int")).process(keep, fields="n int", state="n int", name="kept").to("out")
    driver = TopologyTestDriver(builder.build(), spark)
    for number in (0, 1):
        driver.pipe_input("in", "k", {"n": number})
    assert len(driver.rejected()) == 1
    assert driver.get_store("kept").get("k") == {"key": "k", "n": 7}
    driver.pipe_input("in", None, {"n": 0})
    assert driver.counts() == {("kept", "rejected_records"): 1, ("kept", "null_keys"): 1}
    driver.close()


def everything(record: InputRecord, _: ProcessorContext) -> dict[str, Any]:
    return {"told": repr(tuple(record))}


@pytest.mark.parametrize(("kind", "key", "shown"), [("long", bytes(7) + b"\5", 5), ("bytes", b"\0", b"\0")])
def test_a_function_gets_all_of_a_record(spark: SparkSession, kind: KeyKind, key: bytes, shown: Any) -> None:
    builder = StreamsBuilder("whole")
    stream = builder.stream("in", value=json("t timestamp, b binary, d decimal(5,2), m map<string,int>"), key=kind)
    stream.process(everything, fields="told string").to("out")
    driver = TopologyTestDriver(builder.build(), spark)
    driver.pipe_input("in", key, '{"t":"2026-01-02T03:04:05.006Z","d":1.25,"m":{"x":1}}', 77, [("h", None)])
    driver.pipe_input("in", key, None, 78)
    first, second = (each.value["told"] for each in driver.read_output("out"))
    assert driver.rejected() == []
    assert first.startswith(f"({shown!r}, {{'t': datetime.datetime(2026, 1, 2, 3, 4, 5, 6000")
    assert first.endswith("'d': Decimal('1.25'), 'm': [('x', 1)]}, 77, (('h', None),), 'in', 0, 0)")
    assert second == f"({shown!r}, None, 78, (), 'in', 0, 1)"
    driver.close()


def test_python_makes_conditions_keys_and_fields(spark: SparkSession) -> None:
    seen: list[int] = []
    builder = StreamsBuilder("columns")
    stream = builder.stream("in", value=json("n int, name string")).peek(lambda batch: seen.append(batch.num_rows))
    odd = stream.filter(python(lambda batch: pc.equal(pc.bit_wise_and(batch["n"], 1), 1), "boolean"))
    named = odd.select_key(python(lambda batch: pc.utf8_upper(batch["name"]), "string"))
    named.map_values(
        key="key",
        n="n",
        root=python(lambda batch: [n**0.5 for n in batch["n"].to_pylist()], "double"),
        both=python(lambda batch: [{"a": n, "b": "x"} for n in batch["n"].to_pylist()], "struct<a int, b string>"),
    ).to("out")
    driver = TopologyTestDriver(builder.build(), spark)
    for number in (9, 10, 25):
        driver.pipe_input("in", "k", {"n": number, "name": f"n{number}"})
    driver.pipe_input("in", "k", {"n": -1, "name": "x"})
    assert [(each.key, each.value) for each in driver.read_output("out")] == [
        ("N9", {"key": "N9", "n": 9, "root": 3.0, "both": {"a": 9, "b": "x"}}),
        ("N25", {"key": "N25", "n": 25, "root": 5.0, "both": {"a": 25, "b": "x"}}),
    ]
    (rejected,) = driver.rejected()
    assert rejected.value == {"n": -1, "name": "x"}
    driver.close()


def test_a_python_function_where_there_can_be_none_is_a_fault_with_the_way_out(spark: SparkSession) -> None:
    builder = StreamsBuilder("nowhere")
    stream = builder.stream("in", value=json("n int"))
    stream.deduplicate(within="1 s", by=python(lambda batch: batch["n"], "int"), name="once").to("out")
    with pytest.raises(
        TopologyError, match=r"'once': a Python function is not allowed here: compute a field with it first"
    ):
        TopologyTestDriver(builder.build(), spark).pipe_input("in", "k", {"n": 1})


def test_timers_without_a_state_and_functions_that_cannot_be_copied_are_faults(spark: SparkSession) -> None:
    builder = StreamsBuilder("faults")
    builder.stream("in").process(counted, on_timer=forgotten, fields="n int", name="p").to("out")
    with pytest.raises(TopologyError, match=r"'p': timers need a state"):
        builder.build()
    builder = StreamsBuilder("faults")
    builder.stream("in").process(lambda record, context: spark, fields="n int", name="p").to("out")
    with pytest.raises(TopologyError, match=r"'p': .*<lambda> cannot be copied to another process"):
        TopologyTestDriver(builder.build(), spark).pipe_input("in", "k", "x")


def test_a_record_that_ends_the_python_process_is_its_own_dead_letter(spark: SparkSession) -> None:
    builder = StreamsBuilder("ending")
    builder.stream("in").process(lambda record, context: os._exit(7), fields="n int").to("out")
    driver = TopologyTestDriver(builder.build(), spark)
    driver.pipe_input("in", "k", "x")
    (letter,) = driver.rejected()
    why = dict(letter.headers)["jmsbridge.error"]
    assert why == b"the Python process has ended with 7 while it processed the record"


def test_the_description_names_python_functions() -> None:
    text = counting().describe()
    assert f"Processor: counts (stores: [counts], Python: {__name__}.counted)" in text


def model(records: list[tuple[str, int, int]]) -> list[tuple[str, int, int]]:
    """Outputs of `summed` by plain Python: sums of each key since its last timer, which comes every second of a key."""
    sums: dict[str, int] = {}
    timers: set[tuple[int, int, str]] = set()
    found, latest = [], -1
    order: dict[str, int] = {}
    for key, time, number in records:
        order.setdefault(key, len(order))
        latest = max(latest, time)
        for due, place, of in sorted(timers):
            if due <= latest:
                timers.discard((due, place, of))
                found.append((of, due, sums.pop(of)))
        if key not in sums:
            timers.add((latest + 1_000, order[key], key))
        sums[key] = sums.get(key, 0) + number
    return found


def summed(record: InputRecord, context: ProcessorContext) -> None:
    assert record.value is not None
    if context.state is None:
        context.schedule(context.stream_time + 1_000)
    context.state = {"sum": (context.state or {"sum": 0})["sum"] + record.value["n"]}


def told(context: ProcessorContext, time: int) -> Iterator[dict[str, int]]:
    assert context.state is not None
    yield {"sum": context.state["sum"]}
    context.state = None


@pytest.mark.parametrize("seed", range(3))
def test_process_equals_a_model(spark: SparkSession, seed: int) -> None:
    source = random.Random(seed)  # noqa: S311 # test data
    records = [
        (source.choice("abcd"), at * 90 + 500 - source.randrange(400), source.randrange(50)) for at in range(200)
    ]
    builder = StreamsBuilder("model")
    stream = builder.stream("in", value=json("n int"))
    stream.process(summed, on_timer=told, fields="sum int", state="sum int").to("out")
    driver = TopologyTestDriver(builder.build(), spark)
    for key, time, number in records:
        driver.pipe_input("in", key, {"n": number}, timestamp=time)
    found = [(each.key, each.timestamp, each.value["sum"]) for each in driver.read_output("out")]
    assert sorted(found, key=lambda each: (each[1], str(each[0]))) == sorted(
        model(records), key=lambda each: (each[1], each[0])
    )
    driver.close()
