"""The AMQP listener with real clients: Qpid JMS and Qpid Proton, logins, refusals, kills, and Kafka away."""

from __future__ import annotations

import socket
import time
from typing import TYPE_CHECKING

import pytest

from engine.embedded import EmbeddedKafka
from engine.embedded.ports import accepts
from engine.message import BodyType
from routes.properties import JmsType, Property
from tests.integration.connectors.amqp_jms import QpidClient
from tests.integration.connectors.amqp_listeners import Sending, SourceProcess, listening
from tests.integration.connectors.running import numbers, read
from tests.processes import paused
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from engine.message import Message
    from routes.model import Config
    from tests.integration.connectors.conftest import Configure, Connect, Start


def journaled(kafka: EmbeddedKafka, config: Config) -> list[Message]:
    return [located.message for located in read(kafka.bootstrap, config.journal.topic)]


def test_every_class_of_message_is_in_the_journal_when_its_send_returns(
    kafka: EmbeddedKafka, configured: Configure, start: Start, port: int, queue: str, connect: Connect
) -> None:
    config = configured(listening(port, f"queue:{queue}", f"topic:{queue}.*"))
    start(config)
    client = connect()
    forms = [
        {"type": "text", "body": "grüße", "JMSType": "t", "JMSCorrelationID": "c", "property n": "int:5"},
        {"type": "bytes", "body": "AAH/"},
        {"type": "map", "entry a": "long:5"},
        {"type": "stream", "item 0": "boolean:true"},
        {"type": "object", "body": "string:x"},
        {"type": "empty"},
    ]
    client.post(f"queue:{queue}", forms)
    client.post(f"topic:{queue}.prices", [{"body": "7", "JMSDeliveryMode": "NON_PERSISTENT"}])

    found = journaled(kafka, config)
    by_type = {message.body_type: message for message in found if message.headers["JMSDestination"] == f"queue:{queue}"}
    assert set(by_type) == {BodyType.TEXT, BodyType.BYTES, BodyType.MAP, BodyType.STREAM, BodyType.OBJECT}
    text = next(message for message in found if message.body == "grüße".encode())
    assert (text.headers["JMSType"], text.headers["JMSCorrelationID"]) == ("t", "c")
    assert text.properties["n"] == Property("5", JmsType.INT)
    (price,) = (message for message in found if message.headers["JMSDestination"] == f"topic:{queue}.prices")
    assert (price.body, price.headers["JMSDeliveryMode"]) == (b"7", "NON_PERSISTENT")
    assert len(found) == 7


def test_a_producer_without_a_destination_sends_where_each_message_says(
    kafka: EmbeddedKafka, configured: Configure, start: Start, port: int, queue: str, connect: Connect
) -> None:
    config = configured(listening(port, f"queue:{queue}", f"topic:{queue}"))
    start(config)
    client = connect()
    client.relay(f"queue:{queue}", [{"body": "q"}])
    client.relay(f"topic:{queue}", [{"body": "t"}])
    assert {message.body: message.headers["JMSDestination"] for message in journaled(kafka, config)} == {
        b"q": f"queue:{queue}",
        b"t": f"topic:{queue}",
    }
    with pytest.raises(AssertionError, match="queue:elsewhere is not among the destinations that this bridge takes"):
        client.relay("queue:elsewhere", [{"body": "x"}])


@pytest.mark.parametrize(
    ("perform", "error"),
    [
        (lambda client: client.post("queue:elsewhere", [{"body": "x"}]), "InvalidDestinationException.*not-found"),
        (lambda client: client.post("queue:taken", [{"body": "x" * 80_000}]), "message-size-exceeded"),
        (lambda client: client.open("queue:taken"), "nothing can be received here"),
    ],
)
def test_what_is_refused_is_told_and_others_go_on(
    kafka: EmbeddedKafka,
    configured: Configure,
    start: Start,
    port: int,
    queue: str,
    connect: Connect,
    perform: Callable[[QpidClient], None],
    error: str,
) -> None:
    config = configured({**listening(port, "queue:taken"), "journal.max-message-bytes": "65536"})
    source = start(config)
    client, other = connect(), connect()
    with pytest.raises(AssertionError, match=error):
        perform(client)
    other.post("queue:taken", [{"body": "fine"}])
    assert [message.body for message in journaled(kafka, config)] == [b"fine"]
    assert source.error is None


def test_a_login_is_wanted_where_one_is_configured(
    kafka: EmbeddedKafka, configured: Configure, start: Start, port: int, queue: str, connect: Connect
) -> None:
    config = configured(listening(port, f"queue:{queue}", username="app", password="s3cret"))
    start(config)
    for options in ("", "?jms.username=app&jms.password=wrong", "?jms.username=other&jms.password=s3cret"):
        with pytest.raises(AssertionError, match="JMSSecuritySaslException"):
            connect(options)
    connect("?jms.username=app&jms.password=s3cret").post(f"queue:{queue}", [{"body": "in"}])
    assert len(journaled(kafka, config)) == 1


def test_messages_that_their_sender_settled_are_taken(
    kafka: EmbeddedKafka, configured: Configure, start: Start, port: int, queue: str, connect: Connect
) -> None:
    config = configured(listening(port, f"queue:{queue}"))
    source = start(config)
    connect("?jms.presettlePolicy.presettleProducers=true").post(f"queue:{queue}", [{"body": "x"}] * 1000)
    source.acknowledges(1000)
    until(lambda: len(journaled(kafka, config)) >= 1000, 30, "1000 messages in the journal")
    assert len(journaled(kafka, config)) == 1000


@pytest.mark.kills
def test_nothing_is_lost_when_the_bridge_is_killed_and_what_was_accepted_is_there(
    kafka: EmbeddedKafka, configured: Configure, port: int, queue: str, tmp_path: Path
) -> None:
    config = configured(listening(port, f"queue:{queue}"))
    process = SourceProcess(config.path, port)
    sending = Sending(f"amqp://127.0.0.1:{port}", queue, 60_000, 100, tmp_path / "sending.log")
    try:
        for accepted in (5, 20):
            until(lambda accepted=accepted: sending.accepted >= accepted or not sending.running, 60)
            assert sending.running
            process.kill()
            process.start()
        sending.finish()
    finally:
        process.kill()
    assert set(numbers(kafka.bootstrap, config.journal.topic)) == set(range(60_000))


def test_a_client_waits_while_kafka_is_away_and_keeps_its_connection(
    kafka: EmbeddedKafka, configured: Configure, start: Start, port: int, queue: str, tmp_path: Path
) -> None:
    config = configured(listening(port, f"queue:{queue}", heartbeat="1s"))
    source = start(config)
    until(lambda: accepts(port))
    url = f"amqp://127.0.0.1:{port}?amqp.idleTimeout=2000"
    sending = Sending(url, queue, 12_000, 100, tmp_path / "sending.log")
    until(lambda: sending.accepted >= 3)
    with paused(kafka.pid):
        # Longer than the client waits for heart-beats.
        time.sleep(4)
        stalled = source.count("acknowledged")
        time.sleep(1)
        assert source.count("acknowledged") == stalled < 12_000
        assert sending.running
    sending.finish()
    assert "again" not in (tmp_path / "sending.log").read_text()
    assert sorted(numbers(kafka.bootstrap, config.journal.topic)) == list(range(12_000))


def test_clients_do_not_hold_each_other_up(
    kafka: EmbeddedKafka, configured: Configure, start: Start, port: int, queue: str, connect: Connect
) -> None:
    config = configured(listening(port, f"queue:{queue}"))
    start(config)
    clients = [connect() for _ in range(3)]
    # One says nothing, one says nonsense, one stops in the middle of a frame.
    with socket.create_connection(("127.0.0.1", port)) as silent, socket.create_connection(("127.0.0.1", port)) as odd:
        odd.sendall(b"GET / HTTP/1.1\r\n\r\n")
        silent.sendall(b"AMQP\x00\x01\x00\x00\x00\x00\xff\xff")
        for client in clients:
            client.begin_post(f"queue:{queue}", [{"body": str(number)} for number in range(500)])
        assert [client.answered() for client in clients] == [""] * 3
        assert odd.recv(100) == b"AMQP\x00\x01\x00\x00"
        assert odd.recv(100) == b""
    found = numbers(kafka.bootstrap, config.journal.topic)
    assert sorted(found) == sorted([*range(500)] * 3)


def test_a_clean_stop_accepts_what_the_journal_has_and_says_good_bye(
    kafka: EmbeddedKafka, configured: Configure, start: Start, port: int, queue: str, tmp_path: Path
) -> None:
    config = configured(listening(port, f"queue:{queue}"))
    source = start(config)
    until(lambda: accepts(port))
    sending = Sending(f"amqp://127.0.0.1:{port}", queue, 9_000, 100, tmp_path / "sending.log")
    until(lambda: sending.accepted >= 3)
    source.stop()
    assert source.error is None
    start(config)
    sending.finish()
    log = (tmp_path / "sending.log").read_text()
    assert "amqp:connection:forced" in log
    assert sorted(set(numbers(kafka.bootstrap, config.journal.topic))) == list(range(9_000))


def test_proton_is_another_client(
    kafka: EmbeddedKafka, configured: Configure, start: Start, port: int, queue: str
) -> None:
    proton = pytest.importorskip("proton", reason="a witness that set-up can do without")
    utils = pytest.importorskip("proton.utils")
    config = configured(listening(port, f"queue:{queue}", username="app", password="s3cret"))
    start(config)
    until(lambda: accepts(port))
    connection = utils.BlockingConnection(
        f"amqp://app:s3cret@127.0.0.1:{port}", allowed_mechs="PLAIN", sasl_enabled=True, allow_insecure_mechs=True
    )
    sender = connection.create_sender(f"queue://{queue}")
    for number in range(10):
        sender.send(proton.Message(body=str(number)))
    large = "x" * 600_000
    sender.send(proton.Message(body=large))
    connection.close()
    bodies = sorted(message.body for message in journaled(kafka, config))
    assert bodies == sorted([*(str(number).encode() for number in range(10)), large.encode()])
