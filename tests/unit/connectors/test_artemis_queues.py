"""Questions about queues to Artemis: which queues a source asks about, and what the answers mean."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from engine.connectors.artemis_queues import asked_queues, count_of, question
from engine.connectors.base import NotConnectedError
from engine.connectors.depth import NotSaidError
from engine.connectors.endpoint import SystemEndpoint
from engine.connectors.products import ARTEMIS, RABBITMQ
from engine.connectors.system import connector
from routes.config import loads

if TYPE_CHECKING:
    from engine.connectors.jms import JmsSourceConfig
    from routes.model import Config

CONFIGURATION = """\
bridge.id=b1
kafka.bootstrap.servers=127.0.0.1:9
routes.a.in.include=TRUE
routes.a.out.topic=a
source.s.type=stomp
source.s.url=stomp://127.0.0.1:1
source.s.destinations={}
"""


def configured(destinations: str, more: str = "") -> Config:
    return loads(CONFIGURATION.format(destinations) + more)


def queues(destinations: str, more: str = "") -> list[str]:
    source = cast("JmsSourceConfig", configured(destinations, more).sources[0])
    return asked_queues(source, ARTEMIS, "me")


def test_a_source_asks_about_its_queues_and_durable_subscriptions() -> None:
    assert queues("queue:orders, queue:address::part, topic:prices") == ["orders", "part"]
    assert queues("queue:orders, topic:prices", "source.s.subscription=sub\n") == ["orders", "me.sub.prices"]
    assert question("orders")["_AMQ_ResourceName"] == "queue.orders"


@pytest.mark.parametrize(
    ("destinations", "more", "why"),
    [
        ("topic:prices", "", "keeps no messages"),
        ("queue:orders", "source.s.selector=a = 1\n", "not those that the selector wants"),
    ],
)
def test_what_would_be_another_number_is_not_asked(destinations: str, more: str, why: str) -> None:
    with pytest.raises(NotSaidError, match=why):
        queues(destinations, more)


def test_a_selector_of_a_durable_subscription_keeps_others_out_of_its_queue() -> None:
    more = "source.s.selector=a = 1\nsource.s.subscription=sub\n"
    assert queues("topic:prices", more) == ["me.sub.prices"]


def test_other_brokers_are_not_asked() -> None:
    source = cast("JmsSourceConfig", configured("queue:orders").sources[0])
    with pytest.raises(NotSaidError, match="the bridge has no question for RabbitMQ"):
        asked_queues(source, RABBITMQ, "me")


@pytest.mark.parametrize(("answer", "count"), [("[0]", 0), ("[12345678901]", 12345678901)])
def test_an_answer_is_a_number(answer: str, count: int) -> None:
    assert count_of(answer, "q", succeeded=True) == count


@pytest.mark.parametrize("answer", ["", "[]", "[1, 2]", "7", '["7"]', "[true]", "[1.5]", "null", "[" * 100_000])
def test_an_answer_that_is_none_is_no_number(answer: str) -> None:
    with pytest.raises(NotConnectedError, match="is not a number"):
        count_of(answer, "q", succeeded=True)


@pytest.mark.parametrize("answer", ['["no \\u001b[31mqueue\\nhere"]', "no \x1b[31mqueue\nhere"])
def test_a_refusal_is_told_in_one_line(answer: str) -> None:
    with pytest.raises(NotSaidError) as caught:
        count_of(answer, "q", succeeded=False)
    assert str(caught.value) == "the broker says of queue q: no [31mqueue here"


def test_a_queue_that_no_client_has_made_yet_is_told_in_plain_words() -> None:
    with pytest.raises(NotSaidError, match=r"^the broker has no queue q yet: its first message or receiver makes it$"):
        count_of('["Problem while retrieving attribute messageCount"]', "q", succeeded=False)


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ("source.s.type=amqp\nsource.s.listen=amqp://127.0.0.1:5673\n", "clients connect to it"),
        ("source.s.type=nats\nsource.s.url=nats://127.0.0.1:1\n", "a plain subscription keeps no messages"),
    ],
)
def test_sources_without_a_store_never_say_a_number(lines: str, why: str) -> None:
    head = CONFIGURATION.partition("source.s.")[0]
    config = loads(f"{head}{lines}source.s.destinations={'queue:a' if 'amqp' in lines else 'a'}\n")
    depth = connector(config.sources[0].type).make_depth(SystemEndpoint.of(config, config.sources[0]))
    with pytest.raises(NotSaidError, match=why):
        depth.ask()
    depth.close()
