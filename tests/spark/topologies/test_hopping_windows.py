"""Windows that overlap, of which the state has slices, beside plain Python models that keep each window's records."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from engine.streams import Output, SlidingWindows, StreamsBuilder, TimeWindows, TopologyTestDriver, json, plan
from engine.topologies.runtime.kept import KeptState
from engine.topologies.runtime.layout import SLICED
from tests.spark.topologies.overlapping_windows import OUTPUTS, Sample, build, model_of, pipe
from tests.spark.topologies.test_state_store import run_in

if TYPE_CHECKING:
    from pathlib import Path


def samples(seed: int, size: int) -> list[Sample]:
    """Records whose times advance, stand still and jump; some are late or have no time, no key or no value."""
    source = random.Random(seed)  # noqa: S311 # test data
    found, now = [], size // 2
    for _ in range(150):
        now += source.choice((0, 0, size // 20, size // 5, size // 3, size // 2))
        now += 3 * size if source.random() < 0.02 else 0
        time = source.choice((now, now, max(0, now - source.randrange(2 * size)), -1))
        key = source.choice(("a", "a", "b", "c", None))
        found.append(Sample(key, source.choice((None, *range(-4, 10))), time, source.random() < 0.05))
    return found


WINDOWS: dict[str, TimeWindows | SlidingWindows] = {
    "1000 by 100": TimeWindows.of("1 s", advance="100 ms", grace="300 ms"),
    "1000 by 300": TimeWindows.of("1 s", advance="300 ms"),
    "700 by 699": TimeWindows.of("700 ms", advance="699 ms", grace="2 s"),
    "100 by 1": TimeWindows.of("100 ms", advance="1 ms", grace="50 ms"),
    "sliding 1000": SlidingWindows.of("1 s", grace="700 ms"),
    "sliding 100": SlidingWindows.of("100 ms"),
}


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("name", WINDOWS)
def test_a_window_has_its_records_whatever_their_order(spark: SparkSession, name: str, seed: int) -> None:
    model, records = model_of(WINDOWS[name]), samples(seed, WINDOWS[name].size_ms)
    driver = TopologyTestDriver(build(WINDOWS[name]), spark)
    for at, each in enumerate(records):
        pipe(driver, each)
        model.take(each)
        if at % 30 == 0:
            model.check_open(driver)
    driver.advance_time(10**9)
    model.end()
    model.check_outputs({topic: driver.read_output(topic) for topic in OUTPUTS})
    model.check_nothing_is_left(driver)
    assert len(model.outputs["closed"]) > 20
    assert len(driver.rejected()) == 3 * sum(
        each.time < 0 and each.key is not None and not each.is_removal for each in records
    )


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["a", "a", "a", "b", None]),
        st.one_of(st.none(), st.integers(-4, 10)),
        # How far time goes on: mostly within a slice or to one of the next, sometimes farther than a window.
        st.sampled_from([0, 1, 3, 10, 11, 25, 40, 90, 210, 700]),
        # How late the record is: mostly not, else so that it is in the middle of a window, or of none.
        st.sampled_from([0, 0, 0, 0, 1, 5, 30, 75, 140, 190, 220, 500]),
        st.sampled_from(["none", "none", "none", "none", "commit", "roll back", "no time", "no value"]),
    ),
    min_size=20,
    max_size=90,
)
STACKED: dict[str, TimeWindows | SlidingWindows] = {
    "200 by 5": TimeWindows.of("200 ms", advance="5 ms"),
    "200 by 5, grace": TimeWindows.of("200 ms", advance="5 ms", grace="60 ms"),
    "200 by 7": TimeWindows.of("200 ms", advance="7 ms", grace="20 ms"),
    "sliding 200": SlidingWindows.of("200 ms"),
    "sliding 200, grace": SlidingWindows.of("200 ms", grace="60 ms"),
}
"""Windows of many slices."""


@settings(max_examples=15, deadline=None)
@given(windows=st.sampled_from(sorted(STACKED)), cache_bytes=st.sampled_from([0, 5_000, 1 << 20]), steps=STEPS)
def test_windows_of_many_slices_are_those_of_their_records(
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    windows: str,
    cache_bytes: int,
    steps: list[tuple[str | None, int | None, int, int, str]],
) -> None:
    """Late records change slices that are merged already, keys come back, and runs go on from a commit."""
    folder: Path = tmp_path_factory.mktemp("sliced")
    topology = build(STACKED[windows])
    model, driver, kept = model_of(STACKED[windows]), *(TopologyTestDriver(topology, spark) for _ in range(2))
    run = run_in(kept, spark, folder, cache_bytes)
    committed = {topic: list[Output]() for topic in OUTPUTS}
    now, uncommitted = 0, list[Sample]()
    for key, number, step, back, what in steps:
        now += step
        record = Sample(key, number, -1 if what == "no time" else max(0, now - back), what == "no value")
        for each in (driver, kept):
            pipe(each, record)
        model.take(record)
        uncommitted.append(record)
        if what in ("commit", "roll back"):
            outputs = {topic: kept.read_output(topic) for topic in OUTPUTS}
        if what == "commit":
            run.commit()
            uncommitted = []
            committed = {topic: committed[topic] + outputs[topic] for topic in OUTPUTS}
        elif what == "roll back":
            run.rollBack()
            for again in uncommitted:
                pipe(kept, again)
    for each in (driver, kept):
        model.check_open(each)
        each.advance_time(10**9)
    model.end()
    model.check_outputs({topic: driver.read_output(topic) for topic in OUTPUTS})
    model.check_outputs({topic: committed[topic] + kept.read_output(topic) for topic in OUTPUTS})
    model.check_nothing_is_left(driver)


def test_a_record_writes_one_slice_however_many_windows_have_it(spark: SparkSession) -> None:
    builder = StreamsBuilder("written")
    grouped = builder.stream("in", value=json("n int")).group_by_key()
    windows = TimeWindows.of("1 minute", advance="1 s")
    grouped.windowed_by(windows).aggregate("final", total="sum(n)").suppress().to("out")
    driver = TopologyTestDriver(builder.build(), spark)
    for time in range(120_000, 180_000, 100):
        driver.pipe_input("in", "a", {"n": 1}, timestamp=time)
    # A slice for each second, the end of each window, and the time of the node.
    assert driver._run.entries() <= 60 + 119 + 1
    assert [each.value["total"] for each in driver.read_output("out")][:3] == [10, 20, 30]


def test_a_window_that_cannot_be_computed_is_a_letter_and_the_others_have_the_record(spark: SparkSession) -> None:
    builder = StreamsBuilder("overflow")
    windows = TimeWindows.of("2 s", advance="1 s")
    grouped = builder.stream("in", value=json("a bigint")).group_by_key().windowed_by(windows)
    grouped.aggregate("t", s="sum(a)").suppress().to("out")
    driver = TopologyTestDriver(builder.build(), spark)
    driver.pipe_input("in", "k", {"a": 2**63 - 1}, timestamp=1_500)
    driver.pipe_input("in", "k", {"a": 7}, timestamp=2_500)
    assert [row["s"] for row in driver.get_store("t").all()] == [7]
    driver.advance_time(10_000)
    assert [each.value["s"] for each in driver.read_output("out")] == [2**63 - 1, 7]
    (letter,) = driver.rejected()
    headers = dict(letter.headers)
    assert (letter.key, headers["jmsbridge.window-start"], headers["jmsbridge.node"]) == ("k", b"1000", b"t")


def test_state_of_an_earlier_release_is_refused_with_the_node(spark: SparkSession) -> None:
    builder = StreamsBuilder("former")
    grouped = builder.stream("in", value=json("n int")).group_by_key()
    grouped.windowed_by(WINDOWS["1000 by 100"]).count("hopping").to("out")
    grouped.windowed_by(SlidingWindows.of("1 s")).count("sliding").to("out")
    grouped.windowed_by(TimeWindows.of("1 s")).count("tumbling").to("out")
    now = KeptState.of(plan(builder.build(), spark), {"in": 1}, None)
    former = {name: each.removesuffix(SLICED) for name, each in now.nodes.items()}
    assert {name for name in former if former[name] != now.nodes[name]} == {"hopping", "sliding"}
    before = KeptState(former, now.partitions, now.topics, now.inputs, now.stores, now.dropped)
    assert before.misfits(now) == ["kept in another form by an earlier release: hopping, sliding"]
    assert now.misfits(now) == []
