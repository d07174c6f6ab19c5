"""A real JMS application, and an Artemis that refuses: what the other side of a STOMP sink looks like."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from tests.integration.connectors.changed_artemis import ChangedArtemis
from tests.java import jms_program

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

USER = "sink"
PASSWORD = "for-the-test"

_PROGRAM = Path(__file__).with_name("JmsClient.java")
LOGIN = """\
activemq {
   org.apache.activemq.artemis.spi.core.security.jaas.PropertiesLoginModule required
       org.apache.activemq.jaas.properties.user="users.properties"
       org.apache.activemq.jaas.properties.role="roles.properties";
};
"""
_ALL = ("createNonDurableQueue", "createDurableQueue", "createAddress", "consume", "browse", "send", "manage")
_RIGHTS = {"#": _ALL, "secret.#": ("createAddress", "createDurableQueue"), "closed.#": ("send",)}
_LIMITS = {
    "none.#": "<auto-create-addresses>false</auto-create-addresses><auto-create-queues>false</auto-create-queues>",
    "full.#": "<max-size-bytes>50000</max-size-bytes><address-full-policy>FAIL</address-full-policy>",
}


class JmsClient:
    """`JmsClient.java` with Artemis' JMS client."""

    def __init__(self, url: str, log: Path) -> None:
        command = [*jms_program(_PROGRAM), url]
        self._log = log
        with log.open("wb") as errors:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, encoding="utf-8"
            )
        assert self._answer() == "ready"

    def open(self, destination: str) -> None:
        """A consumer on `queue:NAME` or `topic:NAME` is there."""
        self._do(f"open {destination}")

    def receive(self, destination: str, seconds: float = 10) -> Mapping[str, str]:
        """The next message as the application sees it; empty if none comes."""
        return self._message(f"receive {destination} {seconds * 1000:.0f}")

    def answer(self, destination: str) -> Mapping[str, str]:
        """The next message, which the application sends back to its JMSReplyTo."""
        return self._message(f"answer {destination} 10000")

    def answer_with(self, kind: str, destination: str) -> Mapping[str, str]:
        """The next message, waited for a minute and answered with a message of that kind: `map` or `object`."""
        return self._message(f"answer-{kind} {destination} 60000")

    def request(self, queue: str, text: str) -> str:
        """Sends a request whose reply goes to a temporary queue; its name."""
        return self._do(f"request {queue} {text}")

    def identified(self, queue: str, correlation_id: bytes) -> None:
        """Sends a message without a body, with a correlation id in bytes."""
        self._do(f"identified {queue} {correlation_id.hex()}")

    def leave(self) -> None:
        """Deletes the temporary queue."""
        self._do("leave")

    def reply(self) -> Mapping[str, str]:
        """What came to the temporary queue; a part of the bridge may have to start before."""
        return self._message("reply 60000")

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(30)
        self._process.stdout.close()

    def _message(self, command: str) -> Mapping[str, str]:
        return dict(parse_qsl(self._do(command), keep_blank_values=True))

    def _do(self, command: str) -> str:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{command}\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, self._log.read_text()
        return line.rstrip("\n")


class StrictArtemis(ChangedArtemis):
    """It wants a login, and refuses: `secret.#` to be sent to, `closed.#` to be made, `none.#` is never made."""

    def _prepare(self, java: Path) -> None:
        super()._prepare(java)
        (self.etc / "login.config").write_text(LOGIN)
        (self.etc / "users.properties").write_text(f"{USER} = {PASSWORD}\n")
        (self.etc / "roles.properties").write_text(f"all = {USER}\n")

    def changes(self) -> Mapping[str, str]:
        rights = "".join(
            f'<security-setting match="{match}">'
            + "".join(f'<permission type="{right}" roles="all"/>' for right in given)
            + "</security-setting>"
            for match, given in _RIGHTS.items()
        )
        limits = "".join(
            f'<address-setting match="{match}">{text}</address-setting>' for match, text in _LIMITS.items()
        )
        return {
            "<security-enabled>false": "<security-enabled>true",
            "<acceptors>": f"<security-settings>{rights}</security-settings><acceptors>",
            "</address-settings>": f"{limits}</address-settings>",
            "</addresses>": '<address name="none.topic"><multicast/></address></addresses>',
        }

    def _program(self) -> Sequence[str | Path]:
        return [f"-Djava.security.auth.login.config={self.etc / 'login.config'}", *super()._program()]
