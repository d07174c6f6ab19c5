"""Dead letters for tests, as the router writes them."""

from __future__ import annotations

from engine.dead_letters.letter import DeadLetter
from engine.kafka.reader import LocatedRecord, Position
from engine.message import BodyType, Message, Record
from routes.properties import JmsType, Property

__all__ = ["letter"]

TIME = "2026-11-21T06:00:00.123Z"


def letter(
    *more: tuple[str, bytes | None], reason: str = "key-not-found", route: str = "orders", time: str = TIME
) -> DeadLetter:
    """One with a region and an amount; headers in `more` come last."""
    fields = {"JMSMessageID": "ID:1", "JMSDestination": "queue:orders", "JMSCorrelationID": "42", "JMSType": "order"}
    properties = {"region": Property("emea"), "amount": Property("5", JmsType.INT)}
    record = Message(b"body", BodyType.TEXT, fields, properties, "s", ("other",)).to_record()
    own = [
        ("jmsbridge.origin", b"b1"),
        ("jmsbridge.position", b"journal:0:7"),
        ("jmsbridge.reason", reason.encode()),
        ("jmsbridge.route", route.encode()),
        ("jmsbridge.time", time.encode()),
        ("__connect.errors.exception.message", b"why"),
    ]
    headers = (*record.headers, *own, *more)
    return DeadLetter(LocatedRecord(Position("dead", 0, 17), 1_000, Record(record.key, record.value, headers)))
