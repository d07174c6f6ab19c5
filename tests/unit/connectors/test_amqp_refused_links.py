"""A sink over AMQP at a broker that ends the session at a link or message that it refuses, as RabbitMQ does."""

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
    from collections.abc import Collection, Sequence

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

    def __init__(self, poisons: Collection[int] = (), poison: str = "") -> None:
        self.poisons = poisons
        self.poison = Condition(poison, "no such user")
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
            if number in self.poisons:
                self.ended = self.poison
                raise NotConnectedError(f"the broker says: {self.ended}")
            self.sink._record_outcome(number)
        return bool(asked or under_way)

    def close(self, links: object = ()) -> None:
        """Does nothing."""


def run(session: Session, addresses: Sequence[str]) -> tuple[list[str], dict[int, tuple[str, str]]]:
    """Sends a message to each address, as the loop of a sink does; returns where they came, and what was refused."""
    sink = connector(CONFIG.sinks[0].type).make_sink(SystemEndpoint.of(CONFIG, CONFIG.sinks[0]), 1)
    assert isinstance(sink, AmqpSink)
    session.sink = sink
    sink._session = cast("AmqpSession", session)
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
    return delivered, refused


@pytest.mark.parametrize("bad", [["bad1"], ["bad1", "bad2", "bad3"]])
def test_a_link_at_which_the_broker_ends_the_session_is_the_refusal_of_its_messages_alone(bad: list[str]) -> None:
    session = Session()
    delivered, refused = run(session, [*bad, "good1", "good2", *bad, "good1"])
    assert session.connections <= 2 + len(bad)
    assert sorted(delivered) == ["good1", "good1", "good2"]
    assert sorted(address for address, _ in refused.values()) == sorted(bad * 2)
    (why,) = {why.replace(address, "ADDRESS") for address, why in refused.values()}
    assert why == "the broker says: no such exchange (amqp:not-found); may the bridge send to queue:ADDRESS?"


@pytest.mark.parametrize(("condition", "tries"), [("amqp:unauthorized-access", 1), ("amqp:internal-error", 3)])
@pytest.mark.parametrize("poisons", [{0}, {7}, {2, 3, 9}])
def test_a_message_at_which_the_broker_ends_the_session_is_the_only_one_refused(
    condition: str, tries: int, poisons: set[int]
) -> None:
    session = Session(poisons, condition)
    delivered, refused = run(session, [f"a{number}" for number in range(10)])
    assert delivered == [f"a{number}" for number in range(10) if number not in poisons]
    assert {number: why for number, (_, why) in refused.items()} == dict.fromkeys(
        poisons, f"the broker says: no such user ({condition})"
    )
    # Others than those that were in doubt go together again.
    assert session.connections <= 2 + tries * len(poisons) + len(poisons)


def test_a_session_that_ends_for_a_moment_costs_no_message() -> None:
    session = Session({5}, "amqp:resource-limit-exceeded")
    pump, ends = session.pump, 4

    def passing(timeout_seconds: float) -> bool:
        nonlocal ends
        try:
            return pump(timeout_seconds)
        except NotConnectedError:
            ends -= 1
            session.poisons = {5} if ends else ()
            raise

    session.pump = passing  # type: ignore[method-assign]
    delivered, refused = run(session, ["a"] * 10)
    assert (len(delivered), refused) == (10, {})
