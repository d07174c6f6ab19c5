"""The embedded brokers do their work, keep it, and go away when they should."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from queue import Queue
from threading import Event, Thread
from typing import TYPE_CHECKING

import pytest
import stomp
from confluent_kafka import Consumer, IsolationLevel, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from engine.embedded import EmbeddedArtemis, EmbeddedKafka, free_ports
from engine.embedded.ports import accepts
from engine.errors import SetupError
from tests.processes import gone
from tests.topic_records import ordered_producer
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.embedded.server import EmbeddedServer
    from tests.conftest import TopicFactory

JARS = Path(__file__).parents[3] / ".jars"
MIB = 1024 * 1024


@pytest.fixture
def own_artemis(tmp_path: Path) -> Iterator[EmbeddedArtemis]:
    """One that a test may stop, kill and start."""
    broker = EmbeddedArtemis(tmp_path, *free_ports(3), JARS)
    yield broker
    broker.stop()


@pytest.fixture
def own_kafka(tmp_path: Path) -> Iterator[EmbeddedKafka]:
    broker = EmbeddedKafka(tmp_path, *free_ports(1), JARS)
    yield broker
    broker.stop()


def test_kafka_continues_where_it_stopped(own_kafka: EmbeddedKafka) -> None:
    own_kafka.start()
    with admin_of(own_kafka) as admin:
        admin.create_topics([NewTopic("orders", num_partitions=1)])["orders"].result(timeout=20)
        cluster = admin.list_topics(timeout=20).cluster_id
    assert publish(own_kafka, "orders", b"hello") is None
    own_kafka.stop()

    own_kafka.start()

    assert first_value(own_kafka, "orders") == b"hello"
    with admin_of(own_kafka) as admin:
        assert admin.list_topics(timeout=20).cluster_id == cluster


def test_a_killed_kafka_starts_again_without_waiting_for_the_end_of_its_session(own_kafka: EmbeddedKafka) -> None:
    own_kafka.start()
    with admin_of(own_kafka) as admin:
        admin.create_topics([NewTopic("orders", num_partitions=1)])["orders"].result(timeout=20)
    assert publish(own_kafka, "orders", b"hello") is None
    assert own_kafka.pid is not None
    os.kill(own_kafka.pid, signal.SIGKILL)
    until(lambda: not own_kafka.alive())

    own_kafka.start()

    assert first_value(own_kafka, "orders") == b"hello"
    assert publish(own_kafka, "orders", b"again") is None
    log = own_kafka.log.read_text()
    assert "DUPLICATE_BROKER_REGISTRATION" in log
    assert "Fencing broker" not in log, "without a leader, a transaction that commits loses its markers"


@pytest.mark.kills
def test_a_stop_of_kafka_leaves_no_transaction_open_for_ever(own_kafka: EmbeddedKafka) -> None:
    own_kafka.start()
    admin = admin_of(own_kafka)
    admin.create_topics([NewTopic("t", 4)])["t"].result(20)
    stop = Event()
    producers = [Thread(target=transact, args=(own_kafka, f"t{number}", stop)) for number in range(6)]
    for producer in producers:
        producer.start()
    until(lambda: sum(ends(own_kafka, IsolationLevel.READ_COMMITTED)) > 400, 60)

    own_kafka.stop()
    stop.set()
    for producer in producers:
        producer.join()
    own_kafka.start()
    for number in range(6):
        # What the one before it has left is ended by the next of its name.
        Producer(transactional(own_kafka, f"t{number}")).init_transactions(60)

    committed, written = IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED
    until(lambda: ends(own_kafka, committed) == ends(own_kafka, written), 60)


def test_kafka_makes_no_topic_that_nobody_asked_for(kafka: EmbeddedKafka) -> None:
    error = publish(kafka, "never-created", b"hello")

    assert error is not None
    assert error.code() in {KafkaError._UNKNOWN_TOPIC, KafkaError.UNKNOWN_TOPIC_OR_PART}


def test_kafka_takes_records_of_20_mib(kafka: EmbeddedKafka, topic: TopicFactory) -> None:
    assert publish(kafka, topic("large"), bytes(20 * MIB)) is None


def test_artemis_keeps_messages_over_a_kill(own_artemis: EmbeddedArtemis) -> None:
    own_artemis.start()
    send(own_artemis, "orders", b"hello")
    assert own_artemis.pid is not None
    os.kill(own_artemis.pid, signal.SIGKILL)
    until(lambda: not own_artemis.alive())

    own_artemis.start()

    assert receive(own_artemis, "orders") == b"hello"


def test_a_stomp_client_that_names_no_routing_type_gets_a_queue(artemis: EmbeddedArtemis) -> None:
    send(artemis, "plain", b"hello")

    assert receive(artemis, "plain") == b"hello"


def test_artemis_takes_messages_of_20_mib(artemis: EmbeddedArtemis) -> None:
    body = os.urandom(20 * MIB)

    send(artemis, "large", body)

    assert receive(artemis, "large") == body


def test_brokers_listen_on_127_0_0_1_only(kafka: EmbeddedKafka, artemis: EmbeddedArtemis) -> None:
    for port in (*kafka.ports.values(), *artemis.ports.values()):
        assert accepts(port)
        # A server on all addresses would answer on each address of the loopback network.
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.2", port), timeout=5).close()


def test_what_brokers_keep_is_closed_to_other_users(kafka: EmbeddedKafka, artemis: EmbeddedArtemis) -> None:
    for broker in (kafka, artemis):
        folders = [broker.folder, *(path for path in broker.folder.rglob("*") if path.is_dir())]
        assert len(folders) > 2
        assert [str(folder) for folder in folders if folder.stat().st_mode & 0o077] == []
        assert broker.log.stat().st_mode & 0o077 == 0


def test_ctrl_c_in_the_terminal_does_not_reach_the_brokers(kafka: EmbeddedKafka, artemis: EmbeddedArtemis) -> None:
    for broker in (kafka, artemis):
        assert broker.pid is not None
        assert os.getsid(broker.pid) == broker.pid


def test_brokers_die_with_a_bridge_that_is_killed(tmp_path: Path) -> None:
    code = """
import sys
from pathlib import Path
from engine.embedded import EmbeddedArtemis, free_ports
broker = EmbeddedArtemis(Path(sys.argv[1]), *free_ports(3), Path(sys.argv[2]))
broker.start()
print(broker.pid, flush=True)
sys.stdin.read()
"""
    command = [sys.executable, "-c", code, str(tmp_path), str(JARS)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as bridge:
        assert bridge.stdout is not None
        broker = int(bridge.stdout.readline())
        assert not gone(broker)

        bridge.kill()

        until(lambda: gone(broker))


def test_a_taken_port_is_told_with_its_holder_and_the_setting(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    (port,) = kafka.ports.values()

    with pytest.raises(SetupError) as told:
        EmbeddedKafka(tmp_path, port, JARS).start()

    assert str(told.value) == (
        f"port {port} is in use by java (pid {kafka.pid}): stop that program or set embedded.kafka.port to another port"
    )


def test_an_early_end_is_told_in_one_line_with_its_cause_and_the_log(own_kafka: EmbeddedKafka) -> None:
    own_kafka.start()
    own_kafka.stop()
    meta = own_kafka.folder / "data" / "meta.properties"
    meta.write_text(meta.read_text().replace("node.id=1", "node.id=7"))

    message = refusal(own_kafka)

    assert message.startswith("embedded Kafka ended at start: ")
    assert "node" in message
    assert message.endswith(f"see {own_kafka.log}")


def test_a_second_bridge_on_the_same_data_is_refused(artemis: EmbeddedArtemis) -> None:
    second = EmbeddedArtemis(artemis.folder.parent, *free_ports(3), JARS)

    message = refusal(second)

    assert "lock" in message.lower()
    assert artemis.alive()


def refusal(broker: EmbeddedServer) -> str:
    """The one line with which a start fails."""
    with pytest.raises(SetupError) as told:
        broker.start()
    assert not broker.alive()
    assert "\n" not in str(told.value)
    return str(told.value)


def admin_of(kafka: EmbeddedKafka) -> AdminClient:
    return AdminClient({"bootstrap.servers": kafka.bootstrap, "log_level": 0})


def transactional(kafka: EmbeddedKafka, name: str) -> dict[str, str | int]:
    return {"bootstrap.servers": kafka.bootstrap, "transactional.id": name, "log_level": 0}


def transact(kafka: EmbeddedKafka, name: str, stop: Event) -> None:
    """One transaction after the other over all partitions of `t`, until Kafka is gone."""
    producer = Producer(transactional(kafka, name))
    with suppress(KafkaException):
        producer.init_transactions(20)
        while not stop.is_set():
            producer.begin_transaction()
            for number in range(8):
                producer.produce("t", b"x", partition=number % 4)
            producer.commit_transaction(5)


def ends(kafka: EmbeddedKafka, level: IsolationLevel) -> list[int]:
    """Where the partitions of `t` end for such a reader."""
    wanted = {TopicPartition("t", partition): OffsetSpec.latest() for partition in range(4)}
    found: list[int] = []

    def asked() -> bool:
        admin = admin_of(kafka)
        try:
            answers = admin.list_offsets(wanted, isolation_level=level, request_timeout=20)
            found[:] = [future.result().offset for future in answers.values()]
        except KafkaException:
            return False  # Its partitions have no leader yet.
        return True

    until(asked)
    return found


def publish(kafka: EmbeddedKafka, topic: str, value: bytes) -> KafkaError | None:
    """Sends one record; returns what stood against it."""
    outcome: list[KafkaError | None] = []
    impatient = {"topic.metadata.propagation.max.ms": 1000, "message.max.bytes": 30 * MIB}
    producer = ordered_producer(kafka.bootstrap, impatient)
    producer.produce(topic, value, on_delivery=lambda error, _: outcome.append(error))
    assert producer.flush(60) == 0
    return outcome[0]


def first_value(kafka: EmbeddedKafka, topic: str) -> bytes | None:
    settings = {"bootstrap.servers": kafka.bootstrap, "group.id": "unused", "log_level": 0}
    with Consumer(settings) as consumer:
        consumer.assign([TopicPartition(topic, 0, 0)])
        record = consumer.poll(30)
        assert record is not None
        assert record.error() is None
        return record.value()


def connect(artemis: EmbeddedArtemis) -> stomp.Connection12:
    host, _, port = artemis.stomp_url.removeprefix("stomp://").partition(":")
    connection = stomp.Connection12([(host, int(port))], auto_decode=False)
    connection.connect(wait=True)
    return connection


def send(artemis: EmbeddedArtemis, destination: str, body: bytes) -> None:
    connection = connect(artemis)
    stored = stomp.WaitingListener("stored")
    connection.set_listener("stored", stored)
    connection.send(destination, body, persistent="true", receipt="stored")
    stored.wait_on_receipt()
    connection.disconnect()


def receive(artemis: EmbeddedArtemis, queue: str) -> bytes:
    bodies = Bodies()
    connection = connect(artemis)
    connection.set_listener("bodies", bodies)
    connection.subscribe(queue, id="1", headers={"subscription-type": "ANYCAST"})
    try:
        return bodies.received.get(timeout=60)
    finally:
        connection.disconnect()


class Bodies(stomp.ConnectionListener):
    def __init__(self) -> None:
        self.received: Queue[bytes] = Queue()

    def on_message(self, frame: stomp.utils.Frame) -> None:
        self.received.put(frame.body)
