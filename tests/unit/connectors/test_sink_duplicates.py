"""Warnings about sinks whose messages may come twice after a crash, and the key that accepts it."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from engine.connectors.amqp.session import AmqpSession
from engine.connectors.amqp.traits import traits_of
from engine.connectors.endpoint import SystemEndpoint
from engine.connectors.products import ARTEMIS, CLASSIC, RABBITMQ, Product
from engine.connectors.stomp.session import StompSession
from engine.connectors.stomp.traits import traits_of as stomp_traits_of
from engine.connectors.system import connector
from routes.config import lint_text, loads

START = """\
bridge.id=b
source.s.type=stomp
source.s.destinations=queue:q
routes.r.in.include=TRUE
routes.r.out.topic=o:queue/a
"""
ACCEPT = "set sink.o.accept-duplicates=true where receivers can take a message twice"


def doubts(product: Product, kind: str, monkeypatch: pytest.MonkeyPatch, more: str = "") -> list[tuple[str, str]]:
    """What the doctor says of a sink at a broker of a product."""
    config = loads(f"{START}sink.o.type={kind}\nsink.o.url={kind}://h:1\n{more}")
    endpoint, system = SystemEndpoint.of(config, config.sinks[0]), connector(config.sinks[0].type)
    session: AmqpSession | StompSession
    if kind == "amqp":
        session = AmqpSession(endpoint.settings, "'o'", endpoint.url, "c")  # type: ignore[arg-type]
        session.traits = traits_of(product, ())
    else:
        session = StompSession(endpoint.settings, "'o'", endpoint.url, "c", 100)  # type: ignore[arg-type]
        session.traits = stomp_traits_of(product, "")
    session.product = product
    monkeypatch.setattr(type(system), "_connected", lambda *_: nullcontext(session))
    return list(system.doubts(endpoint))


@pytest.mark.parametrize("kind", ["amqp", "stomp"])
def test_a_sink_at_rabbitmq_may_send_twice(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = ("messages may come twice after a crash: RabbitMQ drops no duplicates", ACCEPT)
    assert doubts(RABBITMQ, kind, monkeypatch) == [found]
    assert doubts(RABBITMQ, kind, monkeypatch, "sink.o.accept-duplicates=true\n") == []


def test_a_position_queue_is_the_remedy_where_the_broker_has_what_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    ((_, remedy),) = doubts(CLASSIC, "amqp", monkeypatch)
    assert remedy == f"set sink.o.position-queue, or {ACCEPT}"
    assert doubts(CLASSIC, "amqp", monkeypatch, "sink.o.position-queue=p\n") == []
    assert doubts(ARTEMIS, "amqp", monkeypatch) == []


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param("sink.o.type=amqp\nsink.o.url=amqp://h:1\nsink.o.broker=rabbitmq", id="named"),
        pytest.param(
            "sink.o.type=jms\nsink.o.packages=com.rabbitmq.jms:rabbitmq-jms:3.4.0\n"
            "sink.o.connection-factory=com.rabbitmq.jms.admin.RMQConnectionFactory",
            id="its client",
        ),
    ],
)
def test_a_configuration_that_names_rabbitmq_is_warned_of(lines: str) -> None:
    found = [(each.message, each.hint) for each in lint_text(START + lines).faults]
    assert ("messages may come twice after a crash: RabbitMQ drops no duplicates", ACCEPT) in found
    accepted = lint_text(f"{START}{lines}\nsink.o.accept-duplicates=true").faults
    assert not [each for each in accepted if "twice" in each.message]
