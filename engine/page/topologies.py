"""The pages of the topologies of a bridge: figures, settings and a picture of each, and the state of their nodes."""

from __future__ import annotations

import json
import re
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from engine.errors import UnreachableError, UsageError
from engine.page.asked import status_of
from engine.page.picture import Edge, FlowNode, Picture, anchor, draw
from engine.page.render import render, rendered
from engine.page.sight import Sight
from engine.page.user_topologies import REJECTED
from engine.page.view import Tone, state_of
from engine.telemetry.metrics import TOPOLOGY_LAG, TOPOLOGY_RECORDS, TOPOLOGY_STATE, TOPOLOGY_UNPROCESSED
from engine.times import read_time
from engine.topologies.graph import GraphNode, read_graph
from engine.topologies.question import StateQuestion
from engine.topologies.section import TopologiesConfig

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from engine.page.threads import Threads
    from engine.page.view import View
    from engine.topologies.question import StateAnswer
    from routes.model import Config

    _Count = tuple[str, str, float]
    """Name of a node, a reason, and the number of records that the node did not process for it."""

__all__ = ["state", "topologies"]

_ADDRESS = "/topologies/state"
_SECONDS = 10.0
"""Time that reading a state may take: the rest of a request's, see `engine.telemetry.http`."""
_MOST_CHARACTERS = 1024
_WORDS = {"source": "from", "sink": "to", "python column": "field", "keyed process": "process"}
"""Words for operators whose names say little in a picture."""


def topologies(view: View) -> Callable[[Request], Response]:
    """Makes the handler of the page."""

    def page(request: Request) -> Response:
        return render(request, view, "topologies.html", topologies=_topologies(view))

    return page


def state(view: View, threads: Threads) -> Callable[[Request], Awaitable[Response]]:
    """Makes the handler of the page that asks a node for its state; the question is in the URL."""

    async def page(request: Request) -> Response:
        asked, config = request.query_params, view.config()
        name = asked.get("topology", "")
        nodes = _nodes_asked(config, name)
        answer: StateAnswer | None = None
        fault, status = "", 200
        try:
            if not nodes:
                raise UsageError(f"no topology {name!r} with state that can be asked has run on this machine")
            if "node" in asked:
                Sight(request, view).check_whole("the state of a topology")
                question = _question(asked)
                busy = "other pages still wait for answers of topologies; try again"
                late = f"the topology gave no answer within {_SECONDS:.0f} s; `jms-bridge topology state` waits longer"
                ask = partial(view.ask, name, question, _SECONDS)
                answer = await threads.run(ask, _SECONDS + 1, busy, late)
                if answer is None:
                    raise UnreachableError(f"{late}. It may not run on this machine, or be starting")
                fault = answer.fault
        except UnreachableError as error:
            fault, status = str(error), 503
        except UsageError as error:
            fault, status = str(error), status_of(error) if nodes else 404
        interval = next((each.interval_seconds for each in config.section(TopologiesConfig) if each.name == name), None)
        return await rendered(
            request,
            view,
            "topology_state.html",
            status=status,
            fault=fault,
            topology=name,
            nodes=nodes,
            asked={field: asked.get(field, "") for field in ("node", "key", "prefix", "since", "until")},
            answer=None if fault else answer,
            columns=list(dict.fromkeys(column for row in answer.rows for column in row)) if answer else [],
            interval=interval,
            as_shown=_as_shown,
        )

    return page


def _nodes_asked(config: Config, name: str) -> list[str]:
    """Names of the nodes of a configured topology whose state can be asked."""
    if name not in {each.name for each in config.section(TopologiesConfig)}:
        return []
    graph = read_graph(config.embedded.data, name)
    return graph.asked if graph else []


def _question(asked: Mapping[str, str]) -> StateQuestion:
    """The question of a form; UsageError for an invalid value of a field."""
    if any(len(text) > _MOST_CHARACTERS for text in asked.values()):
        raise UsageError(f"a field is longer than {_MOST_CHARACTERS} characters")
    since, until = (read_time(text) if (text := asked.get(name, "").strip()) else None for name in ("since", "until"))
    key, prefix = asked.get("key") or None, asked.get("prefix") or None
    return StateQuestion(asked["node"], key, prefix, since, until)


def _as_shown(value: object) -> str:
    """A field of a row as text."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


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
