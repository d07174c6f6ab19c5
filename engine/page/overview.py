"""The pages of the bridge itself, made from memory: the overview, the routes in their order, and the settings."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

from engine.page.flow import anchor, draw, flow, route_tone
from engine.page.render import render
from engine.page.view import Tone
from engine.telemetry.metrics import (
    FAILED,
    JOURNALED,
    LAG_RECORDS,
    LAG_SECONDS,
    LATENCY_AVERAGE,
    NO_ROUTE,
    RESTARTS,
    ROUTED,
    UNROUTED,
)
from engine.telemetry.status import State
from routes.config.show import rows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from engine.page.view import View
    from engine.telemetry.report import MetricSample

__all__ = ["overview", "routes", "settings"]

_SPARK_WIDTH = 120
_SPARK_HEIGHT = 28


def overview(view: View) -> Callable[[Request], Response]:
    """Makes the handler of the page."""

    def page(request: Request) -> Response:
        shown = flow(view)
        return render(
            request,
            view,
            "overview.html",
            flow=shown,
            picture=draw(shown.columns, shown.edges),
            summary=_summary(view),
            parts=_parts(view),
            numbers=_numbers(view),
            census=view.census(),
        )

    return page


def _summary(view: View) -> tuple[Tone, str]:
    """The condition of the bridge, in a sentence."""
    waiting = [status for status in view.board.all() if status.state is not State.READY]
    if view.standing and not view.standing.leads:
        if view.standing.has_leader:
            return Tone.IDLE, "This bridge stands by"
        if view.standing.why_not:
            return Tone.BAD, "No bridge is known to lead"
    census = view.census()
    if census and not census.reachable and not waiting:
        return Tone.BAD, "The dead-letter topic cannot be reached"
    if not waiting:
        return Tone.GOOD, "All parts are ready"
    names = ", ".join(status.component for status in waiting[:3]) + (" …" if len(waiting) > 3 else "")
    down = any(status.state is State.DOWN for status in waiting)
    verb = "is" if len(waiting) == 1 else "are"
    return Tone.BAD if down else Tone.WARN, f"{names} {verb} not ready"


def _numbers(view: View) -> dict[str, Any]:
    traffic, history = view.samples.traffic, view.samples.history
    return {
        "in": traffic.rate(JOURNALED),
        "routed": traffic.rate(ROUTED),
        "failed": traffic.now.total(FAILED),
        "lag": traffic.now.total(LAG_RECORDS),
        "lag_seconds": traffic.now.total(LAG_SECONDS),
        "latency": traffic.now.total(LATENCY_AVERAGE),
        "in_spark": _spark([each[0] for each in history]),
        "routed_spark": _spark([each[1] for each in history]),
    }


def _parts(view: View) -> list[dict[str, Any]]:
    restarts = view.samples.traffic.now.by(RESTARTS, "component")
    return [
        {
            "name": status.component,
            "anchor": anchor(status.component),
            "tone": tone,
            "state": state,
            "detail": status.error or status.detail,
            "restarts": restarts.get(status.component, 0.0),
        }
        for status in view.board.all()
        for tone, state in [view.state_of(status)]
    ]


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
    """Makes the handler of the page."""

    def page(request: Request) -> Response:
        reading = view.samples.traffic.now
        return render(
            request,
            view,
            "routes.html",
            routes=_routes(view),
            unrouted={reason: count for reason, count in reading.by(UNROUTED, "reason").items() if count},
            nowhere=_last_error(view, NO_ROUTE),
            unmatched=view.config().routing.on_unmatched,
        )

    return page


def _routes(view: View) -> list[dict[str, Any]]:
    traffic = view.samples.traffic
    counts, rates = traffic.now.by(ROUTED, "route"), traffic.rates(ROUTED, "route")
    failures = _failures(traffic.now)
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
                "error": _last_error(view, route.name),
            }
        )
    return rows


def _failures(reading: MetricSample) -> dict[str, dict[str, float]]:
    """The number of failed messages, by route and reason."""
    found: dict[str, dict[str, float]] = {}
    for labels, value in reading.values.get(FAILED.name, ()):
        if value:
            reasons = found.setdefault(labels["route"], {})
            reasons[labels["reason"]] = reasons.get(labels["reason"], 0.0) + value
    return found


def _last_error(view: View, route: str) -> dict[str, Any] | None:
    """The last failure in a route: its newest dead letter, or else the time at which its failures last grew."""
    census, seen = view.census(), view.samples.failed_at.get(route)
    latest = census.latest.get(route) if census else None
    if latest is not None:
        partition, _, offset = latest.place.partition(":")
        href = f"/dead-letters/letter/{partition}/{offset}"
        return {"time_ms": latest.time_ms, "reason": latest.reason, "detail": latest.detail, "href": href}
    return None if seen is None else {"time_ms": seen * 1000, "reason": "", "detail": "", "href": ""}


def settings(view: View) -> Callable[[Request], Response]:
    """Makes the handler of the page; `?all=1` also shows settings left at their defaults."""

    def page(request: Request) -> Response:
        everything = request.query_params.get("all") == "1"
        snapshot = view.snapshot()
        # Without the environment, values are shown as written and references stay references.
        found = rows(snapshot.settings({}))
        shown = [row for row in found if everything or row.origin != "default"]
        sections = [(name, list(group)) for name, group in groupby(shown, lambda row: row.key.partition(".")[0])]
        return render(
            request,
            view,
            "settings.html",
            sections=sections,
            everything=everything,
            defaults=sum(row.origin == "default" for row in found),
            file=str(snapshot.path),
            hash=snapshot.hash,
            reload=view.reload().get("reload", {}),
        )

    return page
