"""Topologies: what happens to records, as a value that is built, checked, described, compiled and tried out.

`dsl` builds one out of `nodes`, `describe` prints it, `compile` makes it a Spark query over a frame, `driver` runs it
on a few records without a broker; `row` is what a topology's functions see.
"""

from engine.topology.compile import Compiled, compile_topology
from engine.topology.driver import TopologyTestDriver
from engine.topology.dsl import Stream, Topology, TopologyBuilder, TopologyError
from engine.topology.nodes import ByBranch
from engine.topology.row import Row

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
