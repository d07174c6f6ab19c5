"""The page of routes, in the order in which they are tried: predicates, targets, counts and last failures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.page.flow import anchor, route_tone
from engine.page.render import render
from engine.telemetry.metrics import FAILED, NO_ROUTE, ROUTED, UNROUTED

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request
    from starlette.responses import Response

    from engine.page.view import View
    from engine.telemetry.report import MetricSample

__all__ = ["routes"]


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
        tone, told = route_tone(view, route.name)
        rows.append(
            {
                "number": number,
                "route": route,
                "anchor": anchor(route.name),
                "tone": tone,
                "told": told,
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
