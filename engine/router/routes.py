"""Which route took a row, and what belongs to that route."""

from __future__ import annotations

from collections.abc import Callable

from engine.topology.nodes import ByBranch
from routes.model import Config, Route

__all__ = ["ROUTES", "by_route"]

ROUTES = "routes"
"""Name of the split that hands each message to a route."""


def by_route(config: Config, value: Callable[[Route], str | None]) -> ByBranch:
    """A constant of each route; routes for which it is None have none."""
    values = ((route.name, value(route)) for route in config.routes)
    return ByBranch(ROUTES, {name: text for name, text in values if text is not None})
