"""What clients receive from a sink that listens: Qpid JMS and Qpid Proton, selectors, turns, and clients that leave."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer

from engine.connectors.amqp_listener.limits import ListenerLimits
from engine.connectors.amqp_listener.sink import AmqpListenerSink
from engine.embedded.ports import accepts
from engine.kafka.clients import sink_group
from engine.message import BodyType, Message
from routes.properties import JmsType, Property
from tests.integration.connectors.sinks import SINK, RouterStandIn, committed, configure, numbered
from tests.waiting import until

if TYPE_CHECKING:
    from pathlib import Path

    from engine.embedded import EmbeddedKafka
    from routes.model import Config
    from tests.integration.connectors.conftest import Connect, StartSink
    from tests.integration.connectors.sinks import RunningSink


@pytest.fixture
def config(tmp_path: Path, kafka: EmbeddedKafka, queue: str, port: int) -> Config:
    settings = {".type": "amqp", ".listen": f"amqp://127.0.0.1:{port}", "routing.on-soft-failure": "skip"}
    return configure(tmp_path, kafka.bootstrap, queue, settings)


@pytest.fixture
def sink(config: Config, start_sink: StartSink, port: int) -> RunningSink:
    running = start_sink(config)
    until(lambda: accepts(port))
    return running


def test_a_client_receives_what_waited_for_it_with_its_types(
    config: Config, sink: RunningSink, queue: str, connect: Connect
) -> None:
    headers = {"JMSMessageID": "ID:1", "JMSCorrelationID": "c", "JMSType": "new", "JMSPriority": "7"}
    properties = {"n": Property("5", JmsType.INT), "x": Property("1.5", JmsType.FLOAT)}
    text = Message("grüße".encode(), headers=headers, properties=properties)
    RouterStandIn(config).give(f"queue/{queue}", [text, Message(b"\0\1", BodyType.BYTES, {"JMSMessageID": "ID:2"})])
    client = connect()
    found = [client.receive(f"queue:{queue}") for _ in range(2)]
    received = next(each for each in found if each["type"] == "text")
    wanted = {"body": "grüße", "JMSType": "new", "JMSCorrelationID": "c", "JMSPriority": "7", "property n": "int:5"}
    assert {name: received[name] for name in wanted} == wanted
    assert received["property x"] == "float:1.5"
    assert received["JMSDestination"] == f"queue:{queue}"
    assert next(each for each in found if each["type"] == "bytes")["body"] == "AAE="
    sink.delivers(2)
    sink.stop()
    assert committed(config) == 2


def test_receivers_of_a_queue_share_it_and_those_of_a_topic_get_everything(
    config: Config, sink: RunningSink, queue: str, connect: Connect
) -> None:
    clients = [connect(), connect()]
    for client in clients:
        client.open(f"queue:{queue}")
        client.open(f"topic:{queue}")
    router = RouterStandIn(config)
    router.give(f"queue/{queue}", numbered(10))
    found = [[client.receive(f"queue:{queue}")["body"] for _ in range(5)] for client in clients]
    assert sorted(int(body) for each in found for body in each) == list(range(10))
    router.give(f"topic/{queue}", numbered(5))
    for client in clients:
        assert sorted(client.receive(f"topic:{queue}")["body"] for _ in range(5)) == list("01234")
    router.give(f"topic/{queue}.nobody", numbered(1))
    sink.delivers(16)


def test_a_selector_chooses_and_others_get_the_rest(
    config: Config, sink: RunningSink, queue: str, connect: Connect
) -> None:
    urgent, plain = connect(), connect()
    urgent.select(f"queue:{queue}", "amount > 5 AND JMSPriority = 7")
    messages = [
        Message(str(n).encode(), headers={"JMSPriority": "7"}, properties={"amount": Property(str(n), JmsType.INT)})
        for n in range(10)
    ]
    RouterStandIn(config).give(f"queue/{queue}", messages)
    assert sorted(urgent.receive(f"queue:{queue}")["body"] for _ in range(4)) == ["6", "7", "8", "9"]
    assert urgent.receive(f"queue:{queue}", 0.5) == {}
    assert sorted(plain.receive(f"queue:{queue}")["body"] for _ in range(6)) == ["0", "1", "2", "3", "4", "5"]
    sink.delivers(10)


def test_what_a_client_had_when_it_left_goes_to_another_as_redelivered(
    config: Config, sink: RunningSink, queue: str, connect: Connect, port: int
) -> None:
    proton, receiving = witness(port)
    RouterStandIn(config).give(f"queue/{queue}", numbered(3, keys=1))
    connection, receiver = receiving(f"queue://{queue}", credit=10)
    assert [receiver.receive(10).body for _ in range(3)] == ["0", "1", "2"]
    connection.conn.transport.close_tail()
    connection.conn.transport.close_head()
    connection.container.stop()
    del proton
    client = connect()
    found = [client.receive(f"queue:{queue}", 40) for _ in range(3)]
    assert [(each["body"], each["JMSRedelivered"]) for each in found] == [("0", "true"), ("1", "true"), ("2", "true")]
    sink.delivers(3)


def test_a_message_that_is_released_comes_again_and_one_that_is_rejected_does_not(
    config: Config, sink: RunningSink, queue: str, port: int
) -> None:
    _, receiving = witness(port)
    RouterStandIn(config).give(f"queue/{queue}", numbered(3, keys=1))
    connection, receiver = receiving(f"queue://{queue}", credit=1)
    assert receiver.receive(10).body == "0"
    receiver.release(delivered=False)
    # What was on its way already comes before it.
    found = []
    for _ in range(3):
        found.append(receiver.receive(10).body)
        receiver.reject() if found[-1] == "1" else receiver.accept()
    assert sorted(found) == ["0", "1", "2"]
    # Only now Proton says the last of it.
    connection.close()
    sink.delivers(2)
    until(lambda: sink.count("rejected_messages", reason="refused", policy="skip") == 1)
    assert sink.error is None


def test_a_client_that_asks_for_one_at_a_time_gets_one_or_nothing(
    config: Config, sink: RunningSink, queue: str, connect: Connect
) -> None:
    client = connect("?jms.prefetchPolicy.all=0")
    assert client.receive(f"queue:{queue}", 0.5) == {}
    RouterStandIn(config).give(f"queue/{queue}", numbered(2, keys=1))
    assert [client.receive(f"queue:{queue}")["body"] for _ in range(2)] == ["0", "1"]
    assert client.receive(f"queue:{queue}", 0.5) == {}
    sink.delivers(2)


def test_many_messages_arrive_in_order_and_once(
    config: Config, sink: RunningSink, queue: str, connect: Connect
) -> None:
    RouterStandIn(config).give(f"queue/{queue}", numbered(3000, keys=1))
    client = connect()
    assert [int(client.receive(f"queue:{queue}", 30)["body"]) for _ in range(3000)] == list(range(3000))
    sink.delivers(3000)


def test_sending_is_refused(sink: RunningSink, queue: str, connect: Connect) -> None:
    with pytest.raises(AssertionError, match="nothing can be sent here"):
        connect().post(f"queue:{queue}", [{"body": "x"}])
    assert sink.error is None


def test_messages_that_nobody_wants_do_not_hold_up_the_end(config: Config, sink: RunningSink, queue: str) -> None:
    RouterStandIn(config).give(f"queue/{queue}", numbered(10))
    until(lambda: sink.sample("jmsbridge_sink_lag_records", component="sink:out") >= 10 or sink.error)
    sink.stop(6)
    assert sink.error is None
    assert committed(config) == 0


def test_what_clients_have_taken_does_not_come_again_because_of_one_that_nobody_takes(
    config: Config, start_sink: StartSink, queue: str, connect: Connect
) -> None:
    router, first = RouterStandIn(config), start_sink(config)
    router.give(f"queue/{queue}.unread", numbered(1, keys=1))
    router.give(f"queue/{queue}", numbered(1000, keys=1))
    client = connect()
    assert [int(client.receive(f"queue:{queue}")["body"]) for _ in range(1000)] == list(range(1000))
    first.delivers(1000)
    first.stop()
    assert committed(config) == 0

    second = start_sink(config)
    router.give(f"queue/{queue}", numbered(1, begin=1000, keys=1))
    client = connect()
    assert client.receive(f"queue:{queue}", 30)["body"] == "1000"
    assert client.receive(f"queue:{queue}", 0.5) == {}
    assert client.receive(f"queue:{queue}.unread")["body"] == "0"
    second.delivers(2)
    second.stop()
    assert committed(config) == 1002


def test_a_queue_that_nobody_takes_from_does_not_hold_up_another_one(
    config: Config, start_sink: StartSink, queue: str, connect: Connect, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(AmqpListenerSink, "most_under_way", 50)
    limits = ListenerLimits(stalled_seconds=1.0, stalled_messages=20)
    monkeypatch.setattr(ListenerLimits, "of", lambda _: limits)
    router, sink = RouterStandIn(config), start_sink(config)
    until(lambda: accepts(port))
    router.give(f"queue/{queue}.unread", numbered(60, keys=1))
    router.give(f"queue/{queue}", numbered(5, keys=1))
    client = connect()
    assert [client.receive(f"queue:{queue}", 30)["body"] for _ in range(5)] == [str(number) for number in range(5)]
    # The window was full with 50; 20 of these stay, and ten came behind them.
    kept = [int(client.receive(f"queue:{queue}.unread", 10)["body"]) for _ in range(30)]
    assert kept == [*range(20), *range(50, 60)]
    sink.delivers(35)
    assert sink.error is None


def test_what_waits_is_there_once_after_its_partitions_were_another_readers(
    config: Config, sink: RunningSink, queue: str, connect: Connect
) -> None:
    RouterStandIn(config).give(f"queue/{queue}", numbered(20))
    until(lambda: sink.sample("jmsbridge_sink_lag_records", component="sink:out") >= 20 or sink.error)
    other = Consumer({"bootstrap.servers": config.bootstrap_servers, "group.id": sink_group(config.bridge_id, SINK)})
    other.subscribe([config.sinks[0].topic])
    until(lambda: other.poll(0.1) is None and other.assignment())
    other.close()
    until(lambda: sink.count("reconnects") >= 1 and sink.sample("jmsbridge_connection_up", component="sink:out") == 1)
    client = connect()
    assert sorted(int(client.receive(f"queue:{queue}", 30)["body"]) for _ in range(20)) == list(range(20))
    assert client.receive(f"queue:{queue}", 0.5) == {}
    sink.delivers(20)


def witness(port: int) -> tuple[Any, Callable[..., Any]]:
    """Qpid Proton and what makes a connection with a receiver."""
    proton = pytest.importorskip("proton", reason="a witness that set-up can do without")
    utils = pytest.importorskip("proton.utils")

    def receiving(address: str, credit: int) -> Any:
        connection = utils.BlockingConnection(f"amqp://127.0.0.1:{port}", timeout=20)
        return connection, connection.create_receiver(address, credit=credit)

    return proton, receiving
