"""Artemis by its own JMS client for the conformance suites: a JMS application on the other side."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from engine.embedded.artemis import artemis_home
from tests.conftest import JARS
from tests.integration.connectors.amqp_harness import AmqpHarness, AmqpSinkHarness

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.embedded import EmbeddedArtemis
    from tests.integration.connectors.amqp_jms import QpidClient

FACTORY = "org.apache.activemq.artemis.jms.client.ActiveMQConnectionFactory"
_PARTS = ("artemis-*", "activemq-artemis-*", "netty-*", "commons-*", "slf4j-*", "log4j-*")


def client(core_url: str) -> dict[str, str]:
    """Keys of a source or sink, with their dot, for Artemis' own client."""
    lib = artemis_home(JARS) / "lib"
    return {
        ".type": "jms",
        ".class-path": ", ".join(f"{lib}/{part}.jar" for part in _PARTS),
        ".connection-factory": FACTORY,
        # A connection that is silent for three seconds is lost, as with heart-beats of a second.
        ".connection-factory.brokerURL": f"{core_url}?clientFailureCheckPeriod=1000&connectionTTL=3000",
    }


class JmsHarness(AmqpHarness):
    """An Artemis of the embedded kind."""

    unreachable = "Cannot connect to server"

    def __init__(self, artemis: EmbeddedArtemis, application: QpidClient) -> None:
        super().__init__(artemis, application)
        self._core = artemis.core_url

    @property
    def port(self) -> int:
        return urlsplit(self._core).port or 0

    def settings(self, queue: str, port: int | None = None) -> Mapping[str, str]:
        return {**client(f"tcp://127.0.0.1:{port or self.port}"), ".destinations": f"queue:{queue}"}


class JmsSinkHarness(AmqpSinkHarness):
    """Queues of an Artemis."""

    def __init__(self, artemis: EmbeddedArtemis, application: QpidClient) -> None:
        super().__init__(artemis, application)
        self._core = artemis.core_url

    @property
    def port(self) -> int:
        return urlsplit(self._core).port or 0

    def settings(self, port: int | None = None) -> Mapping[str, str]:
        return client(f"tcp://127.0.0.1:{port or self.port}")
