"""Constants of the route that took a row."""

from __future__ import annotations

from collections.abc import Callable

from engine.streams.nodes import ByBranch
from routes.model import Config, Route

__all__ = ["ROUTES", "by_route"]

ROUTES = "routes"
"""Name of the split that gives each message to a route."""


def by_route(config: Config, value: Callable[[Route], str | None]) -> ByBranch:
    """A constant for each route, looked up by the route that took the row; NULL for routes whose `value` is None."""
    values = ((route.name, value(route)) for route in config.routes)
    return ByBranch(ROUTES, {name: text for name, text in values if text is not None})
