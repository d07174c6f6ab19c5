"""Building topologies: the value that comes out, and every fault at once."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from engine.streams import StreamsBuilder, TimeWindows, TopologyError, json
from engine.topologies.library.nodes import Branch, Merge, SinkNode, SourceNode


def test_nodes_stand_in_the_order_of_flow_with_their_parents() -> None:
    builder = StreamsBuilder()
    orders = builder.stream("orders", name="orders")
    large, small = orders.split("size").branch("amount > 1000", name="large").default_branch("small")
    large.merge(small, name="all").to("out", name="to-out")
    topology = builder.build()
    assert [node.name for node in topology.nodes] == ["orders", "size", "large", "small", "all", "to-out"]
    assert topology.node("all") == Merge("all", ("large", "small"))
    assert topology.sources == (SourceNode("orders", topic="orders"),)
    assert [branch.name for branch in topology.branches("size")] == ["large", "small"]
    assert isinstance(topology.node("small"), Branch)
    assert topology.node("to-out") == SinkNode("to-out", ("all",), topic="out")


def test_two_builds_of_the_same_calls_are_equal() -> None:
    def build() -> object:
        builder = StreamsBuilder()
        builder.stream("a", name="a").filter("x = 1", name="f").to("b", name="b")
        return builder.build()

    assert build() == build()


def test_all_faults_are_told_at_once() -> None:
    builder = StreamsBuilder()
    stream = builder.stream("in", name="in")
    stream.filter("x = 1", name="f").to("a/b", name="bad-topic")
    stream.to("in", name="loop")
    stream.split("empty").no_default_branch()
    stream.merge(stream, name="twice")
    stream.merge(StreamsBuilder().stream("other", name="other"), name="foreign")
    builder.stream("in", name="in")
    with pytest.raises(TopologyError) as error:
        builder.build()
    text = "\n".join(error.value.faults)
    for expected in (
        "'bad-topic': 'a/b' is not a valid topic name",
        "'loop': topic 'in' is read by 'in': records would go round for ever",
        "'empty': a split without branches",
        "'twice': merges a stream with itself",
        "'foreign': it takes a stream or table of another builder",
        "'in': the name is used by two nodes",
        "'in': topic 'in' is read by 'in' already",
    ):
        assert expected in text


def test_a_topology_has_to_read_and_to_write() -> None:
    with pytest.raises(TopologyError, match="reads nothing") as error:
        StreamsBuilder().build()
    assert error.value.faults[1].startswith("the topology writes nothing")


def test_text_is_spark_sql() -> None:
    builder = StreamsBuilder()
    builder.stream("in", name="in").filter("x = 1", name="f").select_key("x", name="k").to("out", name="out")
    topology = builder.build()
    assert [getattr(topology.node(name), kind) for name, kind in (("f", "condition"), ("k", "key"))] == ["x = 1", "x"]


def test_names_that_topics_cannot_have_are_faults() -> None:
    builder = StreamsBuilder("order totals")
    builder.stream("in").filter("x = 1", name="a/b").to("out")
    with pytest.raises(TopologyError) as error:
        builder.build()
    assert [fault.partition(" (")[0] for fault in error.value.faults] == [
        "'order totals' is not a valid name of a topology",
        "'a/b' is not a valid name of a node",
    ]


@pytest.mark.parametrize(
    ("build", "fault"),
    [
        (lambda b: b.stream("in").join(b.stream("other"), name="j"), "'j': the join of two streams needs `within`"),
        (
            lambda b: b.stream("in").join(b.table("t", value=json("x int")), within="1 s", name="j"),
            "'j': `within` is for",
        ),
        (lambda b: b.stream("in").deduplicate(within="soon", name="d"), "'d': 'soon' is not a duration"),
        (lambda b: b.stream("in", max_ahead="soon", name="s"), "'s': 'soon' is not a duration"),
        (
            lambda b: b.stream("in", name="s").group_by_key().windowed_by(TimeWindows.of("1 s"), late="skip"),
            "'s': late is 'skip', but has to be 'drop' or 'dead-letter'",
        ),
        (
            lambda b: b.stream("in").join(b.table("t", value=json("x int")), late="dead-letter", name="j"),
            "'j': `late` is for the join of two streams",
        ),
        (
            lambda b: b.table("t", value=json("x int"), name="t").filter("x = 1", name="f").expire_after("1 s"),
            "'f': expire_after is for a table, to_table or an aggregate without windows",
        ),
        (
            lambda b: b.stream("in").group_by_key().windowed_by(TimeWindows.of("1 s")).count("c").expire_after("1 s"),
            "'c': expire_after is for a table, to_table or an aggregate without windows",
        ),
        (lambda b: b.stream("in").to_table(name="t").expire_after("0 s"), "'t': '0 s' is too short; at least 1 ms"),
        (
            lambda b: b.stream("in").to_table(name="t").expire_after("1 s").keep_history("1 s"),
            "'t': keep_history is for a table or to_table without expire_after",
        ),
        (
            lambda b: b.stream("in").group_by_key().count("c").keep_history("1 s"),
            "'c': keep_history is for a table or to_table",
        ),
        (
            lambda b: b.stream("in").join(
                b.table("t", value=json("x int"), name="t").keep_history("1 s").filter("x = 1"), name="j"
            ),
            "'j': steps behind 't' have no history: join 't' itself, and take them behind",
        ),
        (lambda b: b.stream("in").group_by_key().aggregate("a"), "'a': it aggregates nothing"),
        (
            lambda b: b.stream("in").group_by_key().count(name="c").suppress(close="clock"),
            "'c': suppress is for an aggregate",
        ),
        (
            lambda b: b.stream("in").join(
                b.stream("x").group_by_key().windowed_by(TimeWindows.of("1 s")).count(), name="j"
            ),
            "'j': 'count-1' has windows: make it a stream",
        ),
    ],
)
def test_wrong_use_is_a_fault_that_names_the_node(build: Callable[[StreamsBuilder], object], fault: str) -> None:
    builder = StreamsBuilder("faulty")
    builder.stream("first").to("out")
    build(builder)
    with pytest.raises(TopologyError) as error:
        builder.build()
    assert error.value.faults[0].startswith(fault)


@pytest.mark.parametrize("wrong", [("0 s",), ("1 s", "2 s"), ("-1 s",), ("1 parsec",)])
def test_windows_that_are_none_are_refused(wrong: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match=r"is not a duration|too short|would leave records out"):
        TimeWindows.of(wrong[0], advance=wrong[1] if len(wrong) > 1 else None)


@pytest.mark.parametrize(
    ("size", "settings", "fault"),
    [
        ("1 h", {"zone": "UTC"}, "'1 h' is not a length in a calendar; write 1 day, "),
        ("0 days", {"zone": "UTC"}, "'0 days' is not a length in a calendar"),
        (timedelta(days=1), {"zone": "UTC"}, "is not a length in a calendar"),
        ("1 day", {"zone": "Europe/Berlim"}, "'Europe/Berlim' is not a time zone; write a name such as"),
        ("1 day", {"zone": "../etc/passwd"}, "is not a time zone"),
        ("1 day", {"zone": ""}, "'' is not a time zone"),
        (
            "1 day",
            {"zone": "UTC", "offset": "24 h"},
            "an offset of '24 h' is too long for windows that begin with a day",
        ),
        ("1 day", {"zone": "UTC", "advance": "1 h"}, "windows of a calendar follow each other: leave out advance"),
        ("1 day", {"offset": "1 h"}, "an offset belongs to windows of a calendar: name its zone"),
    ],
)
def test_windows_that_no_calendar_has_are_refused(size: Any, settings: dict[str, Any], fault: str) -> None:
    with pytest.raises(ValueError, match=re.escape(fault)):
        TimeWindows.of(size, **settings)


def test_windows_of_a_calendar_say_what_they_are() -> None:
    windows = TimeWindows.of("2 Weeks", zone="Europe/Berlin", offset="6 h", grace="1 minute")
    assert str(windows) == "windows of 2 weeks in Europe/Berlin from 21600000 ms after midnight, grace 60000 ms"


@pytest.mark.parametrize(
    ("headers", "fault"),
    [
        ({}, "'h': it changes no header: name those that are set or removed"),
        ("trace", "'h': with_headers takes a mapping from names to values, not str"),
        ({"": "1"}, "'h': '' is not a name that a header can be given"),
        ({5: None}, "'h': 5 is not a name that a header can be given"),
        ({"jmsbridge.no-time": "''"}, "'h': 'jmsbridge.no-time' is not a name that a header can be given"),
    ],
)
def test_headers_are_given_by_their_names(headers: Any, fault: str) -> None:
    builder = StreamsBuilder()
    builder.stream("in").with_headers(headers, name="h").to("out")
    with pytest.raises(TopologyError, match=re.escape(fault)):
        builder.build()


def test_an_output_is_one_that_process_declares() -> None:
    builder = StreamsBuilder()
    stream = builder.stream("in", name="in")
    stream.output("alarms")
    found = stream.process(lambda record, context: None, fields="n int", outputs={"notes": "n int"}, name="p")
    found.output("alarms")
    found.output("notes").to("out", name="to")
    with pytest.raises(TopologyError) as caught:
        builder.build()
    assert caught.value.faults == (
        "'in': there is no output 'alarms'; it declares none: process(…, outputs={'alarms': 'n int'})",
        "'p': there is no output 'alarms'; it has notes",
    )


def test_windows_close_by_what_is_there() -> None:
    builder = StreamsBuilder()
    windows = builder.stream("a").group_by_key().windowed_by(TimeWindows.of("1 s"))
    windows.count("counts").suppress(close="wall").to("b")  # type: ignore[arg-type]
    builder.stream("c").process(lambda *_: None, fields="n int", on_clock=lambda *_: None, name="rule").to("d")
    builder.stream("e").process(lambda *_: None, fields="n int", expire_after="1 h", name="once").to("f")
    builder.stream("g").process(lambda *_: None, fields="n int", state="n int", expire_after="soon", name="two").to("h")
    with pytest.raises(TopologyError) as caught:
        builder.build()
    assert list(caught.value.faults) == [
        """'counts': suppress(close='wall'): windows close by "stream-time" or "clock\"""",
        "'rule': timers need a state: give process() its fields, such as state='count int'",
        "'once': expire_after needs a state: give process() its fields, such as state='count int'",
        "'two': 'soon' is not a duration; write a number and a unit, such as 500 ms, 10 s, 1 minute or 2 hours",
    ]
