"""Senders who try to have Artemis destroy a queue through the bridge: by a template, a reply address or a token."""

from __future__ import annotations

import time
from threading import Event
from typing import TYPE_CHECKING, Any

import stomp

from engine.delivery.replies import ReturnAddress
from tests.integration.bridge_process import wait

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.integration.bridge_process import Bridge

MANAGEMENT = "activemq.management"
ORDER = {"_AMQ_ResourceName": "broker", "_AMQ_OperationName": "destroyQueue"}


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


def test_nobody_destroys_a_queue_through_the_bridge(bridge: Bridge) -> None:
    failed = ("jmsbridge_failed_messages_total", {"reason": "destination-unresolved"})
    journaled = ("jmsbridge_source_journaled_messages_total", {"source": "amqp.replies"})
    before = {name: bridge.metric(name, **labels) for name, labels in (failed, journaled)}
    client = Client(bridge)

    client.send("control", "kept?")
    client.send(MANAGEMENT, '["control"]', **ORDER)
    assert client.first("control", 3) is None, "what the test sends does destroy a queue"

    client.send("victim", "kept")
    order = '["victim"]'
    for way in ("stomp", "amqp"):
        for to in (MANAGEMENT, f"jms.queue.{MANAGEMENT}", f"x,queue://{MANAGEMENT}"):
            client.send("managed", order, way=way, to=to, **ORDER)
    wait(lambda: bridge.metric(failed[0], **failed[1]) == before[failed[0]] + 6, lambda: bridge.output, 300)

    client.send("managed", order, **{"way": "request", "reply-to": MANAGEMENT}, **ORDER)
    found = client.first("managed.service", 60)
    assert found is not None
    assert "reply-to" not in found[1]
    assert not ORDER.keys() & found[1].keys()

    # Those of tests before are counted up by now.
    replies = bridge.metric("jmsbridge_sink_replies_total")
    deadline = round(time.time() * 1000) + 60_000
    token = ReturnAddress("jms", f"queue:{MANAGEMENT}", None, deadline).encode()
    client.send("amqp.replies", order, **{"correlation-id": token}, **ORDER)
    client.send("managed", "after", way="properties", _AMQ_LVQ_NAME="x", kept="yes")
    found = client.first("plain", 60)
    assert found is not None
    assert found[1]["kept"] == "yes"
    assert "_AMQ_LVQ_NAME" not in found[1]
    wait(lambda: bridge.metric(journaled[0], **journaled[1]) == before[journaled[0]] + 1, lambda: bridge.output)
    wait(lambda: bridge.metric("jmsbridge_journal_lag_records") == 0, lambda: bridge.output)
    assert bridge.metric("jmsbridge_sink_replies_total") == replies
    time.sleep(2)

    found = client.first("victim", 10)
    assert found is not None
    assert found[0] == "kept"
