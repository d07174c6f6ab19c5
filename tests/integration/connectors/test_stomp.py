"""What is STOMP's own: topics, selectors, TLS, and how Artemis puts other systems' messages into frames."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from engine.errors import SetupError
from engine.message import BodyType
from engine.telemetry.status import State
from tests.integration.connectors.harness import Outgoing
from tests.integration.connectors.running import bodies, numbered, numbers, read
from tests.integration.connectors.stomp_harness import amqp
from tests.waiting import until

if TYPE_CHECKING:
    from pathlib import Path

    from engine.embedded import EmbeddedKafka
    from tests.integration.connectors.conftest import Configure, Start
    from tests.integration.connectors.stomp_harness import StompHarness


def publish(stomp: StompHarness, topic: str, *texts: str, **headers: str) -> None:
    with stomp.peer() as peer:
        peer.send(topic, [(headers, text.encode()) for text in texts], "MULTICAST")


def test_a_topic_is_listened_to(
    stomp: StompHarness, configured: Configure, start: Start, queue: str, kafka: EmbeddedKafka
) -> None:
    config = configured(stomp.settings(queue) | {".destinations": f"topic:{queue}"})
    source = start(config)
    until(lambda: source.connected)

    publish(stomp, queue, "one", "two")
    source.acknowledges(2)

    found = read(kafka.bootstrap, config.journal.topic)
    assert {located.record.value for located in found} == {b"one", b"two"}
    assert {located.message.headers["JMSDestination"] for located in found} == {f"topic:{queue}"}


def test_a_durable_subscription_keeps_what_is_published_while_the_bridge_is_away(
    stomp: StompHarness, configured: Configure, start: Start, queue: str, kafka: EmbeddedKafka
) -> None:
    topics = f"topic:{queue}.a, topic:{queue}.b"
    config = configured(
        stomp.settings(queue) | {".destinations": topics, ".subscription": "keep", ".client-id": f"c-{queue}"}
    )
    source = start(config)
    until(lambda: source.connected)
    source.stop()

    publish(stomp, f"{queue}.a", "one")
    publish(stomp, f"{queue}.b", "two")
    again = start(config)
    again.acknowledges(2)

    assert sorted(bodies(kafka.bootstrap, config.journal.topic)) == [b"one", b"two"]
    assert stomp.manage(f"queue.c-{queue}.keep.{queue}.a", "messageCount") == "0"


def test_the_broker_applies_the_selector(
    stomp: StompHarness, configured: Configure, start: Start, queue: str, kafka: EmbeddedKafka
) -> None:
    config = configured(stomp.settings(queue) | {".selector": "region = 'emea: \\\\ 1'"})
    regions = ["emea: \\ 1", "apac", "emea: \\ 1"]
    stomp.send(queue, [Outgoing(str(n).encode(), properties={"region": r}) for n, r in enumerate(regions)])

    start(config).acknowledges(2)

    assert sorted(bodies(kafka.bootstrap, config.journal.topic)) == [b"0", b"2"]
    assert stomp.waiting(queue) == 1


def test_several_workers_share_queues_and_only_the_first_listens_to_topics(
    stomp: StompHarness, configured: Configure, start: Start, queue: str, kafka: EmbeddedKafka
) -> None:
    destinations = f"queue:{queue}, queue:{queue}-2, topic:{queue}-t"
    config = configured(stomp.settings(queue) | {".destinations": destinations, ".workers": "2"})
    workers = [start(config), start(config, 2)]
    until(lambda: all(worker.status.current.state is State.READY for worker in workers))

    for name in (queue, f"{queue}-2"):
        stomp.send(name, [Outgoing(f"{name} {n}".encode()) for n in range(500)])
    publish(stomp, f"{queue}-t", *(f"{queue}-t {n}" for n in range(20)))
    until(lambda: sum(worker.count("acknowledged") for worker in workers) == 1020)

    expected = [f"{name} {n}" for name in (queue, f"{queue}-2") for n in range(500)]
    expected += [f"{queue}-t {n}" for n in range(20)]
    assert sorted(body.decode() for body in bodies(kafka.bootstrap, config.journal.topic)) == sorted(expected)
    assert all(worker.count("acknowledged") > 0 for worker in workers)


def test_messages_that_came_to_the_broker_by_amqp_keep_what_a_frame_can_hold(
    stomp: StompHarness, configured: Configure, start: Start, queue: str, kafka: EmbeddedKafka
) -> None:
    config = configured(stomp.settings(queue))
    stomp.create(queue)
    properties = {"region": "emea", "n": 5, "x y": "sp", "é": "ü", "yes": True, "f": 1.5}
    text = amqp("proton").Message(
        id="my-id", body="hello é", correlation_id="c1", subject="typ", reply_to="replies", priority=3, durable=True
    )
    text.properties, text.group_id, text.group_sequence, text.user_id = properties, "g", 5, b"me"
    text.creation_time = 1_700_000_000
    data = amqp("proton").Message(body=b"\x00\x01\xff", inferred=True)
    stomp.amqp(queue, [text, data, amqp("proton").Message(body={"a": 1})])

    start(config).acknowledges(3)

    by_type = {located.message.body_type: located.message for located in read(kafka.bootstrap, config.journal.topic)}
    message = by_type[BodyType.TEXT]
    assert message.body == "hello é".encode()
    assert {name: value.text for name, value in message.properties.items()} == {
        "region": "emea",
        "n": "5",
        "x y": "sp",
        "é": "ü",
        "yes": "true",
        "f": "1.5",
    }
    expected = {
        "JMSMessageID": "ID:AMQP_NO_PREFIX:my-id",
        "JMSCorrelationID": "c1",
        "JMSType": "typ",
        "JMSReplyTo": "queue:replies",
        "JMSPriority": "3",
        "JMSTimestamp": "1700000000000",
        "JMSDeliveryMode": "PERSISTENT",
        "JMSXGroupID": "g",
        "JMSXGroupSeq": "5",
        "JMSXUserID": "me",
    }
    assert {name: message.headers.get(name) for name in expected} == expected
    assert by_type[BodyType.BYTES].body == b"\x00\x01\xff"
    assert by_type[BodyType.MAP].body == b""


def test_a_message_that_the_broker_cannot_put_into_a_frame_stays_with_the_broker(
    stomp: StompHarness, configured: Configure, start: Start, queue: str, kafka: EmbeddedKafka
) -> None:
    config = configured(stomp.settings(queue))
    stomp.create(queue)
    stream = amqp("proton").Message(body=["precious", 1], durable=True)
    stomp.amqp(queue, [amqp("proton").Message(body="before"), stream, amqp("proton").Message(body="after")])

    source = start(config)
    source.acknowledges(2)
    source.stop()

    assert sorted(bodies(kafka.bootstrap, config.journal.topic)) == [b"after", b"before"]
    assert stomp.waiting(queue) == 1


def test_a_message_that_was_delivered_before_says_so(
    stomp: StompHarness, configured: Configure, start: Start, queue: str, kafka: EmbeddedKafka
) -> None:
    config = configured(stomp.settings(queue))
    stomp.send(queue, [Outgoing()])
    with stomp.peer() as peer:
        headers = {"destination": queue, "id": "1", "ack": "client-individual", "subscription-type": "ANYCAST"}
        peer.write(peer.frame("SUBSCRIBE", headers))
        peer.expect("MESSAGE")
    until(lambda: stomp.manage(f"queue.{queue}", "deliveringCount") == "0")

    start(config).acknowledges(1)

    (located,) = read(kafka.bootstrap, config.journal.topic)
    assert located.message.headers["JMSRedelivered"] == "true"


def test_a_client_cannot_pass_for_the_bridge_but_may_say_where_a_message_comes_from(
    stomp: StompHarness, configured: Configure, start: Start, queue: str, kafka: EmbeddedKafka
) -> None:
    config = configured(stomp.settings(queue))
    stomp.send(queue, [Outgoing(properties={"jmsbridge.origin": "other", "jmsbridge.position": "x:0:0"})])

    start(config).acknowledges(1)

    (located,) = read(kafka.bootstrap, config.journal.topic)
    assert located.record.header("jmsbridge.origin") == "other"
    assert located.record.header("jmsbridge.position") is None


@pytest.mark.usefixtures("impatient")
def test_a_port_where_something_else_listens_is_reported(
    stomp: StompHarness, configured: Configure, start: Start, queue: str, artemis: object
) -> None:
    amqp = int(str(artemis.amqp_url).rpartition(":")[2])  # type: ignore[attr-defined]
    source = start(configured(stomp.settings(queue, amqp)))

    until(lambda: source.status.current.state is State.DEGRADED)

    assert f"stomp://127.0.0.1:{amqp}" in source.status.current.detail


def test_a_tls_file_that_is_no_certificate_is_told_at_once(
    stomp: StompHarness, configured: Configure, start: Start, queue: str, tmp_path: Path
) -> None:
    (tmp_path / "ca.pem").write_text("not a certificate")
    source = start(configured(stomp.settings(queue) | {".url": "stomp+ssl://127.0.0.1:1", ".tls.ca": "ca.pem"}))
    source.join()

    assert isinstance(source.error, SetupError)
    assert "'src': TLS cannot use" in str(source.error)
    assert "ca.pem: " in str(source.error)


@pytest.mark.parametrize("annotation", [1, 2, 4])
def test_the_type_that_a_jms_sender_by_amqp_declares_is_kept(
    stomp: StompHarness, configured: Configure, start: Start, queue: str, kafka: EmbeddedKafka, annotation: int
) -> None:
    config = configured(stomp.settings(queue))
    stomp.create(queue)
    marked = amqp("proton").Message(body=b"\xac\xed", inferred=True)
    marked.annotations = {amqp("proton").symbol("x-opt-jms-msg-type"): annotation}
    stomp.amqp(queue, [marked])

    start(config).acknowledges(1)

    (located,) = read(kafka.bootstrap, config.journal.topic)
    assert located.message.body_type is {1: BodyType.OBJECT, 2: BodyType.MAP, 4: BodyType.STREAM}[annotation]


def test_acknowledging_all_up_to_a_message_takes_every_queue_and_nothing_that_is_not_journaled(
    stomp: StompHarness, configured: Configure, start: Start, queue: str, kafka: EmbeddedKafka
) -> None:
    queues = [f"{queue}.{letter}" for letter in "ab"]
    destinations = ", ".join(f"queue:{name}" for name in queues)
    config = configured(stomp.settings(queue) | {".destinations": destinations, ".acknowledge": "cumulative"})
    for name in queues:
        stomp.send(name, numbered(1500, size=600))
    source = start(config)
    source.acknowledges(1)
    source.stop()
    taken = source.count("acknowledged")
    assert source.count("received") == taken
    # Artemis may answer the end of a connection before it has counted the last acknowledgement.
    until(lambda: taken + sum(stomp.waiting(name) for name in queues) == 3000)

    last = start(config)
    last.acknowledges(3000 - taken)
    last.stop()
    assert [stomp.waiting(name) for name in queues] == [0, 0]
    assert sorted(numbers(kafka.bootstrap, config.journal.topic)) == sorted(2 * list(range(1500)))
