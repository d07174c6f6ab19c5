"""The Artemis that the bridge brings, as the other brokers: with a login, and with its own JMS client."""

from __future__ import annotations

import json
import shutil
import uuid
from typing import TYPE_CHECKING, ClassVar

from engine.embedded import EmbeddedArtemis
from engine.embedded.artemis import artemis_home
from engine.embedded.ports import LOOPBACK, accepts
from engine.embedded.server import ETC
from engine.errors import SetupError
from tests.brokers.broker import PASSWORD, USER, Broker, Protocol
from tests.conftest import JARS
from tests.integration.connectors.jms_harness import client
from tests.integration.connectors.stomp_harness import Peer
from tests.integration.connectors.stomp_jms import LOGIN

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

__all__ = ["Artemis"]

_ALL = ("createNonDurableQueue", "createDurableQueue", "createAddress", "consume", "browse", "send", "manage")
_RIGHTS = "".join(f'<permission type="{right}" roles="all"/>' for right in _ALL)
_SECURITY = f'<security-settings><security-setting match="#">{_RIGHTS}</security-setting></security-settings>'


def _set_up_version() -> str:
    """Returns the version that set-up fetched; empty before."""
    try:
        return artemis_home(JARS).name.removeprefix("apache-artemis-")
    except SetupError:
        return ""


class Artemis(Broker):
    """The embedded Artemis with the bridge's own settings, and a user."""

    title: ClassVar[str] = "ActiveMQ Artemis"
    version: ClassVar[str] = _set_up_version()
    speaks: ClassVar[Sequence[Protocol]] = tuple(Protocol)
    client_api: ClassVar[str] = "javax"
    keeps_positions: ClassVar[Collection[Protocol]] = ()

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        core, stomp, amqp = (self.ports[each] for each in (Protocol.JMS, Protocol.STOMP, Protocol.AMQP))
        self._server = EmbeddedArtemis(self.folder, core, stomp, amqp, JARS, heap_megabytes=256)

    def create(self, queue: str) -> None:
        with self._peer() as peer:
            peer.subscribe(queue, "client-individual")

    def waiting(self, queue: str) -> int:
        replies = f"replies-{uuid.uuid4().hex[:8]}"
        with self._peer() as peer:
            peer.subscribe(replies, "auto")
            asked = {"_AMQ_ResourceName": f"queue.{queue}", "_AMQ_Attribute": "messageCount", "reply-to": replies}
            peer.write(peer.frame("SEND", {"destination": "activemq.management", **asked}, b"[]"))
            return int(json.loads(peer.expect("MESSAGE").body)[0])

    def _peer(self) -> Peer:
        return Peer(self.ports[Protocol.STOMP], login=USER, passcode=PASSWORD)

    def _client(self, port: int) -> Mapping[str, str]:
        return client(f"tcp://{LOOPBACK}:{port}")

    def _find_program(self) -> Path:
        return self._server._find_program()

    def _command(self, program: Path) -> Sequence[str | Path]:
        own = self.folder / "etc"
        shutil.copytree(ETC, own, dirs_exist_ok=True)
        (own / "login.config").write_text(LOGIN)
        (own / "users.properties").write_text(f"{USER} = {PASSWORD}\n")
        (own / "roles.properties").write_text(f"all = {USER}\n")
        text = (own / "broker.xml").read_text()
        text = text.replace("<security-enabled>false", "<security-enabled>true")
        (own / "broker.xml").write_text(text.replace("<acceptors>", f"{_SECURITY}<acceptors>"))
        moved = {ETC.as_uri(): own.as_uri(), f"instance.etc={ETC}": f"instance.etc={own}"}
        command = [str(part) for part in self._server._command(program)]
        for old, new in moved.items():
            command = [part.replace(old, new) for part in command]
        return [command[0], f"-Djava.security.auth.login.config={own / 'login.config'}", *command[1:]]

    def _answers(self) -> bool:
        return accepts(self.ports[Protocol.STOMP]) and accepts(self.ports[Protocol.JMS])
