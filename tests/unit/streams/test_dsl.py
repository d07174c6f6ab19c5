"""Building topologies: the value that comes out, and every fault at once."""

from __future__ import annotations

import pytest

from engine.router import ByBranch, RoutingLanguage
from engine.streams import StreamsBuilder, TopologyError
from engine.streams.nodes import Branch, Merge, SinkNode, SourceNode


def test_nodes_stand_in_the_order_of_flow_with_their_parents() -> None:
    builder = StreamsBuilder(language=RoutingLanguage())
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
        builder = StreamsBuilder(language=RoutingLanguage())
        builder.stream("a", name="a").filter("x = 1", name="f").to("b", name="b")
        return builder.build()

    assert build() == build()


def test_all_faults_are_told_at_once() -> None:
    builder = StreamsBuilder(language=RoutingLanguage())
    stream = builder.stream("in", name="in")
    stream.filter("x = ", name="bad-predicate").to("a/b", name="bad-topic")
    stream.to("in", name="loop")
    stream.split("empty").no_default_branch()
    stream.merge(stream, name="twice")
    stream.merge(StreamsBuilder().stream("other", name="other"), name="foreign")
    builder.stream("in", name="in")
    stream.to(ByBranch("nowhere", {"x": "t"}), name="no-split")
    with pytest.raises(TopologyError) as error:
        builder.build()
    text = "\n".join(error.value.faults)
    for expected in (
        "'bad-predicate': ",
        "'bad-topic': 'a/b' is no topic name",
        "'loop': topic 'in' is read by 'in': records would go round for ever",
        "'empty': a split without branches",
        "'twice': merges a stream with itself",
        "'foreign': it takes a stream or table of another builder",
        "'in': the name is used by two nodes",
        "'in': topic 'in' is read by 'in' already",
        "'no-split': no split is named 'nowhere'",
    ):
        assert expected in text


def test_a_topology_has_to_read_and_to_write() -> None:
    with pytest.raises(TopologyError, match="reads nothing") as error:
        StreamsBuilder().build()
    assert error.value.faults[1].startswith("the topology writes nothing")


def test_a_constant_for_an_unknown_branch_is_a_fault() -> None:
    builder = StreamsBuilder(language=RoutingLanguage())
    stream, *_ = builder.stream("in", name="in").split("s").branch("TRUE", name="a").no_default_branch()
    stream.to(ByBranch("s", {"a": "x", "b": "y"}), name="out")
    with pytest.raises(TopologyError, match="split 's' has no branch 'b'"):
        builder.build()


def test_text_is_spark_sql_for_a_builder_without_a_language() -> None:
    builder = StreamsBuilder()
    builder.stream("in", name="in").filter("x = 1", name="f").select_key("x", name="k").to("out", name="out")
    topology = builder.build()
    assert [getattr(topology.node(name), kind) for name, kind in (("f", "condition"), ("k", "key"))] == ["x = 1", "x"]
