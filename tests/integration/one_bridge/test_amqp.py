"""Messages over AMQP through a whole bridge: to Kafka, back to a queue with their types, and requests with replies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from engine.find.timeline import timeline
from engine.kafka.clients import KafkaClients
from engine.kafka.reader import KafkaTopicReader
from engine.message import BodyType, Message, Record
from routes.config import load
from routes.properties import JmsType, Property
from tests.integration.bridge_process import wait
from tests.integration.connectors.amqp_jms import QpidClient
from tests.integration.connectors.running import read

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.integration.bridge_process import Bridge
    from tests.integration.connectors.stomp_jms import JmsClient


@pytest.fixture(scope="module")
def qpid(one_bridge: Bridge) -> Iterator[QpidClient]:
    """A JMS application that speaks AMQP."""
    client = QpidClient(f"amqp://127.0.0.1:{one_bridge.settings['embedded.amqp.port']}")
    yield client
    client.close()


def test_a_jms_message_arrives_in_kafka_with_its_types(bridge: Bridge, qpid: QpidClient) -> None:
    form = {"body": "grüße", "JMSType": "kafka", "JMSCorrelationID": "c", "property amount": "int:5"}
    qpid.send("queue:amqp.in", [{**form, "property region": "string:test"}, form])
    found: list[Record] = []
    wait(lambda: bool(found.extend(each.record for each in read(bridge.bootstrap, "from.amqp")) or found))

    (message,) = map(Message.from_record, found)
    assert (message.body, message.body_type) == ("grüße".encode(), BodyType.TEXT)
    assert message.properties["amount"] == Property("5", JmsType.INT)
    assert message.headers["JMSCorrelationID"] == "c"
    assert message.headers["JMSDestination"] == "queue:amqp.in"


def test_a_message_goes_through_the_bridge_and_back_with_its_types(bridge: Bridge, qpid: QpidClient) -> None:
    form = {
        "type": "bytes",
        "body": "AAH/",
        "JMSType": "new",
        "JMSCorrelationID": "c",
        "property region": "string:emea",
        "property amount": "long:5",
        "property ratio": "float:1.5",
        "property urgent": "boolean:true",
    }
    qpid.send("queue:amqp.in", [form])

    found = qpid.receive("queue:amqp.out.emea", 60)
    assert {name: found.get(name) for name in form} == form
    assert found["JMSDestination"] == "queue:amqp.out.emea"


EVERY_TYPE = {
    "boolean": "boolean:true",
    "byte": "byte:-5",
    "short": "short:300",
    "int": "int:-70000",
    "long": "long:5000000000",
    "float": "float:0.1",
    "double": "double:2.5E-10",
    "string": "string:grüße",
}
HEADERS = {
    "JMSType": "order",
    "JMSCorrelationID": "c-1",
    "JMSPriority": "7",
    "JMSReplyTo": "queue:answers",
    "JMSDeliveryMode": "NON_PERSISTENT",
    **{f"property a_{name}": value for name, value in EVERY_TYPE.items()},
}
TYPED = "property JMS_AMQP_TYPED_ENCODING"
"""Makes Qpid JMS write an object message as a value of AMQP, which it does with lists and maps only."""
IN_MAPS = {**EVERY_TYPE, "char": "char:x", "bytes": "bytes:AAH/", "null": "null:"}


@pytest.mark.parametrize(
    "form",
    [
        {"type": "text", "body": "grüße \u20ac"},
        {"type": "bytes", "body": "AAH/"},
        {"type": "map", **{f"entry {name}": value for name, value in IN_MAPS.items()}},
        {"type": "stream", **{f"item {number}": value for number, value in enumerate(IN_MAPS.values())}},
        {"type": "empty"},
        {"type": "object", "body": "string:serialized"},
        *({"type": "object", "body": value, TYPED: "boolean:true"} for value in ("list:a,b", "map:x")),
    ],
    ids=lambda form: str(form["type"]),
)
def test_a_message_goes_from_jms_to_kafka_and_back_as_it_was(
    bridge: Bridge, qpid: QpidClient, form: dict[str, str]
) -> None:
    sent = {**form, **HEADERS}
    qpid.send("queue:trip.in", [{**sent, "JMSXGroupID": "g", "JMSXGroupSeq": "3"}])
    found = qpid.receive("queue:trip.out", 60)
    sent.pop(TYPED, None)  # Qpid JMS keeps it to itself.
    assert {name: found.get(name) for name in sent} == sent
    assert (found["property JMSXGroupID"], found["property JMSXGroupSeq"]) == ("string:g", "int:3")


def test_a_topic_arrives_in_another(bridge: Bridge, qpid: QpidClient) -> None:
    qpid.open("topic:prices.out")
    qpid.send("topic:amqp.prices", [{"body": "7", "property n": "int:1"}])

    found = qpid.receive("topic:prices.out", 60)
    assert (found["body"], found["property n"]) == ("7", "int:1")


@pytest.mark.usefixtures("bridge")
def test_a_request_over_amqp_is_answered_by_a_service_behind_stomp(qpid: QpidClient, jms: JmsClient) -> None:
    jms.open("queue:amqp.service")
    qpid.request("queue:amqp.ask", "which?")
    assert jms.answer("queue:amqp.service")["text"] == "which?"

    reply = qpid.reply()
    assert reply["body"] == "which?"
    assert reply["JMSCorrelationID"].startswith("ID:")


def test_a_request_over_stomp_is_answered_by_a_service_behind_amqp(
    bridge: Bridge, qpid: QpidClient, jms: JmsClient
) -> None:
    before = bridge.metric("jmsbridge_sink_replies_total", sink="amqp")
    qpid.open("queue:service.amqp")
    jms.request("ask.amqp", "and now?")
    assert qpid.answer("queue:service.amqp")["body"] == "and now?"

    reply = jms.reply()
    assert reply["text"] == "and now?"
    assert reply["JMSCorrelationID"].startswith("ID:")
    wait(lambda: bridge.metric("jmsbridge_sink_replies_total", sink="amqp") >= before + 1)

    config = load(bridge.file)
    with KafkaTopicReader(KafkaClients(config.kafka_access), config.journal.topic) as reader:
        (journaled,) = reader.last(1, lambda located: located.record.header("jmsbridge.source") == "amqp.replies")
    told = {event.what: event for event in timeline(config, journaled.position).events}
    request = told["request"].record
    assert request is not None
    answered = {event.what: event.record for event in timeline(config, request).events}
    assert answered["reply"] == journaled.position
    # The sink commits its offsets now and then.
    wait(lambda: "delivered" in [event.what for event in timeline(config, request).events])


def test_a_jms_application_sends_to_the_bridge_itself_and_another_receives_from_it(bridge: Bridge) -> None:
    before = bridge.metric("jmsbridge_sink_delivered_messages_total", sink="readers")
    sender = QpidClient(bridge.settings["source.apps.listen"])
    reader = QpidClient(bridge.settings["sink.readers.listen"])
    form = {"body": "grüße", "property amount": "int:5"}
    sender.post("queue:apps.in", [form])
    sender.post("queue:apps.across", [form])
    found = reader.receive("queue:across", 60)
    assert {name: found[name] for name in form} == form
    records: list[Record] = []
    wait(lambda: bool(records.extend(each.record for each in read(bridge.bootstrap, "from.apps")) or records))
    assert [record.value for record in records] == ["grüße".encode()]
    wait(lambda: bridge.metric("jmsbridge_sink_delivered_messages_total", sink="readers") >= before + 1)
    sender.close()
    reader.close()


def test_what_a_client_rolls_back_is_not_routed_and_what_it_commits_is_routed_as_a_whole(bridge: Bridge) -> None:
    sender = QpidClient(bridge.settings["source.apps.listen"])
    reader = QpidClient(bridge.settings["sink.readers.listen"])
    one_key = {"JMSXGroupID": "g"}
    sender.put("s", "queue:apps.across", [{"body": "gone", **one_key}] * 3)
    assert sender.rollback("s") == ""
    sender.put("s", "queue:apps.across", [{"body": str(number), **one_key} for number in range(3)])
    assert reader.take("r", "queue:across", 2) == {}
    assert sender.commit("s") == ""
    assert [reader.take("r", "queue:across", 60)["body"] for _ in range(3)] == ["0", "1", "2"]
    assert reader.commit("r") == ""
    assert reader.take("r", "queue:across", 1) == {}
    sender.close()
    reader.close()
