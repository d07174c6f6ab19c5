"""A sink over AMQP at a broker that ends the session at a link that it refuses, as RabbitMQ does."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, cast

import pytest

from engine.connectors.amqp.performatives import Condition
from engine.connectors.amqp.sink import AmqpSink
from engine.connectors.amqp.traits import SPECIFIED
from engine.connectors.base import NotConnectedError, Outgoing
from engine.connectors.endpoint import SystemEndpoint
from engine.connectors.system import connector
from engine.message import Message
from routes.config import loads

if TYPE_CHECKING:
    from engine.connectors.amqp.links import Sender
    from engine.connectors.amqp.session import AmqpSession

CONFIG = loads("""
bridge.id=b
routes.a.in.include=TRUE
routes.a.out.topic=o:queue/a
sink.o.type=amqp
sink.o.url=amqp://h:1
source.s.type=stomp
source.s.destinations=queue:a
""")


class Session:
    """A session with a broker that ends it at each link to an address that begins with `bad`."""

    channel, max_frame_bytes, remote_window = 0, 1 << 16, 1000
    traits, endpoint, server = SPECIFIED, "amqp://h:1", ""
    renew_at = math.inf
    lacks: dict[Any, str] = {}  # noqa: RUF012 - as of a real session

    def __init__(self) -> None:
        self.ended: Condition | None = None
        self.connections = 0
        self._asked: list[Sender] = []
        self._delivery = 0
        self.sink: AmqpSink | None = None

    def open(self) -> None:
        self.connections += 1
        self.ended = None
        self._asked.clear()

    def attach(self, link: Sender) -> None:
        self._asked.append(link)

    def next_delivery(self) -> int:
        self._delivery += 1
        return self._delivery

    def sent_transfer(self) -> None:
        """Does nothing: the window is large."""

    def write(self, frames: bytes) -> None:
        """Does nothing: `pump` settles what is under way."""

    def pump(self, timeout_seconds: float) -> bool:
        assert self.sink is not None
        asked, self._asked[:] = list(self._asked), []
        for link in asked:
            if link.terminus.address.startswith("bad"):
                self.ended = Condition("amqp:not-found", "no such exchange")
                raise NotConnectedError(f"the broker says: {self.ended}")
            link.attached, link._credit = True, 1000
        under_way = list(self.sink._deliveries.values())
        self.sink._deliveries.clear()
        for number in under_way:
            self.sink._record_outcome(number)
        return bool(asked or under_way)

    def close(self, links: object = ()) -> None:
        """Does nothing."""


@pytest.mark.parametrize("bad", [["bad1"], ["bad1", "bad2", "bad3"]])
def test_a_link_at_which_the_broker_ends_the_session_is_the_refusal_of_its_messages_alone(bad: list[str]) -> None:
    sink = connector(CONFIG.sinks[0].type).make_sink(SystemEndpoint.of(CONFIG, CONFIG.sinks[0]), 1)
    assert isinstance(sink, AmqpSink)
    session = Session()
    session.sink = sink
    sink._session = cast("AmqpSession", session)
    addresses = [*bad, "good1", "good2", *bad, "good1"]
    left = {
        number: Outgoing(number, Message(b"x"), f"queue/{address}", str(number))
        for number, address in enumerate(addresses)
    }
    refused, delivered = {}, []
    while left and session.connections < 50:
        sink.connect()
        try:
            sink.send(list(left.values()))
            while left:
                for outcome in sink.outcomes(0):
                    address = left.pop(outcome.number).address.removeprefix("queue/")
                    if outcome.refusal is None:
                        delivered.append(address)
                    else:
                        refused[outcome.number] = (address, outcome.refusal)
        except NotConnectedError:
            continue

    assert not left
    assert session.connections <= 2 + len(bad)
    assert sorted(delivered) == ["good1", "good1", "good2"]
    assert sorted(address for address, _ in refused.values()) == sorted(bad * 2)
    (why,) = {why.replace(address, "ADDRESS") for address, why in refused.values()}
    assert why == "the broker says: no such exchange (amqp:not-found); may the bridge send to queue:ADDRESS?"
