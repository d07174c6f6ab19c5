"""Existing Kafka topics for destinations whose names are filled in from headers."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from engine.topics.cluster import Cluster
from routes.targets import KAFKAS_OWN

if TYPE_CHECKING:
    from collections.abc import Collection

    from routes.model import Config, Route

__all__ = ["resolved"]


def resolved(config: Config, timeout_seconds: float = 30.0) -> Config:
    """The configuration with each template of a Kafka topic resolved to the existing topics that match it.

    A message for any other topic fails softly, because a send to a missing topic would end the query. The bridge's own
    topics and Kafka's internal ones are never destinations of a template.

    Raises:
        UnreachableError: no broker answers in time.
    """
    if all(route.target.topic for route in config.routes):
        return config
    own = config.own_topics
    there = {
        topic
        for topic in Cluster(config, timeout_seconds).names()
        if topic not in own and not topic.startswith(KAFKAS_OWN)
    }
    return replace(config, routes=tuple(_resolved(route, there) for route in config.routes))


def _resolved(route: Route, there: Collection[str]) -> Route:
    if route.target.topic:
        return route
    pattern = re.compile(route.target.address.pattern)
    found = tuple(sorted(topic for topic in there if pattern.fullmatch(topic)))
    return replace(route, target=replace(route.target, topics=found))
