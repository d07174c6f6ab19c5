"""Destination addresses of messages as Columns over a row: constant, or filled in from headers.

A message fails softly if a header of its address is missing, or if its sink's system does not allow the address.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F

from engine.router.routes import ROUTES, by_route
from engine.streams.nodes import ByBranch
from engine.streams.row import Row
from routes.model import Config, Route
from routes.targets import Reference, Template

__all__ = ["address", "has_templates", "is_unresolved", "to_sink", "topics"]


def has_templates(config: Config) -> bool:
    """True if the address of any route depends on the message."""
    return any(_templated(config))


def topics(config: Config) -> ByBranch | Callable[[Row], Column]:
    """The Kafka topic that each message is published to: a constant of each route, or a function to a Column."""
    constants = by_route(config, lambda route: route.target.topic)
    chosen = [found for found in _templated(config) if found[1].target.sink is None]
    return (lambda row: _chosen(row, chosen, row.pick(constants))) if chosen else constants


def to_sink(row: Row, config: Config) -> Column:
    """True if the route that took the message gives it to a sink."""
    return row.pick(by_route(config, lambda route: route.target.sink)).isNotNull()


def address(row: Row, config: Config) -> Column:
    """The message's address; NULL if it is a constant Kafka topic, or if a header of it is missing."""
    constants = by_route(config, lambda route: str(route.target.address) if route.target.sink else None)
    return _chosen(row, _templated(config), row.pick(constants))


def is_unresolved(row: Row, config: Config) -> Column:
    """True if the address lacks a header, is not allowed by the sink's system, or names no topic of its template."""
    types = {sink.name: sink.type for sink in config.sinks}
    unresolved = F.lit(False)
    for index, route, template in _templated(config):
        filled = _filled(row, template)
        if route.target.sink is None:
            valid = filled.isin(*route.target.topics)
        else:
            valid = filled.rlike(f"\\A(?:{types[route.target.sink].addresses.allowed})\\z")
        unresolved = F.when(row.branch(ROUTES) == index, ~F.coalesce(valid, F.lit(False))).otherwise(unresolved)
    return unresolved


def _templated(config: Config) -> list[tuple[int, Route, Template]]:
    """The routes whose address depends on the message, each with its index among all routes and its template."""
    found = ((index, route, route.target.address) for index, route in enumerate(config.routes))
    return [(index, route, template) for index, route, template in found if template.references]


def _chosen(row: Row, templated: Sequence[tuple[int, Route, Template]], constant: Column) -> Column:
    for index, _, template in templated:
        constant = F.when(row.branch(ROUTES) == index, _filled(row, template)).otherwise(constant)
    return constant


def _filled(row: Row, template: Template) -> Column:
    # From the headers as read: the address does not depend on the style of the headers that are published.
    parts = (
        F.nullif(row.source_property(part.name), F.lit("")) if isinstance(part, Reference) else F.lit(part)
        for part in template.parts
    )
    return F.concat(*parts)
