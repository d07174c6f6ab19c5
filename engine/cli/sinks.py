"""Text of the part of a topology behind the router: its routes, and where sinks send messages."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from routes.model import Config, SinkConfig

__all__ = ["as_mermaid", "as_text", "records"]


def as_text(config: Config) -> str:
    """Each sink with its topic and what its routes send it, below a topology in the form of Kafka Streams."""
    lines = ["Sinks:"]
    for sink in config.sinks:
        lines.append(f"   Sink: {sink.name} (topic: {sink.topic}, broker: {config.url(sink)})")
        lines += [f"    {name} --> {destination}" for name, destination in _ways(config, sink)]
    return "\n".join(lines) + "\n" if config.sinks else ""


def as_mermaid(config: Config, flowchart: str) -> str:
    """The flowchart with the destinations of sinks behind their topics."""
    lines = [flowchart.rstrip("\n")]
    ids = {found[2]: found[1] for found in re.finditer(r'^  (t[0-9]+)\[\("(.*)"\)\]$', flowchart, re.MULTILINE)}
    for sink in config.sinks:
        for name, destination in _ways(config, sink):
            place = f"s{len(lines)}"
            lines += [f'  {ids[sink.topic]} -- "{_quoted(name)}" --> {place}[/"{_quoted(destination)}"/]']
    return "\n".join(lines) + "\n"


def records(config: Config) -> list[dict[str, Any]]:
    """A JSON object for each sink, in the form of `engine.streams.describe.records`."""
    return [
        {
            "kind": "sink connector",
            "name": sink.name,
            "topics": [sink.topic],
            "broker": config.url(sink),
            "routes": dict(_ways(config, sink)),
        }
        for sink in config.sinks
    ]


def _ways(config: Config, sink: SinkConfig) -> Iterator[tuple[str, str]]:
    """Name and destination of each route to a sink."""
    for route in config.routes:
        if route.target.sink == sink.name:
            yield route.name, f"{sink.name}: who asked" if route.added else str(route.target)


def _quoted(text: str) -> str:
    return text.replace("#", "#35;").replace('"', "#quot;")
