"""The Kafka side of `send`: an ordinary producer."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from engine.cli.output import progress
from engine.errors import HardFailureError
from engine.kafka.clients import KafkaClients
from engine.kafka.errors import MISSING, PASSING, refusal, unanswered, unavailable
from engine.kafka.types import KafkaException

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.kafka.types import KafkaError, KafkaMessage, Producer
    from engine.message import Record
    from routes.kafka_access import KafkaAccess

__all__ = ["send"]

_SECONDS = 15.0
_PAUSE_SECONDS = 0.2


def send(access: KafkaAccess, topic: str, record: Record, count: int) -> str:
    """Publish the record `count` times and wait for all of them; position of the last, `topic:partition:offset`.

    Raises:
        HardFailureError: Kafka refuses (no such topic, not authorised, too large).
        UnreachableError: Kafka does not answer.
    """
    errors: list[KafkaError] = []
    last: list[str] = [""]
    queued = confirmed = 0

    def delivered(error: KafkaError | None, message: KafkaMessage) -> None:
        nonlocal confirmed
        if error is not None:
            errors.append(error)
            return
        confirmed += 1
        last[0] = f"{message.topic()}:{message.partition()}:{message.offset()}"

    client = KafkaClients(access).producer({"delivery.timeout.ms": int(_SECONDS * 1000)})
    try:
        # librdkafka waits for an unknown topic as if the network were down; so ask for it first.
        if (unknown := _trouble(access, client, topic)) is not None:
            raise _translated(access, topic, unknown)
        for _ in range(count):
            while not _queued(client, topic, record, delivered):
                client.poll(1.0)
            queued += 1
            client.poll(0)
            if errors:
                break
        left = client.flush(_SECONDS)
    except KafkaException as error:
        raise _translated(access, topic, error.args[0]) from error
    if errors or left:
        so_far = progress(confirmed, queued, count)
        if not errors:
            raise unavailable(access.servers, f"it has not confirmed all messages{so_far}")
        found = _translated(access, topic, errors[0])
        raise type(found)(f"{found}{so_far}")
    return last[0]


def _trouble(access: KafkaAccess, client: Producer, topic: str) -> KafkaError | None:
    """The broker's error about the topic; None if it can be written. An error that may pass is waited for."""
    until = time.monotonic() + _SECONDS
    passing = PASSING | MISSING if access.is_embedded else PASSING
    while True:
        error: KafkaError | None = client.list_topics(topic, timeout=_SECONDS).topics[topic].error
        if error is None or error.code() not in passing or time.monotonic() > until:
            return error
        time.sleep(_PAUSE_SECONDS)


def _queued(
    client: Producer, topic: str, record: Record, delivered: Callable[[KafkaError | None, KafkaMessage], None]
) -> bool:
    try:
        client.produce(topic, key=record.key, value=record.value, headers=list(record.headers), on_delivery=delivered)
    except BufferError:
        return False
    return True


def _translated(access: KafkaAccess, topic: str, error: KafkaError) -> Exception:
    servers = access.servers
    if error.code() in PASSING:
        return unanswered(servers, error)
    what = f"the message to '{topic}'"
    known = None if error.code() in MISSING else refusal(error, servers, what, "WRITE")
    return known or HardFailureError(f"Kafka at {servers} refuses {what}: {error.str()}")
