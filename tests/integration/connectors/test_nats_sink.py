"""The NATS sink against a real server: order, confirmation, repetitions, refusals, and a server that goes."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from nats.js.api import AckPolicy, ConsumerConfig, DiscardPolicy, StreamConfig

from engine.connectors.base import NotConnectedError, Outcome, Outgoing
from engine.message import BodyType, Message
from routes.properties import JmsType, Property
from tests.integration.connectors.nats_harness import Connectors, NatsHarness, numbered, outcomes, receive
from tests.processes import paused

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg
    from nats.js import JetStreamContext

    from engine.connectors.nats.sink import NatsSink
    from engine.connectors.nats.source import NatsSource

RICH = Message(
    "hällo ☃".encode(),
    BodyType.TEXT,
    {"JMSMessageID": "ID:1", "JMSCorrelationID": "c", "JMSTimestamp": "99999999999", "JMSPriority": "7"},
    {
        "n": Property("42", JmsType.INT),
        "flag": Property("true", JmsType.BOOLEAN),
        "region": Property("é", JmsType.STRING),
    },
    "",
    ("b0", "b1"),
)


def add_stream(harness: NatsHarness, name: str, **settings: object) -> None:
    async def add(js: JetStreamContext) -> None:
        await js.add_stream(StreamConfig(**{"name": name, "subjects": [name, f"{name}.>"]} | settings))  # type: ignore[arg-type]

    harness.streams(add)


def stored(harness: NatsHarness, stream: str) -> list[int]:
    """The numbers in a stream, in its order."""

    async def read(js: JetStreamContext) -> list[Msg]:
        count = (await js.stream_info(stream)).state.messages
        subscription = await js.pull_subscribe(">", stream=stream, config=ConsumerConfig(ack_policy=AckPolicy.NONE))
        found: list[Msg] = []
        while len(found) < count:
            found += await subscription.fetch(min(500, count - len(found)), timeout=5)
        return found

    return [int(message.data) for message in harness.streams(read)]


def confirmed(found: list[Outcome]) -> list[int]:
    """Their numbers; fails if one was refused."""
    assert all(outcome.refusal is None for outcome in found), found
    return [outcome.number for outcome in found]


def refusals(sink: NatsSink, messages: list[Outgoing]) -> list[str | None]:
    sink.send(messages)
    return [outcome.refusal for outcome in outcomes(sink, len(messages))]


# Without a stream


def test_messages_arrive_in_order_and_are_confirmed_in_order(
    jetstream: NatsHarness, connectors: Connectors, queue: str
) -> None:
    source = connectors.source(jetstream.url, queue)
    source.connect()
    sink = connectors.sink(jetstream.url)
    sink.connect()

    for start in range(1, 2001, 100):
        sink.send(numbered(100, f"topic:{queue}", start))

    assert confirmed(outcomes(sink, 2000)) == list(range(1, 2001))
    assert [int(delivery.message.body) for delivery in receive(source, 2000)] == list(range(1, 2001))
    assert sink.outcomes(0) == []


@pytest.mark.parametrize("prefix", ["", "topic:", "queue:", "topic/", "queue/"])
def test_a_request_says_where_its_reply_goes(
    jetstream: NatsHarness, connectors: Connectors, queue: str, prefix: str
) -> None:
    source = connectors.source(jetstream.url, queue)
    source.connect()
    sink = connectors.sink(jetstream.url, stream="true")
    sink.connect()

    sink.send([Outgoing(1, RICH, prefix + queue, "id", reply_to=f"{prefix}replies.{queue}")])

    assert outcomes(sink, 1) == [Outcome(1)]
    (delivery,) = receive(source, 1)
    assert delivery.message.headers["JMSReplyTo"] == f"topic:replies.{queue}"
    assert delivery.message.headers["JMSDestination"] == f"topic:{queue}"


def test_asking_for_outcomes_does_not_wait_and_waiting_ends_with_the_first(
    jetstream: NatsHarness, connectors: Connectors, queue: str
) -> None:
    sink = connectors.sink(jetstream.url)
    sink.connect()
    start = time.monotonic()
    for _ in range(100):
        assert sink.outcomes(0) == []
    assert time.monotonic() - start < 1
    took = []
    for number in range(50):
        sink.send(numbered(1, queue, number))
        start = time.monotonic()
        outcomes(sink, 1)
        took.append(time.monotonic() - start)
    assert sorted(took)[25] < 0.015


@pytest.mark.parametrize("stream", ["true", "false"])
def test_what_nats_cannot_take_is_refused_in_its_place(
    jetstream: NatsHarness, connectors: Connectors, queue: str, stream: str
) -> None:
    add_stream(jetstream, queue)
    sink = connectors.sink(jetstream.url, stream=stream)
    sink.connect()
    forged = Message(properties={"a": Property("x\r\nNats-Rollup: all")})
    bad = [
        Outgoing(2, RICH, f"{queue}.*", "2"),
        Outgoing(3, RICH, f"{queue} x", "3"),
        Outgoing(4, RICH, f"{queue}\r\nPUB x 0", "4"),
        Outgoing(5, RICH, f"{queue}..x", "5"),
        Outgoing(6, RICH, "", "6"),
        Outgoing(7, RICH, queue, "7", reply_to="a b"),
        Outgoing(8, forged, queue, "8"),
        Outgoing(9, Message(b"x" * 10_000_000), queue, "9"),
        Outgoing(10, RICH, f"{queue}." + ".".join(["x" * 400] * 11), "10"),
    ]

    said = refusals(sink, [*numbered(1, queue), *bad, *numbered(1, queue, 11)])

    assert said[0] is None
    assert said[-1] is None
    assert all(each and each.endswith("is not a subject to publish to") for each in said[1:7])
    assert said[7] == "NATS cannot carry header 'a': its value has a line break or NUL"
    assert said[8] == "10000028 bytes with headers are more than the 9437184 that the server takes"
    assert said[9] is not None
    assert said[9].endswith("bytes is more than NATS takes")


@pytest.mark.parametrize("prefix", ["", "topic:", "queue/"])
def test_a_message_cannot_order_the_server_about(
    jetstream: NatsHarness, connectors: Connectors, queue: str, prefix: str
) -> None:
    stream = add_stream(jetstream, queue)
    sink = connectors.sink(jetstream.url)
    sink.connect()
    orders = [f"{prefix}$JS.API.STREAM.DELETE.{stream}", f"{prefix}$SYS.REQ.SERVER.PING"]

    said = refusals(sink, [Outgoing(n, RICH, subject, str(n)) for n, subject in enumerate(orders)])

    assert all(each and each.endswith("is for commands to the server; messages are not sent there") for each in said)


# Into streams


def test_a_stream_takes_messages_in_order_and_repetitions_once(
    jetstream: NatsHarness, connectors: Connectors, queue: str
) -> None:
    add_stream(jetstream, queue)
    sink = connectors.sink(jetstream.url, stream="true")
    sink.connect()
    messages = numbered(3000, queue)

    for start in range(0, 3000, 100):
        sink.send(messages[start : start + 100])
    assert confirmed(outcomes(sink, 3000)) == list(range(1, 3001))
    sink.close()
    sink.connect()
    sink.send(messages[1000:])

    assert confirmed(outcomes(sink, 2000)) == list(range(1001, 3001))
    assert stored(jetstream, queue) == list(range(1, 3001))


def test_without_a_stream_for_a_subject_only_its_messages_are_refused(
    jetstream: NatsHarness, connectors: Connectors, queue: str
) -> None:
    add_stream(jetstream, queue)
    sink = connectors.sink(jetstream.url, stream="true")
    sink.connect()
    none = [Outgoing(n, RICH, f"none.{queue}", f"n{n}") for n in (2, 3)]

    said = refusals(sink, [*numbered(1, queue), *none, *numbered(1, queue, 4)])

    assert said == [None, *[f"no stream takes subject 'none.{queue}'"] * 2, None]
    assert stored(jetstream, queue) == [1, 4]


def test_an_application_that_replies_does_not_confirm_for_the_stream(
    jetstream: NatsHarness, connectors: Connectors, queue: str
) -> None:
    add_stream(jetstream, queue, max_msgs=1, discard=DiscardPolicy.NEW)
    sink = connectors.sink(jetstream.url, stream="true")
    sink.connect()
    sink.send(numbered(1, queue))
    outcomes(sink, 1)

    async def answer(client: Client) -> None:
        async def reply(message: Msg) -> None:
            for said in (b'{"fine": true}', b'{"error": "no"}', b'{"error": {"code": "x"}}', b"text", b"[1]", b""):
                await message.respond(said)

        await client.subscribe(queue, cb=reply)
        await client.flush()
        sink.send(numbered(1, queue, 2))
        await asyncio.sleep(0.2)

    with ThreadPoolExecutor(1) as thread:
        thread.submit(jetstream.client, answer).result()
    with pytest.raises(NotConnectedError, match="maximum messages exceeded"):
        outcomes(sink, 1)


def test_a_message_too_large_for_its_stream_is_refused(
    jetstream: NatsHarness, connectors: Connectors, queue: str
) -> None:
    add_stream(jetstream, queue, max_msg_size=1000)
    sink = connectors.sink(jetstream.url, stream="true")
    sink.connect()

    said = refusals(sink, [*numbered(1, queue), Outgoing(2, Message(b"x" * 2000), queue, "2")])

    assert said == [None, "JetStream refuses it: message size exceeds maximum allowed"]


def test_a_stream_that_is_full_is_waited_for(jetstream: NatsHarness, connectors: Connectors, queue: str) -> None:
    add_stream(jetstream, queue, max_msgs=5, discard=DiscardPolicy.NEW)
    sink = connectors.sink(jetstream.url, stream="true")
    sink.connect()
    messages = numbered(8, queue)

    sink.send(messages)
    assert confirmed(outcomes(sink, 5)) == [1, 2, 3, 4, 5]
    with pytest.raises(NotConnectedError, match=f"JetStream says of '{queue}': maximum messages exceeded"):
        outcomes(sink, 1)
    sink.close()

    async def purge(js: JetStreamContext) -> None:
        await js.purge_stream(queue)

    jetstream.streams(purge)
    sink.connect()
    sink.send(messages[5:])
    assert confirmed(outcomes(sink, 3)) == [6, 7, 8]
    assert stored(jetstream, queue) == [6, 7, 8]


def test_a_server_that_is_killed_in_the_middle_loses_nothing_and_has_nothing_twice(
    own: NatsHarness, connectors: Connectors
) -> None:
    add_stream(own, "S")
    sink = connectors.sink(own.url, stream="true")
    sink.connect()
    messages = numbered(5000, "S")
    told: list[int] = []

    def give() -> None:
        for start in range(0, 5000, 50):
            sink.send(messages[start : start + 50])
            told.extend(confirmed(list(sink.outcomes(0))))
            if start == 2500:
                own.kill()

    with pytest.raises(NotConnectedError):
        give()
    sink.close()
    own.start()
    sink.connect()
    sink.send(messages[len(told) :])

    assert told + confirmed(outcomes(sink, 5000 - len(told))) == list(range(1, 5001))
    assert 0 < len(told) < 5000
    assert stored(own, "S") == list(range(1, 5001))


def test_a_server_that_falls_silent_is_noticed(own: NatsHarness, connectors: Connectors) -> None:
    sink = connectors.sink(own.url, heartbeat="200ms")
    sink.connect()
    with paused(own.pid):
        sink.send(numbered(1, "a"))
        with pytest.raises(NotConnectedError, match="the server has been silent, in spite of heart-beats"):
            outcomes(sink, 1, 5)


def test_much_that_the_server_does_not_read_is_not_piled_up(own: NatsHarness, connectors: Connectors) -> None:
    sink = connectors.sink(own.url, heartbeat="200ms")
    sink.connect()
    with paused(own.pid), pytest.raises(NotConnectedError):
        sink.send([Outgoing(n, Message(b"x" * 1_000_000), "a", str(n)) for n in range(60)])


# Formats


@pytest.mark.parametrize("wire", ["headers", "json", "typed", "raw"])
@pytest.mark.parametrize("stream", ["true", "false"])
def test_what_goes_out_comes_in_again(
    jetstream: NatsHarness, connectors: Connectors, queue: str, wire: str, stream: str
) -> None:
    add_stream(jetstream, queue)
    inward: NatsSource = (
        connectors.source(jetstream.url, queue, stream=queue)
        if stream == "true"
        else connectors.source(jetstream.url, queue)
    )
    inward.connect()
    sink = connectors.sink(jetstream.url, stream=stream, format=wire)
    sink.connect()

    sink.send([Outgoing(1, RICH, queue, "the-id")])
    assert outcomes(sink, 1) == [Outcome(1)]
    (delivery,) = receive(inward, 1)

    found = delivery.message
    assert (found.body, found.body_type, found.origins) == (RICH.body, RICH.body_type, RICH.origins)
    assert found.properties == ({} if wire == "raw" else RICH.properties)
    assert found.headers.get("JMSPriority") == (None if wire == "raw" else "7")
    assert found.headers["JMSMessageID"] == ("ID:1" if wire == "headers" else "ID:the-id")


@pytest.mark.parametrize("stream", ["true", "false"])
def test_names_that_nats_cannot_carry_and_bodies_that_are_null_come_in_again(
    jetstream: NatsHarness, connectors: Connectors, queue: str, stream: str
) -> None:
    add_stream(jetstream, queue)
    inward: NatsSource = connectors.source(jetstream.url, queue, **({"stream": queue} if stream == "true" else {}))
    inward.connect()
    sink = connectors.sink(jetstream.url, stream=stream)
    sink.connect()
    properties = {name: Property("7", JmsType.INT) for name in ("größe", "a b", "a:b", "X-Request-Id", "NOT", "a.b")}
    bodies = ["null", "none", ""]

    sink.send(
        [
            Outgoing(number, Message(properties=properties, body_types=body_types), queue, f"id-{number}")
            for number, body_types in enumerate(bodies)
        ]
    )
    assert confirmed(outcomes(sink, len(bodies))) == list(range(len(bodies)))
    found = [delivery.message for delivery in receive(inward, len(bodies))]

    assert [message.properties for message in found] == [properties] * len(bodies)
    assert [(message.body, message.body_type, message.body_types) for message in found] == [
        (b"", BodyType.TEXT, body_types) for body_types in bodies
    ]
