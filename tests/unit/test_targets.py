"""Addresses that servers use themselves: no message chooses one, in whatever spelling, and no configuration either."""

from __future__ import annotations

import re

import pytest

from routes.config import loads
from routes.errors import ConfigurationError
from routes.systems import system_named

MANAGEMENT, ADVISORY = "activemq.management", "ActiveMQ.Advisory.Connection"
INTERNAL = {
    "stomp": [
        "queue/activemq.management",
        "queue:activemq.management",
        "/topic/activemq.management.mirror",
        "topic/activemq.notifications",
        "queue/jms.queue.activemq.management",
        f"queue/anycast://{MANAGEMENT}",
        "queue//queue/activemq.management",
        f"queue/orders,queue://{MANAGEMENT}",
        "queue/orders, activemq.management",
        "queue/$sys.mqtt.sessions",
        "queue/$.artemis.internal.router",
        "queue/$management",
        "topic/ActiveMQ.Advisory.Connection",
        f"queue/a,topic://{ADVISORY}",
        "queue/amq.rabbitmq.reply-to",
        "queue//exchange/amq.topic/prices",
        "queue//exchanges/amq.topic/prices",
        "queue//queues/amq%2Erabbitmq.trace",
        "queue:/amq/queue/%61%6d%71%2egen-1",
        "topic//exchanges/%61mq.%66anout",
        "queue//management",
    ],
    "nats": [
        "$SYS.REQ.SERVER.PING",
        "$JS.API.STREAM.DELETE.orders",
        "topic:$JS.ACK.x",
        "queue/$SYS.x",
        "$SRV.PING",
    ],
}
ALLOWED = {
    "stomp": [
        "queue/orders",
        "queue/my.activemq.managementx",
        "topic/prices.$",
        "queue/prod.amq.orders",
        "queue//queues/a%2Fmq.orders",
        "queue//exchanges/e/amqp.orders",
        "queue/management",
        "queue//management.orders",
        "queue/activemq",
        "queue/ID:host-1:1:1",
        "queue/a,b",
        "queue/orders::eu",
    ],
    "nats": ["orders.eu", "_INBOX.a.b", "$KV.bucket.key", "$O.bucket.x", "a.$SYS"],
    "dropbox": ["queue/orders", "orders", "topic/a.b"],
}
INTERNAL["amqp"], ALLOWED["amqp"] = INTERNAL["stomp"], ALLOWED["stomp"]


def pairs(table: dict[str, list[str]]) -> list[tuple[str, str]]:
    return [(system, address) for system, addresses in table.items() for address in addresses]


@pytest.mark.parametrize(("system", "address"), pairs(INTERNAL))
def test_an_address_of_the_server_itself_is_no_destination(system: str, address: str) -> None:
    found = system_named(system)
    assert re.fullmatch(found.addresses.pattern, address), "it is refused for what it is, not for its form"
    assert not found.may_be_sent_to(address)


@pytest.mark.parametrize(("system", "address"), pairs(ALLOWED))
def test_other_addresses_are(system: str, address: str) -> None:
    assert system_named(system).may_be_sent_to(address)


@pytest.mark.parametrize(
    ("key", "system", "address"),
    [
        ("routes.a.out.topic=s:", "stomp", "queue/activemq.management"),
        ("routes.a.out.topic=s:", "amqp", "queue/activemq.management.${msg.header.x}"),
        ("routes.a.out.topic=s:", "nats", "$JS.API.STREAM.PURGE.orders"),
        ("sink.s.reply-to=", "stomp", "queue:activemq.management"),
        ("sink.s.reply-to=", "nats", "$SYS.x"),
    ],
)
def test_a_configured_one_is_a_fault(key: str, system: str, address: str) -> None:
    more = "" if key.startswith("routes") else "\nroutes.a.out.topic=out"
    with pytest.raises(ConfigurationError) as raised:
        loads(f"bridge.id=b\nroutes.a.in.include=TRUE\nsink.s.type={system}\n{key}{address}{more}\n")
    assert f"'{address}' is an address that servers of type {system} use themselves" in str(raised.value)


@pytest.mark.parametrize("topic", ["__consumer_offsets", "__${msg.header.x}"])
def test_a_topic_of_kafka_itself_is_a_fault(topic: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        loads(f"bridge.id=b\nroutes.a.in.include=TRUE\nroutes.a.out.topic={topic}\n")
    assert f"'{topic}' is a topic of Kafka itself" in str(raised.value)
