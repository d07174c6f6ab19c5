"""The first page: the topology as a picture with rates, lag and colours, and the state of each component in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.page.flow import anchor, flow
from engine.page.picture import draw
from engine.page.render import render
from engine.page.view import Tone
from engine.telemetry.metrics import FAILED, JOURNALED, LAG_RECORDS, LAG_SECONDS, LATENCY_AVERAGE, RESTARTS, ROUTED
from engine.telemetry.status import State

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from engine.page.view import View

__all__ = ["overview"]

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
            picture=draw(shown),
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
            "state": told,
            "detail": status.error or status.detail,
            "restarts": restarts.get(status.component, 0.0),
        }
        for status in view.board.all()
        for tone, told in [view.state_of(status)]
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
