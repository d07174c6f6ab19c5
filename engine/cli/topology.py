"""`jms-bridge topology`: what will run, as text or as a picture."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engine.cli.options import DEFAULT_CONFIG, ConfigFile, Json, command, load
from engine.errors import UsageError
from engine.printable import json_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from routes.model import Config, SinkConfig

__all__ = ["topology"]


@command("jms-bridge topology", "jms-bridge topology --mermaid > topology.mmd", "jms-bridge topology --json")
def topology(
    config: ConfigFile = DEFAULT_CONFIG,
    as_mermaid: Annotated[bool, typer.Option("--mermaid", help="Print a Mermaid flowchart instead of text.")] = False,
    json_output: Json = False,
) -> None:
    """Show the router's topology: from the journal through the routes to topics and sinks. Needs no server.

    The text has the form of Kafka Streams' describe(), followed by the destinations of each sink.
    """
    from engine import router
    from engine.streams.describe import records

    if as_mermaid and json_output:
        msg = "--json and --mermaid do not go together"
        raise UsageError(msg)

    settings = load(config)
    built = router.topology(settings)
    if json_output:
        for node in [*records(built.nodes), *_sinks_json(settings)]:
            typer.echo(json_text(node))
        return
    shown = _sinks_mermaid(settings, built.mermaid()) if as_mermaid else built.describe() + _sinks_text(settings)
    typer.echo(shown, nl=False)


def _sinks_text(config: Config) -> str:
    """Each sink with its topic and what its routes send it, below a topology in the form of Kafka Streams."""
    lines = ["Sinks:"]
    for sink in config.sinks:
        lines.append(f"   Sink: {sink.name} (topic: {sink.topic}, broker: {config.url(sink)})")
        lines += [f"    {name} --> {destination}" for name, destination in _ways(config, sink)]
    return "\n".join(lines) + "\n" if config.sinks else ""


def _sinks_mermaid(config: Config, flowchart: str) -> str:
    """The flowchart with the destinations of sinks behind their topics."""
    lines = [flowchart.rstrip("\n")]
    ids = {found[2]: found[1] for found in re.finditer(r'^  (t[0-9]+)\[\("(.*)"\)\]$', flowchart, re.MULTILINE)}
    for sink in config.sinks:
        for name, destination in _ways(config, sink):
            place = f"s{len(lines)}"
            lines += [f'  {ids[sink.topic]} -- "{_quoted(name)}" --> {place}[/"{_quoted(destination)}"/]']
    return "\n".join(lines) + "\n"


def _sinks_json(config: Config) -> list[dict[str, Any]]:
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
