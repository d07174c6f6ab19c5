"""Topologies: what happens to records, as a value that is built, checked, described, compiled and tried out.

`dsl` builds one, `describe` prints it, `compile` makes it a Spark query over a frame, `driver` runs it on a few records
without a broker; `row` is what a topology's functions see.
"""

from engine.topology.compile import Compiled, compile_topology
from engine.topology.describe import describe, mermaid
from engine.topology.driver import TopologyTestDriver
from engine.topology.dsl import ByBranch, Stream, Topology, TopologyBuilder, TopologyError
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
    "describe",
    "mermaid",
]
