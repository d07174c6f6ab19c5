"""Faults of topologies that are found when they are planned, and records that cannot be processed."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pyspark.sql import SparkSession

from engine.streams import StateError, StreamsBuilder, TimeWindows, TopologyError, TopologyTestDriver, json, plan, text
from engine.topologies.runtime.layout import fingerprints, lay_out
from routes.model import Policy

FAULTS: dict[str, tuple[Callable[[StreamsBuilder], None], str]] = {
    "an unknown field": (
        lambda b: b.stream("in", value=json("n int")).filter("m > 1", name="f").to("out"),
        "'f': .*`m`",
    ),
    "a type that does not fit": (
        lambda b: b.stream("in", value=json("n int")).map_values("m", n="n + array(1)").to("out"),
        "'m': .*DATATYPE_MISMATCH",
    ),
    "an aggregate over all records": (
        lambda b: b.stream("in").group_by_key().aggregate("a", all="mode(value)").to("out"),
        "'a': mode.* cannot be aggregated record by record",
    ),
    "streams that are not alike": (
        lambda b: b.stream("in", value=text()).merge(b.stream("other", value=json("n int")), name="m").to("out"),
        "'m': it merges .* make them alike",
    ),
    "keys of two kinds": (
        lambda b: b.stream("in", key="long").join(b.table("t", value=json("x int")), name="j").to("out"),
        "'j': it joins .* whose keys are long, .* whose keys are text",
    ),
    "fields of both sides": (
        lambda b: b.stream("in", value=json("x int")).join(b.table("t", value=json("x int")), name="j").to("out"),
        "'j': both sides have a field 'x': give the join a prefix",
    ),
    "no array": (
        lambda b: b.stream("in", value=json("x int")).flat_map("x", name="f").to("out"),
        "'f': flat_map needs a column of arrays, not of INT",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_names_its_node_and_what_to_do(spark: SparkSession, fault: str) -> None:
    build, expected = FAULTS[fault]
    builder = StreamsBuilder("faulty")
    build(builder)
    with pytest.raises(TopologyError, match=expected):
        plan(builder.build(), spark)


def test_a_record_that_cannot_be_read_or_computed_goes_to_the_dead_letters(spark: SparkSession) -> None:
    builder = StreamsBuilder("failing")
    builder.stream("in", value=json("n int"), name="in").map_values("divided", n="100 div n").to("out")
    driver = TopologyTestDriver(builder.build(), spark)
    for value in ("{bad", '{"n": "x"}', '{"n": 0}', '{"n": 5}', "7"):
        driver.pipe_input("in", "k", value, headers=[("own", b"1")])
    assert [each.value for each in driver.read_output("out")] == [{"n": 20}]
    rejected = driver.rejected()
    headers = [dict(each.headers) for each in rejected]
    assert [each["jmsbridge.node"] for each in headers] == [b"in", b"in", b"divided", b"in"]
    assert [each["jmsbridge.reason"] for each in headers] == [b"value", b"value", b"function", b"value"]
    assert all(each["own"] == b"1" and each["jmsbridge.error"] for each in headers)
    assert [each.value for each in rejected] == ["{bad", {"n": "x"}, {"n": 0}, 7]
    assert driver.counts() == {("in", "rejected_records"): 3, ("divided", "rejected_records"): 1}


@pytest.mark.parametrize("policy", Policy)
def test_each_policy_of_the_configuration_is_one_of_topologies(spark: SparkSession, policy: Policy) -> None:
    builder = StreamsBuilder("planned")
    builder.stream("in").to("out")
    assert plan(builder.build(), spark, on_failure=policy.value).topology.name == "planned"


def test_another_policy_is_refused_with_those_that_there_are(spark: SparkSession) -> None:
    builder = StreamsBuilder("failing")
    builder.stream("in").to("out")
    driver = TopologyTestDriver(builder.build(), spark, on_failure="ignore")
    with pytest.raises(ValueError, match=f"^on_failure is 'ignore', but has to be one of {', '.join(Policy)}$"):
        driver.pipe_input("in", "k", "v")


def test_a_policy_can_stop_the_topology_or_skip_the_record(spark: SparkSession) -> None:
    builder = StreamsBuilder("failing")
    builder.stream("in", value=json("n int"), name="in").to("out")
    skipping = TopologyTestDriver(builder.build(), spark, on_failure="skip")
    skipping.pipe_input("in", "k", "{bad")
    assert skipping.rejected() == []
    stopping = TopologyTestDriver(builder.build(), spark, on_failure="stop")
    with pytest.raises(TopologyError, match="node 'in' cannot process the record in:0:0: Unexpected character"):
        stopping.pipe_input("in", "k", "{bad")


def test_records_without_a_key_cannot_be_joined_or_aggregated(spark: SparkSession) -> None:
    builder = StreamsBuilder("keyless")
    builder.stream("in", value=json("n int")).group_by("n").count(name="counts").to("out")
    driver = TopologyTestDriver(builder.build(), spark)
    driver.pipe_input("in", None, {"n": None})
    driver.pipe_input("in", None, {"n": 3})
    assert [(each.key, each.value) for each in driver.read_output("out")] == [("3", {"count": 1})]
    assert driver.counts() == {("repartition-1 (write)", "null_keys"): 1}


def test_state_can_be_asked(spark: SparkSession) -> None:
    builder = StreamsBuilder("asked")
    numbers = builder.stream("in", value=json("n int"))
    numbers.group_by_key().aggregate("totals", total="sum(n)").to("out")
    numbers.group_by_key().windowed_by(TimeWindows.of("1 s")).aggregate("by-second", total="sum(n)").to("out")
    people = builder.table("people", value=json("team string"), name="people")
    people.group_by("team").count(name="teams").to("out")
    driver = TopologyTestDriver(builder.build(), spark)
    for key, number, time in (("a", 1, 0), ("b", 2, 0), ("a", 3, 1_500)):
        driver.pipe_input("in", key, {"n": number}, timestamp=time)
    for key, team in (("ann", "red"), ("bob", "blue"), ("cid", "red")):
        driver.pipe_input("people", key, {"team": team})
    driver.pipe_input("people", "bob", None)
    totals = driver.get_store("totals")
    assert totals.get("a") == {"key": "a", "total": 4}
    assert totals.get("c") is None
    assert list(totals.all()) == [{"key": "a", "total": 4}, {"key": "b", "total": 2}]
    assert list(totals.all(limit=1)) == [{"key": "a", "total": 4}]
    second = "1970-01-01T00:00:01.000Z"
    assert list(driver.get_store("by-second").fetch("a")) == [
        {"key": "a", "window_start": second, "window_end": "1970-01-01T00:00:02.000Z", "total": 3}
    ]
    assert list(driver.get_store("people").all()) == [{"key": "ann", "team": "red"}, {"key": "cid", "team": "red"}]
    assert list(driver.get_store("teams").all()) == [{"key": "red", "count": 2}]
    with pytest.raises(StateError, match="no node 'other' has state that can be asked; these have: totals, by-second"):
        driver.get_store("other")


def test_times_may_jump(spark: SparkSession) -> None:
    builder = StreamsBuilder("jumping")
    builder.stream("in", value=json("n int")).group_by_key().windowed_by(TimeWindows.of("1 s")).count(name="c").to(
        "out"
    )
    driver = TopologyTestDriver(builder.build(), spark)
    for time in (0, 4_000_000_000_000, 0, 4_000_000_000_001):
        driver.pipe_input("in", "k", {"n": 1}, timestamp=time)
    assert [each.value["count"] for each in driver.read_output("out")] == [1, 1, 2]
    assert driver.counts() == {("c", "late_records"): 1}


def test_topics_that_are_joined_have_as_many_partitions() -> None:
    builder = StreamsBuilder("joined")
    stream, table = builder.stream("in", value=json("n int")), builder.table("t", value=json("x int"))
    stream.join(table, name="direct").to("out")
    with pytest.raises(TopologyError, match=r"'direct': it joins topics with different numbers of partitions"):
        lay_out(builder.build(), {"in": 2, "t": 3})
    repartitioned = StreamsBuilder("repartitioned")
    stream = repartitioned.stream("in", value=json("n int"))
    stream.join(repartitioned.table("t", value=json("x int")), on="n").to("out")
    layout = lay_out(repartitioned.build(), {"in": 2, "t": 3})
    assert layout.internal == {"repartitioned-repartition-1-repartition": 3}
    assert layout.shares == 3
    assert layout.mixes_inputs == ("join-1",)


def test_a_fingerprint_changes_with_what_the_state_is_made_of(spark: SparkSession) -> None:
    def found(condition: str = "n > 1", size: str = "1 s", result: str = "sum(n)") -> str:
        builder = StreamsBuilder("printed")
        windows = TimeWindows.of(size)
        grouped = builder.stream("in", value=json("n int")).group_by_key().windowed_by(windows)
        grouped.aggregate("totals", total=result).to_stream().filter(condition.replace("n", "total")).to("out")
        return fingerprints(plan(builder.build(), spark))["totals"]

    assert found() == found(condition="n > 2")
    assert len({found(), found(size="2 s"), found(result="max(n)")}) == 3


def test_headers_of_the_input_are_pairs_or_a_mapping_of_bytes_or_text(spark: SparkSession) -> None:
    builder = StreamsBuilder("headers")
    builder.stream("in", value=text()).to("out")
    driver = TopologyTestDriver(builder.build(), spark)
    pairs = (("region", b"emea"), ("none", None))
    for given in (pairs, dict(pairs), [("region", "emea"), ("none", None)], {"region": "emea", "none": None}):
        driver.pipe_input("in", "k", "v", headers=given)
        (result,) = driver.read_output("out")
        assert result.headers == pairs
