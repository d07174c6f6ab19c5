"""OpenMQ (Eclipse Open Message Queue): its JMS client's protocol, and STOMP by its bridge service."""

from __future__ import annotations

import hashlib
import re
import socket
import subprocess
from typing import TYPE_CHECKING, ClassVar

from engine.embedded.ports import LOOPBACK, accepts
from engine.java import find_java
from engine.private import make_folder
from tests.brokers.broker import PASSWORD, USER, Broker, Protocol
from tests.brokers.packages import distribution

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

__all__ = ["OpenMq"]

_INSTANCE = "tests"
# It keeps something of each waiting message in memory, and lets its clients wait when little is left.
_JVM = ("-Xmx768m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_COUNT = re.compile(r"Current Number of Messages.*?Actual\s+(\d+)", re.DOTALL)
_SECONDS = 60


class OpenMq(Broker):
    """OpenMQ with messages in files."""

    title: ClassVar[str] = "OpenMQ"
    version: ClassVar[str] = "6.5.0"
    speaks: ClassVar[Sequence[Protocol]] = (Protocol.STOMP, Protocol.JMS)
    # Over STOMP it refuses an acknowledgement in a transaction.
    keeps_positions: ClassVar[Collection[Protocol]] = (Protocol.JMS,)
    others: ClassVar[Sequence[str]] = ("mapper", "admin")

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.log = self._own / "log" / "log.txt"

    @property
    def _own(self) -> Path:
        return self.folder / "var" / "instances" / _INSTANCE

    def create(self, queue: str) -> None:
        if self._ask("query", "dst", "-t", "q", "-n", queue).returncode:
            done = self._ask(
                "create", "dst", "-t", "q", "-n", queue, "-o", "maxNumMsgs=-1", "-o", "maxTotalMsgBytes=-1"
            )
            assert not done.returncode, " ".join(done.stdout.split())

    def waiting(self, queue: str) -> int:
        done = self._ask("query", "dst", "-t", "q", "-n", queue)
        found = _COUNT.search(done.stdout)
        assert found, done.stdout
        return int(found[1])

    def _client(self, port: int) -> Mapping[str, str]:
        return {
            ".class-path": ",".join(f"{self._home()}/lib/{name}.jar" for name in ("imq", "imqutil", "jms")),
            ".connection-factory": "com.sun.messaging.ConnectionFactory",
            ".connection-factory.imqAddressList": f"mqtcp://{LOOPBACK}:{port}/jms",
        }

    def _home(self) -> Path:
        return distribution(f"org.glassfish.mq:mq-distribution:{self.version}:zip") / "mq"

    def _find_program(self) -> Path:
        return find_java()

    def _command(self, program: Path) -> Sequence[str | Path]:
        own = self._own
        make_folder(self._console.parent)
        make_folder(own / "props")
        make_folder(own / "etc")
        settings = {
            "imq.accesscontrol.enabled": "false",
            "imq.bridge.activelist": "stomp",
            "imq.bridge.admin.user": USER,
            "imq.bridge.enabled": "true",
            "imq.bridge.stomp.hostname": LOOPBACK,
            "imq.bridge.stomp.tcp.port": self.ports[Protocol.STOMP],
            "imq.hostname": LOOPBACK,
            "imq.instanceconfig.version": "300",
            "imq.jms.tcp.port": self.ports[Protocol.JMS],
            "imq.jmx.enabled": "false",
            "imq.admin.tcp.port": self.ports["admin"],
            "imq.passfile.dirpath": self.folder,
            "imq.passfile.enabled": "true",
            "imq.passfile.name": "passfile",
            "imq.portmapper.port": self.ports["mapper"],
        }
        (own / "props" / "config.properties").write_text("".join(f"{key}={text}\n" for key, text in settings.items()))
        (own / "etc" / "passwd").write_text(f"{USER}:{_digest(USER, PASSWORD)}:admin:1\n")
        passwords = ("imq.bridge.admin.password", "imq.imqcmd.password")
        (self.folder / "passfile").write_text("".join(f"{key}={PASSWORD}\n" for key in passwords))
        return [*self._java(program), "com.sun.messaging.jmq.jmsserver.Broker", "-name", _INSTANCE, "-silent"]

    def _java(self, program: Path) -> list[str | Path]:
        home = self._home()
        homes = {"home": home, "varhome": self.folder / "var", "etchome": home / "etc", "libhome": home / "lib"}
        return [program, *_JVM, *(f"-Dimq.{name}={path}" for name, path in homes.items()), "-cp", f"{home / 'lib'}/*"]

    def _ask(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Runs OpenMQ's own command."""
        login = ("-u", USER, "-passfile", str(self.folder / "passfile"), "-f")
        at = ("-b", f"{LOOPBACK}:{self.ports['mapper']}")
        program = "com.sun.messaging.jmq.admin.apps.broker.BrokerCmd"
        command = [*map(str, self._java(find_java())), program, *arguments, *at, *login]
        return subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)

    def _answers(self) -> bool:
        """True if its STOMP service, which starts last, lets a client in."""
        connect = f"CONNECT\naccept-version:1.2\nhost:{LOOPBACK}\nlogin:{USER}\npasscode:{PASSWORD}\n\n\0"
        try:
            with socket.create_connection((LOOPBACK, self.ports[Protocol.STOMP]), timeout=5) as connection:
                connection.sendall(connect.encode())
                return connection.recv(4096).startswith(b"CONNECTED") and accepts(self.ports[Protocol.JMS])
        except OSError:
            return False


def _digest(user: str, password: str) -> str:
    """Returns a password as OpenMQ's file of users has it: the MD5 sum as a signed number."""
    total = hashlib.md5(f"{user}:{password}".encode(), usedforsecurity=False).digest()
    number = int.from_bytes(total, signed=True)
    return f"{number:x}"
