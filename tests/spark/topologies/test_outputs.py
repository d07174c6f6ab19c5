"""Further outputs of `process`, each with fields of its own, beside a plain Python model."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

from engine.streams import (
    InputRecord,
    ProcessorContext,
    StreamsBuilder,
    Topology,
    TopologyError,
    TopologyTestDriver,
    json,
)


def watched(record: InputRecord, context: ProcessorContext) -> Iterator[dict[str, Any]]:
    """Passes each number, with an alarm before and a note behind it if it is large, and a note when it is not there."""
    if record.value is None or record.value.get("n") is None:
        context.emit({"text": "none"}, to="notes")
        return
    number = record.value["n"]
    if number > 7:
        context.emit({"level": number * 1.5}, to="alarms")
    yield {"n": number}
    context.emit({"n": -number})
    if number > 7:
        context.emit({"text": f"{context.key} at {record.timestamp}"}, to="notes")
    if number == 9:
        raise ArithmeticError("nine")


def topology(state: str | None) -> Topology:
    builder = StreamsBuilder("outputs")
    found = builder.stream("in", value=json("n int")).process(
        watched, fields="n int", outputs={"alarms": "level double", "notes": "text string"}, state=state, name="watch"
    )
    found.to("out")
    found.output("alarms").filter("level > 12").to("alarms")
    found.output("alarms").group_by_key().aggregate("most", most="max(level)").to("most")
    found.output("notes").to("notes")
    return builder.build()


@pytest.mark.parametrize("seed", [1])
@pytest.mark.parametrize("state", [None, "n int"], ids=["stateless", "keyed"])
def test_each_result_comes_to_its_output_with_the_key_time_and_headers_of_its_record(
    spark: SparkSession, seed: int, state: str | None
) -> None:
    source = random.Random(seed)  # noqa: S311 # test data
    expected: dict[str, list[Any]] = defaultdict(list)
    rejected, most = 0, {}
    with TopologyTestDriver(topology(state), spark) as driver:
        for _ in range(60):
            key, time, number = source.choice("ab"), source.randrange(1_000), source.choice((None, *range(12)))
            value = None if number is None and source.random() < 0.5 else {"n": number}
            driver.pipe_input("in", key, value, timestamp=time, headers={"h": key})
            if number == 9:
                rejected += 1
            elif number is None:
                expected["notes"].append((key, time, {"text": "none"}))
            else:
                expected["out"] += [(key, time, {"n": number}), (key, time, {"n": -number})]
                if number > 7:
                    expected["notes"].append((key, time, {"text": f"{key} at {time}"}))
                    most[key] = max(most.get(key, 0), number * 1.5)
                if number * 1.5 > 12:
                    expected["alarms"].append((key, time, {"level": number * 1.5}))
        for topic in ("out", "alarms", "notes"):
            outputs = driver.read_output(topic)
            assert [(each.key, each.timestamp, each.value) for each in outputs] == expected[topic]
            assert all(each.headers == (("h", each.key.encode()),) for each in outputs)
        assert {each.key: each.value["most"] for each in driver.read_output("most")} == most
        letters = driver.rejected()
        assert len(letters) == rejected > 0
        assert b"ArithmeticError: nine" in dict(letters[0].headers)["jmsbridge.error"]


def test_a_timer_emits_to_outputs(spark: SparkSession) -> None:
    def kept(record: InputRecord, context: ProcessorContext) -> None:
        context.state = {"n": 1}
        context.schedule(record.timestamp + 100)

    def due(context: ProcessorContext, time: int) -> None:
        context.emit({"at": time}, to="late")

    builder = StreamsBuilder("timers")
    stream = builder.stream("in", value=json("n int"))
    found = stream.process(kept, on_timer=due, fields="n int", state="n int", outputs={"late": "at bigint"})
    found.output("late").to("late")
    with TopologyTestDriver(builder.build(), spark) as driver:
        driver.pipe_input("in", "a", {"n": 1}, timestamp=1_000)
        driver.advance_time(2_000)
        assert [(each.key, each.timestamp, each.value) for each in driver.read_output("late")] == [
            ("a", 1_100, {"at": 1_100})
        ]


WRONG: list[tuple[Any, str | None, str]] = [
    ({"level": 1.0}, "alarm", "there is no output 'alarm'; process() declares alarms"),
    (5, "alarms", "it forwards a int; its results have to be mappings"),
    ({"n": 5}, "alarms", "n: no such field among those of the output, level"),
    ({"level": 5}, None, "level: no such field among those of the output, n"),
    ({"level": "high"}, "alarms", "Could not convert 'high' with type str"),
]


def test_a_record_whose_result_fits_no_output_is_a_dead_letter(spark: SparkSession) -> None:
    cases = [each[:2] for each in WRONG]

    def wrong(record: InputRecord, context: ProcessorContext) -> None:
        assert record.value is not None
        if (number := record.value["n"]) < len(cases):
            context.emit(cases[number][0], to=cases[number][1])
        context.emit({"n": number})

    builder = StreamsBuilder("wrong")
    found = builder.stream("in", value=json("n int")).process(wrong, fields="n int", outputs={"alarms": "level double"})
    found.to("out")
    with TopologyTestDriver(builder.build(), spark) as driver:
        for number in range(len(WRONG) + 1):
            driver.pipe_input("in", "k", {"n": number})
        letters = driver.rejected()
        assert len(letters) == len(WRONG)
        for letter, (*_, message) in zip(letters, WRONG, strict=True):
            assert message in dict(letter.headers)["jmsbridge.error"].decode()
        assert [each.value for each in driver.read_output("out")] == [{"n": len(WRONG)}]


def test_an_output_without_fields_is_refused(spark: SparkSession) -> None:
    builder = StreamsBuilder("refused")
    builder.stream("in").process(watched, fields="n int", outputs={"notes": "text strin"}, name="p").to("out")
    with pytest.raises(TopologyError, match=r"'p': .*STRIN"), TopologyTestDriver(builder.build(), spark) as driver:
        driver.pipe_input("in", "k", b"")
