"""Lines as people write them who know other tools: each is a fault at its place, with the right spelling."""

from __future__ import annotations

import pytest

from engine.connectors.addresses import parsed
from engine.connectors.jms import jms_addresses
from routes.config import lint_text
from routes.errors import Level

BASE = "bridge.id=b\nkafka.bootstrap.servers=h:9092\n"
SOURCE = "source.a.type=stomp\nsource.a.destinations=queue:q\n"
SINK = "sink.stomp.type=stomp\n"
ROUTE = "routes.r.in.include=TRUE\nroutes.r.out.topic=t\n"
SPELT = "has a // that is not part of a destination"


def found(text: str) -> list[tuple[int, int, str, str]]:
    """Line, column, message and hint of each error."""
    return [
        (each.line, each.column, each.message, each.hint)
        for each in lint_text(BASE + text).faults
        if each.level is Level.ERROR
    ]


@pytest.mark.parametrize("system", ["stomp", "amqp", "nats", "kafka", "dropbox"])
def test_a_source_of_any_system_takes_no_destination_with_slashes(system: str) -> None:
    text = f"source.a.type={system}\nsource.a.destinations=queue:q, queue://orders\n"
    assert [each for each in found(text + ROUTE) if each[0] == 4] == [
        (4, 32, f"'queue://orders' {SPELT}", "write queue:orders; for NATS and Kafka the name alone")
    ]


@pytest.mark.parametrize(
    ("target", "column", "hint"),
    [
        ("stomp:queue://orders", 26, "write stomp:queue/orders"),
        ("stomp:topic://orders-${msg.header.region}", 26, "write stomp:topic/orders-${msg.header.region}"),
        ("stomp:temp-queue:///a", 26, "write stomp:queue/a"),
        ("nats:topic://orders", 25, "write nats:orders"),
        ("kafka:queue://orders", 26, "write kafka:orders"),
        ("queue://orders", 20, "write SINK:queue/orders, as in stomp:queue/orders"),
        ("queue:orders", 20, "write stomp:queue/orders"),
        ("topic:orders", 20, "write stomp:topic/orders"),
    ],
)
def test_a_route_names_a_sink_and_an_address_without_slashes(target: str, column: int, hint: str) -> None:
    (fault,) = found(SOURCE + SINK + f"routes.r.in.include=TRUE\nroutes.r.out.topic={target}\n")
    assert (fault[0], fault[1], fault[3]) == (7, column, hint)


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("sink.stomp.reply-to=queue://replies", "write queue:replies"),
        ("sink.amqp.type=amqp\nsink.amqp.position-queue=queue://positions", "write positions"),
        ("source.k.type=kafka\nsource.k.destinations=o\nsource.k.address=queue://${topic}", "write queue:${topic}"),
    ],
)
def test_nor_does_any_other_key(line: str, hint: str) -> None:
    (fault,) = found(SOURCE + SINK + ROUTE + line + "\n")
    assert fault[3] == hint


def test_an_address_that_a_message_chooses_has_no_slashes_either() -> None:
    addresses = jms_addresses("stomp")
    assert addresses.allow("queue:orders")
    assert addresses.allow("queue/orders/eu")
    assert not addresses.allow("queue://orders")
    assert not addresses.allow("topic/" + "//orders")
    assert parsed("queue://orders") == parsed("queue:orders") == ("queue", "orders")


@pytest.mark.parametrize(
    ("url", "shown", "host"),
    [
        ("tcp://host:61616", "tcp://host:61616", "host"),
        ("failover:(tcp://a:61616,tcp://b:61616)?x=1", "failover:(tcp://a:61616,tcp://b:61616)", "a"),
        ("ssl://h.example:61617?jms.password=hunter2", "ssl://h.example:61617", "h.example"),
        ("tcp://u:hunter2@h:1", "tcp://…@h:1", "host"),
        ("vm:local", "vm:local", "host"),
    ],
)
@pytest.mark.parametrize("kind", ["source.x.type=stomp", "sink.x.type=stomp", "source.x.type=amqp"])
def test_the_url_of_a_jms_client_leads_to_type_jms(kind: str, url: str, shown: str, host: str) -> None:
    section = kind.partition(".")[0]
    more = "source.x.destinations=queue:o\n" if section == "source" else ""
    (fault,) = found(f"{SOURCE}{kind}\n{section}.x.url={url}\n{more}{ROUTE}")
    assert fault[2] == f"'{shown}' is the URL of a JMS client (OpenWire or Artemis)"
    assert fault[3] == (
        f"with type=jms it is connection-factory.brokerURL={shown}; "
        f"type=stomp wants stomp://{host}:61613, type=amqp amqp://{host}:5672"
    )


@pytest.mark.parametrize("key", ["source.mein name.type", r"source.mein\ name.type", "source.mein   name.type"])
def test_a_name_has_no_blank(key: str) -> None:
    faults = found(f"{key}=stomp\n{ROUTE}")
    assert [(each[0], each[1], each[3]) for each in faults] == [(3, 1, "write 'source.mein-name.type'")]
    assert faults[0][2] == "the name in 'source.mein name.type' has a blank"


def test_a_blank_elsewhere_in_a_line_shows_nothing_of_its_value() -> None:
    text = "source.mein hunter2.nothing=stomp\nsource.mein hunter2\n"
    assert not [fault for fault in lint_text(BASE + text).faults if "hunter2" in str(fault)]


@pytest.mark.parametrize(
    ("line", "kind"),
    [("sink.größe.type=stomp", "sink"), ("sink.a/b.type=nats", "sink"), ("topologies.größe.build=a:b", "topology")],
)
def test_a_name_that_no_topic_can_have_is_refused_where_it_stands(line: str, kind: str) -> None:
    name = line.split(".")[1]
    assert found(SOURCE + ROUTE + line + "\n") == [
        (7, 1, f"'{name}' is not a valid name of a {kind}", "a-z, A-Z, 0-9, '_' and '-', 100 at most")
    ]


@pytest.mark.parametrize("key", ["source.mein\\ name.x", "source.a\\ b.typ", "routes.a\\ b.in.inclde"])
def test_no_key_is_its_own_correction(key: str) -> None:
    for each in found(f"{key}=stomp\n{SOURCE}{ROUTE}"):
        key_shown = each[2].partition("'")[2].partition("'")[0]
        assert f"did you mean '{key_shown}'" not in each[3]
