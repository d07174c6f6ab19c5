"""What is the AMQP source's own: types, topics, selectors, durable subscriptions, and what the broker says of them."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import pytest

from engine.message import BodyType
from engine.telemetry.status import State
from routes.properties import JmsType, Property
from tests.integration.connectors.harness import Outgoing
from tests.integration.connectors.running import bodies, numbered, numbers, read
from tests.integration.connectors.worker import start_worker
from tests.processes import pause
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.embedded import EmbeddedKafka
    from engine.message import Message
    from tests.integration.connectors.amqp_harness import AmqpHarness
    from tests.integration.connectors.amqp_jms import QpidClient
    from tests.integration.connectors.conftest import Configure, Start
    from tests.integration.connectors.stomp_harness import StompHarness

TYPED = {
    "property boolean": "boolean:true",
    "property byte": "byte:-128",
    "property short": "short:32767",
    "property int": "int:-2147483648",
    "property long": "long:9223372036854775807",
    "property float": "float:1.5",
    "property double": "double:-1.0E-300",
    "property string": "string:grüße ☃",
}


@pytest.fixture
def taken(
    amqp: AmqpHarness, qpid: QpidClient, configured: Configure, start: Start, queue: str, kafka: EmbeddedKafka
) -> Taken:
    return Taken(amqp, qpid, configured, start, queue, kafka)


class Taken:
    """Sends with Qpid JMS, and reads back what a source made of it."""

    def __init__(
        self, amqp: AmqpHarness, qpid: QpidClient, configured: Configure, start: Start, queue: str, kafka: EmbeddedKafka
    ) -> None:
        self._qpid, self._queue, self._kafka = qpid, queue, kafka
        self._config = configured(amqp.settings(queue))
        self._start = start

    def __call__(self, **form: str) -> Message:
        self._qpid.send(f"queue:{self._queue}", [form])
        self._start(self._config).acknowledges(1)
        (located,) = read(self._kafka.bootstrap, self._config.journal.topic)
        return located.message


def test_properties_of_every_type_keep_it(taken: Taken) -> None:
    message = taken(**TYPED)

    expected = {
        "boolean": Property("true", JmsType.BOOLEAN),
        "byte": Property("-128", JmsType.BYTE),
        "short": Property("32767", JmsType.SHORT),
        "int": Property("-2147483648", JmsType.INT),
        "long": Property("9223372036854775807", JmsType.LONG),
        "float": Property("1.5", JmsType.FLOAT),
        "double": Property("-1e-300", JmsType.DOUBLE),
        "string": Property("grüße ☃", JmsType.STRING),
    }
    assert {name: message.properties[name] for name in expected} == expected


def test_fields_keep_what_the_sender_set(taken: Taken) -> None:
    form = {
        "JMSCorrelationID": "c 1",
        "JMSType": "new",
        "JMSReplyTo": "topic:answers",
        "JMSXGroupID": "g",
        "JMSXGroupSeq": "7",
    }

    message = taken(**form, JMSPriority="9", JMSDeliveryMode="NON_PERSISTENT")

    expected = {**form, "JMSPriority": "9", "JMSDeliveryMode": "NON_PERSISTENT", "JMSRedelivered": "false"}
    assert {name: message.headers[name] for name in expected} == expected
    assert message.headers["JMSMessageID"].startswith("ID:")
    assert message.properties["JMS_AMQP_NATIVE"] == Property("false", JmsType.BOOLEAN)
    assert message.properties["JMS_AMQP_MESSAGE_FORMAT"] == Property("0", JmsType.LONG)


@pytest.mark.parametrize(
    ("form", "kind"),
    [
        ({"type": "text", "body": "x"}, BodyType.TEXT),
        ({"type": "bytes", "body": base64.b64encode(b"\xff\0").decode()}, BodyType.BYTES),
        ({"type": "map", "entry a": "int:1", "entry b": "bytes:AAE="}, BodyType.MAP),
        ({"type": "stream", "item 0": "int:1", "item 1": "string:x"}, BodyType.STREAM),
        ({"type": "object", "body": "long:5"}, BodyType.OBJECT),
    ],
    ids=["text", "bytes", "map", "stream", "object"],
)
def test_bodies_of_every_type_keep_it(taken: Taken, form: Mapping[str, str], kind: BodyType) -> None:
    message = taken(**form)

    assert message.body_type is kind
    if kind in (BodyType.TEXT, BodyType.BYTES):
        assert message.body == {BodyType.TEXT: b"x", BodyType.BYTES: b"\xff\0"}[kind]
    else:
        assert message.body


def test_a_topic_is_listened_to(
    amqp: AmqpHarness, qpid: QpidClient, configured: Configure, start: Start, queue: str, kafka: EmbeddedKafka
) -> None:
    config = configured(amqp.settings(queue) | {".destinations": f"topic:{queue}"})
    source = start(config)
    until(lambda: source.connected)

    qpid.send(f"topic:{queue}", [{"body": "one"}, {"body": "two"}])
    source.acknowledges(2)

    found = read(kafka.bootstrap, config.journal.topic)
    assert {located.record.value for located in found} == {b"one", b"two"}
    assert {located.message.headers["JMSDestination"] for located in found} == {f"topic:{queue}"}


def test_a_durable_subscription_keeps_what_is_published_while_the_bridge_is_away(
    amqp: AmqpHarness,
    stomp: StompHarness,
    qpid: QpidClient,
    configured: Configure,
    start: Start,
    queue: str,
    kafka: EmbeddedKafka,
) -> None:
    topics = f"topic:{queue}.a, topic:{queue}.b"
    own = {".destinations": topics, ".subscription": "keep", ".client-id": f"c-{queue}"}
    config = configured(amqp.settings(queue) | own)
    source = start(config)
    until(lambda: source.connected)
    source.stop()

    qpid.send(f"topic:{queue}.a", [{"body": "one"}])
    qpid.send(f"topic:{queue}.b", [{"body": "two"}])
    again = start(config)
    again.acknowledges(2)
    again.stop()

    assert sorted(bodies(kafka.bootstrap, config.journal.topic)) == [b"one", b"two"]
    assert stomp.manage(f"queue.c-{queue}.keep.{queue}.a", "messageCount") == "0"


def test_workers_share_queues_and_a_durable_subscription(
    amqp: AmqpHarness, qpid: QpidClient, configured: Configure, start: Start, queue: str, kafka: EmbeddedKafka
) -> None:
    own = {".destinations": f"queue:{queue}, topic:{queue}-t", ".subscription": "keep", ".workers": "2"}
    config = configured(amqp.settings(queue) | own)
    workers = [start(config), start(config, 2)]
    until(lambda: all(worker.status.current.state is State.READY for worker in workers))

    amqp.send(queue, numbered(1000))
    qpid.send(f"topic:{queue}-t", [{"body": str(n)} for n in range(1000, 4000)])
    until(lambda: sum(worker.count("acknowledged") for worker in workers) == 4000)

    assert sorted(numbers(kafka.bootstrap, config.journal.topic)) == list(range(4000))
    assert all(worker.count("acknowledged") > 0 for worker in workers)


def test_without_a_subscription_only_the_first_worker_listens_to_topics(
    amqp: AmqpHarness, qpid: QpidClient, configured: Configure, start: Start, queue: str, kafka: EmbeddedKafka
) -> None:
    config = configured(amqp.settings(queue) | {".destinations": f"topic:{queue}", ".workers": "2"})
    workers = [start(config), start(config, 2)]
    until(lambda: all(worker.status.current.state is State.READY for worker in workers))

    qpid.send(f"topic:{queue}", [{"body": str(n)} for n in range(20)])
    workers[0].acknowledges(20)

    assert sorted(numbers(kafka.bootstrap, config.journal.topic)) == list(range(20))
    assert workers[1].count("received") == 0


def test_the_broker_applies_the_selector_whose_names_are_translated(
    amqp: AmqpHarness, configured: Configure, start: Start, queue: str, kafka: EmbeddedKafka
) -> None:
    config = configured(amqp.settings(queue) | {".selector": "region = 'emea: \\\\ 1' AND amqp.priority > 4"})
    regions = [("emea: \\ 1", "5"), ("apac", "5"), ("emea: \\ 1", "4"), ("emea: \\ 1", "9")]
    messages = [
        Outgoing(str(n).encode(), fields={"JMSPriority": priority}, properties={"region": region})
        for n, (region, priority) in enumerate(regions)
    ]
    amqp.send(queue, messages)

    start(config).acknowledges(2)

    assert sorted(bodies(kafka.bootstrap, config.journal.topic)) == [b"0", b"3"]
    assert amqp.waiting(queue) == 2


def test_a_message_that_was_delivered_before_says_so(
    amqp: AmqpHarness, stomp: StompHarness, configured: Configure, start: Start, queue: str, kafka: EmbeddedKafka
) -> None:
    config = configured(amqp.settings(queue))
    amqp.send(queue, [Outgoing(b"again")])
    with stomp.peer() as peer:
        peer.subscribe(queue, "client-individual")
        peer.expect("MESSAGE")

    start(config).acknowledges(1)

    (located,) = read(kafka.bootstrap, config.journal.topic)
    assert located.message.headers["JMSRedelivered"] == "true"
    assert located.message.headers["JMSXDeliveryCount"] == "2"


@pytest.mark.usefixtures("impatient")
def test_a_port_where_something_else_listens_is_reported(
    amqp: AmqpHarness, stomp: StompHarness, configured: Configure, start: Start, queue: str
) -> None:
    source = start(configured(amqp.settings(queue, stomp.port)))

    until(lambda: source.status.current.state is State.DEGRADED, 40)

    assert "broker" in source.status.current.detail


def test_a_sole_connection_waits_until_the_broker_has_closed_the_other_one(
    amqp: AmqpHarness, configured: Configure, start: Start, queue: str, kafka: EmbeddedKafka
) -> None:
    config = configured(amqp.settings(queue) | {".sole-connection": "true"})
    amqp.send(queue, numbered(20))
    frozen = start_worker("source", "src", config.path)
    try:
        until(lambda: sorted(numbers(kafka.bootstrap, config.journal.topic)) == list(range(20)))
        pause(frozen.pid)
        amqp.send(queue, numbered(20, begin=20))
        standby = start(config)
        until(lambda: standby.status.current.state is State.DEGRADED)
        why = f"another connection of '{config.bridge_id}.src' is open, and the source has to be the only one"
        assert why in standby.status.current.detail
        assert standby.count("received") == 0
    finally:
        frozen.kill()
        frozen.wait()
    standby.acknowledges(20)
    assert sorted(numbers(kafka.bootstrap, config.journal.topic)) == list(range(40))
