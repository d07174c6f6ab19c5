"""Keys with fields or a schema: read, compared by what is in them, asked for, and written."""

from __future__ import annotations

import json as json_text
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from engine.streams import (
    StateError,
    StreamsBuilder,
    TimeWindows,
    Topology,
    TopologyError,
    TopologyTestDriver,
    avro,
    json,
    protobuf,
    text,
)
from engine.topologies.library.serdes import Key
from tests.spark.topologies.test_schemas import avro_bytes, classes, framed, message_file, record

CUSTOMER = record({"name": "region", "type": "string"}, {"name": "id", "type": "long"}, name="Customer")


def totals(key: Key, written: Key | None = None) -> Topology:
    builder = StreamsBuilder("totals")
    grouped = builder.stream("in", value=json("n int"), key=key).group_by_key()
    grouped.aggregate("kept", n="sum(n)").to("out", key=written)
    return builder.build()


def headers(driver: TopologyTestDriver) -> list[tuple[str, str]]:
    found = [dict(each.headers) for each in driver.rejected()]
    return [(each["jmsbridge.reason"].decode(), each["jmsbridge.error"].decode()) for each in found]


@pytest.mark.parametrize(
    ("schema", "key", "plain"),
    [
        ('"string"', "ann", b"ann"),
        ('"int"', -7, (-7).to_bytes(8, "big", signed=True)),
        ('"long"', 1 << 40, (1 << 40).to_bytes(8, "big", signed=True)),
        ('"bytes"', b"\0\xff", b"\0\xff"),
    ],
)
def test_a_single_value_is_a_key_of_a_kind_with_a_name(
    spark: SparkSession, schema: str, key: Any, plain: bytes
) -> None:
    builder = StreamsBuilder("single")
    stream = builder.stream("in", value=text(), key=avro(schema))
    stream.to("plain")
    stream.to("again", key=avro(schema))
    driver = TopologyTestDriver(builder.build(), spark)
    number = driver.register("in-key", avro(schema))
    wire = framed(number, avro_bytes(schema, key))
    driver.pipe_input("in", wire, "x")
    (again,) = driver.read_output("again", as_bytes=True)
    assert again.key == wire
    (out,) = driver.read_output("plain")
    assert out.key == plain.decode("utf-8", "replace")
    if not isinstance(key, bytes):
        driver.pipe_input("in", key, "x")
        assert [each.key for each in driver.read_output("again")] == [key]


def test_records_are_grouped_by_keys_of_several_writers_schemas(spark: SparkSession) -> None:
    other = record({"name": "region", "type": "string"}, {"name": "id", "type": "int"}, name="Customer")
    driver = TopologyTestDriver(totals(avro(CUSTOMER)), spark)
    numbers = [driver.register("in-key", avro(each)) for each in (CUSTOMER, other)]
    key = {"region": "emea", "id": 5}
    for number, schema in zip(numbers, (CUSTOMER, other), strict=True):
        driver.pipe_input("in", framed(number, avro_bytes(schema, key)), {"n": number})
    assert headers(driver) == []
    first, second = driver.read_output("out")
    assert first.key == second.key == '{"region":"emea","id":5}'
    assert second.value == {"n": sum(numbers)}
    kept = driver.get_store("kept")
    assert kept.get(key) == kept.get(json_text.dumps(key)) == {"key": key, "n": sum(numbers)}
    assert kept.get({"region": "emea", "id": 6}) is None
    assert list(kept.all()) == [{"key": key, "n": sum(numbers)}]
    with pytest.raises(StateError, match="have no order"):
        next(kept.prefix("{"))
    with pytest.raises(StateError, match="struct<region:string,id:bigint>, not ann as JSON"):
        kept.get("ann")


def test_keys_of_protobuf_are_messages(spark: SparkSession) -> None:
    head = classes(message_file())["shop.Head"]
    driver = TopologyTestDriver(totals(protobuf(head), protobuf(head)), spark)
    for n in (1, 2):
        driver.pipe_input("in", {"n": 7}, {"n": n})
    assert [(each.key, each.value) for each in driver.read_output("out")] == [
        ({"n": 7}, {"n": 1}),
        ({"n": 7}, {"n": 3}),
    ]
    driver.pipe_input("in", {"n": 7}, {"n": 1})
    (raw,) = driver.read_output("out", as_bytes=True)
    assert raw.key == framed(1, b"\0" + head(n=7).SerializeToString())


def test_keys_of_json_are_equal_whatever_their_text_is(spark: SparkSession) -> None:
    driver = TopologyTestDriver(totals(json("region string, id int")), spark)
    driver.pipe_input("in", '{"id": 1, "region": "emea"}', {"n": 1})
    driver.pipe_input("in", {"region": "emea", "id": 1, "more": True}, {"n": 2})
    driver.pipe_input("in", "ann", {"n": 4})
    assert [(each.key, each.value["n"]) for each in driver.read_output("out")] == [
        ('{"region":"emea","id":1}', 1),
        ('{"region":"emea","id":1}', 3),
    ]
    ((reason, _),) = headers(driver)
    assert reason == "key"


def test_a_field_of_a_key_is_a_key_and_a_struct_of_fields_too(spark: SparkSession) -> None:
    builder = StreamsBuilder("fields")
    orders = builder.stream("orders", value=json("n int"), key=avro(CUSTOMER))
    orders.filter("key.id > 1").select_key("key.region").to("regions", key=avro())
    orders.select_key("key.id").to("ids", key=avro('"long"'))
    orders.select_key(F.struct(F.col("key.region"), F.col("n"))).to("pairs", key=avro())
    driver = TopologyTestDriver(builder.build(), spark)
    driver.pipe_input("orders", {"region": "emea", "id": 1}, {"n": 3})
    driver.pipe_input("orders", {"region": "apac", "id": 2}, {"n": 4})
    assert headers(driver) == []
    assert [each.key for each in driver.read_output("regions")] == ["apac"]
    assert [each.key for each in driver.read_output("ids")] == [1, 2]
    assert [each.key for each in driver.read_output("pairs")] == [
        {"region": "emea", "n": 3},
        {"region": "apac", "n": 4},
    ]
    driver.pipe_input("orders", {"region": "emea", "id": 1}, {"n": 3})
    (pair,) = driver.read_output("pairs", as_bytes=True)
    made = record({"name": "region", "type": ["string", "null"]}, {"name": "n", "type": ["int", "null"]}, name="Key")
    number = driver.register("pairs-key", avro(made))
    assert pair.key == framed(number, avro_bytes(made, {"region": "emea", "n": 3}))


def test_tables_and_streams_with_keys_of_unlike_forms_join(spark: SparkSession) -> None:
    builder = StreamsBuilder("joined")
    people = builder.table("people", value=json("name string"), key=avro('"string"'), name="people")
    levels = builder.table("levels", value=json("level int"), key=avro('"string"'))
    places = builder.global_table("places", value=json("place string"), key=avro(CUSTOMER), name="places")
    orders = builder.stream("orders", value=json("who string, n int"))
    joined = orders.join(people.join(levels), on="who")
    joined.join(places, on="struct('emea', cast(n AS bigint))").to("out")
    topology = builder.build()
    assert "people-keys" in topology.describe()
    driver = TopologyTestDriver(topology, spark)
    driver.pipe_input("people", "ann", {"name": "Ann"})
    driver.pipe_input("levels", "ann", {"level": 3})
    driver.pipe_input("places", {"region": "emea", "id": 5}, {"place": "Rome"})
    driver.pipe_input("places", b"?", {"place": "none"})
    driver.pipe_input("orders", None, {"who": "ann", "n": 5})
    driver.pipe_input("people", "ann", None)
    driver.pipe_input("orders", None, {"who": "ann", "n": 5})
    (output,) = driver.read_output("out")
    assert (output.key, output.value["name"], output.value["place"]) == ("ann", "Ann", "Rome")
    assert driver.counts() == {("places", "rejected_records"): 1}


def test_sides_of_a_join_whose_keys_are_unlike_are_refused(spark: SparkSession) -> None:
    builder = StreamsBuilder("unlike")
    left = builder.table("left", value=json("a int"), key=avro(CUSTOMER), name="left")
    left.join(builder.table("right", value=json("b int"), name="right")).to("out")
    with pytest.raises(
        TopologyError, match="'left', whose keys are struct<region:string,id:bigint>, with 'right', whose keys are text"
    ):
        TopologyTestDriver(builder.build(), spark).read_output("out")


@pytest.mark.parametrize(
    ("key", "written", "fault"),
    [
        ("text", avro(CUSTOMER), "keys of the type string do not fit a schema of records: choose another key with"),
        (avro(CUSTOMER), avro('"string"'), "do not fit a schema of single values"),
        (json("region string"), avro(CUSTOMER), r"missing: \[id\]; not in the schema: \[\]\): .* with select_key"),
        ("text", json(), "keys of the kind text have no fields for JSON"),
        ("text", protobuf(), "the numbers of Protobuf's fields cannot be told"),
        (avro(), None, "no subject 'in-key' with a version"),
    ],
)
def test_keys_that_do_not_fit_are_a_fault_of_the_topology(
    spark: SparkSession, key: Key, written: Key | None, fault: str
) -> None:
    with pytest.raises(TopologyError, match=fault):
        TopologyTestDriver(totals(key, written), spark).read_output("out")


def test_a_key_that_cannot_be_read_or_written_is_a_dead_letter(spark: SparkSession) -> None:
    builder = StreamsBuilder("bad")
    stream = builder.stream("in", value=json("n int"), key=avro('"string"'))
    stream.to("out", key=avro('"long"'))
    driver = TopologyTestDriver(builder.build(), spark)
    driver.pipe_input("in", b"ann", {"n": 1})
    driver.pipe_input("in", b"ann", None)
    driver.pipe_input("in", None, {"n": 2})
    driver.pipe_input("in", "12", {"n": 3})
    driver.pipe_input("in", "ann", {"n": 4})
    letters = driver.rejected()
    assert [each.key for each in letters[:2]] == ["ann", "ann"]
    reasons = [dict(each.headers)["jmsbridge.reason"].decode() for each in letters]
    assert reasons == ["key", "key", "function"]
    error = dict(letters[0].headers)["jmsbridge.error"].decode()
    assert error.startswith("the key cannot be read: 3 bytes are fewer than Confluent's wire format has")
    assert [(each.key, each.value) for each in driver.read_output("out")] == [(None, {"n": 2}), (12, {"n": 3})]


def test_windows_and_changelogs_have_keys_with_a_schema(spark: SparkSession) -> None:
    builder = StreamsBuilder("windows")
    grouped = builder.stream("in", value=json("n int"), key=avro(CUSTOMER)).group_by_key()
    grouped.windowed_by(TimeWindows.of("1 s")).count(name="kept").changelog("log", key=avro())
    grouped.count(name="all").changelog("plain").changelog("long", key=json())
    driver = TopologyTestDriver(builder.build(), spark)
    customer = {"region": "emea", "id": 5}
    driver.pipe_input("in", customer, {"n": 1}, timestamp=1_500)
    (logged,) = driver.read_output("log")
    assert logged.key == {"key": customer, "window_start": "1970-01-01T00:00:01.000Z"}
    assert [each.key for each in driver.read_output("plain")] == ['{"region":"emea","id":5}']
    assert [each.key for each in driver.read_output("long")] == ['{"region":"emea","id":5}']


def test_python_functions_get_keys_with_fields(spark: SparkSession) -> None:
    def told(record: Any, context: Any) -> dict[str, Any]:
        context.state = {"n": record.value["n"] + (context.state["n"] if context.state else 0)}
        return {"told": f"{record.key['region']} {context.key['id']} {context.state['n']}"}

    builder = StreamsBuilder("told")
    stream = builder.stream("in", value=json("n int"), key=avro(CUSTOMER))
    stream.process(told, fields="told string", state="n int", name="kept").to("out")
    driver = TopologyTestDriver(builder.build(), spark)
    for n in (1, 2):
        driver.pipe_input("in", {"region": "emea", "id": 5}, {"n": n})
    assert headers(driver) == []
    assert [each.value["told"] for each in driver.read_output("out")] == ["emea 5 1", "emea 5 3"]
    driver.close()


def test_keys_are_written_in_the_kind_that_is_named(spark: SparkSession) -> None:
    builder = StreamsBuilder("kinds")
    stream = builder.stream("in", value=json("key string, n int"), key="long")
    stream.to("text", key=text())
    stream.select_key("n").to("long", key="long")
    stream.select_key("struct(n)").to("struct")
    driver = TopologyTestDriver(builder.build(), spark)
    driver.pipe_input("in", 5, {"key": "other", "n": 7})
    assert headers(driver) == []
    assert [each.key for each in driver.read_output("text")] == ["5"]
    assert [each.key for each in driver.read_output("long")] == ["\0" * 7 + "\7"]
    assert [each.key for each in driver.read_output("struct")] == ['{"n":7}']


def test_structs_are_keys_of_joins_by_foreign_keys_and_of_groups(spark: SparkSession) -> None:
    builder = StreamsBuilder("foreign")
    orders = builder.table("orders", value=json("region string, who bigint, n int"), key=json("id int"))
    people = builder.table("people", value=json("name string"), key=avro(CUSTOMER))
    orders.join(people, on="struct(region, who)").to("joined")
    orders.group_by("struct(region)").aggregate("regions", n="sum(n)").to("regions-out", key=avro())
    driver = TopologyTestDriver(builder.build(), spark)
    driver.pipe_input("orders", {"id": 1}, {"region": "emea", "who": 5, "n": 2})
    driver.pipe_input("orders", {"id": 2}, {"region": "emea", "who": 6, "n": 3})
    driver.pipe_input("people", {"region": "emea", "id": 5}, {"name": "Ann"})
    driver.pipe_input("orders", {"id": 1}, None)
    assert headers(driver) == []
    joined = [(each.key, each.value and each.value["name"]) for each in driver.read_output("joined")]
    assert joined == [('{"id":1}', "Ann"), ('{"id":1}', None)]
    regions = [(each.key, each.value["n"]) for each in driver.read_output("regions-out")]
    assert regions == [({"region": "emea"}, 2), ({"region": "emea"}, 5), ({"region": "emea"}, 3)]


KEYS = st.tuples(st.text(max_size=3), st.integers(-2, 2) | st.integers(-(2**63), 2**63 - 1))


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(keys=st.lists(KEYS, min_size=1, max_size=12))
def test_random_keys_are_counted_as_a_dict_counts_them(spark: SparkSession, keys: list[tuple[str, int]]) -> None:
    if not _COUNTING:
        _COUNTING.append(TopologyTestDriver(totals(avro(CUSTOMER), avro(CUSTOMER)), spark))
    (driver,) = _COUNTING
    for region, number in keys:
        _EXPECTED[region, number] = _EXPECTED.get((region, number), 0) + 1
        driver.pipe_input("in", {"region": region, "id": number}, {"n": 1})
        (output,) = driver.read_output("out")
        assert (output.key, output.value) == (
            {"region": region, "id": number},
            {"n": _EXPECTED[region, number]},
        )
    rows = {(row["key"]["region"], row["key"]["id"]): row["n"] for row in driver.get_store("kept").all()}
    assert rows == _EXPECTED


_COUNTING: list[TopologyTestDriver] = []
_EXPECTED: dict[tuple[str, int], int] = {}
