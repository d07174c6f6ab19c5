"""Senders who try to have Artemis destroy a queue through the bridge: by a template, a reply address or a token."""

from __future__ import annotations

import time
from threading import Event
from typing import TYPE_CHECKING, Any

import pytest
import stomp

from engine.delivery.replies import ReturnAddress
from tests.integration.bridge_process import Bridge, configuration, wait

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

MANAGEMENT = "activemq.management"
ORDER = {"_AMQ_ResourceName": "broker", "_AMQ_OperationName": "destroyQueue"}
MORE = """
routing.create-topics=true
sink.stomp.type=stomp
sink.amqp.type=amqp
sink.amqp.reply-to=queue:bridge.replies
routes.orders.in.include=way = 'nowhere'
routes.stomp.in.include=way = 'stomp'
routes.stomp.out.topic=stomp:queue/${msg.header.to}
routes.amqp.in.include=way = 'amqp'
routes.amqp.out.topic=amqp:queue/${msg.header.to}
routes.request.in.include=way = 'request'
routes.request.out.topic=amqp:queue/service
routes.properties.in.include=way = 'properties'
routes.properties.out.topic=stomp:queue/plain
"""


class Client:
    """A STOMP client at the bridge's Artemis."""

    def __init__(self, bridge: Bridge) -> None:
        self._port = int(bridge.settings["embedded.stomp.port"])

    def send(self, queue: str, body: str, **headers: str) -> None:
        connection = stomp.Connection12([("127.0.0.1", self._port)], auto_content_length=False)
        connection.connect(wait=True)
        connection.send(queue, body, headers={"destination-type": "ANYCAST", **headers})
        connection.disconnect(receipt="done")

    def first(self, queue: str, seconds: float) -> tuple[str, Mapping[str, str]] | None:
        """The first message of a queue, which is acknowledged; None if none comes in time."""
        found: list[Any] = []
        come = Event()

        class Listener(stomp.ConnectionListener):  # type: ignore[misc] # stomp.py has no types
            def on_message(self, frame: Any) -> None:
                found.append(frame)
                come.set()

        connection = stomp.Connection12([("127.0.0.1", self._port)], auto_content_length=False)
        connection.set_listener("", Listener())
        connection.connect(wait=True)
        connection.subscribe(queue, "1", headers={"subscription-type": "ANYCAST"})
        come.wait(seconds)
        connection.disconnect(receipt="done")
        return (found[0].body, found[0].headers) if found else None


@pytest.mark.timeout(900)
def test_nobody_destroys_a_queue_through_the_bridge(tmp_path: Path) -> None:
    bridge = Bridge(configuration(tmp_path, MORE))
    try:
        bridge.start()
        bridge.wait_ready(300)
        client = Client(bridge)

        client.send("control", "kept?")
        client.send(MANAGEMENT, '["control"]', **ORDER)
        assert client.first("control", 3) is None, "what the test sends does destroy a queue"

        client.send("victim", "kept")
        order = '["victim"]'
        for way in ("stomp", "amqp"):
            for to in (MANAGEMENT, f"jms.queue.{MANAGEMENT}", f"x,queue://{MANAGEMENT}"):
                client.send("orders", order, way=way, to=to, **ORDER)
        failed = "jmsbridge_failed_messages_total"
        wait(lambda: bridge.metric(failed, reason="destination-unresolved") == 6, lambda: bridge.output, 300)

        client.send("orders", order, **{"way": "request", "reply-to": MANAGEMENT}, **ORDER)
        found = client.first("service", 60)
        assert found is not None
        assert "reply-to" not in found[1]
        assert not ORDER.keys() & found[1].keys()

        deadline = round(time.time() * 1000) + 60_000
        token = ReturnAddress("stomp", f"queue:{MANAGEMENT}", None, deadline).encode()
        client.send("bridge.replies", order, **{"correlation-id": token}, **ORDER)
        client.send("orders", "after", way="properties", _AMQ_LVQ_NAME="x", kept="yes")
        found = client.first("plain", 60)
        assert found is not None
        assert found[1]["kept"] == "yes"
        assert "_AMQ_LVQ_NAME" not in found[1]
        journaled = "jmsbridge_source_journaled_messages_total"
        wait(lambda: bridge.metric(journaled, source="amqp.replies") == 1, lambda: bridge.output)
        wait(lambda: bridge.metric("jmsbridge_journal_lag_records") == 0, lambda: bridge.output)
        assert bridge.metric("jmsbridge_sink_replies_total") == 0
        time.sleep(2)

        found = client.first("victim", 10)
        assert found is not None
        assert found[0] == "kept"
        assert bridge.interrupt() == 0
    finally:
        bridge.end()
