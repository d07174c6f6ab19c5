"""The topology with its current figures, sources, journal, routes and destinations, and its layout as a picture."""

from __future__ import annotations

import math
import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.page.view import Tone, worst
from engine.telemetry.metrics import DELIVERED, FAILED, JOURNALED, LAG_RECORDS, LAG_SECONDS, ROUTED, SINK_LAG
from engine.telemetry.status import State

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from engine.page.view import ShownPart, View
    from engine.telemetry.report import Traffic
    from routes.model import Config, Route

__all__ = ["Edge", "FlowGraph", "FlowNode", "Line", "NodeBox", "Picture", "anchor", "draw", "flow", "route_tone"]

ROUTER = "router"
JOURNAL = "journal"
DEAD_LETTERS = "dead letters"
FAILED_LATELY_SECONDS = 300.0
"""Seconds after a failure during which its route is shown as failing."""
_SLOW_SECONDS = 10.0
_STUCK_SECONDS = 60.0
_WIDTH = 1120
_COLUMNS = 4
"""Number of columns over which a picture of this width is spread."""
_LEAST_WAY = 48
_BOX = 208
_HEIGHT = 62
_GAP = 16
_TOP = 34
_MOST = 16
"""Number of nodes drawn in a column; nodes that fail or carry messages come before idle ones."""
_LETTERS = 20


@dataclass(frozen=True, slots=True)
class FlowNode:
    """A source, the journal, a route or a destination: one box of the picture."""

    key: str
    title: str
    tone: Tone
    state: str
    """The node's state, in a word or two."""
    kind: str
    """Type of the node: `router`, `route`, `Kafka topic`, `replies`, a type of system, or the dead-letter topic."""
    rate: float | None = None
    """Messages per second through the node; None if unknown."""
    lag: float | None = None
    """Messages that wait at the node; None if unknown."""
    detail: str = ""
    """The component's own description of its state, a route's predicate, or why dead letters cannot be counted."""
    href: str = ""


@dataclass(frozen=True, slots=True)
class Edge:
    """The flow of messages from one node to another, which are named by their keys."""

    start: str
    end: str
    tone: Tone
    rate: float | None


@dataclass(frozen=True, slots=True)
class FlowGraph:
    """The topology with its figures, by columns of the picture."""

    sources: tuple[FlowNode, ...]
    journal: FlowNode
    routes: tuple[FlowNode, ...]
    destinations: tuple[FlowNode, ...]
    edges: tuple[Edge, ...]

    @property
    def columns(self) -> tuple[tuple[str, tuple[FlowNode, ...]], ...]:
        """The nodes of each column, with its heading."""
        return (
            ("Sources", self.sources),
            ("Journal", (self.journal,)),
            ("Routes", self.routes),
            ("Destinations", self.destinations),
        )


def flow(view: View) -> FlowGraph:
    """The topology of the configuration in force, with its current figures."""
    config, traffic = view.config(), view.samples.traffic
    parts = view.parts()
    sources = _sources(config, traffic, parts)
    journal = _journal(traffic, worst(part for part in parts if part.name == ROUTER))
    routes = _routes(config, view, traffic)
    rates = {node.key: node.rate for node in routes}
    destinations = _destinations(config, traffic, parts, rates)
    destinations = (*destinations, _dead_letters(config, view))
    edges = [Edge(node.key, JOURNAL, _calm(node), node.rate) for node in sources]
    failed = traffic.rates(FAILED, "route")
    for route, node in zip(_shown(config, traffic), routes, strict=True):
        edges.append(Edge(JOURNAL, node.key, _calm(node), node.rate))
        edges.append(Edge(node.key, _destination(route), _calm(node), node.rate))
        if rate := failed.get(route.name):
            edges.append(Edge(node.key, DEAD_LETTERS, Tone.WARN, rate))
    return FlowGraph(sources, journal, routes, destinations, tuple(edges))


def route_tone(view: View, route: str) -> tuple[Tone, str]:
    """The condition of a route, as a tone and in a word."""
    failed_at = view.samples.failed_at.get(route)
    if failed_at is not None and time.time() - failed_at < FAILED_LATELY_SECONDS:
        return Tone.WARN, "failing"
    rate = view.samples.traffic.rates(ROUTED, "route").get(route)
    return (Tone.GOOD, "flowing") if rate else (Tone.IDLE, "idle")


def _calm(node: FlowNode) -> Tone:
    """The tone of a node's line: that of the node, but idle if nothing flows and nothing is wrong."""
    return node.tone if node.rate or node.tone in (Tone.BAD, Tone.WARN) else Tone.IDLE


def _sources(config: Config, traffic: Traffic, parts: Sequence[ShownPart]) -> tuple[FlowNode, ...]:
    rates = traffic.rates(JOURNALED, "source")
    nodes = []
    for source in config.sources:
        tone, state, detail = _state(f"source:{source.name}", parts)
        rate = rates.get(source.name)
        key = f"source:{source.name}"
        nodes.append(FlowNode(key, source.name, tone, state, str(source.type), rate, None, detail, f"#{anchor(key)}"))
    replies = {name: rate for name, rate in rates.items() if name.endswith(".replies") and rate}
    nodes += [FlowNode(f"source:{name}", name, Tone.GOOD, "ready", "replies", rate) for name, rate in replies.items()]
    return tuple(nodes)


def _journal(traffic: Traffic, router: ShownPart | None) -> FlowNode:
    seconds, records = traffic.total(LAG_SECONDS), traffic.total(LAG_RECORDS)
    tone, state = (Tone.IDLE, "elsewhere") if router is None else (router.tone, router.state)
    if router and router.state == State.READY:
        if seconds is not None and seconds > _SLOW_SECONDS:
            tone, state = (Tone.BAD, "stuck") if seconds > _STUCK_SECONDS else (Tone.WARN, "behind")
        else:
            state = "up to date" if not records else "routing"
    detail = router.detail if router else "the router runs apart from this bridge"
    return FlowNode(
        JOURNAL, "Journal", tone, state, "router", traffic.rate(JOURNALED), records, detail, f"#{anchor(ROUTER)}"
    )


def _shown(config: Config, traffic: Traffic) -> list[Route]:
    """The routes from the configuration file, and those added by the bridge through which messages flow."""
    rates = traffic.rates(ROUTED, "route")
    return [route for route in config.routes if not route.added or rates.get(route.name)]


def _routes(config: Config, view: View, traffic: Traffic) -> tuple[FlowNode, ...]:
    rates = traffic.rates(ROUTED, "route")
    failures = traffic.by(FAILED, "route")
    nodes = []
    for route in _shown(config, traffic):
        tone, state = route_tone(view, route.name)
        failed = failures.get(route.name)
        nodes.append(
            FlowNode(
                f"route:{route.name}",
                route.name,
                tone,
                f"{failed:,.0f} failed" if failed else state,
                "route",
                rates.get(route.name),
                None,
                route.include.text,
                f"/routes#{anchor(route.name)}",
            )
        )
    return tuple(nodes)


def _destinations(
    config: Config, traffic: Traffic, parts: Sequence[ShownPart], rates: dict[str, float | None]
) -> tuple[FlowNode, ...]:
    shown = _shown(config, traffic)
    delivered = traffic.rates(DELIVERED, "sink")
    waiting = traffic.by(SINK_LAG, "component")
    nodes: dict[str, FlowNode] = {}
    for route in shown:
        key = _destination(route)
        if route.target.sink is None and key not in nodes:
            sums = [rates.get(f"route:{each.name}") for each in shown if _destination(each) == key]
            known = [rate for rate in sums if rate is not None]
            rate = sum(known) if known else None
            tone, state = (Tone.GOOD, "flowing") if rate else (Tone.IDLE, "idle")
            nodes[key] = FlowNode(key, str(route.target.address), tone, state, "Kafka topic", rate)
    for sink in config.sinks:
        key = f"sink:{sink.name}"
        tone, state, detail = _state(key, parts)
        lags = [value for name, value in waiting.items() if name.partition("/")[0] == key]
        lag = sum(lags) if lags else None
        nodes[key] = FlowNode(
            key, sink.name, tone, state, str(sink.type), delivered.get(sink.name), lag, detail, f"#{anchor(key)}"
        )
    return tuple(nodes.values())


def _destination(route: Route) -> str:
    return f"sink:{route.target.sink}" if route.target.sink else f"topic:{route.target.address}"


def _dead_letters(config: Config, view: View) -> FlowNode:
    census = view.census()
    title, topic = "Dead letters", config.letter_topic
    if census is None:
        return FlowNode(DEAD_LETTERS, title, Tone.IDLE, "not known here", topic, href="/dead-letters")
    if not census.reachable:
        detail = census.trouble
        return FlowNode(DEAD_LETTERS, title, Tone.BAD, "out of reach", topic, detail=detail, href="/dead-letters")
    depth = census.depth
    state = "being counted" if depth is None else f"{depth:,} open" if depth else "none open"
    tone = Tone.WARN if depth else Tone.IDLE if depth is None else Tone.GOOD
    return FlowNode(DEAD_LETTERS, title, tone, state, topic, detail=census.trouble, href="/dead-letters")


def _state(component: str, parts: Iterable[ShownPart]) -> tuple[Tone, str, str]:
    """Tone, state and detail of a source or sink: those of its worker in the worst condition."""
    found = worst(part for part in parts if re.fullmatch(re.escape(component) + "(/[0-9]+)?", part.name))
    if found is None:
        return Tone.IDLE, "elsewhere", "it runs apart from this bridge"
    return found.tone, found.state, found.detail


def anchor(name: str) -> str:
    """The id of a component or route within a page; any name becomes one that fits into a URL."""
    return "part-" + re.sub(r"[^A-Za-z0-9_-]", lambda match: f"_{ord(match[0]):x}", name)


@dataclass(frozen=True, slots=True)
class NodeBox:
    """A node with its position and size in the picture."""

    node: FlowNode
    title: str
    """The node's title, cut to fit into the box."""
    x: int
    y: int
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Line:
    """A flow between two nodes, as a curve."""

    path: str
    tone: Tone
    width: float


@dataclass(frozen=True, slots=True)
class Picture:
    """The complete picture; lengths are in its own units."""

    width: int
    height: int
    is_wide: bool
    """Whether the picture has so many columns that it is scrolled, rather than shrunk."""
    heads: tuple[tuple[str, int], ...]
    """Headings of the columns, with their x coordinates."""
    boxes: tuple[NodeBox, ...]
    lines: tuple[Line, ...]
    more: tuple[tuple[str, int, int], ...]
    """Notes on nodes left out of a column, with their coordinates."""


def draw(columns: Sequence[tuple[str, Sequence[FlowNode]]], edges: Iterable[Edge]) -> Picture:
    """Computes the picture of nodes in columns, each with a heading, and of the flows between them."""
    width = max(_WIDTH, len(columns) * (_BOX + _LEAST_WAY) - _LEAST_WAY)
    kept = [(head, _kept(nodes), len(nodes)) for head, nodes in columns]
    rows = max(len(nodes) + (total > len(nodes)) for _, nodes, total in kept)
    inner = max(rows, 1) * (_HEIGHT + _GAP) - _GAP
    step = (width - _BOX) / max(len(columns) - 1, _COLUMNS - 1)
    boxes: dict[str, NodeBox] = {}
    more = []
    for number, (_, nodes, total) in enumerate(kept):
        x = round(number * step)
        count = len(nodes) + (total > len(nodes))
        y = _TOP + (inner - (count * (_HEIGHT + _GAP) - _GAP)) // 2
        for node in nodes:
            boxes[node.key] = NodeBox(node, _cut(node.title), x, y, _BOX, _HEIGHT)
            y += _HEIGHT + _GAP
        if total > len(nodes):
            more.append((f"and {total - len(nodes)} more", x + _BOX // 2, y + 24))
    lines = [
        Line(_curve(boxes[edge.start], boxes[edge.end]), edge.tone, _thickness(edge.rate))
        for edge in edges
        if edge.start in boxes and edge.end in boxes
    ]
    heads = tuple((head, round(number * step)) for number, (head, _, _) in enumerate(kept))
    # Lines with a flow are drawn over idle ones.
    lines.sort(key=lambda line: (line.tone is not Tone.IDLE, line.width))
    return Picture(width, _TOP + inner + 6, width > _WIDTH, heads, tuple(boxes.values()), tuple(lines), tuple(more))


def _kept(nodes: Sequence[FlowNode]) -> Sequence[FlowNode]:
    if len(nodes) <= _MOST:
        return nodes
    order = (Tone.BAD, Tone.WARN, Tone.GOOD, Tone.IDLE)
    first = sorted(nodes, key=lambda node: (order.index(node.tone), -(node.rate or 0.0)))[:_MOST]
    return [node for node in nodes if node in first]


def _curve(start: NodeBox, end: NodeBox) -> str:
    x1, y1 = start.x + start.width, start.y + start.height // 2
    x2, y2 = end.x, end.y + end.height // 2
    bend = (x2 - x1) // 2
    return f"M{x1} {y1}C{x1 + bend} {y1} {x2 - bend} {y2} {x2} {y2}"


def _thickness(rate: float | None) -> float:
    """The width of a line; ten times the rate makes it 1.2 units wider."""
    return 1.5 if not rate else round(min(2.0 + 1.2 * math.log10(1 + rate), 8.0), 1)


def _cut(title: str) -> str:
    return title if len(title) <= _LETTERS else f"{title[: _LETTERS - 1]}…"
