"""The pages of the bridge itself, made from memory: the overview, the routes in their order, and the settings."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

from engine.errors import UsageError
from engine.page.flow import flow, route_tone
from engine.page.picture import anchor, draw
from engine.page.render import render
from engine.page.route_choice import RouteChoice
from engine.page.sight import Sight
from engine.page.view import Tone
from engine.telemetry.metrics import (
    FAILED,
    JOURNALED,
    LAG_RECORDS,
    LAG_SECONDS,
    LATENCY_AVERAGE,
    NO_ROUTE,
    ROUTED,
    UNMATCHED,
    UNMATCHED_BY_ADDRESS,
    UNROUTED,
)
from engine.telemetry.peers import UNREACHABLE
from engine.telemetry.report import AddressCount
from engine.telemetry.roles import UserRole, role_of
from engine.telemetry.status import State
from engine.topologies.graph import read_graph
from engine.topologies.section import TopologiesConfig
from routes.config.show import rows
from routes.sections import HELD

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from starlette.requests import Request
    from starlette.responses import Response

    from engine.page.view import View
    from engine.telemetry.report import Traffic

__all__ = ["overview", "routes", "settings"]

_PAUSED = str(State.PAUSED)
_SPARK_WIDTH = 120
_SPARK_HEIGHT = 28


def overview(view: View) -> Callable[[Request], Response]:
    """Makes the handler of the page."""

    def page(request: Request) -> Response:
        config, drawn = view.config(), flow(view)
        return render(
            request,
            view,
            "overview.html",
            flow=drawn,
            picture=draw(drawn.columns, drawn.edges),
            summary=_summary(view),
            parts=_parts(view),
            can_change=view.control is not None and role_of(request) >= UserRole.OPERATOR,
            has_peers=view.peers is not None,
            numbers=_numbers(view),
            census=view.census(),
            unmatched=AddressCount.of(view.samples.traffic.by(UNMATCHED_BY_ADDRESS, "address")),
            readers=_readers(config.section(TopologiesConfig), config.embedded.data, config.journal.topic),
        )

    return page


def _summary(view: View) -> tuple[Tone, str]:
    """The condition of the bridge, in a sentence."""
    waiting = [part for part in view.parts() if part.tone not in (Tone.GOOD, Tone.IDLE)]
    local = [part for part in waiting if not part.host]
    if view.standing and not view.standing.leads:
        if view.standing.has_leader:
            return Tone.IDLE, "This bridge stands by"
        if view.standing.why_not:
            return Tone.BAD, "No bridge is known to lead"
    census = view.census()
    if census and not census.reachable and not local:
        return Tone.BAD, "The dead-letter topic cannot be reached"
    held = [f"route {route.name}" for route in view.config().routes if route.paused]
    if not waiting and not held:
        return Tone.GOOD, "All parts are ready"
    # A host that does not answer is named once, and not by its parts.
    hosts = list(dict.fromkeys(part.host for part in waiting if part.state == UNREACHABLE))
    late = [part for part in waiting if part.host not in hosts]
    names, paused = (
        [
            f"{part.name} at {part.host}" if part.host else part.name
            for part in late
            if (part.state == _PAUSED) is wanted
        ]
        for wanted in (False, True)
    )
    said = [f"{_listed(hosts)} unreachable"] if hosts else []
    said += [f"{_listed(names)} not ready"] if names else []
    said += [f"{_listed(paused)} paused"] if paused else []
    said += [f"{_listed(held)} paused"] if held else []
    down = any(part.tone is Tone.BAD for part in waiting)
    return Tone.BAD if down else Tone.WARN, "; ".join(said)


def _listed(names: Sequence[str]) -> str:
    """The first names, and the verb for all."""
    return ", ".join(names[:3]) + (" … are" if len(names) > 3 else " are" if len(names) > 1 else " is")


def _numbers(view: View) -> dict[str, Any]:
    traffic, history = view.samples.traffic, view.samples.history
    return {
        "in": traffic.rate(JOURNALED),
        "routed": traffic.rate(ROUTED),
        "failed": traffic.total(FAILED),
        "lag": traffic.total(LAG_RECORDS),
        "lag_seconds": traffic.total(LAG_SECONDS),
        "latency": traffic.total(LATENCY_AVERAGE),
        "in_spark": _spark([each[0] for each in history]),
        "routed_spark": _spark([each[1] for each in history]),
    }


def _parts(view: View) -> list[dict[str, Any]]:
    """The parts with the links to them; those that do not work stand first."""
    shown: dict[str, dict[str, Any]] = {}
    separable = view.control.separable() if view.control else ()
    for part in view.parts():
        # The picture links to the first of those that run on several hosts.
        name = part.name if part.name not in shown else f"{part.name} at {part.host}"
        change = "" if part.host or part.name not in separable else "resume" if part.state == _PAUSED else "pause"
        shown[name] = {"part": part, "anchor": anchor(name), "change": change}
    return sorted(shown.values(), key=lambda each: each["part"].tone is not Tone.BAD)


def _spark(values: Sequence[float]) -> str:
    """The points of a small chart, for SVG's `points`; empty if all values are 0 or there are fewer than two."""
    if len(values) < 2 or not max(values):
        return ""
    step = _SPARK_WIDTH / (len(values) - 1)
    top = max(values)
    return " ".join(
        f"{number * step:.1f},{_SPARK_HEIGHT - 2 - value / top * (_SPARK_HEIGHT - 4):.1f}"
        for number, value in enumerate(values)
    )


def routes(view: View) -> Callable[[Request], Response]:
    """Makes the handler of the page; `?filter=` and `?sort=` choose rows, see `RouteChoice`."""

    def page(request: Request) -> Response:
        config, sight = view.config(), Sight(request, view)
        counts = view.samples.traffic.by(UNROUTED, "reason")
        unrouted = {reason: count for reason, count in counts.items() if count and reason != HELD}
        readers = _readers(config.section(TopologiesConfig), config.embedded.data, config.journal.topic)
        choice, fault = RouteChoice(), ""
        try:
            choice = RouteChoice.of(request.query_params)
        except UsageError as error:
            fault = str(error)
        every = _routes(view, sight)
        return render(
            request,
            view,
            "routes.html",
            status=400 if fault else 200,
            fault=fault,
            choice=choice,
            routes=choice.rows(every),
            total=len(every),
            # What a topology reads from the journal has a taker, although no route is it.
            left=unrouted.pop(UNMATCHED, 0) if readers else 0,
            readers=readers,
            unrouted=unrouted,
            nowhere=_last_error(view, sight, NO_ROUTE),
            unmatched=config.routing.on_unmatched,
        )

    return page


def _readers(topologies: TopologiesConfig, data: Path, topic: str) -> list[str]:
    """Names of the topologies that read a topic, as far as they have run on this machine."""
    graphs = {topology.name: read_graph(data, topology.name) for topology in topologies}
    return [name for name, graph in graphs.items() if graph is not None and topic in graph.read]


def _routes(view: View, sight: Sight) -> list[dict[str, Any]]:
    traffic = view.samples.traffic
    counts, rates = traffic.by(ROUTED, "route"), traffic.rates(ROUTED, "route")
    failures = _failures(traffic)
    can_change = view.control is not None and view.control.separable()
    rows = []
    for number, route in enumerate(view.config().routes, start=1):
        tone, state = route_tone(view, route.name)
        rows.append(
            {
                "number": number,
                "route": route,
                "anchor": anchor(route.name),
                "tone": tone,
                "state": state,
                "routed": counts.get(route.name),
                "rate": rates.get(route.name),
                "failures": failures.get(route.name, {}),
                "error": _last_error(view, sight, route.name),
                "change": "" if route.added or not can_change else "resume" if route.paused else "pause",
            }
        )
    return rows


def _failures(traffic: Traffic) -> dict[str, dict[str, float]]:
    """The number of failed messages, by route and reason."""
    found: dict[str, dict[str, float]] = {}
    for labels, value in traffic.series(FAILED):
        if value:
            reasons = found.setdefault(labels["route"], {})
            reasons[labels["reason"]] = reasons.get(labels["reason"], 0.0) + value
    return found


def _last_error(view: View, sight: Sight, route: str) -> dict[str, Any] | None:
    """The last failure in a route: its newest dead letter, or else the time at which its failures last grew."""
    census, seen = view.census(), view.samples.failed_at.get(route)
    latest = census.latest.get(route) if census else None
    # A message that was held while its route was paused does not count as a failure.
    if latest is not None and latest.reason != HELD:
        partition, _, offset = latest.place.partition(":")
        href = f"/dead-letters/letter/{partition}/{offset}"
        detail = "" if sight.is_masked else latest.detail
        return {"time_ms": latest.time_ms, "reason": latest.reason, "detail": detail, "href": href}
    return None if seen is None else {"time_ms": seen * 1000, "reason": "", "detail": "", "href": ""}


def settings(view: View) -> Callable[[Request], Response]:
    """Makes the handler of the page; `?all=1` also shows settings left at their defaults."""

    def page(request: Request) -> Response:
        everything = request.query_params.get("all") == "1"
        snapshot = view.snapshot()
        # Without the environment, values are shown as written and references stay references.
        all_rows = rows(snapshot.settings({}))
        selected = [row for row in all_rows if everything or row.origin != "default"]
        sections = [(name, list(group)) for name, group in groupby(selected, lambda row: row.key.partition(".")[0])]
        return render(
            request,
            view,
            "settings.html",
            sections=sections,
            everything=everything,
            defaults=sum(row.origin == "default" for row in all_rows),
            file=str(snapshot.path),
            hash=snapshot.hash,
            reload=view.reload().get("reload", {}),
        )

    return page
