"""The NATS source against a real server: subscriptions and their groups, streams and what their consumers promise."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
import structlog
from nats.js.api import AckPolicy, ConsumerConfig

from engine.codecs import json_frame, typed_frame
from engine.codecs.frame import Frame
from engine.connectors.base import NotConnectedError
from engine.connectors.nats import subscription
from engine.errors import HardFailureError
from engine.message import BodyType
from tests.integration.connectors.harness import Outgoing
from tests.integration.connectors.nats_harness import CONSUMER, Connectors, NatsHarness, nothing, receive
from tests.integration.connectors.running import numbered, until

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nats.aio.client import Client
    from nats.js import JetStreamContext

    from engine.connectors.base import Delivery


def publish(harness: NatsHarness, messages: Sequence[tuple[str, bytes]], reply: str = "") -> None:
    async def send(client: Client) -> None:
        for subject, body in messages:
            await client.publish(subject, body, reply)
        await client.flush()

    harness.client(send)


def add_stream(harness: NatsHarness, name: str, *subjects: str) -> None:
    async def add(js: JetStreamContext) -> None:
        await js.add_stream(name=name, subjects=list(subjects))

    harness.streams(add)


def add_consumer(harness: NatsHarness, stream: str, **settings: object) -> None:
    async def add(js: JetStreamContext) -> None:
        config = {"durable_name": CONSUMER, "ack_policy": AckPolicy.EXPLICIT} | settings
        await js.add_consumer(stream, ConsumerConfig(**config))  # type: ignore[arg-type]

    harness.streams(add)


def delivered_again(harness: NatsHarness, stream: str) -> int:
    async def ask(js: JetStreamContext) -> int:
        return (await js.consumer_info(stream, CONSUMER)).num_redelivered or 0

    return harness.streams(ask)


def bodies(deliveries: Sequence[Delivery]) -> list[int]:
    return [int(delivery.message.body) for delivery in deliveries]


# Subscriptions


def test_a_subscription_takes_what_its_wildcards_fit(
    jetstream: NatsHarness, connectors: Connectors, queue: str
) -> None:
    source = connectors.source(jetstream.url, f"{queue}.*.eu, {queue}.prices.>")
    source.connect()
    subjects = [f"{queue}.a.eu", f"{queue}.a.us", f"{queue}.prices.x.y", f"{queue}.prices"]

    publish(jetstream, [(subject, b"x") for subject in subjects], reply=f"{queue}.reply")
    found = receive(source, 2)

    assert nothing(source)
    source.acknowledge([delivery.token for delivery in found])
    source.close()
    headers = [delivery.message.headers for delivery in found]
    assert [each["JMSDestination"] for each in headers] == [f"topic:{queue}.a.eu", f"topic:{queue}.prices.x.y"]
    assert {each["JMSReplyTo"] for each in headers} == {f"topic:{queue}.reply"}
    assert len({each["JMSMessageID"] for each in headers}) == 2
    assert abs(int(headers[0]["JMSTimestamp"]) / 1000 - time.time()) < 60


def test_workers_share_a_subscription(jetstream: NatsHarness, connectors: Connectors, queue: str) -> None:
    sources = [connectors.source(jetstream.url, queue) for _ in range(3)]
    for source in sources:
        source.connect()

    publish(jetstream, [(queue, str(n).encode()) for n in range(300)])
    shares: list[list[int]] = [[], [], []]
    deadline = time.monotonic() + 10
    while sum(map(len, shares)) < 300 and time.monotonic() < deadline:
        for source, share in zip(sources, shares, strict=True):
            if delivery := source.receive(0.01):
                share.append(int(delivery.message.body))

    assert sorted(n for share in shares for n in share) == list(range(300))
    assert all(shares)
    assert all(nothing(source, 0.2) for source in sources)
    for source in sources:
        source.close()


def test_what_comes_too_fast_is_lost_and_told_once(
    jetstream: NatsHarness, connectors: Connectors, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscription, "MOST_WAITING_BYTES", 1000)
    source = connectors.source(jetstream.url, queue)
    source.connect()

    with structlog.testing.capture_logs() as logs:
        publish(jetstream, [(queue, b"x" * 100)] * 50)
        found = receive(source, 10)
        assert nothing(source)
        publish(jetstream, [(queue, b"y")])
        assert receive(source, 1)[0].message.body == b"y"

    source.close()
    assert len(found) == 10
    events = [entry["event"] for entry in logs if entry["log_level"] == "warning"]
    assert events[0].startswith("slow consumer: messages come faster than the journal takes them")
    assert events[1:] == ["taking messages again"]
    assert logs[-1]["lost"] == 40


def test_a_server_that_goes_is_noticed_but_what_has_come_is_kept(own: NatsHarness, connectors: Connectors) -> None:
    source = connectors.source(own.url, "a")
    source.connect()
    publish(own, [("a", b"1"), ("a", b"2")])
    receive(source, 1)

    own.kill()
    time.sleep(0.1)

    assert bodies(receive(source, 1)) == [2]
    with pytest.raises(NotConnectedError, match=r"the server has closed the connection|reset by peer"):
        nothing(source, 5)
    source.close()
    with pytest.raises(NotConnectedError, match="Connection refused"):
        source.connect()
    own.start()
    source.connect()
    publish(own, [("a", b"3")])
    assert bodies(receive(source, 1)) == [3]
    source.close()


# Streams


def test_what_is_not_acknowledged_comes_again_at_once_and_says_so(
    jetstream: NatsHarness, connectors: Connectors, queue: str
) -> None:
    add_stream(jetstream, queue, f"{queue}.>")
    source = connectors.source(jetstream.url, f"{queue}.>", stream=queue)
    publish(jetstream, [(f"{queue}.a", str(n).encode()) for n in range(100)])
    source.connect()
    first = receive(source, 60)
    source.acknowledge([delivery.token for delivery in first[:40]])
    source.close()
    assert jetstream.waiting(queue) == 60

    source.connect()
    again = receive(source, 60, 5)

    assert sorted(bodies(again)) == list(range(40, 100))
    redelivered = {int(d.message.body) for d in again if d.message.headers["JMSRedelivered"] == "true"}
    assert redelivered >= set(range(40, 60))
    one = next(delivery.message.headers for delivery in again if delivery.message.body == b"40")
    assert one["JMSXDeliveryCount"] == "2"
    assert one["JMSMessageID"] == f"ID:{queue}:41"
    source.acknowledge([delivery.token for delivery in again])
    source.close()
    until(lambda: jetstream.waiting(queue) == 0)


def test_a_lost_connection_gives_back_what_was_open(own: NatsHarness, connectors: Connectors) -> None:
    add_stream(own, "S", "a")
    publish(own, [("a", str(n).encode()) for n in range(500)])
    source = connectors.source(own.url, "a", stream="S")
    source.connect()
    first = receive(source, 100)
    source.acknowledge([delivery.token for delivery in first[:50]])

    own.kill()
    with pytest.raises(NotConnectedError):
        receive(source, 1000, 5)
    with pytest.raises(NotConnectedError):
        source.acknowledge([first[50].token])
    source.close()
    own.start()
    source.connect()
    found = receive(source, 450, 10)

    assert set(bodies(found)) >= set(range(50, 500))
    source.acknowledge([delivery.token for delivery in found])
    source.close()
    # A server that is killed may have forgotten acknowledgements.
    until(lambda: own.waiting("S") <= 50)


def test_workers_share_a_consumer(jetstream: NatsHarness, connectors: Connectors, queue: str) -> None:
    add_stream(jetstream, queue, queue)
    sources = [connectors.source(jetstream.url, queue, stream=queue) for _ in range(2)]
    for source in sources:
        source.connect()
    publish(jetstream, [(queue, str(n).encode()) for n in range(3000)])
    seen: list[int] = []
    deadline = time.monotonic() + 20
    while len(seen) < 3000 and time.monotonic() < deadline:
        for source in sources:
            if delivery := source.receive(0.01):
                seen.append(int(delivery.message.body))
                source.acknowledge([delivery.token])

    assert sorted(seen) == list(range(3000))
    for source in sources:
        source.close()


def test_a_message_that_waits_long_is_prolonged(jetstream: NatsHarness, connectors: Connectors, queue: str) -> None:
    add_stream(jetstream, queue, queue)
    add_consumer(jetstream, queue, ack_wait=1)
    source = connectors.source(jetstream.url, queue, stream=queue)
    source.connect()
    publish(jetstream, [(queue, str(n).encode()) for n in range(20)])
    found = receive(source, 20)

    assert nothing(source, 3.5)

    assert delivered_again(jetstream, queue) == 0
    source.acknowledge([delivery.token for delivery in found])
    source.close()
    until(lambda: jetstream.waiting(queue) == 0)


@pytest.mark.parametrize("acknowledged_first", [True, False])
def test_what_the_server_sends_again_while_nobody_calls_is_not_handed_over_twice(
    jetstream: NatsHarness, connectors: Connectors, queue: str, acknowledged_first: bool
) -> None:
    add_stream(jetstream, queue, queue)
    add_consumer(jetstream, queue, ack_wait=1)
    source = connectors.source(jetstream.url, queue, stream=queue)
    source.connect()
    publish(jetstream, [(queue, str(n).encode()) for n in range(20)])
    tokens = [delivery.token for delivery in receive(source, 20)]

    time.sleep(2.5)  # longer than the server waits
    assert delivered_again(jetstream, queue) == 20
    if acknowledged_first:
        source.acknowledge(tokens)
    assert nothing(source)
    if not acknowledged_first:
        source.acknowledge(tokens)

    until(lambda: jetstream.waiting(queue) == 0)
    assert nothing(source, 1.5)
    source.close()


def test_large_messages_come_a_few_at_a_time(jetstream: NatsHarness, connectors: Connectors, queue: str) -> None:
    add_stream(jetstream, queue, queue)
    sizes = [2_000_000, 8_000_000, 10, 3_000_000] * 4
    publish(jetstream, [(queue, b"x" * size) for size in sizes])
    source = connectors.source(jetstream.url, queue, stream=queue)
    source.connect()

    found = receive(source, len(sizes), 20)

    assert [len(delivery.message.body) for delivery in found] == sizes
    source.close()


def test_the_limits_of_a_consumer_are_kept(jetstream: NatsHarness, connectors: Connectors, queue: str) -> None:
    add_stream(jetstream, queue, queue)

    async def add(js: JetStreamContext) -> None:
        limits = b'"max_batch":10,"max_expires":2000000000,"max_ack_pending":100'
        config = b'{"durable_name":"%b","ack_policy":"explicit",%b}' % (CONSUMER.encode(), limits)
        asked = b'{"stream_name":"%b","config":%b}' % (queue.encode(), config)
        answer = await js._nc.request(f"$JS.API.CONSUMER.DURABLE.CREATE.{queue}.{CONSUMER}", asked)
        assert b"error" not in answer.data

    jetstream.streams(add)
    publish(jetstream, [(queue, str(n).encode()) for n in range(300)])
    source = connectors.source(jetstream.url, queue, stream=queue)
    source.connect()

    for start in (0, 100, 200):
        found = receive(source, 100)
        assert bodies(found) == list(range(start, start + 100))
        source.acknowledge([delivery.token for delivery in found])
    assert nothing(source, 3)
    publish(jetstream, [(queue, b"300")])
    receive(source, 1)
    source.close()


def test_a_consumer_that_is_deleted_is_made_again(jetstream: NatsHarness, connectors: Connectors, queue: str) -> None:
    add_stream(jetstream, queue, queue)
    source = connectors.source(jetstream.url, queue, stream=queue)
    source.connect()

    async def delete(js: JetStreamContext) -> None:
        await js.delete_consumer(queue, CONSUMER)

    jetstream.streams(delete)
    with pytest.raises(NotConnectedError, match="JetStream says of the consumer: Consumer Deleted"):
        nothing(source, 5)
    source.close()
    source.connect()
    publish(jetstream, [(queue, b"1")])
    assert bodies(receive(source, 1)) == [1]
    source.close()


@pytest.mark.parametrize(
    ("subjects", "consumer", "says"),
    [
        ((), {}, 'does not exist; make it, such as with: nats stream add {q} --subjects "{q}.a"'),
        (("{q}.b", "{q}.c.>"), {}, "has no subject '{q}.a': it has {q}.b, {q}.c.>; change one of both"),
        (("{q}.*",), {"ack_policy": AckPolicy.NONE}, "its consumer 'b1-src' has ack policy none, not explicit"),
        (("{q}.*",), {"deliver_subject": "push"}, "its consumer 'b1-src' is a push consumer; name another one in"),
    ],
    ids=["no stream", "no subject", "no acknowledgement", "push"],
)
def test_what_is_wrong_with_a_stream_ends_it_in_one_line(
    jetstream: NatsHarness,
    connectors: Connectors,
    queue: str,
    subjects: Sequence[str],
    consumer: dict[str, object],
    says: str,
) -> None:
    if subjects:
        add_stream(jetstream, queue, *(subject.format(q=queue) for subject in subjects))
    if consumer:
        add_consumer(jetstream, queue, **consumer)
    source = connectors.source(jetstream.url, f"{queue}.a", stream=queue)

    with pytest.raises(HardFailureError) as error:
        source.connect()

    source.close()
    assert str(error.value).startswith(f"source 'src': stream '{queue}' at {jetstream.url}")
    assert says.format(q=queue) in str(error.value)
    assert "\n" not in str(error.value)


def test_other_subjects_of_a_consumer_are_told_and_kept(
    jetstream: NatsHarness, connectors: Connectors, queue: str
) -> None:
    add_stream(jetstream, queue, f"{queue}.*")
    add_consumer(jetstream, queue, filter_subject=f"{queue}.b")
    source = connectors.source(jetstream.url, f"{queue}.a", stream=queue)

    with structlog.testing.capture_logs() as logs:
        source.connect()
    publish(jetstream, [(f"{queue}.a", b"1"), (f"{queue}.b", b"2")])

    assert bodies(receive(source, 1)) == [2]
    assert nothing(source)
    source.close()
    (warning,) = [entry for entry in logs if entry["log_level"] == "warning"]
    assert (warning["consumer_has"], warning["source_has"]) == (f"{queue}.b", f"{queue}.a")


# Frames


def test_frames_are_read_and_faulty_ones_are_told(jetstream: NatsHarness, connectors: Connectors, queue: str) -> None:
    source = connectors.source(jetstream.url, queue, stream=queue)
    frame = Frame(b"body")
    good = [json_frame.encode(frame), typed_frame.encode(frame)]
    jetstream.send(queue, [Outgoing(body) for body in (*good, good[0][:-1], good[1][:-1], good[1][:-2])])
    source.connect()

    with structlog.testing.capture_logs() as logs:
        found = receive(source, 5)

    source.acknowledge([delivery.token for delivery in found])
    source.close()
    assert [delivery.message.body for delivery in found[:2]] == [b"body", b"body"]
    assert found[2].fault is not None
    assert found[2].fault.startswith("a faulty JSON frame: the body should have 4 bytes, of which 3 are there")
    assert [delivery.fault for delivery in found[3:]] == [None, None]
    assert [delivery.message.body for delivery in found[2:]] == [good[0][:-1], good[1][:-1], good[1][:-2]]
    assert {delivery.message.body_type for delivery in found[2:]} == {BodyType.BYTES}
    assert [entry["event"] for entry in logs if entry["log_level"] == "warning"] == ["taken as a plain body"]


def test_numbers_of_the_suite_come_in_their_order(jetstream: NatsHarness, connectors: Connectors, queue: str) -> None:
    jetstream.send(queue, numbered(5000))
    source = connectors.source(jetstream.url, queue, stream=queue)
    source.connect()
    assert bodies(receive(source, 5000)) == list(range(5000))
    source.close()
