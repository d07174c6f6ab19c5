"""Where sinks send what routes give them: constant or filled in from headers, as Columns over a row.

A message whose address lacks a header, or that its sink's system could not be sent to, fails softly.
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F

from engine.router.routes import ROUTES, by_route
from engine.topology.row import Row
from routes.model import Config, Route
from routes.targets import ADDRESSES, Reference, Template

__all__ = ["address", "has_templates", "is_unresolved", "to_sink"]


def has_templates(config: Config) -> bool:
    """Whether any route's address depends on the message."""
    return any(_templated(config))


def to_sink(row: Row, config: Config) -> Column:
    """Whether the route that took the message gives it to a sink."""
    return row.pick(by_route(config, lambda route: route.target.sink)).isNotNull()


def address(row: Row, config: Config) -> Column:
    """Where the sink sends the message; NULL where that lacks a header, or without a sink."""
    constants = by_route(config, lambda route: str(route.target.address) if route.target.sink else None)
    return reduce(
        lambda rest, found: F.when(row.branch(ROUTES) == found[0], _filled(row, found[2])).otherwise(rest),
        _templated(config),
        row.pick(constants),
    )


def is_unresolved(row: Row, config: Config) -> Column:
    """Whether the address lacks a header, or is none that the sink's system could be sent to."""
    types = {sink.name: sink.type for sink in config.sinks}
    unresolved = F.lit(False)
    for index, route, template in _templated(config):
        assert route.target.sink is not None, "only a sink's address is a template"
        valid = _filled(row, template).rlike(f"\\A(?:{ADDRESSES[types[route.target.sink]].pattern})\\z")
        unresolved = F.when(row.branch(ROUTES) == index, ~F.coalesce(valid, F.lit(False))).otherwise(unresolved)
    return unresolved


def _templated(config: Config) -> list[tuple[int, Route, Template]]:
    """The routes whose address depends on the message, each with its place among all."""
    found = ((index, route, route.target.address) for index, route in enumerate(config.routes))
    return [(index, route, template) for index, route, template in found if template and template.references]


def _filled(row: Row, template: Template) -> Column:
    parts = (
        F.nullif(row.property(part.name), F.lit("")) if isinstance(part, Reference) else F.lit(part)
        for part in template.parts
    )
    return F.concat(*parts)
