"""What peers do to single messages never stops a bridge, by the policies and topics that it has without a word of them.

Everything goes through one bridge, which has to be there, and ready, in the end.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tests.integration.bridge_process import wait, with_nats
from tests.integration.connectors.running import read
from tests.integration.connectors.stomp_jms import JmsClient

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nats.aio.client import Client

    from tests.integration.bridge_process import Bridge

pytestmark = pytest.mark.usefixtures("nats_server")

LETTERS = "jms-bridge.journal.set-aside"


@pytest.fixture(scope="module")
def jms(bridge: Bridge, tmp_path_factory: pytest.TempPathFactory) -> Iterator[JmsClient]:
    log = tmp_path_factory.mktemp("jms") / "client.log"
    client = JmsClient(f"tcp://127.0.0.1:{bridge.settings['embedded.artemis.port']}", log)
    yield client
    client.close()


def test_a_map_is_json_to_a_requester_of_nats(bridge: Bridge, jms: JmsClient) -> None:
    jms.open("queue:service")

    async def work(client: Client) -> bytes:
        asking = asyncio.create_task(client.request("ask.jms", b"which?", timeout=60))
        await asyncio.to_thread(jms.answer_with, "map", "queue:service")
        return (await asking).data

    assert with_nats(bridge, work) == b'{"name":"pear","price":7}'


def test_a_reply_that_nats_cannot_have_is_set_aside(bridge: Bridge, jms: JmsClient) -> None:
    jms.open("queue:service")

    async def work(client: Client) -> None:
        await client.publish("ask.jms", b"which?", reply=client.new_inbox())
        await client.flush()
        await asyncio.to_thread(jms.answer_with, "object", "queue:service")

    with_nats(bridge, work)
    wait(lambda: bridge.metric("jmsbridge_failed_messages_total", policy="dead-letter") == 1)
    wait(lambda: bridge.metric("jmsbridge_dead_letters", reason="body-not-convertible") == 1)
    (letter,) = (located.record for located in read(bridge.bootstrap, LETTERS))
    assert letter.header("jmsbridge.reason") == "body-not-convertible"
    assert letter.header("jmsbridge.route") == "replies to nats"


def test_a_late_reply_is_counted_and_dropped(bridge: Bridge, jms: JmsClient) -> None:
    jms.open("queue:slow.service")
    dropped = ("jmsbridge_unrouted_messages_total", "jmsbridge_sink_expired_messages_total")

    def expired() -> float:
        return bridge.metric(dropped[0], reason="expired") + bridge.metric(dropped[1])

    before = expired()

    async def work(client: Client) -> None:
        inbox = client.new_inbox()
        replies = await client.subscribe(inbox)
        await client.publish("ask.slow", b"when?", reply=inbox)
        await client.flush()
        await asyncio.to_thread(wait, lambda: bridge.metric("jmsbridge_sink_request_timeouts_total", sink="slow") == 1)
        await asyncio.to_thread(jms.answer_with, "map", "queue:slow.service")
        await asyncio.to_thread(wait, lambda: expired() == before + 1)
        assert replies.pending_msgs == 0

    with_nats(bridge, work)


def test_a_reply_to_a_requester_that_has_gone_stops_nothing_and_expires(bridge: Bridge, jms: JmsClient) -> None:
    delivered = bridge.metric("jmsbridge_sink_delivered_messages_total", sink="jms")

    async def work(client: Client) -> str:
        asked = await client.subscribe("service.nats")
        await client.flush()
        queue = await asyncio.to_thread(jms.request, "ask.nats", "who?")
        request = await asked.next_msg(60)
        await asyncio.to_thread(jms.leave)
        await request.respond(b"nobody")
        return queue

    queue = with_nats(bridge, work)
    # This Artemis makes a queue of that name: the reply does not stay in it.
    wait(lambda: bridge.metric("jmsbridge_sink_delivered_messages_total", sink="jms") == delivered + 1)
    assert int(jms.receive(f"queue:{queue}", 30)["JMSExpiration"]) > 0
