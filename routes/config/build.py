"""Builds the frozen values of `routes.model` from settings without a fault."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from routes.keys.addresses import KAFKA
from routes.model import (
    Config,
    Policy,
    RepliesConfig,
    Route,
    SinkConfig,
    SourceConfig,
    Target,
)
from routes.predicate import parse
from routes.section_registry import registered_sections
from routes.targets import REPLY_SINK, REPLY_TO, Reference, Template, reply_route

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from routes.keys.addresses import Destination
    from routes.keys.settings import Settings

__all__ = ["build"]


def build(settings: Settings, path: Path, text: str = "") -> Config:
    """Returns the configuration of a file with that text. To be called only when lint found no error."""
    sinks = tuple(_sink(settings, name) for name in settings.names("sink"))
    parts = settings.made(Config)
    kinds = (section.settings for section in registered_sections().values())
    values_of_routes = [settings.made(Route, "routes.NAME.", name) for name in settings.names("routes")]
    own = tuple(_route(values, sinks) for values in values_of_routes)
    replies = any(sink.reply_to for sink in sinks)
    return Config(
        **parts,
        path=path,
        # Replies are taken back to their requesters before any route of the file gets them.
        routes=(*(_reply_route(parts["replies"], sink) for sink in sinks if replies), *own),
        sources=tuple(_source(settings, name) for name in settings.names("source")),
        sinks=sinks,
        sections={kind: kind(**settings.made(kind)) for kind in kinds if kind},
        secret_variables=settings.secret_variables(),
        text=text,
    )


def _route(values: Mapping[str, Any], sinks: Sequence[SinkConfig]) -> Route:
    """Returns the route that has these values, whose targets are destinations."""
    targets = tuple(_target(destination, sinks) for destination in values["targets"])
    return Route(**{**values, "targets": targets})


def _reply_route(replies: RepliesConfig, sink: SinkConfig) -> Route:
    """Returns the route that takes replies to the requesters on the broker of this sink."""
    return Route(
        name=reply_route(sink.name),
        include=parse(f"{REPLY_SINK} = '{sink.name}'"),
        targets=(_sink_target(Template((Reference(REPLY_TO),)), sink),),
        on_soft_failure=Policy(replies.on_soft_failure),
        conversion=replies.conversion,
        added=True,
    )


def _target(destination: Destination, sinks: Sequence[SinkConfig]) -> Target:
    if destination.scheme == KAFKA:
        constant = () if destination.address.references else (str(destination.address),)
        return Target(destination.address, constant)
    by_name = [sink for sink in sinks if sink.name == destination.scheme]
    sink = (by_name or [sink for sink in sinks if sink.type.name == destination.scheme])[0]
    return _sink_target(destination.address, sink)


def _sink_target(address: Template, sink: SinkConfig) -> Target:
    return Target(address, (sink.topic,), sink.name, sink.type.any_body)


def _source(settings: Settings, name: str) -> SourceConfig:
    source = settings.get("source.NAME.type", name).source
    made: SourceConfig = source(name=name, **settings.made(source, "source.NAME.", name))
    return made


def _sink(settings: Settings, name: str) -> SinkConfig:
    sink = settings.get("sink.NAME.type", name).sink
    made: SinkConfig = sink(name=name, **settings.made(sink, "sink.NAME.", name))
    return made
