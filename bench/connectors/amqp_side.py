"""Queues of an Artemis, filled over AMQP by the links of the bridge itself: nothing else at hand is as fast."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from engine.connectors.amqp.links import Sender
from engine.connectors.amqp.performatives import DeliveryState, Terminus, field, outcome_of
from engine.connectors.amqp.session import AmqpSession
from engine.connectors.amqp.settings import AmqpSinkConfig
from engine.connectors.amqp.system import SYSTEM
from engine.connectors.amqp.transformer_settings import Transformers
from engine.connectors.amqp.transformers import outbound_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from engine.message import Message

__all__ = ["fill"]

_AHEAD = 4_000
_WAIT_SECONDS = 1.0


def fill(url: str, queue: str, messages: Iterable[Message]) -> None:
    """Returns when the broker has them all."""
    session = AmqpSession(AmqpSinkConfig(name="fill", type=SYSTEM, topic=""), "bench", url, f"fill-{uuid.uuid4().hex}")
    under_way: dict[int, int] = {}

    def settled(fields: Sequence[Any]) -> None:
        state, _ = outcome_of(field(fields, 4))
        assert state == DeliveryState.ACCEPTED, fields
        for delivery in range(fields[1], (field(fields, 2) or fields[1]) + 1):
            del under_way[delivery]

    session.on_disposition = settled
    session.open()
    link = Sender(session, "fill", Terminus(queue, "queue"))
    session.attach(link)
    session.await_attached(link)
    outbound = outbound_of(Transformers())
    for number, message in enumerate(messages):
        link.add(number, *outbound.encoded(message, f"queue/{queue}", None))
        while len(link.unsent) + len(under_way) > _AHEAD:
            _turn(session, link, under_way)
    while link.unsent or under_way:
        _turn(session, link, under_way)
    session.close([link])


def _turn(session: AmqpSession, link: Sender, under_way: dict[int, int]) -> None:
    if frames := link.frames(under_way):
        session.write(b"".join(frames))
    session.pump(_WAIT_SECONDS)
