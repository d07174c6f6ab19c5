"""A source and a sink of the bridge beside folders, without Kafka."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from engine.connectors.base import Delivery, Outcome, Outgoing
from engine.connectors.dropbox.settings import DropboxSinkConfig, DropboxSourceConfig
from engine.connectors.dropbox.sink import DropboxSink
from engine.connectors.dropbox.source import DropboxSource
from engine.connectors.endpoint import SystemEndpoint
from engine.message import Message
from routes.config import loads
from tests.dropboxes import Dropboxes

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["Bridge", "numbered", "taken"]

_CONFIGURATION = """\
bridge.id={bridge}
source.src.type=dropbox
source.src.root=spool
sink.out.type=dropbox
sink.out.root=spool
routes.r.in.include=TRUE
routes.r.out.topic=t
"""


class Bridge:
    """Makes sources and sinks that are connected, and closes them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.boxes = Dropboxes(folder / "spool")
        self._made: list[DropboxSource | DropboxSink] = []

    def source(self, destinations: str = "queue:q", *, bridge: str = "b1", **settings: str) -> DropboxSource:
        """`_` in names of settings is `-`."""
        lines = {"destinations": destinations, "scan-interval": "50ms"}
        lines |= {name.replace("_", "-"): value for name, value in settings.items()}
        text = "".join(f"source.src.{name}={value}\n" for name, value in lines.items() if name != "max-message-bytes")
        if "max-message-bytes" in lines:
            text += f"journal.max-message-bytes={lines['max-message-bytes']}\n"
        config = loads(_CONFIGURATION.format(bridge=bridge) + text, self.folder)
        (source,) = config.sources
        assert isinstance(source, DropboxSourceConfig)
        made = DropboxSource(SystemEndpoint.of(config, source), 1)
        self._made.append(made)
        made.connect()
        return made

    def sink(self, *, bridge: str = "b1") -> DropboxSink:
        config = loads(_CONFIGURATION.format(bridge=bridge) + "source.src.destinations=queue:q\n", self.folder)
        (sink,) = config.sinks
        assert isinstance(sink, DropboxSinkConfig)
        made = DropboxSink(SystemEndpoint.of(config, sink), 1)
        self._made.append(made)
        made.connect()
        return made

    def close(self) -> None:
        for each in self._made:
            each.close()


def taken(source: DropboxSource, count: int | None = None, seconds: float = 10) -> list[Delivery]:
    """So many deliveries, which have to come in time; all that wait if it is not said how many."""
    found: list[Delivery] = []
    deadline = time.monotonic() + seconds
    while count is None or len(found) < count:
        assert time.monotonic() < deadline, f"{len(found)} of {count} within {seconds} s"
        delivery = source.receive(0.15)
        if delivery is not None:
            found.append(delivery)
        elif count is None:
            break
    return found


def numbered(count: int, address: str = "queue/q", begin: int = 0) -> list[Outgoing]:
    """Messages whose bodies are numbers, as a sink gets them."""
    return [
        Outgoing(n, Message(str(n).encode()), address, f"b1/journal:0:{n}", None, 1_700_000_000_000)
        for n in range(begin, begin + count)
    ]


def outcomes(sink: DropboxSink, messages: Sequence[Outgoing]) -> list[Outcome]:
    """What becomes of messages."""
    sink.send(messages)
    return list(sink.outcomes(0))
