"""Sources and sinks at a real broker, without a bridge around them."""

from __future__ import annotations

import time
import uuid
from typing import TYPE_CHECKING

from engine.connectors.base import Outgoing
from engine.connectors.endpoint import SystemEndpoint
from engine.connectors.system import connector
from engine.delivery.deduplication.seen_messages import digest
from routes.config import loads

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.connectors.base import Delivery, Sink, Source
    from engine.message import Message
    from tests.brokers.broker import Broker, Protocol

__all__ = ["Connections", "received", "same"]


class Connections:
    """Sources and sinks of one broker, which are closed at the end of the test."""

    def __init__(self, broker: Broker, protocol: Protocol) -> None:
        """`protocol` is the one under test; a call may name another."""
        self.broker = broker
        self.protocol = protocol
        self._open: list[Source | Sink] = []

    def source(self, destinations: str, protocol: Protocol | None = None, **more: str) -> Source:
        """Opens a source; further keys are given with `_` in place of `-`."""
        keys = {**self.broker.settings(protocol or self.protocol), ".destinations": destinations}
        keys |= {f".{key.replace('_', '-')}": value for key, value in more.items()}
        lines = [f"source.s{key}={value}" for key, value in keys.items()]
        config = loads("\n".join(("bridge.id=b", "routes.a.in.include=TRUE", "routes.a.out.topic=o", *lines)))
        made = connector(config.sources[0].type).make_source(SystemEndpoint.of(config, config.sources[0]), 1)
        self._open.append(made)
        made.connect()
        return made

    def send(self, address: str, *messages: Message, protocol: Protocol | None = None) -> None:
        """Sends by a sink, and waits until the broker has all."""
        lines = [f"sink.o{key}={value}" for key, value in self.broker.settings(protocol or self.protocol).items()]
        own = ("bridge.id=b", "source.s.type=stomp", "source.s.destinations=queue:a")
        config = loads("\n".join((*own, "routes.a.in.include=TRUE", f"routes.a.out.topic=o:{address}", *lines)))
        sink = connector(config.sinks[0].type).make_sink(SystemEndpoint.of(config, config.sinks[0]), 1)
        self._open.append(sink)
        sink.connect()
        sink.send([Outgoing(number, each, address, uuid.uuid4().hex) for number, each in enumerate(messages, 1)])
        left, until = len(messages), time.monotonic() + 30
        while left and time.monotonic() < until:
            for outcome in sink.outcomes(1):
                assert outcome.refusal is None
                left -= 1
        assert not left

    def close(self) -> None:
        """Closes all."""
        for each in self._open:
            each.close()


def received(
    source: Source, count: int, seconds: float = 20, *, acknowledge: bool = True, alone: bool = False
) -> list[Delivery]:
    """Takes messages, and acknowledges them unless told otherwise; with `alone` no further one may come."""
    found: list[Delivery] = []
    until = time.monotonic() + seconds
    while len(found) < count and time.monotonic() < until:
        if (delivery := source.receive(0.5)) is not None:
            found.append(delivery)
    assert not alone or source.receive(0.5) is None
    if acknowledge:
        source.acknowledge([each.token for each in found])
    assert len(found) == count
    return found


def same(found: Sequence[Delivery]) -> list[bytes]:
    """Returns that of each message by which the bridge recognises it when it comes again."""
    return [digest(each.message.to_record()) for each in found]
