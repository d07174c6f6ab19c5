"""Sinks of AMQP 1.0 and STOMP that keep their position at a real broker, which drops no duplicates itself."""

from __future__ import annotations

import os
import signal
import time
import uuid
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from engine.connectors.base import NotConnectedError, Outgoing
from engine.connectors.endpoint import SystemEndpoint
from engine.connectors.system import connector
from engine.errors import HardFailureError
from engine.message import BodyType, Message
from routes.config import loads
from tests.brokers.broker import Protocol
from tests.brokers.connections import Connections
from tests.brokers.registry import BROKERS
from tests.integration.connectors import sinks
from tests.integration.connectors.worker import start_worker
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from engine.connectors.base import Sink
    from engine.embedded import EmbeddedKafka
    from tests.brokers.broker import Broker

pytestmark = pytest.mark.brokers

KEEPING = (
    ("classic5", Protocol.STOMP),
    ("classic6", Protocol.STOMP),
    ("classic6", Protocol.AMQP),
    ("broker-j", Protocol.AMQP),
    ("artemis", Protocol.AMQP),
)
LACKING = (
    ("artemis", Protocol.STOMP, "an acknowledgement stays when its transaction is aborted"),
    ("rabbitmq", Protocol.STOMP, "its transactions are atomic for one queue only"),
    ("rabbitmq", Protocol.AMQP, "it has no transactions over AMQP 1.0"),
    ("rabbitmq4", Protocol.AMQP, "it has no transactions over AMQP 1.0"),
    ("openmq", Protocol.STOMP, "it refuses an acknowledgement in a transaction"),
)
LOAD = 3000


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Broker]]:
    """Brokers by name, each started once."""
    found: dict[str, Broker] = {}

    def start(name: str) -> Broker:
        if name not in found:
            for other in found.values():
                other.stop()
            found.clear()
            found[name] = BROKERS[name](tmp_path_factory.mktemp("b"))
            found[name].start()
        return found[name]

    yield start
    for each in found.values():
        each.stop()


@pytest.fixture
def name() -> str:
    return f"q{uuid.uuid4().hex[:8]}"


@pytest.fixture
def connections(request: pytest.FixtureRequest, started: Callable[[str], Broker], name: str) -> Iterator[Connections]:
    broker, protocol, *_ = request.param
    made = Connections(started(broker), protocol)
    made.broker.create(name)
    made.broker.create(f"{name}_positions")
    yield made
    made.close()


keeping = pytest.mark.parametrize("connections", KEEPING, indirect=True, ids=lambda each: f"{each[0]}-{each[1]}")


@contextmanager
def sink(connections: Connections, name: str) -> Iterator[Sink]:
    """A sink whose messages are for the queue `name`; its end is without a word."""
    keys = {**connections.broker.settings(connections.protocol), ".position-queue": f"{name}_positions"}
    lines = [f"sink.o{key}={value}" for key, value in keys.items()]
    own = ("bridge.id=b", "source.s.type=stomp", "source.s.destinations=queue:a", "routes.a.in.include=TRUE")
    config = loads("\n".join((*own, f"routes.a.out.topic=o:queue/{name}", *lines)))
    made = connector(config.sinks[0].type).make_sink(SystemEndpoint.of(config, config.sinks[0]), 1)
    made.connect()
    try:
        yield made
    finally:
        made.close()


def records(address: str, offsets: Sequence[int]) -> list[Outgoing]:
    """Each with another id, so that no broker recognises one by it."""
    return [
        Outgoing(
            offset,
            Message(str(offset).encode(), BodyType.TEXT),
            address,
            uuid.uuid4().hex,
            timestamp_ms=1_700_000_000_000 + offset,
            partition=0,
            offset=offset,
        )
        for offset in offsets
    ]


def told(sending: Sink, count: int) -> dict[int, str | None]:
    found: dict[int, str | None] = {}
    deadline = time.monotonic() + 60
    while len(found) < count and time.monotonic() < deadline:
        found |= {each.number: each.refusal for each in sending.outcomes(1)}
    assert len(found) == count
    return found


@keeping
def test_what_one_connection_has_sent_the_next_one_leaves_out(connections: Connections, name: str) -> None:
    address = f"queue/{name}"
    with sink(connections, name) as first:
        first.send(records(address, range(1200)))
        told(first, 1200)
    with sink(connections, name) as second:
        second.send(records(address, range(1000, 1300)))
        assert told(second, 300) == dict.fromkeys(range(1000, 1300))
    assert connections.broker.waiting(name) == 1300
    assert connections.broker.waiting(f"{name}_positions") == 1


@keeping
def test_a_transaction_that_is_cut_leaves_nothing_behind(connections: Connections, name: str) -> None:
    address = f"queue/{name}"
    with sink(connections, name) as first:
        first.send(records(address, range(10)))
        told(first, 10)
        # The transaction is open, and its messages are at the broker.
        first.send(records(address, range(10, 300)))
        deadline = time.monotonic() + 10
        while not first._open.is_moved and time.monotonic() < deadline:  # type: ignore[attr-defined]
            assert not first.outcomes(0)
        first._sink._session.hang_up()  # type: ignore[attr-defined]
    with sink(connections, name) as second:
        second.send(records(address, range(10, 300)))
        told(second, 290)
    assert connections.broker.waiting(name) == 300


@keeping
def test_what_the_broker_refuses_is_told_and_the_rest_arrives_once(connections: Connections, name: str) -> None:
    # Names that begin so are temporary queues of Classic, whose owner has gone.
    bad = "queue/ID:gone-1-1-1:1:1" if "Classic" in connections.broker.title else "queue/missing"
    if connections.broker.title == "ActiveMQ Artemis":
        pytest.skip("it makes every queue that there is not")
    given = records(f"queue/{name}", range(20))
    given[7] = records(bad, [7])[0]
    outcomes: dict[int, str | None] = {}
    deadline = time.monotonic() + 90
    with sink(connections, name) as sending:
        while len(outcomes) < 20 and time.monotonic() < deadline:
            left = [each for each in given if each.number not in outcomes]
            try:
                sending.send(left)
                outcomes |= told(sending, len(left))
            except NotConnectedError:
                sending.close()
                sending.connect()
    assert outcomes.pop(7)
    assert set(outcomes.values()) == {None}
    assert connections.broker.waiting(name) == 19


@pytest.mark.parametrize("connections", LACKING, indirect=True, ids=lambda each: f"{each[0]}-{each[1]}")
def test_a_broker_that_cannot_keep_positions_is_refused(
    connections: Connections, name: str, request: pytest.FixtureRequest
) -> None:
    why = request.node.callspec.params["connections"][2]
    with pytest.raises(HardFailureError, match=why), sink(connections, name):
        pass


@pytest.mark.kills
@pytest.mark.parametrize("victim", ["sink", "broker"])
@keeping
def test_nothing_is_lost_or_doubled_by_kills(
    connections: Connections, name: str, victim: str, tmp_path: Path, kafka: EmbeddedKafka
) -> None:
    broker = connections.broker
    keys = {**broker.settings(connections.protocol), ".position-queue": f"{name}_positions"}
    config = sinks.configure(tmp_path, kafka.bootstrap, name, keys)
    sinks.RouterStandIn(config).give(f"queue/{name}", sinks.numbered(LOAD, size=200))
    log = tmp_path / "sink.log"
    for _ in range(4):
        before = sinks.committed(config)
        process = start_worker("sink", "out", config.path, log)
        try:
            until(lambda before=before: sinks.committed(config) > before or before == LOAD, 60, "progress")  # type: ignore[misc]
            if victim == "broker":
                broker.kill()
                broker.start()
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    process = start_worker("sink", "out", config.path, log)
    try:
        until(lambda: sinks.committed(config) == LOAD, 120, "all sent")
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    source = connections.source(f"queue:{name}")
    found: Counter[int] = Counter()
    deadline = time.monotonic() + 60
    while broker.waiting(name) and time.monotonic() < deadline:
        while (delivery := source.receive(1)) is not None:
            found[int(delivery.message.body.rstrip(b"."))] += 1
            source.acknowledge([delivery.token])
    assert found == Counter(range(LOAD))
