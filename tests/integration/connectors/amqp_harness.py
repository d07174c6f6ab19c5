"""Artemis over AMQP for the conformance suites: Qpid JMS on the other side, and counts by its management."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from engine.message import BodyType
from tests.integration.connectors.sinks import Arrived
from tests.integration.connectors.stomp_harness import StompHarness

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.embedded import EmbeddedArtemis
    from engine.message import Message
    from tests.integration.connectors.amqp_jms import QpidClient
    from tests.integration.connectors.harness import Outgoing


class AmqpHarness:
    """An Artemis of the embedded kind."""

    settable = frozenset({"JMSCorrelationID", "JMSType", "JMSPriority", "JMSReplyTo", "JMSXGroupID"})
    odd: Mapping[str, str] = {"empty": "", "lines": "a\nb\r\nc\\d\r", "nul": "a\0b", "é名": "ümlaut ☃", "$_": "x"}
    delivery_mode = "PERSISTENT"
    kind = "queue"
    largest_bytes = 512 * 1024 * 1024
    most_properties = 300
    unreachable = "Connection refused"

    def __init__(self, artemis: EmbeddedArtemis, client: QpidClient) -> None:
        self._stomp = StompHarness(artemis)
        self._client = client
        self._url = artemis.amqp_url
        self.create, self.waiting = self._stomp.create, self._stomp.waiting
        self.kill, self.start = self._stomp.kill, self._stomp.start

    @property
    def port(self) -> int:
        return urlsplit(self._url).port or 0

    def settings(self, queue: str, port: int | None = None) -> Mapping[str, str]:
        return {
            ".type": "amqp",
            ".url": f"amqp://127.0.0.1:{port or self.port}",
            ".destinations": f"queue:{queue}",
            ".heartbeat": "1s",
        }

    def send(self, queue: str, messages: Sequence[Outgoing]) -> None:
        self._client.send(f"queue:{queue}", [self._form(message) for message in messages])

    @staticmethod
    def _form(message: Outgoing) -> Mapping[str, str]:
        body = message.body.decode() if message.text else base64.b64encode(message.body).decode()
        properties = {f"property {name}": f"string:{value}" for name, value in message.properties.items()}
        fields = {name: f"queue:{value}" if name == "JMSReplyTo" else value for name, value in message.fields.items()}
        return {"type": "text" if message.text else "bytes", "body": body, **fields, **properties}


class AmqpSinkHarness:
    """Queues of an Artemis."""

    def __init__(self, artemis: EmbeddedArtemis, client: QpidClient) -> None:
        self._own = AmqpHarness(artemis, client)
        self._client = client
        self.create, self.kill, self.start = self._own.create, self._own.kill, self._own.start

    @property
    def port(self) -> int:
        return self._own.port

    def settings(self, port: int | None = None) -> Mapping[str, str]:
        return {".type": "amqp", ".url": f"amqp://127.0.0.1:{port or self.port}", ".heartbeat": "1s"}

    def address(self, name: str) -> str:
        return f"queue/{name}"

    def refused(self, message: Message) -> tuple[str, Message]:
        # A number is not a map.
        return "queue/any", replace(message, body_type=BodyType.MAP)

    def arrived(self, name: str, count: int) -> list[Arrived]:
        found: list[Arrived] = []
        while message := self._client.receive(f"queue:{name}", 60 if len(found) < count else 0.3):
            body = message.get("body", "")
            content = body.encode() if message["type"] == "text" else base64.b64decode(body)
            names = {key: value for key, value in message.items() if key.startswith("JMS")}
            properties = {
                key.removeprefix("property "): value.partition(":")[2]
                for key, value in message.items()
                if key.startswith("property ")
            }
            found.append(Arrived(content, names | properties))
        return found
