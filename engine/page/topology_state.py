"""State of topologies, asked over HTTP: a page with a form, and the same as JSON for the API."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from engine.errors import UnreachableError, UsageError
from engine.looks.look import LookWay
from engine.page.asked import NotThereError, flag, number, status_of
from engine.page.render import rendered
from engine.page.sight import Sight
from engine.times import read_time
from engine.topologies.graph import read_graph
from engine.topologies.question import StateFault, StateQuestion
from engine.topologies.section import TopologiesConfig

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from pathlib import Path

    from starlette.requests import Request
    from starlette.responses import Response

    from engine.page.threads import Threads
    from engine.page.view import View
    from engine.topologies.question import StateAnswer

__all__ = ["state", "state_nodes", "state_rows"]

_SECONDS = 10.0
"""Time that a topology may take for an answer."""
_NOTED_SECONDS = 3.0
"""Time for the note of the look after it; together less than a request may take, see `engine.telemetry.http`."""
_MOST_CHARACTERS = 1024
_PAGE_ROWS = 50
_MOST_ROWS = 1000
_FIELDS = ("node", "key", "prefix", "since", "until", "live", "after")


def state(view: View, threads: Threads) -> Callable[[Request], Awaitable[Response]]:
    """Makes the handler of the page that asks a node for its state; the question is in the URL."""

    async def page(request: Request) -> Response:
        asked, config = request.query_params, view.config()
        name = asked.get("topology", "")
        nodes: Mapping[str, str] = {}
        answer: StateAnswer | None = None
        fault, status = "", 200
        try:
            nodes = _nodes_asked(config.section(TopologiesConfig), config.embedded.data, name)
            if "node" in asked:
                times = asked.get("since", ""), asked.get("until", "")
                question = _question(asked, asked["node"], *times, _PAGE_ROWS)
                answer = await _answer(request, view, threads, name, question, LookWay.STATE)
        except (UnreachableError, UsageError) as error:
            fault, status = str(error), status_of(error)
        interval = next((each.interval_seconds for each in config.section(TopologiesConfig) if each.name == name), None)
        return await rendered(
            request,
            view,
            "topology_state.html",
            status=status,
            fault=fault,
            topology=name,
            nodes=list(nodes),
            asked={field: asked.get(field, "") for field in _FIELDS},
            answer=answer,
            further=urlencode({**asked, "after": answer.next}) if answer and answer.next else "",
            columns=list(dict.fromkeys(column for row in answer.rows for column in row)) if answer else [],
            interval=interval,
            as_shown=_as_shown,
        )

    return page


def state_nodes(topologies: TopologiesConfig, data: Path, name: str) -> dict[str, object]:
    """The nodes of a topology whose state can be asked, for the API.

    Args:
        topologies: those of the bridge.
        data: the folder of the bridge's own files (`embedded.data`).
        name: the name of one topology.

    Raises:
        NotThereError: no topology of this name has run on this machine.
    """
    nodes = [{"node": node, "operator": operator} for node, operator in _nodes_asked(topologies, data, name).items()]
    return {"topology": name, "nodes": nodes}


async def state_rows(request: Request, view: View, threads: Threads) -> dict[str, object]:
    """Rows of the state of a node, for the API.

    Raises:
        NotThereError: there is no such topology or node.
        UsageError: a parameter is wrong, or the node has no such keys or windows.
        MaskedError: the user does not see everything.
        UnreachableError: the topology does not run here, or gives no answer, or the look cannot be noted.
    """
    asked, name, node = request.query_params, request.path_params["topology"], request.path_params["node"]
    config = view.config()
    if node not in (nodes := _nodes_asked(config.section(TopologiesConfig), config.embedded.data, name)):
        msg = f"no node {node!r} of topology {name!r} has state that can be asked; these have: {', '.join(nodes)}"
        raise NotThereError(msg)
    limit = number("limit", asked.get("limit", ""), 100, _MOST_ROWS)
    question = _question(asked, node, asked.get("window_from", ""), asked.get("window_to", ""), limit)
    answer = await _answer(request, view, threads, name, question, LookWay.API)
    return {
        "topology": name,
        "node": node,
        "live": answer.live,
        "positions": answer.positions,
        "rows": list(answer.rows),
        "next": answer.next or None,
    }


async def _answer(
    request: Request, view: View, threads: Threads, name: str, question: StateQuestion, way: LookWay
) -> StateAnswer:
    """The answer of a topology, once the look is noted; raises as `state_rows`."""
    sight = Sight(request, view)
    sight.check_whole("the state of a topology")
    late = f"the topology gave no answer within {_SECONDS:.0f} s; `jms-bridge topology state` waits longer"

    def ask() -> StateAnswer:
        answer = view.ask(name, question, _SECONDS)
        if answer is None:
            raise UnreachableError(f"{late}. It may not run on this machine, or be starting")
        if answer.kind == StateFault.QUESTION:
            raise UsageError(answer.fault)
        if answer.fault:
            raise UnreachableError(answer.fault)
        if answer.rows:
            sight.note_state(way, f"{name}/{question.node}")
        return answer

    busy = "other pages still wait for answers of topologies; try again"
    return await threads.run(ask, _SECONDS + _NOTED_SECONDS, busy, late)


def _nodes_asked(topologies: TopologiesConfig, data: Path, name: str) -> Mapping[str, str]:
    """The operators of the nodes of a configured topology whose state can be asked, by name; raises NotThereError."""
    known = {topology.name for topology in topologies}
    graph = read_graph(data, name) if name in known else None
    found = {node.name: node.operator for node in graph.nodes if node.can_be_asked} if graph else {}
    if not found:
        msg = (
            f"no topology {name!r} with state that can be asked has run on this machine; "
            f"the bridge has these topologies: {', '.join(sorted(known)) or 'none'}"
        )
        raise NotThereError(msg)
    return found


def _question(asked: Mapping[str, str], node: str, since: str, until: str, limit: int) -> StateQuestion:
    """The question of a form or of the API; UsageError for an invalid value of a parameter."""
    if any(len(text) > _MOST_CHARACTERS for text in asked.values()):
        raise UsageError(f"a field is longer than {_MOST_CHARACTERS} characters")
    first, last = (read_time(text.strip()) if text.strip() else None for text in (since, until))
    key, prefix, from_key, to_key = (asked.get(field) or None for field in ("key", "prefix", "from", "to"))
    is_live = flag("live", asked.get("live", ""), default=True)
    return StateQuestion(node, key, prefix, first, last, limit, from_key, to_key, asked.get("after", ""), is_live)


def _as_shown(value: object) -> str:
    """A field of a row as text."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
