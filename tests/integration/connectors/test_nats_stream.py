"""The NATS source at streams of a real server: what its consumers promise, through kills, waits and limits."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
import structlog
from nats.js.api import AckPolicy

from engine.connectors.base import NotConnectedError
from engine.connectors.endpoint import SystemEndpoint
from engine.connectors.nats.system import SYSTEM
from engine.errors import HardFailureError
from routes.config import loads
from tests.integration.connectors.nats_harness import (
    CONSUMER,
    Connectors,
    NatsHarness,
    add_consumer,
    add_stream,
    bodies,
    delivered_again,
    nothing,
    publish,
    receive,
)
from tests.waiting import patience, until

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nats.js import JetStreamContext


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
    # A server that is killed may have forgotten what it delivered, and what was acknowledged.
    seen: set[int] = set()
    deadline = time.monotonic() + patience(10)
    while not seen >= set(range(50, 500)) and time.monotonic() < deadline:
        found = receive(source, 1)
        seen |= set(bodies(found))
        source.acknowledge([delivery.token for delivery in found])
    assert seen >= set(range(50, 500))
    source.close()
    until(lambda: own.waiting("S") <= 50)


def test_workers_share_a_consumer(jetstream: NatsHarness, connectors: Connectors, queue: str) -> None:
    add_stream(jetstream, queue, queue)
    sources = [connectors.source(jetstream.url, queue, stream=queue) for _ in range(2)]
    for source in sources:
        source.connect()
    publish(jetstream, [(queue, str(n).encode()) for n in range(3000)])
    seen: list[int] = []
    deadline = time.monotonic() + patience(20)
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


def test_large_messages_do_not_pile_up(jetstream: NatsHarness, connectors: Connectors, queue: str) -> None:
    add_stream(jetstream, queue, queue)
    add_consumer(jetstream, queue)
    publish(jetstream, [(queue, b"x" * 2_000_000)] * 40)
    source = connectors.source(jetstream.url, queue, stream=queue)
    source.connect()

    receive(source, 1)
    for _ in range(3):
        time.sleep(0.1)
        receive(source, 1)

    async def open_messages(js: JetStreamContext) -> int:
        return (await js.consumer_info(queue, CONSUMER)).num_ack_pending or 0

    # Twice what the server takes in one message.
    assert jetstream.streams(open_messages) <= 4 + 2 * 9 // 2 + 1


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


def add_limited_consumer(jetstream: NatsHarness, stream: str, limits: bytes) -> None:
    """With limits that the client's library does not know."""

    async def add(js: JetStreamContext) -> None:
        config = b'{"durable_name":"%b","ack_policy":"explicit",%b}' % (CONSUMER.encode(), limits)
        asked = b'{"stream_name":"%b","config":%b}' % (stream.encode(), config)
        answer = await js._nc.request(f"$JS.API.CONSUMER.DURABLE.CREATE.{stream}.{CONSUMER}", asked)
        assert b"error" not in answer.data

    jetstream.streams(add)


def test_the_limits_of_a_consumer_are_kept(jetstream: NatsHarness, connectors: Connectors, queue: str) -> None:
    add_stream(jetstream, queue, queue)
    add_limited_consumer(jetstream, queue, b'"max_batch":10,"max_expires":2000000000,"max_ack_pending":100')
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


def test_a_limit_of_deliveries_by_which_messages_are_lost_is_warned_of(jetstream: NatsHarness, queue: str) -> None:
    add_stream(jetstream, queue, queue)
    settings = f"source.src.url={jetstream.url}\nsource.src.destinations={queue}\nsource.src.stream={queue}\n"
    config = loads(f"bridge.id=b1\nroutes.a.in.include=TRUE\nroutes.a.out.topic=o\nsource.src.type=nats\n{settings}")
    (source,) = config.sources
    assert list(SYSTEM.doubts(SystemEndpoint.of(config, source))) == [], (
        "the source will make its consumer without a limit"
    )  # type: ignore[arg-type]
    add_limited_consumer(jetstream, queue, b'"max_deliver":3')
    ((found, remedy),) = SYSTEM.doubts(SystemEndpoint.of(config, source))  # type: ignore[arg-type]
    assert found.startswith(
        f"consumer '{CONSUMER}' of stream '{queue}' delivers a message 3 times at most (max_deliver)"
    )
    assert remedy == f"remove the limit: nats consumer edit {queue} {CONSUMER} --max-deliver=-1"


def test_a_message_that_its_consumer_may_not_ask_for_is_reported(
    jetstream: NatsHarness, connectors: Connectors, queue: str
) -> None:
    add_stream(jetstream, queue, queue)
    add_limited_consumer(jetstream, queue, b'"max_bytes":1000')
    source = connectors.source(jetstream.url, queue, stream=queue)
    source.connect()
    publish(jetstream, [(queue, b"x" * 5000)])
    with pytest.raises(NotConnectedError, match=r"has a max_bytes of 1000, which its next message exceeds; raise it"):
        receive(source, 1, 10)
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
        (("{q}.b", "{q}.c.>"), {}, "has no subject '{q}.a': it has {q}.b, {q}.c.>; change one of them"),
        (("{q}.*",), {"ack_policy": AckPolicy.NONE}, "its consumer 'b1-src' has ack policy none, not explicit"),
        (
            ("{q}.*",),
            {"durable_name": None, "name": CONSUMER},
            "its consumer 'b1-src' is not durable; name another one",
        ),
        (("{q}.*",), {"deliver_subject": "push"}, "its consumer 'b1-src' is a push consumer; name another one in"),
    ],
    ids=["no subject", "no acknowledgement", "not durable", "push"],
)
def test_what_is_wrong_with_a_stream_ends_it_in_one_line(
    jetstream: NatsHarness,
    connectors: Connectors,
    queue: str,
    subjects: Sequence[str],
    consumer: dict[str, object],
    says: str,
) -> None:
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


def test_a_source_waits_for_its_stream_and_reads_it_when_it_is_there(
    jetstream: NatsHarness, connectors: Connectors, queue: str
) -> None:
    source = connectors.source(jetstream.url, f"{queue}.a", stream=queue)

    for _ in range(2):
        with pytest.raises(NotConnectedError) as error:
            source.connect()
        assert str(error.value) == (
            f"source 'src': stream '{queue}' at {jetstream.url} does not exist; "
            f'make it, such as with: nats stream add {queue} --subjects "{queue}.a"'
        )
        assert error.value.back_off_seconds is None, "pauses begin short and grow"
    add_stream(jetstream, queue, f"{queue}.*")
    publish(jetstream, [(f"{queue}.a", b"1")])
    source.connect()

    assert bodies(receive(source, 1)) == [1]
    source.close()


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
