"""Operators of the engine give what a plain Python model of each gives, on random records with late ones among them."""

from __future__ import annotations

import gc
import random
from collections import defaultdict
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, NamedTuple

import pytest
from pyspark.sql import SparkSession

from engine.streams import (
    Output,
    SessionWindows,
    SlidingWindows,
    Stream,
    StreamsBuilder,
    TimeWindows,
    Topology,
    TopologyTestDriver,
    json,
)
from engine.topologies.library import driver

SEEDS = (1, 2)
COUNT = 160


class Sample(NamedTuple):
    topic: str
    key: str
    number: int
    time: int


def samples(seed: int, topics: tuple[str, ...] = ("in",), jitter: int = 4_000) -> list[Sample]:
    """Random records whose times advance by some 300 ms and are up to `jitter` ms late."""
    source = random.Random(seed)  # noqa: S311 # test data
    return [
        Sample(source.choice(topics), source.choice("abc"), source.randrange(20), at * 300 - source.randrange(jitter))
        for at in range(20, 20 + COUNT)
    ]


def run(topology: Topology, spark: SparkSession, records: Iterable[Sample], output: str = "out") -> list[Output]:
    driver = TopologyTestDriver(topology, spark)
    for each in records:
        driver.pipe_input(each.topic, each.key, {"n": each.number}, timestamp=each.time)
    assert driver.rejected() == []
    return driver.read_output(output)


def numbers(builder: StreamsBuilder, topic: str = "in") -> Stream:
    return builder.stream(topic, value=json("n int"), name=topic)


def milliseconds(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def windows(outputs: Iterable[Output]) -> list[tuple[Any, ...]]:
    """Key, start, end, and results of each output."""
    found = []
    for each in outputs:
        start, end, *results = each.value.values()
        found.append((each.key, milliseconds(start), milliseconds(end), *results))
    return found


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("size", "advance", "grace"), [(5_000, 5_000, 0), (5_000, 2_000, 1_000), (3_000, 3_000, 9_000)]
)
def test_time_windows_hold_the_records_of_their_time_until_grace_ends(
    spark: SparkSession, seed: int, size: int, advance: int, grace: int
) -> None:
    builder = StreamsBuilder("windows")
    grouped = (
        numbers(builder)
        .group_by_key()
        .windowed_by(TimeWindows.of(f"{size} ms", advance=f"{advance} ms", grace=f"{grace} ms"))
    )
    grouped.aggregate(total="sum(n)", times="count(1)").to("out")
    grouped.aggregate(total="sum(n)", times="count(1)").suppress().to("final")
    state: dict[tuple[str, int], list[int]] = {}
    updates, finals, now = [], [], -(10**9)
    for each in samples(seed):
        now = max(now, each.time)
        first = (each.time - size) // advance * advance + advance
        for start in range(first, each.time + 1, advance):
            if start + size + grace > now:
                state.setdefault((each.key, start), []).append(each.number)
                inside = state[each.key, start]
                updates.append((each.key, start, start + size, sum(inside), len(inside)))
        for key, start in sorted(state, key=lambda at: (at[1], at[0])):
            if start + size + grace <= now:
                inside = state.pop((key, start))
                finals.append((key, start, start + size, sum(inside), len(inside)))
    driver = TopologyTestDriver(builder.build(), spark)
    for each in samples(seed):
        driver.pipe_input("in", each.key, {"n": each.number}, timestamp=each.time)
    assert windows(driver.read_output("out")) == updates
    assert windows(driver.read_output("final")) == finals
    assert len(finals) > 5


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("gap", "grace"), [(700, 0), (1_500, 2_000)])
def test_sessions_grow_join_and_end(spark: SparkSession, seed: int, gap: int, grace: int) -> None:
    builder = StreamsBuilder("sessions")
    grouped = numbers(builder).group_by_key().windowed_by(SessionWindows.of(f"{gap} ms", grace=f"{grace} ms"))
    grouped.aggregate(total="sum(n)", least="min(n)").to("out")
    sessions: dict[str, list[list[tuple[int, int]]]] = defaultdict(list)
    expected, now = [], -(10**9)
    for each in samples(seed):
        now = max(now, each.time)
        for key, open_ones in sessions.items():
            sessions[key] = [
                one for one in open_ones if max(at for at, _ in one) + gap + grace >= now or key == each.key
            ]
        near = [
            one
            for one in sessions[each.key]
            if min(at for at, _ in one) - gap <= each.time <= max(at for at, _ in one) + gap
        ]
        merged = [(each.time, each.number), *(item for one in near for item in one)]
        end = max(at for at, _ in merged)
        if end + gap + grace >= now:
            sessions[each.key] = [one for one in sessions[each.key] if one not in near] + [merged]
            values = [number for _, number in merged]
            expected.append((each.key, min(at for at, _ in merged), end, sum(values), min(values)))
        sessions[each.key] = [one for one in sessions[each.key] if max(at for at, _ in one) + gap + grace >= now]
    assert windows(run(builder.build(), spark, samples(seed))) == expected


@pytest.mark.parametrize("seed", SEEDS)
def test_sliding_windows_are_the_distinct_sets_of_records_that_are_near(spark: SparkSession, seed: int) -> None:
    size = 2_000
    builder = StreamsBuilder("sliding")
    numbers(builder).group_by_key().windowed_by(SlidingWindows.of(f"{size} ms", grace="1 hour")).aggregate(
        total="sum(n)", times="count(1)"
    ).to("out")
    records = samples(seed)
    last = {each[:3]: each[3:] for each in windows(run(builder.build(), spark, records))}
    expected = {}
    for key in "abc":
        own = [(each.time, each.number) for each in records if each.key == key]
        starts = {at - size for at, _ in own} | {at + 1 for at, _ in own}
        for start in starts:
            inside = [number for at, number in own if start <= at <= start + size]
            if inside:
                expected[key, start, start + size] = (sum(inside), len(inside))
    assert last == expected


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", ["join", "left_join", "outer_join"])
def test_streams_are_joined_within_a_time(spark: SparkSession, seed: int, kind: str) -> None:
    before, after, grace = 1_000, 2_000, 1_500
    builder = StreamsBuilder("joined")
    left, right = numbers(builder, "left"), numbers(builder, "right")
    within = (f"{before} ms", f"{after} ms")
    getattr(left, kind)(right, within=within, grace=f"{grace} ms", prefix="r_").to("out")
    keeps = {"left": kind != "join", "right": kind == "outer_join"}
    reach = {"left": after, "right": before}
    waiting: list[dict[str, Any]] = []
    expected, now = [], -(10**9)
    for each in samples(seed, ("left", "right")):
        now = max(now, each.time)
        if each.time + reach[each.topic] + grace >= now:
            partners = [
                one
                for one in waiting
                if one["record"].topic != each.topic
                and one["record"].key == each.key
                and (
                    -before <= one["record"].time - each.time <= after
                    if each.topic == "left"
                    else -before <= each.time - one["record"].time <= after
                )
            ]
            for one in sorted(partners, key=lambda one: one["record"].time):
                one["met"] = True
                pair = (each, one["record"]) if each.topic == "left" else (one["record"], each)
                joined = (pair[0].number, pair[1].number)
                expected.append((each.key, max(each.time, one["record"].time), *joined))
            waiting.append({"record": each, "met": bool(partners), "ends": each.time + reach[each.topic] + grace})
        for one in sorted(waiting, key=lambda one: one["ends"]):
            if one["ends"] < now:
                waiting.remove(one)
                record = one["record"]
                if not one["met"] and keeps[record.topic]:
                    own = (record.number, None) if record.topic == "left" else (None, record.number)
                    expected.append((record.key, record.time, *own))
    found = [
        (each.key, each.timestamp, each.value.get("n"), each.value.get("r_n"))
        for each in run(builder.build(), spark, samples(seed, ("left", "right")))
    ]
    assert sorted(found, key=repr) == sorted(expected, key=repr)
    assert len(expected) > 20


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", ["join", "left_join"])
def test_a_stream_is_joined_with_the_present_value_of_a_table(spark: SparkSession, seed: int, kind: str) -> None:
    builder = StreamsBuilder("enriched")
    table = builder.table("table", value=json("n int"))
    getattr(numbers(builder), kind)(table, prefix="t_").to("out")
    present: dict[str, int] = {}
    expected = []
    for each in samples(seed, ("in", "table")):
        if each.topic == "table":
            present[each.key] = each.number
        elif each.key in present or kind == "left_join":
            expected.append((each.key, each.number, present.get(each.key)))
    found = run(builder.build(), spark, samples(seed, ("in", "table")))
    assert [(each.key, each.value["n"], each.value.get("t_n")) for each in found] == expected


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", ["join", "left_join"])
def test_a_stream_is_joined_with_a_global_table_by_any_field(spark: SparkSession, seed: int, kind: str) -> None:
    builder = StreamsBuilder("global")
    table = builder.global_table("table", value=json("n int"))
    getattr(numbers(builder), kind)(table, on="substr('abc', n % 3 + 1, 1)", prefix="t_").to("out")
    present: dict[str, int] = {}
    expected = []
    for each in samples(seed, ("in", "table")):
        wanted = "abc"[each.number % 3]
        if each.topic == "table":
            present[each.key] = each.number
        elif wanted in present or kind == "left_join":
            expected.append((each.key, each.number, present.get(wanted)))
    found = run(builder.build(), spark, samples(seed, ("in", "table")))
    assert [(each.key, each.value["n"], each.value.get("t_n")) for each in found] == expected


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", ["join", "left_join", "outer_join"])
def test_tables_are_joined_and_forget_removed_rows(spark: SparkSession, seed: int, kind: str) -> None:
    builder = StreamsBuilder("tables")
    left, right = builder.table("left", value=json("n int")), builder.table("right", value=json("n int"))
    getattr(left, kind)(right, prefix="r_").to("out")
    driver = TopologyTestDriver(builder.build(), spark)
    rows: dict[str, dict[str, int]] = {"left": {}, "right": {}}
    present: dict[str, Any] = {}
    for each in samples(seed, ("left", "right")):
        is_removed = each.number % 4 == 0
        driver.pipe_input(each.topic, each.key, None if is_removed else {"n": each.number}, timestamp=each.time)
        if is_removed:
            rows[each.topic].pop(each.key, None)
        else:
            rows[each.topic][each.key] = each.number
        for one in driver.read_output("out"):
            present[one.key or ""] = one.value and (one.value.get("n"), one.value.get("r_n"))
        keys = {
            "join": rows["left"].keys() & rows["right"].keys(),
            "left_join": rows["left"].keys(),
            "outer_join": rows["left"].keys() | rows["right"].keys(),
        }[kind]
        expected = {key: (rows["left"].get(key), rows["right"].get(key)) for key in keys}
        assert {key: value for key, value in present.items() if value is not None} == expected


@pytest.mark.parametrize("seed", SEEDS)
def test_groups_of_a_table_hold_its_present_rows(spark: SparkSession, seed: int) -> None:
    builder = StreamsBuilder("groups")
    builder.table("in", value=json("n int")).group_by("n % 3").aggregate(members="count(1)", total="sum(n)").to("out")
    driver = TopologyTestDriver(builder.build(), spark)
    rows: dict[str, int] = {}
    present: dict[str, Any] = {}
    for each in samples(seed):
        is_removed = each.number % 5 == 0
        driver.pipe_input("in", each.key, None if is_removed else {"n": each.number}, timestamp=each.time)
        rows.pop(each.key, None)
        if not is_removed:
            rows[each.key] = each.number
        for one in driver.read_output("out"):
            present[one.key or ""] = one.value and (one.value["members"], one.value["total"])
        groups: dict[str, list[int]] = defaultdict(list)
        for number in rows.values():
            groups[str(number % 3)].append(number)
        expected = {group: (len(inside), sum(inside)) for group, inside in groups.items()}
        assert {key: value for key, value in present.items() if value is not None} == expected


@pytest.mark.parametrize("seed", SEEDS)
def test_repeated_records_are_dropped_within_a_time(spark: SparkSession, seed: int) -> None:
    within = 3_000
    builder = StreamsBuilder("deduplicated")
    numbers(builder).deduplicate(within=f"{within} ms", by="concat(key, n)").to("out")
    passed: dict[tuple[str, int], int] = {}
    expected, now = [], -(10**9)
    for each in samples(seed):
        now = max(now, each.time)
        known = passed.get((each.key, each.number))
        if each.time + within > now and (known is None or abs(each.time - known) >= within):
            passed[each.key, each.number] = each.time
            expected.append((each.key, each.number, each.time))
    found = [(each.key, each.value["n"], each.timestamp) for each in run(builder.build(), spark, samples(seed))]
    assert found == expected
    assert len(found) < COUNT


STEPS: dict[str, tuple[Callable[[Stream], Stream], Callable[[Sample], list[tuple[str, Any]]]]] = {
    "filter": (lambda s: s.filter("n > 9"), lambda r: [(r.key, r.number)] if r.number > 9 else []),
    "filter_not": (lambda s: s.filter_not("n > 9"), lambda r: [] if r.number > 9 else [(r.key, r.number)]),
    "map_values": (lambda s: s.map_values(n="n * 2"), lambda r: [(r.key, r.number * 2)]),
    "function": (lambda s: s.map_values(n=lambda row: row["n"] + 1), lambda r: [(r.key, r.number + 1)]),
    "select_key": (lambda s: s.select_key("n"), lambda r: [(str(r.number), r.number)]),
    "flat_map": (
        lambda s: s.flat_map("transform(sequence(1, n % 3 + 1), x -> named_struct('n', x))"),
        lambda r: [(r.key, number) for number in range(1, r.number % 3 + 2)],
    ),
    "merge": (
        lambda s: s.filter("n > 9").merge(s.filter("n <= 9")),
        lambda r: [(r.key, r.number)],
    ),
}


@pytest.mark.parametrize("step", STEPS)
def test_steps_without_state(spark: SparkSession, step: str) -> None:
    change, model = STEPS[step]
    builder = StreamsBuilder("steps")
    change(numbers(builder)).to("out")
    expected = [result for each in samples(1) for result in model(each)]
    assert [(each.key, each.value["n"]) for each in run(builder.build(), spark, samples(1))] == expected


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("keeps", [False, True], ids=["inner", "left"])
def test_foreign_key_joins_follow_both_tables(spark: SparkSession, seed: int, keeps: bool) -> None:
    builder = StreamsBuilder("foreign")
    orders = builder.table("orders", value=json("n int"))
    people = builder.table("people", value=json("p int"), key="text")
    on = "CASE WHEN n % 4 < 3 THEN CAST(n % 4 AS string) END"
    joined = orders.left_join(people, on=on) if keeps else orders.join(people, on=on)
    joined.to_stream().to("out")
    driver = TopologyTestDriver(builder.build(), spark)
    source = random.Random(seed)  # noqa: S311 # test data
    left: dict[str, int] = {}
    right: dict[str, int] = {}
    shown: dict[str, Any] = {}
    for at in range(COUNT):
        number = source.randrange(12)
        is_removed = source.random() < 0.2
        if source.random() < 0.6:
            key = source.choice("abc")
            left.pop(key, None) if is_removed else left.update({key: number})
            driver.pipe_input("orders", key, None if is_removed else {"n": number}, timestamp=at)
        else:
            key = source.choice("012")
            right.pop(key, None) if is_removed else right.update({key: number})
            driver.pipe_input("people", key, None if is_removed else {"p": number}, timestamp=at)
        for each in driver.read_output("out"):
            assert each.key is not None
            shown.pop(each.key, None) if each.value is None else shown.update({each.key: each.value})
        expected = {}
        for key, number in left.items():
            partner = right.get(str(number % 4))
            if partner is not None:
                expected[key] = {"n": number, "p": partner}
            elif keeps:
                expected[key] = {"n": number}
        assert shown == expected
    kept = {row["key"]: row for row in driver.get_store("join-1" if not keeps else "left-join-1").all()}
    assert {key: {name: row[name] for name in row if name != "key"} for key, row in kept.items()} == shown
    assert driver.rejected() == []


def test_time_that_advances_closes_windows_and_fires_what_is_due(spark: SparkSession) -> None:
    builder = StreamsBuilder("advancing")
    grouped = numbers(builder).group_by_key().windowed_by(TimeWindows.of("1 second", grace="1 second"))
    grouped.count(name="counts").suppress().to_stream().to("out")
    driver = TopologyTestDriver(builder.build(), spark)
    driver.pipe_input("in", "a", {"n": 1}, timestamp=100)
    driver.advance_time(1_999)
    assert driver.read_output("out") == []
    driver.advance_time(2_000)
    assert [(each.key, each.value["count"]) for each in driver.read_output("out")] == [("a", 1)]
    driver.pipe_input("in", "a", {"n": 1}, timestamp=999)
    assert driver.counts() == {("counts", "late_records"): 1}


def test_a_stream_that_has_expired_but_is_not_removed_yet_is_not_joined(spark: SparkSession) -> None:
    builder = StreamsBuilder("expiring")
    left, right = numbers(builder, "left"), numbers(builder, "right")
    left.join(right, within=("3 seconds", "1 second"), prefix="r_").to("out")
    driver = TopologyTestDriver(builder.build(), spark)
    driver.pipe_input("right", "a", {"n": 1}, timestamp=7_500)
    driver.pipe_input("left", "b", {"n": 2}, timestamp=10_000)
    driver.pipe_input("right", "b", {"n": 3}, timestamp=10_900)
    # A right record at 7,500 waits for left ones up to 10,500; stream time is 10,900.
    driver.pipe_input("left", "a", {"n": 4}, timestamp=10_500)
    assert [each.key for each in driver.read_output("out")] == ["b"]


def test_a_driver_that_python_collects_calls_nothing_of_java(spark: SparkSession) -> None:
    builder = StreamsBuilder("left")
    builder.stream("in", value=json("n int")).to("out")
    topology = builder.build()

    def ran() -> TopologyTestDriver:
        made = TopologyTestDriver(topology, spark)
        made.pipe_input("in", "k", {"n": 1}, 1)
        return made

    left = ran()
    run = left._run
    del left
    gc.collect()
    assert run in driver._LEFT
    last = ran()
    assert not driver._LEFT
    last.close()
    del last
    gc.collect()
    assert len(driver._LEFT) == 1  # the registry alone


def test_a_result_of_tables_has_the_latest_time_of_what_it_comes_from(spark: SparkSession) -> None:
    builder = StreamsBuilder("times")
    left = builder.table("left", value=json("n int, at string"))
    right = builder.table("right", value=json("m int"))
    left.join(right).changelog("joined")
    left.left_join(right, on="at", prefix="r_", name="named").changelog("named")
    left.group_by("at").aggregate("g", s="sum(n)").changelog("grouped")
    driver = TopologyTestDriver(builder.build(), spark)
    driver.pipe_input("left", "a", {"n": 1, "at": "b"}, timestamp=5_000)
    driver.pipe_input("right", "a", {"m": 1}, timestamp=3_000)
    driver.pipe_input("right", "b", {"m": 2}, timestamp=9_000)
    driver.pipe_input("left", "a", {"n": 2, "at": "b"}, timestamp=7_000)
    driver.pipe_input("right", "a", {"m": 3}, timestamp=8_000)
    driver.pipe_input("left", "c", {"n": 3, "at": "b"}, timestamp=1_000)
    assert [each.timestamp for each in driver.read_output("joined")] == [5_000, 7_000, 8_000]
    assert [each.timestamp for each in driver.read_output("named")] == [5_000, 9_000, 9_000, 9_000]
    assert [each.timestamp for each in driver.read_output("grouped")] == [5_000, 7_000, 7_000]
