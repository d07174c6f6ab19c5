"""Sources and sinks of AMQP 1.0 at RabbitMQ 4: quorum queues, its addresses, and messages that it does not take."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest

from engine.connectors.base import NotConnectedError
from engine.message import Message
from tests.brokers.bench import Bench
from tests.brokers.broker import Protocol
from tests.brokers.connections import Connections, received
from tests.brokers.rabbitmq import RabbitMq4
from tests.brokers.rest import call
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.brokers

DELIVERY_LIMIT = 20
"""Times that a quorum queue gives a message back, if nobody sets another limit."""


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RabbitMq4]:
    made = RabbitMq4(tmp_path_factory.mktemp("b"))
    made.queue_type = "quorum"
    with made as started:
        yield started


@pytest.fixture
def connections(broker: RabbitMq4) -> Iterator[Connections]:
    made = Connections(broker, Protocol.AMQP)
    yield made
    made.close()


@pytest.fixture
def bench(broker: RabbitMq4, tmp_path: Path) -> Iterator[Bench]:
    made = Bench(broker, Protocol.AMQP, "127.0.0.1:1", tmp_path, 0)
    with made.case():
        yield made


@pytest.fixture
def queue(broker: RabbitMq4) -> str:
    """The name of a quorum queue, of characters that its address has to quote."""
    name = f"q {uuid.uuid4().hex[:8]}"
    broker.create(name.replace(" ", "%20"))
    return name


def test_a_quorum_queue_takes_and_gives_messages_and_marks_those_that_come_again(
    connections: Connections, queue: str
) -> None:
    connections.send(f"queue/{queue}", Message(b"1"), Message(b"2"))
    for count in range(1, 4):
        source = connections.source(f"queue:{queue}")
        found = received(source, 2, acknowledge=count == 3)
        assert [each.message.body for each in found] == [b"1", b"2"]
        source.close()
        headers = [each.message.headers for each in found]
        assert {each["JMSRedelivered"] for each in headers} == {str(count > 1).lower()}
        assert {each["JMSDestination"] for each in headers} == {f"queue:{queue}"}
    until(lambda: connections.broker.waiting(queue) == 0, 30, "nothing waits")


@pytest.mark.parametrize(("arguments", "is_kept"), [({}, False), ({"x-delivery-limit": -1}, True)])
def test_a_quorum_queue_drops_what_it_gave_back_too_often_unless_it_has_no_limit(
    connections: Connections, arguments: dict[str, int], *, is_kept: bool
) -> None:
    name = f"q{uuid.uuid4().hex[:8]}"
    wanted = {"durable": True, "arguments": {"x-queue-type": "quorum", **arguments}}
    call(connections.broker.ports["management"], f"/api/queues/%2F/{name}", "PUT", wanted)
    connections.send(f"queue/{name}", Message(b"1"))
    for _ in range(DELIVERY_LIMIT + 1):
        source = connections.source(f"queue:{name}")
        received(source, 1, acknowledge=False)
        source.close()
    left = connections.source(f"queue:{name}").receive(2)
    assert (left is not None) is is_kept


def test_a_message_to_a_topic_without_subscribers_is_delivered(bench: Bench) -> None:
    assert bench.send(bench.sink(), f"topic/{uuid.uuid4().hex}", Message(b"1"), Message(b"2")) == [None, None]


def test_a_message_to_an_exchange_that_leads_to_no_queue_is_refused(bench: Bench) -> None:
    (refusal,) = bench.send(bench.sink(), "queue//exchanges/amq.direct/nobody", Message(b"1"))
    assert refusal == "the broker releases it: no queue takes messages to queue:/exchanges/amq.direct/nobody"


def test_a_message_to_an_exchange_reaches_the_queue_that_is_bound_to_it(
    bench: Bench, connections: Connections, queue: str
) -> None:
    port = connections.broker.ports["management"]
    path = f"/api/bindings/%2F/e/amq.direct/q/{queue.replace(' ', '%20')}"
    call(port, path, "POST", {"routing_key": "a/b"})
    assert bench.send(bench.sink(), "queue//exchanges/amq.direct/a%2Fb", Message(b"1")) == [None]
    (found,) = received(connections.source(f"queue:{queue}"), 1)
    assert found.message.body == b"1"


@pytest.mark.parametrize("address", ["queue/missing-one", "queue//exchanges/missing-one/key"])
def test_a_missing_queue_or_exchange_is_the_fault_of_its_messages(bench: Bench, queue: str, address: str) -> None:
    sink = bench.sink()
    (refusal,) = bench.send(sink, address, Message(b"1"))
    assert refusal is not None
    assert "'missing-one' in vhost '/' (amqp:not-found)" in refusal
    assert bench.send(sink, f"queue/{queue}", Message(b"2")) == [None]


def test_a_source_of_a_missing_queue_says_so(connections: Connections) -> None:
    with pytest.raises(NotConnectedError, match=r"no queue 'missing-one' in vhost '/' \(amqp:not-found\)"):
        connections.source("queue:missing-one")


def test_a_queue_of_another_virtual_host_is_read(connections: Connections, queue: str) -> None:
    port, host = connections.broker.ports["management"], queue.partition(" ")[2]
    call(port, f"/api/vhosts/{host}", "PUT", {})
    call(port, f"/api/queues/{host}/there", "PUT", {"durable": True, "arguments": {"x-queue-type": "quorum"}})
    message = {"properties": {}, "routing_key": "there", "payload": "1", "payload_encoding": "string"}
    call(port, f"/api/exchanges/{host}/amq.default/publish", "POST", message)
    (found,) = received(connections.source("queue:there", virtual_host=f"vhost:{host}"), 1)
    assert found.message.body == b"1"


def test_a_message_larger_than_the_broker_takes_is_refused(bench: Bench, queue: str) -> None:
    large, small = Message(b"x" * (17 << 20)), Message(b"x" * (15 << 20))
    refusals = bench.send(bench.sink(), f"queue/{queue}", large, small)
    assert refusals == [f"it is larger than the broker takes for {queue}", None]
