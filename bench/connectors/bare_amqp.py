"""Bare loops for AMQP, with Qpid Proton."""

from __future__ import annotations

from typing import Any

from confluent_kafka import Producer
from proton import Message as AmqpMessage
from proton.handlers import MessagingHandler
from proton.reactor import Container

from bench.connectors.kafka_side import (
    BATCH,
    IDLE_SECONDS,
    KEY,
    PRODUCER,
    Given,
    body_of,
    consumer_of,
    headers_of,
    id_of,
)

__all__ = ["LOOPS"]


def amqp_source(given: Given) -> None:
    """Batches are produced, and accepted when Kafka has confirmed them."""
    Container(_AmqpSource(given)).run()


class _AmqpSource(MessagingHandler):
    def __init__(self, given: Given) -> None:
        super().__init__(prefetch=2 * BATCH, auto_accept=False)
        self._given = given
        self._failed: list[object] = []
        confirmed = {"on_delivery": lambda error, _: self._failed.append(error) if error else None}
        self._producer = Producer({**PRODUCER, "bootstrap.servers": given["bootstrap"], **confirmed})
        self._open: list[Any] = []

    def on_start(self, event: Any) -> None:
        event.container.create_receiver(event.container.connect(self._given["url"]), self._given["address"])
        event.container.schedule(IDLE_SECONDS, self)

    def on_message(self, event: Any) -> None:
        message = event.message
        headers: list[tuple[str, str | bytes | None]] = [
            (str(name), str(value)) for name, value in (message.properties or {}).items()
        ]
        body = message.body.encode() if isinstance(message.body, str) else bytes(message.body)
        self._producer.produce(self._given["topic"], body, message.correlation_id, headers=headers)
        self._open.append(event.delivery)
        if len(self._open) >= BATCH:
            self._settle()

    def on_timer_task(self, event: Any) -> None:
        self._settle()
        event.container.schedule(IDLE_SECONDS, self)

    def _settle(self) -> None:
        self._producer.flush()
        assert not self._failed, self._failed
        for delivery in self._open:
            self.accept(delivery)
        self._open = []


def amqp_sink(given: Given) -> None:
    """Batches are sent, and committed when all are accepted."""
    Container(_AmqpSink(given)).run()


class _AmqpSink(MessagingHandler):
    def __init__(self, given: Given) -> None:
        super().__init__()
        self._given = given
        self._consumer = consumer_of(given)
        self._missing = 0

    def on_start(self, event: Any) -> None:
        event.container.create_sender(event.container.connect(self._given["url"]), self._given["address"])

    def on_link_opened(self, event: Any) -> None:
        self._sender = event.link

    def on_sendable(self, event: Any) -> None:
        if not self._missing:
            self._send(event)

    def on_accepted(self, event: Any) -> None:
        self._missing -= 1
        if not self._missing:
            self._consumer.commit(asynchronous=True)
            self._send(event)

    def on_timer_task(self, event: Any) -> None:
        self._send(event)

    def _send(self, event: Any) -> None:
        messages = self._consumer.consume(BATCH, IDLE_SECONDS)
        self._missing = len(messages)
        for message in messages:
            headers = headers_of(message)
            properties = {**headers, "_AMQ_DUPL_ID": f"{self._given['group']}/{id_of(message)}"}
            body = body_of(message).decode()
            self._sender.send(AmqpMessage(body, durable=True, properties=properties, correlation_id=headers.get(KEY)))
        if not messages:
            event.container.schedule(0, self)


LOOPS = {each.__name__.replace("_", "-"): each for each in (amqp_source, amqp_sink)}
"""By name."""
