"""The page of the topologies of a bridge: figures, settings and a picture of each."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from engine.page.picture import Edge, FlowNode, Picture, anchor, draw
from engine.page.render import render
from engine.page.user_topologies import REJECTED
from engine.page.view import Tone, state_of
from engine.telemetry.metrics import TOPOLOGY_LAG, TOPOLOGY_RECORDS, TOPOLOGY_STATE, TOPOLOGY_UNPROCESSED
from engine.topologies.graph import GraphNode, read_graph
from engine.topologies.section import TopologiesConfig

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from engine.page.view import View

    _Count = tuple[str, str, float]
    """Name of a node, a reason, and the number of records that the node did not process for it."""

__all__ = ["topologies"]

_ADDRESS = "/topologies/state"
_WORDS = {"source": "from", "sink": "to", "python column": "field", "keyed process": "process"}
"""Words for operators whose names say little in a picture."""


def topologies(view: View) -> Callable[[Request], Response]:
    """Makes the handler of the page."""

    def page(request: Request) -> Response:
        return render(request, view, "topologies.html", topologies=_topologies(view))

    return page


def _topologies(view: View) -> list[dict[str, Any]]:
    traffic, config = view.samples.traffic, view.config()
    parts = view.parts()
    rates, lags, sizes = (
        traffic.rates(TOPOLOGY_RECORDS, "topology"),
        traffic.by(TOPOLOGY_LAG, "topology"),
        traffic.by(TOPOLOGY_STATE, "topology"),
    )
    shown = []
    for topology in config.section(TopologiesConfig):
        part = f"topology:{topology.name}"
        tone, state, detail = state_of(part, parts)
        unprocessed = [
            (labels["node"], labels["reason"], value)
            for labels, value in traffic.series(TOPOLOGY_UNPROCESSED)
            if labels["topology"] == topology.name and value
        ]
        graph = read_graph(config.embedded.data, topology.name)
        shown.append(
            {
                "settings": topology,
                "anchor": anchor(part),
                "tone": tone,
                "state": state,
                "detail": detail,
                "rate": rates.get(topology.name),
                "lag": lags.get(topology.name),
                "bytes": sizes.get(topology.name),
                "unprocessed": unprocessed,
                "name": graph.name if graph else "",
                "picture": _picture(topology.name, graph.nodes, unprocessed) if graph else None,
                "nodes": [(node.name, _said(node), _counted(node, unprocessed)) for node in graph.nodes]
                if graph
                else [],
                "asked": graph.asked if graph else [],
            }
        )
    return shown


def _picture(topology: str, nodes: Sequence[GraphNode], unprocessed: Sequence[_Count]) -> Picture:
    """The picture of a topology, each node one column behind the last of those before it."""
    columns: list[list[FlowNode]] = []
    depths: dict[str, int] = {}
    failing = {node for node, reason, _ in unprocessed if reason == REJECTED}
    for node in nodes:
        depth = depths[node.name] = 1 + max((depths[each] for each in node.after), default=-1)
        while len(columns) <= depth:
            columns.append([])
        tone = Tone.WARN if node.name in failing else Tone.GOOD if node.keeps_state else Tone.IDLE
        href = f"{_ADDRESS}?{urlencode({'topology': topology, 'node': node.name})}" if node.can_be_asked else ""
        columns[depth].append(
            FlowNode(
                node.name,
                node.name,
                tone,
                _said(node),
                node.operator,
                detail=_counted(node, unprocessed),
                href=href,
                count=_count(node, unprocessed),
            )
        )
    edges = [Edge(parent, node.name, Tone.IDLE, None) for node in nodes for parent in node.after]
    return draw([("", column) for column in columns], edges)


def _said(node: GraphNode) -> str:
    """The work of a node: its operator, topics and expression; without the operator if the name was made of it."""
    operator = _WORDS.get(node.operator, node.operator)
    words = f"Python {operator}" if node.python else operator
    what = [*node.topics, node.expression]
    if node.expression and re.fullmatch(rf"{node.operator.replace(' ', '-')}(-not)?-[0-9]+", node.name):
        return " ".join(filter(None, what))
    return " ".join(filter(None, [words, *what]))


def _count(node: GraphNode, unprocessed: Sequence[_Count]) -> str:
    """Number of the records that a node did not process, with the reason if there is only one: `3 rejected`."""
    found = {reason: number for name, reason, number in unprocessed if name == node.name}
    if len(found) == 1:
        ((reason, number),) = found.items()
        return f"{number:,.0f} {reason.partition('_')[0]}"
    return f"{sum(found.values()):,.0f} left out" if found else ""


def _counted(node: GraphNode, unprocessed: Sequence[_Count]) -> str:
    """Numbers of the records that a node did not process, by reason: `3 rejected records, 1 late records`."""
    return ", ".join(
        f"{number:,.0f} {reason.replace('_', ' ')}" for name, reason, number in unprocessed if name == node.name
    )
