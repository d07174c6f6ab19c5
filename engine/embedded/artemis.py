"""The embedded ActiveMQ Artemis on loopback: core (JMS clients), STOMP and AMQP; no console, no users.

Settings that are the same everywhere are in `etc/broker.xml`; ports reach it as system properties.
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, ClassVar

from engine.embedded.jvm import JvmServer
from engine.embedded.ports import LOOPBACK
from engine.embedded.server import ETC
from engine.errors import SetupError
from engine.jars import HALLMARKS
from engine.java import class_options

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["EmbeddedArtemis", "artemis_home"]

_CONNECT = b"CONNECT\naccept-version:1.2\nhost:localhost\n\n\0"
_DISCONNECT = b"DISCONNECT\n\n\0"


def artemis_home(jars: Path) -> Path:
    """The folder of the unpacked Artemis distribution; SetupError if `jars` has none."""
    folder = jars / "artemis"
    if homes := sorted(folder.glob(HALLMARKS["artemis"])):
        return homes[-1]
    msg = f"no Artemis in {folder}: run `make setup`"
    raise SetupError(msg)


class EmbeddedArtemis(JvmServer):
    """Artemis for one machine; `data/artemis` holds its messages and logs."""

    title: ClassVar[str] = "Artemis"

    def __init__(
        self,
        data: Path,
        core_port: int,
        stomp_port: int,
        amqp_port: int,
        jars: Path,
        *,
        heap_megabytes: int = 512,
    ) -> None:
        """`jars` is the folder with the unpacked distribution, `artemis/apache-artemis-*`."""
        ports = {
            "embedded.artemis.port": core_port,
            "embedded.stomp.port": stomp_port,
            "embedded.amqp.port": amqp_port,
        }
        super().__init__(data / "artemis", ports, heap_megabytes)
        self._core_port, self._stomp_port, self._amqp_port = core_port, stomp_port, amqp_port
        self._jars = jars.absolute()

    @property
    def core_url(self) -> str:
        """The URL for Artemis's own JMS client."""
        return f"tcp://{LOOPBACK}:{self._core_port}"

    @property
    def stomp_url(self) -> str:
        """The URL for `source.NAME.url` of a STOMP source."""
        return f"stomp://{LOOPBACK}:{self._stomp_port}"

    @property
    def amqp_url(self) -> str:
        """The URL for AMQP 1.0 clients."""
        return f"amqp://{LOOPBACK}:{self._amqp_port}"

    def _prepare(self, java: Path) -> None:
        artemis_home(self._jars)

    def _program(self) -> Sequence[str | Path]:
        home = artemis_home(self._jars)
        properties = {
            "artemis.home": home,
            "artemis.instance": self.folder,
            "artemis.instance.etc": ETC,
            "artemis.instance.etc.uri": ETC.as_uri(),
            "jmsbridge.core": self._core_port,
            "jmsbridge.stomp": self._stomp_port,
            "jmsbridge.amqp": self._amqp_port,
        }
        return [
            *(f"-D{name}={value}" for name, value in properties.items()),
            # Not started by the class loader of Artemis's boot jar: a class-data archive takes none of its classes.
            *class_options(home / "lib"),
            "org.apache.activemq.artemis.cli.Artemis",
            "run",
        ]

    def _answers(self) -> bool:
        """True if a STOMP session can be opened: Artemis opens its acceptors last, STOMP's among them."""
        try:
            with socket.create_connection((LOOPBACK, self._stomp_port), timeout=1) as connection:
                connection.sendall(_CONNECT)
                connected = connection.recv(4096).startswith(b"CONNECTED")
                connection.sendall(_DISCONNECT)
                return connected
        except OSError:
            return False
