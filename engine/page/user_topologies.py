"""Topologies of users in the bridge's picture: a box for each, between the topics that it reads and those it writes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from engine.page.picture import Edge, FlowNode, anchor
from engine.page.view import Tone, state_of
from engine.telemetry.metrics import TOPOLOGY_LAG, TOPOLOGY_RECORDS, TOPOLOGY_UNPROCESSED
from engine.topologies.graph import read_graph
from engine.topologies.section import TopologiesConfig

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from engine.page.view import ShownPart
    from engine.telemetry.report import Traffic
    from routes.model import Config

__all__ = ["JOURNAL", "REJECTED", "UserTopologies"]

JOURNAL = "journal"
"""Key of the journal's node."""
REJECTED = "rejected_records"
"""Reason of the records that a node of a topology could not read or compute."""
_SLOW_SECONDS = 10.0
"""Time in which a topology processes its backlog at its present rate; a longer backlog is shown as waiting."""


@dataclass(frozen=True, slots=True)
class UserTopologies:
    """Topologies of a configuration with their topics, as far as they have run on this machine."""

    nodes: Mapping[str, FlowNode]
    """Nodes by the names of the topologies."""
    read: Mapping[str, tuple[str, ...]]
    """Keys of the nodes of the topics that each topology reads."""
    written: Mapping[str, tuple[str, ...]]
    """Keys of the nodes of the topics that each topology writes."""

    @classmethod
    def of(cls, config: Config, traffic: Traffic, parts: Sequence[ShownPart]) -> Self:
        """The topologies of a configuration, with their current figures."""
        places = {sink.topic: f"sink:{sink.name}" for sink in config.sinks} | {config.journal.topic: JOURNAL}
        rates, lags = traffic.rates(TOPOLOGY_RECORDS, "topology"), traffic.by(TOPOLOGY_LAG, "topology")
        nodes, read, written = {}, {}, {}
        for name in (each.name for each in config.section(TopologiesConfig)):
            rejected = sum(
                count
                for labels, count in traffic.series(TOPOLOGY_UNPROCESSED)
                if (labels["topology"], labels["reason"]) == (name, REJECTED)
            )
            nodes[name] = _node(name, parts, rates.get(name), lags.get(name), rejected)
            graph = read_graph(config.embedded.data, name)
            topics = (graph.read, graph.written) if graph else ((), ())
            read[name], written[name] = (
                tuple(dict.fromkeys(places.get(topic, f"topic:{topic}") for topic in each)) for each in topics
            )
        return cls(nodes, read, written)

    def read_elsewhere(self, known: Collection[str]) -> tuple[FlowNode, ...]:
        """Nodes of the topics that neither a route nor a topology writes; `known` are the keys of the routes' ones."""
        made = {JOURNAL, *known, *(key for keys in self.written.values() for key in keys)}
        return _topics((key for keys in self.read.values() for key in keys if key not in made), "not from a route")

    def columns(self, known: Collection[str]) -> tuple[tuple[str, tuple[FlowNode, ...]], ...]:
        """Columns of topologies, each with a column of the topics that they write; none is in `known`."""
        depths, found, drawn = self._depths(), [], {JOURNAL, *known}
        for depth in sorted(set(depths.values())):
            names = [name for name, each in depths.items() if each == depth]
            found.append(("Topologies", tuple(self.nodes[name] for name in names)))
            keys = [key for name in names for key in self.written[name] if key not in drawn]
            if keys:
                found.append(("Their topics", _topics(keys, "results")))
            drawn.update(keys)
        return tuple(found)

    def edges(self) -> tuple[Edge, ...]:
        """The flows from topics to topologies and from them to topics, whose rates are not known one by one."""
        return tuple(
            edge
            for name, node in self.nodes.items()
            for edge in (
                *(Edge(key, node.key, node.line_tone, None) for key in self.read[name]),
                *(Edge(node.key, key, node.line_tone, None) for key in self.written[name]),
            )
        )

    def _depths(self) -> dict[str, int]:
        """The largest number of topologies in a row before each topology, whose results it reads."""
        depths = dict.fromkeys(self.nodes, 0)
        for _ in depths:  # as many rounds as topologies: enough without a circle, and in a circle an end
            for name, keys in self.read.items():
                makers = [other for other, made in self.written.items() if other != name and set(made) & set(keys)]
                depths[name] = max((depths[other] + 1 for other in makers), default=0)
        return depths


def _node(name: str, parts: Sequence[ShownPart], rate: float | None, lag: float | None, rejected: float) -> FlowNode:
    key = f"topology:{name}"
    tone, state, detail = state_of(key, parts)
    if rejected:
        tone, state = Tone.WARN if tone is Tone.GOOD else tone, f"{rejected:,.0f} rejected"
    waiting = lag if lag is not None and lag > _SLOW_SECONDS * (rate or 0.0) else None
    return FlowNode(key, name, tone, state, "topology", rate, waiting, detail, f"/topologies#{anchor(key)}")


def _topics(keys: Iterable[str], state: str) -> tuple[FlowNode, ...]:
    return tuple(FlowNode(key, key.partition(":")[2], Tone.IDLE, state, "Kafka topic") for key in dict.fromkeys(keys))
