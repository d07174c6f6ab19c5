"""The bridge's topology with its current figures: sources, journal, routes, destinations, topologies of users."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.page.picture import Edge, FlowNode, anchor
from engine.page.user_topologies import JOURNAL, UserTopologies
from engine.page.view import Tone, state_of, worst
from engine.telemetry.metrics import (
    DELIVERED,
    FAILED,
    JOURNALED,
    LAG_RECORDS,
    LAG_SECONDS,
    ROUTED,
    SINK_LAG,
    SOURCE_WAITING,
)
from engine.telemetry.status import State

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.page.view import ShownPart, View
    from engine.telemetry.report import Traffic
    from routes.model import Route, SinkConfig, SourceConfig, Target

__all__ = ["FlowGraph", "flow", "route_tone"]

ROUTER = "router"
DEAD_LETTERS = "dead letters"
FAILED_LATELY_SECONDS = 300.0
"""Seconds after a failure during which its route is shown as failing."""
_SLOW_SECONDS = 10.0
_STUCK_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class FlowGraph:
    """The topology with its figures, by columns of the picture."""

    sources: tuple[FlowNode, ...]
    journal: FlowNode
    routes: tuple[FlowNode, ...]
    destinations: tuple[FlowNode, ...]
    later: tuple[tuple[str, tuple[FlowNode, ...]], ...]
    """Columns of the topologies of users, and of the topics that these write, with their headings."""
    edges: tuple[Edge, ...]

    @property
    def columns(self) -> tuple[tuple[str, tuple[FlowNode, ...]], ...]:
        """The nodes of each column, with its heading."""
        return (
            ("Sources", self.sources),
            ("Journal", (self.journal,)),
            ("Routes", self.routes),
            ("Topics and sinks" if self.later else "Destinations", self.destinations),
            *self.later,
        )


def flow(view: View) -> FlowGraph:
    """The topology of the configuration in force, with its current figures."""
    config, traffic = view.config(), view.samples.traffic
    parts = view.parts()
    sources = _sources(config.sources, traffic, parts)
    journal = _journal(traffic, worst(part for part in parts if part.name == ROUTER))
    shown = _shown(config.routes, traffic)
    routes = _routes(shown, view, traffic)
    rates = {node.key: node.rate for node in routes}
    destinations = _destinations(config.sinks, shown, traffic, parts, rates)
    users = UserTopologies.of(config, traffic, parts)
    topics = {node.key for node in destinations}
    destinations = (*destinations, *users.read_elsewhere(topics), _dead_letters(config.letter_topic, view))
    edges = [Edge(node.key, JOURNAL, node.line_tone, node.rate) for node in sources]
    failed = traffic.rates(FAILED, "route")
    for route, node in zip(shown, routes, strict=True):
        edges.append(Edge(JOURNAL, node.key, node.line_tone, node.rate))
        places = dict.fromkeys(map(_destination, route.targets))
        edges += [Edge(node.key, place, node.line_tone, node.rate) for place in places]
        if rate := failed.get(route.name):
            edges.append(Edge(node.key, DEAD_LETTERS, Tone.WARN, rate))
    return FlowGraph(sources, journal, routes, destinations, users.columns(topics), (*edges, *users.edges()))


def route_tone(view: View, route: str) -> tuple[Tone, str]:
    """The condition of a route, as a tone and in a word."""
    if any(each.paused for each in view.config().routes if each.name == route):
        return Tone.WARN, "paused"
    failed_at = view.samples.failed_at.get(route)
    if failed_at is not None and time.time() - failed_at < FAILED_LATELY_SECONDS:
        return Tone.WARN, "failing"
    rate = view.samples.traffic.rates(ROUTED, "route").get(route)
    return (Tone.GOOD, "flowing") if rate else (Tone.IDLE, "idle")


def _sources(sources: Sequence[SourceConfig], traffic: Traffic, parts: Sequence[ShownPart]) -> tuple[FlowNode, ...]:
    rates, waiting = traffic.rates(JOURNALED, "source"), traffic.by(SOURCE_WAITING, "source")
    nodes = []
    for source in sources:
        tone, state, detail = state_of(f"source:{source.name}", parts)
        rate, lag = rates.get(source.name), waiting.get(source.name)
        key = f"source:{source.name}"
        nodes.append(FlowNode(key, source.name, tone, state, str(source.type), rate, lag, detail, f"#{anchor(key)}"))
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


def _shown(routes: Sequence[Route], traffic: Traffic) -> list[Route]:
    """The routes from the configuration file, and those added by the bridge through which messages flow."""
    rates = traffic.rates(ROUTED, "route")
    return [route for route in routes if not route.added or rates.get(route.name)]


def _routes(shown: Sequence[Route], view: View, traffic: Traffic) -> tuple[FlowNode, ...]:
    rates = traffic.rates(ROUTED, "route")
    failures = traffic.by(FAILED, "route")
    nodes = []
    for route in shown:
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
    sinks: Sequence[SinkConfig],
    shown: Sequence[Route],
    traffic: Traffic,
    parts: Sequence[ShownPart],
    rates: dict[str, float | None],
) -> tuple[FlowNode, ...]:
    delivered = traffic.rates(DELIVERED, "sink")
    waiting = traffic.by(SINK_LAG, "component")
    nodes: dict[str, FlowNode] = {}
    for target in (target for route in shown for target in route.targets):
        key = _destination(target)
        if target.sink is None and key not in nodes:
            sums = [rates.get(f"route:{each.name}") for each in shown if key in map(_destination, each.targets)]
            known = [rate for rate in sums if rate is not None]
            rate = sum(known) if known else None
            tone, state = (Tone.GOOD, "flowing") if rate else (Tone.IDLE, "idle")
            nodes[key] = FlowNode(key, str(target.address), tone, state, "Kafka topic", rate)
    for sink in sinks:
        key = f"sink:{sink.name}"
        tone, state, detail = state_of(key, parts)
        lags = [value for name, value in waiting.items() if name.partition("/")[0] == key]
        lag = sum(lags) if lags else None
        nodes[key] = FlowNode(
            key, sink.name, tone, state, str(sink.type), delivered.get(sink.name), lag, detail, f"#{anchor(key)}"
        )
    return tuple(nodes.values())


def _destination(target: Target) -> str:
    return f"sink:{target.sink}" if target.sink else f"topic:{target.address}"


def _dead_letters(topic: str, view: View) -> FlowNode:
    census = view.census()
    title = "Dead letters"
    if census is None:
        return FlowNode(DEAD_LETTERS, title, Tone.IDLE, "not known here", topic, href="/dead-letters")
    if not census.reachable:
        detail = census.trouble
        return FlowNode(DEAD_LETTERS, title, Tone.BAD, "out of reach", topic, detail=detail, href="/dead-letters")
    depth = census.depth
    state = "being counted" if depth is None else f"{depth:,} open" if depth else "none open"
    tone = Tone.WARN if depth else Tone.IDLE if depth is None else Tone.GOOD
    return FlowNode(DEAD_LETTERS, title, tone, state, topic, detail=census.trouble, href="/dead-letters")
