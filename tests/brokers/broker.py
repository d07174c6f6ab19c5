"""The base class of the brokers for tests: one process on free loopback ports, with a data folder and one login."""

from __future__ import annotations

import os
import signal
from abc import abstractmethod
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar, Self

from engine.embedded.ports import LOOPBACK, free_ports
from engine.embedded.server import EmbeddedServer

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

__all__ = ["PASSWORD", "USER", "Broker", "Protocol"]

USER = "bridge"
PASSWORD = "for-the-tests"


class Protocol(StrEnum):
    """A way in which the bridge speaks to a broker: the name of the system that does, `type` of a source."""

    STOMP = "stomp"
    AMQP = "amqp"
    JMS = "jms"
    """The broker's own JMS client."""


class Broker(EmbeddedServer):
    """A broker that keeps its ports and its data through stops and kills; a context manager that starts and stops it.

    It takes the login `USER` with `PASSWORD` and no other.
    """

    version: ClassVar[str]
    """The version that is started; for RabbitMQ that of the Debian package, known when it has started."""
    speaks: ClassVar[Sequence[Protocol]]
    """Protocols by which the bridge can reach it."""
    ready_seconds: ClassVar[float] = 90.0
    client_port: ClassVar[Protocol] = Protocol.JMS
    """The protocol on whose port its JMS client connects."""
    client_api: ClassVar[str] = "jakarta"
    """The package of the API that its JMS client has: `jakarta`, or `javax` before Jakarta Messaging 3."""
    keeps_positions: ClassVar[Collection[Protocol]] = tuple(Protocol)
    """Protocols over which a sink is given a `position-queue`, since the broker drops no duplicates itself."""
    application_fails_under_load: ClassVar[Collection[Protocol]] = ()
    """Protocols beside which the application cannot read thousands of messages."""
    others: ClassVar[Sequence[str]] = ()
    """Names of further ports that it listens on."""

    def __init__(self, folder: Path) -> None:
        """`folder` gets the broker's data and output, in a folder of its own."""
        listens = {self.client_port if each is Protocol.JMS else each for each in self.speaks}
        names = [*sorted(listens), *self.others]
        super().__init__(folder / self.name, dict(zip(names, free_ports(len(names)), strict=True)))
        self.log = self._console

    @property
    def name(self) -> str:
        """Title and version in one word, such as `activemq-classic-6.1.7`."""
        return f"{self.title}-{self.version}".lower().replace(" ", "-")

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def kill(self) -> None:
        """Kills the broker, which has no chance to write anything; returns when the process is gone."""
        assert self.pid is not None
        os.kill(self.pid, signal.SIGKILL)
        self.stop()

    def port(self, protocol: Protocol) -> int:
        """Returns the port on which the broker listens for a protocol."""
        return self.ports[self.client_port if protocol is Protocol.JMS else protocol]

    def settings(
        self, protocol: Protocol, port: int | None = None, login: tuple[str, str] = (USER, PASSWORD)
    ) -> dict[str, str]:
        """Returns the keys of a source or sink of this broker, with their dot.

        `port` is that of a proxy before the broker, `login` user and password, if not the broker's own.
        """
        at = port or self.port(protocol)
        if protocol is Protocol.JMS:
            own = self._client(at)
        else:
            own = {".url": f"{protocol}://{LOOPBACK}:{at}", ".heartbeat": "1s"}
        return {".type": protocol.value, ".username": login[0], ".password": login[1], **own}

    def application(self, protocol: Protocol) -> Protocol:
        """Returns how an application speaks whose messages the bridge exchanges by `protocol`: Qpid JMS or its own."""
        return Protocol.AMQP if protocol is Protocol.AMQP else Protocol.JMS

    def destination(self, protocol: Protocol, name: str, kind: str = "queue") -> str:
        """Returns a queue or topic as the application names it beside a bridge that speaks `protocol`."""
        return f"{kind}:{name}"

    def listening(self, protocol: Protocol, topic: str) -> str:
        """Returns from where that application reads a topic, which may have to be made for that."""
        return self.destination(protocol, topic, "topic")

    def has_transactions(self, client: Protocol) -> bool:
        """Returns False if an application with this client can have no transactions."""
        return True

    @abstractmethod
    def create(self, queue: str) -> None:
        """Makes a queue that keeps its messages; does nothing if it is there."""

    @abstractmethod
    def waiting(self, queue: str) -> int:
        """Returns the number of messages in a queue that are not acknowledged, delivered or not."""

    @abstractmethod
    def _client(self, port: int) -> Mapping[str, str]:
        """The keys of `type=jms` for the broker's own client, which connects to this port."""
