"""What the bridge does at RabbitMQ 4, whose AMQP 1.0 is native: addresses, outcomes, and what it leaves out."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

import pytest

from engine.connectors.amqp.codec.sections import DATA, Header, Properties, Sections, decode, encode_sections
from engine.connectors.amqp.codec.values import AmqpMap, Symbol, Timestamp, UInt
from engine.connectors.amqp.performatives import DeliveryState
from engine.connectors.amqp.session import AmqpSession
from engine.connectors.amqp.sink import AmqpSink
from engine.connectors.amqp.traits import SPECIFIED, AmqpTraits, traits_of
from engine.connectors.amqp.transformer_settings import TransformerSettings
from engine.connectors.amqp.transformers import inbound, outbound
from engine.connectors.base import Outcome
from engine.connectors.endpoint import SystemEndpoint
from engine.connectors.features import Feature
from engine.connectors.products import RABBITMQ
from engine.connectors.system import connector
from engine.delivery.deduplication.seen_messages import digest
from engine.message import Message
from engine.property_names import take_not_kept
from routes.config import loads

OLD = traits_of(RABBITMQ, (), "RabbitMQ 3.10.8")
NATIVE = traits_of(RABBITMQ, ("LINK_PAIR_V1_0", "ANONYMOUS-RELAY"), "RabbitMQ 4.0.5")


@pytest.mark.parametrize(
    ("capabilities", "server", "is_native"),
    [
        ((), "RabbitMQ 4.0.5", True),
        ((), "RabbitMQ 4.4.0-rc.1", True),
        ((), "RabbitMQ 12.0.0", True),
        (("LINK_PAIR_V1_0",), "proxy 1.2", True),
        (("LINK_PAIR_V1_0",), "", True),
        ((), "RabbitMQ 3.13.7", False),
        ((), "RabbitMQ 40", False),
        ((), "proxy 4.1", False),
        ((), "", False),
    ],
)
def test_version_and_capabilities_tell_version_4(capabilities: tuple[str, ...], server: str, is_native: bool) -> None:
    assert traits_of(RABBITMQ, capabilities, server) == (NATIVE if is_native else OLD)


@pytest.mark.parametrize("traits", [OLD, NATIVE])
def test_both_versions_lack_topics_subscriptions_selectors_and_positions_and_drop_no_duplicates(
    traits: AmqpTraits,
) -> None:
    assert set(traits.lacks) == {Feature.READ_TOPIC, Feature.SUBSCRIPTION, Feature.SELECTOR, Feature.POSITIONS}
    assert not traits.drops_duplicates


@pytest.mark.parametrize(
    ("kind", "name", "address"),
    [
        ("queue", "orders", "/queues/orders"),
        ("queue", "a/b %é", "/queues/a%2Fb%20%25%C3%A9"),
        ("topic", "prices.eu", "/exchanges/amq.topic/prices.eu"),
        ("topic", "a/b", "/exchanges/amq.topic/a%2Fb"),
    ],
)
def test_a_name_has_an_address_of_version_2_and_comes_back_from_it(kind: str, name: str, address: str) -> None:
    assert NATIVE.spelling(kind, name) == address
    assert NATIVE.destination(address, None, "queue") == f"{kind}:{name}"


@pytest.mark.parametrize("address", ["/queues/a%2Fb", "/exchanges/e/key", "/queue/a", "/amq/queue/a", "/topic/a"])
def test_an_address_in_the_brokers_spelling_stays_as_it_is(address: str) -> None:
    assert NATIVE.spelling("queue", address) == address


def test_addresses_of_version_1_are_still_read_and_have_nothing_quoted() -> None:
    assert NATIVE.destination("/queue/a%2Fb", None, "topic") == "queue:a%2Fb"
    assert NATIVE.destination("/exchanges/e/key", None, "queue") == "queue:/exchanges/e/key"
    assert NATIVE.destination("/topic/a", "queue", "queue") == "queue:a"


def test_no_queue_is_declared_by_a_link_which_a_queue_with_arguments_would_refuse() -> None:
    assert OLD.declares_queues
    assert not NATIVE.declares_queues


CONFIG = loads("""
bridge.id=b
routes.a.in.include=TRUE
routes.a.out.topic=o:queue/a
sink.o.type=amqp
sink.o.url=amqp://h:1
source.s.type=amqp
source.s.url=amqp://h:1
source.s.destinations=queue:a
""")


@pytest.mark.parametrize(("traits", "reminds"), [(OLD, False), (NATIVE, True)])
def test_doctor_reminds_of_the_limit_of_quorum_queues_that_a_source_reads(
    traits: AmqpTraits, monkeypatch: pytest.MonkeyPatch, *, reminds: bool
) -> None:
    for part in (CONFIG.sources[0], CONFIG.sinks[0]):
        endpoint, system = SystemEndpoint.of(CONFIG, part), connector(part.type)
        session = AmqpSession(endpoint.settings, "'x'", endpoint.url, "c")  # type: ignore[arg-type]
        session.traits = traits
        monkeypatch.setattr(type(system), "_connected", lambda *_, found=session: nullcontext(found))
        found = system.check_connection(endpoint, "doctor")
        is_reminder = "takes the login; its quorum queues drop what 21 connections left" in found
        assert is_reminder is (reminds and part is CONFIG.sources[0])


def sink(traits: AmqpTraits) -> AmqpSink:
    made = connector(CONFIG.sinks[0].type).make_sink(SystemEndpoint.of(CONFIG, CONFIG.sinks[0]), 1)
    assert isinstance(made, AmqpSink)
    made._traits = traits
    return made


def test_a_released_message_to_a_topic_has_no_subscriber_and_is_delivered() -> None:
    made = sink(NATIVE)
    made._open[1] = "topic:a"
    made._outcome(1, DeliveryState.RELEASED, ())
    assert made.outcomes(0) == [Outcome(1)]


def test_a_released_message_to_an_address_without_a_queue_is_refused() -> None:
    made = sink(NATIVE)
    made._open[1] = "queue:/exchanges/e/key"
    made._outcome(1, DeliveryState.RELEASED, ())
    (outcome,) = made.outcomes(0)
    assert outcome.refusal == "the broker releases it: no queue takes messages to queue:/exchanges/e/key"


def test_at_other_brokers_a_released_message_is_sent_again() -> None:
    made = sink(SPECIFIED)
    made._open[1] = "topic:a"
    made._outcome(1, DeliveryState.RELEASED, ())
    assert made._open
    assert made._failure is not None


@pytest.mark.parametrize(("traits", "user"), [(OLD, None), (NATIVE, None), (SPECIFIED, b"ann")])
def test_a_user_that_the_broker_would_compare_with_the_login_is_left_out_and_counted(
    traits: AmqpTraits, user: bytes | None
) -> None:
    take_not_kept()
    message = Message(b"x", headers={"JMSXUserID": "ann"})
    encoded, _ = outbound(TransformerSettings(), traits).encoded(message, "queue/a", None)
    properties = decode(encoded).properties
    assert properties is not None
    assert properties.user_id == user
    assert take_not_kept() == (user is None)


@pytest.mark.parametrize("traits", [OLD, NATIVE])
def test_the_count_of_a_quorum_queue_is_no_property_and_makes_no_other_message(traits: AmqpTraits) -> None:
    def read(returns: int | None, failed: int) -> Message:
        annotations = AmqpMap([(Symbol("x-exchange"), "")])
        if returns is not None:
            annotations += [(Symbol("x-delivery-count"), returns), (Symbol("x-acquired-count"), returns - 1)]
        header = Header(durable=True, first_acquirer=returns is None, delivery_count=UInt(failed))
        properties = Properties(message_id="m", creation_time=Timestamp(1))
        sections = Sections(header=header, message_annotations=annotations, properties=properties, body=DATA)
        return inbound(TransformerSettings(), traits).to_message(
            encode_sections(replace(sections, content=b"x")), 0, "queue:q", "s"
        )

    # A connection that is closed in order adds to the one, a lost one to both.
    first, closed, lost = read(None, 0), read(1, 0), read(2, 1)
    assert [each.headers["JMSXDeliveryCount"] for each in (first, closed, lost)] == ["1", "2", "3"]
    assert [each.headers["JMSRedelivered"] for each in (first, closed, lost)] == ["false", "true", "true"]
    assert digest(first.to_record()) == digest(closed.to_record()) == digest(lost.to_record())
    assert not [name for name in lost.properties if "count" in name]
