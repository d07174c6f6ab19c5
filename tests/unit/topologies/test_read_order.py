"""What a topology needs of the order in which its topics are read."""

from __future__ import annotations

from engine.streams import SessionWindows, StreamsBuilder, TimeWindows, json
from engine.topologies.runtime.layout import ReadOrder, lay_out

NOTHING = ReadOrder((), (), ())


def order(builder: StreamsBuilder) -> ReadOrder:
    topology = builder.build()
    return lay_out(topology, {source.topic: 2 for source in topology.sources}).order


def test_topics_wait_for_one_another_if_they_fill_the_internal_topic_of_windows() -> None:
    builder = StreamsBuilder("merged")
    both = builder.stream("left", value=json("n int")).merge(builder.stream("right", value=json("n int")))
    windows = TimeWindows.of("1 minute", advance="25 s", grace="5 s")
    both.group_by("n").windowed_by(windows).count(name="counts").to("out")
    builder.stream("other", value=json("n int")).to("other-out")
    # Windows end 10 s, 35 s, … after each multiple of 25 s, and are closed five seconds later.
    assert order(builder) == ReadOrder(("left", "right"), (), ((25_000, 10_000, 4_999),))


def test_topics_in_front_of_the_first_of_two_internal_topics_wait_as_well() -> None:
    builder = StreamsBuilder("twice")
    counts = builder.stream("in", value=json("n int, m int")).group_by("n").count(name="counts")
    counts.to_stream().group_by("count").windowed_by(SessionWindows.of("1 minute")).count(name="again").to("out")
    first = "twice-repartition-1-repartition"
    assert order(builder) == ReadOrder(("in", first), (), ((0, 0, 1_000),))


def test_a_topic_that_meets_an_internal_one_follows_it() -> None:
    builder = StreamsBuilder("rekeyed")
    left = builder.stream("left", value=json("n int")).select_key("n")
    left.join(builder.stream("right", value=json("n int")), within="5 s", grace="1 minute").to("out")
    assert order(builder) == ReadOrder(("left",), ("right",), ((0, 0, 60_000),))


def test_a_topology_needs_no_order_where_no_internal_topic_or_no_time_matters() -> None:
    builder = StreamsBuilder("direct")
    records = builder.stream("in", value=json("n int"))
    records.group_by_key().windowed_by(TimeWindows.of("1 s")).count(name="windows").to("out")
    records.group_by("n").count(name="counts").to("counts-out")
    assert order(builder) == NOTHING


def test_rows_that_expire_need_the_order_of_an_internal_topic_more_the_shorter_they_live() -> None:
    builder = StreamsBuilder("expiring")
    builder.stream("in", value=json("n int")).group_by("n").count("counts").expire_after("5 s").to("out")
    assert order(builder) == ReadOrder(("in",), (), ((0, 0, 5_000),))
