"""ActiveMQ Classic 5.18 and 6.1: OpenWire, STOMP and AMQP 1.0, with its messages in KahaDB."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar
from urllib.request import urlopen

from engine.embedded.ports import LOOPBACK
from engine.java import find_java
from tests.brokers.broker import PASSWORD, USER, Broker, Protocol
from tests.brokers.packages import jars
from tests.java import java_program

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Classic5", "Classic6"]

_PROGRAM = Path(__file__).with_name("ClassicBroker.java")
_PARTS = ("activemq-broker", "activemq-jaas", "activemq-kahadb-store", "activemq-stomp", "activemq-amqp")
_SCHEMES = {Protocol.STOMP: "stomp", Protocol.AMQP: "amqp", Protocol.JMS: "tcp"}
_LOGGING = "org.slf4j:slf4j-simple:2.0.16"


class Classic6(Broker):
    """ActiveMQ Classic 6, whose JMS client is for Jakarta Messaging."""

    title: ClassVar[str] = "ActiveMQ Classic"
    version: ClassVar[str] = "6.1.7"
    speaks: ClassVar[Sequence[Protocol]] = tuple(Protocol)
    others: ClassVar[Sequence[str]] = ("counts",)

    def create(self, queue: str) -> None:
        self.waiting(queue)

    def waiting(self, queue: str) -> int:
        with urlopen(f"http://{LOOPBACK}:{self.ports['counts']}/{queue}", timeout=30) as answer:
            return int(answer.read())

    def _client(self, port: int) -> Mapping[str, str]:
        return {
            ".packages": f"org.apache.activemq:activemq-client:{self.version}",
            ".connection-factory": "org.apache.activemq.ActiveMQConnectionFactory",
            # A connection that is silent for three seconds is lost, as with heart-beats of a second.
            ".connection-factory.brokerURL": f"tcp://{LOOPBACK}:{port}?wireFormat.maxInactivityDuration=3000",
        }

    def _find_program(self) -> Path:
        return find_java()

    def _command(self, program: Path) -> Sequence[str | Path]:
        packages = [f"org.apache.activemq:{part}:{self.version}" for part in _PARTS]
        class_path = os.pathsep.join(map(str, jars(*packages, _LOGGING)))
        java, *options = java_program(_PROGRAM, class_path)
        jvm = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        addresses = [f"{_SCHEMES[protocol]}://{LOOPBACK}:{self.port(protocol)}" for protocol in self.speaks]
        return [java, *jvm, *options, self.folder / "data", USER, PASSWORD, str(self.ports["counts"]), *addresses]

    def _answers(self) -> bool:
        try:
            self.waiting("ready")
        except OSError:
            return False
        return True


class Classic5(Classic6):
    """ActiveMQ Classic 5, whose JMS client is for `javax.jms`."""

    version: ClassVar[str] = "5.18.3"
    client_api: ClassVar[str] = "javax"
