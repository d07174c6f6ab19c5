"""Topologies: the processing of records as a value that can be built, checked, described, compiled and tested.

`dsl` builds a topology from `nodes`, `describe` prints it, `compile` makes it a Spark query over a frame, `driver` runs
it on a few records without a broker; `row` is the argument of a topology's functions.
"""

from engine.streams.compile import Compiled, compile_topology
from engine.streams.driver import TopologyTestDriver
from engine.streams.dsl import Stream, Topology, TopologyBuilder, TopologyError
from engine.streams.nodes import ByBranch
from engine.streams.row import Row

__all__ = [
    "ByBranch",
    "Compiled",
    "Row",
    "Stream",
    "Topology",
    "TopologyBuilder",
    "TopologyError",
    "TopologyTestDriver",
    "compile_topology",
]
