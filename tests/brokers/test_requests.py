"""Requests and replies through a whole bridge whose source and sink use a broker's own JMS client."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.brokers.application import Application
from tests.brokers.broker import Protocol
from tests.brokers.packages import CACHE
from tests.brokers.registry import BROKERS
from tests.integration.bridge_process import Bridge, configuration
from tests.integration.connectors.stomp_jms import JmsClient
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from tests.brokers.broker import Broker

pytestmark = [pytest.mark.brokers, pytest.mark.further_cases]

LINES = """\
source.jms.destinations=queue:ask
sink.jms.type=stomp
sink.jms.reply-to=queue:replies
source.mq.destinations=queue:ask_theirs
sink.mq.reply-to=queue:replies
routes.orders.in.include=msg.address==ask
routes.orders.out.topic=mq:queue/service
routes.orders.conv.key=msg.header.MessageId
routes.back.in.include=msg.address==ask_theirs
routes.back.out.topic=jms:queue/service
"""
SECONDS = 240


@pytest.fixture(scope="module", params=["classic6", "openmq"])
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with BROKERS[request.param](tmp_path_factory.mktemp("b")) as started:
        for queue in ("ask_theirs", "service", "replies"):
            started.create(queue)
        yield started


@pytest.fixture
def bridge(broker: Broker, tmp_path: Path) -> Iterator[Bridge]:
    keys = broker.settings(Protocol.JMS).items()
    own = "".join(f"{section}{key}={text}\n" for section in ("source.mq", "sink.mq") for key, text in keys)
    made = Bridge(configuration(tmp_path, LINES + own))
    # The clients that Maven has fetched for other tests.
    (tmp_path / "var").mkdir()
    (tmp_path / "var" / "jms-clients").symlink_to(CACHE / "jms-clients")
    made.start()
    try:
        made.wait_ready(400)
        yield made
        assert made.interrupt() == 0
    finally:
        made.end()


@pytest.fixture
def application(broker: Broker, tmp_path: Path) -> Iterator[Application]:
    """At the broker."""
    made = Application(broker, Protocol.JMS, tmp_path / "application.log")
    yield made
    made.kill()


@pytest.fixture
def at_artemis(bridge: Bridge, tmp_path: Path) -> Iterator[JmsClient]:
    """An application at the bridge's own Artemis, behind STOMP."""
    made = JmsClient(f"tcp://127.0.0.1:{bridge.settings['embedded.artemis.port']}", tmp_path / "artemis.log")
    yield made
    made.close()


def test_a_service_and_a_requester_at_the_broker_are_reached_through_the_bridge(
    application: Application, at_artemis: JmsClient
) -> None:
    at_artemis.request("ask", "question")
    request = arrived(lambda: application.answer("queue:service"))
    assert request["body"] == "question"
    assert "replies" in request["JMSReplyTo"]
    assert arrived(at_artemis.reply)["text"] == "question"

    # The other way, the reply goes to a temporary queue of the broker's client.
    application.request("queue:ask_theirs", "another")
    assert arrived(lambda: at_artemis.answer("queue:service"))["text"] == "another"
    assert arrived(application.reply)["body"] == "another"


def arrived(receive: Callable[[], Mapping[str, str]]) -> Mapping[str, str]:
    """The message, when one comes."""
    found: list[Mapping[str, str]] = []
    until(lambda: found.append(receive()) or bool(found[-1]), SECONDS, "a message")  # type: ignore[func-returns-value]
    return found[-1]
