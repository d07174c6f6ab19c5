"""The page of the topologies of a bridge: figures, settings and a picture of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.page.flow import Edge, FlowNode, Picture, anchor, draw
from engine.page.render import render
from engine.page.view import Tone, worst
from engine.telemetry.metrics import TOPOLOGY_LAG, TOPOLOGY_RECORDS, TOPOLOGY_STATE, TOPOLOGY_UNPROCESSED
from engine.topologies.graph import GraphNode, read_graph

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from engine.page.view import View

__all__ = ["topologies"]

_REJECTED = "rejected_records"
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
    for topology in config.topologies:
        part = f"topology:{topology.name}"
        found = worst(each for each in parts if each.name == part)
        tone, state = (Tone.IDLE, "elsewhere") if found is None else (found.tone, found.state)
        unprocessed = [
            (labels["node"], labels["reason"], value)
            for labels, value in traffic.series(TOPOLOGY_UNPROCESSED)
            if labels["topology"] == topology.name and value
        ]
        graph = read_graph(config, topology.name)
        failing = {node for node, reason, _ in unprocessed if reason == _REJECTED}
        shown.append(
            {
                "settings": topology,
                "anchor": anchor(part),
                "tone": tone,
                "state": state,
                "detail": "" if found is None else found.detail,
                "rate": rates.get(topology.name),
                "lag": lags.get(topology.name),
                "bytes": sizes.get(topology.name),
                "unprocessed": unprocessed,
                "name": graph.name if graph else "",
                "picture": _picture(graph.nodes, failing) if graph else None,
            }
        )
    return shown


def _picture(nodes: Sequence[GraphNode], failing: set[str]) -> Picture:
    """The picture of a topology, each node one column behind the last of those before it."""
    columns: list[list[FlowNode]] = []
    depths: dict[str, int] = {}
    for node in nodes:
        depth = depths[node.name] = 1 + max((depths[each] for each in node.after), default=-1)
        while len(columns) <= depth:
            columns.append([])
        tone = Tone.WARN if node.name in failing else Tone.GOOD if node.keeps_state else Tone.IDLE
        operator = _WORDS.get(node.operator, node.operator)
        state = " ".join([f"Python {operator}" if node.python else operator, *node.topics])
        columns[depth].append(FlowNode(node.name, node.name, tone, state, node.operator, detail=node.python))
    edges = [Edge(parent, node.name, Tone.IDLE, None) for node in nodes for parent in node.after]
    return draw([("", column) for column in columns], edges)
