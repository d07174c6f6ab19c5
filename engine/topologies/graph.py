"""Graph of a topology for the status page: its worker writes it, since only a process with Spark can build one."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine.private import make_folder

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


__all__ = ["GraphNode", "TopologyGraph", "read_graph", "write_graph"]

_DROP, _SINK = "drop field", "sink"
"""Operators in a kept graph, see `engine.topologies.library.describe.records`."""


@dataclass(frozen=True, slots=True)
class GraphNode:
    """Node of a topology as it is drawn."""

    name: str
    operator: str
    """Operator in words, such as `filter`."""
    after: tuple[str, ...]
    """Names of the nodes whose records it gets."""
    topics: tuple[str, ...]
    """Topics that it reads or writes."""
    keeps_state: bool
    can_be_asked: bool
    """True if its state has rows that can be asked for."""
    python: str
    """Name of the Python function that it calls; empty: none."""
    expression: str
    """Expression as the user wrote it, such as `amount > 100`; empty: none."""


@dataclass(frozen=True, slots=True)
class TopologyGraph:
    """Application id and nodes of a topology, in the order of flow."""

    name: str
    nodes: tuple[GraphNode, ...]

    @property
    def read(self) -> tuple[str, ...]:
        """Topics that the topology reads."""
        return tuple(topic for node in self.nodes if not node.after for topic in node.topics)

    @property
    def written(self) -> tuple[str, ...]:
        """Topics that the topology writes to, as far as they are constant."""
        return tuple(topic for node in self.nodes if node.operator == _SINK for topic in node.topics)

    @property
    def asked(self) -> list[str]:
        """Names of the nodes whose state can be asked for."""
        return [node.name for node in self.nodes if node.can_be_asked]


def write_graph(data: Path, part: str, name: str, records: Sequence[dict[str, Any]]) -> None:
    """Writes the graph of the topology that a part of the bridge runs, with a record for each node.

    `data` is the folder of the bridge's own files (`embedded.data`).
    """
    path = _file(data, part)
    make_folder(path.parent)
    draft = path.with_suffix(".tmp")
    draft.write_text(json.dumps({"name": name, "nodes": records}), encoding="utf-8")
    draft.replace(path)


def read_graph(data: Path, part: str) -> TopologyGraph | None:
    """The graph of the topology that a part of the bridge runs; None if it has not run on this machine."""
    try:
        read = json.loads(_file(data, part).read_text(encoding="utf-8"))
        return TopologyGraph(str(read["name"]), _nodes(read["nodes"]))
    except (OSError, ValueError, KeyError, TypeError):
        # A damaged file is written anew when the topology starts.
        return None


def _file(data: Path, part: str) -> Path:
    return data / "topologies" / f"{part}.graph.json"


def _nodes(records: Sequence[dict[str, Any]]) -> tuple[GraphNode, ...]:
    """The nodes, without those that only remove a field."""
    hidden: dict[str, str] = {}
    nodes = []
    for each in records:
        after = tuple(hidden.get(parent, parent) for parent in each["after"])
        if each["operator"] == _DROP:
            hidden[each["name"]] = after[0]
        else:
            topics = tuple(each["topics"])
            state = each["stateful"], each["asked"]
            # The file may be of a version that wrote no expressions.
            texts = each["python"], each.get("expression", "")
            nodes.append(GraphNode(each["name"], each["operator"], after, topics, *state, *texts))
    return tuple(nodes)
