"""Topologies: checked lists of nodes in the order of flow."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from engine.topologies.library.describe import describe, mermaid
from engine.topologies.library.nodes import (
    Aggregate,
    Branch,
    Filter,
    GroupTable,
    JoinForeign,
    JoinTable,
    MapValues,
    Merge,
    Node,
    Repartition,
    SinkNode,
    SourceNode,
    ToTable,
    branches,
    children,
)
from engine.topologies.library.windows import CalendarWindows, TimeWindows
from routes.errors import BridgeError

__all__ = ["Topology", "TopologyError", "faults_of"]

_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_NAME = re.compile(r"[a-zA-Z0-9._-]{1,100}")


class TopologyError(BridgeError, ValueError):
    """A topology cannot be built; `faults` holds all reasons."""

    exit_code = 2

    def __init__(self, faults: Sequence[str]) -> None:
        self.faults = tuple(faults)
        super().__init__("\n".join(self.faults))


@dataclass(frozen=True, slots=True)
class Topology:
    """A checked topology: its nodes in the order of flow, parents before children."""

    nodes: tuple[Node, ...]
    name: str = ""
    """Application id of a topology that runs by itself; empty: it has none."""

    @property
    def sources(self) -> tuple[SourceNode, ...]:
        """The nodes that read topics."""
        return tuple(node for node in self.nodes if isinstance(node, SourceNode))

    @property
    def outputs(self) -> tuple[str, ...]:
        """The topics that it writes to, each once; without those that records choose, and the internal ones."""
        sinks = (node for node in self.nodes if isinstance(node, SinkNode))
        return tuple(dict.fromkeys(topic for sink in sinks for topic in _constant_topics(sink)))

    def internal_topics(self, node: Node) -> tuple[str, ...]:
        """The internal topics through which records pass in a node; the last one is that of its results."""
        parts: tuple[str, ...] = ()
        if isinstance(node, JoinForeign):
            parts = f"{node.name}-ask", f"{node.name}-answer"
        elif isinstance(node, Repartition | GroupTable):
            parts = (node.name,)
        return tuple(f"{self.name}-{part}-repartition" for part in parts)

    def aggregate_behind(self, passage: Repartition) -> Aggregate | None:
        """The aggregate that a passage is for alone; None: it is for others, or for sessions or sliding windows."""
        match self.children(passage.name):
            case (Aggregate(windows=None | TimeWindows() | CalendarWindows()) as aggregate,):
                return aggregate
            case _:
                return None

    def node(self, name: str) -> Node:
        """The node of that name; KeyError if there is none."""
        for node in self.nodes:
            if node.name == name:
                return node
        raise KeyError(name)

    def children(self, name: str) -> tuple[Node, ...]:
        """The nodes that consume the records of the node of that name."""
        return tuple(children(self.nodes).get(name, ()))

    def branches(self, split: str) -> tuple[Branch, ...]:
        """The branches of a split in the order in which they are tried; a default branch is the last."""
        return tuple(node for node in self.children(split) if isinstance(node, Branch))

    def describe(self) -> str:
        """The topology in the format of `Topology.describe().toString()` of Kafka Streams."""
        return describe(self.nodes)

    def mermaid(self) -> str:
        """The topology as a Mermaid flowchart."""
        return mermaid(self.nodes)


def faults_of(nodes: Sequence[Node], name: str = "") -> Iterable[str]:
    """Faults of a topology of these nodes, and of its name, that can be told without a session."""
    yield from _name_faults(nodes, name)
    names: set[str] = set()
    for node in nodes:
        if node.name in names:
            yield f"'{node.name}': the name is used by two nodes; give each its own"
        names.add(node.name)
    sources = [node for node in nodes if isinstance(node, SourceNode)]
    sinks = [node for node in nodes if isinstance(node, SinkNode)]
    if not sources:
        yield "the topology reads nothing: start with stream(topic)"
    if not any(node.is_end for node in nodes):
        yield "the topology writes nothing: end a stream with to(topic)"
    read: dict[str, str] = {}
    for source in sources:
        yield from _topic_faults(source.name, source.topic)
        if source.topic in read:
            yield f"'{source.name}': topic '{source.topic}' is read by '{read[source.topic]}' already; use that stream"
        read.setdefault(source.topic, source.name)
    for sink in sinks:
        for topic in _constant_topics(sink):
            yield from _topic_faults(sink.name, topic)
            if topic in read:
                yield f"'{sink.name}': topic '{topic}' is read by '{read[topic]}': records would go round for ever"
    yield from _structure_faults(nodes)


def _name_faults(nodes: Sequence[Node], name: str) -> Iterable[str]:
    """Names of which topics could not be made, in a topology with a name."""
    rule = "(1 to 100 of a-z, A-Z, 0-9, '.', '_' and '-')"
    if name and not _NAME.fullmatch(name):
        yield f"'{name}' is not a valid name of a topology {rule}: topics begin with it"
    yield from (
        f"'{node.name}' is not a valid name of a node {rule}"
        for node in nodes
        if name and not _NAME.fullmatch(node.name)
    )


def _structure_faults(nodes: Sequence[Node]) -> Iterable[str]:
    yield from (f"'{split}': a split without branches" for split, names in branches(nodes).items() if not names)
    for node in nodes:
        if isinstance(node, Merge) and len(set(node.parents)) < len(node.parents):
            yield f"'{node.name}': merges a stream with itself"
    named = {node.name: node for node in nodes}
    for join in nodes:
        if isinstance(join, JoinTable) and (table := _table_behind_steps(named, join.parents[1])):
            yield f"'{join.name}': steps behind '{table}' have no history: join '{table}' itself, and take them behind"


def _table_behind_steps(named: Mapping[str, Node], table: str) -> str | None:
    """Name of the table with a history from which steps lead to a table without one; None: there is none."""
    node = named.get(table)
    if not isinstance(node, ToTable) or node.history_ms is not None:
        return None
    while isinstance(node, Filter | MapValues) or (node is not None and node.name == table):
        node = named.get(node.parents[0])
    return node.name if isinstance(node, ToTable) and node.history_ms is not None else None


def _topic_faults(name: str, topic: str) -> Iterable[str]:
    if not _TOPIC.fullmatch(topic) or topic in (".", ".."):
        yield f"'{name}': '{topic}' is not a valid topic name (1 to 249 of a-z, A-Z, 0-9, '.', '_' and '-')"


def _constant_topics(sink: SinkNode) -> tuple[str, ...]:
    return (sink.topic,) if isinstance(sink.topic, str) else tuple(dict.fromkeys(sink.choices.values()))
