"""A source and a sink of type `jms` with the same client, without Kafka."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from engine.connectors.base import Outgoing
from engine.connectors.endpoint import SystemEndpoint
from engine.connectors.system import connector
from routes import config as configuration
from tests.waiting import patience

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.connectors.base import Delivery
    from engine.connectors.jms_client.sink import JmsClientSink
    from engine.connectors.jms_client.source import JmsClientSource
    from engine.message import Message
    from routes.model import Config

__all__ = ["Ends", "child", "ends_of"]


class Ends:
    """A source and a sink of one configuration."""

    def __init__(self, config: Config) -> None:
        source, sink = config.sources[0], config.sinks[0]
        self.source: JmsClientSource = connector(source.type).make_source(SystemEndpoint.of(config, source), 1)  # type: ignore[assignment]
        self.sink: JmsClientSink = connector(sink.type).make_sink(SystemEndpoint.of(config, sink), 1)  # type: ignore[assignment]

    def send(self, address: str, *messages: Message, reply_to: str | None = None) -> dict[int, str | None]:
        """Sends messages; the refusals by their numbers from 0."""
        given = [Outgoing(n, message, address, f"{time.time()}/{n}", reply_to) for n, message in enumerate(messages)]
        self.sink.send(given)
        found: dict[int, str | None] = {}
        deadline = time.monotonic() + patience(60)
        while len(found) < len(messages) and time.monotonic() < deadline:
            found |= {outcome.number: outcome.refusal for outcome in self.sink.outcomes(1)}
        return found

    def receive(self, count: int) -> list[Message]:
        """So many messages, acknowledged."""
        found = self.deliveries(count)
        self.source.acknowledge([each.token for each in found])
        return [each.message for each in found]

    def deliveries(self, count: int, seconds: float = 30) -> list[Delivery]:
        """So many messages, not acknowledged."""
        found: list[Delivery] = []
        deadline = time.monotonic() + patience(seconds)
        while len(found) < count and time.monotonic() < deadline:
            if (delivery := self.source.receive(0.5)) is not None:
                found.append(delivery)
        assert [each.fault for each in found] == [None] * count
        return found

    def close(self) -> None:
        self.source.close()
        self.sink.close()


def ends_of(
    folder: Path, given: Mapping[str, str], destination: str, more: Mapping[str, str] | None = None, **source: str
) -> Ends:
    """A source and a sink of these keys, which begin with a dot.

    `more` are whole keys, `source` further ones of the source.
    """
    lines = {
        "bridge.id": "b1",
        "kafka.bootstrap.servers": "127.0.0.1:1",
        "journal.topic": "j",
        "routes.all.in.include": "TRUE",
        "routes.all.out.topic": "out",
        "embedded.data": str(folder),
        "source.src.destinations": destination,
        **{f"{section}{key}": value for section in ("source.src", "sink.out") for key, value in given.items()},
        **(more or {}),
        **{f"source.src.{key.replace('_', '-')}": value for key, value in source.items()},
    }
    file = folder / "b.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in lines.items()), encoding="utf-8")
    return Ends(configuration.load(file))


def child(worker: int | None = None) -> int:
    """The process id of the client of a process, which is this one if no other is named."""
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == (worker or os.getpid()) and b"jmsbridge.jms.Main" in (folder / "cmdline").read_bytes():
                return int(folder.name)
    raise AssertionError("no client")
