"""Where `send` and `receive` go: `kafka:TOPIC`, or `queue:NAME` and `topic:NAME` at the broker of a source."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from engine.errors import UsageError
from routes.model import SourceConfig

if TYPE_CHECKING:
    from routes.model import Config

__all__ = ["KAFKA", "Broker", "Username", "broker_of", "split"]

KAFKA = "kafka"
_SCHEMES = (KAFKA, "queue", "topic")
_STOMP = "stomp"
_PASSWORD = "JMS_BRIDGE_PASSWORD"  # noqa: S105 - the name of a variable

Broker = Annotated[
    str | None,
    typer.Option(
        "--url", metavar="URL", help="A STOMP broker, as stomp://127.0.0.1:61613, instead of the configured source's."
    ),
]
Username = Annotated[
    str | None, typer.Option(help=f"User at that broker; the password is taken from {_PASSWORD}.", metavar="NAME")
]


def split(destination: str) -> tuple[str, str]:
    """Scheme and name of a destination; UsageError if it has no known scheme."""
    scheme, found, name = destination.partition(":")
    if not found or not name or scheme not in _SCHEMES:
        msg = f"{destination!r} is no destination: expected kafka:TOPIC, queue:NAME or topic:NAME"
        raise UsageError(msg)
    return scheme, name


def broker_of(config: Config, destination: str, url: str | None, username: str | None) -> SourceConfig:
    """How to reach the broker of a queue or topic: `url`, else the source that reads it, else the first source."""
    if url is not None:
        if not re.fullmatch(r"stomp(\+ssl)?://[^\s/@]+:[0-9]{1,5}/?", url):
            msg = f"--url {url}: expected stomp://HOST:PORT or stomp+ssl://HOST:PORT"
            raise UsageError(msg)
        password = os.environ.get(_PASSWORD)
        return SourceConfig("command line", _STOMP, url, (destination,), username=username, password=password)
    sources = [source for source in config.sources if source.type == _STOMP]
    if not sources:
        msg = f"{config.path}: no STOMP source is configured; name a broker with --url stomp://HOST:PORT"
        raise UsageError(msg)
    source = next((source for source in sources if destination in source.destinations), sources[0])
    return replace(source, url=source.url or f"stomp://127.0.0.1:{config.embedded.stomp_port}")
