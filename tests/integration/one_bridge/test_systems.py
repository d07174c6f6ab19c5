"""Messages from system to system through a whole bridge: forwarding, and requests with their replies."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import TYPE_CHECKING

import pytest

from engine.connectors.nats import json_frame, typed_frame
from engine.connectors.nats.header_frame import HeaderFrame
from routes.properties import Property
from tests.integration.bridge_process import part, wait, with_nats
from tests.integration.connectors.running import read
from tests.topic_records import ordered_producer

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg

    from tests.integration.bridge_process import Bridge
    from tests.integration.connectors.stomp_jms import JmsClient

pytestmark = pytest.mark.usefixtures("nats_server")


async def serve(client: Client, subject: str) -> asyncio.Queue[Msg]:
    """Answers each request with its body in capitals; what was asked comes into the queue."""
    asked: asyncio.Queue[Msg] = asyncio.Queue()

    async def answer(message: Msg) -> None:
        asked.put_nowait(message)
        await message.respond(message.data.upper())

    await client.subscribe(subject, cb=answer)
    await client.flush()
    return asked


def test_a_message_of_a_queue_arrives_in_a_subject_made_of_its_headers(bridge: Bridge) -> None:
    async def work(client: Client) -> Msg:
        subscription = await client.subscribe("from.jms.>")
        await client.flush()
        await asyncio.to_thread(bridge.send, range(1), destination="to.nats", region="emea")
        return await subscription.next_msg(30)

    message = with_nats(bridge, work)
    assert (message.subject, message.data) == ("from.jms.emea", b"order 0")
    assert message.headers is not None
    assert message.headers["number"] == "0"


def test_a_header_that_is_missing_in_a_subject_is_a_dead_letter(bridge: Bridge) -> None:
    before = bridge.metric("jmsbridge_failed_messages_total", reason="destination-unresolved")
    bridge.send(range(1), destination="to.nats", region="a b")
    wait(lambda: bridge.metric("jmsbridge_failed_messages_total", reason="destination-unresolved") == before + 1)


def test_a_message_of_a_queue_arrives_in_another_queue(bridge: Bridge, jms: JmsClient) -> None:
    bridge.send(range(3), destination="to.jms")
    found = [jms.receive("queue:from.jms", 30) for _ in range(3)]
    # What has a content-length is bytes to Artemis, and stays so.
    assert sorted(message["bytes"] for message in found) == ["order 0", "order 1", "order 2"]
    assert found[0]["property region"] == "emea"


def test_a_message_of_a_subject_arrives_in_a_queue(bridge: Bridge, jms: JmsClient) -> None:
    async def work(client: Client) -> None:
        await client.publish("to.jms.x", b"hello", headers={"region": "emea", "JMSType": "new"})
        await client.publish("to.jms.y", b"\xff\x00")
        await client.flush()

    with_nats(bridge, work)
    data, text = sorted((jms.receive("queue:from.nats", 30) for _ in range(2)), key=lambda found: "text" in found)
    assert (text["text"], text["JMSType"], text["property region"]) == ("hello", "new", "emea")
    assert data["bytes"] == "\xff\x00"


def test_a_message_goes_from_jms_to_kafka_and_back_through_the_same_bridge(bridge: Bridge, jms: JmsClient) -> None:
    bridge.send(range(3), destination="to.kafka", region="emea")
    found = [jms.receive("queue:from.kafka", 30) for _ in range(3)]
    assert sorted(message["bytes"] for message in found) == ["order 0", "order 1", "order 2"]
    assert {message["property region"] for message in found} == {"emea"}


def test_a_trace_context_goes_from_jms_to_an_agent_of_kafka_and_back(bridge: Bridge, jms: JmsClient) -> None:
    trace = "00-4bf92f3577b34da6a3ce929d0e0e4736"
    came, went_on = f"{trace}-00f067aa0ba902b7-01", f"{trace}-b7ad6b7169203331-01"
    bridge.send(range(1), destination="to.kafka", traceparent=came, tracestate="a=1")
    found = jms.receive("queue:from.kafka", 30)
    assert (found["property traceparent"], found["property tracestate"]) == (came, "a=1")
    records = [located.record for located in read(bridge.bootstrap, "from-jms")]
    (record,) = [each for each in records if each.header("jms.traceparent") == came]
    assert (record.header("traceparent"), record.header("tracestate")) == (came, "a=1")
    # As an application with an agent writes what it has read: headers copied, its own span in place of the old one.
    copied = [(name, value) for name, value in record.headers if name not in ("traceparent", "jmsbridge.origin")]
    producer = ordered_producer(bridge.bootstrap)
    producer.produce("from-jms", b"worked on", headers=[*copied, ("traceparent", went_on.encode())])
    assert producer.flush(30) == 0
    assert jms.receive("queue:from.kafka", 30)["property traceparent"] == went_on


def test_a_trace_context_goes_from_jms_to_an_agent_of_nats_and_back(bridge: Bridge, jms: JmsClient) -> None:
    came = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

    async def work(client: Client) -> Msg:
        subscription = await client.subscribe("from.jms.>")
        await client.flush()
        await asyncio.to_thread(bridge.send, range(1), destination="to.nats", region="emea", traceparent=came)
        await client.publish("to.jms.x", b"back", headers={"traceparent": came})
        return await subscription.next_msg(30)

    message = with_nats(bridge, work)
    assert message.headers is not None
    assert message.headers["traceparent"] == came
    assert jms.receive("queue:from.nats", 30)["property traceparent"] == came


def test_a_queue_and_a_topic_that_mirror_each_other_never_cycle(bridge: Bridge) -> None:
    before = bridge.metric("jmsbridge_unrouted_messages_total", reason="own-origin")
    bridge.send(range(1), destination="mirror")
    producer = ordered_producer(bridge.bootstrap)
    producer.produce("mirror", b"from outside")
    assert producer.flush(30) == 0
    # Each came back once, and was left out.
    wait(lambda: bridge.metric("jmsbridge_unrouted_messages_total", reason="own-origin") == before + 2)
    found = [located.record.value for located in read(bridge.bootstrap, "mirror")]
    assert sorted(found, key=str) == [b"from outside", b"order 0"]


def test_a_request_of_nats_is_answered_by_a_jms_service(bridge: Bridge, jms: JmsClient) -> None:
    before = bridge.metric("jmsbridge_sink_replies_total", sink="jms")
    jms.open("queue:service.jms")

    async def work(client: Client) -> Msg:
        asking = asyncio.create_task(client.request("ask.jms", b"what?", timeout=30))
        asked = await asyncio.to_thread(jms.answer, "queue:service.jms")
        assert asked["text"] == "what?"
        return await asking

    assert with_nats(bridge, work).data == b"what?"
    wait(lambda: bridge.metric("jmsbridge_sink_replies_total", sink="jms") >= before + 1)


def test_each_request_of_nats_has_its_reply_in_its_own_format(bridge: Bridge, jms: JmsClient) -> None:
    jms.open("queue:service.jms")
    asked = HeaderFrame(b"what?", {"region": Property.of("emea")})

    async def work(client: Client) -> list[bytes]:
        replies = []
        for payload in (json_frame.encode(asked), typed_frame.encode(asked), b"what?"):
            asking = asyncio.create_task(client.request("ask.jms", payload, timeout=60))
            while not (found := await asyncio.to_thread(jms.answer, "queue:service.jms")):
                assert not asking.done(), "nothing was asked"
            assert found["text"] == "what?"
            replies.append((await asking).data)
        return replies

    in_json, typed, plain = with_nats(bridge, work)
    assert json_frame.decode(in_json).body == typed_frame.decode(typed).body == plain == b"what?"
    assert json_frame.decode(in_json).headers


def test_a_request_with_a_temporary_queue_is_answered_by_a_nats_service(bridge: Bridge, jms: JmsClient) -> None:
    async def work(client: Client) -> None:
        asked = await serve(client, "service.nats")
        await asyncio.to_thread(jms.request, "ask.nats", "which?")
        reply = await asyncio.to_thread(jms.reply)
        assert (reply["text"], (await asked.get()).data) == ("WHICH?", b"which?")
        assert reply["JMSCorrelationID"].startswith("ID:")

    with_nats(bridge, work)


def test_a_request_nobody_answers_is_counted(bridge: Bridge, jms: JmsClient) -> None:
    before = bridge.metric("jmsbridge_sink_request_timeouts_total", sink="brief")
    jms.request("ask.nobody", "anybody?")
    wait(
        lambda: bridge.metric("jmsbridge_sink_request_timeouts_total", sink="brief") == before + 1,
        lambda: [line for line in bridge.get("/metrics")[1].splitlines() if "_sink_" in line],
    )


@pytest.mark.kills
def test_a_reply_finds_its_way_through_a_restart_of_everything_between(bridge: Bridge, jms: JmsClient) -> None:
    jms.open("queue:service.jms")
    sent = "jmsbridge_sink_requests_total"
    before = bridge.metric(sent, sink="jms")

    async def work(client: Client) -> bytes:
        inbox = client.new_inbox()
        subscription = await client.subscribe(inbox)
        await client.publish("ask.jms", b"still there?", reply=inbox)
        await client.flush()
        await asyncio.to_thread(wait, lambda: bridge.metric(sent, sink="jms") > before)
        for name in ("sink:jms", "sink:nats", "router", "source:nats"):
            os.kill(part(bridge, name), signal.SIGKILL)
        await asyncio.to_thread(jms.answer, "queue:service.jms")
        return (await subscription.next_msg(200)).data

    assert with_nats(bridge, work) == b"still there?"


def test_a_reply_over_nats_waits_for_a_sink_that_is_down(bridge: Bridge, jms: JmsClient) -> None:
    async def work(client: Client) -> None:
        subscription = await client.subscribe("service.nats")
        await client.flush()
        await asyncio.to_thread(jms.request, "ask.nats", "and now?")
        asked = await subscription.next_msg(30)
        before = bridge.metric("jmsbridge_component_restarts_total", component="sink:nats")
        os.kill(part(bridge, "sink:nats"), signal.SIGKILL)
        await asyncio.sleep(0.2)
        await asked.respond(b"now")
        assert (await asyncio.to_thread(jms.reply))["text"] == "now"
        assert bridge.metric("jmsbridge_component_restarts_total", component="sink:nats") == before + 1

    with_nats(bridge, work)


def test_many_requests_at_once_all_have_their_own_reply(bridge: Bridge, jms: JmsClient) -> None:
    count = 500

    async def work(client: Client) -> list[bytes]:
        await serve(client, "service.nats")
        inbox = client.new_inbox()
        await client.flush()
        asked = [str(n).encode() for n in range(count)]
        # Through both systems: NATS asks over JMS, whose service is this bridge's other way round.
        replies = await client.subscribe(f"{inbox}.*")
        for n, body in enumerate(asked):
            await client.publish("ask.jms", body, reply=f"{inbox}.{n}")
        await client.flush()
        for _ in range(count):
            await asyncio.to_thread(jms.answer, "queue:service.jms")
        found = [await replies.next_msg(60) for _ in range(count)]
        return [message.data for message in found if message.subject == f"{inbox}.{int(message.data)}"]

    assert sorted(map(int, with_nats(bridge, work))) == list(range(count))
