"""What a configuration becomes: every value in its place, defaults where nothing is said, routes in their order."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from engine.message import Message
from engine.spark.section import SparkConfig
from engine.telemetry.http_section import HttpConfig
from routes.config import load, loads, reference
from routes.config.fields import FIELDS, sections
from routes.model import Config, Embedded, HeaderStyle, NonDurable, Policy, Route, RouterMode, Target, Unmatched
from routes.predicate import evaluate, parse
from routes.properties import Property
from routes.targets import Template

ROOT = Path(__file__).parents[3]
LEAST = "bridge.id=b\nroutes.r.in.include=TRUE\nroutes.r.out.topic=t\n"

SEED = """\
bridge.id=bridge-1
routing.dead-letter-topic=jms-bridge-to-kafka-dead-letter-topic
routes.fooRoute.name=fooRoute
routes.fooRoute.in.include=msg.address==foo-topic
routes.fooRoute.out.topic=foobar-topic
routes.fooRoute.conv.key=msg.header.CorrelationId
routes.barRoute.name=barRoute
routes.barRoute.in.include=msg.address==bar-topic
routes.barRoute.out.topic=foobar-topic
routes.barRoute.map.key=msg.header.CorrelationId
"""


def test_the_example_of_the_specification_is_read_as_it_stands() -> None:
    config = loads(SEED)
    assert config.routing.dead_letter_topic == "jms-bridge-to-kafka-dead-letter-topic"
    target = Target(Template(("foobar-topic",)), ("foobar-topic",))
    assert config.routes == tuple(
        Route(name=name, include=parse(f"msg.address=={address}"), targets=(target,), key="JMSCorrelationID")
        for name, address in (("fooRoute", "foo-topic"), ("barRoute", "bar-topic"))
    )


def test_defaults_are_those_of_the_field_table(tmp_path: Path) -> None:
    config = loads(LEAST, tmp_path)
    assert (config.routing.on_soft_failure, config.routing.on_unmatched) == (Policy.STOP, Unmatched.SKIP)
    assert (config.routing.headers, config.routing.non_durable) == (HeaderStyle.TEXT, NonDurable.PROPAGATE)
    assert (config.routing.create_topics, config.routing.dead_letter_topic) == (None, None)
    assert (config.routing.max_replays, config.letter_topic) == (3, "jms-bridge.journal.set-aside")
    assert (config.journal.topic, config.journal.partitions, config.journal.replication) == (
        "jms-bridge.journal",
        4,
        -1,
    )
    assert (config.journal.retention_ms, config.journal.max_message_bytes) == (7 * 86_400_000, 8 * 1024 * 1024)
    assert (config.router.mode, config.router.interval_seconds) == (RouterMode.REALTIME, 120.0)
    assert (config.router.checkpoint, config.router.outage_timeout_seconds) == (tmp_path / "var/checkpoint", 300.0)
    assert (config.section(HttpConfig).host, config.section(HttpConfig).port) == ("127.0.0.1", 8480)
    assert (config.embedded.mode, config.embedded.data) == (Embedded.AUTO, tmp_path / "var")
    assert config.embedded_kafka
    assert config.bootstrap_servers == "127.0.0.1:9092"


def test_every_key_reaches_its_place(tmp_path: Path) -> None:
    for name in ("ca.pem", "me.pem", "me.key"):
        (tmp_path / name).touch()
    (tmp_path / "b.properties").write_text(
        LEAST + "routes.r.name=a route\nroutes.r.in.exclude=x=1\nroutes.r.on-soft-failure=skip\n"
        "routing.dead-letter.topic=dead\nrouting.on-soft-failure=dead-letter\nrouting.on-unmatched=dead-letter\n"
        "routing.headers=typed\nrouting.non-durable=drop\nrouting.key-pattern=[a-z]+\nrouting.create-topics=false\n"
        "source.s.type=stomp\nsource.s.url=stomp+ssl://h:61614\nsource.s.destinations=queue:a, topic:b\n"
        "source.s.workers=3\nsource.s.username=u\nsource.s.password=p\nsource.s.selector=x > 1\n"
        "source.s.subscription=sub\nsource.s.client-id=me\nsource.s.heartbeat=5s\nsource.s.tls.ca=ca.pem\n"
        "source.s.tls.certificate=me.pem\nsource.s.tls.key=me.key\nsource.s.tls.verify=false\n"
        "kafka.bootstrap.servers=h:1\nkafka.client.rack=r\nkafka.producer.linger.ms=1\nkafka.consumer.fetch.min.bytes=2\n"
        "journal.topic=j\njournal.partitions=2\njournal.replication=3\njournal.retention=forever\n"
        "journal.max-message-bytes=1MiB\nrouter.mode=batch\nrouter.interval=2s\nrouter.checkpoint=/tmp/c\n"
        "router.outage-timeout=1m\nspark.driver.memory=2g\nhttp.address=[::1]:1\nembedded=off\n"
        "embedded.kafka.port=2\nembedded.artemis.port=3\nembedded.stomp.port=4\nembedded.amqp.port=5\nembedded.data=d\n"
    )
    config = load(tmp_path / "b.properties")
    (route,), (source,) = config.routes, config.sources
    assert (route.name, route.exclude, route.on_soft_failure) == ("a route", parse("x=1"), Policy.SKIP)
    assert config.routing.dead_letter_topic == "dead"
    assert (config.routing.on_soft_failure, config.routing.on_unmatched) == (Policy.DEAD_LETTER, Unmatched.DEAD_LETTER)
    assert (config.routing.headers, config.routing.non_durable) == (HeaderStyle.TYPED, NonDurable.DROP)
    assert (config.routing.key_pattern, config.routing.create_topics) == ("[a-z]+", False)
    assert (source.name, source.type, source.url) == ("s", "stomp", "stomp+ssl://h:61614")
    assert (source.destinations, source.workers) == (("queue:a", "topic:b"), 3)
    assert (source.username, source.password, source.selector) == ("u", "p", "x > 1")
    assert (source.subscription, source.client_id, source.heartbeat_seconds) == ("sub", "me", 5.0)
    assert (source.tls_ca, source.tls_certificate) == (tmp_path / "ca.pem", tmp_path / "me.pem")
    assert (source.tls_key, source.tls_verify) == (tmp_path / "me.key", False)
    assert dict(config.kafka.common) == {"client.rack": "r"}
    assert dict(config.kafka.producer) == {"linger.ms": "1"}
    assert dict(config.kafka.consumer) == {"fetch.min.bytes": "2"}
    assert (config.journal.retention_ms, config.journal.replication) == (-1, 3)
    assert (config.router.interval_seconds, config.router.checkpoint) == (2.0, Path("/tmp/c"))  # noqa: S108
    assert dict(config.section(SparkConfig)) == {"spark.driver.memory": "2g"}
    assert (config.section(HttpConfig).host, config.section(HttpConfig).port, config.embedded.mode) == (
        "::1",
        1,
        Embedded.OFF,
    )
    assert (config.embedded.kafka_port, config.embedded.amqp_port) == (2, 5)


def test_the_interval_of_batch_mode_has_a_default_of_its_own() -> None:
    assert loads(LEAST + "router.mode=batch\n").router.interval_seconds == 1.0


def test_a_policy_of_a_route_goes_before_the_one_of_all() -> None:
    text = LEAST + "routes.q.in.include=x=1\nroutes.q.out.topic=t\nroutes.q.on-soft-failure=stop\n"
    routes = loads(text + "routing.on-soft-failure=skip\n").routes
    assert [route.on_soft_failure for route in routes] == [Policy.SKIP, Policy.STOP]


def test_routes_keep_the_order_of_their_first_lines() -> None:
    config = loads(
        "bridge.id=b\nroutes.z.out.topic=t\nroutes.a.out.topic=t\nroutes.a.in.include=x=1\nroutes.m.out.topic=t\n"
        "routes.m.in.include=x=2\nroutes.z.in.include=x=3\nroutes.a.out.topic=other\n"
    )
    assert [(route.name, route.targets[0].topic) for route in config.routes] == [("z", "t"), ("a", "other"), ("m", "t")]


def test_a_route_has_a_publication_for_each_of_its_destinations() -> None:
    config = loads(
        "bridge.id=b\nsink.n.type=nats\nsink.q.type=amqp\nroutes.r.in.include=x=1\n"
        'routes.r.out.topic=orders, nats:o.${msg.body."a,b"},q:queue/all\n'
        "routes.s.in.include=TRUE\nroutes.s.out.topic=t\n"
    )
    assert config.has_copies
    assert [(each.name, each.mark, each.label) for each in config.publications] == [
        ("route r > kafka:orders", "1 kafka:orders", "1 r"),
        ('route r > n:o.${msg.body."a,b"}', '2 n:o.${msg.body."a,b"}', "2 r"),
        ("route r > q:queue/all", "3 q:queue/all", "3 r"),
        ("route s", "1 kafka:t", "1 s"),
    ]
    assert [str(each.conversion) for each in config.publications] == ["as-is", "as-is", "any", "as-is"]
    assert not loads(LEAST).has_copies


@pytest.fixture(scope="module")
def shipped() -> Config:
    return load(ROOT / "engine/cli/templates/jms-bridge.properties")


def test_the_shipped_configuration_needs_no_server_of_the_users(shipped: Config) -> None:
    assert shipped.embedded_kafka
    assert shipped.embedded_artemis


@pytest.mark.parametrize(
    ("destination", "properties", "topic"),
    [
        ("queue:orders", {"region": "emea"}, "orders"),
        ("queue:payments", {"amount": "1500"}, "payments-large"),
        ("queue:payments", {"amount": "15"}, "payments"),
        ("queue:payments", {}, "payments"),
        ("topic:prices", {"symbol": "ACME"}, "prices"),
        ("topic:prices", {}, None),
    ],
)
def test_the_shipped_routes_do_what_their_comments_say(
    shipped: Config, destination: str, properties: dict[str, str], topic: str | None
) -> None:
    # Properties without a type, as STOMP sends them.
    message = Message(
        headers={"JMSDestination": destination},
        properties={name: Property(text) for name, text in properties.items()},
    )
    matching = [
        route.targets[0].topic
        for route in shipped.routes
        if evaluate(route.include, message.lookup) and not (route.exclude and evaluate(route.exclude, message.lookup))
    ]
    assert next(iter(matching), None) == topic


def test_every_row_of_the_table_is_in_a_section_and_its_examples_are_valid(tmp_path: Path) -> None:
    assert {field.section for field in FIELDS.fields} == set(sections())
    for field in FIELDS.fields:
        assert field.doc.endswith(".")
        assert field.default is not None or field.example
        for text in (field.default, field.example):
            if text and not field.open and "${" not in text:
                field.kind.parse(text)


def test_every_key_is_in_the_reference() -> None:
    page = reference()
    assert [key for field in FIELDS.fields for key in (field.key, *field.aliases) if f"`{key}`" not in page] == []


def test_the_reference_has_a_table_of_the_keys_of_each_type_of_source_and_sink() -> None:
    tables: dict[str, list[str]] = {}
    for heading, text in re.findall(r"^##+ (.+)\n((?:(?!##).*\n)*)", reference(), re.MULTILINE):
        tables[heading] = re.findall(r"^\| `((?:source|sink)\.[^`]+)`", text, re.MULTILINE)
    expected: dict[str, list[str]] = {section: [] for section in ("source", "sink")}
    for field in (*FIELDS.in_section("source"), *FIELDS.in_section("sink")):
        for heading in [f"{field.section.capitalize()}s of type `{system}`" for system in field.systems]:
            expected.setdefault(heading, []).append(field.key)
        if not field.systems:
            expected[field.section].append(field.key)
    assert {heading: keys for heading, keys in tables.items() if keys} == expected
    assert len(expected) == 2 + 6 + 6
