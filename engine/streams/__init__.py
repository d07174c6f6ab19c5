"""Topologies: the processing of Kafka records as a value that can be built, checked, described, compiled and tested.

`dsl` builds a topology from `nodes`, `describe` prints it, `compile` makes it a Spark query over a frame, `driver` runs
it on a few records without a broker; `row` is the argument of a topology's functions. The package knows records,
Columns and Spark. What records mean is the business of its clients, of which `engine.router` is one: they bring
conditions, choices of topics and a language for text.
"""

from engine.streams.compile import Compiled, compile_topology
from engine.streams.driver import TopologyTestDriver
from engine.streams.dsl import Stream, Topology, TopologyBuilder, TopologyError
from engine.streams.nodes import RecordCondition, RowFunction, TextLanguage, TopicChoice
from engine.streams.row import HeaderView, Row

__all__ = [
    "Compiled",
    "HeaderView",
    "RecordCondition",
    "Row",
    "RowFunction",
    "Stream",
    "TextLanguage",
    "TopicChoice",
    "Topology",
    "TopologyBuilder",
    "TopologyError",
    "TopologyTestDriver",
    "compile_topology",
]
