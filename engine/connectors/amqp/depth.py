"""Depth of the queues of an AMQP source, by the management of ActiveMQ Artemis."""

from __future__ import annotations

import time
import uuid
from typing import TYPE_CHECKING, Any

from engine.connectors.amqp.codec.sections import VALUE, Properties, Sections, decode, encode_sections
from engine.connectors.amqp.codec.values import AmqpError, AmqpMap
from engine.connectors.amqp.links import IncomingTransfer, Receiver, Sender
from engine.connectors.amqp.performatives import DeliveryState, Terminus, condition_of, field, outcome_of
from engine.connectors.amqp.session import AmqpSession
from engine.connectors.artemis_queues import (
    ALLOWED,
    ANSWER_SECONDS,
    MANAGEMENT,
    SUCCEEDED,
    asked_queues,
    count_of,
    question,
)
from engine.connectors.depth import NotSaidError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.connectors.amqp.settings import AmqpSourceConfig
    from engine.connectors.endpoint import SystemEndpoint

__all__ = ["AmqpDepth"]

_ANSWER_BYTES = 64 * 1024
_WINDOW = 10


class AmqpDepth:
    """Connection that asks the broker how many messages wait in each queue."""

    def __init__(self, endpoint: SystemEndpoint[AmqpSourceConfig]) -> None:
        """Reads TLS files; does not connect. SetupError if a TLS file is missing or invalid."""
        self._source = source = endpoint.settings
        self._client_id = source.client_id or f"{endpoint.bridge_id}.{source.name}"
        container = f"{self._client_id}.waiting"
        self._session = AmqpSession(source, f"source '{source.name}'", endpoint.url, container)
        self._session.on_disposition = self._settled
        self._requests = Sender(self._session, "requests", Terminus(MANAGEMENT, "queue"))
        self._refusal = ""
        self._answers: list[Sections] = []
        self._replies = self._receiver()
        self._queues: list[str] = []
        self._asked = 0
        self._is_open = False

    def ask(self) -> int:
        """See `Depth`."""
        if not self._is_open:
            self._open()
        return sum(map(self._count, self._queues))

    def close(self) -> None:
        """See `Depth`."""
        self._is_open = False
        self._session.close([self._requests, self._replies])

    def _open(self) -> None:
        self._session.open()
        self._queues = asked_queues(self._source, self._session.product, self._client_id)
        self._requests = Sender(self._session, "requests", Terminus(MANAGEMENT, "queue"))
        self._replies = self._receiver()
        self._answers.clear()
        for link in (self._requests, self._replies):
            self._session.attach(link)
            self._session.await_attached(link)
        self._is_open = True

    def _receiver(self) -> Receiver:
        terminus = Terminus("", "queue", is_dynamic=True)
        return Receiver(
            self._session,
            "answers",
            terminus,
            self._take,
            window=_WINDOW,
            max_bytes=_ANSWER_BYTES,
            kept_bytes=_ANSWER_BYTES,
        )

    def _settled(self, fields: Sequence[Any]) -> None:
        """Handles a disposition of the broker: it refuses the question, for example of a login without permission."""
        state, details = outcome_of(field(fields, 4))
        if state == DeliveryState.REJECTED:
            self._refusal = str(condition_of(field(details, 0)) or "it takes no question")

    def _take(self, incoming: IncomingTransfer) -> None:
        incoming.receiver.taken()
        try:
            self._answers.append(decode(incoming.encoded))
        except AmqpError as error:
            raise self._session.fail(f"the broker's answer is not a message: {error}") from error

    def _count(self, queue: str) -> int:
        number = uuid.uuid4().hex
        properties = Properties(message_id=number, correlation_id=number, reply_to=self._replies.address)
        asked = Sections(
            properties=properties,
            application_properties=AmqpMap(list(question(queue).items())),
            body=VALUE,
            content="[]",
        )
        self._asked, self._refusal = self._asked + 1, ""
        self._requests.add(self._asked, encode_sections(asked), 0)
        deadline = time.monotonic() + ANSWER_SECONDS
        while True:
            if frames := self._requests.frames({}):
                self._session.write(b"".join(frames))
            for answer in self._answers:
                if answer.properties is not None and answer.properties.correlation_id == number:
                    self._answers.clear()
                    succeeded = dict(answer.application_properties or ()).get(SUCCEEDED) is True
                    return count_of(str(answer.content), queue, succeeded=succeeded)
            if self._refusal:
                raise NotSaidError(f"the broker says: {self._refusal}; {ALLOWED}")
            if (left := deadline - time.monotonic()) <= 0:
                raise self._session.fail(f"the broker has not answered for {ANSWER_SECONDS:.0f} s")
            self._session.pump(left)
            if fault := self._requests.fault or self._replies.fault:
                raise self._session.fail(f"the broker says: {fault}; {ALLOWED}")
