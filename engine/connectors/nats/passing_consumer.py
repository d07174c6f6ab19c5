"""A consumer of JetStream that is there for one command and goes with it."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from nats.errors import NoRespondersError

from engine.connectors.base import NotConnectedError
from engine.connectors.nats.connection import Connection
from engine.connectors.nats.jetstream import ApiError, ask

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from engine.connectors.endpoint import SystemEndpoint
    from engine.connectors.nats.settings import NatsSourceConfig

__all__ = ["passing_consumer"]

_FORGOTTEN_SECONDS = 60
_NANOSECONDS = 1_000_000_000


@contextmanager
def passing_consumer(endpoint: SystemEndpoint[NatsSourceConfig]) -> Iterator[None]:
    """Makes the consumer that the source then finds under its name; it is removed behind the block.

    The server removes it by itself where the process is killed. The source reports failures here.
    """
    source = endpoint.settings
    consumer = {
        "durable_name": source.consumer,
        "deliver_policy": "all",
        "ack_policy": "explicit",
        "filter_subject": source.destinations[0],
        "inactive_threshold": _FORGOTTEN_SECONDS * _NANOSECONDS,
    }
    place = f"{source.stream}.{source.consumer}"
    _try(endpoint, f"CONSUMER.DURABLE.CREATE.{place}", {"stream_name": source.stream, "config": consumer})
    try:
        yield
    finally:
        _try(endpoint, f"CONSUMER.DELETE.{place}")


def _try(endpoint: SystemEndpoint[NatsSourceConfig], what: str, body: Mapping[str, Any] | None = None) -> None:
    connection = Connection(endpoint)
    try:
        with suppress(NotConnectedError, ApiError, NoRespondersError):
            connection.open()
            ask(connection, what, body)
    finally:
        connection.close()
