"""What users of Kafka Streams and of Spark write, and the name or the form that they are told."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from engine.streams import InputRecord, StreamsBuilder, TimeWindows, TopologyError, TopologyTestDriver, json
from engine.topologies.runtime.definition import read


def test_windows_are_made_of_a_length() -> None:
    grouped = StreamsBuilder("t").stream("in").group_by_key()
    for given, told in (
        ("1 minute", 'TimeWindows.of("1 minute")'),
        (timedelta(minutes=1), "TimeWindows.of(datetime.timedelta(seconds=60))"),
        (TimeWindows, 'not the class TimeWindows: TimeWindows.of("1 minute")'),
    ):
        wrong: Any = given
        with pytest.raises(TypeError) as caught:
            grouped.windowed_by(wrong)
        assert told in str(caught.value)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("json", 'write value=json("a int, …")'),
        (json, 'not the function json: write value=json("a int, …")'),
        ("a int, b string", "write value=json('a int, b string')"),
        ("text", "write value=text()"),
        ("avro", "write value=avro(…)"),
        ("json_schema", "write value=json_schema(…)"),
        (5, "not 5: write value="),
    ],
)
def test_the_form_of_values_is_a_serde_everywhere(given: Any, told: str) -> None:
    builder = StreamsBuilder("t")
    stream = builder.stream("in")
    calls: tuple[Callable[[], object], ...] = (
        lambda: builder.stream("a", value=given),
        lambda: builder.table("b", value=given),
        lambda: builder.global_table("c", value=given),
        lambda: stream.to("d", value=given),
        lambda: stream.to_table().to("e", value=given),
        lambda: stream.to_table().changelog("f", value=given),
    )
    for call in calls:
        with pytest.raises(TypeError) as caught:
            call()
        assert told in str(caught.value)


def test_a_form_of_keys_that_is_none_is_told_the_others() -> None:
    with pytest.raises(ValueError, match="key='string' is not a form of keys: write 'text', 'bytes', 'long', json"):
        StreamsBuilder("t").stream("in", key="string")


@pytest.mark.parametrize(
    ("kind", "name", "told"),
    [
        ("stream", "groupBy", "Stream has no 'groupBy': write group_by or group_by_key"),
        ("stream", "groupby", "write group_by or group_by_key"),
        ("table", "groupBy", "Table has no 'groupBy': write group_by"),
        ("stream", "groupByKey", "write group_by_key"),
        ("stream", "mapValues", "write map_values"),
        ("table", "mapValues", "write map_values"),
        ("table", "toStream", "write to_stream"),
        ("stream", "toStream", "it is one already"),
        ("stream", "withColumn", "write map_values"),
        ("stream", "flatMapValues", "write flat_map"),
        ("stream", "foreach", "write peek"),
        ("stream", "where", "write filter"),
        ("stream", "count", "group the records first, with group_by_key() or group_by(key)"),
        ("stream", "agg", "group the records first, with group_by_key() or group_by(key)"),
        ("grouped", "windowedBy", "write windowed_by"),
        ("grouped", "sum", 'write aggregate(result="sum(field)")'),
        ("grouped", "to", "aggregate the records first, with count() or aggregate(…)"),
        ("table", "aggregate", "group the rows first, with group_by(key)"),
        ("builder", "globalTable", "write global_table"),
        ("builder", "filter", "read a topic first, with stream(topic)"),
        ("stream", "fliter", "did you mean filter?"),
        ("stream", "toPandasOnSpark", "it has deduplicate, filter, "),
    ],
)
def test_a_name_of_another_tool_leads_to_the_one_here(kind: str, name: str, told: str) -> None:
    builder = StreamsBuilder("t")
    stream = builder.stream("in")
    given = {"builder": builder, "stream": stream, "grouped": stream.group_by_key(), "table": stream.to_table()}[kind]
    assert not hasattr(given, name)
    with pytest.raises(AttributeError) as caught:
        getattr(given, name)
    assert told in str(caught.value)


def test_such_names_do_not_get_in_the_way_of_copies() -> None:
    builder = StreamsBuilder("t")
    assert isinstance(copy.deepcopy(builder), StreamsBuilder)
    record = InputRecord("k", {"amount": 1}, 0, (), "t", 0, 0)
    assert pickle.loads(pickle.dumps(record)) == copy.copy(record) == record  # noqa: S301 - our own bytes
    with pytest.raises(AttributeError, match=r'a field is written record.value\["amount"\]'):
        record.amount  # noqa: B018 # type: ignore[misc]


def test_aggregates_are_given_by_name() -> None:
    grouped: Any = StreamsBuilder("t").stream("in").group_by_key()
    table: Any = StreamsBuilder("t").stream("in").to_table().group_by("x")
    for given in (grouped, table):
        with pytest.raises(TypeError, match=r'not a function: aggregate\(total="sum\(amount\)"\)'):
            given.aggregate(lambda: 0)
        with pytest.raises(TypeError, match=r'takes the name of its node first: aggregate\("totals", …\)'):
            given.aggregate(name="totals", total="sum(amount)")
        with pytest.raises(TypeError, match=r"text of Spark SQL or Columns, not function"):
            given.aggregate(total=lambda a, b: a + b)
        assert given.count("n").name == "n"
        assert given.count(name="m").name == "m"
    with pytest.raises(TypeError, match=r'not a function: reduce\(total="sum\(amount\)"\)'):
        grouped.reduce(lambda a, b: a + b)
    with pytest.raises(TypeError, match=r'not dict: map_values\(total="amount \* 2"\)'):
        StreamsBuilder("t").stream("in").map_values({"a": 1})  # type: ignore[arg-type]


def test_a_driver_takes_a_topology() -> None:
    nothing: Any = None
    for given, told in ((nothing, "not None"), (StreamsBuilder("t"), "not a StreamsBuilder")):
        with pytest.raises(TypeError, match=f"the driver takes a topology, {told}"):
            TopologyTestDriver(given, nothing)


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ("b.stream('in').to('out')", "returns None, not a topology: end it with `return builder.build()`"),
        ("return b", "returns a StreamsBuilder, not a topology: end it with `return builder.build()`"),
        ("b.stream('in', value='json')", "wrong.py:4:5: TypeError: the form of values is a serde, not 'json'"),
        ("b.stream('in').groupBy('x')", "wrong.py:4:5: AttributeError: Stream has no 'groupBy': write group_by"),
    ],
)
def test_a_definition_is_faulted_at_the_users_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: str, told: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(__import__("sys").modules, "wrong", raising=False)
    head = "from engine.streams import StreamsBuilder\ndef build():\n    b = StreamsBuilder('x')\n"
    (tmp_path / "wrong.py").write_text(f"{head}    {lines}\n")
    with pytest.raises(TopologyError) as caught:
        read("wrong:build")
    assert told in str(caught.value)
