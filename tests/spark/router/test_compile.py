"""Plans of the router at work on batches of records."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from engine.record import Record
from engine.router import ByBranch, MessageCondition, MessageField
from engine.router.plan.builder import Plan, PlanBuilder
from engine.router.plan.compile import compile_topology
from engine.router.plan.records import records_frame
from routes.predicate import parse


def record(body: str, key: str | None = None, **properties: str) -> Record:
    headers = tuple((f"jms.{name}", value.encode()) for name, value in properties.items())
    return Record(None if key is None else key.encode(), body.encode(), headers)


def bodies(records: list[Record]) -> list[str]:
    return [(item.value or b"").decode() for item in records]


def wanted(text: str) -> MessageCondition:
    return MessageCondition(parse(text))


def run(plan: Plan, spark: SparkSession, topics: dict[str, list[Record]]) -> dict[str, list[Record]]:
    """The records that a plan publishes for the given ones: by topic, in the order of the input."""
    compiled = compile_topology(plan, records_frame(spark, topics))
    published = compiled.frame.where("topic IS NOT NULL").orderBy("source_topic", "source_offset")
    output: dict[str, list[Record]] = {}
    for row in published.select("topic", "key", "value", "headers").collect():
        headers = tuple((each.key, None if each.value is None else bytes(each.value)) for each in row.headers or ())
        key, value = (None if each is None else bytes(each) for each in (row.key, row.value))
        output.setdefault(row.topic, []).append(Record(key, value, headers))
    return output


def test_a_filter_passes_only_what_is_true(spark: SparkSession) -> None:
    builder = PlanBuilder()
    builder.stream("in", name="in").filter(wanted("region <> 'emea'"), name="f").to("out", name="out")
    output = run(
        builder.build(), spark, {"in": [record("a", region="emea"), record("b", region="apac"), record("unknown")]}
    )
    assert {topic: bodies(records) for topic, records in output.items()} == {"out": ["b"]}


def test_each_record_goes_to_the_first_branch_that_wants_it(spark: SparkSession) -> None:
    builder = PlanBuilder()
    streams = (
        builder.stream("in", name="in")
        .split("s")
        .branch(wanted("x = '1'"), name="one")
        .branch(MessageCondition(parse("x IN ('1', '2')"), parse("y = 'no'")), name="two")
        .default_branch("rest")
    )
    for stream in streams:
        stream.to(f"to-{stream.name}", name=f"sink-{stream.name}")
    output = run(
        builder.build(),
        spark,
        {"in": [record("a", x="1"), record("b", x="2"), record("c", x="2", y="no"), record("d")]},
    )
    assert {topic: bodies(records) for topic, records in output.items()} == {
        "to-one": ["a"],
        "to-two": ["b"],
        "to-rest": ["c", "d"],
    }


def test_functions_and_predicates_mix_in_one_split(spark: SparkSession) -> None:
    builder = PlanBuilder()
    a, b = (
        builder.stream("in", name="in")
        .split("s")
        .branch(lambda row: row.value.cast("string") == "A", name="a")
        .branch(MessageCondition(parse("x = '2'"), parse("y = 'no'")), name="b")
        .no_default_branch()
    )
    a.to("a", name="to-a")
    b.to("b", name="to-b")
    output = run(
        builder.build(),
        spark,
        {"in": [record("A", x="2"), record("B", x="2"), record("C", x="2", y="no"), record("D")]},
    )
    assert {topic: bodies(records) for topic, records in output.items()} == {"a": ["A"], "b": ["B"]}


def test_a_stream_with_two_consumers_goes_to_both(spark: SparkSession) -> None:
    builder = PlanBuilder()
    stream = builder.stream("in", name="in")
    stream.to("copy", name="copy")
    upper = stream.map(lambda row: row.replace(value=F.upper(row.value.cast("string")).cast("binary")), name="upper")
    upper.to("upper", name="to-upper")
    upper.filter(wanted("x = '1'"), name="only-one").to("one", name="one")
    output = run(builder.build(), spark, {"in": [record("a", x="1"), record("b")]})
    assert {topic: bodies(records) for topic, records in output.items()} == {
        "copy": ["a", "b"],
        "upper": ["A", "B"],
        "one": ["A"],
    }


def test_predicates_after_a_map_see_the_changed_headers(spark: SparkSession) -> None:
    builder = PlanBuilder()
    moved = F.array(F.struct(F.lit("jms.x").alias("key"), F.lit("2").cast("binary").alias("value")))
    stream = builder.stream("in", name="in").filter(wanted("x = '1'"), name="before")
    stream.map(lambda row: row.replace(headers=moved), name="change").filter(wanted("x = '2'"), name="after").to(
        "out", name="o"
    )
    output = run(builder.build(), spark, {"in": [record("a", x="1"), record("b", x="2")]})
    assert output == {"out": [Record(None, b"a", (("jms.x", b"2"),))]}


def test_a_key_comes_from_a_property_or_a_function(spark: SparkSession) -> None:
    builder = PlanBuilder()
    stream = builder.stream("in", name="in").select_key(MessageField("region"), name="k")
    stream.select_key(lambda row: F.concat(row.key.cast("string"), F.lit("!")), name="k2").to("out", name="out")
    output = run(builder.build(), spark, {"in": [record("a", "old", region="emea"), record("b", "old")]})
    assert [item.key for item in output["out"]] == [b"emea!", None]


def test_streams_of_several_topics_merge(spark: SparkSession) -> None:
    builder = PlanBuilder()
    one, two = (builder.stream(topic, name=topic) for topic in ("one", "two"))
    one.merge(two, name="both").to(lambda row: F.concat(F.lit("from-"), row.topic), name="out")
    output = run(builder.build(), spark, {"one": [record("a")], "two": [record("b")]})
    assert {topic: bodies(records) for topic, records in output.items()} == {"from-one": ["a"], "from-two": ["b"]}


def test_a_topic_by_branch_is_missing_for_branches_without_one(spark: SparkSession) -> None:
    builder = PlanBuilder()
    streams = builder.stream("in", name="in").split("s").branch(wanted("x = '1'"), name="a").default_branch("b")
    streams[0].merge(streams[1], name="m").to(ByBranch("s", {"a": "out"}), name="out")
    output = run(builder.build(), spark, {"in": [record("a", x="1"), record("b")]})
    assert {topic: bodies(records) for topic, records in output.items()} == {"out": ["a"]}


def test_fail_stops_only_when_a_record_comes_to_it(spark: SparkSession) -> None:
    builder = PlanBuilder()
    bad, good = (
        builder.stream("in", name="in").split("s").branch(wanted("bad = 'yes'"), name="bad").default_branch("good")
    )
    bad.fail(lambda row: F.concat(F.lit("refused: "), row.value.cast("string")), name="fail")
    good.to("out", name="out")
    plan = builder.build()
    assert bodies(run(plan, spark, {"in": [record("fine")]})["out"]) == ["fine"]
    with pytest.raises(PySparkException, match="refused: poison"):
        run(plan, spark, {"in": [record("fine"), record("poison", bad="yes")]})
