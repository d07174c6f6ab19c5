"""Depth of the queues of a STOMP source, by the management of ActiveMQ Artemis."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from engine.connectors.artemis_queues import (
    ALLOWED,
    ANSWER_SECONDS,
    MANAGEMENT,
    SUCCEEDED,
    asked_queues,
    count_of,
    question,
)
from engine.connectors.base import NotConnectedError
from engine.connectors.depth import NotSaidError
from engine.connectors.stomp.session import BROKER_SAYS, StompSession

if TYPE_CHECKING:
    from engine.connectors.endpoint import SystemEndpoint
    from engine.connectors.stomp.frames import StompFrame
    from engine.connectors.stomp.settings import StompSourceConfig

__all__ = ["StompDepth"]

_ANSWER_BYTES = 64 * 1024


class StompDepth:
    """Connection that asks the broker how many messages wait in each queue."""

    def __init__(self, endpoint: SystemEndpoint[StompSourceConfig]) -> None:
        """Reads TLS files; does not connect. SetupError if a TLS file is missing or invalid."""
        self._source = source = endpoint.settings
        self._client_id = source.client_id or f"{endpoint.bridge_id}.{source.name}"
        self._replies = ""
        self._session = StompSession(source, f"source '{source.name}'", endpoint.url, None, _ANSWER_BYTES)
        self._queues: list[str] = []
        self._is_open = False

    def ask(self) -> int:
        """See `Depth`."""
        if not self._is_open:
            self._open()
        return sum(map(self._count, self._queues))

    def close(self) -> None:
        """See `Depth`."""
        self._is_open = False
        self._session.close()

    def _open(self) -> None:
        self._session.open()
        self._queues = asked_queues(self._source, self._session.product, self._client_id)
        # The broker makes this queue, and removes it when nobody is subscribed any more. Each connection has one of its
        # own, as the broker may be about to remove the last one's.
        self._replies = f"jms-bridge.waiting.{self._client_id}.{uuid.uuid4().hex[:8]}"
        headers = {"receipt": "subscribed", "subscription-type": "ANYCAST"}
        self._session.connection.subscribe(self._replies, "1", ack="auto", headers=headers)
        self._session.expect("RECEIPT", "subscribed", seconds=ANSWER_SECONDS)
        self._is_open = True

    def _count(self, queue: str) -> int:
        number = uuid.uuid4().hex
        headers = {**question(queue), "reply-to": self._replies, "correlation-id": number}
        self._session.connection.send(MANAGEMENT, "[]", headers=headers)
        while True:
            answer = self._answer()
            # Others are late answers to earlier questions.
            if answer.headers.get("correlation-id") == number:
                succeeded = answer.headers.get(SUCCEEDED) == "true"
                return count_of(answer.body.decode("utf-8", "replace"), queue, succeeded=succeeded)

    def _answer(self) -> StompFrame:
        try:
            return self._session.expect("MESSAGE", seconds=ANSWER_SECONDS)
        except NotConnectedError as error:
            if str(error).startswith(BROKER_SAYS):
                raise NotSaidError(f"{error}; {ALLOWED}") from error
            raise
