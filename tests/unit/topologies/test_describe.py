"""Descriptions are compared whole: people and tools read them."""

from __future__ import annotations

from pyspark.sql import Column

from engine.router import ByBranch, MessageCondition
from engine.router.plan.builder import PlanBuilder
from engine.streams import Row, StreamsBuilder, json, python
from engine.topologies.library.describe import records
from routes.predicate import parse

WANTED = MessageCondition(parse("amount > 1000"))
DESCRIPTION = """\
Topologies:
   Sub-topology: 0
    Source: orders (topics: [orders])
      --> size
    Processor: size (stores: [])
      --> large, small
      <-- orders
    Processor: large (stores: [])
      --> all
      <-- size
    Processor: small (stores: [])
      --> all
      <-- size
    Processor: all (stores: [])
      --> out
      <-- large, small
    Sink: out (topic: by size [large=big, small=little])
      <-- all
   Sub-topology: 1
    Source: prices (topics: [prices])
      --> copy, unused
    Sink: copy (topic: prices-copy)
      <-- prices
    Processor: unused (stores: [])
      --> none
      <-- prices
"""

MERMAID = """\
flowchart LR
  n0["in"]
  t0[("in")]
  n1{{"s"}}
  n2["a #quot;b#quot;"]
  n3["to-out"]
  t1[("out")]
  t0 --> n0
  n0 --> n1
  n1 --> n2
  n2 --> n3
  n3 -- "a #quot;b#quot;" --> t1
"""


def test_a_description_has_the_form_of_kafka_streams() -> None:
    builder = PlanBuilder()
    split = builder.stream("orders", name="orders").split("size").branch(WANTED, name="large")
    large, small = split.default_branch("small")
    large.merge(small, name="all").to(ByBranch("size", {"large": "big", "small": "little"}), name="out")
    prices = builder.stream("prices", name="prices")
    prices.to("prices-copy", name="copy")
    prices.filter(WANTED, name="unused")
    assert builder.build().describe() == DESCRIPTION


def test_a_flowchart_shows_topics_and_quotes_names() -> None:
    builder = PlanBuilder()
    (stream,) = builder.stream("in", name="in").split("s").branch(WANTED, name='a "b"').no_default_branch()
    stream.to(ByBranch("s", {'a "b"': "out"}), name="to-out")
    assert builder.build().mermaid() == MERMAID


def test_state_and_internal_topics_are_shown() -> None:
    builder = StreamsBuilder("counts")
    builder.stream("in", name="in").group_by("value").count(name="counts").to("out", name="out")
    lines = builder.build().describe().splitlines()
    assert "    Processor: repartition-1 (stores: [], through an internal topic)" in lines
    assert "    Processor: counts (stores: [counts])" in lines
    assert "    Processor: select-key-1 (stores: [])" in lines


def is_large(row: Row) -> Column:
    return row["amount"] > 100


def test_nodes_say_what_they_compute_as_their_user_wrote_it() -> None:
    builder = StreamsBuilder("totals")
    orders = builder.stream("orders", value=json("customer string, amount double"))
    large = orders.filter("amount > 100\n  AND customer IS NOT NULL").filter_not(lambda row: row["amount"] > 5000)
    chosen = large.filter(is_large).filter(python(print, returns="boolean")).map_values(total="amount * 2", by="key")
    limit = 7
    chosen = chosen.map_values(a=lambda row: row["total"] + limit, b=lambda row: row["by"])  # fmt: skip
    sums = chosen.group_by("customer").aggregate("sums", total="sum(total)", n="count(1)")
    sums.to_stream().to("sums")
    found = {each["name"]: each["expression"] for each in records(builder.build().nodes) if each["expression"]}
    assert found == {
        "filter-1": "amount > 100 AND customer IS NOT NULL",
        "filter-not-1": "not (row['amount'] > 5000)",
        "filter-2": f"{__name__}.is_large",
        "filter-3-python": "builtins.print",
        "map-values-1": "total = amount * 2, by = key",
        "map-values-2": "a = row['total'] + limit, b = row['by']",
        "select-key-1": "customer",
        "sums": "total = sum(total), n = count(1)",
    }
