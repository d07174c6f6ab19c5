"""One more broker beside Artemis: ActiveMQ Classic 6, over each protocol, by some of the cases of `make brokers`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from engine.errors import SetupError
from engine.message import Message
from tests.brokers.broker import Protocol
from tests.brokers.cases import CASES
from tests.brokers.classic import Classic6
from tests.brokers.packages import CACHE
from tests.brokers.results import Verdict, read
from tests.brokers.run import run_cases
from tests.integration.connectors.jms_ends import ends_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_CASES = ("expiry", "redelivery", "selectors", "missing queue")
_NO_KAFKA = "127.0.0.1:1"


@pytest.fixture(scope="module")
def classic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Classic6]:
    try:
        with Classic6(tmp_path_factory.mktemp("classic")) as broker:
            yield broker
    except SetupError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize(
    "protocol",
    [Protocol.STOMP, Protocol.JMS, pytest.param(Protocol.AMQP, marks=pytest.mark.further_cases)],
)
def test_classic_does_no_worse_than_the_table_says(classic: Classic6, protocol: Protocol, tmp_path: Path) -> None:
    written = {each.case: each.verdict for each in read() if (each.broker, each.protocol) == ("classic6", protocol)}
    cases = {name: CASES[name] for name in _CASES}

    found = [result for result, _ in run_cases("classic6", classic, [protocol], cases, _NO_KAFKA, tmp_path, 0)]

    assert [each.case for each in found] == list(_CASES)
    assert not [each for each in found if each.verdict is not Verdict.OK and each.verdict is not written[each.case]]


def test_a_connection_factory_and_destinations_are_looked_up_in_jndi(classic: Classic6, tmp_path: Path) -> None:
    context = "org.apache.activemq.jndi.ActiveMQInitialContextFactory"
    keys = {
        **{name: text for name, text in classic.settings(Protocol.JMS).items() if "connection-factory" not in name},
        ".jndi.java.naming.factory.initial": context,
        ".jndi.java.naming.provider.url": f"tcp://127.0.0.1:{classic.port(Protocol.JMS)}",
        ".jndi.connection-factory": "ConnectionFactory",
        ".jndi.queue.ORDERS": "by.jndi",
        ".jndi-destinations": "true",
    }
    both = ends_of(tmp_path, keys, "queue:ORDERS", {"embedded.data": str(CACHE)})
    try:
        both.sink.connect()
        assert both.send("queue/ORDERS", Message(b"1")) == {0: None}
        both.source.connect()
        (found,) = both.receive(1)
        assert (found.body, found.headers["JMSDestination"]) == (b"1", "queue:by.jndi")
        (refusal,) = both.send("queue/OTHER", Message(b"2")).values()
        assert refusal == "JNDI has no destination 'OTHER'"
    finally:
        both.close()
