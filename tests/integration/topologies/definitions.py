"""Topologies of the tests; their topics begin with the text in TOPOLOGY_PREFIX."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from typing import Any

from pyspark.sql import functions as F

from engine.streams import (
    InputRecord,
    ProcessorContext,
    SlidingWindows,
    Stream,
    StreamsBuilder,
    TimeWindows,
    Topology,
    avro,
    json,
    json_schema,
    protobuf,
    text,
)

PREFIX = os.environ.get("TOPOLOGY_PREFIX", "")
VISITOR = '{"type":"record","name":"Visitor","fields":[{"name":"name","type":"string"},{"name":"n","type":"long"}]}'


def _counts(size: str) -> Topology:
    builder = StreamsBuilder(f"{PREFIX}-counts")
    clicks = builder.stream(f"{PREFIX}-clicks", value=json("page string, n int"))
    pages = builder.global_table(f"{PREFIX}-pages", value=json("title string"))
    titled = clicks.left_join(pages, on="page")
    windows = TimeWindows.of(size, grace="1 day")
    results = {"total": "sum(n)", "times": "count(1)", "title": "max(title)"}
    counts = titled.group_by("page").windowed_by(windows).aggregate("counts", **results)
    counts.to_stream().to(f"{PREFIX}-counts-out")
    return builder.build()


def counts() -> Topology:
    """Clicks of each page, with its title, by minutes, through an internal topic."""
    return _counts("1 minute")


def changed() -> Topology:
    """The same with windows of another size."""
    return _counts("2 minutes")


def _overlapping(name: str, windows: TimeWindows | SlidingWindows) -> Topology:
    builder = StreamsBuilder(f"{PREFIX}-{name}")
    clicks = builder.stream(f"{PREFIX}-clicks", value=json("page string, n int"))
    results = {"total": "sum(n)", "times": "count(1)", "most": "max(n)", "all": "collect_list(n, 100)"}
    closed = clicks.group_by("page").windowed_by(windows).aggregate("closed", **results).suppress()
    closed.to_stream().to(f"{PREFIX}-counts-out")
    return builder.build()


def hops() -> Topology:
    """Clicks of each page in minutes that begin each three seconds, when they are over, through an internal topic."""
    return _overlapping("hops", TimeWindows.of("1 minute", advance="3 s", grace="1 minute"))


def slides() -> Topology:
    """The clicks of each page that lie within a minute, through an internal topic."""
    return _overlapping("slides", SlidingWindows.of("1 minute", grace="1 minute"))


def _numbered(click: InputRecord, page: ProcessorContext) -> Iterator[dict[str, Any]]:
    """Adds up the clicks of a page, with a timer that never fires and is moved on at each."""
    assert click.value is not None
    state = page.state or {"total": 0, "due": 0}
    page.cancel(state["due"])
    state = {"total": state["total"] + click.value["n"], "due": page.stream_time + 86_400_000}
    page.schedule(state["due"])
    page.state = state
    yield {"total": state["total"]}


def processed() -> Topology:
    """Totals of the clicks of each page, by a Python function."""
    builder = StreamsBuilder(f"{PREFIX}-processed")
    clicks = builder.stream(f"{PREFIX}-clicks", value=json("page string, n int"))
    totals = (
        clicks.select_key("page")
        .repartition()
        .process(
            _numbered,
            on_timer=lambda page, at: [],
            fields="total bigint",
            state="total bigint, due bigint",
            name="totals",
        )
    )
    totals.to(f"{PREFIX}-processed-out")
    return builder.build()


def joined() -> Topology:
    """Clicks with the titles of their pages, and their totals."""
    builder = StreamsBuilder(f"{PREFIX}-joined")
    clicks = builder.stream(f"{PREFIX}-clicks", value=json("page string, n int"))
    pages = builder.table(f"{PREFIX}-pages", value=json("title string"))
    totals = clicks.join(pages, on="page", name="titled").group_by_key().aggregate("totals", total="sum(n)")
    totals.to(f"{PREFIX}-joined-out")
    return builder.build()


def tables() -> Topology:
    """The pages, and the totals of each page and of its days, in topics for others."""
    builder = StreamsBuilder(f"{PREFIX}-tables")
    builder.table(f"{PREFIX}-pages", value=json("title string"), name="pages").changelog(f"{PREFIX}-pages-log")
    pages = builder.stream(f"{PREFIX}-clicks", value=json("page string, n int")).group_by("page")
    pages.aggregate("totals", total="sum(n)").changelog(f"{PREFIX}-totals-log")
    days = pages.windowed_by(TimeWindows.of("1 day", grace="1 day"))
    days.aggregate("days", total="sum(n)").changelog(f"{PREFIX}-days-log")
    return builder.build()


def _paged(totals: str, extreme: str) -> Topology:
    builder = StreamsBuilder(f"{PREFIX}-paged")
    clicks = builder.stream(f"{PREFIX}-clicks", value=json("page string, n int"))
    pages = clicks.select_key("page").repartition(name="by-page").group_by_key()
    pages.aggregate(totals, total="sum(n)").to(f"{PREFIX}-counts-out")
    pages.aggregate("extreme", n=extreme).to(f"{PREFIX}-processed-out")
    return builder.build()


def paged() -> Topology:
    """Two aggregates of the clicks of each page."""
    return _paged("totals", "max(n)")


def paged_anew() -> Topology:
    """The same with another name for the first and another function for the second."""
    return _paged("sums", "min(n)")


def _harms(click: InputRecord, _: ProcessorContext) -> Iterator[dict[str, Any]]:
    """Gives the number of a click, but ends or fills its process, or never returns, for some."""
    assert click.value is not None
    number, text = click.value["n"], ""
    if number == 3:
        sys.exit(3)
    elif number == 4:
        text = "x" * 300_000_000
    elif number == 5:
        os._exit(3)
    while number == 6:
        time.sleep(60)
    yield {"n": number, "text": text}


def harmful() -> Topology:
    """Clicks by a Python function that harms its process at some of them."""
    builder = StreamsBuilder(f"{PREFIX}-harmful")
    clicks = builder.stream(f"{PREFIX}-clicks", value=json("page string, n int"))
    clicks.process(_harms, fields="n int, text string").to(f"{PREFIX}-processed-out")
    return builder.build()


def repeated() -> Topology:
    """Clicks whose number says how long a text is made: a large one takes more memory than the JVM has."""
    builder = StreamsBuilder(f"{PREFIX}-repeated")
    clicks = builder.stream(f"{PREFIX}-clicks", value=json("page string, n int"))
    clicks.map_values(n="n", length="length(repeat('x', n))").to(f"{PREFIX}-processed-out")
    return builder.build()


def timed() -> Topology:
    """Clicks as they are, their number by page, and by page and minute, behind an internal topic."""
    builder = StreamsBuilder(f"{PREFIX}-timed")
    clicks = builder.stream(f"{PREFIX}-clicks", value=json("page string, n int"))
    clicks.to(f"{PREFIX}-counts-out")
    pages = clicks.select_key("page").repartition().group_by_key()
    pages.count(name="counts").to(f"{PREFIX}-processed-out")
    pages.windowed_by(TimeWindows.of("1 minute")).count(name="minutes").to(f"{PREFIX}-joined-out")
    return builder.build()


def registered() -> Topology:
    """Clicks in Avro as they are, and the totals of each page, by a registry's schemas."""
    builder = StreamsBuilder(f"{PREFIX}-registered")
    clicks = builder.stream(f"{PREFIX}-clicks", value=avro(), name="clicks")
    clicks.map_values(n="n").to(f"{PREFIX}-counts-out")
    clicks.group_by("page").aggregate("totals", total="sum(n)").to(f"{PREFIX}-processed-out")
    return builder.build()


def schemas() -> Topology:
    """Clicks in Avro, pages in Protobuf, orders in JSON, by a registry's latest schemas; visits by keys."""
    builder = StreamsBuilder(f"{PREFIX}-schemas")
    clicks = builder.stream(f"{PREFIX}-clicks", value=avro())
    clicks.map_values(page="page", total="CAST(n + 1 AS int)", note="note").to(f"{PREFIX}-counts-out", value=avro())
    pages = f"{PREFIX}-pages"
    same = protobuf(subject=f"{pages}-value", register=False)
    builder.stream(pages, value=protobuf()).filter("views > 1").to(f"{PREFIX}-joined-out", value=same)
    orders = builder.stream(f"{PREFIX}-orders", value=json_schema())
    orders.map_values(customer="customer", total="2 * amount").to(f"{PREFIX}-orders-out", value=json_schema())
    visits = builder.stream(f"{PREFIX}-visits", value=text(), key=avro(VISITOR)).group_by_key().count(name="visits")
    visits.to(f"{PREFIX}-visits-out", key=avro(VISITOR))
    return builder.build()


def chosen() -> Topology:
    """Clicks to the topics that they name as their pages."""
    builder = StreamsBuilder(f"{PREFIX}-chosen")
    clicks = builder.stream(f"{PREFIX}-clicks", value=json("page string, n int, note string"))
    clicks.to(F.col("page"), name="out")
    return builder.build()


def relayed() -> Topology:
    """Clicks, from a topic that may be missing to one that may be missing."""
    builder = StreamsBuilder(f"{PREFIX}-relayed")
    builder.stream(f"{PREFIX}-late", value=json("page string, n int")).to(f"{PREFIX}-late-out", name="out")
    return builder.build()


def copied() -> Topology:
    """Clicks as they are, without state."""
    builder = StreamsBuilder(f"{PREFIX}-copied")
    builder.stream(f"{PREFIX}-clicks", value=json("page string, n int")).to(f"{PREFIX}-counts-out")
    return builder.build()


def digested() -> Topology:
    """Clicks with a field that takes a millisecond or so to compute."""
    builder = StreamsBuilder(f"{PREFIX}-digested")
    clicks = builder.stream(f"{PREFIX}-clicks", value=json("page string, n int"))
    clicks.map_values(n="n", digest="sha2(repeat(page, 20000), 256)").to(f"{PREFIX}-counts-out")
    return builder.build()


def _merged(clicks: Stream, visits: Stream) -> None:
    both = clicks.map_values(one="1").merge(visits.map_values(one="1")).select_key("'all'").group_by_key()
    counted = both.windowed_by(TimeWindows.of("1 s", grace="1 minute")).count(name="merged")
    counted.suppress().to_stream().to(f"{PREFIX}-counts-out")


def merged() -> Topology:
    """Clicks and visits of each second, counted when the second is over, behind an internal topic."""
    builder = StreamsBuilder(f"{PREFIX}-merged")
    clicks = builder.stream(f"{PREFIX}-clicks", value=json("n int"))
    _merged(clicks, builder.stream(f"{PREFIX}-visits", value=json("m int")))
    return builder.build()


def ordered() -> Topology:
    """The same, with the visits near each click, and the title of its page at its time."""
    builder = StreamsBuilder(f"{PREFIX}-ordered")
    clicks = builder.stream(f"{PREFIX}-clicks", value=json("n int"))
    visits = builder.stream(f"{PREFIX}-visits", value=json("m int"))
    pages = builder.table(f"{PREFIX}-pages", value=json("title string"))
    _merged(clicks, visits)
    clicks.join(visits, within="5 s", grace="10 s").to(f"{PREFIX}-joined-out")
    clicks.left_join(pages).to(f"{PREFIX}-visits-out")
    return builder.build()


def rekeyed() -> Topology:
    """Visits near each click of the page that the click names, behind an internal topic."""
    builder = StreamsBuilder(f"{PREFIX}-rekeyed")
    clicks = builder.stream(f"{PREFIX}-clicks", value=json("n int, page string"))
    visits = builder.stream(f"{PREFIX}-visits", value=json("m int"))
    clicks.select_key("page").join(visits, within="5 s", grace="10 s").to(f"{PREFIX}-joined-out")
    return builder.build()


def _overdue(page: ProcessorContext, time: int) -> list[dict[str, Any]]:
    assert page.state is not None
    return [{"n": page.state["n"], "due": time}]


def _awaited(click: InputRecord, page: ProcessorContext) -> None:
    assert click.value is not None
    page.state = {"n": click.value["n"]}
    page.schedule_clock(page.clock + click.value["n"])


def awaited() -> Topology:
    """The number of each click again, so many milliseconds later by the clock."""
    builder = StreamsBuilder(f"{PREFIX}-awaited")
    clicks = builder.stream(f"{PREFIX}-clicks", value=json("page string, n int"))
    clicks.process(_awaited, on_clock=_overdue, fields="n int, due bigint", state="n int", name="awaited").to(
        f"{PREFIX}-processed-out"
    )
    return builder.build()


def _closed(builder: StreamsBuilder, clicks: Stream) -> Topology:
    counted = clicks.group_by_key().windowed_by(TimeWindows.of("1 s", grace="2 s"))
    totals = counted.aggregate("closed", total="sum(n)", times="count(1)").suppress(close="clock")
    totals.to_stream().to(f"{PREFIX}-counts-out")
    return builder.build()


def closed() -> Topology:
    """Clicks of each key and second, when the second is over by the clock."""
    builder = StreamsBuilder(f"{PREFIX}-closed")
    return _closed(builder, builder.stream(f"{PREFIX}-clicks", value=json("page string, n int")))


def closed_pages() -> Topology:
    """The same for each page, behind an internal topic."""
    builder = StreamsBuilder(f"{PREFIX}-closed-pages")
    return _closed(builder, builder.stream(f"{PREFIX}-clicks", value=json("page string, n int")).select_key("page"))


def bounded() -> Topology:
    """Clicks of each page by minutes, without those of the future, and with the late ones as dead letters."""
    builder = StreamsBuilder(f"{PREFIX}-bounded", max_ahead="1 h")
    clicks = builder.stream(f"{PREFIX}-clicks", value=json("page string, n int"), name="clicks")
    windows = TimeWindows.of("1 minute", grace="1 day")
    counts = clicks.group_by_key().windowed_by(windows, late="dead-letter").aggregate("counts", total="sum(n)")
    counts.to_stream().to(f"{PREFIX}-counts-out")
    return builder.build()
