"""Topics that a topology of a configuration reads and always writes to, as far as they can be told without Spark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.topologies.graph import read_graph
from engine.topologies.library.nodes import SinkNode
from engine.topologies.runtime.definition import read_without_spark

if TYPE_CHECKING:
    from pathlib import Path

    from engine.topologies.library.topology import Topology
    from engine.topologies.section import TopologyConfig

__all__ = ["TopologyTopics", "topics_of"]


@dataclass(frozen=True, slots=True)
class TopologyTopics:
    """Topics that others have to make before a topology runs."""

    read: tuple[str, ...]
    written: tuple[str, ...]


def topics_of(data: Path, topology: TopologyConfig) -> TopologyTopics | None:
    """The topics of a topology; None if its function makes Columns and it has not run on this machine yet.

    `data` is the folder of the bridge's own files (`embedded.data`).

    Raises:
        UsageError: the function cannot be found.
        TopologyError: the function fails, or the topology has faults.
    """
    if (built := read_without_spark(topology.build)) is not None:
        return _constant(built)
    graph = read_graph(data, topology.name)
    if graph is None:
        return None
    return TopologyTopics(graph.read, graph.written)


def _constant(topology: Topology) -> TopologyTopics:
    made = {node.topic for node in topology.nodes if isinstance(node, SinkNode) and node.is_compacted}
    sources = tuple(source.topic for source in topology.sources)
    return TopologyTopics(sources, tuple(topic for topic in topology.outputs if topic not in made))
